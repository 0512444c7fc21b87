// SPDX-License-Identifier: GPL-2.0
//! O_NONBLOCK, RWF_NOWAIT and the pipe's limits.

use std::io::{IoSlice, IoSliceMut};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::{Errno, ReadWriteFlags, Result, dup, preadv2, pwritev2};
use rustix::pipe::PipeFlags;

use crate::case::{Area, Case};
use crate::child::skip;
use crate::end::{
    AT_POSITION, CAPACITY, PAGE, fill, queued, read, read_exact, set_nonblocking, write,
};
use crate::subject::{Pipe, Subject};

/// Cases about calls that may not sleep.
pub const AREA: Area = Area {
    name: "nonblock",
    cases: &[
        Case::every(
            "a nonblocking read of an empty pipe is EAGAIN with a writer and 0 without",
            empty_read,
        ),
        Case::every(
            "a nonblocking write to a full pipe is EAGAIN and leaves it as it was",
            full_write,
        ),
        Case::every("a new pipe holds 16 pages", capacity),
        Case::every("room comes back page by page", room_by_page),
        Case::every(
            "RWF_NOWAIT reads what is there and is EAGAIN where there is nothing; EOPNOTSUPP with nowait=0",
            nowait_read,
        ),
        Case::every(
            "RWF_NOWAIT writes where there is room and is EAGAIN where there is none; EOPNOTSUPP with nowait=0",
            nowait_write,
        ),
        Case::every("O_NONBLOCK at creation is set on both ends", both_ends),
        Case::every(
            "O_NONBLOCK set on a duplicate holds for its description and not for the other end",
            shared_by_dup,
        ),
    ],
};

fn empty_read(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    set_nonblocking(&r, true);
    assert_eq!(read(&r, 64), Err(Errno::AGAIN));
    drop(w);
    assert_eq!(read(&r, 64).as_deref(), Ok(&b""[..]));
}

fn full_write(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    fill(&w, PAGE);
    set_nonblocking(&w, true);
    assert_eq!(write(&w, b"x"), Err(Errno::AGAIN));
    assert_eq!(write(&w, &[b'x'; 2 * PAGE]), Err(Errno::AGAIN));
    assert_eq!(queued(&r), CAPACITY);
    assert!(read_exact(&r, CAPACITY).iter().all(|&byte| byte == b'f'));
}

fn capacity(subject: &Subject) {
    let Pipe { write: w, read: _r } = subject.pipe();
    assert_eq!(fill(&w, PAGE), CAPACITY);
}

fn room_by_page(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    fill(&w, PAGE);
    set_nonblocking(&w, true);
    assert_eq!(read_exact(&r, PAGE - 1).len(), PAGE - 1);
    assert_eq!(
        write(&w, b"x"),
        Err(Errno::AGAIN),
        "one byte still holds the slot"
    );
    assert_eq!(read_exact(&r, 1).len(), 1);
    assert_eq!(write(&w, &[b'x'; PAGE]), Ok(PAGE));
    assert_eq!(write(&w, b"x"), Err(Errno::AGAIN));
}

// Whether RWF_NOWAIT is known to the subject; `attempt` is the outcome of a call that must not
// wait.
fn knows_nowait(subject: &Subject, attempt: &Result<usize>) -> bool {
    let refused = *attempt == Err(Errno::OPNOTSUPP);
    if matches!(subject, Subject::Native) && refused {
        skip("pipes of kernels before 6.4 have no RWF_NOWAIT");
    }
    assert_eq!(refused, !subject.config().nowait);
    !refused
}

fn nowait_read(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let mut byte = [0];
    let mut now = || {
        preadv2(
            &r,
            &mut [IoSliceMut::new(&mut byte)],
            AT_POSITION,
            ReadWriteFlags::NOWAIT,
        )
    };
    let empty = now();
    if !knows_nowait(subject, &empty) {
        return;
    }
    assert_eq!(empty, Err(Errno::AGAIN));
    write(&w, b"x").unwrap();
    assert_eq!(now(), Ok(1));
    drop(w);
    assert_eq!(now(), Ok(0));
    assert_eq!(byte, *b"x");
}

fn nowait_write(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let now = || {
        pwritev2(
            &w,
            &[IoSlice::new(&[b'x'; PAGE])],
            AT_POSITION,
            ReadWriteFlags::NOWAIT,
        )
    };
    let empty = now();
    if !knows_nowait(subject, &empty) {
        return;
    }
    assert_eq!(empty, Ok(PAGE));
    fill(&w, PAGE);
    assert_eq!(now(), Err(Errno::AGAIN));
    assert_eq!(queued(&r), CAPACITY);
}

fn both_ends(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe_with(PipeFlags::NONBLOCK).unwrap();
    assert!(fcntl_getfl(&r).unwrap().contains(OFlags::NONBLOCK));
    assert!(fcntl_getfl(&w).unwrap().contains(OFlags::NONBLOCK));
    assert_eq!(read(&r, 1), Err(Errno::AGAIN));
    let Pipe { read: r, write: w } = subject.pipe();
    assert!(!fcntl_getfl(&r).unwrap().contains(OFlags::NONBLOCK));
    assert!(!fcntl_getfl(&w).unwrap().contains(OFlags::NONBLOCK));
}

fn shared_by_dup(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    set_nonblocking(dup(&r).unwrap(), true);
    assert!(fcntl_getfl(&r).unwrap().contains(OFlags::NONBLOCK));
    assert_eq!(read(&r, 1), Err(Errno::AGAIN));
    assert!(!fcntl_getfl(&w).unwrap().contains(OFlags::NONBLOCK));
}
