// SPDX-License-Identifier: GPL-2.0
//! From samples to rows: paired ratios, their median, its interval, and what may be said of it.
//!
//! The pair is the unit: the changed variant's figure over the base's in the same round. With several boots the
//! unit is the boot: the median ratio of each. No outlier is removed.

use serde::{Deserialize, Serialize};

use crate::document::{Boot, Comparison, Document, WorkloadInfo};
use crate::metric::{self, Statistics};
use crate::sample::Sample;
use crate::stats;
use crate::variant::Variant;

/// How far the A/A pair's median may be from 1 before the machine is called too noisy.
pub const TWIN_TOLERANCE: f64 = 0.01;

/// All rows of a document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// One row per comparison, workload and statistic, in the order of output.
    pub rows: Vec<Row>,
    /// Likewise for the A/A pair: native against native.
    pub twins: Vec<Row>,
}

/// A statistic of two variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The workload.
    pub workload: String,
    /// What the ratio is relative to.
    pub base: Variant,
    /// What is compared.
    pub changed: Variant,
    /// The statistic's name.
    pub metric: String,
    /// The base's values; none where the base has no such statistic.
    pub base_values: Option<Spread>,
    /// The changed variant's values, likewise.
    pub changed_values: Option<Spread>,
    /// How they compare; none where a pair has no ratio.
    pub change: Option<Change>,
}

/// Samples of one variant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation in percent of the mean.
    pub stddev_percent: f64,
    /// How many.
    pub count: usize,
}

/// A median ratio and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Median of the ratios: 1 is no change.
    pub ratio: f64,
    /// The 95% interval's ends; none from a single unit.
    pub interval: Option<(f64, f64)>,
    /// Ratios that went into it.
    pub pairs: usize,
    /// Boots that they came from.
    pub boots: usize,
    /// Whether this is a difference.
    pub different: bool,
    /// Smaller effects than this share of 1 could not have been told; none where nothing could.
    pub resolution: Option<f64>,
}

impl Change {
    /// Judges ratios, grouped by boot.
    fn of(boots: &[Vec<f64>], floor: f64, seed: u64) -> Option<Self> {
        let per_boot: Vec<f64> = boots.iter().map(|ratios| stats::median(ratios)).collect();
        let units = match boots {
            [only] => only,
            _ => &per_boot,
        };
        if units.is_empty() || units.iter().any(|ratio| !ratio.is_finite()) {
            return None;
        }
        let ratio = stats::median(units);
        let interval = stats::median_interval(units, seed);
        let one_sign =
            per_boot.iter().all(|boot| *boot > 1.0) || per_boot.iter().all(|boot| *boot < 1.0);
        let excludes_one = interval.is_some_and(|(low, high)| low > 1.0 || high < 1.0);
        let half_width = interval.map(|(low, high)| (high - ratio).max(ratio - low));
        Some(Self {
            ratio,
            interval,
            pairs: boots.iter().map(Vec::len).sum(),
            boots: boots.len(),
            different: excludes_one && one_sign && (ratio - 1.0).abs() >= floor,
            resolution: half_width.map(|width| width.max(floor)),
        })
    }
}

impl Summary {
    /// Sums a document's samples up.
    pub fn of(document: &Document) -> Self {
        let mut summary = Self::default();
        for workload in &document.workloads {
            for comparison in &document.comparisons {
                if !comparison.workloads.is_empty()
                    && !comparison.workloads.contains(&workload.name)
                {
                    continue;
                }
                summary
                    .rows
                    .extend(rows(document, workload, comparison, false));
            }
            let natives = Comparison {
                base: Variant::Native,
                changed: Variant::Native,
                workloads: Vec::new(),
            };
            summary
                .twins
                .extend(rows(document, workload, &natives, true));
        }
        summary
    }

    /// CPU time per operation of the A/A pair, per workload.
    pub fn twin_cpu(&self) -> impl Iterator<Item = (&Row, Change)> {
        self.twins
            .iter()
            .filter(|row| row.metric.ends_with(metric::CPU))
            .filter_map(|row| Some((row, row.change?)))
    }

    /// The row of one comparison's statistic.
    pub fn find(
        &self,
        workload: &str,
        base: &Variant,
        changed: &Variant,
        metric: &str,
    ) -> Option<&Row> {
        self.rows.iter().find(|row| {
            row.workload == workload
                && row.base == *base
                && row.changed == *changed
                && row.metric == metric
        })
    }
}

/// The statistics of one side, by boot, by round.
struct Side(Vec<Vec<(u32, Statistics)>>);

impl Side {
    fn of(document: &Document, workload: &WorkloadInfo, variant: &Variant, twin: bool) -> Self {
        let wanted = |sample: &&Sample| {
            !sample.warmup
                && sample.workload == workload.name
                && sample.variant == *variant
                && sample.twin == twin
        };
        let of_boot = |boot: &Boot| {
            boot.samples
                .iter()
                .filter(wanted)
                .map(|sample| (sample.round, metric::all(workload, &sample.measurement)))
                .collect()
        };
        Self(document.boots.iter().map(of_boot).collect())
    }

    /// The names of its statistics, in order of first appearance.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self
            .0
            .iter()
            .flatten()
            .flat_map(|(_, statistics)| statistics)
        {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// Round and value of one statistic in one boot.
    fn values(&self, boot: usize, name: &str) -> Vec<(u32, f64)> {
        let find = |statistics: &[(String, f64)]| {
            statistics
                .iter()
                .find(|(other, _)| other == name)
                .map(|(_, value)| *value)
        };
        self.0[boot]
            .iter()
            .filter_map(|(round, statistics)| Some((*round, find(statistics)?)))
            .collect()
    }

    fn spread(&self, name: &str) -> Option<Spread> {
        let values: Vec<f64> = (0..self.0.len())
            .flat_map(|boot| self.values(boot, name))
            .map(|(_, value)| value)
            .collect();
        if values.is_empty() {
            return None;
        }
        let (mean, stddev_percent) = stats::mean_and_spread(&values);
        Some(Spread {
            mean,
            stddev_percent,
            count: values.len(),
        })
    }
}

fn rows(
    document: &Document,
    workload: &WorkloadInfo,
    comparison: &Comparison,
    twin: bool,
) -> Vec<Row> {
    let base = Side::of(document, workload, &comparison.base, false);
    let changed = Side::of(document, workload, &comparison.changed, twin);
    if base.names().is_empty() || changed.names().is_empty() {
        return Vec::new();
    }
    let seed = document.boots.first().map_or(0, |boot| boot.seed);
    let mut names = changed.names();
    names.extend(
        base.names()
            .into_iter()
            .filter(|name| !changed.names().contains(name)),
    );
    names
        .into_iter()
        .map(|name| {
            let ratios: Vec<Vec<f64>> = (0..document.boots.len())
                .map(|boot| paired(&base.values(boot, name), &changed.values(boot, name)))
                .filter(|ratios| !ratios.is_empty())
                .collect();
            Row {
                workload: workload.name.clone(),
                base: comparison.base.clone(),
                changed: comparison.changed.clone(),
                metric: name.to_owned(),
                base_values: base.spread(name),
                changed_values: changed.spread(name),
                change: Change::of(&ratios, document.noise_floor, seed),
            }
        })
        .collect()
}

/// The ratios of rounds that have both values. Nothing against nothing is no change; something against nothing has
/// no ratio, and shows as infinite.
fn paired(base: &[(u32, f64)], changed: &[(u32, f64)]) -> Vec<f64> {
    let ratio = |(round, value): &(u32, f64)| {
        let (_, reference) = base.iter().find(|(other, _)| other == round)?;
        Some(if *value == 0.0 && *reference == 0.0 {
            1.0
        } else {
            value / reference
        })
    };
    changed.iter().filter_map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::sample::Measurement;

    const FLOOR: f64 = 0.01;

    fn sample(variant: &str, round: u32, twin: bool, warmup: bool, cpu_ns: u64) -> Sample {
        let measurement = Measurement {
            ops: 10,
            bytes: 10,
            cpu_ns,
            wall_ns: 1000,
            ..Measurement::default()
        };
        Sample {
            workload: "self-1".into(),
            variant: Variant::of(variant),
            twin,
            round,
            warmup,
            measurement,
        }
    }

    fn boot(samples: Vec<Sample>) -> Boot {
        Boot {
            label: "one".into(),
            environment: Environment::default(),
            seed: 1,
            rounds: 3,
            warmup: 1,
            scale: 1.0,
            busy: None,
            complete: true,
            variants: Vec::new(),
            samples,
        }
    }

    fn summary(boots: Vec<Boot>) -> Summary {
        Summary::of(&Document {
            schema: crate::document::SCHEMA,
            tool: "test".into(),
            study: None,
            noise_floor: FLOOR,
            workloads: vec![WorkloadInfo {
                name: "self-1".into(),
                unit: "op".into(),
                bulk: false,
            }],
            comparisons: vec![Comparison {
                base: Variant::Native,
                changed: Variant::of("default"),
                workloads: Vec::new(),
            }],
            boots,
            summary: Summary::default(),
        })
    }

    fn cpu(summary: &Summary) -> Change {
        let row = summary.find(
            "self-1",
            &Variant::Native,
            &Variant::of("default"),
            "self-1.cpu_ns_per_op",
        );
        row.unwrap().change.unwrap()
    }

    #[test]
    fn ratios_pair_by_round_and_not_by_order() {
        // The machine slows down fivefold; the ratio of each round stays 2.
        let samples = [(0, 100), (1, 200), (2, 500)]
            .into_iter()
            .flat_map(|(round, cpu)| {
                [
                    sample("default", round, false, false, 2 * cpu),
                    sample("native", round, false, false, cpu),
                ]
            })
            .rev()
            .collect();
        let change = cpu(&summary(vec![boot(samples)]));
        assert_eq!((change.ratio, change.interval), (2.0, Some((2.0, 2.0))));
        assert!(change.different);
    }

    #[test]
    fn warm_up_counts_for_nothing() {
        let samples = vec![
            sample("native", 0, false, true, 100),
            sample("default", 0, false, true, 9000),
            sample("native", 1, false, false, 100),
            sample("default", 1, false, false, 100),
        ];
        let change = cpu(&summary(vec![boot(samples)]));
        assert_eq!((change.ratio, change.pairs), (1.0, 1));
    }

    #[test]
    fn the_twin_is_held_against_native_and_is_not_the_base() {
        let samples = vec![
            sample("native", 1, true, false, 103),
            sample("native", 1, false, false, 100),
            sample("default", 1, false, false, 100),
        ];
        let summary = summary(vec![boot(samples)]);
        assert_eq!(cpu(&summary).ratio, 1.0);
        assert_eq!(summary.twin_cpu().next().unwrap().1.ratio, 1.03);
    }

    #[test]
    fn a_round_without_its_partner_is_left_out() {
        let samples = vec![
            sample("native", 1, false, false, 100),
            sample("default", 1, false, false, 150),
            sample("default", 2, false, false, 900),
        ];
        assert_eq!(cpu(&summary(vec![boot(samples)])).pairs, 1);
    }

    #[test]
    fn with_several_boots_the_boot_is_the_unit() {
        // 3 boots of 100 near-copies: the interval must come from 3 values and not from 300.
        let boots: Vec<Vec<f64>> = [1.02, 1.10, 1.30]
            .iter()
            .map(|ratio| vec![*ratio; 100])
            .collect();
        let change = Change::of(&boots, FLOOR, 1).unwrap();
        assert_eq!((change.ratio, change.interval), (1.10, Some((1.02, 1.30))));
        assert_eq!((change.boots, change.pairs), (3, 300));
        assert!(change.different);
    }

    #[test]
    fn a_sign_that_changes_between_boots_is_no_difference() {
        let mut boots = vec![vec![1.2]; 40];
        boots.push(vec![0.99]);
        let change = Change::of(&boots, FLOOR, 1).unwrap();
        assert!(change.interval.unwrap().0 > 1.0 && !change.different);
    }

    #[test]
    fn an_effect_below_the_floor_is_no_difference() {
        let change = Change::of(&[vec![1.005; 20]], FLOOR, 1).unwrap();
        assert!(!change.different);
        assert_eq!(change.resolution, Some(FLOOR));
    }

    #[test]
    fn a_wide_interval_states_its_resolution() {
        let change = Change::of(&[vec![0.91, 0.95, 1.0, 1.05, 1.09]], FLOOR, 1).unwrap();
        assert!(!change.different);
        assert!((change.resolution.unwrap() - 0.09).abs() < 1e-9);
    }

    #[test]
    fn one_pair_resolves_nothing() {
        let change = Change::of(&[vec![3.0]], FLOOR, 1).unwrap();
        assert!(!change.different && change.resolution.is_none());
    }

    #[test]
    fn something_against_nothing_has_no_ratio() {
        assert_eq!(
            paired(&[(0, 0.0), (1, 0.0)], &[(0, 0.0), (1, 5.0)]),
            [1.0, f64::INFINITY]
        );
        assert!(Change::of(&[vec![f64::INFINITY, 1.0]], FLOOR, 1).is_none());
    }
}
