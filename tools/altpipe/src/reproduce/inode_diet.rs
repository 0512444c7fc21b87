// SPDX-License-Identifier: GPL-2.0
//! 2008: stdio's buffers follow st_blksize, which had become 1024 for pipes.

use super::{Claim, Pair, Range, Study, Verdicts};

/// ba52de123d45 of Linux 2.6.19.
pub const STUDY: Study = Study {
    name: "inode-diet",
    title: "2008, ba52de123d45 (2.6.19), the block size of a pipe fell to 1024",
    reported: &[
        "kernbench: context switches rose from about 35 thousand to about 53 thousand",
        "pipes saw four times as many writes, a quarter of the size; cured in 2.6.28",
    ],
    // On one CPU the writer fills the pipe before the reader runs, whatever the size of its writes.
    pairs: &[
        Pair {
            what: "the commit, behind a writer that works as a compiler does",
            base: "block_size=4096",
            changed: "block_size=1024",
            workloads: &["stdio-compile"],
            claims: &[
                Claim {
                    workload: "stdio-compile",
                    metric: "altpipe.writes",
                    then: "4 times",
                    range: Range::Within(3.8, 4.2),
                },
                Claim {
                    workload: "stdio-compile",
                    metric: "time.voluntary_context_switches",
                    then: "+51% in all of kernbench",
                    range: Range::Rise,
                },
                Claim {
                    workload: "stdio-compile",
                    metric: "stdio-compile.cpu_ns_per_op",
                    then: "not given",
                    range: Range::Rise,
                },
            ],
            decides: true,
            two_cpus: true,
        },
        Pair {
            what: "the commit, behind a writer that only prints",
            base: "block_size=4096",
            changed: "block_size=1024",
            workloads: &["stdio-print"],
            claims: &[
                Claim {
                    workload: "stdio-print",
                    metric: "altpipe.writes",
                    then: "4 times",
                    range: Range::Within(3.8, 4.2),
                },
                Claim {
                    workload: "stdio-print",
                    metric: "time.voluntary_context_switches",
                    then: "+51% in all of kernbench",
                    range: Range::Rise,
                },
                Claim {
                    workload: "stdio-print",
                    metric: "stdio-print.cpu_ns_per_op",
                    then: "not given",
                    range: Range::Rise,
                },
            ],
            decides: false,
            two_cpus: true,
        },
    ],
    verdicts: Verdicts {
        held: "reproduced: a block size of 1024 costs four times the writes, more switches and more CPU time",
        refuted: "not reproduced on this kernel: see the rows that say no",
    },
};
