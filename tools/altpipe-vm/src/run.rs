// SPDX-License-Identifier: GPL-2.0
//! One command in one boot.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::accel::{self, Accelerator};
use crate::cache::Cache;
use crate::checkout::Checkout;
use crate::cpio;
use crate::exit;
use crate::guest::Guest;
use crate::interrupt::Interrupt;
use crate::kernel::Kernel;
use crate::machine::{End, Machine};
use crate::rootfs;

/// Our programs that every machine has on its PATH, where they have been built, and what lies beside them.
const PROGRAMS: &[&str] = &["altpipe", "altpipe-selftests", "libaltpipe_preload.so"];

/// The machine that a command line asks for.
pub struct Wish {
    pub icount: bool,
    pub processors: u32,
    pub memory_mib: u32,
    pub timeout: Duration,
    pub files: Vec<PathBuf>,
    pub module: bool,
    pub rootfs: bool,
    pub image: Option<PathBuf>,
}

impl Wish {
    /// Makes it, with the best accelerator there is.
    pub fn machine(
        &self,
        cache: &Cache,
        checkout: &Checkout,
        kernel: &Kernel,
        interrupt: &Interrupt,
    ) -> Result<Machine> {
        let module = kernel.module(checkout);
        if self.module && !module.exists() {
            bail!(
                "{} is not there: run `make {}`, or do without it (--no-module)",
                module.display(),
                kernel.target()
            );
        }
        let accelerator = if self.icount {
            Accelerator::Icount
        } else {
            accel::pick(cache, || probe_kvm(kernel, interrupt))?
        };
        Ok(Machine {
            image: self.image.clone().unwrap_or_else(|| kernel.image()),
            board: kernel.board(),
            parameters: kernel.parameters(),
            accelerator,
            processors: if self.icount { 1 } else { self.processors },
            memory_mib: self.memory_mib,
            guest: Guest {
                busybox: kernel.busybox(),
                programs: PROGRAMS
                    .iter()
                    .map(|name| checkout.program(name))
                    .filter(|program| program.exists())
                    .collect(),
                module: self.module.then_some(module),
                files: self.files.clone(),
                in_disk: self.rootfs,
                command: None,
            },
            disk: self.rootfs.then(|| rootfs::set_up(cache)).transpose()?,
            timeout: self.timeout,
        })
    }
}

/// Does a guest of this host run under KVM at all?
fn probe_kvm(kernel: &Kernel, interrupt: &Interrupt) -> Result<bool> {
    let scratch = tempfile::tempdir()?;
    let machine = Machine {
        image: kernel.image(),
        board: kernel.board(),
        parameters: kernel.parameters(),
        accelerator: Accelerator::Kvm,
        processors: 1,
        memory_mib: 256,
        guest: Guest {
            busybox: kernel.busybox(),
            command: Some(vec!["true".into()]),
            ..Guest::default()
        },
        disk: None,
        timeout: Duration::from_secs(10),
    };
    let end = machine.run(scratch.path(), interrupt, io::sink(), io::sink())?;
    Ok(matches!(end, End::Exited { status: 0, .. }))
}

/// How a run ended, for people and for our exit status.
pub struct Outcome {
    /// The command's own exit status, or one of `exit`'s.
    pub status: u8,
    /// What kept the command from an exit status of its own.
    pub fault: Option<String>,
}

impl Outcome {
    /// Judges an end; results are unpacked into `out`.
    pub fn conclude(end: End, out: Option<&Path>) -> Result<Self> {
        let (status, fault) = match end {
            End::Exited { status, results } => {
                if let Some(out) = out {
                    cpio::unpack(&results, out)?;
                }
                return Ok(Self {
                    status,
                    fault: None,
                });
            }
            End::Interrupted(signal) => (
                exit::interrupted(signal),
                format!("stopped by signal {signal}"),
            ),
            End::NoModule => (exit::SETUP, "the module did not load".into()),
            End::BootTimeout => (
                exit::BOOT_TIMEOUT,
                "the kernel did not come up in time".into(),
            ),
            End::CommandTimeout => (
                exit::COMMAND_TIMEOUT,
                "the command did not end in time".into(),
            ),
            End::Vanished(status) => (
                exit::VANISHED,
                format!("the machine went away before the command ended (qemu: {status})"),
            ),
            End::Reported(lines) => (
                exit::KERNEL_REPORT,
                format!("the kernel reported a fault:\n  {}", lines.join("\n  ")),
            ),
        };
        Ok(Self {
            status,
            fault: Some(fault),
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            Some(fault) => f.write_str(fault),
            None => write!(f, "exit status {}", self.status),
        }
    }
}

/// Runs the machine's command with its output on `stdout` and our standard
/// error. Results and the kernel's log go to `out`; without it the log is kept
/// only where something is wrong with the kernel.
pub fn run(
    machine: &Machine,
    out: Option<&Path>,
    interrupt: &Interrupt,
    stdout: impl Write + Send + 'static,
) -> Result<Outcome> {
    if let Some(out) = out {
        fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    }
    let scratch = tempfile::Builder::new().prefix("altpipe-vm.").tempdir()?;
    let log = scratch.path().join("console.log");
    let end = machine.run(scratch.path(), interrupt, stdout, io::stderr())?;
    let interrupted = matches!(end, End::Interrupted(_));
    let outcome = Outcome::conclude(end, out)?;
    let log = match out {
        Some(out) => {
            let kept = out.join("console.log");
            fs::copy(&log, &kept).with_context(|| format!("cannot write {}", kept.display()))?;
            kept
        }
        None if outcome.fault.is_some() && !interrupted => {
            let kept = scratch.keep();
            fs::remove_file(kept.join("initramfs"))?;
            kept.join("console.log")
        }
        None => log,
    };
    if let Some(fault) = &outcome.fault {
        eprintln!("altpipe-vm: {fault}");
        if !interrupted {
            eprintln!("altpipe-vm: the kernel's log is in {}", log.display());
        }
    }
    Ok(outcome)
}
