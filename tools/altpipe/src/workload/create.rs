// SPDX-License-Identifier: GPL-2.0
//! Make a pipe and close it, over and over, as shells and builds do. *Beside*: while another pipe of the same kind
//! lives, which may spare the kernel from setting something up and tearing it down each time.

use anyhow::Result;

use super::Load;
use crate::sample::Measurement;
use crate::team::{Ground, Team};

/// Pipes that carry nothing.
pub struct Create {
    pub beside: bool,
}

impl Load for Create {
    fn unit(&self) -> &'static str {
        "pipe"
    }

    fn ops(&self) -> u64 {
        1000
    }

    fn run(&self, ground: Ground<'_>, ops: u64) -> Result<Measurement> {
        let mut team = Team::new(ground, 1)?;
        let keep = if self.beside {
            let (reader, writer) = team.pipe()?;
            vec![reader, writer]
        } else {
            Vec::new()
        };
        let source = ground.source;
        team.task(&keep, |clock| {
            clock.start()?;
            for _ in 0..ops {
                source.pipe()?;
            }
            clock.stop()
        })?;
        // Pipes that are gone cannot be asked; the device has kept their sums.
        let before = source.device_counters()?;
        let mut measurement = team.finish(ops, 0)?;
        measurement.counters = source.device_counters()?;
        for (name, value) in &mut measurement.counters {
            *value = value.saturating_sub(before.get(name).copied().unwrap_or(0));
        }
        Ok(measurement)
    }
}
