// SPDX-License-Identifier: GPL-2.0
//! Carries out one turn of the schedule for real.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::configs::Configs;
use crate::device::Device;
use crate::runner::Executor;
use crate::sample::Measurement;
use crate::schedule::Turn;
use crate::team::Ground;
use crate::workload::Workload;

/// Forks the tasks of a workload on pipes of the turn's variant.
pub struct Forking<'a> {
    /// What the turns' indices mean.
    pub workloads: &'a [Workload],
    /// For altpipe variants.
    pub device: Option<&'a Device>,
    /// What the create call says for each variant.
    pub configs: &'a Configs,
    /// Factor on each workload's number of operations.
    pub scale: f64,
    /// When to give up on a sample.
    pub timeout: Duration,
}

impl Executor for Forking<'_> {
    fn execute(&mut self, turn: &Turn) -> Result<Measurement> {
        let workload = &self.workloads[turn.workload];
        let wanted = workload.load.ops() as f64 * self.scale * turn.jitter.stretch;
        let ground = Ground {
            source: self.configs.source(&turn.contestant.variant, self.device),
            jitter: turn.jitter,
            timeout: self.timeout,
        };
        let measurement = workload.load.run(ground, (wanted.round() as u64).max(1))?;
        if ground.source.counts() {
            prove_use(&measurement)?;
        }
        Ok(measurement)
    }
}

/// A figure that no altpipe pipe had a part in must never pass for altpipe's.
fn prove_use(measurement: &Measurement) -> Result<()> {
    let counted = |name| measurement.counters.get(name).copied().unwrap_or(0);
    if counted("pipes_created") == 0 {
        bail!("no altpipe pipe was made for this sample, says the module's pipes_created");
    }
    if measurement.bytes > 0 && counted("bytes_read") < measurement.bytes {
        bail!(
            "{} bytes were to go through altpipe, but its counter saw {}: the sample is of something else",
            measurement.bytes,
            counted("bytes_read")
        );
    }
    if measurement.bytes == 0 && counted("pipes_created") < measurement.ops {
        bail!(
            "{} pipes were to be made, but altpipe counted {}",
            measurement.ops,
            counted("pipes_created")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(bytes: u64, counters: &[(&str, u64)]) -> Measurement {
        Measurement {
            ops: 10,
            bytes,
            counters: counters
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect(),
            ..Measurement::default()
        }
    }

    #[test]
    fn bytes_that_altpipe_never_saw_fail_the_sample() {
        assert!(prove_use(&sample(100, &[("pipes_created", 1), ("bytes_read", 100)])).is_ok());
        assert!(prove_use(&sample(100, &[("pipes_created", 1), ("bytes_read", 0)])).is_err());
        assert!(prove_use(&sample(100, &[])).is_err());
    }

    #[test]
    fn pipes_that_altpipe_never_made_fail_the_sample() {
        assert!(prove_use(&sample(0, &[("pipes_created", 10)])).is_ok());
        assert!(prove_use(&sample(0, &[("pipes_created", 9)])).is_err());
    }
}
