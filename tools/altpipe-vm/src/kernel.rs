// SPDX-License-Identifier: GPL-2.0
//! Kernels to boot, and the trees to build modules for them. One file each in
//! `kernel/` knows how a kind of kernel comes about.

pub mod debug;
mod release;
pub mod stock;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::checkout::Checkout;

/// Which kernel it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Debian's own.
    Stock,
    /// Ours, with the kernel's bug finders on.
    Debug,
}

/// A kernel that is ready: everything in it lies in one directory of the cache,
/// but for what it shares with the stock kernel of its version.
#[derive(Clone)]
pub struct Kernel {
    root: PathBuf,
    /// The directory of the stock kernel.
    stock: PathBuf,
    flavour: Flavour,
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
        self.stock.join("source")
    }

    /// A static busybox: the machine's user space.
    pub fn busybox(&self) -> PathBuf {
        self.stock.join("busybox")
    }

    /// The machine type of QEMU's that it boots on. The tables of `pc` have a loop
    /// in ACPI's language, which takes half a minute under all the bug finders.
    pub fn board(&self) -> &'static str {
        match self.flavour {
            Flavour::Stock => "pc",
            Flavour::Debug => "q35",
        }
    }

    /// What it is told when it boots. KASAN holds its tongue after the first report
    /// if it is not asked for more.
    pub fn parameters(&self) -> &'static str {
        match self.flavour {
            Flavour::Stock => "",
            Flavour::Debug => "kasan_multi_shot",
        }
    }

    /// What make needs to hear in every build for this kernel.
    pub fn make_arguments(&self) -> &'static [&'static str] {
        match self.flavour {
            Flavour::Stock => &[],
            Flavour::Debug => &["LLVM=-19"],
        }
    }

    /// What builds our module for this kernel.
    pub fn target(&self) -> &'static str {
        match self.flavour {
            Flavour::Stock => "modules",
            Flavour::Debug => "modules-debug",
        }
    }

    /// Our module for this kernel. Each has a place of its own, so that no build
    /// undoes the other.
    pub fn module(&self, checkout: &Checkout) -> PathBuf {
        match self.flavour {
            Flavour::Stock => checkout.path("rust/altpipe.ko"),
            Flavour::Debug => debug::module(checkout),
        }
    }

    /// What `uname -r` says on it.
    pub fn release(&self) -> Result<String> {
        let path = self.kdir().join("include/config/kernel.release");
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(text.trim_end().to_owned())
    }
}
