// SPDX-License-Identifier: GPL-2.0
//! What was seen while a sequence ran, to be held against what was seen elsewhere.

use std::fmt;

use super::call::Outcome;
use super::script::Script;

/// What an operation came to at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It ended.
    Done(Outcome),
    /// A second task sleeps in it.
    Asleep,
    /// There was no such end, no task that slept, or none left to sleep.
    Skipped,
}

/// One step of a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What became of the operation.
    pub deed: Deed,
    /// Which earlier calls ended by it, by their tasks' numbers.
    pub ended: Vec<(usize, Outcome)>,
    /// SIGIO: what it told, and of which descriptor.
    pub told: Vec<(i64, u8)>,
    /// What was to be seen then.
    pub view: Option<View>,
}

/// A pipe seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// What poll(2) reports of each descriptor, asked for everything.
    pub polled: Vec<i16>,
    /// FIONREAD
    pub queued: i32,
    /// F_GETPIPE_SZ
    pub capacity: Result<usize, i32>,
}

/// All steps, and as the last one how what still slept was ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The steps.
    pub steps: Vec<Step>,
    /// Whether a task slept and went on by what others did.
    pub was_helped: bool,
}

fn errno(number: i32) -> String {
    let known = [
        (libc::EAGAIN, "EAGAIN"),
        (libc::EFAULT, "EFAULT"),
        (libc::EPIPE, "EPIPE"),
        (libc::EINTR, "EINTR"),
        (libc::EBADF, "EBADF"),
        (libc::EBUSY, "EBUSY"),
        (libc::EINVAL, "EINVAL"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
        (libc::ESPIPE, "ESPIPE"),
        (libc::ENOTTY, "ENOTTY"),
        (libc::EEXIST, "EEXIST"),
        (libc::ENOENT, "ENOENT"),
    ];
    let name = known.iter().find(|(known, _)| *known == number);
    name.map_or(format!("errno {number}"), |(_, name)| (*name).to_owned())
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.result {
            Ok(count) => write!(f, "{count}")?,
            Err(number) => f.write_str(&errno(number))?,
        }
        if self.data != 0 {
            write!(f, " ({:#x})", self.data)?;
        }
        f.write_str(if self.signalled { " and SIGPIPE" } else { "" })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.deed {
            Deed::Done(outcome) => write!(f, "{outcome}")?,
            Deed::Asleep => f.write_str("sleeps")?,
            Deed::Skipped => f.write_str("left out")?,
        }
        for (task, outcome) in &self.ended {
            write!(f, "; task {task} ends: {outcome}")?;
        }
        if let Some(view) = &self.view {
            write!(f, "; poll {:x?}, {} bytes of ", view.polled, view.queued)?;
            match view.capacity {
                Ok(bytes) => write!(f, "{bytes}")?,
                Err(number) => f.write_str(&errno(number))?,
            }
        }
        if !self.told.is_empty() {
            write!(f, "; SIGIO {:x?}", self.told)?;
        }
        Ok(())
    }
}

/// The sequence as a script, with what became of each step: once where both worlds agree, and each
/// of them where they differ.
pub fn explain(script: &Script, native: &Transcript, other: &Transcript) -> Vec<String> {
    let mut lines = vec![script.to_string()];
    let ops = script.ops.iter().map(ToString::to_string);
    for (number, op) in ops.chain(["the end".to_owned()]).enumerate() {
        let (left, right) = (native.steps.get(number), other.steps.get(number));
        let show = |step: Option<&Step>| step.map_or("nothing".to_owned(), Step::to_string);
        lines.push(format!("{:3} {op}", number + 1));
        if left == right {
            lines.push(format!("      {}", show(left)));
        } else {
            lines.push(format!("    native:  {}", show(left)));
            lines.push(format!("    altpipe: {}", show(right)));
        }
    }
    lines
}
