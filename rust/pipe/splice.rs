// SPDX-License-Identifier: GPL-2.0

//! splice(2) and sendfile(2): whole pages to and from pipes of the kernel's.
//!
//! As between two pipes of the kernel's, a call ends when it has moved something and could move no
//! more without sleeping; it sleeps only where it has moved nothing. Who sleeps, with which lock,
//! stands at the head of `abi/splice.rs`.

use super::{read, write, Classic, LockedState};
use crate::{
    abi::{
        fasync::Band,
        splice::{send_sigpipe, Buffer, NativeSink, NativeSource},
    },
    config::FasyncRule,
    ring::{Kind, ReaderWake, WriterWake},
};
use kernel::{current, prelude::*};

/// Why a pipe of ours takes no further buffer.
#[derive(Clone, Copy)]
enum Refusal {
    /// It is full.
    Full,
    /// Nobody has it open for reading.
    NoReaders,
}

/// What one turn of a splice puts into a pipe of ours, under one hold of its mutex.
struct Turn<'a> {
    pipe: &'a Classic,
    /// The lock, from the first buffer on.
    held: Option<(LockedState<'a>, ReaderWake)>,
    refusal: Option<Refusal>,
}

impl<'a> Turn<'a> {
    fn new(pipe: &'a Classic) -> Self {
        Self {
            pipe,
            held: None,
            refusal: None,
        }
    }

    /// The lock, and what is known about waking readers.
    fn lock(&mut self) -> &mut (LockedState<'a>, ReaderWake) {
        self.held.get_or_insert_with(|| {
            let state = self.pipe.state.lock();
            let wake = write::begin(&state);

            (state, wake)
        })
    }

    /// Why the pipe takes no further buffer, if it does not.
    fn refusal(&mut self) -> Option<Refusal> {
        let (state, _) = self.lock();

        self.refusal = if state.readers == 0 {
            Some(Refusal::NoReaders)
        } else if state.ring.is_full() {
            Some(Refusal::Full)
        } else {
            None
        };
        self.refusal
    }

    /// Takes what fits into one slot.
    fn take(&mut self, buffer: &Buffer<'_>) -> Result<usize> {
        if self.refusal().is_some() {
            return Err(EAGAIN);
        }
        let piece = buffer.piece()?;
        let kind = Kind::sealed(buffer.is_packet());
        let pipe = self.pipe;
        let (state, wake) = self.lock();
        let span = state
            .ring
            .push_range(piece.page, piece.offset, piece.len, kind)
            .map_err(|_| EAGAIN)?;

        pipe.view.span.store_span(span);
        pipe.chunk_published(state, wake);
        Ok(piece.len)
    }
}

impl Classic {
    /// Moves what the ring holds to a pipe of the kernel's; sleeps only where it holds nothing.
    #[cold]
    pub(super) fn splice_to(&self, to: &mut NativeSink<'_>, len: usize) -> Result<usize> {
        loop {
            let mut state = self.state.lock();
            let mut wake = read::begin(&state);
            let mut done = 0usize;
            let mut failure = None;

            while done < len && !to.is_full() {
                let Some(slot) = state.ring.oldest() else {
                    break;
                };
                let Some((page, offset, unread)) = slot.unread() else {
                    break;
                };
                let count = unread.min(len.saturating_sub(done));

                // A slot that was published before a failed copy is empty: it ends here.
                if count != 0 {
                    if let Err(error) = to.put(page, offset, count, slot.is_packet()) {
                        failure = Some(error);
                        break;
                    }
                }
                done = done.saturating_add(count);
                if slot.passed_on(count) {
                    self.release_oldest(&mut state, &mut wake);
                }
            }

            if done == 0 && failure.is_none() && state.ring.is_empty() && state.writers != 0 {
                if !to.is_nonblocking() {
                    let slept = to.unlocked(|| self.splice_sleeps_for_data(state, wake.due()));
                    if !slept {
                        return Err(ERESTARTSYS);
                    }
                    to.await_room()?;
                    continue;
                }
                failure = Some(EAGAIN);
            }
            self.finish_splice_read(state, &wake, done);
            return match failure {
                Some(error) if done == 0 => Err(error),
                _ => Ok(done),
            };
        }
    }

    /// Counts a read of `done` bytes, and tells who waits for it.
    fn finish_splice_read(&self, mut state: LockedState<'_>, wake: &WriterWake, done: usize) {
        let to_writers = wake.due().then(|| state.wake_writers());
        let owners_hear =
            to_writers.is_some() || done > 0 && state.config.fasync == FasyncRule::EveryIo;

        if done > 0 {
            state.counters.reads += 1;
            state.counters.bytes_read += done as u64;
        }
        self.unlock(state);
        if let Some(signal) = to_writers {
            self.notify_writers(signal);
        }
        if owners_hear {
            self.wr_fasync.notify(Band::Out);
        }
    }

    /// Takes what the ring has room for from a pipe of the kernel's; sleeps only where it has none.
    #[cold]
    pub(super) fn splice_from(&self, from: &mut NativeSource<'_>) -> Result<usize> {
        loop {
            let mut turn = Turn::new(self);
            let taken = from.feed(|buffer| turn.take(buffer));

            match taken {
                Ok(0) => {
                    // The end of the stream, or nothing that could be had. Between two pipes of the
                    // kernel's the state of the one that is written to is looked at all the same.
                    turn.refusal();
                }
                Ok(done) => {
                    if let Some((state, wake)) = turn.held {
                        self.finish_splice_write(state, &wake, done);
                    }
                    return Ok(done);
                }
                Err(_) => {}
            }
            match turn.refusal {
                None => return taken,
                Some(Refusal::NoReaders) => {
                    drop(turn);
                    if !from.has_moved() {
                        send_sigpipe();
                    }
                    return Err(EPIPE);
                }
                Some(Refusal::Full) => {
                    if from.is_nonblocking() || from.has_moved() {
                        return Err(EAGAIN);
                    }
                    if current!().signal_pending() {
                        return Err(ERESTARTSYS);
                    }
                    if let Some((state, _)) = turn.held {
                        self.splice_sleeps_for_room(state);
                    }
                }
            }
        }
    }

    /// Counts a write of `done` bytes, and tells who waits for it.
    fn finish_splice_write(&self, mut state: LockedState<'_>, wake: &ReaderWake, done: usize) {
        let to_readers = wake.at_end(self.watched()).then(|| state.wake_readers());
        let owners_hear = to_readers.is_some() || state.config.fasync == FasyncRule::EveryIo;

        state.counters.writes += 1;
        state.counters.bytes_written += done as u64;
        self.unlock(state);
        if let Some(signal) = to_readers {
            self.notify_readers(signal);
        }
        if owners_hear {
            self.rd_fasync.notify(Band::In);
        }
    }
}
