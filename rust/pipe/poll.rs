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
            if writers == 0 {
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
}
