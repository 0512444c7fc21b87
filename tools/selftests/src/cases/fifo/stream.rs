// SPDX-License-Identifier: GPL-2.0
//! The stream from the first open to the last close, as writers and readers come and go.

use std::thread::scope;

use rustix::event::PollFlags;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::end::{fill, poll_now, queued, read, read_exact, set_nonblocking, write};
use crate::signal::{self, Interrupted};
use crate::subject::Subject;
use crate::task::{Call, Task};

pub fn discard(subject: &Subject) {
    let fifo = subject.fifo();
    for _ in 0..3 {
        let both = fifo.open_both();
        assert_eq!(queued(&both), 0);
        assert_ne!(fill(&both, 1000), 0);
    }
    let r = fifo.try_reader();
    assert_eq!(read(&r, 64).as_deref(), Ok(&b""[..]));
    assert_eq!(poll_now(&r, PollFlags::IN), PollFlags::empty());
}

pub fn kept_while_open(subject: &Subject) {
    let fifo = subject.fifo();
    let r = fifo.try_reader();
    let w = fifo.open_writer().unwrap();
    write(&w, b"abc").unwrap();
    drop(w);
    assert_eq!(queued(&r), 3);
    let other = fifo.try_reader();
    drop(r);
    assert_eq!(read(&other, 1).as_deref(), Ok(&b"a"[..]));
    let w = fifo.open_writer().unwrap();
    drop(other);
    // The writer alone keeps what is left.
    let r = fifo.open_reader().unwrap();
    assert_eq!(read(&r, 64).as_deref(), Ok(&b"bc"[..]));
    drop(w);
}

pub fn writer_returns(subject: &Subject) {
    let fifo = subject.fifo();
    let r = fifo.try_reader();
    set_nonblocking(&r, false);
    for text in [&b"first"[..], b"second", b"third"] {
        let w = fifo.open_writer().unwrap();
        scope(|s| {
            let reader = Task::asleep_in(s, Call::Read, &r, || read(&r, 64));
            write(&w, text).unwrap();
            assert_eq!(reader.join().as_deref(), Ok(text));
        });
        drop(w);
        assert_eq!(read(&r, 64).as_deref(), Ok(&b""[..]));
    }
}

pub fn reader_returns(subject: &Subject) {
    let fifo = subject.fifo();
    signal::count(libc::SIGPIPE, Interrupted::Restarts);
    let r = fifo.try_reader();
    let w = fifo.open_writer().unwrap();
    write(&w, b"abc").unwrap();
    drop(r);
    assert_eq!(write(&w, b"lost"), Err(Errno::PIPE));
    let r = fifo.open_reader().unwrap();
    assert_eq!(write(&w, b"def"), Ok(3));
    assert_eq!(read_exact(&r, 6), b"abcdef");
}

pub fn no_position(subject: &Subject) {
    let both = subject.fifo().open_both();
    write(&both, b"abc").unwrap();
    assert_eq!(seek(&both, SeekFrom::Start(0)), Err(Errno::SPIPE));
    assert_eq!(
        rustix::io::pread(&both, &mut [0; 3], 0).err(),
        Some(Errno::SPIPE)
    );
    assert_eq!(rustix::io::pwrite(&both, b"x", 0).err(), Some(Errno::SPIPE));
    assert_eq!(queued(&both), 3);
}
