// SPDX-License-Identifier: GPL-2.0
//! Debian's archive, asked through an apt root of our own: the host's sources,
//! lists and installed packages stay as they are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::cache::Cache;
use crate::step::quietly;
use crate::version;

/// A package as the archive offers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    pub name: String,
    pub version: String,
}

impl Package {
    /// `name=version`, as apt takes it.
    pub fn exact(&self) -> String {
        format!("{}={}", self.name, self.version)
    }
}

/// The archive seen through the sources that tools/bootstrap.sh wrote.
pub struct Archive {
    sources: PathBuf,
    root: PathBuf,
}

impl Archive {
    /// Opens the archive; nothing is fetched yet.
    pub fn open(cache: &Cache) -> Result<Self> {
        let sources = cache.path("sources.list");
        ensure!(
            sources.exists(),
            "{} is not there yet; run tools/bootstrap.sh",
            sources.display()
        );
        let root = cache.path("apt");
        for dir in ["state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(root.join(dir))?;
        }
        fs::write(root.join("state/status"), "")?;
        Ok(Self { sources, root })
    }

    /// Fetches the package lists.
    pub fn update(&self) -> Result<()> {
        quietly(
            self.apt("apt-get").args(["-q", "update"]),
            &self.root.join("update.log"),
        )
    }

    /// Every version of the packages whose name satisfies `wanted`.
    pub fn packages(&self, prefix: &str, wanted: impl Fn(&str) -> bool) -> Result<Vec<Package>> {
        let names = self.query(&["pkgnames", prefix])?;
        let names: Vec<&str> = names.lines().filter(|name| wanted(name)).collect();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut arguments = vec!["show", "--all-versions"];
        arguments.extend(names);
        Ok(parse_stanzas(&self.query(&arguments)?))
    }

    /// The newest version of one package.
    pub fn newest(&self, name: &str) -> Result<Package> {
        self.packages(name, |found| found == name)?
            .into_iter()
            .max_by(|a, b| version::compare(&a.version, &b.version))
            .with_context(|| format!("the archive has no package {name}"))
    }

    /// Downloads packages (apt checks signature and sums) and unpacks them all
    /// into `tree`, without installing anything.
    pub fn unpack(&self, packages: &[&Package], tree: &Path) -> Result<()> {
        let debs = tree.join("debs");
        fs::create_dir_all(&debs)?;
        quietly(
            self.apt("apt-get")
                .args(["-q", "download"])
                .args(packages.iter().map(|package| package.exact()))
                .current_dir(&debs),
            &self.root.join("download.log"),
        )?;
        for entry in fs::read_dir(&debs)? {
            quietly(
                Command::new("dpkg-deb")
                    .arg("--extract")
                    .arg(entry?.path())
                    .arg(tree),
                &self.root.join("unpack.log"),
            )?;
        }
        fs::remove_dir_all(&debs)?;
        Ok(())
    }

    fn query(&self, arguments: &[&str]) -> Result<String> {
        let output = self
            .apt("apt-cache")
            .args(arguments)
            .output()
            .context("cannot run apt-cache")?;
        if !output.status.success() {
            bail!(
                "apt-cache {}: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The host's apt.conf stays in force, for its proxies; its sources and
    /// pins do not.
    fn apt(&self, tool: &str) -> Command {
        let mut command = Command::new(tool);
        let settings = [
            ("Dir::Etc::sourcelist", self.sources.display().to_string()),
            ("Dir::Etc::sourceparts", "-".into()),
            ("Dir::Etc::preferences", "-".into()),
            ("Dir::Etc::preferencesparts", "-".into()),
            ("Dir::State", self.root.join("state").display().to_string()),
            (
                "Dir::State::status",
                self.root.join("state/status").display().to_string(),
            ),
            ("Dir::Cache", self.root.join("cache").display().to_string()),
            ("APT::Architecture", "amd64".into()),
            ("APT::Architectures", "amd64".into()),
            // The cache may be in a home that apt's own user cannot enter.
            ("APT::Sandbox::User", "root".into()),
            ("Acquire::Languages", "none".into()),
        ];
        for (name, value) in settings {
            command.arg("-o").arg(format!("{name}={value}"));
        }
        command
    }
}

fn parse_stanzas(text: &str) -> Vec<Package> {
    text.split("\n\n")
        .filter_map(|stanza| {
            let field = |name: &str| {
                stanza
                    .lines()
                    .find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(": ")?.to_owned()))
            };
            Some(Package {
                name: field("Package")?,
                version: field("Version")?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stanzas_become_packages_and_continuation_lines_are_ignored() {
        let text = "Package: linux-source-7.3\nSource: linux\nVersion: 7.3.4-1~bpo13+1\nDescription: x\n \
                    Version: 9\n\nPackage: linux-source-7.3\nVersion: 7.3.2-1~bpo13+1\n\n";
        let versions: Vec<_> = parse_stanzas(text)
            .into_iter()
            .map(|package| package.exact())
            .collect();
        assert_eq!(
            versions,
            [
                "linux-source-7.3=7.3.4-1~bpo13+1",
                "linux-source-7.3=7.3.2-1~bpo13+1"
            ]
        );
    }
}
