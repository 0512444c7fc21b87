// SPDX-License-Identifier: GPL-2.0

//! What a read and a write call do under the lock, by the kernel's own ring and wake-up rules.

use super::plan::{Fault, Plan};
use super::task::{At, Role, Side, Task};
use super::world::World;
use crate::config::Publish;
use crate::ring::{Kind, ReaderWake, Ring, Slot, Span, Watched, WriterWake};

/// Bytes in a page. Two is enough for part-read and for merged slots.
pub(super) const PAGE: usize = 2;

impl World {
    /// Begins a call, the lock just taken.
    pub(super) fn enter(&mut self, task: &mut Task, plan: &Plan) -> At {
        task.left = task.role.bytes();
        self.begin(task, plan);
        let part = usize::from(task.left) % PAGE;
        let merges = plan.config(task.generation).merge
            && task.role.side() == Side::Write
            && part != 0
            && self.is_open(Side::Read);
        let merged = merges
            && self.with_ring(plan, |ring| {
                let room = ring.room_in_newest(part, PAGE).is_some();
                if room {
                    ring.appended(part);
                }
                room
            });
        match merged {
            true => self.wrote(task, part, plan),
            false => self.move_slot(task, plan),
        }
    }

    /// Goes on with a call that slept, the lock just taken.
    pub(super) fn go_on(&mut self, task: &mut Task, plan: &Plan) -> At {
        task.waited = true;
        if plan.fault != Fault::StaleRule {
            self.begin(task, plan);
        }
        if task.role.side() == Side::Write {
            self.waiting -= 1;
            let tells = self.waiting == 0 && plan.config(task.generation).read_merge;
            if tells && plan.fault != Fault::SilentDeparture {
                return At::WakingMergers;
            }
        }
        self.move_slot(task, plan)
    }

    /// Notes what the rules want to know of the ring as a call finds it.
    fn begin(&self, task: &mut Task, plan: &Plan) {
        let span = self.span();
        let rule = plan.config(task.generation).wake_writer;
        task.wrote = false;
        match task.role.side() {
            Side::Read => {
                task.was_full = span.is_full(self.limit(plan));
                task.wake_due = WriterWake::begin(rule, span, self.limit(plan)).due();
            }
            Side::Write => task.was_empty = span.is_empty(),
        }
    }

    /// Moves the bytes of one slot, or finds that it cannot.
    pub(super) fn move_slot(&mut self, task: &mut Task, plan: &Plan) -> At {
        match task.role.side() {
            Side::Read => self.read_slot(task, plan),
            Side::Write => self.write_slot(task, plan),
        }
    }

    /// What follows once the bytes of one slot were moved.
    pub(super) fn after_slot(&mut self, task: &mut Task, plan: &Plan) -> At {
        match task.left {
            0 => self.leave(task, plan),
            _ => At::Moving,
        }
    }

    /// Drops the lock, the call being done.
    fn leave(&mut self, task: &mut Task, plan: &Plan) -> At {
        let (wakes, left_something) = match task.role.side() {
            Side::Read => (self.writer_wake(task, plan).due(), !self.span().is_empty()),
            Side::Write => (
                Self::reader_wake(task, plan).at_end(Watched::from_bits(0)),
                !self.span().is_full(self.limit(plan)),
            ),
        };
        let owes = plan.is_exclusive(task.generation) && task.waited;
        task.hand_over = owes && left_something && plan.fault != Fault::NoHandOver;
        self.locked = false;
        match wakes {
            true => At::WakingOther,
            false => task.after_waking(),
        }
    }

    fn write_slot(&mut self, task: &mut Task, plan: &Plan) -> At {
        if !self.is_open(Side::Read) {
            task.calls = 1;
            return self.leave(task, plan);
        }
        if self.span().is_full(self.limit(plan)) {
            if task.signal {
                return self.leave(task, plan);
            }
            self.waiting += 1;
            let wakes = Self::reader_wake(task, plan).before_sleep();
            return self.sleep(task, plan, wakes);
        }
        if task.role == Role::BadWriter {
            return self.fail_to_copy(task, plan);
        }
        let count = usize::from(task.left).min(PAGE);
        self.with_ring(plan, |ring| {
            assert!(ring.push((), count, Kind::Open).is_ok());
        });
        self.wrote(task, count, plan)
    }

    /// Ends a write that finds nothing at the caller's address.
    fn fail_to_copy(&mut self, task: &mut Task, plan: &Plan) -> At {
        if plan.config(task.generation).publish == Publish::AfterCopy {
            return self.leave(task, plan);
        }
        self.with_ring(plan, |ring| {
            assert!(ring.push((), 0, Kind::Open).is_ok());
        });
        let count = task.left.into();
        self.wrote(task, count, plan)
    }

    fn wrote(&mut self, task: &mut Task, count: usize, plan: &Plan) -> At {
        let at_once = Self::reader_wake(task, plan).on_chunk();
        task.left -= count as u8;
        task.wrote = true;
        match at_once {
            true => At::WakingInLock,
            false => self.after_slot(task, plan),
        }
    }

    fn read_slot(&mut self, task: &mut Task, plan: &Plan) -> At {
        let before = self.span();
        if before.is_empty() {
            return self.read_nothing(task, plan);
        }
        let wanted = usize::from(task.left);
        let (count, spent) = self.with_ring(plan, |ring| {
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
        if !spent {
            return self.after_slot(task, plan);
        }
        let limit = self.limit(plan);
        let mut wake = self.writer_wake(task, plan);
        let asked = match plan.fault {
            Fault::HalfAlone => before.used() == limit / 2,
            _ => wake.on_release(before, limit),
        };
        let at_once = asked && plan.wakes_in_lock(task.generation);
        match at_once {
            true => wake.sent(),
            false => wake.defer(asked),
        }
        task.wake_due = wake.due();
        match at_once {
            true => At::WakingInLock,
            false => self.after_slot(task, plan),
        }
    }

    /// Goes on with a read that finds the ring empty.
    fn read_nothing(&mut self, task: &mut Task, plan: &Plan) -> At {
        if !self.is_open(Side::Write) {
            task.calls = 1;
            return self.leave(task, plan);
        }
        let merges = plan.config(task.generation).read_merge && self.waiting != 0 && !task.signal;
        if task.has_data() && !merges {
            return self.leave(task, plan);
        }
        // Also a reader without data may have made room: by taking an empty slot away.
        let forgets = match task.has_data() {
            true => plan.fault == Fault::SilentMerge,
            false => plan.fault == Fault::SilentSkip,
        };
        let wakes = self.writer_wake(task, plan).due() && !forgets;
        self.sleep(task, plan, wakes)
    }

    /// Drops the lock to sleep. What the rules knew of the ring is of no use after that.
    fn sleep(&mut self, task: &mut Task, plan: &Plan, wakes: bool) -> At {
        self.locked = false;
        if plan.fault != Fault::StaleRule {
            task.wrote = false;
            task.was_empty = false;
            task.was_full = false;
            task.wake_due = false;
        }
        match wakes {
            true => At::WakingBeforeSleep,
            false => At::Queueing,
        }
    }

    /// The rule's state of a read under way.
    fn writer_wake(&self, task: &Task, plan: &Plan) -> WriterWake {
        let limit = self.limit(plan);
        let found = Span {
            head: if task.was_full { limit } else { 0 },
            tail: 0,
        };
        let rule = plan.config(task.generation).wake_writer;
        let mut wake = WriterWake::begin(rule, found, limit);
        match task.wake_due {
            true => wake.defer(true),
            false => wake.sent(),
        }
        wake
    }

    /// The rule's state of a write under way.
    fn reader_wake(task: &Task, plan: &Plan) -> ReaderWake {
        let found = Span {
            head: u32::from(!task.was_empty),
            tail: 0,
        };
        let mut wake = ReaderWake::begin(plan.config(task.generation).wake_reader, found);
        if task.wrote {
            wake.on_chunk();
        }
        wake
    }

    /// Applies `change` to a ring that holds the slots of this world.
    fn with_ring<R>(
        &mut self,
        plan: &Plan,
        change: impl FnOnce(&mut Ring<(), Vec<Slot<()>>>) -> R,
    ) -> R {
        let storage = std::iter::repeat_with(Slot::vacant);
        let storage = storage.take(self.limit(plan) as usize).collect();
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
