//! What a queue pair needs only in trouble, when work is deferred, or where its peer tells of receive requests; in a data centre that is
//! simulated most never have one.

use crate::delivery::sender::Observed;
use crate::keeping::Keeping;
use crate::limit::Words;
use crate::reading::Reading;
use crate::recovery::Losing;
use crate::requester::PutOffs;
use crate::responding::Responding;
use crate::segment::OwnedEvent;
use crate::unreliable::taken::Taken;
use crate::work::Completion;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use roci_control::Class;
use roci_units::Instant;
use roci_wire::Header;

/// One queue pair's share.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    pub(crate) retransmitted: u32,
    pub(crate) repeated: u32,
    pub(crate) timeouts: u32,
    /// Those that were put off.
    pub(crate) put_offs: PutOffs,
    /// Of an unreliable connection, which has none, the messages that were dropped.
    pub(crate) naks: u32,
    /// Of an unreliable connection on which something did not come in order, what has been taken of what came last.
    pub(crate) taken: Option<Box<Taken>>,
    pub(crate) rnr: u32,
    /// The number of the last message that the responder has said it has a receive request for, if it says so, modulo 2²⁴.
    pub(crate) limit: Option<u32>,
    /// How it says so.
    pub(crate) words: Words,
    /// Decisions asked for elsewhere, modulo 2²⁰.
    pub(crate) decisions: u32,
    /// The number of the one about the sending side that was asked for last.
    pub(crate) loss_out: u32,
    /// The number of the one about the receiving side that was asked for last.
    pub(crate) gap_out: u32,
    /// The number of the law's event that is out, modulo 2²⁰.
    pub(crate) serial: u32,
    /// The class of that event.
    pub(crate) about: Class,
    /// The tokens that a law which is out has seen.
    pub(crate) tokens: u32,
    /// Whether the law that is out has been replaced meanwhile.
    pub(crate) outdated: bool,
    /// As receiver, the packets pulled; as sender, those that answers told of (NDP).
    pub(crate) pulls: u32,
    pub(crate) pulls_seen: u32,
    /// Whether the last packet sent said that nothing follows (NDP).
    pub(crate) drained: bool,
    /// As receiver, the furthest packet of a request that came, and of READ data.
    pub(crate) newest: Option<u32>,
    pub(crate) newest_response: Option<u32>,
    /// Whether the packet that is being dealt with says that nothing follows, and nothing that followed it has come before.
    pub(crate) lapses: bool,
    /// When the peer sent what arrived last, by its own clock, where layouts tell.
    pub(crate) peer_sent: u32,
    /// Where the requester stood when it last asked for a READ's data again, until a timer says to.
    pub(crate) asked_at: Option<u32>,
    /// The packet that the last NAK or RNR NAK named and a retry was spent on, until a timer says to send it again: who
    /// names it before that does so a second time.
    pub(crate) named: Option<u32>,
    /// The sequence before which all is acknowledged, once the result of the atomic that is next has come.
    pub(crate) held: Option<u32>,
    /// Where messages are named, the sequence after the last that had been sent at the last timeout.
    pub(crate) doubted: Option<u32>,
    /// The message, by its first sequence, of which the receiver asked last for what was sent, and the priority by which it did.
    pub(crate) asked_priority: Option<(u32, u8)>,
    /// Octets that the law heard were acknowledged, of packets beyond one that is missing.
    pub(crate) told: u32,
    /// The sending side of a loss.
    pub(crate) losing: Option<Losing>,
    /// Its events that wait for a decision, oldest first; the memory stays when it is over.
    pub(crate) undecided: VecDeque<Observed>,
    /// The receiving side of a loss; one that is over keeps its memory for the next.
    pub(crate) keeping: Option<Keeping>,
    /// READs whose responses are acknowledged, as requester.
    pub(crate) reading: Option<Box<Reading>>,
    /// The same as responder.
    pub(crate) responding: Option<Box<Responding>>,
    /// Events that the law never heard of, because too many waited for it.
    pub(crate) unheard: u32,
    /// Events that wait for the law, which is out with an earlier one.
    pub(crate) events: VecDeque<OwnedEvent>,
    /// Deferred placements of the responder, and what waits for them.
    pub(crate) inbound: Lane,
    /// Deferred placements of READ data and results, and the completions that wait for them.
    pub(crate) outbound: Lane,
}

impl Aside {
    /// A number for a decision to be made elsewhere.
    pub(crate) const fn next_decision(&mut self) -> u32 {
        self.decisions = (self.decisions + 1) & 0xf_ffff;
        self.decisions
    }
}

/// Things that become true in order: a placement holds back all that comes behind it.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    steps: VecDeque<Step>,
    /// The number of the first step.
    first: u32,
}

/// What stands in a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Payload on its way to its place; true once it is there.
    Placement(bool),
    /// To be told.
    Completion(Completion),
    /// An acknowledgement to be sent.
    Reply(Header),
    /// A READ or atomic, by its number, that may now touch memory.
    Access(u16),
}

/// Numbers of steps are counted modulo this.
pub(crate) const STEPS: u32 = 1 << 20;

impl Lane {
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Appends `step` and gives its number.
    #[expect(clippy::cast_possible_truncation, reason = "fewer steps than packets outstanding, below 2²³")]
    pub(crate) fn push(&mut self, step: Step) -> u32 {
        self.steps.push_back(step);
        (self.first + self.steps.len() as u32 - 1) % STEPS
    }

    /// Marks placement `number` as done; false where it is none that is outstanding.
    pub(crate) fn placed(&mut self, number: u32) -> bool {
        let index = (number + STEPS - self.first) % STEPS;
        match self.steps.get_mut(index as usize) {
            Some(Step::Placement(done)) if !*done => {
                *done = true;
                true
            }
            _ => false,
        }
    }

    /// The next step that nothing holds back, but for placements, which need nothing more.
    pub(crate) fn next(&mut self) -> Option<Step> {
        loop {
            if matches!(self.steps.front()?, Step::Placement(false)) {
                return None;
            }
            self.first = (self.first + 1) % STEPS;
            match self.steps.pop_front()? {
                Step::Placement(_) => {}
                step => return Some(step),
            }
        }
    }

    /// Takes everything out; what was on its way no longer counts.
    pub(crate) fn clear(&mut self) {
        self.steps.clear();
    }
}

/// The pool of them. A place that is given back keeps its memory for the next.
#[derive(Debug, Default)]
pub(crate) struct Asides {
    places: Vec<Aside>,
    free: Vec<u32>,
}

impl Asides {
    /// Gives a fresh one.
    #[expect(clippy::cast_possible_truncation, reason = "at most one per queue pair")]
    pub(crate) fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.places.push(Aside::default());
            (self.places.len() - 1) as u32
        })
    }

    pub(crate) fn give_back(&mut self, index: u32) {
        let place = &mut self.places[index as usize];
        debug_assert!(place.events.is_empty(), "they were forgotten before");
        place.inbound.clear();
        place.outbound.clear();
        debug_assert!(place.losing.is_none(), "bitmaps went back before");
        debug_assert!(place.keeping.as_ref().is_none_or(Keeping::is_empty), "bitmaps went back before");
        debug_assert!(place.reading.is_none() && place.responding.is_none(), "bitmaps went back before");
        (place.retransmitted, place.repeated, place.timeouts) = (0, 0, 0);
        (place.naks, place.rnr) = (0, 0);
        place.taken = None;
        (place.asked_at, place.named) = (None, None);
        (place.held, place.doubted, place.asked_priority, place.told) = (None, None, None, 0);
        (place.peer_sent, place.limit, place.words) = (0, None, Words::default());
        (place.pulls, place.pulls_seen, place.drained, place.lapses) = (0, 0, false, false);
        (place.newest, place.newest_response) = (None, None);
        (place.unheard, place.outdated) = (0, false);
        self.free.push(index);
    }

    /// When the oldest READ response of a queue pair is given up for lost; NEVER: none is in flight, or has a deadline.
    #[inline]
    pub(crate) fn response_deadline(&self, index: u32) -> Instant {
        let responding = self.get(index).and_then(|aside| aside.responding.as_deref());
        responding.map_or(Instant::NEVER, Responding::deadline)
    }

    /// Whether no event waits for any law.
    pub(crate) fn is_quiet(&self) -> bool {
        self.places.iter().all(|place| place.events.is_empty())
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Aside> {
        self.places.get(index as usize)
    }

    #[inline]
    pub(crate) fn find_mut(&mut self, index: u32) -> Option<&mut Aside> {
        self.places.get_mut(index as usize)
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Aside {
        &mut self.places[index as usize]
    }
}
