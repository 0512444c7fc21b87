// SPDX-License-Identifier: GPL-2.0
//! The program as a user meets it: what it does, says, and exits with.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn altpipe(arguments: &[&str]) -> Output {
    Command::cargo_bin("altpipe")
        .unwrap()
        .args(arguments)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder that looks like the device's in sysfs.
fn sysfs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("knobs/tail_update", "[mutex] wait_lock wait_lock_wake\n"),
        ("knobs/block_size", "4096\n"),
        ("knobs/exclusive", "1\n"),
        ("stats/reads", "12\n"),
        ("stats/bytes_read", "3456\n"),
    ] {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::write(folder.path().join("stats/reset"), "").unwrap();
    folder
}

fn with_sysfs(folder: &Path, arguments: &[&str]) -> Output {
    let mut all = vec!["--sysfs", folder.to_str().unwrap()];
    all.extend(arguments);
    altpipe(&all)
}

fn knob(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join("knobs").join(name))
        .unwrap()
        .trim()
        .to_owned()
}

const QUICK: [&str; 8] = [
    "--scale", "0.01", "--rounds", "2", "--settle", "0", "--seed", "7",
];

#[test]
fn every_workload_runs_on_native_and_counts_what_it_did() {
    let arguments = [
        &[
            "bench",
            "all",
            "--variants",
            "native",
            "--readers",
            "4",
            "--json",
            "-",
        ][..],
        &QUICK,
    ]
    .concat();
    let output = altpipe(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema"], 1);
    let samples = document["boots"][0]["samples"].as_array().unwrap();
    // 15 workloads, native and its twin, a warm-up round and two that count.
    assert_eq!(samples.len(), 15 * 2 * 3);
    for sample in samples {
        let workload = sample["workload"].as_str().unwrap();
        assert!(
            sample["ops"].as_u64() > Some(0) && sample["wall_ns"].as_u64() > Some(0),
            "{sample}"
        );
        let carries = !workload.starts_with("create");
        assert_eq!(sample["bytes"].as_u64() > Some(0), carries, "{workload}");
        if ["pingpong", "herd-paced"].contains(&workload) {
            assert!(
                sample["voluntary"].as_u64() >= sample["ops"].as_u64(),
                "{sample}"
            );
        }
    }
}

#[test]
fn a_seed_repeats_the_schedule() {
    let arguments = [
        &["bench", "self", "--variants", "native", "--json", "-"][..],
        &QUICK,
    ]
    .concat();
    let order = || {
        let document: serde_json::Value =
            serde_json::from_slice(&altpipe(&arguments).stdout).unwrap();
        let samples = document["boots"][0]["samples"].as_array().unwrap();
        let turn = |sample: &serde_json::Value| {
            format!(
                "{} {} {}",
                sample["workload"], sample["twin"], sample["ops"]
            )
        };
        samples.iter().map(turn).collect::<Vec<_>>()
    };
    assert_eq!(order(), order());
}

#[test]
fn the_table_says_seed_machine_and_too_few_rounds() {
    let output = altpipe(&[&["bench", "self-1", "--variants", "native"][..], &QUICK].concat());
    let text = stdout(&output);
    assert!(text.contains("seed 7"), "{text}");
    assert!(
        text.contains("2 rounds in one boot are few") || text.contains("near-copies"),
        "{text}"
    );
    assert!(text.contains("self-1.cpu_ns_per_op"));
}

#[test]
fn without_the_module_an_altpipe_variant_names_the_cure() {
    let output = altpipe(&[
        "--device",
        "/dev/altpipe-of-no-machine",
        "bench",
        "self-1",
        "--variants",
        "native,default",
    ]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("load the module"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn another_device_is_not_taken_for_altpipe() {
    let output = altpipe(&["--device", "/dev/null", "reproduce", "fidelity"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("is no altpipe device"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn unknown_words_list_the_known_ones() {
    let output = altpipe(&["bench", "selfish", "--variants", "native"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("herd-paced"),
        "{}",
        stderr(&output)
    );
    let output = altpipe(&["reproduce", "inode-dyet"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("inode-diet"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn status_shows_choices_and_counters() {
    let folder = sysfs();
    let output = with_sysfs(folder.path(), &["status"]);
    insta::assert_snapshot!(stdout(&output));
    let output = with_sysfs(folder.path(), &["status", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(status["knobs"]["tail_update"], "mutex");
    assert_eq!(status["counters"]["bytes_read"], 3456);
}

#[test]
fn status_without_the_module_exits_with_3() {
    let output = with_sysfs(Path::new("/nowhere"), &["status"]);
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn set_turns_all_knobs_named() {
    let folder = sysfs();
    let output = with_sysfs(
        folder.path(),
        &["set", "tail_update=wait_lock", "exclusive=0"],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(knob(folder.path(), "tail_update"), "wait_lock");
    assert_eq!(knob(folder.path(), "exclusive"), "0");
}

#[test]
fn set_with_one_refusal_leaves_every_knob_as_it_was() {
    let folder = sysfs();
    // A file that can be read and not written, even by root, stands for a knob that refuses.
    fs::remove_file(folder.path().join("knobs/exclusive")).unwrap();
    std::os::unix::fs::symlink(
        "/proc/sys/kernel/ostype",
        folder.path().join("knobs/exclusive"),
    )
    .unwrap();
    let output = with_sysfs(folder.path(), &["set", "block_size=1024", "exclusive=0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("nothing is changed"),
        "{}",
        stderr(&output)
    );
    assert_eq!(knob(folder.path(), "block_size"), "4096");
}

#[test]
fn set_of_an_unknown_knob_lists_those_there_are_and_turns_none() {
    let folder = sysfs();
    let output = with_sysfs(folder.path(), &["set", "block_size=1024", "exklusive=0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("exclusive, tail_update"),
        "{}",
        stderr(&output)
    );
    assert_eq!(knob(folder.path(), "block_size"), "4096");
}

#[test]
fn doctor_without_the_module_says_so_and_exits_with_4() {
    let output = altpipe(&["--device", "/dev/altpipe-of-no-machine", "doctor"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(stdout(&output).contains("altpipe variants cannot be measured"));
    assert!(stdout(&output).contains("-> load the module"));
}

#[test]
fn ctrl_c_writes_what_was_sampled_and_leaves_no_task() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cut.json");
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("altpipe"))
        .args([
            "bench",
            "self-1",
            "--variants",
            "native",
            "--rounds",
            "100000",
            "--settle",
            "0",
            "--scale",
            "1",
        ])
        .arg("--json")
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    let pid = Pid::from_raw(child.id() as i32);
    // Its tasks are there once it measures. The first few samples are short.
    while fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
        .is_ok_and(|tasks| tasks.is_empty())
    {
        assert!(Instant::now() < end, "it did not begin");
    }
    std::thread::sleep(Duration::from_millis(300));
    kill(pid, Signal::SIGINT).unwrap();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < end, "it did not end");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(status.code(), Some(130));
    let document: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(document["boots"][0]["complete"], false);
    assert!(
        !document["boots"][0]["samples"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn completions_know_the_subcommands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&altpipe(&["completions", shell]));
        assert!(
            script.contains("reproduce") && script.contains("herd") || script.contains("reproduce"),
            "{shell}"
        );
    }
}

#[test]
fn the_manual_pages_are_those_that_the_command_line_gives() {
    let folder = tempfile::tempdir().unwrap();
    let output = altpipe(&["man", folder.path().to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Documentation/man");
    let mut pages = 0;
    for entry in fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        let text = fs::read_to_string(kept.join(&name)).unwrap_or_default();
        assert!(
            text == fs::read_to_string(entry.path()).unwrap(),
            "{} is out of date: run altpipe man Documentation/man",
            name.to_string_lossy()
        );
        pages += 1;
    }
    assert!(pages > 5, "{pages}");
}

#[test]
fn help_documents_the_exit_status() {
    assert!(stdout(&altpipe(&["--help"])).contains("130  interrupted"));
    assert!(stdout(&altpipe(&["bench", "--help"])).contains("native,times=full,freeze_check=1"));
}
