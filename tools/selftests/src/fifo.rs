// SPDX-License-Identifier: GPL-2.0
//! Pipes that are opened by a name: the kernel's FIFOs, and altpipe's FIFO devices.

use std::env;
use std::ffi::CString;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process;

use altpipe_core::{Config, KNOBS};
use rustix::fs::{CWD, Mode, OFlags, mkfifoat, open};
use rustix::io::Result;

use crate::knobs::Device;

/// A maker of FIFOs.
#[derive(Clone)]
pub enum Fifos {
    /// mkfifo(3) in the directory for temporary files.
    Native,
    /// The FIFO devices, the first of them first.
    Devices {
        /// The text of the config that their knobs are set to.
        text: String,
        /// What it says.
        config: Config,
    },
}

impl Fifos {
    /// The devices under `text`, which may be empty for the defaults.
    pub fn devices(text: &str) -> std::result::Result<Self, String> {
        let config = Config::parse(text, &Config::DEFAULT).map_err(|error| error.to_string())?;
        Ok(Self::Devices {
            text: text.into(),
            config,
        })
    }

    /// A FIFO that nobody has open; each number gives another.
    pub fn fifo(&self, number: usize) -> Fifo {
        match self {
            Self::Native => Fifo::make(number),
            Self::Devices { config, .. } => {
                configure(&Device::fifo(number), config);
                Fifo {
                    path: format!("/dev/altpipe{number}").into(),
                    _inode: None,
                }
            }
        }
    }
}

/// Sets all knobs that the device has.
pub fn configure(device: &Device, config: &Config) {
    let present = device.files("knobs");
    for knob in KNOBS.iter().filter(|knob| present.contains(knob.name)) {
        let mut value = String::new();
        knob.write_value(config, &mut value)
            .expect("a string takes any text");
        device
            .store(&format!("knobs/{}", knob.name), value)
            .expect("a value of the knob's own");
    }
}

/// A FIFO.
pub struct Fifo {
    path: PathBuf,
    _inode: Option<OwnedFd>,
}

impl Fifo {
    // The name goes at once, and with it the danger that a case which fails leaves it behind.
    fn make(number: usize) -> Self {
        let name = env::temp_dir().join(format!("altpipe-selftests.{}.{number}", process::id()));
        mkfifoat(CWD, &name, Mode::RUSR | Mode::WUSR).expect("mkfifo");
        let inode = open(&name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("O_PATH");
        fs::remove_file(&name).expect("unlink");
        Self {
            path: format!("/proc/self/fd/{}", inode.as_raw_fd()).into(),
            _inode: Some(inode),
        }
    }

    /// Its path, for who opens it in a way of his own.
    pub fn path(&self) -> CString {
        CString::new(self.path.as_os_str().as_encoded_bytes()).expect("no NUL in a path")
    }

    /// Opens it as open(2) does.
    pub fn open(&self, flags: OFlags) -> Result<OwnedFd> {
        open(&self.path, flags | OFlags::CLOEXEC, Mode::empty())
    }

    /// Opens it for reading and waits for a writer.
    pub fn open_reader(&self) -> Result<OwnedFd> {
        self.open(OFlags::RDONLY)
    }

    /// Opens it for writing and waits for a reader.
    pub fn open_writer(&self) -> Result<OwnedFd> {
        self.open(OFlags::WRONLY)
    }

    /// Opens it for reading without waiting.
    pub fn try_reader(&self) -> OwnedFd {
        self.open(OFlags::RDONLY | OFlags::NONBLOCK)
            .expect("a reader need not wait")
    }

    /// Opens it for writing where there is a reader.
    pub fn try_writer(&self) -> Result<OwnedFd> {
        self.open(OFlags::WRONLY | OFlags::NONBLOCK)
    }

    /// Opens it for both.
    pub fn open_both(&self) -> OwnedFd {
        self.open(OFlags::RDWR).expect("never waits, never fails")
    }
}
