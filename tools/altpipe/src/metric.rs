// SPDX-License-Identifier: GPL-2.0
//! The statistics of a sample, under the names that LKP gives them where it has them.

use crate::document::WorkloadInfo;
use crate::sample::Measurement;

/// CPU time per operation, the figure of record.
pub const CPU: &str = "cpu_ns_per_op";
/// Context switches in a thousand operations: of one operation they are often too few for two decimals.
pub const SWITCHES: &str = "switches_per_1000_ops";
/// Readers woken in a thousand operations.
pub const READER_WAKES: &str = "reader_wakes_per_1000_ops";
/// Writers woken in a thousand operations.
pub const WRITER_WAKES: &str = "writer_wakes_per_1000_ops";

/// A sample's statistics: names and values.
pub type Statistics = Vec<(String, f64)>;

/// A sample's statistics, in the order of the table's rows. One that cannot be had is left out.
pub fn all(workload: &WorkloadInfo, sample: &Measurement) -> Statistics {
    let seconds = sample.wall_ns as f64 / 1e9;
    let per_op = |value: u64| value as f64 / sample.ops.max(1) as f64;
    let per_second = |value: f64| value / seconds.max(1e-9);
    let counter = |name: &str| sample.counters.get(name).copied();
    // KB as LKP's hackbench throughput has them, else operations.
    let work = if workload.bulk {
        sample.bytes as f64 / 1024.0
    } else {
        sample.ops as f64
    };
    let ours = |name: &str, value: f64| Some((format!("{}.{name}", workload.name), value));
    let lkp = |name: &str, value: Option<f64>| Some((name.to_owned(), value?));
    let micro = |value: Option<u64>| value.map(|us| us as f64 / 1e6);
    let mut statistics: Statistics = [
        ours(CPU, per_op(sample.cpu_ns)),
        ours(
            SWITCHES,
            per_op(1000 * (sample.voluntary + sample.involuntary)),
        ),
        counter("reader_wakes").and_then(|wakes| ours(READER_WAKES, per_op(1000 * wakes))),
        counter("writer_wakes").and_then(|wakes| ours(WRITER_WAKES, per_op(1000 * wakes))),
        ours("throughput", per_second(work)),
        lkp(
            "vmstat.system.cs",
            sample
                .system_switches
                .map(|switches| per_second(switches as f64)),
        ),
        lkp(
            "time.voluntary_context_switches",
            Some(sample.voluntary as f64),
        ),
        lkp(
            "time.involuntary_context_switches",
            Some(sample.involuntary as f64),
        ),
        lkp("time.system_time", micro(sample.system_us)),
        lkp("time.user_time", micro(sample.user_us)),
        lkp("time.elapsed_time", Some(seconds)),
    ]
    .into_iter()
    .flatten()
    .collect();
    statistics.extend(
        sample
            .counters
            .iter()
            .map(|(name, value)| (format!("altpipe.{name}"), *value as f64)),
    );
    statistics
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(statistics: &[(String, f64)], name: &str) -> Option<f64> {
        statistics
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| *value)
    }

    #[test]
    fn figures_are_per_operation_and_per_second() {
        let workload = WorkloadInfo {
            name: "stream-4k".into(),
            unit: "chunk".into(),
            bulk: true,
        };
        let sample = Measurement {
            ops: 100,
            bytes: 409_600,
            cpu_ns: 50_000,
            wall_ns: 2_000_000_000,
            voluntary: 20,
            involuntary: 5,
            counters: [("reader_wakes".to_owned(), 30)].into(),
            ..Measurement::default()
        };
        let statistics = all(&workload, &sample);
        assert_eq!(find(&statistics, "stream-4k.cpu_ns_per_op"), Some(500.0));
        assert_eq!(
            find(&statistics, "stream-4k.switches_per_1000_ops"),
            Some(250.0)
        );
        assert_eq!(
            find(&statistics, "stream-4k.reader_wakes_per_1000_ops"),
            Some(300.0)
        );
        assert_eq!(find(&statistics, "stream-4k.throughput"), Some(200.0));
        assert_eq!(find(&statistics, "time.elapsed_time"), Some(2.0));
        assert_eq!(find(&statistics, "altpipe.reader_wakes"), Some(30.0));
        // What the sample does not know has no row, rather than a zero.
        assert_eq!(find(&statistics, "time.user_time"), None);
        assert_eq!(find(&statistics, "vmstat.system.cs"), None);
    }
}
