// SPDX-License-Identifier: GPL-2.0
//! The "newc" cpio format: what the kernel unpacks as its first file system,
//! and what busybox packs the results with.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path};

use anyhow::{Context, Result, bail, ensure};

const MAGIC: &str = "070701";
const FIELDS: usize = 13;
const HEADER: usize = MAGIC.len() + FIELDS * 8;
const TRAILER: &str = "TRAILER!!!";

const TYPE: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// An archive being written, in memory.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
    entries: u32,
}

impl Writer {
    /// A directory with these permissions. Parents come first.
    pub fn directory(&mut self, name: &str, mode: u32) {
        self.entry(name, DIRECTORY | mode, b"");
    }

    /// A regular file.
    pub fn file(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entry(name, REGULAR | mode, content);
    }

    /// A symbolic link.
    pub fn link(&mut self, name: &str, target: &str) {
        self.entry(name, LINK | 0o777, target.as_bytes());
    }

    /// The finished archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry(TRAILER, 0, b"");
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("files of a test machine are below 4 GiB");
        let name_size = name.len() as u32 + 1;
        // inode, mode, uid, gid, links, mtime, size, 2 x device, 2 x rdev, name size, check
        let fields = [
            self.entries,
            mode,
            0,
            0,
            1,
            0,
            size,
            0,
            0,
            0,
            0,
            name_size,
            0,
        ];
        self.bytes.extend_from_slice(MAGIC.as_bytes());
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// Unpacks an archive into a directory. An archive that stops short is an
/// error, as is a name that leads out of the directory.
pub fn unpack(archive: &[u8], dir: &Path) -> Result<()> {
    let mut rest = archive;
    loop {
        let (name, mode, content, after) = next(rest)?;
        if name == TRAILER {
            return Ok(());
        }
        let stays = Path::new(name)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        ensure!(stays, "the machine sent a file named {name}");
        let path = dir.join(name);
        match mode & TYPE {
            DIRECTORY => fs::create_dir_all(&path),
            REGULAR => fs::write(&path, content),
            LINK => symlink(std::str::from_utf8(content)?, &path),
            // Sockets and the like are no results.
            _ => Ok(()),
        }
        .with_context(|| format!("cannot make {}", path.display()))?;
        rest = after;
    }
}

/// The first entry's name, mode and content, and what follows it.
fn next(archive: &[u8]) -> Result<(&str, u32, &[u8], &[u8])> {
    let short = || {
        format!(
            "the machine's results stop short ({} bytes left)",
            archive.len()
        )
    };
    let header = archive.get(..HEADER).with_context(short)?;
    if !header.starts_with(MAGIC.as_bytes()) {
        bail!("the machine's results are no cpio archive");
    }
    let field = |index: usize| -> Result<usize> {
        let start = MAGIC.len() + index * 8;
        Ok(usize::from_str_radix(
            std::str::from_utf8(&header[start..start + 8])?,
            16,
        )?)
    };
    let (mode, size, name_size) = (field(1)?, field(6)?, field(11)?);
    let name_end = HEADER + name_size;
    let start = name_end.next_multiple_of(4);
    let name = archive.get(HEADER..name_end).with_context(short)?;
    let content = archive.get(start..start + size).with_context(short)?;
    let name = std::str::from_utf8(name.strip_suffix(b"\0").with_context(short)?)?;
    let after = archive
        .get((start + size).next_multiple_of(4)..)
        .unwrap_or_default();
    Ok((name, mode as u32, content, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut writer = Writer::default();
        writer.directory(".", 0o755);
        writer.directory("deep", 0o755);
        writer.file("deep/odd", 0o644, b"12345");
        writer.file("empty", 0o644, b"");
        writer.link("link", "deep/odd");
        writer.finish()
    }

    #[test]
    fn what_is_packed_comes_out_again() {
        let dir = tempfile::tempdir().unwrap();
        unpack(&sample(), dir.path()).unwrap();
        assert_eq!(fs::read(dir.path().join("deep/odd")).unwrap(), b"12345");
        assert_eq!(fs::read(dir.path().join("link")).unwrap(), b"12345");
        assert_eq!(fs::read(dir.path().join("empty")).unwrap(), b"");
    }

    #[test]
    fn every_shortened_archive_is_an_error() {
        let archive = sample();
        let trailer = archive.len() - (HEADER + TRAILER.len() + 1).next_multiple_of(4);
        for length in (0..=trailer).step_by(7) {
            let dir = tempfile::tempdir().unwrap();
            assert!(
                unpack(&archive[..length], dir.path()).is_err(),
                "{length} bytes"
            );
        }
    }

    #[test]
    fn names_cannot_lead_out_of_the_directory() {
        for name in ["../escape", "/tmp/escape", "a/../../escape"] {
            let dir = tempfile::tempdir().unwrap();
            let mut writer = Writer::default();
            writer.file(name, 0o644, b"x");
            assert!(unpack(&writer.finish(), dir.path()).is_err(), "{name}");
        }
    }
}
