// SPDX-License-Identifier: GPL-2.0
//! Pipes shared by many processes, and pipes in great number.

use std::iter;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, dup};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::PipeFlags;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::case::{Area, Case};
use crate::descriptors;
use crate::end::{PAGE, read, write};
use crate::parcel;
use crate::process::Process;
use crate::record::{Ledger, Record};
use crate::subject::{Pipe, Subject};
use crate::task::Call;

/// Cases about processes and numbers.
pub const AREA: Area = Area {
    name: "processes",
    cases: &[
        Case::long(
            "a fork storm of 32 writers delivers every record",
            fork_storm,
        ),
        Case::long("killed readers leave the pipe to the living", killed_reader),
        Case::every(
            "an end passed over a socket works after its first owner has closed it",
            passed_over_socket,
        ),
        Case::every(
            "a full descriptor table is EMFILE and leaves nothing open",
            table_full,
        ),
        Case::long(
            "a thousand pipes come and go and leave no descriptor",
            thousand_pipes,
        ),
    ],
};

fn fork_storm(subject: &Subject) {
    const CHILDREN: u16 = 32;
    const EACH: u32 = 10;
    let Pipe { read: r, write: w } = subject.pipe();
    let children: Vec<_> = (0..CHILDREN)
        .map(|writer| {
            Process::fork(|| {
                for number in 0..EACH {
                    let record = Record {
                        writer,
                        len: 300,
                        number,
                    };
                    assert_eq!(write(&w, &record.bytes()), Ok(300));
                }
            })
        })
        .collect();
    drop(w);
    let mut ledger = Ledger::new(CHILDREN.into());
    let mut stream = Vec::new();
    loop {
        let part = read(&r, 10_000).unwrap();
        if part.is_empty() {
            break;
        }
        stream.extend_from_slice(&part);
        ledger.enter_all(&mut stream);
    }
    ledger.assert_complete(EACH);
    children.into_iter().for_each(Process::succeed);
}

// The first in the queue is dead when the byte comes: the wake-up must not be spent on it.
fn killed_reader(subject: &Subject) {
    for _ in 0..10 {
        let Pipe { read: r, write: w } = subject.pipe();
        let Pipe {
            read: answers,
            write: answer,
        } = subject.pipe();
        let mut children: Vec<_> = (0..2)
            .map(|_| {
                let child = Process::fork(|| {
                    let data = read(&r, 1).unwrap();
                    write(&answer, &data).unwrap();
                });
                child.watched().until_asleep(Call::Read, &r);
                child
            })
            .collect();
        children.remove(0).kill();
        write(&w, b"x").unwrap();
        assert_eq!(read(&answers, 1).as_deref(), Ok(&b"x"[..]));
        children.remove(0).succeed();
    }
}

fn passed_over_socket(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let (left, right) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    parcel::send(&left, &w);
    drop(w);
    // Only the message in flight holds the write end now.
    let w = parcel::receive(&right);
    write(&w, b"by post").unwrap();
    assert_eq!(read(&r, 64).as_deref(), Ok(&b"by post"[..]));
    drop(w);
    assert_eq!(read(&r, 64).as_deref(), Ok(&b""[..]));
}

fn table_full(subject: &Subject) {
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(64),
            maximum: Some(64),
        },
    )
    .unwrap();
    let sink = rustix::fs::open("/dev/null", OFlags::WRONLY, Mode::empty()).unwrap();
    let mut fillers: Vec<_> = iter::from_fn(|| dup(&sink).ok()).collect();
    // Without a free descriptor, then with one, of which the pipe needs two.
    for room in [0, 1] {
        assert_eq!(
            subject.pipe_with(PipeFlags::CLOEXEC).map(drop),
            Err(Errno::MFILE),
            "room for {room}"
        );
        let free: Vec<_> = iter::from_fn(|| dup(&sink).ok()).collect();
        assert_eq!(free.len(), room, "the failed call holds a descriptor");
        drop(free);
        fillers.pop();
    }
    drop(fillers);
    let Pipe { read: r, write: w } = subject.pipe();
    write(&w, b"x").unwrap();
    assert_eq!(read(&r, 1).as_deref(), Ok(&b"x"[..]));
}

fn thousand_pipes(subject: &Subject) {
    let before = descriptors::open();
    for _ in 0..10 {
        let pipes: Vec<_> = (0..100).map(|_| subject.pipe()).collect();
        assert_eq!(descriptors::open(), before + 200);
        for pipe in &pipes {
            write(&pipe.write, &[b'x'; PAGE]).unwrap();
        }
    }
    assert_eq!(descriptors::open(), before);
}
