// SPDX-License-Identifier: GPL-2.0
//! A program that prints lines into one that reads lines, both through the C library's stdio.
//!
//! Two writers. One only formats its lines. Whether its reader keeps up, and so sleeps for each flush, or lets the pipe
//! fill, where the size of a flush no longer shows in switches, hangs on how fast the machine wakes a task. The other
//! works on each line, as a compiler does for its assembler, the case of the 2008 report: its reader is always
//! waiting. (gcc -O2 -S was seen to take 70 microseconds for a line of 17 bytes; a tenth of that is done here.)
//!
//! stdio takes the size of its buffers from fstat's `st_blksize`, and that is the point: nothing here sets, asks for
//! or imitates a buffer size. What the pipe says is what the C library does with it.

use std::ffi::CStr;
use std::hint::black_box;
use std::io;
use std::os::fd::AsRawFd;

use anyhow::Result;
use nix::errno::Errno;

use super::Load;
use crate::sample::Measurement;
use crate::team::{End, Ground, Team};

/// The format of a line, which takes a number.
const LINE: &CStr = c"%08lu: the quick brown fox jumps over as many dogs and rests.\n";
/// What it comes to: for numbers of up to eight digits, a line of 64 bytes.
const LENGTH: u64 = 64;

/// Turns of a loop of three instructions that a line costs the writer that works.
const WORK: u64 = 3000;

/// Lines from one program to another.
pub struct Stdio {
    pub works: bool,
}

impl Load for Stdio {
    fn unit(&self) -> &'static str {
        "line"
    }

    fn ops(&self) -> u64 {
        if self.works { 8000 } else { 40000 }
    }

    fn run(&self, ground: Ground<'_>, ops: u64) -> Result<Measurement> {
        let mut team = Team::new(ground, 2)?;
        let (reader, writer) = team.pipe()?;
        team.task(&[writer], |clock| {
            let stream = Stream::open(writer, c"w")?;
            clock.start()?;
            for number in 0..ops {
                if self.works {
                    (0..WORK).for_each(|turn| {
                        black_box(turn);
                    });
                }
                stream.print(number)?;
            }
            stream.close()?;
            clock.stop()
        })?;
        team.task(&[reader], |clock| {
            let stream = Stream::open(reader, c"r")?;
            let mut line = [0; 256];
            clock.start()?;
            let mut lines = 0;
            while stream.line(&mut line)? {
                lines += 1;
            }
            clock.stop()?;
            if lines == ops {
                Ok(())
            } else {
                Err(Errno::ENODATA.into())
            }
        })?;
        team.finish(ops, ops * LENGTH)
    }
}

/// A C stream.
///
/// # Invariants
///
/// The pointer is what fdopen gave, and the stream has not been closed.
struct Stream(*mut libc::FILE);

impl Stream {
    fn open(end: End, mode: &CStr) -> io::Result<Self> {
        // SAFETY: the mode is a C string. fdopen checks the descriptor.
        let stream = unsafe { libc::fdopen(end.as_raw_fd(), mode.as_ptr()) };
        if stream.is_null() {
            return Err(io::Error::last_os_error());
        }
        // INVARIANT: just opened.
        Ok(Self(stream))
    }

    fn print(&self, number: u64) -> io::Result<()> {
        // SAFETY: by the invariant the stream is open; the format is a C string and asks for one long.
        if unsafe { libc::fprintf(self.0, LINE.as_ptr(), number) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Reads one line; false at the end of the file.
    fn line(&self, buffer: &mut [libc::c_char; 256]) -> io::Result<bool> {
        // SAFETY: by the invariant the stream is open; the buffer is as long as we say.
        if !unsafe { libc::fgets(buffer.as_mut_ptr(), buffer.len() as libc::c_int, self.0) }
            .is_null()
        {
            return Ok(true);
        }
        // SAFETY: by the invariant the stream is open.
        if unsafe { libc::ferror(self.0) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(false)
    }

    /// Writes out what is buffered and closes; the reader sees the end of the file then.
    fn close(self) -> io::Result<()> {
        // SAFETY: by the invariant the stream is open, and `self` is gone after this.
        if unsafe { libc::fclose(self.0) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}
