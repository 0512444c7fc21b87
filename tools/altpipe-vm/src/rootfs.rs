// SPDX-License-Identifier: GPL-2.0
//! A Debian 13 with the programs that we run unmodified: a disk image in the cache, made when it is first asked for.
//!
//! Not a part of the kernel's first file system, which would take its memory twice and be unpacked in each boot: the
//! stock kernel has NVMe and ext4 built in. Machines write to a copy of their own that is gone with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cache::Cache;
use crate::step::{quietly, step};

/// Raise it whenever the steps below change what they leave behind, and older images are made anew.
const RECIPE: &str = "1";

/// What is not essential to Debian and runs in it.
const PACKAGES: &[&str] = &[
    "gcc",
    "git",
    "libc6-dev",
    "libpython3.13-testsuite",
    "linux-perf",
    "make",
    "procps",
    "pv",
    "python3",
    "rt-tests",
    "stress-ng",
];

/// What comes with them and takes more room than all of them, unused.
const EXCLUDED: &[&str] = &[
    "/usr/bin/x86_64-linux-gnu-lto-dump-*",
    "/usr/lib/x86_64-linux-gnu/libLLVM*",
    "/usr/lib/x86_64-linux-gnu/libgallium*",
    "/usr/lib/x86_64-linux-gnu/libz3.*",
    "/usr/libexec/gcc/x86_64-linux-gnu/*/lto1",
    "/usr/share/doc/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
    "/usr/share/man/*",
];

/// For what machines write.
const ROOM_MIB: u64 = 512;

/// The image; made now if it is not there.
pub fn set_up(cache: &Cache) -> Result<PathBuf> {
    let image = cache.path(format!("rootfs-{:016x}.ext4", key()));
    if image.exists() {
        return Ok(image);
    }
    let _lock = cache.lock("rootfs")?;
    // Somebody else may have done it while we waited.
    if !image.exists() {
        let work = cache.path("rootfs.new");
        clear(&work)?;
        make(cache, &work, &image)?;
        clear(&work)?;
    }
    Ok(image)
}

fn make(cache: &Cache, work: &Path, image: &Path) -> Result<()> {
    let tree = work.join("tree");
    fs::create_dir_all(work).with_context(|| format!("cannot make {}", work.display()))?;
    step("Debian 13 with the programs to run", || {
        let sources = cache.path("sources.list");
        let text = fs::read_to_string(&sources)
            .with_context(|| format!("cannot read {}", sources.display()))?;
        // The first line is the release itself; what follows is for kernels.
        let list = work.join("sources.list");
        fs::write(&list, text.lines().next().unwrap_or_default())?;
        let mut command = Command::new("mmdebstrap");
        command
            .arg("--variant=minbase")
            .arg(format!("--include={}", PACKAGES.join(",")));
        for path in EXCLUDED {
            command.arg(format!("--dpkgopt=path-exclude={path}"));
        }
        command.arg("trixie").arg(&tree).arg(&list);
        quietly(&mut command, &cache.path("rootfs.log"))
    })?;
    step("its disk image", || {
        let size = usage_mib(&tree)? * 5 / 4 + ROOM_MIB;
        let new = work.join("image");
        let mut command = Command::new("/sbin/mke2fs");
        // Nobody ever looks at it after a crash.
        command.args(["-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0"]);
        command
            .arg("-d")
            .arg(&tree)
            .arg(&new)
            .arg(format!("{size}M"));
        quietly(&mut command, &cache.path("rootfs.log"))?;
        fs::rename(&new, image).with_context(|| format!("cannot make {}", image.display()))
    })
}

fn usage_mib(tree: &Path) -> Result<u64> {
    let output = Command::new("du")
        .args(["-s", "-x", "-m", "--"])
        .arg(tree)
        .output()
        .context("cannot run du")?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace()
        .next()
        .and_then(|size| size.parse().ok())
        .context("du says no size")
}

fn clear(dir: &Path) -> Result<()> {
    // Should one that was killed have left something mounted, that must not be cleared.
    let mut command = Command::new("rm");
    command.args(["-rf", "--one-file-system", "--"]).arg(dir);
    let status = command.status().context("cannot run rm")?;
    ensure!(status.success(), "cannot clear {}", dir.display());
    Ok(())
}

/// Names an image by what it is made of (FNV-1a), so that checkouts that want different ones get on.
fn key() -> u64 {
    [RECIPE]
        .iter()
        .chain(PACKAGES)
        .chain(EXCLUDED)
        .flat_map(|word| word.bytes().chain([b'\n']))
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
}
