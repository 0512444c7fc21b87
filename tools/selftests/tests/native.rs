// SPDX-License-Identifier: GPL-2.0
//! The program on the host's own pipes, and its controls.

use std::path::Path;

use assert_cmd::Command;

// The status, standard output and standard error of a run.
fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("altpipe-selftests")
        .unwrap()
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn the_kernels_own_pipes_pass_every_case() {
    let (status, out, _) = run(&["--subject", "native"]);
    let failed: Vec<_> = out
        .lines()
        .filter(|line| line.trim_start().starts_with("not ok"))
        .collect();
    assert_eq!((status, failed.len()), (0, 0), "{out}");
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines[..2], ["KTAP version 1", "1..2"]);
    assert!(lines[2].starts_with("# seed "), "{out}");
    assert_eq!(lines[3..5], ["  KTAP version 1", "  # Subtest: native"]);
    assert!(lines[5].starts_with("  1.."), "{out}");
    assert!(out.contains("\nok 1 native\n"), "{out}");
    assert!(out.contains("\n  # Subtest: fifo native\n"), "{out}");
    assert!(out.ends_with("\nok 2 fifo native\n"), "{out}");
}

#[test]
fn every_control_is_noticed_and_ends_nothing_but_itself() {
    let (status, out, _) = run(&["--controls", "--timeout", "1"]);
    assert_eq!(status, 1);
    let mut lines = out.lines().skip(6).map(str::trim);
    let mut expect = |patterns: &[&str]| {
        let line = lines
            .next()
            .unwrap_or_else(|| panic!("no line for {patterns:?} in {out}"));
        assert!(
            patterns.iter().all(|pattern| line.contains(pattern)),
            "{line} lacks one of {patterns:?}"
        );
    };
    expect(&["# ", "controls.rs:", "sums; left: 2; right: 3"]);
    expect(&["not ok 1 controls: an assertion fails"]);
    expect(&["# ", "in a thread"]);
    expect(&["not ok 2"]);
    expect(&["# ", "in a process"]);
    expect(&["not ok 3"]);
    expect(&["# killed by signal 9"]);
    expect(&["not ok 4"]);
    expect(&["# exit status 3"]);
    expect(&["not ok 5"]);
    expect(&["# timed out after 1 s", " S ", " call 0 ", "(at the read)"]);
    expect(&["not ok 6"]);
    expect(&["ok 7"]);
    expect(&["ok 8", "# SKIP not on this machine"]);
    expect(&["# 6 of 8 failed"]);
    expect(&["not ok 1 native"]);
}

#[test]
fn a_filter_chooses_by_name() {
    let (status, out, _) = run(&[
        "--subject",
        "native",
        "--filter",
        "eof: a writer in another process",
    ]);
    assert_eq!(status, 0);
    assert!(
        out.contains("\n  1..1\n  ok 1 eof: a writer in another process keeps the stream open\n"),
        "{out}"
    );
}

#[test]
fn the_list_tells_where_each_case_runs() {
    let (status, out, _) = run(&["--list"]);
    assert_eq!(status, 0);
    assert!(
        out.contains("\nevery    eof: a write without readers is EPIPE"),
        "{out}"
    );
    assert!(out.contains("\naltpipe  wakes: "), "{out}");
    assert!(out.contains("\ndevice   sysfs: "), "{out}");
    assert!(!out.contains("controls"), "{out}");
}

#[test]
fn without_the_module_a_full_run_is_refused_with_a_hint() {
    if Path::new("/dev/altpipe").exists() {
        return;
    }
    let (status, out, error) = run(&[]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(
        error.contains("load the module") && error.contains("--subject native"),
        "{error}"
    );
}
