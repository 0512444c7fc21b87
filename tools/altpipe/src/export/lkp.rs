// SPDX-License-Identifier: GPL-2.0
//! The table that kernel people read: LKP's comparison of commits, with variants for commits.
//!
//! Values are means with their standard deviation in percent. The change is the median of the paired ratios, and
//! so need not be the quotient of the means beside it. After the name stands the change's 95% interval, or `~` and
//! the resolution where nothing may be claimed.

use std::io::{self, Write};

use super::{Exporter, judgement};
use crate::document::Document;
use crate::summary::{Change, Row, Spread};
use crate::variant::Variant;

/// Width of the base's column, and of a title in it.
const BASE: usize = 16;
/// Width of a changed variant's column with the blank before it.
const CHANGED: usize = 28;
/// The longest title above a changed column.
const TITLE: usize = 17;

/// How many statistics to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Time, switches and wake-ups.
    Key,
    /// All of them.
    Full,
}

/// LKP-shaped tables, one per workload and base.
pub struct Lkp {
    pub detail: Detail,
}

impl Exporter for Lkp {
    fn export(&self, document: &Document, out: &mut dyn Write) -> io::Result<()> {
        // Native alone is compared with itself.
        let all = if document.comparisons.is_empty() {
            &document.summary.twins
        } else {
            &document.summary.rows
        };
        for base in ordered(all.iter().map(|row| &row.base)) {
            for workload in &document.workloads {
                let rows: Vec<&Row> = all
                    .iter()
                    .filter(|row| row.base == *base && row.workload == workload.name)
                    .collect();
                if !rows.is_empty() {
                    writeln!(
                        out,
                        "workload: {} (one operation: {})",
                        workload.name, workload.unit
                    )?;
                    self.table(base, &rows, out)?;
                    writeln!(out)?;
                }
            }
        }
        Ok(())
    }
}

impl Lkp {
    fn table(&self, base: &Variant, rows: &[&Row], out: &mut dyn Write) -> io::Result<()> {
        let variants = ordered(rows.iter().map(|row| &row.changed));
        writeln!(out, "variant:\n  {base}")?;
        for variant in &variants {
            writeln!(out, "  {variant}")?;
        }
        writeln!(out)?;
        write!(out, "{:>BASE$}", title(base, BASE))?;
        line(out, &variants, |variant| {
            format!("{:^CHANGED$}", title(variant, TITLE))
        })?;
        write!(out, "{:-<BASE$}", "")?;
        line(out, &variants, |_| {
            format!(" {:-<width$}", "", width = CHANGED - 1)
        })?;
        write!(out, "{:>BASE$}", "%stddev")?;
        line(out, &variants, |_| {
            format!("{:>12}{:>16}", "%change", "%stddev")
        })?;
        write!(out, "{:>14}  ", "\\")?;
        line(out, &variants, |_| format!("{:>9}{:>17}  ", "|", "\\"))?;
        for name in ordered(rows.iter().map(|row| &row.metric)) {
            if self.detail == Detail::Key && !is_key(name) {
                continue;
            }
            let of_name = |variant: &&Variant| {
                rows.iter()
                    .copied()
                    .find(|row| row.metric == *name && row.changed == **variant)
            };
            let of_variants: Vec<Option<&Row>> = variants.iter().map(of_name).collect();
            let base_values = of_variants.iter().flatten().find_map(|row| row.base_values);
            write!(out, "{}", cell(name, base_values))?;
            let mut notes = String::new();
            for row in of_variants {
                let change = row.and_then(|row| row.change);
                let values = row.and_then(|row| row.changed_values);
                write!(
                    out,
                    "{} {}",
                    change_text(name, change, base_values, values),
                    cell(name, values)
                )?;
                notes += &note(name, change);
            }
            writeln!(out, "{}", format!("  {name}{notes}").trim_end())?;
        }
        Ok(())
    }
}

/// A header line's rest: one field per changed variant, and no blanks at its end.
fn line(
    out: &mut dyn Write,
    variants: &[&Variant],
    field: impl Fn(&Variant) -> String,
) -> io::Result<()> {
    let text: String = variants.iter().map(|variant| field(variant)).collect();
    writeln!(out, "{}", text.trim_end())
}

/// The items once each, in order of first appearance.
pub fn ordered<'a, T: PartialEq>(items: impl Iterator<Item = &'a T>) -> Vec<&'a T> {
    let mut seen: Vec<&T> = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

/// A variant's name above a column; of a long one the end, where variants differ.
fn title(variant: &Variant, room: usize) -> String {
    let text = variant.to_string();
    let length = text.chars().count();
    if length <= room {
        return text;
    }
    let end: String = text.chars().skip(length - (room - 3)).collect();
    format!("...{end}")
}

fn is_key(name: &str) -> bool {
    !name.starts_with("altpipe.") && !name.starts_with("time.")
}

/// A value as LKP prints it.
pub fn value(value: f64) -> String {
    if value.abs() < 1000.0 {
        format!("{value:10.2}")
    } else if value.abs() > 1e8 {
        format!("{:>10}", general(value))
    } else {
        format!("{value:10.0}")
    }
}

/// C's `%.4g` for what is too long for its column: four significant digits, no trailing zeros.
fn general(value: f64) -> String {
    let text = format!("{value:.3e}");
    let Some((digits, exponent)) = text.split_once('e') else {
        return text;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!(
        "{digits}e{}{:02}",
        if exponent < 0 { '-' } else { '+' },
        exponent.abs()
    )
}

/// Value and spread, or blanks of the same width.
fn cell(name: &str, values: Option<Spread>) -> String {
    match values {
        Some(values) if name.ends_with('%') => {
            format!("{:10.2} ± {:2.0}%", values.mean, values.stddev_percent)
        }
        Some(values) => format!("{} ± {:2.0}%", value(values.mean), values.stddev_percent),
        None => " ".repeat(BASE),
    }
}

/// The change in percent; of a statistic that is a percentage itself, the difference.
fn change_text(
    name: &str,
    change: Option<Change>,
    base: Option<Spread>,
    changed: Option<Spread>,
) -> String {
    match (change, base, changed) {
        (_, Some(base), Some(changed)) if name.ends_with('%') => {
            format!("{:+10.1} ", changed.mean - base.mean)
        }
        (Some(change), _, _) => format!("{:+10.1}%", 100.0 * (change.ratio - 1.0)),
        (None, Some(_), Some(_)) => format!("{:>10} ", "n/a"),
        _ => " ".repeat(11),
    }
}

/// What may be said of a change, where it is one in percent.
fn note(name: &str, change: Option<Change>) -> String {
    match change {
        Some(change) if !name.ends_with('%') => format!("  {}", judgement(&change)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_printed_as_lkp_prints_them() {
        assert_eq!(value(1.5), "      1.50");
        assert_eq!(value(999.994), "    999.99");
        assert_eq!(value(1000.0), "      1000");
        assert_eq!(value(231_874.0), "    231874");
        assert_eq!(value(100_000_000.0), " 100000000");
        assert_eq!(value(1.563e9), " 1.563e+09");
        assert_eq!(value(6.3e8), "   6.3e+08");
    }

    #[test]
    fn cells_and_changes_have_lkps_widths() {
        let values = |mean| {
            Some(Spread {
                mean,
                stddev_percent: 1.2,
                count: 5,
            })
        };
        assert_eq!(
            cell("hackbench.throughput", values(231_874.0)),
            "    231874 ±  1%"
        );
        assert_eq!(cell("x", None).len(), BASE);
        let change = Change {
            ratio: 0.927,
            interval: Some((0.92, 0.93)),
            pairs: 5,
            boots: 5,
            different: true,
            resolution: Some(0.01),
        };
        assert_eq!(
            change_text("x", Some(change), values(1.0), values(1.0)),
            "      -7.3%"
        );
        assert_eq!(note("x", Some(change)), "  [-8.0%, -7.0%]");
    }

    #[test]
    fn a_statistic_in_percent_shows_the_difference() {
        let values = |mean| {
            Some(Spread {
                mean,
                stddev_percent: 0.0,
                count: 5,
            })
        };
        assert_eq!(
            change_text("mpstat.cpu.all.sys%", None, values(40.0), values(42.5)),
            "      +2.5 "
        );
        assert_eq!(note("mpstat.cpu.all.sys%", None), "");
    }

    #[test]
    fn a_long_name_keeps_its_end() {
        let variant = Variant::of("v5.4,tail_update=wait_lock_wake");
        assert_eq!(title(&variant, TITLE), "...wait_lock_wake");
        assert_eq!(title(&Variant::of("v5.4"), BASE), "v5.4");
    }
}
