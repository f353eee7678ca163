//! READ data on their way in: when what is missing of them is asked for.
//!
//! What others have overtaken is asked for as with messages. Beside that, where nothing is heard, the first packet that is missing is asked
//! for again, sooner where data have begun to come: requests are short of others behind them that would show their loss. No more
//! than one, for all may stand in a queue, and copies of it would stand there as well. When that one comes, of what was asked for
//! before it nothing is under way any more.

use super::{Grants, Look, Whole};
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
    /// When they were last heard of or asked for, and how often they were asked for since data came.
    heard: Span,
    asked: u32,
    /// What had been asked for when the first packet was asked for again that was missing then: that is lost which has not come when
    /// that packet has. From then on, when it is asked for.
    probed: Option<u32>,
    lost: Option<(u32, Span)>,
    /// From a READ's request to its first data: of late the longest, where nothing was missing meanwhile; and of one that is under way
    /// its first packet, and when it was asked for.
    trip: Span,
    timed: Option<(u32, Span)>,
    /// When they are due; not at all once they were given up. By when they are looked at, which may be sooner.
    pub(super) due: Option<Span>,
    pub(super) queued: Option<Span>,
    /// When requests are that others, which come to the same queue pair, have overtaken.
    pub(super) requests: Option<Span>,
}

/// How often a silence doubles until it is the interval, and from there on at most.
const DOUBLINGS: u32 = 3;

/// A packet that others have overtaken may be later than they by so many times what two round trips take, if READs have taken so long.
const LATER: u64 = 4;

impl Awaited {
    /// After how long packets that others have overtaken are lost.
    fn late(&self, params: &Params, two_trips: Span) -> Span {
        self.trip.min(two_trips * LATER).max(two_trips).min(params.resend)
    }

    /// When they are asked for because nothing is heard of them: after an eighth of the interval, and after twice as long each time that
    /// they were asked for in vain, but after two round trips at least as far as those are known.
    fn silent(&self, params: &Params, two_trips: Span) -> Span {
        let resend = params.resend.as_ps();
        let span = match self.asked.checked_sub(DOUBLINGS) {
            None => resend >> (DOUBLINGS - self.asked),
            Some(more) => resend << more.min(DOUBLINGS),
        };
        let trips = two_trips.max(self.trip * 2).min(params.resend);
        self.heard + Span::from_ps(span).max(trips).max(Span::from_ps(1))
    }

    /// Takes the time of a READ whose first data have come, unless any are missing, for then it may have waited for those.
    fn time(&mut self, idle: Span) {
        if self.expected != self.reach {
            self.timed = None;
        } else if let Some((first, asked)) = self.timed
            && after(self.expected, first) > 0
        {
            self.timed = None;
            self.trip = Span::from_ps(self.trip.as_ps() / 8 * 7).max(idle.saturating_sub(asked));
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
        if awaited.gap.is_none() && awaited.asked == 0 {
            awaited.timed.get_or_insert((first, idle));
        }
        if awaited.due.is_none() {
            (awaited.expected, awaited.reach) = (expected, reach);
            (awaited.heard, awaited.asked) = (idle, DOUBLINGS);
            self.look_at_reads(qpn);
        }
    }

    /// READ data came, or word that they wait.
    pub(super) fn awaits(&mut self, event: &Event<'_>) {
        let Part { offset: expected, end: reach, message_length: end, .. } = event.part;
        let (qpn, idle) = (event.qpn, self.idle(event.now));
        let (two_trips, params) = (self.two_trips(), self.params);
        let most = self.most_asked();
        let awaited = self.reads.entry(qpn).or_default();
        let moved = after(expected, awaited.expected) > 0;
        (awaited.expected, awaited.reach, awaited.end, awaited.heard) = (expected, reach, end, idle);
        awaited.time(idle);
        if expected == end {
            return self.await_no_longer(qpn);
        }
        let late = awaited.late(&params, two_trips);
        let mut changed = awaited.due.is_none();
        if event.length > 0 {
            let again = event.words.first().is_some_and(|word| word & 1 == 1);
            if let Some(until) = awaited.probed.take().filter(|_| again && moved) {
                (awaited.lost, changed) = (Some((until, idle + late)), true);
            }
            changed |= awaited.asked > 0;
            awaited.asked = 0;
        } else {
            // Who says so is there, however often he was asked.
            awaited.asked = awaited.asked.min(most);
        }
        awaited.lost.take_if(|lost| after(lost.0, expected) <= 0);
        let mut overtaken = None;
        if expected == reach {
            awaited.gap = None;
        } else if awaited.gap.is_none_or(|look| after(reach, look.granted) > 0) {
            let look = Look { until: reach, granted: end, due: idle + late };
            (overtaken, changed) = (awaited.gap.replace(look), true);
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
        let (idle, two_trips, params) = (self.idle(now), self.two_trips(), self.params);
        let Some(awaited) = self.reads.get_mut(&qpn) else { return };
        awaited.queued = None;
        let late = awaited.late(&params, two_trips);
        let mut wanted = None;
        if let Some(look) = awaited.gap.take_if(|look| look.due <= idle) {
            wanted = Some((0, look.until));
            let more = after(awaited.reach, look.until) > 0;
            let again = Look { until: awaited.reach, granted: awaited.end, due: idle + late };
            awaited.gap = more.then_some(again);
        } else if let Some((until, _)) = awaited.lost.take_if(|lost| lost.1 <= idle) {
            wanted = Some((until, until));
        } else if awaited.silent(&params, two_trips) <= idle {
            let first = awaited.expected.wrapping_add(1);
            wanted = Some((first, first));
            (awaited.asked, awaited.probed) = (awaited.asked + 1, Some(awaited.end));
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
        (awaited.gap, awaited.probed, awaited.lost, awaited.asked) = (None, None, None, 0);
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
