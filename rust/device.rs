// SPDX-License-Identifier: GPL-2.0

//! The devices that programs open.

mod control;

pub(crate) use control::Control;
