// SPDX-License-Identifier: GPL-2.0
//! What is done to a stream while it runs, and to the defaults of pipes to come.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use altpipe_core::{KNOBS, Knob, PRESETS};
use altpipe_uapi::set_size;
use rand_chacha::ChaCha8Rng;

use super::Counts;
use crate::draw::{self, below};
use crate::end::PAGE;
use crate::fdinfo;
use crate::knobs::Device;
use crate::signal;
use crate::task::Watched;

/// Turns the defaults until told to stop.
pub fn turn_defaults(generator: &mut ChaCha8Rng, done: &AtomicBool, counts: &Counts) {
    let device = Device::control();
    while !done.load(Ordering::Relaxed) {
        match below(generator, 8) {
            0 => device.store("stats/reset", "1").expect("reset"),
            _ => turn(&device, generator, |_| true),
        }
        counts.defaults.fetch_add(1, Ordering::Relaxed);
        // A pipe should see some of the mixes whole.
        sleep(Duration::from_millis(2));
    }
}

// Turns a knob, or all of them by a preset.
fn turn(device: &Device, generator: &mut ChaCha8Rng, has: impl Fn(&Knob) -> bool) {
    if below(generator, 8) == 0 {
        let preset = &PRESETS[below(generator, PRESETS.len() as u32) as usize];
        return device.store("preset", preset.name).expect("a preset");
    }
    let knob = &KNOBS[below(generator, KNOBS.len() as u32) as usize];
    if has(knob) {
        let value = draw::value(generator, knob);
        device
            .store(&format!("knobs/{}", knob.name), value)
            .expect("a value");
    }
}

/// Resizes, signals, and turns the knobs of a live FIFO until the stream has ended.
pub fn until_ended(
    generator: &mut ChaCha8Rng,
    end: &OwnedFd,
    fifo: Option<&Device>,
    tasks: &[Watched],
    ended: impl Fn() -> bool,
    counts: &Counts,
) {
    while !ended() {
        match below(generator, 4) {
            0 => match set_size(end, (PAGE as u32) << below(generator, 7)) {
                Ok(_) => _ = counts.resizes.fetch_add(1, Ordering::Relaxed),
                Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EBUSY)),
            },
            1 => {
                let task = &tasks[below(generator, tasks.len() as u32) as usize];
                if signal::send_if_alive(libc::SIGUSR1, task) {
                    counts.signals.fetch_add(1, Ordering::Relaxed);
                }
            }
            _ => {
                if let Some(device) = fifo {
                    let sleepers = fdinfo::sleepers(end);
                    turn(device, generator, |knob| knob.name != "block_size");
                    counts.live.fetch_add(1, Ordering::Relaxed);
                    let met = u64::from(sleepers.is_some_and(|sleepers| sleepers > 0));
                    counts.met.fetch_add(met, Ordering::Relaxed);
                }
            }
        }
        sleep(Duration::from_micros(u64::from(below(generator, 3000))));
    }
}
