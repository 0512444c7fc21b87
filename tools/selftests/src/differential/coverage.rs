// SPDX-License-Identifier: GPL-2.0
//! Which operations came to which outcomes, how often, over all processes of a run.

use std::fmt::Write as _;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use super::call::Outcome;
use super::script::{Form, Memory, Op, Transfer};
use super::transcript::Deed;

/// The kinds of operations that are told apart.
pub const KINDS: [&str; 22] = [
    "read",
    "readv",
    "preadv2",
    "read-bad",
    "write",
    "writev",
    "pwritev2",
    "write-bad",
    "fill",
    "drain",
    "resize",
    "setfl",
    "poll",
    "epoll_ctl",
    "epoll_wait0",
    "epoll_wait",
    "dup",
    "close",
    "reopen",
    "signal",
    "odd",
    "the end",
];

/// What a call comes to.
pub const RESULTS: [&str; 16] = [
    "all",
    "part",
    "none",
    "EAGAIN",
    "EFAULT",
    "EPIPE",
    "EINTR",
    "EBADF",
    "EBUSY",
    "EINVAL",
    "EOPNOTSUPP",
    "ESPIPE",
    "ENOTTY",
    "ENOENT",
    "other",
    "left out",
];

const ERRNOS: [i32; 11] = [
    libc::EAGAIN,
    libc::EFAULT,
    libc::EPIPE,
    libc::EINTR,
    libc::EBADF,
    libc::EBUSY,
    libc::EINVAL,
    libc::EOPNOTSUPP,
    libc::ESPIPE,
    libc::ENOTTY,
    libc::ENOENT,
];

/// What a long run under 7.3's rules must come to: operation, outcome, and whether after a sleep.
pub const WANTED: &[(&str, &str, bool)] = &[
    ("read", "all", false),
    ("read", "part", false),
    ("read", "none", false),
    ("read", "EAGAIN", false),
    ("read", "EBADF", false),
    ("read", "all", true),
    ("read", "part", true),
    ("read", "none", true),
    ("read", "EINTR", true),
    ("readv", "all", false),
    ("readv", "part", false),
    ("readv", "EAGAIN", false),
    ("readv", "part", true),
    ("readv", "none", true),
    ("readv", "EINTR", true),
    ("preadv2", "all", false),
    ("preadv2", "part", false),
    ("preadv2", "none", false),
    ("preadv2", "EAGAIN", false),
    ("read-bad", "part", false),
    ("read-bad", "EFAULT", false),
    ("read-bad", "EAGAIN", false),
    ("read-bad", "EFAULT", true),
    ("write", "all", false),
    ("write", "part", false),
    ("write", "EAGAIN", false),
    ("write", "EPIPE", false),
    ("write", "EBADF", false),
    ("write", "all", true),
    ("write", "part", true),
    ("write", "EPIPE", true),
    ("write", "EINTR", true),
    ("writev", "all", false),
    ("writev", "part", false),
    ("writev", "EAGAIN", false),
    ("writev", "EPIPE", false),
    ("writev", "all", true),
    ("writev", "EPIPE", true),
    ("pwritev2", "all", false),
    ("pwritev2", "part", false),
    ("pwritev2", "EAGAIN", false),
    ("pwritev2", "EPIPE", false),
    ("write-bad", "part", false),
    ("write-bad", "EFAULT", false),
    ("write-bad", "EAGAIN", false),
    ("write-bad", "EPIPE", false),
    ("write-bad", "EFAULT", true),
    ("fill", "all", false),
    ("drain", "all", false),
    ("resize", "all", false),
    ("resize", "EBUSY", false),
    ("resize", "EINVAL", false),
    ("setfl", "all", false),
    ("poll", "all", false),
    ("poll", "all", true),
    ("poll", "EINTR", true),
    ("epoll_ctl", "all", false),
    ("epoll_ctl", "ENOENT", false),
    ("epoll_wait0", "all", false),
    ("epoll_wait0", "none", false),
    ("epoll_wait", "all", true),
    ("epoll_wait", "EINTR", true),
    ("dup", "all", false),
    ("close", "all", false),
    ("reopen", "all", false),
    ("signal", "all", false),
    ("odd", "ESPIPE", false),
    ("odd", "EINVAL", false),
    ("odd", "ENOTTY", false),
    ("odd", "EFAULT", false),
];

const CELLS: usize = KINDS.len() * RESULTS.len() * 2;

/// The counts.
#[repr(C)]
pub struct Counts {
    cells: [AtomicU64; CELLS],
    /// Sequences that ran.
    pub sequences: AtomicU64,
    /// Those in which a task slept and went on by what another did.
    pub helped: AtomicU64,
    /// Steps of all sequences.
    pub steps: AtomicU64,
}

/// Counts in memory that all processes of a run share.
#[derive(Clone, Copy)]
pub struct Coverage(&'static Counts);

impl Coverage {
    /// Starts with zeros. The memory is never given back.
    pub fn new() -> Self {
        // SAFETY: a new shared mapping, zeroed by the kernel, which suits atomics; it lives as long
        // as the process and is reached through this reference alone.
        Self(unsafe {
            &*mmap_anonymous(
                ptr::null_mut(),
                size_of::<Counts>(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
            )
            .expect("mmap")
            .cast::<Counts>()
        })
    }

    /// The counts.
    pub fn counts(&self) -> &Counts {
        self.0
    }

    /// Notes what an operation came to.
    pub fn note(&self, op: &Op, outcome: &Deed, slept: bool) {
        let result = match outcome {
            Deed::Done(outcome) => name(op, outcome),
            Deed::Skipped => RESULTS.len() - 1,
            // It is noted when it ends.
            Deed::Asleep => return,
        };
        let kind = kind(op);
        self.0.cells[cell(kind, result, slept)].fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self, kind: usize, result: usize, slept: bool) -> u64 {
        self.0.cells[cell(kind, result, slept)].load(Ordering::Relaxed)
    }

    /// The table, a line for each kind of operation.
    pub fn table(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (kind, name) in KINDS.iter().enumerate() {
            let mut line = format!("{name:12}");
            let mut any = false;
            for slept in [false, true] {
                for (result, text) in RESULTS.iter().enumerate() {
                    let count = self.count(kind, result, slept);
                    if count > 0 {
                        any = true;
                        let when = if slept { "slept, " } else { "" };
                        let _ = write!(line, " {when}{text} {count};");
                    }
                }
            }
            if any {
                lines.push(line.trim_end_matches(';').to_owned());
            }
        }
        lines
    }

    /// What was wanted and never came.
    pub fn missing(&self) -> Vec<String> {
        let place = |names: &[&str], name: &str| {
            names
                .iter()
                .position(|known| *known == name)
                .unwrap_or_else(|| panic!("{name} is not in the table"))
        };
        WANTED
            .iter()
            .filter(|(kind, result, slept)| {
                self.count(place(&KINDS, kind), place(&RESULTS, result), *slept) == 0
            })
            .map(|(kind, result, slept)| {
                format!("{kind} {}{result}", if *slept { "slept, " } else { "" })
            })
            .collect()
    }
}

fn cell(kind: usize, result: usize, slept: bool) -> usize {
    (kind * RESULTS.len() + result) * 2 + usize::from(slept)
}

fn kind(op: &Op) -> usize {
    let bad = |transfer: &Transfer| {
        transfer
            .parts
            .iter()
            .any(|part| part.len > 0 && part.memory != Memory::Good)
    };
    let by_form = |transfer: &Transfer, first| match transfer.form {
        _ if bad(transfer) => first + 3,
        Form::Plain => first,
        Form::Vector => first + 1,
        Form::Flags { .. } => first + 2,
    };
    match op {
        Op::Read(transfer) => by_form(transfer, 0),
        Op::Write(transfer) => by_form(transfer, 4),
        Op::Fill(..) => 8,
        Op::Drain(..) => 9,
        Op::Resize(..) => 10,
        Op::Set(..) => 11,
        Op::Poll(..) => 12,
        Op::Watch(..) | Op::Unwatch(_) => 13,
        Op::Events => 14,
        Op::AwaitEvents => 15,
        Op::Dup(_) => 16,
        Op::Close(_) | Op::CloseAll(_) => 17,
        Op::Reopen(..) => 18,
        Op::Signal(_) => 19,
        Op::Odd(..) => 20,
    }
}

fn name(op: &Op, outcome: &Outcome) -> usize {
    match outcome.result {
        Ok(0) if matches!(op, Op::Read(_) | Op::Write(_) | Op::Poll(..) | Op::Events) => {
            if outcome.asked == 0 { 0 } else { 2 }
        }
        Ok(count) => usize::from(count < outcome.asked),
        Err(number) => ERRNOS
            .iter()
            .position(|known| *known == number)
            .map_or(14, |place| 3 + place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_in_the_table() {
        // Of nothing, all is missing.
        assert_eq!(Coverage::new().missing().len(), WANTED.len());
    }
}
