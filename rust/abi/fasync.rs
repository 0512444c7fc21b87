// SPDX-License-Identifier: GPL-2.0

//! Lists of files whose owners want SIGIO.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h)

use super::file_operations::FasyncCall;
use crate::bindings;
use core::cell::UnsafeCell;
use kernel::prelude::*;

/// Which news a SIGIO brings.
#[derive(Clone, Copy)]
pub(crate) enum Band {
    /// There is something to read.
    In,
    /// There is room to write.
    Out,
}

/// A list of files that asked for SIGIO.
///
/// # Invariants
///
/// The head is null or leads a list that `fasync_helper` made. The VFS takes each file off before
/// the file is gone.
pub(crate) struct FasyncList(UnsafeCell<*mut bindings::fasync_struct>);

// SAFETY: `fasync_helper` serialises changes by a lock of its own, and `kill_fasync` walks the list
// under RCU.
unsafe impl Send for FasyncList {}
// SAFETY: As above.
unsafe impl Sync for FasyncList {}

impl FasyncList {
    /// Makes an empty list.
    pub(crate) const fn new() -> Self {
        // INVARIANT: Null is an empty list.
        Self(UnsafeCell::new(core::ptr::null_mut()))
    }

    /// Adds or removes the file of `call`; says whether the list changed.
    pub(crate) fn apply(&self, call: &FasyncCall) -> Result<bool> {
        self.change(call.fd, call, call.on)
    }

    /// Takes off what [`Self::apply`] has just added.
    pub(crate) fn undo(&self, call: &FasyncCall) {
        // Removal allocates nothing and cannot fail.
        let _ = self.change(-1, call, 0);
    }

    fn change(&self, fd: c_int, call: &FasyncCall, on: c_int) -> Result<bool> {
        // SAFETY: `call` holds a valid file; by the type invariant the head is a list's.
        let ret = unsafe { bindings::fasync_helper(fd, call.file(), on, self.0.get()) };

        if ret < 0 {
            Err(Error::from_errno(ret))
        } else {
            Ok(ret > 0)
        }
    }

    /// Sends SIGIO, or what the owner chose in its place, to all on the list.
    #[inline]
    pub(crate) fn notify(&self, band: Band) {
        let band = match band {
            Band::In => bindings::POLL_IN,
            Band::Out => bindings::POLL_OUT,
        };

        // SAFETY: By the type invariant the head is a list's.
        unsafe { bindings::kill_fasync(self.0.get(), bindings::SIGIO as c_int, band as c_int) };
    }
}
