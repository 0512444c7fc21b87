// SPDX-License-Identifier: GPL-2.0

//! splice(2) and sendfile(2) between a pipe of ours and one of the kernel's own.
//!
//! The kernel calls a file's `splice_read` to fill one of its pipes and `splice_write` to empty one.
//! It does so with two things that differ:
//!
//! ```text
//!   splice_read     with the kernel's pipe locked; returns with it locked
//!   splice_write    without; sendfile(2) comes with a pipe that no file leads to, and no lock
//! ```
//!
//! # Locks
//!
//! The mutex of the kernel's pipe comes first, that of ours second. Nobody sleeps for data or room
//! of one pipe with the mutex of the other: so a task that wants the kernel's pipe waits for a copy
//! of a page at most, as it would with two pipes of the kernel's.
//!
//! # Pages
//!
//! A page goes from pipe to pipe by reference where a reference is all that keeps its bytes. One of
//! ours goes with the kernel's own table of operations, since it may outlive this module.
//!
//! C header: [`include/linux/splice.h`](srctree/include/linux/splice.h)

use super::{
    iov::Page,
    wait::{Slept, WaitQueue},
};
use crate::bindings;
use core::{marker::PhantomData, ptr};
use kernel::{error::to_result, page::PAGE_SIZE, prelude::*};

/// A pipe as the kernel crate knows it: by its address.
type Native = bindings::pipe_inode_info;

/// Tells the current task that nobody reads what it writes.
#[cold]
pub(crate) fn send_sigpipe() {
    // SAFETY: The current task is valid and signals itself.
    unsafe { bindings::send_sig(bindings::SIGPIPE as c_int, bindings::get_current(), 0) };
}

/// A pipe of the kernel's that a call fills.
///
/// # Invariants
///
/// `pipe` is valid for as long as `'a`. The current task holds its mutex, but for the time that a
/// method of this type gives it up.
pub(crate) struct NativeSink<'a> {
    pipe: *mut Native,
    nonblocking: bool,
    _lifetime: PhantomData<&'a ()>,
}

impl NativeSink<'_> {
    /// # Safety
    ///
    /// `pipe` must be valid, and its mutex held by the current task, for the lifetime of the value.
    pub(super) unsafe fn from_raw(pipe: *mut Native, nonblocking: bool) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            pipe,
            nonblocking,
            _lifetime: PhantomData,
        }
    }

    /// Whether the caller wants EAGAIN where he would have to sleep.
    pub(crate) fn is_nonblocking(&self) -> bool {
        self.nonblocking
    }

    /// Whether the pipe takes no further buffer.
    pub(crate) fn is_full(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::altpipe_pipe_is_full(self.pipe) }
    }

    fn has_readers(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::altpipe_pipe_has_readers(self.pipe) }
    }

    /// Puts `len` bytes at `offset` of `page` behind what the pipe holds.
    ///
    /// Both have the page then. The kernel's writers never append to it.
    pub(crate) fn put(&mut self, page: &Page, offset: usize, len: usize, packet: bool) -> Result {
        let page = page.share().ok_or(EFAULT)?;
        let mut buffer = bindings::pipe_buffer {
            page: page.into_raw(),
            offset: offset as c_uint,
            len: len as c_uint,
            // A table of the kernel's: this module may be gone when the page is.
            ops: &raw const bindings::nosteal_pipe_buf_ops,
            flags: if packet {
                bindings::PIPE_BUF_FLAG_PACKET
            } else {
                0
            },
            ..Default::default()
        };

        // SAFETY: By the type invariant the pipe is locked. The buffer owns the reference above: it
        // is the pipe's now, or has been dropped where this fails.
        match unsafe { bindings::add_to_pipe(self.pipe, &mut buffer) } {
            error @ ..0 => Err(Error::from_errno(error as c_int)),
            _ => Ok(()),
        }
    }

    /// Runs `section` without the pipe's mutex.
    pub(crate) fn unlocked<R>(&mut self, section: impl FnOnce() -> R) -> R {
        // SAFETY: By the type invariant the mutex is ours, and is again when we return.
        unsafe { bindings::pipe_unlock(self.pipe) };
        let result = section();
        // SAFETY: As above.
        unsafe { bindings::pipe_lock(self.pipe) };
        result
    }

    /// Waits until the pipe takes a buffer, without its mutex meanwhile.
    pub(crate) fn await_room(&mut self) -> Result {
        loop {
            if !self.has_readers() {
                send_sigpipe();
                return Err(EPIPE);
            }
            if !self.is_full() {
                return Ok(());
            }
            if self.nonblocking {
                return Err(EAGAIN);
            }
            // SAFETY: By the type invariant the pipe outlives the wait, and its queue with it.
            let queue =
                unsafe { WaitQueue::from_raw(bindings::altpipe_pipe_writers_queue(self.pipe)) };
            let pipe = self.pipe;
            let sleep = self.unlocked(|| {
                queue.sleep_until(
                    false,
                    // SAFETY: As above; both may be asked without the mutex.
                    || unsafe {
                        !bindings::altpipe_pipe_is_full(pipe)
                            || !bindings::altpipe_pipe_has_readers(pipe)
                    },
                    || (),
                )
            });
            if let Slept::Interrupted = sleep.outcome {
                return Err(ERESTARTSYS);
            }
        }
    }
}

/// A pipe of the kernel's that a call empties.
///
/// # Invariants
///
/// `pipe` is valid for as long as `'a`, and the current task does not hold its mutex between two
/// calls of methods.
pub(crate) struct NativeSource<'a> {
    pipe: *mut Native,
    len: usize,
    nonblocking: bool,
    _lifetime: PhantomData<&'a ()>,
}

impl NativeSource<'_> {
    /// # Safety
    ///
    /// `pipe` must be valid, and its mutex not held by the current task, for the lifetime of the
    /// value.
    pub(super) unsafe fn from_raw(pipe: *mut Native, len: usize, nonblocking: bool) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            pipe,
            len,
            nonblocking,
            _lifetime: PhantomData,
        }
    }

    /// Whether the caller wants EAGAIN where he would have to sleep.
    pub(crate) fn is_nonblocking(&self) -> bool {
        self.nonblocking
    }

    /// Whether the same system call has moved bytes before this call of ours.
    ///
    /// sendfile(2) calls once for each pipe's worth, and reports bytes rather than a failure.
    pub(crate) fn has_moved(&self) -> bool {
        // SAFETY: By the type invariant the pipe is valid. One that no file leads to is the
        // caller's alone.
        unsafe {
            bindings::altpipe_pipe_is_direct(self.pipe)
                && bindings::altpipe_pipe_is_begun(self.pipe)
        }
    }

    /// Offers what the pipe holds to `take`, buffer by buffer, until `take` fails, all that the
    /// caller wants is taken, or the pipe is empty. Waits for data where it has none to begin with.
    ///
    /// Returns the number of bytes taken, which is zero at the end of the stream. An error after
    /// bytes were taken is not reported. `take` runs with the pipe's mutex held.
    pub(crate) fn feed<F: FnMut(&Buffer<'_>) -> Result<usize>>(
        &mut self,
        mut take: F,
    ) -> Result<usize> {
        let mut call = bindings::splice_desc {
            total_len: self.len,
            flags: if self.nonblocking {
                bindings::SPLICE_F_NONBLOCK
            } else {
                0
            },
            u: bindings::splice_desc__bindgen_ty_1 {
                data: (&raw mut take).cast(),
            },
            ..Default::default()
        };

        // SAFETY: By the type invariant the pipe is valid and not locked by us. The actor gets
        // `call`, and finds in it a `take` that outlives both.
        let taken = unsafe {
            bindings::pipe_lock(self.pipe);
            let taken = bindings::__splice_from_pipe(self.pipe, &mut call, Some(Self::actor::<F>));
            bindings::pipe_unlock(self.pipe);
            taken
        };
        if taken < 0 {
            to_result(taken as c_int)?;
        }
        Ok(taken as usize)
    }

    /// # Safety
    ///
    /// Called by `__splice_from_pipe` on behalf of [`Self::feed`] with the same `F`, and a buffer of
    /// the locked pipe.
    unsafe extern "C" fn actor<F: FnMut(&Buffer<'_>) -> Result<usize>>(
        _pipe: *mut Native,
        buffer: *mut bindings::pipe_buffer,
        call: *mut bindings::splice_desc,
    ) -> c_int {
        // SAFETY: By the safety requirement.
        let (take, len) = unsafe { (&mut *(*call).u.data.cast::<F>(), (*call).len) };
        // INVARIANT: By the safety requirement, while `take` runs.
        let buffer = Buffer {
            buffer,
            len: len as usize,
            _lifetime: PhantomData,
        };

        match take(&buffer) {
            // It takes no more than there is, and that was an int's worth.
            Ok(count) => count as c_int,
            Err(error) => error.to_errno(),
        }
    }
}

/// Bytes that lie ready in a pipe of the kernel's.
///
/// # Invariants
///
/// `buffer` is valid for as long as `'a`: its pipe is locked, or is the current task's alone. It has
/// been confirmed, and has at least `len` bytes.
pub(crate) struct Buffer<'a> {
    buffer: *mut bindings::pipe_buffer,
    len: usize,
    _lifetime: PhantomData<&'a ()>,
}

/// A page with the place and the number of the bytes in it that count.
///
/// # Invariants
///
/// `offset + len` is at most the size of a page.
pub(crate) struct Piece {
    /// The page. Others may have it as well.
    pub(crate) page: Page,
    /// Where the bytes begin.
    pub(crate) offset: usize,
    /// How many there are.
    pub(crate) len: usize,
}

impl Buffer<'_> {
    /// Whether a single read takes it whole.
    pub(crate) fn is_packet(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { (*self.buffer).flags & bindings::PIPE_BUF_FLAG_PACKET != 0 }
    }

    /// Gets hold of the bytes, or of the first of them where they lie in several pages.
    pub(crate) fn piece(&self) -> Result<Piece> {
        // SAFETY: By the type invariant.
        let (page, offset) = unsafe { ((*self.buffer).page, (*self.buffer).offset as usize) };

        if self.lives_by_references() && offset.saturating_add(self.len) <= PAGE_SIZE {
            // SAFETY: The buffer holds a reference on its page.
            let page = unsafe { Page::share_raw(page) }.ok_or(EFAULT)?;

            // INVARIANT: Just compared.
            return Ok(Piece {
                page,
                offset,
                len: self.len,
            });
        }
        let mut copy = Page::alloc().ok_or(ENOMEM)?;
        let len = self.len.min(PAGE_SIZE);

        // SAFETY: By the type invariant the buffer's page has the range, and pages behind it have
        // what goes beyond.
        unsafe { copy.fill_from(page, offset, len) };
        // INVARIANT: The copy begins at the page's start.
        Ok(Piece {
            page: copy,
            offset: 0,
            len,
        })
    }

    /// Whether a reference on the page is all that keeps the bytes as they are.
    ///
    /// All that a buffer's owner has to say when somebody else takes an interest is in `get`. Where
    /// that is the kernel's plain one, tee(2) would share the page as well.
    fn lives_by_references(&self) -> bool {
        type Get = unsafe extern "C" fn(*mut Native, *mut bindings::pipe_buffer) -> bool;

        // SAFETY: By the type invariant; a buffer in use has operations.
        unsafe { (*(*self.buffer).ops).get }
            .is_some_and(|get| ptr::fn_addr_eq(get, bindings::generic_pipe_buf_get as Get))
    }
}
