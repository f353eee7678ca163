//! Work under way in a NIC that is not ideal.

use crate::arch::Architecture;
use crate::arch::machine::{Machine, Step};
use crate::delay::{Delays, Range};
use roci_control::Outcome;
use roci_transport::{Grant, Offer, Resolution, Token};
use roci_units::{Instant, Random, Span};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// What comes due.
pub(crate) enum Due {
    /// A deferral's answer.
    Resolve(Token, Resolution),
    /// An offer's grant.
    Commit(Offer, Grant),
    /// An offer's refusal: LoopBack.
    Decline(Offer),
    /// A step of a NIC that is made of parts.
    Step(Step),
}

/// The delays of a NIC, or its parts, and the work that waits for them.
pub(crate) struct Slow {
    pub(crate) delays: Delays,
    random: Random,
    pub(crate) agenda: Agenda,
    pub(crate) machine: Option<Machine>,
}

/// Work by the instant at which it comes due.
///
/// A law's outcome is ten times as large as the rest: it lies beside the heap, which moves what it holds.
#[derive(Default)]
pub(crate) struct Agenda {
    serial: u64,
    pending: BinaryHeap<Pending>,
    outcomes: Vec<Outcome>,
    vacant: Vec<u32>,
}

struct Pending {
    at: Instant,
    serial: u64,
    work: Work,
}

/// What comes due, with a law's outcome by its place.
enum Work {
    Answer(Token, u32),
    Resolve(Token, Option<u64>, bool),
    Granted(Offer, u32),
    Commit(Offer),
    Decline(Offer),
    Step(Step),
}

impl Slow {
    pub(crate) fn new(delays: Delays, random: Random) -> Self {
        Self { delays, random, agenda: Agenda::default(), machine: None }
    }

    /// A NIC made of parts.
    pub(crate) fn of_parts(architecture: Arc<Architecture>, random: Random) -> Self {
        let machine = Some(Machine::new(architecture, random));
        Self { machine, ..Self::new(Delays::IDEAL, Random::new(0, 0)) }
    }

    /// Lets `due` come due after a span of `range`.
    pub(crate) fn after(&mut self, now: Instant, range: Option<Range>, due: Due) {
        let delay = range.map_or(Span::ZERO, |range| range.draw(&mut self.random));
        self.agenda.at(now + delay, due);
    }

    /// When the next work comes due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.agenda.next()
    }

    /// The next work that is due by `now`.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Due> {
        self.agenda.take(now)
    }

    /// Whether this grant is refused once more.
    pub(crate) fn loops_back(&mut self) -> bool {
        self.random.chance(self.delays.loop_back)
    }
}

impl Agenda {
    /// Lets `due` come due at `at`.
    pub(crate) fn at(&mut self, at: Instant, due: Due) {
        let work = match due {
            Due::Resolve(token, Resolution::Law(outcome)) => Work::Answer(token, self.keep(outcome)),
            Due::Resolve(token, Resolution::Memory { original }) => {
                Work::Resolve(token, Some(original), false)
            }
            Due::Resolve(token, resolution) => {
                Work::Resolve(token, None, matches!(resolution, Resolution::Recovered))
            }
            Due::Commit(offer, Grant::Law(outcome)) => Work::Granted(offer, self.keep(outcome)),
            Due::Commit(offer, Grant::Engine) => Work::Commit(offer),
            Due::Decline(offer) => Work::Decline(offer),
            Due::Step(step) => Work::Step(step),
        };
        self.serial += 1;
        self.pending.push(Pending { at, serial: self.serial, work });
    }

    #[expect(clippy::cast_possible_truncation, reason = "at most one for each queue pair")]
    fn keep(&mut self, outcome: Outcome) -> u32 {
        match self.vacant.pop() {
            Some(place) => {
                self.outcomes[place as usize] = outcome;
                place
            }
            None => {
                self.outcomes.push(outcome);
                self.outcomes.len() as u32 - 1
            }
        }
    }

    fn give(&mut self, place: u32) -> Outcome {
        self.vacant.push(place);
        self.outcomes[place as usize]
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
        let work = self.pending.pop()?.work;
        Some(match work {
            Work::Answer(token, place) => Due::Resolve(token, Resolution::Law(self.give(place))),
            Work::Resolve(token, Some(original), _) => Due::Resolve(token, Resolution::Memory { original }),
            Work::Resolve(token, None, true) => Due::Resolve(token, Resolution::Recovered),
            Work::Resolve(token, None, false) => Due::Resolve(token, Resolution::Placed),
            Work::Granted(offer, place) => Due::Commit(offer, Grant::Law(self.give(place))),
            Work::Commit(offer) => Due::Commit(offer, Grant::Engine),
            Work::Decline(offer) => Due::Decline(offer),
            Work::Step(step) => Due::Step(step),
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(slow: &mut Slow, now: Instant) -> Option<u64> {
        slow.take(now).map(|due| match due {
            Due::Resolve(Token(number), _) => number,
            Due::Commit(..) | Due::Decline(..) | Due::Step(_) => panic!("nothing of that was begun"),
        })
    }

    #[test]
    fn work_comes_due_in_the_order_of_time_and_then_of_asking() {
        let mut slow = Slow::new(Delays::IDEAL, Random::new(1, 1));
        for (number, micros) in [(1, 3), (2, 1), (3, 1), (4, 2)] {
            let range = Some(Range::exactly(Span::from_micros(micros)));
            slow.after(Instant::ZERO, range, Due::Resolve(Token(number), Resolution::Placed));
        }
        slow.after(Instant::ZERO, None, Due::Resolve(Token(5), Resolution::Placed));
        assert_eq!(slow.next(), Some(Instant::ZERO), "work without a range takes no time");
        let (early, late) = (Instant::ZERO + Span::from_micros(2), Instant::ZERO + Span::from_micros(9));
        let order = [early; 5].map(|now| at(&mut slow, now));
        assert_eq!(order, [Some(5), Some(2), Some(3), Some(4), None]);
        assert_eq!(at(&mut slow, late), Some(1));
        assert_eq!(slow.next(), None);
    }

    #[test]
    fn offers_go_round_as_often_as_was_asked() {
        let mut half = Slow::new(Delays::deferred_law(), Random::new(1, 1));
        let rounds = (0..1_000).filter(|_| half.loops_back()).count();
        assert!((450..550).contains(&rounds), "{rounds}");
        let mut never = Slow::new(Delays::delaying(), Random::new(1, 1));
        assert!((0..1_000).all(|_| !never.loops_back()));
    }
}
