// SPDX-License-Identifier: GPL-2.0
//! The devices' files in sysfs.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;

use altpipe_core::KNOBS;

use crate::subject::errno;

/// A device's directory.
pub struct Device(PathBuf);

impl Device {
    /// The control device's.
    pub fn control() -> Self {
        Self("/sys/class/misc/altpipe".into())
    }

    /// That of the FIFO device with this number.
    pub fn fifo(number: usize) -> Self {
        Self(format!("/sys/class/altpipe/altpipe{number}").into())
    }

    /// The path of a file below it.
    pub fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    /// The text of a file, which is one line.
    pub fn show(&self, file: &str) -> String {
        let text = fs::read_to_string(self.path(file))
            .unwrap_or_else(|error| panic!("read {file}: {error}"));
        text.strip_suffix('\n')
            .unwrap_or_else(|| panic!("{file} holds a whole line, not {text:?}"))
            .to_string()
    }

    /// Writes to a file in one call.
    pub fn store(&self, file: &str, text: impl AsRef<[u8]>) -> rustix::io::Result<()> {
        let file = fs::OpenOptions::new()
            .write(true)
            .open(self.path(file))
            .map_err(|error| errno(&error))?;
        let text = text.as_ref();
        // Not write_all: the kernel is to see one call, of which it must take all or nothing.
        let count = rustix::io::write(&file, text)?;
        assert_eq!(count, text.len(), "a short store");
        Ok(())
    }

    /// The files in a directory below it.
    pub fn files(&self, directory: &str) -> BTreeSet<String> {
        fs::read_dir(self.path(directory))
            .expect("a directory in sysfs")
            .map(|entry| entry.expect("an entry").file_name().into_string())
            .collect::<Result<_, _>>()
            .expect("a name in ASCII")
    }
}

/// The path of a file of the control device.
pub fn path(file: &str) -> PathBuf {
    Device::control().path(file)
}

/// The text of a file of the control device.
pub fn show(file: &str) -> String {
    Device::control().show(file)
}

/// Writes to a file of the control device in one call.
pub fn store(file: &str, text: impl AsRef<[u8]>) -> rustix::io::Result<()> {
    Device::control().store(file, text)
}

/// The active value in a knob's text: the word in brackets, or the number.
pub fn active(text: &str) -> &str {
    text.split(' ')
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
        .unwrap_or(text)
}

/// The limits beside the knobs.
pub const LIMITS: [&str; 3] = [
    "limits/user_pages_soft",
    "limits/user_pages_hard",
    "limits/max_size",
];

/// The values of all knobs and limits of all devices at one time.
pub struct Snapshot(Vec<(PathBuf, String)>);

impl Snapshot {
    /// Notes all values.
    pub fn take() -> io::Result<Self> {
        let knobs = KNOBS.iter().map(|knob| path("knobs").join(knob.name));
        let note = |path: PathBuf| {
            let text = fs::read_to_string(&path)?;
            Ok((path, active(text.trim_end()).to_string()))
        };
        let mut paths: Vec<_> = knobs.chain(LIMITS.map(path)).collect();
        for fifo in fs::read_dir("/sys/class/altpipe")? {
            for knob in fs::read_dir(fifo?.path().join("knobs"))? {
                paths.push(knob?.path());
            }
        }
        paths
            .into_iter()
            .map(note)
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// Sets all back.
    pub fn restore(&self) -> io::Result<()> {
        self.0
            .iter()
            .try_for_each(|(path, value)| fs::write(path, value))
    }
}
