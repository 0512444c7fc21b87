// SPDX-License-Identifier: GPL-2.0
//! Every allocation of every call fails once: the errno is right, nothing is left behind, and the
//! next try works.
//!
//! For each row the allocations of its call are counted first. Then the first of them fails, then
//! the second, and so on until a call meets no fault any more. The kernel's own pipe goes first, with
//! the same rows. After the rows of each kind the module must go at once: a file, an inode or a
//! mount that somebody still holds would refuse that.

mod injector;
mod point;
mod rows;

use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use altpipe_uapi::Control;
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use crate::account::Account;
use crate::child::{isolate, note};
use crate::descriptors;
use crate::fifo::Fifos;
use crate::knobs;
use crate::ktap::Ktap;
use crate::module::{Module, traces};
use crate::process::Process;
use crate::subject::Subject;
use injector::Injector;
use point::{Maker, Point};
use rows::{DEVICE_ROWS, FIFOS, MODULE, PIPES, Points, Row};

/// An allocation that no call comes to.
const FAR: u32 = 1 << 30;

/// How often each allocation fails, so that a page that is lost shows on the account.
const TIMES: u32 = 16;

/// Configs that differ in where pages come from.
const CONFIGS: [&str; 3] = ["prealloc=pool", "prealloc=burst", "prealloc=off"];

/// Of the allocations that the kernel itself makes to load a module, so many fail.
const SAMPLES: u32 = 20;

/// What the rows need.
pub struct Faults {
    /// The module under test, which must not be loaded yet.
    pub module: Module,
}

impl Faults {
    /// Runs all rows; returns the number of failures.
    pub fn run(&self, out: impl io::Write) -> io::Result<usize> {
        if Injector::new()?.is_none() {
            return Err(io::Error::other(
                "this kernel injects no faults; run it on the debug kernel",
            ));
        }
        be_quiet()?;
        let account = Account::open()?;
        let kinds: Vec<(String, &[Row])> = [("native".to_owned(), PIPES)]
            .into_iter()
            .chain(CONFIGS.map(|config| (format!("altpipe {config}"), PIPES)))
            .chain([
                ("fifo native".to_owned(), FIFOS),
                ("fifo altpipe".to_owned(), FIFOS),
                ("device".to_owned(), DEVICE_ROWS),
            ])
            .collect();
        let mut ktap = Ktap::start(out, kinds.len() + 1)?;
        for (kind, rows) in kinds {
            let is_native = kind.ends_with("native");
            let rows: Vec<_> = rows
                .iter()
                .filter_map(|row| {
                    let points = if is_native { row.native } else { row.altpipe };
                    Some((row, points?))
                })
                .collect();
            ktap.subtest(&kind, rows.len() + 1, |inner| {
                self.module.load();
                for (row, points) in rows {
                    let outcome = isolate(Duration::from_secs(300), || {
                        let maker = maker(&kind);
                        examine(&kind, row, points, &maker, &account);
                    })?;
                    inner.result(row.name, &outcome)?;
                }
                let outcome = isolate(Duration::from_secs(30), || {
                    self.module.unload_when_free();
                    assert_eq!(traces(), [false; 4]);
                })?;
                inner.result("the module goes", &outcome)
            })?;
        }
        let outcome = isolate(Duration::from_secs(900), || self.load(&account))?;
        ktap.result(MODULE.name, &outcome)?;
        Ok(ktap.failed())
    }

    // The kernel's own part of a load comes first and is long. Where ours begins is told by a load
    // that our init refuses by the first thing it looks at, some allocations in.
    fn load(&self, account: &Account) {
        const BEFORE_LOOK: u32 = 32;
        let injector = &Injector::new().expect("debugfs").expect("injects");
        let file = self.module.open();
        let (refused, left) = injector.inject(FAR, || Module::load_file(&file, c"devices=65"));
        assert_eq!(refused, Err(Errno::INVAL));
        let ours = (FAR - left).saturating_sub(BEFORE_LOOK);
        let step = (ours / SAMPLES).max(1);
        let maker = &Maker::File(file);
        let total = count(&MODULE, maker, injector);
        let charged = account.steady();
        let samples = (1..=ours).step_by(step as usize);
        let theirs = walk(&MODULE, maker, injector, samples, 1);
        let own = walk(&MODULE, maker, injector, ours + 1..=total, 1);
        println!(
            "# load the module: {total} allocations; of the kernel's {ours}, {theirs}; of init's {}, {own}",
            total - ours
        );
        own.assert_enough(MODULE.altpipe.expect("a row of ours"));
        account.assert_back(charged, "after the loads that failed");
        let (last, _) = injector.inject(FAR, || Module::load_file(&self.module.open(), c""));
        assert_eq!(last, Ok(()), "the next try works");
        self.module.unload_when_free();
    }
}

// The kernel's own voices: kmemleak's notes are allocations, too, as are those of KUnit's suites.
fn be_quiet() -> io::Result<()> {
    for (file, text) in [
        ("/sys/kernel/debug/kmemleak", "off"),
        ("/sys/module/kunit/parameters/filter_glob", "none"),
    ] {
        match fs::write(file, text) {
            // What is not there makes no allocation.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn maker(kind: &str) -> Maker {
    let control = || Arc::new(Control::open().expect("open the device"));
    match kind {
        "native" => Maker::Pipes(Subject::Native),
        "fifo native" => Maker::Fifos(Fifos::Native),
        "fifo altpipe" => Maker::Fifos(Fifos::devices("").expect("a config")),
        "device" => Maker::Loaded,
        kind => {
            let config = kind.strip_prefix("altpipe ").expect("a kind of pipe");
            Maker::Pipes(Subject::altpipe(&control(), config).expect("a config"))
        }
    }
}

/// What came of faults.
#[derive(Default)]
struct Effects {
    /// Calls that failed by it.
    failed: u32,
    /// Calls that did their work all the same.
    survived: u32,
}

impl Effects {
    fn assert_enough(&self, points: Points) {
        match points {
            Points::Least(least) => assert!(
                self.failed >= least,
                "only {} allocations fail the call, not {least}",
                self.failed
            ),
            Points::Spared(least) => assert!(
                self.failed + self.survived >= least,
                "only {} allocations, not {least}",
                self.failed + self.survived
            ),
            Points::Harmless => assert_eq!(self.failed, 0, "allocations that fail the call"),
            Points::None => assert_eq!(self.failed + self.survived, 0, "allocations"),
        }
    }
}

impl std::fmt::Display for Effects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} fail it, {} do not", self.failed, self.survived)
    }
}

fn examine(kind: &str, row: &Row, points: Points, maker: &Maker, account: &Account) {
    let injector = &Injector::new().expect("debugfs").expect("injects");
    let total = count(row, maker, injector);
    let open = descriptors::open();
    let charged = account.steady();
    let effects = walk(row, maker, injector, 1..=total, TIMES);
    println!("# {kind}: {}: {total} allocations, {effects}", row.name);
    effects.assert_enough(points);
    assert_eq!(descriptors::open(), open, "descriptors");
    account.assert_back(charged, "after the calls that failed");
    if let Maker::Pipes(subject @ Subject::Altpipe { .. }) = maker {
        assert_no_charge(subject);
    }
}

// The allocations of one call. The first run fills caches.
fn count(row: &Row, maker: &Maker, injector: &Injector) -> u32 {
    let run = || {
        let mut point = Point::new(maker, injector, FAR);
        (row.run)(&mut point);
        assert_eq!(point.error, None, "without a fault");
        FAR - point.left.expect("a scenario tests one call")
    };
    run();
    run()
}

// Makes each of these allocations fail so many times.
fn walk(
    row: &Row,
    maker: &Maker,
    injector: &Injector,
    range: impl Iterator<Item = u32>,
    times: u32,
) -> Effects {
    let mut effects = Effects::default();
    for nth in range {
        note(&format!("allocation {nth}"));
        let (mut hit, mut failed) = (false, false);
        for _ in 0..times {
            let mut point = Point::new(maker, injector, nth);
            (row.run)(&mut point);
            // A cache may have spared the call an allocation this time.
            hit |= point.has_failed();
            if let Some(error) = point.error {
                assert!(point.has_failed(), "{error} without a fault");
                assert!(row.errors.contains(&error), "{error}");
                failed = true;
            }
        }
        effects.failed += u32::from(failed);
        effects.survived += u32::from(hit && !failed);
    }
    effects
}

// Were a single slot of a pipe that never came to be still on our user's account, the account would
// not have room for this one. Root's pipes are counted as anybody's; without capabilities the limits
// hold for him as well.
fn assert_no_charge(subject: &Subject) {
    knobs::store("limits/user_pages_hard", "16").expect("a limit");
    Process::fork(|| {
        let none = CapabilitySet::empty();
        let sets = CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        };
        set_capabilities(None, sets).expect("capset");
        drop(subject.pipe());
    })
    .succeed();
    knobs::store("limits/user_pages_hard", "0").expect("a limit");
}
