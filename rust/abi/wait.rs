// SPDX-License-Identifier: GPL-2.0

//! Wait queues as a pipe needs them: exclusive or not, with poll keys, with the sync hint, and with
//! the queue's own spinlock in reach.
//!
//! `kernel::sync::CondVar` always waits exclusively, knows no poll key and hides its lock; a pipe's
//! knobs are about just these.
//!
//! C header: [`include/linux/wait.h`](srctree/include/linux/wait.h)

use super::word::Word;
use crate::bindings;
use core::ptr;
use kernel::{
    container_of,
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
pub(crate) struct Sleep {
    /// How it ended.
    pub(crate) outcome: Slept,
    /// Whether the task left the processor at all.
    pub(crate) slept: bool,
    /// Whether a wake-up was the last thing that happened to it.
    pub(crate) woken: bool,
}

/// A `wait_queue_head_t`.
///
/// # Invariants
///
/// `head` is an initialised wait queue head.
#[pin_data]
#[repr(transparent)]
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

    /// Wraps a queue of the kernel's.
    ///
    /// # Safety
    ///
    /// `head` must be initialised, and live as long as the result.
    pub(super) unsafe fn from_raw<'a>(head: *mut bindings::wait_queue_head) -> &'a Self {
        // SAFETY: By the safety requirement; a queue is its head and nothing else.
        unsafe { &*head.cast() }
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
    /// `on_waste` is called each time a wake-up came, `ready` says no, and the task sleeps on.
    ///
    /// The caller should be out of line itself: a fast path must not pay for this frame.
    #[inline(always)]
    pub(crate) fn sleep_until(
        &self,
        exclusive: bool,
        mut ready: impl FnMut() -> bool,
        mut on_waste: impl FnMut(),
    ) -> Sleep {
        if ready() {
            return Sleep {
                outcome: Slept::Ready,
                slept: false,
                woken: false,
            };
        }

        pin_init::stack_pin_init!(let sleeper = Sleeper::new(exclusive));
        let mut slept = false;
        let mut woken = false;
        loop {
            // SAFETY: By the type invariant; the entry is initialised, and does not move until
            // `finish_wait` has unlinked it.
            let pending = unsafe {
                bindings::prepare_to_wait_event(
                    self.head.get(),
                    sleeper.entry.get(),
                    bindings::TASK_INTERRUPTIBLE as c_int,
                )
            };

            if ready() {
                break;
            }
            if pending != 0 {
                // The entry is unlinked already. It was not by a wake-up, or `ready` had a chance
                // to see why: so none is lost with us.
                return Sleep {
                    outcome: Slept::Interrupted,
                    slept,
                    woken,
                };
            }
            if woken {
                on_waste();
            }
            slept = true;
            // SAFETY: We are in a task's context and hold no spinlock.
            unsafe { bindings::schedule() };
            // Who has been woken for good need not queue again first. The kernel's own sleepers
            // look here, too, and it is a tenth of the price of a sleep.
            if ready() {
                break;
            }
            woken = sleeper.take_woken();
        }
        // SAFETY: By the type invariant; the entry was prepared on this queue.
        unsafe { bindings::finish_wait(self.head.get(), sleeper.entry.get()) };
        Sleep {
            outcome: Slept::Ready,
            slept,
            woken: sleeper.take_woken() || woken,
        }
    }
}

/// What a waker calls for each entry, `wait_queue_func_t` without null.
type WakeFunction =
    unsafe extern "C" fn(*mut bindings::wait_queue_entry, c_uint, c_int, *mut c_void) -> c_int;

/// A place in a wait queue that remembers whether a wake-up came by it.
///
/// That the entry is unlinked says less: the waker wakes first and unlinks second, and the woken
/// task may run in between.
///
/// # Invariants
///
/// `entry` is initialised, for the task that made it and with [`Self::wake`] as its function.
#[pin_data]
struct Sleeper {
    #[pin]
    entry: Opaque<bindings::wait_queue_entry>,
    woken: Word,
}

impl Sleeper {
    fn new(exclusive: bool) -> impl PinInit<Self> {
        let flags = if exclusive {
            bindings::WQ_FLAG_EXCLUSIVE
        } else {
            0
        };

        pin_init!(Self {
            entry <- Opaque::ffi_init(move |slot: *mut bindings::wait_queue_entry| {
                // SAFETY: The slot is writable and pinned.
                unsafe {
                    bindings::init_wait_entry(slot, flags as c_int);
                    (*slot).func = Some(Self::wake);
                }
            }),
            woken: Word::new(0),
        })
    }

    /// Whether a wake-up came since the last call.
    fn take_woken(&self) -> bool {
        let woken = self.woken.load() != 0;

        self.woken.store(0);
        woken
    }

    /// # Safety
    ///
    /// Called by a waker, who holds the queue's lock, with the entry of a queued sleeper.
    unsafe extern "C" fn wake(
        entry: *mut bindings::wait_queue_entry,
        mode: c_uint,
        flags: c_int,
        key: *mut c_void,
    ) -> c_int {
        // SAFETY: Only `new` makes entries with this function, each in a sleeper, and a sleeper
        // lives until its entry is unlinked.
        let sleeper = unsafe { &*container_of!(Opaque::cast_from(entry), Self, entry) };

        // Before the task can run, and undone where it was running all the time.
        sleeper.woken.store(1);
        // SAFETY: By the safety requirement.
        let woken = unsafe { bindings::autoremove_wake_function(entry, mode, flags, key) };
        if woken == 0 {
            // Still linked, so the sleeper needs the lock that we hold before it can go.
            sleeper.woken.store(0);
        }
        woken
    }
}

/// A wait queue whose lock is held.
///
/// # Invariants
///
/// The current task holds the queue's spinlock as long as this value lives.
pub(crate) struct Locked<'a>(&'a WaitQueue);

impl Locked<'_> {
    /// How many tasks sleep here by [`WaitQueue::sleep_until`]; who polls is not counted.
    pub(crate) fn sleepers(&self) -> u32 {
        let head = self.0.head.get();
        let mut count = 0u32;

        // SAFETY: By the type invariant the lock is held, so the list stays as it is. It leads
        // through the entries back to its head.
        unsafe {
            let end = &raw mut (*head).head;
            let mut link = (*end).next;

            while link != end {
                let entry = container_of!(link, bindings::wait_queue_entry, entry);
                let is_ours = (*entry)
                    .func
                    .is_some_and(|func| ptr::fn_addr_eq(func, Sleeper::wake as WakeFunction));

                count = count.saturating_add(is_ours.into());
                link = (*link).next;
            }
        }
        count
    }

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
/// `table` is null or valid, and `file` is the polled file, of a pipe of ours, for as long as `'a`.
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
    /// `file` must be valid and one that [`attach`](super::file_operations) saw, and `table` null
    /// or valid, for the lifetime of the value.
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

    /// How many writers had been seen when the file was opened, where it was opened so that their
    /// absence is no hang-up; zero elsewhere.
    pub(crate) fn hangup_mark(&self) -> u64 {
        // SAFETY: By the type invariant. A file of ours has this in the place of a position's
        // lock, and only its open writes to it.
        unsafe { (*self.file).__bindgen_anon_2.f_pipe }
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

#[kunit_tests(altpipe_wait)]
mod tests {
    use super::*;
    use kernel::static_lock_class;

    fn queue() -> impl PinInit<WaitQueue> {
        WaitQueue::new(c"altpipe::tests", static_lock_class!())
    }

    fn sleepers(queue: &WaitQueue) -> u32 {
        queue.with_lock(|queue| queue.sleepers())
    }

    // Without a second task: `ready` runs where the caller is queued already, and is not asleep yet.
    #[test]
    fn sleepers_are_counted_while_they_are_queued() {
        pin_init::stack_pin_init!(let queue = queue());

        for exclusive in [false, true] {
            let mut seen = [u32::MAX; 3];
            let mut turn = 0;
            let sleep = queue.sleep_until(
                exclusive,
                || {
                    if let Some(seen) = seen.get_mut(turn) {
                        *seen = sleepers(&queue);
                    }
                    turn += 1;
                    turn == 2
                },
                || {},
            );

            assert_eq!(seen, [0, 1, u32::MAX]);
            assert!(matches!(sleep.outcome, Slept::Ready));
            assert!(!sleep.slept && !sleep.woken);
            assert_eq!(sleepers(&queue), 0);
        }
    }

    #[test]
    fn two_places_in_a_queue_are_two_sleepers() {
        pin_init::stack_pin_init!(let queue = queue());
        let mut most = 0;
        let mut outer = 0;

        queue.sleep_until(
            true,
            || {
                let mut inner = 0;
                queue.sleep_until(
                    false,
                    || {
                        most = most.max(sleepers(&queue));
                        inner += 1;
                        inner == 2
                    },
                    || {},
                );
                outer += 1;
                outer == 2
            },
            || {},
        );
        assert_eq!(most, 2);
        assert_eq!(sleepers(&queue), 0);
    }

    #[test]
    fn a_wake_up_in_vain_is_noticed() {
        pin_init::stack_pin_init!(let queue = queue());
        let mut turn = 0;
        let mut wasted = 0;

        // Each wake-up comes between queueing and sleeping, so the sleep ends as it begins. After
        // the first there is nothing to do yet.
        let sleep = queue.sleep_until(
            true,
            || {
                turn += 1;
                if turn < 5 {
                    queue.wake(PollMask::READABLE, false);
                }
                turn == 5
            },
            || wasted += 1,
        );

        assert!(sleep.slept && sleep.woken);
        assert_eq!(wasted, 1);
        assert_eq!(sleepers(&queue), 0);
    }
}
