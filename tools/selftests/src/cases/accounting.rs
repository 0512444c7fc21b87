// SPDX-License-Identifier: GPL-2.0
//! Memory in a pipe is on the account of the control group of the task that wrote it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::geteuid;

use crate::case::{Area, Case};
use crate::child::skip;
use crate::end::{PAGE, checked, fill, read_exact};
use crate::process::Process;
use crate::subject::{Pipe, Subject};

/// Cases about memory control groups.
pub const AREA: Area = Area {
    name: "accounting",
    cases: &[
        Case::every(
            "the writer's control group pays for what lies in a pipe, until it is read",
            writer_pays,
        ),
        Case::every(
            "a control group's limit holds for what its tasks put into pipes",
            limit_holds,
        ),
    ],
};

const MIB: usize = 1 << 20;

/// A control group with the memory controller.
struct Group {
    root: PathBuf,
    group: PathBuf,
}

impl Group {
    fn new() -> Self {
        if !geteuid().is_root() {
            skip("only root can make a control group");
        }
        let root = std::env::temp_dir().join(format!("altpipe-selftests.{}.cgroup", process::id()));
        fs::create_dir(&root).expect("mkdir");
        let mounted = mount("none", &root, "cgroup2", MountFlags::empty(), None);
        if mounted.is_err() {
            let _ = fs::remove_dir(&root);
            skip("no cgroup2 here");
        }
        let group = root.join(format!("altpipe-selftests.{}", process::id()));
        let this = Self { root, group };
        let enabled = fs::write(this.root.join("cgroup.subtree_control"), "+memory");
        if enabled.is_err() || fs::create_dir(&this.group).is_err() {
            drop(this);
            skip("no control over memory here");
        }
        this
    }

    fn file(&self, name: &str) -> PathBuf {
        self.group.join(name)
    }

    /// The bytes on its account.
    fn current(&self) -> usize {
        number(&self.file("memory.current"))
    }

    /// Runs `body` in a process of the group.
    fn run(&self, body: impl FnOnce()) -> Process {
        Process::fork(|| {
            fs::write(self.file("cgroup.procs"), process::id().to_string()).expect("join");
            body();
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group empties some time after its last task went.
        let deadline = Instant::now() + Duration::from_secs(5);
        while let Err(error) = fs::remove_dir(&self.group) {
            if error.kind() == ErrorKind::NotFound || Instant::now() > deadline {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = unmount(&self.root, UnmountFlags::DETACH);
        let _ = fs::remove_dir(&self.root);
    }
}

fn number(file: &Path) -> usize {
    let text = fs::read_to_string(file).expect("a file of the group");
    text.trim().parse().expect("a number")
}

fn writer_pays(subject: &Subject) {
    let group = Group::new();
    let Pipe { read: r, write: w } = subject.pipe();
    subject.resize(&r, 4 * MIB as u32).expect("root may");
    let before = group.current();
    group.run(|| assert_eq!(fill(&w, PAGE), 4 * MIB)).succeed();
    // Whose process is gone, and its memory with it.
    let full = group.current();
    assert!(full >= before + 4 * MIB, "{before} and 4 MiB are {full}");
    read_exact(&r, 4 * MIB);
    drop((r, w));
    let deadline = Instant::now() + Duration::from_secs(5);
    // Each processor may hold some of it back for what comes next.
    while group.current() > full - 2 * MIB {
        assert!(
            Instant::now() < deadline,
            "{full} is {} now",
            group.current()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

// Without a limit that holds a user could put all memory of the machine into pipes.
fn limit_holds(subject: &Subject) {
    let group = Group::new();
    let Pipe { read: r, write: w } = subject.pipe();
    subject.resize(&r, 16 * MIB as u32).expect("root may");
    fs::write(group.file("memory.max"), (4 * MIB).to_string()).expect("memory.max");
    let writer = group.run(|| {
        let piece = [b'x'; PAGE];
        loop {
            // SAFETY: a page of our own.
            let taken = checked(unsafe {
                libc::write(crate::end::number(&w), piece.as_ptr().cast(), PAGE)
            });
            assert_eq!(taken, Ok(PAGE));
        }
    });
    let status = writer.wait();
    assert_eq!(
        status.terminating_signal(),
        Some(libc::SIGKILL),
        "{status:?}"
    );
    assert!(group.current() <= 4 * MIB);
    assert!(crate::end::queued(&r) <= 4 * MIB);
}
