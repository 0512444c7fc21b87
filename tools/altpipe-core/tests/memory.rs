// SPDX-License-Identifier: GPL-2.0

//! What the knobs say of a pipe's stock of pages, and of its time stamps.

use altpipe_core::config::{PageRule, Prealloc, Times};
use altpipe_core::page::PAGE_SIZE;
use altpipe_core::{Config, PRESETS};
use proptest::prelude::*;

fn rule(text: &str) -> PageRule {
    PageRule::of(&Config::parse(text, &Config::DEFAULT).unwrap())
}

/// How many pages a write may have ahead, how many fill the stock, how many stay in it.
fn numbers(text: &str) -> (u32, u32, u32) {
    let PageRule { ahead, room, keep } = rule(text);
    (ahead, room, keep)
}

#[test]
fn a_pool_is_filled_ahead_and_kept_in_part() {
    assert_eq!(numbers("v7.3"), (8, 8, 2));
    let knobs = "v7.3,prealloc_max=5,prealloc_keep=7,page_cache=0";
    assert_eq!(numbers(knobs), (5, 5, 7));
}

#[test]
fn a_burst_is_filled_ahead_and_leaves_a_small_cache() {
    assert_eq!(numbers("v7.2"), (8, 2, 2));
    let knobs = "v7.2,prealloc_max=5,prealloc_keep=7,page_cache=1";
    assert_eq!(numbers(knobs), (5, 1, 1));
}

#[test]
fn without_either_nothing_is_had_ahead() {
    assert_eq!(numbers("v6.15"), (0, 2, 2));
    assert_eq!(numbers("v6.14"), (0, 1, 1));
    assert_eq!(numbers("v6.14,prealloc_max=16,page_cache=0"), (0, 0, 0));
}

#[test]
fn pages_are_missing_up_to_what_may_be_had_ahead() {
    let missing = |bytes, stock| PageRule::missing(bytes, stock, 8);
    assert_eq!(missing(0, 0), 0);
    assert_eq!(missing(1, 0), 1);
    assert_eq!(missing(PAGE_SIZE, 0), 1);
    assert_eq!(missing(PAGE_SIZE + 1, 0), 2);
    assert_eq!(missing(3 * PAGE_SIZE, 2), 1);
    assert_eq!(missing(3 * PAGE_SIZE, 3), 0);
    assert_eq!(missing(100 * PAGE_SIZE, 0), 8);
    assert_eq!(missing(100 * PAGE_SIZE, 9), 0);
    assert_eq!(missing(usize::MAX, 0), 8);
}

#[test]
fn no_preset_has_more_pages_in_stock_than_fit() {
    for preset in PRESETS {
        let PageRule { ahead, room, keep } = PageRule::of(&preset.config);
        assert!(ahead.max(room).max(keep) as usize <= PageRule::MOST);
    }
}

proptest! {
    #[test]
    fn no_rule_has_more_pages_in_stock_than_fit(
        how in prop::sample::select(Prealloc::ALL),
        max in 0..=16u32,
        keep in 0..=16u32,
        cache in 0..=2u32,
        bytes in any::<usize>(),
        stock in 0..=16u64,
    ) {
        let config = Config {
            prealloc: how,
            prealloc_max: max,
            prealloc_keep: keep,
            page_cache: cache,
            ..Config::DEFAULT
        };
        let PageRule { ahead, room, keep } = PageRule::of(&config);
        prop_assert!(ahead.max(room).max(keep) as usize <= PageRule::MOST);

        let ahead = u64::from(ahead);
        let missing = PageRule::missing(bytes, stock, ahead);
        // A write never makes more than it may have, nor more than it fills.
        prop_assert!(missing == 0 || stock + missing <= ahead);
        prop_assert!(missing <= bytes.div_ceil(PAGE_SIZE) as u64);
    }
}

#[test]
fn a_read_touches_atime_and_a_write_the_others() {
    let touched = |times: &Times| (times.touches_atime(), times.touches_mtime());
    let all = [Times::None, Times::Atime, Times::Mtime, Times::Full];
    assert_eq!(all, Times::ALL);
    let expected = [(false, false), (true, false), (false, true), (true, true)];
    assert_eq!(all.each_ref().map(touched), expected);
}
