// SPDX-License-Identifier: GPL-2.0
//! No report, but the ground all of them stand on: with every knob at its default, altpipe is Linux 7.3's pipe.

use super::{Claim, Pair, Range, Study, Verdicts};

const SAME: Range = Range::Within(0.97, 1.03);

const fn same(workload: &'static str, metric: &'static str) -> Claim {
    Claim {
        workload,
        metric,
        then: "the same",
        range: SAME,
    }
}

/// The default config against pipe2(2).
pub const STUDY: Study = Study {
    name: "fidelity",
    title: "the default config against the kernel's own pipe",
    reported: &[
        "nothing: altpipe must cost what the kernel's pipe costs before its knobs mean anything",
    ],
    pairs: &[Pair {
        what: "every knob as in Linux 7.3",
        base: "native",
        changed: "default",
        workloads: &[
            "self-1",
            "self-4k",
            "pingpong",
            "stream-512",
            "stream-4k",
            "stream-64k",
            "small",
        ],
        claims: &[
            same("self-1", "self-1.cpu_ns_per_op"),
            same("self-4k", "self-4k.cpu_ns_per_op"),
            same("pingpong", "pingpong.cpu_ns_per_op"),
            same("pingpong", "pingpong.switches_per_1000_ops"),
            same("stream-512", "stream-512.cpu_ns_per_op"),
            same("stream-512", "stream-512.switches_per_1000_ops"),
            same("stream-4k", "stream-4k.cpu_ns_per_op"),
            same("stream-4k", "stream-4k.switches_per_1000_ops"),
            same("stream-64k", "stream-64k.cpu_ns_per_op"),
            same("stream-64k", "stream-64k.switches_per_1000_ops"),
            same("small", "small.cpu_ns_per_op"),
            same("small", "small.switches_per_1000_ops"),
        ],
        decides: true,
        two_cpus: false,
    }],
    verdicts: Verdicts {
        held: "altpipe costs what the kernel's pipe costs, in CPU time and in switches, within 3%",
        refuted: "altpipe does not cost what the kernel's pipe costs: see the rows that say no",
    },
};
