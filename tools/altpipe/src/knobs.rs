// SPDX-License-Identifier: GPL-2.0
//! `altpipe status` and `altpipe set`: the only place that turns a knob in sysfs.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::signals;
use crate::sysfs::Sysfs;

#[derive(Serialize)]
struct Status {
    knobs: BTreeMap<String, String>,
    counters: BTreeMap<String, u64>,
}

/// Shows knobs and counters.
pub fn status(sysfs: &Sysfs, json: bool, out: &mut dyn Write) -> Result<()> {
    let knobs = sysfs.knobs().map_err(|error| missing(sysfs, error))?;
    let counters = sysfs.counters().context("reading the counters")?;
    if json {
        let knobs = knobs
            .into_iter()
            .map(|knob| (knob.name, knob.active))
            .collect();
        serde_json::to_writer_pretty(&mut *out, &Status { knobs, counters })?;
        writeln!(out)?;
        return Ok(());
    }
    let width = knobs
        .iter()
        .map(|knob| knob.name.len())
        .chain(counters.keys().map(String::len))
        .max()
        .unwrap_or(0);
    writeln!(out, "knobs (of pipes to be made):")?;
    for knob in &knobs {
        let others: Vec<_> = knob
            .choices
            .iter()
            .filter(|choice| **choice != knob.active)
            .cloned()
            .collect();
        let others = if others.is_empty() {
            String::new()
        } else {
            format!("  (or {})", others.join(", "))
        };
        writeln!(out, "  {:width$}  {}{others}", knob.name, knob.active)?;
    }
    writeln!(out, "counters (of all pipes made):")?;
    for (name, value) in &counters {
        writeln!(out, "  {name:width$}  {value}")?;
    }
    Ok(())
}

/// Turns all knobs named, or none: those already turned go back when one is refused.
pub fn set(sysfs: &Sysfs, assignments: &[String]) -> Result<()> {
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    for assignment in assignments.iter().flat_map(|text| text.split(',')) {
        match assignment.split_once('=') {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => {
                wanted.push((name, value))
            }
            _ => bail!("{assignment:?} is not KNOB=VALUE"),
        }
    }
    if !sysfs.exists() {
        return Err(missing(sysfs, io::ErrorKind::NotFound.into()));
    }
    let mut before = Vec::new();
    for (name, _) in &wanted {
        let knob = sysfs
            .knob(name)
            .map_err(|error| unknown(sysfs, name, error))?;
        before.push(knob.active);
    }
    // From here to the end of this program Ctrl-C stays pending, so it cannot fall between two knobs.
    signals::hold()?;
    for (place, (name, value)) in wanted.iter().enumerate() {
        if let Err(error) = sysfs.set_knob(name, value) {
            let turned = wanted[..place].iter().zip(&before).rev();
            let failures: Vec<_> = turned
                .filter_map(|((name, _), old)| {
                    sysfs
                        .set_knob(name, old)
                        .err()
                        .map(|error| format!("{name}: {error}"))
                })
                .collect();
            let state = if failures.is_empty() {
                "nothing is changed".to_owned()
            } else {
                format!("and could not be undone: {}", failures.join(", "))
            };
            return Err(error).with_context(|| refusal(sysfs, name, value, &state));
        }
    }
    Ok(())
}

fn refusal(sysfs: &Sysfs, name: &str, value: &str, state: &str) -> String {
    let choices = sysfs
        .knob(name)
        .map(|knob| knob.choices)
        .unwrap_or_default();
    let cure = if choices.is_empty() {
        format!("`altpipe status` shows what {name} is now")
    } else {
        format!("{name} takes {}", choices.join(", "))
    };
    format!("{name}={value} was refused, {state}; {cure}")
}

fn unknown(sysfs: &Sysfs, name: &str, error: io::Error) -> anyhow::Error {
    let names: Vec<_> = sysfs
        .knobs()
        .unwrap_or_default()
        .into_iter()
        .map(|knob| knob.name)
        .collect();
    match error.kind() {
        io::ErrorKind::NotFound => {
            anyhow::anyhow!("there is no knob {name}; there are {}", names.join(", "))
        }
        _ => anyhow::Error::new(error).context(format!("reading the knob {name}")),
    }
}

fn missing(sysfs: &Sysfs, error: io::Error) -> anyhow::Error {
    crate::device::Absent::new(sysfs.folder(), error).into()
}
