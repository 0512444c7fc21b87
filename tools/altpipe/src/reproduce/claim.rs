// SPDX-License-Identifier: GPL-2.0
//! One thing that must be seen for a report to count as reproduced.

use comfy_table::Table;

use super::Pair;
use crate::document::Document;
use crate::export::percent;
use crate::summary::Change;
use crate::variant::Variant;

/// A statistic and where its ratio should be.
pub struct Claim {
    /// The workload.
    pub workload: &'static str,
    /// The statistic's full name.
    pub metric: &'static str,
    /// What was reported or seen before, in words.
    pub then: &'static str,
    /// Where the ratio of changed to base should be.
    pub range: Range,
}

/// A range of ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// Any rise that is a difference.
    Rise,
    /// At least this.
    AtLeast(f64),
    /// Between these.
    Within(f64, f64),
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Held,
    Refuted,
    Unresolved,
}

impl Range {
    /// The whole interval decides, not the median: it must be inside for yes and outside for no. A rise is refuted
    /// once any that the interval allows is below the noise floor.
    pub fn judge(self, change: &Change, floor: f64) -> Outcome {
        let Some((low, high)) = change.interval else {
            return Outcome::Unresolved;
        };
        let (held, refuted) = match self {
            Self::Rise => (change.different && change.ratio > 1.0, high < 1.0 + floor),
            Self::AtLeast(least) => (low >= least, high < least),
            Self::Within(least, most) => (low >= least && high <= most, high < least || low > most),
        };
        match (held, refuted) {
            (true, _) => Outcome::Held,
            (_, true) => Outcome::Refuted,
            _ => Outcome::Unresolved,
        }
    }

    fn words(self) -> String {
        match self {
            Self::Rise => "more".into(),
            Self::AtLeast(least) => format!("{least} times or more"),
            Self::Within(least, most) => format!("{least} to {most} times"),
        }
    }
}

impl Claim {
    /// Adds a row of what was said and what is seen.
    pub(super) fn add_row(&self, pair: &Pair, document: &Document, table: &mut Table) -> Outcome {
        let (base, changed) = (Variant::of(pair.base), Variant::of(pair.changed));
        let row = document
            .summary
            .find(self.workload, &base, &changed, self.metric);
        let name = if self.metric.starts_with(self.workload) {
            format!("  {}", self.metric)
        } else {
            format!("  {}: {}", self.workload, self.metric)
        };
        let Some(change) = row.and_then(|row| row.change) else {
            table.add_row([
                name.as_str(),
                self.then,
                &self.range.words(),
                "n/a",
                "",
                "no figure",
            ]);
            return Outcome::Unresolved;
        };
        let outcome = self.range.judge(&change, document.noise_floor);
        let verdict = match outcome {
            Outcome::Held => "yes".to_owned(),
            Outcome::Refuted => "no".to_owned(),
            Outcome::Unresolved => match change.resolution {
                Some(resolution) => format!("resolution {:.1}%", 100.0 * resolution),
                None => "one pair only".to_owned(),
            },
        };
        let figure = |ratio: f64| {
            if ratio < 2.0 {
                percent(ratio)
            } else {
                format!("{ratio:.2} times")
            }
        };
        let interval = change.interval.map_or(String::new(), |(low, high)| {
            format!("{} to {}", figure(low), figure(high))
        });
        table.add_row([
            name,
            self.then.into(),
            self.range.words(),
            figure(change.ratio),
            interval,
            verdict,
        ]);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(low: f64, ratio: f64, high: f64) -> Change {
        let different = low > 1.01 || high < 0.99;
        Change {
            ratio,
            interval: Some((low, high)),
            pairs: 9,
            boots: 5,
            different,
            resolution: Some(0.01),
        }
    }

    #[test]
    fn the_whole_interval_decides() {
        let judge = |range: Range, low, high| {
            range.judge(&change(low, f64::midpoint(low, high), high), 0.01)
        };
        assert_eq!(judge(Range::Rise, 1.03, 1.05), Outcome::Held);
        assert_eq!(judge(Range::Rise, 0.98, 1.05), Outcome::Unresolved);
        assert_eq!(judge(Range::Rise, 0.98, 1.005), Outcome::Refuted);
        assert_eq!(judge(Range::AtLeast(20.0), 30.0, 70.0), Outcome::Held);
        assert_eq!(judge(Range::AtLeast(20.0), 19.0, 70.0), Outcome::Unresolved);
        assert_eq!(judge(Range::AtLeast(20.0), 1.0, 19.0), Outcome::Refuted);
        assert_eq!(judge(Range::Within(0.97, 1.03), 0.98, 1.02), Outcome::Held);
        assert_eq!(
            judge(Range::Within(0.97, 1.03), 0.98, 1.04),
            Outcome::Unresolved
        );
        assert_eq!(
            judge(Range::Within(0.97, 1.03), 1.04, 1.05),
            Outcome::Refuted
        );
    }

    #[test]
    fn one_pair_leaves_everything_open() {
        let one = Change {
            interval: None,
            resolution: None,
            ..change(2.0, 2.0, 2.0)
        };
        assert_eq!(Range::Rise.judge(&one, 0.01), Outcome::Unresolved);
    }
}
