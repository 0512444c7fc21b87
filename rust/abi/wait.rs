// SPDX-License-Identifier: GPL-2.0

//! Wait queues as a pipe needs them: exclusive or not, with poll keys, with the sync hint, and with
//! the queue's own spinlock in reach.
//!
//! `kernel::sync::CondVar` always waits exclusively, knows no poll key and hides its lock; a pipe's
//! knobs are about just these.
//!
//! C header: [`include/linux/wait.h`](srctree/include/linux/wait.h)

use crate::bindings;
use core::ptr;
use kernel::{
    prelude::*,
    sync::{
        barrier::{smp_mb, Full},
        LockClassKey,
    },
    types::Opaque,
};

/// A set of poll(2) events.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PollMask(bindings::__poll_t);

impl PollMask {
    /// Nothing to report.
    pub(crate) const NONE: Self = Self(0);
    /// There is something to read.
    pub(crate) const READABLE: Self = Self(bindings::EPOLLIN | bindings::EPOLLRDNORM);
    /// There is room to write.
    pub(crate) const WRITABLE: Self = Self(bindings::EPOLLOUT | bindings::EPOLLWRNORM);
    /// No writer is left.
    pub(crate) const HANGUP: Self = Self(bindings::EPOLLHUP);
    /// No reader is left.
    pub(crate) const ERROR: Self = Self(bindings::EPOLLERR);

    /// The events of both.
    #[inline]
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The events as the kernel counts them.
    #[inline]
    pub(crate) fn bits(self) -> bindings::__poll_t {
        self.0
    }

    #[inline]
    fn key(self) -> *mut c_void {
        ptr::without_provenance_mut(self.0 as usize)
    }
}

/// How a sleep ended.
pub(crate) enum Slept {
    /// The condition holds.
    Ready,
    /// A signal came first.
    Interrupted,
}

/// What happened during one call of [`WaitQueue::sleep_until`].
#[derive(Default)]
pub(crate) struct Sleep {
    /// How often the task left the processor.
    pub(crate) sleeps: u32,
    /// How often a wake-up brought it back.
    pub(crate) wakes: u32,
    /// How many of these found the condition still false.
    pub(crate) wasted: u32,
}

/// A `wait_queue_head_t`.
///
/// # Invariants
///
/// `head` is an initialised wait queue head.
#[pin_data]
pub(crate) struct WaitQueue {
    #[pin]
    head: Opaque<bindings::wait_queue_head>,
}

// SAFETY: A wait queue is made to be shared; its spinlock serialises all access.
unsafe impl Send for WaitQueue {}
// SAFETY: As above.
unsafe impl Sync for WaitQueue {}

impl WaitQueue {
    /// Makes an empty queue whose lock belongs to the lockdep class `key`.
    pub(crate) fn new(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        pin_init!(Self {
            // SAFETY: `slot` is writable and pinned; `name` and `key` live for ever.
            head <- Opaque::ffi_init(|slot| unsafe {
                bindings::__init_waitqueue_head(slot, name.as_char_ptr(), key.as_ptr())
            }),
        })
    }

    /// Wakes all sleepers that wait together and one of those that wait exclusively.
    ///
    /// With `sync` the scheduler hears that the caller is about to sleep.
    #[inline]
    pub(crate) fn wake(&self, events: PollMask, sync: bool) {
        if sync {
            // SAFETY: By the type invariant.
            unsafe {
                bindings::__wake_up_sync_key(
                    self.head.get(),
                    bindings::TASK_INTERRUPTIBLE,
                    events.key(),
                )
            };
        } else {
            // SAFETY: By the type invariant.
            unsafe {
                bindings::__wake_up(
                    self.head.get(),
                    bindings::TASK_INTERRUPTIBLE,
                    1,
                    events.key(),
                )
            };
        }
    }

    /// Wakes every sleeper, also those that wait exclusively.
    pub(crate) fn wake_all(&self) {
        // SAFETY: By the type invariant.
        unsafe {
            bindings::__wake_up(
                self.head.get(),
                bindings::TASK_INTERRUPTIBLE,
                0,
                ptr::null_mut(),
            )
        };
    }

    /// Runs `section` with the queue's spinlock held and interrupts off.
    #[inline]
    pub(crate) fn with_lock<R>(&self, section: impl FnOnce(&Locked<'_>) -> R) -> R {
        // SAFETY: By the type invariant. No caller holds this lock already: `section` gets no way
        // to take it.
        unsafe { bindings::altpipe_wait_lock_irq(self.head.get()) };
        // INVARIANT: Just locked; unlocked after the last use.
        let result = section(&Locked(self));
        // SAFETY: Locked above by this very task.
        unsafe { bindings::altpipe_wait_unlock_irq(self.head.get()) };
        result
    }

    /// Sleeps until `ready` says true or a signal is pending.
    ///
    /// `ready` runs without any lock. The caller holds none either. An `exclusive` sleeper is
    /// woken alone and owes a wake-up to the next if there is still something to do.
    ///
    /// Kept out of line: a pipe's fast path must not pay for this frame.
    #[inline(never)]
    pub(crate) fn sleep_until(
        &self,
        exclusive: bool,
        mut ready: impl FnMut() -> bool,
    ) -> (Slept, Sleep) {
        let mut seen = Sleep::default();

        if ready() {
            return (Slept::Ready, seen);
        }

        let entry = Opaque::<bindings::wait_queue_entry>::uninit();
        let flags = if exclusive {
            bindings::WQ_FLAG_EXCLUSIVE
        } else {
            0
        };
        // SAFETY: `entry` is writable, and it does not move until `finish_wait` has unlinked it.
        unsafe { bindings::init_wait_entry(entry.get(), flags as c_int) };

        let mut woken = false;
        loop {
            // SAFETY: By the type invariant; `entry` is initialised.
            let pending = unsafe {
                bindings::prepare_to_wait_event(
                    self.head.get(),
                    entry.get(),
                    bindings::TASK_INTERRUPTIBLE as c_int,
                )
            };

            if ready() {
                break;
            }
            seen.wasted += u32::from(woken);
            if pending != 0 {
                // The entry is unlinked already. It was not by a wake-up, or `ready` had a chance
                // to see why: so none is lost with us.
                return (Slept::Interrupted, seen);
            }

            seen.sleeps += 1;
            // SAFETY: We are in a task's context and hold no spinlock.
            unsafe { bindings::schedule() };
            // SAFETY: `entry` is initialised. A waker unlinks it under the queue's lock, and
            // nobody but us links it again: once it points at itself it stays so.
            let next = unsafe { ptr::read_volatile(&raw const (*entry.get()).entry.next) };
            // SAFETY: Only the address of the field is taken.
            woken = ptr::eq(next, unsafe { &raw const (*entry.get()).entry });
            seen.wakes += u32::from(woken);
        }
        // SAFETY: By the type invariant; `entry` was prepared on this queue.
        unsafe { bindings::finish_wait(self.head.get(), entry.get()) };
        (Slept::Ready, seen)
    }
}

/// A wait queue whose lock is held.
///
/// # Invariants
///
/// The current task holds the queue's spinlock as long as this value lives.
pub(crate) struct Locked<'a>(&'a WaitQueue);

impl Locked<'_> {
    /// As [`WaitQueue::wake`], for who holds the lock.
    #[inline]
    pub(crate) fn wake(&self, events: PollMask, sync: bool) {
        let head = self.0.head.get();

        if sync {
            // SAFETY: By the type invariant the lock is held.
            unsafe {
                bindings::__wake_up_locked_sync_key(
                    head,
                    bindings::TASK_INTERRUPTIBLE,
                    events.key(),
                )
            };
        } else {
            // SAFETY: By the type invariant the lock is held.
            unsafe {
                bindings::__wake_up_locked_key(head, bindings::TASK_INTERRUPTIBLE, events.key())
            };
        }
    }
}

/// The table of a poll(2) or epoll(7) call in progress.
///
/// # Invariants
///
/// `table` is null or valid, and `file` is the polled file, for as long as `'a`.
pub(crate) struct PollTable<'a> {
    file: *mut bindings::file,
    table: *mut bindings::poll_table,
    _lifetime: core::marker::PhantomData<&'a ()>,
}

impl PollTable<'_> {
    /// Wraps what the VFS hands to a poll operation.
    ///
    /// # Safety
    ///
    /// `file` must be valid, and `table` null or valid, for the lifetime of the value.
    pub(crate) unsafe fn from_raw(
        file: *mut bindings::file,
        table: *mut bindings::poll_table,
    ) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            file,
            table,
            _lifetime: core::marker::PhantomData,
        }
    }

    /// Whether the caller is an edge-triggered epoll that registers.
    #[inline]
    pub(crate) fn is_edge_triggered(&self) -> bool {
        // SAFETY: By the type invariant.
        !self.table.is_null() && unsafe { (*self.table)._key } & bindings::EPOLLET != 0
    }

    /// Has the caller told when `queue` is woken, if he wants to know.
    #[inline]
    pub(crate) fn register(&self, queue: &WaitQueue) {
        if self.table.is_null() {
            return;
        }
        // SAFETY: By the type invariant.
        if let Some(enqueue) = unsafe { (*self.table)._qproc } {
            // SAFETY: `file` and `table` are valid by the type invariant, and the queue lives as
            // long as the file: epoll lets go of it before the file's release operation runs.
            unsafe { enqueue(self.file, queue.head.get(), self.table) };
            // A waker publishes, then looks at the queue. We queued, and look next. Without a full
            // barrier between, both looks could miss what the other did.
            smp_mb(Full);
        }
    }
}
