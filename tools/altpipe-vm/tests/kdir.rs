// SPDX-License-Identifier: GPL-2.0
//! tools/check-kdir.sh: one sentence for each kind of kernel tree that will not do.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

const RUSTC: &str = "rustc 1.85.1 (4eb161250 2025-03-15)";

/// A tree that will do, with a compiler that fits it.
fn tree() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    write("include/config/kernel.release", "7.3.4-mine\n");
    let config = format!("CONFIG_RUST=y\nCONFIG_RUSTC_VERSION_TEXT=\"{RUSTC}\"\n");
    write("include/config/auto.conf", &config);
    write("rust/libcore.rmeta", "");
    write("rust/libkernel.rmeta", "");
    write("rustc", &format!("#!/bin/sh\necho '{RUSTC}'\n"));
    let rustc = dir.path().join("rustc");
    fs::set_permissions(rustc, fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn check(tree: &Path) -> (bool, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../check-kdir.sh");
    let output = Command::new(script)
        .arg(tree)
        .arg(tree.join("rustc"))
        .output()
        .unwrap();
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    (
        output.status.success(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

fn refused(tree: &TempDir, reason: &str) {
    let (good, message) = check(tree.path());
    assert!(!good);
    assert!(message.contains(reason), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.ends_with("run make without KDIR for the kernel this project sets up.\n"));
}

#[test]
fn a_fitting_tree_is_taken_without_a_word() {
    assert_eq!(check(tree().path()), (true, String::new()));
}

#[test]
fn newer_series_are_taken_and_older_ones_refused() {
    for (release, good) in [
        ("7.3.0", true),
        ("7.3-rc1", true),
        ("7.10.1", true),
        ("10.0", true),
        ("7.2.12+deb13-amd64", false),
        ("6.12.0", false),
    ] {
        let tree = tree();
        fs::write(tree.path().join("include/config/kernel.release"), release).unwrap();
        assert_eq!(check(tree.path()).0, good, "{release}");
        if !good {
            refused(&tree, "the module needs 7.3 or newer");
        }
    }
}

#[test]
fn a_tree_that_was_not_prepared_is_refused() {
    let tree = tree();
    fs::remove_dir_all(tree.path().join("include")).unwrap();
    refused(&tree, "is not prepared");
}

#[test]
fn a_tree_without_rust_is_refused() {
    let tree = tree();
    fs::write(
        tree.path().join("include/config/auto.conf"),
        "CONFIG_RUSTICL=y\n",
    )
    .unwrap();
    refused(&tree, "without CONFIG_RUST:");
}

#[test]
fn a_tree_without_metadata_is_refused() {
    let tree = tree();
    fs::remove_file(tree.path().join("rust/libkernel.rmeta")).unwrap();
    refused(&tree, "lacks the Rust metadata");
}

#[test]
fn another_compiler_is_refused_and_both_are_named() {
    let tree = tree();
    fs::write(tree.path().join("rustc"), "#!/bin/sh\necho rustc 1.95.0\n").unwrap();
    refused(&tree, RUSTC);
    refused(&tree, "rustc 1.95.0");
}

#[test]
fn no_compiler_is_another_compiler() {
    let tree = tree();
    fs::remove_file(tree.path().join("rustc")).unwrap();
    refused(&tree, "none that runs");
}
