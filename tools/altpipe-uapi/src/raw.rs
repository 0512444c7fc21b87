// SPDX-License-Identifier: MIT OR Apache-2.0
//! The structures and call numbers of `altpipe.h` as they cross into the kernel.
//!
//! For those who make the calls themselves; a test compares all of it with the header.

use libc::{_IO, _IOWR, Ioctl};

/// The type letter of all calls.
pub const TYPE: u32 = 0xB9;

/// On the control device: returns the ABI's version.
pub const VERSION: Ioctl = _IO(TYPE, 0);
/// On the control device: makes a pipe.
pub const CREATE: Ioctl = _IOWR::<Create>(TYPE, 1);
/// On an end: returns the pipe's capacity in bytes.
pub const GET_SIZE: Ioctl = _IO(TYPE, 2);
/// On an end: changes the capacity, given by value, and returns what it became.
pub const SET_SIZE: Ioctl = _IO(TYPE, 3);
/// On an end: writes the pipe's config into a buffer and returns its length.
pub const GET_CONFIG: Ioctl = _IOWR::<Text>(TYPE, 4);
/// On an end: fills in the pipe's counters.
pub const GET_STATS: Ioctl = _IOWR::<Stats>(TYPE, 5);

/// `struct altpipe_create`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Create {
    /// Size of this structure in bytes.
    pub size: u32,
    /// O_CLOEXEC, O_NONBLOCK, O_DIRECT.
    pub flags: u32,
    /// Out: the read end, the write end.
    pub fd: [i32; 2],
    /// Address of the config's text; 0 for none.
    pub config: u64,
    /// Length of that text in bytes.
    pub config_len: u32,
    /// Must be 0.
    pub pad: u32,
}

/// `struct altpipe_text`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Text {
    /// Address of the buffer.
    pub buf: u64,
    /// Room in it, in bytes.
    pub len: u32,
    /// Must be 0.
    pub pad: u32,
}

/// `struct altpipe_stats`: its size, then a counter for each name in [`crate::Stats::NAMES`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Size of this structure in bytes.
    pub size: u32,
    /// Must be 0.
    pub pad: u32,
    /// The counters, in the header's order.
    pub counters: [u64; crate::Stats::NAMES.len()],
}
