// SPDX-License-Identifier: GPL-2.0
//! Opening and closing by name, as fifo(7) has it.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep, yield_now};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::fs::{OFlags, SeekFrom, fcntl_setfl, seek};
use rustix::io::{Errno, Result};

use crate::case::{Area, Case};
use crate::end::{
    CAPACITY, fill, poll_now, poll_wait, queued, read, read_exact, set_nonblocking, write,
};
use crate::process::Process;
use crate::record::{Ledger, Record};
use crate::signal::{self, Interrupted};
use crate::subject::Subject;
use crate::task::{Call, Task};

/// Cases about FIFOs, each held against one of mkfifo's.
pub const AREA: Area = Area {
    name: "fifo",
    cases: &[
        Case::fifo("an open for reading waits for a writer", reader_waits),
        Case::fifo("an open for writing waits for a reader", writer_waits),
        Case::fifo(
            "a nonblocking open for reading does not wait, and reads nothing before a writer comes",
            reader_need_not_wait,
        ),
        Case::fifo(
            "a nonblocking open for writing is ENXIO without a reader, and leaves nothing behind",
            no_reader,
        ),
        Case::fifo(
            "a reader who still waits is reader enough for a nonblocking writer",
            waiting_reader_counts,
        ),
        Case::fifo(
            "an open for both never waits and talks to itself",
            both_ways,
        ),
        Case::fifo(
            "an open for both lets waiting readers and writers go on",
            both_is_partner,
        ),
        Case::fifo(
            "one writer lets all waiting readers go on",
            many_readers_wait,
        ),
        Case::fifo(
            "one reader lets all waiting writers go on",
            many_writers_wait,
        ),
        Case::fifo(
            "a writer who comes and goes at once has been a partner, and his bytes stay",
            fleeting_writer,
        ),
        Case::fifo(
            "a reader who comes and goes at once has been a partner",
            fleeting_reader,
        ),
        Case::fifo(
            "a signal ends a waiting open for reading with EINTR, and undoes it",
            reader_interrupted,
        ),
        Case::fifo(
            "a signal ends a waiting open for writing with EINTR, and undoes it",
            writer_interrupted,
        ),
        Case::fifo(
            "a waiting open goes on waiting after a handler with SA_RESTART",
            open_restarts,
        ),
        Case::fifo(
            "a process killed in a waiting open is no reader any more",
            killed_opener,
        ),
        Case::fifo("the last close discards what is left", discard),
        Case::fifo(
            "what is left stays as long as any file is open",
            kept_while_open,
        ),
        Case::fifo(
            "a reader at the end of the stream reads on when another writer comes",
            writer_returns,
        ),
        Case::fifo(
            "a writer without readers is EPIPE, and writes on when another reader comes",
            reader_returns,
        ),
        Case::fifo(
            "poll reports no hang-up before the first writer, and then only without one",
            no_early_hangup,
        ),
        Case::fifo(
            "poll reports no hang-up to who came after the last writer went",
            no_stale_hangup,
        ),
        Case::fifo(
            "a poller without a writer wakes when one has come and written",
            poller_meets_writer,
        ),
        Case::fifo(
            "a poller is woken with a hang-up when the last writer goes",
            poller_loses_writer,
        ),
        Case::fifo(
            "a writer polls an error without readers, and none once one is back",
            writer_polls,
        ),
        Case::fifo(
            "the end of the stream comes with the last of several writers",
            last_of_writers,
        ),
        Case::fifo(
            "readers and writers in numbers share one stream of whole records",
            shared_stream,
        ),
        Case::fifo(
            "opens and closes of all kinds at once leave nobody waiting",
            storm,
        ),
        Case::fifo(
            "packets are EINVAL in open(2) and can be switched to by fcntl(2)",
            packets,
        ),
        Case::fifo(
            "an open for neither direction is EINVAL; O_PATH counts for nothing",
            no_direction,
        ),
        Case::fifo("there is no position", no_position),
    ],
};

const SIGNAL: i32 = libc::SIGUSR1;

// What only the right bytes can follow: the pipe is at the beginning of a stream.
fn assert_talks(w: impl AsFd, r: impl AsFd) {
    assert_eq!(write(w, b"hello"), Ok(5));
    assert_eq!(read(r, 64).as_deref(), Ok(&b"hello"[..]));
}

fn reader_waits(subject: &Subject) {
    let fifo = subject.fifo();
    scope(|s| {
        let reader = Task::opening(s, || fifo.open_reader());
        let w = fifo.open_writer().unwrap();
        let r = reader.join().unwrap();
        assert_talks(&w, &r);
        drop(w);
        assert_eq!(read(&r, 64).as_deref(), Ok(&b""[..]));
    });
}

fn writer_waits(subject: &Subject) {
    let fifo = subject.fifo();
    scope(|s| {
        let writer = Task::opening(s, || fifo.open_writer());
        let r = fifo.open_reader().unwrap();
        let w = writer.join().unwrap();
        assert_talks(&w, &r);
        drop(r);
        signal::count(libc::SIGPIPE, Interrupted::Restarts);
        assert_eq!(write(&w, b"x"), Err(Errno::PIPE));
        assert_eq!(signal::handled(), 1);
    });
}

fn reader_need_not_wait(subject: &Subject) {
    let fifo = subject.fifo();
    let r = fifo.try_reader();
    assert_eq!(read(&r, 64).as_deref(), Ok(&b""[..]));
    set_nonblocking(&r, false);
    assert_eq!(
        read(&r, 64).as_deref(),
        Ok(&b""[..]),
        "without a writer a blocking read does not wait either"
    );
    let w = fifo.open_writer().unwrap();
    set_nonblocking(&r, true);
    assert_eq!(read(&r, 64), Err(Errno::AGAIN));
    assert_talks(&w, &r);
}

fn no_reader(subject: &Subject) {
    let fifo = subject.fifo();
    for _ in 0..3 {
        assert_eq!(fifo.try_writer().err(), Some(Errno::NXIO));
    }
    let r = fifo.try_reader();
    assert_eq!(
        read(&r, 64).as_deref(),
        Ok(&b""[..]),
        "a writer that failed to open is none"
    );
    assert_eq!(poll_now(&r, PollFlags::IN), PollFlags::empty());
    let w = fifo.try_writer().unwrap();
    assert_talks(&w, &r);
    drop(r);
    assert_eq!(
        fifo.try_writer().err(),
        Some(Errno::NXIO),
        "another writer is no reader"
    );
}

fn waiting_reader_counts(subject: &Subject) {
    let fifo = subject.fifo();
    scope(|s| {
        let reader = Task::opening(s, || fifo.open_reader());
        let w = fifo.try_writer().unwrap();
        assert_talks(&w, reader.join().unwrap());
    });
}

fn both_ways(subject: &Subject) {
    let fifo = subject.fifo();
    for flags in [OFlags::empty(), OFlags::NONBLOCK] {
        let both = fifo.open(OFlags::RDWR | flags).unwrap();
        assert_talks(&both, &both);
        assert_eq!(
            poll_now(&both, PollFlags::IN | PollFlags::OUT),
            PollFlags::OUT
        );
        set_nonblocking(&both, true);
        assert_eq!(read(&both, 1), Err(Errno::AGAIN));
        assert_eq!(write(&both, &[b'x'; 2 * CAPACITY]), Ok(CAPACITY));
        assert_eq!(write(&both, b"x"), Err(Errno::AGAIN));
    }
}

fn both_is_partner(subject: &Subject) {
    let fifo = subject.fifo();
    scope(|s| {
        let reader = Task::opening(s, || fifo.open_reader());
        let both = fifo.open_both();
        let r = reader.join().unwrap();
        assert_talks(&both, &r);
    });
    scope(|s| {
        let writer = Task::opening(s, || fifo.open_writer());
        let both = fifo.open_both();
        let w = writer.join().unwrap();
        assert_talks(&w, &both);
    });
}

fn many_readers_wait(subject: &Subject) {
    let fifo = subject.fifo();
    scope(|s| {
        let readers: Vec<_> = (0..5)
            .map(|_| Task::opening(s, || fifo.open_reader()))
            .collect();
        let w = fifo.open_writer().unwrap();
        let ends: Vec<_> = readers.into_iter().map(|r| r.join().unwrap()).collect();
        for r in &ends {
            assert_talks(&w, r);
        }
    });
}

fn many_writers_wait(subject: &Subject) {
    let fifo = subject.fifo();
    scope(|s| {
        let writers: Vec<_> = (0..5)
            .map(|_| Task::opening(s, || fifo.open_writer()))
            .collect();
        let r = fifo.open_reader().unwrap();
        let ends: Vec<_> = writers.into_iter().map(|w| w.join().unwrap()).collect();
        for w in &ends {
            assert_talks(w, &r);
        }
    });
}

fn fleeting_writer(subject: &Subject) {
    let fifo = subject.fifo();
    for _ in 0..50 {
        scope(|s| {
            let reader = Task::opening(s, || fifo.open_reader());
            let w = fifo.try_writer().unwrap();
            write(&w, b"gone").unwrap();
            drop(w);
            let r = reader.join().unwrap();
            assert_eq!(read_exact(&r, 64), b"gone");
        });
    }
}

fn fleeting_reader(subject: &Subject) {
    let fifo = subject.fifo();
    signal::count(libc::SIGPIPE, Interrupted::Restarts);
    for _ in 0..50 {
        scope(|s| {
            let writer = Task::opening(s, || fifo.open_writer());
            drop(fifo.try_reader());
            let w = writer.join().unwrap();
            assert_eq!(write(&w, b"x"), Err(Errno::PIPE));
        });
    }
}

fn reader_interrupted(subject: &Subject) {
    let fifo = subject.fifo();
    signal::count(SIGNAL, Interrupted::Fails);
    scope(|s| {
        let reader = Task::opening(s, || fifo.open_reader());
        signal::send(SIGNAL, reader.watched());
        assert_eq!(reader.join().err(), Some(Errno::INTR));
    });
    assert_eq!(
        fifo.try_writer().err(),
        Some(Errno::NXIO),
        "no reader was left behind"
    );
}

fn writer_interrupted(subject: &Subject) {
    let fifo = subject.fifo();
    signal::count(SIGNAL, Interrupted::Fails);
    scope(|s| {
        let writer = Task::opening(s, || fifo.open_writer());
        signal::send(SIGNAL, writer.watched());
        assert_eq!(writer.join().err(), Some(Errno::INTR));
    });
    let r = fifo.try_reader();
    set_nonblocking(&r, false);
    assert_eq!(
        read(&r, 1).as_deref(),
        Ok(&b""[..]),
        "no writer was left behind"
    );
}

fn open_restarts(subject: &Subject) {
    let fifo = subject.fifo();
    signal::count(SIGNAL, Interrupted::Restarts);
    scope(|s| {
        let reader = Task::opening(s, || fifo.open_reader());
        for sent in 1..=3 {
            signal::send(SIGNAL, reader.watched());
            while signal::handled() < sent {
                yield_now();
            }
            reader.watched().until_opening();
        }
        let w = fifo.open_writer().unwrap();
        assert_talks(&w, reader.join().unwrap());
    });
}

fn killed_opener(subject: &Subject) {
    let fifo = subject.fifo();
    let child = Process::fork(|| drop(fifo.open_reader()));
    child.watched().until_opening();
    child.kill();
    assert_eq!(fifo.try_writer().err(), Some(Errno::NXIO));
}

fn discard(subject: &Subject) {
    let fifo = subject.fifo();
    for _ in 0..3 {
        let both = fifo.open_both();
        assert_eq!(queued(&both), 0);
        assert_ne!(fill(&both, 1000), 0);
    }
    let r = fifo.try_reader();
    assert_eq!(read(&r, 64).as_deref(), Ok(&b""[..]));
    assert_eq!(poll_now(&r, PollFlags::IN), PollFlags::empty());
}

fn kept_while_open(subject: &Subject) {
    let fifo = subject.fifo();
    let r = fifo.try_reader();
    let w = fifo.open_writer().unwrap();
    write(&w, b"abc").unwrap();
    drop(w);
    assert_eq!(queued(&r), 3);
    let other = fifo.try_reader();
    drop(r);
    assert_eq!(read(&other, 1).as_deref(), Ok(&b"a"[..]));
    let w = fifo.open_writer().unwrap();
    drop(other);
    // The writer alone keeps what is left.
    let r = fifo.open_reader().unwrap();
    assert_eq!(read(&r, 64).as_deref(), Ok(&b"bc"[..]));
    drop(w);
}

fn writer_returns(subject: &Subject) {
    let fifo = subject.fifo();
    let r = fifo.try_reader();
    set_nonblocking(&r, false);
    for text in [&b"first"[..], b"second", b"third"] {
        let w = fifo.open_writer().unwrap();
        scope(|s| {
            let reader = Task::asleep_in(s, Call::Read, &r, || read(&r, 64));
            write(&w, text).unwrap();
            assert_eq!(reader.join().as_deref(), Ok(text));
        });
        drop(w);
        assert_eq!(read(&r, 64).as_deref(), Ok(&b""[..]));
    }
}

fn reader_returns(subject: &Subject) {
    let fifo = subject.fifo();
    signal::count(libc::SIGPIPE, Interrupted::Restarts);
    let r = fifo.try_reader();
    let w = fifo.open_writer().unwrap();
    write(&w, b"abc").unwrap();
    drop(r);
    assert_eq!(write(&w, b"lost"), Err(Errno::PIPE));
    let r = fifo.open_reader().unwrap();
    assert_eq!(write(&w, b"def"), Ok(3));
    assert_eq!(read_exact(&r, 6), b"abcdef");
}

fn no_early_hangup(subject: &Subject) {
    let fifo = subject.fifo();
    let r = fifo.try_reader();
    for events in [PollFlags::empty(), PollFlags::IN] {
        assert_eq!(poll_now(&r, events), PollFlags::empty());
    }
    let w = fifo.open_writer().unwrap();
    assert_eq!(poll_now(&r, PollFlags::IN), PollFlags::empty());
    drop(w);
    assert_eq!(poll_now(&r, PollFlags::empty()), PollFlags::HUP);
    let w = fifo.open_writer().unwrap();
    assert_eq!(poll_now(&r, PollFlags::IN), PollFlags::empty());
    write(&w, b"x").unwrap();
    drop(w);
    assert_eq!(poll_now(&r, PollFlags::IN), PollFlags::IN | PollFlags::HUP);
}

fn no_stale_hangup(subject: &Subject) {
    let fifo = subject.fifo();
    let old = fifo.try_reader();
    drop(fifo.open_writer().unwrap());
    let new = fifo.try_reader();
    let polled = || (poll_now(&old, PollFlags::IN), poll_now(&new, PollFlags::IN));
    assert_eq!(polled(), (PollFlags::HUP, PollFlags::empty()));
    let w = fifo.open_writer().unwrap();
    assert_eq!(polled(), (PollFlags::empty(), PollFlags::empty()));
    drop(w);
    assert_eq!(polled(), (PollFlags::HUP, PollFlags::HUP));
    // A writer that needs no partner counts as well.
    let newer = fifo.try_reader();
    drop(fifo.open_both());
    assert_eq!(poll_now(&newer, PollFlags::IN), PollFlags::HUP);
}

fn poller_meets_writer(subject: &Subject) {
    let fifo = subject.fifo();
    let r = fifo.try_reader();
    scope(|s| {
        let poller = Task::asleep_in(s, Call::Poll, &r, || poll_wait(&r, PollFlags::IN));
        let w = fifo.open_writer().unwrap();
        poller.watched().until_asleep(Call::Poll, &r);
        write(&w, b"x").unwrap();
        assert_eq!(poller.join(), PollFlags::IN);
    });
}

fn poller_loses_writer(subject: &Subject) {
    let fifo = subject.fifo();
    let r = fifo.try_reader();
    scope(|s| {
        let poller = Task::asleep_in(s, Call::Poll, &r, || poll_wait(&r, PollFlags::IN));
        let w = fifo.open_writer().unwrap();
        let both = fifo.open_both();
        drop(w);
        poller.watched().until_asleep(Call::Poll, &r);
        drop(both);
        assert_eq!(poller.join(), PollFlags::HUP);
    });
}

fn writer_polls(subject: &Subject) {
    let fifo = subject.fifo();
    let r = fifo.try_reader();
    let w = fifo.open_writer().unwrap();
    assert_eq!(poll_now(&w, PollFlags::OUT), PollFlags::OUT);
    drop(r);
    assert_eq!(
        poll_now(&w, PollFlags::OUT),
        PollFlags::OUT | PollFlags::ERR
    );
    let r = fifo.open_reader().unwrap();
    assert_eq!(poll_now(&w, PollFlags::OUT), PollFlags::OUT);
    fill(&w, 4096);
    scope(|s| {
        let poller = Task::asleep_in(s, Call::Poll, &w, || poll_wait(&w, PollFlags::OUT));
        drop(r);
        assert_eq!(poller.join(), PollFlags::ERR);
    });
}

fn last_of_writers(subject: &Subject) {
    let fifo = subject.fifo();
    let ends: Vec<_> = (0..3).map(|_| fifo.try_reader()).collect();
    let (first, second) = (fifo.open_writer().unwrap(), fifo.open_writer().unwrap());
    ends.iter().for_each(|r| set_nonblocking(r, false));
    scope(|s| {
        let readers: Vec<_> = ends
            .iter()
            .map(|r| Task::asleep_in(s, Call::Read, r, move || read(r, 1)))
            .collect();
        drop(first);
        for (reader, r) in readers.iter().zip(&ends) {
            reader.watched().until_asleep(Call::Read, r);
        }
        drop(second);
        for reader in readers {
            assert_eq!(reader.join().as_deref(), Ok(&b""[..]));
        }
    });
}

// A quarter of a page: records neither straddle pages nor are they torn by reads of their size.
const LEN: u16 = 1024;

fn shared_stream(subject: &Subject) {
    const WRITERS: u16 = 4;
    const READERS: usize = 3;
    const RECORDS: u32 = 300;
    let fifo = subject.fifo();
    // Keeps the stream from ending before the last writer has come.
    let keeper = fifo.open_both();
    let parts = scope(|s| {
        let readers: Vec<_> = (0..READERS)
            .map(|_| Task::spawn(s, || drain(&fifo.open_reader().unwrap())))
            .collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let fifo = &fifo;
                Task::spawn(s, move || {
                    let w = fifo.open_writer().unwrap();
                    for number in 0..RECORDS {
                        let record = Record {
                            writer,
                            len: LEN,
                            number,
                        };
                        assert_eq!(write(&w, &record.bytes()), Ok(LEN.into()));
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(Task::join);
        drop(keeper);
        readers.into_iter().map(Task::join).collect::<Vec<_>>()
    });

    for part in &parts {
        let order = |writer| part.iter().filter(move |record| record.writer == writer);
        assert!((0..WRITERS).all(|writer| order(writer).is_sorted_by_key(|record| record.number)));
    }
    let mut all: Vec<_> = parts.into_iter().flatten().collect();
    all.sort_by_key(|record| (record.writer, record.number));
    let mut ledger = Ledger::new(WRITERS.into());
    all.iter().for_each(|&record| ledger.enter(record));
    assert_eq!(all.len(), usize::from(WRITERS) * RECORDS as usize);
}

// Reads records, each in one call, up to the end of the stream.
fn drain(r: &OwnedFd) -> Vec<Record> {
    let mut seen = Vec::new();
    loop {
        let bytes = read(r, LEN.into()).unwrap();
        if bytes.is_empty() {
            return seen;
        }
        let record = Record::at_front(&bytes).expect("a whole record");
        assert_eq!(bytes.len(), usize::from(record.len));
        seen.push(record);
    }
}

fn storm(subject: &Subject) {
    let fifo = subject.fifo();
    let done = AtomicBool::new(false);
    // Each of these waits again and again for the others, who come and go.
    let busy = |open: &dyn Fn() -> Result<OwnedFd>| {
        let mut opened = 0;
        while !done.load(Ordering::SeqCst) {
            match open() {
                Ok(_) => opened += 1,
                Err(error) => assert_eq!(error, Errno::NXIO),
            }
        }
        opened
    };
    scope(|s| {
        let tasks: Vec<_> = (0..3)
            .flat_map(|_| {
                [
                    Task::spawn(s, || busy(&|| fifo.open_reader())),
                    Task::spawn(s, || busy(&|| fifo.open_writer())),
                ]
            })
            .collect();
        Task::spawn(s, || busy(&|| fifo.try_writer()));
        sleep(Duration::from_millis(300));
        done.store(true, Ordering::SeqCst);
        // Who waits now waits for this.
        let both = fifo.open_both();
        let opened: Vec<u32> = tasks.into_iter().map(Task::join).collect();
        assert!(opened.iter().all(|&count| count > 0), "{opened:?}");
        drop(both);
    });
    assert_eq!(fifo.try_writer().err(), Some(Errno::NXIO));
    assert_eq!(queued(fifo.try_reader()), 0);
}

fn packets(subject: &Subject) {
    let fifo = subject.fifo();
    assert_eq!(
        fifo.open(OFlags::RDWR | OFlags::DIRECT).err(),
        Some(Errno::INVAL)
    );
    assert_eq!(
        fifo.try_writer().err(),
        Some(Errno::NXIO),
        "what failed to open is no reader"
    );
    let both = fifo.open_both();
    fcntl_setfl(&both, OFlags::DIRECT).unwrap();
    write(&both, b"0123456789").unwrap();
    write(&both, b"abc").unwrap();
    assert_eq!(read(&both, 4).as_deref(), Ok(&b"0123"[..]));
    assert_eq!(read(&both, 64).as_deref(), Ok(&b"abc"[..]));
}

fn no_direction(subject: &Subject) {
    let fifo = subject.fifo();
    assert_eq!(
        fifo.open(OFlags::from_bits_retain(libc::O_ACCMODE as u32))
            .err(),
        Some(Errno::INVAL)
    );
    let path = fifo.open(OFlags::PATH).unwrap();
    assert_eq!(fifo.try_writer().err(), Some(Errno::NXIO));
    let both = fifo.open_both();
    write(&both, b"x").unwrap();
    drop(both);
    assert_eq!(queued(fifo.open_both()), 0, "O_PATH keeps no data");
    drop(path);
}

fn no_position(subject: &Subject) {
    let both = subject.fifo().open_both();
    write(&both, b"abc").unwrap();
    assert_eq!(seek(&both, SeekFrom::Start(0)), Err(Errno::SPIPE));
    assert_eq!(
        rustix::io::pread(&both, &mut [0; 3], 0).err(),
        Some(Errno::SPIPE)
    );
    assert_eq!(rustix::io::pwrite(&both, b"x", 0).err(), Some(Errno::SPIPE));
    assert_eq!(queued(&both), 3);
}
