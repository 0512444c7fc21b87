// SPDX-License-Identifier: GPL-2.0
//! How a command that knows nothing of altpipe comes by altpipe's pipes.
//!
//! There is one way, [`Preload`]. Another (for static programs, for the C library's inner calls) is another
//! implementation of [`Injection`]: it is given the same, and counts in the same page.

use std::env;
use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use altpipe_preload::settings::{self, LONGEST_PATH};
use anyhow::{Result, bail, ensure};

use crate::run::tally::Tally;

/// A way in.
pub trait Injection {
    /// Makes the command's pipes those of `device`, each of `config`, and has them counted in `tally`.
    fn prepare(
        &self,
        command: &mut Command,
        device: &Path,
        config: &str,
        tally: &Tally,
    ) -> Result<()>;
}

/// The command as the user gave it.
pub fn command(words: &[OsString]) -> Command {
    let (program, arguments) = words.split_first().expect("a word at least");
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// The dynamic linker loads a library of ours into every program, and finds pipe(2) there first.
#[derive(Debug)]
pub struct Preload {
    library: PathBuf,
}

const LIBRARY: &str = "libaltpipe_preload.so";
const OVERRIDE: &str = "ALTPIPE_PRELOAD";
const LD_PRELOAD: &str = "LD_PRELOAD";

impl Preload {
    /// Looks for the library.
    pub fn find() -> Result<Self> {
        let program = env::current_exe()?;
        let given = env::var_os(OVERRIDE).filter(|path| !path.is_empty());
        Self::among(&places(given.as_deref(), &program))
    }

    fn among(places: &[PathBuf]) -> Result<Self> {
        let Some(library) = places.iter().find(|place| place.is_file()) else {
            let places: Vec<_> = places
                .iter()
                .map(|place| place.display().to_string())
                .collect();
            bail!(
                "the library that is to be preloaded is not there: {}; build it (make tools), or say in {OVERRIDE} \
                 where it is",
                places.join(", ")
            );
        };
        // The linker looks for it from wherever a program is started.
        let library = library.canonicalize()?;
        ensure!(
            !library
                .as_os_str()
                .as_bytes()
                .iter()
                .any(|byte| b": \t\n".contains(byte)),
            "{} cannot be preloaded: the linker takes no path with a space or a colon",
            library.display()
        );
        Ok(Self { library })
    }
}

/// Where the library may be: where it is said to be, and nowhere else; or beside the program; or where an
/// installation puts it.
fn places(given: Option<&OsStr>, program: &Path) -> Vec<PathBuf> {
    if let Some(given) = given {
        return vec![given.into()];
    }
    let folder = program.parent().unwrap_or(Path::new("/"));
    vec![
        folder.join(LIBRARY),
        folder.join("../lib/altpipe").join(LIBRARY),
    ]
}

impl Injection for Preload {
    fn prepare(
        &self,
        command: &mut Command,
        device: &Path,
        config: &str,
        tally: &Tally,
    ) -> Result<()> {
        let device = std::path::absolute(device)?;
        ensure!(
            device.as_os_str().len() < LONGEST_PATH,
            "the device's path is longer than {LONGEST_PATH} bytes"
        );
        // Whatever else is to be preloaded comes after, so that its pipes are ours, too.
        let mut libraries = self.library.clone().into_os_string();
        if let Some(others) = env::var_os(LD_PRELOAD).filter(|others| !others.is_empty()) {
            libraries.push(":");
            libraries.push(others);
        }
        command
            .env(LD_PRELOAD, libraries)
            .env(variable(settings::CONFIG), config)
            .env(variable(settings::DEVICE), device)
            .env(
                variable(settings::COUNTS),
                OsStr::from_bytes(tally.path().as_bytes()),
            );
        Ok(())
    }
}

fn variable(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_named_is_the_only_one_that_is_taken() {
        let program = Path::new("/opt/altpipe/bin/altpipe");
        assert_eq!(
            places(Some(OsStr::new("/x/y.so")), program),
            [Path::new("/x/y.so")]
        );
        assert_eq!(
            places(None, program)[1],
            Path::new("/opt/altpipe/bin/../lib/altpipe/libaltpipe_preload.so")
        );
    }

    #[test]
    fn a_library_that_is_lacking_or_cannot_be_named_is_an_error_with_the_cure() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("a b.so");
        let error = Preload::among(std::slice::from_ref(&odd)).unwrap_err();
        assert!(error.to_string().contains("make tools"), "{error}");
        std::fs::write(&odd, "").unwrap();
        let error = Preload::among(&[odd]).unwrap_err().to_string();
        assert!(error.contains("no path with a space"), "{error}");
    }
}
