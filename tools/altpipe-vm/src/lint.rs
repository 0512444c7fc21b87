// SPDX-License-Identifier: GPL-2.0
//! `make check`: the kernel's own lints and the tools', all with the programs of
//! the tool chain, so that every machine says the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::checkout::Checkout;
use crate::kernel::Kernel;
use crate::step::quietly;
use crate::tally::Tally;

/// Modules with faults in them, for the debug kernel.
const CONTROLS: &str = "tools/altpipe-vm/controls";

const CLIPPY_OF_THE_MODULE: &str = "\
rsync -aR --delete --exclude-from=.gitignore Kbuild rust tools/check-kdir.sh \"$1\"
make -C \"$2\" M=\"$1\" CLIPPY=1 W=e modules
";

/// One lint: a command that must succeed.
pub struct Lint {
    pub name: &'static str,
    command: Command,
    log: PathBuf,
}

impl Lint {
    /// Runs it; its output is the failure.
    pub fn run(mut self) -> Tally {
        match quietly(&mut self.command, &self.log) {
            Ok(()) => Tally::pass(),
            Err(error) => Tally::fail(format!("{error:#}")),
        }
    }
}

/// All lints, cheapest first.
pub fn all(kernel: &Kernel, checkout: &Checkout) -> Result<Vec<Lint>> {
    let source = kernel.source();
    let top = checkout.path("");
    let out = checkout.path("tools/target/lint");
    fs::create_dir_all(out.join("module"))?;

    let files = |endings: &[&str], dirs: &[&str]| -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for dir in dirs {
            collect(&checkout.path(dir), endings, &mut found)?;
        }
        found.sort();
        Ok(found)
    };
    let header = checkout.path("rust/uapi/altpipe.h");
    let strict = [
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pedantic",
        "-fsyntax-only",
        "-x",
    ];

    let mut lints = Vec::new();
    let mut add = |name: &'static str, command: Command| {
        let log = out.join(format!("{}.log", name.replace(' ', "-")));
        lints.push(Lint { name, command, log });
    };

    let mut command = checkout.in_toolchain("rustfmt");
    command
        .args(["--check", "--config-path"])
        .arg(source.join(".rustfmt.toml"));
    add("rustfmt of the module", {
        command.args(files(&["rs"], &["rust", CONTROLS])?);
        command
    });

    // Not through `cargo fmt`: cargo would look into its home for such commands
    // first, where rustup puts its own.
    let tools = |program: &str, arguments: &[&str]| {
        let mut command = checkout.in_toolchain(program);
        command
            .args(arguments)
            .current_dir(checkout.path("tools"))
            .env("CARGO_TARGET_DIR", out.join("tools"));
        command
    };
    add(
        "rustfmt of the tools",
        tools("cargo-fmt", &["--all", "--check"]),
    );

    let mut command = checkout.in_toolchain("shellcheck");
    command.arg("--external-sources");
    command
        .args(files(&["sh"], &["tools", "samples"])?)
        .arg(checkout.path(".ci/run"));
    add("shellcheck", command);

    // It leaves a cache of names in its working directory.
    let mut command = checkout.in_toolchain("perl");
    command.current_dir(&out);
    command.arg(source.join("scripts/checkpatch.pl"));
    command.args([
        "--no-tree",
        "--strict",
        "--terse",
        "--show-types",
        "--max-line-length=100",
        "--file",
    ]);
    command.args(files(
        &["c", "h"],
        &["rust", "samples", "tools/altpipe-preload", CONTROLS],
    )?);
    add("checkpatch", command);

    for (name, compiler, language) in [
        ("the header alone as C", "gcc", "c"),
        ("the header alone as C++", "g++", "c++"),
    ] {
        let mut command = checkout.in_toolchain(compiler);
        command.args(strict).arg(language).arg(&header);
        add(name, command);
    }

    let mut command = checkout.in_toolchain("python3");
    command
        .arg(source.join("tools/docs/kernel-doc"))
        .args(["-none", "-Wall", "-Werror"])
        .arg(&header);
    add("kernel-doc", command);

    let mut command = checkout.in_toolchain("python3");
    command
        .arg(source.join("tools/docs/get_abi.py"))
        .arg("-D")
        .arg(checkout.path("Documentation/ABI"));
    command.arg("validate");
    add("ABI files", command);

    // In a copy, so that the module that is there stays.
    let mut command = checkout.in_toolchain("sh");
    command
        .args(["-euc", CLIPPY_OF_THE_MODULE, "sh"])
        .arg(out.join("module"))
        .arg(kernel.kdir());
    add("clippy of the module", command);

    add(
        "clippy of the tools",
        tools(
            "cargo-clippy",
            &[
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ],
        ),
    );

    for lint in &mut lints {
        if lint.command.get_current_dir().is_none() {
            lint.command.current_dir(&top);
        }
    }
    Ok(lints)
}

/// Files with one of these endings, but nothing that a build left.
fn collect(dir: &Path, endings: &[&str], found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if path.is_dir() {
            if name != "target" {
                collect(&path, endings, found)?;
            }
        } else if endings
            .iter()
            .any(|ending| path.extension().is_some_and(|found| found == *ending))
            && name != "generated.rs"
            && !name.ends_with(".mod.c")
        {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_builds_leave_is_not_linted() {
        let dir = tempfile::tempdir().unwrap();
        for path in [
            "a.rs",
            "deep/b.rs",
            "target/c.rs",
            "deep/generated.rs",
            "d.c",
            "d.mod.c",
        ] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let mut found = Vec::new();
        collect(dir.path(), &["rs", "c"], &mut found).unwrap();
        found.sort();
        let names: Vec<_> = found
            .iter()
            .map(|path| path.strip_prefix(dir.path()).unwrap().to_str().unwrap())
            .collect();
        assert_eq!(names, ["a.rs", "d.c", "deep/b.rs"]);
    }
}
