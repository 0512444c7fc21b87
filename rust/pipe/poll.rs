// SPDX-License-Identifier: GPL-2.0

//! poll(2), select(2) and epoll(7).

use super::Classic;
use crate::abi::{
    file_operations::Ends,
    wait::{PollMask, PollTable},
};

/// What a write wants to know of those who watch the read end.
struct Watched;

impl Watched {
    /// Somebody polled it.
    const POLLED: u64 = 1;
    /// An edge-triggered epoll registered with it.
    const EPOLLET: u64 = 2;
}

impl Classic {
    /// Whether somebody ever polled the read end.
    #[inline]
    pub(super) fn is_polled(&self) -> bool {
        self.view.watched.load() & Watched::POLLED != 0
    }

    /// Whether an edge-triggered epoll ever watched the read end.
    #[inline]
    pub(super) fn is_watched_by_epollet(&self) -> bool {
        self.view.watched.load() & Watched::EPOLLET != 0
    }

    pub(super) fn poll_ends(&self, ends: Ends, table: &PollTable<'_>) -> PollMask {
        if ends.reads {
            // Programs written against old kernels count on one event a write, even where the
            // earlier bytes are still unread. A writer tells by these bits whether one watches.
            let mut seen = Watched::POLLED;

            if table.is_edge_triggered() {
                seen |= Watched::EPOLLET;
            }
            self.view.watched.set_bits(seen);
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
