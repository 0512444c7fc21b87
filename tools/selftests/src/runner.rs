// SPDX-License-Identifier: GPL-2.0
//! Runs the chosen cases on the chosen subjects.

use std::io::{self, Write};
use std::time::Duration;

use crate::case::{Area, Case, Scope};
use crate::child::isolate;
use crate::fifo::Fifos;
use crate::knobs::Snapshot;
use crate::ktap::Ktap;
use crate::subject::Subject;

/// What to run.
pub struct Plan {
    /// The cases to choose from.
    pub areas: &'static [Area],
    /// The seed in use, to be printed.
    pub seed: u64,
    /// The subjects, in order.
    pub subjects: Vec<Subject>,
    /// Only cases whose full name contains this.
    pub filter: Option<String>,
    /// The time one case may take.
    pub timeout: Duration,
}

impl Plan {
    /// Runs all; returns the number of subjects that failed.
    pub fn run(&self, out: impl Write) -> io::Result<usize> {
        let mut ktap = Ktap::start(out, self.subjects.len())?;
        ktap.remark(&format!("seed {}", self.seed))?;
        for subject in &self.subjects {
            let cases: Vec<_> = self
                .cases()
                .filter(|(_, case)| holds_for(case, subject))
                .collect();
            ktap.subtest(&subject.to_string(), cases.len(), |inner| {
                // Cases of the device turn its knobs, and a case that fails cannot turn them back.
                let knobs = matches!(subject, Subject::Device(_))
                    .then(Snapshot::take)
                    .transpose()?;
                for (area, case) in cases {
                    let outcome = isolate(self.timeout, || (case.run)(subject))?;
                    inner.result(&full_name(area, case), &outcome)?;
                    knobs.as_ref().map_or(Ok(()), Snapshot::restore)?;
                }
                Ok(())
            })?;
        }
        Ok(ktap.failed())
    }

    /// Prints the names of the chosen cases and where each runs.
    pub fn list(&self, mut out: impl Write) -> io::Result<()> {
        for (area, case) in self.cases() {
            let scope = match case.scope {
                Scope::Every => "every",
                Scope::Altpipe => "altpipe",
                Scope::Device => "device",
                Scope::Fifo => "fifo",
                Scope::FifoDevice => "fifodev",
            };
            writeln!(out, "{scope:8} {}", full_name(area, case))?;
        }
        Ok(())
    }

    fn cases(&self) -> impl Iterator<Item = (&'static Area, &'static Case)> + '_ {
        let all = self
            .areas
            .iter()
            .flat_map(|area| area.cases.iter().map(move |case| (area, case)));
        all.filter(|(area, case)| {
            self.filter
                .as_ref()
                .is_none_or(|filter| full_name(area, case).contains(filter.as_str()))
        })
    }
}

fn full_name(area: &Area, case: &Case) -> String {
    format!("{}: {}", area.name, case.name)
}

fn holds_for(case: &Case, subject: &Subject) -> bool {
    match subject {
        Subject::Native => case.scope == Scope::Every,
        Subject::Device(_) => case.scope == Scope::Device,
        Subject::Altpipe { .. } => {
            matches!(case.scope, Scope::Every | Scope::Altpipe)
                && !(case.long && subject.is_of_one_knob())
        }
        Subject::Fifo(Fifos::Native) => case.scope == Scope::Fifo,
        Subject::Fifo(Fifos::Devices { .. }) => {
            matches!(case.scope, Scope::Fifo | Scope::FifoDevice)
        }
    }
}
