// SPDX-License-Identifier: GPL-2.0
//! One byte back and forth between two tasks: the cost of a wake-up and a switch. `perf bench sched pipe` does so.

use anyhow::Result;

use super::Load;
use crate::sample::Measurement;
use crate::team::{Ground, Team};
use crate::transfer::{put, take};

/// Round trips of one byte over two pipes.
pub struct PingPong;

impl Load for PingPong {
    fn unit(&self) -> &'static str {
        "round trip"
    }

    fn ops(&self) -> u64 {
        // Now and then a task is preempted right before it would have slept, which is cheaper. Under icount 4000
        // round trips scattered by up to 3% for it.
        8000
    }

    fn run(&self, ground: Ground<'_>, ops: u64) -> Result<Measurement> {
        let mut team = Team::new(ground, 2)?;
        let (there_reader, there_writer) = team.pipe()?;
        let (back_reader, back_writer) = team.pipe()?;
        let mut ball = [0x5a];
        team.task(&[there_writer, back_reader], |clock| {
            clock.start()?;
            for _ in 0..ops {
                put(there_writer, &ball)?;
                take(back_reader, &mut ball)?;
            }
            clock.stop()
        })?;
        team.task(&[there_reader, back_writer], |clock| {
            clock.start()?;
            for _ in 0..ops {
                take(there_reader, &mut ball)?;
                put(back_writer, &ball)?;
            }
            clock.stop()
        })?;
        team.finish(ops, 2 * ops)
    }
}
