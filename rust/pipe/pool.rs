// SPDX-License-Identifier: GPL-2.0

//! Pages that a pipe keeps for its next writes.
//!
//! A writer fills the pool before it takes the pipe's lock, and a reader returns spent pages to it,
//! so a steady stream allocates nothing, and nothing under the lock.

use crate::abi::iov::Page;

/// The most pages a pool may hold.
const ROOM: usize = 8;

/// How many of them survive the end of a call.
const KEEP: usize = 2;

/// Pages on their way out of a pool.
pub(super) type Pages = [Option<Page>; ROOM];

/// A stack of pages.
///
/// # Invariants
///
/// The first `count` places hold pages, the others none.
pub(super) struct Pool {
    pages: Pages,
    count: usize,
}

impl Pool {
    /// Makes an empty pool.
    pub(super) const fn new() -> Self {
        // INVARIANT: No place holds a page.
        Self {
            pages: [const { None }; ROOM],
            count: 0,
        }
    }

    /// The number of pages in the pool.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.count as u32
    }

    /// How many pages a write of `len` bytes should find in the pool.
    #[inline]
    pub(super) fn wanted(len: usize) -> usize {
        len.div_ceil(kernel::page::PAGE_SIZE).min(ROOM)
    }

    /// Takes the page that was put in last: it is the likeliest to be in the cache.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Page> {
        let top = self.count.checked_sub(1)?;
        let page = self.pages.get_mut(top)?.take();

        // INVARIANT: The place is empty now.
        self.count = top;
        page
    }

    /// Puts a page in; a full pool gives it back.
    #[inline]
    pub(super) fn put(&mut self, page: Page) -> Result<(), Page> {
        match self.pages.get_mut(self.count) {
            Some(place) => {
                // INVARIANT: The place holds a page now.
                *place = Some(page);
                self.count += 1;
                Ok(())
            }
            None => Err(page),
        }
    }

    /// Puts a spent page in, or frees it if the pool is full or somebody else still has the page.
    #[inline]
    pub(super) fn recycle(&mut self, page: Page) {
        if page.is_sole() {
            // What does not fit is freed.
            let _ = self.put(page);
        }
    }

    /// Whether the pool holds more than it keeps between calls.
    #[inline]
    pub(super) fn has_excess(&self) -> bool {
        self.count > KEEP
    }

    /// Takes out what is not kept between calls.
    pub(super) fn take_excess(&mut self) -> Pages {
        self.take_down_to(KEEP)
    }

    /// Takes out everything.
    pub(super) fn take_all(&mut self) -> Pages {
        self.take_down_to(0)
    }

    fn take_down_to(&mut self, keep: usize) -> Pages {
        let mut out = [const { None }; ROOM];

        for place in &mut out {
            if self.count <= keep {
                break;
            }
            *place = self.take();
        }
        out
    }
}
