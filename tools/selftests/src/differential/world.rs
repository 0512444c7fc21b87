// SPDX-License-Identifier: GPL-2.0
//! A pipe on which a sequence runs, and all that is seen of it.
//!
//! The director runs the script. What may sleep he gives to one of two tasks; nothing else of his
//! ever sleeps. After each act that may wake a task he waits until both have come to rest, so one
//! thing happens at a time and a sequence has one course only.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::fs::OFlags;
use rustix::pipe::PipeFlags;

use super::call::{Call, Desk, Outcome, checked, events};
use super::comparable::Comparable;
use super::coverage::Coverage;
use super::script::{Access, Form, Memory, Odd, Op, Part, Script, Side, Transfer};
use super::task::Task;
use super::transcript::{Deed, Step, Transcript};
use crate::memory::NOWHERE;
use crate::subject::Subject;
use ends::Descriptor;

mod ends;
mod look;

/// Descriptors that a sequence may have open.
const MOST_ENDS: usize = 6;

/// The signal whose handler fails calls, and the one whose handler restarts them.
pub const FAILS: i32 = libc::SIGUSR1;
/// See [`FAILS`].
pub const RESTARTS: i32 = libc::SIGUSR2;

/// What stands for SIGIO. It is real-time, so that none is lost.
pub fn owners_signal() -> i32 {
    libc::SIGRTMIN() + 1
}

/// What outlives a sequence.
pub struct Stage {
    /// The second tasks.
    pub tasks: [Task; 2],
    /// The director's own memory.
    pub desk: Desk,
    /// What the config lets one compare.
    pub comparable: Comparable,
}

struct World<'a> {
    subject: &'a Subject,
    stage: &'a mut Stage,
    ends: Vec<Descriptor>,
    epoll: OwnedFd,
    serial: u8,
    // What each task is at, if it sleeps.
    asleep: [Option<Op>; 2],
    // Whether the descriptor it sleeps on has been closed since.
    orphaned: [bool; 2],
    hasty: Option<Side>,
    has_owner: bool,
    ended: Vec<(usize, Outcome)>,
    coverage: Option<Coverage>,
}

/// Runs a sequence on a pipe of the subject's.
pub fn run(
    script: &Script,
    subject: &Subject,
    stage: &mut Stage,
    coverage: Option<Coverage>,
) -> Transcript {
    let mut world = World::begin(script, subject, stage, coverage);
    let mut transcript = Transcript::default();
    for (number, op) in script.ops.iter().enumerate() {
        let deed = world.act(op, number);
        world.settle();
        if let Some(coverage) = &world.coverage {
            coverage.note(op, &deed, false);
        }
        transcript.was_helped |= !world.ended.is_empty();
        let step = world.step(deed, script.looks);
        transcript.steps.push(step);
    }
    world.wake_all();
    let mut step = world.step(Deed::Done(Outcome::bare(Ok(0))), true);
    // Closing tells an owner, too.
    while world.ends.pop().is_some() {
        step.told.extend(world.told());
    }
    transcript.steps.push(step);
    transcript
}

impl<'a> World<'a> {
    fn begin(
        script: &Script,
        subject: &'a Subject,
        stage: &'a mut Stage,
        coverage: Option<Coverage>,
    ) -> Self {
        let mut flags = PipeFlags::CLOEXEC;
        flags.set(PipeFlags::DIRECT, script.direct);
        let pipe = subject.pipe_with(flags).expect("make a pipe");
        subject
            .resize(&pipe.write, script.pages * 4096)
            .expect("resize an empty pipe");
        let hasty = stage.comparable.hasty(script.patient);
        let mut world = Self {
            subject,
            stage,
            ends: Vec::new(),
            // SAFETY: makes a descriptor, which nobody else knows.
            epoll: unsafe { OwnedFd::from_raw_fd(libc::epoll_create1(libc::EPOLL_CLOEXEC)) },
            serial: 0,
            asleep: [None, None],
            orphaned: [false; 2],
            hasty,
            has_owner: false,
            ended: Vec::new(),
            coverage,
        };
        world.add(pipe.read, Access::Read);
        world.add(pipe.write, Access::Write);
        match hasty {
            Some(Side::Readers) => {
                _ = world.set(world.ends[0].fd.as_raw_fd(), OFlags::NONBLOCK, true)
            }
            Some(Side::Writers) => {
                _ = world.set(world.ends[1].fd.as_raw_fd(), OFlags::NONBLOCK, true)
            }
            None => {}
        }
        world
    }

    fn act(&mut self, op: &Op, number: usize) -> Deed {
        self.try_act(op, number).unwrap_or(Deed::Skipped)
    }

    // `None` where there is nothing to act on.
    fn try_act(&mut self, op: &Op, number: usize) -> Option<Deed> {
        let done = |result| Some(Deed::Done(Outcome::bare(result)));
        match op {
            Op::Read(transfer) | Op::Write(transfer) => {
                let fd = self.fd(transfer.end)?;
                let call = call(op, transfer, fd, number);
                if transfer.is_nowait() || self.is_nonblocking(fd) {
                    return Some(Deed::Done(call.perform(&self.stage.desk)));
                }
                self.hand_out(op, call)
            }
            Op::Fill(end, chunk) => {
                let fd = self.fd(*end)?;
                done(Ok(self.repeat(fd, |salt| {
                    Call::Write(fd, vec![good(*chunk)], Form::Plain, number + salt)
                })))
            }
            Op::Drain(end, chunk) => {
                let fd = self.fd(*end)?;
                done(Ok(self.repeat(fd, |_| {
                    Call::Read(fd, vec![good(*chunk)], Form::Plain)
                })))
            }
            Op::Resize(end, bytes) => {
                let at = self.find(*end)?;
                let resized = self.subject.resize(&self.ends[at].fd, *bytes);
                done(resized.map_err(|error| error.raw_os_error()))
            }
            Op::Set(end, flag, on) => {
                let fd = self.fd(*end)?;
                done(self.set_flag(fd, *flag, *on))
            }
            Op::Poll(end, events) => {
                let fd = self.fd(*end)?;
                self.hand_out(op, Call::Poll(fd, *events))
            }
            Op::Watch(end, events) => {
                let at = self.find(*end)?;
                let add = self.control(libc::EPOLL_CTL_ADD, at, *events);
                done(match add {
                    Err(libc::EEXIST) => self.control(libc::EPOLL_CTL_MOD, at, *events),
                    result => result,
                })
            }
            Op::Unwatch(end) => {
                let at = self.find(*end)?;
                done(self.control(libc::EPOLL_CTL_DEL, at, 0))
            }
            Op::Events => Some(Deed::Done(events(self.epoll.as_raw_fd(), 0))),
            Op::AwaitEvents => self.hand_out(op, Call::EpollWait(self.epoll.as_raw_fd())),
            Op::Dup(end) => {
                let at = self.find(*end)?;
                let (reads, writes) = (self.ends[at].reads, self.ends[at].writes);
                if self.ends.len() == MOST_ENDS {
                    return None;
                }
                let copy = self.ends[at].fd.try_clone().expect("dup");
                self.add(copy, Access::Both);
                let last = self.ends.last_mut()?;
                (last.reads, last.writes) = (reads, writes);
                done(Ok(0))
            }
            Op::Close(end) => {
                let at = self.find(*end)?;
                if self.is_polled(at) {
                    return None;
                }
                self.close(at);
                done(Ok(0))
            }
            Op::CloseAll(side) => {
                let closes = |end: &Descriptor| match side {
                    Side::Readers => end.reads,
                    Side::Writers => end.writes,
                };
                let mut count = 0;
                while let Some(at) =
                    (0..self.ends.len()).find(|&at| closes(&self.ends[at]) && !self.is_polled(at))
                {
                    self.close(at);
                    count += 1;
                    self.settle();
                }
                done(Ok(count))
            }
            Op::Reopen(end, access, nonblock) => {
                let at = self.find(*end)?;
                done(self.reopen(at, *access, *nonblock)?)
            }
            Op::Signal(restarts) => {
                let task = self.asleep.iter().position(Option::is_some)?;
                self.stage.tasks[task].signal(if *restarts { RESTARTS } else { FAILS });
                done(Ok(0))
            }
            Op::Odd(end, odd) => {
                let fd = self.fd(*end)?;
                done(be_odd(fd, *odd))
            }
        }
    }

    // Which sides' queues a call may sleep in.
    fn sides(&self, op: &Op) -> (bool, bool) {
        match op {
            Op::Read(_) => (true, false),
            Op::Write(_) => (false, true),
            Op::Poll(end, _) => self.find(*end).map_or((true, true), |at| {
                (self.ends[at].reads, self.ends[at].writes)
            }),
            _ => (true, true),
        }
    }

    // Gives the call to a task that has nothing to do. Two that may sleep in one queue would race
    // when woken together, but for calls that take turns.
    fn hand_out(&mut self, op: &Op, call: Call) -> Option<Deed> {
        let task = self.asleep.iter().position(Option::is_none)?;
        if self.asleep[1 - task].is_some() && self.orphaned[1 - task] {
            // It would close the end on its way out, and that would race with what it woke.
            return None;
        }
        self.orphaned[task] = false;
        if let Some(other) = &self.asleep[1 - task] {
            let (mine, theirs) = (self.sides(op), self.sides(other));
            let take_turns = self.stage.comparable.turns && is_transfer(op) && is_transfer(other);
            if ((mine.0 && theirs.0) || (mine.1 && theirs.1)) && !take_turns {
                return None;
            }
        }
        self.stage.tasks[task].begin(call);
        self.settle();
        // It may have slept on the way, until the other task made room or wrote.
        let ended = self.ended.iter().position(|(number, _)| *number == task);
        Some(match ended {
            Some(at) => Deed::Done(self.ended.remove(at).1),
            None => {
                self.asleep[task] = Some(op.clone());
                Deed::Asleep
            }
        })
    }

    // Waits until every task has ended or sleeps. One that ends may have woken the other after that
    // was looked at, and so may one that sleeps again: hence the second look at two.
    fn settle(&mut self) {
        loop {
            let mut busy = 0;
            let mut moved = false;
            for (number, task) in self.stage.tasks.iter_mut().enumerate() {
                if task.is_idle() {
                    continue;
                }
                busy += 1;
                if let Some(outcome) = task.settle() {
                    moved = true;
                    if let (Some(op), Some(coverage)) = (self.asleep[number].take(), &self.coverage)
                    {
                        coverage.note(&op, &Deed::Done(outcome.clone()), true);
                    }
                    self.ended.push((number, outcome));
                }
            }
            if busy == 2 && !moved {
                // The first may have been woken by the second since.
                moved = !self.stage.tasks[0].is_at_rest();
            }
            if !moved || busy == 0 {
                break;
            }
        }
        // Which of two is seen first is chance.
        self.ended.sort_by_key(|(number, _)| *number);
    }

    // Makes calls without sleeping until one moves nothing.
    fn repeat(&mut self, fd: i32, call: impl Fn(usize) -> Call) -> usize {
        let was_nonblocking = self.is_nonblocking(fd);
        self.set(fd, OFlags::NONBLOCK, true).expect("F_SETFL");
        let mut total = 0;
        for turn in 0.. {
            match call(turn).perform(&self.stage.desk).result {
                Ok(0) | Err(_) => break,
                Ok(count) => total += count,
            }
            self.settle();
        }
        self.set(fd, OFlags::NONBLOCK, was_nonblocking)
            .expect("F_SETFL");
        total
    }

    // Ends by signals what sleeps, one after the other: what ends may let the other go on.
    fn wake_all(&mut self) {
        while let Some(task) = self.asleep.iter().position(Option::is_some) {
            self.stage.tasks[task].signal(FAILS);
            self.settle();
        }
    }

    fn step(&mut self, deed: Deed, looks: bool) -> Step {
        Step {
            deed,
            ended: std::mem::take(&mut self.ended),
            told: self.told(),
            view: looks.then(|| self.look()),
        }
    }
}

fn good(len: u32) -> Part {
    Part {
        len,
        memory: Memory::Good,
    }
}

fn call(op: &Op, transfer: &Transfer, fd: i32, number: usize) -> Call {
    let parts = transfer.parts.clone();
    match op {
        Op::Write(_) => Call::Write(fd, parts, transfer.form, number),
        _ => Call::Read(fd, parts, transfer.form),
    }
}

fn is_transfer(op: &Op) -> bool {
    matches!(op, Op::Read(_) | Op::Write(_))
}

fn be_odd(fd: i32, odd: Odd) -> Result<usize, i32> {
    let mut byte = 0u8;
    let address = (&raw mut byte).cast();
    // SAFETY: one byte is read or written; the kernel checks the address that is none.
    checked(unsafe {
        match odd {
            Odd::Seek => libc::lseek(fd, 0, libc::SEEK_CUR) as isize,
            Odd::Pread => libc::pread(fd, address, 1, 0),
            Odd::Pwrite => libc::pwrite(fd, address, 1, 0),
            Odd::Truncate => libc::ftruncate(fd, 0) as isize,
            Odd::Sync => libc::fsync(fd) as isize,
            Odd::CountNowhere => libc::ioctl(fd, libc::FIONREAD, NOWHERE) as isize,
            // FIONCLEX is the VFS's, this is nobody's.
            Odd::Unknown => libc::ioctl(fd, 0x1234_5678, 0) as isize,
        }
    })
}
