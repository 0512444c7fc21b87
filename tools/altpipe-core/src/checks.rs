// SPDX-License-Identifier: GPL-2.0

//! Tests of the ring, which lie in this crate because the ring is private to its crate.

mod call;
mod changes;
mod mistakes;
mod plan;
mod queues;
mod ring;
mod search;
mod sleepers;
mod task;
mod wake;
mod world;
