// SPDX-License-Identifier: GPL-2.0

//! Faults that Rust finds by itself where the kernel's config says so. Each ends the machine.
//!
//! `insmod panics.ko fault=1` fails a debug assertion, and `fault=2` overflows an addition.

use core::hint::black_box;
use kernel::prelude::*;

module! {
    type: Panics,
    name: "panics",
    authors: ["The altpipe developers"],
    description: "Panics on demand, to see that the kernel was built to have them",
    license: "GPL",
    params: {
        fault: u32 {
            default: 0,
            description: "1: a debug assertion; 2: an overflow",
        },
    },
}

struct Panics;

impl kernel::Module for Panics {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let fault = module_parameters::fault.value();

        debug_assert!(fault != 1);
        if fault == 2 {
            pr_info!("{}\n", black_box(u32::MAX) + black_box(fault));
        }
        // Whoever comes this far asked for nothing that this kernel checks.
        Err(EINVAL)
    }
}
