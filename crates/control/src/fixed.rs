//! Fixed-point arithmetic of the laws that run on each acknowledgement.
//!
//! Their contexts are 32-bit words and their products 64 bits, so that a program on a 32-bit core can compute the same
//! words: 16.16 for fractions, whole nanoseconds modulo 2³² for times, octets and kb/s for the rest. Who divides says
//! how often.

use crate::event::Event;
use roci_units::{Instant, Ratio, Span};

/// One, in 16.16.
pub(crate) const ONE: u32 = 1 << 16;

/// The longest round trip that a law tells from a longer one, in nanoseconds: 67 ms.
pub(crate) const RTT_MAX: u32 = (1 << 26) - 1;

/// `at` in whole nanoseconds, modulo 2³² (4.3 s).
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "modulo 2³² is meant")]
pub(crate) const fn nanos(at: Instant) -> u32 {
    (at.as_ps() / 1_000) as u32
}

/// `span` in whole nanoseconds, at most 2³² − 1.
pub(crate) fn span_nanos(span: Span) -> u32 {
    u32::try_from(span.as_ps() / 1_000).unwrap_or(u32::MAX)
}

/// The round trip that `event` tells of, in nanoseconds, 1 to [`RTT_MAX`]; `None` where it tells of none.
#[inline]
pub(crate) fn rtt(event: &Event<'_>) -> Option<u32> {
    if event.sent == Instant::ZERO {
        return None;
    }
    Some(nanos(event.now).wrapping_sub(nanos(event.sent)).clamp(1, RTT_MAX))
}

/// `value` times `factor` (16.16), rounded down.
#[inline]
pub(crate) const fn scale(value: u32, factor: u32) -> u32 {
    saturate((value as u64 * factor as u64) >> 16)
}

/// `numerator / denominator` in 16.16, where it is at most one; one where it would be more or the denominator is zero.
///
/// It costs one division of 32 bits, and both are cut to their 16 most significant bits before it: the result is at
/// most 5·2⁻¹⁶ from the true one.
#[inline]
pub(crate) const fn ratio(numerator: u32, denominator: u32) -> u32 {
    if numerator >= denominator {
        return ONE;
    }
    let shift = 16u32.saturating_sub(denominator.leading_zeros());
    ((numerator >> shift) << 16) / (denominator >> shift)
}

/// Whether `sequence` lies after `other` on the circle of 2³².
#[inline]
pub(crate) const fn passed(sequence: u32, other: u32) -> bool {
    sequence.wrapping_sub(other).cast_signed() > 0
}

/// `value`, at most 2³² − 1.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "bounded before")]
pub(crate) const fn saturate(value: u64) -> u32 {
    if value > u32::MAX as u64 { u32::MAX } else { value as u32 }
}

/// `ratio` in 16.16, at most 2³² − 1.
pub(crate) const fn fraction(ratio: Ratio) -> u32 {
    saturate(ratio.fixed(16))
}

/// `numerator · 2^shift / denominator`, to the nearest, at most 2³² − 1: for constants, where parameters change.
#[expect(clippy::cast_possible_truncation, reason = "bounded before")]
pub(crate) const fn constant(numerator: u64, shift: u32, denominator: u64) -> u32 {
    let denominator = if denominator == 0 { 1 } else { denominator as u128 };
    let quotient = (((numerator as u128) << shift) + denominator / 2) / denominator;
    if quotient > u32::MAX as u128 { u32::MAX } else { quotient as u32 }
}

/// Octets that `kbps` carries in `nanos` nanoseconds, at most 2³² − 1.
pub(crate) const fn octets_in(kbps: u32, nanos: u32) -> u32 {
    saturate(kbps as u64 * nanos as u64 / 8_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::Exact;
    use proptest::prelude::*;

    #[test]
    fn a_round_trip_across_the_clocks_wrap_is_what_it_was() {
        let at = |ns: u64| Instant::ZERO + Span::from_nanos(ns);
        let event = Event { sent: at((1 << 32) - 5), now: at((1 << 32) + 7), ..Event::default() };
        assert_eq!(rtt(&event), Some(12));
        assert_eq!(rtt(&Event { sent: Instant::ZERO, ..event }), None);
    }

    proptest! {
        #[test]
        fn a_ratio_is_as_exact_as_it_says(numerator in 0u32.., denominator in 1u32..) {
            let got = Exact::over(ratio(numerator, denominator), ONE);
            let exact = Exact::over(numerator, denominator).min(1.into());
            prop_assert!((&got - &exact).abs() <= Exact::over(5, ONE), "{got:?} {exact:?}");
        }
    }
}
