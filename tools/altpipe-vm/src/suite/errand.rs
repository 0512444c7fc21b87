// SPDX-License-Identifier: GPL-2.0
//! A program that speaks KTAP, sent into a machine of its own.

use std::time::Duration;

use crate::kernel::Flavour;

/// Where our module is when the command begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Module {
    /// Loaded.
    Loaded,
    /// In the file /in/altpipe.ko; the command loads it.
    File,
}

/// One part of a suite.
pub struct Errand {
    pub name: &'static str,
    pub kernel: Flavour,
    pub module: Module,
    pub command: &'static [&'static str],
}

/// No run of ours takes longer, unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(1800);

/// The same for the long forms.
pub const LONG_PATIENCE: Duration = Duration::from_secs(6 * 3600);

const TESTS: &str = "altpipe-selftests";

/// What the debug kernel is for, beside the selftests. The lengths are what nine
/// minutes on two idle processors hold.
pub const DEBUG: &[Errand] = &[
    // The defaults of pipes and FIFOs, and the control device; every other subject is among the
    // long forms.
    Errand {
        name: "selftests",
        kernel: Flavour::Debug,
        module: Module::Loaded,
        command: &[
            TESTS,
            "--timeout",
            "180",
            "--subject",
            "altpipe default",
            "--subject",
            "altpipe device",
        ],
    },
    Errand {
        name: "faults at every allocation",
        kernel: Flavour::Debug,
        module: Module::File,
        command: &[TESTS, "faults", "--module", "/in/altpipe.ko"],
    },
    Errand {
        name: "fuzzer, as root and as nobody",
        kernel: Flavour::Debug,
        module: Module::Loaded,
        command: &[TESTS, "fuzz", "--cases", "20000"],
    },
    Errand {
        name: "2000 pipes leave nothing behind",
        kernel: Flavour::Debug,
        module: Module::Loaded,
        command: &[TESTS, "leaks", "--pipes", "2000"],
    },
    Errand {
        name: "torture",
        kernel: Flavour::Debug,
        module: Module::Loaded,
        command: &[TESTS, "torture", "--seconds", "60"],
    },
    Errand {
        name: "life cycle of the module",
        kernel: Flavour::Debug,
        module: Module::File,
        command: &[
            TESTS,
            "lifecycle",
            "--module",
            "/in/altpipe.ko",
            "--count",
            "10",
        ],
    },
];

/// The long forms: one line each, and whoever has another adds it.
pub const LONG: &[Errand] = &[
    Errand {
        name: "1000 reloads",
        kernel: Flavour::Stock,
        module: Module::File,
        command: &[
            TESTS,
            "lifecycle",
            "--module",
            "/in/altpipe.ko",
            "--count",
            "1000",
            "--timeout",
            "3600",
        ],
    },
    Errand {
        name: "a million random sequences",
        kernel: Flavour::Stock,
        module: Module::Loaded,
        command: &[TESTS, "differential", "--sequences", "1000000"],
    },
    Errand {
        name: "10 minutes of torture",
        kernel: Flavour::Stock,
        module: Module::Loaded,
        command: &[TESTS, "torture", "--seconds", "600"],
    },
    Errand {
        name: "10 minutes of torture under the bug finders",
        kernel: Flavour::Debug,
        module: Module::Loaded,
        command: &[TESTS, "torture", "--seconds", "600"],
    },
    Errand {
        name: "every case on every subject under the bug finders",
        kernel: Flavour::Debug,
        module: Module::Loaded,
        command: &[TESTS, "--timeout", "300"],
    },
    Errand {
        name: "100000 pipes under the bug finders",
        kernel: Flavour::Debug,
        module: Module::Loaded,
        command: &[TESTS, "leaks", "--pipes", "100000"],
    },
    Errand {
        name: "500000 fuzzed calls, as root and as nobody",
        kernel: Flavour::Debug,
        module: Module::Loaded,
        command: &[TESTS, "fuzz", "--cases", "500000"],
    },
];
