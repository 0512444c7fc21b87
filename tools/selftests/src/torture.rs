// SPDX-License-Identifier: GPL-2.0
//! Streams of checked records over many pipes while knobs and presets turn, sizes change, signals
//! and short timeouts fly, and ends change hands.
//!
//! Half of the streams go through created pipes: some of these get a random config of their own,
//! some take the defaults as they stand while another thread turns them. The other half go through
//! FIFO devices, whose knobs are turned while they are open. Every byte of a record follows from its
//! number, so records tell a loss, a tear or a change of order; a standstill of any stream is told
//! by the clock.

mod disturb;
mod stream;
mod travel;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use altpipe_core::Config;
use altpipe_uapi::Control;

use crate::child::isolate;
use crate::draw;
use crate::fifo::{Fifos, configure};
use crate::knobs::{Device, Snapshot};
use crate::ktap::Ktap;
use crate::signal::{self, Interrupted};
use crate::task::Task;
use stream::Source;

/// Streams that run at the same time, each second of them through a FIFO device.
const STREAMS: usize = 4;
/// How long a stream may stand still. The machine is an emulated one, and busy.
const PATIENCE: Duration = Duration::from_secs(30);
/// From what length on it is a mistake if no flip of a live knob ever met a sleeper.
const LONG: Duration = Duration::from_secs(10);

/// A torture of some length.
pub struct Torture {
    /// How long it goes on.
    pub length: Duration,
}

/// What was done.
#[derive(Default)]
struct Counts {
    pipes: AtomicU64,
    fifos: AtomicU64,
    records: AtomicU64,
    /// Turns of a default's knob or preset.
    defaults: AtomicU64,
    /// Turns of a live FIFO's.
    live: AtomicU64,
    /// How many of these found a sleeper.
    met: AtomicU64,
    resizes: AtomicU64,
    signals: AtomicU64,
    timeouts: AtomicU64,
    copied: AtomicU64,
    reopened: AtomicU64,
    passed: AtomicU64,
}

/// What one stream does at the moment, for the message of a standstill.
struct Progress {
    records: AtomicU64,
    doing: Mutex<String>,
}

impl Progress {
    fn set(&self, doing: String) {
        *self.doing.lock().expect("no panic is survived") = doing;
    }

    fn doing(&self) -> String {
        self.doing
            .lock()
            .map(|doing| doing.clone())
            .unwrap_or_default()
    }
}

impl Torture {
    /// Runs it; returns the number of failures, which is at most 1.
    pub fn run(&self, out: impl io::Write, seed: u64) -> io::Result<usize> {
        let mut ktap = Ktap::start(out, 1)?;
        ktap.remark(&format!("seed {seed}"))?;
        let knobs = Snapshot::take()?;
        let outcome = isolate(self.length + 4 * PATIENCE, || self.torment())?;
        knobs.restore()?;
        for number in 0..STREAMS / 2 {
            configure(&Device::fifo(number), &Config::DEFAULT);
        }
        ktap.result(
            "records come through whole and in order while knobs, sizes and signals vary",
            &outcome,
        )?;
        Ok(ktap.failed())
    }

    fn torment(&self) {
        signal::count(libc::SIGUSR1, Interrupted::Fails);
        let control = &Control::open().expect("open the device");
        let fifos = &Fifos::devices("").expect("the defaults");
        let counts = &Counts::default();
        let progress: &Vec<_> = &(0..STREAMS)
            .map(|_| {
                Arc::new(Progress {
                    records: AtomicU64::new(0),
                    doing: Mutex::new(String::new()),
                })
            })
            .collect();
        let end = Instant::now() + self.length;
        let done = &AtomicBool::new(false);
        scope(|s| {
            let streams: Vec<_> = progress
                .iter()
                .enumerate()
                .map(|(number, progress)| {
                    let source = match number % 2 {
                        0 => Source::Created(control),
                        _ => Source::Fifo(fifos.fifo(number / 2), Device::fifo(number / 2)),
                    };
                    Task::spawn(s, move || {
                        let generator = &mut draw::generator(number as u64);
                        while Instant::now() < end {
                            stream::run(&source, generator, progress, counts);
                        }
                    })
                })
                .collect();
            Task::spawn(s, move || {
                disturb::turn_defaults(&mut draw::generator(STREAMS as u64), done, counts)
            });
            await_end(&streams, progress);
            done.store(true, Ordering::Relaxed);
        });
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        println!(
            "# {} records through {} pipes and {} openings of FIFOs; {} turns of defaults, {} of live FIFOs, {} of \
             these over sleepers; {} resizes, {} signals, {} timeouts; {} ends copied, {} reopened, {} passed",
            count(&counts.records),
            count(&counts.pipes),
            count(&counts.fifos),
            count(&counts.defaults),
            count(&counts.live),
            count(&counts.met),
            count(&counts.resizes),
            count(&counts.signals),
            count(&counts.timeouts),
            count(&counts.copied),
            count(&counts.reopened),
            count(&counts.passed),
        );
        assert!(
            self.length < LONG || count(&counts.met) > 0,
            "no knob was turned over a sleeper"
        );
    }
}

fn await_end(streams: &[Task<'_, ()>], progress: &[Arc<Progress>]) {
    let mut last: Vec<_> = progress.iter().map(|_| (0, Instant::now())).collect();
    while !streams.iter().all(Task::is_finished) {
        for ((stream, progress), (seen, since)) in streams.iter().zip(progress).zip(&mut last) {
            let now = progress.records.load(Ordering::Relaxed);
            if now != *seen || stream.is_finished() {
                (*seen, *since) = (now, Instant::now());
            }
            assert!(
                since.elapsed() < PATIENCE,
                "a stream stands still: {}",
                progress.doing()
            );
        }
        sleep(Duration::from_millis(50));
    }
}
