// SPDX-License-Identifier: GPL-2.0
//! Who owns a pipe, who may open it again, and who hears of what is done to it.

use std::os::fd::AsRawFd;
use std::ptr;

use rustix::fs::{
    Gid, Mode, OFlags, Timespec, Timestamps, Uid, fchmod, fchown, fcntl_getfl, fcntl_setfl, fstat,
    futimens, openat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::inode::{reopen, stats};
use crate::case::{Area, Case};
use crate::child::skip;
use crate::end::{checked, queued, read, write};
use crate::process::Process;
use crate::subject::{Pipe, Subject};

/// Cases about owners and modes.
pub const AREA: Area = Area {
    name: "access",
    cases: &[
        Case::every("fchown holds for both ends, and only root may", chown),
        Case::every(
            "fchmod and fchown move the change time alone, utimensat what it is told",
            stamps,
        ),
        Case::every(
            "the mode says who may reopen an end through /proc",
            reopen_needs_permission,
        ),
        Case::every(
            "O_DIRECT is EINVAL as an end is reopened; set later, it holds for that file alone",
            reopen_for_packets,
        ),
        Case::every(
            "fanotify takes a mark, is asked for no permission and told of nothing",
            fanotify,
        ),
    ],
};

fn chown(subject: &Subject) {
    if !geteuid().is_root() {
        skip("only root may give a file away");
    }
    let pipe = subject.pipe();
    fchown(&pipe.write, Some(Uid::from_raw(7)), Some(Gid::from_raw(8))).unwrap();
    let (r, w) = stats(&pipe);
    assert_eq!((r.st_uid, r.st_gid, w.st_uid, w.st_gid), (7, 8, 7, 8));
    Process::fork(|| {
        as_nobody();
        let refused = fchown(&pipe.write, Some(Uid::from_raw(NOBODY)), None);
        assert_eq!(refused, Err(Errno::PERM));
        assert_eq!(fchmod(&pipe.write, Mode::RUSR), Err(Errno::PERM));
        // The ends are open, whoever owns the inode.
        write(&pipe.write, b"x").unwrap();
        assert_eq!(read(&pipe.read, 1).as_deref(), Ok(&b"x"[..]));
        // And who makes a pipe owns it.
        if let Subject::Native = subject {
            let own = subject.pipe();
            fchmod(&own.read, Mode::RUSR).unwrap();
        }
    })
    .succeed();
}

const NOBODY: u32 = 65_534;

// Gives up all privileges of the process, which must be of one thread.
fn as_nobody() {
    // SAFETY: touches no memory.
    let ret = unsafe {
        libc::setgroups(0, ptr::null())
            | libc::setresgid(NOBODY, NOBODY, NOBODY)
            | libc::setresuid(NOBODY, NOBODY, NOBODY)
    };
    assert_eq!(ret, 0, "become nobody");
}

fn stamps(subject: &Subject) {
    let pipe = subject.pipe();
    let times = |pipe: &Pipe| {
        let stat = fstat(&pipe.read).unwrap();
        [
            (stat.st_atime, stat.st_atime_nsec),
            (stat.st_mtime, stat.st_mtime_nsec),
            (stat.st_ctime, stat.st_ctime_nsec),
        ]
    };
    let told = Timestamps {
        last_access: Timespec {
            tv_sec: 1_000,
            tv_nsec: 5,
        },
        last_modification: Timespec {
            tv_sec: 2_000,
            tv_nsec: 6,
        },
    };
    let born = times(&pipe);
    assert_eq!(born[0], born[1]);
    assert_eq!(born[0], born[2]);
    futimens(&pipe.write, &told).unwrap();
    let set = times(&pipe);
    assert_eq!(set[..2], [(1_000, 5), (2_000, 6)]);
    assert!(set[2] >= born[2]);
    // A tick of the clock that stamps are taken from.
    std::thread::sleep(std::time::Duration::from_millis(20));
    fchmod(&pipe.write, Mode::RUSR).unwrap();
    let changed = times(&pipe);
    assert_eq!(changed[..2], set[..2]);
    assert!(changed[2] > set[2]);
}

fn reopen_needs_permission(subject: &Subject) {
    if !geteuid().is_root() {
        skip("only root can become another user");
    }
    let pipe = subject.pipe();
    let try_all = |expected: [bool; 3]| {
        // Who gives up privileges needs /proc to trust him with his own descriptors.
        Process::fork(|| {
            as_nobody();
            // SAFETY: no pointers.
            unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) };
            let flags = [OFlags::RDONLY, OFlags::WRONLY, OFlags::RDWR];
            for (flags, expected) in flags.into_iter().zip(expected) {
                let link = format!("/proc/self/fd/{}", pipe.read.as_raw_fd());
                let opened = openat(
                    rustix::fs::CWD,
                    link,
                    flags | OFlags::NONBLOCK | OFlags::CLOEXEC,
                    Mode::empty(),
                );
                let expected = if expected { Ok(()) } else { Err(Errno::ACCESS) };
                assert_eq!(opened.map(drop), expected, "{flags:?}");
            }
        })
        .succeed();
    };
    try_all([false; 3]);
    fchmod(&pipe.read, Mode::RUSR | Mode::ROTH).unwrap();
    try_all([true, false, false]);
    fchmod(&pipe.read, Mode::RUSR | Mode::WOTH).unwrap();
    try_all([false, true, false]);
    fchown(
        &pipe.read,
        Some(Uid::from_raw(NOBODY)),
        Some(Gid::from_raw(NOBODY)),
    )
    .unwrap();
    try_all([true, false, false]);
    fchmod(&pipe.read, Mode::RUSR | Mode::WUSR).unwrap();
    try_all([true; 3]);
}

fn reopen_for_packets(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let refused = openat(
        rustix::fs::CWD,
        format!("/proc/self/fd/{}", r.as_raw_fd()),
        OFlags::WRONLY | OFlags::DIRECT,
        Mode::empty(),
    );
    assert_eq!(refused.map(drop), Err(Errno::INVAL));
    let packets = reopen(&r, OFlags::WRONLY);
    fcntl_setfl(&packets, OFlags::DIRECT).unwrap();
    assert!(!fcntl_getfl(&w).unwrap().contains(OFlags::DIRECT));
    write(&packets, b"one").unwrap();
    write(&packets, b"two").unwrap();
    assert_eq!(read(&r, 100).as_deref(), Ok(&b"one"[..]));
    assert_eq!(read(&r, 1).as_deref(), Ok(&b"t"[..]));
    write(&w, b"a").unwrap();
    write(&w, b"b").unwrap();
    assert_eq!(read(&r, 100).as_deref(), Ok(&b"ab"[..]));
    assert_eq!(queued(&r), 0);
}

// A group that asks for permissions and never gives one would stop every read.
fn fanotify(subject: &Subject) {
    const CLASS_CONTENT: u32 = 4;
    const NONBLOCK: u32 = 2;
    let Pipe { read: r, write: w } = subject.pipe();
    // SAFETY: no pointers.
    let group = unsafe { libc::fanotify_init(CLASS_CONTENT | NONBLOCK, 0) };
    if group < 0 {
        skip("no fanotify here");
    }
    let link = std::ffi::CString::new(format!("/proc/self/fd/{}", r.as_raw_fd())).unwrap();
    let mask = libc::FAN_ACCESS_PERM | libc::FAN_ACCESS | libc::FAN_MODIFY;
    // SAFETY: the name outlives the call.
    let marked = unsafe {
        libc::fanotify_mark(
            group,
            libc::FAN_MARK_ADD,
            mask,
            libc::AT_FDCWD,
            link.as_ptr(),
        )
    };
    assert_eq!(checked(marked as isize), Ok(0));
    write(&w, b"x").unwrap();
    assert_eq!(read(&r, 1).as_deref(), Ok(&b"x"[..]), "nobody was asked");
    let mut events = [0u8; 4096];
    // SAFETY: the buffer is ours.
    let told = checked(unsafe { libc::read(group, events.as_mut_ptr().cast(), events.len()) });
    assert_eq!(told, Err(Errno::AGAIN), "and nobody told");
}
