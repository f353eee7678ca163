//! READ data on their way in: when what is missing of them is asked for.
//!
//! What others have overtaken is asked for as with messages. Beside that, where nothing is heard, the first packet that is missing is asked
//! for again, sooner where data have begun to come: requests are short of others behind them that would show their loss. No more
//! than one at first, for all may stand in a queue, and copies of it would stand there as well. When that one comes, of what was asked
//! for before it nothing is under way any more.

use super::{Grants, LENGTH, Look, Whole, is_again};
use crate::qp::after;
use core::cmp::Reverse;
use roci_control::homa::Params;
use roci_control::{Class, Emit, Event, Part};
use roci_units::{Instant, Qpn, Span};

/// READ data of a queue pair that were asked for, counted in packets modulo 2³². Time is that in which the port's link was idle.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// The first that is missing, the one after the last that came, and the one after the last that was asked for.
    expected: u32,
    reach: u32,
    end: u32,
    gap: Option<Look>,
    /// The priority of the data that showed the gap: what has a lower one may be later than they for that.
    overtaker: u8,
    /// When they were last heard of or asked for, and how often they were asked for since data came.
    heard: Span,
    asked: u32,
    /// Whether any have come, and how often it was said since that they wait, or, where none have come, how often they were asked for.
    begun: bool,
    patience: u32,
    /// What had been asked for when the first packet was asked for again that was missing then: that is lost which has not come when
    /// that packet has. From then on, when it is asked for.
    probed: Option<u32>,
    lost: Option<(u32, Span)>,
    /// From a READ's request to its first packet: of late the shortest, for others may have waited for what was lost; and of one that is
    /// under way that packet, and when it was asked for.
    trip: Span,
    timed: Option<(u32, Span)>,
    /// When they are due; not at all once they were given up. By when they are looked at, which may be sooner.
    pub(super) due: Option<Span>,
    pub(super) queued: Option<Span>,
    /// When requests are that others, which come to the same queue pair, have overtaken.
    pub(super) requests: Option<Span>,
}

/// How often a silence doubles until it is the interval; beyond that, where they may wait for others, as often again at most.
const DOUBLINGS: u32 = 3;
/// By how many doublings more a silence begins at most.
const STEPS: u32 = 4;

impl Awaited {
    /// When they are asked for because nothing is heard of them: after an eighth of the interval, and after twice as long each time that
    /// they were asked for in vain, but after two round trips at least as far as those are known.
    fn silent(&self, params: &Params, two_trips: Span) -> Span {
        let span = params.resend.as_ps() >> DOUBLINGS.saturating_sub(self.asked);
        let span = Span::from_ps(span << self.patience.min(DOUBLINGS));
        let trips = two_trips.max(self.trip * 2).min(params.resend);
        self.heard + span.max(trips).max(Span::from_ps(1))
    }

    /// Takes the time of a READ whose first packet has come, `packet`.
    fn time(&mut self, packet: u32, again: bool, idle: Span) {
        if let Some((_, asked)) = self.timed.take_if(|timed| timed.0 == packet)
            && !again
        {
            let took = idle.saturating_sub(asked);
            self.trip = if self.trip.is_zero() { took } else { took.min(self.trip + self.trip / 8) };
        }
    }
}

impl Grants {
    /// READ data were asked for. Who hears nothing asks after the whole interval: others may go first, or the request may be lost.
    pub(super) fn asked_for(&mut self, event: &Event<'_>) {
        let Part { offset: expected, end: reach, message_length: end, .. } = event.part;
        let (qpn, idle) = (event.qpn, self.idle(event.now));
        let awaited = self.reads.entry(qpn).or_default();
        let first = core::mem::replace(&mut awaited.end, end);
        awaited.timed.get_or_insert((first, idle));
        if awaited.due.is_none() {
            (awaited.expected, awaited.reach) = (expected, reach);
            (awaited.heard, awaited.asked, awaited.patience, awaited.begun) = (idle, DOUBLINGS, 0, false);
            self.look_at_reads(qpn);
        }
    }

    /// READ data came, or word that they wait.
    pub(super) fn awaits(&mut self, event: &Event<'_>) {
        let Part { message: packet, offset: expected, end: reach, message_length: end, .. } = event.part;
        let (qpn, idle, again) = (event.qpn, self.idle(event.now), is_again(event));
        let priority = self.params.read_priority(event.words.get(LENGTH).copied().unwrap_or(0));
        let most = self.most_asked();
        let came = event.length > 0;
        let awaited = self.reads.entry(qpn).or_default();
        let moved = after(expected, awaited.expected) > 0;
        (awaited.expected, awaited.reach, awaited.end, awaited.heard) = (expected, reach, end, idle);
        if came {
            awaited.time(packet, again, idle);
        }
        let overtaken = awaited.gap.filter(|look| came && after(look.until, packet) > 0);
        if let Some(look) = overtaken.filter(|_| !again && priority >= awaited.overtaker) {
            self.came_late(event.now, &look);
        }
        if expected == end {
            return self.await_no_longer(qpn);
        }
        let (late, lateness) = (self.late(), self.lateness.1);
        let awaited = self.reads.entry(qpn).or_default();
        let mut changed = awaited.due.is_none();
        if came {
            if moved && let Some(until) = awaited.probed.take() {
                if again {
                    (awaited.lost, changed) = (Some((until, idle)), true);
                }
                // Where much is lost, every other silence is an acknowledgement's that was lost, upon which data come as sent first.
                self.steps = if again { (self.steps + 2).min(STEPS) } else { self.steps.saturating_sub(1) };
            }
            changed |= awaited.asked > 0 || awaited.patience > 0;
            (awaited.asked, awaited.patience, awaited.begun) = (0, 0, true);
        } else {
            // Who says so is there, however often he was asked.
            awaited.asked = awaited.asked.min(most);
            awaited.patience += 1;
        }
        awaited.lost.take_if(|lost| after(lost.0, expected) <= 0);
        if let Some(lost) = &mut awaited.lost {
            lost.1 = idle + late;
        }
        let mut overtaken = None;
        let is_known = |look: Look| after(reach, look.granted) <= 0 || event.now < look.seen.1 + lateness;
        if expected == reach {
            awaited.gap = None;
        } else if !awaited.gap.is_some_and(is_known) {
            let look = Look { until: reach, granted: end, seen: (idle, event.now), due: idle + late };
            (overtaken, changed) = (awaited.gap.replace(look), true);
            awaited.overtaker = priority;
        }
        if let Some(look) = overtaken {
            self.ask_for_data(qpn, 0, look.until);
        }
        if changed {
            self.look_at_reads(qpn);
        }
    }

    /// Asks for what is due of READ data: what others have overtaken, what is lost since a packet that was asked for later has come, or,
    /// where nothing has been heard for long, the first that is missing. Who answers with nothing is asked less and less often,
    /// for he may have others to serve.
    pub(super) fn check_reads(&mut self, now: Instant, qpn: u32) {
        let (idle, two_trips, params, late) = (self.idle(now), self.two_trips(), self.params, self.late());
        let steps = self.steps;
        let Some(awaited) = self.reads.get_mut(&qpn) else { return };
        awaited.queued = None;
        let mut wanted = None;
        if let Some(look) = awaited.gap.take_if(|look| look.due <= idle) {
            wanted = Some((0, look.until));
            let more = after(awaited.reach, look.until) > 0;
            let again =
                Look { until: awaited.reach, granted: awaited.end, seen: (idle, now), due: idle + late };
            awaited.gap = more.then_some(again);
        } else if let Some((until, _)) = awaited.lost.take_if(|lost| lost.1 <= idle) {
            wanted = Some((until, until));
        } else if awaited.silent(&params, two_trips) <= idle {
            // Who has sent some and then is silent is asked for more each time, for what answers may be lost as well; who has sent
            // nothing may have others to serve.
            let packets = if awaited.begun { 1 << (steps + awaited.asked.min(DOUBLINGS)) } else { 1 };
            let end = awaited.expected.wrapping_add(packets);
            wanted = Some((end, end));
            awaited.probed = Some(awaited.end);
            awaited.asked += 1;
            awaited.patience += u32::from(!awaited.begun);
        }
        if let Some((offset, end)) = wanted {
            (awaited.heard, awaited.timed) = (idle, None);
            self.ask_for_data(qpn, offset, end);
        }
        self.look_at_reads(qpn);
    }

    /// How often they are asked for in vain.
    fn most_asked(&self) -> u32 {
        DOUBLINGS + u32::from(self.params.resends)
    }

    /// Puts READ data in their place among what is looked at.
    fn look_at_reads(&mut self, qpn: u32) {
        let (two_trips, params, most) = (self.two_trips(), self.params, self.most_asked());
        let Some(awaited) = self.reads.get_mut(&qpn) else { return };
        let silent = (awaited.asked <= most).then(|| awaited.silent(&params, two_trips));
        let dues = [silent, awaited.gap.map(|look| look.due), awaited.lost.map(|lost| lost.1)];
        awaited.due = dues.into_iter().flatten().min();
        self.queue_reads(qpn);
        self.tidy();
    }

    /// What becomes due later than it was stays where it is, and moves on when its turn comes: READs come and go more often.
    pub(super) fn queue_reads(&mut self, qpn: u32) {
        let Some(awaited) = self.reads.get_mut(&qpn) else { return };
        if let Some(due) = awaited.due
            && awaited.queued.is_none_or(|queued| due < queued)
        {
            awaited.queued = Some(due);
            self.looks.push(Reverse((due, Whole::Reads(qpn))));
        }
    }

    /// A request without payload has overtaken others, which are asked for if they do not come.
    pub(super) fn overtook(&mut self, now: Instant, qpn: u32) {
        let due = self.idle(now) + self.two_trips();
        let requests = &mut self.reads.entry(qpn).or_default().requests;
        if requests.is_none() {
            *requests = Some(due);
            self.looks.push(Reverse((due, Whole::Requests(qpn))));
        }
    }

    pub(super) fn check_requests(&mut self, qpn: u32) {
        if self.reads.get_mut(&qpn).is_some_and(|awaited| awaited.requests.take().is_some()) {
            self.out.push_back((Qpn::new(qpn), Emit::plain(Class::READ_REQUEST)));
        }
        self.tidy();
    }

    /// All of a queue pair's READ data have come. Its place stays for the next.
    pub(super) fn await_no_longer(&mut self, qpn: u32) {
        let Some(awaited) = self.reads.get_mut(&qpn) else { return };
        (awaited.gap, awaited.probed, awaited.lost) = (None, None, None);
        (awaited.asked, awaited.patience) = (0, 0);
        if awaited.due.take().is_some() {
            self.tidy();
        }
    }

    /// Asks for what is missing of READ data before packet `end`: before `offset` all of it, beyond that what has been overtaken by others
    /// of no higher priority.
    fn ask_for_data(&mut self, qpn: u32, offset: u32, end: u32) {
        let part = Part { offset, end, ..Part::default() };
        self.out.push_back((Qpn::new(qpn), Emit { part, ..Emit::plain(Class::READ_RESPONSE) }));
    }
}
