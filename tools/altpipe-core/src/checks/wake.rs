// SPDX-License-Identifier: GPL-2.0

//! The wake-up rules one by one: what each asks for, by what VARIANTS and the ABI text say of it.

use crate::config::{WakeReader, WakeWriter};
use crate::ring::{ReaderWake, Span, Watched, WriterWake};

/// A ring with `used` slots in use, its indices about to wrap.
fn span(used: u32) -> Span {
    let tail = u32::MAX - 2;
    Span {
        head: tail.wrapping_add(used),
        tail,
    }
}

/// At which numbers of slots in use, that one still counted, a read that begins with `found` of
/// `limit` slots and drains the ring is asked to wake writers.
fn asks(rule: WakeWriter, found: u32, limit: u32) -> Vec<u32> {
    let wake = WriterWake::begin(rule, span(found), limit);
    let releases = (1..=found).rev();
    releases
        .filter(|&used| wake.on_release(span(used), limit))
        .collect()
}

#[test]
fn freed_full_asks_when_a_full_ring_loses_a_slot() {
    for limit in [1, 2, 16] {
        assert_eq!(asks(WakeWriter::FreedFull, limit, limit), [limit]);
        assert!(asks(WakeWriter::FreedFull, limit - 1, limit).is_empty());
    }
}

#[test]
fn was_full_asks_at_every_slot_of_a_ring_that_was_found_full() {
    for limit in [1, 2, 16] {
        let all: Vec<_> = (1..=limit).rev().collect();
        assert_eq!(asks(WakeWriter::WasFull, limit, limit), all);
        assert!(asks(WakeWriter::WasFull, limit - 1, limit).is_empty());
    }
}

#[test]
fn was_full_asks_though_nothing_was_released() {
    for rule in WakeWriter::ALL {
        let wake = WriterWake::begin(*rule, span(16), 16);
        assert_eq!(wake.due(), *rule == WakeWriter::WasFull, "{rule:?}");
    }
}

#[test]
fn half_asks_at_half_and_at_either_end() {
    assert_eq!(asks(WakeWriter::Half, 16, 16), [16, 8, 1]);
    assert_eq!(asks(WakeWriter::Half, 12, 16), [8, 1]);
    assert_eq!(asks(WakeWriter::Half, 7, 16), [1]);
    assert_eq!(asks(WakeWriter::Half, 2, 2), [2, 1]);
    assert_eq!(asks(WakeWriter::Half, 1, 1), [1]);
}

#[test]
fn every_release_asks_at_every_slot() {
    for found in [1, 5, 16] {
        let all: Vec<_> = (1..=found).rev().collect();
        assert_eq!(asks(WakeWriter::EveryRelease, found, 16), all);
    }
}

#[test]
fn every_rule_asks_when_a_full_ring_loses_a_slot() {
    for rule in WakeWriter::ALL {
        for limit in [1, 2, 4, 8, 16] {
            assert_eq!(asks(*rule, limit, limit).first(), Some(&limit), "{rule:?}");
        }
    }
}

#[test]
fn a_deferred_wake_up_is_due_at_the_end_and_a_sent_one_is_not() {
    let mut wake = WriterWake::begin(WakeWriter::FreedFull, span(16), 16);
    wake.defer(false);
    assert!(!wake.due());
    wake.defer(true);
    wake.defer(false);
    assert!(wake.due());
    wake.sent();
    assert!(!wake.due());
}

/// What a write is asked for that begins with `found` slots in use and publishes `chunks`: wake-ups
/// at once, before it would sleep, and at its end.
fn asked(rule: WakeReader, found: u32, chunks: usize, watched: Watched) -> (usize, bool, bool) {
    let mut wake = ReaderWake::begin(rule, span(found));
    let at_once = (0..chunks).filter(|_| wake.on_chunk()).count();
    (at_once, wake.before_sleep(), wake.at_end(watched))
}

fn unwatched() -> Watched {
    Watched::from_bits(0)
}

fn polled() -> Watched {
    Watched::from_bits(Watched::bits(false))
}

fn watched_by_epollet() -> Watched {
    Watched::from_bits(Watched::bits(true))
}

const BY_TRANSITION: [WakeReader; 3] = [
    WakeReader::WasEmptyOrEpollet,
    WakeReader::WasEmptyOrPolled,
    WakeReader::WasEmpty,
];

#[test]
fn a_transition_rule_asks_when_the_ring_was_empty() {
    for rule in BY_TRANSITION {
        assert_eq!(asked(rule, 0, 2, unwatched()), (0, true, true));
        assert_eq!(asked(rule, 1, 2, unwatched()), (0, false, false));
    }
}

#[test]
fn a_poller_gets_an_event_a_write_by_was_empty_or_polled_alone() {
    let at_end = |rule| asked(rule, 1, 1, polled()).2;
    assert_eq!(BY_TRANSITION.map(at_end), [false, true, false]);
}

#[test]
fn an_edge_triggered_epoll_gets_an_event_a_write_unless_was_empty() {
    let at_end = |rule| asked(rule, 1, 1, watched_by_epollet()).2;
    assert_eq!(BY_TRANSITION.map(at_end), [true, true, false]);
}

#[test]
fn watching_does_not_wake_before_a_sleep() {
    for rule in BY_TRANSITION {
        assert!(!asked(rule, 1, 1, watched_by_epollet()).1);
    }
}

#[test]
fn every_write_asks_once_for_a_write_that_moved_bytes() {
    for found in [0, 1] {
        assert_eq!(
            asked(WakeReader::EveryWrite, found, 3, unwatched()),
            (0, true, true)
        );
        assert_eq!(
            asked(WakeReader::EveryWrite, found, 0, unwatched()),
            (0, false, false)
        );
    }
}

#[test]
fn every_chunk_asks_at_each_chunk_and_never_again() {
    for found in [0, 1] {
        assert_eq!(
            asked(WakeReader::EveryChunk, found, 3, watched_by_epollet()),
            (3, false, false)
        );
    }
}
