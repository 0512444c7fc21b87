// SPDX-License-Identifier: GPL-2.0
//! The device's files in sysfs: knobs, which are the defaults of pipes to be made, and counters.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the module puts them.
pub const FOLDER: &str = "/sys/class/misc/altpipe";

/// The device's folder.
#[derive(Clone, Debug)]
pub struct Sysfs(PathBuf);

/// A knob as its file shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// The file's name.
    pub name: String,
    /// The value in force.
    pub active: String,
    /// All values, where the file lists them; a number has none.
    pub choices: Vec<String>,
}

impl Knob {
    /// Reads `[mutex] wait_lock wait_lock_wake` or a plain number.
    fn parse(name: &str, text: &str) -> io::Result<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let bracketed = words
            .iter()
            .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
        let (active, choices) = match (bracketed, words.as_slice()) {
            (Some(active), _) => {
                let plain = |word: &&str| word.trim_matches(['[', ']']).to_owned();
                (active, words.iter().map(plain).collect())
            }
            (None, [number]) => (*number, Vec::new()),
            (None, _) => {
                return Err(io::Error::other(format!(
                    "the knob {name} reads {text:?}: no value is marked"
                )));
            }
        };
        Ok(Self {
            name: name.to_owned(),
            active: active.to_owned(),
            choices,
        })
    }
}

impl Sysfs {
    /// The files below `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Whether the module shows anything here.
    pub fn exists(&self) -> bool {
        self.0.join("knobs").is_dir()
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// All knobs, by name.
    pub fn knobs(&self) -> io::Result<Vec<Knob>> {
        let files = read_folder(&self.0.join("knobs"))?;
        files
            .iter()
            .map(|(name, text)| Knob::parse(name, text))
            .collect()
    }

    /// One knob. `NotFound`: the module has none of that name.
    pub fn knob(&self, name: &str) -> io::Result<Knob> {
        Knob::parse(name, &fs::read_to_string(self.knob_file(name)?)?)
    }

    /// Turns a knob. `InvalidInput`: it takes no such value, and keeps the one it has.
    pub fn set_knob(&self, name: &str, value: &str) -> io::Result<()> {
        fs::write(self.knob_file(name)?, value)
    }

    /// All counters, by name.
    pub fn counters(&self) -> io::Result<BTreeMap<String, u64>> {
        let files = read_folder(&self.0.join("stats"))?;
        // `reset` is a button among the counters, and shows no number.
        Ok(files
            .into_iter()
            .filter_map(|(name, text)| Some((name, text.trim().parse().ok()?)))
            .collect())
    }

    fn knob_file(&self, name: &str) -> io::Result<PathBuf> {
        if name.contains('/') || name.starts_with('.') {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(self.0.join("knobs").join(name))
    }
}

/// Names and texts of a folder's readable files, by name.
fn read_folder(folder: &Path) -> io::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Ok(text) = fs::read_to_string(entry.path()) {
            files.insert(entry.file_name().to_string_lossy().into_owned(), text);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bracketed_word_is_the_active_one() {
        let knob = Knob::parse("tail_update", "mutex [wait_lock] wait_lock_wake\n").unwrap();
        assert_eq!(knob.active, "wait_lock");
        assert_eq!(knob.choices, ["mutex", "wait_lock", "wait_lock_wake"]);
    }

    #[test]
    fn a_number_has_no_choices() {
        let knob = Knob::parse("block_size", "4096\n").unwrap();
        assert_eq!((knob.active.as_str(), knob.choices.len()), ("4096", 0));
    }

    #[test]
    fn a_text_without_a_mark_is_an_error() {
        assert!(Knob::parse("times", "none full\n").is_err());
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let sysfs = Sysfs::new("/sys");
        for name in ["../kernel", ".", "a/b"] {
            assert_eq!(
                sysfs.knob(name).unwrap_err().kind(),
                io::ErrorKind::NotFound
            );
        }
    }
}
