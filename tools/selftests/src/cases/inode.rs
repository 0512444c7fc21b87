// SPDX-License-Identifier: GPL-2.0
//! A pipe as a file: what fstat and friends say and what does not work on it.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use rustix::fs::{
    AtFlags, FallocateFlags, FileType, FlockOperation, Gid, Mode, OFlags, SeekFrom, Stat, Timespec,
    Timestamps, Uid, fallocate, fchmod, fchown, fcntl_getfl, fcntl_setfl, flock, fstat, fstatfs,
    fsync, ftruncate, futimens, openat, seek, statat,
};
use rustix::io::{Errno, FdFlags, fcntl_getfd, pread, pwrite};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::pipe::PipeFlags;
use rustix::process::geteuid;

use crate::case::{Area, Case};
use crate::child::skip;
use crate::end::{PAGE, checked, number, queued, read, set_nonblocking, write};
use crate::process::Process;
use crate::subject::{Pipe, Subject};

/// Cases about the inode and the descriptors.
pub const AREA: Area = Area {
    name: "inode",
    cases: &[
        Case::every(
            "fstat shows an empty FIFO of mode 0600 with one link that belongs to its maker",
            stat,
        ),
        Case::every(
            "st_blksize is the block size that the config asks for",
            block_size,
        ),
        Case::every("both ends are one inode, and no two pipes are", identity),
        Case::every(
            "fstatfs shows page-sized blocks, names of 255 bytes and the magic of its kind",
            statfs,
        ),
        Case::every("the link in /proc names the kind and the inode", link_text),
        Case::every("fchmod holds for both ends", chmod),
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
        Case::every(
            "O_CLOEXEC is set on both ends where asked for, else on none",
            close_on_exec,
        ),
        Case::every("each end has its direction and no other", directions),
        Case::every(
            "positions do not exist: lseek, pread and pwrite are ESPIPE",
            positions,
        ),
        Case::every(
            "ftruncate and fsync are EINVAL, fallocate is ESPIPE, mmap is ENODEV",
            not_a_regular_file,
        ),
        Case::every("flock on one end shuts out a description of its own", locks),
        Case::every("an unknown ioctl on an end is ENOTTY", unknown_ioctl),
        Case::every("an unknown flag at creation is EINVAL", unknown_flag),
        Case::every("sendfile out of a pipe is EINVAL", send_file_out),
        Case::every(
            "a read end reopened through /proc is a reader of its own",
            reopen_read_end,
        ),
        Case::every(
            "a write end reopened through /proc is a writer of its own",
            reopen_write_end,
        ),
        Case::every(
            "an end reopened for both directions reads what it writes and never sees the end",
            reopen_both,
        ),
        Case::every(
            "reopening waits for nobody, not even where the other side has gone",
            reopen_does_not_wait,
        ),
    ],
};

fn reopen(end: &OwnedFd, flags: OFlags) -> OwnedFd {
    openat(
        rustix::fs::CWD,
        format!("/proc/self/fd/{}", end.as_raw_fd()),
        flags | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .expect("reopen")
}

fn stats(pipe: &Pipe) -> (Stat, Stat) {
    (
        fstat(&pipe.read).expect("fstat"),
        fstat(&pipe.write).expect("fstat"),
    )
}

fn stat(subject: &Subject) {
    let pipe = subject.pipe();
    write(&pipe.write, b"not counted in the size").unwrap();
    let (r, w) = stats(&pipe);
    for stat in [r, w] {
        assert_eq!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo);
        assert_eq!(Mode::from_raw_mode(stat.st_mode), Mode::RUSR | Mode::WUSR);
        assert_eq!((stat.st_size, stat.st_nlink, stat.st_blocks), (0, 1, 0));
        assert_eq!(stat.st_uid, rustix::process::geteuid().as_raw());
        assert_eq!(stat.st_gid, rustix::process::getegid().as_raw());
    }
}

fn block_size(subject: &Subject) {
    let (r, w) = stats(&subject.pipe());
    let expected = i64::from(subject.config().block_size);
    assert_eq!((r.st_blksize, w.st_blksize), (expected, expected));
}

fn identity(subject: &Subject) {
    let pipes: Vec<_> = (0..20).map(|_| subject.pipe()).collect();
    let mut seen = Vec::new();
    for pipe in &pipes {
        let (r, w) = stats(pipe);
        assert_eq!((r.st_dev, r.st_ino), (w.st_dev, w.st_ino));
        assert_ne!(r.st_ino, 0);
        seen.push((r.st_dev, r.st_ino));
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), pipes.len());
    assert!(
        seen.iter().all(|(dev, _)| *dev == seen[0].0),
        "one kind, one device number"
    );
}

fn statfs(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    for end in [r, w] {
        let statfs = fstatfs(&end).expect("fstatfs");
        assert_eq!((statfs.f_bsize, statfs.f_namelen), (PAGE as i64, 255));
        assert_eq!(statfs.f_type, subject.magic());
    }
}

fn link_text(subject: &Subject) {
    let pipe = subject.pipe();
    let (stat, _) = stats(&pipe);
    for end in [&pipe.read, &pipe.write] {
        let text = fs::read_link(format!("/proc/self/fd/{}", end.as_raw_fd())).expect("readlink");
        assert_eq!(
            text.to_str(),
            Some(format!("{}:[{}]", subject.kind(), stat.st_ino).as_str())
        );
    }
}

fn chmod(subject: &Subject) {
    let pipe = subject.pipe();
    fchmod(&pipe.read, Mode::RUSR | Mode::RGRP).unwrap();
    let (r, w) = stats(&pipe);
    assert_eq!((r.st_mode & 0o7777, w.st_mode & 0o7777), (0o440, 0o440));
    let link = format!("/proc/self/fd/{}", pipe.write.as_raw_fd());
    assert_eq!(
        statat(rustix::fs::CWD, link, AtFlags::empty())
            .unwrap()
            .st_mode
            & 0o7777,
        0o440
    );
}

fn close_on_exec(subject: &Subject) {
    let flags = |pipe: &Pipe| {
        (
            fcntl_getfd(&pipe.read).unwrap(),
            fcntl_getfd(&pipe.write).unwrap(),
        )
    };
    assert_eq!(
        flags(&subject.pipe_with(PipeFlags::CLOEXEC).unwrap()),
        (FdFlags::CLOEXEC, FdFlags::CLOEXEC)
    );
    assert_eq!(
        flags(&subject.pipe_with(PipeFlags::empty()).unwrap()),
        (FdFlags::empty(), FdFlags::empty())
    );
}

fn directions(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    assert_eq!(fcntl_getfl(&r), Ok(OFlags::RDONLY));
    assert_eq!(fcntl_getfl(&w), Ok(OFlags::WRONLY));
    assert_eq!(write(&r, b"x"), Err(Errno::BADF));
    write(&w, b"x").unwrap();
    assert_eq!(read(&w, 1), Err(Errno::BADF));
    assert_eq!(queued(&r), 1);
}

fn positions(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    write(&w, b"x").unwrap();
    for end in [&r, &w] {
        assert_eq!(seek(end, SeekFrom::Start(0)), Err(Errno::SPIPE));
        assert_eq!(seek(end, SeekFrom::Current(0)), Err(Errno::SPIPE));
        assert_eq!(seek(end, SeekFrom::End(0)), Err(Errno::SPIPE));
    }
    assert_eq!(pread(&r, &mut [0; 1], 0), Err(Errno::SPIPE));
    assert_eq!(pwrite(&w, b"x", 0), Err(Errno::SPIPE));
    assert_eq!(queued(&r), 1);
}

fn not_a_regular_file(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    assert_eq!(ftruncate(&w, 0), Err(Errno::INVAL));
    assert_eq!(fsync(&w), Err(Errno::INVAL));
    assert_eq!(
        fallocate(&w, FallocateFlags::empty(), 0, 10),
        Err(Errno::SPIPE)
    );
    // SAFETY: the mapping is new memory, and it is refused anyway.
    let mapped = unsafe {
        mmap(
            ptr::null_mut(),
            PAGE,
            ProtFlags::READ,
            MapFlags::SHARED,
            &r,
            0,
        )
    };
    assert_eq!(mapped.map(drop), Err(Errno::NODEV));
}

fn locks(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    flock(&r, FlockOperation::LockExclusive).unwrap();
    assert_eq!(
        flock(&w, FlockOperation::NonBlockingLockExclusive),
        Err(Errno::AGAIN)
    );
    drop(r);
    flock(&w, FlockOperation::NonBlockingLockExclusive).unwrap();
}

fn unknown_ioctl(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    for end in [&r, &w] {
        // SAFETY: no pipe knows the call, so its argument is looked at by nobody.
        let ret = unsafe { libc::ioctl(number(end), libc::_IO(b'?'.into(), 250), 0) };
        assert_eq!(checked(ret as isize), Err(Errno::NOTTY));
    }
}

fn unknown_flag(subject: &Subject) {
    for bits in [libc::O_APPEND, libc::O_CREAT, 1 << 30] {
        let flags = PipeFlags::from_bits_retain(bits as u32);
        assert_eq!(
            subject.pipe_with(flags).map(drop),
            Err(Errno::INVAL),
            "flags {bits:#x}"
        );
        assert_eq!(
            subject.pipe_with(flags | PipeFlags::CLOEXEC).map(drop),
            Err(Errno::INVAL),
            "flags {bits:#x}"
        );
    }
}

fn send_file_out(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let sink = rustix::fs::open("/dev/null", OFlags::WRONLY, Mode::empty()).unwrap();
    write(&w, b"x").unwrap();
    assert_eq!(rustix::fs::sendfile(&sink, &r, None, 1), Err(Errno::INVAL));
    assert_eq!(queued(&r), 1);
}

fn reopen_read_end(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let second = reopen(&w, OFlags::RDONLY);
    write(&w, b"ab").unwrap();
    set_nonblocking(&second, true);
    assert_eq!(read(&second, 1).as_deref(), Ok(&b"a"[..]));
    drop(r);
    assert_eq!(write(&w, b"c"), Ok(1), "the second reader counts");
    assert_eq!(read(&second, 9).as_deref(), Ok(&b"bc"[..]));
    drop(second);
    assert_eq!(write(&w, b"d"), Err(Errno::PIPE));
}

fn reopen_write_end(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let second = reopen(&r, OFlags::WRONLY);
    drop(w);
    set_nonblocking(&r, true);
    assert_eq!(read(&r, 1), Err(Errno::AGAIN), "the second writer counts");
    write(&second, b"x").unwrap();
    assert_eq!(read(&r, 1).as_deref(), Ok(&b"x"[..]));
    drop(second);
    assert_eq!(read(&r, 1).as_deref(), Ok(&b""[..]));
    let third = reopen(&r, OFlags::WRONLY);
    assert_eq!(
        read(&r, 1),
        Err(Errno::AGAIN),
        "the end is no longer the end"
    );
    drop(third);
}

fn reopen_both(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let both = reopen(&r, OFlags::RDWR | OFlags::NONBLOCK);
    drop((r, w));
    assert_eq!(write(&both, b"own words"), Ok(9));
    assert_eq!(read(&both, 64).as_deref(), Ok(&b"own words"[..]));
    assert_eq!(read(&both, 64), Err(Errno::AGAIN));
}

fn reopen_does_not_wait(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    drop(w);
    let reader = reopen(&r, OFlags::RDONLY);
    drop(r);
    let writer = reopen(&reader, OFlags::WRONLY);
    drop(reader);
    let reader = reopen(&writer, OFlags::RDONLY);
    write(&writer, b"x").unwrap();
    assert_eq!(read(&reader, 1).as_deref(), Ok(&b"x"[..]));
}

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
