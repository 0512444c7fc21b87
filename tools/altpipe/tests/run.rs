// SPDX-License-Identifier: GPL-2.0
//! `altpipe run` on a machine without altpipe: what it refuses, what it passes through, and that the library in
//! between changes nothing.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn tools() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A folder of this test run's own.
fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("run");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The library, which cargo does not build with the rest.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let output = Command::new(tools().join("preload.sh"))
            .arg(folder())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        folder().join("libaltpipe_preload.so")
    })
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("altpipe"));
    command
        .args(["--device", "/dev/altpipe-of-no-machine", "run"])
        .args(arguments)
        .env("ALTPIPE_PRELOAD", library())
        .stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn without_the_module_nothing_is_begun_and_the_cure_is_named() {
    let begun = folder().join("begun");
    let output = run(&["--", "touch", begun.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("load the module"));
    assert!(!begun.exists());
}

#[test]
fn another_device_is_not_taken_for_altpipe_even_with_fallback() {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("altpipe"));
    command
        .args(["--device", "/dev/null", "run", "--fallback", "--", "true"])
        .env("ALTPIPE_PRELOAD", library());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("is no altpipe device"));
}

#[test]
fn a_wrong_config_is_named_with_the_choices_before_anything_else() {
    for (config, choices) in [
        ("times=ctime", "none, atime, mtime or full"),
        ("v9.9", "v7.3"),
        ("exklusive=1", "split_wait"),
    ] {
        let output = run(&["--config", config, "--", "true"]);
        assert_eq!(output.status.code(), Some(125));
        let said = text(&output.stderr);
        assert!(said.contains(config) && said.contains(choices), "{said}");
    }
}

#[test]
fn with_fallback_pipes_are_native_and_counted_through_the_whole_tree() {
    let json = folder().join("report.json");
    let script = "echo a | cat | cat; bash -c 'x=$(echo b | cat); echo $x'";
    let output = run(&[
        "--fallback",
        "--json",
        json.to_str().unwrap(),
        "--",
        "bash",
        "-c",
        script,
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "a\nb\n");
    let line = text(&output.stderr);
    assert_eq!(
        line,
        "altpipe run: 0 pipes by altpipe, 4 native: 4 because the device could not be opened\n"
    );
    let report: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(report["schema"], 1);
    assert_eq!(report["pipes"]["altpipe"], 0);
    assert_eq!(report["pipes"]["native"], 4);
    assert_eq!(report["native_because"]["device"], 4);
    assert_eq!((&report["status"], &report["exit"]), (&0.into(), &0.into()));
    assert!(report["config"].is_null());
    assert_eq!(report["command"][2], script);
}

#[test]
fn the_commands_status_passes_through() {
    for (script, status) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
    ] {
        let output = run(&["--fallback", "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(status), "{script}");
    }
}

#[test]
fn a_command_that_is_not_there_is_told_from_one_that_cannot_be_executed() {
    let output = run(&["--fallback", "--", "/no/such/command"]);
    assert_eq!(output.status.code(), Some(127));
    let output = run(&["--fallback", "--", "/etc/passwd"]);
    assert_eq!(output.status.code(), Some(126));
}

#[test]
fn a_library_that_is_lacking_is_named_with_the_cure() {
    let output = command(&["--fallback", "--", "true"])
        .env("ALTPIPE_PRELOAD", "/no/such/library.so")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("make tools"));
}

#[test]
fn a_signal_sent_to_it_reaches_the_command() {
    let ready = folder().join("ready");
    let _ = fs::remove_file(&ready);
    let script = format!(
        "trap 'exit 9' TERM; : >{}; while :; do sleep 0.05; done",
        ready.display()
    );
    let mut child = command(&["--fallback", "--", "sh", "-c", &script])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !ready.exists() {
        assert!(Instant::now() < deadline, "it did not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    let status = child.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(9), None));
}

#[test]
fn the_command_gets_no_blocked_signal_and_no_descriptor() {
    let script = "grep SigBlk /proc/self/status; for i in /proc/self/fd/*; do echo ${i##*/}; done";
    let native = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let output = run(&["--fallback", "--", "sh", "-c", script]);
    assert_eq!(text(&output.stdout), text(&native.stdout));
}

#[test]
fn what_else_is_to_be_preloaded_still_is() {
    let output = command(&["--fallback", "--", "sh", "-c", "echo $LD_PRELOAD"])
        .env("LD_PRELOAD", "libdl.so.2")
        .output()
        .unwrap();
    let preloaded = text(&output.stdout);
    assert!(
        preloaded.ends_with("libaltpipe_preload.so:libdl.so.2\n"),
        "{preloaded}"
    );
}

#[test]
fn a_program_sees_no_difference_in_any_call() {
    let program = folder().join("parity");
    let compiled = Command::new("cc")
        .args(["-O2", "-w", "-o"])
        .arg(&program)
        .arg(tools().join("altpipe-preload/tests/parity.c"))
        .status()
        .unwrap();
    assert!(compiled.success());
    let native = Command::new(&program)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let ours = run(&["--fallback", "--", program.to_str().unwrap()]);
    assert_eq!(
        ours.status.code(),
        native.status.code(),
        "{}",
        text(&ours.stderr)
    );
    let (native, ours) = (text(&native.stdout), text(&ours.stdout));
    assert!(native.lines().count() > 150, "{native}");
    for (native, ours) in native.lines().zip(ours.lines()) {
        assert_eq!(native, ours);
    }
    assert_eq!(native.lines().count(), ours.lines().count());
}

/// What the library asks of the C library. Nothing here allocates, but for what popen needs; and nothing is newer
/// than glibc 2.34, so that it loads on Debian 12 and later.
const WANTED: &[&str] = &[
    "__cxa_finalize",
    "__errno_location",
    "__register_atfork",
    "dlsym",
    "environ",
    "fdopen",
    "free",
    "fstat",
    "malloc",
    "memcpy",
    "memset",
    "mmap",
    "munmap",
    "posix_spawn",
    "posix_spawn_file_actions_addclose",
    "posix_spawn_file_actions_adddup2",
    "posix_spawn_file_actions_destroy",
    "posix_spawn_file_actions_init",
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "strlen",
    "syscall",
    "abort",
    "bcmp",
    "memcmp",
];

#[test]
fn the_library_asks_for_little_and_nothing_new() {
    let list = |what: &str| {
        let output = Command::new("nm")
            .args(["--dynamic", what])
            .arg(library())
            .output()
            .unwrap();
        text(&output.stdout)
    };
    for line in list("--undefined-only").lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let [kind, symbol] = words[..] else {
            panic!("{line}");
        };
        let (name, version) = symbol.split_once('@').unwrap_or((symbol, ""));
        // Weak ones may be lacking.
        assert!(kind == "w" || WANTED.contains(&name), "{line}");
        if let Some(version) = version.strip_prefix("GLIBC_2.") {
            let minor: u32 = version.split('.').next().unwrap().parse().unwrap();
            assert!(minor <= 34, "{line}");
        }
    }
    let mut exported: Vec<_> = list("--defined-only")
        .lines()
        .filter_map(|line| Some(line.split_whitespace().nth(2)?.to_owned()))
        .collect();
    exported.sort();
    assert_eq!(
        exported,
        [
            "fclose", "fcntl", "fcntl64", "pclose", "pipe", "pipe2", "popen"
        ]
    );
}
