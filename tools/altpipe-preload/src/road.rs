// SPDX-License-Identifier: MIT OR Apache-2.0
//! pipe2(2), by way of the control device.
//!
//! Five system calls make a pipe whose ends have the numbers that a native pipe's would have, the two lowest that
//! are free. Opening the device takes the lowest, `a`; the create call takes the next two, `b` and `c`; then the
//! read end moves over the device at `a`, which closes it, and the write end over the read end at `b`; `c` is
//! closed:
//!
//! ```text
//!           a         b          c
//! open      control
//! CREATE    control   read end   write end
//! dup3      read end  read end   write end
//! dup3      read end  write end  write end
//! close     read end  write end
//! ```
//!
//! Each step takes the place of a descriptor of ours in one go, so no number is free in between for another thread
//! to take.
//!
//! Whatever keeps us from it, the answer is then the kernel's own: [`native`] asks it for a pipe with the same
//! arguments. So a bad flag, a full table, a limit have its errno, in its order of precedence; and with room for two
//! descriptors but not for three, a program gets the pipe it can have, which the count then calls native.

use core::ffi::{c_int, c_long};
use core::ptr;

use altpipe_uapi::raw;

use crate::counts::{self, Reason};
use crate::errno;
use crate::settings;

/// The flags that a pipe of altpipe's can have.
const FLAGS: c_int = libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_DIRECT;

/// pipe2(2): the same arguments, the same answer, the same errno. `ends` may point anywhere.
pub fn pipe2(ends: *mut c_int, flags: c_int) -> c_int {
    let kept = errno::get();
    let answer = match make(flags) {
        Ok(made) if deliver(ends, made) => {
            counts::add(|counts| &counts.altpipe);
            0
        }
        Ok(made) => {
            made.into_iter().for_each(close);
            errno::set(libc::EFAULT);
            -1
        }
        Err(reason) => {
            let answer = native(ends, flags);
            if answer == 0 {
                counts::add(|counts| counts.native(reason));
            }
            answer
        }
    };
    if answer == 0 {
        errno::set(kept);
    }
    answer
}

/// The kernel's own.
fn native(ends: *mut c_int, flags: c_int) -> c_int {
    // SAFETY: the kernel judges both arguments.
    unsafe { libc::syscall(libc::SYS_pipe2, ends, c_long::from(flags)) as c_int }
}

/// Makes one of altpipe's: the read end, the write end.
fn make(flags: c_int) -> Result<[c_int; 2], Reason> {
    if flags & !FLAGS != 0 {
        return Err(Reason::Flags);
    }
    let settings = settings::get()
        .filter(|settings| settings.sound)
        .ok_or(Reason::Refused)?;
    // SAFETY: a terminated path.
    let control = unsafe {
        libc::syscall(
            libc::SYS_openat,
            c_long::from(libc::AT_FDCWD),
            settings.device.as_ptr(),
            c_long::from(libc::O_RDWR | libc::O_CLOEXEC),
        ) as c_int
    };
    if control < 0 {
        return Err(reason(Reason::Device));
    }
    let mut call = raw::Create {
        size: size_of::<raw::Create>() as u32,
        // Until they are in their places, no program that another thread starts shall have them.
        flags: (flags | libc::O_CLOEXEC) as u32,
        fd: [-1; 2],
        config: settings.config.as_ptr() as u64,
        config_len: settings.config.len() as u32,
        pad: 0,
    };
    // SAFETY: a whole structure that says its size, and a config readable for its length.
    let made = unsafe {
        libc::syscall(
            libc::SYS_ioctl,
            c_long::from(control),
            raw::CREATE,
            &raw mut call,
        )
    };
    if made < 0 {
        let reason = reason(Reason::Refused);
        close(control);
        return Err(reason);
    }
    Ok(settle(control, call.fd, flags & libc::O_CLOEXEC))
}

/// What an errno of the device's is a case of, if not of `other`.
fn reason(other: Reason) -> Reason {
    match errno::get() {
        libc::EMFILE | libc::ENFILE | libc::ENOMEM => Reason::Room,
        _ => other,
    }
}

/// Moves the ends to where a native pipe's would be, and lets go of the device. See the head of this file.
fn settle(control: c_int, [read, write]: [c_int; 2], cloexec: c_int) -> [c_int; 2] {
    // Another thread may have freed a lower number since. Then there is nothing to be gained.
    if control < read && read < write && replace(read, control, cloexec) {
        if replace(write, read, cloexec) {
            close(write);
            return [control, read];
        }
        close(read);
        keep(write, cloexec);
        return [control, write];
    }
    close(control);
    keep(read, cloexec);
    keep(write, cloexec);
    [read, write]
}

fn replace(from: c_int, to: c_int, cloexec: c_int) -> bool {
    // SAFETY: both numbers are ours.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_dup3,
            c_long::from(from),
            c_long::from(to),
            c_long::from(cloexec),
        )
    };
    answer >= 0
}

/// Gives a descriptor that stays where it is the flag that was asked for.
fn keep(end: c_int, cloexec: c_int) {
    if cloexec == 0 {
        // SAFETY: the number is ours.
        unsafe {
            libc::syscall(
                libc::SYS_fcntl,
                c_long::from(end),
                c_long::from(libc::F_SETFD),
                0,
            )
        };
    }
}

fn close(end: c_int) {
    // SAFETY: the number is ours, and nobody uses it after this.
    unsafe { libc::syscall(libc::SYS_close, c_long::from(end)) };
}

/// Writes the numbers where the caller wants them, or says that it cannot be done.
///
/// The kernel answers a bad address with EFAULT, where a plain store would end the program. So it is asked first: a
/// call that changes nothing, and whose result has the size of the two numbers, writes there by the same rules.
fn deliver(ends: *mut c_int, made: [c_int; 2]) -> bool {
    const { assert!(size_of::<[c_int; 2]>() == 8) };
    // To that call it would mean that the old mask is not wanted.
    if ends.is_null() {
        return false;
    }
    // SAFETY: without a new mask nothing is changed, and the kernel judges the address.
    let probe = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            c_long::from(libc::SIG_BLOCK),
            ptr::null::<u8>(),
            ends,
            size_of::<[c_int; 2]>(),
        )
    };
    if probe != 0 {
        return false;
    }
    // SAFETY: the kernel has just written there.
    unsafe { ends.cast::<[c_int; 2]>().write_unaligned(made) };
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(ends: *mut c_int, flags: c_int) -> c_int {
        errno::set(0);
        assert_eq!(pipe2(ends, flags), -1);
        errno::get()
    }

    #[test]
    fn without_the_device_the_kernel_answers() {
        let mut ends = [-1; 2];
        errno::set(1234);
        assert_eq!(pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        assert_eq!(errno::get(), 1234);
        assert!(ends.iter().all(|end| *end > 2));
        ends.into_iter().for_each(close);
        assert_eq!(fails(ptr::null_mut(), 0), libc::EFAULT);
        assert_eq!(fails(ends.as_mut_ptr(), 1), libc::EINVAL);
        assert_eq!(fails(ptr::null_mut(), 1), libc::EINVAL);
    }

    #[test]
    fn numbers_are_delivered_at_any_address_that_can_be_written() {
        let mut room = [0u8; 16];
        for place in 0..8 {
            // SAFETY: eight bytes from there are within the array.
            let ends = unsafe { room.as_mut_ptr().add(place) }.cast();
            assert!(deliver(ends, [3, 4]));
            let bytes = [3i32.to_ne_bytes(), 4i32.to_ne_bytes()].concat();
            assert_eq!(room[place..place + 8], bytes);
        }
        assert!(!deliver(ptr::null_mut(), [3, 4]));
        assert!(!deliver(deliver as fn(_, _) -> _ as *mut c_int, [3, 4]));
        assert!(!deliver(
            ptr::without_provenance_mut(usize::MAX & !7),
            [3, 4]
        ));
    }

    #[test]
    fn the_ends_take_the_devices_place_in_order() {
        // The end of one file stands for the device; what matters is where the other two come to lie.
        let mut ends = [-1; 2];
        // SAFETY: a path, and room for two numbers.
        let control =
            unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        assert_eq!(native(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        if !(control < ends[0] && ends[0] < ends[1]) {
            return; // Another test of this process took numbers meanwhile.
        }
        let [read, write] = settle(control, ends, 0);
        assert_eq!([read, write], [control, ends[0]]);
        for end in [read, write] {
            // SAFETY: plain numbers.
            assert_eq!(unsafe { libc::fcntl(end, libc::F_GETFD) }, 0);
        }
        let mut byte = [0u8; 2];
        // SAFETY: buffers as long as said.
        unsafe {
            assert_eq!(libc::write(write, b"x".as_ptr().cast(), 1), 1);
            assert_eq!(libc::read(read, byte.as_mut_ptr().cast(), 2), 1);
        }
        [read, write].into_iter().for_each(close);
    }
}
