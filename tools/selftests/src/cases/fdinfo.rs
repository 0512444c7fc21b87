// SPDX-License-Identifier: GPL-2.0
//! What fdinfo tells of a pipe, however it was opened.

use std::os::fd::OwnedFd;
use std::thread::scope;

use altpipe_uapi::get_config;

use crate::case::{Area, Case};
use crate::end::{CAPACITY, PAGE, fill, read, write};
use crate::fdinfo::{field, number};
use crate::subject::Pipe;
use crate::task::{Call, Task};

/// Cases about `/proc/self/fdinfo`.
pub const AREA: Area = Area {
    name: "fdinfo",
    cases: &[
        Case::altpipe(
            "both ends tell the pipe's config, contents and counts",
            |subject| {
                let Pipe { read, write } = subject.pipe();
                tells(&read, &write);
            },
        ),
        Case::fifo_device(
            "a file tells the device's config, contents and counts",
            |subject| {
                let fifo = subject.fifo();
                let read = fifo.try_reader();
                tells(&read, &fifo.open_writer().unwrap());
            },
        ),
        Case::altpipe("it tells how many sleep, readers and writers", |subject| {
            let Pipe { read, write } = subject.pipe();
            counts_sleepers(&read, &write);
        }),
        Case::fifo_device("it tells how many sleep in a device", |subject| {
            let fifo = subject.fifo();
            let read = fifo.open_both();
            counts_sleepers(&read, &fifo.open_writer().unwrap());
        }),
    ],
};

fn tells(r: &OwnedFd, w: &OwnedFd) {
    let contents = |end: &OwnedFd| (number(end, "slots"), number(end, "bytes"));
    assert_eq!(contents(w), (0, 0));
    write(w, &[b'x'; PAGE + 1]).unwrap();
    for end in [r, w] {
        assert_eq!(contents(end), (2, PAGE as u64 + 1));
        assert_eq!(number(end, "capacity"), CAPACITY as u64);
        assert_eq!((number(end, "readers"), number(end, "writers")), (1, 1));
        assert_eq!(number(end, "sleepers"), 0);
        assert_eq!(field(end, "config"), get_config(end).unwrap());
    }
    read(r, PAGE).unwrap();
    assert_eq!(contents(r), (1, 1));
}

fn counts_sleepers(r: &OwnedFd, w: &OwnedFd) {
    // A task that is seen asleep has queued itself, and one that has ended has not.
    let assert_asleep = |end: &OwnedFd, count| assert_eq!(number(end, "sleepers"), count);
    scope(|s| {
        for _ in 0..3 {
            Task::asleep_in(s, Call::Read, r, || read(r, 1).unwrap());
        }
        assert_asleep(r, 3);
        write(w, b"xyz").unwrap();
    });
    assert_asleep(r, 0);
    fill(w, PAGE);
    scope(|s| {
        Task::asleep_in(s, Call::Write, w, || write(w, b"y").unwrap());
        assert_asleep(w, 1);
        read(r, PAGE).unwrap();
    });
    assert_asleep(w, 0);
}
