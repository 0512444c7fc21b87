// SPDX-License-Identifier: GPL-2.0
//! Counting in the output of `cargo test`.

use crate::tally::Tally;

/// Adds up the summaries of all test programs and names what failed. `good` is
/// whether cargo itself was content: it is not where something did not compile.
pub fn count(text: &str, good: bool) -> Tally {
    let mut tally = Tally::default();
    for line in text.lines() {
        if let Some(summary) = line.strip_prefix("test result: ") {
            tally.passed += number(summary, "passed");
            tally.skipped += number(summary, "ignored");
        } else if let Some(name) = line
            .strip_prefix("test ")
            .and_then(|line| line.strip_suffix(" ... FAILED"))
        {
            tally.failures.push(name.to_owned());
        }
    }
    if !good && tally.failures.is_empty() {
        tally
            .failures
            .push("cargo test failed before or between the tests".into());
    }
    if good && tally.passed == 0 {
        tally.failures.push("cargo test ran no test".into());
    }
    tally
}

/// The number in front of a word: `2` of `ok. 2 passed; 0 failed`.
fn number(summary: &str, word: &str) -> usize {
    let mut before = "";
    for part in summary
        .split([' ', ';', '.'])
        .filter(|part| !part.is_empty())
    {
        if part == word {
            return before.parse().unwrap_or(0);
        }
        before = part;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_add_up_and_failures_are_named() {
        let text = "running 2 tests\ntest a::b ... ok\ntest a::c ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed; 0 \
                    ignored; 0 measured; 0 filtered out; finished in 0.00s\ntest result: ok. 12 passed; 0 failed; 3 \
                    ignored; 0 measured; 0 filtered out\n";
        let tally = count(text, false);
        assert_eq!((tally.passed, tally.skipped), (13, 3));
        assert_eq!(tally.failures, ["a::c"]);
    }

    #[test]
    fn what_does_not_compile_or_runs_nothing_has_failed() {
        assert_eq!(count("error: could not compile\n", false).failures.len(), 1);
        assert_eq!(count("", true).failures.len(), 1);
    }
}
