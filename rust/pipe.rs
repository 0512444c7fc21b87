// SPDX-License-Identifier: GPL-2.0

//! The engine `classic`: the data path of Linux 7.3, with the knobs of its history.
//!
//! ```text
//!   writer                                reader
//!     | pages from the pool or fresh        | copies out, releases slots
//!     v                                     v
//!   [ state: ring, pool, counts, config ]  one mutex
//!     | published under the mutex           |
//!     v                                     v
//!   [ view: indices, ends, limits ]        read without it by sleepers and poll
//!   [ rd_wait ]  [ wr_wait ]               sleepers, each queue with its irq spinlock
//! ```
//!
//! # Locks
//!
//! The pipe's mutex comes first, a wait queue's spinlock second; user memory is touched under the
//! mutex and never under a spinlock. `poll` takes neither.
//!
//! # Order of memory
//!
//! Who changes what a sleeper waits for stores it under the mutex and then wakes, which takes the
//! queue's spinlock. A sleeper queues itself under that spinlock and then looks at the view. So
//! either the waker finds the sleeper queued, or the sleeper sees the change: no barrier of ours is
//! needed. `poll` queues likewise and has a full barrier before its look.
//!
//! # Who sleeps where
//!
//! Readers sleep on `rd_wait`. Writers sleep on `wr_wait` with `split_wait=1` and on `rd_wait`
//! without it. A poller always registers with the queue of its own side, whatever the knob says, so
//! that a registration which outlives a change of the knob stays good.

use crate::{
    abi::{
        fasync::{Band, FasyncList},
        file_operations::{Ends, FasyncCall, IoCall},
        iov::Page,
        wait::{PollMask, PollTable, WaitQueue},
    },
    config::Config,
    engine::Engine,
    ring::{Published, Ring, Slot, Span},
    stats::Counters,
    sync::Word,
};
use core::num::Wrapping;
use kernel::{
    iov::{IovIterDest, IovIterSource},
    new_mutex,
    prelude::*,
    static_lock_class,
    sync::{
        lock::{mutex::MutexBackend, Guard},
        Mutex,
    },
};

mod poll;
mod pool;
mod read;
mod sleep;
mod write;

use pool::Pool;
use sleep::SleepCounters;

/// The number of slots of a new pipe: 64 KiB on machines with pages of 4 KiB, as since 2.6.11.
const DEFAULT_SLOTS: usize = 16;

/// What the mutex protects.
pub(crate) struct State {
    ring: Ring<Page, KVec<Slot<Page>>>,
    pool: Pool,
    readers: u32,
    writers: u32,
    config: Config,
    counters: Counters,
}

/// The state with the mutex held.
type LockedState<'a> = Guard<'a, State, MutexBackend>;

/// What is read without the mutex; all of it is written under it, but for `watched`.
struct View {
    /// Head and tail of the ring.
    span: Published,
    /// The numbers of readers and of writers.
    ends: Published,
    /// The ring's limit, and the number of pages in the pool.
    limits: Published,
    /// The bits of a [`Watched`](crate::ring::Watched); they are only ever set.
    watched: Word,
}

/// A pipe of the classic engine.
#[pin_data]
pub(crate) struct Classic {
    #[pin]
    state: Mutex<State>,
    #[pin]
    rd_wait: WaitQueue,
    #[pin]
    wr_wait: WaitQueue,
    view: View,
    sleeps: SleepCounters,
    rd_fasync: FasyncList,
    wr_fasync: FasyncList,
}

impl Classic {
    /// Publishes the numbers of readers and writers.
    fn publish_ends(&self, state: &State) {
        self.view.ends.store(state.readers, state.writers);
    }

    /// Publishes what may be done without the lock: how far the ring and the pool go.
    #[inline]
    fn publish_limits(&self, state: &State) {
        self.view
            .limits
            .store(state.ring.limit(), state.pool.count());
    }

    /// Drops the lock. Pages that the pool does not keep are freed after that.
    #[inline]
    fn unlock(&self, state: LockedState<'_>) {
        if state.pool.has_excess() {
            return self.trim_and_unlock(state);
        }
        self.publish_limits(&state);
    }

    #[inline(never)]
    fn trim_and_unlock(&self, mut state: LockedState<'_>) {
        let excess = state.pool.take_excess();

        self.publish_limits(&state);
        drop(state);
        drop(excess);
    }
}

impl Engine for Classic {
    fn new(config: &Config) -> impl PinInit<Self, Error> {
        let config = *config;

        try_pin_init!(Self {
            state <- {
                let mut slots = KVec::with_capacity(DEFAULT_SLOTS, GFP_KERNEL_ACCOUNT)?;

                for _ in 0..DEFAULT_SLOTS {
                    slots.push_within_capacity(Slot::vacant()).map_err(|_| ENOMEM)?;
                }
                new_mutex!(State {
                    ring: Ring::new(slots).ok_or(EINVAL)?,
                    pool: Pool::new(),
                    readers: 0,
                    writers: 0,
                    config,
                    counters: Counters { pipes_created: Wrapping(1), ..Counters::default() },
                }, "altpipe")
            },
            rd_wait <- WaitQueue::new(c"altpipe::rd_wait", static_lock_class!()),
            wr_wait <- WaitQueue::new(c"altpipe::wr_wait", static_lock_class!()),
            view: View {
                span: Published::new(Span::START.head, Span::START.tail),
                ends: Published::new(0, 0),
                limits: Published::new(DEFAULT_SLOTS as u32, 0),
                watched: Word::new(0),
            },
            sleeps: SleepCounters::new(),
            rd_fasync: FasyncList::new(),
            wr_fasync: FasyncList::new(),
        }? Error)
    }

    fn opened(&self, ends: Ends) {
        let mut state = self.state.lock();

        // The kernel runs out of files long before these overflow.
        state.readers = state.readers.saturating_add(ends.reads.into());
        state.writers = state.writers.saturating_add(ends.writes.into());
        self.publish_ends(&state);
    }

    fn closed(&self, ends: Ends) {
        let mut state = self.state.lock();

        state.readers = state.readers.saturating_sub(ends.reads.into());
        state.writers = state.writers.saturating_sub(ends.writes.into());
        self.publish_ends(&state);

        match (state.readers, state.writers) {
            (0, 0) => {
                // Nobody can come for the data any more; an O_PATH descriptor may still keep the
                // inode, and with it this pipe.
                let pages = state.pool.take_all();
                while let Some(page) = state.ring.vacate_oldest() {
                    self.view.span.store_span(state.ring.advance_tail());
                    drop(page);
                }
                self.publish_limits(&state);
                drop(state);
                drop(pages);
            }
            (0, _) | (_, 0) => {
                self.rd_wait.wake_all();
                self.wr_wait.wake_all();
                self.rd_fasync.notify(Band::In);
                self.wr_fasync.notify(Band::Out);
            }
            _ => {}
        }
    }

    #[inline]
    fn read(&self, call: &IoCall<'_>, to: &mut IovIterDest<'_>) -> Result<usize> {
        self.read_to(call, to)
    }

    #[inline]
    fn write(&self, call: &IoCall<'_>, from: &mut IovIterSource<'_>) -> Result<usize> {
        self.write_from(call, from)
    }

    #[inline]
    fn poll(&self, ends: Ends, table: &PollTable<'_>) -> PollMask {
        self.poll_ends(ends, table)
    }

    fn fasync(&self, ends: Ends, call: &FasyncCall) -> Result<bool> {
        let _state = self.state.lock();
        let mut changed = false;

        if ends.reads {
            changed = self.rd_fasync.apply(call)?;
        }
        if ends.writes {
            let added_reader = changed;

            // The VFS sees one file: it is on both lists or on none.
            changed = self.wr_fasync.apply(call).inspect_err(|_| {
                if added_reader {
                    self.rd_fasync.undo(call);
                }
            })?;
        }
        Ok(changed)
    }

    fn unread(&self) -> usize {
        self.state.lock().ring.bytes()
    }

    fn config(&self) -> Config {
        self.state.lock().config
    }

    fn counters(&self) -> Counters {
        let mut counters = self.state.lock().counters;

        self.sleeps.add_to(&mut counters);
        counters
    }
}
