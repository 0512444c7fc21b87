// SPDX-License-Identifier: GPL-2.0
//! What a run draws at random. The seed is printed, and given back by `--seed` it draws the same
//! again.

use std::sync::OnceLock;
use std::time::SystemTime;

use altpipe_core::config::Values;
use altpipe_core::{Config, KNOBS, Knob};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

static SEED: OnceLock<u64> = OnceLock::new();

/// Fixes the seed, or draws one by the clock; returns it. Once, before any case runs.
pub fn fix_seed(wanted: Option<u64>) -> u64 {
    let by_clock = || {
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        // Short enough to be typed again.
        u64::from(since.subsec_nanos()) ^ (since.as_secs() & 0xffff)
    };
    *SEED.get_or_init(|| wanted.unwrap_or_else(by_clock))
}

/// A generator for one use, which `stream` numbers: each draws by itself whatever the others do.
pub fn generator(stream: u64) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(*SEED.get().expect("fixed at the start"));
    generator.set_stream(stream);
    generator
}

/// A number below `bound`. The bias is far below what anybody could notice here.
pub fn below(generator: &mut ChaCha8Rng, bound: u32) -> u32 {
    generator.next_u32() % bound
}

/// Any value that the knob takes, but no pipe larger than 1 MiB.
pub fn value(generator: &mut ChaCha8Rng, knob: &Knob) -> String {
    match knob.values {
        Values::Switch => below(generator, 2).to_string(),
        Values::Number { min, max } => (min + below(generator, max - min + 1)).to_string(),
        Values::PowerOfTwo { min, max } => {
            let max = max.min(1 << 20);
            (min << below(generator, max.ilog2() - min.ilog2() + 1)).to_string()
        }
        Values::Choice(choices) => choices[below(generator, choices.len() as u32) as usize]
            .word
            .into(),
    }
}

/// A config with every knob drawn.
pub fn config(generator: &mut ChaCha8Rng) -> Config {
    let mut config = Config::DEFAULT;
    for knob in KNOBS {
        let value = value(generator, knob);
        knob.store(&mut config, &value)
            .unwrap_or_else(|error| panic!("{}={value}: {error}", knob.name));
    }
    config
}
