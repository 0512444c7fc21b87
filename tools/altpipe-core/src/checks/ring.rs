// SPDX-License-Identifier: GPL-2.0

//! The ring against a model that is too simple to be wrong: a queue of buffers of bytes.

use crate::ring::{Kind, Published, Ring, Slot, Span};
use proptest::prelude::*;
use std::collections::VecDeque;

/// Small, so that a few writes reach every boundary.
const PAGE: usize = 8;

/// A page that knows its own name, so that a page handed back can be told from its siblings.
struct Page {
    name: usize,
    bytes: [u8; PAGE],
}

/// What the model knows of a slot in use.
struct Buffer {
    name: usize,
    unread: VecDeque<u8>,
    /// Bytes of the page that were written so far, read or not.
    end: usize,
    kind: Kind,
}

impl Buffer {
    fn is_packet(&self) -> bool {
        [Kind::Packet, Kind::SealedPacket].contains(&self.kind)
    }

    fn is_sealed(&self) -> bool {
        [Kind::Sealed, Kind::SealedPacket].contains(&self.kind)
    }
}

/// How bytes leave a slot.
#[derive(Clone, Copy)]
enum Way {
    Read,
    PassedOn,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Put a new page behind the newest.
    Push(usize, Kind),
    /// Put a new page behind the newest and fill it there; nothing is filled in by a failed copy.
    PushInSight(usize, Kind),
    /// Append to the newest page.
    Append(usize),
    /// Put so many bytes from so far into somebody else's page behind the newest.
    PushSealed(usize, usize, bool),
    /// Read from the oldest page.
    Take(usize),
    /// Have so many bytes of the oldest page go on to another pipe.
    PassOn(usize),
    /// Go on with so many slots.
    Resize(usize),
}

/// The ring and its model, side by side.
struct Pair {
    ring: Ring<Page, Vec<Slot<Page>>>,
    model: VecDeque<Buffer>,
    slots: usize,
    names: usize,
    next: u8,
}

impl Pair {
    fn new(slots: usize) -> Self {
        Self {
            ring: Ring::new(vacant(slots)).expect("a power of two"),
            model: VecDeque::new(),
            slots,
            names: 0,
            next: 0,
        }
    }

    /// The next bytes of a stream in which neighbours differ.
    fn fresh(&mut self, count: usize) -> Vec<u8> {
        let bytes = (0..count)
            .map(|i| self.next.wrapping_add(i as u8))
            .collect();
        self.next = self.next.wrapping_add(count as u8);
        bytes
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Push(len, kind) => self.push(len, kind),
            Step::PushInSight(len, kind) => self.push_in_sight(len, kind),
            Step::Append(count) => self.append(count),
            Step::PushSealed(offset, len, packet) => {
                self.push_range(offset, len, Kind::sealed(packet));
            }
            Step::Take(count) => self.take(count, Way::Read),
            Step::PassOn(count) => self.take(count, Way::PassedOn),
            Step::Resize(slots) => self.resize(slots),
        }
        self.compare();
    }

    fn push(&mut self, len: usize, kind: Kind) {
        self.push_range(0, len, kind);
    }

    fn push_range(&mut self, offset: usize, len: usize, kind: Kind) {
        let name = self.names;
        self.names += 1;
        let bytes = self.fresh(len);
        let mut page = Page {
            name,
            bytes: [0; PAGE],
        };
        page.bytes[offset..offset + len].copy_from_slice(&bytes);
        let before = self.ring.span();
        match self.ring.push_range(page, offset, len, kind) {
            Ok(span) => {
                assert!(self.model.len() < self.slots, "pushed into a full ring");
                assert_eq!(span.head, before.head.wrapping_add(1));
                assert_eq!(span.tail, before.tail);
                self.model.push_back(Buffer {
                    name,
                    unread: bytes.into(),
                    end: offset + len,
                    kind,
                });
            }
            Err(page) => {
                assert_eq!(self.model.len(), self.slots, "refused by a ring with room");
                assert_eq!(page.name, name, "another page came back");
                assert_eq!(self.ring.span(), before);
            }
        }
    }

    fn push_in_sight(&mut self, len: usize, kind: Kind) {
        let used = self.model.len();
        self.push(0, kind);
        if self.model.len() == used {
            return;
        }
        let bytes = self.fresh(len);
        let page = self.ring.newest_page().expect("just pushed");
        page.bytes[..len].copy_from_slice(&bytes);
        self.ring.appended(len);
        let buffer = self.model.back_mut().expect("just pushed");
        buffer.unread.extend(bytes);
        buffer.end = len;
    }

    fn append(&mut self, count: usize) {
        let bytes = self.fresh(count);
        let fits = |buffer: &&mut Buffer| buffer.kind == Kind::Open && buffer.end + count <= PAGE;
        match (
            self.ring.room_in_newest(count, PAGE),
            self.model.back_mut().filter(fits),
        ) {
            (None, None) => return,
            (Some((page, at)), Some(buffer)) => {
                assert_eq!((page.name, at), (buffer.name, buffer.end));
                page.bytes[at..at + count].copy_from_slice(&bytes);
                buffer.end += count;
                buffer.unread.extend(bytes);
            }
            (ring, model) => panic!(
                "room for {count} bytes: ring {}, model {}",
                ring.is_some(),
                model.is_some()
            ),
        }
        self.ring.appended(count);
    }

    /// Takes from the oldest slot as a call does that has room for `count` bytes more.
    fn take(&mut self, count: usize, way: Way) {
        let Some(slot) = self.ring.oldest() else {
            assert!(self.model.is_empty());
            return;
        };
        let buffer = self.model.front_mut().expect("the ring has a slot in use");

        let (page, offset, len) = slot.unread().expect("a slot in use has a page");
        let count = count.min(len);
        let got = page.bytes[offset..offset + count].to_vec();
        assert_eq!(page.name, buffer.name);
        assert_eq!(slot.is_packet(), buffer.is_packet());
        assert_eq!(slot.is_open(), buffer.kind == Kind::Open);
        let expected: Vec<_> = buffer.unread.drain(..count).collect();
        assert_eq!(got, expected);
        let spent = match way {
            Way::Read => {
                if buffer.is_packet() {
                    buffer.unread.clear();
                }
                if slot.is_open() {
                    slot.taken(count)
                } else {
                    slot.taken_otherwise(count)
                }
            }
            Way::PassedOn => slot.passed_on(count),
        };
        assert_eq!(spent, buffer.unread.is_empty());
        if spent {
            let before = self.ring.span();
            let page = self.ring.vacate_oldest().map(|page| page.name);
            let own = (!buffer.is_sealed()).then_some(buffer.name);
            assert_eq!(
                page, own,
                "a sealed page came back, or one of the ring's own did not"
            );
            assert_eq!(self.ring.span(), before, "the tail moves by itself");
            let span = self.ring.advance_tail();
            assert_eq!(span.tail, before.tail.wrapping_add(1));
            assert_eq!(span.head, before.head);
            self.model.pop_front();
        }
    }

    fn resize(&mut self, slots: usize) {
        let before = self.ring.span();
        let fits = slots.is_power_of_two() && slots >= self.model.len();
        match self.ring.resize(vacant(slots)) {
            Ok(old) => {
                assert!(fits, "{slots} slots are no ring for what is in use");
                assert_eq!(old.len(), self.slots);
                assert!(
                    old.iter().all(|slot| slot.unread().is_none()),
                    "a page stayed behind"
                );
                self.slots = slots;
            }
            Err(refused) => {
                assert!(!fits, "{slots} slots were refused");
                assert_eq!(refused.len(), slots, "other storage came back");
            }
        }
        assert_eq!(self.ring.span(), before);
    }

    fn compare(&mut self) {
        let used = self.model.len();
        let span = self.ring.span();
        assert_eq!(span.used() as usize, used);
        assert_eq!(self.ring.limit() as usize, self.slots);
        assert_eq!(
            (self.ring.is_empty(), span.is_empty()),
            (used == 0, used == 0)
        );
        assert_eq!(self.ring.is_full(), used == self.slots);
        assert_eq!(span.is_full(self.ring.limit()), used == self.slots);
        let unread: usize = self.model.iter().map(|buffer| buffer.unread.len()).sum();
        assert_eq!(self.ring.bytes(), unread);
        let newest = self.ring.newest_page().map(|page| page.name);
        assert_eq!(newest, self.model.back().map(|buffer| buffer.name));
    }
}

/// Storage for so many slots.
fn vacant(slots: usize) -> Vec<Slot<Page>> {
    std::iter::repeat_with(Slot::vacant).take(slots).collect()
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![3 => Just(Kind::Open), 1 => Just(Kind::Packet)]
}

fn sealed() -> impl Strategy<Value = Step> {
    (0..PAGE).prop_flat_map(|offset| {
        (1..=PAGE - offset, any::<bool>())
            .prop_map(move |(len, packet)| Step::PushSealed(offset, len, packet))
    })
}

/// Steps that fill a ring as often as they drain it.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1..=PAGE, kind()).prop_map(|(len, kind)| Step::Push(len, kind)),
        1 => (0..=PAGE, kind()).prop_map(|(len, kind)| Step::PushInSight(len, kind)),
        2 => (1..=PAGE).prop_map(Step::Append),
        2 => sealed(),
        4 => (0..=PAGE + 1).prop_map(Step::Take),
        2 => (0..=PAGE + 1).prop_map(Step::PassOn),
        1 => prop_oneof![(0..5u32).prop_map(|bits| 1 << bits), 0..20usize].prop_map(Step::Resize),
    ];
    prop::collection::vec(step, 0..400)
}

proptest! {
    #[test]
    fn a_ring_does_what_a_queue_of_buffers_does(bits in 0..5u32, steps in steps()) {
        let mut pair = Pair::new(1 << bits);
        for step in steps {
            pair.step(step);
        }
        while !pair.model.is_empty() {
            pair.step(Step::Take(PAGE));
        }
    }

    #[test]
    fn a_span_counts_across_the_wrap(tail in any::<u32>(), used in 0..=1u32 << 20) {
        let span = Span { head: tail.wrapping_add(used), tail };
        prop_assert_eq!(span.used(), used);
        prop_assert_eq!(span.is_empty(), used == 0);
        for limit in [1, 16, 1 << 20] {
            prop_assert_eq!(span.is_full(limit), used >= limit);
        }
    }

    #[test]
    fn a_published_pair_comes_back_whole(first in any::<(u32, u32)>(), second in any::<(u32, u32)>()) {
        let word = Published::new(first.0, first.1);
        prop_assert_eq!(word.load(), first);
        word.store(second.0, second.1);
        prop_assert_eq!(word.load(), second);
        let span = Span { head: first.0, tail: first.1 };
        word.store_span(span);
        prop_assert_eq!(word.load_span(), span);
    }
}

#[test]
fn a_ring_has_a_power_of_two_of_slots() {
    for slots in 0..=64usize {
        assert_eq!(Ring::new(vacant(slots)).is_some(), slots.is_power_of_two());
    }
}

#[test]
fn every_slot_is_used_many_times_over() {
    for slots in [1, 2, 16] {
        let mut pair = Pair::new(slots);
        for round in 0..1000 {
            let fill = 1 + round % slots;
            for _ in 0..fill {
                pair.step(Step::Push(PAGE, Kind::Open));
            }
            for _ in 0..fill {
                pair.step(Step::Take(PAGE));
            }
        }
    }
}

#[test]
fn a_packet_is_spent_by_a_short_read() {
    let mut pair = Pair::new(4);
    pair.step(Step::Push(PAGE, Kind::Packet));
    pair.step(Step::Push(3, Kind::Packet));
    pair.step(Step::Take(1));
    assert_eq!(pair.ring.bytes(), 3);
}

#[test]
fn nothing_is_appended_to_a_packet() {
    let mut pair = Pair::new(4);
    pair.step(Step::Push(1, Kind::Packet));
    assert!(pair.ring.room_in_newest(1, PAGE).is_none());
}

#[test]
fn nothing_is_appended_to_somebody_elses_page() {
    for packet in [false, true] {
        let mut pair = Pair::new(4);
        pair.step(Step::PushSealed(0, 1, packet));
        assert!(pair.ring.room_in_newest(1, PAGE).is_none());
    }
}

#[test]
fn a_packet_that_goes_on_in_part_leaves_a_packet() {
    for step in [
        Step::Push(PAGE, Kind::Packet),
        Step::PushSealed(0, PAGE, true),
    ] {
        let mut pair = Pair::new(4);
        pair.step(step);
        pair.step(Step::PassOn(3));
        assert_eq!(pair.ring.bytes(), PAGE - 3);
        pair.step(Step::Take(1));
        assert_eq!(pair.ring.bytes(), 0);
    }
}

#[test]
fn what_was_read_from_a_page_is_no_room() {
    let mut pair = Pair::new(1);
    pair.step(Step::Push(PAGE, Kind::Open));
    pair.step(Step::Take(PAGE - 1));
    assert!(pair.ring.room_in_newest(1, PAGE).is_none());
}

#[test]
fn an_empty_slot_is_spent_by_reading_nothing() {
    for kind in [Kind::Open, Kind::Packet] {
        let mut pair = Pair::new(2);
        pair.step(Step::PushInSight(0, kind));
        pair.step(Step::Push(1, Kind::Open));
        assert!(pair.ring.is_full());
        let slot = pair.ring.oldest().expect("not empty");
        assert!(matches!(slot.unread(), Some((_, 0, 0))));
        pair.step(Step::Take(PAGE));
        assert_eq!((pair.ring.span().used(), pair.ring.bytes()), (1, 1));
    }
}

#[test]
fn a_later_write_may_fill_an_empty_slot() {
    let mut pair = Pair::new(1);
    pair.step(Step::PushInSight(0, Kind::Open));
    pair.step(Step::Append(PAGE));
    assert_eq!(pair.ring.bytes(), PAGE);
}

#[test]
fn a_packet_that_stayed_empty_takes_no_later_write() {
    let mut pair = Pair::new(1);
    pair.step(Step::PushInSight(0, Kind::Packet));
    assert!(pair.ring.room_in_newest(1, PAGE).is_none());
}

#[test]
fn a_ring_that_is_resized_keeps_what_was_read_in_part() {
    let mut pair = Pair::new(2);
    pair.step(Step::Push(PAGE, Kind::Open));
    pair.step(Step::Push(3, Kind::Packet));
    pair.step(Step::Take(5));
    pair.step(Step::Resize(16));
    pair.step(Step::Push(1, Kind::Open));
    pair.step(Step::Resize(2));
    assert_eq!(pair.slots, 16, "three slots do not fit into two");
    pair.step(Step::Take(3));
    pair.step(Step::Resize(2));
    assert!(pair.ring.is_full());
    assert_eq!(pair.ring.bytes(), 4);
}

#[test]
fn a_resize_across_the_wrap_of_the_indices_moves_every_slot() {
    for used in 1..=4usize {
        let mut pair = Pair::new(4);
        while pair.ring.span().head.wrapping_add(used as u32 / 2) != 0 {
            pair.step(Step::Push(1, Kind::Open));
            pair.step(Step::Take(1));
        }
        for len in 1..=used {
            pair.step(Step::Push(len, Kind::Open));
        }
        for slots in [8, 4, 16, 4] {
            pair.step(Step::Resize(slots));
        }
        for len in 1..=used {
            assert_eq!(pair.model[0].unread.len(), len);
            pair.step(Step::Take(PAGE));
        }
    }
}
