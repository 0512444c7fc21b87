// SPDX-License-Identifier: GPL-2.0

//! Reading.

use super::{sleep::Queueing, Classic, State};
use crate::{
    abi::{fasync::Band, file_operations::IoCall, times, wait::PollMask},
    config::TailUpdate,
    ring::WriterWake,
};
use kernel::{iov::IovIterDest, prelude::*};

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

                let is_packet = slot.is_packet();
                if slot.taken(want) {
                    self.release_oldest(&mut state, &mut wake);
                }
                if is_packet || to.is_empty() {
                    break None;
                }
                if !state.ring.is_empty() {
                    continue;
                }
            }

            // The ring is empty. End of file or a short count need no more data.
            if state.writers == 0 || done > 0 {
                break None;
            }
            if call.is_nonblocking() {
                break Some(EAGAIN);
            }

            let queueing = Queueing::from(&state.config);
            drop(state);
            // Nothing was taken, so an interrupted reader owes nobody anything.
            self.wait_readable(queueing)?;
            has_slept = true;
            state = self.state.lock();
            wake = begin(&state);
        };

        let queueing = Queueing::from(&state.config);
        let times = state.config.times;
        let notify_writers = wake.due();
        // We were woken alone; what we leave behind is for the next.
        let hand_over = has_slept && queueing.exclusive && !state.ring.is_empty();
        state.counters.writer_notifies += u64::from(notify_writers);
        state.counters.handovers += u64::from(hand_over);
        if done > 0 {
            state.counters.reads += 1;
            state.counters.bytes_read += done as u64;
            state.counters.time_updates += u64::from(times.touches_atime());
        }
        self.unlock(state);

        if notify_writers {
            self.notify_writers(queueing);
        }
        if hand_over {
            self.notify_readers();
        }
        self.wr_fasync.notify(Band::Out);
        if done > 0 {
            if times.touches_atime() {
                times::accessed(call);
            }
            return Ok(done);
        }
        failure.map_or(Ok(0), Err)
    }

    /// Frees the oldest slot, which is spent, and moves the tail over it.
    ///
    /// The pipe's mutex is all that the tail needs: who looks without it takes head and tail in
    /// one load. The other two ways are history's.
    #[inline]
    fn release_oldest(&self, state: &mut State, wake: &mut WriterWake) {
        let asked = wake.on_release(state.ring.span(), state.ring.limit());

        if let Some(page) = state.ring.vacate_oldest() {
            state.pool.recycle(page);
        }
        if state.config.tail_update == TailUpdate::Mutex {
            self.view.span.store_span(state.ring.advance_tail());
            wake.defer(asked);
        } else {
            self.advance_under_wait_lock(state, wake, asked);
        }
    }

    /// Moves the tail as Linux 5.5 to 6.6 did, under a wait queue's spinlock.
    #[inline(never)]
    fn advance_under_wait_lock(&self, state: &mut State, wake: &mut WriterWake, asked: bool) {
        let queueing = Queueing::from(&state.config);

        state.counters.tail_locks += 1;
        if state.config.tail_update == TailUpdate::WaitLock {
            self.rd_wait
                .with_lock(|_| self.view.span.store_span(state.ring.advance_tail()));
            wake.defer(asked);
            return;
        }

        // The wake-up goes out from inside the lock, so the lock is that of the writers' queue.
        self.writers_queue(queueing).with_lock(|queue| {
            self.view.span.store_span(state.ring.advance_tail());
            if asked {
                queue.wake(PollMask::WRITABLE, true);
            }
        });
        if asked {
            state.counters.writer_notifies += 1;
            wake.sent();
            if !queueing.split {
                // Who polls for room is on the other queue, see the head of pipe.rs.
                self.wr_wait.wake(PollMask::WRITABLE, true);
            }
            self.wr_fasync.notify(Band::Out);
        }
    }
}

#[inline]
fn begin(state: &State) -> WriterWake {
    WriterWake::begin(
        state.config.wake_writer,
        state.ring.span(),
        state.ring.limit(),
    )
}
