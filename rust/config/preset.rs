// SPDX-License-Identifier: GPL-2.0

//! Presets: how releases of Linux behaved, by approximation.
//!
//! A preset bears the name of the first release that behaved so, and is written as what that release
//! changed. None of them is that release: what is re-created are the places where the knobs are.

use super::{
    knob::write_marked, Config, FasyncRule, Prealloc, Publish, TailUpdate, Times, WakeReader,
    WakeWriter, KNOBS,
};
use core::fmt::{self, Write};

/// A config with a name.
pub struct Preset {
    /// The name: `v` and a release.
    pub name: &'static str,
    /// What the release changed, as one paragraph.
    pub doc: &'static str,
    /// The settings of all knobs.
    pub config: Config,
}

impl Preset {
    /// Finds a preset by its name.
    pub fn find(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// The preset that differs from `config` in the fewest knobs; of several, the newest.
    pub fn nearest(config: &Config) -> Option<&'static Preset> {
        let newest_first = PRESETS.iter().rev();
        newest_first.min_by_key(|preset| preset.distance(config))
    }

    /// Shows all presets as the file in sysfs does, without a newline: brackets round each that
    /// `config` matches, for two may be the same.
    pub fn show_all(config: &Config, out: &mut dyn Write) -> fmt::Result {
        let presets = PRESETS.iter();
        write_marked(
            presets.map(|preset| (preset.name, preset.config == *config)),
            out,
        )
    }

    /// The number of knobs in which `config` differs.
    fn distance(&self, config: &Config) -> usize {
        let knobs = KNOBS.iter();
        knobs
            .filter(|knob| !knob.same(&self.config, config))
            .count()
    }
}

/// Makes `PRESETS` out of a list of rows, oldest release first. A row names the config that it
/// starts from and the knobs that it changes.
macro_rules! presets {
    ($(
        $(#[doc = $doc:literal])+
        $id:ident = $name:literal: $base:path { $($knob:ident: $value:expr),* $(,)? },
    )+) => {
        $(const $id: Config = Config { $($knob: $value,)* ..$base };)+

        /// All presets, oldest release first.
        pub static PRESETS: &[Preset] = &[
            $(Preset {
                name: $name,
                doc: concat!($($doc),+).trim_ascii_start(),
                config: $id,
            },)+
        ];
    };
}

presets! {
    /// Every write and every read that released a slot wakes all of the other side, on one queue; a
    /// read gathers what sleeping writers add. Approximately.
    V2_6_18 = "v2.6.18": Config::DEFAULT {
        wake_reader: WakeReader::EveryWrite,
        wake_writer: WakeWriter::EveryRelease,
        exclusive: false,
        split_wait: false,
        read_merge: true,
        times: Times::Full,
        prealloc: Prealloc::Off,
        page_cache: 1,
        fasync: FasyncRule::WithWake,
        nowait: false,
    },

    /// The inode diet: st_blksize became that of pseudo file systems.
    V2_6_19 = "v2.6.19": V2_6_18 {
        block_size: 1024,
    },

    /// Pseudo file systems got the block size of a page: as before the inode diet.
    V2_6_28 = "v2.6.28": V2_6_18 {},

    /// A write asks whether the file system is frozen before it updates time stamps.
    V3_14 = "v3.14": V2_6_28 {
        freeze_check: true,
    },

    /// Since 4.5 a user over the soft quota got pipes of one slot. Approximately.
    V5_4 = "v5.4": V3_14 {
        min_def_buffers: 1,
    },

    /// The ring with head and tail, and with three things that did not last: wake-ups without the
    /// sync hint, writers woken at half, and both tail and wake-up inside the wait queue's lock.
    V5_5_RC1 = "v5.5-rc1": V5_4 {
        wake_reader: WakeReader::EveryChunk,
        wake_writer: WakeWriter::Half,
        sync_read: false,
        sync_write: false,
        tail_update: TailUpdate::WaitLockWake,
        publish: Publish::BeforeCopy,
    },

    /// Wake-ups by transition: readers when the pipe was empty, writers when it was full.
    V5_5 = "v5.5": V5_5_RC1 {
        wake_reader: WakeReader::WasEmpty,
        wake_writer: WakeWriter::WasFull,
        sync_read: true,
        sync_write: true,
        read_merge: false,
        tail_update: TailUpdate::WaitLock,
    },

    /// Exclusive waits, on a queue for each side.
    V5_6 = "v5.6": V5_5 {
        exclusive: true,
        split_wait: true,
    },

    /// Whoever polled a pipe gets an event for each write again, SIGIO comes at each I/O, and a user
    /// over the soft quota gets two slots.
    V5_14 = "v5.14": V5_6 {
        wake_reader: WakeReader::WasEmptyOrPolled,
        fasync: FasyncRule::EveryIo,
        min_def_buffers: 2,
    },

    /// RWF_NOWAIT is honoured.
    V6_4 = "v6.4": V5_14 {
        nowait: true,
    },

    /// The tail needs the mutex alone where no watch queue is attached. Approximately.
    V6_7 = "v6.7": V6_4 {
        tail_update: TailUpdate::Mutex,
    },

    /// A read wakes writers only when it made room in a full pipe.
    V6_14 = "v6.14": V6_7 {
        wake_writer: WakeWriter::FreedFull,
    },

    /// A slot is filled before it is seen, anonymous pipes keep no time stamps, and two pages are
    /// kept for reuse.
    V6_15 = "v6.15": V6_14 {
        publish: Publish::AfterCopy,
        times: Times::None,
        freeze_check: false,
        page_cache: 2,
    },

    /// A large write allocates its first pages before it takes the lock.
    V7_2 = "v7.2": V6_15 {
        prealloc: Prealloc::Burst,
    },

    /// Those pages come from a pool that each pipe keeps, and only an edge-triggered epoll gets an
    /// event for each write. The release that brought the latter is not known for certain.
    V7_3 = "v7.3": V7_2 {
        prealloc: Prealloc::Pool,
        wake_reader: WakeReader::WasEmptyOrEpollet,
    },
}
