// SPDX-License-Identifier: GPL-2.0
//! The command line.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::runner::Plan;
use crate::subject::Subject;

/// Runs pipe scenarios on the kernel's pipes and on altpipe's.
///
/// Exit status: 0 when every case passed, 1 when one failed, 2 when the run could not be made.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// Print the cases and the subjects each runs on, then stop
    #[arg(long)]
    list: bool,

    /// Run only the cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// Run only the subjects whose name contains this text (`native`, `altpipe default`, ...); may be given several times
    #[arg(long, value_name = "TEXT")]
    subject: Vec<String>,

    /// Seconds after which a case counts as hung
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
}

/// Parses the arguments and does what they ask.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let mut subjects = vec![Subject::Native];
    if !cli.subject.is_empty() {
        subjects.retain(|subject| {
            cli.subject
                .iter()
                .any(|text| subject.to_string().contains(text.as_str()))
        });
    }
    let plan = Plan {
        subjects,
        filter: cli.filter,
        timeout: Duration::from_secs(cli.timeout),
    };
    let result = if cli.list {
        plan.list(io::stdout()).map(|()| 0)
    } else {
        plan.run(io::stdout())
    };
    match result {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("altpipe-selftests: {error}");
            ExitCode::from(2)
        }
    }
}
