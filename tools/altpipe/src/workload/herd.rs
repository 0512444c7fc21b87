// SPDX-License-Identifier: GPL-2.0
//! One token, many blocking readers, as the job server of make has it: how many wake up for one token?
//!
//! Two forms. *Racing*: whoever has the token sends it on at once and comes back for it, after the test in Linux'
//! commit 0ddad21d3e99 and `stress-ng --pipeherd`. *Paced*: the next token is sent only when all readers sleep, so
//! each token finds the whole herd asleep and the figures do not hang on the scheduler.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::unistd::Pid;

use super::Load;
use crate::sample::Measurement;
use crate::team::{Ground, Team};
use crate::transfer::{put, take};
use crate::usage::{Outside, machine_switches, now_ns};

/// A token says how many came before it; that many bytes travel at once.
const TOKEN: usize = size_of::<u64>();

/// Every task reads the token, adds one, and writes it back, until it has come round often enough.
pub struct Racing {
    pub readers: u32,
}

impl Load for Racing {
    fn unit(&self) -> &'static str {
        "token"
    }

    fn ops(&self) -> u64 {
        4000
    }

    fn run(&self, ground: Ground<'_>, ops: u64) -> Result<Measurement> {
        let mut team = Team::new(ground, self.readers as usize)?;
        let (reader, writer) = team.pipe()?;
        put(writer, &0u64.to_ne_bytes())?;
        for _ in 0..self.readers {
            team.task(&[reader, writer], |clock| {
                let mut token = [0; TOKEN];
                clock.start()?;
                loop {
                    take(reader, &mut token)?;
                    let passed = u64::from_ne_bytes(token) + 1;
                    put(writer, &passed.to_ne_bytes())?;
                    if passed >= ops {
                        return clock.stop();
                    }
                }
            })?;
        }
        // Once the token has come round often enough, each other task still takes it once and leaves.
        let tokens = ops.max(1) + u64::from(self.readers) - 1;
        team.finish(tokens, tokens * TOKEN as u64)
    }
}

/// The tool sends a token, waits until the herd sleeps again, and sends the next.
pub struct Paced {
    pub readers: u32,
}

impl Load for Paced {
    fn unit(&self) -> &'static str {
        "token"
    }

    fn ops(&self) -> u64 {
        50
    }

    fn run(&self, ground: Ground<'_>, ops: u64) -> Result<Measurement> {
        let mut team = Team::new(ground, self.readers as usize)?;
        let (reader, writer) = team.pipe()?;
        for _ in 0..self.readers {
            team.task(&[reader], |clock| {
                let mut token = [0; TOKEN];
                clock.start()?;
                loop {
                    take(reader, &mut token)?;
                }
            })?;
        }
        team.open_gate()?;
        let herd = Herd::watch(team.tasks())?;
        herd.settle(&team)?;

        // Between two moments at which all sleep, the figures seen from outside are exact.
        let before = (
            Total::of(&team)?,
            team.counters()?,
            machine_switches(),
            now_ns()?,
        );
        for token in 0..ops {
            put(writer, &token.to_ne_bytes())?;
            herd.settle(&team)?;
        }
        let (after, wall_ns) = (Total::of(&team)?, now_ns()? - before.3);
        let mut counters = team.counters()?;
        for (name, value) in &mut counters {
            // The pipe was made before the first look, yet it is this sample's.
            if name != "pipes_created" {
                *value -= before.1[name];
            }
        }
        Ok(Measurement {
            ops,
            bytes: ops * TOKEN as u64,
            cpu_ns: after.cpu_ns - before.0.cpu_ns,
            user_us: None,
            system_us: None,
            wall_ns,
            voluntary: after.voluntary - before.0.voluntary,
            involuntary: after.involuntary - before.0.involuntary,
            system_switches: machine_switches()
                .zip(before.2)
                .map(|(after, before)| after - before),
            counters,
        })
    }
}

/// What all readers have used so far.
struct Total {
    cpu_ns: u64,
    voluntary: u64,
    involuntary: u64,
}

impl Total {
    fn of(team: &Team<'_>) -> Result<Self> {
        let mut total = Self {
            cpu_ns: 0,
            voluntary: 0,
            involuntary: 0,
        };
        for task in team.tasks() {
            let seen = Outside::of(*task)?;
            total.cpu_ns += seen.cpu_ns;
            total.voluntary += seen.voluntary;
            total.involuntary += seen.involuntary;
        }
        Ok(total)
    }
}

/// The readers' states, kept open: asking is most of what pacing costs.
struct Herd(Vec<File>);

impl Herd {
    fn watch(tasks: &[Pid]) -> Result<Self> {
        let open = |task| File::open(format!("/proc/{task}/stat")).context("watching a reader");
        Ok(Self(tasks.iter().map(open).collect::<Result<_>>()?))
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
