// SPDX-License-Identifier: GPL-2.0

//! The atomics of the pure core, as the kernel has them.
//!
//! The core names its atomics by `crate::sync`, so that the same file runs on the kernel's memory
//! model here and on std's or loom's in the host twin (`tools/altpipe-core`).

use kernel::sync::atomic::{ordering, Atomic};

/// A 64-bit word that one side writes under a lock and anybody reads without it.
pub(crate) struct Word(Atomic<u64>);

impl Word {
    /// Makes a word that holds `value`.
    pub(crate) const fn new(value: u64) -> Self {
        Self(Atomic::new(value))
    }

    /// Reads the word whole; orders nothing.
    #[inline]
    pub(crate) fn load(&self) -> u64 {
        self.0.load(ordering::Relaxed)
    }

    /// Writes the word whole; orders nothing.
    #[inline]
    pub(crate) fn store(&self, value: u64) {
        self.0.store(value, ordering::Relaxed);
    }

    /// Adds to the word; no addition is lost, and nothing is ordered.
    pub(crate) fn add(&self, count: u64) {
        self.0.add(count, ordering::Relaxed);
    }

    /// Sets bits of the word; no bit is lost, and nothing is ordered.
    #[inline]
    pub(crate) fn set_bits(&self, bits: u64) {
        let mut old = self.load();

        // Bits that are set already cost no write: poll(2) sets the same ones again and again.
        while old & bits != bits {
            match self.0.cmpxchg(old, old | bits, ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => old = now,
            }
        }
    }
}
