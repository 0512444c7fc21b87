// SPDX-License-Identifier: GPL-2.0

//! Properties of the grammar, over random configs and random text.

use altpipe_core::config::Values;
use altpipe_core::{Config, Knob, Preset, KNOBS, PRESETS};
use proptest::prelude::*;
use proptest::sample::{select, subsequence, Index};

/// Every value of a knob, as text. No knob has so many that they could not all be tried.
fn values(knob: &Knob) -> Vec<String> {
    let numbers = |min: u32, max: u32| (min..=max).map(|number| number.to_string());
    match knob.values {
        Values::Switch => numbers(0, 1).collect(),
        Values::Number { min, max } => numbers(min, max).collect(),
        Values::PowerOfTwo { min, max } => (0..u32::BITS)
            .map(|bit| 1u32 << bit)
            .filter(|power| (min..=max).contains(power))
            .map(|power| power.to_string())
            .collect(),
        Values::Choice(choices) => choices
            .iter()
            .map(|choice| choice.word.to_string())
            .collect(),
    }
}

/// What a knob is set to, as text.
fn value(knob: &Knob, config: &Config) -> String {
    let mut text = String::new();
    knob.write_value(config, &mut text)
        .expect("a string takes all");
    text
}

fn item() -> impl Strategy<Value = (&'static Knob, String)> {
    (0..KNOBS.len()).prop_flat_map(|position| {
        let knob = &KNOBS[position];
        select(values(knob)).prop_map(move |value| (knob, value))
    })
}

/// A config with each knob at any of its values.
fn any_config() -> impl Strategy<Value = Config> {
    let all: Vec<_> = KNOBS.iter().map(|knob| select(values(knob))).collect();
    all.prop_map(|values| {
        let mut config = Config::DEFAULT;
        for (knob, value) in KNOBS.iter().zip(&values) {
            knob.store(&mut config, value)
                .expect("listed among the knob's values");
        }
        config
    })
}

fn preset() -> impl Strategy<Value = String> {
    (0..PRESETS.len()).prop_map(|position| PRESETS[position].name.to_string())
}

/// A text that names a preset or none, and sets some knobs, each once, in any order.
fn good_text() -> impl Strategy<Value = String> {
    let positions: Vec<_> = (0..KNOBS.len()).collect();
    subsequence(positions, 0..=KNOBS.len())
        .prop_shuffle()
        .prop_flat_map(|positions| {
            let knobs = positions.into_iter().map(|position| &KNOBS[position]);
            knobs
                .map(|knob| select(values(knob)).prop_map(|value| format!("{}={value}", knob.name)))
                .collect::<Vec<_>>()
        })
        .prop_flat_map(|items| (prop::option::of(preset()), Just(items)))
        .prop_map(|(preset, items)| Vec::from_iter(preset.into_iter().chain(items)).join(","))
}

/// Text near the grammar: its words and signs in senseless order.
fn near_text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => item().prop_map(|(knob, value)| format!("{}={value}", knob.name)),
        1 => item().prop_map(|(knob, _)| knob.name.to_string()),
        1 => item().prop_map(|(_, value)| value),
        2 => preset(),
        4 => Just(",".to_string()),
        1 => Just("=".to_string()),
        1 => "[ \t\r\n\0\u{fffd}é0-9+-]",
    ];
    prop::collection::vec(word, 0..12).prop_map(|words| words.concat())
}

/// Checks what must hold for any text: it is refused, or it says in so many words what it sets.
fn check_accepted(text: &str, base: &Config) {
    let Ok(config) = Config::parse(text, base) else {
        return;
    };
    let mut items: Vec<_> = match text {
        "" => Vec::new(),
        _ => text.split(',').collect(),
    };
    let preset = items.first().copied().and_then(Preset::find);
    if preset.is_some() {
        items.remove(0);
    }
    let base = preset.map_or(base, |preset| &preset.config);
    for item in &items {
        let (name, word) = item.split_once('=').expect("an accepted item");
        let knob = Knob::find(name).expect("an accepted knob");
        assert_eq!(value(knob, &config), word, "in {text:?}");
    }
    for knob in KNOBS {
        let prefix = format!("{}=", knob.name);
        match items
            .iter()
            .filter(|item| item.starts_with(&prefix))
            .count()
        {
            0 => assert!(knob.same(&config, base), "{text:?} changed {}", knob.name),
            1 => {}
            _ => panic!("{text:?} sets {} twice", knob.name),
        }
    }
}

#[test]
fn every_value_of_every_knob_survives_storing_and_showing() {
    for knob in KNOBS {
        let values = values(knob);
        for word in &values {
            let mut config = Config::DEFAULT;
            assert_eq!(knob.store(&mut config, word), Ok(()));
            assert_eq!(&value(knob, &config), word);

            let mut shown = String::new();
            knob.show(&config, &mut shown).unwrap();
            let expected = match knob.values {
                Values::Choice(_) => {
                    let bracketed = |other: &String| match other == word {
                        true => format!("[{other}]"),
                        false => other.clone(),
                    };
                    values.iter().map(bracketed).collect::<Vec<_>>().join(" ")
                }
                _ => word.clone(),
            };
            assert_eq!(shown, expected);

            for other in KNOBS.iter().filter(|other| other.name != knob.name) {
                assert!(
                    other.same(&config, &Config::DEFAULT),
                    "{} moved {}",
                    knob.name,
                    other.name
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn printing_and_parsing_are_inverse(config in any_config(), base in any_config()) {
        let text = config.to_string();
        prop_assert_eq!(Config::parse(&text, &base), Ok(config));
        prop_assert!(text.is_ascii());
    }

    #[test]
    fn printing_is_canonical(text in good_text()) {
        let config = Config::parse(&text, &Config::DEFAULT).expect("a good text");
        let printed = config.to_string();
        prop_assert_eq!(Config::parse(&printed, &Config::DEFAULT), Ok(config));
        let changes = |text: &str| text.split(',').filter(|item| item.contains('=')).count();
        prop_assert!(changes(&printed) <= changes(&text));
    }

    #[test]
    fn good_text_over_any_base_sets_what_it_names(text in good_text(), base in any_config()) {
        prop_assert!(Config::parse(&text, &base).is_ok());
        check_accepted(&text, &base);
    }

    #[test]
    fn text_near_the_grammar_is_refused_or_meant(text in near_text(), base in any_config()) {
        check_accepted(&text, &base);
    }

    #[test]
    fn one_wrong_character_is_refused_or_meant(
        text in good_text(),
        at in any::<Index>(),
        wrong in any::<Option<char>>(),
        replace in any::<bool>(),
    ) {
        let mut characters: Vec<_> = text.chars().collect();
        let at = at.index(characters.len() + 1);
        if replace && at < characters.len() {
            characters.remove(at);
        }
        if let Some(wrong) = wrong {
            characters.insert(at, wrong);
        }
        check_accepted(&String::from_iter(characters), &Config::DEFAULT);
    }

    #[test]
    fn garbage_never_panics_and_errors_can_be_told(text in any::<String>()) {
        if let Err(error) = Config::parse(&text, &Config::DEFAULT) {
            prop_assert!(text.contains(error.word));
            prop_assert!(!error.to_string().is_empty());
        }
        check_accepted(&text, &Config::DEFAULT);
    }

    #[test]
    fn a_failed_store_changes_nothing(
        (knob, _) in item(),
        base in any_config(),
        text in prop_oneof![near_text(), any::<String>()],
    ) {
        let mut config = base;
        match knob.store(&mut config, &text) {
            Ok(()) => prop_assert_eq!(value(knob, &config), text),
            Err(error) => {
                prop_assert_eq!(error.word, text.as_str());
                prop_assert_eq!(config, base);
            }
        }
    }
}
