// SPDX-License-Identifier: GPL-2.0

//! The knobs of a device as files: one below `knobs/` for each row of [`KNOBS`], and `preset` for all
//! of them.
//!
//! Whose knobs they are, and what a change does beyond changing them, is the device's affair: see
//! [`Configured`].

use crate::{
    abi::sysfs::{Entry, File, Group, List, Owner, Show, Store},
    config::{Config, Knob, Preset, KNOBS},
};
use core::{fmt, marker::PhantomData};
use kernel::{new_mutex, prelude::*, sync::Mutex};

/// Something that has a config, which may be changed.
pub(crate) trait Configured {
    /// The names of knobs that mean nothing to it: it has no files for them.
    const OMITTED: &'static [&'static str] = &[];

    /// The config as it is now.
    fn config(&self) -> Config;

    /// Changes the config by `change`, which sees no other change between what it reads and what
    /// it writes. Where it fails, the config stays as it was.
    fn configure(&self, change: impl FnOnce(&mut Config) -> Result) -> Result;
}

/// The config of pipes that are yet to be made.
///
/// A pipe takes a copy when it is made, so a change acts upon later pipes only.
#[pin_data]
pub(crate) struct Defaults {
    #[pin]
    config: Mutex<Config>,
}

impl Defaults {
    /// Every knob at its default.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            config <- new_mutex!(Config::DEFAULT, "altpipe defaults"),
        })
    }
}

impl Configured for Defaults {
    fn config(&self) -> Config {
        *self.config.lock()
    }

    fn configure(&self, change: impl FnOnce(&mut Config) -> Result) -> Result {
        let mut config = self.config.lock();
        let mut changed = *config;
        change(&mut changed)?;
        *config = changed;
        Ok(())
    }
}

impl<O: Configured> Show<O> for Knob {
    fn show(&self, owner: &O, text: &mut dyn fmt::Write) -> fmt::Result {
        Knob::show(self, &owner.config(), text)
    }
}

impl<O: Configured> Store<O> for Knob {
    fn store(&self, owner: &O, text: &str) -> Result {
        owner.configure(|config| Knob::store(self, config, text).map_err(|_| EINVAL))
    }
}

/// The file that shows which presets a config matches, and sets all knobs at once.
struct PresetFile;

impl<O: Configured> Show<O> for PresetFile {
    fn show(&self, owner: &O, text: &mut dyn fmt::Write) -> fmt::Result {
        Preset::show_all(&owner.config(), text)
    }
}

impl<O: Configured> Store<O> for PresetFile {
    fn store(&self, owner: &O, text: &str) -> Result {
        // The empty config is one, but an empty line is more likely a script's unset variable.
        if text.is_empty() {
            return Err(EINVAL);
        }
        owner.configure(|config| {
            *config = Config::parse(text, config).map_err(|_| EINVAL)?;
            Ok(())
        })
    }
}

/// The number of knobs.
const COUNT: usize = KNOBS.len();

/// The directory `knobs/` of an `O`.
pub(crate) struct Directory<O>(PhantomData<O>);

// Tables made by the compiler: an index out of bounds would fail the build.
impl<O: Configured + Owner + 'static> Directory<O> {
    const FILES: &'static [File<O, Knob>; COUNT] = &{
        let mut files = [File::read_write(KNOBS[0].file, &KNOBS[0]); COUNT];
        let mut at = 1;
        while at < COUNT {
            files[at] = File::read_write(KNOBS[at].file, &KNOBS[at]);
            at += 1;
        }
        files
    };

    const LIST: &'static List<Entry<O>, COUNT> = &{
        let mut list = [None; COUNT];
        let mut at = 0;
        let mut length = 0;
        while at < COUNT {
            if !contains(O::OMITTED, KNOBS[at].name) {
                list[length] = Some(Self::FILES[at].entry());
                length += 1;
            }
            at += 1;
        }
        List::up_to_none(list)
    };

    /// The directory itself.
    pub(crate) const GROUP: &'static Group<O> = &Group::new(c"knobs", Self::LIST);

    const PRESET: &'static File<O, PresetFile> = &File::read_write(c"preset", &PresetFile);

    /// The file `preset` beside the directory.
    pub(crate) const PRESETS: &'static Group<O> =
        &Group::unnamed(const { &List::new([Self::PRESET.entry()]) });
}

/// Whether `name` is among `names`.
const fn contains(names: &[&str], name: &str) -> bool {
    let mut at = 0;
    while at < names.len() {
        if equal(names[at].as_bytes(), name.as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

const fn equal(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}
