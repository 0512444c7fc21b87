// SPDX-License-Identifier: GPL-2.0
//! Memory that ends at a known place, and raw calls with any address.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::event::PollFlags;
use rustix::io::Result;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

use crate::end::{PAGE, checked, number, poll_wait};

/// An address at which nothing is mapped.
pub const NOWHERE: *mut u8 = ptr::without_provenance_mut(8);

/// Two good pages with nothing accessible behind them.
pub struct Cliff(*mut u8);

impl Cliff {
    /// Maps the pages and fills the good ones with `byte`.
    pub fn new(byte: u8) -> Self {
        // SAFETY: a new private mapping of three pages; the last is closed and only the first two
        // are written.
        unsafe {
            let start = mmap_anonymous(
                ptr::null_mut(),
                3 * PAGE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
            .expect("mmap");
            mprotect(start.byte_add(2 * PAGE), PAGE, MprotectFlags::empty()).expect("mprotect");
            start.cast::<u8>().write_bytes(byte, 2 * PAGE);
            Self(start.cast())
        }
    }

    /// The address with `good` accessible bytes before the edge.
    pub fn before_edge(&self, good: usize) -> *mut u8 {
        assert!(good <= 2 * PAGE);
        // SAFETY: within the mapping.
        unsafe { self.0.add(2 * PAGE - good) }
    }

    /// The first `len` of the `good` bytes before the edge.
    pub fn bytes(&self, good: usize, len: usize) -> Vec<u8> {
        assert!(len <= good);
        // SAFETY: within the good pages, which live as long as `self` and hold initialised bytes.
        unsafe { std::slice::from_raw_parts(self.before_edge(good), len) }.to_vec()
    }
}

impl Drop for Cliff {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`; addresses given out are for system calls, which
        // survive its end.
        let _ = unsafe { munmap(self.0.cast(), 3 * PAGE) };
    }
}

/// read(2) to any address.
pub fn read_to(end: impl AsFd, address: *mut u8, len: usize) -> Result<usize> {
    // SAFETY: the kernel checks the address; callers pass memory that no Rust reference covers.
    checked(unsafe { libc::read(number(&end), address.cast(), len) })
}

/// write(2) from any address.
pub fn write_from(end: impl AsFd, address: *const u8, len: usize) -> Result<usize> {
    // SAFETY: the kernel checks the address and only reads there.
    checked(unsafe { libc::write(number(&end), address.cast(), len) })
}

/// readv(2) or writev(2) over any addresses.
pub fn vector(
    call: unsafe extern "C" fn(i32, *const libc::iovec, i32) -> isize,
    end: impl AsFd,
    parts: &[(*mut u8, usize)],
) -> Result<usize> {
    let vector: Vec<_> = parts
        .iter()
        .map(|&(base, len)| libc::iovec {
            iov_base: base.cast(),
            iov_len: len,
        })
        .collect();
    // SAFETY: the vector is valid for its length; the kernel checks the addresses in it.
    checked(unsafe { call(number(&end), vector.as_ptr(), vector.len() as i32) })
}

/// ioctl(2) with any address as its argument.
pub fn ioctl_at(file: impl AsFd, call: libc::Ioctl, address: *mut u8) -> Result<usize> {
    // SAFETY: the kernel checks the address; callers pass memory that holds the structure of the
    // call, or none at all.
    checked(unsafe { libc::ioctl(number(&file), call, address) } as isize)
}

/// ioctl(2) on a structure or buffer of the caller's, which must hold what the call expects.
pub fn ioctl_on<T>(file: impl AsFd, call: libc::Ioctl, argument: &mut T) -> Result<usize> {
    ioctl_at(file, call, ptr::from_mut(argument).cast())
}

/// A page that is not there until it is delivered: who touches it waits.
pub struct Absent {
    /// Where it will be.
    pub address: *mut u8,
    faults: OwnedFd,
}

// From userfaultfd.h.
const UFFDIO_API: u64 = 0xc018_aa3f;
const UFFDIO_REGISTER: u64 = 0xc020_aa00;
const UFFDIO_ZEROPAGE: u64 = 0xc020_aa04;
const UFFD_API: u64 = 0xaa;
const REGISTER_MISSING: u64 = 1;

impl Absent {
    /// Maps the page; none where the kernel does not let us.
    pub fn new() -> Option<Self> {
        // SAFETY: no pointers.
        let faults =
            checked(unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) as isize })
                .ok()?;
        // SAFETY: a new descriptor, nobody else's.
        let faults = unsafe { OwnedFd::from_raw_fd(faults as i32) };
        // SAFETY: a new private mapping, which nobody has touched.
        let address = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                PAGE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }
        .expect("mmap")
        .cast();
        ioctl_on(&faults, UFFDIO_API, &mut [UFFD_API, 0, 0]).ok()?;
        let mut range = [address as u64, PAGE as u64, REGISTER_MISSING, 0];
        ioctl_on(&faults, UFFDIO_REGISTER, &mut range).ok()?;
        Some(Self { address, faults })
    }

    /// Waits until somebody waits for the page.
    pub fn await_fault(&self) {
        poll_wait(&self.faults, PollFlags::IN);
    }

    /// Lets the page be there, full of zeros.
    pub fn deliver(&self) {
        let mut range = [self.address as u64, PAGE as u64, 0, 0];
        ioctl_on(&self.faults, UFFDIO_ZEROPAGE, &mut range).expect("UFFDIO_ZEROPAGE");
    }
}

impl Drop for Absent {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`; the address is for system calls alone.
        let _ = unsafe { munmap(self.address.cast(), PAGE) };
    }
}
