// SPDX-License-Identifier: GPL-2.0
//! One writer fills, one reader drains, chunk by chunk of one size.

use anyhow::Result;
use nix::errno::Errno;

use super::Load;
use crate::sample::Measurement;
use crate::team::{Ground, Team};
use crate::transfer::{drain, put};

/// Writes and reads of `chunk` bytes.
pub struct Stream {
    pub chunk: usize,
}

impl Load for Stream {
    fn unit(&self) -> &'static str {
        "chunk"
    }

    fn ops(&self) -> u64 {
        // Near 90 million instructions each. Under icount 16 thousand chunks of 512 bytes scattered by up to 14%,
        // since a stream begins in a rhythm of its own; twice as many and more repeat to half a percent.
        match self.chunk {
            0..=512 => 32000,
            513..=4096 => 14000,
            _ => 1000,
        }
    }

    fn moves_bulk(&self) -> bool {
        true
    }

    fn run(&self, ground: Ground<'_>, ops: u64) -> Result<Measurement> {
        let mut team = Team::new(ground, 2)?;
        let (reader, writer) = team.pipe()?;
        let mut buffer = vec![0x5a; self.chunk];
        let bytes = ops * self.chunk as u64;
        team.task(&[writer], |clock| {
            clock.start()?;
            for _ in 0..ops {
                put(writer, &buffer)?;
            }
            clock.stop()
        })?;
        team.task(&[reader], |clock| {
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
