// SPDX-License-Identifier: GPL-2.0
//! What a case is: a sentence, the subjects it holds for, and a function that panics where the
//! sentence is false.

use crate::subject::Subject;

/// The subjects on which a case runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Every kind of pipe, the kernel's own included.
    Every,
    /// Altpipe's pipes only, once for each config.
    Altpipe,
    /// The device, its ioctls and its sysfs tree: once in a run.
    Device,
    /// Every FIFO, the kernel's own and altpipe's devices.
    Fifo,
    /// FIFO devices and what they have beyond a FIFO, once for each config.
    FifoDevice,
}

/// One scenario.
pub struct Case {
    /// What must hold, as a sentence.
    pub name: &'static str,
    /// Where it must hold.
    pub scope: Scope,
    /// Whether it takes much more than a moment: traffic, crowds, races.
    pub long: bool,
    /// The scenario; it panics where the sentence is false.
    pub run: fn(&Subject),
}

impl Case {
    /// A case that holds for every pipe.
    pub const fn every(name: &'static str, run: fn(&Subject)) -> Self {
        Self {
            name,
            scope: Scope::Every,
            long: false,
            run,
        }
    }

    /// A case that holds for every pipe and takes long. It is left out for configs of one knob: the
    /// presets hold nearly every value of every knob as well, in company.
    pub const fn long(name: &'static str, run: fn(&Subject)) -> Self {
        Self {
            name,
            scope: Scope::Every,
            long: true,
            run,
        }
    }

    /// A case that holds for each altpipe config.
    pub const fn altpipe(name: &'static str, run: fn(&Subject)) -> Self {
        Self {
            name,
            scope: Scope::Altpipe,
            long: false,
            run,
        }
    }

    /// A case that holds for every FIFO.
    pub const fn fifo(name: &'static str, run: fn(&Subject)) -> Self {
        Self {
            name,
            scope: Scope::Fifo,
            long: false,
            run,
        }
    }

    /// A case that holds for each config of a FIFO device.
    pub const fn fifo_device(name: &'static str, run: fn(&Subject)) -> Self {
        Self {
            name,
            scope: Scope::FifoDevice,
            long: false,
            run,
        }
    }

    /// A case about the device itself.
    pub const fn device(name: &'static str, run: fn(&Subject)) -> Self {
        Self {
            name,
            scope: Scope::Device,
            long: false,
            run,
        }
    }
}

/// The cases of one area.
pub struct Area {
    /// The area's name, a prefix of its cases' names.
    pub name: &'static str,
    /// Its cases in the order in which they run.
    pub cases: &'static [Case],
}
