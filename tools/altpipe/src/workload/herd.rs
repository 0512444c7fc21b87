// SPDX-License-Identifier: GPL-2.0
//! One token, many blocking readers, as the job server of make has it: how many wake up for one token?
//!
//! After the test in Linux' commit 0ddad21d3e99 and `stress-ng --pipeherd`, but with a sender apart from the readers.
//! Where readers send the token on themselves, the one that has it mostly reads it back before anybody that it woke
//! gets a CPU, and there is no herd to see. Two forms. *Racing*: the next token is sent as soon as one is taken, while
//! those woken in vain may still be about. *Paced*: it is sent only when all readers sleep, so that the figures do
//! not hang on the scheduler.
//!
//! Readers are looked at from outside at two moments at which all of them sleep; what they used in between is exact.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::fcntl::OFlag;
use nix::unistd::{Pid, pipe2};

use super::Load;
use crate::sample::Measurement;
use crate::team::{Ground, Team};
use crate::transfer::{put, take};
use crate::usage::{Outside, machine_switches, now_ns};

/// A token is a number; that many bytes travel at once.
const TOKEN: usize = size_of::<u64>();

/// Tokens to a herd of so many readers.
pub struct Herd {
    pub readers: u32,
    pub paced: bool,
}

impl Load for Herd {
    fn unit(&self) -> &'static str {
        "token"
    }

    fn ops(&self) -> u64 {
        // A paced token costs a look at each reader, one that races may wake all of them.
        if self.paced { 50 } else { 300 }
    }

    fn run(&self, ground: Ground<'_>, ops: u64) -> Result<Measurement> {
        let mut team = Team::new(ground, self.readers as usize + 1)?;
        let (reader, writer) = team.pipe()?;
        // Says that a token was taken. A native pipe whatever is measured, so that it costs all variants alike.
        let (taken, taker) = pipe2(OFlag::O_CLOEXEC)?;
        for _ in 0..self.readers {
            team.task(&[reader], |_| {
                let mut token = [0; TOKEN];
                loop {
                    take(reader, &mut token)?;
                    if !self.paced {
                        put(&taker, &[0])?;
                    }
                }
            })?;
        }
        let readers = team.tasks().to_vec();
        if !self.paced {
            team.task(&[writer], |clock| {
                clock.start()?;
                for token in 0..ops {
                    put(writer, &token.to_ne_bytes())?;
                    take(&taken, &mut [0])?;
                }
                clock.stop()
            })?;
        }
        let watch = Watch::open(&readers)?;
        watch.settle(&team)?;
        let before = Look::at(&readers)?;
        if self.paced {
            for token in 0..ops {
                put(writer, &token.to_ne_bytes())?;
                watch.settle(&team)?;
            }
        } else {
            team.open_gate()?;
            team.wait_for_all_but(readers.len())?;
            watch.settle(&team)?;
        }
        let mut measurement = Look::at(&readers)?.since(before, ops);
        // A reader that was woken in vain and sleeps on has yet to say so; the end of its read makes it.
        team.dismiss();
        measurement.counters = team.counters()?;
        Ok(measurement)
    }
}

/// The herd at a moment.
struct Look {
    cpu_ns: u64,
    voluntary: u64,
    involuntary: u64,
    system_switches: Option<u64>,
    now_ns: u64,
}

impl Look {
    fn at(readers: &[Pid]) -> Result<Self> {
        let mut look = Self {
            cpu_ns: 0,
            voluntary: 0,
            involuntary: 0,
            system_switches: machine_switches(),
            now_ns: now_ns()?,
        };
        for reader in readers {
            let seen = Outside::of(*reader)?;
            look.cpu_ns += seen.cpu_ns;
            look.voluntary += seen.voluntary;
            look.involuntary += seen.involuntary;
        }
        Ok(look)
    }

    fn since(self, before: Self, ops: u64) -> Measurement {
        Measurement {
            ops,
            bytes: ops * TOKEN as u64,
            cpu_ns: self.cpu_ns - before.cpu_ns,
            wall_ns: self.now_ns - before.now_ns,
            voluntary: self.voluntary - before.voluntary,
            involuntary: self.involuntary - before.involuntary,
            system_switches: self
                .system_switches
                .zip(before.system_switches)
                .map(|(after, before)| after - before),
            ..Measurement::default()
        }
    }
}

/// The readers' states, kept open: asking is most of what pacing costs.
struct Watch(Vec<File>);

impl Watch {
    fn open(readers: &[Pid]) -> Result<Self> {
        let open = |task| File::open(format!("/proc/{task}/stat")).context("watching a reader");
        Ok(Self(readers.iter().map(open).collect::<Result<_>>()?))
    }

    /// Returns once every reader has been found asleep in one pass in which none had to be waited for.
    fn settle(&self, team: &Team<'_>) -> Result<()> {
        let mut quiet = false;
        while !quiet {
            quiet = true;
            for stat in &self.0 {
                while !sleeps(stat)? {
                    quiet = false;
                    team.pause(Instant::now() + Duration::from_micros(200))?;
                }
            }
        }
        Ok(())
    }
}

/// Whether a task is in an interruptible sleep. The state follows the last `)`, since a name may hold one itself.
fn sleeps(stat: &File) -> Result<bool> {
    let mut text = [0; 128];
    let length = stat.read_at(&mut text, 0).context("watching a reader")?;
    let end = text[..length].iter().rposition(|byte| *byte == b')');
    Ok(end.and_then(|end| text.get(end + 2)) == Some(&b'S'))
}
