// SPDX-License-Identifier: GPL-2.0
//! What a reader of the figures must be told beside them, with the next step.

use crate::document::{Boot, Document};
use crate::export::percent;
use crate::settle;
use crate::summary::TWIN_TOLERANCE;

/// Rounds below which one boot says little.
const ENOUGH_ROUNDS: u32 = 10;
/// Boots below which no claim should be made of several.
const ENOUGH_BOOTS: usize = 5;

/// Warnings about a document, most serious first; none if all is well.
pub fn of(document: &Document) -> Vec<String> {
    let mut notes = Vec::new();
    noise(document, &mut notes);
    company(document, &mut notes);
    amount(document, &mut notes);
    sameness(document, &mut notes);
    notes
}

fn noise(document: &Document, notes: &mut Vec<String>) {
    let worst = document
        .summary
        .twin_cpu()
        .map(|(row, change)| (&row.workload, change.ratio - 1.0))
        .max_by(|(_, one), (_, other)| one.abs().total_cmp(&other.abs()));
    if let Some((workload, off)) = worst.filter(|(_, off)| off.abs() > TWIN_TOLERANCE) {
        notes.push(format!(
            "this machine is too noisy: native differs from itself by {} in {workload}, where {:.0}% is the limit; \
             `altpipe doctor` names causes, and more rounds or a larger --scale help",
            percent(1.0 + off),
            100.0 * TWIN_TOLERANCE
        ));
    }
}

fn company(document: &Document, notes: &mut Vec<String>) {
    for boot in &document.boots {
        let Some(busy) = boot.busy.filter(|busy| *busy > settle::CALM) else {
            continue;
        };
        notes.push(format!(
            "others kept {:.0}% of boot {}'s CPUs busy just before: end what runs there, or wait longer (--settle)",
            100.0 * busy,
            boot.label
        ));
    }
}

fn amount(document: &Document, notes: &mut Vec<String>) {
    for boot in document.boots.iter().filter(|boot| !boot.complete) {
        notes.push(format!(
            "boot {} was interrupted; what it sampled until then is in",
            boot.label
        ));
    }
    match document.boots.as_slice() {
        [only] if only.environment.counts_instructions() => notes.push(
            "under icount the rounds of one boot are near-copies of one another, so that these intervals are too \
             narrow: measure in at least 5 boots with different seeds and give the files to `altpipe report`"
                .into(),
        ),
        [only] if only.rounds < ENOUGH_ROUNDS => notes.push(format!(
            "{} rounds in one boot are few: use --rounds {ENOUGH_ROUNDS} or more, or several boots",
            only.rounds
        )),
        [_] => {}
        boots if boots.len() < ENOUGH_BOOTS => notes.push(format!(
            "{} boots are few: a claim needs at least {ENOUGH_BOOTS} with different seeds",
            boots.len()
        )),
        _ => {}
    }
    let repeats = |boot: &Boot| {
        document
            .boots
            .iter()
            .filter(|other| other.seed == boot.seed)
            .count()
            > 1
    };
    if let Some(boot) = document.boots.iter().find(|boot| repeats(boot)) {
        notes.push(format!(
            "several boots have the seed {}: an emulator may have repeated itself",
            boot.seed
        ));
    }
}

fn sameness(document: &Document, notes: &mut Vec<String>) {
    let Some(boot) = document.boots.first() else {
        return;
    };
    for (place, info) in boot.variants.iter().enumerate() {
        let same = |other: &&crate::document::VariantInfo| {
            info.config.is_some() && other.config == info.config
        };
        if let Some(other) = boot.variants[..place].iter().find(same) {
            notes.push(format!(
                "{} and {} are the same config",
                other.variant, info.variant
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{SCHEMA, VariantInfo};
    use crate::environment::Environment;
    use crate::summary::{Change, Row, Summary};
    use crate::variant::Variant;

    fn boot(seed: u64, rounds: u32) -> Boot {
        Boot {
            label: "a".into(),
            environment: Environment::default(),
            seed,
            rounds,
            warmup: 1,
            scale: 1.0,
            busy: None,
            complete: true,
            variants: Vec::new(),
            samples: Vec::new(),
        }
    }

    fn document(boots: Vec<Boot>) -> Document {
        Document {
            schema: SCHEMA,
            tool: "test".into(),
            study: None,
            noise_floor: 0.01,
            workloads: Vec::new(),
            comparisons: Vec::new(),
            boots,
            summary: Summary::default(),
        }
    }

    fn twin(ratio: f64) -> Row {
        let change = Change {
            ratio,
            interval: None,
            pairs: 1,
            boots: 1,
            different: false,
            resolution: None,
        };
        Row {
            workload: "small".into(),
            base: Variant::Native,
            changed: Variant::Native,
            metric: "small.cpu_ns_per_op".into(),
            base_values: None,
            changed_values: None,
            change: Some(change),
        }
    }

    #[test]
    fn ten_rounds_are_enough_and_nine_are_not() {
        assert!(of(&document(vec![boot(1, 10)])).is_empty());
        assert!(of(&document(vec![boot(1, 9)]))[0].contains("9 rounds in one boot are few"));
    }

    #[test]
    fn five_boots_of_few_rounds_are_enough_and_four_are_not() {
        let boots = |count| (0..count).map(|seed| boot(seed, 3)).collect();
        assert!(of(&document(boots(5))).is_empty());
        assert!(of(&document(boots(4)))[0].contains("4 boots are few"));
    }

    #[test]
    fn one_boot_under_icount_is_told_to_be_one_round() {
        let mut one = boot(1, 100);
        one.environment.accelerator = crate::accelerator::ICOUNT.into();
        assert!(of(&document(vec![one]))[0].contains("near-copies"));
    }

    #[test]
    fn boots_with_one_seed_are_suspected() {
        let notes = of(&document(vec![boot(7, 3); 5]));
        assert!(
            notes[0].contains("several boots have the seed 7"),
            "{notes:?}"
        );
    }

    #[test]
    fn a_twin_beyond_one_percent_means_noise_and_says_how_much() {
        let mut document = document(vec![boot(1, 10)]);
        document.summary.twins = vec![twin(1.002), twin(0.977)];
        assert!(
            of(&document)[0].contains("by -2.3% in small"),
            "{:?}",
            of(&document)
        );
        document.summary.twins = vec![twin(1.009)];
        assert!(of(&document).is_empty());
    }

    #[test]
    fn company_is_told() {
        let mut busy = boot(1, 10);
        busy.busy = Some(0.4);
        assert!(of(&document(vec![busy]))[0].contains("others kept 40% of boot a's CPUs busy"));
    }

    #[test]
    fn an_interrupted_boot_is_named() {
        let mut cut = boot(1, 10);
        cut.complete = false;
        assert!(of(&document(vec![cut]))[0].contains("boot a was interrupted"));
    }

    #[test]
    fn two_names_of_one_config_are_told() {
        let mut one = boot(1, 10);
        let info = |variant: &str| VariantInfo {
            variant: Variant::of(variant),
            config: Some("times=full".into()),
        };
        one.variants = vec![info("default"), info("times=full")];
        assert!(of(&document(vec![one]))[0].contains("default and times=full are the same config"));
    }
}
