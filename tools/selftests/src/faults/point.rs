// SPDX-License-Identifier: GPL-2.0
//! One call of one row, with one allocation failing.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, Result};

use super::injector::Injector;
use crate::fifo::Fifos;
use crate::subject::Subject;

/// What a row's scenario is given: on whom it acts, and the fault.
pub struct Point<'a> {
    /// Who makes the pipes.
    pub maker: &'a Maker,
    injector: &'a Injector,
    nth: u32,
    /// How many allocations the call fell short of the one that was to fail.
    pub left: Option<u32>,
    /// The error that the call gave.
    pub error: Option<Errno>,
}

/// Who makes the pipes that a row is about.
pub enum Maker {
    /// Pipes without a name.
    Pipes(Subject),
    /// Pipes with one.
    Fifos(Fifos),
    /// The module; it is loaded, and nobody has it open.
    Loaded,
    /// The module's open file; it is not loaded.
    File(File),
}

impl<'a> Point<'a> {
    /// The `nth` allocation is to fail.
    pub fn new(maker: &'a Maker, injector: &'a Injector, nth: u32) -> Self {
        Self {
            maker,
            injector,
            nth,
            left: None,
            error: None,
        }
    }

    /// Makes the call under test: once in a scenario, as one system call on memory that is there.
    pub fn call<T>(&mut self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        assert!(self.left.is_none(), "a scenario tests one call");
        let (result, left) = self.injector.inject(self.nth, call);
        self.left = Some(left);
        self.error = result.as_ref().err().copied();
        result
    }

    /// Whether the fault came.
    pub fn has_failed(&self) -> bool {
        self.left == Some(0)
    }

    /// The subject, of a row about pipes.
    pub fn subject(&self) -> &Subject {
        match self.maker {
            Maker::Pipes(subject) => subject,
            _ => panic!("a row about pipes"),
        }
    }
}

/// The path of a descriptor, to open it once more.
pub fn again(fd: &OwnedFd) -> CString {
    CString::new(format!("/proc/self/fd/{}", fd.as_raw_fd())).expect("no NUL in a path")
}

/// Opens a path whose text is there already.
pub fn open(path: &CString, flags: OFlags) -> Result<OwnedFd> {
    openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty())
}
