// SPDX-License-Identifier: GPL-2.0

//! The devices that programs open.
//!
//! The control device makes pipes and never waits, so a misc device will do. A FIFO device waits for
//! a partner in its open, which no misc device may: the misc core holds one lock for all of them
//! meanwhile. So FIFO devices have a region of numbers and a class of their own.

mod control;
mod fifo;

pub(crate) use control::Control;
pub(crate) use fifo::Fifo;
