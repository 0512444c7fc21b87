// SPDX-License-Identifier: GPL-2.0

//! A stack of fixed size, without a heap.
//!
//! An array of options would do. But it is cleared when it is made and walked when it is dropped,
//! place by place: for the pages that a pipe trims that was a hundred instructions of each 4 KiB
//! write, and 1.5% of it.

use core::mem::MaybeUninit;

/// At most `N` values of `T`.
///
/// # Invariants
///
/// `count` is at most `N`, and the first `count` places are initialised and owned.
pub(crate) struct Stack<T, const N: usize> {
    places: [MaybeUninit<T>; N],
    count: usize,
}

impl<T, const N: usize> Stack<T, N> {
    /// Makes an empty stack.
    #[inline]
    pub(crate) const fn new() -> Self {
        // INVARIANT: None of the places is said to be initialised.
        Self {
            places: [const { MaybeUninit::uninit() }; N],
            count: 0,
        }
    }

    /// The number of values.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Puts a value on top; a full stack gives it back.
    #[inline]
    pub(crate) fn push(&mut self, value: T) -> Result<(), T> {
        match self.places.get_mut(self.count) {
            Some(place) => {
                place.write(value);
                // INVARIANT: The place was below `N` and is initialised now.
                self.count = self.count.wrapping_add(1);
                Ok(())
            }
            None => Err(value),
        }
    }

    /// Takes the value from the top.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let top = self.count.checked_sub(1)?;
        let place = self.places.get(top)?;

        // INVARIANT: The place is given up before its value is moved out.
        self.count = top;
        // SAFETY: By the type invariant the place was initialised and owned; it is not any more.
        Some(unsafe { place.assume_init_read() })
    }
}

impl<T, const N: usize> Drop for Stack<T, N> {
    #[inline]
    fn drop(&mut self) {
        while let Some(value) = self.pop() {
            drop(value);
        }
    }
}
