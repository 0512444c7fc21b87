// SPDX-License-Identifier: GPL-2.0
//! `altpipe reproduce`: regressions that were reported, run again by turning the knob that stands for the commit.
//!
//! A study says what was reported, which pairs of configs stand for the commit and its parent, and what must be
//! seen for the report to count as reproduced. Each is a file and a row in [`ALL`].

mod claim;
mod fidelity;
mod frozen_fs;
mod inode_diet;
mod tail_spinlock;

use std::io::{self, Write};

use anyhow::{Result, bail};
use comfy_table::{Table, presets};

pub use claim::{Claim, Outcome, Range};

use crate::bench::{self, Method, Question};
use crate::device::Device;
use crate::document::{Comparison, Document};
use crate::variant::Variant;
use crate::workload;

/// The studies, in the order of `all`.
pub const ALL: [&Study; 4] = [
    &fidelity::STUDY,
    &inode_diet::STUDY,
    &frozen_fs::STUDY,
    &tail_spinlock::STUDY,
];

/// A report and what to hold against it.
pub struct Study {
    /// Its name on the command line.
    pub name: &'static str,
    /// Year, commit and subject.
    pub title: &'static str,
    /// What was reported, a line each.
    pub reported: &'static [&'static str],
    /// What stands for the commit and its parent, the one that decides first.
    pub pairs: &'static [Pair],
    /// What it means if every claim of the first pair holds, if one is refuted, and otherwise.
    pub verdicts: Verdicts,
}

/// The study's sentence for each outcome, after its name.
pub struct Verdicts {
    pub held: &'static str,
    pub refuted: &'static str,
}

/// Two configs of one study.
pub struct Pair {
    /// What the pair stands for.
    pub what: &'static str,
    /// The parent commit.
    pub base: &'static str,
    /// The commit.
    pub changed: &'static str,
    /// Where it shows.
    pub workloads: &'static [&'static str],
    /// What is expected there.
    pub claims: &'static [Claim],
    /// Whether this pair decides the study's verdict.
    pub decides: bool,
    /// Whether its figures need two CPUs.
    pub two_cpus: bool,
}

/// The study of a name.
pub fn find(name: &str) -> Option<&'static Study> {
    ALL.into_iter().find(|study| study.name == name)
}

/// Which part of a study to measure.
#[derive(Clone, Debug)]
pub struct Extent {
    /// Readers in a herd.
    pub readers: u32,
    /// Workloads to keep to, by their names or their kinds' names; all, if empty.
    pub only: Vec<String>,
    /// CPUs that this machine has.
    pub cpus: usize,
}

impl Extent {
    /// The names that `only` stands for.
    fn names(&self) -> Result<Vec<&'static str>> {
        let chosen = workload::resolve(&self.only, self.readers)?;
        Ok(chosen.iter().map(|workload| workload.name).collect())
    }
}

/// Measures one study, or all.
pub fn measure(
    name: &str,
    method: &Method,
    extent: &Extent,
    device: Option<&Device>,
) -> Result<Vec<Document>> {
    let mut documents = Vec::new();
    for study in ALL
        .into_iter()
        .filter(|study| name == "all" || study.name == name)
    {
        let question = study.question(extent)?;
        if question.workloads.is_empty() {
            let reason = format!("nothing of {} can be measured here", study.name);
            if name != "all" {
                bail!(
                    "{reason}: it needs two CPUs (altpipe-vm run --smp 2), or --only leaves nothing of it"
                );
            }
            eprintln!("altpipe: {reason}; left out");
            continue;
        }
        let document = bench::measure(&question, method, device)?;
        let complete = document.boots.iter().all(|boot| boot.complete);
        documents.push(document);
        if !complete {
            break;
        }
    }
    Ok(documents)
}

impl Study {
    /// What to measure of it.
    fn question(&self, extent: &Extent) -> Result<Question> {
        let only = extent.names()?;
        let wanted = |pair: &&Pair| {
            let chosen = only.is_empty() || pair.workloads.iter().any(|name| only.contains(name));
            chosen && (extent.cpus > 1 || !pair.two_cpus)
        };
        let mut names: Vec<&str> = Vec::new();
        let mut comparisons = Vec::new();
        for pair in self.pairs.iter().filter(wanted) {
            for name in pair.workloads {
                if !names.contains(name) {
                    names.push(name);
                }
            }
            comparisons.push(pair.comparison());
        }
        Ok(Question {
            study: Some(self.name),
            workloads: workload::resolve(&names, extent.readers)?,
            comparisons,
            pinned: true,
        })
    }

    /// Writes the report's figures beside ours, and what follows.
    pub fn conclude(&self, document: &Document, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "reported:")?;
        for line in self.reported {
            writeln!(out, "  {line}")?;
        }
        writeln!(out)?;
        let mut deciding = Vec::new();
        for pair in self.pairs {
            writeln!(
                out,
                "{}: {} against {}",
                pair.what,
                Variant::of(pair.changed),
                Variant::of(pair.base)
            )?;
            if !document.comparisons.contains(&pair.comparison()) {
                let why = if pair.two_cpus {
                    "; it needs two CPUs"
                } else {
                    ""
                };
                writeln!(out, "  not measured here{why}\n")?;
                continue;
            }
            let mut table = Table::new();
            table.load_preset(presets::NOTHING);
            table.set_header([
                "  statistic",
                "then",
                "wanted",
                "now",
                "95% interval",
                "verdict",
            ]);
            for claim in pair.claims {
                let outcome = claim.add_row(pair, document, &mut table);
                if pair.decides {
                    deciding.push(outcome);
                }
            }
            for line in table.lines() {
                writeln!(out, "{}", line.trim_end())?;
            }
            writeln!(out)?;
        }
        writeln!(out, "{}: {}", self.name, self.verdict(&deciding))
    }

    fn verdict(&self, outcomes: &[Outcome]) -> String {
        if outcomes.is_empty() {
            "not decided: the pair that decides was not measured here".into()
        } else if outcomes.iter().all(|outcome| *outcome == Outcome::Held) {
            self.verdicts.held.to_owned()
        } else if outcomes.contains(&Outcome::Refuted) {
            self.verdicts.refuted.to_owned()
        } else {
            "below resolution: an interval leaves it open; measure more boots or rounds".into()
        }
    }
}

impl Pair {
    fn comparison(&self) -> Comparison {
        Comparison {
            base: Variant::of(self.base),
            changed: Variant::of(self.changed),
            workloads: self
                .workloads
                .iter()
                .map(|name| (*name).to_owned())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_needs_every_claim() {
        use Outcome::{Held, Refuted, Unresolved};
        let study = find("frozen-fs").unwrap();
        assert_eq!(study.verdict(&[Held, Held]), study.verdicts.held);
        assert_eq!(
            study.verdict(&[Held, Refuted, Unresolved]),
            study.verdicts.refuted
        );
        assert!(
            study
                .verdict(&[Held, Unresolved])
                .starts_with("below resolution")
        );
    }

    fn extent(cpus: usize, only: &[&str]) -> Extent {
        Extent {
            readers: 64,
            only: only.iter().map(|name| (*name).to_owned()).collect(),
            cpus,
        }
    }

    #[test]
    fn every_claim_is_measured_by_its_pair() {
        for study in ALL {
            assert!(
                study.pairs.iter().any(|pair| pair.decides),
                "{}",
                study.name
            );
            let question = study.question(&extent(2, &[])).unwrap();
            for pair in study.pairs {
                assert!(question.comparisons.contains(&pair.comparison()));
                for claim in pair.claims {
                    assert!(pair.workloads.contains(&claim.workload), "{}", claim.metric);
                    let own = claim.metric.split('.').next().unwrap();
                    assert!(
                        own == claim.workload || ["time", "altpipe", "vmstat"].contains(&own),
                        "{}",
                        claim.metric
                    );
                }
            }
        }
    }

    #[test]
    fn what_needs_two_cpus_is_left_out_on_one() {
        let question = find("inode-diet")
            .unwrap()
            .question(&extent(1, &[]))
            .unwrap();
        assert!(question.comparisons.is_empty() && question.workloads.is_empty());
        let racing = |cpus| {
            let question = find("tail-spinlock")
                .unwrap()
                .question(&extent(cpus, &[]))
                .unwrap();
            question
                .workloads
                .iter()
                .any(|workload| workload.name == "herd-racing")
        };
        assert!(racing(2) && !racing(1));
    }

    #[test]
    fn only_the_pairs_of_the_workloads_named_are_measured() {
        let question = find("tail-spinlock")
            .unwrap()
            .question(&extent(2, &["herd"]))
            .unwrap();
        let names: Vec<_> = question
            .workloads
            .iter()
            .map(|workload| workload.name)
            .collect();
        assert_eq!(names, ["herd-paced", "herd-racing"]);
        assert_eq!(question.comparisons.len(), 2);
        assert!(
            find("fidelity")
                .unwrap()
                .question(&extent(2, &["no-such-workload"]))
                .is_err()
        );
    }
}
