// SPDX-License-Identifier: GPL-2.0
//! Loading and unloading the module: refused while anything of it is in use, without a trace
//! otherwise.
//!
//! Each scenario begins and ends with the module unloaded.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, scope};
use std::time::{Duration, Instant};

use altpipe_uapi::{Control, DEVICE, Flags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::child::isolate;
use crate::end::{CAPACITY, PAGE, fill, read, read_exact, set_nonblocking, write};
use crate::knobs;
use crate::ktap::Ktap;
use crate::module::{Memory, Module, traces};
use crate::parcel;
use crate::process::Process;
use crate::task::{Call, Task};

/// What the scenarios work with.
pub struct Lifecycle {
    /// The module under test.
    pub module: Module,
    /// How often it is reloaded to find leaks.
    pub count: u32,
}

type Scenario = fn(&Lifecycle);

mod fifos;
mod pages;

const SCENARIOS: &[(&str, Scenario)] = &[
    (
        "a loaded module shows its device, file system and sysfs tree, an unloaded one none of them",
        appears_and_goes,
    ),
    ("a second load is EEXIST and disturbs nothing", second_load),
    (
        "the mode parameter sets the device's mode, and a bad one is EINVAL without a trace",
        mode_parameter,
    ),
    ("an open control device refuses the unload", control_pins),
    ("an open read end refuses the unload and works on", |it| {
        end_pins(it, true)
    }),
    ("an open write end refuses the unload and works on", |it| {
        end_pins(it, false)
    }),
    ("an O_PATH descriptor refuses the unload", path_pins),
    (
        "an end in another process refuses the unload until that process is killed",
        process_pins,
    ),
    (
        "an end in flight over a socket refuses the unload until the socket is closed",
        flight_pins,
    ),
    ("a sleeping reader refuses the unload", sleeper_pins),
    (
        "the devices parameter makes 0 to 64 FIFO devices, and more is EINVAL without a trace",
        fifos::devices_parameter,
    ),
    (
        "an open FIFO device refuses the unload and works on",
        fifos::file_pins,
    ),
    (
        "an open that waits for a partner refuses the unload",
        fifos::waiting_open_pins,
    ),
    (
        "pages in a native pipe outlive the module that they came from",
        pages::outlive,
    ),
    (
        "pages from a native pipe go with the last end of the pipe that took them",
        pages::come_back,
    ),
    (
        "a splice that sleeps refuses the unload",
        pages::splice_pins,
    ),
    (
        "an open sysfs file does not hold the module and is ENODEV after the unload",
        sysfs_does_not_pin,
    ),
    (
        "pipes come and go while the module is unloaded and loaded under them",
        reload_under_load,
    ),
    ("20000 pipes leave no memory behind", pipes_leave_nothing),
    ("reloads leave no memory behind", reloads_leave_nothing),
];

/// The scenarios' names.
#[cfg(test)]
pub fn names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|(name, _)| *name)
}

impl Lifecycle {
    /// Runs all scenarios; returns the number of failures.
    pub fn run(&self, out: impl Write, timeout: Duration) -> io::Result<usize> {
        let mut ktap = Ktap::start(out, SCENARIOS.len())?;
        for (name, scenario) in SCENARIOS {
            // What a failed scenario left loaded must not fail the next.
            let _ = self.module.unload();
            let outcome = isolate(timeout, || {
                assert_eq!(traces(), [false; 4], "loaded already");
                scenario(self);
                assert_eq!(traces(), [false; 4], "not gone");
            })?;
            ktap.result(name, &outcome)?;
        }
        Ok(ktap.failed())
    }

    // Loads and makes a pipe, with no control device left open.
    fn load_and_make(&self) -> (OwnedFd, OwnedFd) {
        self.module.load();
        Control::open()
            .expect("open the device")
            .create(Flags::CLOEXEC, "")
            .expect("make a pipe")
    }

    fn assert_refused(&self) {
        for _ in 0..3 {
            assert_eq!(self.module.unload(), Err(Errno::WOULDBLOCK));
        }
    }

    fn unload(&self) {
        assert_eq!(self.module.unload(), Ok(()));
    }
}

fn appears_and_goes(it: &Lifecycle) {
    for _ in 0..2 {
        it.module.load();
        assert_eq!(traces(), [true; 4]);
        it.unload();
        assert_eq!(traces(), [false; 4]);
    }
}

fn second_load(it: &Lifecycle) {
    let (r, w) = it.load_and_make();
    assert_eq!(it.module.load_with(""), Err(Errno::EXIST));
    assert_eq!(traces(), [true; 4]);
    write(&w, b"x").unwrap();
    assert_eq!(read(&r, 9).as_deref(), Ok(&b"x"[..]));
    drop((r, w));
    it.unload();
}

fn mode_parameter(it: &Lifecycle) {
    for (parameter, mode) in [("", 0o666), ("mode=0600", 0o600), ("mode=0640", 0o640)] {
        it.module.load_with(parameter).unwrap();
        assert_eq!(
            fs::metadata(DEVICE).unwrap().mode() & 0o7777,
            mode,
            "{parameter:?}"
        );
        it.unload();
    }
    for parameter in [
        "mode=0",
        "mode=01000",
        "mode=04666",
        "mode=x",
        "mode=",
        "mode=-1",
    ] {
        assert_eq!(
            it.module.load_with(parameter),
            Err(Errno::INVAL),
            "{parameter:?}"
        );
        assert_eq!(traces(), [false; 4], "{parameter:?}");
    }
}

fn control_pins(it: &Lifecycle) {
    it.module.load();
    let control = Control::open().unwrap();
    it.assert_refused();
    assert_eq!(control.version().unwrap(), 1);
    drop(control);
    it.unload();
}

fn end_pins(it: &Lifecycle, keep_read_end: bool) {
    let (r, w) = it.load_and_make();
    it.assert_refused();
    write(&w, b"abc").unwrap();
    assert_eq!(read(&r, 1).as_deref(), Ok(&b"a"[..]));
    if keep_read_end {
        drop(w);
        it.assert_refused();
        assert_eq!(read(&r, 9).as_deref(), Ok(&b"bc"[..]));
        assert_eq!(read(&r, 9).as_deref(), Ok(&b""[..]));
        drop(r);
    } else {
        drop(r);
        it.assert_refused();
        assert_eq!(write(&w, b"x"), Err(Errno::PIPE));
        drop(w);
    }
    it.unload();
}

fn path_pins(it: &Lifecycle) {
    let (r, w) = it.load_and_make();
    let link = format!("/proc/self/fd/{}", r.as_raw_fd());
    let path = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(link)
        .unwrap();
    drop((r, w));
    it.assert_refused();
    assert_eq!(
        path.metadata().unwrap().mode() & 0o7777,
        0o600,
        "the inode is alive"
    );
    drop(path);
    it.unload();
}

fn process_pins(it: &Lifecycle) {
    let (r, w) = it.load_and_make();
    let child = Process::fork(|| _ = read(&r, 1));
    child.watched().until_asleep(Call::Read, &r);
    drop((r, w));
    it.assert_refused();
    child.kill();
    it.module.unload_when_free();
}

fn flight_pins(it: &Lifecycle) {
    let (r, w) = it.load_and_make();
    let (left, right) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    parcel::send(&left, &w);
    drop((r, w));
    it.assert_refused();
    drop((left, right));
    it.module.unload_when_free();
}

fn sleeper_pins(it: &Lifecycle) {
    let (r, w) = it.load_and_make();
    scope(|s| {
        let reader = Task::asleep_in(s, Call::Read, &r, || read(&r, 1));
        it.assert_refused();
        drop(w);
        assert_eq!(reader.join().as_deref(), Ok(&b""[..]));
    });
    it.assert_refused();
    drop(r);
    it.unload();
}

fn sysfs_does_not_pin(it: &Lifecycle) {
    it.module.load();
    let open = |file| {
        OpenOptions::new()
            .read(true)
            .open(knobs::path(file))
            .unwrap()
    };
    let mut files = [open("knobs/tail_update"), open("stats/reads")];
    let mut store = OpenOptions::new()
        .write(true)
        .open(knobs::path("knobs/times"))
        .unwrap();
    it.unload();
    for file in &mut files {
        assert_eq!(
            file.read(&mut [0; 64]).unwrap_err().raw_os_error(),
            Some(libc::ENODEV)
        );
    }
    assert_eq!(
        store.write(b"full").unwrap_err().raw_os_error(),
        Some(libc::ENODEV)
    );
}

// One turn of a program that uses whatever is there. It may meet the module at any moment of its
// coming and going.
fn use_module() {
    let _ = fs::read_to_string(knobs::path("knobs/tail_update"));
    let _ = fs::read_to_string(knobs::path("stats/reads"));
    let Ok(control) = Control::open() else { return };
    let (r, w) = control
        .create(Flags::CLOEXEC, "")
        .expect("an open device makes pipes");
    drop(control);
    assert_eq!(write(&w, b"abc"), Ok(3));
    assert_eq!(read(&r, 9).as_deref(), Ok(&b"abc"[..]));
    fill(&w, PAGE);
}

fn reload_under_load(it: &Lifecycle) {
    const RELOADS: u32 = 15;
    let done = AtomicBool::new(false);
    let (mut reloads, mut refusals) = (0, 0);
    it.module.load();
    scope(|s| {
        for _ in 0..2 {
            Task::spawn(s, || {
                while !done.load(Ordering::Relaxed) {
                    use_module();
                }
            });
        }
        while reloads < RELOADS || refusals == 0 {
            match it.module.unload() {
                Ok(()) => {
                    it.module.load();
                    reloads += 1;
                }
                Err(error) => {
                    assert_eq!(error, Errno::WOULDBLOCK);
                    refusals += 1;
                }
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    it.module.unload_when_free();
}

// Runs `turns` turns after a warm-up, in which caches fill, and waits for the memory to come back:
// inodes and files are freed only some time after their last use.
//
// The tolerances are what an idle machine of two processors was seen to move by on its own.
// Per-processor lists of free pages move by several MiB, those of free objects by some 100 KiB.
fn assert_no_leak(turns: u32, mut turn: impl FnMut()) {
    (0..turns.min(10)).for_each(|_| turn());
    let before = Memory::now();
    (0..turns).for_each(|_| turn());
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let now = Memory::now();
        if now.slab <= before.slab + 1_000 && now.pages <= before.pages + 8_000 {
            return;
        }
        assert!(Instant::now() < deadline, "{before:?} has become {now:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

// A leak of 64 bytes a pipe would be 1250 KiB of objects, one of a page for every tenth 8000 KiB.
fn pipes_leave_nothing(it: &Lifecycle) {
    it.module.load();
    let control = Control::open().unwrap();
    assert_no_leak(200, || {
        let pipes: Vec<_> = (0..100)
            .map(|_| control.create(Flags::CLOEXEC, "times=full").unwrap())
            .collect();
        for (r, w) in &pipes {
            write(w, &[b'x'; 2 * PAGE + 1]).unwrap();
            read(r, PAGE).unwrap();
        }
    });
    drop(control);
    it.unload();
}

fn reloads_leave_nothing(it: &Lifecycle) {
    // The module's text and data alone are some 200 KiB a turn.
    assert_no_leak(it.count, || {
        let (r, w) = it.load_and_make();
        set_nonblocking(&w, true);
        assert_eq!(write(&w, &[b'x'; 2 * CAPACITY]), Ok(CAPACITY));
        read_exact(&r, 3 * PAGE);
        knobs::store("knobs/times", "full").unwrap();
        drop((r, w));
        it.unload();
    });
}
