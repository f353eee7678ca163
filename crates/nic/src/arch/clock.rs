//! The edges of a clock.

use roci_units::{Instant, Span};

/// A clock of so many hertz: its edge k is at ⌊k · 10¹² / f⌋ ps, so that no rounding adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Edges per second, 1 kHz to 100 GHz.
    pub hz: u64,
}

const PS_PER_S: u128 = 1_000_000_000_000;

impl Clock {
    /// The first edge at or after `at`.
    pub fn edge(self, at: Instant) -> Instant {
        let ps = u128::from(at.as_ps());
        let before = ps * u128::from(self.hz) / PS_PER_S;
        let at_or_after = [before, before + 1].into_iter().map(|number| self.ps_of(number));
        Instant::from_ps(at_or_after.filter(|edge| *edge >= at.as_ps()).min().unwrap_or(at.as_ps()))
    }

    /// How long `cycles` take, rounded down to a picosecond.
    pub fn cycles(self, cycles: u32) -> Span {
        Span::from_ps(self.ps_of(cycles.into()))
    }

    fn ps_of(self, cycles: u128) -> u64 {
        u64::try_from(cycles * PS_PER_S / u128::from(self.hz)).unwrap_or(u64::MAX)
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
        (1_000..=100_000_000_000).contains(&hz).then_some(Self { hz })
    }
}

impl std::fmt::Display for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.hz {
            hz if hz.is_multiple_of(1_000_000_000) => write!(f, "{}GHz", hz / 1_000_000_000),
            hz if hz.is_multiple_of(1_000_000) => write!(f, "{}MHz", hz / 1_000_000),
            hz => write!(f, "{}kHz", hz / 1_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_lie_where_the_clock_says_and_do_not_drift() {
        let clock = Clock { hz: 300_000_000 };
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
        assert_eq!(Clock::parse("300MHz"), Some(Clock { hz: 300_000_000 }));
        assert_eq!(Clock::parse("1.5 GHz"), Some(Clock { hz: 1_500_000_000 }));
        for wrong in ["300", "MHz", "-1MHz", "1.0001GHz", "0.1kHz", "101GHz", "99999999999999999999GHz"] {
            assert_eq!(Clock::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Clock { hz: 1_500_000_000 }.to_string(), "1500MHz");
    }
}
