// SPDX-License-Identifier: GPL-2.0
//! Debian's own cloud kernel, unmodified. Its headers package lacks the Rust
//! metadata; we make it again from the source and config of the same version.
//! The symbol hashes agree because the compiler is the one Debian used.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, ensure};

use super::release::{self, Release};
use super::{Flavour, Kernel};
use crate::archive::Archive;
use crate::cache::Cache;
use crate::checkout::Checkout;
use crate::step::{quietly, step};

/// The series that the module is written for.
const SERIES: &str = "7.3";

/// Part of what a prepared tree is stamped with: raise it whenever the steps
/// below change what they leave behind, and older trees are made anew.
const RECIPE: &str = "1";

/// The kernel that was set up last; none before the first set-up.
pub fn ready(cache: &Cache) -> Option<Kernel> {
    let root = fs::canonicalize(current(cache)).ok()?;
    is_complete(&root).then(|| kernel(root))
}

/// Sets the kernel up. Once that is done the archive is asked for a newer one
/// only with `refresh`.
pub fn set_up(cache: &Cache, checkout: &Checkout, refresh: bool) -> Result<Kernel> {
    if let (Some(kernel), false) = (ready(cache), refresh) {
        return Ok(kernel);
    }
    let _lock = cache.lock("kernels")?;
    // Somebody else may have done it while we waited.
    if let (Some(kernel), false) = (ready(cache), refresh) {
        return Ok(kernel);
    }
    let archive = Archive::open(cache)?;
    step("package lists", || archive.update())?;
    let packages = archive.packages("linux-", release::is_part)?;
    let release = release::choose(SERIES, &packages)?;
    // The prepared tree has its own absolute path inside, so it is made in its
    // final place and counts only once the stamp, written last, is there.
    let root = cache.path("kernels").join(&release.version);
    if !is_complete(&root) {
        eprintln!("  kernel {}", release.name);
        if root.exists() {
            fs::remove_dir_all(&root)
                .with_context(|| format!("cannot clear {}", root.display()))?;
        }
        prepare(&archive, checkout, &release, &root)?;
        fs::write(stamp(&root), RECIPE)?;
    }
    point_to(&root, &current(cache))?;
    Ok(kernel(root))
}

fn kernel(root: PathBuf) -> Kernel {
    Kernel {
        stock: root.clone(),
        root,
        flavour: Flavour::Stock,
    }
}

fn current(cache: &Cache) -> PathBuf {
    cache.path("kernels/current")
}

fn stamp(root: &Path) -> PathBuf {
    root.join(".complete")
}

fn is_complete(root: &Path) -> bool {
    fs::read_to_string(stamp(root)).is_ok_and(|recipe| recipe == RECIPE)
}

/// Replaces a link in one step, so that no reader finds it missing.
fn point_to(target: &Path, link: &Path) -> Result<()> {
    let new = link.with_extension("new");
    if new.symlink_metadata().is_ok() {
        fs::remove_file(&new)?;
    }
    symlink(target, &new)?;
    fs::rename(&new, link).with_context(|| format!("cannot make {}", link.display()))
}

fn prepare(archive: &Archive, checkout: &Checkout, release: &Release, root: &Path) -> Result<()> {
    let debs = root.join("packages");
    step("kernel and busybox packages", || {
        let busybox = archive.newest("busybox-static")?;
        let mut packages: Vec<_> = release.packages.iter().collect();
        packages.push(&busybox);
        archive.unpack(&packages, &debs)
    })?;
    let image = debs
        .join("usr/lib/modules")
        .join(&release.name)
        .join("vmlinuz");
    take(&image, &root.join("vmlinuz"))?;
    take(&debs.join("usr/bin/busybox"), &root.join("busybox"))?;

    let run = |log: &str, program: &str, arguments: &[&str]| {
        let mut command = checkout.in_toolchain(program);
        quietly(command.args(arguments).current_dir(root), &root.join(log))
    };
    let series = &format!("linux-source-{SERIES}");
    step("kernel source", || {
        fs::create_dir(root.join("source"))?;
        let tarball = format!("packages/usr/src/{series}.tar.xz");
        run(
            "unpack.log",
            "tar",
            &["-C", "source", "--strip-components=1", "-xf", &tarball],
        )
    })?;
    step("kernel config", || {
        fs::create_dir(root.join("build"))?;
        let config =
            format!("packages/usr/src/linux-config-{SERIES}/config.amd64_none_cloud-amd64.xz");
        let unpack = format!("xz -dc {config} >build/.config");
        run("config.log", "sh", &["-c", &unpack])?;
        let shipped = rust_settings(root)?;
        run(
            "config.log",
            "make",
            &["-C", "source", "O=../build", "olddefconfig"],
        )?;
        let ours = rust_settings(root)?;
        ensure!(
            shipped == ours,
            "Debian built the kernel with other Rust settings than this tool chain gives, so our symbols would not \
             match:\n{}\nagainst\n{}",
            shipped.join("\n"),
            ours.join("\n")
        );
        Ok(())
    })?;
    step("Rust metadata of the kernel", || {
        let local = release
            .local_version()
            .context("the kernel's name does not begin with its version")?;
        let jobs = format!("-j{}", thread::available_parallelism()?);
        let local = format!("LOCALVERSION={local}");
        run(
            "prepare.log",
            "make",
            &[
                "-C",
                "source",
                "O=../build",
                &jobs,
                &local,
                "modules_prepare",
            ],
        )
    })?;
    let headers = debs
        .join("usr/src")
        .join(format!("linux-headers-{}", release.name));
    take(
        &headers.join("Module.symvers"),
        &root.join("build/Module.symvers"),
    )?;
    fs::remove_dir_all(&debs)?;

    let made = kernel(root.to_owned()).release()?;
    ensure!(
        made == release.name,
        "the prepared tree is for {made}, the kernel is {}",
        release.name
    );
    Ok(())
}

fn take(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).with_context(|| format!("the packages lack {}", from.display()))
}

/// The lines of the config on which the symbol hashes depend.
fn rust_settings(root: &Path) -> Result<Vec<String>> {
    let config = fs::read_to_string(root.join("build/.config"))?;
    let matters =
        |line: &&str| line.starts_with("CONFIG_RUST=") || line.starts_with("CONFIG_RUSTC_VERSION");
    Ok(config.lines().filter(matters).map(str::to_owned).collect())
}
