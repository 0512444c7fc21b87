// SPDX-License-Identifier: GPL-2.0
//! altpipe: measures Linux pipes against one another, and re-wires those of the altpipe module.
//!
//! Bottom up: [`usage`], [`source`] and [`transfer`] speak to the kernel; [`team`] runs tasks between them;
//! [`workload`] says what tasks do; [`schedule`] and [`runner`] say what runs when; [`document`] keeps what came of
//! it; [`metric`], [`stats`] and [`summary`] draw conclusions; [`export`] and [`presentation`] show them;
//! [`bench`], [`reproduce`], [`run`], [`doctor`] and [`knobs`] are what the user asks for in [`cli`].

mod accelerator;
mod bench;
mod cli;
mod configs;
mod device;
mod doctor;
mod document;
mod environment;
mod executor;
mod export;
mod knobs;
mod metric;
mod notes;
mod presentation;
mod reproduce;
mod run;
mod runner;
mod sample;
mod schedule;
mod settle;
mod signals;
mod slots;
mod source;
mod stats;
mod summary;
mod sysfs;
mod team;
mod transfer;
mod usage;
mod variant;
mod workload;

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;

use crate::bench::{Method, Question};
use crate::cli::{Cli, Command};
use crate::device::{Absent, Device};
use crate::document::Document;
use crate::presentation::present;
use crate::reproduce::Extent;
use crate::signals::Interrupted;
use crate::sysfs::Sysfs;

const FAILED: u8 = 1;
const NOT_LOADED: u8 = 3;
const WOULD_SPOIL: u8 = 4;
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(status) => ExitCode::from(status),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("altpipe: {error:#}");
            ExitCode::from(if error.is::<Absent>() {
                NOT_LOADED
            } else if error.is::<Interrupted>() {
                INTERRUPTED
            } else {
                FAILED
            })
        }
    }
}

fn run(cli: Cli) -> Result<u8> {
    let sysfs = Sysfs::new(&cli.sysfs);
    let open = |needed| Device::open_if(needed, &cli.device, &sysfs);
    match cli.command {
        Command::Doctor(arguments) => {
            let fine = doctor::run(
                &cli.device,
                &sysfs,
                arguments.json,
                &mut io::stdout().lock(),
            )?;
            return Ok(if fine { 0 } else { WOULD_SPOIL });
        }
        Command::Status(arguments) => {
            knobs::status(&sysfs, arguments.json, &mut io::stdout().lock())?
        }
        Command::Set(arguments) => knobs::set(&sysfs, &arguments.assignments)?,
        Command::Run(arguments) => return Ok(run::run(&arguments, &cli.device, &sysfs)),
        Command::Bench(arguments) => {
            let variants = variant::parse_list(&arguments.variants)?;
            let workloads = workload::resolve(&arguments.workloads, arguments.method.readers)?;
            let question = Question {
                study: None,
                workloads,
                comparisons: bench::comparisons(&variants),
                pinned: false,
            };
            let device = open(variants.iter().any(|variant| variant.config().is_some()))?;
            let document = bench::measure(&question, &method(&arguments.method), device.as_ref())?;
            return finish(&[document], &arguments.output);
        }
        Command::Reproduce(arguments) => {
            let device = open(true)?;
            let extent = Extent {
                readers: arguments.method.readers,
                only: arguments.only,
                cpus: std::thread::available_parallelism().map_or(1, usize::from),
            };
            let method = method(&arguments.method);
            let documents =
                reproduce::measure(&arguments.study, &method, &extent, device.as_ref())?;
            return finish(&documents, &arguments.output);
        }
        Command::Report(arguments) => {
            present(&document::join(&arguments.files)?, &arguments.output)?
        }
        Command::Completions(arguments) => cli::completions(arguments.shell, &mut io::stdout()),
        Command::Man(arguments) => cli::manual(&arguments.folder)?,
    }
    Ok(0)
}

/// Shows what was measured, also where the user ended it early.
fn finish(documents: &[Document], output: &cli::Output) -> Result<u8> {
    present(documents, output)?;
    let complete = documents
        .iter()
        .flat_map(|document| &document.boots)
        .all(|boot| boot.complete);
    Ok(if complete { 0 } else { INTERRUPTED })
}

fn method(arguments: &cli::Method) -> Method {
    Method {
        rounds: arguments.rounds,
        warmup: arguments.warmup,
        // Any number will do; few digits are easier to type again.
        seed: arguments
            .seed
            .unwrap_or_else(|| RandomState::new().hash_one(std::process::id()) % 1_000_000),
        scale: arguments.scale,
        settle: Duration::from_secs(arguments.settle),
        timeout: Duration::from_secs(arguments.timeout),
        noise_floor: arguments.noise_floor / 100.0,
        boot: arguments.boot.clone(),
    }
}

/// Whoever read our output has seen enough.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
