// SPDX-License-Identifier: GPL-2.0
//! Where pipes come from: pipe2(2) or a create call that carries the variant's config.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use altpipe_uapi::Flags;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use crate::device::Device;

/// Makes pipes of one variant.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The kernel's own.
    Native,
    /// Through the control device, with a config.
    Altpipe(&'a Device, &'a str),
}

impl Source<'_> {
    /// A new pipe: its read end and its write end.
    pub fn pipe(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        match self {
            Self::Native => Ok(pipe2(OFlag::O_CLOEXEC)?),
            Self::Altpipe(device, config) => device.control.create(Flags::CLOEXEC, config),
        }
    }

    /// The sums over all pipes that the device ever made; empty for native.
    pub fn device_counters(&self) -> io::Result<BTreeMap<String, u64>> {
        match self {
            Self::Native => Ok(BTreeMap::new()),
            Self::Altpipe(device, _) => device.sysfs.counters(),
        }
    }

    /// Whether its pipes can be asked for counters.
    pub fn counts(&self) -> bool {
        matches!(self, Self::Altpipe(..))
    }
}
