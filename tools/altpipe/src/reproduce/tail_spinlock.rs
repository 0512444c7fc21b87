// SPDX-License-Identifier: GPL-2.0
//! 2020: a read advanced the tail, and woke writers slot by slot, inside the wait queue's spinlock.
//!
//! What made builds so slow that season had several causes; the herd's, curable by exclusive waits, stands beside
//! the lock's as a pair of its own.

use super::{Claim, Pair, Range, Study, Verdicts};

/// b667b8673443 of Linux 5.5.
pub const STUDY: Study = Study {
    name: "tail-spinlock",
    title: "2020, b667b8673443 (5.5), the tail advanced inside the wait queue's spinlock",
    reported: &[
        "make -j88 on 96 threads took more than twice as long",
        "exclusive waits (5.6) took a herd test from 11 million to 1.2 million context switches",
    ],
    pairs: &[
        Pair {
            what: "the commit",
            base: "tail_update=mutex",
            changed: "tail_update=wait_lock_wake",
            workloads: &["self-1", "stream-512"],
            claims: &[Claim {
                workload: "self-1",
                metric: "self-1.cpu_ns_per_op",
                then: "more; a build twice as long",
                range: Range::Rise,
            }],
            decides: true,
            two_cpus: false,
        },
        Pair {
            what: "the commit among the wake-up rules of its time",
            base: "wake_reader=every_write,wake_writer=every_release,exclusive=0,split_wait=0",
            changed: "wake_reader=every_write,wake_writer=every_release,exclusive=0,split_wait=0,\
                      tail_update=wait_lock_wake",
            workloads: &["self-1", "stream-512"],
            claims: &[
                Claim {
                    workload: "self-1",
                    metric: "self-1.cpu_ns_per_op",
                    then: "more; a build twice as long",
                    range: Range::Rise,
                },
                Claim {
                    workload: "stream-512",
                    metric: "stream-512.cpu_ns_per_op",
                    then: "not reported",
                    range: Range::Rise,
                },
                Claim {
                    workload: "stream-512",
                    metric: "stream-512.switches_per_1000_ops",
                    then: "not reported",
                    range: Range::Rise,
                },
            ],
            decides: false,
            two_cpus: false,
        },
        Pair {
            what: "the herd without its cure, one token at a time",
            base: "exclusive=1",
            changed: "exclusive=0",
            workloads: &["herd-paced"],
            claims: &[
                Claim {
                    workload: "herd-paced",
                    metric: "herd-paced.switches_per_1000_ops",
                    then: "9 times",
                    range: Range::AtLeast(20.0),
                },
                Claim {
                    workload: "herd-paced",
                    metric: "herd-paced.reader_wakes_per_1000_ops",
                    then: "not reported",
                    range: Range::AtLeast(20.0),
                },
            ],
            decides: false,
            two_cpus: false,
        },
        Pair {
            what: "the herd without its cure, racing",
            base: "exclusive=1",
            changed: "exclusive=0",
            workloads: &["herd-racing"],
            claims: &[
                Claim {
                    workload: "herd-racing",
                    metric: "herd-racing.switches_per_1000_ops",
                    then: "9 times",
                    range: Range::AtLeast(2.0),
                },
                Claim {
                    workload: "herd-racing",
                    metric: "herd-racing.reader_wakes_per_1000_ops",
                    then: "not reported",
                    range: Range::AtLeast(2.0),
                },
            ],
            decides: false,
            two_cpus: true,
        },
    ],
    verdicts: Verdicts {
        held: "reproduced: the tail inside the spinlock costs CPU time",
        refuted: "not reproduced on this kernel: see the rows that say no",
    },
};
