// SPDX-License-Identifier: GPL-2.0
//! System calls that may sleep, made by whichever task has them to make.

use std::ptr;
use std::time::Duration;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};

use super::script::{Form, Memory, Part};
use crate::memory::NOWHERE;

const PAGE: usize = 4096;
/// The bytes that a tray has room for.
const ROOM: usize = 72 * PAGE;

/// What a task has for its transfers.
pub struct Desk {
    source: Tray,
    sink: Tray,
}

impl Desk {
    /// Maps what it needs.
    pub fn new() -> Self {
        Self {
            source: Tray::new(),
            sink: Tray::new(),
        }
    }
}

/// Memory with an edge.
struct Tray {
    start: *mut u8,
}

impl Tray {
    /// Maps it, filled with words that all differ.
    fn new() -> Self {
        // SAFETY: a new private mapping of its own, whose last page is closed; only the others are
        // written.
        unsafe {
            let start = mmap_anonymous(
                ptr::null_mut(),
                ROOM + PAGE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
            .expect("mmap");
            mprotect(start.byte_add(ROOM), PAGE, MprotectFlags::empty()).expect("mprotect");
            let words = start.cast::<u64>();
            for at in 0..ROOM / 8 {
                words
                    .add(at)
                    .write((at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            }
            Self {
                start: start.cast(),
            }
        }
    }

    /// The parts as the kernel takes them, and the sum of their lengths; `salt` moves the good
    /// ones, so that no two writes are the same.
    fn vector(&self, parts: &[Part], salt: usize) -> ([libc::iovec; 3], usize) {
        let mut vector = [libc::iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        }; 3];
        let mut at = salt * 72 % PAGE;
        let mut total = 0;
        for (slot, part) in vector.iter_mut().zip(parts) {
            let len = (part.len as usize).min(ROOM / 4);
            let base = match part.memory {
                // SAFETY: three lengths of at most a quarter and a page fit.
                Memory::Good => unsafe { self.start.add(at) },
                Memory::Nowhere => NOWHERE,
                // SAFETY: the edge is beyond as many bytes.
                Memory::Edge(good) => unsafe { self.start.add(ROOM - usize::from(good)) },
            };
            if part.memory == Memory::Good {
                at += len;
            }
            *slot = libc::iovec {
                iov_base: base.cast(),
                iov_len: len,
            };
            total += len;
        }
        (vector, total)
    }
}

/// A call as it is handed to a task.
#[derive(Clone, Debug)]
pub enum Call {
    /// Reads; the number tells the call from others.
    Read(i32, Vec<Part>, Form),
    /// Writes; the last makes its bytes differ from those of other writes.
    Write(i32, Vec<Part>, Form, usize),
    /// poll(2) without a timeout.
    Poll(i32, i16),
    /// epoll_wait(2) without a timeout.
    EpollWait(i32),
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What it returned, or the errno.
    pub result: Result<usize, i32>,
    /// What that would be at most.
    pub asked: usize,
    /// What the data come to, or the bits or events reported.
    pub data: u64,
    /// Whether SIGPIPE came.
    pub signalled: bool,
}

impl Outcome {
    /// That of a call without data.
    pub fn bare(result: Result<usize, i32>) -> Self {
        Self {
            result,
            asked: 0,
            data: 0,
            signalled: false,
        }
    }
}

/// The result of a raw call.
pub fn checked(ret: isize) -> Result<usize, i32> {
    usize::try_from(ret).map_err(|_| std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

impl Call {
    /// The descriptor that it is made on.
    pub fn fd(&self) -> i32 {
        match self {
            Self::Read(fd, ..) | Self::Write(fd, ..) | Self::Poll(fd, _) | Self::EpollWait(fd) => {
                *fd
            }
        }
    }

    /// The numbers of the system calls that it may be, and the first argument, where that tells
    /// anything.
    pub fn signature(&self) -> (&'static [i64], Option<i64>) {
        let numbers: &[_] = match self {
            Self::Read(..) => &[libc::SYS_read, libc::SYS_readv, libc::SYS_preadv2],
            Self::Write(..) => &[libc::SYS_write, libc::SYS_writev, libc::SYS_pwritev2],
            // The first argument is an address.
            Self::Poll(..) => return (&[libc::SYS_poll, libc::SYS_ppoll], None),
            Self::EpollWait(_) => &[libc::SYS_epoll_wait, libc::SYS_epoll_pwait],
        };
        (numbers, Some(self.fd().into()))
    }

    /// Makes it, at `desk`.
    pub fn perform(&self, desk: &Desk) -> Outcome {
        match self {
            Self::Read(fd, parts, form) => {
                let (vector, total) = desk.sink.vector(parts, 0);
                let result = transfer(*fd, &vector[..parts.len()], *form, Direction::In);
                Outcome {
                    result,
                    asked: total,
                    data: result.map_or(0, |count| digest(&vector, count)),
                    signalled: false,
                }
            }
            Self::Write(fd, parts, form, salt) => {
                let (vector, total) = desk.source.vector(parts, *salt);
                Outcome {
                    result: transfer(*fd, &vector[..parts.len()], *form, Direction::Out),
                    asked: total,
                    data: 0,
                    signalled: take_signal(libc::SIGPIPE).is_some(),
                }
            }
            Self::Poll(fd, events) => {
                let mut polled = libc::pollfd {
                    fd: *fd,
                    events: *events,
                    revents: 0,
                };
                // SAFETY: one structure, which outlives the call.
                let ret = unsafe { libc::poll(&mut polled, 1, -1) };
                Outcome {
                    data: polled.revents as u64,
                    asked: 1,
                    ..Outcome::bare(checked(ret as isize))
                }
            }
            Self::EpollWait(fd) => events(*fd, -1),
        }
    }
}

/// epoll_wait(2).
pub fn events(epoll: i32, timeout: i32) -> Outcome {
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 8];
    // SAFETY: room for as many events as is said.
    let ret = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), events.len() as i32, timeout) };
    let result = checked(ret as isize);
    let mut seen: Vec<_> = events[..result.unwrap_or(0)]
        .iter()
        .map(|event| (event.u64, event.events))
        .collect();
    seen.sort_unstable();
    let data = seen.iter().fold(0u64, |sum, (of, events)| {
        sum.rotate_left(16) ^ (of << 14) ^ u64::from(*events)
    });
    Outcome {
        asked: 1,
        data,
        ..Outcome::bare(result)
    }
}

enum Direction {
    In,
    Out,
}

fn transfer(
    fd: i32,
    vector: &[libc::iovec],
    form: Form,
    direction: Direction,
) -> Result<usize, i32> {
    let count = vector.len() as i32;
    let flags = |nowait, nosignal| {
        (if nowait { libc::RWF_NOWAIT } else { 0 }) | if nosignal { RWF_NOSIGNAL } else { 0 }
    };
    // SAFETY: the kernel checks the addresses, and what it may write to belongs to a tray, of which
    // no Rust reference exists.
    checked(unsafe {
        match (form, direction) {
            (Form::Plain, Direction::In) => libc::read(fd, vector[0].iov_base, vector[0].iov_len),
            (Form::Plain, Direction::Out) => libc::write(fd, vector[0].iov_base, vector[0].iov_len),
            (Form::Vector, Direction::In) => libc::readv(fd, vector.as_ptr(), count),
            (Form::Vector, Direction::Out) => libc::writev(fd, vector.as_ptr(), count),
            (Form::Flags { nowait, nosignal }, Direction::In) => {
                libc::preadv2(fd, vector.as_ptr(), count, -1, flags(nowait, nosignal))
            }
            (Form::Flags { nowait, nosignal }, Direction::Out) => {
                libc::pwritev2(fd, vector.as_ptr(), count, -1, flags(nowait, nosignal))
            }
        }
    })
}

// Since 6.18; the library does not know it yet.
const RWF_NOSIGNAL: i32 = 0x100;

// Any byte that is another or in another place makes another number.
fn digest(vector: &[libc::iovec], count: usize) -> u64 {
    let mut left = count;
    let mut sum = count as u64;
    for part in vector {
        let len = left.min(part.iov_len);
        if len == 0 {
            continue;
        }
        // SAFETY: the kernel has just filled as much of it, so it is of a tray's, and initialised.
        let bytes = unsafe { std::slice::from_raw_parts(part.iov_base.cast::<u8>(), len) };
        let words = bytes.chunks_exact(8);
        let rest = words.remainder();
        for word in words {
            let word = word.try_into().map_or(0, u64::from_le_bytes);
            sum = (sum ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        }
        for byte in rest {
            sum = (sum ^ u64::from(*byte))
                .wrapping_mul(0x0100_0000_01b3)
                .rotate_left(23);
        }
        left -= len;
    }
    sum
}

/// What a SIGIO tells: the bits and the descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Told {
    /// The events as poll(2) has them.
    pub band: i64,
    /// The descriptor for which it was asked.
    pub fd: i32,
}

/// A signal of this number that pends for the calling thread, which keeps it blocked.
pub fn take_signal(number: i32) -> Option<Told> {
    // The start of siginfo_t, as the kernel fills it for a file's owner.
    #[repr(C)]
    struct Info {
        signo: i32,
        errno: i32,
        code: i32,
        pad: i32,
        band: i64,
        fd: i32,
        rest: [i32; 25],
    }
    let mut info = Info {
        signo: 0,
        errno: 0,
        code: 0,
        pad: 0,
        band: 0,
        fd: 0,
        rest: [0; 25],
    };
    let none = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure has the size of siginfo_t, and a set of signals may be all zero.
    let ret = unsafe {
        let mut set = std::mem::zeroed();
        libc::sigaddset(&mut set, number);
        libc::sigtimedwait(&set, ptr::from_mut(&mut info).cast(), &none)
    };
    (ret == number).then_some(Told {
        band: info.band,
        fd: info.fd,
    })
}

/// Blocks signals that are taken and not handled, in this thread and those that it starts.
pub fn block_signals(numbers: &[i32]) {
    // SAFETY: as above.
    unsafe {
        let mut set = std::mem::zeroed();
        for number in numbers {
            libc::sigaddset(&mut set, *number);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
    }
}

/// How long a task may take to sleep or to end. Nothing in a sequence takes long.
pub const PATIENCE: Duration = Duration::from_secs(60);
