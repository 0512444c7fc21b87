// SPDX-License-Identifier: GPL-2.0
//! What the user sees of a measurement: where it was made, tables, the A/A pair, a study's verdict, notes.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;

use crate::cli::Output;
use crate::document::Document;
use crate::export::{self, Csv, Detail, Exporter, Grid, Json, Lkp, Markdown, judgement, percent};
use crate::notes;
use crate::reproduce;

/// Writes the files that were asked for, and the rest to standard output unless one of them went there.
pub fn present(documents: &[Document], output: &Output) -> Result<()> {
    let mut printed = false;
    let files: [(&dyn Exporter, &Option<_>); 3] = [
        (&Json, &output.json),
        (&Csv, &output.csv),
        (&Markdown, &output.markdown),
    ];
    for (exporter, path) in files {
        if let Some(path) = path {
            export::to_path(exporter, documents, path)?;
            printed |= path == Path::new("-");
        }
    }
    if !printed {
        let detail = if output.full {
            Detail::Full
        } else {
            Detail::Key
        };
        let mut out = io::stdout().lock();
        for document in documents {
            show(document, detail, &mut out)?;
        }
    }
    Ok(())
}

/// The text for one document.
pub fn show(document: &Document, detail: Detail, out: &mut dyn Write) -> io::Result<()> {
    let study = document.study.as_deref().and_then(reproduce::find);
    if let Some(study) = study {
        writeln!(out, "=== {}: {}\n", study.name, study.title)?;
    }
    head(document, out)?;
    if detail == Detail::Key && Grid::suits(document) {
        Grid.export(document, out)?;
    } else {
        Lkp { detail }.export(document, out)?;
    }
    twins(document, out)?;
    if let Some(study) = study {
        study.conclude(document, out)?;
    }
    for note in notes::of(document) {
        writeln!(out, "note: {note}")?;
    }
    writeln!(out)
}

/// Where and how it was measured.
fn head(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    let Some(boot) = document.boots.first() else {
        return Ok(());
    };
    let environment = &boot.environment;
    let cpus = if environment.cpus == 1 { "CPU" } else { "CPUs" };
    writeln!(
        out,
        "Linux {} {}, {} {cpus}, {}",
        environment.kernel, environment.machine, environment.cpus, environment.accelerator
    )?;
    let seeds: Vec<_> = document
        .boots
        .iter()
        .map(|boot| boot.seed.to_string())
        .collect();
    let (boots, seed) = if seeds.len() == 1 {
        ("boot", "seed")
    } else {
        ("boots", "seeds")
    };
    writeln!(
        out,
        "{} {boots} of {} rounds after {} of warm-up, {seed} {}\n",
        seeds.len(),
        boot.rounds,
        boot.warmup,
        seeds.join(" ")
    )
}

/// How native compares with itself.
fn twins(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "A/A, native against native, CPU time per operation:")?;
    for (row, change) in document.summary.twin_cpu() {
        writeln!(
            out,
            "  {:<14} {:>7}  {}",
            row.workload,
            percent(change.ratio),
            judgement(&change)
        )?;
    }
    writeln!(out)
}
