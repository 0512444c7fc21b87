// SPDX-License-Identifier: GPL-2.0
//! What is inside the machine: a static busybox, our own programs, the module.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cpio::Writer;

const INIT: &[u8] = include_bytes!("../guest/init.sh");
const DIRECTORIES: &[&str] = &[
    "bin",
    "dev",
    "etc",
    "in",
    "out",
    "proc",
    "root",
    "sys",
    "usr",
    "usr/local",
    "usr/local/bin",
    "vm",
];

/// The user space of one run.
#[derive(Clone, Default)]
pub struct Guest {
    /// Static busybox, from the archive.
    pub busybox: PathBuf,
    /// Static programs for the PATH.
    pub programs: Vec<PathBuf>,
    /// The module to load before anything else.
    pub module: Option<PathBuf>,
    /// Files to put into /in, under their own names.
    pub files: Vec<PathBuf>,
    /// Whether the command is to run in what the machine's disk holds.
    pub in_disk: bool,
    /// What to run; nothing means a shell on the console.
    pub command: Option<Vec<String>>,
}

impl Guest {
    /// Packs it as the kernel's first and only file system. Not compressed: a
    /// copy is faster than unpacking on an emulated processor.
    pub fn pack(&self) -> Result<Vec<u8>> {
        let mut archive = Writer::default();
        // Others than root must be able to walk from here.
        archive.directory(".", 0o755);
        for directory in DIRECTORIES {
            archive.directory(directory, 0o755);
        }
        archive.directory("tmp", 0o1777);
        archive.file("init", 0o755, INIT);
        archive.file(
            "etc/passwd",
            0o644,
            b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n",
        );
        archive.file("etc/group", 0o644, b"root:x:0:\nnogroup:x:65534:\n");
        archive.file("etc/hosts", 0o644, b"127.0.0.1 localhost altpipe\n");

        archive.file("bin/busybox", 0o755, &read(&self.busybox)?);
        for applet in applets(&self.busybox)? {
            archive.link(&format!("bin/{applet}"), "busybox");
        }
        for program in &self.programs {
            archive.file(
                &format!("usr/local/bin/{}", name(program)?),
                0o755,
                &read(program)?,
            );
        }
        for file in &self.files {
            archive.file(&format!("in/{}", name(file)?), 0o755, &read(file)?);
        }
        if let Some(module) = &self.module {
            archive.file("vm/altpipe.ko", 0o644, &read(module)?);
        }
        if self.in_disk {
            archive.directory("disk", 0o755);
        }
        if let Some(command) = &self.command {
            let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
            archive.file(
                "vm/command",
                0o644,
                format!("exec {}\n", words.join(" ")).as_bytes(),
            );
        }
        Ok(archive.finish())
    }
}

/// The commands that this busybox knows.
fn applets(busybox: &Path) -> Result<Vec<String>> {
    let output = Command::new(busybox)
        .arg("--list")
        .output()
        .context("cannot run the machine's busybox")?;
    ensure!(
        output.status.success(),
        "the machine's busybox does not list its commands"
    );
    let list = String::from_utf8(output.stdout)?;
    Ok(list
        .lines()
        .filter(|applet| *applet != "busybox")
        .map(str::to_owned)
        .collect())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn name(path: &Path) -> Result<&str> {
    path.file_name()
        .and_then(|name| name.to_str())
        .with_context(|| format!("{} is no file name", path.display()))
}

/// A word that a shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_the_shell_unchanged() {
        for word in [
            "",
            "plain",
            "a b",
            "it's",
            "$HOME `x` \"y\" \\",
            "two\nlines",
            "''",
        ] {
            let output = Command::new("sh")
                .args(["-c", &format!("printf %s {}", quoted(word))])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
        }
    }
}
