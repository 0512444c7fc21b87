// SPDX-License-Identifier: GPL-2.0

//! Presets, and how a config is told by the nearest of them.

use altpipe_core::config::Reason;
use altpipe_core::{Config, Knob, ParseError, Preset, KNOBS, PRESETS};

fn parse(text: &str) -> Result<Config, ParseError<'_>> {
    Config::parse(text, &Config::DEFAULT)
}

/// What `config` has that `base` has not, as `knob=value` items.
fn changes(base: &Config, config: &Config) -> String {
    let mut items = Vec::new();
    for knob in KNOBS.iter().filter(|knob| !knob.same(base, config)) {
        let mut item = format!("{}=", knob.name);
        knob.write_value(config, &mut item).unwrap();
        items.push(item);
    }
    items.join(",")
}

#[test]
fn the_newest_preset_is_the_default() {
    let newest = PRESETS.last().expect("there are presets");
    assert_eq!((newest.name, newest.config), ("v7.3", Config::DEFAULT));
}

#[test]
fn each_release_changed_what_history_says() {
    let history = [
        (
            "v2.6.18",
            "times=full,wake_writer=every_release,wake_reader=every_write,exclusive=0,split_wait=0,\
             read_merge=1,prealloc=off,page_cache=1,fasync=with_wake,nowait=0",
        ),
        ("v2.6.19", "block_size=1024"),
        ("v2.6.28", "block_size=4096"),
        ("v3.14", "freeze_check=1"),
        ("v5.4", "min_def_buffers=1"),
        (
            "v5.5-rc1",
            "tail_update=wait_lock_wake,wake_writer=half,wake_reader=every_chunk,sync_read=0,\
             sync_write=0,publish=before_copy",
        ),
        (
            "v5.5",
            "tail_update=wait_lock,wake_writer=was_full,wake_reader=was_empty,sync_read=1,\
             sync_write=1,read_merge=0",
        ),
        ("v5.6", "exclusive=1,split_wait=1"),
        (
            "v5.14",
            "wake_reader=was_empty_or_polled,fasync=every_io,min_def_buffers=2",
        ),
        ("v6.4", "nowait=1"),
        ("v6.7", "tail_update=mutex"),
        ("v6.14", "wake_writer=freed_full"),
        (
            "v6.15",
            "times=none,freeze_check=0,publish=after_copy,page_cache=2",
        ),
        ("v7.2", "prealloc=burst"),
        ("v7.3", "wake_reader=was_empty_or_epollet,prealloc=pool"),
    ];
    let mut before = Config::DEFAULT;
    for (preset, (name, changed)) in PRESETS.iter().zip(history) {
        assert_eq!(preset.name, name);
        assert_eq!(changes(&before, &preset.config), changed, "{name}");
        before = preset.config;
    }
    assert_eq!(PRESETS.len(), history.len());
}

#[test]
fn a_preset_sets_every_knob_and_later_items_change_it() {
    let base = parse("block_size=512,exclusive=0").unwrap();
    let config = Config::parse("v5.5,tail_update=mutex", &base).unwrap();
    let v5_5 = &Preset::find("v5.5").unwrap().config;
    assert_eq!(changes(v5_5, &config), "tail_update=mutex");
}

#[test]
fn a_preset_prints_as_the_newest_that_is_the_same() {
    for preset in PRESETS {
        let printed = match preset.name {
            "v2.6.18" => "v2.6.28",
            name => name,
        };
        assert_eq!(preset.config.to_string(), printed);
        assert_eq!(parse(preset.name), Ok(preset.config));
    }
}

#[test]
fn a_config_prints_as_the_nearest_preset_and_what_differs() {
    for text in [
        "v5.4,tail_update=wait_lock_wake",
        "v7.3,times=full,freeze_check=1",
        "v7.3,block_size=1024,exclusive=0",
        "v5.5-rc1,sync_read=1,sync_write=1",
    ] {
        assert_eq!(parse(text).unwrap().to_string(), text);
    }
    assert_eq!(
        parse("v2.6.18,block_size=1024").unwrap().to_string(),
        "v2.6.19"
    );
}

#[test]
fn a_preset_stands_first_or_not_at_all() {
    let fault = |word, reason| Err(ParseError { word, reason });
    assert_eq!(parse("exclusive=0,v5.5"), fault("v5.5", Reason::LatePreset));
    assert_eq!(parse("v5.4,v5.5"), fault("v5.5", Reason::LatePreset));
    assert_eq!(parse("v5.7"), fault("v5.7", Reason::NoValue));
    assert_eq!(parse("V5.5"), fault("V5.5", Reason::NoValue));
    assert_eq!(parse("v5.5=1"), fault("v5.5", Reason::UnknownKnob));
}

#[test]
fn every_preset_that_matches_is_shown_in_brackets() {
    let shown = |text| {
        let mut out = String::new();
        Preset::show_all(&parse(text).unwrap(), &mut out).unwrap();
        out
    };
    let marked = |text: &str| text.split(' ').filter(|word| word.starts_with('[')).count();
    assert!(shown("v2.6.18").starts_with("[v2.6.18] v2.6.19 [v2.6.28] v3.14 "));
    assert!(shown("").ends_with(" v7.2 [v7.3]"));
    assert_eq!(marked(&shown("v5.6")), 1);
    assert_eq!(marked(&shown("v7.3,merge=0")), 0);
}

#[test]
fn presets_have_names_of_their_own_and_documentation() {
    for (position, preset) in PRESETS.iter().enumerate() {
        assert!(preset.name.starts_with('v') && Knob::find(preset.name).is_none());
        assert!(PRESETS[..position]
            .iter()
            .all(|other| other.name != preset.name));
        assert!(preset.doc.ends_with('.') && !preset.doc.contains("  "));
    }
}
