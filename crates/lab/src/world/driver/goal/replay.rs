//! A schedule once more, over networks that hold up less than the one it ran on: what of its time is whose doing.

use super::ranks::{Effect, Ranks};
use crate::run::Go;
use roci_fabric::packet::HostId;
use roci_units::{Instant, Span};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A message that is alone on its way.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::world) struct Trip {
    /// The NICs at both ends.
    pub(in crate::world) ends: [HostId; 2],
    /// How long it keeps the sender's link busy.
    pub(in crate::world) busy: Span,
    /// Until all of it has come.
    pub(in crate::world) time: Span,
    /// How long it keeps the receiver's link busy, at the end of that time.
    pub(in crate::world) taken: Span,
    /// Until it has been acknowledged.
    pub(in crate::world) acknowledged: Span,
}

/// What messages have to share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) enum Shared {
    /// Nothing: each goes as if it were alone.
    Nothing,
    /// The links of the NICs at both ends, one message after the other.
    Links,
}

/// What happens to ranks and messages, with those that it happens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Begin(u32),
    CpuDone(u32, u32),
    /// The last link of a message's way could begin with it.
    Reaches(Message),
    Came(Message),
    /// The queue pair, and the number of the message.
    Acknowledged(u32, u32),
}

/// A message under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    line: u32,
    id: u32,
    /// The NIC that it goes to, and how long it keeps its link busy.
    to: u16,
    taken: Span,
    /// From when it has come until it has been acknowledged.
    back: Span,
}

/// So many events lie between two times that it is told how much is done: some thousandths of a second.
const TOLD_AFTER: u32 = 1 << 14;

/// Lets ranks that have done nothing yet do all that they can, those of `begins` from then on. `trip` knows the way of so many octets by a
/// queue pair of the schedule; `tell` hears now and then how many operations are done, and may end it before all are.
pub(super) fn play(
    ranks: &mut Ranks,
    begins: impl IntoIterator<Item = (u32, Instant)>,
    shared: Shared,
    trip: &mut dyn FnMut(u32, u64) -> Trip,
    tell: &mut dyn FnMut(u64) -> Go,
) -> Go {
    let mut play = Play {
        events: BinaryHeap::new(),
        order: 0,
        free: [Vec::new(), Vec::new()],
        last: vec![Instant::ZERO; ranks.spec.lines().len()],
    };
    for (rank, begin) in begins {
        play.add(begin, Event::Begin(rank));
    }
    let mut effects = Vec::new();
    let (all, mut untold) = (ranks.undone, 0);
    while let Some(Reverse((now, _, event))) = play.events.pop() {
        untold += 1;
        if untold == TOLD_AFTER {
            untold = 0;
            if tell(all - ranks.undone) == Go::Stop {
                return Go::Stop;
            }
        }
        match event {
            Event::Begin(rank) => ranks.begin(now, rank),
            Event::CpuDone(rank, cpu) => ranks.cpu_done(now, rank, cpu),
            Event::Reaches(message) => {
                let start = play.take_link(1, message.to, now, message.taken);
                play.add(start + message.taken, Event::Came(message));
            }
            Event::Came(Message { line, id, back, .. }) => {
                ranks.came(now, line, id);
                play.add(now + back, Event::Acknowledged(line, id));
            }
            Event::Acknowledged(line, id) => ranks.acknowledged(now, line, id),
        }
        ranks.take_effects(&mut effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Busy { until, rank, cpu } => play.add(until, Event::CpuDone(rank, cpu)),
                Effect::Post { line, id } => {
                    let trip = trip(line, ranks.octets(line, id));
                    let back = trip.acknowledged.saturating_sub(trip.time);
                    let message = Message { line, id, to: trip.ends[1].0, taken: trip.taken, back };
                    let (at, event) = if shared == Shared::Nothing {
                        (now + trip.time, Event::Came(message))
                    } else {
                        let start = play.take_link(0, trip.ends[0].0, now, trip.busy);
                        (start + trip.time.saturating_sub(trip.taken), Event::Reaches(message))
                    };
                    // A short one does not overtake those before it on its queue pair.
                    let last = &mut play.last[line as usize];
                    *last = at.max(*last);
                    let at = *last;
                    play.add(at, event);
                }
            }
        }
    }
    Go::On
}

/// What is to happen, in the order of time, and of those of one time in the order in which it was known.
struct Play {
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    order: u64,
    /// From when on the links of NICs are free: out of them, and into them.
    free: [Vec<Instant>; 2],
    /// When the last message of each queue pair comes, or its last link could begin with it.
    last: Vec<Instant>,
}

impl Play {
    fn add(&mut self, at: Instant, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    /// When the link of a NIC, in one of both directions, begins with what it is asked for at `now` and what keeps it `busy`.
    fn take_link(&mut self, direction: usize, nic: u16, now: Instant, busy: Span) -> Instant {
        let (free, nic) = (&mut self.free[direction], usize::from(nic));
        if free.len() <= nic {
            free.resize(nic + 1, Instant::ZERO);
        }
        let start = now.max(free[nic]);
        free[nic] = start + busy;
        start
    }
}
