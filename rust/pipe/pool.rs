// SPDX-License-Identifier: GPL-2.0

//! Pages that a pipe keeps for its next writes.
//!
//! A writer fills the pool before it takes the pipe's lock, and a reader returns spent pages to it,
//! so a steady stream allocates nothing, and nothing under the lock.

use crate::{
    abi::{iov::Page, stack::Stack},
    config::PageRule,
    stats::Counters,
};
use kernel::prelude::*;

/// As many pages as a pool may hold.
pub(super) type Pages = Stack<Page, { PageRule::MOST }>;

/// The pages of one pipe. The one that was put in last goes first: it is the likeliest to be in the
/// cache.
pub(super) struct Pool {
    pages: Pages,
    /// How many of them were never in a slot: for the counters, which tell pages allocated in
    /// advance from pages used again.
    fresh: usize,
}

impl Pool {
    /// Makes an empty pool.
    pub(super) const fn new() -> Self {
        Self {
            pages: Stack::new(),
            fresh: 0,
        }
    }

    /// The number of pages in the pool.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.pages.count() as u32
    }

    /// Takes a page for a slot, and counts where it came from.
    #[inline]
    pub(super) fn take_for_slot(&mut self, counters: &mut Counters) -> Option<Page> {
        let page = self.pages.pop()?;

        if let Some(fresh) = self.fresh.checked_sub(1) {
            self.fresh = fresh;
            counters.pages_unlocked += 1;
        } else {
            counters.pages_pool += 1;
        }
        Some(page)
    }

    /// Allocates pages until there are `count` or no memory is left; may sleep.
    pub(super) fn fill_to(&mut self, count: u64) {
        while u64::from(self.count()) < count {
            // A write without memory goes as far as it can.
            let Some(page) = Page::alloc() else { break };
            if self.pages.push(page).is_err() {
                break;
            }
        }
        self.fresh = self.pages.count();
    }

    /// Takes over the pages of `other`, which are all fresh; what does not fit stays there.
    pub(super) fn take_over(&mut self, other: &mut Self) {
        while let Some(page) = other.pages.pop() {
            if let Err(page) = self.pages.push(page) {
                // There was room for it a moment ago.
                let _ = other.pages.push(page);
                break;
            }
            self.fresh = self.fresh.saturating_add(1);
        }
    }

    /// Puts a spent page in, or frees it if the pool is full or somebody else still has the page.
    #[inline]
    pub(super) fn recycle(&mut self, page: Page, rule: PageRule) {
        if self.count() < rule.room && page.is_sole() {
            // What does not fit is freed.
            let _ = self.pages.push(page);
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
        let mut out = Stack::new();

        while self.count() > keep {
            let Some(page) = self.pages.pop() else { break };
            if out.push(page).is_err() {
                break;
            }
        }
        self.fresh = self.fresh.min(self.pages.count());
        out
    }
}

#[kunit_tests(altpipe_pool)]
mod tests {
    use super::*;

    const RULE: PageRule = PageRule {
        ahead: 4,
        room: 3,
        keep: 2,
    };

    fn filled(count: u64) -> Pool {
        let mut pool = Pool::new();

        pool.fill_to(count);
        pool
    }

    #[test]
    fn it_holds_as_many_pages_as_any_rule_asks_for_and_no_more() {
        let mut pool = filled(100);

        assert_eq!(pool.count() as usize, PageRule::MOST);
        if let Some(page) = Page::alloc() {
            assert!(pool.pages.push(page).is_err());
        }
        assert_eq!(pool.take_all().count(), PageRule::MOST);
        assert_eq!(pool.count(), 0);
        assert!(pool.pages.pop().is_none());
    }

    #[test]
    fn fresh_pages_are_told_from_pages_used_again() {
        let mut counters = Counters::default();
        let mut pool = filled(1);
        let page = pool.take_for_slot(&mut counters);

        assert_eq!(counters.pages_unlocked.0, 1);
        if let Some(page) = page {
            pool.recycle(page, RULE);
        }
        assert!(pool.take_for_slot(&mut counters).is_some());
        assert_eq!(counters.pages_unlocked.0, 1);
        assert_eq!(counters.pages_pool.0, 1);
    }

    #[test]
    fn a_spent_page_stays_where_there_is_room_by_the_rule() {
        let mut pool = Pool::new();

        for kept in [1, 2, 3, 3, 3] {
            if let Some(page) = Page::alloc() {
                pool.recycle(page, RULE);
            }
            assert_eq!(pool.count(), kept);
        }
        assert!(pool.has_excess(RULE));
        assert_eq!(pool.take_excess(RULE).count(), 1);
        assert!(!pool.has_excess(RULE));
    }

    #[test]
    fn a_pool_takes_over_what_fits() {
        let mut pool = filled(PageRule::MOST as u64 - 1);
        let mut other = filled(3);

        pool.take_over(&mut other);
        assert_eq!(pool.count() as usize, PageRule::MOST);
        assert_eq!(other.count(), 2);
    }
}
