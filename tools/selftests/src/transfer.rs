// SPDX-License-Identifier: GPL-2.0
//! Moving bytes between two descriptors inside the kernel.

use std::env;
use std::fs::{File, OpenOptions, remove_file};
use std::os::fd::AsFd;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::OFlags;
use rustix::io::Result;
use rustix::pipe::SpliceFlags;

use crate::end::set_nonblocking;
use crate::subject::{Pipe, Subject};

/// splice(2) without offsets.
pub fn splice(from: impl AsFd, to: impl AsFd, len: usize) -> Result<usize> {
    rustix::pipe::splice(from, None, to, None, len, SpliceFlags::empty())
}

/// The same with SPLICE_F_NONBLOCK.
pub fn try_splice(from: impl AsFd, to: impl AsFd, len: usize) -> Result<usize> {
    rustix::pipe::splice(from, None, to, None, len, SpliceFlags::NONBLOCK)
}

/// sendfile(2) from the file's own position.
pub fn sendfile(from: impl AsFd, to: impl AsFd, len: usize) -> Result<usize> {
    rustix::fs::sendfile(to, from, None, len)
}

/// A pipe of the subject's, blocking; a FIFO is opened for it.
pub fn ends(subject: &Subject) -> Pipe {
    let Subject::Fifo(_) = subject else {
        return subject.pipe();
    };
    let fifo = subject.fifo();
    let read = fifo.try_reader();
    let write = fifo.open(OFlags::WRONLY).expect("there is a reader");
    set_nonblocking(&read, false);
    Pipe { read, write }
}

/// A file without a name that holds `bytes`, its position at their beginning.
pub fn file_of(bytes: &[u8]) -> File {
    use std::io::{Seek, Write};

    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = env::temp_dir().join(format!("altpipe-selftests.{}.file.{number}", process::id()));
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&name)
        .expect("a temporary file");
    remove_file(&name).expect("unlink");
    file.write_all(bytes).expect("write to a file");
    file.rewind().expect("lseek");
    file
}
