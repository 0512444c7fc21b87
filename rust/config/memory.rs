// SPDX-License-Identifier: GPL-2.0

//! Where pages come from, and how many are kept.

use super::{Config, Prealloc};
use crate::page::PAGE_SIZE;

/// What the knobs say of a pipe's stock of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRule {
    /// How many pages a write may have in stock before it takes the lock.
    pub ahead: u32,
    /// How many pages in stock make a read free a spent page rather than keep it.
    pub room: u32,
    /// How many pages stay in stock when a call ends.
    pub keep: u32,
}

impl PageRule {
    /// The most pages that any rule has in stock.
    pub const MOST: usize = 16;

    /// The rule of `config`.
    pub const fn of(config: &Config) -> Self {
        match config.prealloc {
            Prealloc::Pool => Self {
                ahead: config.prealloc_max,
                room: config.prealloc_max,
                keep: config.prealloc_keep,
            },
            // What a burst has left over is freed when the write ends; spent pages go to the small
            // cache, as they did before there was a burst.
            Prealloc::Burst => Self {
                ahead: config.prealloc_max,
                room: config.page_cache,
                keep: config.page_cache,
            },
            Prealloc::Off => Self {
                ahead: 0,
                room: config.page_cache,
                keep: config.page_cache,
            },
        }
    }

    /// How many pages to allocate before a write of `len` bytes that finds `stock` of them, where
    /// the rule allows `ahead`.
    #[inline]
    pub fn missing(len: usize, stock: u64, ahead: u64) -> u64 {
        // Most writes want one page, and find it.
        if len <= PAGE_SIZE && stock != 0 {
            return 0;
        }
        (len.div_ceil(PAGE_SIZE) as u64)
            .min(ahead)
            .saturating_sub(stock)
    }
}
