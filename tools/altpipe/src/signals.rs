// SPDX-License-Identifier: GPL-2.0
//! Ctrl-C and its like, received by waiting and not by handlers.
//!
//! [`hold`] blocks them in the tool; from then on they are pending until somebody looks. So a knob write or the
//! output of a file is never cut in two, and there is no state that a handler shares with the rest.

use std::io;
use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};

/// The user, or who stands for him, wants the tool to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

fn held() -> SigSet {
    ENDING.into_iter().chain([Signal::SIGCHLD]).collect()
}

/// Keeps the signals pending from here on.
pub fn hold() -> Result<()> {
    Ok(sigprocmask(SigmaskHow::SIG_BLOCK, Some(&held()), None)?)
}

/// In a forked task: signals act as usual again, and the task dies with the tool.
pub fn release_in_child() {
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    let _ = sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&held()), None);
}

/// Sleeps until a child ends or `limit` has passed; fails with [`Interrupted`].
pub fn wait(limit: Duration) -> Result<()> {
    let time = libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(limit.subsec_nanos() as i32),
    };
    let set = held();
    // SAFETY: the set and the time are valid for the call; no siginfo is asked for.
    let signal = unsafe { libc::sigtimedwait(set.as_ref(), std::ptr::null_mut(), &time) };
    if signal >= 0 {
        return if signal == Signal::SIGCHLD as i32 {
            Ok(())
        } else {
            Err(Interrupted.into())
        };
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EINTR) => Ok(()),
        _ => Err(error.into()),
    }
}

/// Fails with [`Interrupted`] if the user asked for the end meanwhile.
pub fn check() -> Result<()> {
    let mut pending = SigSet::empty();
    // SAFETY: `pending` is a valid set to write to.
    unsafe { libc::sigpending(std::ptr::from_mut(&mut pending).cast()) };
    if ENDING.into_iter().any(|signal| pending.contains(signal)) {
        return Err(Interrupted.into());
    }
    Ok(())
}
