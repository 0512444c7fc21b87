// SPDX-License-Identifier: GPL-2.0

//! The current task.
//!
//! C header: [`include/linux/sched.h`](srctree/include/linux/sched.h)

use crate::bindings;
use kernel::prelude::*;

/// Sleeps for one tick, or less if a signal is pending.
pub(crate) fn give_way() {
    // SAFETY: Called from a task that holds no spinlock.
    unsafe { bindings::schedule_timeout_interruptible(1 as c_long) };
}
