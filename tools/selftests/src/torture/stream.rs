// SPDX-License-Identifier: GPL-2.0
//! One pipe or FIFO from its opening to its end, with records through it.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::scope;

use altpipe_uapi::{Control, Flags};
use rand_chacha::ChaCha8Rng;
use rustix::event::{PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{Counts, Progress, disturb, travel};
use crate::draw::{self, below};
use crate::end::{PAGE, poll_for, read, set_nonblocking, write};
use crate::fifo::Fifo;
use crate::knobs::Device;
use crate::record::{HEADER, Ledger, Record};
use crate::subject::config_of;
use crate::task::{Task, Watched};

/// Records of each writer of a stream.
const RECORDS: u32 = 120;
/// The length of records that several readers share: each read takes one.
const SHARED: u16 = 64;

/// Where a stream gets its pipe.
pub enum Source<'a> {
    /// Made by the control device, with a config of its own or by the defaults of the moment.
    Created(&'a Control),
    /// A FIFO device, whose knobs are turned while it is open.
    Fifo(Fifo, Device),
}

impl Source<'_> {
    // Both ends, and the device that has knobs to be turned.
    fn open(&self, generator: &mut ChaCha8Rng) -> (OwnedFd, OwnedFd, Option<&Device>) {
        match self {
            Self::Created(control) => {
                let text = if below(generator, 2) == 0 {
                    String::new()
                } else {
                    draw::config(generator).to_string()
                };
                let (r, w) = control.create(Flags::CLOEXEC, &text).expect("make a pipe");
                (r, w, None)
            }
            Self::Fifo(fifo, device) => {
                let r = fifo.try_reader();
                let w = fifo.try_writer().expect("there is a reader");
                (r, w, Some(device))
            }
        }
    }
}

// How a task waits where a call would.
struct Manner<'a> {
    generator: ChaCha8Rng,
    counts: &'a Counts,
    // In poll(2) it does so with short timeouts, and not for as long as it takes.
    restless: bool,
}

impl<'a> Manner<'a> {
    fn draw(generator: &mut ChaCha8Rng, counts: &'a Counts) -> Self {
        // Beyond the numbers of the streams.
        let stream = (1 << 32) | u64::from(below(generator, u32::MAX));
        Self {
            generator: draw::generator(stream),
            counts,
            restless: below(generator, 3) == 0,
        }
    }

    // The call until it moves bytes: whatever a signal or O_NONBLOCK makes of it, no part of it is
    // done then.
    fn insist<T>(
        &mut self,
        call: impl Fn() -> rustix::io::Result<T>,
        end: &OwnedFd,
        events: PollFlags,
    ) -> T {
        loop {
            match call() {
                Ok(result) => return result,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(end, events),
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn wait(&mut self, end: &OwnedFd, events: PollFlags) {
        let timeout = self.restless.then(|| Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(below(&mut self.generator, 2_000_000)),
        });
        match poll_for(end, events, timeout.as_ref()) {
            Ok(seen) if seen.is_empty() => _ = self.counts.timeouts.fetch_add(1, Ordering::Relaxed),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => panic!("{error}"),
        }
    }

    // The same end, perhaps by another way.
    fn travel(&mut self, end: OwnedFd, access: OFlags) -> OwnedFd {
        travel::sometimes(end, access, &mut self.generator, self.counts)
    }

    fn write_all(mut self, mut end: OwnedFd, writer: u16, lens: &[u16]) {
        for (number, &len) in (0..).zip(lens) {
            let record = Record {
                writer,
                len,
                number,
            };
            let bytes = record.bytes();
            let count = self.insist(|| write(&end, &bytes), &end, PollFlags::OUT);
            assert_eq!(count, bytes.len(), "a torn write");
            end = self.travel(end, OFlags::WRONLY);
        }
    }

    fn read_in_order(mut self, mut end: OwnedFd, size: usize, writers: u16, advance: impl Fn(u64)) {
        let mut ledger = Ledger::new(writers.into());
        let mut stream = Vec::new();
        loop {
            let part = self.insist(|| read(&end, size), &end, PollFlags::IN);
            if part.is_empty() {
                break;
            }
            stream.extend_from_slice(&part);
            advance(ledger.enter_all(&mut stream));
            end = self.travel(end, OFlags::RDONLY);
        }
        assert!(stream.is_empty(), "the last record is cut off");
        ledger.assert_complete(RECORDS);
    }

    fn read_shared(mut self, mut end: OwnedFd, left: &AtomicU64, advance: impl Fn(u64)) {
        loop {
            let part = self.insist(|| read(&end, SHARED.into()), &end, PollFlags::IN);
            if part.is_empty() {
                break;
            }
            let record = Record::at_front(&part).expect("a whole record");
            assert_eq!(record.len, SHARED);
            assert_ne!(
                left.fetch_sub(1, Ordering::SeqCst),
                0,
                "more records than were written"
            );
            advance(1);
            end = self.travel(end, OFlags::RDONLY);
        }
    }
}

/// Runs one stream.
pub fn run(source: &Source<'_>, generator: &mut ChaCha8Rng, progress: &Progress, counts: &Counts) {
    let (r, w, device) = source.open(generator);
    let writers = 1 + below(generator, 3) as u16;
    let readers = 1 + below(generator, 3);
    set_nonblocking(&r, below(generator, 4) == 0);
    set_nonblocking(&w, below(generator, 4) == 0);
    progress.set(format!(
        "{writers} writers, {readers} readers, {}",
        config_of(&r)
    ));

    // Below a page, and so never torn.
    let lens: Vec<u16> = match readers {
        1 => (0..RECORDS)
            .map(|_| (HEADER as u32 + below(generator, 4089)) as u16)
            .collect(),
        _ => vec![SHARED; RECORDS as usize],
    };
    let (lens, advance) = (&lens, &|records: u64| {
        progress.records.fetch_add(records, Ordering::Relaxed);
        counts.records.fetch_add(records, Ordering::Relaxed);
    });
    let left = Arc::new(AtomicU64::new(u64::from(writers) * u64::from(RECORDS)));
    scope(|s| {
        let mut tasks = Vec::new();
        for writer in 0..writers {
            let (manner, end) = (Manner::draw(generator, counts), w.try_clone().expect("dup"));
            tasks.push(Task::spawn(s, move || manner.write_all(end, writer, lens)));
        }
        drop(w);
        for _ in 0..readers {
            let (manner, end) = (Manner::draw(generator, counts), r.try_clone().expect("dup"));
            let size = 1 + below(generator, 3 * PAGE as u32) as usize;
            let left = left.clone();
            tasks.push(Task::spawn(s, move || match readers {
                1 => manner.read_in_order(end, size, writers, advance),
                _ => manner.read_shared(end, &left, advance),
            }));
        }
        let watched: Vec<Watched> = tasks.iter().map(|task| task.watched().clone()).collect();
        let ended = || tasks.iter().all(Task::is_finished);
        disturb::until_ended(generator, &r, device, &watched, ended, counts);
    });
    if readers > 1 {
        assert_eq!(left.load(Ordering::SeqCst), 0, "records are missing");
    }
    let counter = match source {
        Source::Created(_) => &counts.pipes,
        Source::Fifo(..) => &counts.fifos,
    };
    counter.fetch_add(1, Ordering::Relaxed);
}
