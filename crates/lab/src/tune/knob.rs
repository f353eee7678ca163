//! What is varied: a key, and what it may be.

use crate::scenario::overrides::{self, ArgumentError};
use roci_units::{BitsPerSec, Bytes, Span};

/// A key of the scenario, and the values that it may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Knob {
    /// The key.
    pub key: String,
    values: Values,
}

/// What a key may be.
#[derive(Clone, Debug, PartialEq)]
enum Values {
    /// One of these.
    Words(Vec<String>),
    /// A number from a least to a greatest one.
    Range(Range),
}

/// Numbers with a unit, to two digits, or as many more as tell them apart within a narrow range.
#[derive(Clone, Debug, PartialEq)]
struct Range {
    /// In `unit`.
    least: f64,
    /// In `unit`.
    greatest: f64,
    /// As it stands behind the least.
    unit: String,
    /// What `unit` has so many of, where there are no parts of it: octets, bits a second, picoseconds.
    atom: Option<(f64, &'static str)>,
    /// How numbers without a unit are written.
    form: Form,
}

/// How numbers are written, as the ends of their range are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `12`: there are whole ones alone.
    Whole,
    /// `0.012`.
    Decimal,
    /// `1.2e-2`.
    Exponent,
    /// `1/83`: parts of one alone.
    Part,
}

/// What is as many times the least makes as much of a difference as what is as much above it from here on.
const DECADE: f64 = 10.0;

impl Knob {
    /// Reads `key=values`: a range of numbers `50KB..2MB`, `1/1024..1/16` or `1e-9..1e-5`, whose ends have units of one kind, or a list `a,b,c`.
    ///
    /// # Errors
    /// When there is no key, or the values are no such.
    pub fn read(argument: &str) -> Result<Self, ArgumentError> {
        let (key, values) = overrides::assignment(argument)?;
        let wrong = |message, remedy: &str| ArgumentError {
            argument: format!("--vary {argument}"),
            message,
            remedy: remedy.to_owned(),
        };
        let listed = || -> Result<Values, ArgumentError> {
            let words = overrides::values(&values)
                .map_err(|error| ArgumentError { argument: format!("--vary {argument}"), ..error })?;
            match words.len() {
                1 => Err(wrong(
                    "this leaves nothing to choose",
                    "write a range such as 50KB..2MB or a list a,b,c; --set gives a key one value",
                )),
                _ => Ok(Values::Words(words)),
            }
        };
        let ends = values.split_once("..").filter(|_| !values.contains([',', '"', '{', '[']));
        let values = match ends {
            None => listed()?,
            Some((least, greatest)) => {
                let range = Range::of(least.trim(), greatest.trim()).ok_or_else(|| {
                    wrong(
                        "these are no ends of a range",
                        "write numbers with units of one kind, such as 50KB..2MB, 0.01..1, 1/1024..1/16 or 1e-9..1e-5",
                    )
                })?;
                if range.least >= range.greatest {
                    return Err(wrong("this range has nothing in it", "write the lesser end first"));
                }
                Values::Range(range)
            }
        };
        Ok(Self { key, values })
    }

    /// What it may be, where that is a list; none of a range.
    pub fn words(&self) -> &[String] {
        match &self.values {
            Values::Words(words) => words,
            Values::Range(_) => &[],
        }
    }

    /// The number that `value` stands for, one of those that it may be, in units, and what it measures; of a list whose words are not all
    /// numbers of one kind the place of the word, from 1.
    pub(crate) fn number(&self, value: &str) -> (f64, Kind) {
        let read = |text: &str| {
            let unit = &text[number_end(text)..];
            let kind = kind(unit.trim())?;
            let number = base(text, unit)?;
            Some(match kind {
                Kind::Time => (number * 1e-12, kind),
                Kind::Share => (number / 100.0, kind),
                _ => (number, kind),
            })
        };
        let words = self.words();
        let kinds: Option<Vec<Kind>> = words.iter().map(|word| Some(read(word)?.1)).collect();
        let alike = kinds.is_some_and(|kinds| kinds.windows(2).all(|pair| pair[0] == pair[1]));
        let place = || words.iter().position(|word| word == value).map_or(0.0, |place| count(place + 1));
        read(value).filter(|_| alike).unwrap_or_else(|| (place(), Kind::Word))
    }

    /// The value at `place`, 0 to 1: of a range whose greatest value is ten times the least or more in its logarithm, else evenly.
    pub fn at(&self, place: f64) -> String {
        match &self.values {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "0 to the number of words"
            )]
            Values::Words(words) => {
                let index = (place.clamp(0.0, 1.0) * count(words.len())) as usize;
                words[index.min(words.len() - 1)].clone()
            }
            Values::Range(range) => range.at(place.clamp(0.0, 1.0)),
        }
    }

    /// A place near `place`: half of a range around it at most away, where `toward` is 0 to 1; the same of a list.
    pub fn near(&self, place: f64, toward: f64) -> f64 {
        match &self.values {
            Values::Words(_) => place,
            Values::Range(_) => (place + (toward - 0.5) * NEAR).clamp(0.0, 1.0),
        }
    }
}

/// What part of a range values near another one are drawn from.
const NEAR: f64 = 0.25;

impl Range {
    fn of(least: &str, greatest: &str) -> Option<Self> {
        let (number, unit) = least.split_at(number_end(least));
        let one = base(&format!("1{unit}"), unit)?;
        let of_greatest = &greatest[number_end(greatest)..];
        if !unit.is_empty() && number.contains(['e', 'E', '/']) {
            return None;
        }
        let kind_of_unit = kind(unit.trim())?;
        let same_kind = kind_of_unit == kind(of_greatest.trim())?;
        let atom = match kind_of_unit {
            Kind::Word | Kind::Number | Kind::Share => None,
            Kind::Octets => Some((one, "B")),
            Kind::Rate => Some((one, "b/s")),
            Kind::Time => Some((one, "ps")),
        };
        let ends = [number_of(number)?, base(greatest, of_greatest)? / one];
        let either = |sign: &[char]| least.contains(sign) || greatest.contains(sign);
        let form = match kind_of_unit {
            Kind::Number if least.starts_with("1/") && greatest.starts_with("1/") => {
                // Others are no parts that the ends could be among.
                let are_whole = [least, greatest].into_iter().all(|end| end[2..].parse::<u32>().is_ok());
                are_whole.then_some(Form::Part)?
            }
            // Of whole ones as of any other: what is counted has no parts.
            Kind::Number
                if either(&['e', 'E']) && ends.iter().all(|end| *end >= 1.0 && end.fract() == 0.0) =>
            {
                Form::Whole
            }
            Kind::Number if either(&['e', 'E']) => Form::Exponent,
            Kind::Number if !either(&['.', '/']) => Form::Whole,
            _ => Form::Decimal,
        };
        same_kind.then(|| Self { least: ends[0], greatest: ends[1], unit: unit.to_owned(), atom, form })
    }

    fn at(&self, place: f64) -> String {
        let value = match self.least > 0.0 && self.greatest >= DECADE * self.least {
            true => self.least * (self.greatest / self.least).powf(place),
            false => self.least + (self.greatest - self.least) * place,
        };
        let (digits, exact) = (self.digits(value), value);
        let value = rounded(value, digits).clamp(self.least, self.greatest);
        match self.atom.map(|(atoms, unit)| (value * atoms, unit)) {
            // 1.8KiB are no whole octets.
            Some((atoms, unit)) if (atoms - atoms.round()).abs() > 1e-14 * atoms => {
                format!("{}{unit}", atoms.round())
            }
            Some(_) => format!("{value}{}", self.unit),
            None => match self.form {
                Form::Whole => format!("{}{}", value.round(), self.unit),
                Form::Decimal => format!("{value}{}", self.unit),
                Form::Exponent => format!("{value:e}"),
                Form::Part => {
                    let parts = rounded((1.0 / exact).round(), digits);
                    format!("1/{}", parts.clamp(1.0 / self.greatest, 1.0 / self.least).round())
                }
            },
        }
    }

    /// How many digits `value` has: two, and more where the range is less than half of it.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 17")]
    fn digits(&self, value: f64) -> usize {
        let halves = value / (self.greatest - self.least) / 2.0;
        2 + halves.max(1.0).log10().ceil().min(15.0) as usize
    }
}

/// `value` to so many `digits`.
fn rounded(value: f64, digits: usize) -> f64 {
    // As text: powers of ten would leave 0.30000000000000004.
    format!("{value:.*e}", digits - 1).parse().unwrap_or(value)
}

/// How many octets of `text` are its number, a fraction such as `3/4` or a power of ten such as `1e-7` included.
fn number_end(text: &str) -> usize {
    let digits = |from: usize| {
        let rest = &text[from..];
        from + rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len())
    };
    let end = digits(0);
    let behind = match &text.as_bytes()[end..] {
        [b'e' | b'E', b'+' | b'-', b'0'..=b'9', ..] => 2,
        [b'e' | b'E' | b'/', b'0'..=b'9', ..] => 1,
        _ => return end,
    };
    digits(end + behind)
}

/// What `number`, which has no unit, stands for.
fn number_of(number: &str) -> Option<f64> {
    let number = match number.split_once('/') {
        Some((part, whole)) => part.parse::<f64>().ok()? / whole.parse::<f64>().ok()?,
        None => number.parse().ok()?,
    };
    number.is_finite().then_some(number)
}

/// What a unit measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// None: it is a word.
    Word,
    Number,
    Share,
    Octets,
    Rate,
    Time,
}

fn kind(unit: &str) -> Option<Kind> {
    let one = format!("1{unit}");
    Some(match unit {
        "" => Kind::Number,
        "%" => Kind::Share,
        _ if one.parse::<Bytes>().is_ok() => Kind::Octets,
        _ if one.parse::<Span>().is_ok() => Kind::Time,
        _ if one.parse::<BitsPerSec>().is_ok() => Kind::Rate,
        _ => return None,
    })
}

/// The number that `text` stands for, which ends in `unit`.
#[expect(clippy::cast_precision_loss, reason = "two digits are kept")]
fn base(text: &str, unit: &str) -> Option<f64> {
    match kind(unit.trim())? {
        Kind::Word => None,
        Kind::Number => number_of(text),
        Kind::Share => text.strip_suffix('%')?.trim().parse().ok(),
        Kind::Octets => Some(text.parse::<Bytes>().ok()?.0 as f64),
        Kind::Rate => Some(text.parse::<BitsPerSec>().ok()?.0 as f64),
        Kind::Time => Some(text.parse::<Span>().ok()?.as_ps() as f64),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a list has far fewer words than f64 holds")]
const fn count(words: usize) -> f64 {
    words as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(argument: &str) -> Vec<String> {
        let knob = Knob::read(argument).unwrap();
        [0.0, 0.25, 0.5, 0.75, 1.0].map(|place| knob.at(place)).to_vec()
    }

    #[test]
    fn a_range_over_decades_is_drawn_from_in_its_logarithm_and_a_narrow_one_evenly() {
        assert_eq!(values("a=10KB..1MB"), ["10KB", "32KB", "100KB", "320KB", "1000KB"]);
        assert_eq!(values("a=1us..4us"), ["1us", "1.8us", "2.5us", "3.2us", "4us"]);
        assert_eq!(values("a=0.01..1"), ["0.01", "0.032", "0.1", "0.32", "1"]);
        assert_eq!(values("a=1%..50%"), ["1%", "2.7%", "7.1%", "19%", "50%"]);
        assert_eq!(values("a=5Mb/s..1Gb/s"), ["5Mb/s", "19Mb/s", "71Mb/s", "270Mb/s", "1000Mb/s"]);
        assert_eq!(values("a=0..8"), ["0", "2", "4", "6", "8"]);
        assert_eq!(values("a=1..5"), ["1", "2", "3", "4", "5"]);
    }

    #[test]
    fn parts_of_one_and_powers_of_ten_are_drawn_in_their_logarithm_and_written_as_they_were() {
        assert_eq!(values("g=1/1024..1/16"), ["1/1000", "1/360", "1/130", "1/45", "1/16"]);
        assert_eq!(values("g=1/8..1/2"), ["1/8", "1/5", "1/3", "1/2", "1/2"]);
        assert_eq!(values("ber=1e-7..1e-3"), ["1e-7", "1e-6", "1e-5", "1e-4", "1e-3"]);
        assert_eq!(values("ber=1e-7..3.0E-7"), ["1e-7", "1.5e-7", "2e-7", "2.5e-7", "3e-7"]);
        assert_eq!(values("threshold=1e0..1e2"), ["1", "3", "10", "32", "100"], "whole ones are counted");
        assert!(Knob::read("g=1/3.5..1/2").is_err(), "no part of one");
        assert_eq!(values("a=3/4..15/16"), ["0.75", "0.797", "0.844", "0.891", "0.9375"]);
        assert_eq!(values("a=0.001..1/10"), ["0.001", "0.0032", "0.01", "0.032", "0.1"]);
    }

    #[test]
    fn narrow_ranges_have_as_many_digits_as_tell_their_values_apart() {
        assert_eq!(values("a=100..104"), ["100", "101", "102", "103", "104"]);
        assert_eq!(values("a=1000KB..1020KB"), ["1000KB", "1005KB", "1010KB", "1015KB", "1020KB"]);
        assert_eq!(values("a=0.991..0.999"), ["0.991", "0.993", "0.995", "0.997", "0.999"]);
    }

    #[test]
    fn every_value_is_one_that_a_scenario_reads() {
        type Reads = fn(&str) -> bool;
        let read: [(&str, Reads); 3] = [
            ("B KB KiB MiB GiB", |text| text.parse::<Bytes>().is_ok()),
            ("ps ns us s", |text| text.parse::<Span>().is_ok()),
            ("b/s Kb/s Gb/s MB/s", |text| text.parse::<BitsPerSec>().is_ok()),
        ];
        for (units, reads) in read {
            for unit in units.split(' ') {
                for ends in ["1{}..8{}", "1{}..700{}", "3 {}..4 {}"] {
                    let knob = Knob::read(&format!("a={}", ends.replace("{}", unit))).unwrap();
                    let values = (0..=100).map(|place| knob.at(f64::from(place) / 100.0));
                    values.for_each(|value| assert!(reads(&value), "{value}"));
                }
            }
        }
        assert_eq!(values("a=1KiB..5KiB"), ["1KiB", "2KiB", "3KiB", "4KiB", "5KiB"]);
        assert_eq!(values("a=1KiB..4KiB"), ["1KiB", "1843B", "2.5KiB", "3277B", "4KiB"]);
    }

    #[test]
    fn each_word_of_a_list_has_its_part() {
        assert_eq!(values("a=true,false"), ["true", "true", "false", "false", "false"]);
        assert_eq!(
            values("a=x,{ b = 1, c = \"2..3\" }"),
            ["x", "x", "{ b = 1, c = \"2..3\" }", "{ b = 1, c = \"2..3\" }", "{ b = 1, c = \"2..3\" }"]
        );
        let list = Knob::read("a=x,y").unwrap();
        assert!((list.near(0.7, 0.0) - 0.7).abs() < 1e-12);
        let range = Knob::read("a=1..100").unwrap();
        assert!((range.near(0.5, 1.0) - 0.625).abs() < 1e-12 && range.near(0.05, 0.0) == 0.0);
    }

    #[test]
    fn values_are_shown_as_numbers_of_their_kind_and_words_by_their_places() {
        let of = |argument: &str, value: &str| Knob::read(argument).unwrap().number(value);
        let close = |(number, kind): (f64, Kind), (wanted, wanted_kind): (f64, Kind)| {
            assert!((number - wanted).abs() <= 1e-12 * wanted && kind == wanted_kind, "{number} {kind:?}");
        };
        close(of("a=10KB..1MB", "32KB"), (32_000.0, Kind::Octets));
        close(of("a=1us..4us", "2.5us"), (2.5e-6, Kind::Time));
        close(of("a=5Mb/s..1Gb/s", "71Mb/s"), (71e6, Kind::Rate));
        close(of("a=1%..50%", "2.7%"), (0.027, Kind::Share));
        close(of("g=1/1024..1/16", "1/130"), (1.0 / 130.0, Kind::Number));
        close(of("a=50KB,1MB", "1MB"), (1e6, Kind::Octets));
        close(of("a=ecmp,spray,flowlet", "spray"), (2.0, Kind::Word));
        close(of("a=false,50KB", "50KB"), (2.0, Kind::Word));
    }

    #[test]
    fn what_is_no_choice_is_refused_with_what_to_write() {
        for (argument, told) in [
            ("switch.buffer", "write key=value"),
            ("a=5KB", "--set gives a key one value"),
            ("a=5KB..9ms", "units of one kind"),
            ("a=5..9ms", "units of one kind"),
            ("a=x..y", "units of one kind"),
            ("a=1/0..1/16", "no ends of a range"),
            ("a=1e..1", "no ends of a range"),
            ("a=1/16..1/1024", "the lesser end first"),
            ("a=9KB..5KB", "the lesser end first"),
            ("a=1KB..1000B", "the lesser end first"),
            ("a=", "write a,b,c or 1..8"),
        ] {
            let error = Knob::read(argument).unwrap_err().to_string();
            assert!(error.contains(told), "{argument}: {error}");
        }
    }
}
