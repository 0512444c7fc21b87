// SPDX-License-Identifier: GPL-2.0
//! The scenarios, one file for each area.

use crate::case::Area;

mod atomicity;
mod data;
mod eof;
mod epoll;
mod herd;
mod inode;
mod nonblock;
mod pointers;
mod poll;
mod processes;
mod signals;
mod streams;

/// Every area, in the order in which they run.
pub const AREAS: &[Area] = &[
    data::AREA,
    streams::AREA,
    atomicity::AREA,
    nonblock::AREA,
    pointers::AREA,
    poll::AREA,
    epoll::AREA,
    eof::AREA,
    signals::AREA,
    herd::AREA,
    inode::AREA,
    processes::AREA,
];
