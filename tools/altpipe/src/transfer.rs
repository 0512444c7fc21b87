// SPDX-License-Identifier: GPL-2.0
//! Whole reads and writes on a measured pipe, with nothing between the workload and the system call.

use std::io;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::unistd::{read, write};

/// Writes all of `bytes`.
pub fn put(end: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        bytes = &bytes[write(&end, bytes)?..];
    }
    Ok(())
}

/// Fills all of `bytes`; an early end of file is an error.
pub fn take(end: impl AsFd, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match read(&end, bytes)? {
            0 => return Err(Errno::ENODATA.into()),
            got => bytes = &mut bytes[got..],
        }
    }
    Ok(())
}

/// Reads to the end of file through `buffer`; the number of bytes that came.
pub fn drain(end: impl AsFd, buffer: &mut [u8]) -> io::Result<u64> {
    let mut total = 0;
    loop {
        match read(&end, buffer)? {
            0 => return Ok(total),
            got => total += got as u64,
        }
    }
}
