// SPDX-License-Identifier: GPL-2.0

//! What a read and a write call do under the lock, by the kernel's own ring and wake-up rules.

use super::world::{At, Fault, Role, Side, Task, Wiring, World};
use crate::ring::{Kind, ReaderWake, Ring, Slot, Span, Watched, WriterWake};

/// Bytes in a page. Two is enough for part-read and for merged slots.
const PAGE: usize = 2;

impl World {
    /// Begins a call, the lock just taken.
    pub(super) fn enter(&mut self, task: &mut Task, wiring: &Wiring) -> At {
        task.left = match task.role {
            Role::Reader(bytes) | Role::Writer(bytes) => bytes,
            Role::PollIn | Role::PollOut => 0,
        };
        self.begin(task, wiring);
        let part = usize::from(task.left) % PAGE;
        let merges = task.role.side() == Side::Write && part != 0 && self.is_open(Side::Read);
        let merged = merges
            && self.with_ring(wiring, |ring| {
                let room = ring.room_in_newest(part, PAGE).is_some();
                if room {
                    ring.appended(part);
                }
                room
            });
        match merged {
            true => self.wrote(task, part, wiring),
            false => self.move_slot(task, wiring),
        }
    }

    /// Notes what the rules want to know of the ring as a call finds it.
    pub(super) fn begin(&self, task: &mut Task, wiring: &Wiring) {
        let span = self.span();
        task.moved = false;
        task.was_empty = span.is_empty();
        task.was_full = span.is_full(wiring.limit);
        task.wake_due = WriterWake::begin(wiring.wake_writer, span, wiring.limit).due();
    }

    /// Moves the bytes of one slot, or finds that it cannot.
    pub(super) fn move_slot(&mut self, task: &mut Task, wiring: &Wiring) -> At {
        match task.role.side() {
            Side::Read => self.read_slot(task, wiring),
            Side::Write => self.write_slot(task, wiring),
        }
    }

    /// What follows once the bytes of one slot were moved.
    pub(super) fn after_slot(&mut self, task: &mut Task, wiring: &Wiring) -> At {
        match task.left {
            0 => self.leave(task, wiring),
            _ => At::Moving,
        }
    }

    /// Drops the lock, the call being done.
    fn leave(&mut self, task: &mut Task, wiring: &Wiring) -> At {
        let (wakes, left_something) = match task.role.side() {
            Side::Read => (
                Self::writer_wake(task, wiring).due(),
                !self.span().is_empty(),
            ),
            Side::Write => (
                Self::reader_wake(task, wiring).at_end(Watched::from_bits(0)),
                !self.span().is_full(wiring.limit),
            ),
        };
        let owes = wiring.exclusive && wiring.split_wait && task.waited;
        task.hand_over = owes && left_something && wiring.fault != Fault::NoHandOver;
        self.locked = false;
        match wakes {
            true => At::WakingOther,
            false => Self::after_waking(task),
        }
    }

    fn write_slot(&mut self, task: &mut Task, wiring: &Wiring) -> At {
        if !self.is_open(Side::Read) {
            task.calls = 1;
            return self.leave(task, wiring);
        }
        if self.span().is_full(wiring.limit) {
            if task.signal {
                return self.leave(task, wiring);
            }
            return match Self::reader_wake(task, wiring).before_sleep() {
                true => self.sleep(task, wiring, At::WakingBeforeSleep),
                false => self.sleep(task, wiring, At::Queueing),
            };
        }
        let count = usize::from(task.left).min(PAGE);
        self.with_ring(wiring, |ring| {
            assert!(ring.push((), count, Kind::Open).is_ok());
        });
        self.wrote(task, count, wiring)
    }

    fn wrote(&mut self, task: &mut Task, count: usize, wiring: &Wiring) -> At {
        let at_once = Self::reader_wake(task, wiring).on_chunk();
        task.left -= count as u8;
        task.moved = true;
        match at_once {
            true => At::WakingInLock,
            false => self.after_slot(task, wiring),
        }
    }

    fn read_slot(&mut self, task: &mut Task, wiring: &Wiring) -> At {
        let before = self.span();
        if before.is_empty() {
            if !self.is_open(Side::Write) {
                task.calls = 1;
                return self.leave(task, wiring);
            }
            if task.moved {
                return self.leave(task, wiring);
            }
            return self.sleep(task, wiring, At::Queueing);
        }
        let wanted = usize::from(task.left);
        let (count, spent) = self.with_ring(wiring, |ring| {
            let slot = ring.oldest().expect("not empty");
            let ((), _, len) = slot.unread().expect("a slot in use has a page");
            let count = len.min(wanted);
            let spent = slot.taken(count);
            if spent {
                ring.vacate_oldest();
                ring.advance_tail();
            }
            (count, spent)
        });
        task.left -= count as u8;
        task.moved = true;
        if !spent {
            return self.after_slot(task, wiring);
        }
        let mut wake = Self::writer_wake(task, wiring);
        let asked = match wiring.fault {
            Fault::HalfAlone => before.used() == wiring.limit / 2,
            _ => wake.on_release(before, wiring.limit),
        };
        if asked && wiring.wake_in_lock {
            wake.sent();
        } else {
            wake.defer(asked);
        }
        task.wake_due = wake.due();
        match asked && wiring.wake_in_lock {
            true => At::WakingInLock,
            false => self.after_slot(task, wiring),
        }
    }

    /// Drops the lock to sleep. What the rules knew of the ring is of no use after that.
    fn sleep(&mut self, task: &mut Task, wiring: &Wiring, next: At) -> At {
        self.locked = false;
        if wiring.fault != Fault::StaleRule {
            task.moved = false;
            task.was_empty = false;
            task.was_full = false;
            task.wake_due = false;
        }
        next
    }

    /// The rule's state of a read under way.
    fn writer_wake(task: &Task, wiring: &Wiring) -> WriterWake {
        let found = Span {
            head: if task.was_full { wiring.limit } else { 0 },
            tail: 0,
        };
        let mut wake = WriterWake::begin(wiring.wake_writer, found, wiring.limit);
        match task.wake_due {
            true => wake.defer(true),
            false => wake.sent(),
        }
        wake
    }

    /// The rule's state of a write under way.
    fn reader_wake(task: &Task, wiring: &Wiring) -> ReaderWake {
        let found = Span {
            head: u32::from(!task.was_empty),
            tail: 0,
        };
        let mut wake = ReaderWake::begin(wiring.wake_reader, found);
        if task.moved {
            wake.on_chunk();
        }
        wake
    }

    /// Applies `change` to a ring that holds the slots of this world.
    fn with_ring<R>(
        &mut self,
        wiring: &Wiring,
        change: impl FnOnce(&mut Ring<(), Vec<Slot<()>>>) -> R,
    ) -> R {
        let storage = std::iter::repeat_with(Slot::vacant);
        let storage = storage.take(wiring.limit as usize).collect();
        let mut ring = Ring::new(storage).expect("a power of two");
        for &(offset, len) in &self.slots {
            assert!(ring.push((), usize::from(offset + len), Kind::Open).is_ok());
        }
        // Only the oldest slot can have been read in part.
        if let (Some(slot), Some(&(offset, _))) = (ring.oldest(), self.slots.first()) {
            slot.taken(usize::from(offset));
        }
        let result = change(&mut ring);
        self.slots.clear();
        while let Some(slot) = ring.oldest() {
            let ((), offset, len) = slot.unread().expect("a slot in use has a page");
            self.slots.push((offset as u8, len as u8));
            ring.vacate_oldest();
            ring.advance_tail();
        }
        result
    }
}
