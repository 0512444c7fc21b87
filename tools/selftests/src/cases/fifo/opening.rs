// SPDX-License-Identifier: GPL-2.0
//! Opening by name: who waits for whom, and what is refused.

use std::thread::{scope, yield_now};

use rustix::event::PollFlags;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;

use super::assert_talks;
use crate::end::{CAPACITY, poll_now, queued, read, read_exact, set_nonblocking, write};
use crate::process::Process;
use crate::signal::{self, Interrupted};
use crate::subject::Subject;
use crate::task::Task;

const SIGNAL: i32 = libc::SIGUSR1;

pub fn reader_waits(subject: &Subject) {
    let fifo = subject.fifo();
    scope(|s| {
        let reader = Task::opening(s, || fifo.open_reader());
        let w = fifo.open_writer().unwrap();
        let r = reader.join().unwrap();
        assert_talks(&w, &r);
        drop(w);
        assert_eq!(read(&r, 64).as_deref(), Ok(&b""[..]));
    });
}

pub fn writer_waits(subject: &Subject) {
    let fifo = subject.fifo();
    scope(|s| {
        let writer = Task::opening(s, || fifo.open_writer());
        let r = fifo.open_reader().unwrap();
        let w = writer.join().unwrap();
        assert_talks(&w, &r);
        drop(r);
        signal::count(libc::SIGPIPE, Interrupted::Restarts);
        assert_eq!(write(&w, b"x"), Err(Errno::PIPE));
        assert_eq!(signal::handled(), 1);
    });
}

pub fn reader_need_not_wait(subject: &Subject) {
    let fifo = subject.fifo();
    let r = fifo.try_reader();
    assert_eq!(read(&r, 64).as_deref(), Ok(&b""[..]));
    set_nonblocking(&r, false);
    assert_eq!(
        read(&r, 64).as_deref(),
        Ok(&b""[..]),
        "without a writer a blocking read does not wait either"
    );
    let w = fifo.open_writer().unwrap();
    set_nonblocking(&r, true);
    assert_eq!(read(&r, 64), Err(Errno::AGAIN));
    assert_talks(&w, &r);
}

pub fn no_reader(subject: &Subject) {
    let fifo = subject.fifo();
    for _ in 0..3 {
        assert_eq!(fifo.try_writer().err(), Some(Errno::NXIO));
    }
    let r = fifo.try_reader();
    assert_eq!(
        read(&r, 64).as_deref(),
        Ok(&b""[..]),
        "a writer that failed to open is none"
    );
    assert_eq!(poll_now(&r, PollFlags::IN), PollFlags::empty());
    let w = fifo.try_writer().unwrap();
    assert_talks(&w, &r);
    drop(r);
    assert_eq!(
        fifo.try_writer().err(),
        Some(Errno::NXIO),
        "another writer is no reader"
    );
}

pub fn waiting_reader_counts(subject: &Subject) {
    let fifo = subject.fifo();
    scope(|s| {
        let reader = Task::opening(s, || fifo.open_reader());
        let w = fifo.try_writer().unwrap();
        assert_talks(&w, reader.join().unwrap());
    });
}

pub fn both_ways(subject: &Subject) {
    let fifo = subject.fifo();
    for flags in [OFlags::empty(), OFlags::NONBLOCK] {
        let both = fifo.open(OFlags::RDWR | flags).unwrap();
        assert_talks(&both, &both);
        assert_eq!(
            poll_now(&both, PollFlags::IN | PollFlags::OUT),
            PollFlags::OUT
        );
        set_nonblocking(&both, true);
        assert_eq!(read(&both, 1), Err(Errno::AGAIN));
        assert_eq!(write(&both, &[b'x'; 2 * CAPACITY]), Ok(CAPACITY));
        assert_eq!(write(&both, b"x"), Err(Errno::AGAIN));
    }
}

pub fn both_is_partner(subject: &Subject) {
    let fifo = subject.fifo();
    scope(|s| {
        let reader = Task::opening(s, || fifo.open_reader());
        let both = fifo.open_both();
        let r = reader.join().unwrap();
        assert_talks(&both, &r);
    });
    scope(|s| {
        let writer = Task::opening(s, || fifo.open_writer());
        let both = fifo.open_both();
        let w = writer.join().unwrap();
        assert_talks(&w, &both);
    });
}

pub fn many_readers_wait(subject: &Subject) {
    let fifo = subject.fifo();
    scope(|s| {
        let readers: Vec<_> = (0..5)
            .map(|_| Task::opening(s, || fifo.open_reader()))
            .collect();
        let w = fifo.open_writer().unwrap();
        let ends: Vec<_> = readers.into_iter().map(|r| r.join().unwrap()).collect();
        for r in &ends {
            assert_talks(&w, r);
        }
    });
}

pub fn many_writers_wait(subject: &Subject) {
    let fifo = subject.fifo();
    scope(|s| {
        let writers: Vec<_> = (0..5)
            .map(|_| Task::opening(s, || fifo.open_writer()))
            .collect();
        let r = fifo.open_reader().unwrap();
        let ends: Vec<_> = writers.into_iter().map(|w| w.join().unwrap()).collect();
        for w in &ends {
            assert_talks(w, &r);
        }
    });
}

pub fn fleeting_writer(subject: &Subject) {
    let fifo = subject.fifo();
    for _ in 0..50 {
        scope(|s| {
            let reader = Task::opening(s, || fifo.open_reader());
            let w = fifo.try_writer().unwrap();
            write(&w, b"gone").unwrap();
            drop(w);
            let r = reader.join().unwrap();
            assert_eq!(read_exact(&r, 64), b"gone");
        });
    }
}

pub fn fleeting_reader(subject: &Subject) {
    let fifo = subject.fifo();
    signal::count(libc::SIGPIPE, Interrupted::Restarts);
    for _ in 0..50 {
        scope(|s| {
            let writer = Task::opening(s, || fifo.open_writer());
            drop(fifo.try_reader());
            let w = writer.join().unwrap();
            assert_eq!(write(&w, b"x"), Err(Errno::PIPE));
        });
    }
}

pub fn reader_interrupted(subject: &Subject) {
    let fifo = subject.fifo();
    signal::count(SIGNAL, Interrupted::Fails);
    scope(|s| {
        let reader = Task::opening(s, || fifo.open_reader());
        signal::send(SIGNAL, reader.watched());
        assert_eq!(reader.join().err(), Some(Errno::INTR));
    });
    assert_eq!(
        fifo.try_writer().err(),
        Some(Errno::NXIO),
        "no reader was left behind"
    );
}

pub fn writer_interrupted(subject: &Subject) {
    let fifo = subject.fifo();
    signal::count(SIGNAL, Interrupted::Fails);
    scope(|s| {
        let writer = Task::opening(s, || fifo.open_writer());
        signal::send(SIGNAL, writer.watched());
        assert_eq!(writer.join().err(), Some(Errno::INTR));
    });
    let r = fifo.try_reader();
    set_nonblocking(&r, false);
    assert_eq!(
        read(&r, 1).as_deref(),
        Ok(&b""[..]),
        "no writer was left behind"
    );
}

pub fn open_restarts(subject: &Subject) {
    let fifo = subject.fifo();
    signal::count(SIGNAL, Interrupted::Restarts);
    scope(|s| {
        let reader = Task::opening(s, || fifo.open_reader());
        for sent in 1..=3 {
            signal::send(SIGNAL, reader.watched());
            while signal::handled() < sent {
                yield_now();
            }
            reader.watched().until_opening();
        }
        let w = fifo.open_writer().unwrap();
        assert_talks(&w, reader.join().unwrap());
    });
}

pub fn killed_opener(subject: &Subject) {
    let fifo = subject.fifo();
    let child = Process::fork(|| drop(fifo.open_reader()));
    child.watched().until_opening();
    child.kill();
    assert_eq!(fifo.try_writer().err(), Some(Errno::NXIO));
}

pub fn packets(subject: &Subject) {
    let fifo = subject.fifo();
    assert_eq!(
        fifo.open(OFlags::RDWR | OFlags::DIRECT).err(),
        Some(Errno::INVAL)
    );
    assert_eq!(
        fifo.try_writer().err(),
        Some(Errno::NXIO),
        "what failed to open is no reader"
    );
    let both = fifo.open_both();
    fcntl_setfl(&both, OFlags::DIRECT).unwrap();
    write(&both, b"0123456789").unwrap();
    write(&both, b"abc").unwrap();
    assert_eq!(read(&both, 4).as_deref(), Ok(&b"0123"[..]));
    assert_eq!(read(&both, 64).as_deref(), Ok(&b"abc"[..]));
}

pub fn no_direction(subject: &Subject) {
    let fifo = subject.fifo();
    assert_eq!(
        fifo.open(OFlags::from_bits_retain(libc::O_ACCMODE as u32))
            .err(),
        Some(Errno::INVAL)
    );
    let path = fifo.open(OFlags::PATH).unwrap();
    assert_eq!(fifo.try_writer().err(), Some(Errno::NXIO));
    let both = fifo.open_both();
    write(&both, b"x").unwrap();
    drop(both);
    assert_eq!(queued(fifo.open_both()), 0, "O_PATH keeps no data");
    drop(path);
}
