//! The I/O controller's buffer between PCIe and memory: what a NIC writes holds entries of it until it is in its place.
//!
//! Its occupancy is hostCC's signal (Agarwal et al., SIGCOMM 2023): lines take longer where memory is busy, so that more of them
//! stand there, up to what there are; beyond that PCIe waits.

use roci_units::{Instant, Span};

/// What the buffer is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IioConfig {
    /// Lines that it has room for, at least 1.
    pub entries: u32,
    /// How long a line stands in it where nothing waits.
    pub residence: Span,
}

/// How long its occupancy is averaged over before it goes into the moving average.
const WINDOW: Span = Span::from_micros(1);
/// What that counts there: an eighth, as hostCC has it.
const SHIFT: u32 = 3;
/// Binary places of the average.
const PLACES: u32 = 16;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Iio {
    config: IioConfig,
    /// When an entry is free.
    free: Instant,
    /// Line-picoseconds since the window began.
    area: u128,
    since: Instant,
    /// The moving average, in 1/2^16 of a line.
    average: u64,
    pub(crate) most: u32,
}

impl Iio {
    pub(crate) const fn new(config: IioConfig) -> Self {
        Self { config, free: Instant::ZERO, area: 0, since: Instant::ZERO, average: 0, most: 0 }
    }

    /// `lines` arrive, each of which takes `wait` longer than it must; gives when the last has left.
    pub(crate) fn pass(&mut self, now: Instant, lines: u32, wait: Span) -> Instant {
        self.close_window(now);
        let residence = self.config.residence + wait;
        self.area += u128::from(lines) * u128::from(residence.as_ps());
        // So many at once: one after the other leaves so much later.
        let spacing = residence.as_ps() / u64::from(self.config.entries);
        self.free = self.free.max(now) + Span::from_ps(spacing * u64::from(lines));
        self.free + residence
    }

    /// Takes windows that are over into the average.
    fn close_window(&mut self, now: Instant) {
        let passed = now.since(self.since);
        if passed < WINDOW {
            return;
        }
        let lines = (self.area << PLACES) / u128::from(passed.as_ps());
        let lines = u64::try_from(lines).unwrap_or(u64::MAX).min(u64::from(self.config.entries) << PLACES);
        // A long window counts as often as the short ones that it has.
        let windows = (passed.as_ps() / WINDOW.as_ps()).min(64);
        for _ in 0..windows {
            self.average = self.average - (self.average >> SHIFT) + (lines >> SHIFT);
        }
        (self.area, self.since) = (0, now);
        self.most = self.most.max(self.occupancy());
    }

    /// Lines that stand in it, as a moving average.
    #[expect(clippy::cast_possible_truncation, reason = "no more than its entries")]
    pub(crate) const fn occupancy(&self) -> u32 {
        (self.average >> PLACES) as u32
    }

    /// The same with the windows that are over by `now`.
    pub(crate) fn occupancy_by(mut self, now: Instant) -> u32 {
        self.close_window(now);
        self.occupancy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iio() -> Iio {
        Iio::new(IioConfig { entries: 100, residence: Span::from_nanos(50) })
    }

    #[test]
    fn occupancy_is_the_rate_of_lines_by_how_long_each_takes() {
        let mut iio = iio();
        // 64 lines each 160 ns, 50 ns each: 20 lines.
        for packet in 0..2000 {
            iio.pass(Instant::ZERO + Span::from_nanos(160 * packet), 64, Span::ZERO);
        }
        assert!((19..=20).contains(&iio.occupancy()), "{}", iio.occupancy());
        // 100 ns more each: three times as many.
        for packet in 2000..4000 {
            iio.pass(Instant::ZERO + Span::from_nanos(160 * packet), 64, Span::from_nanos(100));
        }
        assert!((59..=60).contains(&iio.occupancy()), "{}", iio.occupancy());
        assert!(iio.most >= 59);
    }

    #[test]
    fn a_buffer_that_nothing_comes_to_is_empty_after_a_while_and_asking_changes_nothing() {
        let mut iio = iio();
        for packet in 0..2000 {
            iio.pass(Instant::ZERO + Span::from_nanos(160 * packet), 64, Span::ZERO);
        }
        let last = Instant::ZERO + Span::from_nanos(160 * 1999);
        let before = iio.occupancy();
        let asked = [0, 10, 100].map(|micros| iio.occupancy_by(last + Span::from_micros(micros)));
        assert_eq!((asked[0], asked[2]), (before, 0));
        assert!(0 < asked[1] && asked[1] < before, "{asked:?}");
        assert_eq!(iio.occupancy(), before);
    }

    #[test]
    fn a_full_buffer_lets_lines_pass_as_fast_as_they_leave() {
        let mut iio = iio();
        let wait = Span::from_nanos(950);
        let left: Vec<Instant> = (0..10).map(|_| iio.pass(Instant::ZERO, 100, wait)).collect();
        // A hundred lines in a microsecond, and what each takes.
        assert_eq!(left[0], Instant::ZERO + Span::from_micros(2));
        assert_eq!(left[9], Instant::ZERO + Span::from_micros(11));
    }
}
