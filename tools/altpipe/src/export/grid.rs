// SPDX-License-Identifier: GPL-2.0
//! Many variants against one: a row for each of them, a column for each workload, a table for each statistic.
//!
//! LKP's table has a column for each variant, which is unreadable beyond a few. What the base has is printed as it
//! is; the rest as its change, or `~` where nothing may be claimed.

use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, presets};

use super::lkp::{ordered, value};
use super::{Exporter, percent};
use crate::document::Document;
use crate::metric;
use crate::summary::Row;
use crate::variant::Variant;

/// The key statistics as grids.
pub struct Grid;

/// More variants than this are more than LKP's table can show side by side.
const SIDE_BY_SIDE: usize = 4;

impl Grid {
    /// Whether this is the better table for `document`.
    pub fn suits(document: &Document) -> bool {
        bases(document)
            .iter()
            .any(|base| variants(document, base).len() > SIDE_BY_SIDE)
    }
}

impl Exporter for Grid {
    fn export(&self, document: &Document, out: &mut dyn Write) -> io::Result<()> {
        for base in bases(document) {
            for (name, title) in [
                (metric::CPU, "CPU time per operation (ns)"),
                (metric::SWITCHES, "context switches in 1000 operations"),
            ] {
                writeln!(out, "{title}; changes against {base}:\n")?;
                table(document, base, name, out)?;
                writeln!(out)?;
            }
        }
        Ok(())
    }
}

fn table(document: &Document, base: &Variant, name: &str, out: &mut dyn Write) -> io::Result<()> {
    let find = |workload: &str, variant: &Variant| -> Option<&Row> {
        let name = format!("{workload}.{name}");
        document.summary.find(workload, base, variant, &name)
    };
    let variants = variants(document, base);
    let workloads: Vec<&str> = document
        .workloads
        .iter()
        .map(|workload| workload.name.as_str())
        .collect();
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["variant"].iter().chain(&workloads));
    let values = workloads.iter().map(|workload| {
        variants
            .iter()
            .find_map(|variant| find(workload, variant)?.base_values)
            .map_or_else(|| "-".into(), |values| value(values.mean).trim().to_owned())
    });
    table.add_row([base.to_string()].into_iter().chain(values));
    for variant in &variants {
        let changes = workloads.iter().map(|workload| {
            find(workload, variant)
                .and_then(|row| row.change)
                .map_or_else(
                    || "-".into(),
                    |change| {
                        if change.different {
                            percent(change.ratio)
                        } else {
                            "~".into()
                        }
                    },
                )
        });
        table.add_row([variant.to_string()].into_iter().chain(changes));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn bases(document: &Document) -> Vec<&Variant> {
    ordered(document.summary.rows.iter().map(|row| &row.base))
}

fn variants<'a>(document: &'a Document, base: &Variant) -> Vec<&'a Variant> {
    let of_base = |row: &&Row| row.base == *base;
    let rows = document.summary.rows.iter().filter(of_base);
    ordered(rows.map(|row| &row.changed))
}
