// SPDX-License-Identifier: GPL-2.0

//! Knobs and their grammar, case by case.

use altpipe_core::config::{Reason, Values};
use altpipe_core::{Config, Knob, ParseError, KNOBS};

fn parse(text: &str) -> Result<Config, ParseError<'_>> {
    Config::parse(text, &Config::DEFAULT)
}

fn knob(name: &str) -> &'static Knob {
    Knob::find(name).unwrap_or_else(|| panic!("no knob {name}"))
}

fn shown(name: &str, config: &Config) -> String {
    let mut text = String::new();
    knob(name)
        .show(config, &mut text)
        .expect("a string takes all");
    text
}

fn fault(word: &str, reason: Reason) -> Result<Config, ParseError<'_>> {
    Err(ParseError { word, reason })
}

#[test]
fn the_default_is_what_linux_7_3_does() {
    let settings: Vec<_> = KNOBS
        .iter()
        .map(|knob| {
            let mut text = format!("{}=", knob.name);
            knob.write_value(&Config::DEFAULT, &mut text).unwrap();
            text
        })
        .collect();
    let expected = [
        "block_size=4096",
        "times=none",
        "freeze_check=0",
        "tail_update=mutex",
        "wake_writer=freed_full",
        "wake_reader=was_empty_or_epollet",
        "sync_read=1",
        "sync_write=1",
        "exclusive=1",
        "split_wait=1",
        "read_merge=0",
        "publish=after_copy",
        "merge=1",
        "prealloc=pool",
        "prealloc_max=8",
        "prealloc_keep=2",
        "page_cache=2",
        "fasync=every_io",
        "nowait=1",
        "min_def_buffers=2",
        "capacity=65536",
    ];
    assert_eq!(settings, expected);
}

#[test]
fn the_first_choice_is_the_default() {
    for knob in KNOBS {
        if let Values::Choice(choices) = knob.values {
            let mut text = String::new();
            knob.write_value(&Config::DEFAULT, &mut text).unwrap();
            assert_eq!(text, choices[0].word, "{}", knob.name);
        }
    }
}

#[test]
fn a_file_name_is_the_name_with_a_terminator() {
    for knob in KNOBS {
        assert_eq!(knob.file.to_str(), Ok(knob.name));
    }
}

#[test]
fn names_and_words_are_unique_and_fit_the_grammar() {
    let plain = |word: &str| {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        !word.is_empty() && word.bytes().all(allowed)
    };
    for (position, knob) in KNOBS.iter().enumerate() {
        assert!(plain(knob.name), "{}", knob.name);
        assert!(KNOBS[..position]
            .iter()
            .all(|other| other.name != knob.name));
        if let Values::Choice(choices) = knob.values {
            for (position, choice) in choices.iter().enumerate() {
                assert!(plain(choice.word), "{}={}", knob.name, choice.word);
                assert!(choices[..position]
                    .iter()
                    .all(|other| other.word != choice.word));
            }
        }
    }
}

#[test]
fn documentation_is_one_paragraph_of_sentences() {
    let good = |doc: &str| {
        doc.starts_with(char::is_uppercase) && doc.ends_with('.') && !doc.contains("  ")
    };
    for knob in KNOBS {
        assert!(good(knob.doc), "{}: {:?}", knob.name, knob.doc);
        if let Values::Choice(choices) = knob.values {
            for choice in choices {
                assert!(good(choice.doc), "{}: {:?}", choice.word, choice.doc);
            }
        }
    }
}

#[test]
fn choices_are_shown_with_brackets_round_the_active_one() {
    let config = parse("tail_update=wait_lock").unwrap();
    assert_eq!(
        shown("tail_update", &Config::DEFAULT),
        "[mutex] wait_lock wait_lock_wake"
    );
    assert_eq!(
        shown("tail_update", &config),
        "mutex [wait_lock] wait_lock_wake"
    );
}

#[test]
fn numbers_and_switches_are_shown_plain() {
    assert_eq!(shown("block_size", &Config::DEFAULT), "4096");
    assert_eq!(shown("freeze_check", &Config::DEFAULT), "0");
    assert_eq!(shown("exclusive", &Config::DEFAULT), "1");
}

#[test]
fn the_empty_text_is_the_base() {
    let base = parse("times=atime").unwrap();
    assert_eq!(Config::parse("", &base), Ok(base));
}

#[test]
fn what_a_text_does_not_name_is_taken_from_the_base() {
    let base = parse("times=atime,exclusive=0").unwrap();
    let config = Config::parse("exclusive=1,block_size=512", &base).unwrap();
    assert_eq!(config, parse("block_size=512,times=atime").unwrap());
}

#[test]
fn a_config_prints_in_the_order_of_the_table() {
    let config = parse("split_wait=0,wake_reader=every_write,block_size=1024").unwrap();
    assert_eq!(
        config.to_string(),
        "v7.3,block_size=1024,wake_reader=every_write,split_wait=0"
    );
}

#[test]
fn bounds_of_the_block_size() {
    for good in ["512", "1024", "4096", "65536"] {
        let text = format!("block_size={good}");
        let block_size = parse(&text).map(|config| config.block_size);
        assert_eq!(block_size, Ok(good.parse().unwrap()));
    }
    for bad in [
        "0",
        "1",
        "256",
        "511",
        "513",
        "4097",
        "65535",
        "131072",
        "4294967296",
    ] {
        let text = format!("block_size={bad}");
        assert_eq!(parse(&text), fault(bad, Reason::BadValue("block_size")));
    }
}

#[test]
fn a_number_is_written_in_one_way() {
    for bad in [
        "", "+512", "-512", "0512", "0x200", "5_12", "512.0", " 512", "512 ", "512\n", "٥١٢",
    ] {
        let text = format!("block_size={bad}");
        assert_eq!(parse(&text), fault(bad, Reason::BadValue("block_size")));
    }
}

#[test]
fn a_switch_takes_0_and_1() {
    assert_eq!(
        parse("exclusive=0").map(|config| config.exclusive),
        Ok(false)
    );
    assert_eq!(
        parse("exclusive=1").map(|config| config.exclusive),
        Ok(true)
    );
    for bad in ["", "2", "00", "01", "y", "on", "true", "-1"] {
        let text = format!("exclusive={bad}");
        assert_eq!(parse(&text), fault(bad, Reason::BadValue("exclusive")));
    }
}

#[test]
fn a_choice_is_written_in_full_and_in_lower_case() {
    for bad in [
        "",
        "Full",
        "FULL",
        "ful",
        "fulll",
        "[full]",
        "full ",
        " full",
        "none atime",
        "0",
    ] {
        let text = format!("times={bad}");
        assert_eq!(parse(&text), fault(bad, Reason::BadValue("times")));
    }
}

#[test]
fn a_value_ends_at_the_comma_alone() {
    assert_eq!(
        parse("times=full=full"),
        fault("full=full", Reason::BadValue("times"))
    );
    assert_eq!(
        parse("times=full\0"),
        fault("full\0", Reason::BadValue("times"))
    );
}

#[test]
fn an_unknown_knob_is_named() {
    for bad in [
        "tmies",
        "Times",
        "times ",
        " times",
        "tïmes",
        "knobs/times",
        "",
    ] {
        let text = format!("exclusive=0,{bad}=full");
        assert_eq!(parse(&text), fault(bad, Reason::UnknownKnob));
    }
}

#[test]
fn an_item_without_a_value_is_named() {
    assert_eq!(parse("exclusive=0,times"), fault("times", Reason::NoValue));
    assert_eq!(parse("v5.7"), fault("v5.7", Reason::NoValue));
    assert_eq!(parse(" "), fault(" ", Reason::NoValue));
}

#[test]
fn an_empty_item_is_a_fault() {
    for bad in [",", "times=full,", ",times=full", "times=full,,exclusive=0"] {
        assert_eq!(parse(bad), fault(bad, Reason::EmptyItem));
    }
}

#[test]
fn a_knob_that_is_set_twice_is_a_fault() {
    let twice = "times=full,exclusive=0,times=full";
    assert_eq!(parse(twice), fault("times", Reason::Repeated));
}

#[test]
fn the_first_fault_is_reported() {
    assert_eq!(
        parse("times=x,bad=1"),
        fault("x", Reason::BadValue("times"))
    );
    assert_eq!(parse("bad=1,times=x"), fault("bad", Reason::UnknownKnob));
}

#[test]
fn errors_name_the_word_and_list_the_choices() {
    let said = |text| parse(text).unwrap_err().to_string();
    let knobs = "knobs are block_size, times, freeze_check, tail_update, wake_writer, wake_reader, \
                 sync_read, sync_write, exclusive, split_wait, read_merge, publish, merge, prealloc, \
                 prealloc_max, prealloc_keep, page_cache, fasync, nowait, min_def_buffers and capacity";
    let presets =
        "presets are v2.6.18, v2.6.19, v2.6.28, v3.14, v5.4, v5.5-rc1, v5.5, v5.6, v5.14, v6.4, \
                   v6.7, v6.14, v6.15, v7.2 and v7.3";

    assert_eq!(
        said("tmies=full"),
        format!("there is no knob \"tmies\"; {knobs}")
    );
    assert_eq!(
        said("v5.7"),
        format!("\"v5.7\" is neither knob=value nor a preset; {presets}; {knobs}")
    );
    assert_eq!(
        said("times"),
        "times lacks a value; it takes none, atime, mtime or full"
    );
    assert_eq!(
        said("block_size=5000"),
        "block_size cannot be \"5000\"; it takes a power of two from 512 to 65536"
    );
    assert_eq!(
        said("exclusive=yes"),
        "exclusive cannot be \"yes\"; it takes 0 or 1"
    );
    assert_eq!(
        said("times=full,"),
        "\"times=full,\" has an empty item; write preset,knob=value,knob=value"
    );
    assert_eq!(said("times=full,times=none"), "times is set twice");
    assert_eq!(
        said("times=full,v5.5"),
        "the preset v5.5 must stand first: it sets every knob"
    );
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let said = parse("\x1b[2J=1").unwrap_err().to_string();
    assert!(!said.contains('\x1b'), "{said:?}");
}
