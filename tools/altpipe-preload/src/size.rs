// SPDX-License-Identifier: MIT OR Apache-2.0
//! fcntl(2) for the capacity of a pipe, which the kernel does for its own pipes alone.

use core::ffi::{c_int, c_long, c_ulong};

use altpipe_uapi::raw;

use crate::errno;

/// fcntl as the C library has it.
pub type Fcntl = unsafe extern "C" fn(c_int, c_int, ...) -> c_int;

/// fcntl(2): passes everything on, and answers what concerns the capacity of our ends by ioctl.
///
/// The kernel knows its pipes by their operations and says EBADF of ours; and of everything else that is no pipe. A
/// FIFO of which it says so is one of ours: no other file system brings its own.
///
/// # The third argument
///
/// fcntl is variadic, and what it takes after the command is nothing, an int or a pointer. The calling conventions
/// of x86-64 and arm64 Linux pass an integer or pointer that is third in the same full register whether the callee is
/// declared variadic or not. So a callee that declares an unsigned long receives whatever is there, garbage where
/// nothing was given and in the upper half of an int; and, handed on to a variadic callee as the third argument, it
/// is in the register again, bit for bit, where that callee looks for what its command takes. x86-64 also wants the
/// number of vector registers in `al`, which the compiler sets when it calls what is declared variadic.
///
/// # Safety
///
/// As for fcntl: where `command` takes a pointer, `argument` is one that is valid for it.
pub unsafe fn fcntl(next: Fcntl, fd: c_int, command: c_int, argument: c_ulong) -> c_int {
    let kept = errno::get();
    // SAFETY: by the caller.
    let answer = unsafe { next(fd, command, argument) };
    if answer != -1 || !matches!(command, libc::F_SETPIPE_SZ | libc::F_GETPIPE_SZ) {
        return answer;
    }
    if errno::get() != libc::EBADF || !is_fifo(fd) {
        return answer;
    }
    let (call, argument) = match command {
        // An unsigned int to the kernel; the rest of the register is nobody's.
        libc::F_SETPIPE_SZ => (raw::SET_SIZE, argument & c_ulong::from(u32::MAX)),
        _ => (raw::GET_SIZE, 0),
    };
    // SAFETY: both calls take a number.
    let answer =
        unsafe { libc::syscall(libc::SYS_ioctl, c_long::from(fd), call, argument) as c_int };
    if answer >= 0 {
        errno::set(kept);
    } else if errno::get() == libc::ENOTTY {
        errno::set(libc::EBADF);
    }
    answer
}

fn is_fifo(fd: c_int) -> bool {
    let kept = errno::get();
    // SAFETY: all zeros is a `stat`, and the call writes one.
    let is_fifo = unsafe {
        let mut status = core::mem::zeroed::<libc::stat>();
        libc::fstat(fd, &raw mut status) == 0 && status.st_mode & libc::S_IFMT == libc::S_IFIFO
    };
    errno::set(kept);
    is_fifo
}
