// SPDX-License-Identifier: GPL-2.0
//! What is compared: the kernel's own pipe or FIFO, or an altpipe pipe of some config.
//!
//! A config contains commas, and so does a list of variants. The rule that tells them apart: spaces and `;`
//! always end a variant; after a comma, `knob=value` belongs to the config at its left, and a bare word (`native`,
//! `fifo`, `default`, a preset) begins the next variant. `native` and `fifo` take no knobs, so `native,times=full,freeze_check=1` is
//! two variants. `ALL` stands for every preset, oldest first. A knob set twice in one config is refused, for it means that a separator was forgotten.

use std::fmt;

use altpipe_core::PRESETS;
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

const NATIVE: &str = "native";
const FIFO: &str = "fifo";
const DEFAULT: &str = "default";
const ALL: &str = "ALL";

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Variant {
    /// pipe2(2) of the running kernel.
    Native,
    /// mkfifo(3) of the running kernel, which still stamps times and asks for the freeze on each I/O.
    Fifo,
    /// A pipe of `/dev/altpipe`, made with this config; an empty one takes the defaults as they stand.
    Altpipe(String),
}

impl Variant {
    /// An altpipe variant of a config that is known to be well formed.
    pub fn of(config: &str) -> Self {
        Self::from(config.to_owned())
    }

    /// The text for the create call, or none for a native pipe.
    pub fn config(&self) -> Option<&str> {
        match self {
            Self::Native | Self::Fifo => None,
            Self::Altpipe(config) => Some(config),
        }
    }
}

impl From<String> for Variant {
    fn from(text: String) -> Self {
        match text.as_str() {
            NATIVE => Self::Native,
            FIFO => Self::Fifo,
            DEFAULT => Self::Altpipe(String::new()),
            _ => Self::Altpipe(text),
        }
    }
}

impl From<Variant> for String {
    fn from(variant: Variant) -> Self {
        variant.to_string()
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Native => NATIVE,
            Self::Fifo => FIFO,
            Self::Altpipe(config) if config.is_empty() => DEFAULT,
            Self::Altpipe(config) => config,
        })
    }
}

/// Parses lists of variants by the rule above; all lists together are one.
pub fn parse_list<S: AsRef<str>>(lists: &[S]) -> Result<Vec<Variant>> {
    let mut variants = Vec::new();
    let items = lists
        .iter()
        .flat_map(|list| list.as_ref().split(|c: char| c == ';' || c.is_whitespace()))
        .filter(|item| !item.is_empty());
    for item in items {
        parse_item(item, &mut variants)?;
    }
    for (place, variant) in variants.iter().enumerate() {
        if variants[..place].contains(variant) {
            bail!(
                "the variant {variant} is listed twice; an A/A pair of native is measured anyway"
            );
        }
    }
    Ok(variants)
}

fn parse_item(item: &str, variants: &mut Vec<Variant>) -> Result<()> {
    let mut config: Vec<&str> = Vec::new();
    for piece in item.split(',') {
        let Some((knob, value)) = piece.split_once('=') else {
            if piece.is_empty() {
                bail!("a comma too many in the variant {item:?}");
            }
            close(&mut config, variants);
            if piece == NATIVE {
                variants.push(Variant::Native);
            } else if piece == FIFO {
                variants.push(Variant::Fifo);
            } else if piece == ALL {
                variants.extend(PRESETS.iter().map(|preset| Variant::of(preset.name)));
            } else {
                config.push(piece);
            }
            continue;
        };
        if knob.is_empty() || value.is_empty() {
            bail!("{piece:?} in the variant {item:?} is not knob=value");
        }
        if config
            .iter()
            .any(|set| set.split_once('=').is_some_and(|(other, _)| other == knob))
        {
            bail!(
                "{knob} is set twice in one config of {item:?}; separate variants by a space or ';', as in \
                 --variants native '{knob}=...' '{knob}=...'"
            );
        }
        config.push(piece);
    }
    close(&mut config, variants);
    Ok(())
}

/// Ends the config under construction. `default` is a word for what is there anyway, so it leaves no text.
fn close(config: &mut Vec<&str>, variants: &mut Vec<Variant>) {
    if config.is_empty() {
        return;
    }
    let text: Vec<_> = config.drain(..).filter(|piece| *piece != DEFAULT).collect();
    variants.push(Variant::Altpipe(text.join(",")));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(lists: &[&str]) -> Vec<String> {
        let variants = parse_list(lists).unwrap();
        variants.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_knob_joins_the_config_at_its_left() {
        assert_eq!(
            labels(&["native,times=full,freeze_check=1"]),
            ["native", "times=full,freeze_check=1"]
        );
        assert_eq!(
            labels(&["v5.5,tail_update=mutex,exclusive=1,native,v5.6"]),
            ["v5.5,tail_update=mutex,exclusive=1", "native", "v5.6"]
        );
    }

    #[test]
    fn spaces_semicolons_and_repetition_end_a_variant() {
        let expected = ["native", "times=full", "times=none,exclusive=0"];
        assert_eq!(
            labels(&["native times=full;times=none,exclusive=0"]),
            expected
        );
        assert_eq!(
            labels(&["native", "times=full", "times=none,exclusive=0"]),
            expected
        );
    }

    #[test]
    fn the_word_default_stands_for_an_empty_config() {
        assert_eq!(
            parse_list(&["native,default"]).unwrap(),
            [Variant::Native, Variant::Altpipe(String::new())]
        );
        assert_eq!(labels(&["default,times=full"]), ["times=full"]);
        assert_eq!(labels(&["native,default"]), ["native", "default"]);
    }

    #[test]
    fn the_word_fifo_is_a_variant_without_knobs() {
        let expected = [Variant::Fifo, Variant::of("times=full"), Variant::Native];
        assert_eq!(parse_list(&["fifo,times=full,native"]).unwrap(), expected);
    }

    #[test]
    fn all_is_every_preset() {
        let all = labels(&["native,ALL"]);
        assert_eq!(all.len(), 1 + PRESETS.len());
        assert_eq!(
            (all[0].as_str(), all[1].as_str()),
            ("native", PRESETS[0].name)
        );
    }

    #[test]
    fn a_knob_set_twice_names_the_cure() {
        let error = parse_list(&["times=full,times=none"])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("times is set twice") && error.contains("';'"),
            "{error}"
        );
    }

    #[test]
    fn malformed_lists_are_refused() {
        for list in [
            "native,,default",
            "times=",
            "=full",
            "native,native",
            "a=1;a=1",
        ] {
            assert!(parse_list(&[list]).is_err(), "{list}");
        }
    }

    #[test]
    fn labels_parse_back() {
        for label in ["native", "fifo", "default", "times=full,freeze_check=1"] {
            assert_eq!(Variant::of(label).to_string(), label);
        }
    }
}
