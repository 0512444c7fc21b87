// SPDX-License-Identifier: GPL-2.0
//! A pipe on which a sequence runs, and all that is seen of it.
//!
//! The director runs the script. What may sleep he gives to one of two tasks; nothing else of his
//! ever sleeps. After each act that may wake a task he waits until both have come to rest, so one
//! thing happens at a time and a sequence has one course only.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::pipe::PipeFlags;
use rustix::thread::gettid;

use super::call::{Call, Desk, Outcome, checked, events, take_signal};
use super::comparable::Comparable;
use super::coverage::Coverage;
use super::script::{Access, End, Flag, Form, Memory, Odd, Op, Part, Script, Side, Transfer};
use super::task::Task;
use super::transcript::{Deed, Step, Transcript, View};
use crate::memory::NOWHERE;
use crate::subject::Subject;

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

struct Descriptor {
    fd: OwnedFd,
    serial: u8,
    reads: bool,
    writes: bool,
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

    fn add(&mut self, fd: OwnedFd, access: Access) {
        self.serial += 1;
        self.ends.push(Descriptor {
            fd,
            serial: self.serial,
            reads: access != Access::Write,
            writes: access != Access::Read,
        });
    }

    fn find(&self, end: End) -> Option<usize> {
        let of = |number: u8, wanted: &dyn Fn(&Descriptor) -> bool| {
            let fitting: Vec<_> = (0..self.ends.len())
                .filter(|&at| wanted(&self.ends[at]))
                .collect();
            let count = fitting.len();
            (count > 0).then(|| fitting[usize::from(number) % count])
        };
        match end {
            End::Reader(number) => of(number, &|end| end.reads),
            End::Writer(number) => of(number, &|end| end.writes),
            End::Any(number) => of(number, &|_| true),
        }
    }

    // Whether a task sleeps on it in poll(2), which looks the descriptor up anew at every wake-up: if
    // it were closed, each wake-up would show, and how many there are is what knobs change.
    fn is_polled(&self, at: usize) -> bool {
        let fd = self.ends[at].fd.as_raw_fd();
        let mut busy = self.stage.tasks.iter().zip(&self.asleep);
        busy.any(|(task, op)| matches!(op, Some(Op::Poll(..))) && task.sleeps_on(fd))
    }

    fn close(&mut self, at: usize) {
        let end = self.ends.remove(at);
        for (task, orphaned) in self.stage.tasks.iter().zip(&mut self.orphaned) {
            *orphaned |= task.sleeps_on(end.fd.as_raw_fd());
        }
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

    fn fd(&self, end: End) -> Option<i32> {
        self.find(end).map(|at| self.ends[at].fd.as_raw_fd())
    }

    fn is_nonblocking(&self, fd: i32) -> bool {
        // SAFETY: touches no memory of ours.
        unsafe { libc::fcntl(fd, libc::F_GETFL) & libc::O_NONBLOCK != 0 }
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

    fn set(&self, fd: i32, flag: OFlags, on: bool) -> Result<usize, i32> {
        let flag = flag.bits() as i32;
        // SAFETY: touches no memory of ours.
        checked(unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFL);
            let flags = if on { flags | flag } else { flags & !flag };
            libc::fcntl(fd, libc::F_SETFL, flags) as isize
        })
    }

    fn set_flag(&mut self, fd: i32, flag: Flag, on: bool) -> Result<usize, i32> {
        match flag {
            Flag::Nonblock => self.set(fd, OFlags::NONBLOCK, on),
            Flag::Direct => self.set(fd, OFlags::DIRECT, on),
            Flag::Async => {
                self.has_owner = true;
                own(fd);
                self.set(fd, OFlags::from_bits_retain(libc::O_ASYNC as u32), on)
            }
        }
    }

    fn control(&self, what: i32, at: usize, events: u32) -> Result<usize, i32> {
        let mut event = libc::epoll_event {
            events,
            u64: self.ends[at].serial.into(),
        };
        let (epoll, fd) = (self.epoll.as_raw_fd(), self.ends[at].fd.as_raw_fd());
        // SAFETY: the structure outlives the call.
        checked(unsafe { libc::epoll_ctl(epoll, what, fd, &mut event) } as isize)
    }

    fn reopen(&mut self, at: usize, access: Access, nonblock: bool) -> Option<Result<usize, i32>> {
        if self.ends.len() == MOST_ENDS {
            return None;
        }
        let (mut flags, side) = match access {
            Access::Read => (OFlags::RDONLY, Some(Side::Readers)),
            Access::Write => (OFlags::WRONLY, Some(Side::Writers)),
            Access::Both => (OFlags::RDWR, None),
        };
        let nonblock = match self.hasty {
            Some(hasty) => side == Some(hasty),
            None => nonblock,
        };
        flags.set(OFlags::NONBLOCK, nonblock);
        let path = format!("/proc/self/fd/{}", self.ends[at].fd.as_raw_fd());
        let opened = openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty());
        Some(match opened {
            Ok(fd) => {
                self.add(fd, access);
                Ok(0)
            }
            Err(error) => Err(error.raw_os_error()),
        })
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

    fn told(&self) -> Vec<(i64, u8)> {
        if !self.has_owner {
            return Vec::new();
        }
        let serial = |fd| {
            let end = self.ends.iter().find(|end| end.fd.as_raw_fd() == fd);
            end.map_or(0, |end| end.serial)
        };
        let mut told: Vec<_> = std::iter::from_fn(|| take_signal(owners_signal()))
            .map(|told| (told.band, serial(told.fd)))
            .collect();
        told.sort_unstable();
        told
    }

    fn look(&self) -> View {
        const ALL: i16 = 0x27df;
        let mut polled: Vec<_> = self
            .ends
            .iter()
            .map(|end| libc::pollfd {
                fd: end.fd.as_raw_fd(),
                events: ALL,
                revents: 0,
            })
            .collect();
        let mut queued = -1;
        // SAFETY: as many structures as is said, and a place for the number, outlive the calls.
        unsafe {
            libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 0);
            if let Some(end) = self.ends.first() {
                libc::ioctl(end.fd.as_raw_fd(), libc::FIONREAD, &mut queued);
            }
        }
        let size = |end: &Descriptor| {
            self.subject
                .size(&end.fd)
                .map_err(|error| error.raw_os_error())
        };
        View {
            polled: polled.iter().map(|polled| polled.revents).collect(),
            queued,
            capacity: self.ends.last().map_or(Ok(0), size),
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

// Has signals of the descriptor's description sent to the calling thread.
fn own(fd: i32) {
    // <asm-generic/fcntl.h>; the library lacks them.
    const F_SETSIG: i32 = 10;
    const F_SETOWN_EX: i32 = 15;
    const F_OWNER_TID: i32 = 0;
    let owner = [F_OWNER_TID, gettid().as_raw_nonzero().get()];
    // SAFETY: the array stands for struct f_owner_ex and outlives the call.
    let ret = unsafe {
        libc::fcntl(fd, F_SETOWN_EX, owner.as_ptr()) | libc::fcntl(fd, F_SETSIG, owners_signal())
    };
    assert_eq!(ret, 0, "F_SETOWN_EX, F_SETSIG");
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
