// SPDX-License-Identifier: GPL-2.0
//! Goes through the schedule and collects the samples.

use anyhow::{Context, Result};

use crate::sample::{Measurement, Sample};
use crate::schedule::Turn;
use crate::signals::{self, Interrupted};

/// Who carries out a turn: tasks on pipes, or a mock in tests.
pub trait Executor {
    /// Takes one sample.
    fn execute(&mut self, turn: &Turn) -> Result<Measurement>;
}

/// What came of a schedule.
#[derive(Debug)]
pub struct Harvest {
    /// Every sample taken, in the order of taking.
    pub samples: Vec<Sample>,
    /// Whether the user ended it early. What was sampled until then stands.
    pub interrupted: bool,
}

/// Takes all samples. `names` are the workloads' by index; `progress` is called before each turn.
pub fn run(
    turns: &[Turn],
    names: &[&str],
    executor: &mut dyn Executor,
    mut progress: impl FnMut(&Turn),
) -> Result<Harvest> {
    let mut harvest = Harvest {
        samples: Vec::with_capacity(turns.len()),
        interrupted: false,
    };
    for turn in turns {
        progress(turn);
        let outcome = signals::check().and_then(|()| executor.execute(turn));
        let measurement = match outcome {
            Err(error) if error.is::<Interrupted>() => {
                harvest.interrupted = true;
                break;
            }
            outcome => outcome.with_context(|| {
                format!("{} on {}", names[turn.workload], turn.contestant.variant)
            })?,
        };
        harvest.samples.push(Sample {
            workload: names[turn.workload].to_owned(),
            variant: turn.contestant.variant.clone(),
            twin: turn.contestant.twin,
            round: turn.round,
            warmup: turn.warmup,
            measurement,
        });
    }
    Ok(harvest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{line_up, turns};
    use crate::variant::Variant;

    /// Notes what it is asked to do; ends after a number of turns, as told.
    struct Mock {
        seen: Vec<Turn>,
        limit: usize,
        end: fn() -> anyhow::Error,
    }

    impl Executor for Mock {
        fn execute(&mut self, turn: &Turn) -> Result<Measurement> {
            if self.seen.len() == self.limit {
                return Err((self.end)());
            }
            self.seen.push(turn.clone());
            Ok(Measurement {
                ops: self.seen.len() as u64,
                ..Measurement::default()
            })
        }
    }

    fn play(limit: usize, end: fn() -> anyhow::Error) -> (Vec<Turn>, Mock, Result<Harvest>) {
        let contestants = line_up(&[Variant::Native, Variant::of("times=full")]);
        let turns = turns(&[contestants.clone(), contestants], 2, 1, 9);
        let mut mock = Mock {
            seen: Vec::new(),
            limit,
            end,
        };
        let harvest = run(&turns, &["self-1", "small"], &mut mock, |_| {});
        (turns, mock, harvest)
    }

    #[test]
    fn turns_are_taken_in_the_order_of_the_schedule() {
        let (turns, mock, harvest) = play(usize::MAX, || unreachable!());
        let harvest = harvest.unwrap();
        assert_eq!(mock.seen, turns);
        assert!(!harvest.interrupted);
        assert_eq!(harvest.samples.len(), 18);
        for (sample, turn) in harvest.samples.iter().zip(&turns) {
            assert_eq!(sample.workload, ["self-1", "small"][turn.workload]);
            assert_eq!((sample.round, sample.warmup), (turn.round, turn.warmup));
            assert_eq!(
                (&sample.variant, sample.twin),
                (&turn.contestant.variant, turn.contestant.twin)
            );
        }
        assert_eq!(
            harvest
                .samples
                .iter()
                .filter(|sample| sample.warmup)
                .count(),
            6
        );
    }

    #[test]
    fn an_interrupt_keeps_what_was_sampled() {
        let (_, _, harvest) = play(5, || Interrupted.into());
        let harvest = harvest.unwrap();
        assert!(harvest.interrupted);
        assert_eq!(harvest.samples.len(), 5);
    }

    #[test]
    fn an_error_names_workload_and_variant() {
        let (turns, _, harvest) = play(3, || anyhow::anyhow!("broke"));
        let text = format!("{:#}", harvest.unwrap_err());
        let turn = &turns[3];
        let name = ["self-1", "small"][turn.workload];
        assert_eq!(
            text,
            format!("{name} on {}: broke", turn.contestant.variant)
        );
    }
}
