// SPDX-License-Identifier: GPL-2.0
//! The workloads: each a file, a row in [`ALL`] and a match arm in [`load`].

mod create;
mod herd;
mod pingpong;
mod self_pipe;
mod small;
mod stdio;
mod stream;

use anyhow::{Result, bail};

use crate::sample::Measurement;
use crate::team::Ground;

/// Something that tasks do with pipes.
pub trait Load {
    /// What one operation is, in the singular.
    fn unit(&self) -> &'static str;

    /// Operations at scale 1, which takes a fraction of a second on an emulated CPU.
    fn ops(&self) -> u64;

    /// Whether bytes per second say more of its speed than operations do.
    fn moves_bulk(&self) -> bool {
        false
    }

    /// Does `ops` operations and says what they cost.
    fn run(&self, ground: Ground<'_>, ops: u64) -> Result<Measurement>;
}

/// Names and what each does, in the order of help and output.
pub const ALL: [(&str, &str); 15] = [
    ("self-1", "one task writes 1 byte and reads it back"),
    ("self-100", "the same with 100 bytes"),
    ("self-4k", "the same with 4 KiB"),
    ("self-64k", "the same with 64 KiB"),
    (
        "pingpong",
        "1 byte back and forth between two tasks over two pipes",
    ),
    ("stream-512", "one writer, one reader, chunks of 512 bytes"),
    ("stream-4k", "the same with 4 KiB"),
    ("stream-64k", "the same with 64 KiB"),
    ("small", "writes of 1 to 16 bytes, reads of 4 KiB"),
    (
        "herd-racing",
        "one token, many blocking readers; the next is sent once one is taken",
    ),
    (
        "herd-paced",
        "the same, but the next is sent only when all readers sleep",
    ),
    (
        "stdio-compile",
        "lines through C stdio, whose buffers follow st_blksize; the writer works on each",
    ),
    ("stdio-print", "the same; the writer only formats each"),
    ("create-alone", "make a pipe and close it"),
    ("create-beside", "the same while another pipe lives"),
];

/// A named workload.
pub struct Workload {
    /// Its name in output.
    pub name: &'static str,
    /// What it does.
    pub load: Box<dyn Load>,
}

/// The workloads that a list of names stands for: `self`, `stream`, `herd`, `stdio` and `create` are all of their kind,
/// `all` is everything.
pub fn resolve<S: AsRef<str>>(names: &[S], readers: u32) -> Result<Vec<Workload>> {
    let mut chosen: Vec<Workload> = Vec::new();
    for asked in names.iter().map(AsRef::as_ref) {
        let mut known = false;
        for (name, _) in ALL {
            let family = name.split_once('-').map(|(family, _)| family);
            if asked != "all" && asked != name && Some(asked) != family {
                continue;
            }
            known = true;
            if chosen.iter().all(|other| other.name != name) {
                chosen.push(Workload {
                    name,
                    load: load(name, readers),
                });
            }
        }
        if !known {
            let names: Vec<_> = ALL.iter().map(|(name, _)| *name).collect();
            bail!(
                "no workload is called {asked:?}; there are: {}, and all",
                names.join(", ")
            );
        }
    }
    Ok(chosen)
}

/// What a name of [`ALL`] does.
fn load(name: &str, readers: u32) -> Box<dyn Load> {
    match name {
        "self-1" => Box::new(self_pipe::SelfPipe { bytes: 1 }),
        "self-100" => Box::new(self_pipe::SelfPipe { bytes: 100 }),
        "self-4k" => Box::new(self_pipe::SelfPipe { bytes: 4096 }),
        "self-64k" => Box::new(self_pipe::SelfPipe { bytes: 65536 }),
        "pingpong" => Box::new(pingpong::PingPong),
        "stream-512" => Box::new(stream::Stream { chunk: 512 }),
        "stream-4k" => Box::new(stream::Stream { chunk: 4096 }),
        "stream-64k" => Box::new(stream::Stream { chunk: 65536 }),
        "small" => Box::new(small::Small),
        "herd-racing" => Box::new(herd::Herd {
            readers,
            paced: false,
        }),
        "herd-paced" => Box::new(herd::Herd {
            readers,
            paced: true,
        }),
        "stdio-compile" => Box::new(stdio::Stdio { works: true }),
        "stdio-print" => Box::new(stdio::Stdio { works: false }),
        "create-alone" => Box::new(create::Create { beside: false }),
        "create-beside" => Box::new(create::Create { beside: true }),
        _ => unreachable!("{name} has a row in ALL but no arm here"),
    }
}
