// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way in by LD_PRELOAD: symbols that the dynamic linker finds in this library before it finds the C library's.
//!
//! What it does not reach: static programs, programs that run with other privileges than their caller's (the linker
//! ignores such variables then), calls inside the C library (wordexp), and system calls made by hand (Go). They keep
//! the kernel's own pipes, and are not counted.

use core::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use core::mem::transmute;
use core::panic::PanicInfo;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use libc::FILE;

use crate::size::Fcntl;
use crate::streams::Close;
use crate::{road, settings, size, streams};

/// A function of the library that comes after us in the linker's order, looked up before the program begins:
/// dlsym(3) takes locks.
struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            address: AtomicPtr::new(ptr::null_mut()),
        }
    }

    fn look_up(&self) -> *mut c_void {
        // SAFETY: a terminated name.
        let address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.address.store(address, Ordering::Release);
        address
    }

    /// Where it is. Looked up now if another library's start calls it before ours has run.
    fn get(&self) -> *mut c_void {
        let address = self.address.load(Ordering::Acquire);
        if address.is_null() {
            self.look_up()
        } else {
            address
        }
    }
}

static FCNTL: Next = Next::new(c"fcntl");
static FCNTL64: Next = Next::new(c"fcntl64");
static FCLOSE: Next = Next::new(c"fclose");
static PCLOSE: Next = Next::new(c"pclose");

/// Run by the dynamic linker before the program.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

extern "C" fn start(_: c_int, _: *const *const c_char, environment: *const *const c_char) {
    for next in [&FCNTL, &FCNTL64, &FCLOSE, &PCLOSE] {
        next.look_up();
    }
    // SAFETY: the environment is the list that the linker was given; the handler does what one may do there.
    unsafe {
        settings::load(environment);
        libc::pthread_atfork(None, None, Some(streams::in_child));
    }
}

/// Nothing here panics; but the compiler wants to know.
#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}

#[unsafe(no_mangle)]
extern "C" fn pipe(ends: *mut c_int) -> c_int {
    road::pipe2(ends, 0)
}

#[unsafe(no_mangle)]
extern "C" fn pipe2(ends: *mut c_int, flags: c_int) -> c_int {
    road::pipe2(ends, flags)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fcntl(fd: c_int, command: c_int, argument: c_ulong) -> c_int {
    // SAFETY: the C library's fcntl has this type; the arguments by the caller.
    unsafe {
        size::fcntl(
            transmute::<*mut c_void, Fcntl>(FCNTL.get()),
            fd,
            command,
            argument,
        )
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fcntl64(fd: c_int, command: c_int, argument: c_ulong) -> c_int {
    // SAFETY: as above.
    unsafe {
        size::fcntl(
            transmute::<*mut c_void, Fcntl>(FCNTL64.get()),
            fd,
            command,
            argument,
        )
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn popen(command: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: by the caller.
    unsafe { streams::popen(command, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pclose(file: *mut FILE) -> c_int {
    // SAFETY: the C library's pclose has this type; the stream by the caller.
    unsafe { streams::close_stream(transmute::<*mut c_void, Close>(PCLOSE.get()), file) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fclose(file: *mut FILE) -> c_int {
    // SAFETY: as above.
    unsafe { streams::close_stream(transmute::<*mut c_void, Close>(FCLOSE.get()), file) }
}
