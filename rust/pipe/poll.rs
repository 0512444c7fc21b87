// SPDX-License-Identifier: GPL-2.0

//! poll(2), select(2) and epoll(7).

use super::Classic;
use crate::{
    abi::{
        file_operations::Ends,
        wait::{PollMask, PollTable},
    },
    ring::Watched,
};
use kernel::sync::barrier::{smp_mb, Read};

impl Classic {
    /// Who ever watched the read end.
    #[inline]
    pub(super) fn watched(&self) -> Watched {
        Watched::from_bits(self.view.watched.load())
    }

    pub(super) fn poll_ends(&self, ends: Ends, table: &PollTable<'_>) -> PollMask {
        if ends.reads {
            // Programs written against old kernels count on one event a write, even where the
            // earlier bytes are still unread. A writer tells by these bits whether one watches.
            self.view
                .watched
                .set_bits(Watched::bits(table.is_edge_triggered()));
            table.register(&self.rd_wait);
        }
        if ends.writes {
            table.register(&self.wr_wait);
        }

        // Registered first, looked second: a change in between wakes us.
        let span = self.view.span.load_span();
        let (readers, writers) = self.view.ends.load();
        let (limit, _) = self.view.limits.load();
        let mut mask = PollMask::NONE;

        if ends.reads {
            if !span.is_empty() {
                mask = mask.and(PollMask::READABLE);
            }
            if writers == 0 && self.is_hung_up(table.hangup_mark()) {
                mask = mask.and(PollMask::HANGUP);
            }
        }
        if ends.writes {
            if !span.is_full(limit) {
                mask = mask.and(PollMask::WRITABLE);
            }
            if readers == 0 {
                mask = mask.and(PollMask::ERROR);
            }
        }
        mask
    }

    /// Whether the absence of writers, which the caller has seen, is a hang-up for a file with this
    /// mark.
    ///
    /// A FIFO that was opened for reading where no writer was needed waits for the first: there is
    /// no hang-up before it came. A writer who just comes must not look like one who went, so his
    /// number is looked at again after the mark.
    #[inline(never)]
    fn is_hung_up(&self, mark: u64) -> bool {
        if self.view.writers_seen.load() == mark {
            return false;
        }
        // Pairs with the barrier in `opened`.
        smp_mb(Read);
        let (_, writers) = self.view.ends.load();
        writers == 0
    }
}
