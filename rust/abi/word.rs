// SPDX-License-Identifier: GPL-2.0

//! A word that is written under a lock and read without it.
//!
//! C header: [`include/asm-generic/rwonce.h`](srctree/include/asm-generic/rwonce.h)

use kernel::sync::atomic::{ordering, Atomic};

/// A 64-bit word that one side writes under a lock and anybody reads without it.
///
/// `load` and `store` are READ_ONCE and WRITE_ONCE. `Atomic<u64>` has both, but each is a call of
/// a C helper where the kernel does not inline these, as no kernel built by gcc does: seven calls
/// for one byte through a pipe, and 2% of its instructions.
pub(crate) struct Word(Atomic<u64>);

impl Word {
    /// Makes a word that holds `value`.
    pub(crate) const fn new(value: u64) -> Self {
        Self(Atomic::new(value))
    }

    /// Reads the word whole; orders nothing.
    #[inline]
    pub(crate) fn load(&self) -> u64 {
        if cfg!(CONFIG_64BIT) {
            // SAFETY: The pointer is valid and aligned, and all other accesses are atomic or
            // volatile accesses of one machine word.
            unsafe { self.0.as_ptr().read_volatile() }
        } else {
            self.0.load(ordering::Relaxed)
        }
    }

    /// Writes the word whole; orders nothing.
    #[inline]
    pub(crate) fn store(&self, value: u64) {
        if cfg!(CONFIG_64BIT) {
            // SAFETY: As for `load`.
            unsafe { self.0.as_ptr().write_volatile(value) }
        } else {
            self.0.store(value, ordering::Relaxed);
        }
    }

    /// Adds one to the word; no addition is lost, and nothing is ordered.
    pub(crate) fn increment(&self) {
        self.0.add(1, ordering::Relaxed);
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
