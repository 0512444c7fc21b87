// SPDX-License-Identifier: GPL-2.0

//! One knob: its name, the values it takes, and access to its field in a config.

use super::{Config, ParseError, Reason};
use core::ffi::CStr;
use core::fmt::{self, Write};

/// A row of the table of knobs.
///
/// Every value of a knob has a *raw* form, a `u32`: the number itself, 0 or 1 for a switch, the
/// position among the choices otherwise. So one piece of code shows and parses knobs of all types.
pub struct Knob {
    /// The knob's name in configs, and of its file in sysfs.
    pub name: &'static str,
    /// The same name as a C string.
    pub file: &'static CStr,
    /// What the knob changes, as one paragraph.
    pub doc: &'static str,
    /// The values that the knob takes.
    pub values: Values,
    /// Reads the raw value out of a config.
    pub(super) get: fn(&Config) -> u32,
    /// Writes a raw value into a config; `None`, and nothing changed, where the field has no such
    /// value.
    pub(super) set: fn(&mut Config, u32) -> Option<()>,
}

/// The values that a knob takes.
pub enum Values {
    /// Off or on, written `0` or `1`.
    Switch,
    /// A number within bounds.
    Number {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
    /// A power of two within bounds.
    PowerOfTwo {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
    /// One of several words; the raw value is the position in this list.
    Choice(&'static [Choice]),
}

/// One of the words that a knob of choices takes.
pub struct Choice {
    /// The word.
    pub word: &'static str,
    /// What the knob does when set to it.
    pub doc: &'static str,
}

impl Knob {
    /// Finds a knob by its name.
    pub fn find(name: &str) -> Option<&'static Knob> {
        super::KNOBS.iter().find(|knob| knob.name == name)
    }

    /// Shows the knob as its file in sysfs does, without a newline: the choices with brackets round
    /// the active one, or a plain number.
    pub fn show(&self, config: &Config, out: &mut dyn Write) -> fmt::Result {
        let raw = (self.get)(config);
        let Values::Choice(choices) = self.values else {
            return self.values.write(raw, out);
        };
        let words = (0..).zip(choices);
        write_marked(
            words.map(|(position, choice)| (choice.word, position == raw)),
            out,
        )
    }

    /// Sets the knob from text that holds one value and nothing else. On error `config` is as it was.
    pub fn store<'a>(&self, config: &mut Config, text: &'a str) -> Result<(), ParseError<'a>> {
        self.values
            .parse(text)
            .and_then(|raw| (self.set)(config, raw))
            .ok_or(ParseError {
                word: text,
                reason: Reason::BadValue(self.name),
            })
    }

    /// Whether two configs have the same setting of this knob.
    pub fn same(&self, one: &Config, other: &Config) -> bool {
        (self.get)(one) == (self.get)(other)
    }

    /// Writes the knob's value in `config` as [`Knob::store`] takes it.
    pub fn write_value(&self, config: &Config, out: &mut dyn Write) -> fmt::Result {
        self.values.write((self.get)(config), out)
    }
}

impl Values {
    /// Writes a raw value as the word or number that stands for it.
    fn write(&self, raw: u32, out: &mut dyn Write) -> fmt::Result {
        match self {
            Values::Choice(choices) => {
                let choice = choices.get(raw as usize).ok_or(fmt::Error)?;
                out.write_str(choice.word)
            }
            Values::Switch | Values::Number { .. } | Values::PowerOfTwo { .. } => {
                write!(out, "{raw}")
            }
        }
    }

    /// Reads a word or number into its raw value.
    fn parse(&self, text: &str) -> Option<u32> {
        match *self {
            Values::Choice(choices) => {
                let position = choices.iter().position(|choice| choice.word == text)?;
                u32::try_from(position).ok()
            }
            Values::Switch => parse_number(text).filter(|raw| *raw <= 1),
            Values::Number { min, max } => {
                parse_number(text).filter(|raw| (min..=max).contains(raw))
            }
            Values::PowerOfTwo { min, max } => {
                parse_number(text).filter(|raw| raw.is_power_of_two() && (min..=max).contains(raw))
            }
        }
    }
}

/// Writes words with spaces between them and brackets round those that are marked, as files in sysfs
/// list choices.
pub(super) fn write_marked<'a>(
    words: impl Iterator<Item = (&'a str, bool)>,
    out: &mut dyn Write,
) -> fmt::Result {
    for (position, (word, marked)) in words.enumerate() {
        if position > 0 {
            out.write_char(' ')?;
        }
        if marked {
            write!(out, "[{word}]")?;
        } else {
            out.write_str(word)?;
        }
    }
    Ok(())
}

/// Reads a decimal number written the one way in which it is printed: no sign, and no leading zero,
/// which elsewhere in the kernel's files means octal.
fn parse_number(text: &str) -> Option<u32> {
    let canonical = text.bytes().all(|byte| byte.is_ascii_digit())
        && (text.len() == 1 || !text.starts_with('0'));
    if canonical {
        text.parse().ok()
    } else {
        None
    }
}

/// A type that a field of [`Config`] may have.
pub(super) trait Field: Copy {
    /// The value's raw form.
    fn raw(self) -> u32;

    /// The value whose raw form this is, if there is one.
    fn from_raw(raw: u32) -> Option<Self>;
}

impl Field for bool {
    fn raw(self) -> u32 {
        u32::from(self)
    }

    fn from_raw(raw: u32) -> Option<Self> {
        match raw {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Field for u32 {
    fn raw(self) -> u32 {
        self
    }

    fn from_raw(raw: u32) -> Option<Self> {
        Some(raw)
    }
}

/// Makes a C string of a literal that ends in NUL. A literal that does not fails the build, since
/// the table of knobs is evaluated by the compiler.
pub(super) const fn terminated(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a knob's name holds a NUL"),
    }
}
