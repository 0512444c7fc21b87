// SPDX-License-Identifier: GPL-2.0

//! What a user may hold in pipes.
//!
//! The kernel counts the slots of a user's pipes in his `user_struct`. Ours go into the same count,
//! so that a user cannot have twice his share by using both kinds; only the limits are ours.
//!
//! C headers: [`include/linux/sched/user.h`](srctree/include/linux/sched/user.h),
//! [`include/linux/capability.h`](srctree/include/linux/capability.h)

use crate::bindings;
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::atomic::{ordering, Atomic},
};

/// The slots of one pipe, on the account of the user who made it.
///
/// # Invariants
///
/// `user` is valid and one reference to it is ours. `slots + spare` of his `pipe_bufs` are ours.
pub(crate) struct Charge {
    user: NonNull<bindings::user_struct>,
    slots: u32,
    spare: u32,
}

// SAFETY: A `user_struct` is reference counted and belongs to no task.
unsafe impl Send for Charge {}

impl Charge {
    /// Opens an account, without slots yet, with the user of the current task.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: Every task has a user; the helper takes a reference.
        let user = unsafe { bindings::altpipe_get_current_user() };

        // INVARIANT: The reference is ours, and nothing else is.
        Ok(Self {
            user: NonNull::new(user).ok_or(EINVAL)?,
            slots: 0,
            spare: 0,
        })
    }

    /// Puts pages that the pipe may keep besides its slots on the account, in place of those that
    /// were there.
    pub(crate) fn set_spare(&mut self, pages: u32) {
        let change = i64::from(pages).wrapping_sub(i64::from(self.spare));

        // INVARIANT: What the account gains, the count gains.
        self.spare = pages;
        self.add(change);
    }

    /// The slots on the account.
    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    /// Changes the number of slots; returns how many the user now has in all his pipes.
    pub(crate) fn set(&mut self, slots: u32) -> u64 {
        let change = i64::from(slots).wrapping_sub(i64::from(self.slots));

        // INVARIANT: What the account gains, the count gains.
        self.slots = slots;
        self.add(change)
    }

    fn add(&self, change: i64) -> u64 {
        // SAFETY: By the type invariant the user is valid; everybody counts atomically here.
        let bufs = unsafe {
            Atomic::<isize>::from_ptr((&raw mut (*self.user.as_ptr()).pipe_bufs.counter).cast())
        };
        let before = bufs.fetch_add(change as isize, ordering::Full) as i64;

        u64::try_from(before.wrapping_add(change)).unwrap_or(0)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
        self.set_spare(0);
        // SAFETY: By the type invariant the reference is ours, and we give it up.
        unsafe { bindings::free_uid(self.user.as_ptr()) };
    }
}

fn capable(capability: u32) -> bool {
    // SAFETY: The capability is one that the kernel knows.
    unsafe { bindings::capable(capability as c_int) }
}

/// Whether the current task may make a pipe larger than the largest size.
pub(crate) fn may_exceed_size() -> bool {
    capable(bindings::CAP_SYS_RESOURCE)
}

/// Whether the current task may go over its user's quota.
pub(crate) fn may_exceed_quota() -> bool {
    capable(bindings::CAP_SYS_RESOURCE) || capable(bindings::CAP_SYS_ADMIN)
}
