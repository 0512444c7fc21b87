// SPDX-License-Identifier: GPL-2.0
//! What a pipe counts, exactly, for traffic that leaves nothing to chance.

use std::ptr;
use std::thread::scope;

use altpipe_core::config::{Prealloc, TailUpdate};
use altpipe_uapi::{Stats, get_stats, raw};
use rustix::io::Errno;

use crate::case::{Area, Case};
use crate::end::{PAGE, fill, read, read_exact, set_nonblocking, write};
use crate::memory::{Cliff, NOWHERE, ioctl_at, ioctl_on, write_from};
use crate::subject::{Pipe, Subject};
use crate::task::{Call, Task};

/// Cases about GET_STATS.
pub const AREA: Area = Area {
    name: "counters",
    cases: &[
        Case::altpipe(
            "GET_STATS fills as much as the caller's structure holds and zeroes the rest",
            stats_sizes,
        ),
        Case::altpipe(
            "GET_STATS without room for its head is EINVAL, at a bad address EFAULT",
            stats_refused,
        ),
        Case::altpipe("a new pipe has counted nothing but itself", stats_of_new),
        Case::altpipe(
            "reads, writes and bytes are counted where data moved, and only there",
            counts_of_io,
        ),
        Case::altpipe(
            "each write that goes behind earlier bytes is a merge",
            counts_of_merges,
        ),
        Case::altpipe(
            "each slot's page comes from where the knobs of preallocation say",
            counts_of_pages,
        ),
        Case::altpipe(
            "a sleep and the wake-up that ends it are counted once, on the sleeper's side",
            counts_of_sleeps,
        ),
        Case::altpipe(
            "one byte for many readers wakes one, or all and wastes the rest",
            counts_of_herd,
        ),
        Case::altpipe(
            "a woken reader that leaves data hands over, where waits are exclusive",
            counts_of_hand_over,
        ),
        Case::altpipe(
            "tail_locks counts each released slot, unless the mutex alone guards the tail",
            counts_of_tail_locks,
        ),
    ],
};

fn counted(pipe: &Pipe) -> Stats {
    get_stats(&pipe.read).expect("GET_STATS")
}

fn stats_sizes(subject: &Subject) {
    const ROOM: usize = 100;
    let pipe = subject.pipe();
    write(&pipe.write, b"x").unwrap();
    let all: Vec<u64> = counted(&pipe).iter().map(|(_, value)| value).collect();
    for known in [0, 1, 5, all.len(), ROOM] {
        #[repr(C)]
        struct Longer {
            size: u32,
            pad: u32,
            counters: [u64; ROOM],
        }
        const UNTOUCHED: u64 = u64::MAX;
        let mut longer = Longer {
            size: 8 + 8 * known as u32,
            pad: 0,
            counters: [UNTOUCHED; ROOM],
        };
        assert_eq!(ioctl_on(&pipe.write, raw::GET_STATS, &mut longer), Ok(0));
        assert_eq!((longer.size, longer.pad), (8 + 8 * known as u32, 0));
        let (filled, beyond) = longer.counters.split_at(known);
        assert!(
            filled
                .iter()
                .zip(all.iter().chain([0].iter().cycle()))
                .all(|(got, expected)| got == expected),
            "{filled:?}"
        );
        assert!(beyond.iter().all(|&value| value == UNTOUCHED));
    }
}

fn stats_refused(subject: &Subject) {
    let pipe = subject.pipe();
    for size in [0, 7] {
        let mut argument = raw::Stats {
            size,
            ..Default::default()
        };
        assert_eq!(
            ioctl_on(&pipe.read, raw::GET_STATS, &mut argument),
            Err(Errno::INVAL)
        );
    }
    for address in [ptr::null_mut(), NOWHERE] {
        assert_eq!(
            ioctl_at(&pipe.read, raw::GET_STATS, address),
            Err(Errno::FAULT)
        );
    }
    let cliff = Cliff::new(0);
    let address = cliff.before_edge(20);
    // SAFETY: twenty accessible bytes, of which this takes four.
    unsafe {
        address
            .cast::<u32>()
            .write_unaligned(size_of::<raw::Stats>() as u32)
    };
    assert_eq!(
        ioctl_at(&pipe.read, raw::GET_STATS, address),
        Err(Errno::FAULT)
    );
}

fn stats_of_new(subject: &Subject) {
    assert_eq!(
        counted(&subject.pipe()),
        Stats {
            pipes_created: 1,
            ..Stats::default()
        }
    );
}

fn counts_of_io(subject: &Subject) {
    let pipe = subject.pipe();
    let io = |pipe: &Pipe| {
        let stats = counted(pipe);
        (
            stats.reads,
            stats.writes,
            stats.bytes_read,
            stats.bytes_written,
        )
    };
    set_nonblocking(&pipe.read, true);
    write(&pipe.write, &[b'x'; 100]).unwrap();
    write(&pipe.write, &[b'x'; 3 * PAGE]).unwrap();
    read(&pipe.read, 50).unwrap();
    assert_eq!(io(&pipe), (1, 2, 50, 100 + 3 * PAGE as u64));
    read(&pipe.read, 4 * PAGE).unwrap();
    let all = 100 + 3 * PAGE as u64;
    assert_eq!(io(&pipe), (2, 2, all, all));
    // None of these moves a byte.
    assert_eq!(read(&pipe.read, 1), Err(Errno::AGAIN));
    assert_eq!(read(&pipe.read, 0).as_deref(), Ok(&[][..]));
    assert_eq!(write(&pipe.write, b""), Ok(0));
    assert_eq!(write_from(&pipe.write, NOWHERE, 10), Err(Errno::FAULT));
    assert_eq!(io(&pipe), (2, 2, all, all));
}

fn counts_of_merges(subject: &Subject) {
    let pipe = subject.pipe();
    for (size, merges) in [
        (100, 0),
        (100, 1),
        (PAGE - 200, 2),
        (1, 2),
        (PAGE, 2),
        (PAGE + 5, 2),
        (10, 3),
    ] {
        write(&pipe.write, &vec![b'x'; size]).unwrap();
        let merges = if subject.config().merge { merges } else { 0 };
        assert_eq!(counted(&pipe).merges, merges, "after {size} bytes");
    }
}

// Pool, unlocked, locked.
fn sources(pipe: &Pipe) -> [u64; 3] {
    let stats = counted(pipe);
    [stats.pages_pool, stats.pages_unlocked, stats.pages_locked]
}

fn counts_of_pages(subject: &Subject) {
    let config = subject.config();
    let pooled = config.prealloc == Prealloc::Pool;
    let ahead = if config.prealloc == Prealloc::Off {
        0
    } else {
        u64::from(config.prealloc_max)
    };
    // How many spent pages outlive the read.
    let kept = u64::from(if pooled {
        config.prealloc_keep.min(config.prealloc_max)
    } else {
        config.page_cache
    });
    let pipe = subject.pipe();
    let mut expected = [0; 3];
    let mut stock = 0;
    for pages in [1, 1, 1, 16, 16, 5] {
        let fresh = ahead.min(pages).saturating_sub(stock);
        let used = stock.min(pages);
        write(&pipe.write, &vec![b'x'; pages as usize * PAGE]).unwrap();
        expected = [
            expected[0] + used,
            expected[1] + fresh,
            expected[2] + pages - used - fresh,
        ];
        assert_eq!(sources(&pipe), expected, "after {pages} pages");
        read_exact(&pipe.read, pages as usize * PAGE);
        stock = kept.min(pages + stock - used);
    }
}

fn counts_of_sleeps(subject: &Subject) {
    let pipe = subject.pipe();
    scope(|s| {
        let reader = Task::asleep_in(s, Call::Read, &pipe.read, || read(&pipe.read, 1));
        write(&pipe.write, b"x").unwrap();
        reader.join().unwrap();
    });
    let stats = counted(&pipe);
    assert_eq!(
        (
            stats.reader_sleeps,
            stats.reader_wakes,
            stats.writer_sleeps,
            stats.writer_wakes
        ),
        (1, 1, 0, 0)
    );
    fill(&pipe.write, PAGE);
    scope(|s| {
        let writer = Task::asleep_in(s, Call::Write, &pipe.write, || write(&pipe.write, b"x"));
        read_exact(&pipe.read, PAGE);
        writer.join().unwrap();
    });
    let stats = counted(&pipe);
    assert_eq!(
        (
            stats.reader_sleeps,
            stats.reader_wakes,
            stats.writer_sleeps,
            stats.writer_wakes
        ),
        (1, 1, 1, 1)
    );
    assert_eq!(stats.wasted_wakes, 0);
}

fn counts_of_herd(subject: &Subject) {
    const READERS: u64 = 8;
    let pipe = subject.pipe();
    scope(|s| {
        let crowd: Vec<_> = (0..READERS)
            .map(|_| Task::asleep_in(s, Call::Read, &pipe.read, || read(&pipe.read, 1)))
            .collect();
        // One at a time, all asleep before each, so that each wake-up meets a known crowd.
        let mut crowd = crowd;
        while !crowd.is_empty() {
            let served = crowd.len();
            write(&pipe.write, b"x").unwrap();
            while crowd.iter().all(|task| !task.is_finished()) {
                std::thread::yield_now();
            }
            crowd.retain(|task| !task.is_finished());
            assert_eq!(crowd.len(), served - 1);
            for task in &crowd {
                task.watched().until_asleep(Call::Read, &pipe.read);
            }
        }
    });
    let stats = counted(&pipe);
    if subject.waits_exclusively() {
        assert_eq!((stats.reader_wakes, stats.wasted_wakes), (READERS, 0));
    } else {
        let all_each_time = READERS * (READERS + 1) / 2;
        // Who sees the byte and loses the race for it was woken in vain as well.
        assert_eq!(stats.reader_wakes - stats.wasted_wakes, READERS);
        if subject.has_common_queue() {
            // What the winner sends to writers meets those losers who sleep again by then.
            assert!(stats.reader_wakes >= all_each_time, "{stats:?}");
        } else {
            assert_eq!(stats.reader_wakes, all_each_time);
        }
    }
}

fn counts_of_hand_over(subject: &Subject) {
    const READERS: usize = 8;
    let pipe = subject.pipe();
    scope(|s| {
        let crowd: Vec<_> = (0..READERS)
            .map(|_| Task::asleep_in(s, Call::Read, &pipe.read, || read(&pipe.read, PAGE)))
            .collect();
        write(&pipe.write, &[b'x'; READERS * PAGE]).unwrap();
        for task in crowd {
            task.join().unwrap();
        }
    });
    let expected = if subject.waits_exclusively() {
        READERS as u64 - 1
    } else {
        0
    };
    assert_eq!(counted(&pipe).handovers, expected);
}

fn counts_of_tail_locks(subject: &Subject) {
    let pipe = subject.pipe();
    write(&pipe.write, &[b'x'; 5 * PAGE]).unwrap();
    read(&pipe.read, PAGE / 2).unwrap();
    assert_eq!(counted(&pipe).tail_locks, 0, "no slot is released yet");
    read(&pipe.read, 5 * PAGE).unwrap();
    let expected = if subject.config().tail_update == TailUpdate::Mutex {
        0
    } else {
        5
    };
    assert_eq!(counted(&pipe).tail_locks, expected);
}
