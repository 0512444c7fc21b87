// SPDX-License-Identifier: GPL-2.0

//! The search finds what kernels have done wrong, or might.

use super::plan::{Fault, Plan};
use super::search::search;
use super::task::Role::{self, BadWriter, Reader, Writer};
use super::world::World;
use crate::config::{Config, Publish, WakeReader, WakeWriter};

/// A ring of `limit` slots wired as Linux 7.3 has it.
fn newest(limit: u32) -> Plan {
    Plan::new(Config::DEFAULT, limit)
}

/// Whether the search finds a sleeper that `fault` forgets, and none without it.
fn is_found(fault: Fault, plan: Plan, roles: &[Role], closes: bool) -> bool {
    let start = World::new(roles, 1, closes, 0);
    assert!(search(start.clone(), &plan).is_ok());
    match search(start, &Plan { fault, ..plan }) {
        Ok(_) => false,
        Err(way) => {
            println!("{fault:?}:\n{way}");
            true
        }
    }
}

#[test]
fn the_search_finds_a_wake_up_that_is_not_passed_on() {
    let readers = [Reader(1), Reader(1), Writer(2)];
    assert!(is_found(Fault::NoHandOver, newest(1), &readers, false));
    let writers = [Reader(4), Writer(2), Writer(2), Writer(2), Writer(2)];
    assert!(is_found(Fault::NoHandOver, newest(2), &writers, false));
}

#[test]
fn the_search_finds_a_rule_that_did_not_begin_anew() {
    let was_full = Config {
        wake_writer: WakeWriter::WasFull,
        ..Config::DEFAULT
    };
    let roles = [Reader(4), Writer(6)];
    let plan = Plan::new(was_full, 2);
    assert!(is_found(Fault::StaleRule, plan, &roles, false));
}

#[test]
fn the_search_finds_a_sleeper_that_did_not_look_again() {
    let roles = [Reader(1), Writer(1)];
    assert!(is_found(Fault::NoSecondLook, newest(1), &roles, false));
}

#[test]
fn the_search_finds_the_wake_up_that_half_alone_loses() {
    let half = Config {
        wake_writer: WakeWriter::Half,
        ..Config::DEFAULT
    };
    let roles = [Reader(2), Writer(6)];
    let plan = Plan::new(half, 2);
    assert!(is_found(Fault::HalfAlone, plan, &roles, false));
}

#[test]
fn the_search_finds_a_last_close_that_wakes_nobody() {
    let roles = [Reader(2), Reader(1), Writer(1)];
    assert!(is_found(Fault::SilentClose, newest(1), &roles, true));
}

#[test]
fn the_search_finds_an_empty_slot_that_is_skipped_in_silence() {
    let in_sight = Config {
        publish: Publish::BeforeCopy,
        ..Config::DEFAULT
    };
    let roles = [Reader(2), BadWriter, Writer(2)];
    let plan = Plan::new(in_sight, 1);
    assert!(is_found(Fault::SilentSkip, plan, &roles, false));
}

/// Readers that hold out for more, beside writers that wake them for what they wrote alone.
fn merging(limit: u32) -> Plan {
    let config = Config {
        read_merge: true,
        wake_reader: WakeReader::EveryWrite,
        ..Config::DEFAULT
    };
    Plan::new(config, limit)
}

#[test]
fn the_search_finds_a_reader_that_holds_out_without_giving_room() {
    let roles = [Reader(4), Writer(4)];
    assert!(is_found(Fault::SilentMerge, merging(1), &roles, false));
}

#[test]
fn the_search_finds_a_writer_that_leaves_a_reader_holding_out() {
    let roles = [Reader(4), Writer(2), BadWriter];
    assert!(is_found(Fault::SilentDeparture, merging(1), &roles, false));
}

/// The knobs of a pipe change once.
fn flip(from: Config, to: Config) -> Plan {
    Plan {
        configs: [from, to],
        flips: 1,
        ..newest(1)
    }
}

const COMMON_QUEUE: Config = Config {
    split_wait: false,
    ..Config::DEFAULT
};

#[test]
fn the_search_finds_a_change_of_knobs_that_wakes_nobody() {
    let plan = flip(COMMON_QUEUE, Config::DEFAULT);
    let roles = [Reader(2), Writer(2), Writer(2)];
    assert!(is_found(Fault::SilentFlip, plan, &roles, false));
}

#[test]
fn the_search_finds_a_sleeper_that_keeps_its_place_across_a_change() {
    let plan = flip(COMMON_QUEUE, Config::DEFAULT);
    let roles = [Reader(4), Writer(2), Writer(2)];
    assert!(is_found(Fault::OldPlace, plan, &roles, false));
}

#[test]
fn the_search_finds_an_exclusive_sleeper_that_nobody_reckons_with() {
    let together = Config {
        exclusive: false,
        ..Config::DEFAULT
    };
    let plan = flip(Config::DEFAULT, together);
    let roles = [Reader(1), Reader(1), Writer(2)];
    assert!(is_found(Fault::OldPlace, plan, &roles, false));
}

#[test]
fn the_search_finds_a_reader_that_holds_out_by_a_rule_of_the_past() {
    let held_out = merging(1).configs[0];
    let ceased = Config {
        read_merge: false,
        ..held_out
    };
    let roles = [Reader(4), Writer(2), BadWriter];
    let plan = flip(held_out, ceased);
    assert!(is_found(Fault::OldPlace, plan, &roles, false));
}

#[test]
fn the_search_finds_a_ring_that_grows_in_silence() {
    let plan = Plan {
        limits: [1, 2],
        resizes: 1,
        ..newest(1)
    };
    assert!(is_found(Fault::SilentGrowth, plan, &[Writer(4)], false));
}
