//! Work under way in a NIC that is not ideal.

use crate::arch::Architecture;
use crate::arch::machine::{Machine, Step};
use crate::delay::{Delays, Range};
use crate::host::Sharing;
use roci_control::Outcome;
use roci_transport::{Grant, Offer, Resolution, Token};
use roci_units::{Instant, Random, Span};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
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
    /// Turns of priorities that share the port; `None`: all are strict.
    pub(crate) sharing: Option<Box<Sharing>>,
}

/// Work by the instant at which it comes due.
///
/// Work of one kind mostly comes due in the order in which it is begun, as in any pipeline: each such kind has a line, and
/// what would have to overtake in it waits in a heap. A law's outcome is ten times as large as the rest, and lies beside
/// what is moved.
pub(crate) struct Agenda {
    serial: u64,
    /// Instant and serial number of the first in each line, and in the heap; [`NOTHING`] where there is none.
    firsts: [(u64, u64); LINES + 1],
    lines: [VecDeque<Pending>; LINES],
    rest: BinaryHeap<Pending>,
    outcomes: Vec<Outcome>,
    vacant: Vec<u32>,
}

/// Packets made, packets on their way to the engine, payload on its way to memory, answers about what is to be sent, and
/// about what was received.
const LINES: usize = 5;
/// Later than all.
const NOTHING: (u64, u64) = (u64::MAX, u64::MAX);

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
        Self { delays, random, agenda: Agenda::default(), machine: None, sharing: None }
    }

    /// A NIC made of parts.
    pub(crate) fn of_parts(architecture: Arc<Architecture>, random: Random) -> Self {
        let machine = Some(Machine::new(architecture, random));
        Self { machine, ..Self::new(Delays::IDEAL, Random::new(0, 0)) }
    }

    /// Prefetches what any event touches.
    #[inline]
    pub(crate) fn prefetch(&self) {
        roci_prefetch::prefetch_lines::<_, 6>(&self.agenda);
        if let Some(machine) = &self.machine {
            machine.prefetch();
        }
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

impl Default for Agenda {
    fn default() -> Self {
        Self {
            serial: 0,
            firsts: [NOTHING; LINES + 1],
            lines: Default::default(),
            rest: BinaryHeap::new(),
            outcomes: Vec::new(),
            vacant: Vec::new(),
        }
    }
}

impl Work {
    /// The line in which work of this kind stands; [`LINES`]: none.
    const fn line(&self) -> usize {
        match self {
            Self::Step(Step::Made { .. }) => 0,
            Self::Step(Step::Judge { .. }) => 1,
            Self::Step(Step::Placed { .. }) => 2,
            Self::Granted(..) | Self::Commit(_) => 3,
            Self::Answer(..) => 4,
            _ => LINES,
        }
    }
}

impl Agenda {
    /// Lets `due` come due at `at`.
    pub(crate) fn at(&mut self, at: Instant, due: Due) {
        let work = match due {
            Due::Resolve(token, Resolution::Law(outcome)) => Work::Answer(token, self.keep(&outcome)),
            Due::Resolve(token, Resolution::Memory { original }) => {
                Work::Resolve(token, Some(original), false)
            }
            Due::Resolve(token, resolution) => {
                Work::Resolve(token, None, matches!(resolution, Resolution::Recovered))
            }
            Due::Commit(offer, Grant::Law(outcome)) => Work::Granted(offer, self.keep(&outcome)),
            Due::Commit(offer, Grant::Engine) => Work::Commit(offer),
            Due::Decline(offer) => Work::Decline(offer),
            Due::Step(step) => Work::Step(step),
        };
        self.add(at, work);
    }

    /// As [`Agenda::at`] of a grant by a law, without a copy of its outcome on the way.
    pub(crate) fn grant_at(&mut self, at: Instant, offer: Offer, outcome: &Outcome) {
        let work = Work::Granted(offer, self.keep(outcome));
        self.add(at, work);
    }

    /// The same of a law's answer.
    pub(crate) fn answer_at(&mut self, at: Instant, token: Token, outcome: &Outcome) {
        let work = Work::Answer(token, self.keep(outcome));
        self.add(at, work);
    }

    fn add(&mut self, at: Instant, work: Work) {
        self.serial += 1;
        let pending = Pending { at, serial: self.serial, work };
        let line = pending.work.line();
        match self.lines.get_mut(line) {
            Some(line) if line.back().is_none_or(|last| last.at <= at) => line.push_back(pending),
            _ => {
                let first = (at.as_ps(), self.serial);
                self.firsts[LINES] = self.firsts[LINES].min(first);
                return self.rest.push(pending);
            }
        }
        if self.firsts[line] == NOTHING {
            self.firsts[line] = (at.as_ps(), self.serial);
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "at most one for each queue pair")]
    fn keep(&mut self, outcome: &Outcome) -> u32 {
        match self.vacant.pop() {
            Some(place) => {
                self.outcomes[place as usize] = *outcome;
                place
            }
            None => {
                self.outcomes.push(*outcome);
                self.outcomes.len() as u32 - 1
            }
        }
    }

    fn give(&mut self, place: u32) -> Outcome {
        self.vacant.push(place);
        self.outcomes[place as usize]
    }

    /// When the next work comes due.
    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        let first = self.firsts.iter().map(|first| first.0).fold(u64::MAX, u64::min);
        (first != u64::MAX).then(|| Instant::from_ps(first))
    }

    /// The next work that is due by `now`.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Due> {
        let (mut line, mut first) = (LINES, self.firsts[LINES]);
        for (place, other) in self.firsts[..LINES].iter().enumerate() {
            if *other < first {
                (line, first) = (place, *other);
            }
        }
        if first == NOTHING || first.0 > now.as_ps() {
            return None;
        }
        let (taken, next) = match self.lines.get_mut(line) {
            Some(line) => (line.pop_front(), line.front()),
            None => (self.rest.pop(), self.rest.peek()),
        };
        self.firsts[line] = next.map_or(NOTHING, |next| (next.at.as_ps(), next.serial));
        let work = taken?.work;
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
    use proptest::prelude::*;
    use roci_control::Credit;
    use roci_fabric::packet::PacketId;
    use roci_units::Qpn;

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

    proptest! {
        #[test]
        fn lines_and_heap_keep_the_order_of_time_and_of_asking(asked in prop::collection::vec((0u64..20, 0u8..9), 1..60)) {
            let mut agenda = Agenda::default();
            let mut wanted = Vec::new();
            let packet = PacketId::NONE;
            // Told apart by what a law answered, which lies beside the lines.
            let answer = |cycles| Outcome { cycles, ..Outcome::unchanged(Credit::FREE, Instant::NEVER) };
            let offer = |length| Offer {
                qpn: Qpn::new(1),
                length,
                packets: 1,
                priority: 0,
                retransmission: false,
                response: false,
                wants_law: true,
            };
            let mut begun = 0;
            for (number, &(ps, kind)) in (0u32..).zip(&asked) {
                let at = Instant::from_ps(begun + ps);
                let due = match kind {
                    0 => Due::Step(Step::Made { packet }),
                    1 => Due::Step(Step::Judge { packet }),
                    2 => Due::Step(Step::Placed { token: Token(0), frame: number }),
                    3 => Due::Step(Step::Decide),
                    4 => Due::Resolve(Token(number.into()), Resolution::Placed),
                    5 => Due::Step(Step::Free { unit: number as usize }),
                    6 => Due::Resolve(Token(number.into()), Resolution::Law(answer(number))),
                    7 => Due::Commit(offer(number), Grant::Law(answer(number))),
                    _ => Due::Commit(offer(number), Grant::Engine),
                };
                agenda.at(at, due);
                wanted.push((at, number, kind));
                // Some of it comes due before more is asked for.
                if number.is_multiple_of(7) {
                    begun += 5;
                    while let Some(at) = agenda.next().filter(|at| at.as_ps() <= begun) {
                        prop_assert!(agenda.take(Instant::from_ps(begun)).is_some());
                        wanted.sort();
                        prop_assert_eq!(at, wanted.remove(0).0);
                    }
                }
            }
            wanted.sort();
            for (at, number, kind) in wanted {
                prop_assert_eq!(agenda.next(), Some(at));
                let due = agenda.take(at);
                let right = match (kind, due) {
                    (0, Some(Due::Step(Step::Made { .. }))) | (1, Some(Due::Step(Step::Judge { .. }))) => true,
                    (2, Some(Due::Step(Step::Placed { frame, .. }))) => frame == number,
                    (3, Some(Due::Step(Step::Decide))) => true,
                    (4, Some(Due::Resolve(token, _))) => token == Token(number.into()),
                    (5, Some(Due::Step(Step::Free { unit }))) => unit == number as usize,
                    (6, Some(Due::Resolve(token, Resolution::Law(outcome)))) => {
                        token == Token(number.into()) && outcome == answer(number)
                    }
                    (7, Some(Due::Commit(committed, Grant::Law(outcome)))) => {
                        committed == offer(number) && outcome == answer(number)
                    }
                    (8, Some(Due::Commit(committed, Grant::Engine))) => committed == offer(number),
                    _ => false,
                };
                prop_assert!(right);
            }
            prop_assert!(agenda.take(Instant::NEVER).is_none());
        }
    }
}
