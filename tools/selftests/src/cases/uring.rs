// SPDX-License-Identifier: GPL-2.0
//! io_uring: requests on a pipe wait without a thread of the kernel's, and splice through one.

use rustix::io::Errno;

use crate::case::{Area, Case};
use crate::child::skip;
use crate::end::{CAPACITY, PAGE, fill, queued, read, read_exact, write};
use crate::subject::{Pipe, Subject};
use crate::transfer::ends;
use crate::uring::{Op, Request, Uring, workers};

/// Cases about io_uring.
pub const AREA: Area = Area {
    name: "uring",
    cases: &[
        Case::every(
            "a read of what is there is done at once, without a worker",
            read_at_once,
        ),
        Case::fifo(
            "a read of what is in a FIFO is done at once, without a worker",
            read_at_once,
        ),
        Case::every(
            "a read of an empty pipe waits for data, without a worker",
            read_waits,
        ),
        Case::every(
            "the end of the stream needs no worker, unless nowait=0",
            end_of_stream,
        ),
        Case::every(
            "a write to a full pipe waits for room, without a worker",
            write_waits,
        ),
        Case::every(
            "a waiting read can be cancelled and takes nothing",
            cancelled,
        ),
        Case::every("a poll is answered when there is data, once", polled),
        Case::every(
            "a poll for good is answered for each new data",
            polled_again,
        ),
        Case::every("a splice goes in and out", spliced),
        Case::fifo("a splice goes in and out of a FIFO", spliced),
    ],
};

fn ring() -> Uring {
    match Uring::new() {
        Ok(ring) => ring,
        Err(Errno::NOSYS | Errno::PERM) => skip("no io_uring here"),
        Err(error) => panic!("io_uring_setup: {error}"),
    }
}

fn read_at_once(subject: &Subject) {
    let Pipe { read: r, write: w } = ends(subject);
    let mut ring = ring();
    let mut memory = [0; 100];
    write(&w, b"here").unwrap();
    ring.submit(Request::on(Op::Read, &r).with_memory(memory.as_mut_ptr(), 100));
    assert_eq!(ring.wait().result(), Ok(4));
    assert_eq!(memory[..4], *b"here");
    assert_eq!(workers(), 0);
}

fn read_waits(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let mut ring = ring();
    let mut memory = [0; 100];
    for _ in 0..3 {
        ring.submit(Request::on(Op::Read, &r).with_memory(memory.as_mut_ptr(), 100));
        assert_eq!(ring.completed(), None);
        write(&w, b"at last").unwrap();
        assert_eq!(ring.wait().result(), Ok(7));
        assert_eq!(memory[..7], *b"at last");
    }
    assert_eq!(workers(), 0);
}

// Without leave to ask by a call that does not wait, the kernel asks by poll. At the end of a stream
// there is nothing to be read by that.
fn end_of_stream(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let mut ring = ring();
    let mut memory = [0; 100];
    ring.submit(Request::on(Op::Read, &r).with_memory(memory.as_mut_ptr(), 100));
    drop(w);
    assert_eq!(ring.wait().result(), Ok(0));
    assert_eq!(workers() > 0, !subject.config().nowait);
}

fn write_waits(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let mut ring = ring();
    let mut memory = [b'w'; PAGE];
    fill(&w, PAGE);
    ring.submit(Request::on(Op::Write, &w).with_memory(memory.as_mut_ptr(), PAGE));
    assert_eq!(ring.completed(), None);
    read_exact(&r, PAGE);
    assert_eq!(ring.wait().result(), Ok(PAGE));
    read_exact(&r, CAPACITY - PAGE);
    assert_eq!(read_exact(&r, PAGE), memory);
    assert_eq!(workers(), 0);
}

fn cancelled(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let mut ring = ring();
    let mut memory = [0; 100];
    ring.submit(Request::on(Op::Read, &r).with_memory(memory.as_mut_ptr(), 100));
    ring.submit(Request::of(Op::Read));
    let both = [ring.wait(), ring.wait()];
    let result = |op| {
        let found = both.iter().find(|completion| completion.answers(op));
        found.expect("an answer to each").result()
    };
    assert_eq!(result(Op::Cancel), Ok(0));
    assert_eq!(result(Op::Read), Err(Errno::CANCELED));
    write(&w, b"stays").unwrap();
    assert_eq!(read(&r, 100).as_deref(), Ok(&b"stays"[..]));
}

fn polled(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let mut ring = ring();
    let input = libc::POLLIN as u32;
    ring.submit(Request::on(Op::Poll, &r).with_events(input, false));
    assert_eq!(ring.completed(), None);
    write(&w, b"x").unwrap();
    assert_eq!(ring.wait().result(), Ok(libc::POLLIN as usize));
    write(&w, b"x").unwrap();
    ring.submit(Request::on(Op::Poll, &r).with_events(input, false));
    assert_eq!(ring.wait().result(), Ok(libc::POLLIN as usize));
    read(&r, 2).unwrap();
    ring.submit(Request::on(Op::Poll, &r).with_events(input, false));
    drop(w);
    assert_eq!(ring.wait().result(), Ok(libc::POLLHUP as usize));
    assert_eq!(workers(), 0);
}

fn polled_again(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let mut ring = ring();
    ring.submit(Request::on(Op::Poll, &r).with_events(libc::POLLIN as u32, true));
    for _ in 0..5 {
        write(&w, b"x").unwrap();
        assert_eq!(ring.wait().result(), Ok(libc::POLLIN as usize));
        assert_eq!(read(&r, 100).as_deref(), Ok(&b"x"[..]));
        assert_eq!(ring.completed(), None);
    }
}

fn spliced(subject: &Subject) {
    let ours = ends(subject);
    let native = Subject::Native.pipe();
    let mut ring = ring();
    for (from, to) in [(&ours, &native), (&native, &ours)] {
        write(&from.write, b"by a worker").unwrap();
        ring.submit(Request::on(Op::Splice, &to.write).with_source(&from.read, 100));
        assert_eq!(ring.wait().result(), Ok(11));
        assert_eq!(read(&to.read, 100).as_deref(), Ok(&b"by a worker"[..]));
        // One that waits.
        ring.submit(Request::on(Op::Splice, &to.write).with_source(&from.read, 100));
        write(&from.write, b"later").unwrap();
        assert_eq!(ring.wait().result(), Ok(5));
        assert_eq!(read(&to.read, 100).as_deref(), Ok(&b"later"[..]));
        assert_eq!(queued(&from.read), 0);
    }
}
