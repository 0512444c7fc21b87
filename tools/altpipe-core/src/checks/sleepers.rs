// SPDX-License-Identifier: GPL-2.0

//! No sleeper stays asleep while he could go on: shown by visiting every state of small worlds.

use super::world::{Fault, Role, Wiring, World};
use crate::config::{WakeReader, WakeWriter};
use std::collections::HashSet;
use Role::{PollIn, PollOut, Reader, Writer};

/// Visits every world that can follow `start`. Returns how many there are, or the way to one in
/// which a task sleeps for ever though it could go on.
fn search(start: World, wiring: &Wiring) -> Result<usize, Vec<World>> {
    let mut known = HashSet::from([start.clone()]);
    let mut visited = vec![(start, 0)];
    let mut next = 0;
    while let Some((world, _)) = visited.get(next) {
        let successors = world.successors(wiring);
        if successors.is_empty() && world.forgets_a_sleeper(wiring) {
            return Err(way_to(next, &visited));
        }
        for world in successors {
            if known.insert(world.clone()) {
                visited.push((world, next));
            }
        }
        next += 1;
    }
    Ok(visited.len())
}

/// The worlds passed through on the way to one of the visited, each of which names the one before.
fn way_to(mut index: usize, visited: &[(World, usize)]) -> Vec<World> {
    let mut way = Vec::new();
    loop {
        let (world, before) = &visited[index];
        way.push(world.clone());
        if index == 0 {
            way.reverse();
            return way;
        }
        index = *before;
    }
}

/// A ring of `limit` slots wired as Linux 7.3 has it.
fn newest(limit: u32) -> Wiring {
    Wiring {
        wake_reader: WakeReader::WasEmptyOrEpollet,
        wake_writer: WakeWriter::FreedFull,
        wake_in_lock: false,
        exclusive: true,
        split_wait: true,
        limit,
        fault: Fault::No,
    }
}

/// All wirings: each pair of rules, writers woken after the lock and inside, exclusive waits, common
/// waits, and one queue, which never has exclusive ones.
fn wirings(limit: u32) -> Vec<Wiring> {
    let mut all = Vec::new();
    for &wake_reader in WakeReader::ALL {
        for &wake_writer in WakeWriter::ALL {
            for wake_in_lock in [false, true] {
                for (exclusive, split_wait) in [(true, true), (false, true), (true, false)] {
                    all.push(Wiring {
                        wake_reader,
                        wake_writer,
                        wake_in_lock,
                        exclusive,
                        split_wait,
                        ..newest(limit)
                    });
                }
            }
        }
    }
    all
}

/// Searches the worlds of `roles`, each making `calls` calls, under every wiring, with ends that the
/// tasks close and with ends that stay open.
fn nobody_is_forgotten(roles: &[Role], calls: u8, signals: u8) {
    let mut worlds = 0;
    for wiring in [1, 2].into_iter().flat_map(wirings) {
        for closes in [false, true] {
            let start = World::new(roles, calls, closes, signals);
            match search(start, &wiring) {
                Ok(count) => worlds += count,
                Err(way) => panic!("{wiring:?}: {way:#?}"),
            }
        }
    }
    println!("{worlds} worlds of {roles:?}");
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
    nobody_is_forgotten(&[Reader(4), Writer(2), Writer(2), Writer(2)], 1, 0);
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

/// Whether the search finds a forgotten sleeper in a world wired wrongly.
fn is_found(fault: Fault, wiring: Wiring, roles: &[Role], closes: bool) -> bool {
    let start = World::new(roles, 1, closes, 0);
    assert!(search(start.clone(), &wiring).is_ok());
    search(start, &Wiring { fault, ..wiring }).is_err()
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
    let was_full = Wiring {
        wake_writer: WakeWriter::WasFull,
        ..newest(2)
    };
    let roles = [Reader(4), Writer(6)];
    assert!(is_found(Fault::StaleRule, was_full, &roles, false));
}

#[test]
fn the_search_finds_a_sleeper_that_did_not_look_again() {
    let roles = [Reader(1), Writer(1)];
    assert!(is_found(Fault::NoSecondLook, newest(1), &roles, false));
}

#[test]
fn the_search_finds_the_wake_up_that_half_alone_loses() {
    let half = Wiring {
        wake_writer: WakeWriter::Half,
        ..newest(2)
    };
    let roles = [Reader(2), Writer(6)];
    assert!(is_found(Fault::HalfAlone, half, &roles, false));
}

#[test]
fn the_search_finds_a_last_close_that_wakes_nobody() {
    let roles = [Reader(2), Reader(1), Writer(1)];
    assert!(is_found(Fault::SilentClose, newest(1), &roles, true));
}
