// SPDX-License-Identifier: GPL-2.0
//! The descriptors that a sequence has open, and what is done to one of them alone.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::thread::gettid;

use super::{MOST_ENDS, World, owners_signal};
use crate::differential::call::checked;
use crate::differential::script::{Access, End, Flag, Op, Side};

/// An open descriptor.
pub(super) struct Descriptor {
    pub(super) fd: OwnedFd,
    pub(super) serial: u8,
    pub(super) reads: bool,
    pub(super) writes: bool,
}

impl World<'_> {
    pub(super) fn add(&mut self, fd: OwnedFd, access: Access) {
        self.serial += 1;
        self.ends.push(Descriptor {
            fd,
            serial: self.serial,
            reads: access != Access::Write,
            writes: access != Access::Read,
        });
    }

    pub(super) fn find(&self, end: End) -> Option<usize> {
        let of = |number: u8, wanted: &dyn Fn(&Descriptor) -> bool| {
            let fitting: Vec<_> = (0..self.ends.len())
                .filter(|&at| wanted(&self.ends[at]))
                .collect();
            let count = fitting.len();
            (count > 0).then(|| fitting[usize::from(number) % count])
        };
        match end {
            End::Reader(number) => of(number, &|end| end.reads),
            End::Writer(number) => of(number, &|end| end.writes),
            End::Any(number) => of(number, &|_| true),
        }
    }

    // Whether a task sleeps on it in poll(2), which looks the descriptor up anew at every wake-up: if
    // it were closed, each wake-up would show, and how many there are is what knobs change.
    pub(super) fn is_polled(&self, at: usize) -> bool {
        let fd = self.ends[at].fd.as_raw_fd();
        let mut busy = self.stage.tasks.iter().zip(&self.asleep);
        busy.any(|(task, op)| matches!(op, Some(Op::Poll(..))) && task.sleeps_on(fd))
    }

    pub(super) fn close(&mut self, at: usize) {
        let end = self.ends.remove(at);
        for (task, orphaned) in self.stage.tasks.iter().zip(&mut self.orphaned) {
            *orphaned |= task.sleeps_on(end.fd.as_raw_fd());
        }
    }

    pub(super) fn fd(&self, end: End) -> Option<i32> {
        self.find(end).map(|at| self.ends[at].fd.as_raw_fd())
    }

    pub(super) fn is_nonblocking(&self, fd: i32) -> bool {
        // SAFETY: touches no memory of ours.
        unsafe { libc::fcntl(fd, libc::F_GETFL) & libc::O_NONBLOCK != 0 }
    }

    pub(super) fn set(&self, fd: i32, flag: OFlags, on: bool) -> Result<usize, i32> {
        let flag = flag.bits() as i32;
        // SAFETY: touches no memory of ours.
        checked(unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFL);
            let flags = if on { flags | flag } else { flags & !flag };
            libc::fcntl(fd, libc::F_SETFL, flags) as isize
        })
    }

    pub(super) fn set_flag(&mut self, fd: i32, flag: Flag, on: bool) -> Result<usize, i32> {
        match flag {
            Flag::Nonblock => self.set(fd, OFlags::NONBLOCK, on),
            Flag::Direct => self.set(fd, OFlags::DIRECT, on),
            Flag::Async => {
                self.has_owner = true;
                own(fd);
                self.set(fd, OFlags::from_bits_retain(libc::O_ASYNC as u32), on)
            }
        }
    }

    pub(super) fn control(&self, what: i32, at: usize, events: u32) -> Result<usize, i32> {
        let mut event = libc::epoll_event {
            events,
            u64: self.ends[at].serial.into(),
        };
        let (epoll, fd) = (self.epoll.as_raw_fd(), self.ends[at].fd.as_raw_fd());
        // SAFETY: the structure outlives the call.
        checked(unsafe { libc::epoll_ctl(epoll, what, fd, &mut event) } as isize)
    }

    pub(super) fn reopen(
        &mut self,
        at: usize,
        access: Access,
        nonblock: bool,
    ) -> Option<Result<usize, i32>> {
        if self.ends.len() == MOST_ENDS {
            return None;
        }
        let (mut flags, side) = match access {
            Access::Read => (OFlags::RDONLY, Some(Side::Readers)),
            Access::Write => (OFlags::WRONLY, Some(Side::Writers)),
            Access::Both => (OFlags::RDWR, None),
        };
        let nonblock = match self.hasty {
            Some(hasty) => side == Some(hasty),
            None => nonblock,
        };
        flags.set(OFlags::NONBLOCK, nonblock);
        let path = format!("/proc/self/fd/{}", self.ends[at].fd.as_raw_fd());
        let opened = openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty());
        Some(match opened {
            Ok(fd) => {
                self.add(fd, access);
                Ok(0)
            }
            Err(error) => Err(error.raw_os_error()),
        })
    }
}

// Has signals of the descriptor's description sent to the calling thread.
fn own(fd: i32) {
    // <asm-generic/fcntl.h>; the library lacks them.
    const F_SETSIG: i32 = 10;
    const F_SETOWN_EX: i32 = 15;
    const F_OWNER_TID: i32 = 0;
    let owner = [F_OWNER_TID, gettid().as_raw_nonzero().get()];
    // SAFETY: the array stands for struct f_owner_ex and outlives the call.
    let ret = unsafe {
        libc::fcntl(fd, F_SETOWN_EX, owner.as_ptr()) | libc::fcntl(fd, F_SETSIG, owners_signal())
    };
    assert_eq!(ret, 0, "F_SETOWN_EX, F_SETSIG");
}
