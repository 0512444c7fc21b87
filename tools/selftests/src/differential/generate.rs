// SPDX-License-Identifier: GPL-2.0
//! How sequences are drawn, and by that how they shrink.
//!
//! Half of them are built round a sleep: a pipe is brought to where a task must wait, the task
//! waits, and others do what lets it go on. The rest is drawn at random.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Union;

use super::comparable::EDGE;
use super::script::{Access, End, Flag, Form, Memory, Odd, Op, Part, Script, Side, Transfer};

const PAGE: u32 = 4096;

fn reader() -> impl Strategy<Value = End> + Clone {
    prop_oneof![9 => (0u8..3).prop_map(End::Reader), 1 => (0u8..4).prop_map(End::Any)]
}

fn writer() -> impl Strategy<Value = End> + Clone {
    prop_oneof![9 => (0u8..3).prop_map(End::Writer), 1 => (0u8..4).prop_map(End::Any)]
}

fn any_end() -> impl Strategy<Value = End> + Clone {
    prop_oneof![
        (0u8..3).prop_map(End::Reader),
        (0u8..3).prop_map(End::Writer)
    ]
}

// Round the sizes at which something changes.
fn len() -> impl Strategy<Value = u32> + Clone {
    prop_oneof![
        1 => Just(0),
        3 => Just(1),
        4 => 2u32..200,
        2 => Just(PAGE - 1),
        4 => Just(PAGE),
        2 => Just(PAGE + 1),
        2 => 1000u32..PAGE,
        3 => (2u32..5).prop_map(|pages| pages * PAGE),
        3 => PAGE..5 * PAGE,
        1 => (15u32..18).prop_map(|pages| pages * PAGE),
        1 => 16 * PAGE - 1..=16 * PAGE + 1,
    ]
}

fn memory() -> impl Strategy<Value = Memory> + Clone {
    prop_oneof![
        14 => Just(Memory::Good),
        1 => Just(Memory::Nowhere),
        1 => prop_oneof![Just(1u16), Just(100), Just(4095), Just(4096), Just(4097), 2u16..8000].prop_map(Memory::Edge),
    ]
}

fn part() -> impl Strategy<Value = Part> + Clone {
    (len(), memory()).prop_map(|(len, memory)| Part { len, memory })
}

fn transfer(end: impl Strategy<Value = End> + Clone + 'static) -> impl Strategy<Value = Transfer> {
    let form = prop_oneof![
        6 => Just(Form::Plain),
        2 => Just(Form::Vector),
        1 => Just(Form::Flags { nowait: true, nosignal: false }),
        1 => any::<bool>().prop_map(|nowait| Form::Flags { nowait, nosignal: true }),
    ];
    (end, form, vec(part(), 1..4)).prop_map(|(end, form, mut parts)| {
        if matches!(form, Form::Plain) {
            parts.truncate(1);
        }
        Transfer { end, parts, form }
    })
}

// One that sleeps if it can.
fn patient(end: impl Strategy<Value = End> + Clone + 'static) -> impl Strategy<Value = Transfer> {
    let form = prop_oneof![3 => Just(Form::Plain), 1 => Just(Form::Vector)];
    (end, form, vec(part(), 1..3)).prop_map(|(end, form, mut parts)| {
        if matches!(form, Form::Plain) {
            parts.truncate(1);
        }
        parts[0].len = parts[0].len.max(1);
        Transfer { end, parts, form }
    })
}

fn size() -> impl Strategy<Value = u32> + Clone {
    prop_oneof![
        1 => Just(0),
        1 => Just(1),
        3 => Just(PAGE),
        1 => Just(PAGE + 1),
        3 => Just(2 * PAGE),
        3 => Just(4 * PAGE),
        2 => Just(16 * PAGE),
        1 => Just(17 * PAGE),
        1 => Just((1 << 31) + 1),
    ]
}

// None but whole pages and what fits a page: of more than that, a full pipe may take a byte at each
// try.
fn chunk() -> impl Strategy<Value = u32> + Clone {
    prop_oneof![Just(PAGE), Just(16 * PAGE), Just(1000), Just(PAGE - 1)]
}

fn asked() -> impl Strategy<Value = i16> + Clone {
    prop_oneof![
        Just(libc::POLLIN),
        Just(libc::POLLOUT),
        Just(libc::POLLIN | libc::POLLOUT),
        Just(0),
    ]
}

fn watched() -> impl Strategy<Value = u32> + Clone {
    let kinds = prop_oneof![
        Just(libc::EPOLLIN as u32),
        Just(libc::EPOLLOUT as u32),
        Just((libc::EPOLLIN | libc::EPOLLOUT) as u32),
    ];
    let manner = prop_oneof![
        2 => Just(0),
        3 => Just(EDGE),
        1 => Just(libc::EPOLLONESHOT as u32),
        1 => Just(libc::EPOLLRDHUP as u32),
    ];
    (kinds, manner).prop_map(|(kinds, manner)| kinds | manner)
}

fn access() -> impl Strategy<Value = Access> + Clone {
    prop_oneof![Just(Access::Read), Just(Access::Write), Just(Access::Both)]
}

fn flag() -> impl Strategy<Value = Flag> + Clone {
    prop_oneof![2 => Just(Flag::Nonblock), 1 => Just(Flag::Direct), 1 => Just(Flag::Async)]
}

fn odd() -> impl Strategy<Value = Odd> + Clone {
    prop_oneof![
        Just(Odd::Seek),
        Just(Odd::Pread),
        Just(Odd::Pwrite),
        Just(Odd::Truncate),
        Just(Odd::Sync),
        Just(Odd::CountNowhere),
        Just(Odd::Unknown),
    ]
}

fn op() -> BoxedStrategy<Op> {
    prop_oneof![
        20 => transfer(reader()).prop_map(Op::Read),
        24 => transfer(writer()).prop_map(Op::Write),
        2 => (writer(), chunk()).prop_map(|(end, chunk)| Op::Fill(end, chunk)),
        2 => (reader(), chunk()).prop_map(|(end, chunk)| Op::Drain(end, chunk)),
        6 => (any_end(), size()).prop_map(|(end, size)| Op::Resize(end, size)),
        8 => (any_end(), flag(), any::<bool>()).prop_map(|(end, flag, on)| Op::Set(end, flag, on)),
        3 => (any_end(), asked()).prop_map(|(end, asked)| Op::Poll(end, asked)),
        5 => (any_end(), watched()).prop_map(|(end, watched)| Op::Watch(end, watched)),
        1 => any_end().prop_map(Op::Unwatch),
        8 => Just(Op::Events),
        2 => Just(Op::AwaitEvents),
        3 => any_end().prop_map(Op::Dup),
        5 => any_end().prop_map(Op::Close),
        1 => prop_oneof![Just(Side::Readers), Just(Side::Writers)].prop_map(Op::CloseAll),
        4 => (any_end(), access(), any::<bool>()).prop_map(|(end, access, now)| Op::Reopen(end, access, now)),
        2 => any::<bool>().prop_map(Op::Signal),
        1 => (any_end(), odd()).prop_map(|(end, odd)| Op::Odd(end, odd)),
    ]
    .boxed()
}

// What may let a sleeping reader go on.
fn to_readers() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => transfer(writer()).prop_map(Op::Write),
        2 => Just(Op::CloseAll(Side::Writers)),
        2 => any::<bool>().prop_map(Op::Signal),
        1 => (writer(), chunk()).prop_map(|(end, chunk)| Op::Fill(end, chunk)),
        1 => (any_end(), size()).prop_map(|(end, size)| Op::Resize(end, size)),
        1 => any_end().prop_map(Op::Close),
    ]
}

// What may let a sleeping writer go on.
fn to_writers() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => transfer(reader()).prop_map(Op::Read),
        2 => Just(Op::CloseAll(Side::Readers)),
        2 => any::<bool>().prop_map(Op::Signal),
        1 => (reader(), chunk()).prop_map(|(end, chunk)| Op::Drain(end, chunk)),
        3 => (any_end(), size()).prop_map(|(end, size)| Op::Resize(end, size)),
        1 => any_end().prop_map(Op::Close),
    ]
}

// A task that sleeps for data, and what follows.
fn starvation() -> impl Strategy<Value = Vec<Op>> {
    let drained = (0u8..3, chunk()).prop_map(|(end, chunk)| Op::Drain(End::Reader(end), chunk));
    let sleep = prop_oneof![
        6 => patient((0u8..3).prop_map(End::Reader)).prop_map(Op::Read),
        1 => (0u8..3).prop_map(|end| Op::Poll(End::Reader(end), libc::POLLIN)),
        1 => Just(Op::AwaitEvents),
    ];
    (drained, vec(sleep, 1..3), vec(to_readers(), 1..4)).prop_map(|(drained, sleeps, then)| {
        [drained].into_iter().chain(sleeps).chain(then).collect()
    })
}

// A task that sleeps for room, and what follows.
fn congestion() -> impl Strategy<Value = Vec<Op>> {
    let filled = (0u8..3, chunk()).prop_map(|(end, chunk)| Op::Fill(End::Writer(end), chunk));
    let sleep = prop_oneof![
        6 => patient((0u8..3).prop_map(End::Writer)).prop_map(Op::Write),
        1 => (0u8..3).prop_map(|end| Op::Poll(End::Writer(end), libc::POLLOUT)),
        1 => Just(Op::AwaitEvents),
    ];
    (filled, vec(sleep, 1..3), vec(to_writers(), 1..4))
        .prop_map(|(filled, sleeps, then)| [filled].into_iter().chain(sleeps).chain(then).collect())
}

/// All sequences.
pub fn scripts() -> BoxedStrategy<Script> {
    let free = vec(op(), 1..12);
    let ops = |least: usize, most: usize| vec(op(), least..most);
    let starved = (ops(0, 4), starvation(), ops(0, 3)).prop_map(join);
    let congested = (ops(0, 4), congestion(), ops(0, 3)).prop_map(join);
    let both = (starvation(), congestion(), ops(0, 2)).prop_map(join);
    let ops = Union::new_weighted(vec![
        (6, free.boxed()),
        (6, starved.boxed()),
        (6, congested.boxed()),
        (2, both.boxed()),
    ]);
    let pages = prop_oneof![3 => Just(1u32), 3 => Just(2), 2 => Just(4), 1 => Just(16)];
    let direct = prop::bool::weighted(0.1);
    let looks = prop::bool::weighted(0.7);
    let patient = prop_oneof![Just(Side::Readers), Just(Side::Writers)];
    (pages, direct, looks, patient, ops)
        .prop_map(|(pages, direct, looks, patient, ops)| Script {
            pages,
            direct,
            looks,
            patient,
            ops,
        })
        .boxed()
}

fn join((mut first, second, third): (Vec<Op>, Vec<Op>, Vec<Op>)) -> Vec<Op> {
    first.extend(second);
    first.extend(third);
    first
}
