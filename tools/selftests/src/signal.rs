// SPDX-License-Identifier: GPL-2.0
//! Signals sent to one task, and a handler that counts them.

use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use rustix::thread::gettid;

use crate::task::Watched;

static HANDLED: AtomicUsize = AtomicUsize::new(0);
static HANDLED_BY: AtomicI32 = AtomicI32::new(0);

/// What becomes of a system call that a handled signal interrupts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Interrupted {
    /// It goes on (SA_RESTART).
    Restarts,
    /// It fails with EINTR.
    Fails,
}

/// Counts `signal` from now on.
pub fn count(signal: i32, interrupted: Interrupted) {
    extern "C" fn handler(_: i32) {
        HANDLED_BY.store(gettid().as_raw_nonzero().get(), Ordering::SeqCst);
        HANDLED.fetch_add(1, Ordering::SeqCst);
    }
    let restart = if interrupted == Interrupted::Restarts {
        libc::SA_RESTART
    } else {
        0
    };
    set_action(signal, handler as *const () as usize, restart);
}

/// Discards `signal` from now on.
pub fn ignore(signal: i32) {
    set_action(signal, libc::SIG_IGN, 0);
}

/// Gives `signal` its default action.
pub fn set_default(signal: i32) {
    set_action(signal, libc::SIG_DFL, 0);
}

/// The number of signals handled so far.
pub fn handled() -> usize {
    HANDLED.load(Ordering::SeqCst)
}

/// The id of the thread that handled the last one.
pub fn handled_by() -> i32 {
    HANDLED_BY.load(Ordering::SeqCst)
}

/// Sends `signal` to one thread of this process, which must be alive.
pub fn send(signal: i32, to: &Watched) {
    assert!(send_if_alive(signal, to), "tgkill");
}

/// Sends `signal` to one thread of this process; false where that has ended.
pub fn send_if_alive(signal: i32, to: &Watched) -> bool {
    // SAFETY: touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), to.tid(), signal) == 0 }
}

fn set_action(signal: i32, action: usize, flags: i32) {
    // SAFETY: all zero is a valid sigaction; the handler only stores to atomics, which a handler
    // may do.
    let ret = unsafe {
        let mut new: libc::sigaction = mem::zeroed();
        new.sa_sigaction = action;
        new.sa_flags = flags;
        libc::sigaction(signal, &new, ptr::null_mut())
    };
    assert_eq!(ret, 0, "sigaction");
}
