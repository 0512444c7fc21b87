// SPDX-License-Identifier: GPL-2.0

//! Who must be woken: the rules by which a read wakes writers and a write wakes readers.
//!
//! Every rule keeps one promise: nobody sleeps while he could go on. A writer sleeps only on a full
//! ring and a reader only on an empty one, so it is enough that each rule wakes at these two
//! transitions; where rules differ is how many wake-ups they send besides. The exhaustive test in
//! `tools/altpipe-core` holds them to it.

use super::Span;
use crate::config::{WakeReader, WakeWriter};

/// What a read call gathers about waking writers.
pub(crate) struct WriterWake {
    rule: WakeWriter,
    due: bool,
    was_full: bool,
}

impl WriterWake {
    /// Begins, or begins anew after a sleep, with the ring as the read finds it.
    #[inline]
    pub(crate) fn begin(rule: WakeWriter, span: Span, limit: u32) -> Self {
        // The other rules look at each slot as it goes, and need no look here.
        let was_full = rule == WakeWriter::WasFull && span.is_full(limit);

        Self {
            rule,
            due: was_full,
            was_full,
        }
    }

    /// Whether the rule asks for a wake-up because one slot is released; `before` is the ring with
    /// that slot still in use.
    #[inline]
    pub(crate) fn on_release(&self, before: Span, limit: u32) -> bool {
        match self.rule {
            WakeWriter::FreedFull => before.is_full(limit),
            WakeWriter::WasFull => self.was_full,
            // The ring of 5.5-rc1 woke at half alone. A ring of one slot has no half to cross, and
            // a writer may go to sleep when the crossing is over: hence the other two.
            WakeWriter::Half => {
                before.used() == limit / 2 || before.is_full(limit) || before.used() == 1
            }
            WakeWriter::EveryRelease => true,
        }
    }

    /// Notes that [`Self::on_release`] asked, for one wake-up at the end.
    #[inline]
    pub(crate) fn defer(&mut self, asked: bool) {
        self.due |= asked;
    }

    /// Notes that the wake-up was sent at once.
    #[inline]
    pub(crate) fn sent(&mut self) {
        self.due = false;
    }

    /// Whether to wake writers once the lock is dropped.
    #[inline]
    pub(crate) fn due(&self) -> bool {
        self.due
    }
}

/// Who ever looked at a read end by poll(2) or its kin, since the pipe was made.
#[derive(Clone, Copy)]
pub(crate) struct Watched(u64);

impl Watched {
    const POLL: u64 = 1;
    const EPOLLET: u64 = 2;

    /// The bits that one more look sets.
    #[inline]
    pub(crate) fn bits(edge_triggered: bool) -> u64 {
        if edge_triggered {
            Self::POLL | Self::EPOLLET
        } else {
            Self::POLL
        }
    }

    /// Reads the bits that all looks have set.
    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Somebody, by whatever call.
    #[inline]
    fn by_poll(self) -> bool {
        self.0 & Self::POLL != 0
    }

    /// An edge-triggered epoll.
    #[inline]
    fn by_epollet(self) -> bool {
        self.0 & Self::EPOLLET != 0
    }
}

/// What a write call gathers about waking readers.
pub(crate) struct ReaderWake {
    rule: WakeReader,
    was_empty: bool,
    wrote: bool,
}

impl ReaderWake {
    /// Begins, or begins anew after a sleep, with the ring as the write finds it.
    #[inline]
    pub(crate) fn begin(rule: WakeReader, span: Span) -> Self {
        Self {
            rule,
            was_empty: span.is_empty(),
            wrote: false,
        }
    }

    /// Notes that bytes were published; returns whether the rule wants a wake-up at once, under
    /// the lock.
    #[inline]
    pub(crate) fn on_chunk(&mut self) -> bool {
        self.wrote = true;
        self.rule == WakeReader::EveryChunk
    }

    /// Whether to wake readers before the writer sleeps for room.
    #[inline]
    pub(crate) fn before_sleep(&self) -> bool {
        match self.rule {
            WakeReader::WasEmptyOrEpollet | WakeReader::WasEmptyOrPolled | WakeReader::WasEmpty => {
                self.was_empty
            }
            WakeReader::EveryWrite => self.wrote,
            WakeReader::EveryChunk => false,
        }
    }

    /// Whether to wake readers once the write is done.
    #[inline]
    pub(crate) fn at_end(&self, watched: Watched) -> bool {
        match self.rule {
            WakeReader::WasEmptyOrEpollet => self.was_empty || watched.by_epollet(),
            WakeReader::WasEmptyOrPolled => self.was_empty || watched.by_poll(),
            WakeReader::WasEmpty => self.was_empty,
            WakeReader::EveryWrite => self.wrote,
            WakeReader::EveryChunk => false,
        }
    }
}
