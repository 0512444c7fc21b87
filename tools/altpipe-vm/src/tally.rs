// SPDX-License-Identifier: GPL-2.0
//! How many tests passed, and which did not.

use std::fmt;
use std::ops::AddAssign;

/// The outcome of any number of tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: usize,
    pub skipped: usize,
    /// One line for each failure.
    pub failures: Vec<String>,
}

impl Tally {
    /// A single test that passed.
    pub fn pass() -> Self {
        Self {
            passed: 1,
            ..Self::default()
        }
    }

    /// A single failure.
    pub fn fail(what: impl Into<String>) -> Self {
        Self {
            failures: vec![what.into()],
            ..Self::default()
        }
    }

    /// Did everything pass? A run of nothing did not.
    pub fn is_good(&self) -> bool {
        self.failures.is_empty() && self.passed > 0
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.skipped += other.skipped;
        self.failures.extend(other.failures);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failures.len())?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}
