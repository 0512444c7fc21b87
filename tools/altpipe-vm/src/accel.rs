// SPDX-License-Identifier: GPL-2.0
//! Which accelerator to run the machine with.

use std::fs;

use anyhow::Result;

use crate::cache::Cache;

/// How the machine's processors come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// The host's own processors.
    Kvm,
    /// Emulation, one host thread per processor.
    Tcg,
    /// Emulation with one processor whose time is the count of the instructions
    /// it executed: a nanosecond each.
    Icount,
}

impl Accelerator {
    /// QEMU's arguments.
    ///
    /// Emulated processors have all that QEMU can do except: 5-level page tables,
    /// which only make walks longer; and fast byte-string moves, since the kernel
    /// would then copy bytewise, and an emulator takes (and counts) each byte as
    /// one instruction, which no real processor does.
    pub fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Kvm => &["-accel", "kvm", "-cpu", "host"],
            Self::Tcg => &[
                "-accel",
                "tcg,thread=multi",
                "-cpu",
                "max,la57=off,erms=off",
            ],
            Self::Icount => &[
                "-accel",
                "tcg,thread=single",
                "-cpu",
                "max,la57=off,erms=off",
                "-icount",
                "shift=0,sleep=off",
                "-rtc",
                "clock=vm",
            ],
        }
    }
}

/// KVM where `probe`, a boot under it, works; else emulation. A device node says
/// nothing: in a virtual machine it may exist and still run no guest. The answer
/// is kept until the host is booted again.
pub fn pick(cache: &Cache, probe: impl FnOnce() -> Result<bool>) -> Result<Accelerator> {
    let processors = fs::read_to_string("/proc/cpuinfo")?;
    if !can_virtualise(&processors) {
        return Ok(Accelerator::Tcg);
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let path = cache.path("kvm");
    let known = fs::read_to_string(&path).unwrap_or_default();
    let works = match known.strip_prefix(&boot) {
        Some(answer) => answer == "works",
        None => {
            let works = probe()?;
            fs::write(
                &path,
                format!("{boot}{}", if works { "works" } else { "fails" }),
            )?;
            works
        }
    };
    Ok(if works {
        Accelerator::Kvm
    } else {
        Accelerator::Tcg
    })
}

fn can_virtualise(cpuinfo: &str) -> bool {
    cpuinfo
        .lines()
        .filter_map(|line| line.strip_prefix("flags")?.split_once(':'))
        .any(|(_, flags)| {
            flags
                .split_whitespace()
                .any(|flag| flag == "vmx" || flag == "svm")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_processor_flags_count() {
        assert!(can_virtualise("processor\t: 0\nflags\t\t: fpu vmx sse\n"));
        assert!(can_virtualise("flags\t\t: fpu svm\n"));
        assert!(!can_virtualise(
            "model name\t: vmx\nflags\t\t: fpu vmx_not svm_lock\n"
        ));
        assert!(!can_virtualise("vmx flags\t: vnmi\nflags\t\t: fpu\n"));
    }
}
