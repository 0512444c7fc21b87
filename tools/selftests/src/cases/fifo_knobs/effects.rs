// SPDX-License-Identifier: GPL-2.0
//! A device's counters, and what its knobs do to the node.

use std::os::fd::OwnedFd;

use altpipe_core::Config;
use altpipe_core::config::Times;
use altpipe_uapi::{Stats, get_stats};
use rustix::fs::{Timespec, Timestamps, fstat, futimens};
use rustix::io::Errno;

use crate::end::{read, write};
use crate::fifo::configure;
use crate::knobs::Device;
use crate::subject::Subject;

fn count(number: usize, counter: &str) -> u64 {
    Device::fifo(number)
        .show(&format!("stats/{counter}"))
        .parse()
        .unwrap()
}

pub fn counters_apart(subject: &Subject) {
    let fifo = subject.fifo();
    let control = Device::control().show("stats/writes");
    let before = [0, 1].map(|number| count(number, "writes"));
    for turn in 1..=3 {
        let both = fifo.open_both();
        write(&both, b"abc").unwrap();
        drop(both);
        assert_eq!(count(0, "writes"), before[0] + turn);
    }
    assert_eq!(count(1, "writes"), before[1]);
    assert_eq!(Device::control().show("stats/writes"), control);
}

pub fn reset(subject: &Subject) {
    let both = subject.fifo().open_both();
    write(&both, b"abc").unwrap();
    let before = get_stats(&both).unwrap().bytes_written;
    Device::fifo(0).store("stats/reset", "1").unwrap();
    for name in Stats::NAMES {
        assert_eq!(count(0, name), 0, "{name}");
    }
    assert_eq!(get_stats(&both).unwrap().bytes_written, before);
    write(&both, b"de").unwrap();
    assert_eq!(count(0, "bytes_written"), 2);
    assert_eq!(Device::fifo(0).store("stats/reset", "2"), Err(Errno::INVAL));
}

// Whether atime and mtime of the node have moved over `act`.
fn moved(both: &OwnedFd, act: impl FnOnce()) -> (bool, bool) {
    const PAST: i64 = 1_000;
    let past = Timespec {
        tv_sec: PAST,
        tv_nsec: 0,
    };
    futimens(
        both,
        &Timestamps {
            last_access: past,
            last_modification: past,
        },
    )
    .expect("futimens");
    act();
    let stat = fstat(both).expect("fstat");
    (stat.st_atime as i64 != PAST, stat.st_mtime as i64 != PAST)
}

pub fn times(subject: &Subject) {
    let both = subject.fifo().open_both();
    for &times in Times::ALL {
        let config = Config {
            times,
            ..subject.config()
        };
        configure(&Device::fifo(0), &config);
        let atime = matches!(times, Times::Atime | Times::Full);
        let mtime = matches!(times, Times::Mtime | Times::Full);
        let wrote = moved(&both, || _ = write(&both, b"x").unwrap());
        assert_eq!(wrote, (false, mtime), "{times:?}, after a write");
        let took = moved(&both, || _ = read(&both, 1).unwrap());
        assert_eq!(took, (atime, false), "{times:?}, after a read");
    }
}
