// SPDX-License-Identifier: GPL-2.0
//! The page in which all processes of a run count their pipes.
//!
//! It is a memory file of ours that they reach through /proc, so nothing is left behind however we end, and only
//! our own user reaches it. It is sealed: nobody can shorten it under those who have it mapped.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::AsRawFd;
use std::process;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use altpipe_preload::counts::{Counts, Reason};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

/// The page, zeroed.
///
/// # Invariants
///
/// `counts` points to the first page of `file`, mapped for as long as this lives.
#[derive(Debug)]
pub struct Tally {
    file: File,
    counts: NonNull<Counts>,
}

/// What has been counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipes {
    /// Programs that began with the library loaded.
    pub programs: u64,
    /// Pipes of altpipe's.
    pub altpipe: u64,
    /// Pipes of the kernel's, by reason.
    pub native: [(Reason, u64); Reason::ALL.len()],
}

impl Pipes {
    /// Pipes of the kernel's, whatever the reason.
    pub fn native(&self) -> u64 {
        self.native.iter().map(|(_, count)| count).sum()
    }
}

const LENGTH: NonZeroUsize = NonZeroUsize::new(Counts::FILE_SIZE).unwrap();

impl Tally {
    /// Makes one.
    pub fn new() -> io::Result<Self> {
        let file: File = memfd_create(
            c"altpipe run",
            MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING,
        )?
        .into();
        file.set_len(Counts::FILE_SIZE as u64)?;
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
        // SAFETY: a new mapping at a place of the kernel's choice concerns no existing object.
        let memory = unsafe {
            mmap(
                None,
                LENGTH,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_SHARED,
                &file,
                0,
            )?
        };
        // INVARIANT: that is the page; zeros are a valid `Counts`, which fits.
        let tally = Self {
            file,
            counts: memory.cast(),
        };
        tally.counts().begin();
        Ok(tally)
    }

    /// Where others find it while this lives.
    pub fn path(&self) -> CString {
        let path = format!("/proc/{}/fd/{}", process::id(), self.file.as_raw_fd());
        CString::new(path).expect("a path without zeros")
    }

    /// What has been counted so far.
    pub fn pipes(&self) -> Pipes {
        let counts = self.counts();
        Pipes {
            programs: counts.programs.load(Relaxed),
            altpipe: counts.altpipe.load(Relaxed),
            native: Reason::ALL.map(|reason| (reason, counts.native(reason).load(Relaxed))),
        }
    }

    fn counts(&self) -> &Counts {
        // SAFETY: by the invariant. All fields are atomics, so other processes may write them meanwhile.
        unsafe { self.counts.as_ref() }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        // SAFETY: by the invariant, and nothing refers to the page any more.
        let _ = unsafe { munmap(self.counts.cast(), LENGTH.get()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_process_counts_is_seen_here() {
        let tally = Tally::new().unwrap();
        altpipe_preload::counts::map(&tally.path());
        altpipe_preload::counts::add(|counts| &counts.altpipe);
        altpipe_preload::counts::add(|counts| counts.native(Reason::Room));
        altpipe_preload::counts::add(|counts| counts.native(Reason::Refused));
        let pipes = tally.pipes();
        assert_eq!((pipes.altpipe, pipes.native()), (1, 2));
        assert_eq!(pipes.native[1], (Reason::Room, 1));
    }

    #[test]
    fn nobody_can_shorten_the_page() {
        assert!(Tally::new().unwrap().file.set_len(0).is_err());
    }
}
