//! What a queue pair sent and was allowed, over time.

use roci_units::{BitsPerSec, Span};
use std::collections::VecDeque;

/// What stands for a rate that is not there: no limit, or nothing known of the time before.
const NONE: u32 = u32::MAX;

/// A point of a [`Series`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// When it was read.
    pub at: Span,
    /// The payload sent since the point before; `None`: there is none before.
    pub sent: Option<BitsPerSec>,
    /// What the law allowed at that time; `None`: it was not paced.
    pub allowed: Option<BitsPerSec>,
}

/// As small as can be: there are a thousand of them for each of thousands of queue pairs.
#[derive(Clone, Copy, Debug)]
struct Kept {
    at_ms: u32,
    sent_kbps: u32,
    allowed_kbps: u32,
}

impl Kept {
    fn point(self) -> Point {
        let rate = |kbps| (kbps != NONE).then(|| BitsPerSec::from_kbps(u64::from(kbps)));
        Point {
            at: Span::from_millis(self.at_ms.into()),
            sent: rate(self.sent_kbps),
            allowed: rate(self.allowed_kbps),
        }
    }
}

/// What a queue pair sent and was allowed, over time: the oldest points go first. Times are kept to a millisecond, rates to a
/// kilobit per second.
#[derive(Clone, Debug, Default)]
pub struct Series(VecDeque<Kept>);

impl Series {
    pub(super) fn push(
        &mut self,
        at: Span,
        sent_bps: Option<f64>,
        allowed: Option<BitsPerSec>,
        points_max: usize,
    ) {
        while self.0.len() >= points_max {
            self.0.pop_front();
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "`as` ends at the bounds"
        )]
        let sent_kbps = sent_bps.map_or(NONE, |bps| ((bps / 1000.0).round() as u32).min(NONE - 1));
        self.0.push_back(Kept {
            at_ms: u32::try_from(at.as_ps() / 1_000_000_000).unwrap_or(u32::MAX),
            sent_kbps,
            allowed_kbps: allowed.map_or(NONE, |rate| rate.as_kbps().min(NONE - 1)),
        });
    }

    /// All points, the oldest first.
    pub fn points(&self) -> impl DoubleEndedIterator<Item = Point> {
        self.0.iter().map(|kept| kept.point())
    }

    /// The points from `from` on, and the one before, from which a line comes in.
    pub fn since(&self, from: Span) -> impl DoubleEndedIterator<Item = Point> {
        let first = self.0.partition_point(|kept| kept.point().at < from);
        self.0.range(first.saturating_sub(1)..).map(|kept| kept.point())
    }

    /// The mean of what was sent, in bits per second, in each of the last `count` times of length `each` up to now; `None` where
    /// nothing is known of one. They end at whole multiples of `each`, so that from one reading to the next they stay as they are,
    /// but for the last, which is not over.
    pub fn means(&self, now: Span, each: Span, count: usize) -> Vec<Option<f64>> {
        let each = each.as_ps().max(1);
        // How many have begun since time began, and where the first of those that are asked for did.
        let begun = now.as_ps() / each + 1;
        let first = begun.saturating_sub(count as u64) * each;
        let known = usize::try_from(begun).unwrap_or(usize::MAX).min(count);
        // What was sent in each, and of how much of it that is known.
        let mut sums = vec![(0.0, 0.0); known];
        let mut before = None;
        for point in self.since(Span::from_ps(first)) {
            let (at, before) = (point.at.as_ps(), before.replace(point.at.as_ps()));
            let (Some(before), Some(sent)) = (before, point.sent) else { continue };
            let mut from = before.max(first);
            while from < at {
                let place = (from - first) / each;
                let until = at.min(first + (place + 1) * each);
                let Some(sum) = usize::try_from(place).ok().and_then(|place| sums.get_mut(place)) else {
                    break;
                };
                let share = (until - from) as f64;
                sum.0 += sent.0 as f64 * share;
                sum.1 += share;
                from = until;
            }
        }
        let means = sums.into_iter().map(|(sum, share)| (share > 0.0).then(|| sum / share));
        std::iter::repeat_n(None, count - known).chain(means).collect()
    }
}
