// SPDX-License-Identifier: GPL-2.0
//! Splices that wait: for what, whom they wake, and that nobody is held up meanwhile.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{scope, yield_now};

use rustix::event::PollFlags;
use rustix::io::{Errno, Result};

use crate::case::{Area, Case};
use crate::end::{
    CAPACITY, PAGE, fill, poll_wait, queued, read, read_exact, set_nonblocking, write,
};
use crate::signal::{self, Interrupted};
use crate::subject::{Pipe, Subject};
use crate::task::{Call, Task};
use crate::transfer::{ends, splice, try_splice};

/// Cases about splices that wait.
pub const AREA: Area = Area {
    name: "splice_waits",
    cases: &[
        Case::every("a splice from an empty pipe waits for data", waits_for_data),
        Case::fifo("a splice from an empty FIFO waits for data", waits_for_data),
        Case::every("a splice to a full pipe waits for room", waits_for_room),
        Case::fifo("a splice to a full FIFO waits for room", waits_for_room),
        Case::every(
            "a waiting splice from a pipe ends with its last writer",
            writer_goes,
        ),
        Case::every(
            "a waiting splice to a pipe is EPIPE when its last reader goes",
            reader_goes,
        ),
        Case::every(
            "others use the native pipe while a splice waits for data or room",
            nobody_is_held_up,
        ),
        Case::fifo(
            "others use the native pipe while a splice waits for a FIFO",
            nobody_is_held_up,
        ),
        Case::every(
            "a splice that waited for data waits for the native pipe's room as well",
            data_then_room,
        ),
        Case::every("a signal ends a waiting splice with EINTR", interrupted),
        Case::every(
            "a waiting splice restarts after a handler with SA_RESTART",
            restarts,
        ),
        Case::every("nothing waits that must not", nonblocking),
        Case::every(
            "a splice wakes who sleeps for its data or its room",
            wakes_sleepers,
        ),
        Case::every(
            "a splice wakes who polls for its data or its room",
            wakes_pollers,
        ),
        Case::long(
            "readers, writers and splices on one pipe leave nobody asleep",
            crowd,
        ),
        Case::long("bytes circle between two pipes without a dead-lock", circle),
    ],
};

const SIGNAL: i32 = libc::SIGUSR1;

fn splicing<'scope>(
    s: &'scope std::thread::Scope<'scope, '_>,
    from: &'scope OwnedFd,
    to: &'scope OwnedFd,
) -> Task<'scope, Result<usize>> {
    Task::asleep_in(s, Call::Splice, from, move || {
        splice(from, to, 2 * CAPACITY)
    })
}

fn waits_for_data(subject: &Subject) {
    let ours = ends(subject);
    let native = Subject::Native.pipe();
    for (from, to) in [(&ours, &native), (&native, &ours)] {
        scope(|s| {
            let waiting = splicing(s, &from.read, &to.write);
            write(&from.write, b"at last").unwrap();
            assert_eq!(waiting.join(), Ok(7));
        });
        assert_eq!(read(&to.read, 100).as_deref(), Ok(&b"at last"[..]));
    }
}

fn waits_for_room(subject: &Subject) {
    let ours = ends(subject);
    let native = Subject::Native.pipe();
    for (from, to) in [(&ours, &native), (&native, &ours)] {
        fill(&to.write, PAGE);
        write(&from.write, b"fits now").unwrap();
        scope(|s| {
            let waiting = splicing(s, &from.read, &to.write);
            read_exact(&to.read, PAGE);
            assert_eq!(waiting.join(), Ok(8));
        });
        read_exact(&to.read, CAPACITY - PAGE);
        assert_eq!(read(&to.read, 100).as_deref(), Ok(&b"fits now"[..]));
    }
}

fn writer_goes(subject: &Subject) {
    let Pipe { read: r, write: w } = ends(subject);
    let native = Subject::Native.pipe();
    scope(|s| {
        let waiting = splicing(s, &r, &native.write);
        drop(w);
        assert_eq!(waiting.join(), Ok(0));
    });
}

fn reader_goes(subject: &Subject) {
    signal::count(libc::SIGPIPE, Interrupted::Restarts);
    let Pipe { read: r, write: w } = ends(subject);
    let native = Subject::Native.pipe();
    fill(&w, PAGE);
    write(&native.write, b"stays").unwrap();
    scope(|s| {
        let waiting = splicing(s, &native.read, &w);
        drop(r);
        assert_eq!(waiting.join(), Err(Errno::PIPE));
    });
    assert_eq!(signal::handled(), 1);
    assert_eq!(queued(&native.read), 5);
}

// The subject's pipe holds the splice up; the other is as free as ever.
fn nobody_is_held_up(subject: &Subject) {
    let native = Subject::Native.pipe();
    let ours = ends(subject);
    let talk = || {
        assert_eq!(write(&native.write, b"free"), Ok(4));
        assert_eq!(queued(&native.read), 4 + queued(&native.read) - 4);
        assert_eq!(Subject::Native.size(&native.read), Ok(CAPACITY));
        Subject::Native
            .resize(&native.read, 2 * CAPACITY as u32)
            .unwrap();
        Subject::Native
            .resize(&native.read, CAPACITY as u32)
            .unwrap();
    };
    scope(|s| {
        let waiting = splicing(s, &ours.read, &native.write);
        for _ in 0..100 {
            talk();
            assert_eq!(read(&native.read, 100).as_deref(), Ok(&b"free"[..]));
        }
        waiting.watched().until_asleep(Call::Splice, &ours.read);
        write(&ours.write, b"x").unwrap();
        assert_eq!(waiting.join(), Ok(1));
    });
    read_exact(&native.read, 1);

    fill(&ours.write, PAGE);
    write(&native.write, b"y").unwrap();
    scope(|s| {
        let waiting = splicing(s, &native.read, &ours.write);
        talk();
        waiting.watched().until_asleep(Call::Splice, &native.read);
        read_exact(&ours.read, PAGE);
        assert_eq!(waiting.join(), Ok(5));
    });
    read_exact(&ours.read, CAPACITY - PAGE);
    assert_eq!(read_exact(&ours.read, 5), b"yfree");
}

// While it sleeps for data the room that it had been promised goes to another.
fn data_then_room(subject: &Subject) {
    let ours = ends(subject);
    let native = Subject::Native.pipe();
    scope(|s| {
        let waiting = splicing(s, &ours.read, &native.write);
        fill(&native.write, PAGE);
        let before = waiting.watched().sleeps();
        write(&ours.write, b"for two readers").unwrap();
        while waiting.watched().sleeps() == before {
            yield_now();
        }
        waiting.watched().until_asleep(Call::Splice, &ours.read);
        assert!(!waiting.is_finished());
        // What the splice could not take another may.
        assert_eq!(read(&ours.read, 8).as_deref(), Ok(&b"for two "[..]));
        read_exact(&native.read, PAGE);
        assert_eq!(waiting.join(), Ok(7));
    });
    read_exact(&native.read, CAPACITY - PAGE);
    assert_eq!(read(&native.read, 100).as_deref(), Ok(&b"readers"[..]));
}

// A splice that waits for data, and one that waits for room.
fn with_waiting(subject: &Subject, body: impl Fn(&Task<'_, Result<usize>>, &OwnedFd, bool)) {
    let ours = ends(subject);
    let native = Subject::Native.pipe();
    scope(|s| {
        let waiting = splicing(s, &ours.read, &native.write);
        body(&waiting, &ours.read, false);
        if waiting.is_finished() {
            assert_eq!(waiting.join(), Err(Errno::INTR));
        } else {
            write(&ours.write, b"x").unwrap();
            assert_eq!(waiting.join(), Ok(1));
            read_exact(&native.read, 1);
        }
    });
    fill(&ours.write, PAGE);
    write(&native.write, b"stays").unwrap();
    let left = queued(&native.read);
    scope(|s| {
        let waiting = splicing(s, &native.read, &ours.write);
        body(&waiting, &native.read, true);
        if waiting.is_finished() {
            assert_eq!(waiting.join(), Err(Errno::INTR));
            assert_eq!(queued(&native.read), left);
        } else {
            read_exact(&ours.read, PAGE);
            assert_eq!(waiting.join(), Ok(left));
        }
    });
}

fn interrupted(subject: &Subject) {
    signal::count(SIGNAL, Interrupted::Fails);
    with_waiting(subject, |waiting, _, _| {
        signal::send(SIGNAL, waiting.watched());
        while !waiting.is_finished() {
            yield_now();
        }
    });
}

fn restarts(subject: &Subject) {
    signal::count(SIGNAL, Interrupted::Restarts);
    with_waiting(subject, |waiting, on, second| {
        signal::send(SIGNAL, waiting.watched());
        while signal::handled() == usize::from(second) {
            yield_now();
        }
        waiting.watched().until_asleep(Call::Splice, on);
    });
}

fn nonblocking(subject: &Subject) {
    let ours = ends(subject);
    let native = Subject::Native.pipe();
    for (from, to) in [(&ours, &native), (&native, &ours)] {
        assert_eq!(try_splice(&from.read, &to.write, 1), Err(Errno::AGAIN));
        for end in [&from.read, &to.write] {
            set_nonblocking(end, true);
            assert_eq!(
                splice(&from.read, &to.write, 1),
                Err(Errno::AGAIN),
                "no data"
            );
            set_nonblocking(end, false);
        }
        write(&from.write, b"x").unwrap();
        fill(&to.write, PAGE);
        assert_eq!(try_splice(&from.read, &to.write, 1), Err(Errno::AGAIN));
        // Before it asks the source, the kernel waits for room in a pipe of its own, and looks at no
        // flag of the source.
        let to_native = subject.kind() == "altpipe" && std::ptr::eq(to, &native);
        for end in [Some(&to.write), (!to_native).then_some(&from.read)]
            .into_iter()
            .flatten()
        {
            set_nonblocking(end, true);
            assert_eq!(
                splice(&from.read, &to.write, 1),
                Err(Errno::AGAIN),
                "no room"
            );
            set_nonblocking(end, false);
        }
        read_exact(&to.read, CAPACITY);
        assert_eq!(try_splice(&from.read, &to.write, 1), Ok(1));
        read_exact(&to.read, 1);
    }
}

fn wakes_sleepers(subject: &Subject) {
    let ours = ends(subject);
    let native = Subject::Native.pipe();
    scope(|s| {
        let reader = Task::asleep_in(s, Call::Read, &ours.read, || read(&ours.read, 100));
        write(&native.write, b"x").unwrap();
        assert_eq!(splice(&native.read, &ours.write, 1), Ok(1));
        assert_eq!(reader.join().as_deref(), Ok(&b"x"[..]));
    });
    fill(&ours.write, PAGE);
    scope(|s| {
        let writer = Task::asleep_in(s, Call::Write, &ours.write, || write(&ours.write, b"y"));
        assert_eq!(splice(&ours.read, &native.write, PAGE), Ok(PAGE));
        assert_eq!(writer.join(), Ok(1));
    });
}

fn wakes_pollers(subject: &Subject) {
    let ours = ends(subject);
    let native = Subject::Native.pipe();
    scope(|s| {
        let poller = Task::asleep_in(s, Call::Poll, &ours.read, || {
            poll_wait(&ours.read, PollFlags::IN)
        });
        write(&native.write, b"x").unwrap();
        assert_eq!(splice(&native.read, &ours.write, 1), Ok(1));
        assert_eq!(poller.join(), PollFlags::IN);
    });
    read_exact(&ours.read, 1);
    fill(&ours.write, PAGE);
    scope(|s| {
        let poller = Task::asleep_in(s, Call::Poll, &ours.write, || {
            poll_wait(&ours.write, PollFlags::OUT)
        });
        assert_eq!(splice(&ours.read, &native.write, PAGE), Ok(PAGE));
        assert_eq!(poller.join(), PollFlags::OUT);
    });
}

// Each side of the pipe has two who read or write and two who splice, in pieces that leave something
// behind: whoever is woken alone has to pass it on.
fn crowd(subject: &Subject) {
    const EACH: usize = 60_000;
    let Pipe { read: r, write: w } = subject.pipe();
    let r = &r;
    let got = &AtomicU64::new(0);
    scope(|s| {
        for size in [1000, 7000] {
            let w = w.try_clone().unwrap();
            Task::spawn(s, move || {
                let mut left = EACH;
                while left > 0 {
                    left -= write(&w, &vec![b'x'; size.min(left)]).unwrap();
                }
            });
        }
        for size in [900, 20_000] {
            let w = w.try_clone().unwrap();
            Task::spawn(s, move || {
                let source = Subject::Native.pipe();
                let mut left = EACH;
                while left > 0 {
                    let mut piece = write(&source.write, &vec![b'x'; size.min(left)]).unwrap();
                    left -= piece;
                    while piece > 0 {
                        piece -= splice(&source.read, &w, piece).unwrap();
                    }
                }
            });
        }
        drop(w);
        for size in [100, 5000] {
            Task::spawn(s, move || {
                loop {
                    match read(r, size).unwrap().len() {
                        0 => break,
                        count => got.fetch_add(count as u64, Ordering::Relaxed),
                    };
                }
            });
        }
        for size in [300, 9000] {
            Task::spawn(s, move || {
                let sink = Subject::Native.pipe();
                loop {
                    match splice(r, &sink.write, size).unwrap() {
                        0 => break,
                        count => {
                            read_exact(&sink.read, count);
                            got.fetch_add(count as u64, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    assert_eq!(got.load(Ordering::Relaxed), 4 * EACH as u64);
}

fn circle(subject: &Subject) {
    const TURNS: usize = 2_000;
    let ours = subject.pipe();
    let native = Subject::Native.pipe();
    write(&ours.write, &[b'a'; 3 * PAGE]).unwrap();
    write(&native.write, &[b'b'; 3 * PAGE]).unwrap();
    scope(|s| {
        for (from, to, size) in [
            (&ours.read, &native.write, 1000),
            (&native.read, &ours.write, 1000),
            (&ours.read, &native.write, 2 * PAGE),
            (&native.read, &ours.write, 2 * PAGE),
        ] {
            Task::spawn(s, move || {
                for _ in 0..TURNS {
                    match try_splice(from, to, size) {
                        Ok(_) | Err(Errno::AGAIN) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let left = queued(&ours.read) + queued(&native.read);
    assert_eq!(left, 6 * PAGE);
    let mut bytes = read_exact(&ours.read, queued(&ours.read));
    bytes.extend(read_exact(&native.read, queued(&native.read)));
    assert_eq!(bytes.iter().filter(|&&byte| byte == b'a').count(), 3 * PAGE);
}
