// SPDX-License-Identifier: GPL-2.0

//! Tests of the ring, which lie in this crate because the ring is private to its crate.

mod call;
mod ring;
mod sleepers;
mod wake;
mod world;
