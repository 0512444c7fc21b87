// SPDX-License-Identifier: GPL-2.0
//! Who is tested: the kernel's own pipes, or altpipe's under one config. Only the making of a pipe differs.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use altpipe_core::config::Values;
use altpipe_core::{Config, KNOBS, Knob};
use altpipe_uapi::{Control, Flags};
use rustix::io::{Errno, Result};
use rustix::pipe::{PipeFlags, pipe_with};

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
    Device(Rc<Control>),
    /// Pipes of the control device under one config.
    Altpipe {
        /// The open device. It stays open for the whole run, as it would in a program that makes many pipes.
        control: Rc<Control>,
        /// The text given to the create call.
        text: String,
        /// What the text says.
        config: Config,
    },
}

/// Configs that set several knobs at once as some release of Linux did.
const MIXES: &[&str] = &[
    "times=full,freeze_check=1,wake_writer=every_release,wake_reader=every_write,exclusive=0,split_wait=0",
    "times=full,freeze_check=1,tail_update=wait_lock_wake,wake_writer=half,wake_reader=every_chunk,exclusive=0,split_wait=0",
    "times=full,freeze_check=1,tail_update=wait_lock,wake_writer=was_full,wake_reader=was_empty",
];

impl Subject {
    /// Altpipe under `text`, which may be empty for the defaults.
    pub fn altpipe(control: &Rc<Control>, text: &str) -> std::result::Result<Self, String> {
        let config = Config::parse(text, &Config::DEFAULT).map_err(|error| error.to_string())?;
        Ok(Self::Altpipe {
            control: control.clone(),
            text: text.into(),
            config,
        })
    }

    /// The subjects of a full run: the kernel, the device, altpipe's default, each knob away from it, and mixes.
    pub fn all(control: &Rc<Control>) -> Vec<Self> {
        let single = KNOBS.iter().flat_map(|knob| {
            values(knob)
                .into_iter()
                .map(move |value| format!("{}={value}", knob.name))
        });
        let texts = [String::new()]
            .into_iter()
            .chain(single)
            .chain(MIXES.iter().map(|&mix| mix.into()));
        let altpipes =
            texts.map(|text| Self::altpipe(control, &text).expect("a config of our own"));
        [Self::Native, Self::Device(control.clone())]
            .into_iter()
            .chain(altpipes)
            .collect()
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
        };
        made.map(|(read, write)| Pipe { read, write })
    }

    /// The config of the pipes made. The kernel's own pipes are the default's model.
    pub fn config(&self) -> Config {
        match self {
            Self::Native | Self::Device(_) => Config::DEFAULT,
            Self::Altpipe { config, .. } => *config,
        }
    }

    /// Whether one wake-up runs one sleeper. A queue common to both sides is woken as a whole, whatever `exclusive` says.
    pub fn waits_exclusively(&self) -> bool {
        self.config().exclusive && self.config().split_wait
    }

    /// The open control device. Only cases that run on altpipe may ask.
    pub fn control(&self) -> &Control {
        match self {
            Self::Native => panic!("native pipes have no control device"),
            Self::Device(control) | Self::Altpipe { control, .. } => control,
        }
    }

    /// The name that /proc gives to pipes of this kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Native => "pipe",
            Self::Device(_) | Self::Altpipe { .. } => "altpipe",
        }
    }

    /// The `f_type` of their file system: PIPEFS_MAGIC or altpipe.h's ALTPIPE_SUPER_MAGIC.
    pub fn magic(&self) -> i64 {
        match self {
            Self::Native => 0x5049_5045,
            Self::Device(_) | Self::Altpipe { .. } => 0x616c_7470,
        }
    }
}

/// Values that a knob takes other than its default: all words of a choice, the bounds of a range.
pub fn values(knob: &Knob) -> Vec<String> {
    let all: Vec<String> = match knob.values {
        Values::Switch => vec!["0".into(), "1".into()],
        Values::Number { min, max } | Values::PowerOfTwo { min, max } => {
            vec![min.to_string(), max.to_string()]
        }
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
        }
    }
}
