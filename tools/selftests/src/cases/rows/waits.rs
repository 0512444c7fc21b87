// SPDX-License-Identifier: GPL-2.0
//! Rows about who sleeps, what wakes him and what he is told.

use super::{PIPE, R, ROOMY, W, fill, read, write};
use crate::differential::fixed::Scene;
use crate::differential::script::{End, Flag, Op, Side};
use crate::subject::Subject;

const IN: i16 = libc::POLLIN;
const OUT: i16 = libc::POLLOUT;

pub fn poller(subject: &Subject) {
    Scene::of(PIPE)
        .unseen()
        .then(Op::Set(R, Flag::Nonblock, true), "0")
        .then(Op::Poll(R, IN), "sleeps")
        .then(write(1), "1; task 0 ends: 1 (0x1)")
        .then(read(1), "1")
        .repeat(2, read(1), "EAGAIN")
        .play(subject);
}

pub fn edges(subject: &Subject) {
    let edge = (libc::EPOLLIN | libc::EPOLLET) as u32;
    Scene::of(ROOMY)
        .unseen()
        // A write that might sleep is not made beside a task that waits for events.
        .then(Op::Set(W, Flag::Nonblock, true), "0")
        .then(Op::Watch(R, edge), "0")
        .then(Op::AwaitEvents, "sleeps")
        .then(write(1), "1; task 0 ends: 1")
        .then(Op::Events, "0")
        .then(write(1), "1")
        .then(Op::Events, "1")
        .then(Op::Events, "0")
        .play(subject);
}

pub fn last_close(subject: &Subject) {
    Scene::of(PIPE)
        .repeat(2, read(10), "sleeps")
        .then(
            Op::CloseAll(Side::Writers),
            "1; task 0 ends: 0; task 1 ends: 0",
        )
        .play(subject);
    Scene::of(1)
        .then(fill(4096), "4096")
        .repeat(2, write(10), "sleeps")
        .then(
            Op::CloseAll(Side::Readers),
            "1; task 0 ends: EPIPE and SIGPIPE; task 1 ends: EPIPE and SIGPIPE",
        )
        .play(subject);
    // Not before the last of them.
    Scene::of(PIPE)
        .then(Op::Dup(W), "0")
        .then(read(10), "sleeps")
        .then(Op::Close(End::Writer(0)), "0")
        .then(Op::Close(End::Writer(0)), "0; task 0 ends: 0")
        .play(subject);
}

pub fn signals(subject: &Subject) {
    Scene::of(1)
        .then(read(10), "sleeps")
        .then(Op::Signal(false), "0; task 0 ends: EINTR")
        .then(read(10), "sleeps")
        .then(Op::Signal(true), "0")
        .then(write(1), "1; task 0 ends: 1")
        .play(subject);
    Scene::of(1)
        .then(fill(4096), "4096")
        .then(write(10), "sleeps")
        .then(Op::Signal(false), "0; task 0 ends: EINTR")
        .then(write(10), "sleeps")
        .then(Op::Signal(true), "0")
        .then(read(4096), "4096; task 0 ends: 10")
        .play(subject);
    for restarts in [false, true] {
        Scene::of(1)
            .then(write(8192), "sleeps")
            .then(Op::Signal(restarts), "0; task 0 ends: 4096")
            .play(subject);
    }
}

pub fn readers_gone(subject: &Subject) {
    Scene::of(1)
        .then(fill(4096), "4096")
        .then(Op::Poll(W, OUT), "sleeps")
        .then(Op::CloseAll(Side::Readers), "1; task 0 ends: 1 (0x8)")
        .then(Op::Poll(W, 0), "1 (0x8)")
        .then(Op::Poll(W, OUT), "1 (0x8)")
        .play(subject);
    Scene::of(1)
        .then(Op::Poll(W, 0), "sleeps")
        .then(Op::CloseAll(Side::Readers), "1; task 0 ends: 1 (0x8)")
        .then(Op::Poll(W, OUT), "1 (0xc)")
        .play(subject);
}

pub fn writers_gone(subject: &Subject) {
    for events in [0, IN] {
        Scene::of(PIPE)
            .unseen()
            .then(Op::Poll(R, events), "sleeps")
            .then(Op::CloseAll(Side::Writers), "1; task 0 ends: 1 (0x10)")
            .then(Op::Poll(R, 0), "1 (0x10)")
            .play(subject);
    }
    Scene::of(PIPE)
        .then(write(3), "3")
        .then(Op::CloseAll(Side::Writers), "1")
        .then(Op::Poll(R, IN), "1 (0x11)")
        .then(Op::Poll(R, 0), "1 (0x10)")
        .then(read(9), "3")
        .then(Op::Poll(R, IN), "1 (0x10)")
        .play(subject);
}

pub fn shared_flag(subject: &Subject) {
    Scene::of(1)
        .then(Op::Dup(R), "0")
        .then(Op::Set(End::Reader(1), Flag::Nonblock, true), "0")
        .then(read(1), "EAGAIN")
        .then(fill(4096), "4096")
        // The other end goes on to block.
        .then(write(1), "sleeps")
        .then(read(4096), "4096; task 0 ends: 1")
        .play(subject);
}

pub fn owners(subject: &Subject) {
    Scene::of(ROOMY)
        .then(Op::Set(R, Flag::Async, true), "0")
        .repeat(10, write(1), "1; SIGIO [(41, 1)]")
        .then(read(10), "10")
        .then(Op::Set(R, Flag::Async, false), "0")
        .then(write(1), "1")
        .play(subject);
}
