// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters that all processes of a run share: a page of a file that each maps when it begins.
//!
//! The page outlives the descriptor it was mapped through, fork(2) hands it on, and exec(2) brings it back by the
//! path in the environment. Each counter is added to by whoever likes and read when all is over, so relaxed
//! accesses do.

use core::ffi::{CStr, c_int};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Why the kernel's own pipe was made where one of altpipe's was meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The control device could not be opened: it is not there, or not for this user.
    Device,
    /// Too few descriptors or too little memory were left for the control device beside the two ends.
    Room,
    /// altpipe makes no such pipe: a notification pipe.
    Flags,
    /// The module refused: a config that it does not know, or a capacity above this user's limit.
    Refused,
}

impl Reason {
    /// All of them, in the order of the counters.
    pub const ALL: [Self; 4] = [Self::Device, Self::Room, Self::Flags, Self::Refused];

    /// A word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Room => "room",
            Self::Flags => "flags",
            Self::Refused => "refused",
        }
    }
}

/// The page's layout. A reader that finds another [`Counts::MAGIC`] leaves it alone.
#[repr(C)]
#[derive(Debug)]
pub struct Counts {
    magic: AtomicU64,
    /// Programs that began with the library loaded.
    pub programs: AtomicU64,
    /// Pipes of altpipe's.
    pub altpipe: AtomicU64,
    /// Pipes of the kernel's, for each [`Reason`].
    pub native: [AtomicU64; Reason::ALL.len()],
}

impl Counts {
    /// `altpipe1`: the name and the version of this layout.
    pub const MAGIC: u64 = u64::from_be_bytes(*b"altpipe1");

    /// The length of the file.
    pub const FILE_SIZE: usize = 4096;

    /// Makes a page of zeros one that a library of this version counts in.
    pub fn begin(&self) {
        self.magic.store(Self::MAGIC, Ordering::Relaxed);
    }

    /// The pipes that were made for one reason.
    pub fn native(&self, reason: Reason) -> &AtomicU64 {
        // An enum without gaps, in the order of ALL: a test looks.
        &self.native[reason as usize]
    }
}

static COUNTS: AtomicPtr<Counts> = AtomicPtr::new(ptr::null_mut());

/// The page of this process, if it has one.
pub fn get() -> Option<&'static Counts> {
    // SAFETY: either null or what `map` has mapped for good; all its fields are atomics.
    unsafe { COUNTS.load(Ordering::Acquire).as_ref() }
}

/// Adds one to a counter, where there is a page.
pub fn add(counter: impl FnOnce(&Counts) -> &AtomicU64) {
    if let Some(counts) = get() {
        counter(counts).fetch_add(1, Ordering::Relaxed);
    }
}

/// Maps the file at `path`. One that is not there, or is no such file, leaves the process without counters.
pub fn map(path: &CStr) {
    // SAFETY: plain system calls; the path is terminated, the mapping is a new one at a place of the kernel's
    // choice, and its length is that of a file that cannot shrink (`altpipe run` seals it) or at least has it now.
    unsafe {
        let file = libc::syscall(
            libc::SYS_openat,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK,
        ) as c_int;
        if file < 0 {
            return;
        }
        let mut status = core::mem::zeroed::<libc::stat>();
        let fits = libc::fstat(file, &raw mut status) == 0
            && status.st_mode & libc::S_IFMT == libc::S_IFREG
            && status.st_size >= Counts::FILE_SIZE as libc::off_t;
        let page = if fits {
            libc::mmap(
                ptr::null_mut(),
                Counts::FILE_SIZE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file,
                0,
            )
        } else {
            libc::MAP_FAILED
        };
        libc::syscall(libc::SYS_close, file);
        if page == libc::MAP_FAILED {
            return;
        }
        let counts = page.cast::<Counts>();
        if (*counts).magic.load(Ordering::Relaxed) == Counts::MAGIC {
            COUNTS.store(counts, Ordering::Release);
        } else {
            libc::munmap(page, Counts::FILE_SIZE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_counter() {
        for (place, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place);
        }
        assert!(size_of::<Counts>() <= Counts::FILE_SIZE);
    }
}
