// SPDX-License-Identifier: GPL-2.0
//! One task writes and reads back: the cost of the calls alone, for nobody sleeps. will-it-scale's pipe1 does so.

use anyhow::Result;

use super::Load;
use crate::sample::Measurement;
use crate::team::{Ground, Team};
use crate::transfer::{put, take};

/// Write then read of `bytes`, which must fit into the pipe.
pub struct SelfPipe {
    pub bytes: usize,
}

impl Load for SelfPipe {
    fn unit(&self) -> &'static str {
        "write+read"
    }

    fn ops(&self) -> u64 {
        // 2.2 thousand instructions for 1 B, 3.2 for 4 KiB, 48 for 64 KiB, and nothing that scatters.
        if self.bytes > 4096 { 300 } else { 5000 }
    }

    fn run(&self, ground: Ground<'_>, ops: u64) -> Result<Measurement> {
        let mut team = Team::new(ground, 1)?;
        let (reader, writer) = team.pipe()?;
        let mut buffer = vec![0x5a; self.bytes];
        team.task(&[reader, writer], |clock| {
            clock.start()?;
            for _ in 0..ops {
                put(writer, &buffer)?;
                take(reader, &mut buffer)?;
            }
            clock.stop()
        })?;
        team.finish(ops, ops * self.bytes as u64)
    }
}
