// SPDX-License-Identifier: GPL-2.0
//! One measurement from question to document.

use std::time::Duration;

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};

use crate::configs::Configs;
use crate::device::Device;
use crate::document::{Boot, Comparison, Document, SCHEMA, WorkloadInfo};
use crate::environment::Environment;
use crate::executor::Forking;
use crate::runner;
use crate::schedule::{Contestant, line_up, turns};
use crate::settle;
use crate::signals::{self, Interrupted};
use crate::summary::Summary;
use crate::variant::Variant;
use crate::workload::Workload;

/// How to measure, whatever is measured.
#[derive(Clone, Debug)]
pub struct Method {
    /// Rounds that count.
    pub rounds: u32,
    /// Rounds dropped before them.
    pub warmup: u32,
    /// What shuffles and jitters.
    pub seed: u64,
    /// Factor on the number of operations; none leaves it to the machine.
    pub scale: Option<f64>,
    /// How long to wait at most for the machine to calm down.
    pub settle: Duration,
    /// When to give up on a sample.
    pub timeout: Duration,
    /// The smallest effect worth a verdict, as a share of 1.
    pub noise_floor: f64,
    /// A name for this boot, where the caller knows better.
    pub boot: Option<String>,
}

impl Method {
    /// The factor on the number of operations, which are sized for an emulated CPU.
    fn scale_for(&self, environment: &Environment) -> f64 {
        self.scale
            .unwrap_or(if environment.is_emulated() { 1.0 } else { 10.0 })
    }
}

/// What to measure.
pub struct Question {
    /// The study it belongs to.
    pub study: Option<&'static str>,
    /// The workloads.
    pub workloads: Vec<Workload>,
    /// What is compared with what, on which of them.
    pub comparisons: Vec<Comparison>,
    /// Whether a config means 7.3's behaviour where it is silent, and not the knobs as they stand.
    pub pinned: bool,
}

impl Question {
    /// Who runs in a workload: both sides of each comparison that concerns it, and native twice.
    fn contestants(&self, workload: &str) -> Vec<Contestant> {
        let mut variants: Vec<Variant> = Vec::new();
        for comparison in &self.comparisons {
            if comparison.workloads.is_empty()
                || comparison.workloads.iter().any(|name| name == workload)
            {
                for variant in [&comparison.base, &comparison.changed] {
                    if !variants.contains(variant) {
                        variants.push(variant.clone());
                    }
                }
            }
        }
        line_up(&variants)
    }
}

/// Each variant against the first; one alone against native.
pub fn comparisons(variants: &[Variant]) -> Vec<Comparison> {
    let against = |base: &Variant, changed: &Variant| Comparison {
        base: base.clone(),
        changed: changed.clone(),
        workloads: Vec::new(),
    };
    match variants {
        [] | [Variant::Native] => Vec::new(),
        [only] => vec![against(&Variant::Native, only)],
        [base, others @ ..] => others
            .iter()
            .map(|changed| against(base, changed))
            .collect(),
    }
}

/// Measures, and gives the document with its summary. An interrupted one says so and holds what there is.
pub fn measure(question: &Question, method: &Method, device: Option<&Device>) -> Result<Document> {
    signals::hold()?;
    let environment = Environment::here();
    let scale = method.scale_for(&environment);
    let line_ups: Vec<_> = question
        .workloads
        .iter()
        .map(|workload| question.contestants(workload.name))
        .collect();
    let configs = Configs::of(&line_ups, question.pinned)?;
    let variants = configs.describe(device)?;
    let turns = turns(&line_ups, method.rounds, method.warmup, method.seed);
    let names: Vec<_> = question
        .workloads
        .iter()
        .map(|workload| workload.name)
        .collect();
    let mut executor = Forking {
        workloads: &question.workloads,
        device,
        configs: &configs,
        scale,
        timeout: method.timeout,
    };

    let busy = settle::wait(method.settle)?;
    let bar = progress_bar(turns.len());
    let harvest = runner::run(&turns, &names, &mut executor, |turn| {
        bar.set_message(format!("round {} {}", turn.round, names[turn.workload]));
        bar.inc(1);
    });
    bar.finish_and_clear();
    let harvest = harvest?;
    if harvest.samples.is_empty() {
        bail!(Interrupted);
    }
    let mut document = Document {
        schema: SCHEMA,
        tool: concat!("altpipe ", env!("CARGO_PKG_VERSION")).into(),
        study: question.study.map(str::to_owned),
        noise_floor: method.noise_floor,
        workloads: question
            .workloads
            .iter()
            .map(|workload| WorkloadInfo {
                name: workload.name.into(),
                unit: workload.load.unit().into(),
                bulk: workload.load.moves_bulk(),
            })
            .collect(),
        comparisons: question.comparisons.clone(),
        boots: vec![Boot {
            label: method
                .boot
                .clone()
                .unwrap_or_else(|| environment.boot_label()),
            environment,
            seed: method.seed,
            rounds: method.rounds,
            warmup: method.warmup,
            scale,
            busy,
            complete: !harvest.interrupted,
            variants,
            samples: harvest.samples,
        }],
        summary: Summary::default(),
    };
    document.sum_up();
    Ok(document)
}

/// Shown on a terminal only.
fn progress_bar(turns: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {eta}");
    ProgressBar::new(turns as u64)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(variants: &[&str]) -> Vec<(String, String)> {
        let variants: Vec<_> = variants
            .iter()
            .map(|variant| Variant::of(variant))
            .collect();
        let pair =
            |comparison: &Comparison| (comparison.base.to_string(), comparison.changed.to_string());
        comparisons(&variants).iter().map(pair).collect()
    }

    #[test]
    fn the_first_variant_is_the_base_of_all_others() {
        let pair = |base: &str, changed: &str| (base.to_owned(), changed.to_owned());
        assert_eq!(
            pairs(&["v5.4", "native", "v5.5"]),
            [pair("v5.4", "native"), pair("v5.4", "v5.5")]
        );
        assert_eq!(pairs(&["v5.4"]), [pair("native", "v5.4")]);
        assert!(pairs(&["native"]).is_empty());
    }

    #[test]
    fn a_workload_runs_the_variants_of_its_own_comparisons_and_native_twice() {
        let mut comparisons = comparisons(&[Variant::of("v5.4"), Variant::of("v5.5")]);
        comparisons[0].workloads = vec!["small".into()];
        let question = Question {
            study: None,
            workloads: Vec::new(),
            comparisons,
            pinned: false,
        };
        let labels = |workload| {
            let contestants = question.contestants(workload).into_iter();
            contestants
                .map(|contestant| contestant.variant.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(labels("small"), ["v5.4", "v5.5", "native", "native"]);
        assert_eq!(labels("self-1"), ["native", "native"]);
    }
}
