// SPDX-License-Identifier: GPL-2.0
//! Kernels to boot, and the trees to build modules for them. One file each in
//! `kernel/` knows how a kind of kernel comes about.

mod release;
pub mod stock;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// A kernel that is ready: everything in it lies in one directory of the cache.
#[derive(Clone)]
pub struct Kernel {
    root: PathBuf,
}

impl Kernel {
    /// The compressed image that QEMU loads.
    pub fn image(&self) -> PathBuf {
        self.root.join("vmlinuz")
    }

    /// The prepared tree that modules are built against.
    pub fn kdir(&self) -> PathBuf {
        self.root.join("build")
    }

    /// The kernel's source.
    pub fn source(&self) -> PathBuf {
        self.root.join("source")
    }

    /// A static busybox: the machine's user space.
    pub fn busybox(&self) -> PathBuf {
        self.root.join("busybox")
    }

    /// What `uname -r` says on it.
    pub fn release(&self) -> Result<String> {
        let path = self.kdir().join("include/config/kernel.release");
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(text.trim_end().to_owned())
    }
}
