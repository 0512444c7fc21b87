// SPDX-License-Identifier: GPL-2.0

//! Pipes whose every historical behaviour is a knob.
//!
//! This is the crate root: it says what the module is made of and in which order its parts come
//! to life. Whoever opens the control device must find the file system registered, so the device
//! comes last and goes first.

mod bindings;

use kernel::prelude::*;

module! {
    type: Altpipe,
    name: "altpipe",
    authors: ["The altpipe developers"],
    description: "Pipes whose every historical behaviour is a knob",
    license: "GPL",
    params: {
        mode: u32 {
            default: 0o600,
            description: "File mode of /dev/altpipe",
        },
    },
}

struct Altpipe;

impl kernel::Module for Altpipe {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}
