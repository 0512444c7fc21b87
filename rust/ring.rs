// SPDX-License-Identifier: GPL-2.0

//! The ring of a pipe: slots, indices, merging, capacity, and who must be woken.
//!
//! Pure: no allocation, no lock, no kernel type. Who uses a ring brings the slots' storage and the
//! page type, and serialises all calls. What may be looked at without that lock is the word that
//! [`Published`] holds.
//!
//! ```text
//!        tail                 head
//!         v                    v
//!   . . [ 7 ][ 8 ][ 9 ][ 10 ][ . ][ . ]      slot of index i: i & (slots - 1)
//!         ^ oldest, read next   ^ filled next
//! ```
//!
//! Indices run freely and wrap at 2^32; only a look at a slot masks them. So `head - tail` is the
//! number of slots in use, an empty ring is not a full one, and no slot is wasted to tell them
//! apart. The price is that the number of slots must be a power of two.

use core::ops::DerefMut;

mod index;
mod wake;

pub(crate) use index::{Published, Span};
pub(crate) use wake::{ReaderWake, Watched, WriterWake};

/// What may happen to a slot's bytes after they were written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A later write may append to them.
    Open,
    /// They are one packet: a single read takes it, and what does not fit is lost.
    Packet,
    /// They lie in a page that somebody else has as well: nothing may ever be written to it, so
    /// nothing is appended, and it is dropped where it is spent, never given back for reuse.
    Sealed,
    /// One packet in such a page.
    SealedPacket,
}

impl Kind {
    /// The kind of bytes in a page that is not the ring's own.
    pub(crate) const fn sealed(is_packet: bool) -> Self {
        if is_packet {
            Self::SealedPacket
        } else {
            Self::Sealed
        }
    }

    const fn is_packet(self) -> bool {
        matches!(self, Self::Packet | Self::SealedPacket)
    }

    const fn is_sealed(self) -> bool {
        matches!(self, Self::Sealed | Self::SealedPacket)
    }
}

/// One buffer of the ring.
///
/// # Invariants
///
/// `page` is some exactly while the slot's index lies in the ring's span, but for a sealed slot that
/// is spent: its page is gone before the tail moves. `offset + len` is at most the size of a page.
pub(crate) struct Slot<P> {
    page: Option<P>,
    offset: u32,
    len: u32,
    kind: Kind,
}

impl<P> Slot<P> {
    /// A slot that holds nothing.
    pub(crate) const fn vacant() -> Self {
        // INVARIANT: It is in no span yet, and `0 + 0` fits.
        Self {
            page: None,
            offset: 0,
            len: 0,
            kind: Kind::Open,
        }
    }

    /// The page, with the place and the number of bytes that a reader has not had yet.
    #[inline]
    pub(crate) fn unread(&self) -> Option<(&P, usize, usize)> {
        let page = self.page.as_ref()?;
        Some((page, self.offset as usize, self.len as usize))
    }

    /// Whether the slot is open, as most slots are.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.kind == Kind::Open
    }

    /// Notes that a reader took `count` bytes, of those that [`Slot::unread`] told, of an open slot;
    /// returns whether it is spent.
    #[inline]
    pub(crate) fn taken(&mut self, count: usize) -> bool {
        self.advance(count);
        self.len == 0
    }

    /// As [`Self::taken`], for a slot of any kind.
    ///
    /// A packet is spent by any read, however short.
    pub(crate) fn taken_otherwise(&mut self, count: usize) -> bool {
        self.advance(count);
        if self.kind.is_packet() {
            self.len = 0;
        }
        self.drop_if_sealed();
        self.len == 0
    }

    /// Notes that `count` bytes went on to another pipe; returns whether the slot is spent.
    ///
    /// The rest of a packet stays, and is a packet.
    pub(crate) fn passed_on(&mut self, count: usize) -> bool {
        self.advance(count);
        self.drop_if_sealed();
        self.len == 0
    }

    #[inline]
    fn advance(&mut self, count: usize) {
        // INVARIANT: The sum stays as it was.
        self.offset = self.offset.wrapping_add(count as u32);
        self.len = self.len.wrapping_sub(count as u32);
    }

    /// Drops a page that is not the ring's own where it is spent, before anybody could take it for
    /// one to be used again.
    fn drop_if_sealed(&mut self) {
        if self.len == 0 && self.kind.is_sealed() {
            // INVARIANT: A sealed slot, and spent.
            self.page = None;
        }
    }

    /// Whether this slot is a packet.
    pub(crate) fn is_packet(&self) -> bool {
        self.kind.is_packet()
    }
}

/// The slots of a pipe in the order of writing.
///
/// # Invariants
///
/// `slots` has a power of two of slots, at least `limit` of them, and `span` covers at most as
/// many as there are.
pub(crate) struct Ring<P, S> {
    slots: S,
    span: Span,
    limit: u32,
    _page: core::marker::PhantomData<P>,
}

impl<P, S: DerefMut<Target = [Slot<P>]>> Ring<P, S> {
    /// Makes an empty ring of `slots`, or none if their number is not a power of two.
    pub(crate) fn new(slots: S) -> Option<Self> {
        let limit = u32::try_from(slots.len()).ok()?;

        if !limit.is_power_of_two() {
            return None;
        }
        // INVARIANT: Just checked; an empty span covers nothing.
        Some(Self {
            slots,
            span: Span::START,
            limit,
            _page: core::marker::PhantomData,
        })
    }

    /// The indices.
    #[inline]
    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// The number of slots that may be in use at once.
    #[inline]
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Whether nothing is left to read.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.span.is_empty()
    }

    /// Whether no further slot may be filled.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.span.is_full(self.limit)
    }

    #[inline]
    fn slot_in(slots: &mut S, index: u32) -> Option<&mut Slot<P>> {
        let mask = slots.len().wrapping_sub(1);

        slots.get_mut(index as usize & mask)
    }

    #[inline]
    fn slot_mut(&mut self, index: u32) -> Option<&mut Slot<P>> {
        Self::slot_in(&mut self.slots, index)
    }

    /// The oldest slot in use.
    #[inline]
    pub(crate) fn oldest(&mut self) -> Option<&mut Slot<P>> {
        if self.span.is_empty() {
            return None;
        }
        self.slot_mut(self.span.tail)
    }

    /// Takes the page out of the oldest slot: none where it was sealed and is spent.
    ///
    /// The caller follows with [`Ring::advance_tail`]: the two are apart so that a variant can put
    /// the index alone under one more lock.
    #[inline]
    pub(crate) fn vacate_oldest(&mut self) -> Option<P> {
        self.oldest()?.page.take()
    }

    /// Moves the tail over the slot that [`Ring::vacate_oldest`] emptied.
    #[inline]
    pub(crate) fn advance_tail(&mut self) -> Span {
        if !self.span.is_empty() {
            self.span.tail = self.span.tail.wrapping_add(1);
        }
        self.span
    }

    /// The page and the place in it where `count` more bytes may be appended to the newest slot.
    #[inline]
    pub(crate) fn room_in_newest(
        &mut self,
        count: usize,
        page_size: usize,
    ) -> Option<(&mut P, usize)> {
        if self.span.is_empty() {
            return None;
        }
        let newest = self.slot_mut(self.span.head.wrapping_sub(1))?;
        let end = newest.offset.wrapping_add(newest.len) as usize;

        if newest.kind != Kind::Open || end.saturating_add(count) > page_size {
            return None;
        }
        Some((newest.page.as_mut()?, end))
    }

    /// Notes that `count` bytes were appended where [`Ring::room_in_newest`] said.
    #[inline]
    pub(crate) fn appended(&mut self, count: usize) {
        let newest = self.span.head.wrapping_sub(1);

        if let Some(slot) = self.slot_mut(newest) {
            // INVARIANT: The caller had this much room.
            slot.len = slot.len.wrapping_add(count as u32);
        }
    }

    /// Puts `page` with `len` bytes from its start behind the newest slot.
    ///
    /// A full ring gives the page back.
    #[inline]
    pub(crate) fn push(&mut self, page: P, len: usize, kind: Kind) -> Result<Span, P> {
        self.push_range(page, 0, len, kind)
    }

    /// As [`Ring::push`], with `len` bytes from `offset`; together they are at most a page.
    #[inline]
    pub(crate) fn push_range(
        &mut self,
        page: P,
        offset: usize,
        len: usize,
        kind: Kind,
    ) -> Result<Span, P> {
        if self.is_full() {
            return Err(page);
        }
        let head = self.span.head;
        let Some(slot) = self.slot_mut(head) else {
            return Err(page);
        };

        // INVARIANT: The slot enters the span below, and a page holds `offset + len` bytes.
        *slot = Slot {
            page: Some(page),
            offset: offset as u32,
            len: len as u32,
            kind,
        };
        self.span.head = head.wrapping_add(1);
        Ok(self.span)
    }

    /// The page of the newest slot, for who fills it after [`Ring::push`] made it visible.
    pub(crate) fn newest_page(&mut self) -> Option<&mut P> {
        if self.span.is_empty() {
            return None;
        }
        self.slot_mut(self.span.head.wrapping_sub(1))?.page.as_mut()
    }

    /// Moves everything into `slots` and gives the old storage back.
    ///
    /// The indices stay as they are. Where `slots` is no ring, or is too small for what is in use,
    /// nothing changes and `slots` comes back as the error.
    pub(crate) fn resize(&mut self, slots: S) -> Result<S, S> {
        let limit = match u32::try_from(slots.len()) {
            Ok(limit) if limit.is_power_of_two() && limit >= self.span.used() => limit,
            _ => return Err(slots),
        };
        let mut old = core::mem::replace(&mut self.slots, slots);
        let Span { head, tail } = self.span;
        let mut index = tail;

        // INVARIANT: Each slot of the span moves along, and the new ring has room for all.
        while index != head {
            if let (Some(from), Some(to)) = (Self::slot_in(&mut old, index), self.slot_mut(index)) {
                core::mem::swap(from, to);
            }
            index = index.wrapping_add(1);
        }
        self.limit = limit;
        Ok(old)
    }

    /// The number of bytes left to read.
    pub(crate) fn bytes(&mut self) -> usize {
        let Span { head, tail } = self.span;
        let mut index = tail;
        let mut sum = 0usize;

        while index != head {
            let len = self.slot_mut(index).map_or(0, |slot| slot.len as usize);
            sum = sum.saturating_add(len);
            index = index.wrapping_add(1);
        }
        sum
    }
}
