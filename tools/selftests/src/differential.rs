// SPDX-License-Identifier: GPL-2.0
//! Random sequences of operations, each run on a pipe of the kernel's and on one of altpipe's, and
//! everything that is seen of them compared.
//!
//! A sequence is drawn from the seed and its own number, so any can be run again by itself. One
//! that differs is shrunk to the shortest that still does, and printed as a script.

mod call;
mod comparable;
mod coverage;
pub mod fixed;
mod generate;
pub mod script;
mod task;
mod transcript;
mod world;

use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use altpipe_core::PRESETS;
use altpipe_uapi::Control;
use proptest::strategy::{BoxedStrategy, Strategy, ValueTree};
use proptest::test_runner::{
    Config as Proptest, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner,
};

use crate::child::{Outcome, isolate, note};
use crate::ktap::Ktap;
use crate::process::Process;
use crate::signal::{self, Interrupted};
use crate::subject::Subject;
use call::{Desk, block_signals};
use comparable::{ALL, Comparable, comparable};
use coverage::Coverage;
use script::Script;
use task::Task;
use transcript::{Transcript, explain};
use world::{FAILS, RESTARTS, Stage, owners_signal};

/// Of a hundred sequences, how many are run under the rules of 7.3, where everything is compared.
/// The presets share the rest.
const DEFAULT_SHARE: u64 = 60;

/// Of a hundred sequences, in how many at least a task must sleep and go on by what another does.
const HELPED: u64 = 30;

/// From how many sequences on every wanted outcome must come.
const ENOUGH: u64 = 10_000;

/// A run of sequences.
pub struct Differential {
    /// How many.
    pub sequences: u64,
    /// The number of the first.
    pub first: u64,
    /// The configs; all presets, if none is named.
    pub configs: Vec<String>,
    /// Compares the kernel's pipes with themselves instead, to see that sequences repeat.
    pub native: bool,
}

// What is run under one config.
struct Part {
    subject: Subject,
    comparable: Comparable,
    first: u64,
    sequences: u64,
}

impl Differential {
    /// Runs it; returns the number of failures.
    pub fn run(&self, out: impl Write, seed: u64) -> io::Result<usize> {
        let parts = self.parts().map_err(io::Error::other)?;
        let coverage = Coverage::new();
        let counts = coverage.counts();
        let mut ktap = Ktap::start(out, parts.len() + 1)?;
        ktap.remark(&format!("seed {seed}"))?;
        let start = Instant::now();
        for part in &parts {
            let timeout = Duration::from_secs(120) + Duration::from_millis(100 * part.sequences);
            let outcome = isolate(timeout, || part.run(seed, coverage))?;
            let name = format!("{} sequences end alike on {}", part.sequences, part.subject);
            ktap.result(&name, &outcome)?;
        }
        for line in coverage.table() {
            ktap.remark(&line)?;
        }
        let sequences = counts.sequences.load(Ordering::Relaxed);
        let helped = counts.helped.load(Ordering::Relaxed);
        ktap.remark(&format!(
            "{sequences} sequences, {} steps, {helped} with a sleep that a second task ended, {:.1} s",
            counts.steps.load(Ordering::Relaxed),
            start.elapsed().as_secs_f32(),
        ))?;
        let missing = coverage.missing();
        let verdict = if helped * 100 < sequences * HELPED {
            Outcome::Failed(format!("{helped} of {sequences} with such a sleep"))
        } else if sequences >= ENOUGH && !missing.is_empty() {
            Outcome::Failed(format!("never seen: {}", missing.join(", ")))
        } else {
            Outcome::Passed
        };
        ktap.result(
            "operations come to all outcomes, and tasks help sleepers",
            &verdict,
        )?;
        Ok(ktap.failed())
    }

    fn parts(&self) -> Result<Vec<Part>, String> {
        if self.native {
            return Ok(vec![Part {
                subject: Subject::Native,
                comparable: ALL,
                first: self.first,
                sequences: self.sequences,
            }]);
        }
        let control = Arc::new(Control::open().map_err(|error| error.to_string())?);
        let (texts, rest): (Vec<_>, u64) = if self.configs.is_empty() {
            let newest = PRESETS.last().map_or("", |preset| preset.name);
            let others = PRESETS
                .iter()
                .rev()
                .skip(1)
                .map(|preset| preset.name.to_owned());
            let rest = self.sequences * (100 - DEFAULT_SHARE) / 100;
            (
                [newest.to_owned()].into_iter().chain(others).collect(),
                rest,
            )
        } else {
            let count = self.configs.len() as u64;
            (self.configs.clone(), self.sequences / count * (count - 1))
        };
        let each = rest / (texts.len() as u64 - 1).max(1);
        let mut first = self.first;
        let mut parts = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            let subject = Subject::altpipe(&control, text)?;
            let sequences = match number {
                0 => self.sequences - each * (texts.len() as u64 - 1),
                _ => each,
            };
            parts.push(Part {
                comparable: comparable(&subject.config())
                    .map_err(|why| format!("{text}: {why}"))?,
                subject,
                first,
                sequences,
            });
            first += sequences;
        }
        Ok(parts)
    }
}

impl Part {
    // In a child of its own: workers are processes, so that each has descriptors to itself.
    fn run(&self, seed: u64, coverage: Coverage) {
        let workers = available_parallelism().map_or(1, |count| count.get() as u64);
        let workers: Vec<_> = (0..workers)
            .map(|worker| {
                Process::fork(|| {
                    let mut numbers = self.first..self.first + self.sequences;
                    if let Some(start) = numbers.nth(worker as usize) {
                        let mine = (start..numbers.end).step_by(workers as usize);
                        stay_on(worker as usize);
                        self.work(seed, mine, coverage);
                    }
                })
            })
            .collect();
        workers.into_iter().for_each(Process::succeed);
    }

    fn work(&self, seed: u64, numbers: impl Iterator<Item = u64>, coverage: Coverage) {
        signal::count(FAILS, Interrupted::Fails);
        signal::count(RESTARTS, Interrupted::Restarts);
        signal::set_default(libc::SIGPIPE);
        // Before the tasks start, for they are to have them blocked as well.
        block_signals(&[libc::SIGPIPE, owners_signal()]);
        let stage = RefCell::new(Stage {
            tasks: [Task::start(), Task::start()],
            desk: Desk::new(),
            comparable: self.comparable,
        });
        let scripts = generate::scripts();
        for number in numbers {
            self.check(seed, number, &scripts, &stage, coverage);
        }
    }

    // One sequence; panics where its course is another on altpipe.
    fn check(
        &self,
        seed: u64,
        number: u64,
        scripts: &BoxedStrategy<Script>,
        stage: &RefCell<Stage>,
        coverage: Coverage,
    ) {
        let mut runner = runner(seed, number);
        let tree = scripts.new_tree(&mut runner).expect("nothing is filtered");
        let both = |script: &Script, coverage| {
            let stage = &mut *stage.borrow_mut();
            let native = world::run(script, &Subject::Native, stage, coverage);
            (native, world::run(script, &self.subject, stage, None))
        };
        let script = self.comparable.strip(tree.current());
        note(&format!("sequence {number}"));
        let (native, other) = both(&script, Some(coverage));
        let counts = coverage.counts();
        counts.sequences.fetch_add(1, Ordering::Relaxed);
        counts
            .steps
            .fetch_add(script.ops.len() as u64, Ordering::Relaxed);
        counts
            .helped
            .fetch_add(native.was_helped.into(), Ordering::Relaxed);
        if native == other {
            return;
        }
        let result = runner.run_one(tree, |script| {
            let script = self.comparable.strip(script);
            let (native, other) = both(&script, None);
            (native == other)
                .then_some(())
                .ok_or_else(|| TestCaseError::fail("differs"))
        });
        const TURNS: usize = 20;
        let mut again = 0;
        // What does not differ again is a finding none the less.
        let mut shown = (script, native, other);
        if let Err(TestError::Fail(_, shrunk)) = result {
            let shrunk = self.comparable.strip(shrunk);
            for _ in 0..TURNS {
                let (native, other) = both(&shrunk, None);
                if native != other {
                    again += 1;
                    shown = (shrunk.clone(), native, other);
                }
            }
        }
        let (script, native, other) = shown;
        self.report(seed, number, &script, &native, &other);
        panic!(
            "sequence {number} differs on {}, and shrunk {again} of {TURNS} times",
            self.subject
        );
    }

    fn report(
        &self,
        seed: u64,
        number: u64,
        script: &Script,
        native: &Transcript,
        other: &Transcript,
    ) {
        let mut text = format!(
            "# sequence {number} differs on {}; again: altpipe-selftests differential --seed {seed} --first {number} --sequences 1{}\n",
            self.subject,
            match &self.subject {
                Subject::Altpipe { text, .. } => format!(" --config {text}"),
                _ => String::from(" --native"),
            },
        );
        for line in explain(script, native, other) {
            text.push_str(&format!("# {line}\n"));
        }
        let _ = io::stdout().write_all(text.as_bytes());
    }
}

// Keeps the process on one CPU. The director and his tasks move one after the other in any case, and
// to go from one to the next takes a switch then, and no interrupt of another CPU.
fn stay_on(cpu: usize) {
    // SAFETY: a set of CPUs may be all zero, and outlives the call. Where the CPU is not allowed the
    // process stays where it is.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

fn runner(seed: u64, number: u64) -> TestRunner {
    let config = Proptest {
        failure_persistence: None,
        max_shrink_iters: 4000,
        ..Proptest::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}
