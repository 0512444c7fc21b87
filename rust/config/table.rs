// SPDX-License-Identifier: GPL-2.0

//! The macro behind the table of knobs.

/// Makes `Config`, its default, `KNOBS` and the enums of choices out of the table of knobs.
///
/// A row reads `name: kind(values and default)` below its documentation. The kinds are
///
/// * `switch(default)`: a `bool`, written `0` or `1`;
/// * `number(min..=max, default)`: a `u32`;
/// * `power_of_two(min..=max, default)`: a `u32` that is a power of two;
/// * `choice(Name { Variant = "word", ... })`: an enum `Name`, whose first variant is the default.
macro_rules! knobs {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident: $kind:ident($($spec:tt)+),
    )+) => {
        $(knob_kind! { @define $name $kind($($spec)+) })+

        /// The settings of all knobs of one pipe.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Config {
            $(
                $(#[doc = $doc])+
                pub $name: knob_kind!(@type $kind($($spec)+)),
            )+
        }

        impl Config {
            /// Every knob at its default, which is what the newest release of Linux does.
            pub const DEFAULT: Self = Self {
                $($name: knob_kind!(@default $kind($($spec)+)),)+
            };
        }

        /// All knobs, in the order in which a config is printed.
        pub static KNOBS: &[Knob] = &[
            $(Knob {
                name: stringify!($name),
                file: $crate::config::knob::terminated(concat!(stringify!($name), "\0")),
                doc: concat!($($doc),+).trim_ascii_start(),
                values: knob_kind!(@values $kind($($spec)+)),
                get: |config| $crate::config::knob::Field::raw(config.$name),
                set: |config, raw| {
                    config.$name = $crate::config::knob::Field::from_raw(raw)?;
                    Some(())
                },
            },)+
        ];
    };
}

/// What differs between the kinds of knobs: for each of them its type, default and values, and the
/// definition of its type where it brings one.
macro_rules! knob_kind {
    (@type switch($default:expr)) => { bool };
    (@default switch($default:expr)) => { $default };
    (@values switch($default:expr)) => { Values::Switch };
    (@define $name:ident switch($default:expr)) => {};

    (@type number($min:literal..=$max:literal, $default:expr)) => { u32 };
    (@default number($min:literal..=$max:literal, $default:expr)) => { $default };
    (@values number($min:literal..=$max:literal, $default:expr)) => {
        Values::Number { min: $min, max: $max }
    };
    (@define $name:ident number($min:literal..=$max:literal, $default:expr)) => {};

    (@type power_of_two($min:literal..=$max:literal, $default:expr)) => { u32 };
    (@default power_of_two($min:literal..=$max:literal, $default:expr)) => { $default };
    (@values power_of_two($min:literal..=$max:literal, $default:expr)) => {
        Values::PowerOfTwo { min: $min, max: $max }
    };
    (@define $name:ident power_of_two($min:literal..=$max:literal, $default:expr)) => {};

    (@type choice($enum:ident { $($variants:tt)+ })) => { $enum };
    (@default choice($enum:ident {
        $(#[doc = $doc:literal])+ $first:ident = $word:literal, $($rest:tt)*
    })) => {
        $enum::$first
    };
    (@values choice($enum:ident { $($variants:tt)+ })) => { Values::Choice($enum::CHOICES) };
    (@define $name:ident choice($enum:ident {
        $($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)+
    })) => {
        #[doc = concat!("What the knob `", stringify!($name), "` can be set to.")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $enum {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl $enum {
            /// All values, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The words that stand for them, in the same order.
            pub const CHOICES: &'static [Choice] = &[
                $(Choice {
                    word: $word,
                    doc: concat!($($doc),+).trim_ascii_start(),
                }),+
            ];
        }

        impl $crate::config::knob::Field for $enum {
            fn raw(self) -> u32 {
                self as u32
            }

            fn from_raw(raw: u32) -> Option<Self> {
                Self::ALL.get(raw as usize).copied()
            }
        }
    };
}
