// SPDX-License-Identifier: GPL-2.0

//! The one grammar of configs: a preset, then any `knob=value` items, separated by commas. Either
//! may be lacking.
//!
//! The create call, sysfs, fdinfo and the tools read and write this text. It is strict: no white
//! space, no empty item, no knob named twice, each value written in one way only. A typing error
//! that passed would be measured as if it were the variant that was meant.

use super::{Config, Knob, Preset, KNOBS};
use core::fmt;

/// Why a text is not a config: the word at fault and what is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError<'a> {
    /// The part of the text that is at fault.
    pub word: &'a str,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with a word of a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nothing stands between two commas, or before the first, or behind the last.
    EmptyItem,
    /// The word is neither of the form `knob=value` nor a preset.
    NoValue,
    /// The preset is not the first item: it would undo what stands before it.
    LatePreset,
    /// There is no knob of that name.
    UnknownKnob,
    /// The knob of this name does not take the word as its value.
    BadValue(&'static str),
    /// The knob has been set before in the same text.
    Repeated,
}

impl Config {
    /// Reads a config from text: the preset that the text begins with, else `base`, with the knobs
    /// set that the text names, in any order. The empty text is `base` itself.
    pub fn parse<'a>(text: &'a str, base: &Config) -> Result<Config, ParseError<'a>> {
        let mut config = *base;
        if text.is_empty() {
            return Ok(config);
        }
        for (position, item) in text.split(',').enumerate() {
            let fault = |word, reason| Err(ParseError { word, reason });
            if item.is_empty() {
                return fault(text, Reason::EmptyItem);
            }
            let Some((name, value)) = item.split_once('=') else {
                match Preset::find(item) {
                    Some(preset) if position == 0 => config = preset.config,
                    Some(_) => return fault(item, Reason::LatePreset),
                    None => return fault(item, Reason::NoValue),
                }
                continue;
            };
            let Some(knob) = Knob::find(name) else {
                return fault(name, Reason::UnknownKnob);
            };
            // Without a list of what was set, since there is no allocation here. A text that gets
            // past this line has named no knob twice, so that there are few items to look through.
            if text.split(',').take(position).any(|item| names(item, knob)) {
                return fault(name, Reason::Repeated);
            }
            knob.store(&mut config, value)?;
        }
        Ok(config)
    }
}

/// Whether an item sets `knob`.
fn names(item: &str, knob: &Knob) -> bool {
    item.split_once('=')
        .is_some_and(|(name, _)| name == knob.name)
}

/// Prints the nearest preset and what differs from it, in the order of the table: one text for each
/// config, from which [`Config::parse`] over any base makes the same config again.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let preset = Preset::nearest(self).ok_or(fmt::Error)?;
        f.write_str(preset.name)?;
        for knob in KNOBS {
            if !knob.same(self, &preset.config) {
                write!(f, ",{}=", knob.name)?;
                knob.write_value(self, f)?;
            }
        }
        Ok(())
    }
}
