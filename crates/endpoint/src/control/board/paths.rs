//! How much the hops of a queue pair's ways are used, from one telling to another.

use super::super::hops::Way;
use super::AVERAGE;
use roci_units::{Bytes, Instant, Span};

/// Hops that are used less than the most used one by no more than this may be the bottleneck as well.
const ALIKE: f64 = 0.05;
/// A hop that is used less than this holds nothing back unless packets wait there.
const BUSY: f64 = 0.8;
/// So much waits anywhere, where one packet meets another: two of the longest, of 4096 octets each.
const FEW: Bytes = Bytes(9_000);

/// A way of a queue pair, and how much its hops are used.
#[derive(Clone, Debug)]
pub struct Path {
    /// What switches told last.
    pub way: Way,
    /// What each hop carried over the last half second to second, in bits per second, or between two readings that lie further apart; `None` where too little was told.
    pub carried: Vec<Option<f64>>,
    /// Two readings of before, the older one first.
    before: [(Instant, Way); 2],
}

impl Path {
    fn new(at: Instant, way: Way) -> Self {
        Self { carried: vec![None; way.hops.len()], before: [(at, way.clone()), (at, way.clone())], way }
    }

    fn take(&mut self, at: Instant, way: Way) {
        let [older, newer] = &mut self.before;
        if (way.path, way.anew) != (newer.1.path, newer.1.anew) {
            *self = Self::new(at, way);
            return;
        }
        self.carried = (0..way.hops.len()).map(|place| way.carried(&older.1, place)).collect();
        if Span::from_ps(at.as_ps().saturating_sub(newer.0.as_ps())) >= Span::from_ps(AVERAGE.as_ps() / 2) {
            *older = std::mem::replace(newer, (at, way.clone()));
        }
        self.way = way;
    }

    /// What part of its rate hop `place` carried.
    pub fn used(&self, place: usize) -> Option<f64> {
        let rate = self.way.hops.get(place)?.rate.0;
        #[expect(clippy::cast_precision_loss, reason = "a part for people")]
        self.carried.get(place).copied().flatten().map(|carried| carried / rate as f64)
    }

    /// How long what waits at hop `place` takes to leave, in seconds.
    #[expect(clippy::cast_precision_loss, reason = "a time for people")]
    pub fn waits(&self, place: usize) -> f64 {
        self.way.hops.get(place).map_or(0.0, |hop| hop.queued.0 as f64 * 8.0 / hop.rate.0.max(1) as f64)
    }

    /// The hop that holds the way back: the one that is used most, and of those that are used about as much the one where packets wait longest.
    /// Where none is used much, the one where they wait longest, if more than a few do.
    ///
    /// `None` where nothing is known of any, nothing was told for [`AVERAGE`], or there is room everywhere: then the law, a window or the
    /// application holds it back.
    pub fn bottleneck(&self) -> Option<usize> {
        if self.way.age > AVERAGE {
            return None;
        }
        let places = 0..self.way.hops.len();
        let used = |place: &usize| self.used(*place).unwrap_or(0.0);
        let most = places.clone().map(|place| used(&place)).fold(0.0, f64::max);
        let holds = |place: &usize| match most >= BUSY {
            true => used(place) >= most - ALIKE,
            false => self.way.hops[*place].queued > FEW,
        };
        let later = |a: &usize, b: &usize| {
            self.waits(*a).total_cmp(&self.waits(*b)).then(used(a).total_cmp(&used(b)))
        };
        // Of equal ones the first.
        places.filter(holds).rev().max_by(later)
    }
}

/// Takes what was read at `at`, by the device's clock; ways that are not told of any more go.
pub(super) fn take(paths: &mut Vec<Path>, at: Instant, ways: Vec<Way>) {
    let mut before = std::mem::take(paths);
    for way in ways {
        let known = before.iter().position(|path| path.way.is_ours == way.is_ours);
        paths.push(match known.map(|place| before.swap_remove(place)) {
            Some(mut path) => {
                path.take(at, way);
                path
            }
            None => Path::new(at, way),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::hops::Hop;
    use super::*;
    use roci_units::{BitsPerSec, Bytes};

    /// A way whose hops have such rates, in megabits a second, queues, and what they have sent, as told so many milliseconds after its beginning.
    fn way(ms: i64, hops: &[(u64, u64, u64)]) -> Way {
        let hop = |(mbps, queued, sent): &(u64, u64, u64)| Hop {
            queued: Bytes(*queued),
            rate: BitsPerSec::from_mbps(*mbps),
            sent: Bytes(*sent),
            at_ns: ms * 1_000_000,
        };
        Way { is_ours: true, path: 7, anew: 1, age: Span::ZERO, hops: hops.iter().map(hop).collect() }
    }

    fn at(ms: u64) -> Instant {
        Instant::from_ps(ms * 1_000_000_000)
    }

    #[test]
    fn the_bottleneck_is_the_hop_that_is_used_most_and_of_like_ones_where_packets_wait_longest() {
        for (hops, bottleneck) in [
            // Of 100 ms: 1 MB are 80 Mb/s.
            ([(1000, 50_000, 1_000_000), (100, 0, 1_000_000)], Some(1)),
            ([(1000, 0, 1_000_000), (100, 0, 999_000)], None),
            ([(1000, 0, 1_000_000), (100, 9_000, 500_000)], None),
            ([(1000, 0, 1_000_000), (100, 9_040, 500_000)], Some(1)),
            ([(1000, 9_040, 100_000), (100, 0, 500_000)], Some(0)),
            ([(100, 2_000, 1_200_000), (100, 9_000, 1_180_000)], Some(1)),
            ([(100, 9_000, 1_180_000), (100, 2_000, 1_200_000)], Some(0)),
            ([(100, 0, 1_200_000), (100, 0, 1_200_000)], Some(0)),
            ([(100, 0, 0), (100, 0, 0)], None),
            ([(100, 0, 0), (100, 80, 0)], None),
            ([(100, 0, 0), (100, 80_000, 0)], Some(1)),
        ] {
            let mut paths = Vec::new();
            take(&mut paths, at(0), vec![way(0, &hops.map(|(mbps, ..)| (mbps, 0, 0)))]);
            assert_eq!((&*paths[0].carried, paths[0].bottleneck()), (&[None; 2][..], None));
            take(&mut paths, at(100), vec![way(100, &hops)]);
            assert_eq!(paths[0].bottleneck(), bottleneck, "{hops:?}");
        }
    }

    #[test]
    fn what_was_told_longer_than_a_second_ago_names_no_bottleneck() {
        let mut paths = Vec::new();
        take(&mut paths, at(0), vec![way(0, &[(100, 0, 0)])]);
        for (ms, bottleneck) in [(0, Some(0)), (1_000, Some(0)), (1_001, None), (4_400, None)] {
            let told = Way { age: Span::from_millis(ms), ..way(100, &[(100, 120_000, 1_250_000)]) };
            take(&mut paths, at(100 + ms), vec![told]);
            assert_eq!(paths[0].bottleneck(), bottleneck, "{ms}");
        }
    }

    #[test]
    fn what_a_hop_carries_is_of_the_last_second_and_unknown_once_nothing_more_is_told() {
        let mut paths = Vec::new();
        // 80 Mb/s for two seconds, then 40.
        let sent = |ms: u64| ms.min(2_000) * 10_000 + ms.saturating_sub(2_000) * 5_000;
        for ms in (0..=4_000).step_by(200) {
            take(&mut paths, at(ms), vec![way(ms.cast_signed(), &[(100, 0, sent(ms))])]);
            let used = paths[0].used(0);
            match ms {
                0 => assert_eq!(used, None),
                200..=2_000 => assert_eq!(used, Some(0.8), "{ms}"),
                3_200.. => assert_eq!(used, Some(0.4), "{ms}"),
                _ => assert!(used.is_some_and(|used| (0.4..=0.8).contains(&used)), "{ms} {used:?}"),
            }
        }
        for ms in (4_200..=6_000).step_by(200) {
            take(&mut paths, at(ms), vec![way(4_000, &[(100, 0, sent(4_000))])]);
        }
        assert_eq!((paths[0].used(0), paths[0].bottleneck()), (None, None));
        take(&mut paths, at(6_200), vec![Way { anew: 2, ..way(9_000, &[(100, 0, 1 << 40)]) }]);
        assert_eq!(paths[0].used(0), None, "it was met anew");
        take(&mut paths, at(6_400), Vec::new());
        assert!(paths.is_empty());
    }
}
