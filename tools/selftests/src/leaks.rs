// SPDX-License-Identifier: GPL-2.0
//! What many pipes leave behind: nothing.
//!
//! Objects, pages and descriptors are counted before and after pipes of every preset were made, used
//! in all ways that allocate, and closed in every order.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use altpipe_core::PRESETS;
use altpipe_uapi::{Control, Flags, set_size};
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::account::Account;
use crate::child::isolate;
use crate::descriptors;
use crate::end::{PAGE, number, read, write};
use crate::ktap::Ktap;
use crate::module::Memory;

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
        let mut ktap = Ktap::start(out, 1)?;
        // A pipe takes a millisecond on an emulated machine with every check on.
        let patience = Duration::from_secs(60 + u64::from(self.pipes) / 100);
        let outcome = isolate(patience, || self.count(&account))?;
        ktap.result(
            &format!(
                "{} pipes leave no memory and no descriptor behind",
                self.pipes
            ),
            &outcome,
        )?;
        Ok(ktap.failed())
    }

    fn count(&self, account: &Account) {
        let control = Control::open().expect("open the device");
        // Caches fill, and lists of each processor.
        (0..5).for_each(|turn| lot(&control, turn));
        let open = descriptors::open();
        let charged = account.steady();
        let before = Memory::now();
        for turn in 0..self.pipes.div_ceil(LOT) {
            lot(&control, turn);
        }
        account.assert_back(charged, "after the last pipe");
        assert_eq!(descriptors::open(), open, "descriptors");
        let after = Memory::now();
        println!(
            "# {} pipes: {} to {} KiB of objects, {} to {} KiB of pages, {} to {} bytes on account",
            self.pipes,
            before.slab,
            after.slab,
            before.pages,
            after.pages,
            charged,
            account.kernel(),
        );
        // What is on nobody's account must show here: a byte for each of 100000 pipes is 100 KiB.
        // Per-processor lists move by some MiB, and KASAN keeps what was freed for a while.
        let quarantine = if cfg_kasan() { 48 << 10 } else { 0 };
        assert!(
            after.slab <= before.slab + 1_000 + quarantine
                && after.pages <= before.pages + 8_000 + quarantine,
            "{before:?} has become {after:?}"
        );
    }
}

// Whether the kernel keeps freed objects in KASAN's quarantine.
fn cfg_kasan() -> bool {
    std::fs::read_to_string("/proc/kallsyms")
        .is_ok_and(|symbols| symbols.contains(" kasan_quarantine_put"))
}

// As many pipes as are open at once.
fn lot(control: &Control, turn: u32) {
    let preset = PRESETS[turn as usize % PRESETS.len()].name;
    let mut pipes: Vec<_> = (0..LOT)
        .map(|_| control.create(Flags::CLOEXEC, preset).expect("a pipe"))
        .collect();
    for (at, (r, w)) in pipes.iter().enumerate() {
        write(w, &[b'x'; 2 * PAGE + 1]).expect("write");
        read(r, PAGE).expect("read");
        match at % 4 {
            0 => _ = set_size(w, 4 * PAGE as u32).expect("resize"),
            1 => drop(reopened(w)),
            2 => notify(r),
            _ => {}
        }
    }
    match turn % 3 {
        0 => {}
        1 => pipes.reverse(),
        _ => {
            let (readers, writers): (Vec<_>, Vec<_>) = pipes.drain(..).unzip();
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
