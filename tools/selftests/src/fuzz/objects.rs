// SPDX-License-Identifier: GPL-2.0
//! The descriptors that calls are made on, and the memory that they are given.

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::ptr;

use altpipe_core::PRESETS;
use altpipe_uapi::{Control, DEVICE, Flags};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::draw::{self, below};
use crate::end::PAGE;
use crate::memory::{Cliff, NOWHERE};

/// How many descriptors are open at most; one more replaces any of them.
const MOST: usize = 48;

/// Open files of every kind that the module has, and some that it meets.
pub struct Objects {
    open: Vec<OwnedFd>,
    /// The files in sysfs.
    files: Vec<PathBuf>,
    /// The control device, kept apart: it must stay, whatever is closed.
    pub control: Control,
    cliff: Cliff,
    /// Two mapped pages that calls may write to.
    room: Box<[u8; 2 * PAGE]>,
}

impl Objects {
    /// Opens what there is before the first call.
    pub fn new(control: Control) -> Self {
        let mut objects = Self {
            open: Vec::new(),
            files: files(),
            control,
            cliff: Cliff::new(b'c'),
            room: Box::new([b'r'; 2 * PAGE]),
        };
        for preset in PRESETS {
            let (r, w) = objects
                .control
                .create(Flags::CLOEXEC | Flags::NONBLOCK, preset.name)
                .expect("a pipe");
            objects.open.extend([r, w]);
        }
        for _ in 0..4 {
            let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
            let (r, w) = pipe_with(flags).expect("a native pipe");
            objects.open.extend([r, w]);
        }
        objects
    }

    /// One of the descriptors, or a number that is none.
    pub fn any(&self, generator: &mut ChaCha8Rng) -> RawFd {
        match below(generator, 60) {
            0 => -1,
            1 => 9999,
            2..=5 => rustix::fd::AsFd::as_fd(&self.control).as_raw_fd(),
            _ if self.open.is_empty() => -1,
            _ => self.open[below(generator, self.open.len() as u32) as usize].as_raw_fd(),
        }
    }

    /// Keeps a descriptor that a call gave; one of the others goes for it.
    pub fn keep(&mut self, fd: OwnedFd, generator: &mut ChaCha8Rng) {
        if self.open.len() < MOST {
            self.open.push(fd);
        } else {
            let place = below(generator, MOST as u32) as usize;
            self.open[place] = fd;
        }
    }

    /// Closes one.
    pub fn close(&mut self, generator: &mut ChaCha8Rng) {
        // A few stay, or most calls would have nobody to meet.
        if self.open.len() > 8 {
            let place = below(generator, self.open.len() as u32) as usize;
            drop(self.open.swap_remove(place));
        }
    }

    /// Closes all but the control device.
    pub fn close_all(&mut self) {
        self.open.clear();
    }

    /// A file of the module's: a device or a file in sysfs.
    pub fn path(&self, generator: &mut ChaCha8Rng) -> PathBuf {
        match below(generator, 4) {
            0 => DEVICE.into(),
            1 => format!("/dev/altpipe{}", below(generator, 5)).into(),
            _ => self.files[below(generator, self.files.len() as u32) as usize].clone(),
        }
    }

    /// A file in sysfs alone.
    pub fn sysfs(&self, generator: &mut ChaCha8Rng) -> PathBuf {
        self.files[below(generator, self.files.len() as u32) as usize].clone()
    }

    /// An address: good, at an edge, nowhere, the kernel's, or any.
    pub fn address(&mut self, generator: &mut ChaCha8Rng) -> *mut u8 {
        match below(generator, 12) {
            0 => ptr::null_mut(),
            1 => NOWHERE,
            // The kernel's own: its text, its memory, its last byte; and the hole between.
            2 => ptr::without_provenance_mut(0xffff_ffff_8100_0000),
            3 => ptr::without_provenance_mut(0xffff_8880_0000_1000),
            4 => ptr::without_provenance_mut(usize::MAX),
            5 => ptr::without_provenance_mut(0x0000_8000_0000_0000),
            6 | 7 => self
                .cliff
                .before_edge(below(generator, 2 * PAGE as u32) as usize),
            8 => self.cliff.before_edge(below(generator, 32) as usize),
            _ => {
                let start = below(generator, PAGE as u32) as usize;
                self.room[start..].as_mut_ptr()
            }
        }
    }

    /// Bytes that an address of [`Self::address`] holds at most, if it is good.
    pub fn length(generator: &mut ChaCha8Rng) -> usize {
        match below(generator, 10) {
            0 => 0,
            1 => 1,
            2 => PAGE,
            3 => PAGE + 1,
            4 => 1 << 20,
            5 => i32::MAX as usize,
            6 => usize::MAX,
            _ => below(generator, 3 * PAGE as u32) as usize,
        }
    }
}

// Every file below the devices' directories.
fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let roots = ["/sys/class/misc/altpipe", "/sys/class/altpipe/altpipe0"];
    for root in roots {
        for part in ["", "knobs", "stats", "limits"] {
            let Ok(entries) = std::fs::read_dir(PathBuf::from(root).join(part)) else {
                continue;
            };
            files.extend(
                entries
                    .flatten()
                    .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
                    .map(|entry| entry.path()),
            );
        }
    }
    assert!(files.len() > 40, "the files in sysfs: {files:?}");
    files.sort();
    files
}

/// Opens a path with any access, without waiting and without becoming somebody's terminal.
pub fn open(path: &PathBuf, flags: i32) -> std::io::Result<OwnedFd> {
    let access = flags & libc::O_ACCMODE;
    OpenOptions::new()
        .read(access != libc::O_WRONLY)
        .write(access != libc::O_RDONLY)
        .custom_flags(flags & !libc::O_ACCMODE)
        .open(path)
        .map(OwnedFd::from)
}

/// A text as the grammar has it, or nearly so.
pub fn text(generator: &mut ChaCha8Rng) -> Vec<u8> {
    let mut text = match below(generator, 4) {
        0 => PRESETS[below(generator, PRESETS.len() as u32) as usize]
            .name
            .as_bytes()
            .to_vec(),
        1 => below(generator, u32::MAX).to_string().into_bytes(),
        _ => draw::config(generator).to_string().into_bytes(),
    };
    match below(generator, 8) {
        // Bytes of any value, also those that no text has.
        0 => {
            for _ in 0..=below(generator, 4) {
                if !text.is_empty() {
                    let at = below(generator, text.len() as u32) as usize;
                    text[at] = generator.next_u32() as u8;
                }
            }
        }
        1 => text.truncate(below(generator, text.len() as u32 + 1) as usize),
        2 => text = text.repeat(1 + below(generator, 60) as usize),
        3 => text.push(b'\n'),
        4 => text.extend_from_slice(b",,=\0"),
        _ => {}
    }
    text
}
