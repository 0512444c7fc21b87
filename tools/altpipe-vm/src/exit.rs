// SPDX-License-Identifier: GPL-2.0
//! Our exit status: the command's own, except for these.

/// The kernel did not come up in time.
pub const BOOT_TIMEOUT: u8 = 201;
/// The command did not end in time.
pub const COMMAND_TIMEOUT: u8 = 202;
/// The kernel's log has a report of a fault in it.
pub const KERNEL_REPORT: u8 = 203;
/// The machine went away before the command ended.
pub const VANISHED: u8 = 204;
/// Set-up, the module, QEMU or the host failed.
pub const SETUP: u8 = 205;

/// Told to stop by a signal: as shells count it.
pub fn interrupted(signal: u8) -> u8 {
    128 + signal
}

/// The table for the help text.
pub const HELP: &str = "\
Exit status: that of the command, except
  201  the kernel did not come up in time
  202  the command did not end in time (--timeout)
  203  the kernel reported a fault: BUG, WARNING, Oops, lockdep, hung task ...
  204  the machine went away before the command ended
  205  set-up, the module, QEMU or the host failed
  128+N  stopped by signal N";
