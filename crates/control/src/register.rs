//! Registers: what can be read and written of a law while it runs, in the text forms of scenarios.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use roci_units::{BitsPerSec, Bytes, ParseError, Ratio, Span};

/// Where a register lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the law: a parameter, shared by the queue pairs that run it; also a key of `transport.control`.
    Law,
    /// In the context of one queue pair.
    Context,
}

/// A register of a law as data: what `docs`, scenarios and the command line say about it.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    /// Its name; for a parameter also the key in a scenario.
    pub name: &'static str,
    /// Where it lives.
    pub place: Place,
    /// What is written there: `rate`, `time`, `octets`, `ratio`, `count`, `true or false`, or the words themselves.
    pub unit: &'static str,
    /// The values that it takes.
    pub range: &'static str,
    /// Whether it can be written while traffic runs; every parameter can be set before.
    pub writable: bool,
    /// What it means.
    pub doc: &'static str,
}

/// What a register holds. It prints in the form in which it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A rate.
    Rate(BitsPerSec),
    /// A length of time.
    Time(Span),
    /// Octets.
    Octets(Bytes),
    /// A fraction.
    Fraction(Ratio),
    /// A number.
    Count(u32),
    /// A number below zero.
    Below(i32),
    /// Yes or no.
    Flag(bool),
    /// One of a few words.
    Word(&'static str),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate) => rate.fmt(f),
            Self::Time(span) => span.fmt(f),
            Self::Octets(bytes) => bytes.fmt(f),
            Self::Fraction(ratio) => ratio.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::Below(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// Why a text cannot be the value of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueError {
    /// It does not read as a quantity of the register's kind.
    Text(ParseError),
    /// It reads well but lies outside the register's range, or is not one of its words.
    Range,
}

impl From<ParseError> for ValueError {
    fn from(error: ParseError) -> Self {
        Self::Text(error)
    }
}

/// Why a law could not be made from settings, or a register not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingError {
    /// There is no such law.
    Law {
        /// What was asked for.
        name: String,
        /// The laws that exist.
        valid: Vec<&'static str>,
    },
    /// The law has no such preset.
    Preset {
        /// What was asked for.
        name: String,
        /// The presets that exist.
        valid: Vec<&'static str>,
    },
    /// The law has no such key or register.
    Key {
        /// What was asked for.
        name: String,
        /// Those that exist.
        valid: Vec<&'static str>,
    },
    /// The value does not fit.
    Value {
        /// The key or register.
        name: &'static str,
        /// What was to be written.
        text: String,
        /// The register's range.
        range: &'static str,
        /// Why not.
        why: ValueError,
    },
    /// A program does not take the value.
    Refused {
        /// The parameter.
        name: &'static str,
        /// What was to be written.
        text: String,
        /// Where in the program, and why.
        why: String,
    },
    /// The program has failed with this queue pair, and what its fallback law is like is settled.
    Fallen {
        /// Why and where it failed.
        why: String,
        /// The law that took over.
        fallback: &'static str,
    },
    /// The register can be read but not written during a run.
    ReadOnly {
        /// The register.
        name: &'static str,
    },
}

impl SettingError {
    /// The names that would have done, for a suggestion of the nearest; empty where the name was right.
    pub fn valid(&self) -> &[&'static str] {
        match self {
            Self::Law { valid, .. } | Self::Preset { valid, .. } | Self::Key { valid, .. } => valid,
            Self::Value { .. } | Self::Refused { .. } | Self::Fallen { .. } | Self::ReadOnly { .. } => &[],
        }
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unknown = |f: &mut fmt::Formatter<'_>, what: &str, name: &str, valid: &[&str]| {
            write!(f, "there is no {what} \"{name}\"; ")?;
            match valid {
                [] => write!(f, "it has none"),
                valid => write!(f, "choose one of {}", valid.join(", ")),
            }
        };
        match self {
            Self::Law { name, valid } => unknown(f, "law", name, valid),
            Self::Preset { name, valid } => unknown(f, "preset", name, valid),
            Self::Key { name, valid } => unknown(f, "key", name, valid),
            Self::Value { name, text, range, why: ValueError::Range } => {
                write!(f, "{name} = \"{text}\" is out of range; it takes {range}")
            }
            Self::Value { name, text, range, why: ValueError::Text(error) } => {
                write!(f, "{name} = \"{text}\": {error}; it takes {range}")
            }
            Self::Refused { name, text, why } => {
                write!(f, "the program refuses {name} = \"{text}\": {why}")
            }
            Self::Fallen { why, fallback } => {
                write!(f, "the program failed ({why}) and `{fallback}` took over")
            }
            Self::ReadOnly { name } => write!(f, "{name} cannot be written during a run"),
        }
    }
}

impl core::error::Error for SettingError {}

impl Register {
    /// The error of writing `text` here.
    pub(crate) fn refuse(&self, text: &str, why: ValueError) -> SettingError {
        SettingError::Value { name: self.name, text: text.to_string(), range: self.range, why }
    }
}

/// A rate of at least 1 kb/s, in kb/s; finer digits are dropped.
pub(crate) fn rate_kbps(text: &str) -> Result<u32, ValueError> {
    let rate: BitsPerSec = text.parse()?;
    match rate.as_kbps() {
        0 | u32::MAX => Err(ValueError::Range),
        kbps => Ok(kbps),
    }
}

/// A length of time above zero.
pub(crate) fn period(text: &str) -> Result<Span, ValueError> {
    let span: Span = text.parse()?;
    if span.is_zero() { Err(ValueError::Range) } else { Ok(span) }
}

/// A length of time in `low..=high`.
pub(crate) fn period_within(text: &str, low: Span, high: Span) -> Result<Span, ValueError> {
    let span: Span = text.parse()?;
    if (low..=high).contains(&span) { Ok(span) } else { Err(ValueError::Range) }
}

/// Octets in `low..=high`.
pub(crate) fn octets(text: &str, low: u32, high: u32) -> Result<u32, ValueError> {
    let octets: Bytes = text.parse()?;
    match u32::try_from(octets.0) {
        Ok(octets) if (low..=high).contains(&octets) => Ok(octets),
        _ => Err(ValueError::Range),
    }
}

/// A fraction above zero and at most one.
pub(crate) fn fraction(text: &str) -> Result<Ratio, ValueError> {
    match share(text)? {
        Ratio::ZERO => Err(ValueError::Range),
        ratio => Ok(ratio),
    }
}

/// A fraction of at most one.
pub(crate) fn share(text: &str) -> Result<Ratio, ValueError> {
    let ratio: Ratio = text.parse()?;
    if ratio.is_proper() { Ok(ratio) } else { Err(ValueError::Range) }
}

/// A whole number in `low..=high`.
pub(crate) fn count(text: &str, low: u32, high: u32) -> Result<u32, ValueError> {
    let number: u32 =
        text.trim().parse().map_err(|_| ParseError::NotANumber { expected: "a whole number such as 5" })?;
    if (low..=high).contains(&number) { Ok(number) } else { Err(ValueError::Range) }
}

/// `true` or `false`; `on` and `off` do as well.
pub(crate) fn flag(text: &str) -> Result<bool, ValueError> {
    match text.trim() {
        "true" | "on" => Ok(true),
        "false" | "off" => Ok(false),
        _ => Err(ValueError::Range),
    }
}
