// SPDX-License-Identifier: GPL-2.0
//! The same command in many boots, each with a seed of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::interrupt::Interrupt;
use crate::machine::Machine;
use crate::run::Outcome;

/// How many boots, how many of them at once, and where their results go.
pub struct Series {
    pub count: u32,
    pub jobs: u32,
    pub seed: u64,
    pub out: PathBuf,
    /// `{seed}` in a word stands for the boot's seed.
    pub command: Vec<String>,
}

impl Series {
    /// Runs them all and returns the exit status of the first that failed.
    pub fn run(&self, machine: &Machine, interrupt: &Interrupt) -> Result<u8> {
        let next = AtomicU32::new(1);
        let failed = Mutex::new(None);
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.jobs.min(self.count))
                .map(|_| scope.spawn(|| self.work(machine, interrupt, &next, &failed)))
                .collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().expect("boots do not panic"))
        })?;
        Ok(failed
            .into_inner()
            .expect("boots do not panic")
            .unwrap_or(0))
    }

    /// Takes one boot after the other until there are none left.
    fn work(
        &self,
        machine: &Machine,
        interrupt: &Interrupt,
        next: &AtomicU32,
        failed: &Mutex<Option<u8>>,
    ) -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number > self.count || interrupt.signal().is_some() {
                return Ok(());
            }
            let seed = self.seed + u64::from(number - 1);
            let dir = self.out.join(format!("boot-{number}"));
            let start = Instant::now();
            let outcome = self.boot(machine, interrupt, seed, &dir)?;
            eprintln!(
                "  {:>4}s  boot {number} of {}, seed {seed}: {}",
                start.elapsed().as_secs(),
                self.count,
                if outcome.status == 0 {
                    "done".to_owned()
                } else {
                    format!("{outcome}; see {}", dir.display())
                }
            );
            if outcome.status != 0 {
                failed
                    .lock()
                    .expect("boots do not panic")
                    .get_or_insert(outcome.status);
            }
        }
    }

    fn boot(
        &self,
        machine: &Machine,
        interrupt: &Interrupt,
        seed: u64,
        dir: &Path,
    ) -> Result<Outcome> {
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let mut machine = machine.clone();
        machine.guest.command = Some(
            self.command
                .iter()
                .map(|word| word.replace("{seed}", &seed.to_string()))
                .collect(),
        );
        let scratch = tempfile::Builder::new().prefix("altpipe-vm.").tempdir()?;
        let stdout = File::create(dir.join("stdout"))?;
        let stderr = File::create(dir.join("stderr"))?;
        let end = machine.run(scratch.path(), interrupt, stdout, stderr)?;
        fs::copy(scratch.path().join("console.log"), dir.join("console.log"))?;
        Outcome::conclude(end, Some(dir))
    }
}
