// SPDX-License-Identifier: GPL-2.0
//! What only the debug kernel can show: that its bug finders find bugs, and the
//! module's own KUnit suites.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::Suite;
use crate::kernel::{Flavour, Kernel, debug};
use crate::machine::End;
use crate::run::Outcome;
use crate::tally::Tally;
use crate::{console, ktap};

/// Faults that a machine lives through, in an order in which none hides another,
/// and what the kernel says of each.
const FAULTS: &[(&str, &str)] = &[
    ("hang", "blocked for more than"),
    ("lock_order", "possible circular locking dependency"),
    (
        "sleep_in_atomic",
        "sleeping function called from invalid context",
    ),
    ("use_after_free", "KASAN: slab-use-after-free"),
    ("use_of_free_page", "KASAN: use-after-free"),
    ("beyond_vmalloc", "KASAN: vmalloc-out-of-bounds"),
    ("free_active_timer", "ODEBUG: free active"),
    ("corrupt_list", "list_del corruption"),
    ("leak", "new suspected memory leaks"),
];

/// Faults that end the machine, by the number that `panics.ko` has for each.
const PANICS: &[&str] = &["1", "2"];

/// Provokes all faults in one boot. A hang takes its time, so it begins first and
/// the rest goes on beside it. Only what has no owner for some seconds counts as
/// leaked.
const PROVOKE: &str = "
mount -t debugfs none /sys/kernel/debug 2>/dev/null
fault=/sys/module/provoke/parameters/fault
echo scan >/sys/kernel/debug/kmemleak
echo clear >/sys/kernel/debug/kmemleak
insmod /in/provoke.ko || exit 1
echo 4 >/proc/sys/kernel/hung_task_timeout_secs
echo 1 >/proc/sys/kernel/hung_task_check_interval_secs
for name; do
	echo $name >$fault || exit 1
done
echo scan >/sys/kernel/debug/kmemleak
sleep 6
echo scan >/sys/kernel/debug/kmemleak
";

impl Suite<'_> {
    /// Builds the module for the debug kernel, and the controls.
    pub(super) fn debug_modules(&self) -> Result<Tally> {
        debug::build_modules(self.checkout, self.kernel(Flavour::Debug)?)?;
        Ok(Tally::pass())
    }

    /// Is every detector seen to fire, and does the runner take its report for one?
    pub(super) fn controls(&self) -> Result<Tally> {
        let control = |name: &str| debug::controls(self.checkout).join(name);
        let kernel = self.kernel(Flavour::Debug)?;
        let mut tally = Tally::default();

        let mut command = vec!["sh", "-c", PROVOKE, "sh"];
        command.extend(FAULTS.iter().map(|(name, _)| *name));
        let (end, log) = self.provoke(kernel, control("provoke.ko"), &command)?;
        for (name, words) in FAULTS {
            tally += seen(&end, name, words);
        }
        // Whoever counts KUnit's results must not take a failure for a success.
        let results = ktap::count(&console::messages(&log));
        tally += match results.failures.as_slice() {
            [only] if only.starts_with("fails") => Tally::pass(),
            _ => Tally::fail(format!("a KUnit case that fails: {:?}", results.failures)),
        };

        for fault in PANICS {
            let script = format!("insmod /in/panics.ko fault={fault}");
            let (end, _) = self.provoke(kernel, control("panics.ko"), &["sh", "-c", &script])?;
            tally += seen(&end, &script, "rust_kernel: panicked at");
        }
        Ok(tally)
    }

    fn provoke(&self, kernel: &Kernel, file: PathBuf, command: &[&str]) -> Result<(End, String)> {
        let machine = self.prepare(kernel, &Self::wish(false, vec![file]), command)?;
        let scratch = tempfile::tempdir()?;
        let end = machine.run(scratch.path(), self.interrupt, io::sink(), io::stderr())?;
        Ok((end, read_log(scratch.path())?))
    }

    /// The suites beside the module's code, which run when it is loaded. A load
    /// succeeds whatever comes of them.
    pub(super) fn kunit(&self) -> Result<Tally> {
        let kernel = self.kernel(Flavour::Debug)?;
        let machine = self.prepare(kernel, &Self::wish(true, vec![]), &["true"])?;
        let scratch = tempfile::tempdir()?;
        let end = machine.run(scratch.path(), self.interrupt, io::sink(), io::stderr())?;
        let outcome = Outcome::conclude(end, None)?;
        ensure!(outcome.status == 0, "{outcome}");
        // The kernel has suites of its own, which ran when it booted.
        let log = read_log(scratch.path())?;
        let start = log.find("altpipe: loading").unwrap_or(log.len());
        Ok(ktap::count(&console::messages(&log[start..])))
    }
}

fn read_log(dir: &Path) -> Result<String> {
    let log = fs::read(dir.join("console.log")).context("no console log")?;
    Ok(String::from_utf8_lossy(&log).into_owned())
}

/// Is the fault among the reports that the runner made of it?
fn seen(end: &End, fault: &str, words: &str) -> Tally {
    match end {
        End::Reported(lines) if lines.iter().any(|line| line.contains(words)) => Tally::pass(),
        End::Reported(lines) => Tally::fail(format!(
            "{fault}: no {words:?} among\n  {}",
            lines.join("\n  ")
        )),
        end => Tally::fail(format!("{fault}: no report ({end:?})")),
    }
}
