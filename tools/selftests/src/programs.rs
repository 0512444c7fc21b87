// SPDX-License-Identifier: GPL-2.0
//! Programs that know nothing of altpipe, on native pipes and then on altpipe's, in the same boot: what they print
//! and how they end must be the same.
//!
//! Native comes first and is the oracle: a program that fails there is a wrong row. What the kernel does for its own
//! pipes alone, such as tee(2), a row states.

mod table;

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::child::{isolate, note};
use crate::ktap::Ktap;

use table::{Expected, PROGRAMS, Program};

/// What to run.
pub struct Programs {
    /// The config of altpipe's pipes.
    pub config: String,
    /// Only rows whose name contains this.
    pub filter: Option<String>,
    /// A program of ours that prints what it sees of each call; none if it was not brought along.
    pub parity: Option<PathBuf>,
    /// The time that one row may take.
    pub timeout: Duration,
}

/// How one run ended.
struct Run {
    status: i32,
    output: String,
    errors: String,
    took: Duration,
}

impl Programs {
    /// Runs all rows; returns the number that failed.
    pub fn run(&self, out: impl Write) -> io::Result<usize> {
        let own = self.parity.as_ref().map(|path| {
            let script = path.display().to_string();
            (
                "every call as a program sees it".to_owned(),
                script,
                Expected::Output,
            )
        });
        let rows: Vec<_> = PROGRAMS
            .iter()
            .map(|program| {
                let Program {
                    name,
                    script,
                    expected,
                } = program;
                ((*name).to_owned(), (*script).to_owned(), *expected)
            })
            .chain(own)
            .filter(|(name, ..)| {
                self.filter
                    .as_ref()
                    .is_none_or(|filter| name.contains(filter.as_str()))
            })
            .collect();
        let mut ktap = Ktap::start(out, rows.len())?;
        for (name, script, expected) in rows {
            let outcome = isolate(self.timeout, || self.compare(&name, &script, expected))?;
            ktap.result(&name, &outcome)?;
        }
        Ok(ktap.failed())
    }

    fn compare(&self, name: &str, script: &str, expected: Expected) {
        let folder = std::env::temp_dir().join(format!("altpipe-programs.{}", std::process::id()));
        let report = folder.join("report.json");
        let run = |prefix: &[&str], side: &str| {
            note(side);
            let place = folder.join("work");
            fs::create_dir_all(&place).expect("a folder to work in");
            let run = execute(prefix, script, &folder, &place);
            fs::remove_dir_all(&place).expect("cleaning up");
            run
        };
        let native = run(&[], "native");
        let config = format!("--config={}", self.config);
        let json = format!("--json={}", report.display());
        let ours = run(&["altpipe", "run", &config, &json, "--"], "altpipe");
        let text = fs::read_to_string(&report).unwrap_or_else(|error| {
            panic!(
                "no report: {error}; altpipe run said: {}",
                tail(&ours.errors)
            )
        });
        let (made, kernels) = counts(&text);
        fs::remove_dir_all(&folder).expect("cleaning up");
        println!(
            "# {name}: {made} pipes by altpipe, {kernels} native; {:.1} s native, {:.1} s altpipe",
            native.took.as_secs_f32(),
            ours.took.as_secs_f32()
        );

        assert!(
            native.status == 0,
            "fails on native pipes, status {}: {} {}",
            native.status,
            tail(&native.output),
            tail(&native.errors)
        );
        let (status, refusal) = match expected {
            Expected::Refusal { status, says } => (status, says),
            Expected::Output | Expected::Status => (0, ""),
        };
        assert!(
            ours.status == status,
            "ends with status {} on altpipe, not {status}: {} {}",
            ours.status,
            tail(&ours.output),
            tail(&ours.errors)
        );
        assert!(
            ours.output.contains(refusal),
            "does not say {refusal:?} on altpipe: {}",
            tail(&ours.output)
        );
        if matches!(expected, Expected::Output) {
            assert!(!native.output.is_empty(), "prints nothing to compare");
            let differs = native
                .output
                .lines()
                .zip(ours.output.lines())
                .find(|(native, ours)| native != ours);
            assert!(
                native.output == ours.output,
                "prints {} lines native and {} on altpipe; the first that differ: {differs:?}",
                native.output.lines().count(),
                ours.output.lines().count()
            );
        }
        assert!(made > 0, "no pipe of altpipe's was made");
    }
}

/// Runs a script with nothing to read, in a folder of its own; its output goes to files, which are no pipes.
fn execute(prefix: &[&str], script: &str, folder: &Path, place: &Path) -> Run {
    let words: Vec<&str> = prefix.iter().copied().chain(["sh", "-c", script]).collect();
    let (output, errors) = (folder.join("output"), folder.join("errors"));
    let start = Instant::now();
    let status = Command::new(words[0])
        .args(&words[1..])
        .current_dir(place)
        .env("LC_ALL", "C.UTF-8")
        .env("HOME", place)
        .env_remove("MAKEFLAGS")
        .stdin(Stdio::null())
        .stdout(File::create(&output).expect("a file for output"))
        .stderr(File::create(&errors).expect("a file for errors"))
        .status()
        .unwrap_or_else(|error| panic!("{}: {error}", words[0]));
    let took = start.elapsed();
    let read = |path| String::from_utf8_lossy(&fs::read(path).expect("its output")).into_owned();
    Run {
        status: status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        output: read(output),
        errors: read(errors),
        took,
    }
}

/// The numbers of altpipe's pipes and of native ones in a report of `altpipe run`.
fn counts(report: &str) -> (u64, u64) {
    let report: serde_json::Value = serde_json::from_str(report).expect("a report in JSON");
    let count = |kind| report["pipes"][kind].as_u64().expect("a number of pipes");
    (count("altpipe"), count("native"))
}

/// The end of an output, which is where the reason stands.
fn tail(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read() {
        assert_eq!(
            counts(r#"{"schema": 1, "pipes": {"altpipe": 12, "native": 3}}"#),
            (12, 3)
        );
    }

    #[test]
    fn names_of_rows_are_unique() {
        let mut names: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PROGRAMS.len());
    }
}
