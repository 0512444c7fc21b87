// SPDX-License-Identifier: GPL-2.0
//! The cache outside the checkout: one per user, shared by all clones.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, Flock, FlockArg, fcntl};

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

    /// Waits for the lock of that name. It is released when dropped; or, should we
    /// be killed, when the last process that we started meanwhile has ended: they
    /// inherit it, so that nobody begins anew beside an orphan that still writes.
    pub fn lock(&self, name: &str) -> Result<Flock<File>> {
        let path = self.path(format!("{name}.lock"));
        let file =
            File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
        fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty()))?;
        let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((file, Errno::EWOULDBLOCK)) => file,
            Err((_, error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        };
        eprintln!("  ..     waiting for what another altpipe-vm has begun");
        Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, error)| error)
            .with_context(|| format!("cannot lock {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_we_start_inherits_the_lock_and_dropping_it_frees_it() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache {
            root: dir.path().to_owned(),
        };
        let lock = cache.lock("x").unwrap();
        let mut orphan = Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let inherited = fs::read_dir(format!("/proc/{}/fd", orphan.id()))
            .unwrap()
            .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
            .any(|target| target == cache.path("x.lock"));
        assert!(inherited);
        drop(lock);
        let file = File::create(cache.path("x.lock")).unwrap();
        assert!(Flock::lock(file, FlockArg::LockExclusiveNonblock).is_ok());
        orphan.kill().unwrap();
        orphan.wait().unwrap();
    }
}
