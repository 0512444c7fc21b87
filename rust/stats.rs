// SPDX-License-Identifier: GPL-2.0

//! Counters, and the files below `stats/` that show them.

use crate::abi::sysfs::{Entry, File, Group, List, Owner, Show, Store};
use core::{fmt, marker::PhantomData, num::Wrapping};
use kernel::{new_mutex, prelude::*, sync::Mutex};

/// A counter: its name and where it is kept.
pub(crate) struct Counter {
    /// The name of its file.
    file: &'static CStr,
    /// Reads it.
    get: fn(&Counters) -> u64,
}

/// Makes `Counters` and `COUNTERS` out of the list of counters, whose order is that of
/// `struct altpipe_stats`.
macro_rules! counters {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident,
    )+) => {
        /// What has been counted. Sums wrap around, as do differences.
        #[derive(Clone, Copy, Default)]
        pub(crate) struct Counters {
            $(
                $(#[doc = $doc])+
                pub(crate) $name: Wrapping<u64>,
            )+
        }

        impl Counters {
            /// Adds what `other` counted.
            pub(crate) fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)+
            }

            /// Takes off what `other` counted, an earlier state of the same counters.
            pub(crate) fn sub(&mut self, other: &Self) {
                $(self.$name -= other.$name;)+
            }

            /// The counters in the order of `struct altpipe_stats`.
            pub(crate) fn values(&self) -> [u64; COUNT] {
                [$(self.$name.0),+]
            }
        }

        /// All counters, in the order of `struct altpipe_stats`.
        static COUNTERS: &[Counter] = &[
            $(Counter {
                file: kernel::c_str!(stringify!($name)),
                get: |counters| counters.$name.0,
            },)+
        ];
    };
}

counters! {
    /// Pipes made.
    pipes_created,
    /// Read calls that delivered data.
    reads,
    /// Write calls that took data.
    writes,
    /// Bytes delivered to readers.
    bytes_read,
    /// Bytes taken from writers.
    bytes_written,
    /// Times a reader went to sleep for data.
    reader_sleeps,
    /// Times a writer went to sleep for room.
    writer_sleeps,
    /// Sleeping readers that a wake-up reached.
    reader_wakes,
    /// Sleeping writers that a wake-up reached.
    writer_wakes,
    /// Of those, the ones that found nothing to do.
    wasted_wakes,
    /// Wake-ups that a woken task passed on to the next of its kind.
    handovers,
    /// Writes whose first bytes went into the page of an earlier write.
    merges,
    /// Pages taken from those the pipe keeps for reuse.
    pages_pool,
    /// Pages allocated before the pipe's lock was taken.
    pages_unlocked,
    /// Pages allocated under the pipe's lock.
    pages_locked,
    /// Inode time updates that a read or a write caused.
    time_updates,
    /// Wait queue spinlock sections that advanced the tail.
    tail_locks,
    /// Times the rule had the readers' queue woken.
    reader_notifies,
    /// Times the rule had the writers' queue woken.
    writer_notifies,
    /// Of both, those that told the scheduler that the sender is about to sleep.
    sync_notifies,
    /// Time updates that first asked whether the file system is frozen.
    freeze_checks,
}

/// Something that has counters.
pub(crate) trait Counted {
    /// What has been counted since the last reset.
    fn counters(&self) -> Counters;

    /// Counts from zero again, as seen from outside: the counters themselves go on.
    fn reset(&self);
}

/// The state of running counters at their last reset.
#[pin_data]
pub(crate) struct Baseline {
    #[pin]
    counters: Mutex<Counters>,
}

impl Baseline {
    /// A baseline of zero.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            counters <- new_mutex!(Counters::default(), "altpipe baseline"),
        })
    }

    /// What came on top of the baseline, where `read` reads the running counters.
    pub(crate) fn since(&self, read: impl FnOnce() -> Counters) -> Counters {
        // Read under the lock: a reset in between would make the difference negative.
        let baseline = self.counters.lock();
        let mut counters = read();
        counters.sub(&baseline);
        counters
    }

    /// Moves the baseline to where the running counters are.
    pub(crate) fn reset(&self, read: impl FnOnce() -> Counters) {
        let mut baseline = self.counters.lock();
        *baseline = read();
    }
}

impl<O: Counted> Show<O> for Counter {
    fn show(&self, owner: &O, text: &mut dyn fmt::Write) -> fmt::Result {
        write!(text, "{}", (self.get)(&owner.counters()))
    }
}

/// The file that resets the counters when `1` is written to it.
struct Reset;

impl<O: Counted> Store<O> for Reset {
    fn store(&self, owner: &O, text: &str) -> Result {
        if text != "1" {
            return Err(EINVAL);
        }
        owner.reset();
        Ok(())
    }
}

/// The number of counters.
pub(crate) const COUNT: usize = COUNTERS.len();

/// The directory `stats/` of an `O`.
pub(crate) struct Directory<O>(PhantomData<O>);

// Tables made by the compiler: an index out of bounds would fail the build.
impl<O: Counted + Owner + 'static> Directory<O> {
    const FILES: &'static [File<O, Counter>; COUNT] = &{
        let mut files = [File::read_only(COUNTERS[0].file, &COUNTERS[0]); COUNT];
        let mut at = 1;
        while at < COUNT {
            files[at] = File::read_only(COUNTERS[at].file, &COUNTERS[at]);
            at += 1;
        }
        files
    };

    const RESET: &'static File<O, Reset> = &File::write_only(c"reset", &Reset);

    const LIST: &'static List<Entry<O>, { COUNT + 1 }> =
        &List::of(Self::FILES, Self::RESET.entry());

    /// The directory itself.
    pub(crate) const GROUP: &'static Group<O> = &Group::new(c"stats", Self::LIST);
}
