// SPDX-License-Identifier: GPL-2.0
//! The scenarios, one file for each area.

use crate::case::Area;

mod access;
mod accounting;
mod atomicity;
mod capacity;
mod config;
mod controls;
mod counters;
mod create;
mod data;
mod device;
mod driven;
mod eof;
mod epoll;
mod fdinfo;
mod fifo;
mod fifo_knobs;
mod foreign;
mod herd;
mod inode;
mod nonblock;
mod notices;
mod packets;
mod parity;
mod pointers;
mod poll;
mod presets;
mod processes;
mod quota;
mod random;
mod rows;
mod signals;
mod splice;
mod splice_pages;
mod splice_waits;
mod streams;
mod sysfs;
mod times;
mod uring;
mod wakes;

/// Every area, in the order in which they run.
pub const AREAS: &[Area] = &[
    data::AREA,
    streams::AREA,
    atomicity::AREA,
    nonblock::AREA,
    packets::AREA,
    pointers::AREA,
    poll::AREA,
    epoll::AREA,
    driven::AREA,
    eof::AREA,
    signals::AREA,
    notices::AREA,
    herd::AREA,
    capacity::AREA,
    quota::AREA,
    accounting::AREA,
    inode::AREA,
    access::AREA,
    processes::AREA,
    config::AREA,
    counters::AREA,
    wakes::AREA,
    times::AREA,
    splice::AREA,
    splice_waits::AREA,
    splice_pages::AREA,
    uring::AREA,
    parity::AREA,
    rows::AREA,
    foreign::AREA,
    device::AREA,
    create::AREA,
    random::AREA,
    sysfs::AREA,
    presets::AREA,
    fdinfo::AREA,
    fifo::AREA,
    fifo_knobs::AREA,
];

/// The controls of the runner, which belong to no run of tests.
pub const CONTROLS: &[Area] = &[controls::AREA];
