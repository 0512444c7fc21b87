// SPDX-License-Identifier: GPL-2.0
//! Which kernel of the archive: the newest version of which every part is there.

use anyhow::{Result, bail};

use crate::archive::Package;
use crate::version;

const FLAVOUR: &str = "-cloud-amd64";

/// The packages of one kernel version.
#[derive(Debug, PartialEq, Eq)]
pub struct Release {
    /// The version that all the packages share.
    pub version: String,
    /// What `uname -r` says on it.
    pub name: String,
    /// Image, its binary, headers, source and config.
    pub packages: Vec<Package>,
}

impl Release {
    /// What follows the kernel's own version in its name: `+deb13-cloud-amd64`.
    pub fn local_version(&self) -> Option<&str> {
        self.name.strip_prefix(version::upstream(&self.version))
    }
}

/// Does a package belong to a kernel of any series that we could be asked about?
pub fn is_part(name: &str) -> bool {
    let rest = name.strip_prefix("linux-").unwrap_or_default();
    let flavoured = ["image-", "binary-", "headers-"]
        .iter()
        .any(|kind| rest.starts_with(kind));
    rest.starts_with("source-")
        || rest.starts_with("config-")
        || (flavoured && rest.ends_with(FLAVOUR))
}

/// Chooses the newest version of `series` (`7.3`) that is complete.
pub fn choose(series: &str, packages: &[Package]) -> Result<Release> {
    let source = format!("linux-source-{series}");
    let mut versions: Vec<&str> = packages
        .iter()
        .filter(|package| package.name == source)
        .map(|package| &*package.version)
        .collect();
    versions.sort_by(|a, b| version::compare(b, a));

    let mut lacking = Vec::new();
    for version in versions {
        match complete(series, version, packages) {
            Ok(release) => return Ok(release),
            Err(what) => lacking.push(format!("{version} lacks {what}")),
        }
    }
    if lacking.is_empty() {
        let mut series_there: Vec<&str> = packages
            .iter()
            .filter_map(|package| package.name.strip_prefix("linux-source-"))
            .collect();
        series_there.sort_by(|a, b| version::compare(a, b));
        series_there.dedup();
        bail!(
            "the archive has no kernel of series {series}; it has: {}",
            if series_there.is_empty() {
                "none".to_owned()
            } else {
                series_there.join(", ")
            }
        );
    }
    bail!(
        "the archive has no complete {FLAVOUR} kernel of series {series}: {}",
        lacking.join("; ")
    )
}

/// All the parts of one version, or the name of the first that is not there.
fn complete(series: &str, version: &str, packages: &[Package]) -> Result<Release, String> {
    let of_version = || packages.iter().filter(|package| package.version == version);
    let name = of_version()
        .find_map(|package| {
            let name = package.name.strip_prefix("linux-image-")?;
            name.ends_with(FLAVOUR).then_some(name)
        })
        .ok_or_else(|| format!("linux-image-*{FLAVOUR}"))?;
    let packages = [
        format!("linux-image-{name}"),
        format!("linux-binary-{name}"),
        format!("linux-headers-{name}"),
        format!("linux-source-{series}"),
        format!("linux-config-{series}"),
    ]
    .into_iter()
    .map(|part| {
        of_version()
            .find(|package| package.name == part)
            .cloned()
            .ok_or(part)
    })
    .collect::<Result<_, _>>()?;
    Ok(Release {
        version: version.to_owned(),
        name: name.to_owned(),
        packages,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
        }
    }

    fn kernel(abi: &str, version: &str) -> Vec<Package> {
        let mut all: Vec<_> = ["image", "binary", "headers"]
            .iter()
            .map(|kind| package(&format!("linux-{kind}-{abi}-cloud-amd64"), version))
            .collect();
        all.push(package("linux-source-7.3", version));
        all.push(package("linux-config-7.3", version));
        all
    }

    #[test]
    fn the_newest_complete_version_is_chosen_whatever_the_order() {
        let mut all = kernel("7.3.10+deb13", "7.3.10-1~bpo13+1");
        all.extend(kernel("7.3.4+deb13", "7.3.4-1~bpo13+1"));
        let release = choose("7.3", &all).unwrap();
        assert_eq!(release.version, "7.3.10-1~bpo13+1");
        assert_eq!(release.name, "7.3.10+deb13-cloud-amd64");
        assert_eq!(release.local_version(), Some("+deb13-cloud-amd64"));
        assert_eq!(release.packages.len(), 5);
        assert!(
            release
                .packages
                .iter()
                .all(|package| package.version == release.version)
        );
    }

    #[test]
    fn a_version_without_its_headers_is_passed_over() {
        let mut all = kernel("7.3.10+deb13", "7.3.10-1~bpo13+1");
        all.retain(|package| !package.name.starts_with("linux-headers"));
        all.extend(kernel("7.3.4+deb13", "7.3.4-1~bpo13+1"));
        assert_eq!(choose("7.3", &all).unwrap().version, "7.3.4-1~bpo13+1");
    }

    #[test]
    fn what_is_lacking_is_named() {
        let mut all = kernel("7.3.4+deb13", "7.3.4-1~bpo13+1");
        all.retain(|package| !package.name.starts_with("linux-config"));
        let error = choose("7.3", &all).unwrap_err().to_string();
        assert!(
            error.contains("7.3.4-1~bpo13+1 lacks linux-config-7.3"),
            "{error}"
        );
    }

    #[test]
    fn other_series_are_named_when_ours_is_gone() {
        let all = [
            package("linux-source-7.10", "7.10-1"),
            package("linux-source-7.4", "7.4.1-1"),
        ];
        let error = choose("7.3", &all).unwrap_err().to_string();
        assert!(
            error.contains("no kernel of series 7.3") && error.ends_with("7.4, 7.10"),
            "{error}"
        );
    }

    #[test]
    fn only_parts_of_cloud_kernels_are_asked_for() {
        assert!(is_part("linux-source-7.3"));
        assert!(is_part("linux-image-7.3.4+deb13-cloud-amd64"));
        assert!(!is_part("linux-image-7.3.4+deb13-amd64"));
        assert!(!is_part("linux-image-7.3.4+deb13-cloud-amd64-dbg"));
        assert!(!is_part("linux-libc-dev"));
    }
}
