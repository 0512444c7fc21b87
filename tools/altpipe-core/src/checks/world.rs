// SPDX-License-Identifier: GPL-2.0

//! Readers, writers and pollers of one pipe as state machines, in steps so small that everything
//! another task can see lies between two of them. Taking the lock goes with what is done first
//! under it, and dropping the lock with what was done last: nobody can tell these apart.
//!
//! This is how the module uses the ring and the wake-up rules, and how the kernel's wait queues
//! behave, with sizes shrunk: a page holds two bytes and a ring one or two slots. The slots, the
//! merging and each decision to wake are the kernel's own code (see `call`); what surrounds them is
//! a model:
//!
//! * a sleeper enters the queue, then looks at the ring without the lock, then sleeps;
//! * a wake-up runs every waiter up to and including the first exclusive one and takes them off the
//!   queue, whether they sleep yet or not; a poller is never exclusive and stays on the queue;
//! * a call that waited begins anew under the lock, and when it ends it passes the wake-up on if it
//!   leaves something behind for its own side;
//! * a signal ends a sleep for good: a reader that cannot go on leaves at once, a writer looks once
//!   more under the lock.

use crate::config::{WakeReader, WakeWriter};
use crate::ring::Span;

/// How the pipe is wired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wiring {
    pub(super) wake_reader: WakeReader,
    pub(super) wake_writer: WakeWriter,
    /// Writers are woken slot by slot under the lock, as `tail_update=wait_lock_wake` does.
    pub(super) wake_in_lock: bool,
    pub(super) exclusive: bool,
    pub(super) split_wait: bool,
    /// Slots of the ring.
    pub(super) limit: u32,
    /// By what the model is made wrong on purpose.
    pub(super) fault: Fault,
}

/// Mistakes that kernels have made, to see that the search finds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The protocol as it should be.
    No,
    /// Exclusive waiters do not pass a wake-up on.
    NoHandOver,
    /// Having slept, a call goes on with what it knew before.
    StaleRule,
    /// Having entered the queue, a waiter sleeps without another look.
    NoSecondLook,
    /// Writers are woken when the ring crosses half full and at no other time.
    HalfAlone,
    /// The last close wakes nobody.
    SilentClose,
}

/// What a task does all its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    /// Calls read for so many bytes.
    Reader(u8),
    /// Calls write for so many bytes.
    Writer(u8),
    /// Polls the read end once.
    PollIn,
    /// Polls the write end once.
    PollOut,
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum At {
    /// About to take the lock for a new call; a poller is about to wait.
    Start,
    /// Holds the lock; about to move bytes of one slot.
    Moving,
    /// Holds the lock; about to wake the other side before it moves on.
    WakingInLock,
    /// About to wake the other side before it sleeps.
    WakingBeforeSleep,
    /// About to enter the queue.
    Queueing,
    /// In the queue; about to look at the ring.
    Looking,
    /// Asleep, unless woken.
    Asleep,
    /// Taken off the queue by a signal; about to look at the ring.
    Interrupted,
    /// About to take the lock again after a wait.
    Returning,
    /// About to wake the other side, the call being done.
    WakingOther,
    /// About to pass a wake-up on to its own side.
    HandingOver,
    /// About to close its end, or just to go.
    Finished,
    /// Gone.
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Task {
    pub(super) role: Role,
    pub(super) at: At,
    /// Calls still to make, this one included.
    pub(super) calls: u8,
    /// Bytes that this call has still to move.
    pub(super) left: u8,
    /// Whether this call moved any since it began or last slept.
    pub(super) moved: bool,
    /// In a write: whether the ring was empty when it began or last slept.
    pub(super) was_empty: bool,
    /// In a read: whether the ring was full when it began or last slept.
    pub(super) was_full: bool,
    /// In a read: whether writers are to be woken at its end.
    pub(super) wake_due: bool,
    /// Whether this call waited.
    pub(super) waited: bool,
    /// Whether a wake-up is to be passed on.
    pub(super) hand_over: bool,
    /// Whether a wake-up reached it since it entered the queue.
    pub(super) woken: bool,
    /// Whether a signal is pending.
    pub(super) signal: bool,
}

/// All that there is to know of a pipe and its tasks at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    /// The slots in use, oldest first: the place of the unread bytes in the page and their number.
    pub(super) slots: Vec<(u8, u8)>,
    pub(super) locked: bool,
    pub(super) tasks: Vec<Task>,
    /// The waiters of either side, in order. Where sides are not split, writers sleep with the
    /// readers; pollers are on their own side's queue in any case.
    queues: [Vec<u8>; 2],
    /// Signals that may still come.
    pub(super) signals: u8,
    /// Whether tasks close their ends; otherwise somebody else holds both ends open for ever.
    closes: bool,
}

/// The two sides of a pipe.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Read,
    Write,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Side::Read => Side::Write,
            Side::Write => Side::Read,
        }
    }
}

impl Role {
    pub(super) fn side(self) -> Side {
        match self {
            Role::Reader(_) | Role::PollIn => Side::Read,
            Role::Writer(_) | Role::PollOut => Side::Write,
        }
    }

    fn polls(self) -> bool {
        matches!(self, Role::PollIn | Role::PollOut)
    }
}

impl Task {
    /// A task about to begin the first of `calls` calls.
    fn new(role: Role, calls: u8) -> Self {
        Self {
            role,
            at: At::Start,
            calls,
            left: 0,
            moved: false,
            was_empty: false,
            was_full: false,
            wake_due: false,
            waited: false,
            hand_over: false,
            woken: false,
            signal: false,
        }
    }
}

impl World {
    /// An empty pipe, and tasks about to make `calls` calls each.
    pub(super) fn new(roles: &[Role], calls: u8, closes: bool, signals: u8) -> Self {
        Self {
            slots: Vec::new(),
            locked: false,
            tasks: roles.iter().map(|&role| Task::new(role, calls)).collect(),
            queues: [Vec::new(), Vec::new()],
            signals,
            closes,
        }
    }

    /// Every world that one step of one task, or one signal, leads to.
    pub(super) fn successors(&self, wiring: &Wiring) -> Vec<World> {
        let mut all = Vec::new();
        for (index, task) in self.tasks.iter().enumerate() {
            if self.can_step(task) {
                let mut next = self.clone();
                next.step(index, wiring);
                all.push(next);
            }
            if self.signals > 0 && task.at == At::Asleep && !task.signal && !task.role.polls() {
                let mut next = self.clone();
                next.signals -= 1;
                next.tasks[index].signal = true;
                all.push(next);
            }
        }
        all
    }

    /// Whether a task sleeps though it could go on. Where no task can take a step, nobody will ever
    /// wake it.
    pub(super) fn forgets_a_sleeper(&self, wiring: &Wiring) -> bool {
        let forgotten = |task: &Task| task.at == At::Asleep && self.may_proceed(task.role, wiring);
        self.tasks.iter().any(forgotten)
    }

    fn can_step(&self, task: &Task) -> bool {
        match task.at {
            At::Start => task.role.polls() || !self.locked,
            At::Returning => !self.locked,
            At::Asleep => task.woken || task.signal,
            At::Gone => false,
            _ => true,
        }
    }

    pub(super) fn span(&self) -> Span {
        Span {
            head: self.slots.len() as u32,
            tail: 0,
        }
    }

    /// Whether an end of this side is still open.
    pub(super) fn is_open(&self, side: Side) -> bool {
        let holds =
            |task: &Task| task.role.side() == side && !task.role.polls() && task.at != At::Gone;
        !self.closes || self.tasks.iter().any(holds)
    }

    /// The condition that a sleeper waits for.
    pub(super) fn may_proceed(&self, role: Role, wiring: &Wiring) -> bool {
        let something = match role.side() {
            Side::Read => !self.span().is_empty(),
            Side::Write => !self.span().is_full(wiring.limit),
        };
        something || !self.is_open(role.side().other())
    }

    fn queue_of(wiring: &Wiring, role: Role) -> usize {
        match role {
            Role::Reader(_) | Role::PollIn => 0,
            Role::Writer(_) if !wiring.split_wait => 0,
            Role::Writer(_) | Role::PollOut => 1,
        }
    }

    /// Wakes the sleepers of one side; where sides are not split, those of both.
    fn wake(&mut self, wiring: &Wiring, side: Side) {
        let exclusive = wiring.exclusive && wiring.split_wait;
        match side {
            Side::Read => self.wake_queue(0, exclusive),
            Side::Write => {
                if !wiring.split_wait {
                    self.wake_queue(0, exclusive);
                }
                self.wake_queue(1, exclusive);
            }
        }
    }

    /// Wakes the pollers of a queue and its sleepers, or with `one` the first of these.
    fn wake_queue(&mut self, queue: usize, one: bool) {
        let mut enough = false;
        let tasks = &mut self.tasks;
        self.queues[queue].retain(|&index| {
            let task = &mut tasks[usize::from(index)];
            if task.role.polls() {
                task.woken = true;
                return true;
            }
            if enough {
                return true;
            }
            task.woken = true;
            enough = one;
            false
        });
    }

    fn leave_queue(&mut self, index: usize) {
        for queue in &mut self.queues {
            queue.retain(|&other| usize::from(other) != index);
        }
    }

    fn step(&mut self, index: usize, wiring: &Wiring) {
        let mut task = self.tasks[index];
        let side = task.role.side();
        task.at = match task.at {
            At::Start if task.role.polls() => At::Queueing,
            At::Start => {
                self.locked = true;
                self.enter(&mut task, wiring)
            }
            At::Returning => {
                self.locked = true;
                task.waited = true;
                if wiring.fault != Fault::StaleRule {
                    self.begin(&mut task, wiring);
                }
                self.move_slot(&mut task, wiring)
            }
            At::Moving => self.move_slot(&mut task, wiring),
            At::WakingInLock => {
                self.wake(wiring, side.other());
                self.after_slot(&mut task, wiring)
            }
            At::WakingBeforeSleep => {
                self.wake(wiring, side.other());
                At::Queueing
            }
            At::Queueing => {
                task.woken = false;
                self.queues[Self::queue_of(wiring, task.role)].push(index as u8);
                match wiring.fault {
                    Fault::NoSecondLook => At::Asleep,
                    _ => At::Looking,
                }
            }
            At::Looking if self.may_proceed(task.role, wiring) => {
                self.leave_queue(index);
                if task.role.polls() {
                    At::Finished
                } else {
                    At::Returning
                }
            }
            At::Looking => At::Asleep,
            At::Asleep if task.signal => {
                self.leave_queue(index);
                At::Interrupted
            }
            At::Asleep if task.role.polls() => {
                task.woken = false;
                At::Looking
            }
            At::Asleep => At::Queueing,
            At::Interrupted => match task.role {
                Role::Reader(_) if !self.may_proceed(task.role, wiring) => At::Finished,
                _ => At::Returning,
            },
            At::WakingOther => {
                self.wake(wiring, side.other());
                Self::after_waking(&mut task)
            }
            At::HandingOver => {
                self.wake(wiring, side);
                task.hand_over = false;
                Self::after_waking(&mut task)
            }
            At::Finished => {
                task = Task::new(task.role, 0);
                At::Gone
            }
            At::Gone => unreachable!("a task that is gone takes no step"),
        };
        self.tasks[index] = task;
        let last = task.at == At::Gone && !task.role.polls() && !self.is_open(side);
        if last && wiring.fault != Fault::SilentClose {
            self.wake_queue(0, false);
            self.wake_queue(1, false);
        }
    }

    /// What follows once the other side has been woken: the end of the call.
    ///
    /// A call leaves no trace in its task, so that worlds which differ in their past alone are one.
    pub(super) fn after_waking(task: &mut Task) -> At {
        if task.hand_over {
            return At::HandingOver;
        }
        let calls = if task.signal { 0 } else { task.calls - 1 };
        *task = Task::new(task.role, calls);
        match calls {
            0 => At::Finished,
            _ => At::Start,
        }
    }
}
