// SPDX-License-Identifier: GPL-2.0

//! Pages, and copies between them and a caller's buffers.
//!
//! C headers: [`include/linux/gfp.h`](srctree/include/linux/gfp.h),
//! [`include/linux/uio.h`](srctree/include/linux/uio.h)

use crate::bindings;
use core::{mem::ManuallyDrop, ptr::NonNull};
use kernel::{
    iov::{IovIterDest, IovIterSource},
    page::PAGE_SIZE,
};

/// One page of a pipe's data. One that was allocated here is charged to the memory cgroup of the task
/// that did.
///
/// `kernel::page::Page` frees its page outright. One of ours may have been handed to another pipe
/// as well, or have come from one, so it is reference counted.
///
/// # Invariants
///
/// The pointer is to a page on which this value owns a reference.
pub(crate) struct Page(NonNull<bindings::page>);

// SAFETY: A reference to a page may be dropped, and the page be copied to or from, in any task.
unsafe impl Send for Page {}

impl Page {
    /// Allocates a page; may sleep.
    #[inline]
    pub(crate) fn alloc() -> Option<Self> {
        // SAFETY: Order zero with flags that the page allocator knows.
        let page =
            unsafe { bindings::alloc_pages(bindings::GFP_HIGHUSER | bindings::__GFP_ACCOUNT, 0) };

        // INVARIANT: The allocator hands over one reference.
        NonNull::new(page).map(Self)
    }

    /// Takes one more reference, unless there are absurdly many.
    pub(crate) fn share(&self) -> Option<Self> {
        // SAFETY: By the type invariant.
        unsafe { Self::share_raw(self.0.as_ptr()) }
    }

    /// As [`Self::share`], for a page that somebody else has.
    ///
    /// # Safety
    ///
    /// The page must be valid, and its owner keep it meanwhile.
    pub(super) unsafe fn share_raw(page: *mut bindings::page) -> Option<Self> {
        // SAFETY: By the safety requirement.
        if !unsafe { bindings::altpipe_try_get_page(page) } {
            return None;
        }
        // INVARIANT: Just taken.
        NonNull::new(page).map(Self)
    }

    /// Hands over the reference.
    pub(super) fn into_raw(self) -> *mut bindings::page {
        ManuallyDrop::new(self).0.as_ptr()
    }

    /// Fills the page from its start with `count` bytes at `offset` of another.
    ///
    /// # Safety
    ///
    /// `from` must be valid, and the range lie in it or in it and the pages that follow.
    pub(super) unsafe fn fill_from(
        &mut self,
        from: *mut bindings::page,
        offset: usize,
        count: usize,
    ) {
        let count = count.min(PAGE_SIZE);

        // SAFETY: By the type invariant the page is valid, and `count` bytes fit; by the safety
        // requirement there are as many to copy.
        unsafe { bindings::altpipe_copy_range(self.0.as_ptr(), from, offset, count) };
    }

    /// Whether nobody else holds a reference.
    #[inline]
    pub(crate) fn is_sole(&self) -> bool {
        // SAFETY: By the type invariant the page is valid; others may change the count as we look.
        unsafe { (&raw const (*self.0.as_ptr())._refcount.counter).read_volatile() == 1 }
    }

    /// Copies `count` bytes at `offset` to `to`; returns how many the caller's memory took.
    #[inline]
    pub(crate) fn copy_to(&self, offset: usize, count: usize, to: &mut IovIterDest<'_>) -> usize {
        if offset.saturating_add(count) > PAGE_SIZE {
            return 0;
        }
        // SAFETY: By the type invariant the page is valid, the range lies in it, and an
        // `IovIterDest` may be written to.
        unsafe { bindings::copy_page_to_iter(self.0.as_ptr(), offset, count, to.as_raw()) }
    }

    /// Copies up to `count` bytes from `from` to `offset`; returns how many the caller had or his
    /// memory gave.
    #[inline]
    pub(crate) fn copy_from(
        &mut self,
        offset: usize,
        count: usize,
        from: &mut IovIterSource<'_>,
    ) -> usize {
        if offset.saturating_add(count) > PAGE_SIZE {
            return 0;
        }
        // SAFETY: By the type invariant the page is valid, the range lies in it, and an
        // `IovIterSource` may be read from. Nobody else looks at the range: the caller has the
        // page to himself or, for bytes behind those already published, holds the pipe's lock.
        unsafe { bindings::copy_page_from_iter(self.0.as_ptr(), offset, count, from.as_raw()) }
    }
}

impl Drop for Page {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariant we own this reference and give it up.
        unsafe { bindings::altpipe_put_page(self.0.as_ptr()) };
    }
}
