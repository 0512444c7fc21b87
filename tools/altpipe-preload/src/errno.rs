// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calling thread's errno. A call that succeeds must leave it alone, even where something failed on the way.

use core::ffi::c_int;

/// What it is.
pub fn get() -> c_int {
    // SAFETY: the C library's address of this thread's errno is always valid.
    unsafe { *libc::__errno_location() }
}

/// Makes it `value`.
pub fn set(value: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value }
}
