// SPDX-License-Identifier: MIT OR Apache-2.0
//! popen(3), pclose(3), and fclose(3) of what popen gave.
//!
//! The C library's popen makes its pipe by an inner call that no preloaded symbol can meet, so this is another one.
//! It keeps to what the C library's does beyond POSIX, too: `e` marks the stream's descriptor to be closed by exec,
//! fclose of such a stream waits for the command as pclose does, and a failed flush shows where the command ended
//! well.
//!
//! popen allocates anyway (its FILE), and is not for signal handlers. So here, and here alone, there is a list with a
//! lock: a command must not inherit the streams of the commands before it, or these would not see the end of their
//! input. The lock is held from looking at the list until the command has begun, and while a stream is taken off;
//! never while a stream is flushed or a command is waited for. A child of fork(2) finds it open: see [`in_child`].

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_long};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use libc::{FILE, pid_t};

use crate::errno;
use crate::road;
use crate::settings::environ;

/// fclose or pclose as the C library has it.
pub type Close = unsafe extern "C" fn(*mut FILE) -> c_int;

/// One command that runs, and our end of its pipe.
struct Stream {
    file: *mut FILE,
    end: c_int,
    command: pid_t,
    next: AtomicPtr<Stream>,
}

struct Lock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex of the C library is made to be shared.
unsafe impl Sync for Lock {}

static LOCK: Lock = Lock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

/// The streams that are open. Changed under the lock, by a single store each time, so that a child that was forked
/// in the middle of a change has a whole list.
static FIRST: AtomicPtr<Stream> = AtomicPtr::new(ptr::null_mut());

/// Held while it lives.
struct Held;

impl Held {
    fn take() -> Self {
        // SAFETY: an initialised mutex.
        unsafe { libc::pthread_mutex_lock(LOCK.0.get()) };
        Self
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: taken by us.
        unsafe { libc::pthread_mutex_unlock(LOCK.0.get()) };
    }
}

/// To be called in the child of each fork(2): whoever held the lock then does not exist there.
pub extern "C" fn in_child() {
    // SAFETY: the only thread there is.
    unsafe { LOCK.0.get().write(libc::PTHREAD_MUTEX_INITIALIZER) };
}

/// What a mode says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mode {
    reads: bool,
    cloexec: bool,
}

impl Mode {
    fn parse(text: &CStr) -> Option<Self> {
        let (mut reads, mut writes, mut cloexec) = (false, false, false);
        for letter in text.to_bytes() {
            match letter {
                b'r' => reads = true,
                b'w' => writes = true,
                b'e' => cloexec = true,
                _ => return None,
            }
        }
        (reads != writes).then_some(Self { reads, cloexec })
    }
}

/// popen(3).
///
/// # Safety
///
/// Both are terminated texts.
pub unsafe fn popen(command: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: by the caller.
    let Some(mode) = Mode::parse(unsafe { CStr::from_ptr(mode) }) else {
        errno::set(libc::EINVAL);
        return ptr::null_mut();
    };
    let kept = errno::get();
    // SAFETY: by the caller.
    match unsafe { start(command, mode) } {
        Ok(file) => {
            errno::set(kept);
            file
        }
        Err(error) => {
            errno::set(error);
            ptr::null_mut()
        }
    }
}

/// # Safety
///
/// `command` is a terminated text.
unsafe fn start(command: *const c_char, mode: Mode) -> Result<*mut FILE, c_int> {
    let mut ends = [-1; 2];
    if road::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
        return Err(errno::get());
    }
    let [read, write] = ends;
    let (ours, theirs, place, letter) = if mode.reads {
        (read, write, libc::STDOUT_FILENO, c"r")
    } else {
        (write, read, libc::STDIN_FILENO, c"w")
    };
    // SAFETY: terminated texts, ends that are ours, and a stream made and freed here.
    unsafe {
        let stream = libc::malloc(size_of::<Stream>()).cast::<Stream>();
        let file = if stream.is_null() {
            ptr::null_mut()
        } else {
            libc::fdopen(ours, letter.as_ptr())
        };
        if file.is_null() {
            let error = errno::get();
            libc::free(stream.cast());
            close(ours);
            close(theirs);
            return Err(error);
        }
        let held = Held::take();
        let begun = spawn(command, theirs, place);
        close(theirs);
        let command = match begun {
            Ok(command) => command,
            Err(error) => {
                drop(held);
                libc::fclose(file);
                libc::free(stream.cast());
                return Err(error);
            }
        };
        stream.write(Stream {
            file,
            end: ours,
            command,
            next: AtomicPtr::new(FIRST.load(Ordering::Relaxed)),
        });
        FIRST.store(stream, Ordering::Release);
        // Only now that the list has it: see the head of this file.
        if !mode.cloexec {
            mark(ours, 0);
        }
        drop(held);
        Ok(file)
    }
}

/// Begins `sh -c command` with `end` at `place`. The lock is held.
///
/// # Safety
///
/// `command` is a terminated text.
unsafe fn spawn(command: *const c_char, end: c_int, place: c_int) -> Result<pid_t, c_int> {
    let mut actions = MaybeUninit::uninit();
    // SAFETY: the actions are initialised first and destroyed last; the arguments are terminated texts and a list
    // that ends with null. posix_spawn does not write to them, for all that its type says.
    unsafe {
        let mut error = libc::posix_spawn_file_actions_init(actions.as_mut_ptr());
        if error != 0 {
            return Err(error);
        }
        let mut stream = FIRST.load(Ordering::Acquire);
        while let (Some(other), 0) = (stream.as_ref(), error) {
            // One that is where the end is to be is closed by that.
            if other.end != place {
                error = libc::posix_spawn_file_actions_addclose(actions.as_mut_ptr(), other.end);
            }
            stream = other.next.load(Ordering::Acquire);
        }
        if error == 0 {
            // Where both are the same, this takes the mark off it.
            error = libc::posix_spawn_file_actions_adddup2(actions.as_mut_ptr(), end, place);
        }
        let mut pid = -1;
        if error == 0 {
            let arguments = [
                c"sh".as_ptr(),
                c"-c".as_ptr(),
                c"--".as_ptr(),
                command,
                ptr::null(),
            ];
            error = libc::posix_spawn(
                &raw mut pid,
                c"/bin/sh".as_ptr(),
                actions.as_ptr(),
                ptr::null(),
                arguments.as_ptr().cast(),
                environ.cast(),
            );
        }
        libc::posix_spawn_file_actions_destroy(actions.as_mut_ptr());
        if error == 0 { Ok(pid) } else { Err(error) }
    }
}

/// pclose(3), or fclose(3): what is no stream of ours goes to `next`.
///
/// # Safety
///
/// `file` is an open stream.
pub unsafe fn close_stream(next: Close, file: *mut FILE) -> c_int {
    let Some(command) = forget(file) else {
        // SAFETY: by the caller.
        return unsafe { next(file) };
    };
    // Flushes, and closes our end, which is what the command may be waiting for. Should this name be our own fclose
    // again, that does not know the stream any more.
    // SAFETY: by the caller.
    let closed = unsafe { libc::fclose(file) };
    let mut status = 0;
    loop {
        // SAFETY: a status to write to. Not by the C library's waitpid, which is a point of cancellation.
        let waited = unsafe {
            libc::syscall(
                libc::SYS_wait4,
                c_long::from(command),
                &raw mut status,
                0,
                ptr::null::<u8>(),
            )
        };
        if waited >= 0 {
            break;
        }
        if errno::get() != libc::EINTR {
            return -1;
        }
    }
    if status == 0 { closed } else { status }
}

/// Takes a stream off the list; gives its command.
fn forget(file: *mut FILE) -> Option<pid_t> {
    // Most programs never have one, and close files as often as they like.
    if FIRST.load(Ordering::Acquire).is_null() {
        return None;
    }
    let held = Held::take();
    let mut link = &FIRST;
    loop {
        let stream = link.load(Ordering::Relaxed);
        // SAFETY: what is on the list is freed only by whoever takes it off, under the lock, which we hold.
        let this = unsafe { stream.as_ref() }?;
        if this.file == file {
            let command = this.command;
            // A command that begins before the stream is flushed and closed must not get it, either.
            mark(this.end, libc::FD_CLOEXEC);
            link.store(this.next.load(Ordering::Relaxed), Ordering::Release);
            drop(held);
            // SAFETY: allocated by malloc, and off the list.
            unsafe { libc::free(stream.cast()) };
            return Some(command);
        }
        link = &this.next;
    }
}

fn mark(end: c_int, flags: c_int) {
    // SAFETY: plain numbers.
    unsafe {
        libc::syscall(
            libc::SYS_fcntl,
            c_long::from(end),
            c_long::from(libc::F_SETFD),
            c_long::from(flags),
        )
    };
}

fn close(end: c_int) {
    // SAFETY: the number is ours, and nobody uses it after this.
    unsafe { libc::syscall(libc::SYS_close, c_long::from(end)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_what_the_c_library_takes() {
        let mode = |reads, cloexec| Some(Mode { reads, cloexec });
        for (text, expected) in [
            (c"r", mode(true, false)),
            (c"w", mode(false, false)),
            (c"re", mode(true, true)),
            (c"ew", mode(false, true)),
            (c"rer", mode(true, true)),
            (c"", None),
            (c"e", None),
            (c"rw", None),
            (c"rb", None),
            (c"r+", None),
        ] {
            assert_eq!(Mode::parse(text), expected, "{text:?}");
        }
    }
}
