// SPDX-License-Identifier: GPL-2.0
//! A small io_uring: one request at a time, no registered anything.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::{Errno, Result};
use rustix::mm::{MapFlags, ProtFlags, mmap};

use crate::end::{PAGE, checked, number};

/// What a request asks for; the numbers are io_uring.h's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// IORING_OP_POLL_ADD
    Poll = 6,
    /// IORING_OP_ASYNC_CANCEL
    Cancel = 14,
    /// IORING_OP_READ
    Read = 22,
    /// IORING_OP_WRITE
    Write = 23,
    /// IORING_OP_SPLICE
    Splice = 30,
}

/// A submission queue entry, as io_uring.h has it.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Request {
    op: u8,
    flags: u8,
    priority: u16,
    fd: i32,
    offset: u64,
    address: u64,
    len: u32,
    op_flags: u32,
    name: u64,
    buffer: u16,
    personality: u16,
    splice_from: i32,
    rest: [u64; 2],
}

impl Request {
    /// A request on `end` without a position.
    pub fn on(op: Op, end: impl AsFd) -> Self {
        Self {
            op: op as u8,
            fd: number(&end),
            offset: u64::MAX,
            name: op as u64,
            ..Self::default()
        }
    }

    /// A read or write of memory, which must outlive the request.
    pub fn with_memory(self, memory: *mut u8, len: usize) -> Self {
        Self {
            address: memory as u64,
            len: len as u32,
            ..self
        }
    }

    /// A poll for these events, once or for good.
    pub fn with_events(self, events: u32, again_and_again: bool) -> Self {
        Self {
            op_flags: events,
            offset: 0,
            len: again_and_again.into(),
            ..self
        }
    }

    /// A cancellation of what was asked for by `op`.
    pub fn of(op: Op) -> Self {
        Self {
            op: Op::Cancel as u8,
            fd: -1,
            address: op as u64,
            name: Op::Cancel as u64,
            ..Self::default()
        }
    }

    /// A splice of `len` bytes from `from`.
    pub fn with_source(self, from: impl AsFd, len: usize) -> Self {
        Self {
            splice_from: number(&from),
            address: u64::MAX,
            len: len as u32,
            ..self
        }
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Completion {
    name: u64,
    result: i32,
    flags: u32,
}

impl Completion {
    /// Whether it is the answer to a request for `op`.
    pub fn answers(&self, op: Op) -> bool {
        self.name == op as u64
    }

    /// The count, or the error.
    pub fn result(&self) -> Result<usize> {
        usize::try_from(self.result).map_err(|_| Errno::from_raw_os_error(-self.result))
    }
}

const ENTRIES: u32 = 8;

/// The ring. Both of its queues are mapped as one.
pub struct Uring {
    fd: OwnedFd,
    queues: *mut u8,
    requests: *mut Request,
    offsets: Offsets,
}

// The places in the mapping that io_uring_setup(2) told.
struct Offsets {
    tail: u32,
    mask: u32,
    array: u32,
    completed_head: u32,
    completed_tail: u32,
    completed_mask: u32,
    completions: u32,
}

impl Uring {
    /// Makes a ring; the error is ENOSYS or EPERM where the kernel has none to give.
    pub fn new() -> Result<Self> {
        // struct io_uring_params: ten words, then the offsets of both queues.
        let mut params = [0u32; 30];
        // SAFETY: the structure has room for what the kernel tells.
        let fd = checked(unsafe {
            libc::syscall(libc::SYS_io_uring_setup, ENTRIES, params.as_mut_ptr()) as isize
        })?;
        // SAFETY: a new descriptor, nobody else's.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        let map = |offset| {
            // SAFETY: new mappings of the ring's memory, a page or less each with so few entries.
            unsafe {
                mmap(
                    ptr::null_mut(),
                    PAGE,
                    ProtFlags::READ | ProtFlags::WRITE,
                    MapFlags::SHARED | MapFlags::POPULATE,
                    &fd,
                    offset,
                )
            }
        };
        let queues = map(0)?.cast();
        let requests = map(0x1000_0000)?.cast();
        Ok(Self {
            queues,
            requests,
            offsets: Offsets {
                tail: params[11],
                mask: params[12],
                array: params[16],
                completed_head: params[20],
                completed_tail: params[21],
                completed_mask: params[22],
                completions: params[25],
            },
            fd,
        })
    }

    fn word(&self, offset: u32) -> &AtomicU32 {
        // SAFETY: an offset that the kernel told, in the mapping that lives as long as `self`.
        unsafe { &*self.queues.add(offset as usize).cast() }
    }

    /// Hands in one request.
    pub fn submit(&mut self, request: Request) {
        let tail = self.word(self.offsets.tail);
        let index =
            tail.load(Ordering::Relaxed) & self.word(self.offsets.mask).load(Ordering::Relaxed);
        // SAFETY: the index is below the number of entries, and the kernel is done with the entry:
        // each request is handed in before the next is written.
        unsafe { self.requests.add(index as usize).write(request) };
        self.word(self.offsets.array + 4 * index)
            .store(index, Ordering::Relaxed);
        tail.fetch_add(1, Ordering::Release);
        assert_eq!(self.enter(1, 0), Ok(1));
    }

    fn enter(&self, submit: u32, wait_for: u32) -> Result<usize> {
        let get_events = 1;
        // SAFETY: no pointers.
        checked(unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.fd.as_raw_fd(),
                submit,
                wait_for,
                get_events,
                ptr::null_mut::<u8>(),
                0,
            ) as isize
        })
    }

    /// What has been completed and not been looked at.
    pub fn completed(&mut self) -> Option<Completion> {
        let head = self.word(self.offsets.completed_head);
        let at = head.load(Ordering::Relaxed);
        if at
            == self
                .word(self.offsets.completed_tail)
                .load(Ordering::Acquire)
        {
            return None;
        }
        let index = at
            & self
                .word(self.offsets.completed_mask)
                .load(Ordering::Relaxed);
        // SAFETY: between head and tail, so the kernel has written it and lets it be.
        let completion = unsafe {
            self.queues
                .add(self.offsets.completions as usize)
                .cast::<Completion>()
                .add(index as usize)
                .read()
        };
        head.store(at.wrapping_add(1), Ordering::Release);
        Some(completion)
    }

    /// Waits for a completion.
    pub fn wait(&mut self) -> Completion {
        loop {
            if let Some(completion) = self.completed() {
                return completion;
            }
            self.enter(0, 1).expect("io_uring_enter");
        }
    }
}

/// How many threads the kernel has made to do this process's requests.
pub fn workers() -> usize {
    fs::read_dir("/proc/self/task")
        .expect("/proc")
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .filter(|name| name.starts_with("iou-wrk"))
        .count()
}
