// SPDX-License-Identifier: GPL-2.0
//! A second task, whose sleep is seen from outside.
//!
//! The director hands it a call and then waits until it has either come back or fallen asleep in
//! it. Both are facts, not a matter of time: whoever wakes a task makes it runnable before he goes
//! on, so a task that /proc shows asleep once he has gone on was not woken.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Instant;

use rustix::thread::gettid;

use super::call::{Call, Desk, Outcome, PATIENCE};

#[derive(Default)]
struct Shared {
    // The number of the call that was begun last, and of the one that ended last.
    begun: AtomicU64,
    ended: AtomicU64,
    outcome: Mutex<Option<Outcome>>,
}

/// A task that makes calls for the director.
pub struct Task {
    tid: i32,
    stat: File,
    syscall: File,
    jobs: mpsc::Sender<Call>,
    shared: Arc<Shared>,
    number: u64,
    call: Option<Call>,
}

impl Task {
    /// Starts it, with nothing to do.
    pub fn start() -> Self {
        let (jobs, received) = mpsc::channel::<Call>();
        let (tell, told) = mpsc::channel();
        let shared = Arc::new(Shared::default());
        let mine = shared.clone();
        thread::spawn(move || {
            let desk = Desk::new();
            tell.send(gettid().as_raw_nonzero().get())
                .expect("the director waits");
            for (number, call) in (1..).zip(received) {
                mine.begun.store(number, Ordering::SeqCst);
                let outcome = call.perform(&desk);
                *mine.outcome.lock().expect("no panic is survived") = Some(outcome);
                mine.ended.store(number, Ordering::SeqCst);
            }
        });
        let tid = told.recv().expect("the task reports");
        let open = |name| File::open(format!("/proc/self/task/{tid}/{name}")).expect("/proc");
        Self {
            tid,
            stat: open("stat"),
            syscall: open("syscall"),
            jobs,
            shared,
            number: 0,
            call: None,
        }
    }

    /// Hands it a call. It must not have one.
    pub fn begin(&mut self, call: Call) {
        assert!(self.call.is_none());
        self.number += 1;
        self.call = Some(call.clone());
        self.jobs.send(call).expect("the task lives");
    }

    /// Whether it has no call.
    pub fn is_idle(&self) -> bool {
        self.call.is_none()
    }

    /// Whether it has a call on this descriptor.
    pub fn sleeps_on(&self, fd: i32) -> bool {
        self.call.as_ref().is_some_and(|call| call.fd() == fd)
    }

    /// Whether it sleeps in its call at this moment.
    pub fn is_at_rest(&self) -> bool {
        self.shared.ended.load(Ordering::SeqCst) != self.number && self.sleeps()
    }

    /// Waits until it has ended its call, whose outcome this returns, or sleeps in it.
    pub fn settle(&mut self) -> Option<Outcome> {
        self.call.as_ref()?;
        let start = Instant::now();
        for turn in 0u32.. {
            if self.shared.ended.load(Ordering::SeqCst) == self.number {
                self.call = None;
                return self
                    .shared
                    .outcome
                    .lock()
                    .expect("no panic is survived")
                    .take();
            }
            // A look at /proc costs more than a switch to the task.
            if turn >= 2 && self.shared.begun.load(Ordering::SeqCst) == self.number && self.sleeps()
            {
                return None;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "a task neither sleeps nor ends: {:?}",
                self.call
            );
            thread::yield_now();
        }
        unreachable!("the loop has no end")
    }

    /// Sends it a signal.
    pub fn signal(&self, number: i32) {
        // SAFETY: touches no memory of ours.
        let ret = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), self.tid, number) };
        assert_eq!(ret, 0, "tgkill");
    }

    // The state first. It began the call before, and what comes after the call is another call: so
    // if it is seen asleep, and then in the call, it slept there. Asleep means in a queue of the
    // pipe's: for the mutex and for memory it would sleep uninterruptibly.
    fn sleeps(&self) -> bool {
        let mut room = [0; 512];
        let state = text(&self.stat, &mut room)
            .rsplit_once(") ")
            .map(|(_, rest)| rest.starts_with('S'));
        state == Some(true) && self.is_in_call()
    }

    fn is_in_call(&self) -> bool {
        let Some(call) = &self.call else {
            return false;
        };
        let (numbers, first) = call.signature();
        let mut room = [0; 512];
        let mut words = text(&self.syscall, &mut room).split_ascii_whitespace();
        let number = words.next().and_then(|word| word.parse::<i64>().ok());
        let argument = words
            .next()
            .and_then(|word| i64::from_str_radix(word.trim_start_matches("0x"), 16).ok());
        number.is_some_and(|number| numbers.contains(&number))
            && (first.is_none() || first == argument)
    }
}

fn text<'a>(file: &File, room: &'a mut [u8]) -> &'a str {
    let len = file.read_at(room, 0).expect("/proc of a live task");
    std::str::from_utf8(&room[..len]).unwrap_or_default()
}
