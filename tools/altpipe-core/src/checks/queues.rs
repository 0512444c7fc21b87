// SPDX-License-Identifier: GPL-2.0

//! The two wait queues of a pipe, as the kernel's behave.

use super::plan::Plan;
use super::task::{Role, Side};
use super::world::World;

impl World {
    /// The queue on which a task of this role sleeps by the config of `generation`.
    ///
    /// Where sides are not split, writers sleep with the readers; pollers are on their own side's
    /// queue in any case.
    fn queue_of(plan: &Plan, role: Role, generation: u8) -> usize {
        match role {
            Role::PollOut => 1,
            _ if role.side() == Side::Write && plan.is_split(generation) => 1,
            _ => 0,
        }
    }

    /// Whether a waiter is one that a wake-up runs alone.
    fn is_exclusive(&self, plan: &Plan, index: u8) -> bool {
        let task = &self.tasks[usize::from(index)];
        !task.role.polls() && plan.is_exclusive(task.generation)
    }

    /// Enters a task in the queue of its config: an exclusive waiter behind all others, any other
    /// before these. Such are woken together, so their order is kept sorted: it means nothing.
    pub(super) fn enter_queue(&mut self, plan: &Plan, index: u8) {
        let task = &self.tasks[usize::from(index)];
        let queue = Self::queue_of(plan, task.role, task.generation);
        let alone = self.is_exclusive(plan, index);
        let is_before = |other: &&u8| alone || **other < index && !self.is_exclusive(plan, **other);
        let place = self.queues[queue].iter().take_while(is_before).count();
        self.queues[queue].insert(place, index);
    }

    pub(super) fn leave_queue(&mut self, index: u8) {
        for queue in &mut self.queues {
            queue.retain(|&other| other != index);
        }
    }

    /// Wakes the sleepers of one side, by who reckons with the config of `generation`; where its
    /// sides are not split, those of both.
    pub(super) fn wake(&mut self, plan: &Plan, side: Side, generation: u8) {
        match side {
            Side::Read => self.wake_queue(plan, 0),
            Side::Write => {
                if !plan.is_split(generation) {
                    self.wake_queue(plan, 0);
                }
                self.wake_queue(plan, 1);
            }
        }
    }

    /// Wakes everybody on both queues.
    pub(super) fn wake_everybody(&mut self) {
        self.wake_all(0);
        self.wake_all(1);
    }

    /// Wakes everybody on one queue.
    pub(super) fn wake_all(&mut self, queue: usize) {
        self.wake_first(queue, usize::MAX);
    }

    /// Wakes all that wait together on a queue, and the first that waits exclusively.
    fn wake_queue(&mut self, plan: &Plan, queue: usize) {
        let together = self.queues[queue]
            .iter()
            .take_while(|&&index| !self.is_exclusive(plan, index))
            .count();
        self.wake_first(queue, together + 1);
    }

    /// Wakes so many of a queue from its front, and takes them off; a poller stays.
    fn wake_first(&mut self, queue: usize, mut count: usize) {
        let tasks = &mut self.tasks;
        self.queues[queue].retain(|&index| {
            let task = &mut tasks[usize::from(index)];
            if count == 0 {
                return true;
            }
            count -= 1;
            task.woken = true;
            task.role.polls()
        });
    }
}
