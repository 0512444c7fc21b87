// SPDX-License-Identifier: GPL-2.0
//! Cases that must fail, each in its own way: they show that the runner notices.

use std::process;
use std::thread::scope;

use rustix::process::{Signal, getpid, kill_process};

use crate::case::{Area, Case};
use crate::child::{note, skip};
use crate::end::read;
use crate::process::Process;
use crate::subject::Subject;
use crate::task::{Call, Task};

/// The controls.
pub const AREA: Area = Area {
    name: "controls",
    cases: &[
        Case::every("an assertion fails", assertion),
        Case::every(
            "an assertion fails in a thread for which the case waits",
            assertion_in_thread,
        ),
        Case::every(
            "an assertion fails in a process for which the case waits",
            assertion_in_process,
        ),
        Case::every("a signal kills the case", killed),
        Case::every("the case ends with a status of its own", status),
        Case::every("the case sleeps for ever", hang),
        Case::every(
            "a process that the case left behind sleeps for ever",
            hang_left_behind,
        ),
        Case::every("the case finds that it cannot run here", skipped),
    ],
};

fn assertion(_: &Subject) {
    assert_eq!(1 + 1, 3, "sums");
}

fn assertion_in_thread(subject: &Subject) {
    let pipe = subject.pipe();
    scope(|s| {
        Task::spawn(s, || panic!("in a thread"));
        read(&pipe.read, 1)
    })
    .unwrap();
}

fn assertion_in_process(subject: &Subject) {
    let pipe = subject.pipe();
    Process::fork(|| panic!("in a process"));
    read(&pipe.read, 1).unwrap();
}

fn killed(_: &Subject) {
    kill_process(getpid(), Signal::KILL).unwrap();
}

fn status(_: &Subject) {
    process::exit(3);
}

fn hang(subject: &Subject) {
    note("the read");
    read(subject.pipe().read, 1).unwrap();
}

// Not a failure: the child is killed with its group, and the case has passed.
fn hang_left_behind(subject: &Subject) {
    let pipe = subject.pipe();
    let child = Process::fork(|| _ = read(&pipe.read, 1));
    child.watched().until_asleep(Call::Read, &pipe.read);
}

fn skipped(_: &Subject) {
    skip("not on this machine");
}
