// SPDX-License-Identifier: GPL-2.0
//! The tasks of one sample: forked, started together, timed from inside, and watched until they end.
//!
//! A task takes its own usage right before and right after its work, so neither fork nor exit is measured. It
//! leaves the figures in memory that it shares with the tool. The tool sleeps meanwhile; what wakes it is a task's
//! end, a time-out (a pipe that lost a wake-up shows so) or Ctrl-C. All three are waited for as signals that are
//! kept blocked, so no handler and no race is involved.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use altpipe_uapi::get_stats;
use anyhow::{Context, Result, bail};
use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, pipe2, read};

use crate::sample::Measurement;
use crate::schedule::Jitter;
use crate::signals;
use crate::slots::{Slot, Slots};
use crate::source::Source;
use crate::usage::{Usage, machine_switches, now_ns};

/// An end of a pipe that the team owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End(RawFd);

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: only `Team::pipe` makes an `End`, and the team keeps the descriptor open while tasks use it.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

impl AsRawFd for End {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

/// The conditions of a sample.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    /// Where pipes come from.
    pub source: Source<'a>,
    /// How this round differs from others.
    pub jitter: Jitter,
    /// When to give up on a task that does not end.
    pub timeout: Duration,
}

/// Tasks and the pipes between them.
pub struct Team<'a> {
    ground: Ground<'a>,
    pipes: Vec<(OwnedFd, Option<OwnedFd>)>,
    gate: Option<(OwnedFd, OwnedFd)>,
    slots: Slots,
    tasks: Vec<Pid>,
    deadline: Instant,
}

/// A task's clock; started and stopped once, around the work that counts.
pub struct Clock<'a> {
    gate: RawFd,
    lag_ns: u64,
    slot: &'a Slot,
    begun: Usage,
}

impl Clock<'_> {
    /// Waits for all tasks to be there, then takes the usage so far.
    pub fn start(&mut self) -> io::Result<()> {
        // SAFETY: the gate's read end stays open in every task; `Team::task` closes only the write end.
        let gate = unsafe { BorrowedFd::borrow_raw(self.gate) };
        while read(gate, &mut [0])? != 0 {}
        spin(self.lag_ns)?;
        self.slot.set_start(now_ns()?);
        self.begun = Usage::own()?;
        Ok(())
    }

    /// Takes the usage again and leaves the difference for the tool.
    pub fn stop(&mut self) -> io::Result<()> {
        self.slot.set_usage(Usage::own()?.since(self.begun));
        self.slot.set_end(now_ns()?);
        Ok(())
    }
}

impl<'a> Team<'a> {
    /// A team of up to `size` tasks.
    pub fn new(ground: Ground<'a>, size: usize) -> Result<Self> {
        Ok(Self {
            ground,
            pipes: Vec::new(),
            gate: Some(pipe2(OFlag::O_CLOEXEC)?),
            slots: Slots::new(size)?,
            tasks: Vec::new(),
            deadline: Instant::now() + ground.timeout,
        })
    }

    /// Makes a pipe of the variant under test. All pipes are made before the first task.
    pub fn pipe(&mut self) -> Result<(End, End)> {
        let (reader, writer) = self.ground.source.pipe().context("making a pipe")?;
        let ends = (End(reader.as_raw_fd()), End(writer.as_raw_fd()));
        self.pipes.push((reader, Some(writer)));
        Ok(ends)
    }

    /// Forks a task that holds the ends in `keep` and no others. Its work starts the clock, does what counts, and
    /// stops the clock.
    pub fn task(
        &mut self,
        keep: &[End],
        work: impl FnOnce(&mut Clock<'_>) -> io::Result<()>,
    ) -> Result<()> {
        let (gate, opener) = self.gate.as_ref().expect("tasks come before the start");
        let place = self.tasks.len();
        // SAFETY: the tool has one thread, so the child may do whatever the parent may.
        match unsafe { fork() }.context("forking a task")? {
            ForkResult::Parent { child } => self.tasks.push(child),
            ForkResult::Child => {
                signals::release_in_child();
                let ends = self.pipes.iter().flat_map(|(reader, writer)| {
                    std::iter::once(reader)
                        .chain(writer)
                        .map(AsRawFd::as_raw_fd)
                });
                for fd in ends.chain([opener.as_raw_fd()]) {
                    if !keep.contains(&End(fd)) {
                        // SAFETY: this process ends by _exit below, so no owner of `fd` ever runs its drop.
                        unsafe { libc::close(fd) };
                    }
                }
                let mut clock = Clock {
                    gate: gate.as_raw_fd(),
                    lag_ns: if place == 1 {
                        self.ground.jitter.lag_ns
                    } else {
                        0
                    },
                    slot: self.slots.get(place),
                    begun: Usage::default(),
                };
                let status = match work(&mut clock) {
                    Ok(()) => 0,
                    Err(error) => {
                        clock
                            .slot
                            .set_errno(error.raw_os_error().unwrap_or(libc::EIO));
                        1
                    }
                };
                // SAFETY: no destructor and no buffer of the parent's may run twice, hence not exit().
                unsafe { libc::_exit(status) };
            }
        }
        Ok(())
    }

    /// Lets all tasks begin.
    pub fn open_gate(&mut self) -> Result<()> {
        spin(self.ground.jitter.phase_ns)?;
        self.gate = None;
        Ok(())
    }

    /// Starts the tasks, waits for all of them, and adds up what they used for `ops` operations.
    pub fn finish(mut self, ops: u64, bytes: u64) -> Result<Measurement> {
        // Readers are to see the end of the file when the tasks' own write ends are gone.
        for (_, writer) in &mut self.pipes {
            *writer = None;
        }
        let switches = machine_switches();
        self.open_gate()?;
        self.wait_for_all_but(0)?;
        let system_switches = machine_switches()
            .zip(switches)
            .map(|(after, before)| after - before);
        let total = self.slots.total();
        Ok(Measurement {
            ops,
            bytes,
            cpu_ns: 1000 * (total.usage.user_us + total.usage.system_us),
            user_us: Some(total.usage.user_us),
            system_us: Some(total.usage.system_us),
            wall_ns: total.end_ns - total.start_ns,
            voluntary: total.usage.voluntary,
            involuntary: total.usage.involuntary,
            system_switches,
            counters: self.counters()?,
        })
    }

    /// Waits until all tasks but so many have ended.
    pub fn wait_for_all_but(&mut self, rest: usize) -> Result<()> {
        loop {
            self.reap()?;
            if self.tasks.len() <= rest {
                return Ok(());
            }
            self.pause(self.deadline)?;
        }
    }

    /// Ends all tasks that have not ended.
    pub fn dismiss(&mut self) {
        for task in &self.tasks {
            // A task that has ended meanwhile is a zombie still, so its number is nobody else's.
            let _ = kill(*task, Signal::SIGKILL);
        }
        for task in self.tasks.drain(..) {
            let _ = waitpid(task, None);
        }
    }

    /// The processes of the tasks that have not ended, in the order of their making.
    pub fn tasks(&self) -> &[Pid] {
        &self.tasks
    }

    /// What altpipe counted on the team's pipes so far.
    pub fn counters(&self) -> Result<BTreeMap<String, u64>> {
        let mut counters = BTreeMap::new();
        if self.ground.source.counts() {
            for (reader, _) in &self.pipes {
                let stats = get_stats(reader).context("asking a pipe for its counters")?;
                for (name, value) in stats.iter() {
                    *counters.entry(name.to_owned()).or_insert(0) += value;
                }
            }
        }
        Ok(counters)
    }

    /// Sleeps until a task ends, or until `wanted` but never past the deadline. Fails past the deadline and when
    /// the user interrupts.
    pub fn pause(&self, wanted: Instant) -> Result<()> {
        let now = Instant::now();
        if now >= self.deadline {
            bail!(
                "{} of its tasks did not end within {} s: a lost wake-up, or a machine too slow for this scale; \
                 try --scale 0.1 or a longer --timeout",
                self.tasks.len(),
                self.ground.timeout.as_secs()
            );
        }
        signals::wait(wanted.min(self.deadline).saturating_duration_since(now))
    }

    /// Takes note of tasks that have ended; one that failed fails the sample.
    fn reap(&mut self) -> Result<()> {
        let mut place = 0;
        while place < self.tasks.len() {
            let status = waitpid(self.tasks[place], Some(WaitPidFlag::WNOHANG))?;
            match status {
                WaitStatus::StillAlive => {
                    place += 1;
                    continue;
                }
                WaitStatus::Exited(_, 0) => {}
                WaitStatus::Exited(..) => {
                    self.tasks.remove(place);
                    signals::check()?;
                    bail!("a task failed: {}", self.slots.error());
                }
                other => {
                    self.tasks.remove(place);
                    signals::check()?;
                    bail!("a task ended unasked: {other:?}");
                }
            }
            self.tasks.remove(place);
        }
        Ok(())
    }
}

impl Drop for Team<'_> {
    /// No task outlives its sample, however that ended.
    fn drop(&mut self) {
        self.dismiss();
    }
}

/// Lets time pass on the CPU: a sleep would itself start on a timer's edge.
fn spin(ns: u64) -> io::Result<()> {
    let until = now_ns()? + ns;
    while now_ns()? < until {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::{drain, put};

    fn ground(seconds: f64) -> Ground<'static> {
        Ground {
            source: Source::Native,
            jitter: Jitter::default(),
            timeout: Duration::from_secs_f64(seconds),
        }
    }

    #[test]
    fn a_reader_sees_the_end_of_the_file_when_the_only_writer_is_gone() {
        let mut team = Team::new(ground(1.0), 2).unwrap();
        let (reader, writer) = team.pipe().unwrap();
        team.task(&[writer], |clock| {
            clock.start()?;
            put(writer, &[1, 2, 3])?;
            clock.stop()
        })
        .unwrap();
        team.task(&[reader], |clock| {
            clock.start()?;
            let got = drain(reader, &mut [0; 16])?;
            clock.stop()?;
            if got == 3 {
                Ok(())
            } else {
                Err(io::ErrorKind::InvalidData.into())
            }
        })
        .unwrap();
        let measurement = team.finish(1, 3).unwrap();
        assert_eq!((measurement.ops, measurement.bytes), (1, 3));
        assert!(measurement.wall_ns > 0);
    }

    #[test]
    fn a_task_that_fails_says_why() {
        let mut team = Team::new(ground(1.0), 1).unwrap();
        let (reader, writer) = team.pipe().unwrap();
        // The task holds no read end, and the tool's own is not written to: a write to it fails.
        team.task(&[writer], |_| put(reader, &[0])).unwrap();
        let error = team.finish(1, 1).unwrap_err().to_string();
        assert!(error.contains("Bad file descriptor"), "{error}");
    }

    #[test]
    fn a_task_that_sleeps_for_ever_is_given_up_and_gone() {
        let mut team = Team::new(ground(0.3), 1).unwrap();
        let (reader, writer) = team.pipe().unwrap();
        team.task(&[reader, writer], |_| drain(reader, &mut [0]).map(drop))
            .unwrap();
        let task = team.tasks()[0];
        let error = team.finish(1, 1).unwrap_err().to_string();
        assert!(error.contains("1 of its tasks did not end"), "{error}");
        assert!(kill(task, None).is_err(), "it is still there");
    }
}
