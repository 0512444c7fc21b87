// SPDX-License-Identifier: GPL-2.0

//! Reading.

use super::{Classic, State};
use crate::{
    abi::{fasync::Band, file_operations::IoCall, times, wait::PollMask},
    config::{FasyncRule, TailUpdate},
    ring::WriterWake,
};
use kernel::{current, iov::IovIterDest, prelude::*};

impl Classic {
    /// Delivers what the ring holds; sleeps only where it holds nothing.
    #[inline]
    pub(super) fn read_to(&self, call: &IoCall<'_>, to: &mut IovIterDest<'_>) -> Result<usize> {
        // Reading nothing succeeds, whatever the pipe's state.
        if to.is_empty() {
            return Ok(0);
        }

        let mut done = 0usize;
        let mut has_slept = false;
        let mut state = self.state.lock();
        let mut wake = begin(&state);
        let failure = loop {
            if let Some(slot) = state.ring.oldest() {
                let Some((page, offset, len)) = slot.unread() else {
                    break None;
                };
                let want = len.min(to.len());

                // On a fault the slot stays as it was: what the caller's memory did not take is
                // still there to be read.
                if page.copy_to(offset, want, to) < want {
                    break Some(EFAULT);
                }
                done = done.wrapping_add(want);

                // Two roads: what a stream's slots need is worth not mixing with the rest.
                if slot.is_open() {
                    if slot.taken(want) {
                        self.release_oldest(&mut state, &mut wake);
                    }
                } else if self.take_otherwise(&mut state, &mut wake, want) {
                    break None;
                }
                if to.is_empty() {
                    break None;
                }
                if !state.ring.is_empty() {
                    continue;
                }
            }

            // The ring is empty.
            if state.writers == 0 {
                break None;
            }
            if done > 0 {
                // A short count will do, but for the readers of old, which went on while a writer
                // slept for room.
                if !may_merge(&state, call) {
                    break None;
                }
                state = self.sleep_for_more(state, wake.due());
            } else {
                if call.may_not_sleep_for(to) {
                    break Some(EAGAIN);
                }
                // Nothing was delivered, and what was owed is paid: an interrupted reader just goes.
                state = self.sleep_for_data(state, wake.due()).ok_or(ERESTARTSYS)?;
            }
            has_slept = true;
            wake = begin(&state);
        };

        let owed = (wake.due() || has_slept).then(|| state.settle_read(wake.due(), has_slept));
        let owners_hear = state.config.fasync == FasyncRule::EveryIo;
        let touches = state.config.times.touches_atime();
        if done > 0 {
            state.counters.reads += 1;
            state.counters.bytes_read += done as u64;
            if touches {
                state.counters.time_updates += 1;
            }
        }
        self.unlock(state);

        if let Some(owed) = owed {
            self.pay(&owed);
        }
        if owners_hear {
            self.wr_fasync.notify(Band::Out);
        }
        if done > 0 {
            if touches {
                times::accessed(call);
            }
            return Ok(done);
        }
        failure.map_or(Ok(0), Err)
    }

    /// Notes that `count` bytes of the oldest slot, which is not open, were read; says whether they
    /// are all that the read takes.
    #[inline(never)]
    fn take_otherwise(&self, state: &mut State, wake: &mut WriterWake, count: usize) -> bool {
        let Some(slot) = state.ring.oldest() else {
            return true;
        };
        // A slot that was published before a failed copy is empty; it is no packet.
        let is_packet = count != 0 && slot.is_packet();

        if slot.taken_otherwise(count) {
            self.release_oldest(state, wake);
        }
        is_packet
    }

    /// Frees the oldest slot, which is spent, and moves the tail over it.
    ///
    /// The pipe's mutex is all that the tail needs: who looks without it takes head and tail in
    /// one load. The other two ways are history's.
    #[inline(always)]
    pub(super) fn release_oldest(&self, state: &mut State, wake: &mut WriterWake) {
        let asked = wake.on_release(state.ring.span(), state.ring.limit());

        if let Some(page) = state.ring.vacate_oldest() {
            state.pool.recycle(page, state.page_rule);
        }
        if state.config.tail_update == TailUpdate::Mutex {
            self.view.span.store_span(state.ring.advance_tail());
            wake.defer(asked);
        } else {
            self.advance_under_wait_lock(state, wake, asked);
        }
    }

    /// Moves the tail as Linux 5.5 to 6.6 did, under a wait queue's spinlock.
    #[cold]
    fn advance_under_wait_lock(&self, state: &mut State, wake: &mut WriterWake, asked: bool) {
        state.counters.tail_locks += 1;
        if state.config.tail_update == TailUpdate::WaitLock {
            self.rd_wait
                .with_lock(|_| self.view.span.store_span(state.ring.advance_tail()));
            wake.defer(asked);
            return;
        }

        // The wake-up goes out from inside the lock, so the lock is that of the writers' queue.
        let signal = asked.then(|| state.wake_writers());
        self.writers_queue(state.queueing()).with_lock(|queue| {
            self.view.span.store_span(state.ring.advance_tail());
            if let Some(signal) = signal {
                queue.wake(PollMask::WRITABLE, signal.sync);
            }
        });
        if let Some(signal) = signal {
            wake.sent();
            if !signal.split {
                // Who polls for room is on the other queue, see the head of pipe.rs.
                self.wr_wait.wake(PollMask::WRITABLE, signal.sync);
            }
            if state.config.fasync == FasyncRule::WithWake {
                self.wr_fasync.notify(Band::Out);
            }
        }
    }
}

/// Whether a reader that has data may sleep for more.
///
/// POSIX wants a short count rather than that, but nobody can tell while a writer sleeps in the
/// middle of a write: its bytes belong together.
#[inline]
fn may_merge(state: &State, call: &IoCall<'_>) -> bool {
    state.config.read_merge
        && state.waiting_writers != 0
        && !call.is_nonblocking()
        && !current!().signal_pending()
}

#[inline]
pub(super) fn begin(state: &State) -> WriterWake {
    WriterWake::begin(
        state.config.wake_writer,
        state.ring.span(),
        state.ring.limit(),
    )
}
