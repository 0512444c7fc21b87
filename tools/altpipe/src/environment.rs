// SPDX-License-Identifier: GPL-2.0
//! The machine as a reader of the figures must know it.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::accelerator;

/// What a document says of its machine. Empty or none is what could not be found out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Kernel release, as uname -r has it.
    pub kernel: String,
    /// Kernel build, as uname -v has it.
    pub build: String,
    /// Machine architecture.
    pub machine: String,
    /// CPU model.
    pub cpu: String,
    /// CPUs online.
    pub cpus: usize,
    /// What executes the instructions: `metal`, `kvm`, `tcg`, `icount`, another hypervisor's name, or `uml`.
    pub accelerator: String,
    /// The cpufreq governor of CPU 0.
    pub governor: Option<String>,
    /// The clock source in use.
    pub clocksource: Option<String>,
    /// Tasks that wanted to run, over the last minute.
    pub load: Option<f64>,
    /// The kernel's random name for this boot.
    pub boot_id: Option<String>,
    /// When the machine booted, in seconds since 1970.
    pub booted: Option<u64>,
}

impl Environment {
    /// Of this machine, now.
    pub fn here() -> Self {
        let name = nix::sys::utsname::uname().ok();
        let text = |field: Option<&std::ffi::OsStr>| {
            field
                .map(|field| field.to_string_lossy().into_owned())
                .unwrap_or_default()
        };
        Self {
            kernel: text(name.as_ref().map(|name| name.release())),
            build: text(name.as_ref().map(|name| name.version())),
            machine: text(name.as_ref().map(|name| name.machine())),
            cpu: cpu_model(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            accelerator: accelerator::detect().to_owned(),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            clocksource: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            load: line("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
            boot_id: line("/proc/sys/kernel/random/boot_id"),
            booted: boot_time(&fs::read_to_string("/proc/stat").unwrap_or_default()),
        }
    }

    /// What two boots must share for their ratios to be of one kind.
    pub fn kind(&self) -> (&str, &str, usize) {
        (&self.kernel, &self.accelerator, self.cpus)
    }

    /// Whether time passes by instructions and not by the clock.
    pub fn counts_instructions(&self) -> bool {
        self.accelerator == accelerator::ICOUNT
    }

    /// Whether an emulator makes everything 10 to 30 times slower.
    pub fn is_emulated(&self) -> bool {
        [accelerator::ICOUNT, accelerator::TCG].contains(&self.accelerator.as_str())
    }

    /// A name for this boot. The random name alone will not do: an emulator that starts in the same state draws
    /// the same one each time.
    pub fn boot_label(&self) -> String {
        let id = self.boot_id.as_deref().unwrap_or("unknown");
        let id = id.split('-').next().unwrap_or(id);
        format!("{id}@{}", self.booted.unwrap_or(0))
    }
}

/// A file's text without its line end.
pub fn line(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

fn cpu_model(cpuinfo: &str) -> String {
    cpuinfo
        .lines()
        .find(|line| line.starts_with("model name"))
        .and_then(|line| line.split_once(": "))
        .map(|(_, model)| model.trim().to_owned())
        .unwrap_or_default()
}

fn boot_time(stat: &str) -> Option<u64> {
    stat.lines()
        .find_map(|line| line.strip_prefix("btime ")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_kernel_and_a_cpu() {
        let here = Environment::here();
        assert!(here.kernel.contains('.') && here.cpus > 0 && !here.accelerator.is_empty());
    }

    #[test]
    fn boots_of_one_random_name_differ_by_their_time() {
        let boot = |booted| Environment {
            boot_id: Some("74f357ad-ec4d-4084-aed4-c583b2970960".into()),
            booted: Some(booted),
            ..Environment::default()
        };
        assert_eq!(boot(7).boot_label(), "74f357ad@7");
        assert_ne!(boot(7).boot_label(), boot(30).boot_label());
    }

    #[test]
    fn proc_files_are_understood() {
        assert_eq!(
            cpu_model("processor\t: 0\nmodel name\t: AMD EPYC \n"),
            "AMD EPYC"
        );
        assert_eq!(
            boot_time("cpu 1 2\nbtime 1796080000\n"),
            Some(1_796_080_000)
        );
    }
}
