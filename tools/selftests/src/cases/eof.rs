// SPDX-License-Identifier: GPL-2.0
//! The end of a stream on either side: end of file, EPIPE, SIGPIPE.

use std::thread::scope;

use rustix::io::{Errno, dup};

use crate::case::{Area, Case};
use crate::end::{read, write};
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
            "the last writer's close wakes every blocked reader with 0",
            close_wakes_readers,
        ),
        Case::every("a write without readers is EPIPE", write_without_readers),
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

fn write_without_readers(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    write(&w, b"x").unwrap();
    drop(r);
    assert_eq!(write(&w, b"x"), Err(Errno::PIPE));
    assert_eq!(write(&w, b"x"), Err(Errno::PIPE));
}
