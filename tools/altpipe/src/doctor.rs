// SPDX-License-Identifier: GPL-2.0
//! `altpipe doctor`: what is loaded, on what machine, what would spoil a measurement, and the cure.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::accelerator::{ICOUNT, TCG};
use crate::device::{Absent, Device};
use crate::environment::{Environment, line};
use crate::sysfs::Sysfs;

/// Share of the CPUs that others may keep busy before it shows in the figures.
const BUSY: f64 = 0.2;
/// Share of time that a hypervisor may have withheld since boot.
const STOLEN: f64 = 0.01;

/// What the doctor looked at.
#[derive(Clone, Debug, Default)]
struct Facts {
    environment: Environment,
    /// Why the device cannot be used, and the cure; none if it can.
    device: Option<(String, String)>,
    /// Knobs that are not as in Linux 7.3.
    turned: Vec<String>,
    /// Debugging aids of this kernel that slow its locks and allocations down.
    debugging: Vec<&'static str>,
    /// Whether the clock rises above its nominal rate while the CPU is cool.
    boost: bool,
    /// Whether two CPUs may be one core.
    smt: bool,
    /// Share of CPU time since boot that the hypervisor gave to others.
    stolen: f64,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Weight {
    /// As it should be.
    Good,
    /// To be known when figures are read.
    Note,
    /// Would spoil a measurement.
    Spoils,
}

/// Something the doctor found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    weight: Weight,
    what: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    cure: String,
}

#[derive(Serialize)]
struct Diagnosis {
    environment: Environment,
    findings: Vec<Finding>,
}

/// Looks, says what it found, and whether a measurement may begin.
pub fn run(device: &Path, sysfs: &Sysfs, json: bool, out: &mut dyn Write) -> Result<bool> {
    let facts = Facts::gather(device, sysfs);
    let findings = judge(&facts);
    let fine = findings
        .iter()
        .all(|finding| finding.weight != Weight::Spoils);
    if json {
        serde_json::to_writer_pretty(
            &mut *out,
            &Diagnosis {
                environment: facts.environment,
                findings,
            },
        )?;
        writeln!(out)?;
        return Ok(fine);
    }
    for finding in &findings {
        let mark = match finding.weight {
            Weight::Good => "ok    ",
            Weight::Note => "note  ",
            Weight::Spoils => "SPOILS",
        };
        writeln!(out, "{mark}  {}", finding.what)?;
        if !finding.cure.is_empty() {
            writeln!(out, "        -> {}", finding.cure)?;
        }
    }
    Ok(fine)
}

impl Facts {
    fn gather(device: &Path, sysfs: &Sysfs) -> Self {
        let trouble = Device::open(device, sysfs).err().map(|error| {
            let cure = error.downcast_ref::<Absent>().map_or("", Absent::cure);
            (
                error
                    .to_string()
                    .trim_end_matches(cure)
                    .trim_end_matches("; ")
                    .to_owned(),
                cure.to_owned(),
            )
        });
        let is_on = |path| line(path).is_some_and(|text| text == "1");
        let there = |(path, name)| Path::new(path).exists().then_some(name);
        Self {
            environment: Environment::here(),
            device: trouble,
            turned: turned(sysfs),
            debugging: [
                ("/proc/lockdep_stats", "lockdep"),
                ("/sys/kernel/debug/kmemleak", "kmemleak"),
                ("/sys/kernel/debug/kcsan", "KCSAN"),
            ]
            .into_iter()
            .filter_map(there)
            .collect(),
            boost: is_on("/sys/devices/system/cpu/cpufreq/boost")
                || line("/sys/devices/system/cpu/intel_pstate/no_turbo")
                    .is_some_and(|text| text == "0"),
            smt: is_on("/sys/devices/system/cpu/smt/active"),
            stolen: stolen(&fs::read_to_string("/proc/stat").unwrap_or_default()),
        }
    }
}

/// The knobs that the core's table says are not at their default.
fn turned(sysfs: &Sysfs) -> Vec<String> {
    let mut turned = Vec::new();
    for knob in sysfs.knobs().unwrap_or_default() {
        let Some(row) = altpipe_core::Knob::find(&knob.name) else {
            continue;
        };
        let mut default = String::new();
        let shown = row.write_value(&altpipe_core::Config::DEFAULT, &mut default);
        if shown.is_ok() && default != knob.active {
            turned.push(format!("{}={}", knob.name, knob.active));
        }
    }
    turned
}

/// The steal column of /proc/stat's first line as a share of all.
fn stolen(stat: &str) -> f64 {
    let first = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = first
        .split_whitespace()
        .skip(1)
        .take(8)
        .filter_map(|word| word.parse().ok())
        .collect();
    let total: f64 = ticks.iter().sum();
    ticks
        .get(7)
        .filter(|_| total > 0.0)
        .map_or(0.0, |steal| steal / total)
}

fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut say = |weight, what: String, cure: &str| {
        findings.push(Finding {
            weight,
            what,
            cure: cure.to_owned(),
        })
    };
    let environment = &facts.environment;

    match &facts.device {
        None => say(Weight::Good, "altpipe is loaded".into(), ""),
        Some((what, cure)) => say(
            Weight::Spoils,
            format!("altpipe variants cannot be measured: {what}"),
            cure,
        ),
    }
    if !facts.turned.is_empty() {
        say(
            Weight::Note,
            format!(
                "knobs are turned: {}; the variant `default` means these",
                facts.turned.join(", ")
            ),
            "name every knob that matters in the variant, or set it back with `altpipe set`",
        );
    }
    say(
        Weight::Good,
        format!(
            "Linux {} {} ({})",
            environment.kernel, environment.machine, environment.build
        ),
        "",
    );
    if !facts.debugging.is_empty() {
        say(
            Weight::Spoils,
            format!(
                "this kernel debugs itself ({}); its locks cost many times the usual",
                facts.debugging.join(", ")
            ),
            "measure on the distribution's kernel (make vm)",
        );
    }
    match environment.accelerator.as_str() {
        ICOUNT => say(
            Weight::Good,
            "QEMU counts instructions (icount): CPU time is exact to a fraction of a percent, elapsed time means \
             nothing, and the rounds of one boot are near-copies"
                .into(),
            "run few rounds in each of at least 5 boots with different seeds, then `altpipe report`",
        ),
        TCG => say(
            Weight::Spoils,
            "QEMU emulates this CPU (TCG): switches and wake-ups can be trusted, small differences in time cannot".into(),
            "for time, boot with icount (altpipe-vm run --icount)",
        ),
        "uml" => say(
            Weight::Spoils,
            "user-mode Linux: enabling interrupts is a host call, so that timings mislead".into(),
            "use it for tests only",
        ),
        "metal" => say(Weight::Good, format!("no hypervisor; {}", environment.cpu), ""),
        hypervisor => say(
            Weight::Note,
            format!("virtual machine ({hypervisor}); its host's load shows in the figures, not in the load below"),
            "keep the host idle, and give each virtual CPU a core of its own",
        ),
    }
    if environment.cpus < 2 {
        say(
            Weight::Note,
            "one CPU: tasks never run at the same time, so racing herds and stdio's switches cannot be had".into(),
            "boot with two for those (altpipe-vm run --smp 2)",
        );
    }
    match environment.load {
        Some(load) if load > BUSY * environment.cpus as f64 => say(
            Weight::Spoils,
            format!(
                "others keep this machine busy: load {load} on {} CPUs",
                environment.cpus
            ),
            "stop them, or wait; the load is a mean over a minute",
        ),
        Some(load) => say(
            Weight::Good,
            format!("load {load} on {} CPUs", environment.cpus),
            "",
        ),
        None => {}
    }
    if facts.stolen > STOLEN {
        say(
            Weight::Spoils,
            format!(
                "the host gave {:.0}% of this machine's CPU time to others since boot",
                100.0 * facts.stolen
            ),
            "ask for CPUs of your own, or look at switches and not at time",
        );
    }
    if let Some(governor) = environment
        .governor
        .as_deref()
        .filter(|governor| *governor != "performance")
    {
        say(
            Weight::Spoils,
            format!("the CPU's clock follows its load (governor {governor})"),
            "cpupower frequency-set -g performance",
        );
    }
    if facts.boost {
        say(
            Weight::Note,
            "the CPU's clock rises while it is cool: later rounds may run slower than early ones"
                .into(),
            "echo 0 > /sys/devices/system/cpu/cpufreq/boost (or 1 > .../intel_pstate/no_turbo)",
        );
    }
    if facts.smt {
        say(
            Weight::Note,
            "two CPUs may be threads of one core, and slow one another down".into(),
            "echo off > /sys/devices/system/cpu/smt/control, or pin with taskset",
        );
    }
    if let Some(clock) = environment
        .clocksource
        .as_deref()
        .filter(|clock| ["hpet", "acpi_pm", "jiffies"].contains(clock))
    {
        say(
            Weight::Spoils,
            format!("the clock source {clock} is slow to read or coarse"),
            "boot with a stable TSC (clocksource=tsc)",
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Facts {
        Facts {
            environment: Environment {
                kernel: "7.3.4".into(),
                cpus: 4,
                accelerator: "metal".into(),
                governor: Some("performance".into()),
                clocksource: Some("tsc".into()),
                load: Some(0.1),
                ..Environment::default()
            },
            ..Facts::default()
        }
    }

    fn spoilers(facts: &Facts) -> Vec<String> {
        let findings = judge(facts).into_iter();
        findings
            .filter(|finding| finding.weight == Weight::Spoils)
            .map(|finding| finding.what)
            .collect()
    }

    #[test]
    fn a_good_machine_has_nothing_that_spoils() {
        assert!(spoilers(&good()).is_empty());
    }

    /// Words of a finding, and what brings it about.
    type Spoiler = (&'static str, fn(&mut Facts));

    #[test]
    fn each_spoiler_is_found_alone_and_has_a_cure() {
        let spoil: [Spoiler; 8] = [
            ("cannot be measured", |facts| {
                facts.device = Some(("no such file".into(), "load it".into()))
            }),
            ("debugs itself (lockdep)", |facts| {
                facts.debugging = vec!["lockdep"]
            }),
            ("emulates this CPU", |facts| {
                facts.environment.accelerator = TCG.into()
            }),
            ("user-mode Linux", |facts| {
                facts.environment.accelerator = "uml".into()
            }),
            ("load 3 on 4 CPUs", |facts| {
                facts.environment.load = Some(3.0)
            }),
            ("gave 5% of", |facts| facts.stolen = 0.05),
            ("governor powersave", |facts| {
                facts.environment.governor = Some("powersave".into())
            }),
            ("clock source hpet", |facts| {
                facts.environment.clocksource = Some("hpet".into())
            }),
        ];
        for (words, spoil) in spoil {
            let mut facts = good();
            spoil(&mut facts);
            let found = judge(&facts)
                .into_iter()
                .filter(|finding| finding.weight == Weight::Spoils);
            let found: Vec<_> = found.collect();
            assert_eq!(found.len(), 1, "{words}");
            assert!(found[0].what.contains(words), "{found:?}");
            assert!(!found[0].cure.is_empty());
        }
    }

    #[test]
    fn icount_is_good_and_one_cpu_is_noted() {
        let mut facts = good();
        facts.environment.accelerator = ICOUNT.into();
        facts.environment.cpus = 1;
        assert!(spoilers(&facts).is_empty());
        assert!(
            judge(&facts)
                .iter()
                .any(|finding| finding.what.contains("one CPU"))
        );
    }

    #[test]
    fn turned_knobs_are_noted() {
        let mut facts = good();
        facts.turned = vec!["exclusive=0".into()];
        assert!(
            judge(&facts)
                .iter()
                .any(|finding| finding.what.contains("knobs are turned: exclusive=0"))
        );
    }

    #[test]
    fn steal_is_the_eighth_column() {
        assert_eq!(stolen("cpu  10 0 10 70 0 0 0 10 0 0\ncpu0 1\n"), 0.1);
        assert_eq!(stolen(""), 0.0);
    }
}
