// SPDX-License-Identifier: GPL-2.0
//! Records through pipes of random configs: whatever the mix of knobs, nothing is lost, torn, reordered or stuck.

use std::thread::scope;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use altpipe_core::config::Values;
use altpipe_core::{Config, KNOBS, Knob};
use altpipe_uapi::Flags;

use crate::case::{Area, Case};
use crate::child::note;
use crate::end::{PAGE, read, write};
use crate::record::{HEADER, Ledger, Record};
use crate::seed;
use crate::subject::Subject;
use crate::task::Task;

/// Cases about mixes of knobs.
pub const AREA: Area = Area {
    name: "random",
    cases: &[Case::device(
        "numbered records come through 200 random configs whole and in order",
        random_configs,
    )],
};

const CONFIGS: u64 = 200;
const WRITERS: u16 = 3;
const EACH: u32 = 12;

fn below(generator: &mut ChaCha8Rng, bound: u32) -> u32 {
    // The bias is far below what anybody could notice here.
    generator.next_u32() % bound
}

// Any value that the knob takes, but no pipe larger than 1 MiB.
fn draw_value(generator: &mut ChaCha8Rng, knob: &Knob) -> String {
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

fn draw_config(generator: &mut ChaCha8Rng) -> Config {
    let mut config = Config::DEFAULT;
    for knob in KNOBS {
        let value = draw_value(generator, knob);
        knob.store(&mut config, &value)
            .unwrap_or_else(|error| panic!("{}={value}: {error}", knob.name));
    }
    config
}

fn random_configs(subject: &Subject) {
    for number in 0..CONFIGS {
        let generator = &mut seed::generator(number);
        let config = draw_config(generator);
        note(&format!("config {number}: {config}"));
        let (r, w) = subject
            .control()
            .create(Flags::CLOEXEC, &config.to_string())
            .expect("make a pipe");
        let lens: Vec<u16> = (0..EACH)
            .map(|_| (HEADER as u32 + below(generator, 4089)) as u16)
            .collect();
        let mut left =
            usize::from(WRITERS) * lens.iter().map(|&len| usize::from(len)).sum::<usize>();
        let mut ledger = Ledger::new(WRITERS.into());
        let mut stream = Vec::new();
        scope(|s| {
            for writer in 0..WRITERS {
                let (w, lens) = (&w, &lens);
                Task::spawn(s, move || {
                    for (number, &len) in (0..).zip(lens) {
                        let record = Record {
                            writer,
                            len,
                            number,
                        };
                        assert_eq!(write(w, &record.bytes()), Ok(len.into()));
                    }
                });
            }
            while left > 0 {
                let part = read(&r, 1 + below(generator, 3 * PAGE as u32) as usize).expect("read");
                left -= part.len();
                stream.extend_from_slice(&part);
                ledger.enter_all(&mut stream);
            }
        });
        ledger.assert_complete(EACH);
    }
}
