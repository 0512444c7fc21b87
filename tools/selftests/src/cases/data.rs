// SPDX-License-Identifier: GPL-2.0
//! What goes in comes out: single calls, vectors, merging of small writes.

use std::io::{IoSlice, IoSliceMut};
use std::thread::scope;

use crate::case::{Area, Case};
use crate::end::{CAPACITY, PAGE, fill, queued, read, read_exact, set_nonblocking, write};
use crate::subject::{Pipe, Subject};
use crate::task::{Call, Task};

/// Cases about the bytes themselves.
pub const AREA: Area = Area {
    name: "data",
    cases: &[
        Case::every("a read returns what a write put in", round_trip),
        Case::every(
            "a read takes no more than it asks for and leaves the rest",
            partial_read,
        ),
        Case::every("readv fills its buffers in order", readv_in_order),
        Case::every("writev joins its buffers in order", writev_in_order),
        Case::every(
            "a blocked reader gets what a later write puts in",
            blocked_reader,
        ),
        Case::every(
            "a blocked writer goes on when a read makes room",
            blocked_writer,
        ),
        Case::every(
            "a write larger than the pipe returns its full count",
            oversized_write,
        ),
        Case::every(
            "one read crosses the slots of several writes",
            read_across_slots,
        ),
        Case::every(
            "small writes merge until every page is full, or take a slot each",
            small_writes_merge,
        ),
        Case::every(
            "a write which the last page cannot hold takes a new slot",
            no_split_on_merge,
        ),
        Case::every(
            "the odd part of a long write merges and the rest is page-aligned",
            long_write_aligns,
        ),
        Case::every("a write merges behind a half-read page", merge_behind_read),
        Case::every(
            "a drained slot is filled anew, not appended to",
            no_merge_when_empty,
        ),
    ],
};

fn round_trip(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    assert_eq!(write(&w, b"hello"), Ok(5));
    assert_eq!(read(&r, 64).as_deref(), Ok(&b"hello"[..]));
    assert_eq!(queued(&r), 0);
}

fn partial_read(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    write(&w, b"abcdefghij").unwrap();
    assert_eq!(read(&r, 3).as_deref(), Ok(&b"abc"[..]));
    assert_eq!(queued(&r), 7);
    assert_eq!(read(&r, 3).as_deref(), Ok(&b"def"[..]));
    assert_eq!(read(&r, 64).as_deref(), Ok(&b"ghij"[..]));
}

fn readv_in_order(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    write(&w, b"0123456789").unwrap();
    let (mut a, mut b, mut c) = ([0; 3], [0; 4], [0; 8]);
    let count = rustix::io::readv(
        &r,
        &mut [
            IoSliceMut::new(&mut a),
            IoSliceMut::new(&mut b),
            IoSliceMut::new(&mut c),
        ],
    );
    assert_eq!(count, Ok(10));
    assert_eq!((&a, &b, &c[..3]), (b"012", b"3456", &b"789"[..]));
}

fn writev_in_order(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let long = vec![b'x'; PAGE];
    let count = rustix::io::writev(
        &w,
        &[
            IoSlice::new(b"head"),
            IoSlice::new(&long),
            IoSlice::new(b""),
            IoSlice::new(b"tail"),
        ],
    );
    assert_eq!(count, Ok(PAGE + 8));
    let got = read_exact(&r, PAGE + 8);
    assert_eq!(
        (&got[..4], &got[4..PAGE + 4], &got[PAGE + 4..]),
        (&b"head"[..], &long[..], &b"tail"[..])
    );
}

fn blocked_reader(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    scope(|s| {
        let reader = Task::asleep_in(s, Call::Read, &r, || read(&r, 64));
        write(&w, b"late").unwrap();
        assert_eq!(reader.join().as_deref(), Ok(&b"late"[..]));
    });
}

fn blocked_writer(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    assert_eq!(fill(&w, PAGE), CAPACITY);
    scope(|s| {
        let writer = Task::asleep_in(s, Call::Write, &w, || write(&w, b"late"));
        assert_eq!(read_exact(&r, PAGE).len(), PAGE);
        assert_eq!(writer.join(), Ok(4));
    });
    assert_eq!(queued(&r), CAPACITY - PAGE + 4);
    assert!(
        read_exact(&r, CAPACITY - PAGE)
            .iter()
            .all(|&byte| byte == b'f')
    );
    assert_eq!(read(&r, 64).as_deref(), Ok(&b"late"[..]));
}

fn oversized_write(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let data: Vec<u8> = (0..3 * CAPACITY + 77).map(|at| (at / 7) as u8).collect();
    scope(|s| {
        let writer = Task::asleep_in(s, Call::Write, &w, || write(&w, &data));
        assert_eq!(read_exact(&r, data.len()), data);
        assert_eq!(writer.join(), Ok(data.len()));
    });
    assert_eq!(queued(&r), 0);
}

fn read_across_slots(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    for letter in [b'a', b'b', b'c'] {
        write(&w, &[letter; 3000]).unwrap();
    }
    let got = read(&r, 9000).unwrap();
    assert_eq!(got.len(), 9000);
    assert!(
        got.chunks(3000)
            .zip([b'a', b'b', b'c'])
            .all(|(part, letter)| part.iter().all(|&byte| byte == letter))
    );
}

fn small_writes_merge(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    set_nonblocking(&w, true);
    let room = if subject.config().merge {
        CAPACITY
    } else {
        16 * 64
    };
    for number in 0..(room / 64) as u32 {
        assert_eq!(
            write(&w, &[number.to_le_bytes(); 16].concat()),
            Ok(64),
            "write {number}"
        );
    }
    assert_eq!(write(&w, b"x"), Err(rustix::io::Errno::AGAIN));
    let got = read_exact(&r, room);
    let numbers = got
        .chunks(4)
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    assert!(
        numbers
            .enumerate()
            .all(|(at, number)| number as usize == at / 16)
    );
}

// 2049 bytes do not fit behind 2049 bytes, so each write takes a slot of its own.
fn no_split_on_merge(subject: &Subject) {
    let Pipe { write: w, read: _r } = subject.pipe();
    assert_eq!(fill(&w, PAGE / 2 + 1), 16 * (PAGE / 2 + 1));
}

// 100 bytes, then a page and 200: the 200 go behind the 100 and the page takes the second slot.
// Without merging they take a third.
fn long_write_aligns(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    write(&w, &[b'a'; 100]).unwrap();
    let mut long = vec![b'b'; 200];
    long.extend_from_slice(&[b'c'; PAGE]);
    assert_eq!(write(&w, &long), Ok(PAGE + 200));
    assert_eq!(
        fill(&w, PAGE),
        if subject.config().merge { 14 } else { 13 } * PAGE
    );
    let got = read_exact(&r, PAGE + 300);
    assert_eq!((&got[..100], &got[100..]), (&[b'a'; 100][..], &long[..]));
}

fn merge_behind_read(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    write(&w, b"0123456789").unwrap();
    assert_eq!(read(&r, 5).as_deref(), Ok(&b"01234"[..]));
    write(&w, b"abcdef").unwrap();
    assert_eq!(queued(&r), 11);
    assert_eq!(
        fill(&w, PAGE),
        if subject.config().merge { 15 } else { 14 } * PAGE
    );
    assert_eq!(read(&r, 11).as_deref(), Ok(&b"56789abcdef"[..]));
}

// Were the page of the drained slot still appended to, 4000 + 200 bytes would not fit and 200 bytes
// would be lost or split.
fn no_merge_when_empty(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    write(&w, &[b'a'; 4000]).unwrap();
    assert_eq!(read_exact(&r, 4000).len(), 4000);
    assert_eq!(write(&w, &[b'b'; 96]), Ok(96));
    assert_eq!(write(&w, &[b'c'; 4000]), Ok(4000));
    assert_eq!(
        fill(&w, PAGE),
        if subject.config().merge { 15 } else { 14 } * PAGE
    );
    let got = read_exact(&r, 4096);
    assert_eq!(
        (&got[..96], &got[96..]),
        (&[b'b'; 96][..], &[b'c'; 4000][..])
    );
}
