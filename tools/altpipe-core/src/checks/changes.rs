// SPDX-License-Identifier: GPL-2.0

//! No sleeper is forgotten by a change of the knobs of a live pipe, nor by a resize.

use super::plan::Plan;
use super::search::search;
use super::sleepers::{wirings_of_presets, WAYS_TO_WAIT};
use super::task::Role::{self, BadWriter, PollIn, PollOut, Reader, Writer};
use super::world::World;
use crate::config::{Config, Publish, WakeReader, WakeWriter};

/// What decides where, and for what, a task sleeps: the ways to wait and whether readers hold out
/// for more.
fn places(base: Config) -> Vec<Config> {
    let mut all = Vec::new();
    for (exclusive, split_wait) in WAYS_TO_WAIT {
        for read_merge in [false, true] {
            all.push(Config {
                exclusive,
                split_wait,
                read_merge,
                ..base
            });
        }
    }
    all
}

/// Searches the worlds of `roles` under `plan`, with ends that stay open and, unless `open`, with ends
/// that the tasks close. Returns how many there are.
fn nobody_is_forgotten(plan: &Plan, roles: &[Role], open: bool, signals: u8) -> usize {
    let ends: &[bool] = if open { &[false] } else { &[false, true] };
    let mut worlds = 0;
    for &closes in ends {
        match search(World::new(roles, 1, closes, signals), plan) {
            Ok(count) => worlds += count,
            Err(way) => panic!("{roles:?}, ends closed: {closes}, {plan:#?}\n{way}"),
        }
    }
    worlds
}

/// Searches the worlds of `roles` under each change from one of `configs` to another, and back; those
/// of more than two tasks with the smallest ring and ends that stay open alone.
fn no_change_forgets_a_sleeper(configs: &[Config], roles: &[Role], signals: u8) {
    let is_crowd = roles.len() > 2;
    let limits: &[u32] = if is_crowd { &[1] } else { &[1, 2] };
    let mut worlds = 0;
    for from in configs {
        for to in configs.iter().filter(|to| *to != from) {
            for &limit in limits {
                let plan = Plan {
                    configs: [*from, *to],
                    flips: 2,
                    ..Plan::new(*from, limit)
                };
                worlds += nobody_is_forgotten(&plan, roles, is_crowd, signals);
            }
        }
    }
    println!("{worlds} worlds of {roles:?} under changes of knobs");
}

#[test]
fn sleepers_while_the_place_to_sleep_changes() {
    let places = places(Config::DEFAULT);
    no_change_forgets_a_sleeper(&places, &[Reader(4), Writer(6)], 1);
    no_change_forgets_a_sleeper(&places, &[Reader(1), Reader(1), Writer(2)], 0);
    no_change_forgets_a_sleeper(&places, &[Reader(4), Writer(2), Writer(2)], 0);
}

#[test]
fn pollers_while_the_place_to_sleep_changes() {
    let places = places(Config::DEFAULT);
    no_change_forgets_a_sleeper(&places, &[Reader(1), PollIn, Writer(1)], 0);
    no_change_forgets_a_sleeper(&places, &[Reader(4), PollOut, Writer(2)], 0);
}

#[test]
fn empty_slots_while_the_place_to_sleep_changes() {
    let in_sight = Config {
        publish: Publish::BeforeCopy,
        ..Config::DEFAULT
    };
    no_change_forgets_a_sleeper(&places(in_sight), &[Reader(4), BadWriter, Writer(2)], 0);
}

#[test]
fn sleepers_while_the_rules_for_waking_change() {
    let by_reader = WakeReader::ALL.iter().map(|&wake_reader| Config {
        wake_reader,
        ..Config::DEFAULT
    });
    let by_writer = WakeWriter::ALL.iter().map(|&wake_writer| Config {
        wake_writer,
        ..Config::DEFAULT
    });
    let rules: Vec<_> = by_reader.chain(by_writer).collect();
    no_change_forgets_a_sleeper(&rules, &[Reader(4), Writer(6)], 0);
}

#[test]
fn sleepers_while_presets_change() {
    no_change_forgets_a_sleeper(&wirings_of_presets(), &[Reader(4), Writer(6)], 0);
}

/// Searches the worlds of `roles` in a ring that grows and shrinks, as each preset wires it.
fn no_resize_forgets_a_sleeper(roles: &[Role], signals: u8) {
    let mut worlds = 0;
    for config in wirings_of_presets() {
        for limits in [[1, 2], [2, 1]] {
            let plan = Plan {
                limits,
                resizes: 2,
                ..Plan::new(config, 1)
            };
            worlds += nobody_is_forgotten(&plan, roles, roles.len() > 2, signals);
        }
    }
    println!("{worlds} worlds of {roles:?} under resizes");
}

#[test]
fn sleepers_while_the_ring_grows_and_shrinks() {
    no_resize_forgets_a_sleeper(&[Reader(4), Writer(6)], 1);
    no_resize_forgets_a_sleeper(&[Reader(4), Writer(2), Writer(4)], 0);
    no_resize_forgets_a_sleeper(&[Reader(4), PollOut, Writer(6)], 0);
}
