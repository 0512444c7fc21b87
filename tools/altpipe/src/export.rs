// SPDX-License-Identifier: GPL-2.0
//! Output: one small file per format.

mod csv;
mod grid;
mod json;
mod lkp;
mod markdown;

pub use csv::Csv;
pub use grid::Grid;
pub use json::Json;
pub use lkp::{Detail, Lkp};
pub use markdown::Markdown;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};

use crate::document::Document;
use crate::summary::Change;

/// A format that documents can be written in.
pub trait Exporter {
    /// Writes one document.
    fn export(&self, document: &Document, out: &mut dyn Write) -> io::Result<()>;
}

/// Writes documents to a file, or to standard output for `-`.
pub fn to_path(exporter: &dyn Exporter, documents: &[Document], path: &Path) -> Result<()> {
    let mut out: Box<dyn Write> = if path == Path::new("-") {
        Box::new(io::stdout().lock())
    } else {
        Box::new(BufWriter::new(
            File::create(path).with_context(|| format!("writing {}", path.display()))?,
        ))
    };
    documents
        .iter()
        .try_for_each(|document| exporter.export(document, &mut out))
        .and_then(|()| out.flush())
        .with_context(|| format!("writing {}", path.display()))
}

/// A ratio as a change in percent.
pub fn percent(ratio: f64) -> String {
    format!("{:+.1}%", 100.0 * (ratio - 1.0))
}

/// What may be said of a change: its interval, or `~` and the resolution where it is none.
pub fn judgement(change: &Change) -> String {
    match (change.different, change.interval, change.resolution) {
        (true, Some((low, high)), _) => format!("[{}, {}]", percent(low), percent(high)),
        (_, _, Some(resolution)) => format!("~ resolution {:.1}%", 100.0 * resolution),
        _ => "~ one pair only".into(),
    }
}
