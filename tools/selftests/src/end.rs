// SPDX-License-Identifier: GPL-2.0
//! System calls on one end of a pipe, in the forms that many scenarios need.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, Result};

/// The size of a slot.
pub const PAGE: usize = 4096;
/// What a pipe holds unless told otherwise: 16 slots.
pub const CAPACITY: usize = 16 * PAGE;
/// The offset that makes preadv2(2) and pwritev2(2) use the file's position: -1.
pub const AT_POSITION: u64 = u64::MAX;

/// Reads at most `len` bytes in one call.
pub fn read(end: impl AsFd, len: usize) -> Result<Vec<u8>> {
    let mut data = vec![0; len];
    let got = rustix::io::read(end, &mut data)?;
    data.truncate(got);
    Ok(data)
}

/// Reads until `len` bytes or the end of the stream.
pub fn read_exact(end: impl AsFd, len: usize) -> Vec<u8> {
    let mut data = Vec::with_capacity(len);
    while data.len() < len {
        let part = read(&end, len - data.len()).expect("read");
        if part.is_empty() {
            break;
        }
        data.extend_from_slice(&part);
    }
    data
}

/// Writes in one call.
pub fn write(end: impl AsFd, data: &[u8]) -> Result<usize> {
    rustix::io::write(end, data)
}

/// The number of bytes in the pipe, by FIONREAD.
pub fn queued(end: impl AsFd) -> usize {
    rustix::io::ioctl_fionread(end).expect("FIONREAD") as usize
}

/// Sets or clears O_NONBLOCK.
pub fn set_nonblocking(end: impl AsFd, on: bool) {
    let flags = fcntl_getfl(&end).expect("F_GETFL");
    fcntl_setfl(
        &end,
        if on {
            flags | OFlags::NONBLOCK
        } else {
            flags - OFlags::NONBLOCK
        },
    )
    .expect("F_SETFL");
}

/// Writes without blocking in pieces of `chunk` bytes until the pipe takes no more; returns the
/// count of bytes it took.
pub fn fill(end: impl AsFd, chunk: usize) -> usize {
    let blocking = !fcntl_getfl(&end)
        .expect("F_GETFL")
        .contains(OFlags::NONBLOCK);
    set_nonblocking(&end, true);
    let piece = vec![b'f'; chunk];
    let mut taken = 0;
    loop {
        match write(&end, &piece) {
            Ok(count) => taken += count,
            Err(Errno::AGAIN) => break,
            Err(error) => panic!("fill: {error}"),
        }
    }
    set_nonblocking(&end, !blocking);
    taken
}

/// What poll(2) reports at once for the events asked.
pub fn poll_now(end: impl AsFd, events: PollFlags) -> PollFlags {
    poll_for(
        end,
        events,
        Some(&Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        }),
    )
    .expect("poll")
}

/// Sleeps in poll(2) until there is something to report.
pub fn poll_wait(end: impl AsFd, events: PollFlags) -> PollFlags {
    poll_for(end, events, None).expect("poll")
}

/// poll(2) on one descriptor.
pub fn poll_for(
    end: impl AsFd,
    events: PollFlags,
    timeout: Option<&Timespec>,
) -> Result<PollFlags> {
    let mut polled = [PollFd::new(&end, events)];
    rustix::event::poll(&mut polled, timeout)?;
    Ok(polled[0].revents())
}

/// The descriptor's number, for calls whose arguments the safe wrappers would refuse to express.
pub fn number(end: &impl AsFd) -> i32 {
    let fd: BorrowedFd<'_> = end.as_fd();
    fd.as_raw_fd()
}

/// Turns the result of a raw call into that of a safe wrapper.
pub fn checked(ret: isize) -> Result<usize> {
    usize::try_from(ret)
        .map_err(|_| Errno::from_io_error(&std::io::Error::last_os_error()).expect("an errno"))
}
