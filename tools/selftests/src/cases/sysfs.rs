// SPDX-License-Identifier: GPL-2.0
//! The device's knobs and counters in sysfs. The runner sets the knobs back after each case.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

use altpipe_core::config::{Times, Values};
use altpipe_core::{Config, KNOBS, Knob};
use altpipe_uapi::{Stats, get_config, get_stats};
use rustix::io::Errno;

use crate::case::{Area, Case};
use crate::end::{PAGE, fill, read, read_exact, write};
use crate::knobs::{active, path, show, store};
use crate::subject::{Subject, config_of, errno, values};

/// Cases about `/sys/class/misc/altpipe`.
pub const AREA: Area = Area {
    name: "sysfs",
    cases: &[
        Case::device("there is a file for each knob and no other", knob_files),
        Case::device(
            "a knob of words lists its choices with brackets round the active one",
            choices_listed,
        ),
        Case::device(
            "every value of every knob can be stored, and then shows",
            values_stored,
        ),
        Case::device(
            "a new pipe records the knobs, and an older one keeps its own",
            pipes_record,
        ),
        Case::device(
            "a create call's config goes over the knobs as they stand",
            config_over_knobs,
        ),
        Case::device(
            "a store of anything but one value is EINVAL and changes nothing",
            bad_stores,
        ),
        Case::device(
            "a store longer than a page is EINVAL, though it begins with a good value",
            oversized_store,
        ),
        Case::device(
            "there is a file for each counter, one to reset them, and no other",
            counter_files,
        ),
        Case::device(
            "the counters sum up all pipes, dead ones included",
            counters_sum,
        ),
        Case::device(
            "a store of 1 to stats/reset starts all counters anew and leaves the pipes' own alone",
            reset,
        ),
        Case::device(
            "a store of anything else to stats/reset is EINVAL and resets nothing",
            bad_resets,
        ),
        Case::device(
            "files have the modes of their kinds and refuse the other direction",
            modes,
        ),
    ],
};

fn files(directory: &str) -> BTreeSet<String> {
    fs::read_dir(path(directory))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn file(knob: &Knob) -> String {
    format!("knobs/{}", knob.name)
}

fn default(knob: &Knob) -> String {
    let mut text = String::new();
    knob.write_value(&Config::DEFAULT, &mut text).unwrap();
    text
}

fn knob_files(_: &Subject) {
    assert_eq!(
        files("knobs"),
        KNOBS.iter().map(|knob| knob.name.to_string()).collect()
    );
}

fn choices_listed(_: &Subject) {
    assert_eq!(
        show("knobs/tail_update"),
        "[mutex] wait_lock wait_lock_wake"
    );
    store("knobs/tail_update", "wait_lock\n").unwrap();
    assert_eq!(
        show("knobs/tail_update"),
        "mutex [wait_lock] wait_lock_wake"
    );
    assert_eq!(show("knobs/exclusive"), "1");
    assert_eq!(show("knobs/block_size"), "4096");
    for knob in KNOBS {
        let Values::Choice(choices) = knob.values else {
            continue;
        };
        let words: Vec<_> = choices.iter().map(|choice| choice.word).collect();
        assert_eq!(show(&file(knob)).replace(['[', ']'], ""), words.join(" "));
    }
}

fn values_stored(_: &Subject) {
    for knob in KNOBS {
        let largest = match knob.values {
            Values::Number { max, .. } | Values::PowerOfTwo { max, .. } => vec![max.to_string()],
            Values::Switch | Values::Choice(_) => Vec::new(),
        };
        for value in values(knob)
            .into_iter()
            .chain(largest)
            .chain([default(knob)])
        {
            for end in ["", "\n"] {
                store(&file(knob), format!("{value}{end}")).unwrap();
                assert_eq!(active(&show(&file(knob))), value);
            }
        }
    }
}

fn pipes_record(subject: &Subject) {
    for knob in KNOBS {
        for value in values(knob) {
            let older = subject.pipe();
            let older_config = get_config(&older.read).unwrap();
            store(&file(knob), &value).unwrap();
            let mut expected = Config::DEFAULT;
            knob.store(&mut expected, &value)
                .map_err(|error| error.to_string())
                .unwrap();
            assert_eq!(config_of(subject.pipe().read), expected);
            assert_eq!(get_config(&older.read).unwrap(), older_config);
            store(&file(knob), default(knob)).unwrap();
        }
    }
}

fn config_over_knobs(subject: &Subject) {
    store("knobs/times", "full").unwrap();
    store("knobs/exclusive", "0").unwrap();
    let (r, _w) = subject
        .control()
        .create(altpipe_uapi::Flags::CLOEXEC, "exclusive=1,block_size=512")
        .unwrap();
    assert_eq!(
        config_of(&r),
        Config {
            block_size: 512,
            times: Times::Full,
            ..Config::DEFAULT
        }
    );
    assert_eq!(
        (
            active(&show("knobs/times")),
            show("knobs/exclusive").as_str()
        ),
        ("full", "0"),
        "a create call sets no knob"
    );
}

fn bad_stores(subject: &Subject) {
    for knob in KNOBS {
        let good = default(knob);
        let mut bad: Vec<String> = [
            "",
            "\n",
            "nonsense",
            "-1",
            "+1",
            "0x1000",
            "01",
            "4294967296",
            "99999999999999999999",
        ]
        .map(String::from)
        .into();
        bad.extend([
            format!(" {good}"),
            format!("{good} "),
            format!("{good}\n\n"),
            format!("{good},"),
            format!("{good}\0"),
        ]);
        bad.extend([
            format!("{good}{good}"),
            format!("[{good}]"),
            format!("{}={good}", knob.name),
            show(&file(knob)) + " x",
        ]);
        bad.extend(match knob.values {
            Values::Switch => vec!["2".into(), "y".into()],
            Values::Number { min, max } => vec![
                (u64::from(min).wrapping_sub(1)).to_string(),
                (u64::from(max) + 1).to_string(),
            ],
            Values::PowerOfTwo { min, max } => {
                vec![
                    (min / 2).to_string(),
                    (u64::from(max) * 2).to_string(),
                    (min + 1).to_string(),
                    "0".into(),
                ]
            }
            Values::Choice(choices) => {
                vec![choices[0].word.to_uppercase(), choices[0].word[1..].into()]
            }
        });
        let value = values(knob).remove(0);
        store(&file(knob), &value).unwrap();
        let before = show(&file(knob));
        for text in bad {
            // The kernel does not hand an empty write to the file at all.
            let expected = if text.is_empty() {
                Ok(())
            } else {
                Err(Errno::INVAL)
            };
            assert_eq!(
                store(&file(knob), &text),
                expected,
                "{} from {text:?}",
                knob.name
            );
            assert_eq!(show(&file(knob)), before, "{} after {text:?}", knob.name);
        }
        assert_eq!(store(&file(knob), [0xff, 0xfe]), Err(Errno::INVAL));
        store(&file(knob), &good).unwrap();
    }
    assert_eq!(config_of(subject.pipe().read), Config::DEFAULT);
}

fn oversized_store(_: &Subject) {
    for filler in ["\n", " ", "x", "\0"] {
        for len in [PAGE - 9, PAGE, PAGE + 1, 3 * PAGE] {
            let text = format!("wait_lock{}", filler.repeat(len));
            let file = fs::OpenOptions::new()
                .write(true)
                .open(path("knobs/tail_update"))
                .unwrap();
            assert_eq!(
                write(&file, text.as_bytes()),
                Err(Errno::INVAL),
                "{} bytes",
                text.len()
            );
            assert_eq!(
                show("knobs/tail_update"),
                "[mutex] wait_lock wait_lock_wake"
            );
        }
    }
}

fn counter_files(_: &Subject) {
    let expected = Stats::NAMES
        .into_iter()
        .chain(["reset"])
        .map(String::from)
        .collect();
    assert_eq!(files("stats"), expected);
}

fn totals() -> Vec<(&'static str, u64)> {
    Stats::NAMES
        .into_iter()
        .map(|name| (name, show(&format!("stats/{name}")).parse().unwrap()))
        .collect()
}

fn counters_sum(subject: &Subject) {
    let before = totals();
    let first = subject.pipe();
    fill(&first.write, 100);
    read_exact(&first.read, 10_000);
    let first_counted = get_stats(&first.read).unwrap();
    drop(first);
    let (r, w) = subject
        .control()
        .create(
            altpipe_uapi::Flags::CLOEXEC,
            "times=full,tail_update=wait_lock",
        )
        .unwrap();
    write(&w, &[b'x'; 3 * PAGE]).unwrap();
    read(&r, 2 * PAGE).unwrap();
    let second_counted = get_stats(&r).unwrap();
    let sum = first_counted
        .iter()
        .zip(second_counted.iter())
        .map(|((name, one), (_, two))| (name, one + two));
    for ((name, sum), (before, after)) in sum.zip(before.into_iter().zip(totals())) {
        assert_eq!(after.1 - before.1, sum, "{name}");
    }
    assert!(
        second_counted.tail_locks > 0
            && second_counted.time_updates > 0
            && first_counted.merges > 0
    );
}

fn reset(subject: &Subject) {
    let pipe = subject.pipe();
    write(&pipe.write, b"x").unwrap();
    assert_ne!(show("stats/writes"), "0");
    store("stats/reset", "1\n").unwrap();
    assert!(
        totals().iter().all(|&(_, value)| value == 0),
        "{:?}",
        totals()
    );
    assert_eq!(get_stats(&pipe.read).unwrap().writes, 1);
    write(&pipe.write, b"yz").unwrap();
    drop(pipe);
    let value = |name| show(&format!("stats/{name}"));
    assert_eq!(
        (
            value("writes").as_str(),
            value("bytes_written").as_str(),
            value("pipes_created").as_str()
        ),
        ("1", "2", "0")
    );
    store("stats/reset", "1").unwrap();
    assert_eq!(value("writes"), "0");
}

fn bad_resets(subject: &Subject) {
    write(subject.pipe().write, b"x").unwrap();
    let before = totals();
    for text in ["0", "2", "\n", "11", "1 ", "y", "-1"] {
        assert_eq!(store("stats/reset", text), Err(Errno::INVAL), "{text:?}");
    }
    assert_eq!(totals(), before);
}

fn modes(_: &Subject) {
    let mode = |file: &str| fs::metadata(path(file)).unwrap().mode() & 0o777;
    for knob in KNOBS {
        assert_eq!(mode(&file(knob)), 0o644, "{}", knob.name);
    }
    for name in Stats::NAMES {
        let name = format!("stats/{name}");
        assert_eq!(mode(&name), 0o444, "{name}");
        assert_eq!(store(&name, "1"), Err(Errno::ACCESS), "{name}");
    }
    assert_eq!(mode("stats/reset"), 0o200);
    assert_eq!(
        fs::read(path("stats/reset")).map_err(|error| errno(&error)),
        Err(Errno::ACCESS)
    );
}
