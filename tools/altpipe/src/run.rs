// SPDX-License-Identifier: GPL-2.0
//! `altpipe run`: somebody else's program on altpipe's pipes.

mod injection;
mod report;
mod supervision;
mod tally;

use std::io;
use std::path::Path;

use altpipe_core::Config;
use altpipe_preload::settings::LONGEST_CONFIG;
use altpipe_uapi::{Flags, get_config};
use anyhow::{Context, Result, anyhow, ensure};

use crate::cli;
use crate::device::{Absent, Device};
use crate::run::injection::{Injection, Preload};
use crate::run::report::Report;
use crate::run::supervision::End;
use crate::run::tally::Tally;
use crate::sysfs::Sysfs;

/// The command succeeded on native pipes, or on none.
const NONE_OF_OURS: u8 = 123;
/// The command was not begun.
const NOT_BEGUN: u8 = 125;
/// The command is there and cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// The command is not there.
const NOT_FOUND: u8 = 127;

/// What a user should know of it.
pub const HELP: &str = "\
The command, and every program it starts, gets pipes of altpipe's where it calls pipe, pipe2 or popen, and fcntl answers
F_GETPIPE_SZ and F_SETPIPE_SZ on them. When the command has ended, a line on standard error says how many pipes were
altpipe's and how many native; so does the JSON.

A pipe is native where altpipe cannot make it:
  device   the device cannot be opened from there: another user, a chroot
  room     two descriptors were free, but not the third that is needed for a moment
  flags    a notification pipe (O_NOTIFICATION_PIPE)
  refused  the module refused the config, such as a capacity above the user's limit

What is neither altpipe's nor counted: pipes of static programs; of programs that run with other privileges than their
caller's (set-user-ID); of programs that clear their environment, and what these start; of programs of another word
size; pipes that the C library makes for itself (wordexp) or a program by system calls of its own (Go). A program that
forbids itself open or ioctl by seccomp gets native pipes, or dies of it if its filter says so. In a chroot the linker
does not find the library, and says so for each program. What goes on running when the command has ended is not waited
for.

The library that does it is libaltpipe_preload.so, beside this program or in ../lib/altpipe from there, or what
ALTPIPE_PRELOAD names. It needs glibc 2.34 or newer.

Exit status: that of the command, 128+N where signal N ended it, except
  123  the command succeeded, and none of its pipes was altpipe's (with --fallback only where altpipe is loaded)
  125  the command was not begun: altpipe is not loaded, the config is wrong, the library is lacking
  126  the command cannot be executed
  127  there is no such command";

/// Runs the command; returns our exit status.
pub fn run(arguments: &cli::Run, device: &Path, sysfs: &Sysfs) -> u8 {
    match supervise(arguments, device, sysfs) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("altpipe run: {error:#}");
            match error.downcast_ref::<NotStarted>() {
                Some(NotStarted { reason, .. }) if reason.kind() == io::ErrorKind::NotFound => {
                    NOT_FOUND
                }
                Some(_) => NOT_EXECUTABLE,
                None => NOT_BEGUN,
            }
        }
    }
}

/// The command itself could not be executed.
#[derive(Debug)]
struct NotStarted {
    command: String,
    reason: io::Error,
}

impl std::fmt::Display for NotStarted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.command, self.reason)
    }
}

impl std::error::Error for NotStarted {}

fn supervise(arguments: &cli::Run, device: &Path, sysfs: &Sysfs) -> Result<u8> {
    let config = &arguments.config;
    Config::parse(config, &Config::DEFAULT)
        .map_err(|error| anyhow!("the config {config:?}: {error}"))?;
    ensure!(
        config.len() <= LONGEST_CONFIG,
        "the config is longer than {LONGEST_CONFIG} bytes"
    );
    // Held open to the end: the module keeps its file system mounted meanwhile, and stays.
    let opened = match Device::open(device, sysfs) {
        Ok(opened) => Some(opened),
        Err(error) if arguments.fallback && error.is::<Absent>() => None,
        Err(error) => return Err(error),
    };
    let made = opened
        .as_ref()
        .map(|device| made(device, config))
        .transpose()?;
    let tally = Tally::new().context("making a page to count in")?;
    let injection = Preload::find()?;
    let mut command = injection::command(&arguments.command);
    injection.prepare(&mut command, device, config, &tally)?;

    let end = supervision::run(&mut command).map_err(|reason| NotStarted {
        command: arguments.command[0].to_string_lossy().into_owned(),
        reason,
    })?;
    let report = Report {
        command: &arguments.command,
        config: made,
        pipes: tally.pipes(),
        end,
        exit: exit_status(end, tally.pipes().altpipe, opened.is_some()),
    };
    report.print();
    if let Some(file) = &arguments.json {
        report.write(file)?;
    }
    Ok(report.exit)
}

/// The whole config of a pipe that is made as the command's will be. One that the module refuses is noticed here.
fn made(device: &Device, config: &str) -> Result<String> {
    let (reader, _writer) = device
        .control
        .create(Flags::CLOEXEC, config)
        .with_context(|| {
            format!(
                "the module makes no pipe of {config:?}: compare its knobs with `altpipe status`"
            )
        })?;
    get_config(&reader).context("asking a pipe for its config")
}

/// Our exit status. That no pipe was ours must not pass for a result; but a command that failed says more.
fn exit_status(end: End, ours: u64, loaded: bool) -> u8 {
    match end.status() {
        0 if ours == 0 && loaded => NONE_OF_OURS,
        status => status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_status_passes_through_unless_it_hides_that_no_pipe_was_ours() {
        for (end, ours, loaded, expected) in [
            (End::Exited(0), 3, true, 0),
            (End::Exited(0), 0, true, NONE_OF_OURS),
            (End::Exited(0), 0, false, 0),
            (End::Exited(7), 0, true, 7),
            (End::Exited(255), 1, true, 255),
            (End::Killed(11), 0, true, 139),
            (End::Killed(15), 2, false, 143),
        ] {
            assert_eq!(exit_status(end, ours, loaded), expected, "{end:?} {ours}");
        }
    }
}
