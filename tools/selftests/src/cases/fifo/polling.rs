// SPDX-License-Identifier: GPL-2.0
//! What poll(2) reports as writers and readers come and go.

use std::thread::scope;

use rustix::event::PollFlags;

use crate::end::{fill, poll_now, poll_wait, write};
use crate::subject::Subject;
use crate::task::{Call, Task};

pub fn no_early_hangup(subject: &Subject) {
    let fifo = subject.fifo();
    let r = fifo.try_reader();
    for events in [PollFlags::empty(), PollFlags::IN] {
        assert_eq!(poll_now(&r, events), PollFlags::empty());
    }
    let w = fifo.open_writer().unwrap();
    assert_eq!(poll_now(&r, PollFlags::IN), PollFlags::empty());
    drop(w);
    assert_eq!(poll_now(&r, PollFlags::empty()), PollFlags::HUP);
    let w = fifo.open_writer().unwrap();
    assert_eq!(poll_now(&r, PollFlags::IN), PollFlags::empty());
    write(&w, b"x").unwrap();
    drop(w);
    assert_eq!(poll_now(&r, PollFlags::IN), PollFlags::IN | PollFlags::HUP);
}

pub fn no_stale_hangup(subject: &Subject) {
    let fifo = subject.fifo();
    let old = fifo.try_reader();
    drop(fifo.open_writer().unwrap());
    let new = fifo.try_reader();
    let polled = || (poll_now(&old, PollFlags::IN), poll_now(&new, PollFlags::IN));
    assert_eq!(polled(), (PollFlags::HUP, PollFlags::empty()));
    let w = fifo.open_writer().unwrap();
    assert_eq!(polled(), (PollFlags::empty(), PollFlags::empty()));
    drop(w);
    assert_eq!(polled(), (PollFlags::HUP, PollFlags::HUP));
    // A writer that needs no partner counts as well.
    let newer = fifo.try_reader();
    drop(fifo.open_both());
    assert_eq!(poll_now(&newer, PollFlags::IN), PollFlags::HUP);
}

pub fn poller_meets_writer(subject: &Subject) {
    let fifo = subject.fifo();
    let r = fifo.try_reader();
    scope(|s| {
        let poller = Task::asleep_in(s, Call::Poll, &r, || poll_wait(&r, PollFlags::IN));
        let w = fifo.open_writer().unwrap();
        poller.watched().until_asleep(Call::Poll, &r);
        write(&w, b"x").unwrap();
        assert_eq!(poller.join(), PollFlags::IN);
    });
}

pub fn poller_loses_writer(subject: &Subject) {
    let fifo = subject.fifo();
    let r = fifo.try_reader();
    scope(|s| {
        let poller = Task::asleep_in(s, Call::Poll, &r, || poll_wait(&r, PollFlags::IN));
        let w = fifo.open_writer().unwrap();
        let both = fifo.open_both();
        drop(w);
        poller.watched().until_asleep(Call::Poll, &r);
        drop(both);
        assert_eq!(poller.join(), PollFlags::HUP);
    });
}

pub fn writer_polls(subject: &Subject) {
    let fifo = subject.fifo();
    let r = fifo.try_reader();
    let w = fifo.open_writer().unwrap();
    assert_eq!(poll_now(&w, PollFlags::OUT), PollFlags::OUT);
    drop(r);
    assert_eq!(
        poll_now(&w, PollFlags::OUT),
        PollFlags::OUT | PollFlags::ERR
    );
    let r = fifo.open_reader().unwrap();
    assert_eq!(poll_now(&w, PollFlags::OUT), PollFlags::OUT);
    fill(&w, 4096);
    scope(|s| {
        let poller = Task::asleep_in(s, Call::Poll, &w, || poll_wait(&w, PollFlags::OUT));
        drop(r);
        assert_eq!(poller.join(), PollFlags::ERR);
    });
}
