// SPDX-License-Identifier: GPL-2.0

//! The atomics of the pure core, as the kernel's `sync` module gives them to the same files there.

use std::sync::atomic::{AtomicU64, Ordering};

/// A 64-bit word that one side writes under a lock and anybody reads without it.
pub(crate) struct Word(AtomicU64);

impl Word {
    /// Makes a word that holds `value`.
    pub(crate) const fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    /// Reads the word whole; orders nothing.
    pub(crate) fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Writes the word whole; orders nothing.
    pub(crate) fn store(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}
