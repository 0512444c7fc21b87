// SPDX-License-Identifier: GPL-2.0

//! No sleeper stays asleep while he could go on: shown by visiting every state of small worlds.

use super::plan::Plan;
use super::search::search;
use super::task::Role::{self, BadWriter, PollIn, PollOut, Reader, Writer};
use super::world::World;
use crate::config::{Config, Publish, TailUpdate, WakeReader, WakeWriter, PRESETS};

/// The ways to wait: exclusively, together, and on one queue, where nobody waits exclusively.
pub(super) const WAYS_TO_WAIT: [(bool, bool); 3] = [(true, true), (false, true), (true, false)];

/// Each pair of rules, writers woken after the lock and inside, each way to wait.
fn configs(base: Config) -> Vec<Config> {
    let mut all = Vec::new();
    for &wake_reader in WakeReader::ALL {
        for &wake_writer in WakeWriter::ALL {
            for tail_update in [TailUpdate::Mutex, TailUpdate::WaitLockWake] {
                for (exclusive, split_wait) in WAYS_TO_WAIT {
                    all.push(Config {
                        wake_reader,
                        wake_writer,
                        tail_update,
                        exclusive,
                        split_wait,
                        ..base
                    });
                }
            }
        }
    }
    all
}

/// The presets, each stripped of what has no part in waking and sleeping, and each with readers that
/// hold out for more as well.
pub(super) fn wirings_of_presets() -> Vec<Config> {
    let mut all = Vec::new();
    for preset in PRESETS {
        for read_merge in [preset.config.read_merge, true] {
            let of = &preset.config;
            let config = Config {
                wake_reader: of.wake_reader,
                wake_writer: of.wake_writer,
                tail_update: of.tail_update,
                exclusive: of.exclusive,
                split_wait: of.split_wait,
                publish: of.publish,
                read_merge,
                ..Config::DEFAULT
            };
            if !all.contains(&config) {
                all.push(config);
            }
        }
    }
    all
}

const MERGING: Config = Config {
    read_merge: true,
    ..Config::DEFAULT
};

const IN_SIGHT: Config = Config {
    publish: Publish::BeforeCopy,
    ..Config::DEFAULT
};

/// Searches the worlds of `roles`, each making `calls` calls, under every wiring of `base`, with ends
/// that the tasks close and with ends that stay open.
fn nobody_is_forgotten_by(base: Config, roles: &[Role], calls: u8, signals: u8) {
    let mut worlds = 0;
    for config in configs(base) {
        for (limit, closes) in [(1, false), (1, true), (2, false), (2, true)] {
            let start = World::new(roles, calls, closes, signals);
            match search(start, &Plan::new(config, limit)) {
                Ok(count) => worlds += count,
                Err(way) => {
                    panic!("{roles:?}, {limit} slots, ends closed: {closes}, {config}\n{way}")
                }
            }
        }
    }
    println!("{worlds} worlds of {roles:?} by {base}");
}

fn nobody_is_forgotten(roles: &[Role], calls: u8, signals: u8) {
    nobody_is_forgotten_by(Config::DEFAULT, roles, calls, signals);
}

/// The same for so many tasks that every wiring would take minutes: as the presets wire a pipe, with
/// ends that stay open.
fn nobody_is_forgotten_in_a_crowd(roles: &[Role], signals: u8) {
    let mut worlds = 0;
    for config in wirings_of_presets() {
        for limit in [1, 2] {
            let start = World::new(roles, 1, false, signals);
            match search(start, &Plan::new(config, limit)) {
                Ok(count) => worlds += count,
                Err(way) => panic!("{roles:?}, {limit} slots, {config}\n{way}"),
            }
        }
    }
    println!("{worlds} worlds of {roles:?} as presets wire them");
}

#[test]
fn a_reader_and_a_writer_of_part_pages() {
    nobody_is_forgotten(&[Reader(1), Writer(1)], 3, 1);
}

#[test]
fn a_reader_and_a_writer_of_more_than_the_ring_holds() {
    nobody_is_forgotten(&[Reader(4), Writer(6)], 2, 1);
}

#[test]
fn a_reader_that_takes_less_than_is_written() {
    nobody_is_forgotten(&[Reader(1), Writer(3)], 2, 1);
}

#[test]
fn two_readers_of_what_one_wake_up_announces() {
    nobody_is_forgotten(&[Reader(2), Reader(2), Writer(4)], 1, 0);
    nobody_is_forgotten(&[Reader(1), Reader(1), Writer(2)], 1, 1);
}

#[test]
fn readers_of_different_sizes() {
    nobody_is_forgotten(&[Reader(1), Reader(2), Writer(5)], 1, 0);
}

#[test]
fn writers_into_the_room_that_one_read_makes() {
    nobody_is_forgotten_in_a_crowd(&[Reader(4), Writer(2), Writer(2), Writer(2)], 0);
}

#[test]
fn writers_of_different_sizes() {
    nobody_is_forgotten(&[Reader(4), Writer(3), Writer(4)], 1, 0);
}

#[test]
fn pollers_beside_sleepers() {
    nobody_is_forgotten(&[Reader(1), PollIn, Writer(3)], 1, 0);
    nobody_is_forgotten(&[Reader(2), PollOut, Writer(6)], 1, 0);
}

#[test]
fn a_reader_that_holds_out_for_more() {
    nobody_is_forgotten_by(MERGING, &[Reader(8), Writer(6)], 1, 1);
    nobody_is_forgotten_in_a_crowd(&[Reader(6), Writer(4), Writer(3)], 1);
}

#[test]
fn two_readers_that_hold_out_for_more() {
    nobody_is_forgotten_in_a_crowd(&[Reader(4), Reader(6), Writer(6)], 1);
    nobody_is_forgotten_in_a_crowd(&[Reader(4), Reader(2), Writer(4), Writer(2)], 0);
}

#[test]
fn a_reader_that_holds_out_for_a_writer_without_bytes() {
    nobody_is_forgotten_by(MERGING, &[Reader(6), Writer(2), BadWriter], 1, 1);
}

#[test]
fn empty_slots_between_full_ones() {
    nobody_is_forgotten_by(IN_SIGHT, &[Reader(2), BadWriter, Writer(1)], 1, 1);
    nobody_is_forgotten_in_a_crowd(&[Reader(4), BadWriter, Writer(2), Writer(2)], 0);
}

#[test]
fn writers_that_fail_though_they_were_woken() {
    nobody_is_forgotten_in_a_crowd(&[Reader(4), Writer(4), BadWriter, BadWriter], 0);
}
