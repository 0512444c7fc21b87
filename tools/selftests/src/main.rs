// SPDX-License-Identifier: GPL-2.0
//! Behaviour tests of pipes, each written once and run on every kind of pipe.
//!
//! The kernel's own pipe is the oracle: a case that fails on it is a wrong case. What altpipe must
//! do beyond that (its ioctls, counters and knobs) is tested by cases that run on altpipe alone.
//! The output is KTAP version 1 with one subtest per subject.
//!
//! Each case runs in a forked child under a watchdog, so a hang, a crash or a killed child is one
//! `not ok` line.

#![warn(missing_docs)]

mod account;
mod case;
mod cases;
mod child;
mod cli;
mod descriptors;
mod differential;
mod draw;
mod end;
mod faults;
mod fdinfo;
mod fifo;
mod fuzz;
mod knobs;
mod ktap;
mod leaks;
mod lifecycle;
mod memory;
mod module;
mod parcel;
mod process;
mod programs;
mod record;
mod runner;
mod signal;
mod subject;
mod task;
mod torture;
mod transfer;
mod uring;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
