// SPDX-License-Identifier: GPL-2.0
//! A small kernel with its own bug finders on, built here from the source of the
//! stock one. clang builds it, because Rust and KASAN go together only there.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, ensure};

use super::{Flavour, Kernel};
use crate::cache::Cache;
use crate::checkout::Checkout;
use crate::step::{quietly, step};

/// What is wanted beyond `tinyconfig`.
const FRAGMENT: &str = include_str!("../../guest/debug.config");

/// Part of a built kernel's name, as the fragment is: raise it whenever the steps
/// below change what they leave behind.
const RECIPE: &str = "1";

/// Files of the build that no module needs: nine tenths of it.
const REFUSE: &[&str] = &["o", "a", "ko", "mod", "order", "dwo", "su", "tmp"];

/// Builds it, once for each stock kernel and fragment.
pub fn set_up(cache: &Cache, checkout: &Checkout, stock: &Kernel) -> Result<Kernel> {
    let name = format!("debug-{:016x}", fingerprint(FRAGMENT, RECIPE));
    let kernel = Kernel {
        root: stock.root.join(&name),
        stock: stock.root.clone(),
        flavour: Flavour::Debug,
    };
    if is_complete(&kernel.root) {
        return Ok(kernel);
    }
    let _lock = cache.lock("debug-kernel")?;
    // Somebody else may have done it while we waited.
    if !is_complete(&kernel.root) {
        // The tree has its own absolute path inside, so it is made in its final
        // place and counts only once the stamp, written last, is there. What an
        // interrupted build left is no base for the next: a file may be there in
        // part. Finished kernels of other fragments stay, for other checkouts.
        if kernel.root.exists() {
            fs::remove_dir_all(&kernel.root)
                .with_context(|| format!("cannot clear {}", kernel.root.display()))?;
        }
        build(checkout, &kernel)?;
        fs::write(stamp(&kernel.root), RECIPE)?;
    }
    Ok(kernel)
}

// The standard library promises no algorithm for ever; another one costs a build.
fn fingerprint(fragment: &str, recipe: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (fragment, recipe).hash(&mut hasher);
    hasher.finish()
}

fn stamp(root: &Path) -> PathBuf {
    root.join(".complete")
}

fn is_complete(root: &Path) -> bool {
    stamp(root).exists()
}

fn build(checkout: &Checkout, kernel: &Kernel) -> Result<()> {
    let tree = kernel.kdir();
    fs::create_dir_all(&tree)?;
    let output = format!("O={}", tree.display());
    let jobs = format!("-j{}", thread::available_parallelism()?);
    let make = |log: &str, arguments: &[&str]| {
        let mut command = checkout.in_toolchain("make");
        command.arg("-C").arg(kernel.source()).arg(&output);
        command.args(kernel.make_arguments()).args(arguments);
        quietly(command.current_dir(&kernel.root), &kernel.root.join(log))
    };

    step("config of the debug kernel", || {
        make("config.log", &["tinyconfig"])?;
        let config = tree.join(".config");
        let tiny = fs::read_to_string(&config)?;
        // A later line overrides an earlier one.
        fs::write(&config, tiny + FRAGMENT)?;
        make("config.log", &["olddefconfig"])?;
        let made = fs::read_to_string(&config)?;
        let lost = lost(FRAGMENT, &made);
        ensure!(
            lost.is_empty(),
            "this source and tool chain do not give the debug kernel what guest/debug.config asks for:\n  {}",
            lost.join("\n  ")
        );
        Ok(())
    })?;
    if !io::stderr().is_terminal() {
        eprintln!("  ..     debug kernel, about 20 minutes of processor time");
    }
    step("debug kernel", || {
        make("build.log", &[&jobs, "bzImage", "modules"])
    })?;
    fs::rename(
        tree.join("arch/x86/boot/bzImage"),
        kernel.root.join("vmlinuz"),
    )
    .context("the build left no image")?;
    step("what modules need of it", || prune(&tree).map(drop))?;
    Ok(())
}

/// Copies what the module is built from. Kbuild refuses to build elsewhere (MO=)
/// what has been built in place, as it has for the stock kernel.
const COPY: &str = "\
rsync -aR --delete --exclude-from=.gitignore Kbuild rust tools/check-kdir.sh \"$1\"
";

/// Where modules for the debug kernel are built.
const PLACE: &str = "tools/target/debug-kernel";

/// The module for the debug kernel.
pub fn module(checkout: &Checkout) -> PathBuf {
    checkout.path(PLACE).join("module/rust/altpipe.ko")
}

/// The folder of the modules that have faults in them.
pub fn controls(checkout: &Checkout) -> PathBuf {
    checkout.path(PLACE).join("controls")
}

/// Builds our module for the debug kernel, and the modules with faults in them.
pub fn build_modules(checkout: &Checkout, kernel: &Kernel) -> Result<()> {
    let place = checkout.path(PLACE);
    let copy = place.join("module");
    fs::create_dir_all(&copy)?;
    let mut command = checkout.in_toolchain("sh");
    command.args(["-euc", COPY, "sh"]).arg(&copy);
    quietly(
        command.current_dir(checkout.path("")),
        &place.join("copy.log"),
    )?;

    let make = |log: &str, from: &Path, to: Option<&Path>| {
        let mut command = checkout.in_toolchain("make");
        command.arg("-C").arg(kernel.kdir());
        command.args(kernel.make_arguments());
        command.arg(format!("M={}", from.display()));
        command.args(to.map(|to| format!("MO={}", to.display())));
        command.arg("modules").current_dir(checkout.path(""));
        quietly(&mut command, &place.join(log))
    };
    make("module.log", &copy, None)?;
    let source = checkout.path("tools/altpipe-vm/controls");
    make("controls.log", &source, Some(&controls(checkout)))
}

/// The lines of the fragment that a config does not have.
fn lost(fragment: &str, config: &str) -> Vec<String> {
    let has = |wanted: &str| config.lines().any(|line| line == wanted);
    let mut lost = Vec::new();
    for line in fragment.lines().map(str::trim_end) {
        let off = line
            .strip_prefix("# ")
            .and_then(|rest| rest.strip_suffix(" is not set"))
            .filter(|name| name.starts_with("CONFIG_"));
        match off {
            // A symbol whose menu is off is not mentioned at all.
            Some(name) if !config.contains(&format!("\n{name}=")) => {}
            Some(_) => lost.push(line.to_owned()),
            None if line.starts_with("CONFIG_") && !has(line) => lost.push(line.to_owned()),
            None => {}
        }
    }
    lost
}

/// Removes from a built tree what serves neither the building of modules nor the
/// reading of a trace; returns whether anything is left.
fn prune(dir: &Path) -> Result<bool> {
    let mut left = false;
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.symlink_metadata()?.is_dir() {
            if prune(&path)? {
                left = true;
            } else {
                fs::remove_dir(&path)?;
            }
            continue;
        }
        let ending = path
            .extension()
            .map(|ending| ending.to_string_lossy().into_owned());
        if ending.is_some_and(|ending| REFUSE.contains(&ending.as_str()))
            || name.starts_with("vmlinux")
            || name.starts_with(".tmp_")
            || (name.starts_with('.') && name.ends_with(".cmd"))
        {
            fs::remove_file(&path)?;
        } else {
            left = true;
        }
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_olddefconfig_drops_is_named() {
        let fragment =
            "# A comment.\nCONFIG_A=y\nCONFIG_B=y\n# CONFIG_C is not set\n# CONFIG_D is not set\n";
        let config = "#\n# made\n#\nCONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=y\n";
        assert_eq!(
            lost(fragment, config),
            ["CONFIG_B=y", "# CONFIG_C is not set"]
        );
        assert!(
            lost(
                fragment,
                "\nCONFIG_A=y\nCONFIG_B=y\n# CONFIG_C is not set\n"
            )
            .is_empty()
        );
    }

    #[test]
    fn another_fragment_is_another_kernel() {
        let one = fingerprint("CONFIG_A=y\n", "1");
        assert_eq!(one, fingerprint("CONFIG_A=y\n", "1"));
        assert_ne!(one, fingerprint("CONFIG_A=y\nCONFIG_B=y\n", "1"));
        assert_ne!(one, fingerprint("CONFIG_A=y\n", "2"));
    }

    #[test]
    fn objects_go_and_headers_stay() {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            "kernel/a.o",
            "kernel/.a.o.cmd",
            "include/generated/autoconf.h",
            "rust/libkernel.rmeta",
            "rust/kernel.o",
            "scripts/module.lds",
            "vmlinux",
            "Module.symvers",
        ];
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        assert!(prune(dir.path()).unwrap());
        let stays: Vec<_> = files
            .into_iter()
            .filter(|file| dir.path().join(file).exists())
            .collect();
        assert_eq!(
            stays,
            [
                "include/generated/autoconf.h",
                "rust/libkernel.rmeta",
                "scripts/module.lds",
                "Module.symvers"
            ]
        );
        assert!(!dir.path().join("kernel").exists());
    }
}
