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
//! mutex and never under a spinlock. `poll` takes neither. Before the pipe's mutex comes that of a
//! pipe of the kernel's, in a splice between the two: see the head of `abi/splice.rs`.
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
//! that a registration which outlives a change of the knob stays good. A splice sleeps there too, but
//! never exclusively: what it goes on to is another pipe's mutex, and perhaps another sleep, so it
//! must not be the one whom a wake-up was spent on.
//!
//! # A change of the knobs of a live pipe
//!
//! A call decides by one config from the time it takes the mutex to the time it gives it up, so a
//! change falls between two such spans: in each of them a rule holds as a whole. (How many pages a
//! write allocates before it is a guess in any case, and trimmed at the end.) What crosses over
//! is a task that has given the mutex up and is about to sleep, one that sleeps, and one that is
//! about to wake others.
//!
//! A change stores the config and the next *generation* under the mutex, and then wakes everybody
//! on both queues. Who sleeps waits for the generation that he took his place by to pass, besides
//! for what he wants. So, as with any other change above, either he is found queued or he sees it:
//! once the queues have been woken, nobody sleeps by an earlier config, on a queue or in a manner
//! that a later waker does not reckon with.
//!
//! A wake-up that was due before the change and is sent after it, by the old rule, is one too many.
//! It was for who was queued when its cause was published. Each of these the change has woken to
//! look again, and who queued later has looked after the publication. The same holds for a hand-over
//! that is not made, because the config ceased to ask for it: all to whom it was owed are awake.
//!
//! Registrations of pollers depend on no knob, and neither do the bits of `watched`, which are kept
//! also while no rule asks for them. Every rule for waking has the queue woken whenever the ring
//! ceases to be full, or to be empty, so what a poller waits for is never missed for a change of the
//! rule. A change is itself a wake-up, which an edge-triggered epoll may report once more.

use crate::{
    abi::{
        fasync::{Band, FasyncList},
        file_operations::{Ends, FasyncCall, IoCall},
        iov::Page,
        mutex::{self, HotGuard, HotMutex},
        quota::Charge,
        splice::{NativeSink, NativeSource},
        wait::{PollMask, PollTable, WaitQueue},
    },
    config::{Config, PageRule},
    engine::{Engine, Status},
    limits::{self, Limits},
    page::PAGE_SIZE,
    ring::{Published, Ring, Slot, Span},
    stats::Counters,
    sync::Word,
};
use core::num::Wrapping;
use kernel::{
    iov::{IovIterDest, IovIterSource},
    prelude::*,
    static_lock_class,
    sync::{
        barrier::{smp_mb, Write},
        Arc,
    },
};

mod poll;
mod pool;
mod read;
mod sleep;
mod splice;
mod write;

use pool::Pool;
use sleep::WastedTurns;

/// What the mutex protects.
pub(crate) struct State {
    ring: Ring<Page, KVec<Slot<Page>>>,
    pool: Pool,
    readers: u32,
    writers: u32,
    /// Writers that sleep for room.
    waiting_writers: u32,
    config: Config,
    /// What `config` says of the pool.
    page_rule: PageRule,
    /// How often the config changed.
    generation: u64,
    counters: Counters,
    charge: Charge,
}

/// The state with the mutex held.
type LockedState<'a> = HotGuard<'a, State>;

/// What is read without the mutex; all of it is written under it, but for the bits of `watched`.
struct View {
    /// Head and tail of the ring.
    span: Published,
    /// The numbers of readers and of writers.
    ends: Published,
    /// How many writers were seen, and one more; see [`Classic::is_hung_up`].
    writers_seen: Word,
    /// How often the config changed.
    generation: Word,
    /// The ring's limit, and the number of writers that sleep for room.
    limits: Published,
    /// The number of pages in the pool.
    stock: Word,
    /// How many a write may have there before it takes the lock.
    ahead: Word,
    /// The bits of a [`Watched`](crate::ring::Watched); none is taken back while a file is open.
    watched: Word,
}

/// A pipe of the classic engine.
#[pin_data]
pub(crate) struct Classic {
    #[pin]
    state: HotMutex<State>,
    #[pin]
    rd_wait: WaitQueue,
    #[pin]
    wr_wait: WaitQueue,
    view: View,
    wasted: WastedTurns,
    limits: Arc<Limits>,
    rd_fasync: FasyncList,
    wr_fasync: FasyncList,
}

impl Classic {
    /// Publishes the numbers of readers and writers.
    fn publish_ends(&self, state: &State) {
        self.view.ends.store(state.readers, state.writers);
    }

    /// Publishes what a writer waits for, and that he does.
    fn publish_limits(&self, state: &State) {
        self.view
            .limits
            .store(state.ring.limit(), state.waiting_writers);
    }

    /// Publishes how many pages the pool has.
    #[inline]
    fn publish_stock(&self, state: &State) {
        self.view.stock.store(state.pool.count().into());
    }

    fn with_wasted(&self, mut counters: Counters) -> Counters {
        self.wasted.add_to(&mut counters);
        counters
    }

    /// Drops the lock. Pages that the pool does not keep are freed after that.
    #[inline]
    fn unlock(&self, state: LockedState<'_>) {
        if state.pool.has_excess(state.page_rule) {
            return self.trim_and_unlock(state);
        }
        self.publish_stock(&state);
    }

    #[inline(never)]
    fn trim_and_unlock(&self, mut state: LockedState<'_>) {
        let rule = state.page_rule;
        let excess = state.pool.take_excess(rule);

        self.publish_stock(&state);
        drop(state);
        drop(excess);
    }
}

/// Storage for a ring of `count` slots.
fn vacant_slots(count: u32) -> Result<KVec<Slot<Page>>> {
    let mut slots = KVec::with_capacity(count as usize, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;

    for _ in 0..count {
        slots
            .push_within_capacity(Slot::vacant())
            .map_err(|_| ENOMEM)?;
    }
    Ok(slots)
}

impl Engine for Classic {
    fn new(config: Config, limits: Arc<Limits>) -> Result<impl PinInit<Self, Error>> {
        let mut charge = Charge::new()?;
        let slots = limits.charge_new(&config, &mut charge)?;
        let page_rule = PageRule::of(&config);
        let state = State {
            ring: Ring::new(vacant_slots(slots)?).ok_or(EINVAL)?,
            pool: Pool::new(),
            readers: 0,
            writers: 0,
            waiting_writers: 0,
            config,
            page_rule,
            generation: 0,
            counters: Counters {
                pipes_created: Wrapping(1),
                ..Counters::default()
            },
            charge,
        };

        Ok(try_pin_init!(Self {
            state <- mutex::new(state, c"altpipe::state", static_lock_class!()),
            rd_wait <- WaitQueue::new(c"altpipe::rd_wait", static_lock_class!()),
            wr_wait <- WaitQueue::new(c"altpipe::wr_wait", static_lock_class!()),
            view: View {
                span: Published::new(Span::START.head, Span::START.tail),
                ends: Published::new(0, 0),
                writers_seen: Word::new(1),
                generation: Word::new(0),
                limits: Published::new(slots, 0),
                stock: Word::new(0),
                ahead: Word::new(page_rule.ahead.into()),
                watched: Word::new(0),
            },
            wasted: WastedTurns::new(),
            limits,
            rd_fasync: FasyncList::new(),
            wr_fasync: FasyncList::new(),
        }? Error))
    }

    fn take_up(&self) -> Result {
        let mut charge = Charge::new()?;
        let mut state = self.state.lock();
        // As for a FIFO of the kernel's: all that the opener hears of any lack is this.
        let slots = self
            .limits
            .charge_new(&state.config, &mut charge)
            .map_err(|_| ENOMEM)?;
        let old = state
            .ring
            .resize(vacant_slots(slots)?)
            .map_err(|_| ENOMEM)?;
        let former = core::mem::replace(&mut state.charge, charge);

        self.publish_limits(&state);
        drop(state);
        drop(old);
        drop(former);
        Ok(())
    }

    fn lay_down(&self) {
        // Without memory for the smallest ring the pipe keeps the one that it has.
        let smallest = vacant_slots(1);
        let mut state = self.state.lock();
        let old = smallest.map(|fresh| state.ring.resize(fresh));

        state.charge.set(0);
        self.publish_limits(&state);
        drop(state);
        drop(old);
    }

    fn opened(&self, ends: Ends) {
        let mut state = self.state.lock();

        // The kernel runs out of files long before these overflow.
        state.readers = state.readers.saturating_add(ends.reads.into());
        state.writers = state.writers.saturating_add(ends.writes.into());
        self.publish_ends(&state);
        if ends.writes {
            // After the number of writers: `is_hung_up` looks in the opposite order.
            smp_mb(Write);
            self.view
                .writers_seen
                .store(self.view.writers_seen.load().wrapping_add(1));
        }
    }

    fn closed(&self, ends: Ends) {
        let mut state = self.state.lock();

        state.readers = state.readers.saturating_sub(ends.reads.into());
        state.writers = state.writers.saturating_sub(ends.writes.into());
        self.publish_ends(&state);

        match (state.readers, state.writers) {
            (0, 0) => {
                // Nobody can come for the data any more. The pipe may outlive it: an O_PATH
                // descriptor keeps an inode, and a FIFO device is opened again, as if it were new.
                let pages = state.pool.take_all();
                while let Some(page) = state.ring.vacate_oldest() {
                    self.view.span.store_span(state.ring.advance_tail());
                    drop(page);
                }
                self.publish_stock(&state);
                self.view.watched.store(0);
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

    fn splice_read(&self, to: &mut NativeSink<'_>, len: usize) -> Result<usize> {
        self.splice_to(to, len)
    }

    fn splice_write(&self, from: &mut NativeSource<'_>) -> Result<usize> {
        self.splice_from(from)
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

    fn capacity(&self) -> usize {
        (self.state.lock().ring.limit() as usize).saturating_mul(PAGE_SIZE)
    }

    fn set_capacity(&self, bytes: usize) -> Result<usize> {
        let slots = limits::slots_for(bytes as u64)?;
        let mut state = self.state.lock();
        let before = state.charge.slots();

        self.limits.charge_resized(slots, &mut state.charge)?;
        let resized = vacant_slots(slots)
            // Fewer slots than are in use.
            .and_then(|fresh| state.ring.resize(fresh).map_err(|_| EBUSY));
        match resized {
            Ok(old) => {
                let signal = state.wake_writers();
                self.publish_limits(&state);
                drop(state);
                drop(old);
                // One is enough: who is woken alone hands over.
                self.notify_writers(signal);
                Ok((slots as usize).saturating_mul(PAGE_SIZE))
            }
            Err(error) => {
                state.charge.set(before);
                Err(error)
            }
        }
    }

    fn config(&self) -> Config {
        self.state.lock().config
    }

    fn writers_seen(&self) -> u64 {
        self.view.writers_seen.load()
    }

    fn reconfigure(&self, change: impl FnOnce(&mut Config) -> Result) -> Result {
        let mut state = self.state.lock();
        let mut config = state.config;

        change(&mut config)?;
        if config == state.config {
            return Ok(());
        }
        state.config = config;
        state.page_rule = PageRule::of(&config);
        state.generation = state.generation.wrapping_add(1);
        self.view.generation.store(state.generation);
        self.view.ahead.store(state.page_rule.ahead.into());
        self.unlock(state);

        self.rd_wait.wake_all();
        self.wr_wait.wake_all();
        Ok(())
    }

    fn try_status(&self) -> Option<Status> {
        let mut state = self.state.try_lock()?;
        let span = state.ring.span();

        Some(Status {
            config: state.config,
            capacity: (state.ring.limit() as usize).saturating_mul(PAGE_SIZE),
            slots: span.used(),
            bytes: state.ring.bytes(),
            readers: state.readers,
            writers: state.writers,
            sleepers: [&self.rd_wait, &self.wr_wait]
                .map(|queue| queue.with_lock(|queue| queue.sleepers()))
                .into_iter()
                .fold(0, u32::saturating_add),
        })
    }

    fn counters(&self) -> Counters {
        let counters = self.state.lock().counters;

        self.with_wasted(counters)
    }

    fn try_counters(&self) -> Option<Counters> {
        let counters = self.state.try_lock()?.counters;

        Some(self.with_wasted(counters))
    }
}
