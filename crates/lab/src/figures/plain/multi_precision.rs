//! Tonic's rate limiter (NSDI 2020, §3.3.2 and Appendix B): a rate kept several times, as octets in periods of various
//! lengths.
//!
//! A flow that lacks C octets of credit waits ⌈C / R⌉ periods, R being the octets of a period rounded down, and what those
//! periods brought beyond C is credit for the next segment. Long periods lose little of R and much of the wait, short ones
//! the reverse, and the shortest cannot express low rates at all.

/// Tonic's cycle in picoseconds.
pub(in super::super) const CYCLE_PS: u64 = 10_000;

/// A flow with a rate in the representations of its periods.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Limiter<'a> {
    kbps: u32,
    /// The periods' lengths in cycles.
    periods: &'a [u64],
    /// Octets that were granted and not yet used.
    credit: u64,
}

impl<'a> Limiter<'a> {
    /// Without credit.
    pub(in super::super) const fn new(kbps: u32, periods: &'a [u64]) -> Self {
        Self { kbps, periods, credit: 0 }
    }

    /// Octets of a period of so many cycles, rounded down.
    const fn octets(&self, cycles: u64) -> u64 {
        // kb/s times ps is 8·10⁹ times as many octets.
        self.kbps as u64 * cycles * CYCLE_PS / 8_000_000_000
    }

    /// Sends a segment of `octets`, and tells how many cycles it waited for that: one at least, for Tonic sends one
    /// segment in each, and else by the most precise representation. Each is late, so that is the one that is least late.
    /// `None` where the rate is too low for every one.
    pub(in super::super) fn send(&mut self, octets: u64) -> Option<u64> {
        let lacks = octets.saturating_sub(self.credit);
        let representations = self.periods.iter().filter_map(|&cycles| {
            let rate = self.octets(cycles);
            let enough = |periods: u64| (periods * cycles, periods * rate);
            (rate > 0).then(|| enough(lacks.div_ceil(rate)))
        });
        // With credit left a cycle goes by all the same, and brings what the shortest period has for it.
        let (wait, earned) = match lacks {
            0 => (1, if self.periods.contains(&1) { self.octets(1) } else { 0 }),
            _ => representations.min_by_key(|(wait, _)| *wait)?,
        };
        // §3.3.2: the credit grows by the time waited times R, less the segment.
        self.credit = self.credit + earned - octets;
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_example_waits_a_thousand_cycles_with_one_representation_and_is_exact_with_several() {
        let at_20_gbps = |periods| Limiter::new(20_000_000, periods).send(1_500);
        assert_eq!(at_20_gbps(&[1_000]), Some(1_000));
        assert_eq!(at_20_gbps(&[1, 1_000]), Some(60), "600 ns");
        assert_eq!(Limiter::new(500_000, &[1]).send(1_500), None, "less than an octet a cycle");
    }

    #[test]
    fn what_a_period_brings_beyond_a_segment_is_credit_for_the_next() {
        // 20 Gb/s are 25 000 octets in 1000 cycles: sixteen segments of 1500 and 1000 octets more.
        let mut limiter = Limiter::new(20_000_000, &[1_000]);
        let waits: Vec<_> = (0..18).map(|_| limiter.send(1_500).unwrap()).collect();
        assert_eq!((waits[0], waits[16]), (1_000, 1_000));
        assert_eq!(waits.iter().filter(|wait| **wait == 1).count(), 16, "the others go one a cycle");
    }

    #[test]
    fn it_never_sends_more_than_the_rate_allows() {
        for kbps in [1_000, 3_333, 77_777, 5_000_001, 99_999_999, 800_000_000] {
            for octets in [84, 1_500, 4_198] {
                let mut limiter = Limiter::new(kbps, &[1, 8, 64, 512, 4_096]);
                let mut cycles = 0;
                for n in 1..=500 {
                    cycles += limiter.send(octets).unwrap();
                    let allowed = cycles * CYCLE_PS * u64::from(kbps);
                    assert!(allowed >= n * octets * 8_000_000_000, "{kbps} kb/s, {octets}, {n}");
                }
            }
        }
    }
}
