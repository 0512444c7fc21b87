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
//! * with `read_merge` a reader that has data sleeps for more as long as a writer waits, and the
//!   last writer to wait wakes such readers when he takes the lock again;
//! * a write from a bad address ends there; with `publish=before_copy` it leaves an empty slot, which
//!   a read takes away and goes on;
//! * a signal ends a sleep for good: a reader that has no data and cannot go on leaves at once, any
//!   other task looks once more under the lock;
//! * a change of the knobs is one step under the lock; after it everybody is woken, and who queued by
//!   an earlier config looks under the lock again;
//! * a resize is one step under the lock; after it writers are woken.

use super::plan::{Fault, Plan};
use super::task::{At, Role, Side, Task};
use crate::ring::Span;

/// All that there is to know of a pipe and its tasks at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    /// The slots in use, oldest first: the place of the unread bytes in the page and their number.
    pub(super) slots: Vec<(u8, u8)>,
    pub(super) locked: bool,
    pub(super) tasks: Vec<Task>,
    /// The waiters on the readers' queue and on the writers', in order.
    pub(super) queues: [Vec<u8>; 2],
    /// Writers that sleep for room or have not taken the lock again since.
    pub(super) waiting: u8,
    /// How often the knobs changed.
    pub(super) generation: u8,
    /// Whether the last change of the knobs is still to be told.
    flipping: bool,
    /// How often the ring was resized.
    pub(super) resized: u8,
    /// The generation in which the last resize was done, if it is still to be told.
    resizing: Option<u8>,
    /// Signals that may still come.
    signals: u8,
    /// Whether tasks close their ends; otherwise somebody else holds both ends open for ever.
    closes: bool,
}

impl World {
    /// An empty pipe, and tasks about to make `calls` calls each.
    pub(super) fn new(roles: &[Role], calls: u8, closes: bool, signals: u8) -> Self {
        Self {
            slots: Vec::new(),
            locked: false,
            tasks: roles.iter().map(|&role| Task::new(role, calls)).collect(),
            queues: [Vec::new(), Vec::new()],
            waiting: 0,
            generation: 0,
            flipping: false,
            resized: 0,
            resizing: None,
            signals,
            closes,
        }
    }

    /// Every world that one step of one task, one signal, or one step from outside leads to.
    pub(super) fn successors(&self, plan: &Plan) -> Vec<World> {
        let mut all = Vec::new();
        let mut follow = |change: &dyn Fn(&mut World)| {
            let mut next = self.clone();
            change(&mut next);
            all.push(next);
        };
        for (index, task) in self.tasks.iter().enumerate() {
            if self.can_step(task) {
                follow(&|next| next.step(index, plan));
            }
            if self.signals > 0 && task.at == At::Asleep && !task.signal && !task.role.polls() {
                follow(&|next| {
                    next.signals -= 1;
                    next.tasks[index].signal = true;
                });
            }
        }
        if self.flipping {
            follow(&|next| next.tell_of_flip(plan));
        } else if !self.locked && self.generation < plan.flips {
            follow(&|next| {
                next.generation += 1;
                next.flipping = true;
            });
        }
        if let Some(generation) = self.resizing {
            follow(&|next| next.tell_of_resize(plan, generation));
        } else if self.may_resize(plan) {
            follow(&|next| {
                next.resized += 1;
                next.resizing = Some(next.generation);
            });
        }
        all
    }

    /// Whether a task sleeps though it could go on. Where no task can take a step, nobody will ever
    /// wake it.
    pub(super) fn forgets_a_sleeper(&self, plan: &Plan) -> bool {
        let forgotten = |task: &Task| task.at == At::Asleep && self.may_proceed(task, plan);
        self.tasks.iter().any(forgotten)
    }

    fn tell_of_flip(&mut self, plan: &Plan) {
        self.flipping = false;
        if plan.fault != Fault::SilentFlip {
            self.wake_everybody();
        }
    }

    /// Whether the ring may be resized now: it must have room for what is in it.
    fn may_resize(&self, plan: &Plan) -> bool {
        let limit = plan.limits[usize::from((self.resized + 1) % 2)];
        !self.locked && self.resized < plan.resizes && self.span().used() <= limit
    }

    fn tell_of_resize(&mut self, plan: &Plan, generation: u8) {
        self.resizing = None;
        if plan.fault != Fault::SilentGrowth {
            self.wake(plan, Side::Write, generation);
        }
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

    /// The slots of the ring.
    pub(super) fn limit(&self, plan: &Plan) -> u32 {
        plan.limits[usize::from(self.resized % 2)]
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
    fn may_proceed(&self, task: &Task, plan: &Plan) -> bool {
        let side = task.role.side();
        let something = match side {
            Side::Read => !self.span().is_empty(),
            Side::Write => !self.span().is_full(self.limit(plan)),
        };
        let merges = matches!(task.role, Role::Reader(_)) && task.has_data();
        let has_passed = !task.role.polls() && task.generation != self.generation;
        something
            || !self.is_open(side.other())
            || merges && self.waiting == 0
            || has_passed && plan.fault != Fault::OldPlace
    }

    fn step(&mut self, index: usize, plan: &Plan) {
        let mut task = self.tasks[index];
        let side = task.role.side();
        task.at = match task.at {
            At::Start if task.role.polls() => At::Queueing,
            At::Start => {
                self.lock(&mut task);
                self.enter(&mut task, plan)
            }
            At::Returning => {
                self.lock(&mut task);
                self.go_on(&mut task, plan)
            }
            At::Moving => self.move_slot(&mut task, plan),
            At::WakingInLock => {
                self.wake(plan, side.other(), task.generation);
                self.after_slot(&mut task, plan)
            }
            At::WakingMergers => {
                self.wake_all(0);
                self.move_slot(&mut task, plan)
            }
            At::WakingBeforeSleep => {
                self.wake(plan, side.other(), task.generation);
                At::Queueing
            }
            At::Queueing => {
                task.woken = false;
                self.enter_queue(plan, index as u8);
                match plan.fault {
                    Fault::NoSecondLook => At::Asleep,
                    _ => At::Looking,
                }
            }
            At::Looking if self.may_proceed(&task, plan) => {
                self.leave_queue(index as u8);
                if task.role.polls() {
                    At::Finished
                } else {
                    At::Returning
                }
            }
            At::Looking => At::Asleep,
            At::Asleep if task.signal => {
                self.leave_queue(index as u8);
                At::Interrupted
            }
            At::Asleep if task.role.polls() => {
                task.woken = false;
                At::Looking
            }
            At::Asleep => At::Queueing,
            At::Interrupted => match task.role {
                Role::Reader(_) if !task.has_data() && !self.may_proceed(&task, plan) => {
                    At::Finished
                }
                _ => At::Returning,
            },
            At::WakingOther => {
                self.wake(plan, side.other(), task.generation);
                task.after_waking()
            }
            At::HandingOver => {
                self.wake(plan, side, task.generation);
                task.hand_over = false;
                task.after_waking()
            }
            At::Finished => {
                task = Task::new(task.role, 0);
                At::Gone
            }
            At::Gone => unreachable!("a task that is gone takes no step"),
        };
        self.tasks[index] = task;
        let last = task.at == At::Gone && !task.role.polls() && !self.is_open(side);
        if last && plan.fault != Fault::SilentClose {
            self.wake_everybody();
        }
    }

    /// Takes the lock. Until a call takes it anew, it goes by the config that it finds now.
    fn lock(&mut self, task: &mut Task) {
        self.locked = true;
        task.generation = self.generation;
    }
}
