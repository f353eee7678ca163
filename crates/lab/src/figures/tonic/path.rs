//! A link of 10 Gb/s with a round trip of 10 µs and a receiver that loses segments at random and answers each.
//!
//! A sender behind a clock sees what arrives, and sends, at its edges alone.

use roci_units::{BitsPerSec, Instant, Span};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Octets of payload in a segment.
pub(super) const SEGMENT: u32 = 1000;
/// What a segment of a WRITE takes on the wire besides.
const OVERHEAD: u32 = 98;
const LINK: BitsPerSec = BitsPerSec::from_gbps(10);
/// Half of the round trip.
const ONE_WAY: Span = Span::from_micros(5);

/// A path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// The sender's clock; zero: it acts at once.
    pub(super) cycle: Span,
    /// The share of segments that the receiver loses.
    pub(super) loss: f64,
    /// What the losses are drawn from.
    pub(super) seed: u64,
    /// Segments to be sent.
    pub(super) segments: u32,
}

/// A sender, by segments counted from 0.
pub(super) trait Sender {
    /// All segments before `cumulative` have come; `came` drew this acknowledgement.
    fn on_ack(&mut self, now: Instant, cumulative: u32, came: u32);
    /// The time has come that `wakeup` told.
    fn wake(&mut self, now: Instant);
    /// When its timer runs out.
    fn wakeup(&self) -> Option<Instant>;
    /// The segment that it sends now.
    fn transmit(&mut self, now: Instant) -> Option<u32>;
    /// Its congestion window, in segments.
    fn window(&self) -> u32;
    /// How often its timer ran out.
    fn timeouts(&self) -> u32;
}

/// What happened to a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// An acknowledgement of all before this segment.
    Ack(u32),
    /// Its timer ran out.
    Timeout,
}

/// An event, and the window after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Happened {
    pub(super) at: Instant,
    pub(super) what: What,
    pub(super) window: u32,
}

/// A run.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    pub(super) events: Vec<Happened>,
    /// Segments in the order in which they were sent.
    pub(super) sent: Vec<(Instant, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival(u32),
    Ack(u32, u32),
    PortFree,
}

/// SplitMix64's finaliser.
const fn scramble(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Path {
    /// The clock edge at or after `at`.
    fn edge(self, at: Instant) -> Instant {
        match self.cycle.as_ps() {
            0 => at,
            cycle => Instant::from_ps(at.as_ps().div_ceil(cycle) * cycle),
        }
    }

    /// Whether the receiver loses a segment that comes for the time `attempt`: the same for every sender.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    fn loses(self, segment: u32, attempt: u32) -> bool {
        let draw = scramble(self.seed ^ scramble(u64::from(segment) << 32 | u64::from(attempt)));
        ((draw >> 11) as f64) < self.loss * (1u64 << 53) as f64
    }

    /// Sends all segments.
    pub(super) fn play(self, sender: &mut impl Sender) -> Log {
        let mut log = Log::default();
        let mut events = BinaryHeap::new();
        let mut serial = 0u64;
        let mut attempts = vec![0u32; self.segments as usize];
        let mut kept = vec![false; self.segments as usize];
        let (mut expected, mut acknowledged) = (0u32, 0u32);
        let (mut now, mut free) = (Instant::ZERO, Instant::ZERO);
        let mut push = |events: &mut BinaryHeap<_>, at: Instant, event: Event| {
            serial += 1;
            events.push(Reverse((at, serial, event)));
        };
        while acknowledged < self.segments {
            if free <= now
                && let Some(segment) = sender.transmit(now)
            {
                log.sent.push((now, segment));
                let gone = now + LINK.time_for(u64::from(SEGMENT + OVERHEAD));
                free = self.edge(gone);
                push(&mut events, gone + ONE_WAY, Event::Arrival(segment));
                push(&mut events, free, Event::PortFree);
            }
            let wakeup = sender.wakeup().map(|at| self.edge(at));
            let next = events.peek().map(|Reverse((at, ..))| *at);
            let Some(at) = next.into_iter().chain(wakeup).min() else { break };
            now = now.max(at);
            if next != Some(at) {
                let before = sender.timeouts();
                sender.wake(now);
                if sender.timeouts() > before {
                    log.events.push(Happened { at: now, what: What::Timeout, window: sender.window() });
                }
                continue;
            }
            match events.pop() {
                Some(Reverse((_, _, Event::Arrival(segment)))) => {
                    attempts[segment as usize] += 1;
                    if self.loses(segment, attempts[segment as usize]) {
                        continue;
                    }
                    kept[segment as usize] = true;
                    while kept.get(expected as usize) == Some(&true) {
                        expected += 1;
                    }
                    push(&mut events, self.edge(now + ONE_WAY), Event::Ack(expected, segment));
                }
                Some(Reverse((_, _, Event::Ack(cumulative, came)))) => {
                    acknowledged = acknowledged.max(cumulative);
                    sender.on_ack(now, cumulative, came);
                    let what = What::Ack(cumulative);
                    log.events.push(Happened { at: now, what, window: sender.window() });
                }
                _ => {}
            }
        }
        log
    }
}
