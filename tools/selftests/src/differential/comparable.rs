// SPDX-License-Identifier: GPL-2.0
//! What of a config can be held against the kernel's own pipe, whose knobs cannot be turned.
//!
//! A config that differs from 7.3 in what a program sees is still held against it in all the rest:
//! sequences are stripped of the operations by which the difference shows.

use altpipe_core::Config;
use altpipe_core::config::{FasyncRule, Publish, WakeWriter};

use super::script::{Access, Flag, Form, Memory, Op, Script, Side, Transfer};

/// The edge-triggered bit of epoll(7).
pub const EDGE: u32 = libc::EPOLLET as u32;

/// What programs see alike under a config and on 7.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparable {
    /// RWF_NOWAIT is honoured.
    pub nowait: bool,
    /// A failed write leaves no empty slot behind.
    pub faults: bool,
    /// A read that has data never sleeps for more.
    pub short_reads: bool,
    /// Edge-triggered events come by the same rules.
    pub edges: bool,
    /// SIGIO comes at each I/O.
    pub owners: bool,
    /// Of several sleepers the one that came first is woken first, and alone.
    pub turns: bool,
}

/// Everything, as under 7.3 itself.
pub const ALL: Comparable = Comparable {
    nowait: true,
    faults: true,
    short_reads: true,
    edges: true,
    owners: true,
    turns: true,
};

/// What can be compared under a config, or why nothing can.
pub fn comparable(config: &Config) -> Result<Comparable, &'static str> {
    if !config.merge {
        return Err("with merge=0 another amount of small writes fits");
    }
    Ok(of(config))
}

/// What can be compared under a config by sequences that do without merged writes, or have them.
pub fn of(config: &Config) -> Comparable {
    let default = Config::DEFAULT;
    // The rule was_full wakes a writer also for a read that leaves the ring full. He goes to the end
    // of the queue for it, and the one behind him is first when there is room.
    let turns = config.exclusive && config.split_wait && config.wake_writer != WakeWriter::WasFull;
    Comparable {
        nowait: config.nowait,
        faults: config.publish == Publish::AfterCopy,
        short_reads: !config.read_merge,
        edges: config.wake_reader == default.wake_reader
            && config.wake_writer == default.wake_writer
            && turns,
        owners: config.fasync == FasyncRule::EveryIo,
        turns,
    }
}

impl Comparable {
    /// The sequence without what cannot be compared.
    pub fn strip(self, mut script: Script) -> Script {
        let patient = script.patient;
        script.ops.retain_mut(|op| self.admits(op, patient));
        script
    }

    /// The side that must not sleep, if one must not: a reader that holds out for more needs a
    /// writer that sleeps and a reader that may.
    pub fn hasty(self, patient: Side) -> Option<Side> {
        match (self.short_reads, patient) {
            (true, _) => None,
            (false, Side::Readers) => Some(Side::Writers),
            (false, Side::Writers) => Some(Side::Readers),
        }
    }

    fn admits(self, op: &mut Op, patient: Side) -> bool {
        match op {
            Op::Read(transfer) => self.alter(transfer),
            Op::Write(transfer) => {
                if !self.faults {
                    for part in &mut transfer.parts {
                        part.memory = Memory::Good;
                    }
                }
                self.alter(transfer);
            }
            Op::Set(_, Flag::Async, _) => return self.owners,
            // Both sides of it are haste itself, or neither.
            Op::Set(_, Flag::Nonblock, _) => return self.hasty(patient).is_none(),
            Op::Reopen(_, access, _) => {
                return *access != Access::Both || self.hasty(patient).is_none();
            }
            Op::Watch(_, events) if !self.edges => *events &= !EDGE,
            _ => {}
        }
        true
    }

    fn alter(self, transfer: &mut Transfer) {
        if let (false, Form::Flags { nowait, .. }) = (self.nowait, &mut transfer.form) {
            *nowait = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_compared_in_everything() {
        assert_eq!(comparable(&Config::DEFAULT), Ok(ALL));
    }

    #[test]
    fn every_preset_is_compared_in_something() {
        for preset in altpipe_core::PRESETS {
            assert!(comparable(&preset.config).is_ok(), "{}", preset.name);
        }
    }

    #[test]
    fn writers_woken_in_vain_lose_their_turn() {
        let comparable = |name| {
            let preset = altpipe_core::Preset::find(name).unwrap();
            super::comparable(&preset.config).unwrap()
        };
        assert!(!comparable("v6.7").turns);
        assert!(comparable("v6.14").turns);
    }

    #[test]
    fn what_cannot_be_compared_is_taken_out() {
        let rc1 = altpipe_core::Preset::find("v5.5-rc1").unwrap();
        let comparable = comparable(&rc1.config).unwrap();
        let script = Script {
            pages: 1,
            direct: false,
            looks: true,
            patient: Side::Readers,
            ops: vec![
                Op::Set(super::super::script::End::Any(0), Flag::Async, true),
                Op::Watch(super::super::script::End::Any(0), EDGE | 1),
            ],
        };
        let left = comparable.strip(script).ops;
        assert!(matches!(left[..], [Op::Watch(_, 1)]));
    }
}
