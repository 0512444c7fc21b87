// SPDX-License-Identifier: GPL-2.0
//! Signals that ask us to stop, so that machines and scratch files go first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Notes the signal that asked us to stop. Clones share the note.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// How often whoever waits should look here.
    pub const INTERVAL: Duration = Duration::from_millis(200);

    /// From now on the usual signals are noted, no longer deadly.
    pub fn catch() -> Result<Self> {
        let interrupt = Self::default();
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            flag::register_usize(signal, Arc::clone(&interrupt.0), signal as usize)
                .context("cannot catch signals")?;
        }
        Ok(interrupt)
    }

    /// The signal, once there was one.
    pub fn signal(&self) -> Option<u8> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            signal => u8::try_from(signal).ok(),
        }
    }
}
