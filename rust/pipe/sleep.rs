// SPDX-License-Identifier: GPL-2.0

//! Sleeping for data or for room, and waking those who do.
//!
//! All of it is out of the fast path's line: who sleeps pays thousands of instructions anyway.

use super::Classic;
use crate::{
    abi::wait::{PollMask, Sleep, Slept, WaitQueue},
    config::Config,
    stats::Counters,
    sync::Word,
};
use kernel::prelude::*;

/// How sleepers are told apart from one another.
#[derive(Clone, Copy)]
pub(super) struct Queueing {
    /// One sleeper is woken at a time and owes the next a wake-up.
    pub(super) exclusive: bool,
    /// Readers and writers have a queue each.
    pub(super) split: bool,
}

impl From<&Config> for Queueing {
    #[inline]
    fn from(config: &Config) -> Self {
        Self {
            // On a common queue the one that is woken could be of the wrong side.
            exclusive: config.exclusive && config.split_wait,
            split: config.split_wait,
        }
    }
}

/// What sleepers count, without the lock.
pub(super) struct SleepCounters {
    reader_sleeps: Word,
    writer_sleeps: Word,
    reader_wakes: Word,
    writer_wakes: Word,
    wasted_wakes: Word,
}

impl SleepCounters {
    pub(super) const fn new() -> Self {
        Self {
            reader_sleeps: Word::new(0),
            writer_sleeps: Word::new(0),
            reader_wakes: Word::new(0),
            writer_wakes: Word::new(0),
            wasted_wakes: Word::new(0),
        }
    }

    /// Notes that a task which was woken came too late.
    #[cold]
    pub(super) fn count_late(&self) {
        self.wasted_wakes.add(1);
    }

    fn count_reader(&self, sleep: &Sleep) {
        self.reader_sleeps.add(sleep.sleeps.into());
        self.reader_wakes.add(sleep.wakes.into());
        self.wasted_wakes.add(sleep.wasted.into());
    }

    fn count_writer(&self, sleep: &Sleep) {
        self.writer_sleeps.add(sleep.sleeps.into());
        self.writer_wakes.add(sleep.wakes.into());
        self.wasted_wakes.add(sleep.wasted.into());
    }

    pub(super) fn add_to(&self, counters: &mut Counters) {
        counters.reader_sleeps += self.reader_sleeps.load();
        counters.writer_sleeps += self.writer_sleeps.load();
        counters.reader_wakes += self.reader_wakes.load();
        counters.writer_wakes += self.writer_wakes.load();
        counters.wasted_wakes += self.wasted_wakes.load();
    }
}

impl Classic {
    /// Sleeps until there is something to read or nobody left to write; says whether it took a
    /// wake-up.
    #[inline(never)]
    pub(super) fn wait_readable(&self, queueing: Queueing) -> Result<bool> {
        let (outcome, sleep) = self.rd_wait.sleep_until(queueing.exclusive, || {
            let (_, writers) = self.view.ends.load();

            !self.view.span.load_span().is_empty() || writers == 0
        });

        self.sleeps.count_reader(&sleep);
        match outcome {
            Slept::Ready => Ok(sleep.woken),
            Slept::Interrupted => Err(ERESTARTSYS),
        }
    }

    /// Sleeps, with data in hand, until there is more, or nobody left who waits to write it.
    #[inline(never)]
    pub(super) fn wait_for_more(&self, queueing: Queueing) {
        let (_, sleep) = self.rd_wait.sleep_until(queueing.exclusive, || {
            let (_, writers) = self.view.ends.load();
            let (_, waiting) = self.view.limits.load();

            !self.view.span.load_span().is_empty() || writers == 0 || waiting == 0
        });

        self.sleeps.count_reader(&sleep);
    }

    /// Sleeps until there is room to write, nobody left to read, or a signal; says whether it took a
    /// wake-up.
    ///
    /// The writer looks for the signal itself: it may have bytes to report.
    #[inline(never)]
    pub(super) fn wait_writable(&self, queueing: Queueing) -> bool {
        let queue = self.writers_queue(queueing);
        let (_, sleep) = queue.sleep_until(queueing.exclusive, || {
            let (readers, _) = self.view.ends.load();
            let (limit, _) = self.view.limits.load();

            !self.view.span.load_span().is_full(limit) || readers == 0
        });

        self.sleeps.count_writer(&sleep);
        sleep.woken
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

    /// Wakes readers, and who polls for data.
    ///
    /// On a common queue this wakes the writers as well: that is what a common queue costs.
    #[inline]
    pub(super) fn notify_readers(&self, sync: bool) {
        self.rd_wait.wake(PollMask::READABLE, sync);
    }

    /// Wakes writers, and who polls for room.
    #[inline]
    pub(super) fn notify_writers(&self, queueing: Queueing, sync: bool) {
        if !queueing.split {
            self.rd_wait.wake(PollMask::WRITABLE, sync);
        }
        self.wr_wait.wake(PollMask::WRITABLE, sync);
    }
}
