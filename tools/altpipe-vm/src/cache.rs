// SPDX-License-Identifier: GPL-2.0
//! The cache outside the checkout: one per user, shared by all clones.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

/// `${XDG_CACHE_HOME:-$HOME/.cache}/altpipe`, as tools/toolchain.sh has it.
#[derive(Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Finds the cache, makes it where it is not there.
    pub fn open() -> Result<Self> {
        let set = |name| {
            env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let base = set("XDG_CACHE_HOME")
            .or_else(|| set("HOME").map(|home| home.join(".cache")))
            .ok_or_else(|| {
                anyhow!("neither XDG_CACHE_HOME nor HOME is set: where may the cache go?")
            })?;
        let root = base.join("altpipe");
        fs::create_dir_all(&root).with_context(|| format!("cannot make {}", root.display()))?;
        Ok(Self { root })
    }

    /// A path inside the cache.
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// Waits for the lock of that name. It is released when dropped, or by the
    /// kernel when the process ends in whatever way.
    pub fn lock(&self, name: &str) -> Result<Flock<File>> {
        let path = self.path(format!("{name}.lock"));
        let file =
            File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((file, Errno::EWOULDBLOCK)) => file,
            Err((_, error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        };
        eprintln!("  waiting for another altpipe-vm ({})", path.display());
        Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, error)| error)
            .with_context(|| format!("cannot lock {}", path.display()))
    }
}
