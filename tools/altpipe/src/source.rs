// SPDX-License-Identifier: GPL-2.0
//! Where pipes come from: pipe2(2), mkfifo(3), or a create call that carries the variant's config.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use altpipe_uapi::Flags;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::sys::stat::Mode;
use nix::unistd::{mkfifo, pipe2};

use crate::device::Device;

/// Makes pipes of one variant.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The kernel's own.
    Native,
    /// The kernel's own, by a name on a tmpfs.
    Fifo,
    /// Through the control device, with a config.
    Altpipe(&'a Device, &'a str),
}

impl Source<'_> {
    /// A new pipe: its read end and its write end.
    pub fn pipe(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        match self {
            Self::Native => Ok(pipe2(OFlag::O_CLOEXEC)?),
            Self::Fifo => fifo(),
            Self::Altpipe(device, config) => device.control.create(Flags::CLOEXEC, config),
        }
    }

    /// The sums over all pipes that the device ever made; empty for the kernel's own.
    pub fn device_counters(&self) -> io::Result<BTreeMap<String, u64>> {
        match self {
            Self::Native | Self::Fifo => Ok(BTreeMap::new()),
            Self::Altpipe(device, _) => device.sysfs.counters(),
        }
    }

    /// Whether its pipes can be asked for counters.
    pub fn counts(&self) -> bool {
        matches!(self, Self::Altpipe(..))
    }
}

/// Both ends of a FIFO that has its name no longer than it takes to open them.
fn fifo() -> io::Result<(OwnedFd, OwnedFd)> {
    let folder = tempfile::tempdir_in("/dev/shm")?;
    let path = folder.path().join("fifo");
    mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)?;
    // Only this open may not wait for a partner.
    let read = open(
        &path,
        OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC,
        Mode::empty(),
    )?;
    let write = open(&path, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    fcntl(&read, FcntlArg::F_SETFL(OFlag::empty()))?;
    Ok((read, write))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn the_ends_of_a_fifo_are_those_of_a_blocking_pipe() {
        let (read, write) = Source::Fifo.pipe().unwrap();
        let flags = OFlag::from_bits_truncate(fcntl(&read, FcntlArg::F_GETFL).unwrap());
        assert!(!flags.contains(OFlag::O_NONBLOCK));
        File::from(write).write_all(b"abc").unwrap();
        let mut all = String::new();
        File::from(read).read_to_string(&mut all).unwrap();
        assert_eq!(all, "abc");
    }
}
