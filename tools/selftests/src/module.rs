// SPDX-License-Identifier: GPL-2.0
//! The kernel module itself: loading, unloading, and what it leaves in the system.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::io::{Errno, Result};

use crate::end::checked;

/// A module file.
pub struct Module {
    /// Where it is.
    pub path: PathBuf,
}

impl Module {
    /// Opens the file.
    pub fn open(&self) -> File {
        File::open(&self.path).unwrap_or_else(|error| panic!("{}: {error}", self.path.display()))
    }

    /// Loads it with parameters as on insmod's command line.
    pub fn load_with(&self, parameters: &str) -> Result<()> {
        let parameters = CString::new(parameters).expect("no NUL in a parameter");
        Self::load_file(&self.open(), &parameters)
    }

    /// Loads it from its open file, in one system call.
    pub fn load_file(file: &File, parameters: &CStr) -> Result<()> {
        // SAFETY: the descriptor is open and the text terminated.
        let ret = unsafe {
            libc::syscall(
                libc::SYS_finit_module,
                file.as_raw_fd(),
                parameters.as_ptr(),
                0,
            )
        };
        checked(ret as isize).map(drop)
    }

    /// Loads it.
    pub fn load(&self) {
        self.load_with("").expect("finit_module");
    }

    /// Unloads it, or says what refuses. Never waits.
    pub fn unload(&self) -> Result<()> {
        // SAFETY: the name is terminated.
        let ret = unsafe {
            libc::syscall(
                libc::SYS_delete_module,
                c"altpipe".as_ptr(),
                libc::O_NONBLOCK,
            )
        };
        checked(ret as isize).map(drop)
    }

    /// Unloads it once the last reference is gone; for references that another task drops at its
    /// own pace.
    pub fn unload_when_free(&self) {
        while let Err(error) = self.unload() {
            assert_eq!(error, Errno::WOULDBLOCK, "delete_module");
            std::thread::yield_now();
        }
    }
}

/// What of the module the system shows: its entry among the modules, its file system, its device,
/// its sysfs tree.
pub fn traces() -> [bool; 4] {
    let list = |path: &str, start: &str| {
        fs::read_to_string(path)
            .expect("/proc")
            .lines()
            .any(|line| {
                line.trim_start_matches("nodev")
                    .trim_start()
                    .starts_with(start)
            })
    };
    [
        list("/proc/modules", "altpipe "),
        list("/proc/filesystems", "altpipefs"),
        Path::new("/dev/altpipe").exists(),
        Path::new("/sys/class/misc/altpipe").exists(),
    ]
}

/// Kernel memory in use, in KiB.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Objects that only their owner can give back.
    pub slab: u64,
    /// All pages that are neither free, nor a program's, nor cache.
    pub pages: u64,
}

impl Memory {
    /// What is in use now.
    pub fn now() -> Self {
        let text = fs::read_to_string("/proc/meminfo").expect("/proc/meminfo");
        let field = |name: &str| -> u64 {
            let value = text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value
                .and_then(|value| value.trim().trim_end_matches(" kB").parse().ok())
                .unwrap_or_else(|| panic!("no {name}"))
        };
        let others = ["MemFree", "AnonPages", "Cached", "Buffers", "SReclaimable"];
        Self {
            slab: field("SUnreclaim"),
            pages: others
                .iter()
                .fold(field("MemTotal"), |rest, name| rest - field(name)),
        }
    }
}
