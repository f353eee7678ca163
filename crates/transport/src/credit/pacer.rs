//! Exact pacing: the time at which the next packet may leave, with nothing rounded away.

use roci_control::Credit;
use roci_units::{Instant, Span};

/// An octet lasts this many picoseconds at 1 kb/s.
const PS_PER_OCTET_AT_1_KBPS: u64 = 8_000_000_000;

/// Runs up to so many octets are charged with 64-bit arithmetic.
const SHORT: u32 = 1 << 30;

/// Debts below so many picoseconds, 2 ms, are rescaled with 64-bit arithmetic.
const NEAR: u64 = 1 << 31;

/// Spaces the packets of one queue pair (or of one port) at a rate in kb/s of octets on the wire.
///
/// It is a virtual clock: each packet moves the next one's instant by the packet's own time at the rate. The part of
/// a picosecond is carried, so over any run of packets sent when they are eligible, the gaps add up to the exact
/// time of their octets rounded down, whatever the rate. It needs no timer while idle and never polls: it names one
/// instant.
///
/// Who sends later than it might has saved something up; what it may use of that is bounded by the burst span given
/// to [`Pacer::new`], and nothing of it is left to who had nothing to send ([`Pacer::resume`]). With a span of zero nothing is
/// kept: a bucket that holds one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacer {
    /// The next packet is eligible at `eligible` + `part` / `rate` ps.
    eligible: u64,
    burst: Span,
    part: u32,
    /// In kb/s, at least 1; [`Credit::UNLIMITED`]: no pacing.
    rate: u32,
}

impl Pacer {
    /// A pacer without a limit, whose debt is nil and which keeps at most `burst` of unused time.
    #[must_use]
    pub const fn new(burst: Span) -> Self {
        Self { eligible: 0, burst, part: 0, rate: Credit::UNLIMITED }
    }

    /// The earliest instant, rounded down to a picosecond, at which the next packet may leave.
    #[inline]
    #[must_use]
    pub const fn eligible_at(&self) -> Instant {
        Instant::from_ps(self.eligible)
    }

    /// The rate in kb/s; [`Credit::UNLIMITED`]: not paced.
    #[must_use]
    pub const fn rate_kbps(&self) -> u32 {
        self.rate
    }

    /// Accounts for `octets` on the wire (preamble and gap included) that leave at `now`.
    #[inline]
    pub fn charge(&mut self, now: Instant, octets: u32) {
        if self.rate == Credit::UNLIMITED {
            return;
        }
        self.forfeit(now);
        if octets > SHORT {
            // 8·10⁹ times as many octets might not fit 64 bits.
            self.extend(SHORT);
            self.extend(SHORT);
            return self.extend(octets - SHORT.saturating_mul(2).min(octets));
        }
        self.extend(octets);
    }

    /// Changes the rate at `now`. What is still owed, or saved up, is a number of octets: it stays that number, and
    /// the gap that is left is scaled from the old rate to the new one. Zero, which no law should ask for, is taken
    /// as 1 kb/s.
    pub fn set_rate(&mut self, now: Instant, rate_kbps: u32) {
        let new = rate_kbps.max(1);
        if new == self.rate {
            return;
        }
        if self.rate == Credit::UNLIMITED || new == Credit::UNLIMITED {
            (self.eligible, self.part, self.rate) = (now.as_ps(), 0, new);
            return;
        }
        self.forfeit(now);
        let now = now.as_ps();
        if self.eligible >= now && self.eligible - now < NEAR {
            // What laws that set a rate with each acknowledgement see: the same in 64 bits.
            let owed = (self.eligible - now) * u64::from(self.rate) + u64::from(self.part);
            let rate = u64::from(new);
            (self.eligible, self.part, self.rate) = (now + owed / rate, low(u128::from(owed % rate)), new);
            return;
        }
        let (old, part) = (u128::from(self.rate), u128::from(self.part));
        let wide = u128::from(new);
        if self.eligible >= now {
            let owed = u128::from(self.eligible - now) * old + part;
            self.eligible = now.saturating_add(saturate(owed / wide));
            self.part = low(owed % wide);
        } else {
            let saved = u128::from(now - self.eligible) * old - part;
            self.eligible = now.saturating_sub(saturate(saved.div_ceil(wide)));
            self.part = low((wide - saved % wide) % wide);
        }
        self.rate = new;
    }

    /// Drops all that was saved up by `now`: who had nothing to send was not late.
    #[inline]
    pub fn resume(&mut self, now: Instant) {
        if self.eligible < now.as_ps() {
            (self.eligible, self.part) = (now.as_ps(), 0);
        }
    }

    /// Drops what was saved up by `now` beyond `keep`, and beyond the burst span with the next charge: for who had nothing to send, and may
    /// begin with as much at once as it sends at once anyway.
    pub fn resume_within(&mut self, now: Instant, keep: Span) {
        let floor = (now - keep).as_ps();
        if self.eligible < floor {
            (self.eligible, self.part) = (floor, 0);
        }
    }

    /// Drops what was saved up beyond the burst span.
    #[inline]
    fn forfeit(&mut self, now: Instant) {
        let floor = (now - self.burst).as_ps();
        if self.eligible < floor {
            (self.eligible, self.part) = (floor, 0);
        }
    }

    /// Adds the time of at most [`SHORT`] octets: one multiplication and one division of 64 bits.
    #[inline]
    fn extend(&mut self, octets: u32) {
        let rate = u64::from(self.rate);
        let owed = u64::from(octets) * PS_PER_OCTET_AT_1_KBPS + u64::from(self.part);
        self.eligible = self.eligible.saturating_add(owed / rate);
        self.part = low(u128::from(owed % rate));
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a remainder of a division by a rate, a u32")]
const fn low(value: u128) -> u32 {
    value as u32
}

fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn paced(rate_kbps: u32) -> Pacer {
        let mut pacer = Pacer::new(Span::ZERO);
        pacer.set_rate(Instant::ZERO, rate_kbps);
        pacer
    }

    #[test]
    fn its_state_takes_24_octets() {
        assert!(size_of::<Pacer>() <= 24);
    }

    #[test]
    fn from_1_megabit_to_800_gigabit_and_beyond_the_rate_is_met_exactly() {
        for rate in [1_000, 9_999, 3_333_333, 10_000_000, 400_000_000, 800_000_000, u32::MAX - 1] {
            let mut pacer = paced(rate);
            let mut octets = 0u128;
            for n in 0..10_000u32 {
                let size = 84 + n % 9_000;
                pacer.charge(pacer.eligible_at(), size);
                octets += u128::from(size);
            }
            let exact = octets * 8_000_000_000 / u128::from(rate);
            assert_eq!(u128::from(pacer.eligible_at().as_ps()), exact, "at {rate} kb/s");
        }
    }

    #[test]
    fn an_idle_queue_pair_saves_up_one_packet_and_no_more() {
        let mut pacer = paced(10_000_000);
        let now = Instant::from_ps(5_000_000_000);
        pacer.charge(now, 1_250);
        assert_eq!(pacer.eligible_at(), now + Span::from_nanos(1_000));
    }

    #[test]
    fn a_burst_span_lets_that_much_of_lost_time_be_regained() {
        let mut pacer = Pacer::new(Span::from_nanos(2_000));
        pacer.set_rate(Instant::ZERO, 10_000_000);
        let now = Instant::from_ps(5_000_000_000);
        let mut burst = 0;
        while pacer.eligible_at() <= now {
            pacer.charge(now, 1_250);
            burst += 1;
        }
        assert_eq!(burst, 3, "two microseconds' worth, and the packet that is always allowed");
    }

    #[test]
    fn a_change_of_rate_scales_the_gap_that_is_left() {
        let mut pacer = paced(10_000_000);
        pacer.charge(Instant::ZERO, 1_250); // owes 1 µs
        pacer.set_rate(Instant::from_ps(400_000), 5_000_000);
        assert_eq!(pacer.eligible_at(), Instant::from_ps(400_000 + 1_200_000));
        pacer.set_rate(Instant::from_ps(400_000), 40_000_000);
        assert_eq!(pacer.eligible_at(), Instant::from_ps(400_000 + 150_000));
    }

    #[test]
    fn without_a_limit_nothing_waits_and_a_limit_begins_without_debt() {
        let mut pacer = Pacer::new(Span::ZERO);
        let now = Instant::from_ps(77);
        pacer.charge(now, 9_000);
        assert!(pacer.eligible_at() <= now);
        pacer.set_rate(now, 1_000);
        assert_eq!(pacer.eligible_at(), now);
        pacer.charge(now, 9_000);
        pacer.set_rate(now, Credit::UNLIMITED);
        assert_eq!(pacer.eligible_at(), now);
    }

    #[test]
    fn the_longest_run_and_the_lowest_rate_are_in_range() {
        let mut pacer = paced(0);
        pacer.charge(Instant::ZERO, u32::MAX);
        let exact = u128::from(u32::MAX) * 8_000_000_000;
        assert_eq!(u128::from(pacer.eligible_at().as_ps()), exact.min(u128::from(u64::MAX)));
        let mut pacer = paced(7);
        pacer.charge(Instant::ZERO, u32::MAX);
        assert_eq!(u128::from(pacer.eligible_at().as_ps()), exact / 7);
    }

    proptest! {
        #[test]
        fn gaps_never_drift(
            rate in 1_000u32..u32::MAX,
            sizes in prop::collection::vec(1u32..70_000, 1..300),
        ) {
            let mut pacer = paced(rate);
            let mut octets = 0u128;
            for size in sizes {
                pacer.charge(pacer.eligible_at(), size);
                octets += u128::from(size);
                let exact = octets * 8_000_000_000 / u128::from(rate);
                prop_assert_eq!(u128::from(pacer.eligible_at().as_ps()), exact);
            }
        }

        /// Sent late by chance, no stretch of packets is faster than the rate allows but for the burst.
        #[test]
        fn no_stretch_is_faster_than_the_rate(
            rate in 1_000u32..800_000_000,
            burst_ns in 0u64..100_000,
            packets in prop::collection::vec((64u32..9_000, 0u64..10_000_000), 2..100),
        ) {
            let burst = Span::from_nanos(burst_ns);
            let mut pacer = Pacer::new(burst);
            pacer.set_rate(Instant::ZERO, rate);
            let mut sent: Vec<(Instant, u32)> = Vec::new();
            let mut now = Instant::ZERO;
            for (size, late) in packets {
                now = now.max(pacer.eligible_at()) + Span::from_ps(late);
                pacer.charge(now, size);
                sent.push((now, size));
            }
            for first in 0..sent.len() {
                let mut octets = 0u128;
                for pair in sent[first..].windows(2) {
                    octets += u128::from(pair[0].1);
                    let least = octets * 8_000_000_000 / u128::from(rate);
                    let took = u128::from((pair[1].0.since(sent[first].0) + burst).as_ps()) + 1;
                    prop_assert!(took >= least, "{took} ps for {octets} octets, {least} at least");
                }
            }
        }

        /// Rates that change at any time: what was sent up to any eligible instant is the integral of the rate.
        #[test]
        fn changes_of_rate_lose_nothing(
            steps in prop::collection::vec((1_000u32..800_000_000, 64u32..9_000, 0u32..=1_000), 1..60),
        ) {
            let mut pacer = paced(1_000_000);
            let mut now = Instant::ZERO;
            for (rate, size, when) in steps {
                pacer.charge(now, size);
                let left = pacer.eligible_at().since(now).as_ps();
                let change = now + Span::from_ps(left / 1_000 * u64::from(when));
                let old = pacer;
                pacer.set_rate(change, rate);
                let owed = |p: &Pacer| {
                    u128::from(p.eligible_at().since(change).as_ps()) * u128::from(p.rate) + u128::from(p.part)
                };
                prop_assert_eq!(owed(&old), owed(&pacer), "the octets owed do not change");
                now = pacer.eligible_at();
            }
        }
    }
}
