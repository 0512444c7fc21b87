// SPDX-License-Identifier: GPL-2.0
//! Writes of 1 to 16 bytes, which merge into pages, and reads of 4 KiB that take what has gathered.

use anyhow::Result;
use nix::errno::Errno;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Load;
use crate::sample::Measurement;
use crate::team::{Ground, Team};
use crate::transfer::{drain, put};

/// How many sizes are drawn; the writer goes round them, so that drawing costs nothing while the clock runs.
const SIZES: usize = 1024;

/// Small writes, large reads.
pub struct Small;

impl Load for Small {
    fn unit(&self) -> &'static str {
        "write"
    }

    fn ops(&self) -> u64 {
        // Its first ten thousand writes have a rhythm of their own. Under icount 24 thousand still scattered by 4%,
        // this many by 0.6%.
        40000
    }

    fn run(&self, ground: Ground<'_>, ops: u64) -> Result<Measurement> {
        let mut rng = ChaCha8Rng::seed_from_u64(ground.jitter.seed);
        let sizes: Vec<usize> = (0..SIZES).map(|_| rng.random_range(1..=16)).collect();
        let bytes = sizes.iter().cycle().take(ops as usize).sum::<usize>() as u64;
        let mut team = Team::new(ground, 2)?;
        let (reader, writer) = team.pipe()?;
        team.task(&[writer], |clock| {
            clock.start()?;
            for size in sizes.iter().cycle().take(ops as usize) {
                put(writer, &[0x5a; 16][..*size])?;
            }
            clock.stop()
        })?;
        team.task(&[reader], |clock| {
            let mut buffer = [0; 4096];
            clock.start()?;
            let got = drain(reader, &mut buffer)?;
            clock.stop()?;
            if got == bytes {
                Ok(())
            } else {
                Err(Errno::ENODATA.into())
            }
        })?;
        team.finish(ops, bytes)
    }
}
