// SPDX-License-Identifier: GPL-2.0
//! The seed of all that a run draws at random. It is printed, and given back by `--seed` it draws the same again.

use std::sync::OnceLock;
use std::time::SystemTime;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

static SEED: OnceLock<u64> = OnceLock::new();

/// Fixes the seed, or draws one by the clock; returns it. Once, before any case runs.
pub fn fix(wanted: Option<u64>) -> u64 {
    let by_clock = || {
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        // Short enough to be typed again.
        u64::from(since.subsec_nanos()) ^ since.as_secs() & 0xffff
    };
    *SEED.get_or_init(|| wanted.unwrap_or_else(by_clock))
}

/// A generator for one use, which `stream` numbers: each draws by itself whatever the others do.
pub fn generator(stream: u64) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(*SEED.get().expect("fixed at the start"));
    generator.set_stream(stream);
    generator
}
