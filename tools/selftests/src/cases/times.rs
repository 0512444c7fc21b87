// SPDX-License-Identifier: GPL-2.0
//! Time stamps, as the `times` knob says.
//!
//! The stamps are set far into the past first, so that a move shows without waiting for a clock to
//! tick.

use altpipe_core::config::Times;
use altpipe_uapi::get_stats;
use rustix::fs::{Timespec, Timestamps, fstat, futimens};
use rustix::io::Errno;

use crate::case::{Area, Case};
use crate::end::{PAGE, fill, read, set_nonblocking, write};
use crate::subject::{Pipe, Subject};

/// Cases about atime, mtime and time_updates.
pub const AREA: Area = Area {
    name: "times",
    cases: &[
        Case::altpipe(
            "a read moves atime and a write mtime where the times knob says so",
            stamps,
        ),
        Case::altpipe(
            "time_updates counts each move, freeze_checks each question",
            counted,
        ),
        Case::altpipe("a call that moves no byte moves no stamp", no_byte_no_stamp),
    ],
};

const PAST: i64 = 1_000;

fn age(pipe: &Pipe) {
    let past = Timespec {
        tv_sec: PAST,
        tv_nsec: 0,
    };
    futimens(
        &pipe.read,
        &Timestamps {
            last_access: past,
            last_modification: past,
        },
    )
    .expect("futimens");
    assert_eq!(moved(pipe), (false, false));
}

// Whether atime and mtime have moved since.
fn moved(pipe: &Pipe) -> (bool, bool) {
    let stat = fstat(&pipe.write).expect("fstat");
    (stat.st_atime as i64 != PAST, stat.st_mtime as i64 != PAST)
}

fn touches(subject: &Subject) -> (bool, bool) {
    let times = subject.config().times;
    (
        matches!(times, Times::Atime | Times::Full),
        matches!(times, Times::Mtime | Times::Full),
    )
}

fn stamps(subject: &Subject) {
    let pipe = subject.pipe();
    let (atime, mtime) = touches(subject);
    age(&pipe);
    write(&pipe.write, b"xy").unwrap();
    assert_eq!(moved(&pipe), (false, mtime), "after a write");
    age(&pipe);
    read(&pipe.read, 1).unwrap();
    assert_eq!(moved(&pipe), (atime, false), "after a read");
}

fn counted(subject: &Subject) {
    let pipe = subject.pipe();
    let (atime, mtime) = touches(subject);
    for _ in 0..3 {
        write(&pipe.write, b"xy").unwrap();
        read(&pipe.read, 1).unwrap();
        read(&pipe.read, 1).unwrap();
    }
    let expected = 6 * u64::from(atime) + 3 * u64::from(mtime);
    let asked = subject.config().freeze_check;
    let stats = get_stats(&pipe.read).unwrap();
    assert_eq!(stats.time_updates, expected);
    assert_eq!(stats.freeze_checks, 3 * u64::from(mtime && asked));
}

fn no_byte_no_stamp(subject: &Subject) {
    let pipe = subject.pipe();
    set_nonblocking(&pipe.read, true);
    set_nonblocking(&pipe.write, true);
    age(&pipe);
    assert_eq!(read(&pipe.read, 1), Err(Errno::AGAIN));
    assert_eq!(write(&pipe.write, b""), Ok(0));
    assert_eq!(moved(&pipe), (false, false));
    fill(&pipe.write, PAGE);
    age(&pipe);
    assert_eq!(write(&pipe.write, b"x"), Err(Errno::AGAIN));
    assert_eq!(read(&pipe.read, 0).as_deref(), Ok(&b""[..]));
    assert_eq!(moved(&pipe), (false, false));
}
