//! Reading quantities as people write them.
//!
//! A number (`10`, `2.5`), an optional space, a unit. A bare number has a unit only where none is needed: octets
//! and ratios. Decimal prefixes of octets are powers of 1000 (`KB`), binary ones of 1024 (`KiB`).

use crate::{BitErrorRate, BitsPerSec, Bytes, Ratio, Span};
use core::fmt;
use core::str::FromStr;

/// Why a text is not the quantity it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// It does not begin with a decimal number.
    NotANumber {
        /// What was expected, with an example.
        expected: &'static str,
    },
    /// Quantities here are never negative.
    Negative,
    /// The unit is missing or not one of this quantity's.
    Unit {
        /// The units that would do.
        expected: &'static str,
    },
    /// The unit is written by some for one thing and by others for another.
    Ambiguous {
        /// What is unclear, and how each of the two is written.
        reason: &'static str,
    },
    /// More digits than the unit can hold, or a value out of range.
    Range,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber { expected } => write!(f, "not a number; write {expected}"),
            Self::Negative => f.write_str("negative; it must be zero or more"),
            Self::Unit { expected } => write!(f, "wrong or missing unit; use one of {expected}"),
            Self::Ambiguous { reason } => write!(f, "unclear unit; {reason}"),
            Self::Range => f.write_str("out of range, or finer than the unit can hold"),
        }
    }
}

impl core::error::Error for ParseError {}

/// A decimal number as `digits / 10^places`, and the text behind it.
struct Decimal<'a> {
    digits: u128,
    places: u32,
    unit: &'a str,
}

impl<'a> Decimal<'a> {
    fn read(text: &'a str, expected: &'static str) -> Result<Self, ParseError> {
        let text = text.trim();
        if text.starts_with('-') {
            return Err(ParseError::Negative);
        }
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && part.is_empty()) || part.contains('.') {
            return Err(ParseError::NotANumber { expected });
        }
        if whole.len() > 19 || part.len() > 12 {
            return Err(ParseError::Range);
        }
        let mut digits = 0u128;
        for digit in whole.bytes().chain(part.bytes()) {
            digits = digits * 10 + u128::from(digit - b'0');
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most 12")]
        Ok(Self { digits, places: part.len() as u32, unit: unit.trim() })
    }

    /// The number times `scale`, which must come out whole.
    fn times(&self, scale: u64) -> Result<u64, ParseError> {
        let divisor = 10u128.pow(self.places);
        let scaled = self.digits.checked_mul(u128::from(scale)).ok_or(ParseError::Range)?;
        if scaled % divisor != 0 {
            return Err(ParseError::Range);
        }
        u64::try_from(scaled / divisor).map_err(|_| ParseError::Range)
    }

    /// The power of ten that stands behind it, as in `1e-6`; zero where nothing does.
    fn exponent(&self, expected: &'static str) -> Result<i16, ParseError> {
        if self.unit.is_empty() {
            return Ok(0);
        }
        let exponent = self.unit.strip_prefix(['e', 'E']).and_then(|exponent| exponent.parse().ok());
        exponent.ok_or(ParseError::Unit { expected })
    }
}

impl FromStr for Span {
    type Err = ParseError;

    /// Reads `"1us"`, `"2.5 ms"`, `"0s"`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: &str = "ps, ns, us, ms, s";
        let decimal = Decimal::read(text, "a time such as \"1us\"")?;
        let scale = match decimal.unit {
            "ps" => 1,
            "ns" => 1_000,
            "us" | "µs" | "μs" => 1_000_000,
            "ms" => 1_000_000_000,
            "s" => 1_000_000_000_000,
            _ => return Err(ParseError::Unit { expected: EXPECTED }),
        };
        decimal.times(scale).map(Self::from_ps)
    }
}

impl FromStr for Bytes {
    type Err = ParseError;

    /// Reads `"5KB"` (5000), `"5KiB"` (5120), `"64"` (octets).
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: &str = "B, KB, MB, GB, TB, KiB, MiB, GiB, TiB";
        let decimal = Decimal::read(text, "a size such as \"4KB\" or \"4KiB\"")?;
        let scale = match decimal.unit {
            "" | "B" => 1,
            "KB" | "kB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "TB" => 1_000_000_000_000,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            "TiB" => 1 << 40,
            _ => return Err(ParseError::Unit { expected: EXPECTED }),
        };
        decimal.times(scale).map(Self)
    }
}

impl FromStr for BitsPerSec {
    type Err = ParseError;

    /// Reads `"10Gb/s"`, `"10 Gbps"`, `"10Gbit"` and `"10gbit"` as `tc` has them, `"10 Gbits/sec"`, and octet rates:
    /// `"6MB/s"` is 48 Mb/s. What people take for different things is refused as [`ParseError::Ambiguous`].
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let decimal = Decimal::read(text, "a rate such as \"10Gb/s\"")?;
        decimal.times(bits_of_unit(decimal.unit)?).map(Self)
    }
}

/// How many bits per second one of `unit` is.
fn bits_of_unit(unit: &str) -> Result<u64, ParseError> {
    const EXPECTED: &str = "b/s, Kb/s, Mb/s, Gb/s, Tb/s (or bps and bit), B/s, KB/s, MB/s, GB/s";
    const BITS_OR_OCTETS: ParseError =
        ParseError::Ambiguous { reason: "Gb/s, Gbps and Gbit are bits, GB/s is octets per second" };
    const MIB: ParseError = ParseError::Ambiguous {
        reason: "MB/s is 10^6 octets per second, and MiB/s what perftest prints as MB/sec",
    };

    let lower = |letter: char| letter.is_ascii_lowercase();
    let mut letters = unit.chars();
    let (prefix, rest) = match letters.next() {
        Some(letter @ ('k' | 'K' | 'm' | 'M' | 'g' | 'G' | 't' | 'T')) => (Some(letter), letters.as_str()),
        _ => (None, unit),
    };
    // Binary prefixes end in an i, which also begins no unit.
    let (binary, rest) = match (prefix, rest.strip_prefix('i')) {
        (Some(_), Some(rest)) => (true, rest),
        _ => (false, rest),
    };
    let power = match prefix.map(|letter| letter.to_ascii_lowercase()) {
        None => 0,
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some(_) => 4,
    };
    let scale = if binary { 1024u64 } else { 1000 }.pow(power);

    let each = match rest {
        // A small m, g or t with one of these is octets to `tc`, and to nobody a thousandth.
        "b/s" | "bps" | "b/sec" if prefix.is_some_and(|letter| lower(letter) && letter != 'k') => {
            return Err(BITS_OR_OCTETS);
        }
        "" if prefix.is_some() => return Err(BITS_OR_OCTETS),
        "b/s" | "bps" | "b/sec" => 1,
        "B/sec" if !binary && prefix.is_some() => return Err(MIB),
        "B/s" | "Bps" | "B/sec" if !prefix.is_some_and(|letter| lower(letter) && letter != 'k') => 8,
        // Spelled out there is nothing to mistake, whichever case: `ip` prints Gbit, `tc` is given gbit.
        _ => match rest.strip_suffix("/s").or_else(|| rest.strip_suffix("/sec")).unwrap_or(rest) {
            bit if bit.eq_ignore_ascii_case("bit") || bit.eq_ignore_ascii_case("bits") => 1,
            _ => return Err(ParseError::Unit { expected: EXPECTED }),
        },
    };
    Ok(scale * each)
}

impl FromStr for Ratio {
    type Err = ParseError;

    /// Reads `"1/256"`, `"0.01"`, `"1%"`, `"1e-6"`, `"3"`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: &str =
            "a fraction such as \"1/256\", a decimal such as 0.01, or a percentage such as \"1%\"";
        if let Some((upper, lower)) = text.split_once('/') {
            if upper.trim().starts_with('-') {
                return Err(ParseError::Negative);
            }
            let term =
                |t: &str| t.trim().parse::<u64>().map_err(|_| ParseError::NotANumber { expected: EXPECTED });
            return Self::checked(term(upper)?, term(lower)?).ok_or(ParseError::Range);
        }
        let decimal = Decimal::read(text, EXPECTED)?;
        // Powers of ten above and below the line; more than 18 fit into no ratio.
        let (above, below) = match decimal.unit {
            "%" => (0, 2),
            _ => {
                let exponent = decimal.exponent(EXPECTED)?;
                (u32::from(exponent.max(0).unsigned_abs()), u32::from(exponent.min(0).unsigned_abs()))
            }
        };
        let scaled = |number: u128, power: u32| {
            let scaled = 10u128.checked_pow(power).and_then(|power| number.checked_mul(power));
            scaled.and_then(|scaled| u64::try_from(scaled).ok()).ok_or(ParseError::Range)
        };
        let (upper, lower) =
            (scaled(decimal.digits, above)?, scaled(1, decimal.places.saturating_add(below))?);
        Self::checked(upper, lower).ok_or(ParseError::Range)
    }
}

impl FromStr for BitErrorRate {
    type Err = ParseError;

    /// Reads `"1e-9"`, `"2.5e-12"`, `"0"`, to the nearest step.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: &str = "a number such as 1e-9";
        let decimal = Decimal::read(text, EXPECTED)?;
        let exponent = decimal.exponent(EXPECTED)?;
        if exponent > 0 {
            return Err(ParseError::Range);
        }
        let places = decimal.places + u32::from(exponent.unsigned_abs());
        let (below, scaled) = (10u128.checked_pow(places), decimal.digits.checked_mul(1 << 64));
        let (below, scaled) = below.zip(scaled).ok_or(ParseError::Range)?;
        let steps = (scaled / below).checked_add(u128::from(scaled % below >= below.div_ceil(2)));
        let steps = steps.and_then(|steps| u64::try_from(steps).ok());
        steps.and_then(Self::from_steps).ok_or(ParseError::Range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;
    use proptest::prelude::*;
    extern crate alloc;

    #[test]
    fn the_forms_of_the_guide_are_read() {
        assert_eq!("10Gb/s".parse(), Ok(BitsPerSec::from_gbps(10)));
        assert_eq!("10 Gb/s".parse(), Ok(BitsPerSec::from_gbps(10)));
        assert_eq!("6MB/s".parse(), Ok(BitsPerSec::from_mbps(48)));
        assert_eq!("1us".parse(), Ok(Span::from_micros(1)));
        assert_eq!("2.5 ms".parse(), Ok(Span::from_micros(2500)));
        assert_eq!("5KB".parse(), Ok(Bytes(5_000)));
        assert_eq!("5KiB".parse(), Ok(Bytes(5_120)));
        assert_eq!("1/256".parse(), Ok(Ratio::new(1, 256)));
        assert_eq!("0.01".parse(), Ok(Ratio::new(1, 100)));
        assert_eq!("1%".parse(), Ok(Ratio::new(1, 100)));
        assert_eq!("1e-6".parse(), Ok(Ratio::new(1, 1_000_000)));
        assert_eq!("2.5E2".parse(), Ok(Ratio::new(250, 1)));
        assert_eq!("0.5".parse(), Ok(BitErrorRate::from_steps(1 << 63).unwrap()));
        assert_eq!("1e-15".parse(), Ok(BitErrorRate::from_steps(18_447).unwrap()));
        assert_eq!("25E-16".parse(), "0.0025e-12".parse::<BitErrorRate>());
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!("-5KB".parse::<Bytes>(), Err(ParseError::Negative));
        assert_eq!("-1/2".parse::<Ratio>(), Err(ParseError::Negative));
        assert!(matches!("10Gb".parse::<BitsPerSec>(), Err(ParseError::Unit { .. })));
        assert!(matches!("5".parse::<Span>(), Err(ParseError::Unit { .. })));
        assert!(matches!("fast".parse::<BitsPerSec>(), Err(ParseError::NotANumber { .. })));
        assert_eq!("0.0001ps".parse::<Span>(), Err(ParseError::Range));
        assert_eq!("1/0".parse::<Ratio>(), Err(ParseError::Range));
        assert_eq!("0.6".parse::<BitErrorRate>(), Err(ParseError::Range));
        assert_eq!("1e-40".parse::<BitErrorRate>(), Err(ParseError::Range));
        assert!(matches!("1%".parse::<BitErrorRate>(), Err(ParseError::Unit { .. })));
    }

    #[test]
    fn rates_are_read_as_ip_tc_iperf_and_perftest_write_them() {
        for unit in ["Gb/s", "Gbps", "Gbit", "gbit", "GBIT", "Gbit/s", "Gbits/sec", "Gb/sec"] {
            assert_eq!(format!("10{unit}").parse(), Ok(BitsPerSec::from_gbps(10)), "10{unit}");
            assert_eq!(format!("10 {unit}").parse(), Ok(BitsPerSec::from_gbps(10)), "10 {unit}");
        }
        for (text, bits) in [
            ("8bit", 8),
            ("8bps", 8),
            ("64kbit", 64_000),
            ("64kbps", 64_000),
            ("64Kb/s", 64_000),
            ("1.5mbit", 1_500_000),
            ("1Tbps", 1_000_000_000_000),
            ("2Mibit", 2 << 20),
            ("3B/s", 24),
            ("3kB/s", 24_000),
            ("3MBps", 24_000_000),
            ("3MiB/s", 24 << 20),
            ("3GiB/sec", 24 << 30),
        ] {
            assert_eq!(text.parse(), Ok(BitsPerSec(bits)), "{text}");
        }
    }

    #[test]
    fn rates_that_some_read_as_bits_and_others_as_octets_are_refused_with_both_spellings() {
        for text in ["10G", "10g", "100M", "10gbps", "10mbps", "10gb/s", "1tb/s"] {
            let error = text.parse::<BitsPerSec>().unwrap_err();
            assert!(error.to_string().contains("Gbit are bits, GB/s is octets"), "{text}: {error}");
        }
        let error = "900MB/sec".parse::<BitsPerSec>().unwrap_err();
        assert!(error.to_string().contains("MiB/s what perftest prints"), "{error}");
        for text in ["10Gb", "10GB", "1e9", "10", "10 Gb/h", "10gB/s", "10ib/s", "10Gbitten", "10/s", "10G/s"]
        {
            let error = text.parse::<BitsPerSec>();
            assert!(matches!(error, Err(ParseError::Unit { .. })), "{text}: {error:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(n in 0u64..u64::MAX / 2, a in 0u32.., b in 1u32..) {
            prop_assert_eq!(Span::from_ps(n).to_string().parse(), Ok(Span::from_ps(n)));
            prop_assert_eq!(Bytes(n).to_string().parse(), Ok(Bytes(n)));
            prop_assert_eq!(BitsPerSec(n).to_string().parse(), Ok(BitsPerSec(n)));
            prop_assert_eq!(Ratio::new(a, b).to_string().parse(), Ok(Ratio::new(a, b)));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = text.parse::<Span>();
            let _ = text.parse::<Bytes>();
            let _ = text.parse::<BitsPerSec>();
            let _ = text.parse::<Ratio>();
            let _ = text.parse::<BitErrorRate>();
        }
    }
}
