// SPDX-License-Identifier: GPL-2.0
//! 2014: each write took the superblock's freeze protection around its update of the time stamps.

use super::{Claim, Pair, Range, Study, Verdicts};

const fn rise(workload: &'static str, metric: &'static str, then: &'static str) -> Claim {
    Claim {
        workload,
        metric,
        then,
        range: Range::Rise,
    }
}

/// b8597fdc23 of Linux 3.14.
pub const STUDY: Study = Study {
    name: "frozen-fs",
    title: "2014, b8597fdc23 (3.14), a freeze check around each write's time update",
    reported: &[
        "hackbench 1600%-process-pipe            machine 1   machine 2   total",
        "  hackbench.throughput                      -7.3%      -10.7%   -8.3%",
        "  vmstat.system.cs                         +17.4%     +156.6%  +24.4%",
        "  time.involuntary_context_switches        +33.7%     +411.9%  +46.1%",
        "  time.voluntary_context_switches          +12.8%     +102.7%  +18.0%",
    ],
    pairs: &[
        Pair {
            what: "the commit",
            base: "times=full,freeze_check=0",
            changed: "times=full,freeze_check=1",
            workloads: &["stream-512", "small"],
            claims: &[
                rise("stream-512", "stream-512.cpu_ns_per_op", "-8.3% throughput"),
                rise("stream-512", "stream-512.switches_per_1000_ops", "+24.4%"),
                rise("small", "small.cpu_ns_per_op", "-8.3% throughput"),
                rise("small", "small.switches_per_1000_ops", "+24.4%"),
            ],
            decides: true,
            two_cpus: false,
        },
        Pair {
            what: "the time updates themselves, gone since 6.15",
            base: "times=none",
            changed: "times=full,freeze_check=0",
            workloads: &["stream-512", "small"],
            claims: &[
                rise("stream-512", "stream-512.cpu_ns_per_op", "not reported"),
                rise(
                    "stream-512",
                    "stream-512.switches_per_1000_ops",
                    "not reported",
                ),
                rise("small", "small.cpu_ns_per_op", "not reported"),
                rise("small", "small.switches_per_1000_ops", "not reported"),
            ],
            decides: false,
            two_cpus: false,
        },
    ],
    verdicts: Verdicts {
        held: "reproduced: the freeze check costs CPU time and switches",
        refuted: "not reproduced on this kernel: see the rows that say no; the time updates are the second table",
    },
};
