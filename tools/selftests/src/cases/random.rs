// SPDX-License-Identifier: GPL-2.0
//! Records through pipes of random configs: whatever the mix of knobs, nothing is lost, torn,
//! reordered or stuck.

use std::thread::scope;

use altpipe_uapi::Flags;

use crate::case::{Area, Case};
use crate::child::note;
use crate::draw;
use crate::end::{PAGE, read, read_exact, write};
use crate::record::{HEADER, Ledger, Record};
use crate::subject::Subject;
use crate::task::Task;
use crate::transfer::splice;

/// Cases about mixes of knobs.
pub const AREA: Area = Area {
    name: "random",
    cases: &[
        Case::device(
            "numbered records come through 200 random configs whole and in order",
            random_configs,
        ),
        Case::device(
            "numbered records come through 200 random configs by calls and by splices in turn",
            spliced,
        ),
    ],
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

// Each side takes by chance, record by record or read by read, the call or the splice.
fn spliced(subject: &Subject) {
    for number in 0..CONFIGS {
        let generator = &mut draw::generator(number);
        let config = draw::config(generator);
        note(&format!("config {number}: {config}"));
        let (r, w) = subject
            .control()
            .create(Flags::CLOEXEC, &config.to_string())
            .expect("make a pipe");
        let records: Vec<(bool, Record)> = (0..3 * EACH)
            .map(|number| {
                let len = (HEADER as u32 + draw::below(generator, 4089)) as u16;
                let record = Record {
                    writer: 0,
                    len,
                    number,
                };
                (draw::below(generator, 2) == 0, record)
            })
            .collect();
        let mut left: usize = records.iter().map(|(_, it)| usize::from(it.len)).sum();
        let mut ledger = Ledger::new(1);
        let mut stream = Vec::new();
        scope(|s| {
            Task::spawn(s, || {
                let native = Subject::Native.pipe();
                for (by_splice, record) in &records {
                    let mut unsent = usize::from(record.len);
                    if !by_splice {
                        assert_eq!(write(&w, &record.bytes()), Ok(unsent));
                        continue;
                    }
                    write(&native.write, &record.bytes()).expect("write");
                    while unsent > 0 {
                        unsent -= splice(&native.read, &w, unsent).expect("splice");
                    }
                }
            });
            let native = Subject::Native.pipe();
            while left > 0 {
                let len = 1 + draw::below(generator, 3 * PAGE as u32) as usize;
                let part = if draw::below(generator, 2) == 0 {
                    read(&r, len).expect("read")
                } else {
                    let count = splice(&r, &native.write, len).expect("splice");
                    read_exact(&native.read, count)
                };
                left -= part.len();
                stream.extend_from_slice(&part);
                ledger.enter_all(&mut stream);
            }
        });
        ledger.assert_complete(3 * EACH);
    }
}
