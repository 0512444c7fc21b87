// SPDX-License-Identifier: GPL-2.0

//! Configs: what a pipe does in each place where the releases of Linux differed.
//!
//! A [`Config`] is plain data that a pipe copies when it is made. Each of its fields is a *knob*, and
//! a knob is one row of the table below: name, kind, default, documentation. From that row follow
//! the field, its default, the file in sysfs ([`KNOBS`]), the grammar ([`Config::parse`] and
//! `Display`), and, on the host, help, error messages and the check of the ABI text.
//!
//! This module and its parts are pure: `core` alone, no kernel type, no allocation, no panic. The
//! kernel compiles them as `pub mod config`, the host twin `tools/altpipe-core` compiles the same
//! files and tests them. They are public in both, since what one side leaves unused serves the
//! other.

mod grammar;
mod knob;
#[macro_use]
mod table;
mod times;

pub use grammar::{ParseError, Reason};
pub use knob::{Choice, Knob, Values};

use crate::page::PAGE_SIZE;

knobs! {
    /// Block size in bytes that fstat reports as st_blksize for a new pipe. Programs size their
    /// buffers by it: glibc's stdio where it is below BUFSIZ, many others without that limit. The
    /// default is the size of a page; Linux 2.6.19 to 2.6.27 reported 1024.
    block_size: power_of_two(512..=65536, PAGE_SIZE as u32),

    /// Which time stamps I/O touches. Linux kept all of them until 6.14, and keeps none for
    /// anonymous pipes since 6.15.
    times: choice(Times {
        /// Neither a read nor a write touches a time stamp.
        None = "none",
        /// A read touches atime.
        Atime = "atime",
        /// A write touches mtime and ctime.
        Mtime = "mtime",
        /// A read touches atime, a write touches mtime and ctime.
        Full = "full",
    }),

    /// Whether a write takes the superblock's freeze protection around its update of the time
    /// stamps, as Linux 3.14 to 6.14 did. Acts only where times is mtime or full.
    freeze_check: switch(false),

    /// How a read gives a drained slot back to the writers. The pipe's mutex is held in any case.
    tail_update: choice(TailUpdate {
        /// Under the pipe's mutex alone.
        Mutex = "mutex",
        /// Also inside the interrupt-safe lock of the wait queue, as approximately Linux 5.5 to 6.6
        /// did.
        WaitLock = "wait_lock",
        /// As wait_lock, and the writers are woken inside that lock too, slot by slot, as Linux
        /// 5.5-rc1 did.
        WaitLockWake = "wait_lock_wake",
    }),

    /// When a read wakes writers.
    wake_writer: choice(WakeWriter {
        /// When it made a full pipe writable again, as since Linux 6.14.
        FreedFull = "freed_full",
        /// When it found the pipe full, even if it released no slot, as Linux 5.5 to 6.13 did.
        WasFull = "was_full",
        /// When it crossed half full, made a full pipe writable or emptied the pipe; 5.5-rc1 woke on
        /// the first alone.
        Half = "half",
        /// Once for every read that released a slot, as approximately before Linux 5.5.
        EveryRelease = "every_release",
    }),

    /// When a write wakes readers.
    wake_reader: choice(WakeReader {
        /// When the pipe was empty, or an edge-triggered epoll watches it, as Linux 7.3 does.
        WasEmptyOrEpollet = "was_empty_or_epollet",
        /// When the pipe was empty, or anything ever polled it, as approximately Linux 5.14 to 7.2
        /// did.
        WasEmptyOrPolled = "was_empty_or_polled",
        /// When the pipe was empty, as Linux 5.5 to 5.13 did. An edge-triggered epoll then misses
        /// data added to a pipe that was not drained.
        WasEmpty = "was_empty",
        /// Once for every write, and before that write sleeps, as approximately before Linux 5.5.
        EveryWrite = "every_write",
        /// For every slot that a write fills, as 5.5-rc1 did.
        EveryChunk = "every_chunk",
    }),

    /// Whether sleepers wait exclusively, so that one wake-up runs one of them and each that leaves
    /// hands over to the next, as since Linux 5.6. Otherwise one wake-up runs all. Without split_wait
    /// the value is kept and not acted upon.
    exclusive: switch(true),

    /// Whether readers and writers sleep on queues of their own, as since Linux 5.6, or on one.
    split_wait: switch(true),
}
