// SPDX-License-Identifier: GPL-2.0
//! Output from fixed JSON: every byte of it is a snapshot.

use std::path::PathBuf;
use std::process::Output;

use assert_cmd::Command;

fn data(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", name]
        .iter()
        .collect()
}

fn report(files: &[&str], flags: &[&str]) -> Output {
    let mut command = Command::cargo_bin("altpipe").unwrap();
    command
        .arg("report")
        .args(files.iter().map(|name| data(name)))
        .args(flags);
    command.output().unwrap()
}

fn text(files: &[&str], flags: &[&str]) -> String {
    let output = report(files, flags);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_table_has_the_shape_of_lkps() {
    insta::assert_snapshot!(text(&["bench.json"], &[]));
}

#[test]
fn the_full_table_has_times_and_counters() {
    insta::assert_snapshot!(text(&["bench.json"], &["--full"]));
}

#[test]
fn many_variants_become_a_grid_of_workloads() {
    insta::assert_snapshot!(text(&["history.json"], &[]));
}

#[test]
fn the_full_table_of_many_variants_stays_lkps() {
    assert!(text(&["history.json"], &["--full"]).contains("%stddev     %change"));
}

#[test]
fn several_boots_become_one_table_and_the_study_its_verdict() {
    insta::assert_snapshot!(text(&["frozen-fs-1.json", "frozen-fs-2.json"], &[]));
}

#[test]
fn documents_of_different_questions_keep_tables_of_their_own() {
    let both = text(&["bench.json", "frozen-fs-1.json"], &[]);
    assert_eq!(both.matches("A/A, native against native").count(), 2);
}

#[test]
fn markdown_has_the_key_statistics() {
    insta::assert_snapshot!(text(&["bench.json"], &["--markdown", "-"]));
}

#[test]
fn csv_has_every_sample_that_counts() {
    let csv = text(&["bench.json"], &["--csv", "-"]);
    insta::assert_snapshot!(csv.lines().take(12).collect::<Vec<_>>().join("\n"));
    // 2 rounds of 2 workloads on 3 variants and the twin; warm-up is left out.
    assert_eq!(csv.matches(".cpu_ns_per_op,").count(), 2 * 2 * 4);
}

#[test]
fn json_of_a_report_is_a_document_again() {
    let joined = text(&["frozen-fs-1.json", "frozen-fs-2.json"], &["--json", "-"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("joined.json");
    std::fs::write(&file, joined).unwrap();
    let again = Command::cargo_bin("altpipe")
        .unwrap()
        .arg("report")
        .arg(file)
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(again.stdout).unwrap(),
        text(&["frozen-fs-1.json", "frozen-fs-2.json"], &[])
    );
}

#[test]
fn one_boot_given_twice_is_refused() {
    let output = report(&["bench.json", "bench.json"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is given twice"));
}

#[test]
fn a_file_of_another_schema_names_who_can_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new.json");
    std::fs::write(&file, r#"{"schema": 99, "tool": "altpipe 9.9"}"#).unwrap();
    let output = Command::cargo_bin("altpipe")
        .unwrap()
        .arg("report")
        .arg(file)
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        message.contains("schema 99") && message.contains("altpipe 9.9"),
        "{message}"
    );
}

#[test]
fn a_file_that_is_no_document_is_told() {
    let output = report(&["../report.rs"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("report.rs"));
}
