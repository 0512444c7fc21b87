// SPDX-License-Identifier: GPL-2.0
//! One command in one boot.

use std::fs;
use std::io;
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
use crate::kernel::{Kernel, stock};
use crate::machine::{End, Machine};

/// Our programs that every machine has on its PATH, where they have been built.
const PROGRAMS: &[&str] = &["altpipe", "altpipe-selftests"];

/// The machine that a command line asks for.
pub struct Wish {
    pub icount: bool,
    pub processors: u32,
    pub memory_mib: u32,
    pub timeout: Duration,
    pub files: Vec<PathBuf>,
    pub module: bool,
    pub image: Option<PathBuf>,
}

impl Wish {
    /// Makes it: sets up what is not there yet, chooses the accelerator.
    pub fn machine(
        &self,
        cache: &Cache,
        checkout: &Checkout,
        interrupt: &Interrupt,
    ) -> Result<Machine> {
        let kernel = stock::set_up(cache, checkout, false)?;
        let module = checkout.path("rust/altpipe.ko");
        if self.module && !module.exists() {
            bail!(
                "{} is not there: run `make modules`, or do without it (--no-module)",
                module.display()
            );
        }
        let accelerator = if self.icount {
            Accelerator::Icount
        } else {
            accel::pick(cache, || probe_kvm(&kernel, interrupt))?
        };
        Ok(Machine {
            image: self.image.clone().unwrap_or_else(|| kernel.image()),
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
                command: None,
            },
            timeout: self.timeout,
        })
    }
}

/// Does a guest of this host run under KVM at all?
fn probe_kvm(kernel: &Kernel, interrupt: &Interrupt) -> Result<bool> {
    let scratch = tempfile::tempdir()?;
    let machine = Machine {
        image: kernel.image(),
        accelerator: Accelerator::Kvm,
        processors: 1,
        memory_mib: 256,
        guest: Guest {
            busybox: kernel.busybox(),
            command: Some(vec!["true".into()]),
            ..Guest::default()
        },
        timeout: Duration::from_secs(10),
    };
    let end = machine.run(scratch.path(), interrupt, io::sink(), io::sink())?;
    Ok(matches!(end, End::Exited { status: 0, .. }))
}

/// Runs the machine's command with its output on ours; returns our exit status.
/// Results and the kernel's log go to `out`.
pub fn run(machine: &Machine, out: Option<&Path>, interrupt: &Interrupt) -> Result<u8> {
    let scratch = tempfile::Builder::new().prefix("altpipe-vm.").tempdir()?;
    if let Some(out) = out {
        fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    }
    let end = machine.run(scratch.path(), interrupt, io::stdout(), io::stderr())?;
    let mut log = scratch.path().join("console.log");
    if let Some(out) = out {
        let kept = out.join("console.log");
        fs::copy(&log, &kept)?;
        log = kept;
    }
    let keep_log = !matches!(end, End::Exited { .. } | End::Interrupted(_));
    let status = conclude(end, out)?;
    if keep_log {
        if out.is_none() {
            // The scratch directory stays, for the log in it.
            let kept = scratch.keep();
            fs::remove_file(kept.join("initramfs"))?;
        }
        eprintln!("altpipe-vm: the kernel's log is in {}", log.display());
    }
    Ok(status)
}

/// Says how a run ended, unpacks its results, and gives our exit status.
pub fn conclude(end: End, out: Option<&Path>) -> Result<u8> {
    let (status, message) = match end {
        End::Exited { status, results } => {
            if let Some(out) = out {
                cpio::unpack(&results, out)?;
            }
            return Ok(status);
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
            format!("the machine went away before the command ended ({status})"),
        ),
        End::Reported(lines) => (
            exit::KERNEL_REPORT,
            format!("the kernel reported a fault:\n  {}", lines.join("\n  ")),
        ),
    };
    eprintln!("altpipe-vm: {message}");
    Ok(status)
}
