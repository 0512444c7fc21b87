// SPDX-License-Identifier: GPL-2.0

//! Head and tail, and the word by which they are seen without the lock.

use crate::sync::Word;

/// The part of a ring that is in use: slots from `tail` up to, not including, `head`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    /// Index of the slot that is filled next.
    pub(crate) head: u32,
    /// Index of the slot that is read next.
    pub(crate) tail: u32,
}

impl Span {
    /// An empty span, a few slots before the indices wrap: each pipe goes over that edge early in
    /// its life, so a mistake there cannot hide until four thousand million slots have passed.
    pub(crate) const START: Self = Self {
        head: 0u32.wrapping_sub(64),
        tail: 0u32.wrapping_sub(64),
    };

    /// The number of slots in use.
    #[inline]
    pub(crate) fn used(self) -> u32 {
        self.head.wrapping_sub(self.tail)
    }

    /// Whether no slot is in use.
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.used() == 0
    }

    /// Whether `limit` slots or more are in use.
    #[inline]
    pub(crate) fn is_full(self, limit: u32) -> bool {
        self.used() >= limit
    }
}

/// Two 32-bit halves that belong together, for eyes without the lock.
///
/// Whoever holds the lock stores both with one store, and a look takes both with one load. Two
/// loads could pair an old head with a new tail: the ring then looks full when it is not, and a
/// writer sleeps for ever (Linux 3d252160b818, hackbench on big machines).
pub(crate) struct Published(Word);

impl Published {
    /// Publishes `low` and `high`.
    pub(crate) const fn new(low: u32, high: u32) -> Self {
        Self(Word::new(Self::pack(low, high)))
    }

    const fn pack(low: u32, high: u32) -> u64 {
        ((high as u64) << 32) | low as u64
    }

    /// Publishes a new pair; the caller holds the lock.
    #[inline]
    pub(crate) fn store(&self, low: u32, high: u32) {
        self.0.store(Self::pack(low, high));
    }

    /// The pair as it was published last: low, high.
    #[inline]
    pub(crate) fn load(&self) -> (u32, u32) {
        let word = self.0.load();

        (word as u32, (word >> 32) as u32)
    }

    /// Publishes the indices of a ring; the caller holds the lock.
    #[inline]
    pub(crate) fn store_span(&self, span: Span) {
        self.store(span.head, span.tail);
    }

    /// The indices of a ring as they were published last.
    #[inline]
    pub(crate) fn load_span(&self) -> Span {
        let (head, tail) = self.load();

        Span { head, tail }
    }
}
