// SPDX-License-Identifier: GPL-2.0

//! Pipes whose every historical behaviour is a knob.
//!
//! This is the crate root: it says what the module is made of and in which order its parts come
//! to life. Whoever opens the control device must find the file system registered, so the device
//! comes last and goes first.

mod abi;
mod bindings;
pub mod config;
mod device;
mod engine;
mod fs;
mod knobs;
mod limits;
pub mod page;
mod pipe;
mod ring;
mod stats;
mod sync;

use abi::miscdevice::{Mode, Registration};
use kernel::{prelude::*, sync::Arc};

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

#[pin_data]
struct Altpipe {
    #[pin]
    control: Registration<device::Control>,
}

impl kernel::InPlaceModule for Altpipe {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            control <- {
                let fs = Arc::pin_init(fs::FileSystem::register(), GFP_KERNEL)?;
                let control = Arc::pin_init(device::Control::new(fs), GFP_KERNEL)?;
                let mode = Mode::try_from(module_parameters::mode.value())?;

                Registration::new(c"altpipe", mode, control)
            },
        })
    }
}
