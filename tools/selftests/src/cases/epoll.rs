// SPDX-License-Identifier: GPL-2.0
//! epoll(7), level and edge.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::scope;

use altpipe_core::config::WakeReader;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use crate::case::{Area, Case};
use crate::end::{PAGE, fill, read, read_exact, set_nonblocking, write};
use crate::subject::{Pipe, Subject};
use crate::task::{Call, Task};

/// Cases about epoll(7).
pub const AREA: Area = Area {
    name: "epoll",
    cases: &[
        Case::every(
            "level-triggered input is reported until the pipe is empty",
            level,
        ),
        Case::every("a write wakes whoever waits in epoll_wait", write_wakes),
        Case::every(
            "edge-triggered input is reported once for a write",
            edge_once,
        ),
        Case::every(
            "a second write to undrained data is a second edge, except under was_empty",
            second_edge,
        ),
        Case::every(
            "edge-triggered room is reported when a full pipe gets a free slot",
            edge_of_room,
        ),
        Case::every("the last writer's close is an edge of EPOLLHUP", hang_up),
        Case::every("the last reader's close is an edge of EPOLLERR", no_readers),
        Case::every(
            "a one-shot watch is silent until it is armed again",
            one_shot,
        ),
        Case::long(
            "16 threads in epoll_wait and epoll_ctl on one pipe neither lose a byte nor get stuck",
            many_threads,
        ),
    ],
};

const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};
const TAG: EventData = EventData::new_u64(7);

fn watch(end: &OwnedFd, flags: EventFlags) -> OwnedFd {
    let epoll = epoll::create(CreateFlags::CLOEXEC).expect("epoll_create1");
    epoll::add(&epoll, end, TAG, flags).expect("epoll_ctl");
    epoll
}

fn events(epoll: &OwnedFd, timeout: Option<&Timespec>) -> EventFlags {
    let mut events = Vec::with_capacity(8);
    epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), timeout).expect("epoll_wait");
    assert!(events.len() <= 1, "one watch, one event");
    events
        .first()
        .map_or(EventFlags::empty(), |event| event.flags)
}

fn level(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let epoll = watch(&r, EventFlags::IN);
    assert_eq!(events(&epoll, Some(&NOW)), EventFlags::empty());
    write(&w, b"xy").unwrap();
    assert_eq!(events(&epoll, Some(&NOW)), EventFlags::IN);
    read_exact(&r, 1);
    assert_eq!(events(&epoll, Some(&NOW)), EventFlags::IN);
    read_exact(&r, 1);
    assert_eq!(events(&epoll, Some(&NOW)), EventFlags::empty());
}

fn write_wakes(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let epoll = watch(&r, EventFlags::IN);
    scope(|s| {
        let waiter = Task::asleep_in(s, Call::EpollWait, &epoll, || events(&epoll, None));
        write(&w, b"x").unwrap();
        assert_eq!(waiter.join(), EventFlags::IN);
    });
}

fn edge_once(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let epoll = watch(&r, EventFlags::IN | EventFlags::ET);
    write(&w, b"xyz").unwrap();
    assert_eq!(events(&epoll, Some(&NOW)), EventFlags::IN);
    assert_eq!(events(&epoll, Some(&NOW)), EventFlags::empty());
    read_exact(&r, 1);
    assert_eq!(
        events(&epoll, Some(&NOW)),
        EventFlags::empty(),
        "a read is no edge of input"
    );
    read_exact(&r, 2);
    write(&w, b"x").unwrap();
    assert_eq!(events(&epoll, Some(&NOW)), EventFlags::IN);
}

// Programs on Android relied on it (realm-core). The releases between 5.5 and 5.13 had lost it.
fn second_edge(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let epoll = watch(&r, EventFlags::IN | EventFlags::ET);
    write(&w, b"x").unwrap();
    assert_eq!(events(&epoll, Some(&NOW)), EventFlags::IN);
    write(&w, b"y").unwrap();
    let second = if subject.config().wake_reader == WakeReader::WasEmpty {
        EventFlags::empty()
    } else {
        EventFlags::IN
    };
    assert_eq!(events(&epoll, Some(&NOW)), second);
}

fn edge_of_room(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    fill(&w, PAGE);
    let epoll = watch(&w, EventFlags::OUT | EventFlags::ET);
    assert_eq!(events(&epoll, Some(&NOW)), EventFlags::empty());
    read_exact(&r, PAGE);
    assert_eq!(events(&epoll, Some(&NOW)), EventFlags::OUT);
    assert_eq!(events(&epoll, Some(&NOW)), EventFlags::empty());
    fill(&w, PAGE);
    read_exact(&r, PAGE);
    assert_eq!(events(&epoll, Some(&NOW)), EventFlags::OUT);
}

fn hang_up(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let epoll = watch(&r, EventFlags::IN | EventFlags::ET);
    scope(|s| {
        let waiter = Task::asleep_in(s, Call::EpollWait, &epoll, || events(&epoll, None));
        drop(w);
        assert_eq!(waiter.join(), EventFlags::HUP);
    });
    assert_eq!(events(&epoll, Some(&NOW)), EventFlags::empty());
}

fn no_readers(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    fill(&w, PAGE);
    let epoll = watch(&w, EventFlags::OUT | EventFlags::ET);
    scope(|s| {
        let waiter = Task::asleep_in(s, Call::EpollWait, &epoll, || events(&epoll, None));
        drop(r);
        assert_eq!(waiter.join(), EventFlags::ERR);
    });
}

fn one_shot(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let epoll = watch(&r, EventFlags::IN | EventFlags::ONESHOT);
    write(&w, b"x").unwrap();
    assert_eq!(events(&epoll, Some(&NOW)), EventFlags::IN);
    write(&w, b"y").unwrap();
    assert_eq!(events(&epoll, Some(&NOW)), EventFlags::empty());
    epoll::modify(&epoll, &r, TAG, EventFlags::IN | EventFlags::ONESHOT).unwrap();
    assert_eq!(events(&epoll, Some(&NOW)), EventFlags::IN);
}

// Level and edge watches come and go while others wait, read and write. Each waiter leaves at the
// end of the stream.
fn many_threads(subject: &Subject) {
    const WRITES: usize = 600;
    let Pipe { read: r, write: w } = subject.pipe();
    set_nonblocking(&r, true);
    let epoll = watch(&r, EventFlags::IN);
    let received = AtomicUsize::new(0);
    scope(|s| {
        let waiters: Vec<_> = (0..8)
            .map(|_| {
                Task::spawn(s, || {
                    loop {
                        events(&epoll, None);
                        match read(&r, 100) {
                            Ok(data) if data.is_empty() => return,
                            Ok(data) => _ = received.fetch_add(data.len(), Ordering::Relaxed),
                            Err(error) => assert_eq!(error, Errno::AGAIN),
                        }
                    }
                })
            })
            .collect();
        for flags in [EventFlags::IN, EventFlags::IN | EventFlags::ET] {
            for _ in 0..3 {
                let r = &r;
                Task::spawn(s, move || {
                    for _ in 0..WRITES {
                        let other = watch(r, flags);
                        events(&other, Some(&NOW));
                        epoll::delete(&other, r).unwrap();
                    }
                });
            }
        }
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let w = w.try_clone().expect("dup");
                Task::spawn(s, move || {
                    for _ in 0..WRITES {
                        assert_eq!(write(&w, &[b'x'; 50]), Ok(50));
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(Task::join);
        drop(w);
        waiters.into_iter().for_each(Task::join);
    });
    assert_eq!(received.into_inner(), 2 * WRITES * 50);
}
