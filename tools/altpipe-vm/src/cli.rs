// SPDX-License-Identifier: GPL-2.0
//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::boots::Series;
use crate::exit;
use crate::run::Wish;

/// Sets up the kernel that altpipe is tested on, and runs commands in it.
#[derive(Parser)]
#[command(version, after_help = exit::HELP)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    Setup(Setup),
    Run(Run),
    Boots(Boots),
    Shell(Shell),
    Test(Test),
    Check(Check),
}

impl Command {
    /// Is the debug kernel needed?
    pub fn needs_debug(&self) -> bool {
        match self {
            Self::Setup(setup) => setup.debug,
            Self::Run(run) => run.machine.debug,
            Self::Boots(boots) => boots.machine.debug,
            Self::Shell(shell) => shell.machine.debug,
            Self::Test(test) => test.debug || test.long,
            Self::Check(_) => false,
        }
    }
}

/// Fetch and prepare the kernel, once; later calls find it in the cache.
#[derive(Args)]
pub struct Setup {
    /// Ask the archive for a newer version of the series.
    #[arg(long)]
    pub refresh: bool,
    /// Build the debug kernel of that version, too.
    #[arg(long)]
    pub debug: bool,
    /// Build the module for the debug kernel, and modules with faults in them.
    #[arg(long, requires = "debug")]
    pub modules: bool,
}

/// Run one command in a freshly booted machine with the module loaded.
#[derive(Args)]
#[command(after_help = exit::HELP)]
pub struct Run {
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Put what the command leaves in /out here, and the kernel's log.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The command; our tools are on its PATH.
    #[arg(required = true, last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

/// Run the same command in many boots; fails if any fails.
#[derive(Args)]
#[command(after_help = exit::HELP)]
pub struct Boots {
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Number of boots.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// How many machines may run at once.
    #[arg(long, value_name = "J", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: u32,
    /// The first boot's seed; each later one has the next.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Boot K's results, output and kernel log go to DIR/boot-K.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The command; {seed} in it stands for the boot's seed.
    #[arg(required = true, last = true, value_name = "CMD")]
    command: Vec<String>,
}

impl Boots {
    /// The same without clap.
    pub fn split(self) -> (Wish, Series) {
        let series = Series {
            count: self.count,
            jobs: self.jobs,
            seed: self.seed,
            out: self.out,
            command: self.command,
        };
        (self.machine.wish(), series)
    }
}

/// Boot to a shell on the console, with the module loaded.
#[derive(Args)]
pub struct Shell {
    #[command(flatten)]
    pub machine: MachineArgs,
}

/// Run every test, on the host and in machines; the last line is the count.
#[derive(Args)]
pub struct Test {
    /// Run the lints, too, and count them.
    #[arg(long)]
    pub check: bool,
    /// Run what is for the debug kernel, and nothing else.
    #[arg(long, conflicts_with = "check")]
    pub debug: bool,
    /// Run the long forms, on either kernel, and nothing else.
    #[arg(long, conflicts_with_all = ["check", "debug"])]
    pub long: bool,
}

/// Run every lint; the last line is the count.
#[derive(Args)]
pub struct Check {}

/// What the machine is to be.
#[derive(Args)]
pub struct MachineArgs {
    /// Emulate one processor whose time is the count of its instructions.
    #[arg(long, conflicts_with = "smp")]
    icount: bool,
    /// Number of processors.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    smp: u32,
    /// Memory in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(128..))]
    mem: u32,
    /// End a command that takes longer than this, in seconds.
    #[arg(long, value_name = "S", default_value_t = 600)]
    timeout: u64,
    /// Put this file into the machine's /in; may be repeated.
    #[arg(long = "in", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Do not load the module.
    #[arg(long)]
    no_module: bool,
    /// Run the command in a Debian 13 with compiler, python3, stress-ng and the like, made at first use.
    #[arg(long)]
    rootfs: bool,
    /// Boot the debug kernel, with the module that `make modules-debug` built.
    #[arg(long)]
    pub debug: bool,
    /// Boot this image instead of Debian's kernel.
    #[arg(long, value_name = "VMLINUZ")]
    kernel: Option<PathBuf>,
}

impl MachineArgs {
    /// The same without clap.
    pub fn wish(self) -> Wish {
        Wish {
            icount: self.icount,
            processors: self.smp,
            memory_mib: self.mem,
            timeout: Duration::from_secs(self.timeout),
            files: self.files,
            module: !self.no_module,
            rootfs: self.rootfs,
            image: self.kernel,
        }
    }
}
