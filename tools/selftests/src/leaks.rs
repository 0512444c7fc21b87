// SPDX-License-Identifier: GPL-2.0
//! What many pipes leave behind: nothing.
//!
//! Objects, pages and descriptors are counted before and after pipes of every preset were made, used
//! in all ways that allocate, and closed in every order.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use altpipe_core::PRESETS;
use altpipe_uapi::Control;
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::account::{Account, NOISE};
use crate::child::isolate;
use crate::descriptors;
use crate::end::{PAGE, number, read, write};
use crate::ktap::Ktap;
use crate::module::Memory;
use crate::subject::{Pipe, Subject};

/// Bytes that a pipe may leave on the account beside its objects. On 7.3, 8 to 21 were seen for each
/// of ours, with or without data, and next to none for a native one. The count of objects came back,
/// and the rest went with the cgroup. It may be the reserve that the kernel keeps for small charges;
/// that is not shown, and free memory is too noisy to rule a small leak out. A page for every
/// hundredth pipe would be more.
const RESERVE: u64 = 32;

/// Pipes that are open at the same time.
const LOT: u32 = 100;

/// So many pipes.
pub struct Leaks {
    /// How many.
    pub pipes: u32,
}

impl Leaks {
    /// Makes them; returns the number of failures, which is at most 1.
    pub fn run(&self, out: impl io::Write) -> io::Result<usize> {
        let account = Account::open()?;
        let mut ktap = Ktap::start(out, 2)?;
        // A pipe takes a millisecond on an emulated machine with every check on.
        let patience = Duration::from_secs(60 + u64::from(self.pipes) / 100);
        for (kind, is_native) in [("native", true), ("altpipe's", false)] {
            let outcome = isolate(patience, || self.count(&account, is_native))?;
            ktap.result(
                &format!(
                    "{} {kind} pipes leave no memory and no descriptor behind",
                    self.pipes
                ),
                &outcome,
            )?;
        }
        Ok(ktap.failed())
    }

    fn count(&self, account: &Account, is_native: bool) {
        let control = Arc::new(Control::open().expect("open the device"));
        let subjects: Vec<_> = if is_native {
            vec![Subject::Native]
        } else {
            let presets = PRESETS.iter().map(|preset| preset.name.to_string());
            presets
                .map(|text| Subject::altpipe(&control, &text).expect("a preset"))
                .collect()
        };
        let lot = |turn: u32| lot(&subjects[turn as usize % subjects.len()], turn);
        // Caches fill, and lists of each processor.
        (0..5).for_each(lot);
        let open = descriptors::open();
        let charged = account.steady();
        let objects = account.objects();
        let before = Memory::now();
        (0..self.pipes.div_ceil(LOT)).for_each(lot);
        let most = charged + NOISE + RESERVE * u64::from(self.pipes);
        let left = account.settle(most);
        let objects_left = account.objects();
        let after = Memory::now();
        println!(
            "# {} pipes: {} to {} KiB of objects, {} to {} KiB of pages; on account {charged} to {left} bytes, {objects} \
             to {objects_left} of them in objects",
            self.pipes, before.slab, after.slab, before.pages, after.pages,
        );
        assert_eq!(descriptors::open(), open, "descriptors");
        assert!(
            objects_left <= objects + NOISE,
            "{} bytes of objects are not back",
            objects_left - objects
        );
        assert!(
            left <= most,
            "{} bytes of kernel memory are not back",
            left - charged
        );
        // What is on nobody's account must show here: a byte for each of 100000 pipes is 100 KiB.
        // Per-processor lists move by some MiB, and KASAN keeps what was freed for a while.
        let quarantine = if has_quarantine() { 48 << 10 } else { 0 };
        assert!(
            after.slab <= before.slab + 1_000 + quarantine
                && after.pages <= before.pages + 8_000 + quarantine,
            "{before:?} has become {after:?}"
        );
    }
}

// Whether the kernel keeps freed objects in KASAN's quarantine.
fn has_quarantine() -> bool {
    std::fs::read_to_string("/proc/kallsyms")
        .is_ok_and(|symbols| symbols.contains(" kasan_quarantine_put"))
}

// As many pipes as are open at once.
fn lot(subject: &Subject, turn: u32) {
    let mut pipes: Vec<_> = (0..LOT).map(|_| subject.pipe()).collect();
    for (at, Pipe { read: r, write: w }) in pipes.iter().enumerate() {
        write(w, &[b'x'; 2 * PAGE + 1]).expect("write");
        read(r, PAGE).expect("read");
        match at % 4 {
            0 => _ = subject.resize(w, 4 * PAGE as u32).expect("resize"),
            1 => drop(reopened(w)),
            2 => notify(r),
            _ => {}
        }
    }
    match turn % 3 {
        0 => {}
        1 => pipes.reverse(),
        _ => {
            let pipes = pipes.drain(..).map(|pipe| (pipe.read, pipe.write));
            let (readers, writers): (Vec<_>, Vec<_>) = pipes.unzip();
            drop(writers);
            drop(readers);
        }
    }
}

fn reopened(end: &OwnedFd) -> OwnedFd {
    let path = format!("/proc/self/fd/{}", end.as_raw_fd());
    openat(CWD, path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).expect("re-open")
}

// Enters the end into the list of those that want SIGIO; nobody owns it, so none comes.
fn notify(end: &OwnedFd) {
    // SAFETY: touches no memory.
    let ret = unsafe { libc::fcntl(number(end), libc::F_SETFL, libc::O_ASYNC) };
    assert_eq!(ret, 0, "O_ASYNC");
}
