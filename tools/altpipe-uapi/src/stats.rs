// SPDX-License-Identifier: MIT OR Apache-2.0
//! The counters of a pipe.

use crate::raw;

/// One row per counter gives the field, its name as text and its place in the kernel's structure, so that the
/// three cannot drift apart.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a pipe has done since it was made. All figures count events, but for the two in bytes.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Stats {
            /// The counters' names, as sysfs has them, in the order of `struct altpipe_stats`.
            pub const NAMES: [&'static str; [$(stringify!($name)),*].len()] = [$(stringify!($name)),*];

            /// Name and value of each counter, in the order of [`Stats::NAMES`].
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                Self::NAMES.into_iter().zip([$(self.$name),*])
            }
        }

        impl From<raw::Stats> for Stats {
            fn from(raw: raw::Stats) -> Self {
                let [$($name),*] = raw.counters;
                Self { $($name),* }
            }
        }
    };
}

counters! {
    /// Pipes made; 1 for one pipe.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_keep_the_kernels_order() {
        let mut raw = raw::Stats::default();
        for (place, counter) in raw.counters.iter_mut().enumerate() {
            *counter = place as u64;
        }
        let stats = Stats::from(raw);
        assert_eq!(stats.tail_locks, 16);
        let values: Vec<_> = stats.iter().map(|(_, value)| value).collect();
        assert_eq!(values, (0..Stats::NAMES.len() as u64).collect::<Vec<_>>());
        assert_eq!(stats.iter().nth(3), Some(("bytes_read", 3)));
    }
}
