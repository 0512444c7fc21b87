// SPDX-License-Identifier: GPL-2.0

//! The kernel crate's mutex, without what it costs where lockdep is off.
//!
//! C header: [`include/linux/mutex.h`](srctree/include/linux/mutex.h)

use crate::bindings;
use kernel::sync::lock::{mutex::MutexBackend, Backend, Guard, Lock};
use kernel::{prelude::*, sync::LockClassKey};

/// A mutex that is taken for each byte through a pipe.
pub(crate) type HotMutex<T> = Lock<T, HotBackend>;

/// A [`HotMutex`] that is held.
pub(crate) type HotGuard<'a, T> = Guard<'a, T, HotBackend>;

/// Makes a mutex whose lockdep class is `key`.
pub(crate) fn new<T>(
    value: T,
    name: &'static CStr,
    key: Pin<&'static LockClassKey>,
) -> impl PinInit<HotMutex<T>> {
    Lock::new(value, name, key)
}

/// As [`MutexBackend`], but asserts that the lock is held only where lockdep is there to look.
///
/// Elsewhere the assertion is a call of an empty C helper for each lock: two of them for one byte
/// through a pipe, and 0.7% of its instructions.
pub(crate) struct HotBackend;

// SAFETY: All that locks and unlocks is `MutexBackend`'s.
unsafe impl Backend for HotBackend {
    type State = bindings::mutex;
    type GuardState = ();

    #[inline]
    unsafe fn init(ptr: *mut Self::State, name: *const c_char, key: *mut bindings::lock_class_key) {
        // SAFETY: The requirements are the same.
        unsafe { MutexBackend::init(ptr, name, key) }
    }

    #[inline]
    unsafe fn lock(ptr: *mut Self::State) -> Self::GuardState {
        // SAFETY: The requirements are the same.
        unsafe { MutexBackend::lock(ptr) }
    }

    #[inline]
    unsafe fn try_lock(ptr: *mut Self::State) -> Option<Self::GuardState> {
        // SAFETY: The requirements are the same.
        unsafe { MutexBackend::try_lock(ptr) }
    }

    #[inline]
    unsafe fn unlock(ptr: *mut Self::State, guard_state: &Self::GuardState) {
        // SAFETY: The requirements are the same.
        unsafe { MutexBackend::unlock(ptr, guard_state) }
    }

    #[inline]
    unsafe fn assert_is_held(ptr: *mut Self::State) {
        if cfg!(CONFIG_LOCKDEP) {
            // SAFETY: The requirements are the same.
            unsafe { MutexBackend::assert_is_held(ptr) }
        }
    }
}
