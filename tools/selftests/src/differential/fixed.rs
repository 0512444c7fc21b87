// SPDX-License-Identifier: GPL-2.0
//! Sequences that are written down: each step with what it comes to on the kernel's pipe. They are
//! then run on both kinds, and everything seen is compared.

use super::call::{Desk, block_signals};
use super::comparable::{ALL, of};
use super::script::{Op, Script, Side};
use super::task::Task;
use super::transcript::{Deed, Step, explain};
use super::world::{self, FAILS, RESTARTS, Stage, owners_signal};
use crate::signal::{self, Interrupted};
use crate::subject::Subject;

/// A sequence and what it comes to.
pub struct Scene {
    script: Script,
    expected: Vec<&'static str>,
    merges: bool,
}

impl Scene {
    /// Begins on a new pipe of so many pages.
    pub fn of(pages: u32) -> Self {
        Self {
            script: Script {
                pages,
                direct: false,
                looks: true,
                patient: Side::Readers,
                ops: Vec::new(),
            },
            expected: Vec::new(),
            merges: false,
        }
    }

    /// Begins with packets.
    pub fn of_packets(pages: u32) -> Self {
        let mut scene = Self::of(pages);
        scene.script.direct = true;
        scene
    }

    /// Leaves poll(2) alone until the end: some rules ask whether anybody ever polled.
    pub fn unseen(mut self) -> Self {
        self.script.looks = false;
        self
    }

    /// Needs small writes to share a slot; left out where they do not.
    pub fn merging(mut self) -> Self {
        self.merges = true;
        self
    }

    /// Goes on with `op`, which comes to `expected`: the text of a transcript, without the sum over
    /// the data.
    pub fn then(mut self, op: Op, expected: &'static str) -> Self {
        self.script.ops.push(op);
        self.expected.push(expected);
        self
    }

    /// Goes on with a step that comes to `expected` again and again.
    pub fn repeat(mut self, times: usize, op: Op, expected: &'static str) -> Self {
        for _ in 0..times {
            self = self.then(op.clone(), expected);
        }
        self
    }

    /// Runs it: on the kernel's pipe as it stands, and then on both without what the subject's config
    /// makes incomparable. Panics where an outcome is another.
    pub fn play(self, subject: &Subject) {
        let config = subject.config();
        if self.merges && !config.merge {
            return;
        }
        signal::count(FAILS, Interrupted::Fails);
        signal::count(RESTARTS, Interrupted::Restarts);
        signal::set_default(libc::SIGPIPE);
        block_signals(&[libc::SIGPIPE, owners_signal()]);
        let mut stage = Stage {
            tasks: [Task::start(), Task::start()],
            desk: Desk::new(),
            comparable: ALL,
        };
        let whole = world::run(&self.script, &Subject::Native, &mut stage, None);
        for ((number, step), expected) in whole.steps.iter().enumerate().zip(&self.expected) {
            let op = &self.script.ops[number];
            assert!(step.deed != Deed::Skipped, "step {number}, {op}, left out");
            let seen = told(step);
            assert!(
                seen == *expected || without_sums(&seen) == *expected,
                "step {number}, {op}: {seen} on a native pipe, not {expected}"
            );
        }
        stage.comparable = of(&config);
        let script = stage.comparable.strip(self.script);
        let native = world::run(&script, &Subject::Native, &mut stage, None);
        let other = world::run(&script, subject, &mut stage, None);
        assert!(
            native == other,
            "{}",
            explain(&script, &native, &other).join("\n")
        );
    }
}

// The step without the view, which the two runs are compared by.
fn told(step: &Step) -> String {
    Step {
        view: None,
        ..step.clone()
    }
    .to_string()
}

fn without_sums(text: &str) -> String {
    let mut out = String::new();
    for (number, part) in text.split(" (").enumerate() {
        match (number, part.split_once(')')) {
            (0, _) | (_, None) => out.push_str(part),
            (_, Some((_, rest))) => out.push_str(rest),
        }
    }
    out
}
