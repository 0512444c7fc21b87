// SPDX-License-Identifier: GPL-2.0
//! Writes of at most PIPE_BUF bytes are all or nothing and contiguous.

use std::io::IoSlice;
use std::thread::scope;

use rustix::event::PollFlags;
use rustix::io::{Errno, Result};

use crate::case::{Area, Case};
use crate::end::{
    CAPACITY, PAGE, fill, poll_wait, queued, read, read_exact, set_nonblocking, write,
};
use crate::record::{Ledger, Record};
use crate::subject::{Pipe, Subject};
use crate::task::Task;

/// Cases about PIPE_BUF.
pub const AREA: Area = Area {
    name: "atomicity",
    cases: &[
        Case::every(
            "a nonblocking write of 511 bytes is taken whole or refused",
            whole_or_refused,
        ),
        Case::every(
            "a nonblocking write which the last page cannot hold is refused, not split",
            not_split,
        ),
        Case::every(
            "a nonblocking write above PIPE_BUF takes the pages that are free",
            partial_above,
        ),
        Case::long(
            "records of up to PIPE_BUF from several blocking writers stay whole",
            blocking_writers,
        ),
        Case::long(
            "records of PIPE_BUF from several nonblocking writers stay whole",
            nonblocking_writers,
        ),
        Case::long(
            "a record given to writev in pieces stays whole",
            writev_writers,
        ),
    ],
};

const WRITERS: u16 = 4;

fn whole_or_refused(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    set_nonblocking(&w, true);
    // Eight fit a page; the rest of the page stays unused.
    let in_page = if subject.config().merge { 8 } else { 1 };
    for number in 0..16 * in_page {
        assert_eq!(write(&w, &[b'x'; 511]), Ok(511), "write {number}");
    }
    assert_eq!(write(&w, &[b'x'; 511]), Err(Errno::AGAIN));
    read_exact(&r, in_page * 511 - 1);
    assert_eq!(write(&w, &[b'x'; 511]), Err(Errno::AGAIN));
    read_exact(&r, 1);
    assert_eq!(write(&w, &[b'x'; 511]), Ok(511));
}

fn not_split(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    set_nonblocking(&w, true);
    assert_eq!(write(&w, &vec![b'x'; CAPACITY - 100]), Ok(CAPACITY - 100));
    assert_eq!(write(&w, &[b'y'; 101]), Err(Errno::AGAIN));
    assert_eq!(queued(&r), CAPACITY - 100);
    if !subject.config().merge {
        assert_eq!(write(&w, &[b'z'; 100]), Err(Errno::AGAIN));
        return;
    }
    assert_eq!(write(&w, &[b'z'; 100]), Ok(100));
    let got = read_exact(&r, CAPACITY);
    assert_eq!(&got[CAPACITY - 101..], [&b"x"[..], &[b'z'; 100]].concat());
}

fn partial_above(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    fill(&w, PAGE);
    read_exact(&r, 2 * PAGE);
    set_nonblocking(&w, true);
    assert_eq!(write(&w, &[b'x'; 3 * PAGE]), Ok(2 * PAGE));
    assert_eq!(queued(&r), CAPACITY);
}

// Drives several writers against one reader. `send` writes a record and says whether it went in.
fn contend(
    subject: &Subject,
    each: u32,
    len: fn(u32) -> u16,
    nonblocking: bool,
    send: fn(&Pipe, &[u8]) -> Result<usize>,
) {
    let pipe = &subject.pipe();
    set_nonblocking(&pipe.write, nonblocking);
    let mut ledger = Ledger::new(WRITERS.into());
    let lens = (0..WRITERS).flat_map(|writer| {
        (0..each).map(move |number| usize::from(len(number + u32::from(writer))))
    });
    let mut left: usize = lens.sum();
    scope(|s| {
        for writer in 0..WRITERS {
            Task::spawn(s, move || {
                for number in 0..each {
                    let record = Record {
                        writer,
                        len: len(number + u32::from(writer)),
                        number,
                    };
                    let bytes = record.bytes();
                    while let Err(error) =
                        send(pipe, &bytes).map(|count| assert_eq!(count, bytes.len(), "torn write"))
                    {
                        assert_eq!(error, Errno::AGAIN);
                        poll_wait(&pipe.write, PollFlags::OUT);
                    }
                }
            });
        }
        let mut stream = Vec::new();
        while left > 0 {
            let part = read(&pipe.read, 5000).unwrap();
            left -= part.len();
            stream.extend_from_slice(&part);
            ledger.enter_all(&mut stream);
        }
        assert!(stream.is_empty());
    });
    ledger.assert_complete(each);
}

fn plain(pipe: &Pipe, bytes: &[u8]) -> Result<usize> {
    write(&pipe.write, bytes)
}

fn blocking_writers(subject: &Subject) {
    contend(
        subject,
        60,
        |number| [4096, 8, 3000, 1500, 4095, 100][number as usize % 6],
        false,
        plain,
    );
}

fn nonblocking_writers(subject: &Subject) {
    contend(subject, 40, |_| 4096, true, plain);
}

fn writev_writers(subject: &Subject) {
    contend(
        subject,
        40,
        |number| [4096, 2000, 900][number as usize % 3],
        false,
        |pipe, bytes| {
            let parts: Vec<_> = bytes.chunks(512).map(IoSlice::new).collect();
            rustix::io::writev(&pipe.write, &parts)
        },
    );
}
