// SPDX-License-Identifier: GPL-2.0

//! What stays the same all through a search.

use crate::config::{Config, TailUpdate};

/// How the pipe is wired, and what may be done to it meanwhile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// The config that the pipe is made with, and the one that each change of its knobs swaps it for.
    pub(super) configs: [Config; 2],
    /// Slots of the ring, and the number that each resize swaps it for.
    pub(super) limits: [u32; 2],
    /// How often the knobs change.
    pub(super) flips: u8,
    /// How often the ring is resized.
    pub(super) resizes: u8,
    /// By what the model is made wrong on purpose.
    pub(super) fault: Fault,
}

impl Plan {
    /// A ring of `limit` slots that stays as it is.
    pub(super) fn new(config: Config, limit: u32) -> Self {
        Self {
            configs: [config; 2],
            limits: [limit; 2],
            flips: 0,
            resizes: 0,
            fault: Fault::No,
        }
    }

    /// The config after so many changes.
    pub(super) fn config(&self, generation: u8) -> &Config {
        &self.configs[usize::from(generation % 2)]
    }

    /// Whether readers and writers had a queue each after so many changes.
    pub(super) fn is_split(&self, generation: u8) -> bool {
        self.config(generation).split_wait
    }

    /// Whether a wake-up ran one sleeper alone after so many changes.
    pub(super) fn is_exclusive(&self, generation: u8) -> bool {
        let config = self.config(generation);
        config.exclusive && config.split_wait
    }

    /// Whether writers were woken slot by slot under the lock after so many changes.
    pub(super) fn wakes_in_lock(&self, generation: u8) -> bool {
        self.config(generation).tail_update == TailUpdate::WaitLockWake
    }
}

/// Mistakes that kernels have made or might, to see that the search finds them.
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
    /// A reader that took nothing but an empty slot sleeps without waking writers.
    SilentSkip,
    /// A reader holds out for more without waking the writers that it made room for.
    SilentMerge,
    /// A writer leaves without waking the readers that held out for its bytes.
    SilentDeparture,
    /// A change of the knobs wakes nobody.
    SilentFlip,
    /// Who is woken by a change of the knobs and cannot go on sleeps again as before.
    OldPlace,
    /// A ring that grew wakes nobody.
    SilentGrowth,
}
