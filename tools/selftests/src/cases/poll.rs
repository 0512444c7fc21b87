// SPDX-License-Identifier: GPL-2.0
//! poll(2): the bits and the wake-ups.

use std::sync::Barrier;
use std::thread::scope;

use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::case::{Area, Case};
use crate::end::{PAGE, fill, poll_now, poll_wait, read, read_exact, set_nonblocking, write};
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
        Case::every(
            "a read that frees a slot wakes whoever polls for room",
            read_wakes,
        ),
        Case::long(
            "one byte wakes all of 50 pollers and 49 of their reads are EAGAIN",
            pollers_are_not_exclusive,
        ),
        Case::every(
            "a poller before a blocked reader does not take its wake-up",
            poller_and_reader,
        ),
        Case::every(
            "after the last writer has gone POLLHUP is set, asked for or not",
            writers_gone,
        ),
        Case::every(
            "after the last reader has gone POLLERR is set, with POLLOUT only where there is room",
            readers_gone,
        ),
        Case::every(
            "the last writer's close wakes a poller that asked for nothing",
            writer_close_wakes,
        ),
        Case::every(
            "the last reader's close wakes a poller for room",
            reader_close_wakes,
        ),
    ],
};

const READABLE: PollFlags = PollFlags::IN.union(PollFlags::RDNORM);
const WRITABLE: PollFlags = PollFlags::OUT.union(PollFlags::WRNORM);
const ALL: PollFlags = READABLE.union(WRITABLE);

fn empty(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    assert_eq!(poll_now(&r, ALL), PollFlags::empty());
    assert_eq!(poll_now(&w, ALL), WRITABLE);
}

fn readable(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    write(&w, b"x").unwrap();
    assert_eq!(poll_now(&r, ALL), READABLE);
    assert_eq!(poll_now(&w, ALL), WRITABLE);
    read_exact(&r, 1);
    assert_eq!(poll_now(&r, ALL), PollFlags::empty());
}

fn full(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    fill(&w, PAGE);
    assert_eq!(poll_now(&w, ALL), PollFlags::empty());
    read_exact(&r, PAGE - 1);
    assert_eq!(
        poll_now(&w, ALL),
        PollFlags::empty(),
        "one byte still holds the slot"
    );
    read_exact(&r, 1);
    assert_eq!(poll_now(&w, ALL), WRITABLE);
}

fn write_wakes(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    scope(|s| {
        let poller = Task::asleep_in(s, Call::Poll, &r, || poll_wait(&r, PollFlags::IN));
        write(&w, b"x").unwrap();
        assert_eq!(poller.join(), PollFlags::IN);
    });
}

fn read_wakes(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    fill(&w, PAGE);
    scope(|s| {
        let poller = Task::asleep_in(s, Call::Poll, &w, || poll_wait(&w, PollFlags::OUT));
        read_exact(&r, PAGE);
        assert_eq!(poller.join(), PollFlags::OUT);
    });
}

// Nobody reads before all are out of poll, so a poller that was not woken stays asleep for ever.
fn pollers_are_not_exclusive(subject: &Subject) {
    const POLLERS: usize = 50;
    let Pipe { read: r, write: w } = subject.pipe();
    set_nonblocking(&r, true);
    let all_awake = Barrier::new(POLLERS);
    scope(|s| {
        let pollers: Vec<_> = (0..POLLERS)
            .map(|_| {
                Task::spawn(s, || {
                    assert_eq!(poll_wait(&r, PollFlags::IN), PollFlags::IN);
                    all_awake.wait();
                    read(&r, 64)
                })
            })
            .collect();
        for poller in &pollers {
            poller.watched().until_asleep(Call::Poll, &r);
        }
        write(&w, b"x").unwrap();
        let results: Vec<_> = pollers.into_iter().map(Task::join).collect();
        assert_eq!(
            results
                .iter()
                .filter(|result| result.as_deref() == Ok(b"x"))
                .count(),
            1
        );
        assert_eq!(
            results
                .iter()
                .filter(|result| **result == Err(Errno::AGAIN))
                .count(),
            POLLERS - 1
        );
    });
}

fn poller_and_reader(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    scope(|s| {
        let before = Task::asleep_in(s, Call::Poll, &r, || poll_wait(&r, PollFlags::HUP));
        let reader = Task::asleep_in(s, Call::Read, &r, || read(&r, 64));
        let after = Task::asleep_in(s, Call::Poll, &r, || poll_wait(&r, PollFlags::HUP));
        write(&w, b"x").unwrap();
        assert_eq!(reader.join().as_deref(), Ok(&b"x"[..]));
        drop(w);
        assert_eq!(
            (before.join(), after.join()),
            (PollFlags::HUP, PollFlags::HUP)
        );
    });
}

fn writers_gone(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    write(&w, b"x").unwrap();
    drop(w);
    assert_eq!(poll_now(&r, ALL), READABLE | PollFlags::HUP);
    assert_eq!(poll_now(&r, PollFlags::empty()), PollFlags::HUP);
    read_exact(&r, 1);
    assert_eq!(poll_now(&r, ALL), PollFlags::HUP);
    assert_eq!(poll_now(&r, PollFlags::empty()), PollFlags::HUP);
}

fn readers_gone(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    drop(r);
    assert_eq!(poll_now(&w, PollFlags::empty()), PollFlags::ERR);
    assert_eq!(poll_now(&w, ALL), WRITABLE | PollFlags::ERR);
    let Pipe { read: r, write: w } = subject.pipe();
    fill(&w, PAGE);
    drop(r);
    assert_eq!(poll_now(&w, ALL), PollFlags::ERR);
}

fn writer_close_wakes(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    scope(|s| {
        let poller = Task::asleep_in(s, Call::Poll, &r, || poll_wait(&r, PollFlags::empty()));
        drop(w);
        assert_eq!(poller.join(), PollFlags::HUP);
    });
}

fn reader_close_wakes(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    fill(&w, PAGE);
    scope(|s| {
        let poller = Task::asleep_in(s, Call::Poll, &w, || poll_wait(&w, PollFlags::OUT));
        drop(r);
        assert_eq!(poller.join(), PollFlags::ERR);
    });
}
