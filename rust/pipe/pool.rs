// SPDX-License-Identifier: GPL-2.0

//! Pages that a pipe keeps for its next writes.
//!
//! A writer fills the pool before it takes the pipe's lock, and a reader returns spent pages to it,
//! so a steady stream allocates nothing, and nothing under the lock.

use crate::{abi::iov::Page, config::PageRule, stats::Counters};

/// Pages on their way out of a pool.
pub(super) type Pages = [Option<Page>; PageRule::MOST];

/// A stack of pages.
///
/// # Invariants
///
/// The first `count` places hold pages, the others none.
pub(super) struct Pool {
    pages: Pages,
    count: usize,
    /// How many of them were never in a slot: for the counters, which tell pages allocated in
    /// advance from pages used again.
    fresh: usize,
}

impl Pool {
    /// Makes an empty pool.
    pub(super) const fn new() -> Self {
        // INVARIANT: No place holds a page.
        Self {
            pages: [const { None }; PageRule::MOST],
            count: 0,
            fresh: 0,
        }
    }

    /// The number of pages in the pool.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.count as u32
    }

    /// Takes a page for a slot, and counts where it came from.
    #[inline]
    pub(super) fn take_for_slot(&mut self, counters: &mut Counters) -> Option<Page> {
        let page = self.take()?;

        if let Some(fresh) = self.fresh.checked_sub(1) {
            self.fresh = fresh;
            counters.pages_unlocked += 1;
        } else {
            counters.pages_pool += 1;
        }
        Some(page)
    }

    /// Takes the page that was put in last: it is the likeliest to be in the cache.
    #[inline]
    fn take(&mut self) -> Option<Page> {
        let top = self.count.checked_sub(1)?;
        let page = self.pages.get_mut(top)?.take();

        // INVARIANT: The place is empty now.
        self.count = top;
        page
    }

    /// Allocates pages until there are `count` or no memory is left; may sleep.
    pub(super) fn fill_to(&mut self, count: u64) {
        while u64::from(self.count()) < count {
            // A write without memory goes as far as it can.
            let Some(page) = Page::alloc() else { break };
            if self.put(page).is_err() {
                break;
            }
        }
        self.fresh = self.count;
    }

    /// Takes over the pages of `other`, which are all fresh; what does not fit stays there.
    pub(super) fn take_over(&mut self, other: &mut Self) {
        while let Some(page) = other.take() {
            if let Err(page) = self.put(page) {
                // There was room for it a moment ago.
                let _ = other.put(page);
                break;
            }
            self.fresh = self.fresh.saturating_add(1);
        }
    }

    /// Puts a page in; a full pool gives it back.
    #[inline]
    fn put(&mut self, page: Page) -> Result<(), Page> {
        match self.pages.get_mut(self.count) {
            Some(place) => {
                // INVARIANT: The place holds a page now.
                *place = Some(page);
                self.count = self.count.wrapping_add(1);
                Ok(())
            }
            None => Err(page),
        }
    }

    /// Puts a spent page in, or frees it if the pool is full or somebody else still has the page.
    #[inline]
    pub(super) fn recycle(&mut self, page: Page, rule: PageRule) {
        if self.count() < rule.room && page.is_sole() {
            // What does not fit is freed.
            let _ = self.put(page);
        }
    }

    /// Whether the pool holds more than it keeps between calls.
    #[inline]
    pub(super) fn has_excess(&self, rule: PageRule) -> bool {
        self.count() > rule.keep
    }

    /// Takes out what is not kept between calls.
    pub(super) fn take_excess(&mut self, rule: PageRule) -> Pages {
        self.take_down_to(rule.keep)
    }

    /// Takes out everything.
    pub(super) fn take_all(&mut self) -> Pages {
        self.take_down_to(0)
    }

    fn take_down_to(&mut self, keep: u32) -> Pages {
        let mut out = [const { None }; PageRule::MOST];

        for place in &mut out {
            if self.count() <= keep {
                break;
            }
            *place = self.take();
        }
        self.fresh = self.fresh.min(self.count);
        out
    }
}
