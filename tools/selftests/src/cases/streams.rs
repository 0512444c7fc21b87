// SPDX-License-Identifier: GPL-2.0
//! Long streams: order and count hold whatever the sizes and however many take part.

use std::mem;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::scope;

use crate::case::{Area, Case};
use crate::end::{CAPACITY, PAGE, queued, read, write};
use crate::record::Record;
use crate::subject::{Pipe, Subject};
use crate::task::Task;

/// Cases about streams.
pub const AREA: Area = Area {
    name: "streams",
    cases: &[
        Case::long(
            "a stream keeps order and count for any sizes of writes and reads",
            sizes,
        ),
        Case::long(
            "a stream keeps order and count while both sizes vary",
            varying_sizes,
        ),
        Case::long(
            "several writers and readers share a pipe without loss",
            many_to_many,
        ),
        Case::every(
            "a read that comes back short leaves an empty pipe",
            short_read_empties,
        ),
        Case::every(
            "FIONREAD on either end is the sum over merged and half-read pages",
            queued_sum,
        ),
    ],
};

// The byte at a place of a stream: no period that a page, a slot or a ring could hide behind.
fn byte_at(place: usize) -> u8 {
    (place.wrapping_mul(0x9E37_79B1) >> 11) as u8
}

fn stream(subject: &Subject, total: usize, write_sizes: &[usize], read_sizes: &[usize]) {
    let Pipe { read: r, write: w } = subject.pipe();
    scope(|s| {
        Task::spawn(s, move || {
            let data: Vec<u8> = (0..total).map(byte_at).collect();
            let mut rest = &data[..];
            for size in write_sizes.iter().cycle() {
                let (now, later) = rest.split_at(rest.len().min(*size));
                assert_eq!(
                    write(&w, now),
                    Ok(now.len()),
                    "a blocking write returns its full count"
                );
                if later.is_empty() {
                    return;
                }
                rest = later;
            }
        });
        let mut place = 0;
        for size in read_sizes.iter().cycle() {
            let part = read(&r, *size).unwrap();
            if part.is_empty() {
                break;
            }
            let wrong = part
                .iter()
                .zip(place..)
                .find(|&(&byte, place)| byte != byte_at(place));
            assert!(
                wrong.is_none(),
                "wrong byte at {place}+, writes {write_sizes:?}, reads {read_sizes:?}"
            );
            place += part.len();
        }
        assert_eq!(place, total, "writes {write_sizes:?}, reads {read_sizes:?}");
    });
}

fn sizes(subject: &Subject) {
    for (write_size, read_size, total) in [
        (1, PAGE, 3_000),
        (PAGE, 1, 3_000),
        (512, 512, 50_000),
        (PAGE, PAGE, 100_000),
        (5000, 3000, 100_000),
        (3000, 70_000, 100_000),
        (CAPACITY, PAGE + 1, 250_000),
        (3 * CAPACITY + 1, CAPACITY, 250_000),
    ] {
        stream(subject, total, &[write_size], &[read_size]);
    }
}

fn varying_sizes(subject: &Subject) {
    let up = [1, 10, 100, 1_000, 10_000, 100_000];
    let down = [30_000, 4_097, 4_096, 4_095, 7, 300];
    stream(subject, 200_000, &up, &down);
    stream(subject, 200_000, &down, &up);
}

// Records of 64 bytes never straddle two pages, so each read of 64 bytes takes exactly one, whoever
// reads.
fn many_to_many(subject: &Subject) {
    const WRITERS: u16 = 4;
    const EACH: u32 = 1_000;
    let Pipe { read: r, write: w } = subject.pipe();
    let w = &w.try_clone().map(|second| [w, second]).unwrap();
    // A reader may overtake another between its read and its entry, so the ledger is kept by
    // number, in bits.
    let seen: Vec<Mutex<Vec<bool>>> = (0..WRITERS)
        .map(|_| Mutex::new(vec![false; EACH as usize]))
        .collect();
    let received = AtomicU64::new(0);
    scope(|s| {
        for writer in 0..WRITERS {
            Task::spawn(s, move || {
                for number in 0..EACH {
                    let record = Record {
                        writer,
                        len: 64,
                        number,
                    };
                    assert_eq!(write(&w[usize::from(writer % 2)], &record.bytes()), Ok(64));
                }
            });
        }
        for _ in 0..3 {
            Task::spawn(s, || {
                let mut last = [None; WRITERS as usize];
                while received.fetch_add(1, Ordering::SeqCst) < u64::from(WRITERS) * u64::from(EACH)
                {
                    let bytes = read(&r, 64).unwrap();
                    let record = Record::at_front(&bytes).expect("a whole record");
                    let last = &mut last[usize::from(record.writer)];
                    assert!(
                        last.is_none_or(|last| last < record.number),
                        "{record:?} after {last:?}"
                    );
                    *last = Some(record.number);
                    let mut seen = seen[usize::from(record.writer)].lock().unwrap();
                    let twice = mem::replace(&mut seen[record.number as usize], true);
                    assert!(!twice, "{record:?} came twice");
                }
            });
        }
    });
    assert!(
        seen.iter()
            .all(|seen| seen.lock().unwrap().iter().all(|&seen| seen))
    );
    assert_eq!(queued(&r), 0);
}

fn short_read_empties(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    for sizes in [
        &[1, PAGE - 1, PAGE, 100][..],
        &[PAGE, PAGE],
        &[5000, 1, 3000, 3000],
        &[10, 10, 10],
        &[3 * PAGE + 5],
    ] {
        let total: usize = sizes.iter().sum();
        for ask in [7, 100, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE, CAPACITY] {
            for &size in sizes {
                assert_eq!(write(&w, &vec![b'x'; size]), Ok(size));
            }
            let mut left = total;
            while left > 0 {
                let got = read(&r, ask).unwrap().len();
                left -= got;
                assert_eq!(queued(&r), left);
                assert!(
                    got == ask || left == 0,
                    "{got} of {ask} bytes with {left} left, writes {sizes:?}"
                );
            }
        }
    }
}

fn queued_sum(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let mut sum = 0;
    for size in [100, 200, PAGE, 5000, 1] {
        sum += write(&w, &vec![b'x'; size]).unwrap();
        assert_eq!((queued(&r), queued(&w)), (sum, sum));
    }
    for size in [50, 300, 2 * PAGE, 1] {
        sum -= read(&r, size).unwrap().len();
        assert_eq!((queued(&r), queued(&w)), (sum, sum));
    }
}
