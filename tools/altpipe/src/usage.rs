// SPDX-License-Identifier: GPL-2.0
//! What a task has used: CPU time and context switches, as the kernel accounts them.

use std::fs;
use std::io;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// Totals since a task began, or the difference of two such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// User time in microseconds.
    pub user_us: u64,
    /// System time in microseconds.
    pub system_us: u64,
    /// Times the task slept.
    pub voluntary: u64,
    /// Times the task was preempted.
    pub involuntary: u64,
}

impl Usage {
    /// Of the calling process.
    pub fn own() -> io::Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_SELF)?;
        Ok(Self {
            user_us: usage.user_time().num_microseconds() as u64,
            system_us: usage.system_time().num_microseconds() as u64,
            voluntary: usage.voluntary_context_switches() as u64,
            involuntary: usage.involuntary_context_switches() as u64,
        })
    }

    /// What was used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_us: self.user_us - earlier.user_us,
            system_us: self.system_us - earlier.system_us,
            voluntary: self.voluntary - earlier.voluntary,
            involuntary: self.involuntary - earlier.involuntary,
        }
    }
}

/// Totals of another process of one thread, seen from outside. The kernel shows its CPU time there as one figure;
/// user and system are kept apart in clock ticks only, too coarse to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    /// CPU time in nanoseconds.
    pub cpu_ns: u64,
    /// Times the process slept.
    pub voluntary: u64,
    /// Times the process was preempted.
    pub involuntary: u64,
}

impl Outside {
    /// Of the process `pid`.
    pub fn of(pid: Pid) -> io::Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let cpu = clock_gettime(clock_getcpuclockid(pid)?)?;
        Ok(Self {
            cpu_ns: cpu.num_nanoseconds() as u64,
            voluntary: field(&status, "voluntary_ctxt_switches:")?,
            involuntary: field(&status, "nonvoluntary_ctxt_switches:")?,
        })
    }
}

/// Context switches of the whole machine since it booted.
pub fn machine_switches() -> Option<u64> {
    field(&fs::read_to_string("/proc/stat").ok()?, "ctxt").ok()
}

/// The monotonic clock in nanoseconds.
pub fn now_ns() -> io::Result<u64> {
    Ok(clock_gettime(ClockId::CLOCK_MONOTONIC)?.num_nanoseconds() as u64)
}

/// The number after `name` at the start of a line.
fn field(text: &str, name: &str) -> io::Result<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
        .ok_or_else(|| io::Error::other(format!("the kernel shows no {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_usage_grows_with_work() {
        let before = Usage::own().unwrap();
        let until = now_ns().unwrap() + 20_000_000;
        while now_ns().unwrap() < until {}
        let used = Usage::own().unwrap().since(before);
        assert!(used.user_us + used.system_us > 1000, "{used:?}");
    }

    #[test]
    fn another_process_is_seen_from_outside() {
        let seen = Outside::of(Pid::this()).unwrap();
        assert!(seen.cpu_ns > 0);
    }

    #[test]
    fn a_field_is_found_at_the_start_of_its_line_only() {
        let text = "nonvoluntary_ctxt_switches:\t7\nvoluntary_ctxt_switches:\t12\n";
        assert_eq!(field(text, "voluntary_ctxt_switches:").unwrap(), 12);
        assert!(field(text, "ctxt").is_err());
    }
}
