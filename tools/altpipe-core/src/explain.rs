// SPDX-License-Identifier: GPL-2.0

//! What the kernel leaves out of the core: sentences for people who mistyped a config.
//!
//! The kernel answers a bad config by EINVAL. A tool knows the same table of knobs, so it can say
//! which word is wrong and what may stand in its place.

use crate::config::{Knob, ParseError, Reason, Values, KNOBS, PRESETS};
use std::fmt;

impl fmt::Display for ParseError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word;
        match (self.reason, Knob::find(word)) {
            (Reason::EmptyItem, _) => {
                write!(
                    f,
                    "{word:?} has an empty item; write preset,knob=value,knob=value"
                )
            }
            (Reason::NoValue, Some(knob)) => {
                write!(f, "{word} lacks a value; it takes {}", knob.values)
            }
            (Reason::NoValue, None) => {
                write!(
                    f,
                    "{word:?} is neither knob=value nor a preset; presets are "
                )?;
                list(f, PRESETS.iter().map(|preset| preset.name), "and")?;
                f.write_str("; knobs are ")?;
                list(f, KNOBS.iter().map(|knob| knob.name), "and")
            }
            (Reason::LatePreset, _) => {
                write!(f, "the preset {word} must stand first: it sets every knob")
            }
            (Reason::UnknownKnob, _) => {
                write!(f, "there is no knob {word:?}; knobs are ")?;
                list(f, KNOBS.iter().map(|knob| knob.name), "and")
            }
            (Reason::BadValue(name), _) => {
                write!(f, "{name} cannot be {word:?}")?;
                match Knob::find(name) {
                    Some(knob) => write!(f, "; it takes {}", knob.values),
                    None => Ok(()),
                }
            }
            (Reason::Repeated, _) => write!(f, "{word} is set twice"),
        }
    }
}

impl std::error::Error for ParseError<'_> {}

/// Writes what a knob takes, so that it reads well behind "it takes".
impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Values::Switch => f.write_str("0 or 1"),
            Values::Number { min, max } => write!(f, "a number from {min} to {max}"),
            Values::PowerOfTwo { min, max } => write!(f, "a power of two from {min} to {max}"),
            Values::Choice(choices) => list(f, choices.iter().map(|choice| choice.word), "or"),
        }
    }
}

/// Names the knob; the rest of it is the table's.
impl fmt::Debug for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Knob({})", self.name)
    }
}

/// Writes words as an enumeration, `conjunction` before the last.
fn list(
    f: &mut fmt::Formatter<'_>,
    words: impl ExactSizeIterator<Item = &'static str>,
    conjunction: &str,
) -> fmt::Result {
    let last = words.len().saturating_sub(1);
    for (position, word) in words.enumerate() {
        match position {
            0 => {}
            _ if position == last => write!(f, " {conjunction} ")?,
            _ => f.write_str(", ")?,
        }
        f.write_str(word)?;
    }
    Ok(())
}
