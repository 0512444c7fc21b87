// SPDX-License-Identifier: GPL-2.0
//! The control device with its files in sysfs, and what to do where it cannot be opened.

use std::io;
use std::path::{Path, PathBuf};

use altpipe_uapi::{ABI_VERSION, Control};
use anyhow::{Result, bail};

use crate::sysfs::Sysfs;

/// The control device and the files that show its sums.
#[derive(Debug)]
pub struct Device {
    /// Makes pipes.
    pub control: Control,
    /// Shows knobs and counters.
    pub sysfs: Sysfs,
}

/// The device cannot be opened.
#[derive(Debug)]
pub struct Absent {
    path: PathBuf,
    reason: io::Error,
}

impl Absent {
    /// What stands at `path` could not be reached.
    pub fn new(path: &Path, reason: io::Error) -> Self {
        Self {
            path: path.to_owned(),
            reason,
        }
    }

    /// What the user can do about it.
    pub fn cure(&self) -> &'static str {
        match self.reason.kind() {
            io::ErrorKind::NotFound => {
                "load the module (insmod rust/altpipe.ko), or run this in the test machine (make vm)"
            }
            io::ErrorKind::PermissionDenied => {
                "run as root, or load the module without a mode that forbids it"
            }
            _ => "look at the kernel's log (dmesg), and load the module anew",
        }
    }
}

impl std::fmt::Display for Absent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "cannot open {}: {}; {}",
            self.path.display(),
            self.reason,
            self.cure()
        )
    }
}

impl std::error::Error for Absent {}

impl Device {
    /// Opens the device and checks that it speaks this program's language.
    pub fn open(path: &Path, sysfs: &Sysfs) -> Result<Self> {
        let control = Control::open_at(path).map_err(|reason| Absent::new(path, reason))?;
        match control.version() {
            Ok(ABI_VERSION) => Ok(Self {
                control,
                sysfs: sysfs.clone(),
            }),
            Ok(other) => bail!(
                "the module speaks version {other} of the ABI and this altpipe version {ABI_VERSION}: \
                 build both from one source"
            ),
            Err(error) => bail!("{} is no altpipe device: {error}", path.display()),
        }
    }

    /// Opens it where it is needed.
    pub fn open_if(needed: bool, path: &Path, sysfs: &Sysfs) -> Result<Option<Self>> {
        needed.then(|| Self::open(path, sysfs)).transpose()
    }
}
