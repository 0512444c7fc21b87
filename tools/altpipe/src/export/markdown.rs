// SPDX-License-Identifier: GPL-2.0
//! A short table for a README or a mail in Markdown: the key statistics, one row per comparison.

use std::io::{self, Write};

use super::{Exporter, judgement, lkp, percent};
use crate::document::Document;
use crate::metric;
use crate::summary::{Row, Spread};

/// CPU time and switches per operation as Markdown.
pub struct Markdown;

impl Exporter for Markdown {
    fn export(&self, document: &Document, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "| workload | statistic | base | changed | values | change | 95% interval or resolution |"
        )?;
        writeln!(out, "|---|---|---|---|---|---|---|")?;
        let key = |row: &&Row| {
            [metric::CPU, metric::SWITCHES]
                .iter()
                .any(|name| row.metric.ends_with(name))
        };
        for row in document.summary.rows.iter().filter(key) {
            let statistic = row.metric.rsplit('.').next().unwrap_or(&row.metric);
            let mean = |values: Option<Spread>| {
                values.map_or("-".into(), |values| {
                    lkp::value(values.mean).trim().to_owned()
                })
            };
            writeln!(
                out,
                "| {} | {statistic} | `{}` | `{}` | {} to {} | {} |",
                row.workload,
                row.base,
                row.changed,
                mean(row.base_values),
                mean(row.changed_values),
                row.change.map_or("n/a | n/a".into(), |change| {
                    format!("{} | {}", percent(change.ratio), judgement(&change))
                }),
            )?;
        }
        Ok(())
    }
}
