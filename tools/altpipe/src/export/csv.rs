// SPDX-License-Identifier: GPL-2.0
//! Every sample that counts, one statistic a line: the long form that plotting programs take.

use std::io::{self, Write};

use super::Exporter;
use crate::document::Document;
use crate::metric;

/// Samples as comma separated values.
pub struct Csv;

impl Exporter for Csv {
    fn export(&self, document: &Document, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "boot,workload,variant,twin,round,metric,value")?;
        for boot in &document.boots {
            for sample in boot.samples.iter().filter(|sample| !sample.warmup) {
                let Some(workload) = document
                    .workloads
                    .iter()
                    .find(|info| info.name == sample.workload)
                else {
                    continue;
                };
                for (name, value) in metric::all(workload, &sample.measurement) {
                    writeln!(
                        out,
                        "{},{},{},{},{},{name},{value}",
                        quoted(&boot.label),
                        sample.workload,
                        quoted(&sample.variant.to_string()),
                        u8::from(sample.twin),
                        sample.round,
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// A field that may hold commas.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_with_commas_stays_one_field() {
        assert_eq!(
            quoted("times=full,freeze_check=1"),
            "\"times=full,freeze_check=1\""
        );
        assert_eq!(quoted("native"), "native");
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }
}
