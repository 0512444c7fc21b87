// SPDX-License-Identifier: GPL-2.0
//! What an unprivileged user may not do: exceed his quota, change a knob, or pin memory with no
//! descriptor left that could be read.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use altpipe_uapi::{Control, Flags, get_size, set_size};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::become_nobody;
use crate::account::{Account, NOISE};
use crate::draw::{self, below};
use crate::end::{CAPACITY, PAGE, fill, read_exact};
use crate::knobs;
use crate::parcel;
use crate::process::Process;

type Case = fn(&Account);

/// The cases and what each shows.
pub const CASES: &[(&str, Case)] = &[
    (
        "no mix of creating, resizing and closing takes a user over his quota",
        quota,
    ),
    (
        "a user can open no file of the devices' in sysfs for writing, and none of them changes",
        no_knob,
    ),
    (
        "data is freed with the last end, whatever else still refers to the pipe",
        nothing_pinned,
    ),
    (
        "data in flight over a socket is freed with the socket",
        nothing_in_flight,
    ),
    (
        "data of a FIFO device is freed with its last descriptor",
        nothing_in_device,
    ),
];

/// As many pages as a user may have in pipes here.
const HARD: usize = 256;

fn quota(_: &Account) {
    knobs::store("limits/user_pages_hard", HARD.to_string()).expect("a limit");
    knobs::store("limits/user_pages_soft", "128").expect("a limit");
    let control = Control::open().expect("open the device");
    // The kernel's account of a user must not be that of somebody who has pipes elsewhere.
    Process::fork(|| {
        become_nobody();
        let generator = &mut draw::generator(1);
        let mut pipes: Vec<(OwnedFd, OwnedFd)> = Vec::new();
        let (mut refused, mut most) = (0, 0);
        for _ in 0..2000 {
            match below(generator, 8) {
                0..=2 => {
                    let text = ["", "capacity=4096", "capacity=1048576", "v2.6.18"];
                    let text = text[below(generator, 4) as usize];
                    match control.create(Flags::CLOEXEC, text) {
                        Ok(pipe) => pipes.push(pipe),
                        Err(error) => {
                            assert_eq!(error.raw_os_error(), Some(libc::ENFILE), "{text}");
                            refused += 1;
                        }
                    }
                }
                3..=5 if !pipes.is_empty() => {
                    let pipe = &pipes[below(generator, pipes.len() as u32) as usize];
                    let bytes = (PAGE as u32) << below(generator, 10);
                    if let Err(error) = set_size(&pipe.1, bytes) {
                        assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{bytes}");
                        refused += 1;
                    }
                }
                _ if !pipes.is_empty() => {
                    let at = below(generator, pipes.len() as u32) as usize;
                    pipes.swap_remove(at);
                }
                _ => {}
            }
            let total: usize = pipes
                .iter()
                .map(|(r, _)| get_size(r).expect("GET_SIZE") as usize / PAGE)
                .sum();
            assert!(total <= HARD, "{total} pages");
            most = most.max(total);
        }
        assert!(
            refused > 50 && most > HARD / 2,
            "{refused} refused, at most {most} pages"
        );
    })
    .succeed();
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory in sysfs").flatten() {
        let kind = entry.file_type().expect("a kind of file");
        if kind.is_dir() {
            files(&entry.path(), found);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
}

fn no_knob(_: &Account) {
    let mut all = Vec::new();
    for root in ["/sys/class/misc/altpipe/", "/sys/class/altpipe/altpipe0/"] {
        files(Path::new(root), &mut all);
    }
    let settings: Vec<_> = all
        .iter()
        .filter(|path| {
            path.components().any(|part| {
                ["knobs", "limits"].contains(&part.as_os_str().to_str().unwrap_or_default())
            })
        })
        .collect();
    assert!(settings.len() > 40, "{settings:?}");
    let values = || -> Vec<_> {
        settings
            .iter()
            .map(|path| fs::read_to_string(path).expect("a knob"))
            .collect()
    };
    let before = values();
    Process::fork(|| {
        become_nobody();
        for path in &all {
            for flags in [OFlags::WRONLY, OFlags::RDWR, OFlags::WRONLY | OFlags::TRUNC] {
                let opened = openat(CWD, path, flags, Mode::empty());
                assert_eq!(
                    opened.map(drop),
                    Err(rustix::io::Errno::ACCESS),
                    "{}",
                    path.display()
                );
            }
        }
    })
    .succeed();
    assert_eq!(values(), before);
}

/// Pipes full of data: 4 MiB in all.
const PIPES: usize = 64;

/// What they may come to without their data: inodes, slots and files, as large as KASAN makes them,
/// and what it keeps of those that are gone. 740 kB were seen.
const EMPTY: u64 = 1 << 20;

fn full_pipes(control: &Control) -> Vec<(OwnedFd, OwnedFd)> {
    (0..PIPES)
        .map(|_| {
            let pipe = control.create(Flags::CLOEXEC, "").expect("a pipe");
            assert_eq!(fill(&pipe.1, PAGE), CAPACITY);
            pipe
        })
        .collect()
}

// Runs `body` as nobody with the device open; then all that it had must be gone.
fn as_nobody(account: &Account, body: impl FnOnce(&Control, u64)) {
    let control = Control::open().expect("open the device");
    let before = account.steady();
    Process::fork(|| {
        become_nobody();
        body(&control, before);
    })
    .succeed();
    account.assert_back(before, "after the user's process");
}

fn assert_full(account: &Account, before: u64) {
    let charged = account.kernel();
    assert!(
        charged >= before + (PIPES * CAPACITY) as u64,
        "the data is on the account: {before} to {charged}"
    );
}

fn assert_empty(account: &Account, before: u64, what: &str) {
    let charged = account.settle(before + EMPTY);
    assert!(
        charged <= before + EMPTY,
        "{what} pins {} bytes",
        charged - before
    );
}

fn nothing_pinned(account: &Account) {
    as_nobody(account, |control, before| {
        let pipes = full_pipes(control);
        assert_full(account, before);
        let again = |end: &OwnedFd, flags| {
            let path = format!("/proc/self/fd/{}", end.as_raw_fd());
            openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty()).expect("open again")
        };
        // Names of the inodes, which are no descriptors of the pipe.
        let names: Vec<_> = pipes.iter().map(|(r, _)| again(r, OFlags::PATH)).collect();
        // SAFETY: touches no memory.
        let watch = unsafe { libc::inotify_init1(libc::IN_CLOEXEC) };
        assert!(watch >= 0, "inotify");
        let poller = epoll::create(CreateFlags::CLOEXEC).expect("epoll");
        for (r, w) in &pipes {
            let path = std::ffi::CString::new(format!("/proc/self/fd/{}", w.as_raw_fd()))
                .expect("no NUL in a path");
            // SAFETY: the path is terminated. Whether such a file may be watched is not the point.
            unsafe { libc::inotify_add_watch(watch, path.as_ptr(), libc::IN_ALL_EVENTS) };
            epoll::add(&poller, r, EventData::new_u64(0), EventFlags::IN).expect("EPOLL_CTL_ADD");
        }
        drop(pipes);
        assert_empty(account, before, "a name, a watch or an epoll");
        drop(names);
    });
}

fn nothing_in_flight(account: &Account) {
    as_nobody(account, |control, before| {
        let (left, right) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .expect("a socket");
        for (r, w) in full_pipes(control) {
            parcel::send(&left, &r);
            parcel::send(&left, &w);
        }
        assert_full(account, before);
        drop((left, right));
        assert_empty(account, before, "a closed socket");
    });
}

fn nothing_in_device(account: &Account) {
    as_nobody(account, |_, before| {
        let open = || {
            openat(
                CWD,
                "/dev/altpipe0",
                OFlags::RDWR | OFlags::CLOEXEC,
                Mode::empty(),
            )
            .expect("a FIFO device")
        };
        let large = 256 * PAGE;
        let file = open();
        set_size(&file, large as u32).expect("room");
        assert_eq!(fill(&file, PAGE), large);
        let charged = account.kernel();
        assert!(charged >= before + large as u64, "{before} to {charged}");
        drop(file);
        assert_empty(account, before, "a closed FIFO device");
        let charged = account.settle(before + NOISE);
        assert!(
            charged <= before + NOISE,
            "a closed FIFO device keeps {} bytes",
            charged - before
        );
        let file = open();
        assert_eq!(get_size(file.as_fd()).expect("GET_SIZE"), CAPACITY as u32);
        fill(&file, PAGE);
        assert_eq!(read_exact(&file, CAPACITY).len(), CAPACITY);
    });
}
