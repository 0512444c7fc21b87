// SPDX-License-Identifier: GPL-2.0
//! Output in the kernel's test format, KTAP version 1.

use std::io::{self, Write};

use crate::child::Outcome;

/// One level of a KTAP document.
pub struct Ktap<W> {
    out: W,
    indent: usize,
    next: usize,
    failed: usize,
}

impl<W: Write> Ktap<W> {
    /// Starts a document of `plan` results.
    pub fn start(out: W, plan: usize) -> io::Result<Self> {
        let mut ktap = Self {
            out,
            indent: 0,
            next: 1,
            failed: 0,
        };
        ktap.line("KTAP version 1")?;
        ktap.line(&format!("1..{plan}"))?;
        Ok(ktap)
    }

    /// Runs `body` on a nested document of `plan` results, then writes the line that sums it up.
    pub fn subtest(
        &mut self,
        name: &str,
        plan: usize,
        body: impl FnOnce(&mut Ktap<&mut W>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut inner = Ktap {
            out: &mut self.out,
            indent: self.indent + 2,
            next: 1,
            failed: 0,
        };
        inner.line("KTAP version 1")?;
        inner.line(&format!("# Subtest: {name}"))?;
        inner.line(&format!("1..{plan}"))?;
        body(&mut inner)?;
        let outcome = match inner.failed {
            0 => Outcome::Passed,
            n => Outcome::Failed(format!("{n} of {plan} failed")),
        };
        self.result(name, &outcome)
    }

    /// Writes one result; a failure's message stands in a diagnostic line above it.
    pub fn result(&mut self, name: &str, outcome: &Outcome) -> io::Result<()> {
        let number = self.next;
        self.next += 1;
        match outcome {
            Outcome::Passed => self.line(&format!("ok {number} {name}")),
            Outcome::Skipped(reason) => {
                self.line(&format!("ok {number} {name} # SKIP {}", one_line(reason)))
            }
            Outcome::Failed(message) => {
                self.failed += 1;
                self.remark(message)?;
                self.line(&format!("not ok {number} {name}"))
            }
        }
    }

    /// Writes a line for people alone.
    pub fn remark(&mut self, text: &str) -> io::Result<()> {
        self.line(&format!("# {}", one_line(text)))
    }

    /// The number of results at this level that failed.
    pub fn failed(&self) -> usize {
        self.failed
    }

    // Flushed line by line: after a kernel crash the last line on the console names the case before
    // the culprit.
    fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{:indent$}{text}", "", indent = self.indent)?;
        self.out.flush()
    }
}

fn one_line(text: &str) -> String {
    text.split('\n')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_nests_and_counts_its_failures() {
        let mut text = Vec::new();
        let mut ktap = Ktap::start(&mut text, 1).unwrap();
        ktap.subtest("native", 3, |inner| {
            inner.result("a", &Outcome::Passed)?;
            inner.result("b", &Outcome::Failed("left: 1\n right: 2".into()))?;
            inner.result("c", &Outcome::Skipped("too old".into()))
        })
        .unwrap();
        assert_eq!(ktap.failed(), 1);
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "KTAP version 1\n1..1\n  KTAP version 1\n  # Subtest: native\n  1..3\n  ok 1 a\n  # left: 1; right: 2\n  \
             not ok 2 b\n  ok 3 c # SKIP too old\n# 1 of 3 failed\nnot ok 1 native\n"
        );
    }
}
