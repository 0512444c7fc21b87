// SPDX-License-Identifier: GPL-2.0
//! A case's own process group, and the watchdog over it.
//!
//! The verdict travels over a socket, not over a pipe: pipes are what is being tested. Whichever
//! process or thread of the case panics first reports and ends its process, so that a failed
//! assertion in a helper thread is not hidden behind a join that never returns.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::panic;
use std::process;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open, setpgid, waitpgid,
    waitpid,
};

/// How a case ended.
#[derive(Debug)]
pub enum Outcome {
    /// Every assertion held.
    Passed,
    /// The running kernel lacks what the case rests on.
    Skipped(String),
    /// An assertion failed, the child died, or time ran out.
    Failed(String),
}

// The reporting end of the socket, for the panic hook and for `skip`. Set once, in the child.
static REPORT: AtomicI32 = AtomicI32::new(-1);

const FAILED: u8 = b'F';
const NOTED: u8 = b'N';
const SKIPPED: u8 = b'S';

/// Ends the case here: what it rests on is missing.
pub fn skip(reason: &str) -> ! {
    report(SKIPPED, reason);
    process::exit(0)
}

/// Says what the case is at; the last such note stands in the message of a failure, a hang or crash
/// among them.
pub fn note(text: &str) {
    report(NOTED, text);
}

/// Runs `body` in a forked child and says how it ended; nothing the child does ends the caller.
///
/// The caller must have one thread only, since the child goes on as a full program. Processes which
/// the child leaves behind are killed and reaped before this returns, so that no end of a pipe
/// outlives its case.
pub fn isolate(timeout: Duration, body: impl FnOnce()) -> io::Result<Outcome> {
    let (ours, theirs) = socket()?;
    // SAFETY: one thread only, as documented, so no lock of the library can be held by a thread
    // that the child lacks.
    let pid = match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {
            drop(ours);
            run(theirs.as_raw_fd(), body)
        }
        pid => Pid::from_raw(pid).expect("fork returns a positive id"),
    };
    drop(theirs);
    // Both sides set the group, so it exists whoever runs first. The child may be gone already.
    let _ = setpgid(Some(pid), Some(pid));

    let mut noted = String::new();
    let ended = wait(pid, &ours, &mut noted, timeout)?;
    let failed = |what: String| {
        Ok(Outcome::Failed(if noted.is_empty() {
            what
        } else {
            format!("{what} (at {noted})")
        }))
    };
    // Before the tasks are killed: where they are is what one needs to know of a hang.
    let tasks = describe_group(pid);
    let _ = kill_process_group(pid, Signal::KILL);
    if !dies(pid, Duration::from_secs(5))? {
        return failed(format!("cannot be killed: {}", describe_group(pid)));
    }
    let status = waitpid(Some(pid), WaitOptions::empty())?.map(|(_, status)| status);
    while waitpgid(pid, WaitOptions::empty()).is_ok() {}
    match ended {
        Ended::Failed(message) => return failed(message),
        Ended::Skipped(reason) => return Ok(Outcome::Skipped(reason)),
        Ended::TimedOut => {
            return failed(format!(
                "timed out after {} s: {tasks}",
                timeout.as_secs_f32()
            ));
        }
        Ended::Exited => {}
    }
    match status.map(|status| (status.exit_status(), status.terminating_signal())) {
        Some((Some(0), _)) => Ok(Outcome::Passed),
        Some((Some(code), _)) => failed(format!("exit status {code}")),
        Some((None, Some(signal))) => failed(format!("killed by signal {signal}")),
        _ => failed("ended in no known way".into()),
    }
}

fn run(report_to: RawFd, body: impl FnOnce()) -> ! {
    let _ = setpgid(None, None);
    REPORT.store(report_to, Ordering::Relaxed);
    panic::set_hook(Box::new(|info| {
        let message = match (
            info.payload().downcast_ref::<&str>(),
            info.payload().downcast_ref::<String>(),
        ) {
            (Some(text), _) => text,
            (_, Some(text)) => text.as_str(),
            _ => "panic",
        };
        let place = info
            .location()
            .map(|l| format!("{}:{}: ", l.file(), l.line()))
            .unwrap_or_default();
        report(FAILED, &format!("{place}{message}"));
        // SAFETY: ends the process at once; unwinding could wait for threads that are asleep for
        // ever.
        unsafe { libc::_exit(1) }
    }));
    body();
    // SAFETY: as above: a detached thread must not be able to hold up the end.
    unsafe { libc::_exit(0) }
}

fn socket() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [-1; 2];
    // SAFETY: the array has room for the two descriptors the call writes.
    let ret = unsafe {
        libc::socketpair(
            libc::AF_UNIX,
            libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC,
            0,
            fds.as_mut_ptr(),
        )
    };
    if ret != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so both are open and nobody else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

fn report(kind: u8, text: &str) {
    let mut packet = vec![kind];
    packet.extend_from_slice(&text.as_bytes()[..text.len().min(2000)]);
    // SAFETY: the buffer is valid for its length. Failure leaves the exit status, which tells
    // enough.
    unsafe {
        libc::send(
            REPORT.load(Ordering::Relaxed),
            packet.as_ptr().cast(),
            packet.len(),
            libc::MSG_NOSIGNAL,
        )
    };
}

// The next packet: its kind and its text.
fn receive(from: &OwnedFd) -> Option<(u8, String)> {
    let mut packet = [0u8; 4096];
    // SAFETY: the buffer is valid for its length.
    let len = unsafe {
        libc::recv(
            from.as_raw_fd(),
            packet.as_mut_ptr().cast(),
            packet.len(),
            libc::MSG_DONTWAIT,
        )
    };
    let (kind, text) = packet.get(..usize::try_from(len).ok()?)?.split_first()?;
    Some((*kind, String::from_utf8_lossy(text).into_owned()))
}

enum Ended {
    Failed(String),
    Skipped(String),
    Exited,
    TimedOut,
}

// Waits for a report or for the child's end. A report comes first where a helper process failed
// while the others wait for it.
fn wait(pid: Pid, report: &OwnedFd, noted: &mut String, timeout: Duration) -> io::Result<Ended> {
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let deadline = Instant::now() + timeout;
    let mut polled = vec![
        PollFd::new(&pidfd, PollFlags::IN),
        PollFd::new(report, PollFlags::IN),
    ];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut polled, Some(&left)) {
            Ok(0) => return Ok(Ended::TimedOut),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        while let Some((kind, text)) = receive(report) {
            match kind {
                NOTED => *noted = text,
                SKIPPED => return Ok(Ended::Skipped(text)),
                _ => return Ok(Ended::Failed(text)),
            }
        }
        if !polled[0].revents().is_empty() {
            return Ok(Ended::Exited);
        }
        if polled
            .last()
            .is_some_and(|report| report.revents().contains(PollFlags::HUP))
        {
            // The child closed its end of the socket on its way out; only its death remains to be
            // seen.
            polled.truncate(1);
        }
    }
}

fn dies(pid: Pid, timeout: Duration) -> io::Result<bool> {
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let timeout = Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: 0,
    };
    Ok(poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&timeout))? > 0)
}

// Where each thread of the group is: what one needs to know of a hang in the kernel.
fn describe_group(group: Pid) -> String {
    let mut text = String::new();
    let Ok(processes) = fs::read_dir("/proc") else {
        return text;
    };
    for process in processes.flatten() {
        let in_group = fs::read_to_string(process.path().join("stat"))
            .ok()
            .and_then(|stat| {
                stat.rsplit(')')
                    .next()?
                    .split_whitespace()
                    .nth(2)?
                    .parse::<i32>()
                    .ok()
            })
            == Some(group.as_raw_nonzero().get());
        let Ok(threads) = fs::read_dir(process.path().join("task")) else {
            continue;
        };
        for thread in threads.flatten().filter(|_| in_group) {
            let read =
                |file: &str| fs::read_to_string(thread.path().join(file)).unwrap_or_default();
            let state = read("stat")
                .rsplit(')')
                .next()
                .and_then(|rest| rest.trim().chars().next())
                .unwrap_or('?');
            let call = read("syscall");
            let call = call
                .split_whitespace()
                .take(2)
                .collect::<Vec<_>>()
                .join(" ");
            let _ = write!(
                text,
                "[task {} {state} {} call {call}] ",
                thread.file_name().to_string_lossy(),
                read("wchan").trim()
            );
        }
    }
    text
}
