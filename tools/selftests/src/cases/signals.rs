// SPDX-License-Identifier: GPL-2.0
//! Signals that arrive while a call sleeps.

use std::thread::scope;

use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::case::{Area, Case};
use crate::end::{CAPACITY, PAGE, fill, poll_for, queued, read, read_exact, write};
use crate::signal::{self, Interrupted};
use crate::subject::{Pipe, Subject};
use crate::task::{Call, Task};

/// Cases about signals.
pub const AREA: Area = Area {
    name: "signals",
    cases: &[
        Case::every("a signal ends a blocked read with EINTR", read_interrupted),
        Case::every(
            "a blocked read restarts after a handler with SA_RESTART",
            read_restarts,
        ),
        Case::every(
            "a signal ends a blocked write that has made no progress with EINTR",
            write_interrupted,
        ),
        Case::every(
            "a blocked write restarts after a handler with SA_RESTART",
            write_restarts,
        ),
        Case::every(
            "a signal ends a blocked write that has made progress with its count",
            write_cut_short,
        ),
        Case::every(
            "a signal ends poll with EINTR even under SA_RESTART",
            poll_interrupted,
        ),
        Case::long(
            "a signal to one of two blocked readers never swallows the other's data",
            reader_passes_on,
        ),
        Case::long(
            "a signal to one of two blocked writers never swallows the other's room",
            writer_passes_on,
        ),
        Case::long(
            "a stream under a rain of signals loses nothing and gets stuck nowhere",
            rain,
        ),
    ],
};

const SIGNAL: i32 = libc::SIGUSR1;

fn read_interrupted(subject: &Subject) {
    signal::count(SIGNAL, Interrupted::Fails);
    let Pipe { read: r, write: w } = subject.pipe();
    scope(|s| {
        let reader = Task::asleep_in(s, Call::Read, &r, || read(&r, 64));
        signal::send(SIGNAL, reader.watched());
        assert_eq!(reader.join(), Err(Errno::INTR));
    });
    write(&w, b"x").unwrap();
    assert_eq!(
        read(&r, 64).as_deref(),
        Ok(&b"x"[..]),
        "the pipe goes on as before"
    );
}

fn read_restarts(subject: &Subject) {
    signal::count(SIGNAL, Interrupted::Restarts);
    let Pipe { read: r, write: w } = subject.pipe();
    scope(|s| {
        let reader = Task::asleep_in(s, Call::Read, &r, || read(&r, 64));
        signal::send(SIGNAL, reader.watched());
        while signal::handled() == 0 {
            std::thread::yield_now();
        }
        reader.watched().until_asleep(Call::Read, &r);
        write(&w, b"x").unwrap();
        assert_eq!(reader.join().as_deref(), Ok(&b"x"[..]));
    });
}

fn write_interrupted(subject: &Subject) {
    signal::count(SIGNAL, Interrupted::Fails);
    let Pipe { read: r, write: w } = subject.pipe();
    fill(&w, PAGE);
    scope(|s| {
        let writer = Task::asleep_in(s, Call::Write, &w, || write(&w, b"x"));
        signal::send(SIGNAL, writer.watched());
        assert_eq!(writer.join(), Err(Errno::INTR));
    });
    assert_eq!(queued(&r), CAPACITY);
}

fn write_restarts(subject: &Subject) {
    signal::count(SIGNAL, Interrupted::Restarts);
    let Pipe { read: r, write: w } = subject.pipe();
    fill(&w, PAGE);
    scope(|s| {
        let writer = Task::asleep_in(s, Call::Write, &w, || write(&w, b"x"));
        signal::send(SIGNAL, writer.watched());
        while signal::handled() == 0 {
            std::thread::yield_now();
        }
        writer.watched().until_asleep(Call::Write, &w);
        read_exact(&r, PAGE);
        assert_eq!(writer.join(), Ok(1));
    });
    assert_eq!(queued(&r), CAPACITY - PAGE + 1);
}

// SA_RESTART must not matter here: restarting would write the first part twice.
fn write_cut_short(subject: &Subject) {
    signal::count(SIGNAL, Interrupted::Restarts);
    let Pipe { read: r, write: w } = subject.pipe();
    scope(|s| {
        let writer = Task::asleep_in(s, Call::Write, &w, || write(&w, &[b'x'; CAPACITY + 100]));
        signal::send(SIGNAL, writer.watched());
        // The odd 100 bytes do not go first into an empty pipe, so exactly the pages went in.
        assert_eq!(writer.join(), Ok(CAPACITY));
    });
    assert_eq!(queued(&r), CAPACITY);
}

fn poll_interrupted(subject: &Subject) {
    signal::count(SIGNAL, Interrupted::Restarts);
    let Pipe { read: r, write: _w } = subject.pipe();
    scope(|s| {
        let poller = Task::asleep_in(s, Call::Poll, &r, || poll_for(&r, PollFlags::IN, None));
        signal::send(SIGNAL, poller.watched());
        assert_eq!(poller.join(), Err(Errno::INTR));
    });
}

// The reader that the wake-up reached may leave for the signal at the same moment. If it does not
// pass the wake-up on, the other sleeps on with a byte in the pipe, and the watchdog ends the case.
fn reader_passes_on(subject: &Subject) {
    signal::count(SIGNAL, Interrupted::Fails);
    for round in 0..10 {
        let Pipe { read: r, write: w } = subject.pipe();
        scope(|s| {
            let first = Task::asleep_in(s, Call::Read, &r, || read(&r, 1));
            let second = Task::asleep_in(s, Call::Read, &r, || read(&r, 1));
            let target = first.watched().clone();
            if round % 2 == 0 {
                write(&w, b"1").unwrap();
                signal::send_if_alive(SIGNAL, &target);
            } else {
                signal::send_if_alive(SIGNAL, &target);
                write(&w, b"1").unwrap();
            }
            let first = first.join();
            match &first {
                Ok(data) => assert_eq!(data, b"1"),
                Err(error) => assert_eq!(*error, Errno::INTR),
            }
            if first.is_ok() {
                write(&w, b"2").unwrap();
            }
            let second = second.join().unwrap();
            assert_eq!(second, if first.is_ok() { b"2" } else { b"1" });
        });
    }
}

fn writer_passes_on(subject: &Subject) {
    signal::count(SIGNAL, Interrupted::Fails);
    for round in 0..10 {
        let Pipe { read: r, write: w } = subject.pipe();
        fill(&w, PAGE);
        scope(|s| {
            let first = Task::asleep_in(s, Call::Write, &w, || write(&w, &[b'x'; PAGE]));
            let second = Task::asleep_in(s, Call::Write, &w, || write(&w, &[b'x'; PAGE]));
            let target = first.watched().clone();
            if round % 2 == 0 {
                read_exact(&r, PAGE);
                signal::send_if_alive(SIGNAL, &target);
            } else {
                signal::send_if_alive(SIGNAL, &target);
                read_exact(&r, PAGE);
            }
            let first = first.join();
            if first.is_ok() {
                read_exact(&r, PAGE);
            } else {
                assert_eq!(first, Err(Errno::INTR));
            }
            assert_eq!(second.join(), Ok(PAGE));
        });
    }
}

fn rain(subject: &Subject) {
    const TOTAL: usize = 500_000;
    signal::count(SIGNAL, Interrupted::Fails);
    let Pipe { read: r, write: w } = subject.pipe();
    scope(|s| {
        let writer = Task::spawn(s, || {
            let mut left = TOTAL;
            while left > 0 {
                match write(&w, &vec![b'x'; left.min(9_000)]) {
                    Ok(count) => left -= count,
                    Err(error) => assert_eq!(error, Errno::INTR),
                }
            }
        });
        let reader = Task::spawn(s, || {
            let mut got = 0;
            while got < TOTAL {
                match read(&r, 20_000) {
                    Ok(data) => got += data.len(),
                    Err(error) => assert_eq!(error, Errno::INTR),
                }
            }
        });
        let victims = [writer.watched().clone(), reader.watched().clone()];
        while !(writer.is_finished() && reader.is_finished()) {
            for victim in &victims {
                signal::send_if_alive(SIGNAL, victim);
            }
            std::thread::yield_now();
        }
    });
    assert_eq!(queued(&r), 0);
}
