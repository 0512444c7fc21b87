// SPDX-License-Identifier: GPL-2.0
//! Rows about what is in a pipe and how it goes in and out.

use super::{PIPE, R, ROOMY, W, bad, fill, flags, read, readv, write, writev};
use crate::differential::fixed::Scene;
use crate::differential::script::{End, Flag, Memory, Odd, Op, Side};
use crate::subject::Subject;

pub fn nowait(subject: &Subject) {
    Scene::of(1)
        .then(flags(Op::Read, R, 1, true), "EAGAIN")
        .then(flags(Op::Write, W, 4096, true), "4096")
        .then(flags(Op::Write, W, 1, true), "EAGAIN")
        .then(flags(Op::Read, R, 5000, true), "4096")
        .then(flags(Op::Read, R, 1, true), "EAGAIN")
        .then(Op::CloseAll(Side::Writers), "1")
        .then(flags(Op::Read, R, 1, true), "0")
        .play(subject);
}

pub fn sizes(subject: &Subject) {
    for end in [R, W] {
        Scene::of(1)
            .then(Op::Resize(end, 0), "4096")
            .then(Op::Resize(end, 4097), "8192")
            .then(Op::Resize(end, (1 << 31) + 1), "EINVAL")
            .then(Op::Resize(end, 131_072), "131072")
            .then(fill(4096), "131072")
            .then(Op::Resize(end, 65_536), "EBUSY")
            .then(read(65_536), "65536")
            .then(Op::Resize(end, 65_536), "65536")
            .then(read(65_536), "65536")
            .play(subject);
    }
}

pub fn resized_stream(subject: &Subject) {
    Scene::of(1)
        .merging()
        .then(write(3000), "3000")
        .then(Op::Resize(W, 1 << 20), "1048576")
        .then(write(40_000), "40000")
        .then(read(10_000), "10000")
        .then(Op::Resize(R, 4096), "EBUSY")
        .then(Op::Resize(R, 65_536), "65536")
        .then(write(9000), "9000")
        .then(read(41_000), "41000")
        .then(Op::Resize(R, 4096), "4096")
        .then(read(4096), "1000")
        .then(write(4096), "4096")
        .then(Op::Resize(W, 8192), "8192")
        .then(write(100), "100")
        .then(read(5000), "4196")
        .play(subject);
}

pub fn whole_or_not(subject: &Subject) {
    let nonblock = Op::Set(W, Flag::Nonblock, true);
    Scene::of(1)
        .merging()
        .then(nonblock.clone(), "0")
        .repeat(8, write(511), "511")
        .repeat(2, write(511), "EAGAIN")
        .then(write(8), "8")
        .then(write(1), "EAGAIN")
        .then(read(4095), "4095")
        .then(write(511), "EAGAIN")
        .then(read(1), "1")
        .then(write(511), "511")
        .play(subject);
    // Records of a page, and more than one.
    Scene::of(2)
        .then(nonblock, "0")
        .repeat(2, write(4096), "4096")
        .then(write(4096), "EAGAIN")
        .then(read(4096), "4096")
        .then(write(8192), "4096")
        .then(write(8192), "EAGAIN")
        .play(subject);
}

pub fn empty(subject: &Subject) {
    Scene::of(1)
        .then(Op::Set(R, Flag::Nonblock, true), "0")
        .then(read(1), "EAGAIN")
        .then(write(1), "1")
        .then(Op::CloseAll(Side::Writers), "1")
        .then(read(10), "1")
        .repeat(2, read(10), "0")
        .play(subject);
}

pub fn nothing(subject: &Subject) {
    let at_nowhere = |op: fn(_) -> Op, end| bad(op, end, 0, Memory::Nowhere);
    let calls = |scene: Scene| {
        scene
            .then(read(0), "0")
            .then(at_nowhere(Op::Read, R), "0")
            .then(readv(&[]), "0")
            .then(readv(&[0, 0]), "0")
            .then(write(0), "0")
            .then(at_nowhere(Op::Write, W), "0")
            .then(writev(&[]), "0")
            .then(writev(&[0, 0]), "0")
    };
    // Empty, full, and without readers.
    let scene = calls(Scene::of(1)).then(fill(4096), "4096");
    calls(scene).play(subject);
    Scene::of(1)
        .then(Op::CloseAll(Side::Readers), "1")
        .then(write(0), "0")
        .then(at_nowhere(Op::Write, W), "0")
        .then(writev(&[0, 0]), "0")
        .then(write(1), "EPIPE and SIGPIPE")
        .play(subject);
}

pub fn pointers(subject: &Subject) {
    Scene::of(PIPE)
        .then(write(3), "3")
        .then(bad(Op::Read, R, 3, Memory::Nowhere), "EFAULT")
        .then(read(10), "3")
        .then(bad(Op::Write, W, 3, Memory::Nowhere), "EFAULT")
        .then(write(4), "4")
        .then(bad(Op::Write, W, 100, Memory::Nowhere), "EFAULT")
        .then(read(10), "4")
        .play(subject);
    Scene::of(PIPE)
        .then(super::good_then_bad(4096, 100), "4096")
        .then(read(5000), "4096")
        .play(subject);
}

pub fn short_read(subject: &Subject) {
    Scene::of(PIPE)
        .then(write(3000), "3000")
        .then(write(3000), "3000")
        .then(read(6001), "6000")
        .then(flags(Op::Read, R, 1, true), "EAGAIN")
        .then(writev(&[100, 5000, 1]), "5101")
        .then(readv(&[4096, 1000, 1000]), "5101")
        .then(flags(Op::Read, R, 1, true), "EAGAIN")
        .play(subject);
}

pub fn packets(subject: &Subject) {
    Scene::of_packets(ROOMY)
        .repeat(2, write(10), "10")
        .repeat(2, read(100), "10")
        .then(write(100), "100")
        .then(read(10), "10")
        .then(flags(Op::Read, R, 1, true), "EAGAIN")
        .then(write(5000), "5000")
        .then(read(5000), "4096")
        .then(read(5000), "904")
        // The writer's flag decides, at each write.
        .then(Op::Set(R, Flag::Direct, false), "0")
        .repeat(2, write(10), "10")
        .then(read(100), "10")
        .then(read(100), "10")
        .then(Op::Set(W, Flag::Direct, false), "0")
        .repeat(2, write(10), "10")
        .then(read(100), "20")
        .then(Op::Set(W, Flag::Direct, true), "0")
        .repeat(2, write(10), "10")
        .repeat(2, read(100), "10")
        .play(subject);
}

pub fn odd_calls(subject: &Subject) {
    for end in [R, W] {
        Scene::of(PIPE)
            .then(write(3), "3")
            .then(Op::Odd(end, Odd::Seek), "ESPIPE")
            .then(Op::Odd(end, Odd::Pread), "ESPIPE")
            .then(Op::Odd(end, Odd::Pwrite), "ESPIPE")
            .then(Op::Odd(end, Odd::Truncate), "EINVAL")
            .then(Op::Odd(end, Odd::Sync), "EINVAL")
            .then(Op::Odd(end, Odd::Unknown), "ENOTTY")
            .then(Op::Odd(end, Odd::CountNowhere), "EFAULT")
            .then(read(9), "3")
            .play(subject);
    }
    let wrong = |op: fn(_) -> Op, end| bad(op, end, 1, Memory::Good);
    Scene::of(PIPE)
        .then(wrong(Op::Read, End::Writer(0)), "EBADF")
        .then(wrong(Op::Write, End::Reader(0)), "EBADF")
        .play(subject);
}
