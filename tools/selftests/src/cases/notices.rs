// SPDX-License-Identifier: GPL-2.0
//! Notices sent to those who asked for them: SIGIO and inotify.

use std::os::fd::AsRawFd;

use altpipe_core::config::FasyncRule;
use altpipe_uapi::{Stats, get_stats};
use rustix::fd::AsFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::case::{Area, Case};
use crate::end::{PAGE, checked, fill, number, read, write};
use crate::signal::{self, Interrupted};
use crate::subject::{Pipe, Subject};

/// Cases about notices.
pub const AREA: Area = Area {
    name: "notices",
    cases: &[
        Case::every(
            "a reader with O_ASYNC gets a signal for every write, or for every wake-up where fasync says so",
            every_write,
        ),
        Case::every(
            "a writer with O_ASYNC gets a signal for every read, or for every wake-up where fasync says so",
            every_read,
        ),
        Case::every(
            "the last writer's close is a signal to readers with O_ASYNC",
            close_of_writer,
        ),
        Case::every(
            "no signal comes once O_ASYNC is cleared or its descriptor closed",
            no_longer_asked,
        ),
        Case::every(
            "inotify on an end's link reports reads and writes",
            inotify_events,
        ),
    ],
};

// A real-time signal queues, so each notice is counted.
fn ask(end: impl AsFd) {
    let signal = libc::SIGRTMIN();
    signal::count(signal, Interrupted::Restarts);
    // SAFETY: fcntl with integers touches no memory of ours.
    unsafe {
        checked(libc::fcntl(number(&end), libc::F_SETOWN, libc::getpid()) as isize)
            .expect("F_SETOWN");
        checked(libc::fcntl(number(&end), F_SETSIG, signal) as isize).expect("F_SETSIG");
    }
    fcntl_setfl(
        &end,
        fcntl_getfl(&end).unwrap() | OFlags::from_bits_retain(libc::O_ASYNC as u32),
    )
    .expect("O_ASYNC");
}

// From asm-generic/fcntl.h; the library does not name it.
const F_SETSIG: i32 = 10;

// The signals due when `io` reads or writes are done: one for each, or, as before 5.14, for each
// wake-up sent.
fn due(subject: &Subject, pipe: &Pipe, io: usize, wakes: fn(&Stats) -> u64) -> usize {
    match subject.config().fasync {
        FasyncRule::EveryIo => io,
        FasyncRule::WithWake => wakes(&get_stats(&pipe.read).expect("GET_STATS")) as usize,
    }
}

fn every_write(subject: &Subject) {
    let pipe = subject.pipe();
    ask(&pipe.read);
    for count in 1..=10 {
        write(&pipe.write, b"x").unwrap();
        // The signal is for the caller itself, which takes it on its way out of the call.
        assert_eq!(
            signal::handled(),
            due(subject, &pipe, count, |stats| stats.reader_notifies)
        );
    }
    let before = signal::handled();
    read(&pipe.read, 5).unwrap();
    assert_eq!(signal::handled(), before);
}

fn every_read(subject: &Subject) {
    let pipe = subject.pipe();
    fill(&pipe.write, PAGE);
    ask(&pipe.write);
    for count in 1..=10 {
        read(&pipe.read, if count == 5 { PAGE } else { 1 }).unwrap();
        assert_eq!(
            signal::handled(),
            due(subject, &pipe, count, |stats| stats.writer_notifies)
        );
    }
}

fn close_of_writer(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    ask(&r);
    drop(w);
    assert_eq!(signal::handled(), 1);
}

fn no_longer_asked(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    ask(&r);
    fcntl_setfl(&r, OFlags::empty()).unwrap();
    write(&w, b"x").unwrap();
    assert_eq!(signal::handled(), 0);
    ask(&w);
    drop(w);
    drop(r);
    let Pipe { read: r, write: w } = subject.pipe();
    write(&w, b"x").unwrap();
    read(&r, 1).unwrap();
    assert_eq!(signal::handled(), 0);
}

fn inotify_events(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).unwrap();
    let link = format!("/proc/self/fd/{}", r.as_raw_fd());
    inotify::add_watch(&watch, link, WatchFlags::ACCESS | WatchFlags::MODIFY).unwrap();
    let mut buffer = [std::mem::MaybeUninit::uninit(); 512];
    let mut seen = || {
        let mut reader = inotify::Reader::new(&watch, &mut buffer);
        let mut all = ReadFlags::empty();
        while let Ok(event) = reader.next() {
            all |= event.events();
        }
        all
    };
    write(&w, b"x").unwrap();
    assert_eq!(seen(), ReadFlags::MODIFY);
    read(&r, 1).unwrap();
    assert_eq!(seen(), ReadFlags::ACCESS);
}
