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
mod memory;
mod preset;
#[macro_use]
mod table;
mod times;

pub use grammar::{ParseError, Reason};
pub use knob::{Choice, Knob, Values};
pub use memory::PageRule;
pub use preset::{Preset, PRESETS};

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

    /// Whether wake-ups that a read sends tell the scheduler that the sender is about to sleep. On
    /// current kernels this steers the choice of the processor alone. Lost in 5.5-rc1.
    sync_read: switch(true),

    /// The same for wake-ups that a write sends.
    sync_write: switch(true),

    /// Whether sleepers wait exclusively, so that one wake-up runs one of them and each that leaves
    /// hands over to the next, as since Linux 5.6. Otherwise one wake-up runs all. Without split_wait
    /// the value is kept and not acted upon.
    exclusive: switch(true),

    /// Whether readers and writers sleep on queues of their own, as since Linux 5.6, or on one.
    split_wait: switch(true),

    /// Whether a read that has data goes on for more while writers sleep for room, as before Linux
    /// 5.5. A nonblocking read never does.
    read_merge: switch(false),

    /// When a write makes a filled slot visible.
    publish: choice(Publish {
        /// After the data is in it, as before Linux 5.5 and since 6.15.
        AfterCopy = "after_copy",
        /// Before that, as Linux 5.5 to 6.14 did: a write from a bad address leaves an empty slot,
        /// which poll takes for data and a read skips.
        BeforeCopy = "before_copy",
    }),

    /// Whether a small write is appended to the page of the write before it.
    merge: switch(true),

    /// Where the pages of a write come from.
    prealloc: choice(Prealloc {
        /// From a pool of the pipe's, filled before the lock is taken, as since Linux 7.3.
        Pool = "pool",
        /// Allocated before the lock is taken for this write alone, as in Linux 7.2.
        Burst = "burst",
        /// Allocated under the lock, as before Linux 7.2.
        Off = "off",
    }),

    /// How many pages a write allocates ahead at most, and how many the pool holds at most.
    prealloc_max: number(0..=16, 8),

    /// How many pages the pool keeps from one call to the next.
    prealloc_keep: number(0..=16, 2),

    /// How many pages are kept for reuse where prealloc is not pool: 1 before Linux 6.15, 2 since.
    page_cache: number(0..=2, 2),

    /// When SIGIO is sent to those who asked for it.
    fasync: choice(FasyncRule {
        /// At every read and write, as since Linux 5.14.
        EveryIo = "every_io",
        /// Where a wake-up is sent.
        WithWake = "with_wake",
    }),

    /// Whether RWF_NOWAIT is honoured, and io_uring needs no worker, as since Linux 6.4. Acts when an
    /// end is opened.
    nowait: switch(true),

    /// How many slots a new pipe gets whose user is over the soft quota. One slot dead-locked job
    /// servers, hence two since Linux 5.14; there was no quota before 4.5.
    min_def_buffers: number(1..=2, 2),

    /// Size in bytes of a new pipe: a power of two of at least a page.
    capacity: power_of_two(4096..=1073741824, DEFAULT_CAPACITY),
}

/// Sixteen pages, whatever their size, as since Linux 2.6.11.
const DEFAULT_CAPACITY: u32 = 16 * PAGE_SIZE as u32;
