// SPDX-License-Identifier: GPL-2.0
//! The knobs and counters of FIFO devices. They act on the live pipe at once, whoever sleeps in it.

use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

use altpipe_core::config::Times;
use altpipe_core::{Config, KNOBS, Knob};
use altpipe_uapi::{Stats, get_config, get_stats};
use rustix::event::{PollFlags, epoll};
use rustix::fs::{Timespec, Timestamps, fstat, futimens};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::case::{Area, Case};
use crate::end::{AT_POSITION, CAPACITY, PAGE, fill, poll_wait, read, read_exact, write};
use crate::fdinfo;
use crate::fifo::{Fifo, configure};
use crate::knobs::{Device, active};
use crate::record::{Ledger, Record};
use crate::subject::{Subject, values};
use crate::task::{Call, Task};

/// Cases about `/sys/class/altpipe/altpipeN`.
pub const AREA: Area = Area {
    name: "fifo knobs",
    cases: &[
        Case::fifo_device(
            "there is a file for each knob but block_size, for each counter, and no other",
            files,
        ),
        Case::fifo_device(
            "a device's knobs are its own: no other device's, and not the control device's",
            knobs_apart,
        ),
        Case::fifo_device(
            "a knob acts on open files at once, as GET_CONFIG tells",
            knobs_act,
        ),
        Case::fifo_device(
            "capacity acts at the first open after the last close",
            capacity_waits,
        ),
        Case::fifo_device("nowait acts on later opens", nowait_waits),
        Case::fifo_device("preset sets and shows all knobs of the device", preset),
        Case::fifo_device("a bad value is EINVAL and changes nothing", bad_values),
        Case::fifo_device(
            "counters are the device's own and go on from one open to the next",
            counters_apart,
        ),
        Case::fifo_device(
            "a reset starts the device's counters anew and leaves GET_STATS alone",
            reset,
        ),
        Case::fifo_device(
            "a read moves the node's atime and a write its mtime where the times knob says so",
            times,
        ),
        Case::fifo_device(
            "no flip of a knob leaves a reader asleep",
            flips_under_readers,
        ),
        Case::fifo_device(
            "no flip of a knob leaves a writer asleep",
            flips_under_writers,
        ),
        Case::fifo_device(
            "no flip of a knob leaves a poller asleep, by poll or by epoll of either kind",
            flips_under_pollers,
        ),
        Case::fifo_device(
            "a flip does not end a wait: there is still nothing to read",
            flips_end_no_wait,
        ),
        Case::fifo_device(
            "streams run whole and to their end while all knobs flip",
            flips_under_load,
        ),
    ],
};

fn knobs() -> impl Iterator<Item = &'static Knob> {
    KNOBS.iter().filter(|knob| knob.name != "block_size")
}

fn file(knob: &Knob) -> String {
    format!("knobs/{}", knob.name)
}

fn value(knob: &Knob, config: &Config) -> String {
    let mut text = String::new();
    knob.write_value(config, &mut text).unwrap();
    text
}

fn shown(device: &Device) -> Vec<String> {
    knobs()
        .map(|knob| active(&device.show(&file(knob))).to_string())
        .collect()
}

fn expected(config: &Config) -> Vec<String> {
    knobs().map(|knob| value(knob, config)).collect()
}

fn files(subject: &Subject) {
    let _fifo = subject.fifo();
    let device = Device::fifo(0);
    assert_eq!(
        device.files("knobs"),
        knobs().map(|knob| knob.name.to_string()).collect()
    );
    let counters = Stats::NAMES.into_iter().chain(["reset"]);
    assert_eq!(device.files("stats"), counters.map(String::from).collect());
}

fn knobs_apart(subject: &Subject) {
    let (_one, _other) = (subject.fifos().fifo(0), subject.fifos().fifo(1));
    let before = shown(&Device::control());
    let mut config = subject.config();
    for knob in knobs() {
        for value in values(knob) {
            Device::fifo(0).store(&file(knob), &value).unwrap();
            assert_eq!(active(&Device::fifo(0).show(&file(knob))), value);
            knob.store(&mut config, &value)
                .map_err(|error| error.to_string())
                .unwrap();
        }
    }
    assert_eq!(shown(&Device::fifo(0)), expected(&config));
    assert_eq!(shown(&Device::fifo(1)), expected(&subject.config()));
    assert_eq!(shown(&Device::control()), before);

    Device::control().store("knobs/times", "atime").unwrap();
    let devices = [0, 1].map(|number| shown(&Device::fifo(number)));
    configure(&Device::control(), &Config::DEFAULT);
    assert_eq!(devices, [expected(&config), expected(&subject.config())]);
}

fn knobs_act(subject: &Subject) {
    let fifo = subject.fifo();
    let both = fifo.open_both();
    let mut config = subject.config();
    assert_eq!(get_config(&both).unwrap(), config.to_string());
    for knob in knobs() {
        for value in values(knob) {
            Device::fifo(0).store(&file(knob), &value).unwrap();
            knob.store(&mut config, &value)
                .map_err(|error| error.to_string())
                .unwrap();
            assert_eq!(get_config(&both).unwrap(), config.to_string());
        }
    }
    drop(both);
    // No machine has the memory for the largest.
    Device::fifo(0)
        .store("knobs/capacity", CAPACITY.to_string())
        .unwrap();
    config.capacity = CAPACITY as u32;
    assert_eq!(
        get_config(fifo.open_both()).unwrap(),
        config.to_string(),
        "the last close sets no knob back"
    );
}

fn capacity_waits(subject: &Subject) {
    let fifo = subject.fifo();
    let both = fifo.open_both();
    Device::fifo(0)
        .store("knobs/capacity", (2 * PAGE).to_string())
        .unwrap();
    let capacity = |end: &OwnedFd| fdinfo::number(end, "capacity");
    assert_eq!(capacity(&both), CAPACITY as u64);
    let other = fifo.open_both();
    drop(both);
    assert_eq!(capacity(&other), CAPACITY as u64, "not the last close");
    drop(other);
    let both = fifo.open_both();
    assert_eq!(capacity(&both), 2 * PAGE as u64);
    assert_eq!(fill(&both, PAGE), 2 * PAGE);
}

fn nowait_waits(subject: &Subject) {
    let fifo = subject.fifo();
    let try_read = |end: &OwnedFd| {
        let mut byte = [0];
        let mut buffers = [IoSliceMut::new(&mut byte)];
        preadv2(end, &mut buffers, AT_POSITION, ReadWriteFlags::NOWAIT)
    };
    let set = |value| Device::fifo(0).store("knobs/nowait", value).unwrap();
    set("1");
    let before = fifo.open_both();
    set("0");
    let after = fifo.open_both();
    assert_eq!(try_read(&before), Err(Errno::AGAIN));
    assert_eq!(try_read(&after), Err(Errno::OPNOTSUPP));
}

fn preset(subject: &Subject) {
    let both = subject.fifo().open_both();
    let device = Device::fifo(0);
    let control = Device::control().show("preset");
    device.store("preset", "v5.5").unwrap();
    assert!(device.show("preset").contains("[v5.5]"));
    assert!(get_config(&both).unwrap().starts_with("v5.5"));
    assert_eq!(active(&device.show("knobs/tail_update")), "wait_lock");
    assert_eq!(
        device.store("preset", "v5.5,times=never"),
        Err(Errno::INVAL)
    );
    assert_eq!(Device::control().show("preset"), control);
    device.store("preset", "v7.3").unwrap();
    assert_eq!(get_config(&both).unwrap(), "v7.3");
}

fn bad_values(subject: &Subject) {
    let _fifo = subject.fifo();
    for knob in knobs() {
        for text in ["nonsense", "-1", "99999999999"] {
            assert_eq!(
                Device::fifo(0).store(&file(knob), text),
                Err(Errno::INVAL),
                "{}",
                knob.name
            );
        }
    }
    assert_eq!(shown(&Device::fifo(0)), expected(&subject.config()));
}

fn count(number: usize, counter: &str) -> u64 {
    Device::fifo(number)
        .show(&format!("stats/{counter}"))
        .parse()
        .unwrap()
}

fn counters_apart(subject: &Subject) {
    let fifo = subject.fifo();
    let control = Device::control().show("stats/writes");
    let before = [0, 1].map(|number| count(number, "writes"));
    for turn in 1..=3 {
        let both = fifo.open_both();
        write(&both, b"abc").unwrap();
        drop(both);
        assert_eq!(count(0, "writes"), before[0] + turn);
    }
    assert_eq!(count(1, "writes"), before[1]);
    assert_eq!(Device::control().show("stats/writes"), control);
}

fn reset(subject: &Subject) {
    let both = subject.fifo().open_both();
    write(&both, b"abc").unwrap();
    let before = get_stats(&both).unwrap().bytes_written;
    Device::fifo(0).store("stats/reset", "1").unwrap();
    for name in Stats::NAMES {
        assert_eq!(count(0, name), 0, "{name}");
    }
    assert_eq!(get_stats(&both).unwrap().bytes_written, before);
    write(&both, b"de").unwrap();
    assert_eq!(count(0, "bytes_written"), 2);
    assert_eq!(Device::fifo(0).store("stats/reset", "2"), Err(Errno::INVAL));
}

// Whether atime and mtime of the node have moved over `act`.
fn moved(both: &OwnedFd, act: impl FnOnce()) -> (bool, bool) {
    const PAST: i64 = 1_000;
    let past = Timespec {
        tv_sec: PAST,
        tv_nsec: 0,
    };
    futimens(
        both,
        &Timestamps {
            last_access: past,
            last_modification: past,
        },
    )
    .expect("futimens");
    act();
    let stat = fstat(both).expect("fstat");
    (stat.st_atime as i64 != PAST, stat.st_mtime as i64 != PAST)
}

fn times(subject: &Subject) {
    let both = subject.fifo().open_both();
    for &times in Times::ALL {
        let config = Config {
            times,
            ..subject.config()
        };
        configure(&Device::fifo(0), &config);
        let atime = matches!(times, Times::Atime | Times::Full);
        let mtime = matches!(times, Times::Mtime | Times::Full);
        let wrote = moved(&both, || _ = write(&both, b"x").unwrap());
        assert_eq!(wrote, (false, mtime), "{times:?}, after a write");
        let took = moved(&both, || _ = read(&both, 1).unwrap());
        assert_eq!(took, (atime, false), "{times:?}, after a read");
    }
}

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

fn flips_under_readers(subject: &Subject) {
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

fn flips_under_writers(subject: &Subject) {
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

fn flips_under_pollers(subject: &Subject) {
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

fn flips_end_no_wait(subject: &Subject) {
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

fn flips_under_load(subject: &Subject) {
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
