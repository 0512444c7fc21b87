// SPDX-License-Identifier: GPL-2.0
//! Streams of checked records over many pipes while knobs turn, sizes change and signals fly.
//!
//! Half of the pipes get a random config of their own, half take the defaults as they stand while
//! another thread turns them. Records tell a loss, a tear or a change of order; a standstill of any
//! stream is told by the clock.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{scope, sleep, yield_now};
use std::time::{Duration, Instant};

use altpipe_core::{KNOBS, PRESETS};
use altpipe_uapi::{Control, Flags, set_size};
use rand_chacha::ChaCha8Rng;
use rustix::event::PollFlags;
use rustix::fs::{CWD, Mode, OFlags, fcntl_getfl, openat};
use rustix::io::Errno;

use crate::child::isolate;
use crate::draw::{self, below};
use crate::end::{PAGE, poll_for, read, set_nonblocking, write};
use crate::knobs::{self, Snapshot};
use crate::ktap::Ktap;
use crate::record::{HEADER, Ledger, Record};
use crate::signal::{self, Interrupted};
use crate::subject::config_of;
use crate::task::{Task, Watched};

/// Streams that run at the same time.
const STREAMS: usize = 4;
/// Records of each writer of a pipe.
const RECORDS: u32 = 60;
/// How long a stream may stand still. The machine is an emulated one, and busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// A torture of some length.
pub struct Torture {
    /// How long it goes on.
    pub length: Duration,
}

#[derive(Default)]
struct Counts {
    pipes: AtomicU64,
    records: AtomicU64,
    flips: AtomicU64,
    resizes: AtomicU64,
    signals: AtomicU64,
}

// What one stream does at the moment, for the message of a standstill.
struct Progress {
    records: AtomicU64,
    doing: Mutex<String>,
}

impl Torture {
    /// Runs it; returns the number of failures, which is at most 1.
    pub fn run(&self, out: impl io::Write, seed: u64) -> io::Result<usize> {
        let mut ktap = Ktap::start(out, 1)?;
        ktap.remark(&format!("seed {seed}"))?;
        let knobs = Snapshot::take()?;
        let outcome = isolate(self.length + 4 * PATIENCE, || self.torment())?;
        knobs.restore()?;
        ktap.result(
            "records come through whole and in order while knobs, sizes and signals vary",
            &outcome,
        )?;
        Ok(ktap.failed())
    }

    fn torment(&self) {
        signal::count(libc::SIGUSR1, Interrupted::Fails);
        let control = &Control::open().expect("open the device");
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
            let streams: Vec<_> = (0..)
                .zip(progress)
                .map(|(number, progress)| {
                    Task::spawn(s, move || {
                        let generator = &mut draw::generator(number);
                        while Instant::now() < end {
                            stream(control, generator, progress, counts);
                            counts.pipes.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            Task::spawn(s, move || {
                turn_knobs(&mut draw::generator(STREAMS as u64), done, counts)
            });
            await_end(&streams, progress);
            done.store(true, Ordering::Relaxed);
        });
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        println!(
            "# {} records through {} pipes, {} knobs turned, {} resizes, {} signals",
            count(&counts.records),
            count(&counts.pipes),
            count(&counts.flips),
            count(&counts.resizes),
            count(&counts.signals),
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
            let doing = || {
                progress
                    .doing
                    .lock()
                    .map(|doing| doing.clone())
                    .unwrap_or_default()
            };
            assert!(
                since.elapsed() < PATIENCE,
                "a stream stands still: {}",
                doing()
            );
        }
        sleep(Duration::from_millis(50));
    }
}

fn turn_knobs(generator: &mut ChaCha8Rng, done: &AtomicBool, counts: &Counts) {
    while !done.load(Ordering::Relaxed) {
        let knob = &KNOBS[below(generator, KNOBS.len() as u32) as usize];
        let preset = &PRESETS[below(generator, PRESETS.len() as u32) as usize];
        match below(generator, 8) {
            0 => knobs::store("preset", preset.name).expect("a preset"),
            1 => knobs::store("stats/reset", "1").expect("reset"),
            _ => knobs::store(
                &format!("knobs/{}", knob.name),
                draw::value(generator, knob),
            )
            .expect("a value"),
        }
        counts.flips.fetch_add(1, Ordering::Relaxed);
        // A pipe should see some of the mixes whole.
        sleep(Duration::from_millis(2));
    }
}

// One pipe from its making to its end.
fn stream(control: &Control, generator: &mut ChaCha8Rng, progress: &Progress, counts: &Counts) {
    let text = if below(generator, 2) == 0 {
        String::new()
    } else {
        draw::config(generator).to_string()
    };
    let (r, w) = control.create(Flags::CLOEXEC, &text).expect("make a pipe");
    let writers = 1 + below(generator, 3) as u16;
    let readers = 1 + below(generator, 3);
    set_nonblocking(&r, below(generator, 4) == 0);
    set_nonblocking(&w, below(generator, 4) == 0);
    *progress.doing.lock().expect("no panic is survived") =
        format!("{writers} writers, {readers} readers, {}", config_of(&r));

    // Records of one length can be shared among readers: each read takes one.
    let lens: Vec<u16> = match readers {
        1 => (0..RECORDS)
            .map(|_| (HEADER as u32 + below(generator, 4089)) as u16)
            .collect(),
        _ => vec![64; RECORDS as usize],
    };
    let w = if below(generator, 4) == 0 {
        reopened(w, OFlags::WRONLY)
    } else {
        w
    };
    let (r, lens, advance) = (&r, &lens, &|records: u64| {
        progress.records.fetch_add(records, Ordering::Relaxed);
        counts.records.fetch_add(records, Ordering::Relaxed);
    });
    scope(|s| {
        let ends: Vec<_> = (0..writers).map(|_| w.try_clone().expect("dup")).collect();
        drop(w);
        let mut tasks: Vec<Watched> = Vec::new();
        for (writer, end) in (0..).zip(ends) {
            let task = Task::spawn(s, move || {
                for (number, &len) in (0..).zip(lens) {
                    insist(
                        || {
                            write(
                                &end,
                                &Record {
                                    writer,
                                    len,
                                    number,
                                }
                                .bytes(),
                            )
                        },
                        &end,
                        PollFlags::OUT,
                    );
                }
            });
            tasks.push(task.watched().clone());
        }
        if readers == 1 {
            let size = 1 + below(generator, 3 * PAGE as u32) as usize;
            let reader = Task::spawn(s, move || read_in_order(r, size, writers, advance));
            tasks.push(reader.watched().clone());
        } else {
            let left = Arc::new(AtomicU64::new(u64::from(writers) * u64::from(RECORDS)));
            for _ in 0..readers {
                let left = left.clone();
                let reader = Task::spawn(s, move || read_shared(r, &left, advance));
                tasks.push(reader.watched().clone());
            }
        }
        disturb(generator, r, &tasks, counts);
    });
}

// The call until it moves bytes: whatever a signal or O_NONBLOCK makes of it, no part of it is done
// then.
fn insist<T>(call: impl Fn() -> rustix::io::Result<T>, end: &OwnedFd, events: PollFlags) -> T {
    loop {
        match call() {
            Ok(result) => return result,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => _ = poll_for(end, events, None),
            Err(error) => panic!("{error}"),
        }
    }
}

fn read_in_order(r: &OwnedFd, size: usize, writers: u16, advance: impl Fn(u64)) {
    let mut ledger = Ledger::new(writers.into());
    let mut stream = Vec::new();
    loop {
        let part = insist(|| read(r, size), r, PollFlags::IN);
        if part.is_empty() {
            break;
        }
        stream.extend_from_slice(&part);
        advance(ledger.enter_all(&mut stream));
    }
    assert!(stream.is_empty(), "the last record is cut off");
    ledger.assert_complete(RECORDS);
}

fn read_shared(r: &OwnedFd, left: &AtomicU64, advance: impl Fn(u64)) {
    loop {
        let part = insist(|| read(r, 64), r, PollFlags::IN);
        if part.is_empty() {
            break;
        }
        let record = Record::at_front(&part).expect("a whole record");
        assert_eq!(record.len, 64);
        assert_ne!(
            left.fetch_sub(1, Ordering::SeqCst),
            0,
            "more records than were written"
        );
        advance(1);
    }
}

// Resizes and signals while the stream runs.
fn disturb(generator: &mut ChaCha8Rng, end: &OwnedFd, tasks: &[Watched], counts: &Counts) {
    for _ in 0..below(generator, 12) {
        if below(generator, 2) == 0 {
            match set_size(end, (PAGE as u32) << below(generator, 9)) {
                Ok(_) => _ = counts.resizes.fetch_add(1, Ordering::Relaxed),
                Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EBUSY)),
            }
        }
        for task in tasks {
            if signal::send_if_alive(libc::SIGUSR1, task) {
                counts.signals.fetch_add(1, Ordering::Relaxed);
            }
        }
        yield_now();
    }
}

// The same end by another description; the first is closed.
fn reopened(end: OwnedFd, access: OFlags) -> OwnedFd {
    let flags = access | fcntl_getfl(&end).expect("F_GETFL") & OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(
        CWD,
        format!("/proc/self/fd/{}", end.as_raw_fd()),
        flags,
        Mode::empty(),
    )
    .expect("reopen")
}
