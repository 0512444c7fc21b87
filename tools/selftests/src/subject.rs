// SPDX-License-Identifier: GPL-2.0
//! Who is tested: the kernel's own pipes, or altpipe's under one config. Only the making of a pipe
//! differs.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use altpipe_core::config::Values;
use altpipe_core::{Config, KNOBS, Knob, PRESETS};
use altpipe_uapi::{Control, Flags};
use rustix::io::{Errno, Result};
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, pipe_with};

use crate::end::{checked, number};
use crate::fifo::{Fifo, Fifos};

/// The two ends of a pipe. A scenario takes them apart and drops an end to close it.
pub struct Pipe {
    /// The end to read from.
    pub read: OwnedFd,
    /// The end to write to.
    pub write: OwnedFd,
}

/// A maker of pipes.
#[derive(Clone)]
pub enum Subject {
    /// pipe2(2) of the running kernel.
    Native,
    /// The control device itself, with pipes as it makes them by default.
    Device(Arc<Control>),
    /// Pipes of the control device under one config.
    Altpipe {
        /// The open device. It stays open for the whole run, as it would in a program that makes
        /// many pipes.
        control: Arc<Control>,
        /// The text given to the create call.
        text: String,
        /// What the text says.
        config: Config,
    },
    /// Pipes that are opened by name.
    Fifo(Fifos),
}

/// Knobs about a pipe's size and its user's quota, which would make most scenarios others. They
/// have cases of their own.
const OWN_CASES: [&str; 2] = ["capacity", "min_def_buffers"];

impl Subject {
    /// Altpipe under `text`, which may be empty for the defaults.
    pub fn altpipe(control: &Arc<Control>, text: &str) -> std::result::Result<Self, String> {
        let config = Config::parse(text, &Config::DEFAULT).map_err(|error| error.to_string())?;
        Ok(Self::Altpipe {
            control: control.clone(),
            text: text.into(),
            config,
        })
    }

    /// The subjects of a full run: the kernel, the device, altpipe's default, each knob away from
    /// it, and each preset; then FIFOs.
    pub fn all(control: &Arc<Control>) -> Vec<Self> {
        let single = KNOBS
            .iter()
            .filter(|knob| !OWN_CASES.contains(&knob.name))
            .flat_map(|knob| {
                values(knob)
                    .into_iter()
                    .map(move |value| format!("{}={value}", knob.name))
            });
        let presets = PRESETS.iter().map(|preset| preset.name.to_string());
        let mut configs = Vec::new();
        let mut all = vec![Self::Native, Self::Device(control.clone())];
        for text in [String::new()].into_iter().chain(single).chain(presets) {
            let subject = Self::altpipe(control, &text).expect("a config of our own");
            // Two releases may be the same by all knobs, and the newest is the default.
            if !configs.contains(&subject.config()) {
                configs.push(subject.config());
                all.push(subject);
            }
        }
        // The rules of opening depend on no knob, and the data path has had its turn by then.
        let devices = ["", "v2.6.18", "v5.5-rc1", "v5.5"]
            .map(|text| Fifos::devices(text).expect("a config of our own"));
        all.extend([Fifos::Native].into_iter().chain(devices).map(Self::Fifo));
        all
    }

    /// Makes a pipe, both ends blocking.
    pub fn pipe(&self) -> Pipe {
        self.pipe_with(PipeFlags::CLOEXEC).expect("make a pipe")
    }

    /// Makes a pipe with pipe2(2)'s flags.
    pub fn pipe_with(&self, flags: PipeFlags) -> Result<Pipe> {
        let made = match self {
            Self::Native => pipe_with(flags),
            Self::Device(control) => create(control, flags, ""),
            Self::Altpipe { control, text, .. } => create(control, flags, text),
            Self::Fifo(_) => panic!("a FIFO is opened, not made"),
        };
        made.map(|(read, write)| Pipe { read, write })
    }

    /// The capacity of a pipe of this kind.
    pub fn size(&self, end: impl AsFd) -> Result<usize> {
        match self {
            Self::Native | Self::Fifo(Fifos::Native) => fcntl_getpipe_size(end),
            Self::Device(_) | Self::Altpipe { .. } | Self::Fifo(_) => altpipe_uapi::get_size(end)
                .map(|size| size as usize)
                .map_err(|error| errno(&error)),
        }
    }

    /// Asks for room for `bytes`; gives the new capacity.
    pub fn resize(&self, end: impl AsFd, bytes: u32) -> Result<usize> {
        match self {
            Self::Native | Self::Fifo(Fifos::Native) => {
                // Not by the library, which takes an int where the kernel takes an unsigned one.
                // SAFETY: fcntl with an integer touches no memory of ours.
                checked(unsafe {
                    libc::fcntl(number(&end), libc::F_SETPIPE_SZ, libc::c_ulong::from(bytes))
                } as isize)
            }
            Self::Device(_) | Self::Altpipe { .. } | Self::Fifo(_) => {
                altpipe_uapi::set_size(end, bytes)
                    .map(|size| size as usize)
                    .map_err(|error| errno(&error))
            }
        }
    }

    /// The config of the pipes made. The kernel's own pipes are the default's model.
    pub fn config(&self) -> Config {
        match self {
            Self::Native | Self::Device(_) | Self::Fifo(Fifos::Native) => Config::DEFAULT,
            Self::Altpipe { config, .. } | Self::Fifo(Fifos::Devices { config, .. }) => *config,
        }
    }

    /// A FIFO that nobody has open. Only cases about FIFOs may ask.
    pub fn fifo(&self) -> Fifo {
        self.fifos().fifo(0)
    }

    /// The maker of FIFOs. Only cases about FIFOs may ask.
    pub fn fifos(&self) -> &Fifos {
        match self {
            Self::Fifo(fifos) => fifos,
            _ => panic!("not opened by name"),
        }
    }

    /// Whether this is altpipe with one knob away from the default.
    pub fn is_of_one_knob(&self) -> bool {
        KNOBS
            .iter()
            .filter(|knob| !knob.same(&self.config(), &Config::DEFAULT))
            .count()
            == 1
    }

    /// Whether one wake-up runs one sleeper. A queue common to both sides is woken as a whole,
    /// whatever `exclusive` says.
    pub fn waits_exclusively(&self) -> bool {
        self.config().exclusive && self.config().split_wait
    }

    /// Whether readers and writers sleep on one queue.
    pub fn has_common_queue(&self) -> bool {
        !self.config().split_wait
    }

    /// The open control device. Only cases that run on altpipe may ask.
    pub fn control(&self) -> &Control {
        match self {
            Self::Native | Self::Fifo(_) => panic!("such pipes have no control device"),
            Self::Device(control) | Self::Altpipe { control, .. } => control,
        }
    }

    /// The name that /proc gives to pipes of this kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Native => "pipe",
            Self::Device(_) | Self::Altpipe { .. } => "altpipe",
            Self::Fifo(_) => panic!("a FIFO has a name of its own"),
        }
    }

    /// The `f_type` of their file system: PIPEFS_MAGIC or altpipe.h's ALTPIPE_SUPER_MAGIC.
    pub fn magic(&self) -> i64 {
        match self {
            Self::Native => 0x5049_5045,
            Self::Device(_) | Self::Altpipe { .. } => 0x616c_7470,
            Self::Fifo(_) => panic!("a FIFO lives in any file system"),
        }
    }
}

/// Values that a knob takes other than its default: all words of a choice, the bounds of a range. A
/// size goes no further than 1 MiB, beyond which a pipe may ask for more memory than there is.
pub fn values(knob: &Knob) -> Vec<String> {
    let all: Vec<String> = match knob.values {
        Values::Switch => vec!["0".into(), "1".into()],
        Values::Number { min, max } => vec![min.to_string(), max.to_string()],
        Values::PowerOfTwo { min, max } => vec![min.to_string(), max.min(1 << 20).to_string()],
        Values::Choice(choices) => choices.iter().map(|choice| choice.word.into()).collect(),
    };
    let mut default = String::new();
    knob.write_value(&Config::DEFAULT, &mut default)
        .expect("a string takes any text");
    all.into_iter().filter(|value| *value != default).collect()
}

fn create(control: &Control, flags: PipeFlags, config: &str) -> Result<(OwnedFd, OwnedFd)> {
    control
        .create(Flags::from_bits(flags.bits()), config)
        .map_err(|error| errno(&error))
}

/// The config that a pipe of altpipe's says it has.
pub fn config_of(end: impl AsFd) -> Config {
    let text = altpipe_uapi::get_config(end).expect("GET_CONFIG");
    Config::parse(&text, &Config::DEFAULT).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The errno in an error of the library's.
pub fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).expect("an error of a system call")
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native => f.write_str("native"),
            Self::Device(_) => f.write_str("altpipe device"),
            Self::Altpipe { text, .. } if text.is_empty() => f.write_str("altpipe default"),
            Self::Altpipe { text, .. } => write!(f, "altpipe {text}"),
            Self::Fifo(Fifos::Native) => f.write_str("fifo native"),
            Self::Fifo(Fifos::Devices { text, .. }) if text.is_empty() => {
                f.write_str("fifo altpipe default")
            }
            Self::Fifo(Fifos::Devices { text, .. }) => write!(f, "fifo altpipe {text}"),
        }
    }
}
