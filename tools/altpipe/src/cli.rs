// SPDX-License-Identifier: GPL-2.0
//! The command line. clap is used here alone; help, completions and manual pages follow from it.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use altpipe_core::PRESETS;
use clap::builder::PossibleValuesParser;
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::reproduce;
use crate::run;
use crate::sysfs;
use crate::workload;

const EXIT_CODES: &str = "\
Exit status:
  0    done
  1    failed; the message says at what and what to do next
  2    the command line is wrong
  3    altpipe is not loaded, or its device may not be opened
  4    doctor found something that would spoil a measurement
  130  interrupted; samples taken until then have been written
altpipe run exits as its command does, with exceptions of its own.";

/// Measures Linux pipes against one another, and re-wires those of the altpipe module.
#[derive(Debug, Parser)]
#[command(name = "altpipe", version, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// The control device
    #[arg(long, global = true, value_name = "FILE", default_value = altpipe_uapi::DEVICE, hide = true)]
    pub device: PathBuf,

    /// The device's folder in sysfs
    #[arg(long, global = true, value_name = "FOLDER", default_value = sysfs::FOLDER, hide = true)]
    pub sysfs: PathBuf,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what is loaded, on what machine, what would spoil a measurement here, and the cure
    Doctor(Doctor),
    /// Show knobs (the defaults of pipes to be made) and counters
    Status(Status),
    /// Turn knobs: all of those named, or none
    #[command(
        after_help = "Each knob that was turned is turned back if a later one is refused. `altpipe status` \
                            lists knobs and values. Pipes that exist keep the config they were made with."
    )]
    Set(Set),
    /// Run a command whose pipes are altpipe's
    #[command(after_help = run::HELP)]
    Run(Run),
    /// Run workloads on variants, side by side, and compare them
    #[command(after_help = bench_help())]
    Bench(Bench),
    /// Re-create a regression that was reported, and hold the report's figures beside ours
    #[command(after_help = reproduce_help())]
    Reproduce(Reproduce),
    /// Make tables from JSON files of bench and reproduce
    #[command(
        after_help = "Files of the same question on the same kernel, accelerator and number of CPUs are taken \
                            together, and each boot then counts as one unit; others get a table of their own."
    )]
    Report(Report),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Write the manual pages into a folder
    #[command(hide = true)]
    Man(Man),
}

/// Arguments of doctor.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of status.
#[derive(Debug, Args)]
pub struct Status {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of set.
#[derive(Debug, Args)]
pub struct Set {
    /// A knob and its new value
    #[arg(required = true, value_name = "KNOB=VALUE")]
    pub assignments: Vec<String>,
}

/// Arguments of run.
#[derive(Debug, Args)]
pub struct Run {
    /// What its pipes are to be, over the defaults: a preset, knobs, or both, as for bench
    #[arg(
        long,
        value_name = "CONFIG",
        default_value = "",
        hide_default_value = true
    )]
    pub config: String,

    /// Where altpipe is not loaded, run the command on native pipes
    #[arg(long)]
    pub fallback: bool,

    /// Write what was counted as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Arguments of bench.
#[derive(Debug, Args)]
pub struct Bench {
    /// What to run; see below
    #[arg(required = true, value_name = "WORKLOAD")]
    pub workloads: Vec<String>,

    /// What to compare; the first is what ratios are relative to, and one alone is held against native
    #[arg(long, num_args = 1.., value_name = "VARIANT", default_value = "native,default")]
    pub variants: Vec<String>,

    /// How to measure.
    #[command(flatten)]
    pub method: Method,

    /// What to write.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of reproduce.
#[derive(Debug, Args)]
pub struct Reproduce {
    /// Which; all is every one of them, one after the other
    #[arg(value_parser = PossibleValuesParser::new(
        reproduce::ALL.iter().map(|study| study.name).chain(["all"])
    ))]
    pub study: String,

    /// Keep to the parts of the study that concern these workloads
    #[arg(long, num_args = 1.., value_name = "WORKLOAD")]
    pub only: Vec<String>,

    /// How to measure.
    #[command(flatten)]
    pub method: Method,

    /// What to write.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of report.
#[derive(Debug, Args)]
pub struct Report {
    /// JSON files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// What to write.
    #[command(flatten)]
    pub output: Output,
}

/// How to measure.
#[derive(Debug, Args)]
#[command(next_help_heading = "Method")]
pub struct Method {
    /// Rounds that count; each runs every variant once
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Rounds dropped before them
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub warmup: u32,

    /// What shuffles and jitters the rounds [default: drawn, and printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Factor on the number of operations [default: 1 under an emulator, 10 elsewhere]
    #[arg(long, value_name = "X", value_parser = positive)]
    pub scale: Option<f64>,

    /// Readers in a herd
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(2..=4096))]
    pub readers: u32,

    /// Smallest effect worth a verdict, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = positive)]
    pub noise_floor: f64,

    /// Seconds after which a sample that does not end is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,

    /// Seconds to wait at most for the machine to calm down first; 0 for not to look
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub settle: u64,

    /// A name for this boot [default: made from the kernel's boot id and boot time]
    #[arg(long, value_name = "NAME")]
    pub boot: Option<String>,
}

/// What to write, and where; `-` is standard output, which then gets no table.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Write everything as JSON, for `altpipe report`
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the samples as CSV, one statistic a line
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,

    /// Write the key statistics as a Markdown table
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Show all statistics in tables: times, and each counter of altpipe; and LKP's table also where many variants
    /// would be shown as a grid
    #[arg(long)]
    pub full: bool,
}

/// Arguments of completions.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    pub shell: Shell,
}

/// Arguments of man.
#[derive(Debug, Args)]
pub struct Man {
    /// The folder, which must exist
    pub folder: PathBuf,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("a number above 0 is wanted".into()),
    }
}

fn bench_help() -> String {
    let width = workload::ALL
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    let mut text = String::from("Workloads:\n");
    for (name, what) in workload::ALL {
        text += &format!("  {name:width$}  {what}\n");
    }
    text += "\
`self`, `stream`, `herd`, `stdio` and `create` are all of their kind, `all` is everything.

Variants:
  native            the kernel's own pipe
  fifo              the kernel's own FIFO, on the tmpfs /dev/shm
  default           an altpipe pipe with the knobs as they stand
  KNOB=VALUE,...    an altpipe pipe with these knobs turned; no knob in sysfs is touched
  PRESET[,...]      one that approximates a release of Linux, with knobs turned
  ALL               every preset, oldest first
A space or `;` always ends a variant. After a comma, KNOB=VALUE belongs to the config at its left, unless that is
`native` or `fifo`; a bare word begins the next variant. So `native,times=full,freeze_check=1` is two variants, and two
configs in a row are written 'times=full;times=none' or --variants times=full times=none.

Method:
  A round runs every variant once, in shuffled order; the ratio to the base of the same round is what counts. The
  median ratio comes with its 95% bootstrap interval; a difference is claimed only where that excludes no change
  and the effect is above the noise floor. `~` marks the rest, with the resolution. native runs twice in every
  round, as a test of the machine. Under QEMU's icount the rounds of one boot are near-copies of one another: run
  few rounds (--rounds 2 --warmup 0) in each of at least 5 boots with different seeds, and give the files to `altpipe report`.
  Switches and wake-ups are given per 1000 operations.

Ctrl-C ends a measurement early; what was sampled until then is written and marked incomplete.

";
    let presets: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
    text + "Presets: " + &presets.join(", ")
}

fn reproduce_help() -> String {
    let width = reproduce::ALL
        .iter()
        .map(|study| study.name.len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for study in reproduce::ALL {
        text += &format!("  {:width$}  {}\n", study.name, study.title);
    }
    text + "\nEvery knob is settled by the study, so that it does not matter how `altpipe set` left them. What needs \
            tasks on two CPUs is left out on one, and the output says so."
}

/// Writes the completion script of a shell.
pub fn completions(shell: Shell, out: &mut dyn Write) {
    clap_complete::generate(shell, &mut Cli::command(), "altpipe", &mut &mut *out);
}

/// Writes a manual page for the program and for each subcommand.
pub fn manual(folder: &Path) -> io::Result<()> {
    clap_mangen::generate_to(Cli::command(), folder)
}
