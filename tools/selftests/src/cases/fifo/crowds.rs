// SPDX-License-Identifier: GPL-2.0
//! Many tasks on one FIFO.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use rustix::io::{Errno, Result};

use crate::end::{queued, read, set_nonblocking, write};
use crate::record::{Ledger, Record};
use crate::subject::Subject;
use crate::task::{Call, Task};

pub fn last_of_writers(subject: &Subject) {
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

pub fn shared_stream(subject: &Subject) {
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

pub fn storm(subject: &Subject) {
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
