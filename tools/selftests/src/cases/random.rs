// SPDX-License-Identifier: GPL-2.0
//! Records through pipes of random configs: whatever the mix of knobs, nothing is lost, torn,
//! reordered or stuck.

use std::thread::scope;

use altpipe_uapi::Flags;

use crate::case::{Area, Case};
use crate::child::note;
use crate::draw;
use crate::end::{PAGE, read, write};
use crate::record::{HEADER, Ledger, Record};
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

fn random_configs(subject: &Subject) {
    for number in 0..CONFIGS {
        let generator = &mut draw::generator(number);
        let config = draw::config(generator);
        note(&format!("config {number}: {config}"));
        let (r, w) = subject
            .control()
            .create(Flags::CLOEXEC, &config.to_string())
            .expect("make a pipe");
        let lens: Vec<u16> = (0..EACH)
            .map(|_| (HEADER as u32 + draw::below(generator, 4089)) as u16)
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
                let part =
                    read(&r, 1 + draw::below(generator, 3 * PAGE as u32) as usize).expect("read");
                left -= part.len();
                stream.extend_from_slice(&part);
                ledger.enter_all(&mut stream);
            }
        });
        ledger.assert_complete(EACH);
    }
}
