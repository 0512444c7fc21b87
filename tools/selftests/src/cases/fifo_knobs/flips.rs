// SPDX-License-Identifier: GPL-2.0
//! Knobs that flip while tasks sleep in the pipe or run data through it.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

use altpipe_core::{Config, Knob};
use rustix::event::{PollFlags, epoll};

use super::{file, knobs, value};
use crate::end::{PAGE, fill, poll_wait, read, read_exact, write};
use crate::fdinfo;
use crate::fifo::{Fifo, configure};
use crate::knobs::Device;
use crate::record::{Ledger, Record};
use crate::subject::{Subject, values};
use crate::task::{Call, Task};

// Each way from one value of a knob to another, all other knobs being the subject's.
fn flips(subject: &Subject) -> impl Iterator<Item = (&'static Knob, String, String)> {
    let config = subject.config();
    knobs().flat_map(move |knob| {
        let mut all = values(knob);
        all.push(value(knob, &Config::DEFAULT));
        let froms = all.clone();
        let pairs = froms.into_iter().flat_map(move |from| {
            let tos = all.clone().into_iter();
            tos.map(move |to| (knob, from.clone(), to))
        });
        pairs
            .filter(|(_, from, to)| from != to)
            // The last flip of a knob leads back to where it began.
            .chain([(knob, value(knob, &config), value(knob, &config))])
    })
}

fn flip_over(
    subject: &Subject,
) -> impl Iterator<Item = (impl FnOnce() + '_, impl FnOnce() + '_)> + '_ {
    flips(subject).map(|(knob, from, to)| {
        let set = move |text: String| Device::fifo(0).store(&file(knob), text).unwrap();
        (move || set(from), move || set(to))
    })
}

pub fn flips_under_readers(subject: &Subject) {
    let both = subject.fifo().open_both();
    for (prepare, flip) in flip_over(subject) {
        prepare();
        scope(|s| {
            let readers =
                [(); 3].map(|()| Task::asleep_in(s, Call::Read, &both, || read(&both, 1)));
            flip();
            // One write, for which the rules wake one reader or all: each must get his byte.
            write(&both, b"abc").unwrap();
            for reader in readers {
                assert_eq!(reader.join().unwrap().len(), 1);
            }
        });
    }
}

pub fn flips_under_writers(subject: &Subject) {
    let both = subject.fifo().open_both();
    for (prepare, flip) in flip_over(subject) {
        prepare();
        let filling = fill(&both, PAGE);
        scope(|s| {
            let writers = [(); 3]
                .map(|()| Task::asleep_in(s, Call::Write, &both, || write(&both, &[0; PAGE])));
            flip();
            read_exact(&both, filling + 3 * PAGE);
            for writer in writers {
                assert_eq!(writer.join(), Ok(PAGE));
            }
        });
    }
}

fn watch(end: &OwnedFd, events: epoll::EventFlags) -> OwnedFd {
    let watcher = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let data = epoll::EventData::new_u64(1);
    epoll::add(&watcher, end, data, events).unwrap();
    watcher
}

fn wait(watcher: &OwnedFd) -> epoll::EventFlags {
    let mut events = Vec::with_capacity(1);
    epoll::wait(watcher, rustix::buffer::spare_capacity(&mut events), None).unwrap();
    events[0].flags
}

pub fn flips_under_pollers(subject: &Subject) {
    let fifo = subject.fifo();
    let (r, w) = (fifo.open_both(), fifo.open_writer().unwrap());
    for (prepare, flip) in flip_over(subject) {
        prepare();
        let level = watch(&r, epoll::EventFlags::IN);
        let edge = watch(&r, epoll::EventFlags::IN | epoll::EventFlags::ET);
        scope(|s| {
            let polls = Task::asleep_in(s, Call::Poll, &r, || poll_wait(&r, PollFlags::IN));
            let levels = Task::asleep_in(s, Call::EpollWait, &level, || wait(&level));
            let edges = Task::asleep_in(s, Call::EpollWait, &edge, || wait(&edge));
            flip();
            write(&w, b"x").unwrap();
            assert_eq!(polls.join(), PollFlags::IN);
            assert_eq!(levels.join(), epoll::EventFlags::IN);
            assert_eq!(edges.join(), epoll::EventFlags::IN);
        });
        read(&r, 1).unwrap();

        fill(&w, PAGE);
        scope(|s| {
            let polls = Task::asleep_in(s, Call::Poll, &w, || poll_wait(&w, PollFlags::OUT));
            flip_back(subject);
            while fdinfo::number(&r, "bytes") > 0 {
                read(&r, PAGE).unwrap();
            }
            assert_eq!(polls.join(), PollFlags::OUT);
        });
    }
}

fn flip_back(subject: &Subject) {
    configure(&Device::fifo(0), &subject.config());
}

pub fn flips_end_no_wait(subject: &Subject) {
    let both = subject.fifo().open_both();
    scope(|s| {
        let reader = Task::asleep_in(s, Call::Read, &both, || read(&both, 1));
        for (prepare, flip) in flip_over(subject) {
            prepare();
            flip();
        }
        reader.watched().until_asleep(Call::Read, &both);
        assert_eq!(fdinfo::number(&both, "sleepers"), 1);
        write(&both, b"x").unwrap();
        assert_eq!(reader.join().as_deref(), Ok(&b"x"[..]));
    });
}

const WRITERS: u16 = 3;

// Writes records of all lengths until told to stop; returns their number.
fn produce(w: &OwnedFd, writer: u16, done: &AtomicBool) -> u32 {
    let mut number = 0u32;
    while !done.load(Ordering::Relaxed) {
        let len = 16 + (number.wrapping_mul(2_654_435_761) >> 20) as u16 % 4000;
        let record = Record {
            writer,
            len,
            number,
        };
        assert_eq!(write(w, &record.bytes()), Ok(len.into()));
        number += 1;
    }
    number
}

// One reader of several writers: every record comes whole and in its writer's order.
fn stream(fifo: &Fifo, done: &AtomicBool) -> u32 {
    let r = fifo.try_reader();
    let ends: Vec<_> = (0..WRITERS).map(|_| fifo.open_writer().unwrap()).collect();
    crate::end::set_nonblocking(&r, false);
    scope(|s| {
        let writers: Vec<_> = ends
            .into_iter()
            .zip(0..)
            .map(|(w, writer)| Task::spawn(s, move || produce(&w, writer, done)))
            .collect();
        let mut ledger = Ledger::new(WRITERS.into());
        let mut rest = Vec::new();
        loop {
            let part = read(&r, 3 * PAGE).unwrap();
            if part.is_empty() {
                break;
            }
            rest.extend(part);
            ledger.enter_all(&mut rest);
        }
        assert!(rest.is_empty());
        let sent: Vec<_> = writers.into_iter().map(Task::join).collect();
        ledger.assert_sent(&sent);
        sent.iter().sum()
    })
}

pub fn flips_under_load(subject: &Subject) {
    let fifos = [0, 1].map(|number| subject.fifos().fifo(number));
    let eyes = [0, 1].map(|number| {
        fifos[number]
            .open(rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK)
            .unwrap()
    });
    let done = AtomicBool::new(false);
    let (mut flips, mut met) = (0u32, 0u32);
    let records: u32 = scope(|s| {
        let streams: Vec<_> = fifos
            .iter()
            .map(|fifo| Task::spawn(s, || stream(fifo, &done)))
            .collect();
        let mut turns = knobs()
            .map(|knob| {
                let mut all = values(knob);
                all.push(value(knob, &Config::DEFAULT));
                (knob, all.into_iter().cycle())
            })
            .collect::<Vec<_>>();
        let end = Instant::now() + Duration::from_secs(3);
        while Instant::now() < end {
            for (knob, values) in &mut turns {
                let value = values.next().unwrap();
                for (number, eye) in eyes.iter().enumerate() {
                    met += u32::from(fdinfo::number(eye, "sleepers") > 0);
                    Device::fifo(number).store(&file(knob), &value).unwrap();
                    flips += 1;
                }
            }
        }
        done.store(true, Ordering::Relaxed);
        streams.into_iter().map(Task::join).sum()
    });
    eprintln!("# {records} records, {flips} flips, {met} of them over sleepers");
    assert!(records > 0 && met > 0);
}
