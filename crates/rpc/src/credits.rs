//! How much a connection may have under way.

use crate::server::Return;
use roci_units::Span;

/// What bounds the packets of a connection that have been sent and not been consumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Credits {
    /// Nothing but the window of requests and the receive buffers of the other end.
    #[default]
    Unlimited,
    /// So many packets, as eRPC's sessions have credits.
    Session(u32),
    /// The connection's share of the cache, formula (1).
    Basic,
    /// That and δ, formula (2).
    Loosened,
}

/// A connection's share of a cache of `cache` octets with lines of `line` octets among `connections`: formula (1), at least 1.
pub fn basic_credits(cache: u64, line: u32, connections: u32) -> u32 {
    let lines = cache / (u64::from(line.max(1)) * u64::from(connections.max(1)));
    u32::try_from(lines).unwrap_or(u32::MAX).max(1)
}

/// A share that is loosened by δ, which follows what comes back with credits.
///
/// δ grows where the receiver has nothing to do: up to what it consumes in a round trip, so that the next data are there when it is
/// done. It shrinks, and becomes negative, where data are lost from the cache though no more is under way than fits: something
/// else is using it. So says the paper. How fast is our choice (docs/decisions/0024): up by an eighth of what is missing, for all at once
/// would come as a burst; down by a sixteenth of what may be under way, to an eighth of the share at least; and back from below zero by
/// a sixty-fourth of the share. The round trip counts up to twice the least one: with all of a congested network's queues
/// in it more would be under way, and the queues be longer still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loosened {
    basic: u32,
    delta: i64,
    /// The round trip without what the receiver kept data for: the least that was seen, and a moving average.
    round_trips: Option<(Span, Span)>,
    /// How long the receiver takes for 256 lines, as a moving average.
    service: Option<Span>,
}

/// δ grows by one part in so many of what is missing,
const MORE: i64 = 8;
/// shrinks by one in so many of what may be under way,
const DOWN: u32 = 16;
/// recovers by one in so many of the share,
const UP: u32 = 64;
/// and leaves one in so many of it.
const LEAST: u32 = 8;
/// What is new counts an eighth in moving averages.
const WEIGHT: u64 = 8;

impl Loosened {
    /// A share of `basic` lines, with a δ of 0.
    pub const fn new(basic: u32) -> Self {
        Self { basic, delta: 0, round_trips: None, service: None }
    }

    /// Lines that may be under way.
    pub fn lines(&self) -> u32 {
        u32::try_from(i64::from(self.basic) + self.delta).unwrap_or(u32::MAX).max(1)
    }

    /// δ in lines.
    pub const fn delta(&self) -> i64 {
        self.delta
    }

    /// Credits have come back, and what was sent with the last of them was sent `ago`.
    pub fn returned(&mut self, it: &Return, ago: Span) {
        let round_trip = ago.saturating_sub(it.residence);
        let (least, average) = self.round_trips.unwrap_or((round_trip, round_trip));
        self.round_trips = Some((least.min(round_trip), averaged(Some(average), round_trip)));
        if it.lines > 0 {
            let of_256 = it.service.as_ps().saturating_mul(256) / u64::from(it.lines);
            self.service = Some(averaged(self.service, Span::from_ps(of_256)));
        }
        let in_round_trip = i64::from(self.consumed_in_round_trip());
        if it.pressed {
            let least = i64::from(self.basic / LEAST) - i64::from(self.basic);
            self.delta = (self.delta - i64::from((self.lines() / DOWN).max(1))).max(least);
        } else if self.delta < 0 {
            self.delta = (self.delta + i64::from((self.basic / UP).max(1))).min(0);
        } else if it.idle {
            self.delta = (self.delta + ((in_round_trip - self.delta) / MORE).max(1)).min(in_round_trip);
        } else {
            self.delta = self.delta.min(in_round_trip);
        }
    }

    /// Lines that the receiver consumes in a round trip.
    fn consumed_in_round_trip(&self) -> u32 {
        let (Some((least, average)), Some(service)) = (self.round_trips, self.service) else { return 0 };
        let round_trip = average.min(least + least);
        let lines = u128::from(round_trip.as_ps()) * 256 / u128::from(service.as_ps().max(1));
        u32::try_from(lines).unwrap_or(u32::MAX)
    }
}

/// The moving average with `new`, which begins with it.
fn averaged(before: Option<Span>, new: Span) -> Span {
    before.map_or(new, |before| {
        Span::from_ps((before.as_ps() / WEIGHT * (WEIGHT - 1)).saturating_add(new.as_ps() / WEIGHT))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(lines: u32, service: u64, idle: bool, pressed: bool) -> Return {
        Return {
            lines,
            packets: 1,
            service: Span::from_nanos(service),
            residence: Span::from_nanos(service),
            idle,
            pressed,
        }
    }

    #[test]
    fn a_share_is_the_caches_lines_over_the_connections() {
        assert_eq!(basic_credits(12 << 20, 64, 16), 12_288);
        assert_eq!(basic_credits(12 << 20, 64, 1 << 20), 1);
        assert_eq!(basic_credits(1 << 20, 64, 0), 16_384);
    }

    #[test]
    fn an_idle_receiver_gets_what_it_consumes_in_a_round_trip() {
        let mut share = Loosened::new(1000);
        // 100 lines in 1 µs, and a round trip of 20 µs beside the residence.
        share.returned(&back(100, 1000, true, false), Span::from_micros(21));
        assert_eq!((share.delta(), share.lines()), (250, 1250));
        for _ in 0..200 {
            share.returned(&back(100, 1000, true, false), Span::from_micros(21));
        }
        assert_eq!((share.delta(), share.lines()), (2000, 3000));
        // It is not idle: δ stays.
        share.returned(&back(100, 1000, false, false), Span::from_micros(21));
        assert_eq!(share.delta(), 2000);
        // However long the network takes, it is no more than twice that.
        for _ in 0..200 {
            share.returned(&back(100, 1000, true, false), Span::from_micros(1001));
        }
        assert_eq!(share.delta(), 4000);
        // It becomes slower: δ shrinks with its rate.
        for _ in 0..100 {
            share.returned(&back(100, 4000, false, false), Span::from_micros(24));
        }
        assert!((500..520).contains(&share.delta()), "{}", share.delta());
    }

    #[test]
    fn lost_lines_make_it_negative_down_to_an_eighth_of_the_share_and_it_recovers() {
        let mut share = Loosened::new(1600);
        share.returned(&back(100, 1000, true, false), Span::from_micros(21));
        assert_eq!(share.delta(), 250);
        share.returned(&back(100, 1000, false, true), Span::from_micros(21));
        assert_eq!(share.delta(), 250 - 1850 / 16);
        for _ in 0..100 {
            share.returned(&back(100, 1000, false, true), Span::from_micros(21));
        }
        assert_eq!(share.lines(), 200);
        for _ in 0..56 {
            share.returned(&back(100, 1000, true, false), Span::from_micros(21));
        }
        assert_eq!(share.delta(), 0);
    }
}
