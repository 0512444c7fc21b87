// SPDX-License-Identifier: GPL-2.0
//! The checkout we were built from: where the module and the scripts are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// A checkout of altpipe.
pub struct Checkout {
    top: PathBuf,
}

impl Checkout {
    /// Looks upward from our own binary, then from the working directory.
    pub fn find() -> Result<Self> {
        let places = [env::current_exe().ok(), env::current_dir().ok()];
        places
            .iter()
            .flatten()
            .flat_map(|place| place.ancestors())
            .find(|dir| dir.join("tools/in-toolchain.sh").exists())
            .map(|top| Self {
                top: top.to_owned(),
            })
            .context("no altpipe checkout around this program or the working directory")
    }

    /// A path inside the checkout.
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.top.join(relative)
    }

    /// One of our own programs, as cargo leaves it.
    pub fn program(&self, name: &str) -> PathBuf {
        self.path("tools/target/x86_64-unknown-linux-gnu/release")
            .join(name)
    }

    /// A script of ours.
    pub fn script(&self, relative: &str) -> Command {
        let mut command = Command::new(self.path(relative));
        Self::without_make(&mut command);
        command
    }

    /// A command that runs with the tool chain of Debian 13.
    pub fn in_toolchain(&self, program: &str) -> Command {
        let mut command = self.script("tools/in-toolchain.sh");
        command.arg(program);
        command
    }

    /// Whoever called us may be make, whose flags and jobs are not for the builds
    /// that we start.
    pub fn without_make(command: &mut Command) {
        for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"] {
            command.env_remove(name);
        }
    }
}
