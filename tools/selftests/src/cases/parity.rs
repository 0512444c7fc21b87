// SPDX-License-Identifier: GPL-2.0
//! Calls that are no business of a pipe, and flags of those that are: each is tried on an end of the
//! subject's and on the same end of a pipe of the kernel's, and must come out the same.

use std::ffi::CString;
use std::fmt::Write as _;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::{Errno, Result};

use crate::case::{Area, Case};
use crate::end::{PAGE, checked, queued, read, set_nonblocking, write};
use crate::fifo::Fifos;
use crate::subject::{Pipe, Subject};
use crate::transfer::{ends, file_of};

mod calls;

use calls::{Attempt, FCNTLS, FILE_CALLS, IO_FLAGS, IOCTLS, Named, REOPENINGS, Stage};

/// Cases about what comes out the same.
pub const AREA: Area = Area {
    name: "parity",
    cases: &[
        Case::altpipe("calls on a file come out as on a native pipe", file_calls),
        Case::altpipe("fcntl comes out as on a native pipe", fcntls),
        Case::altpipe("ioctl comes out as on a native pipe", ioctls),
        Case::altpipe(
            "flags of reads and writes come out as on a native pipe",
            io_flags,
        ),
        Case::altpipe("reopening comes out as for a native pipe", reopening),
        Case::fifo_device("calls on a file come out as on a FIFO", file_calls),
        Case::fifo_device("fcntl comes out as on a FIFO", fcntls),
        Case::fifo_device("ioctl comes out as on a FIFO", ioctls),
        Case::fifo_device("flags of reads and writes come out as on a FIFO", io_flags),
        Case::fifo_device("reopening comes out as for a FIFO", reopening),
    ],
};

/// The ends that a call is tried on.
const ENDS: [&str; 3] = ["read end", "write end", "both ends"];

fn take(pipe: &Pipe, end: &str) -> OwnedFd {
    match end {
        "read end" => pipe.read.try_clone().expect("dup"),
        "write end" => pipe.write.try_clone().expect("dup"),
        _ => rustix::fs::open(
            format!("/proc/self/fd/{}", pipe.read.as_raw_fd()),
            OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        )
        .expect("reopen"),
    }
}

// What a call comes to on a pipe of three bytes, and what the pipe is like afterwards.
fn outcome(subject: &Subject, end: &str, attempt: Attempt) -> String {
    let pipe = ends(subject);
    write(&pipe.write, b"abc").expect("write");
    set_nonblocking(&pipe.read, true);
    set_nonblocking(&pipe.write, true);
    let end = take(&pipe, end);
    let file = file_of(b"a regular file");
    let mut memory = vec![0u64; PAGE / 8];
    let stage = Stage {
        fd: end.as_raw_fd(),
        link: CString::new(format!("/proc/self/fd/{}", end.as_raw_fd())).expect("no zero"),
        file: file.as_raw_fd(),
        page: memory.as_mut_ptr().cast(),
    };
    let result: Result<usize> = checked(attempt(&stage));
    let mut text = String::new();
    match result {
        Ok(value) => write!(text, "{value}"),
        Err(error) => write!(text, "{error:?}"),
    }
    .expect("a string takes any text");
    let flags = fcntl_getfl(end.as_fd()).expect("F_GETFL").bits();
    set_nonblocking(&pipe.read, true);
    write!(
        text,
        "; then flags {flags:#o}, {} bytes, {:?}",
        queued(&pipe.read),
        read(&pipe.read, 10).map_err(Errno::raw_os_error),
    )
    .expect("a string takes any text");
    // What came back, but for what names the pipe itself.
    let page: Vec<u64> = memory.into_iter().filter(|&word| word != 0).collect();
    if !page.is_empty() && page.len() < 10 {
        write!(text, ", {page:x?}").expect("a string takes any text");
    }
    text
}

/// Where a FIFO device differs from a FIFO, by being a device and by living in a file system of another
/// kind. Documentation/differences.rst says how. RWF_NOWAIT is a knob's business. What is done to the
/// node's mode and owner would last.
const DEVICE_DIFFERS: &[&str] = &[
    "fchmod",
    "fchown",
    "linkat",
    "name_to_handle_at",
    "fallocate",
    "fallocate, a hole",
    "fadvise",
    "fsetxattr, security",
    "fsetxattr, trusted",
    "flistxattr",
    "FICLONE",
    "FS_IOC_GETFSUUID",
    "RWF_NOWAIT",
];

fn compare(subject: &Subject, calls: &[Named]) {
    let (model, excepted) = match subject {
        Subject::Fifo(_) => (Subject::Fifo(Fifos::Native), DEVICE_DIFFERS),
        _ if subject.config().nowait => (Subject::Native, &[][..]),
        _ => (Subject::Native, &["RWF_NOWAIT"][..]),
    };
    let mut differences = Vec::new();
    for (name, attempt) in calls.iter().filter(|(name, _)| !excepted.contains(name)) {
        for end in ENDS {
            let native = outcome(&model, end, *attempt);
            let ours = outcome(subject, end, *attempt);
            if native != ours {
                differences.push(format!("{name} on a {end}: native {native}, ours {ours}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join(" | "));
}

fn file_calls(subject: &Subject) {
    compare(subject, FILE_CALLS);
}

fn fcntls(subject: &Subject) {
    compare(subject, FCNTLS);
}

fn ioctls(subject: &Subject) {
    compare(subject, IOCTLS);
}

fn io_flags(subject: &Subject) {
    compare(subject, IO_FLAGS);
}

fn reopening(subject: &Subject) {
    compare(subject, REOPENINGS);
}
