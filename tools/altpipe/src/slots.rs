// SPDX-License-Identifier: GPL-2.0
//! Memory that tasks share with the tool: one slot each, for their figures.

use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::usage::Usage;

/// A task's figures. Each is written by its task alone and read once the task is gone: waiting for a process
/// orders memory, so relaxed accesses do. A cache line and more apart, lest tasks slow one another.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Slot {
    errno: AtomicI32,
    start_ns: AtomicU64,
    end_ns: AtomicU64,
    user_us: AtomicU64,
    system_us: AtomicU64,
    voluntary: AtomicU64,
    involuntary: AtomicU64,
}

impl Slot {
    /// Notes why the task failed.
    pub fn set_errno(&self, errno: i32) {
        self.errno.store(errno, Relaxed);
    }

    /// Notes when the task began.
    pub fn set_start(&self, ns: u64) {
        self.start_ns.store(ns, Relaxed);
    }

    /// Notes when the task was done.
    pub fn set_end(&self, ns: u64) {
        self.end_ns.store(ns, Relaxed);
    }

    /// Notes what the task used.
    pub fn set_usage(&self, usage: Usage) {
        self.user_us.store(usage.user_us, Relaxed);
        self.system_us.store(usage.system_us, Relaxed);
        self.voluntary.store(usage.voluntary, Relaxed);
        self.involuntary.store(usage.involuntary, Relaxed);
    }
}

/// What all tasks together used, and from when to when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Their usage, added up.
    pub usage: Usage,
    /// When the first began.
    pub start_ns: u64,
    /// When the last was done.
    pub end_ns: u64,
}

/// A shared mapping of slots.
///
/// # Invariants
///
/// `first` points to `count` slots in a mapping of this process that nothing else unmaps.
#[derive(Debug)]
pub struct Slots {
    first: NonNull<Slot>,
    count: NonZeroUsize,
}

impl Slots {
    /// Maps `count` empty slots.
    pub fn new(count: usize) -> io::Result<Self> {
        let count = NonZeroUsize::new(count).ok_or(io::ErrorKind::InvalidInput)?;
        let length = count.saturating_mul(NonZeroUsize::new(size_of::<Slot>()).unwrap());
        // SAFETY: a new anonymous mapping at a place of the kernel's choice concerns no existing object.
        let memory = unsafe {
            mmap_anonymous(
                None,
                length,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_SHARED,
            )?
        };
        // INVARIANT: the mapping is zeroed, which is a valid `Slot`, page-aligned, and long enough.
        Ok(Self {
            first: memory.cast(),
            count,
        })
    }

    /// The slot of one task.
    pub fn get(&self, place: usize) -> &Slot {
        &self.all()[place]
    }

    fn all(&self) -> &[Slot] {
        // SAFETY: by the invariant. All fields are atomics, so other processes may write them meanwhile.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count.get()) }
    }

    /// What the tasks that ran their clock used.
    pub fn total(&self) -> Total {
        let mut total = Total {
            start_ns: u64::MAX,
            ..Total::default()
        };
        for slot in self.all() {
            if slot.end_ns.load(Relaxed) == 0 {
                continue;
            }
            total.start_ns = total.start_ns.min(slot.start_ns.load(Relaxed));
            total.end_ns = total.end_ns.max(slot.end_ns.load(Relaxed));
            total.usage.user_us += slot.user_us.load(Relaxed);
            total.usage.system_us += slot.system_us.load(Relaxed);
            total.usage.voluntary += slot.voluntary.load(Relaxed);
            total.usage.involuntary += slot.involuntary.load(Relaxed);
        }
        total.start_ns = total.start_ns.min(total.end_ns);
        total
    }

    /// The first error that a task left.
    pub fn error(&self) -> io::Error {
        self.all()
            .iter()
            .map(|slot| slot.errno.load(Relaxed))
            .find(|errno| *errno != 0)
            .map_or_else(
                || io::Error::other("it left no reason"),
                io::Error::from_raw_os_error,
            )
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: by the invariant the mapping is ours, and borrows of slots end before `self`.
        let _ = unsafe { munmap(self.first.cast(), self.count.get() * size_of::<Slot>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_span_the_tasks_that_ran() {
        let slots = Slots::new(3).unwrap();
        for (place, start) in [(0, 100), (2, 50)] {
            slots.get(place).set_start(start);
            slots.get(place).set_end(start + 500);
            slots.get(place).set_usage(Usage {
                user_us: 1,
                system_us: 2,
                voluntary: 3,
                involuntary: 4,
            });
        }
        let total = slots.total();
        assert_eq!((total.start_ns, total.end_ns), (50, 600));
        assert_eq!(
            total.usage,
            Usage {
                user_us: 2,
                system_us: 4,
                voluntary: 6,
                involuntary: 8
            }
        );
    }

    #[test]
    fn the_first_error_is_told() {
        let slots = Slots::new(2).unwrap();
        slots.get(1).set_errno(libc::EPIPE);
        assert_eq!(slots.error().raw_os_error(), Some(libc::EPIPE));
    }
}
