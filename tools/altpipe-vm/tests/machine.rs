// SPDX-License-Identifier: GPL-2.0
//! The runner against a stand-in for QEMU: a shell script that says on the ports
//! what a machine would say, or dies, or hangs.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A cache with a kernel in it, and a stand-in for QEMU on the PATH.
struct Bench {
    dir: TempDir,
}

impl Bench {
    /// The script runs with $console, $initrd and $disk set to the files of that run and
    /// with the protocol port as descriptor 3.
    fn new(script: &str) -> Self {
        let bench = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        let kernel = bench.path("cache/altpipe/kernels/made-up");
        fs::create_dir_all(kernel.join("build/include/config")).unwrap();
        fs::write(
            kernel.join("build/include/config/kernel.release"),
            "7.3.0\n",
        )
        .unwrap();
        fs::write(kernel.join("vmlinuz"), "").unwrap();
        fs::write(kernel.join(".complete"), "1").unwrap();
        symlink(&kernel, kernel.with_file_name("current")).unwrap();
        program(&kernel.join("busybox"), "echo ls");

        fs::create_dir(bench.path("bin")).unwrap();
        fs::create_dir(bench.path("tmp")).unwrap();
        program(
            &bench.path("bin/qemu-system-x86_64"),
            &format!(
                "while [ $# -gt 0 ]; do\n\
                 case $1 in file,id=console,path=*) console=${{1##*path=}} ;; -initrd) initrd=$2 ;;\n\
                 file=*,if=none,*) disk=${{1#file=}}; disk=${{disk%%,*}} ;; esac\n\
                 shift\n\
                 done\n\
                 exec 3>&0\n\
                 echo $$ >{}\n\
                 : >$console\n\
                 {script}",
                bench.path("pid").display(),
            ),
        );
        bench
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("altpipe-vm"));
        let path = std::env::var("PATH").unwrap();
        command
            .args(arguments)
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("TMPDIR", self.path("tmp"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut all = vec!["run", "--no-module"];
        all.extend(arguments);
        self.command(&all).output().unwrap()
    }

    /// Starts a run that hangs in its command, and waits until it does.
    fn hang(&self) -> Child {
        let child = self
            .command(&["run", "--no-module", "--", "sleep"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until("the machine runs", || {
            fs::read_to_string(self.path("pid")).is_ok_and(|pid| pid.ends_with('\n'))
        });
        child
    }

    fn machine_is_gone(&self) {
        let pid = fs::read_to_string(self.path("pid")).unwrap();
        let process = PathBuf::from("/proc").join(pid.trim());
        wait_until("the machine is gone", || !process.exists());
    }

    fn scratch(&self) -> usize {
        fs::read_dir(self.path("tmp")).unwrap().count()
    }
}

fn program(path: &Path, script: &str) {
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a shell's printf needs to write one cpio entry of a regular file.
fn entry(name: &str, content: &str) -> String {
    let fields = [
        1,
        0o100_644,
        0,
        0,
        1,
        0,
        content.len(),
        0,
        0,
        0,
        0,
        name.len() + 1,
        0,
    ];
    let header = fields.map(|field| format!("{field:08x}")).concat();
    let pad = |length: usize| "\\000".repeat(length.next_multiple_of(4) - length);
    format!(
        "070701{header}{name}\\000{}{content}{}",
        pad(110 + name.len() + 1),
        pad(content.len())
    )
}

fn ends_with(status: u8, results: &str) -> String {
    let archive = format!("{results}{}", entry("TRAILER!!!", ""));
    // What printf makes one byte of is four here.
    let length = archive.replace("\\000", " ").len();
    format!("echo booted >&3\nprintf 'status {status} 0 0 {length}\\n{archive}' >&3\nread done <&3")
}

#[test]
fn what_the_command_prints_and_its_status_come_through() {
    let bench = Bench::new(&format!(
        "echo to-stdout; echo to-stderr >&2\n{}",
        ends_with(7, "")
    ));
    let output = bench.run(&["--", "true"]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(text(&output.stdout), "to-stdout\n");
    assert_eq!(text(&output.stderr), "to-stderr\n");
    assert_eq!(bench.scratch(), 0);
}

#[test]
fn results_and_the_kernels_log_land_in_the_directory() {
    let script = format!(
        "echo booted >$console\n{}",
        ends_with(0, &entry("report.json", "{}"))
    );
    let bench = Bench::new(&script);
    let out = bench.path("deep/out");
    let output = bench.run(&["--out", out.to_str().unwrap(), "--", "true"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(out.join("report.json")).unwrap(), "{}");
    assert_eq!(
        fs::read_to_string(out.join("console.log")).unwrap(),
        "booted\n"
    );
}

#[test]
fn results_that_stop_short_are_no_success() {
    let bench = Bench::new("printf 'booted\\nstatus 0 0 0 6\\n070701' >&3");
    let out = bench.path("out");
    let output = bench.run(&["--out", out.to_str().unwrap(), "--", "true"]);
    assert_eq!(output.status.code(), Some(205));
    assert!(text(&output.stderr).contains("stop short"));
}

#[test]
fn a_report_of_the_kernel_outweighs_the_commands_success() {
    let script = format!(
        "echo '[    1.5] BUG: sleeping function' >$console\n{}",
        ends_with(0, "")
    );
    let bench = Bench::new(&script);
    let output = bench.run(&["--", "true"]);
    assert_eq!(output.status.code(), Some(203));
    let message = text(&output.stderr);
    assert!(message.contains("BUG: sleeping function"), "{message}");
    let log = message.trim_end().rsplit(' ').next().unwrap();
    assert!(
        fs::read_to_string(log)
            .unwrap()
            .contains("BUG: sleeping function"),
        "{message}"
    );
}

#[test]
fn a_machine_that_goes_away_is_told_from_a_command_that_fails() {
    let bench = Bench::new("echo booted >&3; exit 1");
    let output = bench.run(&["--", "true"]);
    assert_eq!(output.status.code(), Some(204));
    assert!(text(&output.stderr).contains("console.log"));
}

#[test]
fn a_module_that_does_not_load_is_named() {
    let bench = Bench::new("printf 'booted\\nno module 0 0\\n' >&3");
    let output = bench.run(&["--", "true"]);
    assert_eq!(output.status.code(), Some(205));
    assert!(text(&output.stderr).contains("module did not load"));
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    let bench = Bench::new("echo last words >$console; echo booted >&3; exec sleep 1000");
    let output = bench.run(&["--timeout", "1", "--", "true"]);
    assert_eq!(output.status.code(), Some(202));
    bench.machine_is_gone();
    let message = text(&output.stderr);
    let log = message.trim_end().rsplit(' ').next().unwrap();
    assert_eq!(
        fs::read_to_string(log).unwrap(),
        "last words\n",
        "{message}"
    );
}

#[test]
fn told_to_stop_it_ends_the_machine_and_leaves_nothing_behind() {
    let bench = Bench::new("echo booted >&3; exec sleep 1000");
    let mut child = bench.hang();
    let killed = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    bench.machine_is_gone();
    assert_eq!(bench.scratch(), 0);
}

#[test]
fn killed_outright_it_takes_the_machine_along() {
    let bench = Bench::new("echo booted >&3; exec sleep 1000");
    let mut child = bench.hang();
    child.kill().unwrap();
    child.wait().unwrap();
    bench.machine_is_gone();
}

#[test]
fn each_boot_has_its_seed_its_folder_and_its_say() {
    let script = format!(
        "seed=$(grep -a -o 'seed-[0-9]*' $initrd); echo $seed\n[ $seed != seed-12 ] || {{ {}\n exit; }}\n{}",
        ends_with(3, ""),
        ends_with(0, "")
    );
    let bench = Bench::new(&script);
    let out = bench.path("out");
    let output = bench
        .command(&[
            "boots",
            "--no-module",
            "--count",
            "3",
            "--jobs",
            "2",
            "--seed",
            "11",
            "--out",
        ])
        .arg(&out)
        .args(["--", "echo", "seed-{seed}"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    for (number, seed) in [(1, 11), (2, 12), (3, 13)] {
        let stdout = out.join(format!("boot-{number}/stdout"));
        assert_eq!(
            fs::read_to_string(stdout).unwrap(),
            format!("seed-{seed}\n")
        );
    }
    let lines = text(&output.stderr);
    assert_eq!(lines.matches(": done").count(), 2, "{lines}");
    assert!(
        lines.contains("boot 2 of 3, seed 12: exit status 3"),
        "{lines}"
    );
}

#[test]
fn a_machine_lost_before_our_init_is_tried_again_and_no_other() {
    let once = "first=${console%/*}/../first; if [ ! -e $first ]; then : >$first;";
    let lost = "echo '[    1.4] Oops: int3: 0000' >$console; exit 0; fi";
    let bench = Bench::new(&format!("{once} {lost}\n{}", ends_with(0, "")));
    let output = bench.run(&["--", "true"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("trying again"));

    let bench = Bench::new(&format!(
        "{once} echo booted >&3; {lost}\n{}",
        ends_with(0, "")
    ));
    assert_eq!(bench.run(&["--", "true"]).status.code(), Some(203));
}

#[test]
fn a_rootfs_is_made_once_and_given_to_the_machine_as_a_disk() {
    let script = format!("echo $disk\n{}", ends_with(0, ""));
    let bench = Bench::new(&script);
    let cache = bench.path("cache/altpipe");
    fs::write(cache.join("sources.list"), "deb first\ndeb second\n").unwrap();
    // The last three words are the release, the folder and the list.
    let made = bench.path("made");
    program(
        &bench.path("bin/mmdebstrap"),
        &format!(
            "while [ $# -gt 2 ]; do shift; done\n\
             mkdir -p $1/etc; cp $2 $1/etc/list; echo made >>{}",
            made.display()
        ),
    );
    for _ in 0..2 {
        let output = bench.run(&["--rootfs", "--", "true"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let disk = text(&output.stdout);
        assert!(disk.contains("/rootfs-"), "{disk}");
        assert!(fs::metadata(disk.trim()).unwrap().len() > 100 << 20);
    }
    assert_eq!(fs::read_to_string(&made).unwrap(), "made\n");
    assert!(!cache.join("rootfs.new").exists());
}

#[test]
fn a_rootfs_that_cannot_be_made_is_an_error_and_leaves_no_image() {
    let bench = Bench::new(&ends_with(0, ""));
    let cache = bench.path("cache/altpipe");
    fs::write(cache.join("sources.list"), "deb first\n").unwrap();
    program(
        &bench.path("bin/mmdebstrap"),
        "echo the archive is gone; exit 1",
    );
    let output = bench.run(&["--rootfs", "--", "true"]);
    assert_eq!(output.status.code(), Some(205));
    assert!(text(&output.stderr).contains("the archive is gone"));
    let image = fs::read_dir(&cache)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .find(|name| name.ends_with(".ext4"));
    assert_eq!(image, None);
}
