// SPDX-License-Identifier: GPL-2.0
//! Who is tested: the kernel's own pipes, or altpipe's under one config. Only the making of a pipe differs.

use std::fmt;
use std::os::fd::OwnedFd;

use rustix::io::Result;
use rustix::pipe::{PipeFlags, pipe_with};

/// The two ends of a pipe. A scenario takes them apart and drops an end to close it.
pub struct Pipe {
    /// The end to read from.
    pub read: OwnedFd,
    /// The end to write to.
    pub write: OwnedFd,
}

/// A maker of pipes.
#[derive(Clone)]
pub enum Subject {
    /// pipe2(2) of the running kernel.
    Native,
}

impl Subject {
    /// Makes a pipe, both ends blocking.
    pub fn pipe(&self) -> Pipe {
        self.pipe_with(PipeFlags::CLOEXEC).expect("make a pipe")
    }

    /// Makes a pipe with pipe2(2)'s flags.
    pub fn pipe_with(&self, flags: PipeFlags) -> Result<Pipe> {
        match self {
            Self::Native => pipe_with(flags).map(|(read, write)| Pipe { read, write }),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native => f.write_str("native"),
        }
    }
}
