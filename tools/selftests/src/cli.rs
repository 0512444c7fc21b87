// SPDX-License-Identifier: GPL-2.0
//! The command line.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use altpipe_uapi::{Control, DEVICE};
use clap::{Parser, Subcommand};

use crate::cases::{AREAS, CONTROLS};
use crate::differential::Differential;
use crate::draw;
use crate::faults::Faults;
use crate::fifo::Fifos;
use crate::fuzz::Fuzz;
use crate::leaks::Leaks;
use crate::lifecycle::Lifecycle;
use crate::module::Module;
use crate::programs::Programs;
use crate::runner::Plan;
use crate::subject::Subject;
use crate::torture::Torture;

/// Runs pipe scenarios on the kernel's pipes and on altpipe's.
///
/// Exit status: 0 when every case passed, 1 when one failed, 2 when the run could not be made.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    /// Print the cases and the subjects each runs on, then stop
    #[arg(long)]
    list: bool,

    /// Run only the cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// Run only the subjects whose name contains this text (`native`, `altpipe default`, ...); may
    /// be given several times
    #[arg(long, value_name = "TEXT")]
    subject: Vec<String>,

    /// Run altpipe under this config instead of the list; may be given several times
    #[arg(long, value_name = "CONFIG")]
    config: Vec<String>,

    /// Run instead the cases that must fail, on native pipes, to see that the runner notices
    #[arg(long, conflicts_with_all = ["subject", "config"])]
    controls: bool,

    /// What random configs are drawn from [default: the clock; printed first]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Seconds after which a case counts as hung
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
}

#[derive(Subcommand)]
enum Command {
    /// Load and unload the module, which must not be loaded yet: what refuses, what stays behind
    Lifecycle {
        /// The module's file
        #[arg(long, value_name = "PATH")]
        module: PathBuf,

        /// Reloads over which memory is watched
        #[arg(long, value_name = "N", default_value_t = 100)]
        count: u32,

        /// Seconds after which a scenario counts as hung
        #[arg(long, value_name = "SECONDS", default_value_t = 180)]
        timeout: u64,
    },

    /// Run programs that know nothing of altpipe on native pipes and on altpipe's, and compare
    Programs {
        /// The config of altpipe's pipes
        #[arg(
            long,
            value_name = "CONFIG",
            default_value = "",
            hide_default_value = true
        )]
        config: String,

        /// Run only the rows whose name contains this text
        #[arg(long, value_name = "TEXT")]
        filter: Option<String>,

        /// The program built from tools/altpipe-preload/tests/parity.c, for a row more
        #[arg(long, value_name = "PATH")]
        parity: Option<PathBuf>,

        /// Seconds after which a row counts as hung
        #[arg(long, value_name = "SECONDS", default_value_t = 180)]
        timeout: u64,
    },

    /// Run random sequences of operations on a native pipe and on altpipe's, and compare
    Differential {
        /// How many
        #[arg(long, value_name = "N", default_value_t = 20_000)]
        sequences: u64,

        /// The number of the first, to run one of a former run again
        #[arg(long, value_name = "N", default_value_t = 0)]
        first: u64,

        /// Compare under this config instead of all presets; may be given several times
        #[arg(long, value_name = "CONFIG")]
        config: Vec<String>,

        /// Compare native pipes with themselves, to see that sequences repeat
        #[arg(long, conflicts_with = "config")]
        native: bool,

        /// What sequences are drawn from [default: the clock; printed first]
        #[arg(long, value_name = "N")]
        seed: Option<u64>,
    },

    /// Make every allocation of every call fail once, on a kernel with fault injection; the module
    /// must not be loaded yet
    Faults {
        /// The module's file
        #[arg(long, value_name = "PATH")]
        module: PathBuf,
    },

    /// Make calls with arguments that nobody in his right mind would give, as root and as nobody
    Fuzz {
        /// Calls of each user
        #[arg(long, value_name = "N", default_value_t = 20_000)]
        cases: u64,

        /// What the calls are drawn from [default: the clock; printed first]
        #[arg(long, value_name = "N")]
        seed: Option<u64>,

        /// Leave out root's
        #[arg(long)]
        as_nobody: bool,
    },

    /// Make many pipes, and see that they leave nothing behind
    Leaks {
        /// How many
        #[arg(long, value_name = "N", default_value_t = 100_000)]
        pipes: u32,
    },

    /// Send records over many pipes while knobs turn, sizes change and signals fly
    Torture {
        /// How long
        #[arg(long, value_name = "N", default_value_t = 60)]
        seconds: u64,

        /// What configs, sizes and the rest are drawn from [default: the clock; printed first]
        #[arg(long, value_name = "N")]
        seed: Option<u64>,
    },
}

/// Parses the arguments and does what they ask.
pub fn run() -> ExitCode {
    match Cli::parse().run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(message) => {
            eprintln!("altpipe-selftests: {message}");
            ExitCode::from(2)
        }
    }
}

impl Cli {
    fn run(self) -> Result<usize, String> {
        let out = io::stdout();
        let done = match self.command {
            Some(Command::Lifecycle {
                module,
                count,
                timeout,
            }) => {
                let lifecycle = Lifecycle {
                    module: Module { path: module },
                    count,
                };
                lifecycle.run(out, Duration::from_secs(timeout))
            }
            Some(Command::Differential {
                sequences,
                first,
                config,
                native,
                seed,
            }) => Differential {
                sequences,
                first,
                configs: config,
                native,
            }
            .run(out, draw::fix_seed(seed)),
            Some(Command::Faults { module }) => Faults {
                module: Module { path: module },
            }
            .run(out),
            Some(Command::Fuzz {
                cases,
                seed,
                as_nobody,
            }) => Fuzz { cases, as_nobody }.run(out, draw::fix_seed(seed)),
            Some(Command::Leaks { pipes }) => Leaks { pipes }.run(out),
            Some(Command::Torture { seconds, seed }) => Torture {
                length: Duration::from_secs(seconds),
            }
            .run(out, draw::fix_seed(seed)),
            Some(Command::Programs {
                config,
                filter,
                parity,
                timeout,
            }) => Programs {
                config,
                filter,
                parity,
                timeout: Duration::from_secs(timeout),
            }
            .run(out),
            None => return self.run_cases(),
        };
        done.map_err(|error| error.to_string())
    }

    fn run_cases(self) -> Result<usize, String> {
        let subjects = if self.list {
            Vec::new()
        } else {
            self.subjects()?
        };
        let areas = if self.controls { CONTROLS } else { AREAS };
        let plan = Plan {
            areas,
            seed: draw::fix_seed(self.seed),
            subjects,
            filter: self.filter,
            timeout: Duration::from_secs(self.timeout),
        };
        let done = if self.list {
            plan.list(io::stdout()).map(|()| 0)
        } else {
            plan.run(io::stdout())
        };
        done.map_err(|error| error.to_string())
    }

    fn subjects(&self) -> Result<Vec<Subject>, String> {
        let wanted = |name: &str| {
            self.subject.is_empty() || self.subject.iter().any(|text| name.contains(text.as_str()))
        };
        let only_native = self.config.is_empty()
            && !self.subject.is_empty()
            && self.subject.iter().all(|text| text == "native");
        if only_native || self.controls {
            let fifo = (!self.controls).then_some(Subject::Fifo(Fifos::Native));
            return Ok([Subject::Native].into_iter().chain(fifo).collect());
        }
        // A run that was to test altpipe and quietly tested the kernel alone would pass.
        let control = Control::open().map_err(|error| {
            format!("{DEVICE}: {error}; load the module, or test the kernel's pipes alone with --subject native")
        })?;
        let control = Arc::new(control);
        let subjects = if self.config.is_empty() {
            Subject::all(&control)
        } else {
            let mut subjects = Vec::new();
            for text in &self.config {
                subjects.push(Subject::altpipe(&control, text)?);
                subjects.push(Subject::Fifo(Fifos::devices(text)?));
            }
            subjects
        };
        let chosen: Vec<_> = subjects
            .into_iter()
            .filter(|subject| wanted(&subject.to_string()))
            .collect();
        if chosen.is_empty() {
            return Err(format!("no subject is named like {:?}", self.subject));
        }
        Ok(chosen)
    }
}
