// SPDX-License-Identifier: GPL-2.0
//! What is said of a run when it is over.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use altpipe_preload::counts::Reason;
use anyhow::{Context, Result};
use serde::Serialize;

use crate::run::supervision::End;
use crate::run::tally::Pipes;
use crate::run::{NONE_OF_OURS, tally};

/// One run.
#[derive(Debug)]
pub struct Report<'a> {
    /// What ran.
    pub command: &'a [OsString],
    /// The whole config of its pipes; none where altpipe is not loaded.
    pub config: Option<String>,
    /// What was counted.
    pub pipes: Pipes,
    /// How the command ended.
    pub end: End,
    /// Our exit status.
    pub exit: u8,
}

/// The JSON. Fields are added, not changed; else the schema's number grows.
#[derive(Serialize)]
struct Json<'a> {
    schema: u32,
    command: Vec<String>,
    config: Option<&'a str>,
    pipes: Count,
    native_because: std::collections::BTreeMap<&'static str, u64>,
    programs: u64,
    status: Option<u8>,
    signal: Option<u8>,
    exit: u8,
}

#[derive(Serialize)]
struct Count {
    altpipe: u64,
    native: u64,
}

impl Report<'_> {
    /// Says it on standard error.
    pub fn print(&self) {
        eprintln!("altpipe run: {}", sentence(&self.pipes));
        if self.exit == NONE_OF_OURS && self.end == End::Exited(0) && self.pipes.altpipe == 0 {
            eprintln!("altpipe run: {}", explanation(&self.pipes));
        }
    }

    /// Writes it as JSON; `-` is standard output.
    pub fn write(&self, file: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(&self.json())?;
        text.push('\n');
        if file == Path::new("-") {
            io::stdout().lock().write_all(text.as_bytes())?;
            return Ok(());
        }
        fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
    }

    fn json(&self) -> Json<'_> {
        let (status, signal) = match self.end {
            End::Exited(status) => (Some(status), None),
            End::Killed(signal) => (None, Some(signal)),
        };
        Json {
            schema: 1,
            command: self
                .command
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            config: self.config.as_deref(),
            pipes: Count {
                altpipe: self.pipes.altpipe,
                native: self.pipes.native(),
            },
            native_because: self
                .pipes
                .native
                .iter()
                .map(|(reason, count)| (reason.name(), *count))
                .collect(),
            programs: self.pipes.programs,
            status,
            signal,
            exit: self.exit,
        }
    }
}

/// The closing line.
fn sentence(pipes: &tally::Pipes) -> String {
    let plural = if pipes.altpipe == 1 { "pipe" } else { "pipes" };
    let mut text = format!(
        "{} {plural} by altpipe, {} native",
        pipes.altpipe,
        pipes.native()
    );
    let because: Vec<_> = pipes
        .native
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(reason, count)| format!("{count} because {}", cause(*reason)))
        .collect();
    if !because.is_empty() {
        text += &format!(": {}", because.join(", "));
    }
    text
}

fn cause(reason: Reason) -> &'static str {
    match reason {
        Reason::Device => "the device could not be opened",
        Reason::Room => "no third descriptor was free",
        Reason::Flags => "of flags that altpipe lacks",
        Reason::Refused => "the module refused the config",
    }
}

fn explanation(pipes: &tally::Pipes) -> &'static str {
    match (pipes.programs, pipes.native()) {
        (0, _) => {
            "an error: no program had the library loaded; static programs and those with other privileges never have"
        }
        (_, 0) => "an error: the command made no pipe by a call that the library meets",
        _ => "an error: all pipes were native",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipes(altpipe: u64, native: [u64; 4]) -> Pipes {
        let mut counts = native.into_iter();
        Pipes {
            programs: 1,
            altpipe,
            native: Reason::ALL.map(|reason| (reason, counts.next().unwrap())),
        }
    }

    #[test]
    fn the_closing_line_counts_both_and_says_why() {
        assert_eq!(sentence(&pipes(1, [0; 4])), "1 pipe by altpipe, 0 native");
        assert_eq!(
            sentence(&pipes(12, [2, 1, 0, 0])),
            "12 pipes by altpipe, 3 native: 2 because the device could not be opened, 1 because no third descriptor \
             was free"
        );
    }

    #[test]
    fn the_json_has_every_count() {
        let command = [OsString::from("true")];
        let report = Report {
            command: &command,
            config: None,
            pipes: pipes(4, [0, 0, 3, 0]),
            end: End::Killed(9),
            exit: 137,
        };
        let json = serde_json::to_value(report.json()).unwrap();
        assert_eq!(json["pipes"]["altpipe"], 4);
        assert_eq!(json["pipes"]["native"], 3);
        assert_eq!(json["native_because"]["flags"], 3);
        assert_eq!((&json["signal"], &json["exit"]), (&9.into(), &137.into()));
        assert!(json["status"].is_null());
    }
}
