// SPDX-License-Identifier: GPL-2.0

//! Writing.

use super::{pool::Pool, Classic, LockedState, State};
use crate::{
    abi::{
        fasync::Band,
        file_operations::IoCall,
        iov::Page,
        times, //
    },
    config::{FasyncRule, PageRule, Publish},
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

        let to_readers = wake.at_end(self.watched()).then(|| state.wake_readers());
        // We were woken alone; the room that we leave is for the next.
        let to_writers = if has_slept && !state.ring.is_full() {
            state.hand_to_writer()
        } else {
            None
        };
        let owners_hear = to_readers.is_some() || state.config.fasync == FasyncRule::EveryIo;
        let touches = state.config.times.touches_mtime();
        let freeze_check = state.config.freeze_check;
        if done > 0 {
            state.counters.writes += 1;
            state.counters.bytes_written += done as u64;
            if touches {
                state.counters.time_updates += 1;
                state.counters.freeze_checks += u64::from(freeze_check);
            }
        }
        self.unlock(state);

        if let Some(signal) = to_readers {
            self.notify_readers(signal);
        }
        if owners_hear {
            self.rd_fasync.notify(Band::In);
        }
        if let Some(signal) = to_writers {
            self.notify_writers(signal);
        }
        if done > 0 {
            if touches {
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
    pub(super) fn chunk_published(&self, state: &mut State, wake: &mut ReaderWake) {
        if wake.on_chunk() {
            let signal = state.wake_readers();

            self.notify_readers(signal);
            if state.config.fasync == FasyncRule::WithWake {
                self.rd_fasync.notify(Band::In);
            }
        }
    }

    /// Takes the lock, with as many pages in the pool as a write of `len` bytes will want.
    #[inline]
    fn lock_with_pages(&self, len: usize) -> LockedState<'_> {
        let missing = PageRule::missing(len, self.view.stock.load(), self.view.ahead.load());

        // The stock was read without the lock and may be stale: then a page is allocated under the
        // lock, or one too many before it.
        if missing == 0 {
            return self.state.lock();
        }
        self.lock_with_new_pages(missing)
    }

    #[inline(never)]
    fn lock_with_new_pages(&self, count: u64) -> LockedState<'_> {
        let mut fresh = Pool::new();
        fresh.fill_to(count);

        let mut state = self.state.lock();
        state.pool.take_over(&mut fresh);
        // What did not fit, because two writers raced, is freed here: it is at most a few pages.
        state
    }

    /// Fills the next slot from `from` and makes it visible; returns the number of bytes in it.
    #[inline(always)]
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
    #[cold]
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

    #[inline(always)]
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
pub(super) fn begin(state: &State) -> ReaderWake {
    ReaderWake::begin(state.config.wake_reader, state.ring.span())
}
