// SPDX-License-Identifier: GPL-2.0

//! Writing.

use super::{pool::Pool, sleep::Queueing, Classic, LockedState, State};
use crate::{
    abi::{
        fasync::Band,
        file_operations::IoCall,
        iov::Page,
        times, //
    },
    config::{Config, FasyncRule, Publish},
    ring::{Kind, ReaderWake},
};
use kernel::{current, iov::IovIterSource, page::PAGE_SIZE, prelude::*};

impl Classic {
    /// Takes what the ring has room for, and sleeps for more until all is taken.
    #[inline]
    pub(super) fn write_from(
        &self,
        call: &IoCall<'_>,
        from: &mut IovIterSource<'_>,
    ) -> Result<usize> {
        // Writing nothing succeeds, with or without readers.
        let total = from.len();
        if total == 0 {
            return Ok(0);
        }

        let mut done = 0usize;
        let mut has_slept = false;
        let mut state = self.lock_with_pages(total);
        let mut wake = begin(&state);
        let failure = 'out: {
            // Only the part that does not fill a page goes behind earlier bytes. Thus small writes
            // share pages, and the rest of a large one stays aligned to pages.
            let odd = total % PAGE_SIZE;
            if odd != 0 && state.readers != 0 && state.config.merge {
                if let Some((page, end)) = state.ring.room_in_newest(odd, PAGE_SIZE) {
                    if page.copy_from(end, odd, from) < odd {
                        break 'out Some(EFAULT);
                    }
                    state.ring.appended(odd);
                    state.counters.merges += 1;
                    done = odd;
                    self.chunk_published(&mut state, &mut wake);
                    if from.is_empty() {
                        break 'out None;
                    }
                }
            }

            loop {
                if state.readers == 0 {
                    break 'out Some(call.broken_pipe());
                }
                if !state.ring.is_full() {
                    match self.fill_slot(&mut state, &mut wake, call, from) {
                        Ok(count) => done = done.wrapping_add(count),
                        Err(error) => break 'out Some(error),
                    }
                    if from.is_empty() {
                        break 'out None;
                    }
                    continue;
                }

                if call.is_nonblocking() {
                    break 'out Some(EAGAIN);
                }
                if current!().signal_pending() {
                    break 'out Some(ERESTARTSYS);
                }

                state = self.sleep_for_room(state, &wake);
                has_slept = true;
                wake = begin(&state);
            }
        };

        let queueing = Queueing::from(&state.config);
        let Config {
            times,
            freeze_check,
            fasync,
            sync_write: sync,
            ..
        } = state.config;
        let notify_readers = wake.at_end(self.watched());
        // We were woken alone; the room that we leave is for the next.
        let hand_over = has_slept && queueing.exclusive && !state.ring.is_full();
        state.counters.reader_notifies += u64::from(notify_readers);
        state.counters.sync_notifies += u64::from(notify_readers && sync);
        state.counters.handovers += u64::from(hand_over);
        if done > 0 {
            state.counters.writes += 1;
            state.counters.bytes_written += done as u64;
            state.counters.time_updates += u64::from(times.touches_mtime());
        }
        self.unlock(state);

        if notify_readers {
            self.notify_readers(sync);
        }
        if notify_readers || fasync == FasyncRule::EveryIo {
            self.rd_fasync.notify(Band::In);
        }
        if hand_over {
            self.notify_writers(queueing, sync);
        }
        if done > 0 {
            if times.touches_mtime() {
                if freeze_check {
                    times::modified_unless_frozen(call)?;
                } else {
                    times::modified(call)?;
                }
            }
            return Ok(done);
        }
        failure.map_or(Ok(0), Err)
    }

    /// Has the readers woken at once, where that is the rule for each published chunk.
    #[inline]
    fn chunk_published(&self, state: &mut State, wake: &mut ReaderWake) {
        if wake.on_chunk() {
            let sync = state.config.sync_write;

            state.counters.reader_notifies += 1;
            state.counters.sync_notifies += u64::from(sync);
            self.notify_readers(sync);
            if state.config.fasync == FasyncRule::WithWake {
                self.rd_fasync.notify(Band::In);
            }
        }
    }

    /// Has the readers woken, if that is the rule, and sleeps for room.
    #[inline(never)]
    fn sleep_for_room<'a>(
        &'a self,
        mut state: LockedState<'a>,
        wake: &ReaderWake,
    ) -> LockedState<'a> {
        let queueing = Queueing::from(&state.config);
        let sync = state.config.sync_write;
        let notify_readers = wake.before_sleep();
        let notify_owners = notify_readers || state.config.fasync == FasyncRule::EveryIo;

        state.counters.reader_notifies += u64::from(notify_readers);
        state.counters.sync_notifies += u64::from(notify_readers && sync);
        state.waiting_writers = state.waiting_writers.saturating_add(1);
        self.publish_limits(&state);
        self.publish_pages(&state);
        drop(state);
        if notify_readers {
            self.notify_readers(sync);
        }
        if notify_owners {
            self.rd_fasync.notify(Band::In);
        }
        let woken = self.wait_writable(queueing);

        state = self.state.lock();
        if woken && state.ring.is_full() && state.readers != 0 {
            self.sleeps.count_late();
        }
        state.waiting_writers = state.waiting_writers.saturating_sub(1);
        self.publish_limits(&state);
        if state.waiting_writers == 0 && state.config.read_merge {
            // A reader may hold out for our bytes, and we may leave without writing any.
            self.rd_wait.wake_all();
        }
        state
    }

    /// Takes the lock, with as many pages in the pool as a write of `len` bytes will want.
    #[inline]
    fn lock_with_pages(&self, len: usize) -> LockedState<'_> {
        let missing = self.pages_missing(len);

        // The number was read without the lock and may be stale: then a page is allocated under
        // the lock, or one too many before it.
        if missing == 0 {
            return self.state.lock();
        }
        self.lock_with_new_pages(missing)
    }

    #[inline(never)]
    fn lock_with_new_pages(&self, count: u32) -> LockedState<'_> {
        let mut fresh = Pool::new();
        fresh.fill_to(count);

        let mut state = self.state.lock();
        state.pool.take_over(&mut fresh);
        // What did not fit, because two writers raced, is freed here: it is at most a few pages.
        state
    }

    /// Fills the next slot from `from` and makes it visible; returns the number of bytes in it.
    #[inline]
    fn fill_slot(
        &self,
        state: &mut State,
        wake: &mut ReaderWake,
        call: &IoCall<'_>,
        from: &mut IovIterSource<'_>,
    ) -> Result<usize> {
        let mut page = match state.pool.take_for_slot(&mut state.counters) {
            Some(page) => page,
            None => {
                let page = Page::alloc().ok_or(ENOMEM)?;
                state.counters.pages_locked += 1;
                page
            }
        };
        let kind = if call.is_packetized() {
            Kind::Packet
        } else {
            Kind::Open
        };

        if state.config.publish == Publish::BeforeCopy {
            return self.fill_in_sight(state, wake, page, kind, from);
        }
        let count = page.copy_from(0, PAGE_SIZE, from);
        if count < PAGE_SIZE && !from.is_empty() {
            state.pool.recycle(page, state.page_rule);
            return Err(EFAULT);
        }
        self.publish_slot(state, wake, page, count, kind)?;
        Ok(count)
    }

    /// Makes a slot visible first and fills it second, as Linux 5.5 to 6.14 did.
    ///
    /// If the copy fails the slot stays, empty: somebody may have seen it already.
    #[inline(never)]
    fn fill_in_sight(
        &self,
        state: &mut State,
        wake: &mut ReaderWake,
        page: Page,
        kind: Kind,
        from: &mut IovIterSource<'_>,
    ) -> Result<usize> {
        self.publish_slot(state, wake, page, 0, kind)?;
        let page = state.ring.newest_page().ok_or(EFAULT)?;
        let count = page.copy_from(0, PAGE_SIZE, from);

        if count < PAGE_SIZE && !from.is_empty() {
            return Err(EFAULT);
        }
        state.ring.appended(count);
        Ok(count)
    }

    #[inline]
    fn publish_slot(
        &self,
        state: &mut State,
        wake: &mut ReaderWake,
        page: Page,
        count: usize,
        kind: Kind,
    ) -> Result {
        // The ring is not full: the caller looked under the same lock.
        let span = state.ring.push(page, count, kind).map_err(|_| EAGAIN)?;

        self.view.span.store_span(span);
        self.chunk_published(state, wake);
        Ok(())
    }
}

#[inline]
fn begin(state: &State) -> ReaderWake {
    ReaderWake::begin(state.config.wake_reader, state.ring.span())
}
