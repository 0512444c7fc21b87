// SPDX-License-Identifier: GPL-2.0
//! Presets, in sysfs and in a create call.

use altpipe_core::{Config, KNOBS, PRESETS};
use altpipe_uapi::Flags;
use rustix::io::Errno;

use crate::case::{Area, Case};
use crate::knobs::{active, show, store};
use crate::subject::{Subject, config_of, errno};

/// Cases about presets.
pub const AREA: Area = Area {
    name: "presets",
    cases: &[
        Case::device(
            "preset lists every preset, with brackets round each that the knobs match",
            listed,
        ),
        Case::device("a stored preset sets every knob", sets_all),
        Case::device(
            "a store of anything but a preset is EINVAL and changes nothing",
            bad_store,
        ),
        Case::device(
            "a create call takes a preset, and knobs that go over it",
            in_create,
        ),
        Case::device(
            "a preset twice, behind a knob or misspelt is EINVAL",
            bad_create,
        ),
        Case::device(
            "preset takes a whole config: a preset, knobs over it, or knobs over what stands",
            whole_config,
        ),
    ],
};

fn listing(matches: impl Fn(&Config) -> bool) -> String {
    let words = PRESETS.iter().map(|preset| {
        if matches(&preset.config) {
            format!("[{}]", preset.name)
        } else {
            preset.name.to_string()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn new_config(subject: &Subject, text: &str) -> Config {
    let (r, _w) = subject.control().create(Flags::CLOEXEC, text).expect(text);
    config_of(r)
}

fn listed(_: &Subject) {
    assert_eq!(show("preset"), listing(|config| *config == Config::DEFAULT));
    assert!(
        show("preset").ends_with("v7.2 [v7.3]"),
        "{}",
        show("preset")
    );
    store("knobs/times", "atime").unwrap();
    assert_eq!(show("preset"), listing(|_| false));
    store("knobs/times", "none").unwrap();
    assert!(show("preset").ends_with(" [v7.3]"));
}

fn sets_all(subject: &Subject) {
    for preset in PRESETS {
        store("preset", format!("{}\n", preset.name)).unwrap();
        assert_eq!(show("preset"), listing(|config| *config == preset.config));
        for knob in KNOBS {
            let mut value = String::new();
            knob.write_value(&preset.config, &mut value).unwrap();
            assert_eq!(
                active(&show(&format!("knobs/{}", knob.name))),
                value,
                "{} of {}",
                knob.name,
                preset.name
            );
        }
        assert_eq!(new_config(subject, ""), preset.config);
    }
}

fn bad_store(_: &Subject) {
    store("preset", "v5.5").unwrap();
    let before = show("preset");
    for text in [
        "v5",
        "V5.5",
        "v5.5 ",
        " v5.5",
        "[v5.5]",
        "v5.5\n\n",
        "v5.5,",
        "5.5",
        "v9.9",
        "v5.5 v5.6",
        "v5.5,v5.6",
    ] {
        assert_eq!(store("preset", text), Err(Errno::INVAL), "{text:?}");
        assert_eq!(show("preset"), before);
    }
}

fn in_create(subject: &Subject) {
    for preset in PRESETS {
        assert_eq!(
            new_config(subject, preset.name),
            preset.config,
            "{}",
            preset.name
        );
    }
    store("knobs/block_size", "512").unwrap();
    let parsed = Config::parse("v5.5,tail_update=mutex,exclusive=1", &Config::DEFAULT)
        .map_err(|error| error.to_string());
    let config = new_config(subject, "v5.5,tail_update=mutex,exclusive=1");
    assert_eq!(Ok(config), parsed);
    assert_eq!(
        config.block_size, 4096,
        "a preset sets every knob, whatever the defaults"
    );
}

fn bad_create(subject: &Subject) {
    for text in [
        "v5.5,v5.6",
        "v5.5,v5.5",
        "exclusive=1,v5.5",
        "v5.5-rc2",
        "V5.5",
        "v5.5,",
        ",v5.5",
        "v5.5 ",
        "preset=v5.5",
    ] {
        let made = subject.control().create(Flags::CLOEXEC, text);
        assert_eq!(
            made.map(drop).map_err(|error| errno(&error)),
            Err(Errno::INVAL),
            "{text}"
        );
    }
}

fn whole_config(subject: &Subject) {
    let mut expected = Config::DEFAULT;
    for text in [
        "v5.5,exclusive=1,tail_update=mutex",
        "times=none,block_size=1024",
        "v3.14,times=atime",
    ] {
        expected = Config::parse(text, &expected)
            .map_err(|error| error.to_string())
            .unwrap();
        store("preset", format!("{text}\n")).unwrap();
        assert_eq!(new_config(subject, ""), expected, "after {text}");
    }
    let before = show("preset");
    assert_eq!(store("preset", "v7.3,exclusive=2"), Err(Errno::INVAL));
    assert_eq!(
        (show("preset"), new_config(subject, "")),
        (before, expected),
        "a preset with a bad knob sets nothing"
    );
}
