// SPDX-License-Identifier: GPL-2.0
//! Calls with arguments that nobody in his right mind would give, as root and as nobody, and what an
//! unprivileged user may not do whatever he gives.
//!
//! The calls are drawn from a seed and made in batches, each in a process of its own with ends of
//! every preset, a native pipe and whatever calls return. An alarm ends what waits. What is looked
//! for is the kernel's own report, a hang, a descriptor or memory that does not come back, and a pipe
//! that does not work afterwards.

mod call;
mod objects;
mod user;

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use altpipe_uapi::{Control, Flags};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use crate::account::Account;
use crate::child::{Outcome, isolate, note};
use crate::descriptors;
use crate::draw;
use crate::end::{PAGE, read, set_nonblocking, write};
use crate::knobs::Snapshot;
use crate::ktap::Ktap;
use crate::signal::{self, Interrupted};
use objects::Objects;

/// Calls of one process.
const BATCH: u64 = 500;

/// A batch takes seconds; one that waits for what never comes takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Nobody's user and group.
const NOBODY: u32 = 65_534;

/// So many calls of each user.
pub struct Fuzz {
    /// How many.
    pub cases: u64,
    /// Leave root out.
    pub as_nobody: bool,
}

/// How often each call was made, and how often it succeeded, over all processes.
struct Counts(*const [[AtomicU64; 2]; call::KINDS]);

impl Counts {
    fn new() -> io::Result<Self> {
        const { assert!(size_of::<[[AtomicU64; 2]; call::KINDS]>() <= PAGE) };
        // SAFETY: a new mapping, which is never unmapped: zeros are counters at 0.
        let page = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                PAGE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
            )?
        };
        Ok(Self(page.cast_const().cast()))
    }

    fn of(&self, kind: usize) -> &[AtomicU64; 2] {
        // SAFETY: the mapping stays for as long as the program.
        unsafe { &(&*self.0)[kind] }
    }
}

impl Fuzz {
    /// Makes them; returns the number of failures.
    pub fn run(&self, out: impl io::Write, seed: u64) -> io::Result<usize> {
        let account = Account::open()?;
        let users: &[(&str, bool)] = if self.as_nobody {
            &[("nobody", false)]
        } else {
            &[("root", true), ("nobody", false)]
        };
        let mut ktap = Ktap::start(out, users.len() + user::CASES.len())?;
        ktap.remark(&format!("seed {seed}"))?;
        let _open = Opened::to_all()?;
        for (name, privileged) in users {
            let counts = Counts::new()?;
            let outcome = self.batches(&account, *privileged, &counts)?;
            println!("# {name}: {}", summary(&counts));
            let text = format!("{} calls of {name} do no harm", self.cases);
            ktap.result(&text, &outcome)?;
        }
        for (name, case) in user::CASES {
            let knobs = Snapshot::take()?;
            let outcome = isolate(PATIENCE, || case(&account))?;
            knobs.restore()?;
            ktap.result(name, &outcome)?;
        }
        Ok(ktap.failed())
    }

    fn batches(&self, account: &Account, privileged: bool, counts: &Counts) -> io::Result<Outcome> {
        let knobs = Snapshot::take()?;
        let charged = account.steady();
        for batch in 0..self.cases.div_ceil(BATCH) {
            let calls = BATCH.min(self.cases - batch * BATCH);
            let outcome = isolate(PATIENCE, || {
                // A stream of its own, so that a batch can be looked at alone.
                let stream = 1000 + batch * 2 + u64::from(privileged);
                fuzz(stream, calls, privileged, counts);
            })?;
            knobs.restore()?;
            if !matches!(outcome, Outcome::Passed) {
                return Ok(outcome);
            }
        }
        isolate(PATIENCE, || {
            account.assert_back(charged, "after the last call")
        })
    }
}

// The devices' files, which everybody may open for as long as this lives.
struct Opened(Vec<(String, u32)>);

impl Opened {
    fn to_all() -> io::Result<Self> {
        let mut before = Vec::new();
        for entry in fs::read_dir("/dev")? {
            let path = entry?.path().to_string_lossy().into_owned();
            if path.starts_with("/dev/altpipe") {
                before.push((path.clone(), fs::metadata(&path)?.permissions().mode()));
                fs::set_permissions(&path, Permissions::from_mode(0o666))?;
            }
        }
        Ok(Self(before))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        for (path, mode) in &self.0 {
            // The next user of this machine asks for its mode if it matters.
            let _ = fs::set_permissions(path, Permissions::from_mode(*mode));
        }
    }
}

fn summary(counts: &Counts) -> String {
    let mut calls = 0;
    let each: Vec<_> = (0..call::KINDS)
        .map(|kind| {
            let [made, good] = counts
                .of(kind)
                .each_ref()
                .map(|c| c.load(Ordering::Relaxed));
            calls += made;
            format!("{} {good} of {made}", call::name(kind))
        })
        .collect();
    format!("{calls} calls; succeeded: {}", each.join(", "))
}

/// Becomes nobody, for good.
pub fn become_nobody() {
    // SAFETY: these touch no memory; the process has one thread.
    let ret = unsafe {
        libc::setgroups(0, ptr::null())
            | libc::setresgid(NOBODY, NOBODY, NOBODY)
            | libc::setresuid(NOBODY, NOBODY, NOBODY)
    };
    assert_eq!(ret, 0, "become nobody");
}

fn fuzz(stream: u64, calls: u64, privileged: bool, counts: &Counts) {
    let control = Control::open().expect("open the device");
    if !privileged {
        become_nobody();
    }
    // Only the alarm means anything to us; whatever else an end may send is not to be.
    for number in 1..=64 {
        if ![libc::SIGKILL, libc::SIGSTOP, libc::SIGCHLD, 32, 33].contains(&number) {
            signal::ignore(number);
        }
    }
    signal::count(libc::SIGALRM, Interrupted::Fails);
    let generator = &mut draw::generator(stream);
    let open = descriptors::open();
    let mut objects = Objects::new(control);
    alarms(20_000);
    for at in 0..calls {
        let kind = call::draw(generator);
        note(&format!("stream {stream}, call {at}: {}", call::name(kind)));
        let result = call::make(kind, &mut objects, generator);
        assert!(result >= -4095, "no errno: {result}");
        let [made, good] = counts.of(kind);
        made.fetch_add(1, Ordering::Relaxed);
        good.fetch_add(u64::from(result >= 0), Ordering::Relaxed);
    }
    alarms(0);
    note(&format!("stream {stream}: the end"));
    objects.close_all();
    assert_eq!(descriptors::open(), open, "descriptors");
    // Every knob by its name: root may have turned the defaults.
    let (r, w) = objects
        .control
        .create(Flags::CLOEXEC, "v7.3")
        .expect("a pipe after all this");
    set_nonblocking(&r, true);
    assert_eq!(write(&w, b"abc"), Ok(3));
    assert_eq!(read(&r, 9).as_deref(), Ok(&b"abc"[..]));
}

// An alarm every so many microseconds; none for 0.
fn alarms(micros: i64) {
    let interval = libc::timeval {
        tv_sec: 0,
        tv_usec: micros,
    };
    let timer = libc::itimerval {
        it_interval: interval,
        it_value: interval,
    };
    // SAFETY: the structure is whole and outlives the call.
    let ret = unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) };
    assert_eq!(ret, 0, "setitimer");
}
