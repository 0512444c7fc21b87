// SPDX-License-Identifier: GPL-2.0
//! What the files of a device say and set, and when it takes effect.

use std::io::IoSliceMut;
use std::os::fd::OwnedFd;

use altpipe_core::Config;
use altpipe_uapi::{Stats, get_config};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use super::{file, knobs, value};
use crate::end::{AT_POSITION, CAPACITY, PAGE, fill};
use crate::fdinfo;
use crate::fifo::configure;
use crate::knobs::{Device, active};
use crate::subject::{Subject, values};

fn shown(device: &Device) -> Vec<String> {
    knobs()
        .map(|knob| active(&device.show(&file(knob))).to_string())
        .collect()
}

fn expected(config: &Config) -> Vec<String> {
    knobs().map(|knob| value(knob, config)).collect()
}

pub fn files(subject: &Subject) {
    let _fifo = subject.fifo();
    let device = Device::fifo(0);
    assert_eq!(
        device.files("knobs"),
        knobs().map(|knob| knob.name.to_string()).collect()
    );
    let counters = Stats::NAMES.into_iter().chain(["reset"]);
    assert_eq!(device.files("stats"), counters.map(String::from).collect());
}

pub fn knobs_apart(subject: &Subject) {
    let (_one, _other) = (subject.fifos().fifo(0), subject.fifos().fifo(1));
    let before = shown(&Device::control());
    let mut config = subject.config();
    for knob in knobs() {
        for value in values(knob) {
            Device::fifo(0).store(&file(knob), &value).unwrap();
            assert_eq!(active(&Device::fifo(0).show(&file(knob))), value);
            knob.store(&mut config, &value)
                .map_err(|error| error.to_string())
                .unwrap();
        }
    }
    assert_eq!(shown(&Device::fifo(0)), expected(&config));
    assert_eq!(shown(&Device::fifo(1)), expected(&subject.config()));
    assert_eq!(shown(&Device::control()), before);

    Device::control().store("knobs/times", "atime").unwrap();
    let devices = [0, 1].map(|number| shown(&Device::fifo(number)));
    configure(&Device::control(), &Config::DEFAULT);
    assert_eq!(devices, [expected(&config), expected(&subject.config())]);
}

pub fn knobs_act(subject: &Subject) {
    let fifo = subject.fifo();
    let both = fifo.open_both();
    let mut config = subject.config();
    assert_eq!(get_config(&both).unwrap(), config.to_string());
    for knob in knobs() {
        for value in values(knob) {
            Device::fifo(0).store(&file(knob), &value).unwrap();
            knob.store(&mut config, &value)
                .map_err(|error| error.to_string())
                .unwrap();
            assert_eq!(get_config(&both).unwrap(), config.to_string());
        }
    }
    drop(both);
    // No machine has the memory for the largest.
    Device::fifo(0)
        .store("knobs/capacity", CAPACITY.to_string())
        .unwrap();
    config.capacity = CAPACITY as u32;
    assert_eq!(
        get_config(fifo.open_both()).unwrap(),
        config.to_string(),
        "the last close sets no knob back"
    );
}

pub fn capacity_waits(subject: &Subject) {
    let fifo = subject.fifo();
    let both = fifo.open_both();
    Device::fifo(0)
        .store("knobs/capacity", (2 * PAGE).to_string())
        .unwrap();
    let capacity = |end: &OwnedFd| fdinfo::number(end, "capacity");
    assert_eq!(capacity(&both), CAPACITY as u64);
    let other = fifo.open_both();
    drop(both);
    assert_eq!(capacity(&other), CAPACITY as u64, "not the last close");
    drop(other);
    let both = fifo.open_both();
    assert_eq!(capacity(&both), 2 * PAGE as u64);
    assert_eq!(fill(&both, PAGE), 2 * PAGE);
}

pub fn nowait_waits(subject: &Subject) {
    let fifo = subject.fifo();
    let try_read = |end: &OwnedFd| {
        let mut byte = [0];
        let mut buffers = [IoSliceMut::new(&mut byte)];
        preadv2(end, &mut buffers, AT_POSITION, ReadWriteFlags::NOWAIT)
    };
    let set = |value| Device::fifo(0).store("knobs/nowait", value).unwrap();
    set("1");
    let before = fifo.open_both();
    set("0");
    let after = fifo.open_both();
    assert_eq!(try_read(&before), Err(Errno::AGAIN));
    assert_eq!(try_read(&after), Err(Errno::OPNOTSUPP));
}

pub fn preset(subject: &Subject) {
    let both = subject.fifo().open_both();
    let device = Device::fifo(0);
    let control = Device::control().show("preset");
    device.store("preset", "v5.5").unwrap();
    assert!(device.show("preset").contains("[v5.5]"));
    assert!(get_config(&both).unwrap().starts_with("v5.5"));
    assert_eq!(active(&device.show("knobs/tail_update")), "wait_lock");
    assert_eq!(
        device.store("preset", "v5.5,times=never"),
        Err(Errno::INVAL)
    );
    assert_eq!(Device::control().show("preset"), control);
    device.store("preset", "v7.3").unwrap();
    assert_eq!(get_config(&both).unwrap(), "v7.3");
}

pub fn bad_values(subject: &Subject) {
    let _fifo = subject.fifo();
    for knob in knobs() {
        for text in ["nonsense", "-1", "99999999999"] {
            assert_eq!(
                Device::fifo(0).store(&file(knob), text),
                Err(Errno::INVAL),
                "{}",
                knob.name
            );
        }
    }
    assert_eq!(shown(&Device::fifo(0)), expected(&subject.config()));
}
