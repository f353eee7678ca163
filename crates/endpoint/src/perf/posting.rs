//! In which portions requests are posted, which of them tell of their end, and how fast they may follow each other.

use super::RateLimit;
use roci_units::{Instant, Span};
use std::time::Duration;

/// How many requests are posted at once, and how many ends make a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Portions {
    /// Requests of a list; `None`: as many as there is room for.
    list: Option<u64>,
    /// One of so many tells of its end, and of those before it.
    every: u64,
}

impl Portions {
    /// As they are asked for, but so that a queue of `depth` requests never waits for an end of which none tells: lists fit it,
    /// and a completion stands for whole lists or for a part of one that divides it.
    pub(super) fn new(list: Option<u32>, every: u32, depth: u64) -> Self {
        let list = list.map(|list| u64::from(list).clamp(1, depth));
        let mut every = u64::from(every).clamp(1, depth);
        if let Some(list) = list {
            every = if every > list { every - every % list } else { every };
            every = if every < list && list % every != 0 { list } else { every };
        }
        Self { list, every }
    }

    /// How many of `left` requests are to be posted next where there is room for `room`; 0: none yet.
    pub(super) fn next(&self, room: u64, left: u64) -> u64 {
        match self.list {
            None => room.min(left),
            Some(list) if room < list.min(left) => 0,
            Some(list) => list.min(left),
        }
    }

    /// Whether the request behind `posted` others, of `each`, tells of its end.
    pub(super) fn tells(&self, posted: u64, each: u64) -> bool {
        (posted + 1).is_multiple_of(self.every) || posted + 1 == each
    }

    /// How many requests have ended by a completion, where `done` of `each` had before.
    pub(super) fn ended(&self, done: u64, each: u64) -> u64 {
        self.every - done % self.every - (done - done % self.every + self.every).saturating_sub(each)
    }
}

/// Lets messages go at a rate, and no faster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// A message takes so long.
    each: Span,
    /// When the next one may go.
    due: Option<Instant>,
}

/// Who comes late, since the machine is busy, may make up for so much of it at once.
const LATE: Span = Span::from_millis(10);

impl Limit {
    /// Of messages of `size` octets on a path of `mtu`.
    pub(super) fn new(rate: RateLimit, size: u32, mtu: u16) -> Self {
        let per_second = match rate {
            RateLimit::Gbits(rate) => rate * 1e9 / 8.0 / f64::from(size),
            RateLimit::Mebibytes(rate) => rate * 1_048_576.0 / f64::from(size),
            RateLimit::Packets(rate) => rate / f64::from(size.div_ceil(mtu.into())),
        };
        // The time of a thousand messages in nanoseconds is that of one in picoseconds. An hour between two is as good as never.
        let thousand = Duration::try_from_secs_f64(1000.0 / per_second).unwrap_or(Duration::MAX);
        let each = u64::try_from(thousand.as_nanos()).unwrap_or(u64::MAX).clamp(1, 3_600_000_000_000_000);
        Self { each: Span::from_ps(each), due: None }
    }

    /// How many messages may go now.
    pub(super) fn allows(&mut self, now: Instant) -> u64 {
        let due = self.due.unwrap_or(now).max(now - LATE);
        self.due = Some(due);
        if now < due { 0 } else { now.since(due).as_ps() / self.each.as_ps() + 1 }
    }

    /// So many have gone.
    pub(super) fn charge(&mut self, messages: u64) {
        self.due = self.due.map(|due| due + Span::from_ps(self.each.as_ps().saturating_mul(messages)));
    }

    /// How long it is until the next one may go.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.due.map_or(Duration::ZERO, |due| Duration::from_nanos(due.since(now).as_ps().div_ceil(1000)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_queue_waits_for_an_end_of_which_none_tells() {
        for depth in 1..24u64 {
            for list in 0..26 {
                for every in 1..26 {
                    let portions = Portions::new((list > 0).then_some(list), every, depth);
                    let (mut posted, mut done, each) = (0, 0, 50);
                    let mut told: Vec<u64> = Vec::new();
                    while done < each {
                        let next = portions.next(depth - (posted - done), each - posted);
                        for _ in 0..next {
                            if portions.tells(posted, each) {
                                told.push(posted + 1);
                            }
                            posted += 1;
                        }
                        if next == 0 {
                            assert!(!told.is_empty(), "{portions:?} of {depth} waits for ever");
                            done += portions.ended(done, each);
                            assert_eq!(done, told.remove(0), "{portions:?}");
                        }
                    }
                    assert_eq!((posted, told.len()), (each, 0));
                }
            }
        }
    }

    #[test]
    fn lists_and_completions_are_as_they_were_asked_for_where_they_fit() {
        assert_eq!(Portions::new(Some(8), 32, 128), Portions { list: Some(8), every: 32 });
        assert_eq!(Portions::new(Some(8), 2, 128), Portions { list: Some(8), every: 2 });
        assert_eq!(Portions::new(Some(8), 30, 128).every, 24);
        assert_eq!(Portions::new(None, 500, 128).every, 128);
        assert_eq!(Portions::new(None, 1, 128).next(77, 1000), 77);
    }

    #[test]
    fn a_limit_keeps_its_rate_over_any_time_whoever_comes_late() {
        let start = Instant::ZERO + Span::from_millis(50);
        // 1 Gb/s of 1250 octets: one each 10 us. Who looks comes up to 8 ms late.
        let mut limit = Limit::new(RateLimit::Gbits(1.0), 1250, 1024);
        let (mut now, mut sent) = (start, 0);
        for step in 0..1000u64 {
            let allowed = limit.allows(now);
            limit.charge(allowed);
            sent += allowed;
            let most = now.since(start).as_ps() / 10_000_000 + 1;
            assert_eq!(sent, most, "in step {step}");
            now += Span::from_micros(1 + step * 7919 % 8000);
        }
    }

    #[test]
    fn a_limit_forgets_what_was_not_used_for_long() {
        let mut limit = Limit::new(RateLimit::Mebibytes(100.0), 1 << 20, 4096);
        let start = Instant::ZERO + Span::from_secs(1);
        assert_eq!(limit.allows(start), 1);
        limit.charge(1);
        assert_eq!((limit.allows(start), limit.wait(start)), (0, Duration::from_millis(10)));
        assert_eq!(limit.allows(start + Span::from_secs(5)), 2, "the due one and 10 ms of the past");
    }

    #[test]
    fn packets_are_those_of_the_path() {
        let per_message = |size| Limit::new(RateLimit::Packets(1000.0), size, 1024).each;
        assert_eq!(per_message(2), Span::from_millis(1));
        assert_eq!(per_message(4097), Span::from_millis(5));
    }
}
