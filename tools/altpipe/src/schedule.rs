// SPDX-License-Identifier: GPL-2.0
//! What runs when: rounds, their shuffled order, and the jitter of each.
//!
//! A round runs every workload, and of each workload every contestant once, the contestants of a workload one after
//! the other so that what drifts on the machine drifts for all of them alike. The seed decides everything here.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::variant::Variant;

/// The longest start phase: a scheduler tick at CONFIG_HZ=250.
const PHASE_NS: u64 = 4_000_000;
/// The longest lag of a workload's second task behind its first, well below a time slice.
const LAG_NS: u64 = 100_000;
/// How much longer than asked a round may be: 3%.
const STRETCH: f64 = 0.03;

/// A variant's place in the line-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contestant {
    /// What runs.
    pub variant: Variant,
    /// Whether it is the second native of the A/A pair.
    pub twin: bool,
}

/// What makes a round differ from the next, so that an emulator that repeats itself exactly does not repeat a
/// round. All contestants of a workload in one round share it: their ratio stays a fair one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Jitter {
    /// Time to let pass before the tasks start, in nanoseconds.
    pub phase_ns: u64,
    /// How much later the second task starts, in nanoseconds.
    pub lag_ns: u64,
    /// Factor on the number of operations, from 1 to 1.03.
    pub stretch: f64,
    /// For a workload that draws sizes.
    pub seed: u64,
}

/// One sample to take.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// The round, from 0.
    pub round: u32,
    /// Whether the round is dropped.
    pub warmup: bool,
    /// Index of the workload.
    pub workload: usize,
    /// Who runs.
    pub contestant: Contestant,
    /// How.
    pub jitter: Jitter,
}

/// The line-up for these variants: each of them, and native twice, whether it is listed or not.
pub fn line_up(variants: &[Variant]) -> Vec<Contestant> {
    let mut contestants: Vec<_> = variants
        .iter()
        .map(|variant| Contestant {
            variant: variant.clone(),
            twin: false,
        })
        .collect();
    if !variants.contains(&Variant::Native) {
        contestants.push(Contestant {
            variant: Variant::Native,
            twin: false,
        });
    }
    contestants.push(Contestant {
        variant: Variant::Native,
        twin: true,
    });
    contestants
}

/// Lays out all turns of `warmup + rounds` rounds.
pub fn turns(workloads: &[Vec<Contestant>], rounds: u32, warmup: u32, seed: u64) -> Vec<Turn> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut turns = Vec::new();
    for round in 0..warmup + rounds {
        let mut order: Vec<usize> = (0..workloads.len()).collect();
        order.shuffle(&mut rng);
        for workload in order {
            let jitter = Jitter {
                phase_ns: rng.random_range(0..PHASE_NS),
                lag_ns: rng.random_range(0..LAG_NS),
                stretch: 1.0 + rng.random_range(0.0..=STRETCH),
                seed: rng.random(),
            };
            let mut contestants = workloads[workload].clone();
            contestants.shuffle(&mut rng);
            turns.extend(contestants.into_iter().map(|contestant| Turn {
                round,
                warmup: round < warmup,
                workload,
                contestant,
                jitter,
            }));
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(seed: u64) -> Vec<Turn> {
        let contestants = line_up(&[Variant::Native, Variant::of("times=full")]);
        turns(&[contestants.clone(), contestants], 6, 2, seed)
    }

    #[test]
    fn every_round_runs_each_contestant_of_each_workload_once() {
        let turns = schedule(5);
        assert_eq!(turns.len(), 8 * 2 * 3);
        for round in 0..8 {
            for workload in 0..2 {
                let of_round: Vec<_> = turns
                    .iter()
                    .filter(|turn| turn.round == round && turn.workload == workload)
                    .collect();
                assert_eq!(of_round.len(), 3);
                assert_eq!(
                    of_round.iter().filter(|turn| turn.contestant.twin).count(),
                    1
                );
                assert!(of_round.iter().all(|turn| turn.warmup == (round < 2)));
            }
        }
    }

    #[test]
    fn contestants_of_a_round_share_its_jitter_and_rounds_differ() {
        let turns = schedule(5);
        assert!(
            turns
                .chunks(3)
                .all(|group| group.iter().all(|turn| turn.jitter == group[0].jitter))
        );
        assert_ne!(turns[0].jitter, turns[6].jitter);
        assert!(
            turns
                .iter()
                .all(|turn| (1.0..=1.03).contains(&turn.jitter.stretch))
        );
    }

    #[test]
    fn the_seed_decides_the_order() {
        assert_eq!(schedule(5), schedule(5));
        assert_ne!(schedule(5), schedule(6));
        let firsts: Vec<_> = schedule(5)
            .chunks(3)
            .map(|group| group[0].contestant.clone())
            .collect();
        assert!(
            firsts.iter().any(|first| *first != firsts[0]),
            "never shuffled"
        );
    }

    #[test]
    fn native_joins_every_line_up_twice() {
        let contestants = line_up(&[Variant::of("times=full")]);
        let natives: Vec<_> = contestants
            .iter()
            .filter(|contestant| contestant.variant == Variant::Native)
            .map(|contestant| contestant.twin)
            .collect();
        assert_eq!(natives, [false, true]);
    }
}
