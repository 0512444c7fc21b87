// SPDX-License-Identifier: GPL-2.0
//! A pipe as a file: what fstat and friends say and what does not work on it.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use rustix::fs::{
    AtFlags, FallocateFlags, FileType, FlockOperation, Mode, OFlags, SeekFrom, Stat, fallocate,
    fchmod, fcntl_getfl, flock, fstat, fstatfs, fsync, ftruncate, openat, seek, statat,
};
use rustix::io::{Errno, FdFlags, fcntl_getfd, pread, pwrite};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::pipe::PipeFlags;

use crate::case::{Area, Case};
use crate::end::{PAGE, checked, number, queued, read, set_nonblocking, write};
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

pub(super) fn reopen(end: &OwnedFd, flags: OFlags) -> OwnedFd {
    openat(
        rustix::fs::CWD,
        format!("/proc/self/fd/{}", end.as_raw_fd()),
        flags | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .expect("reopen")
}

pub(super) fn stats(pipe: &Pipe) -> (Stat, Stat) {
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
