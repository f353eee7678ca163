//! The edges of a clock.

use super::divide::{Divisor, Factor};
use roci_units::{Instant, Span};

/// A clock of so many hertz: its edge k is at ⌊k · 10¹² / f⌋ ps, so that no rounding adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    hz: u64,
    /// So many picoseconds go to so many edges, in lowest terms.
    ps: Divisor,
    edges: u64,
    /// How long an edge takes.
    each: Factor,
}

const PS_PER_S: u64 = 1_000_000_000_000;

impl Clock {
    /// A clock of `hz` edges per second, at least 1.
    pub const fn new(hz: u64) -> Self {
        let each = Factor::new(PS_PER_S, hz);
        Self { hz, ps: Divisor::new(each.over), edges: each.under.get(), each }
    }

    /// Edges per second; 1 kHz to 100 GHz where they were read from text.
    pub const fn hz(self) -> u64 {
        self.hz
    }

    /// The first edge at or after `at`.
    #[inline]
    pub fn edge(self, at: Instant) -> Instant {
        let (_, rest) = self.ps.divide(at.as_ps());
        if rest == 0 {
            return at;
        }
        let whole = at.as_ps() - rest;
        Instant::from_ps(whole.saturating_add(self.edge_within(rest)))
    }

    /// The same for the picoseconds after an edge that is on one, fewer than come before the next such edge.
    #[inline]
    fn edge_within(self, rest: u64) -> u64 {
        if self.edges == 1 {
            return self.ps.get();
        }
        // The inverse of how long an edge takes, in lowest terms as it is.
        let before = Factor { over: self.edges, under: self.ps }.of(rest);
        let edge = self.each.of(before);
        if edge >= rest { edge } else { self.each.of(before + 1) }
    }

    /// How long `cycles` take, rounded down to a picosecond.
    #[inline]
    pub fn cycles(self, cycles: u32) -> Span {
        Span::from_ps(self.each.of(cycles.into()))
    }

    /// A clock as it is written: `300MHz`, `1.5 GHz`. `None` where `text` is none.
    pub fn parse(text: &str) -> Option<Self> {
        let units = [("GHz", 1_000_000_000), ("MHz", 1_000_000), ("kHz", 1_000)];
        let (number, scale) =
            units.iter().find_map(|(unit, scale)| Some((text.trim().strip_suffix(unit)?, *scale)))?;
        let (whole, part) = number.trim().split_once('.').unwrap_or((number.trim(), ""));
        if part.len() > 3 {
            return None;
        }
        let digits: u64 = format!("{whole}{part}").parse().ok()?;
        let hz = digits.checked_mul(scale)? / 10u64.pow(u32::try_from(part.len()).ok()?);
        (1_000..=100_000_000_000).contains(&hz).then(|| Self::new(hz))
    }
}

impl std::fmt::Display for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.hz {
            hz if hz.is_multiple_of(1_000_000_000) => write!(f, "{}GHz", hz / 1_000_000_000),
            hz if hz.is_multiple_of(1_000_000) => write!(f, "{}MHz", hz / 1_000_000),
            hz if hz.is_multiple_of(1_000) => write!(f, "{}kHz", hz / 1_000),
            hz => write!(f, "{}.{:03}kHz", hz / 1_000, hz % 1_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edges_lie_where_the_clock_says_and_do_not_drift() {
        let clock = Clock::new(300_000_000);
        let edge = |ps| clock.edge(Instant::from_ps(ps)).as_ps();
        assert_eq!(
            [edge(0), edge(1), edge(3_333), edge(3_334), edge(6_667)],
            [0, 3_333, 3_333, 6_666, 10_000]
        );
        assert_eq!(edge(999_999_999_999), 1_000_000_000_000);
        assert_eq!(clock.cycles(3), Span::from_nanos(10));
    }

    #[test]
    fn a_clock_is_written_with_its_unit() {
        assert_eq!(Clock::parse("300MHz"), Some(Clock::new(300_000_000)));
        assert_eq!(Clock::parse("1.5 GHz"), Some(Clock::new(1_500_000_000)));
        for wrong in ["300", "MHz", "-1MHz", "1.0001GHz", "0.1kHz", "101GHz", "99999999999999999999GHz"] {
            assert_eq!(Clock::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Clock::new(1_500_000_000).to_string(), "1500MHz");
    }

    proptest! {
        #[test]
        fn an_edge_is_the_first_at_or_after_an_instant(hz in 1_000u64..=100_000_000_000, at in 0..u64::MAX / 2, shift in 0u32..63) {
            for hz in [hz, hz / 1_000 * 1_000, hz / 1_000_000 * 1_000_000] {
                let hz = hz.max(1_000);
                let at = at >> shift;
                let (clock, hz) = (Clock::new(hz), u128::from(hz));
                let edge = |number: u128| number * u128::from(PS_PER_S) / hz;
                let mut number = u128::from(at) * hz / u128::from(PS_PER_S);
                while edge(number) < u128::from(at) {
                    number += 1;
                }
                prop_assert_eq!(u128::from(clock.edge(Instant::from_ps(at)).as_ps()), edge(number));
                let cycles = u32::try_from(at >> 32).expect("half of it");
                prop_assert_eq!(u128::from(clock.cycles(cycles).as_ps()), edge(cycles.into()).min(u64::MAX.into()));
            }
        }
    }
}
