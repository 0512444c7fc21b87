// SPDX-License-Identifier: GPL-2.0

//! Pipes whose every historical behaviour is a knob.
//!
//! This is the crate root: it says what the module is made of and in which order its parts come
//! to life. Whoever opens the control device must find the file system registered, so the device
//! comes last and goes first. An object that fails to come to life takes those before it away.

mod abi;
mod bindings;
pub mod config;
mod device;
mod engine;
mod fs;
mod knobs;
mod kunit;
mod limits;
pub mod page;
mod pipe;
mod ring;
mod stats;
mod sync;

use abi::{
    chrdev::Region,
    miscdevice::{Mode, Registration},
};
use kernel::{prelude::*, sync::Arc};
use limits::Limits;
use pin_init::pin_init_scope;

/// The engine that drives a FIFO device.
type Fifo = device::Fifo<pipe::Classic>;

/// The most FIFO devices there may be.
const MOST_DEVICES: u32 = 64;

module! {
    type: Altpipe,
    name: "altpipe",
    authors: ["The altpipe developers"],
    description: "Pipes whose every historical behaviour is a knob",
    license: "GPL",
    params: {
        mode: u32 {
            default: 0o666,
            description: "File mode of /dev/altpipe, octal with a leading 0",
        },
        fifo_mode: u32 {
            default: 0o600,
            description: "File mode of the FIFO devices, octal with a leading 0",
        },
        devices: u32 {
            default: 4,
            description: "Number of FIFO devices /dev/altpipe0 and following, 0 to 64",
        },
    },
}

#[pin_data]
struct Altpipe {
    #[pin]
    control: Registration<device::Control>,
    _fifos: Option<Region<Fifo>>,
}

/// Registers that many FIFO devices.
fn fifos(count: u32, mode: Mode, limits: &Arc<Limits>) -> Result<Option<Region<Fifo>>> {
    let mut fifos = KVec::new();

    if count > MOST_DEVICES {
        return Err(EINVAL);
    }
    for _ in 0..count {
        let fifo = Fifo::new(limits.clone())?;

        fifos.push(Arc::pin_init(fifo, GFP_KERNEL)?, GFP_KERNEL)?;
    }
    if fifos.is_empty() {
        return Ok(None);
    }
    Region::new(c"altpipe", mode, fifos).map(Some)
}

impl kernel::InPlaceModule for Altpipe {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        pin_init_scope(|| {
            let fs = Arc::pin_init(fs::FileSystem::register(), GFP_KERNEL)?;
            let limits = Arc::new(Limits::new(), GFP_KERNEL)?;
            let control = device::Control::new(fs, limits.clone());
            let control = Arc::pin_init(control, GFP_KERNEL)?;
            let mode = Mode::try_from(module_parameters::mode.value())?;
            let fifo_mode = Mode::try_from(module_parameters::fifo_mode.value())?;

            Ok(try_pin_init!(Self {
                _fifos: fifos(module_parameters::devices.value(), fifo_mode, &limits)?,
                control <- Registration::new(c"altpipe", mode, control),
            }))
        })
    }
}
