//! Tonic's rate limiter (NSDI 2020, Appendix B): a rate kept several times, as octets in periods of various lengths.
//!
//! A flow that needs C octets of credit waits ⌈C / R⌉ periods, R being the octets of a period rounded down. Long periods
//! lose little of R and much of the wait, short ones the reverse, and the shortest cannot express low rates at all.

/// Tonic's cycle in picoseconds.
pub(in super::super) const CYCLE_PS: u64 = 10_000;

/// A rate in the representations of its periods.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Rates<'a> {
    kbps: u32,
    /// Their lengths in cycles.
    periods: &'a [u64],
}

impl<'a> Rates<'a> {
    pub(in super::super) const fn new(kbps: u32, periods: &'a [u64]) -> Self {
        Self { kbps, periods }
    }

    /// Octets of a period of so many cycles, rounded down.
    const fn octets(&self, cycles: u64) -> u64 {
        // kb/s times ps is 8·10⁹ times as many octets.
        self.kbps as u64 * cycles * CYCLE_PS / 8_000_000_000
    }

    /// Cycles until there is credit for `octets`, by the most precise representation: each is late, so the one that is
    /// least late. `None` where the rate is too low for every one.
    pub(in super::super) fn wait(&self, octets: u64) -> Option<u64> {
        let waits = self.periods.iter().filter_map(|&cycles| {
            let rate = self.octets(cycles);
            (rate > 0).then(|| octets.div_ceil(rate) * cycles)
        });
        waits.min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_example_waits_a_thousand_cycles_with_one_representation_and_is_exact_with_several() {
        let at_20_gbps = |periods| Rates::new(20_000_000, periods).wait(1_500);
        assert_eq!(at_20_gbps(&[1_000]), Some(1_000));
        assert_eq!(at_20_gbps(&[1, 1_000]), Some(60), "600 ns");
        assert_eq!(Rates::new(500_000, &[1]).wait(1_500), None, "less than an octet a cycle");
    }

    #[test]
    fn it_is_never_early() {
        for kbps in [1_000, 3_333, 77_777, 5_000_001, 99_999_999, 800_000_000] {
            for octets in [84, 1_500, 4_198] {
                let wait = Rates::new(kbps, &[1, 8, 64, 512, 4_096]).wait(octets).unwrap();
                assert!(wait * CYCLE_PS * u64::from(kbps) >= octets * 8_000_000_000, "{kbps} kb/s, {octets}");
            }
        }
    }
}
