// SPDX-License-Identifier: GPL-2.0
//! Running a command to its end as if nobody stood between it and the caller.
//!
//! The terminal sends Ctrl-C and the like to the command as it does to us; we wait for what the command makes of it.
//! What somebody sends to us alone is handed on.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this status.
    Exited(u8),
    /// By this signal.
    Killed(u8),
}

impl End {
    /// As a shell has it.
    pub fn status(self) -> u8 {
        match self {
            Self::Exited(status) => status,
            Self::Killed(signal) => signal.saturating_add(128),
        }
    }

    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(code as u8),
            (None, signal) => Self::Killed(signal.unwrap_or(0) as u8),
        }
    }
}

const HANDED_ON: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// Runs it. An error means that it did not begin.
pub fn run(command: &mut Command) -> io::Result<End> {
    let set: SigSet = HANDED_ON.into_iter().chain([Signal::SIGCHLD]).collect();
    // Pending until we look; the command gets the mask that we were given.
    let mut given = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), Some(&mut given))?;
    // SAFETY: one system call, which may be made between fork and exec.
    unsafe {
        command.pre_exec(move || Ok(sigprocmask(SigmaskHow::SIG_SETMASK, Some(&given), None)?));
    }
    let mut child = command.spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End::of(status));
        }
        let mut from = std::mem::MaybeUninit::<libc::siginfo_t>::uninit();
        // SAFETY: a set, and room for what is said of the signal.
        let signal = unsafe { libc::sigwaitinfo(set.as_ref(), from.as_mut_ptr()) };
        if signal < 0 || signal == libc::SIGCHLD {
            continue;
        }
        // SAFETY: the call succeeded, so it has been written.
        let by_a_process = unsafe { from.assume_init() }.si_code <= 0;
        if by_a_process {
            // SAFETY: the child has not been waited for, so its number is nobody else's.
            unsafe { libc::kill(child.id() as libc::pid_t, signal) };
        }
    }
}
