// SPDX-License-Identifier: GPL-2.0
//! The size of a pipe, and pipes of a single slot.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{scope, yield_now};

use rustix::io::Errno;

use crate::case::{Area, Case};
use crate::end::{CAPACITY, PAGE, fill, queued, read, read_exact, set_nonblocking, write};
use crate::record::{Ledger, Record};
use crate::signal::{self, Interrupted};
use crate::subject::{Pipe, Subject};
use crate::task::{Call, Task};

/// Cases about sizes.
pub const AREA: Area = Area {
    name: "capacity",
    cases: &[
        Case::every("a new pipe has 16 pages, asked by either end", default_size),
        Case::every(
            "a size is rounded up to a power of two of pages, and above 2^31 EINVAL",
            rounding,
        ),
        Case::every("a pipe holds as many slots as its size says", slots),
        Case::every(
            "a pipe does not shrink below what is in it: EBUSY, and nothing changes",
            busy,
        ),
        Case::every(
            "data that wraps round the ring keeps its order through every size",
            order_kept,
        ),
        Case::every(
            "room made by growing wakes every blocked writer",
            growing_wakes,
        ),
        Case::long(
            "a numbered stream loses nothing while its pipe grows and shrinks",
            resized_stream,
        ),
        Case::long(
            "a pipe of one slot carries writers, readers and signals without a standstill",
            one_slot_crowd,
        ),
        Case::long("a pipe of one slot carries records whole", one_slot_records),
    ],
};

fn pipe_of(subject: &Subject, bytes: u32) -> Pipe {
    let pipe = subject.pipe();
    subject.resize(&pipe.read, bytes).expect("resize");
    pipe
}

fn default_size(subject: &Subject) {
    let pipe = subject.pipe();
    assert_eq!(
        (subject.size(&pipe.read), subject.size(&pipe.write)),
        (Ok(CAPACITY), Ok(CAPACITY))
    );
}

fn rounding(subject: &Subject) {
    let pipe = subject.pipe();
    for (asked, given) in [
        (0, 4096),
        (1, 4096),
        (4096, 4096),
        (4097, 8192),
        (12_288, 16_384),
        (65_537, 131_072),
    ] {
        assert_eq!(subject.resize(&pipe.read, asked), Ok(given), "{asked}");
        assert_eq!(subject.size(&pipe.write), Ok(given));
        assert_eq!(
            subject.resize(&pipe.write, asked),
            Ok(given),
            "{asked} by the write end"
        );
    }
    for asked in [(1 << 31) + 1, u32::MAX] {
        assert_eq!(
            subject.resize(&pipe.read, asked),
            Err(Errno::INVAL),
            "{asked}"
        );
    }
    assert_eq!(subject.size(&pipe.read), Ok(131_072));
}

fn slots(subject: &Subject) {
    for pages in [1, 2, 8, 32] {
        let pipe = pipe_of(subject, (pages * PAGE) as u32);
        assert_eq!(fill(&pipe.write, PAGE), pages * PAGE);
        assert_eq!(read_exact(&pipe.read, pages * PAGE).len(), pages * PAGE);
        // Slots are counted, not bytes.
        assert_eq!(fill(&pipe.write, PAGE / 2 + 1), pages * (PAGE / 2 + 1));
    }
}

fn busy(subject: &Subject) {
    let pipe = pipe_of(subject, 2 * CAPACITY as u32);
    assert_eq!(fill(&pipe.write, PAGE), 2 * CAPACITY);
    assert_eq!(
        subject.resize(&pipe.write, CAPACITY as u32),
        Err(Errno::BUSY)
    );
    assert_eq!(
        (subject.size(&pipe.read), queued(&pipe.read)),
        (Ok(2 * CAPACITY), 2 * CAPACITY)
    );
    read_exact(&pipe.read, CAPACITY - 1);
    assert_eq!(
        subject.resize(&pipe.write, CAPACITY as u32),
        Err(Errno::BUSY),
        "a byte still holds the 17th slot"
    );
    read_exact(&pipe.read, 1);
    assert_eq!(subject.resize(&pipe.write, CAPACITY as u32), Ok(CAPACITY));
    set_nonblocking(&pipe.write, true);
    assert_eq!(write(&pipe.write, b"x"), Err(Errno::AGAIN), "full at once");
    assert_eq!(read_exact(&pipe.read, CAPACITY).len(), CAPACITY);
}

fn order_kept(subject: &Subject) {
    let pipe = pipe_of(subject, 4 * PAGE as u32);
    let mut written = 0u8;
    let mut next = 0u8;
    // Each page holds its number. The tail moves on by three in every round, so it meets every
    // place of the ring.
    for pages in [4, 8, 4, 16, 4, 32, 8, 4] {
        for _ in 0..3 {
            assert_eq!(write(&pipe.write, &[written; PAGE]), Ok(PAGE));
            written = written.wrapping_add(1);
        }
        assert_eq!(
            subject.resize(&pipe.read, (pages * PAGE) as u32),
            Ok(pages * PAGE)
        );
        for _ in 0..3 {
            assert_eq!(read_exact(&pipe.read, PAGE), [next; PAGE]);
            next = next.wrapping_add(1);
        }
    }
}

fn growing_wakes(subject: &Subject) {
    const WRITERS: usize = 4;
    let pipe = pipe_of(subject, PAGE as u32);
    fill(&pipe.write, PAGE);
    scope(|s| {
        let page = || write(&pipe.write, &[b'x'; PAGE]);
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| Task::asleep_in(s, Call::Write, &pipe.write, page))
            .collect();
        assert_eq!(subject.resize(&pipe.read, 8 * PAGE as u32), Ok(8 * PAGE));
        for writer in writers {
            assert_eq!(writer.join(), Ok(PAGE));
        }
    });
    assert_eq!(queued(&pipe.read), (1 + WRITERS) * PAGE);
}

fn resized_stream(subject: &Subject) {
    const EACH: u32 = 300;
    let pipe = &subject.pipe();
    let done = AtomicBool::new(false);
    let mut ledger = Ledger::new(2);
    scope(|s| {
        for writer in 0..2 {
            Task::spawn(s, move || {
                for number in 0..EACH {
                    let record = Record {
                        writer,
                        len: [200, 4096, 1234][number as usize % 3],
                        number,
                    };
                    assert_eq!(write(&pipe.write, &record.bytes()), Ok(record.len.into()));
                }
            });
        }
        Task::spawn(s, || {
            for bytes in [1 << 20, 4096, 65_536, 8192].into_iter().cycle() {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                match subject.resize(&pipe.read, bytes) {
                    Ok(size) => assert_eq!(size, bytes as usize),
                    Err(error) => assert_eq!(error, Errno::BUSY),
                }
                yield_now();
            }
        });
        let mut left = 2 * EACH as usize * (200 + 4096 + 1234) / 3;
        let mut stream = Vec::new();
        while left > 0 {
            let part = read(&pipe.read, 10_000).unwrap();
            left -= part.len();
            stream.extend_from_slice(&part);
            ledger.enter_all(&mut stream);
        }
        done.store(true, Ordering::Relaxed);
    });
    ledger.assert_complete(EACH);
}

// hackbench hung here once: with one slot, every wake-up that goes astray stops everybody.
fn one_slot_crowd(subject: &Subject) {
    const EACH: usize = 60 * PAGE;
    signal::count(libc::SIGUSR1, Interrupted::Fails);
    let Pipe { read: r, write: w } = pipe_of(subject, PAGE as u32);
    let received = AtomicUsize::new(0);
    scope(|s| {
        let writers = [PAGE, PAGE, 100, 3 * PAGE].map(|size| {
            let w = w.try_clone().expect("dup");
            Task::spawn(s, move || {
                let mut left = EACH;
                while left > 0 {
                    match write(&w, &vec![b'x'; size.min(left)]) {
                        Ok(count) => left -= count,
                        Err(error) => assert_eq!(error, Errno::INTR),
                    }
                }
            })
        });
        let readers = [PAGE, 100, 3 * PAGE].map(|size| {
            let (r, received) = (&r, &received);
            Task::spawn(s, move || {
                loop {
                    match read(r, size) {
                        Ok(data) if data.is_empty() => return,
                        Ok(data) => _ = received.fetch_add(data.len(), Ordering::Relaxed),
                        Err(error) => assert_eq!(error, Errno::INTR),
                    }
                }
            })
        });
        drop(w);
        let victims: Vec<_> = writers
            .iter()
            .chain(&readers)
            .map(|task| task.watched().clone())
            .collect();
        while !readers.iter().all(Task::is_finished) {
            for victim in &victims {
                signal::send_if_alive(libc::SIGUSR1, victim);
                yield_now();
            }
        }
        writers.into_iter().chain(readers).for_each(Task::join);
    });
    assert_eq!(received.into_inner(), 4 * EACH);
}

fn one_slot_records(subject: &Subject) {
    const EACH: u32 = 80;
    let pipe = &pipe_of(subject, PAGE as u32);
    let mut ledger = Ledger::new(3);
    scope(|s| {
        for writer in 0..3 {
            Task::spawn(s, move || {
                for number in 0..EACH {
                    let record = Record {
                        writer,
                        len: 1000 + 500 * writer,
                        number,
                    };
                    assert_eq!(write(&pipe.write, &record.bytes()), Ok(record.len.into()));
                }
            });
        }
        let mut left = EACH as usize * (1000 + 1500 + 2000);
        let mut stream = Vec::new();
        while left > 0 {
            let part = read(&pipe.read, 700).unwrap();
            left -= part.len();
            stream.extend_from_slice(&part);
            ledger.enter_all(&mut stream);
        }
    });
    ledger.assert_complete(EACH);
}
