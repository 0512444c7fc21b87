// SPDX-License-Identifier: GPL-2.0
//! The knobs and counters of FIFO devices. They act on the live pipe at once, whoever sleeps in it.

use altpipe_core::{Config, KNOBS, Knob};

use crate::case::{Area, Case};

mod effects;
mod files;
mod flips;

/// Cases about `/sys/class/altpipe/altpipeN`.
pub const AREA: Area = Area {
    name: "fifo knobs",
    cases: &[
        Case::fifo_device(
            "there is a file for each knob but block_size, for each counter, and no other",
            files::files,
        ),
        Case::fifo_device(
            "a device's knobs are its own: no other device's, and not the control device's",
            files::knobs_apart,
        ),
        Case::fifo_device(
            "a knob acts on open files at once, as GET_CONFIG tells",
            files::knobs_act,
        ),
        Case::fifo_device(
            "capacity acts at the first open after the last close",
            files::capacity_waits,
        ),
        Case::fifo_device("nowait acts on later opens", files::nowait_waits),
        Case::fifo_device(
            "preset sets and shows all knobs of the device",
            files::preset,
        ),
        Case::fifo_device(
            "a bad value is EINVAL and changes nothing",
            files::bad_values,
        ),
        Case::fifo_device(
            "counters are the device's own and go on from one open to the next",
            effects::counters_apart,
        ),
        Case::fifo_device(
            "a reset starts the device's counters anew and leaves GET_STATS alone",
            effects::reset,
        ),
        Case::fifo_device(
            "a read moves the node's atime and a write its mtime where the times knob says so",
            effects::times,
        ),
        Case::fifo_device(
            "no flip of a knob leaves a reader asleep",
            flips::flips_under_readers,
        ),
        Case::fifo_device(
            "no flip of a knob leaves a writer asleep",
            flips::flips_under_writers,
        ),
        Case::fifo_device(
            "no flip of a knob leaves a poller asleep, by poll or by epoll of either kind",
            flips::flips_under_pollers,
        ),
        Case::fifo_device(
            "a flip does not end a wait: there is still nothing to read",
            flips::flips_end_no_wait,
        ),
        Case::fifo_device(
            "streams run whole and to their end while all knobs flip",
            flips::flips_under_load,
        ),
    ],
};

fn knobs() -> impl Iterator<Item = &'static Knob> {
    KNOBS.iter().filter(|knob| knob.name != "block_size")
}

fn file(knob: &Knob) -> String {
    format!("knobs/{}", knob.name)
}

fn value(knob: &Knob, config: &Config) -> String {
    let mut text = String::new();
    knob.write_value(config, &mut text).unwrap();
    text
}
