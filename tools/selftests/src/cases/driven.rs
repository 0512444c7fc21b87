// SPDX-License-Identifier: GPL-2.0
//! Streams whose sides sleep in poll or epoll alone, as event loops do. One lost event is a hang.

use std::os::fd::OwnedFd;
use std::thread::scope;

use rustix::event::PollFlags;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use crate::case::{Area, Case};
use crate::end::{CAPACITY, PAGE, poll_wait, queued, read, write};
use crate::subject::{Pipe, Subject};
use crate::task::Task;

/// Cases about event loops.
pub const AREA: Area = Area {
    name: "driven",
    cases: &[
        Case::every(
            "a stream gets through whose sides sleep in poll alone",
            by_poll,
        ),
        Case::every(
            "a stream gets through whose sides wait for edges and go on until EAGAIN",
            by_edges_until_again,
        ),
        Case::every(
            "a stream gets through whose reader waits for an edge after each short read",
            by_edges_until_short,
        ),
    ],
};

const TOTAL: usize = 6 * CAPACITY + 123;

fn nonblocking_pipe(subject: &Subject) -> Pipe {
    subject
        .pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
        .expect("make a pipe")
}

fn watch(end: &OwnedFd, flags: EventFlags) -> OwnedFd {
    let epoll = epoll::create(CreateFlags::CLOEXEC).expect("epoll_create1");
    epoll::add(&epoll, end, EventData::new_u64(0), flags | EventFlags::ET).expect("epoll_ctl");
    epoll
}

fn await_edge(epoll: &OwnedFd) {
    let mut events = Vec::with_capacity(1);
    epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), None).expect("epoll_wait");
}

// Writes all of it; `wait` sleeps until there may be room again.
fn write_all(end: &OwnedFd, piece: usize, wait: impl Fn()) {
    let mut left = TOTAL;
    while left > 0 {
        match write(end, &vec![b'x'; piece.min(left)]) {
            Ok(count) => left -= count,
            Err(error) => {
                assert_eq!(error, Errno::AGAIN);
                wait();
            }
        }
    }
}

// Reads until the end of the stream; `wait` sleeps until there may be data again.
fn read_all(end: &OwnedFd, piece: usize, wait: impl Fn()) {
    let mut got = 0;
    loop {
        match read(end, piece) {
            Ok(data) if data.is_empty() => break,
            Ok(data) => got += data.len(),
            Err(error) => {
                assert_eq!(error, Errno::AGAIN);
                wait();
            }
        }
    }
    assert_eq!(got, TOTAL);
}

fn by_poll(subject: &Subject) {
    for (write_piece, read_piece) in [(PAGE, 100), (100, PAGE), (3 * PAGE, 5 * PAGE + 1)] {
        let Pipe { read: r, write: w } = nonblocking_pipe(subject);
        scope(|s| {
            Task::spawn(s, move || {
                write_all(&w, write_piece, || _ = poll_wait(&w, PollFlags::OUT))
            });
            read_all(&r, read_piece, || _ = poll_wait(&r, PollFlags::IN));
        });
        assert_eq!(queued(&r), 0);
    }
}

fn by_edges_until_again(subject: &Subject) {
    for (write_piece, read_piece) in [(PAGE, PAGE), (100, 7 * PAGE), (2 * CAPACITY, 1000)] {
        let Pipe { read: r, write: w } = nonblocking_pipe(subject);
        let (room, data) = (watch(&w, EventFlags::OUT), watch(&r, EventFlags::IN));
        scope(|s| {
            Task::spawn(s, move || write_all(&w, write_piece, || await_edge(&room)));
            read_all(&r, read_piece, || await_edge(&data));
        });
    }
}

// The way of edge-triggered runtimes: less than asked for means empty, so no read is spent to hear
// EAGAIN. Between such a read and the wait the writer finds an empty pipe, and its write must be an
// edge.
fn by_edges_until_short(subject: &Subject) {
    for (write_piece, read_piece) in [(PAGE, 3 * PAGE), (700, 1000), (CAPACITY, CAPACITY)] {
        let Pipe { read: r, write: w } = nonblocking_pipe(subject);
        let data = watch(&r, EventFlags::IN);
        scope(|s| {
            Task::spawn(s, move || {
                write_all(&w, write_piece, || _ = poll_wait(&w, PollFlags::OUT))
            });
            let mut got = 0;
            while got < TOTAL {
                await_edge(&data);
                loop {
                    match read(&r, read_piece) {
                        Ok(part) => {
                            got += part.len();
                            if part.len() < read_piece {
                                break;
                            }
                        }
                        Err(error) => {
                            assert_eq!(error, Errno::AGAIN);
                            break;
                        }
                    }
                }
            }
        });
        assert_eq!(read(&r, 1).as_deref(), Ok(&b""[..]));
    }
}
