// SPDX-License-Identifier: GPL-2.0
//! An end that changes hands in the middle of a stream: the new descriptor is open before the old
//! one is closed, so the stream goes on.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use rand_chacha::ChaCha8Rng;
use rustix::fs::{CWD, Mode, OFlags, fcntl_getfl, openat};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::Counts;
use crate::draw::below;
use crate::end::set_nonblocking;
use crate::parcel;

/// Now and then: the same end by another descriptor.
pub fn sometimes(
    end: OwnedFd,
    access: OFlags,
    generator: &mut ChaCha8Rng,
    counts: &Counts,
) -> OwnedFd {
    let (counter, new) = match below(generator, 64) {
        0 => (&counts.copied, end.try_clone().expect("dup")),
        1 => (&counts.reopened, reopened(&end, access)),
        2 => (&counts.passed, passed(&end)),
        _ => return end,
    };
    counter.fetch_add(1, Ordering::Relaxed);
    new
}

// By another description. A FIFO's open would wait for a partner, who may have done his part.
fn reopened(end: &OwnedFd, access: OFlags) -> OwnedFd {
    let path = format!("/proc/self/fd/{}", end.as_raw_fd());
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let new = openat(CWD, path, flags, Mode::empty()).expect("reopen");
    let flags = fcntl_getfl(end).expect("F_GETFL");
    set_nonblocking(&new, flags.contains(OFlags::NONBLOCK));
    new
}

// Through a socket, as one process gives it to another.
fn passed(end: &OwnedFd) -> OwnedFd {
    let (here, there) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .expect("socketpair");
    parcel::send(&here, end);
    parcel::receive(&there)
}
