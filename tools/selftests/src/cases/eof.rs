// SPDX-License-Identifier: GPL-2.0
//! The end of a stream on either side: end of file, EPIPE, SIGPIPE.

use std::io::IoSlice;
use std::thread::scope;

use rustix::io::{Errno, ReadWriteFlags, dup, pwritev2};
use rustix::thread::gettid;

use crate::case::{Area, Case};
use crate::child::skip;
use crate::end::{AT_POSITION, CAPACITY, PAGE, fill, read, write};
use crate::process::Process;
use crate::signal::{self, Interrupted};
use crate::subject::{Pipe, Subject};
use crate::task::{Call, Task};

/// Cases about closing ends.
pub const AREA: Area = Area {
    name: "eof",
    cases: &[
        Case::every(
            "after the last writer has gone a read drains the data, then returns 0",
            drain_then_eof,
        ),
        Case::every(
            "the end comes with the last of several write descriptors",
            last_descriptor,
        ),
        Case::every(
            "a writer in another process keeps the stream open",
            writer_elsewhere,
        ),
        Case::every(
            "the last writer's close wakes every blocked reader with 0",
            close_wakes_readers,
        ),
        Case::every(
            "the last reader's close wakes every blocked writer with EPIPE and SIGPIPE",
            close_wakes_writers,
        ),
        Case::every(
            "a write without readers is EPIPE, with data in the pipe or without",
            write_without_readers,
        ),
        Case::every(
            "a write without readers raises SIGPIPE once in the thread that wrote",
            sigpipe_in_writer,
        ),
        Case::every(
            "SIGPIPE ends a process that does not handle it",
            sigpipe_kills,
        ),
        Case::every(
            "a write cut short by the last reader's close returns its count and raises SIGPIPE",
            cut_short,
        ),
        Case::every("RWF_NOSIGNAL leaves EPIPE without SIGPIPE", no_signal),
    ],
};

fn drain_then_eof(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    write(&w, b"last words").unwrap();
    drop(w);
    assert_eq!(read(&r, 4).as_deref(), Ok(&b"last"[..]));
    assert_eq!(read(&r, 64).as_deref(), Ok(&b" words"[..]));
    assert_eq!(read(&r, 64).as_deref(), Ok(&b""[..]));
    assert_eq!(
        read(&r, 64).as_deref(),
        Ok(&b""[..]),
        "the end stays the end"
    );
}

fn last_descriptor(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let second = dup(&w).unwrap();
    drop(w);
    scope(|s| {
        let reader = Task::asleep_in(s, Call::Read, &r, || read(&r, 64));
        drop(second);
        assert_eq!(reader.join().as_deref(), Ok(&b""[..]));
    });
}

fn writer_elsewhere(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let Pipe {
        read: go,
        write: tell,
    } = subject.pipe();
    let other = Process::fork(|| {
        assert_eq!(read(&go, 1).as_deref(), Ok(&b"g"[..]));
        write(&w, b"from the child").unwrap();
    });
    drop(w);
    write(&tell, b"g").unwrap();
    assert_eq!(read(&r, 64).as_deref(), Ok(&b"from the child"[..]));
    assert_eq!(read(&r, 64).as_deref(), Ok(&b""[..]));
    other.succeed();
}

fn close_wakes_readers(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    scope(|s| {
        let readers: Vec<_> = (0..8)
            .map(|_| Task::asleep_in(s, Call::Read, &r, || read(&r, 64)))
            .collect();
        drop(w);
        for reader in readers {
            assert_eq!(reader.join().as_deref(), Ok(&b""[..]));
        }
    });
}

fn close_wakes_writers(subject: &Subject) {
    signal::count(libc::SIGPIPE, Interrupted::Restarts);
    let Pipe { read: r, write: w } = subject.pipe();
    fill(&w, PAGE);
    scope(|s| {
        let writers: Vec<_> = (0..8)
            .map(|_| Task::asleep_in(s, Call::Write, &w, || write(&w, b"x")))
            .collect();
        drop(r);
        for writer in writers {
            assert_eq!(writer.join(), Err(Errno::PIPE));
        }
    });
    assert_eq!(signal::handled(), 8);
}

fn write_without_readers(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    drop(r);
    assert_eq!(write(&w, b"x"), Err(Errno::PIPE));
    let Pipe { read: r, write: w } = subject.pipe();
    write(&w, b"x").unwrap();
    drop(r);
    assert_eq!(write(&w, b"x"), Err(Errno::PIPE));
    assert_eq!(write(&w, &[b'x'; 2 * CAPACITY]), Err(Errno::PIPE));
}

fn sigpipe_in_writer(subject: &Subject) {
    signal::count(libc::SIGPIPE, Interrupted::Restarts);
    let Pipe { read: r, write: w } = subject.pipe();
    drop(r);
    scope(|s| {
        let writer = Task::spawn(s, || {
            assert_eq!(write(&w, b"x"), Err(Errno::PIPE));
            assert_eq!(signal::handled_by(), gettid().as_raw_nonzero().get());
        });
        writer.join();
    });
    assert_eq!(signal::handled(), 1);
}

fn sigpipe_kills(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    drop(r);
    let status = Process::fork(|| {
        signal::set_default(libc::SIGPIPE);
        let _ = write(&w, b"x");
    })
    .wait();
    assert_eq!(status.terminating_signal(), Some(libc::SIGPIPE));
}

fn cut_short(subject: &Subject) {
    signal::count(libc::SIGPIPE, Interrupted::Restarts);
    let Pipe { read: r, write: w } = subject.pipe();
    scope(|s| {
        let writer = Task::asleep_in(s, Call::Write, &w, || write(&w, &[b'x'; 2 * CAPACITY]));
        drop(r);
        assert_eq!(writer.join(), Ok(CAPACITY));
    });
    assert_eq!(signal::handled(), 1);
}

fn no_signal(subject: &Subject) {
    // RWF_NOSIGNAL, which the library does not name yet.
    const NO_SIGNAL: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x100);
    signal::count(libc::SIGPIPE, Interrupted::Restarts);
    let Pipe { read: r, write: w } = subject.pipe();
    drop(r);
    match pwritev2(&w, &[IoSlice::new(b"x")], AT_POSITION, NO_SIGNAL) {
        Err(Errno::OPNOTSUPP) if matches!(subject, Subject::Native) => {
            skip("this kernel has no RWF_NOSIGNAL")
        }
        result => assert_eq!(result, Err(Errno::PIPE)),
    }
    assert_eq!(signal::handled(), 0);
    assert_eq!(write(&w, b"x"), Err(Errno::PIPE));
    assert_eq!(signal::handled(), 1);
}
