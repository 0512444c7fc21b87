// SPDX-License-Identifier: GPL-2.0

//! Sleeping for data or for room, and waking those who do.
//!
//! All of it is out of the fast path's line: who sleeps pays thousands of instructions anyway.

use super::{Classic, LockedState, State};
use crate::{
    abi::{
        fasync::Band,
        wait::{PollMask, Sleep, Slept, WaitQueue},
    },
    config::FasyncRule,
    ring::ReaderWake,
    stats::Counters,
    sync::Word,
};
use core::num::Wrapping;

/// How sleepers are told apart from one another.
#[derive(Clone, Copy)]
pub(super) struct Queueing {
    /// One sleeper is woken at a time and owes the next a wake-up.
    exclusive: bool,
    /// Readers and writers have a queue each.
    split: bool,
    /// The generation of the config that says so.
    generation: u64,
}

/// A wake-up that is due, and counted, and goes out when the lock is dropped.
#[derive(Clone, Copy)]
pub(super) struct Signal {
    /// Readers and writers have a queue each.
    pub(super) split: bool,
    /// The scheduler hears that the sender is about to sleep.
    pub(super) sync: bool,
}

/// What a read owes others as it ends, counted, and to be paid without the lock.
pub(super) struct Owed {
    to_writers: Option<Signal>,
    to_readers: Option<Signal>,
    /// SIGIO to those who asked for it, where the rule ties it to a wake-up.
    to_owners: bool,
}

impl Queueing {
    /// The same, but for a sleeper who is woken together with all others and owes nothing.
    fn together(self) -> Self {
        Self {
            exclusive: false,
            ..self
        }
    }
}

impl State {
    #[inline]
    pub(super) fn queueing(&self) -> Queueing {
        Queueing {
            // On a common queue the one that is woken could be of the wrong side.
            exclusive: self.config.exclusive && self.config.split_wait,
            split: self.config.split_wait,
            generation: self.generation,
        }
    }

    #[inline]
    fn signal(&self, sync: bool) -> Signal {
        Signal {
            split: self.config.split_wait,
            sync,
        }
    }

    /// Counts a wake-up that a write sends.
    #[inline]
    pub(super) fn wake_readers(&mut self) -> Signal {
        let sync = self.config.sync_write;

        self.counters.reader_notifies += 1;
        self.counters.sync_notifies += u64::from(sync);
        self.signal(sync)
    }

    /// Counts a wake-up that a read sends.
    #[inline]
    pub(super) fn wake_writers(&mut self) -> Signal {
        let sync = self.config.sync_read;

        self.counters.writer_notifies += 1;
        self.counters.sync_notifies += u64::from(sync);
        self.signal(sync)
    }

    /// Counts what a read owes as it ends: to writers, if that is `due`, and to the next reader, if
    /// it has slept.
    #[inline]
    pub(super) fn settle_read(&mut self, due: bool, has_slept: bool) -> Owed {
        let to_writers = due.then(|| self.wake_writers());
        // We were woken alone; what we leave behind is for the next.
        let to_readers = if has_slept && !self.ring.is_empty() {
            self.hand_to_reader()
        } else {
            None
        };

        Owed {
            to_writers,
            to_readers,
            to_owners: due && self.config.fasync == FasyncRule::WithWake,
        }
    }

    /// Counts the wake-up that a reader which was woken alone owes the next, if it was.
    #[cold]
    pub(super) fn hand_to_reader(&mut self) -> Option<Signal> {
        self.hand_over(self.config.sync_read)
    }

    /// The same for a writer.
    #[cold]
    pub(super) fn hand_to_writer(&mut self) -> Option<Signal> {
        self.hand_over(self.config.sync_write)
    }

    fn hand_over(&mut self, sync: bool) -> Option<Signal> {
        if !self.queueing().exclusive {
            return None;
        }
        self.counters.handovers += 1;
        Some(self.signal(sync))
    }
}

/// Turns in the sleep of one side that brought nothing: woken, and the condition still false.
///
/// Who turns over holds no lock, so these are counted apart.
pub(super) struct WastedTurns {
    pub(super) readers: Word,
    pub(super) writers: Word,
}

impl WastedTurns {
    pub(super) const fn new() -> Self {
        Self {
            readers: Word::new(0),
            writers: Word::new(0),
        }
    }

    /// Adds them to what was counted under the lock: each is a sleep and a wake-up of its own.
    pub(super) fn add_to(&self, counters: &mut Counters) {
        let readers = self.readers.load();
        let writers = self.writers.load();

        counters.reader_sleeps += readers;
        counters.reader_wakes += readers;
        counters.writer_sleeps += writers;
        counters.writer_wakes += writers;
        counters.wasted_wakes += readers;
        counters.wasted_wakes += writers;
    }
}

/// What one side counts about its sleepers, under the lock.
struct Tally<'a> {
    sleeps: &'a mut Wrapping<u64>,
    wakes: &'a mut Wrapping<u64>,
    wasted: &'a mut Wrapping<u64>,
}

impl<'a> Tally<'a> {
    #[inline]
    fn of_readers(counters: &'a mut Counters) -> Self {
        Self {
            sleeps: &mut counters.reader_sleeps,
            wakes: &mut counters.reader_wakes,
            wasted: &mut counters.wasted_wakes,
        }
    }

    #[inline]
    fn of_writers(counters: &'a mut Counters) -> Self {
        Self {
            sleeps: &mut counters.writer_sleeps,
            wakes: &mut counters.writer_wakes,
            wasted: &mut counters.wasted_wakes,
        }
    }

    /// Counts a task that goes to sleep.
    #[inline]
    fn begin(self) {
        *self.sleeps += 1;
    }

    /// Counts what came of it; `late` if it was woken and there is nothing to do any more.
    #[inline]
    fn end(self, sleep: &Sleep, late: bool) {
        if !sleep.slept {
            *self.sleeps -= 1;
        }
        if sleep.woken {
            *self.wakes += 1;
        }
        if late {
            *self.wasted += 1;
        }
    }
}

// Each of these drops the lock, sleeps, and takes the lock again. Sleeps are counted under it, and as
// far as possible before: what runs between a wake-up and the answer to it is everybody's latency.
impl Classic {
    /// Sleeps until there is something to read, nobody left to write, or another config; none if a
    /// signal came first. Who `owes` writers a wake-up sends it before.
    ///
    /// An option of a guard fits a register, a result does not.
    #[inline(never)]
    pub(super) fn sleep_for_data<'a>(
        &'a self,
        state: LockedState<'a>,
        owes: bool,
    ) -> Option<LockedState<'a>> {
        let queueing = state.queueing();

        self.sleep_for_data_by(queueing, state, owes)
    }

    /// As [`Self::sleep_for_data`], for a splice, which then goes for another lock first; says
    /// whether no signal came.
    #[cold]
    pub(super) fn splice_sleeps_for_data(&self, state: LockedState<'_>, owes: bool) -> bool {
        let queueing = state.queueing().together();

        self.sleep_for_data_by(queueing, state, owes).is_some()
    }

    #[inline(always)]
    fn sleep_for_data_by<'a>(
        &'a self,
        queueing: Queueing,
        mut state: LockedState<'a>,
        owes: bool,
    ) -> Option<LockedState<'a>> {
        Tally::of_readers(&mut state.counters).begin();
        if owes {
            self.unlock_and_wake_writers(state);
        } else {
            drop(state);
        }
        let sleep = self.rd_wait.sleep_until(
            queueing.exclusive,
            || {
                let (_, writers) = self.view.ends.load();

                !self.view.span.load_span().is_empty() || writers == 0 || self.has_passed(queueing)
            },
            || self.wasted.readers.increment(),
        );
        let mut state = self.state.lock();
        let late = sleep.woken && state.ring.is_empty() && state.writers != 0;
        Tally::of_readers(&mut state.counters).end(&sleep, late);
        match sleep.outcome {
            Slept::Ready => Some(state),
            Slept::Interrupted => None,
        }
    }

    /// Sends what a reader owes to writers before it sleeps.
    ///
    /// It owes it with data in hand, and without where all it took away was an empty slot: a writer
    /// may sleep for just that room.
    #[cold]
    fn unlock_and_wake_writers(&self, mut state: LockedState<'_>) {
        let signal = state.wake_writers();
        let fasync = state.config.fasync;

        self.publish_stock(&state);
        drop(state);
        self.notify_writers(signal);
        if fasync == FasyncRule::WithWake {
            self.wr_fasync.notify(Band::Out);
        }
    }

    /// Has waiting writers woken if it `owes` them that, and sleeps, with data in hand, until one of
    /// them wrote more, none is left who waits to, or another config.
    #[inline(never)]
    pub(super) fn sleep_for_more<'a>(
        &'a self,
        mut state: LockedState<'a>,
        owes: bool,
    ) -> LockedState<'a> {
        let queueing = state.queueing();

        Tally::of_readers(&mut state.counters).begin();
        if owes {
            self.unlock_and_wake_writers(state);
        } else {
            self.publish_stock(&state);
            drop(state);
        }
        let sleep = self.rd_wait.sleep_until(
            queueing.exclusive,
            || {
                let (_, writers) = self.view.ends.load();
                let (_, waiting) = self.view.limits.load();

                !self.view.span.load_span().is_empty()
                    || writers == 0
                    || waiting == 0
                    || self.has_passed(queueing)
            },
            || self.wasted.readers.increment(),
        );
        let mut state = self.state.lock();
        let late = sleep.woken
            && state.ring.is_empty()
            && state.writers != 0
            && state.waiting_writers != 0;
        Tally::of_readers(&mut state.counters).end(&sleep, late);
        state
    }

    /// Has readers woken, if that is the rule, and sleeps until there is room to write, nobody left
    /// to read, another config, or a signal.
    ///
    /// The writer looks for the signal itself: it may have bytes to report.
    #[inline(never)]
    pub(super) fn sleep_for_room<'a>(
        &'a self,
        mut state: LockedState<'a>,
        wake: &ReaderWake,
    ) -> LockedState<'a> {
        let queueing = state.queueing();
        let to_readers = wake.before_sleep().then(|| state.wake_readers());
        let owners_hear = to_readers.is_some() || state.config.fasync == FasyncRule::EveryIo;

        self.writer_begins_to_sleep(&mut state);
        drop(state);
        if let Some(signal) = to_readers {
            self.notify_readers(signal);
        }
        if owners_hear {
            self.rd_fasync.notify(Band::In);
        }
        self.writer_sleeps(queueing)
    }

    /// As [`Self::sleep_for_room`], for a splice, which has written nothing yet and then goes for
    /// another lock first.
    #[cold]
    pub(super) fn splice_sleeps_for_room(&self, mut state: LockedState<'_>) {
        let queueing = state.queueing().together();

        self.writer_begins_to_sleep(&mut state);
        drop(state);
        drop(self.writer_sleeps(queueing));
    }

    #[inline(always)]
    fn writer_begins_to_sleep(&self, state: &mut State) {
        state.waiting_writers = state.waiting_writers.saturating_add(1);
        Tally::of_writers(&mut state.counters).begin();
        self.publish_limits(state);
        self.publish_stock(state);
    }

    #[inline(always)]
    fn writer_sleeps(&self, queueing: Queueing) -> LockedState<'_> {
        let queue = self.writers_queue(queueing);
        let sleep = queue.sleep_until(
            queueing.exclusive,
            || {
                let (readers, _) = self.view.ends.load();
                let (limit, _) = self.view.limits.load();

                !self.view.span.load_span().is_full(limit)
                    || readers == 0
                    || self.has_passed(queueing)
            },
            || self.wasted.writers.increment(),
        );
        let mut state = self.state.lock();
        let late = sleep.woken && state.ring.is_full() && state.readers != 0;
        Tally::of_writers(&mut state.counters).end(&sleep, late);
        state.waiting_writers = state.waiting_writers.saturating_sub(1);
        self.publish_limits(&state);
        if state.waiting_writers == 0 && state.config.read_merge {
            // A reader may hold out for our bytes, and we may leave without writing any.
            self.rd_wait.wake_all();
        }
        state
    }

    /// Whether sleepers have another way to queue by now.
    #[inline]
    fn has_passed(&self, queueing: Queueing) -> bool {
        self.view.generation.load() != queueing.generation
    }

    /// The queue that writers sleep on.
    #[inline]
    pub(super) fn writers_queue(&self, queueing: Queueing) -> &WaitQueue {
        if queueing.split {
            &self.wr_wait
        } else {
            &self.rd_wait
        }
    }

    /// Sends what a read owes. Most owe nothing.
    #[inline(never)]
    pub(super) fn pay(&self, owed: &Owed) {
        if let Some(signal) = owed.to_writers {
            self.notify_writers(signal);
        }
        if let Some(signal) = owed.to_readers {
            self.notify_readers(signal);
        }
        if owed.to_owners {
            self.wr_fasync.notify(Band::Out);
        }
    }

    /// Wakes readers, and who polls for data.
    ///
    /// On a common queue this wakes the writers as well: that is what a common queue costs.
    #[inline]
    pub(super) fn notify_readers(&self, signal: Signal) {
        self.rd_wait.wake(PollMask::READABLE, signal.sync);
    }

    /// Wakes writers, and who polls for room.
    #[inline]
    pub(super) fn notify_writers(&self, signal: Signal) {
        if !signal.split {
            self.rd_wait.wake(PollMask::WRITABLE, signal.sync);
        }
        self.wr_wait.wake(PollMask::WRITABLE, signal.sync);
    }
}
