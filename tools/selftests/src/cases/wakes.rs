// SPDX-License-Identifier: GPL-2.0
//! When one side has the other woken: the rules of `wake_reader` and `wake_writer`, by the notify
//! counters.
//!
//! The sequences are chosen so that no two values of a knob give the same counts.

use std::thread::scope;

use altpipe_core::Config;
use altpipe_core::config::{TailUpdate, WakeReader, WakeWriter};
use altpipe_uapi::{Flags, get_stats};
use rustix::event::PollFlags;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::case::{Area, Case};
use crate::end::{CAPACITY, PAGE, fill, poll_now, read, read_exact, set_nonblocking, write};
use crate::subject::{Pipe, Subject};
use crate::task::{Call, Task};

/// Cases about the wake rules.
pub const AREA: Area = Area {
    name: "wakes",
    cases: &[
        Case::altpipe(
            "writes wake readers exactly as wake_reader says",
            reader_rule,
        ),
        Case::altpipe(
            "a write that sleeps for room wakes readers first, and once done only if the rule says so",
            before_sleep,
        ),
        Case::altpipe(
            "reads wake writers exactly as wake_writer says",
            writer_rule,
        ),
        Case::altpipe(
            "an ordinary poll does not make every later write wake readers, unless the rule says polled",
            poll_users,
        ),
        Case::altpipe(
            "a wake-up for readers reaches sleeping writers on a common queue, and only there",
            common_queue,
        ),
        Case::altpipe(
            "wake-ups carry the sync hint as sync_write and sync_read say",
            sync_hints,
        ),
        Case::altpipe(
            "a read with data goes on while a writer sleeps, where read_merge says so",
            read_merges,
        ),
        Case::altpipe(
            "a nonblocking read never goes on for a sleeping writer",
            nonblocking_read_does_not_merge,
        ),
    ],
};

fn reader_notifies(pipe: &Pipe) -> u64 {
    get_stats(&pipe.read).expect("GET_STATS").reader_notifies
}

fn writer_notifies(pipe: &Pipe) -> u64 {
    get_stats(&pipe.read).expect("GET_STATS").writer_notifies
}

// The wake-ups that a write of `len` bytes sends.
fn wakes_of_write(pipe: &Pipe, len: usize) -> u64 {
    let before = reader_notifies(pipe);
    assert_eq!(write(&pipe.write, &vec![b'x'; len]), Ok(len));
    reader_notifies(pipe) - before
}

// The wake-ups that a read of `len` bytes sends.
fn wakes_of_read(pipe: &Pipe, len: usize) -> u64 {
    let before = writer_notifies(pipe);
    assert_eq!(read_exact(&pipe.read, len).len(), len);
    writer_notifies(pipe) - before
}

fn reader_rule(subject: &Subject) {
    let pipe = subject.pipe();
    let into_empty = wakes_of_write(&pipe, 1);
    let behind_data = wakes_of_write(&pipe, 1);
    let three_pages = wakes_of_write(&pipe, 3 * PAGE);
    poll_now(&pipe.read, PollFlags::IN);
    let polled = wakes_of_write(&pipe, 1);
    let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
    epoll::add(
        &epoll,
        &pipe.read,
        EventData::new_u64(0),
        EventFlags::IN | EventFlags::ET,
    )
    .unwrap();
    let edge_triggered = wakes_of_write(&pipe, 1);
    let expected = match subject.config().wake_reader {
        WakeReader::WasEmptyOrEpollet => [1, 0, 0, 0, 1],
        WakeReader::WasEmptyOrPolled => [1, 0, 0, 1, 1],
        WakeReader::WasEmpty => [1, 0, 0, 0, 0],
        WakeReader::EveryWrite => [1, 1, 1, 1, 1],
        WakeReader::EveryChunk => [1, 1, 3, 1, 1],
    };
    assert_eq!(
        [into_empty, behind_data, three_pages, polled, edge_triggered],
        expected
    );
}

fn before_sleep(subject: &Subject) {
    let pipe = subject.pipe();
    let (asleep, done) = scope(|s| {
        let writer = Task::asleep_in(s, Call::Write, &pipe.write, || {
            write(&pipe.write, &[b'x'; CAPACITY + PAGE])
        });
        let asleep = reader_notifies(&pipe);
        read_exact(&pipe.read, PAGE);
        assert_eq!(writer.join(), Ok(CAPACITY + PAGE));
        (asleep, reader_notifies(&pipe))
    });
    let expected = match subject.config().wake_reader {
        WakeReader::WasEmptyOrEpollet | WakeReader::WasEmptyOrPolled | WakeReader::WasEmpty => {
            (1, 1)
        }
        WakeReader::EveryWrite => (1, 2),
        WakeReader::EveryChunk => (16, 17),
    };
    assert_eq!((asleep, done), expected);
}

// Slots in use: 16, 16, 15, 14, 11, 7, 1, 0.
fn writer_rule(subject: &Subject) {
    let pipe = subject.pipe();
    assert_eq!(fill(&pipe.write, PAGE), CAPACITY);
    let reads = [1, PAGE - 1, PAGE, 3 * PAGE, 4 * PAGE, 6 * PAGE, PAGE];
    let wakes = reads.map(|len| wakes_of_read(&pipe, len));
    // Under wait_lock_wake the rule is asked for each slot, and its answer is sent for each.
    let each_slot = subject.config().tail_update == TailUpdate::WaitLockWake;
    let expected = match subject.config().wake_writer {
        WakeWriter::FreedFull => [0, 1, 0, 0, 0, 0, 0],
        WakeWriter::WasFull => [1, 1, 0, 0, 0, 0, 0],
        WakeWriter::Half => [0, 1, 0, 0, 1, 0, 1],
        WakeWriter::EveryRelease if each_slot => [0, 1, 1, 3, 4, 6, 1],
        WakeWriter::EveryRelease => [0, 1, 1, 1, 1, 1, 1],
    };
    assert_eq!(wakes, expected);
}

fn poll_users(subject: &Subject) {
    let pipe = subject.pipe();
    write(&pipe.write, b"x").unwrap();
    let before = reader_notifies(&pipe);
    for _ in 0..10 {
        assert_eq!(poll_now(&pipe.read, PollFlags::IN), PollFlags::IN);
        write(&pipe.write, b"x").unwrap();
    }
    let expected = match subject.config().wake_reader {
        WakeReader::WasEmptyOrEpollet | WakeReader::WasEmpty => 0,
        WakeReader::WasEmptyOrPolled | WakeReader::EveryWrite | WakeReader::EveryChunk => 10,
    };
    assert_eq!(reader_notifies(&pipe) - before, expected);
}

// The pipe is full, but its last page takes ten bytes more: a write goes through while larger ones
// sleep for room.
fn common_queue(subject: &Subject) {
    const WRITERS: u64 = 4;
    let config = Config {
        wake_reader: WakeReader::EveryWrite,
        merge: true,
        ..subject.config()
    };
    let (read_end, write_end) = subject
        .control()
        .create(Flags::CLOEXEC, &config.to_string())
        .unwrap();
    let pipe = Pipe {
        read: read_end,
        write: write_end,
    };
    write(&pipe.write, &[b'x'; CAPACITY - PAGE]).unwrap();
    write(&pipe.write, &[b'x'; 100]).unwrap();
    scope(|s| {
        let large = || write(&pipe.write, &[b'x'; PAGE]);
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| Task::asleep_in(s, Call::Write, &pipe.write, large))
            .collect();
        let before: Vec<_> = writers
            .iter()
            .map(|writer| writer.watched().sleeps())
            .collect();
        assert_eq!(write(&pipe.write, b"ten bytes."), Ok(10));
        for (writer, before) in writers.iter().zip(before) {
            while !config.split_wait && writer.watched().sleeps() == before {
                std::thread::yield_now();
            }
            writer.watched().until_asleep(Call::Write, &pipe.write);
        }
        // Room for all of them at once, so this wake-up is wasted on none.
        read_exact(&pipe.read, CAPACITY);
        for writer in writers {
            assert_eq!(writer.join(), Ok(PAGE));
        }
    });
    let wasted = get_stats(&pipe.read).unwrap().wasted_wakes;
    if config.split_wait {
        assert_eq!(wasted, 0);
    } else {
        assert!(wasted >= WRITERS, "{wasted} wasted wake-ups");
    }
}

fn sync_hints(subject: &Subject) {
    let pipe = subject.pipe();
    let config = subject.config();
    let sync_notifies = || get_stats(&pipe.read).unwrap().sync_notifies;
    fill(&pipe.write, PAGE);
    let of_writes = reader_notifies(&pipe);
    assert!(of_writes > 0);
    assert_eq!(
        sync_notifies(),
        if config.sync_write { of_writes } else { 0 }
    );
    let before = sync_notifies();
    read_exact(&pipe.read, CAPACITY);
    let of_reads = writer_notifies(&pipe);
    assert!(of_reads > 0);
    assert_eq!(
        sync_notifies() - before,
        if config.sync_read { of_reads } else { 0 }
    );
}

// The pipe is full and a writer of four pages more sleeps.
fn with_sleeping_writer(subject: &Subject, body: impl FnOnce(&Pipe)) {
    let pipe = subject.pipe();
    fill(&pipe.write, PAGE);
    scope(|s| {
        let writer = Task::asleep_in(s, Call::Write, &pipe.write, || {
            write(&pipe.write, &[b'x'; 4 * PAGE])
        });
        body(&pipe);
        assert_eq!(writer.join(), Ok(4 * PAGE));
    });
}

fn read_merges(subject: &Subject) {
    let expected = if subject.config().read_merge {
        CAPACITY + 4 * PAGE
    } else {
        CAPACITY
    };
    with_sleeping_writer(subject, |pipe| {
        // More than there will ever be: the read must end when no writer sleeps any more.
        assert_eq!(
            read(&pipe.read, 3 * CAPACITY).map(|data| data.len()),
            Ok(expected)
        );
    });
}

fn nonblocking_read_does_not_merge(subject: &Subject) {
    with_sleeping_writer(subject, |pipe| {
        set_nonblocking(&pipe.read, true);
        assert_eq!(
            read(&pipe.read, 3 * CAPACITY).map(|data| data.len()),
            Ok(CAPACITY)
        );
    });
}
