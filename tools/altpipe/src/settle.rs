// SPDX-License-Identifier: GPL-2.0
//! Waits for the machine to calm down.
//!
//! A kernel that has just booted is still busy for seconds, with self-tests of its crypto and the like, and a third
//! task changes the rhythm of two that share a pipe: a stream of 512-byte chunks then showed a third of its usual
//! switches. Waiting costs nothing under icount, where idle time is skipped.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::signals;

/// How long one look takes.
const LOOK: Duration = Duration::from_millis(250);
/// Looks in a row that must find the machine calm.
const CALM_LOOKS: u32 = 4;
/// Share of the CPUs that may be busy in a calm one.
pub const CALM: f64 = 0.02;

/// Sleeps until the machine has been calm for a second, at most for `limit`; the share of its CPUs that was busy in
/// the last look. No limit at all means not to look.
pub fn wait(limit: Duration) -> Result<Option<f64>> {
    if limit.is_zero() {
        return Ok(None);
    }
    let end = Instant::now() + limit;
    let mut calm = 0;
    loop {
        let before = Ticks::now();
        signals::wait(LOOK)?;
        let busy = Ticks::now()
            .zip(before)
            .map_or(0.0, |(after, before)| after.busy_since(before));
        calm = if busy <= CALM { calm + 1 } else { 0 };
        if calm == CALM_LOOKS || Instant::now() >= end {
            return Ok(Some(busy));
        }
    }
}

/// CPU time of the whole machine since it booted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    all: u64,
}

impl Ticks {
    fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line: user, nice, system, idle, iowait, irq, softirq, steal. Guests' time is in user's already.
    fn parse(stat: &str) -> Option<Self> {
        let words = stat.lines().next()?.split_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let all: u64 = ticks.iter().sum();
        Some(Self {
            busy: all - ticks.get(3)? - ticks.get(4)?,
            all,
        })
    }

    fn busy_since(self, before: Self) -> f64 {
        // The kernel's own sums may run backwards by a tick.
        let share = |part: u64, whole: u64| {
            if whole == 0 {
                0.0
            } else {
                part as f64 / whole as f64
            }
        };
        share(
            self.busy.saturating_sub(before.busy),
            self.all.saturating_sub(before.all),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_time_is_not_busy() {
        let before = Ticks::parse("cpu  10 0 10 70 10 0 0 0 0 0\n").unwrap();
        assert_eq!(before, Ticks { busy: 20, all: 100 });
        let after = Ticks::parse("cpu  15 0 20 100 15 5 5 5 0 0\n").unwrap();
        assert_eq!(after.busy_since(before), 30.0 / 65.0);
    }

    #[test]
    fn no_time_passed_is_calm() {
        let ticks = Ticks { busy: 1, all: 2 };
        assert_eq!(ticks.busy_since(ticks), 0.0);
    }

    #[test]
    fn the_wait_ends_at_its_limit() {
        let begun = Instant::now();
        assert!(wait(Duration::from_millis(1)).unwrap().is_some());
        assert_eq!(wait(Duration::ZERO).unwrap(), None);
        assert!(begun.elapsed() < Duration::from_secs(2));
    }
}
