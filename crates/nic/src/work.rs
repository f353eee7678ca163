//! Work under way in a NIC that is not ideal.

use crate::delay::{Delays, Range};
use roci_transport::{Grant, Offer, Resolution, Token};
use roci_units::{Instant, Random, Span};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What comes due.
pub(crate) enum Due {
    /// A deferral's answer.
    Resolve(Token, Resolution),
    /// An offer's grant.
    Commit(Offer, Grant),
    /// An offer's refusal: LoopBack.
    Decline(Offer),
}

/// The delays of a NIC and the work that waits for them.
pub(crate) struct Slow {
    pub(crate) delays: Delays,
    random: Random,
    serial: u64,
    pending: BinaryHeap<Pending>,
}

struct Pending {
    at: Instant,
    serial: u64,
    due: Due,
}

impl Slow {
    pub(crate) fn new(delays: Delays, random: Random) -> Self {
        Self { delays, random, serial: 0, pending: BinaryHeap::new() }
    }

    /// Lets `due` come due after a span of `range`.
    pub(crate) fn after(&mut self, now: Instant, range: Option<Range>, due: Due) {
        let delay = range.map_or(Span::ZERO, |range| range.draw(&mut self.random));
        self.serial += 1;
        self.pending.push(Pending { at: now + delay, serial: self.serial, due });
    }

    /// When the next work comes due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.pending.peek().map(|pending| pending.at)
    }

    /// The next work that is due by `now`.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Due> {
        if self.next()? > now {
            return None;
        }
        self.pending.pop().map(|pending| pending.due)
    }

    /// Whether this grant is refused once more.
    pub(crate) fn loops_back(&mut self) -> bool {
        self.random.chance(self.delays.loop_back)
    }
}

impl Ord for Pending {
    /// The earliest is the greatest, as `BinaryHeap` wants it; of two at one instant, the first that was asked for.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.serial).cmp(&(self.at, self.serial))
    }
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.serial == other.serial
    }
}

impl Eq for Pending {}
