// SPDX-License-Identifier: GPL-2.0
//! One measurement and the figures it is made of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::variant::Variant;

/// What one run of a workload cost its tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Operations done; the workload says what one is.
    pub ops: u64,
    /// Bytes that went through the measured pipes.
    pub bytes: u64,
    /// CPU time of the measured tasks in nanoseconds.
    pub cpu_ns: u64,
    /// Its user part in microseconds, where the kernel tells the parts apart.
    pub user_us: Option<u64>,
    /// Its system part in microseconds, likewise.
    pub system_us: Option<u64>,
    /// From the first task's start to the last task's end, in nanoseconds.
    pub wall_ns: u64,
    /// Times a measured task slept.
    pub voluntary: u64,
    /// Times a measured task was preempted.
    pub involuntary: u64,
    /// Context switches of the whole machine meanwhile.
    pub system_switches: Option<u64>,
    /// What altpipe counted, summed over the pipes used; empty for a native pipe.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
}

/// A measurement with its place in the schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Name of the workload.
    pub workload: String,
    /// What was measured.
    pub variant: Variant,
    /// Whether this is the second native of the A/A pair.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub twin: bool,
    /// The round, counted from 0 over warm-up rounds and others.
    pub round: u32,
    /// Whether the round was a warm-up, which no summary uses.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warmup: bool,
    /// What it cost.
    #[serde(flatten)]
    pub measurement: Measurement,
}
