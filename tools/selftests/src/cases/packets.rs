// SPDX-License-Identifier: GPL-2.0
//! O_DIRECT: each write a packet of its own.

use std::io::IoSliceMut;

use rustix::event::PollFlags;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use crate::case::{Area, Case};
use crate::end::{PAGE, fill, poll_now, queued, read, set_nonblocking, write};
use crate::subject::{Pipe, Subject};

/// Cases about packets.
pub const AREA: Area = Area {
    name: "packets",
    cases: &[
        Case::every(
            "a read takes one packet, however much room it has",
            one_at_a_time,
        ),
        Case::every("what a read leaves of a packet is gone", rest_is_gone),
        Case::every(
            "a write above PIPE_BUF becomes packets of a page each",
            long_write,
        ),
        Case::every("each packet takes a slot, however small it is", slot_each),
        Case::every("readv takes one packet over all of its buffers", vector),
        Case::every(
            "the flag at creation is set on the write end alone",
            flag_on_write_end,
        ),
        Case::every(
            "the flag holds for each write anew, as F_SETFL leaves it",
            toggled,
        ),
        Case::every(
            "a packet written behind a stream's open page joins it, where writes merge",
            merges_behind_stream,
        ),
    ],
};

fn packet_pipe(subject: &Subject) -> Pipe {
    subject
        .pipe_with(PipeFlags::CLOEXEC | PipeFlags::DIRECT)
        .expect("make a pipe")
}

fn set_direct(pipe: &Pipe, on: bool) {
    let flags = fcntl_getfl(&pipe.write).unwrap();
    fcntl_setfl(
        &pipe.write,
        if on {
            flags | OFlags::DIRECT
        } else {
            flags - OFlags::DIRECT
        },
    )
    .unwrap();
}

fn one_at_a_time(subject: &Subject) {
    let Pipe { read: r, write: w } = packet_pipe(subject);
    write(&w, b"first one.").unwrap();
    write(&w, b"second").unwrap();
    assert_eq!((queued(&r), queued(&w)), (16, 16));
    assert_eq!(read(&r, 100).as_deref(), Ok(&b"first one."[..]));
    assert_eq!(read(&r, 6).as_deref(), Ok(&b"second"[..]));
    assert_eq!(poll_now(&r, PollFlags::IN), PollFlags::empty());
}

fn rest_is_gone(subject: &Subject) {
    let Pipe { read: r, write: w } = packet_pipe(subject);
    write(&w, &[b'x'; 100]).unwrap();
    write(&w, b"next").unwrap();
    assert_eq!(read(&r, 10).unwrap(), [b'x'; 10]);
    assert_eq!(queued(&r), 4);
    assert_eq!(read(&r, 100).as_deref(), Ok(&b"next"[..]));
}

fn long_write(subject: &Subject) {
    let Pipe { read: r, write: w } = packet_pipe(subject);
    assert_eq!(write(&w, &[b'x'; 5000]), Ok(5000));
    assert_eq!(read(&r, 10_000).map(|packet| packet.len()), Ok(PAGE));
    assert_eq!(read(&r, 10_000).map(|packet| packet.len()), Ok(5000 - PAGE));
}

fn slot_each(subject: &Subject) {
    let Pipe { read: r, write: w } = packet_pipe(subject);
    assert_eq!(fill(&w, 3), 16 * 3);
    assert_eq!(read(&r, 1).map(|packet| packet.len()), Ok(1));
    set_nonblocking(&w, true);
    assert_eq!(write(&w, b"y"), Ok(1));
    assert_eq!(write(&w, b"y"), Err(Errno::AGAIN));
}

fn vector(subject: &Subject) {
    let Pipe { read: r, write: w } = packet_pipe(subject);
    write(&w, b"abcde").unwrap();
    write(&w, b"fgh").unwrap();
    let (mut a, mut b) = ([0; 3], [0; 10]);
    let mut buffers = [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b)];
    assert_eq!(rustix::io::readv(&r, &mut buffers), Ok(5));
    assert_eq!((&a, &b[..2]), (b"abc", &b"de"[..]));
}

fn flag_on_write_end(subject: &Subject) {
    let flags = PipeFlags::CLOEXEC | PipeFlags::DIRECT | PipeFlags::NONBLOCK;
    let pipe = subject.pipe_with(flags).unwrap();
    assert_eq!(
        fcntl_getfl(&pipe.read).unwrap(),
        OFlags::RDONLY | OFlags::NONBLOCK
    );
    assert_eq!(
        fcntl_getfl(&pipe.write).unwrap(),
        OFlags::WRONLY | OFlags::NONBLOCK | OFlags::DIRECT
    );
}

fn toggled(subject: &Subject) {
    let pipe = subject.pipe();
    set_direct(&pipe, true);
    write(&pipe.write, b"one").unwrap();
    write(&pipe.write, b"two").unwrap();
    set_direct(&pipe, false);
    write(&pipe.write, b"stream ").unwrap();
    write(&pipe.write, b"again").unwrap();
    assert_eq!(read(&pipe.read, 100).as_deref(), Ok(&b"one"[..]));
    assert_eq!(read(&pipe.read, 100).as_deref(), Ok(&b"two"[..]));
    assert_eq!(read(&pipe.read, 100).as_deref(), Ok(&b"stream again"[..]));
}

// The page knows whether more may go behind its bytes; the flag of the later write does not matter.
fn merges_behind_stream(subject: &Subject) {
    let pipe = subject.pipe();
    write(&pipe.write, b"stream ").unwrap();
    set_direct(&pipe, true);
    write(&pipe.write, b"packet").unwrap();
    assert_eq!(read(&pipe.read, 10).as_deref(), Ok(&b"stream pac"[..]));
    // Without merging it is a packet, and the rest of it is gone.
    assert_eq!(
        queued(&pipe.read),
        if subject.config().merge { 3 } else { 0 }
    );
}
