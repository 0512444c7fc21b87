// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls, safe to make.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

use crate::{DEVICE, Flags, Stats, raw};

/// An open control device.
#[derive(Debug)]
pub struct Control(File);

impl Control {
    /// Opens [`DEVICE`]. `NotFound` means that the module is not loaded.
    pub fn open() -> io::Result<Self> {
        Self::open_at(DEVICE)
    }

    /// Opens a control device found elsewhere than at [`DEVICE`], as in a container.
    pub fn open_at(path: impl AsRef<Path>) -> io::Result<Self> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map(Self)
    }

    /// The version of the ABI that the loaded module speaks. `ENOTTY`: this is no altpipe device.
    pub fn version(&self) -> io::Result<u32> {
        // SAFETY: VERSION takes no argument and touches no memory of ours.
        let version = unsafe { libc::ioctl(self.0.as_raw_fd(), raw::VERSION) };
        Ok(checked(version)? as u32)
    }

    /// Makes a pipe and gives its read end and its write end.
    ///
    /// `config` is `knob=value,...` over the current defaults; empty takes the defaults as they stand.
    pub fn create(&self, flags: Flags, config: &str) -> io::Result<(OwnedFd, OwnedFd)> {
        let mut argument = raw::Create {
            size: size_of::<raw::Create>() as u32,
            flags: flags.bits(),
            fd: [-1; 2],
            config: config.as_ptr() as u64,
            config_len: length(config.len())?,
            pad: 0,
        };
        // SAFETY: the argument is a whole `raw::Create` that says its own size, and `config` is readable for
        // `config_len` bytes; both outlive the call.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), raw::CREATE, &raw mut argument) })?;
        // SAFETY: CREATE succeeded, so it opened these two descriptors for us and nobody else knows them.
        Ok(unsafe {
            (
                OwnedFd::from_raw_fd(argument.fd[0]),
                OwnedFd::from_raw_fd(argument.fd[1]),
            )
        })
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The capacity in bytes of the pipe that `end` belongs to, as fcntl(2) F_GETPIPE_SZ.
pub fn get_size(end: impl AsFd) -> io::Result<u32> {
    // SAFETY: GET_SIZE takes no argument and touches no memory of ours.
    let size = unsafe { libc::ioctl(end.as_fd().as_raw_fd(), raw::GET_SIZE) };
    Ok(checked(size)? as u32)
}

/// Gives the pipe that `end` belongs to room for at least `bytes`, as fcntl(2) F_SETPIPE_SZ; returns its new
/// capacity.
pub fn set_size(end: impl AsFd, bytes: u32) -> io::Result<u32> {
    // SAFETY: SET_SIZE takes its argument by value and touches no memory of ours.
    let size = unsafe {
        libc::ioctl(
            end.as_fd().as_raw_fd(),
            raw::SET_SIZE,
            libc::c_ulong::from(bytes),
        )
    };
    Ok(checked(size)? as u32)
}

/// The config of the pipe that `end` belongs to, in the grammar that [`Control::create`] takes.
pub fn get_config(end: impl AsFd) -> io::Result<String> {
    // Longer than any config of today. Should one outgrow it, the kernel says ERANGE and we come with more.
    let mut room = 1024;
    loop {
        let mut text = vec![0u8; room];
        let mut argument = raw::Text {
            buf: text.as_mut_ptr() as u64,
            len: length(room)?,
            pad: 0,
        };
        // SAFETY: the argument is a whole `raw::Text` whose buffer is writable for `len` bytes; both outlive
        // the call.
        let answer =
            unsafe { libc::ioctl(end.as_fd().as_raw_fd(), raw::GET_CONFIG, &raw mut argument) };
        match checked(answer) {
            Ok(used) => {
                text.truncate(used as usize);
                return String::from_utf8(text)
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error));
            }
            Err(error) if error.raw_os_error() == Some(libc::ERANGE) && room < 1 << 20 => room *= 4,
            Err(error) => return Err(error),
        }
    }
}

/// What the pipe that `end` belongs to has done since it was made.
pub fn get_stats(end: impl AsFd) -> io::Result<Stats> {
    let mut argument = raw::Stats {
        size: size_of::<raw::Stats>() as u32,
        ..raw::Stats::default()
    };
    // SAFETY: the argument is a whole `raw::Stats` that says its own size and outlives the call.
    checked(unsafe { libc::ioctl(end.as_fd().as_raw_fd(), raw::GET_STATS, &raw mut argument) })?;
    Ok(argument.into())
}

fn checked(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(answer)
    }
}

fn length(bytes: usize) -> io::Result<u32> {
    u32::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_device_is_not_found() {
        let error = Control::open_at("/dev/altpipe-of-no-machine").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_device_of_another_kind_says_enotty() {
        let control = Control::open_at("/dev/null").unwrap();
        let calls = [
            control.version().map(drop),
            control.create(Flags::CLOEXEC, "").map(drop),
            get_size(&control).map(drop),
            set_size(&control, 4096).map(drop),
            get_config(&control).map(drop),
            get_stats(&control).map(drop),
        ];
        for call in calls {
            assert_eq!(call.unwrap_err().raw_os_error(), Some(libc::ENOTTY));
        }
    }
}
