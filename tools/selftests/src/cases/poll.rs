// SPDX-License-Identifier: GPL-2.0
//! poll(2): the bits and the wake-ups.

use std::thread::scope;

use rustix::event::PollFlags;

use crate::case::{Area, Case};
use crate::end::{PAGE, fill, poll_now, poll_wait, read_exact, write};
use crate::subject::{Pipe, Subject};
use crate::task::{Call, Task};

/// Cases about poll(2).
pub const AREA: Area = Area {
    name: "poll",
    cases: &[
        Case::every("an empty pipe can be written and not read", empty),
        Case::every("a pipe with data can be read", readable),
        Case::every("a full pipe can be written once a whole slot is free", full),
        Case::every("a write wakes whoever polls for input", write_wakes),
    ],
};

const READABLE: PollFlags = PollFlags::IN.union(PollFlags::RDNORM);
const WRITABLE: PollFlags = PollFlags::OUT.union(PollFlags::WRNORM);

fn empty(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    assert_eq!(poll_now(&r, READABLE.union(WRITABLE)), PollFlags::empty());
    assert_eq!(poll_now(&w, READABLE.union(WRITABLE)), WRITABLE);
}

fn readable(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    write(&w, b"x").unwrap();
    assert_eq!(poll_now(&r, READABLE.union(WRITABLE)), READABLE);
    assert_eq!(poll_now(&w, READABLE.union(WRITABLE)), WRITABLE);
    read_exact(&r, 1);
    assert_eq!(poll_now(&r, READABLE), PollFlags::empty());
}

fn full(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    fill(&w, PAGE);
    assert_eq!(poll_now(&w, WRITABLE), PollFlags::empty());
    read_exact(&r, PAGE - 1);
    assert_eq!(
        poll_now(&w, WRITABLE),
        PollFlags::empty(),
        "one byte still holds the slot"
    );
    read_exact(&r, 1);
    assert_eq!(poll_now(&w, WRITABLE), WRITABLE);
}

fn write_wakes(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    scope(|s| {
        let poller = Task::asleep_in(s, Call::Poll, &r, || poll_wait(&r, PollFlags::IN));
        write(&w, b"x").unwrap();
        assert_eq!(poller.join(), PollFlags::IN);
    });
}
