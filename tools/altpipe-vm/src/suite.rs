// SPDX-License-Identifier: GPL-2.0
//! `make test`, `make test-debug` and `make test-long`: every test there is, counted.

mod debug;
mod errand;

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::cache::Cache;
use crate::checkout::Checkout;
use crate::cost::Clock;
use crate::interrupt::Interrupt;
use crate::kernel::{Flavour, Kernel};
use crate::lint;
use crate::machine::Machine;
use crate::run::{self, Outcome, Wish};
use crate::step::quietly;
use crate::tally::Tally;
use crate::{exit, ktap, libtest};
use errand::{DEBUG, Errand, LONG, LONG_PATIENCE, Module, PATIENCE};

/// How often the module is loaded and removed.
const RELOADS: &str = "100";

/// How many random sequences are run on a native pipe and on altpipe's.
const SEQUENCES: &str = "20000";

/// For how many seconds streams are checked while knobs are turned under them.
const TORTURE: &str = "60";

/// The parts of the suite, and what they have come to.
pub struct Suite<'a> {
    pub cache: &'a Cache,
    pub checkout: &'a Checkout,
    pub kernel: &'a Kernel,
    pub debug: Option<&'a Kernel>,
    pub interrupt: &'a Interrupt,
    pub total: Tally,
}

impl Suite<'_> {
    /// Runs everything; `lints` first if they are wanted. The last line that is
    /// printed is the count.
    pub fn run(&mut self, lints: bool) -> Result<u8> {
        if lints {
            for lint in lint::all(self.kernel, self.checkout)? {
                self.part(&format!("lint: {}", lint.name), |_| Ok(lint.run()));
            }
        }
        self.part("tests on the host", Self::host);
        self.part("the module builds", Self::module);
        self.part("the runner itself", Self::runner);
        self.part("samples in the machine", Self::samples);
        self.part("selftests in the machine", |suite| {
            suite.in_machine(true, vec![], &["altpipe-selftests"])
        });
        self.part("random sequences against native pipes", |suite| {
            let command = [
                "altpipe-selftests",
                "differential",
                "--sequences",
                SEQUENCES,
            ];
            suite.in_machine(true, vec![], &command)
        });
        self.part("100000 pipes leave nothing behind", |suite| {
            let command = ["altpipe-selftests", "leaks", "--pipes", "100000"];
            suite.in_machine(true, vec![], &command)
        });
        self.part("torture in the machine", |suite| {
            let command = ["altpipe-selftests", "torture", "--seconds", TORTURE];
            suite.in_machine(true, vec![], &command)
        });
        self.part("unmodified programs in the machine", Self::programs);
        self.part("life cycle of the module", |suite| {
            let command = [
                "altpipe-selftests",
                "lifecycle",
                "--module",
                "/in/altpipe.ko",
                "--count",
                RELOADS,
            ];
            suite.in_machine(false, vec![suite.kernel.module(suite.checkout)], &command)
        });
        Ok(self.conclude())
    }

    /// Runs what is for the debug kernel: first whether it finds faults at all,
    /// since its silence means nothing before.
    pub fn run_debug(&mut self) -> Result<u8> {
        self.part(
            "the module builds for the debug kernel",
            Self::debug_modules,
        );
        self.part("the bug finders find bugs", Self::controls);
        self.part("KUnit suites", Self::kunit);
        self.errands(DEBUG, PATIENCE);
        Ok(self.conclude())
    }

    /// Runs the long forms.
    pub fn run_long(&mut self) -> Result<u8> {
        self.part("the module builds", Self::module);
        self.part(
            "the module builds for the debug kernel",
            Self::debug_modules,
        );
        self.errands(LONG, LONG_PATIENCE);
        Ok(self.conclude())
    }

    fn errands(&mut self, errands: &[Errand], patience: Duration) {
        for errand in errands {
            self.part(errand.name, |suite| {
                let kernel = suite.kernel(errand.kernel)?;
                let loaded = errand.module == Module::Loaded;
                let files = match errand.module {
                    Module::Loaded => vec![],
                    Module::File => vec![kernel.module(suite.checkout)],
                };
                let mut wish = Self::wish(loaded, files);
                wish.timeout = patience;
                suite.ktap(&suite.prepare(kernel, &wish, errand.command)?)
            });
        }
    }

    fn kernel(&self, flavour: Flavour) -> Result<&Kernel> {
        match flavour {
            Flavour::Stock => Ok(self.kernel),
            Flavour::Debug => self.debug.context("the debug kernel was not set up"),
        }
    }

    /// Runs the lints alone.
    pub fn lint(&mut self) -> Result<u8> {
        for lint in lint::all(self.kernel, self.checkout)? {
            self.part(lint.name, |_| Ok(lint.run()));
        }
        Ok(self.conclude())
    }

    fn conclude(&self) -> u8 {
        println!("{}", self.total);
        match self.interrupt.signal() {
            Some(signal) => exit::interrupted(signal),
            None => u8::from(!self.total.is_good()),
        }
    }

    /// One part: an error in it is one more failure, and the rest goes on.
    fn part(&mut self, name: &str, work: impl FnOnce(&Self) -> Result<Tally>) {
        if self.interrupt.signal().is_some() {
            return;
        }
        println!("  ..     {name}");
        let clock = Clock::start();
        let tally = work(self).unwrap_or_else(|error| Tally::fail(format!("{error:#}")));
        println!("  {}  {name}: {tally}", clock.read());
        for failure in &tally.failures {
            println!("         failed: {failure}");
        }
        self.total += tally;
    }

    fn host(&self) -> Result<Tally> {
        let log = self.checkout.path("tools/target/host-tests.log");
        let mut command = self.checkout.script("tools/cargo.sh");
        command
            .args(["test", "--workspace", "--no-fail-fast"])
            .current_dir(self.checkout.path("tools"));
        let result = quietly(&mut command, &log);
        let tally = libtest::count(&String::from_utf8_lossy(&fs::read(&log)?), result.is_ok());
        if let Err(error) = result {
            println!("{error:#}");
        }
        Ok(tally)
    }

    fn module(&self) -> Result<Tally> {
        let log = self.checkout.path("tools/target/module.log");
        let mut command = Command::new("make");
        Checkout::without_make(&mut command);
        quietly(
            command.arg("-C").arg(self.checkout.path("")).arg("modules"),
            &log,
        )?;
        Ok(Tally::pass())
    }

    /// Can a real machine's failures be told apart at all? A runner that could not
    /// would let everything below pass.
    fn runner(&self) -> Result<Tally> {
        let mut tally = Tally::default();
        for (script, status) in [
            ("test $(id -u nobody) = 65534 && exit 7", 7),
            ("echo c >/proc/sysrq-trigger; sleep 60", exit::KERNEL_REPORT),
            ("reboot -f; sleep 60", exit::VANISHED),
        ] {
            let machine = self.machine(false, vec![], &["sh", "-c", script])?;
            let scratch = tempfile::tempdir()?;
            let end = machine.run(scratch.path(), self.interrupt, io::sink(), io::sink())?;
            let outcome = Outcome::conclude(end, None)?;
            tally += if outcome.status == status {
                Tally::pass()
            } else {
                Tally::fail(format!("{script}: {outcome} where {status} was to come"))
            };
        }
        Ok(tally)
    }

    fn samples(&self) -> Result<Tally> {
        let samples = self.checkout.path("samples");
        let log = self.checkout.path("tools/target/samples.log");
        let mut make = self.checkout.in_toolchain("make");
        quietly(make.current_dir(&samples), &log)?;
        let files = ["own-pipe", "with-knobs.sh", "check.sh"].map(|name| samples.join(name));
        self.in_machine(true, files.to_vec(), &["sh", "/in/check.sh"])
    }

    /// In a Debian 13, with one program of ours that has to be linked as they are.
    fn programs(&self) -> Result<Tally> {
        let parity = self.checkout.path("tools/target/parity");
        let log = self.checkout.path("tools/target/parity.log");
        let mut gcc = self.checkout.in_toolchain("gcc");
        gcc.args(["-O2", "-Wall", "-Wno-unused-result", "-o"])
            .arg(&parity)
            .arg(self.checkout.path("tools/altpipe-preload/tests/parity.c"))
            .current_dir(self.checkout.path("tools"));
        quietly(&mut gcc, &log)?;
        let command = ["altpipe-selftests", "programs", "--parity", "/in/parity"];
        let mut wish = Self::wish(true, vec![parity]);
        wish.rootfs = true;
        wish.memory_mib = 2048;
        self.ktap(&self.prepare(self.kernel, &wish, &command)?)
    }

    /// A program that speaks KTAP.
    fn in_machine(&self, module: bool, files: Vec<PathBuf>, command: &[&str]) -> Result<Tally> {
        self.ktap(&self.machine(module, files, command)?)
    }

    fn ktap(&self, machine: &Machine) -> Result<Tally> {
        let transcript = Transcript::default();
        let outcome = run::run(machine, None, self.interrupt, transcript.clone())?;
        let mut tally = ktap::count(&transcript.text());
        if outcome.fault.is_some() || (outcome.status != 0 && tally.failures.is_empty()) {
            tally.failures.push(outcome.to_string());
        }
        Ok(tally)
    }

    fn machine(&self, module: bool, files: Vec<PathBuf>, command: &[&str]) -> Result<Machine> {
        self.prepare(self.kernel, &Self::wish(module, files), command)
    }

    /// A machine with two processors, for true concurrency.
    fn wish(module: bool, files: Vec<PathBuf>) -> Wish {
        Wish {
            icount: false,
            processors: 2,
            memory_mib: 1024,
            timeout: PATIENCE,
            files,
            module,
            rootfs: false,
            image: None,
        }
    }

    fn prepare(&self, kernel: &Kernel, wish: &Wish, command: &[&str]) -> Result<Machine> {
        let mut machine = wish.machine(self.cache, self.checkout, kernel, self.interrupt)?;
        machine.guest.command = Some(command.iter().map(|word| (*word).to_owned()).collect());
        Ok(machine)
    }
}

/// Keeps what a test program prints, and shows its outermost results as they come.
#[derive(Clone, Default)]
struct Transcript(Arc<Mutex<Vec<u8>>>);

impl Transcript {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("no writer panics")).into_owned()
    }
}

impl Write for Transcript {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let mut kept = self.0.lock().expect("no writer panics");
        let line_start = kept
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        kept.extend_from_slice(buffer);
        if let Some(end) = kept[line_start..].iter().rposition(|byte| *byte == b'\n') {
            for line in kept[line_start..line_start + end].split(|byte| *byte == b'\n') {
                if line.starts_with(b"ok ") || line.starts_with(b"not ok ") {
                    println!("         {}", String::from_utf8_lossy(line));
                }
            }
        }
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_keeps_all_of_it_in_whatever_pieces_it_comes() {
        let mut transcript = Transcript::default();
        let text = "KTAP version 1\n1..1\n  ok 1 inner\nok 1 outer\nlast";
        for piece in text.as_bytes().chunks(3) {
            transcript.write_all(piece).unwrap();
        }
        assert_eq!(transcript.text(), text);
    }
}
