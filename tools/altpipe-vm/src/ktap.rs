// SPDX-License-Identifier: GPL-2.0
//! Counting in the kernel's test format (Documentation/dev-tools/ktap.rst).
//!
//! Only leaves count. A document that says less than it planned, or that
//! planned nothing, has failed: that is what a crash in the middle leaves.

use crate::tally::Tally;

/// One document: the outermost, or that of a subtest.
struct Document {
    indent: usize,
    planned: Option<usize>,
    seen: usize,
    /// A subtest has ended whose own result line is still to come, with so many
    /// failures.
    subtest: Option<usize>,
    failed: usize,
}

#[derive(Default)]
struct Reader {
    tally: Tally,
    open: Vec<Document>,
    /// The last diagnostic line: what a failure below it is about.
    diagnostic: String,
}

/// Counts the cases of a program's output.
pub fn count(text: &str) -> Tally {
    let mut reader = Reader::default();
    for line in text.lines() {
        let content = line.trim_start();
        reader.line(line.len() - content.len(), content.trim_end());
    }
    reader.close_below(0);
    reader.close_last();
    if reader.tally == Tally::default() {
        return Tally::fail("no KTAP in the output");
    }
    reader.tally
}

impl Reader {
    fn line(&mut self, indent: usize, content: &str) {
        if content.starts_with("KTAP version") || content.starts_with("TAP version") {
            self.begin(indent);
        } else if let Some(planned) = plan(content) {
            self.document(indent).planned = Some(planned);
        } else if let Some((good, name, directive)) = result(content) {
            self.result(indent, good, name, directive);
        } else if let Some(text) = content.strip_prefix('#') {
            text.trim().clone_into(&mut self.diagnostic);
        }
    }

    /// A version line: a subtest where it is deeper, else the end of what was
    /// before and a new document.
    fn begin(&mut self, indent: usize) {
        self.close_below(indent);
        if self
            .open
            .last()
            .is_some_and(|document| document.indent >= indent)
        {
            self.close_last();
        }
        self.document(indent);
    }

    /// The document at this depth; deeper ones have ended.
    fn document(&mut self, indent: usize) -> &mut Document {
        self.close_below(indent);
        if self
            .open
            .last()
            .is_none_or(|document| document.indent < indent)
        {
            self.open.push(Document {
                indent,
                planned: None,
                seen: 0,
                subtest: None,
                failed: 0,
            });
        }
        self.open
            .last_mut()
            .expect("just pushed if it was not there")
    }

    fn result(&mut self, indent: usize, good: bool, name: &str, directive: &str) {
        let diagnostic = std::mem::take(&mut self.diagnostic);
        let document = self.document(indent);
        document.seen += 1;
        let failure = match document.subtest.take() {
            // Its cases have been counted.
            Some(failed) if good || failed > 0 => return,
            Some(_) => format!("{name}: failed though none of its cases did"),
            None if ["SKIP", "TODO", "XFAIL"].contains(&directive) => {
                self.tally.skipped += 1;
                return;
            }
            None if good => {
                self.tally.passed += 1;
                return;
            }
            None => format!("{name}: {diagnostic}"),
        };
        self.fail(failure);
    }

    fn fail(&mut self, failure: String) {
        if let Some(document) = self.open.last_mut() {
            document.failed += 1;
        }
        self.tally.failures.push(failure);
    }

    fn close_below(&mut self, indent: usize) {
        while self
            .open
            .last()
            .is_some_and(|document| document.indent > indent)
        {
            self.close_last();
        }
    }

    fn close_last(&mut self) {
        let Some(document) = self.open.last() else {
            return;
        };
        let seen = document.seen;
        match document.planned {
            None => self.fail(format!(
                "a KTAP document without a plan, after {seen} results"
            )),
            Some(planned) if seen > planned => {
                self.fail(format!("{seen} results where {planned} were planned"))
            }
            Some(planned) => {
                for number in seen + 1..=planned {
                    self.fail(format!("no result for test {number} of {planned}"));
                }
            }
        }
        let failed = self.open.pop().map_or(0, |document| document.failed);
        if let Some(parent) = self.open.last_mut() {
            parent.failed += failed;
            parent.subtest = Some(failed);
        }
    }
}

/// `1..N`
fn plan(line: &str) -> Option<usize> {
    line.strip_prefix("1..")?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// `ok N name # DIRECTIVE reason`
fn result(line: &str) -> Option<(bool, &str, &str)> {
    let (good, rest) = match line.strip_prefix("not ok ") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok ")?),
    };
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    if digits == 0 {
        return None;
    }
    let description = rest[digits..].trim_start().trim_start_matches("- ");
    let (name, directive) = description.split_once("# ").unwrap_or((description, ""));
    Some((
        good,
        name.trim_end(),
        directive.split_whitespace().next().unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> (usize, usize, usize) {
        let tally = count(text);
        (tally.passed, tally.failures.len(), tally.skipped)
    }

    #[test]
    fn a_flat_document_counts_its_results() {
        let text = "KTAP version 1\n1..3\nok 1 a\n# left 1, right 2\nnot ok 2 - b\nok 3 c # SKIP too old\n";
        assert_eq!(numbers(text), (1, 1, 1));
        assert_eq!(count(text).failures, ["b: left 1, right 2"]);
    }

    #[test]
    fn only_the_leaves_of_nested_documents_count() {
        let text = "KTAP version 1\n1..2\n  KTAP version 1\n  # Subtest: x\n  1..2\n  ok 1 a\n  ok 2 b\nok 1 x\n  \
                    KTAP version 1\n  1..1\n    KTAP version 1\n    1..1\n    not ok 1 deep\n  not ok 1 middle\nnot ok \
                    2 y\n";
        assert_eq!(numbers(text), (2, 1, 0));
    }

    #[test]
    fn subtests_may_follow_without_a_version_line() {
        assert_eq!(
            numbers("TAP version 14\n1..1\n    # Subtest: x\n    1..1\n    ok 1 a\nok 1 x\n"),
            (1, 0, 0)
        );
    }

    #[test]
    fn a_missing_result_is_a_failure_at_every_depth() {
        assert_eq!(numbers("KTAP version 1\n1..3\nok 1 a\n"), (1, 2, 0));
        assert_eq!(
            numbers("KTAP version 1\n1..1\n  KTAP version 1\n  1..3\n  ok 1 a\nok 1 x\n"),
            (1, 2, 0)
        );
        // The machine died in the middle of a subtest: its own result is missing, too.
        assert_eq!(
            numbers("KTAP version 1\n1..1\n  KTAP version 1\n  1..2\n  ok 1 a\n"),
            (1, 2, 0)
        );
    }

    #[test]
    fn a_missing_plan_is_a_failure() {
        assert_eq!(numbers("KTAP version 1\nok 1 a\n"), (1, 1, 0));
        assert_eq!(
            numbers("KTAP version 1\n1..1\n  KTAP version 1\n  ok 1 a\nok 1 x\n"),
            (1, 1, 0)
        );
    }

    #[test]
    fn more_results_than_planned_is_a_failure() {
        assert_eq!(numbers("KTAP version 1\n1..1\nok 1 a\nok 2 b\n"), (2, 1, 0));
    }

    #[test]
    fn a_subtest_that_fails_by_itself_is_a_failure() {
        assert_eq!(
            numbers("KTAP version 1\n1..1\n  KTAP version 1\n  1..1\n  ok 1 a\nnot ok 1 x\n"),
            (1, 1, 0)
        );
    }

    #[test]
    fn output_without_ktap_is_a_failure() {
        assert_eq!(numbers(""), (0, 1, 0));
        assert_eq!(numbers("ok, all went well\nokay 1\n"), (0, 1, 0));
    }

    #[test]
    fn documents_one_after_the_other_add_up() {
        assert_eq!(
            numbers("KTAP version 1\n1..1\nok 1 a\nnoise\nKTAP version 1\n1..1\nnot ok 1 b\n"),
            (1, 1, 0)
        );
    }
}
