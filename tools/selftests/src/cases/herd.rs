// SPDX-License-Identifier: GPL-2.0
//! How many sleepers run for one event, counted by their voluntary context switches.
//!
//! Every event waits until all take their place in the queue again, so the counts are exact and no
//! race decides.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::scope;

use rustix::thread::gettid;

use crate::case::{Area, Case};
use crate::end::{PAGE, fill, queued, read, read_exact, write};
use crate::subject::{Pipe, Subject};
use crate::task::{Call, Task, Watched};

/// Cases about crowds of sleepers.
pub const AREA: Area = Area {
    name: "herd",
    cases: &[
        Case::every(
            "one byte runs one of many blocked readers, or all where waits are not exclusive",
            paced_readers,
        ),
        Case::every(
            "one free slot runs one of many blocked writers, or all where waits are not exclusive",
            paced_writers,
        ),
        Case::long(
            "a token passed among 32 readers costs a bounded number of switches per hop",
            racing_token,
        ),
        Case::every(
            "data for all of many blocked readers reaches all, by hand-over",
            reader_hand_over,
        ),
        Case::every(
            "room for all of many blocked writers reaches all, by hand-over",
            writer_hand_over,
        ),
        Case::long(
            "readers and writers of mixed sizes never all sleep",
            mixed_sizes,
        ),
    ],
};

const CROWD: usize = 12;
const EVENTS: u64 = 24;

fn assert_switches(subject: &Subject, switches: u64) {
    if subject.waits_exclusively() {
        // One per event, and one more where the wake-up goes out while the waker still holds the
        // pipe's mutex.
        assert!(
            (EVENTS..=EVENTS * 5 / 2).contains(&switches),
            "{switches} switches for {EVENTS} events"
        );
    } else {
        let all = EVENTS * CROWD as u64;
        // A waker may preempt the crowd before the last of it sleeps again, but most must have run.
        assert!(
            switches > all * 3 / 4,
            "{switches} switches for {EVENTS} events of {CROWD} tasks"
        );
    }
}

fn total_sleeps<T: Send>(crowd: &[Task<'_, T>]) -> u64 {
    crowd.iter().map(|task| task.watched().sleeps()).sum()
}

fn paced_readers(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let served = AtomicUsize::new(0);
    let body = || {
        while !read(&r, 1).unwrap().is_empty() {
            served.fetch_add(1, Ordering::SeqCst);
        }
    };
    scope(|s| {
        let crowd: Vec<_> = (0..CROWD)
            .map(|_| Task::asleep_in(s, Call::Read, &r, body))
            .collect();
        let before = total_sleeps(&crowd);
        for event in 0..EVENTS as usize {
            write(&w, b"x").unwrap();
            while served.load(Ordering::SeqCst) == event {
                std::thread::yield_now();
            }
            for task in &crowd {
                task.watched().until_asleep(Call::Read, &r);
            }
        }
        assert_switches(subject, total_sleeps(&crowd) - before);
        drop(w);
    });
}

fn paced_writers(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    fill(&w, PAGE);
    let served = AtomicUsize::new(0);
    let body = || {
        while write(&w, &[b'x'; PAGE]) == Ok(PAGE) {
            served.fetch_add(1, Ordering::SeqCst);
        }
    };
    scope(|s| {
        let crowd: Vec<_> = (0..CROWD)
            .map(|_| Task::asleep_in(s, Call::Write, &w, body))
            .collect();
        let before = total_sleeps(&crowd);
        for event in 0..EVENTS as usize {
            read_exact(&r, PAGE);
            while served.load(Ordering::SeqCst) == event {
                std::thread::yield_now();
            }
            for task in &crowd {
                task.watched().until_asleep(Call::Write, &w);
            }
        }
        assert_switches(subject, total_sleeps(&crowd) - before);
        drop(r);
    });
}

// Without exclusive waits each hop may run all; how many it does is up to the scheduler, so only
// arrival is asked for then.
fn racing_token(subject: &Subject) {
    const TASKS: usize = 32;
    const HOPS: usize = 1_000;
    let Pipe { read: r, write: w } = subject.pipe();
    let hops = AtomicUsize::new(0);
    let body = || {
        let myself = Watched::thread(gettid().as_raw_nonzero().get());
        let before = myself.sleeps();
        loop {
            assert_eq!(read(&r, 1).as_deref(), Ok(&b"t"[..]));
            let hop = hops.fetch_add(1, Ordering::SeqCst);
            write(&w, b"t").unwrap();
            if hop >= HOPS {
                return myself.sleeps() - before;
            }
        }
    };
    scope(|s| {
        let crowd: Vec<_> = (0..TASKS)
            .map(|_| Task::asleep_in(s, Call::Read, &r, body))
            .collect();
        write(&w, b"t").unwrap();
        let sleeps: u64 = crowd.into_iter().map(Task::join).sum();
        if subject.waits_exclusively() {
            assert!(
                sleeps <= 3 * (HOPS + TASKS) as u64,
                "{sleeps} switches for {HOPS} hops"
            );
        }
    });
    assert_eq!(queued(&r), 1, "one token, whoever had it");
}

fn reader_hand_over(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    scope(|s| {
        let crowd: Vec<_> = (0..CROWD)
            .map(|_| Task::asleep_in(s, Call::Read, &r, || read(&r, PAGE)))
            .collect();
        assert_eq!(write(&w, &[b'x'; CROWD * PAGE]), Ok(CROWD * PAGE));
        for task in crowd {
            assert_eq!(task.join().map(|data| data.len()), Ok(PAGE));
        }
    });
    assert_eq!(queued(&r), 0);
}

fn writer_hand_over(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let full = fill(&w, PAGE);
    scope(|s| {
        let crowd: Vec<_> = (0..CROWD)
            .map(|_| Task::asleep_in(s, Call::Write, &w, || write(&w, &[b'x'; PAGE])))
            .collect();
        assert_eq!(read(&r, full).map(|data| data.len()), Ok(full));
        for task in crowd {
            assert_eq!(task.join(), Ok(PAGE));
        }
    });
    assert_eq!(queued(&r), CROWD * PAGE);
}

// Sleepers with different needs: a wake-up that reaches one who cannot use it must go on to one who
// can.
fn mixed_sizes(subject: &Subject) {
    const EACH: usize = 400_000;
    const SIZES: [usize; 4] = [1_000, 4_096, 50_000, 7_777];
    let Pipe { read: r, write: w } = subject.pipe();
    let received = AtomicUsize::new(0);
    scope(|s| {
        let writers = SIZES.map(|size| {
            let w = w.try_clone().expect("dup");
            Task::spawn(s, move || {
                let mut left = EACH;
                while left > 0 {
                    left -= write(&w, &vec![b'x'; size.min(left)]).unwrap();
                }
            })
        });
        let readers = SIZES.map(|size| {
            let (r, received) = (&r, &received);
            Task::spawn(s, move || {
                loop {
                    match read(r, size).unwrap().len() {
                        0 => return,
                        count => _ = received.fetch_add(count, Ordering::Relaxed),
                    }
                }
            })
        });
        drop(w);
        writers.into_iter().for_each(Task::join);
        readers.into_iter().for_each(Task::join);
    });
    assert_eq!(received.into_inner(), SIZES.len() * EACH);
}
