// SPDX-License-Identifier: GPL-2.0
//! Steps that take their time: said when they begin, timed when they end.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};

use crate::cost::Clock;

/// Shorter steps leave no line behind.
const WORTH_A_LINE: Duration = Duration::from_secs(2);

/// Runs `work`, showing what goes on and, if it took long, how long.
pub fn step<T>(text: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let clock = Clock::start();
    let spinner = ProgressBar::new_spinner().with_message(text.to_owned());
    spinner.set_style(
        ProgressStyle::with_template("  {elapsed:>5}  {msg}").expect("a valid template"),
    );
    spinner.enable_steady_tick(Duration::from_millis(500));
    let result = work();
    spinner.finish_and_clear();
    let cost = clock.read();
    match &result {
        Ok(_) if cost.wall >= WORTH_A_LINE => eprintln!("  {cost}  {text}"),
        Ok(_) => {}
        Err(_) => eprintln!("  failed {text}"),
    }
    result
}

/// Runs a command to its end with its output in `log`; the end of that output
/// is part of the error when it fails.
pub fn quietly(command: &mut Command, log: &Path) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let file = File::create(log).with_context(|| format!("cannot make {}", log.display()))?;
    let status = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .status()
        .with_context(|| format!("cannot run {name}"))?;
    if status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    let lines: Vec<&str> = output.lines().collect();
    let tail = lines[lines.len().saturating_sub(20)..].join("\n");
    bail!(
        "{tail}\n{name} failed ({status}); all of its output is in {}",
        log.display()
    )
}
