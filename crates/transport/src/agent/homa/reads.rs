//! READ data on their way in: when what is missing of them is asked for.
//!
//! What others have overtaken is asked for as with messages. Beside that, where nothing is heard of them, all that has been asked for is
//! asked for again, sooner where data have begun to come: requests are short of others behind them that would show their loss.

use super::{Grants, Look, Whole};
use crate::qp::after;
use core::cmp::Reverse;
use roci_control::homa::Params;
use roci_control::{Class, Emit, Event, Part};
use roci_units::{Instant, Qpn, Span};

/// READ data of a queue pair that were asked for, counted in packets modulo 2³².
#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// The one after the last that came, and the one after the last that was asked for.
    reach: u32,
    end: u32,
    gap: Option<Look>,
    /// How long the link had been idle when they were last heard of or asked for, and how often they were asked for since data came.
    idle: Span,
    asked: u32,
    /// From a READ's request to its first data: of late the longest.
    trip: Span,
    /// When they are due among [`Grants::looks`]; not at all once they were given up.
    pub(super) due: Option<Span>,
    /// When requests are that others, which come to the same queue pair, have overtaken.
    pub(super) requests: Option<Span>,
}

/// How often a silence doubles until it is the interval.
const DOUBLINGS: u32 = 3;

impl Awaited {
    /// For how long the link is idle where packets that others have overtaken are lost: they may take as much longer as a READ has taken
    /// of late.
    fn late(&self, params: &Params, two_trips: Span) -> Span {
        two_trips.max(self.trip).min(params.resend)
    }

    /// How long the link has been idle when they are asked for because nothing is heard of them: for an eighth of the interval, and for
    /// twice as long each time that they were asked for in vain, but for two round trips at least as far as those are known.
    fn silent(&self, params: &Params, two_trips: Span) -> Span {
        let span = Span::from_ps(params.resend.as_ps() >> DOUBLINGS.saturating_sub(self.asked));
        self.idle + span.max(two_trips).max(self.trip * 2).min(params.resend).max(Span::from_ps(1))
    }
}

impl Grants {
    /// READ data were asked for. Who hears nothing asks after the whole interval: others may go first, or the request may be lost.
    pub(super) fn asked_for(&mut self, event: &Event<'_>) {
        let Part { end: reach, message_length: end, .. } = event.part;
        let (qpn, idle) = (event.qpn, self.idle(event.now));
        let awaited = self.reads.entry(qpn).or_default();
        awaited.end = end;
        if awaited.due.is_none() {
            (awaited.reach, awaited.idle, awaited.asked) = (reach, idle, DOUBLINGS);
            self.look_at_reads(qpn);
        }
    }

    /// READ data came, or word that they wait.
    pub(super) fn awaits(&mut self, event: &Event<'_>) {
        let Part { offset: expected, end: reach, message_length: end, .. } = event.part;
        let (qpn, idle) = (event.qpn, self.idle(event.now));
        if expected == end {
            return self.await_no_longer(qpn);
        }
        let (two_trips, params) = (self.two_trips(), self.params);
        let awaited = self.reads.entry(qpn).or_default();
        (awaited.reach, awaited.end, awaited.idle) = (reach, end, idle);
        let again = event.words.first().is_some_and(|word| word & 1 == 1);
        if event.sent != Instant::ZERO && !again {
            let before = Span::from_ps(awaited.trip.as_ps() / 8 * 7);
            awaited.trip = before.max(event.now.since(event.sent));
        }
        let asked = if event.length > 0 { 0 } else { awaited.asked.min(DOUBLINGS) };
        let mut changed = awaited.due.is_none() || asked < awaited.asked;
        awaited.asked = asked;
        let mut lost = None;
        if expected == reach {
            awaited.gap = None;
        } else if awaited.gap.is_none_or(|look| after(reach, look.granted) > 0) {
            let look = Look { until: reach, granted: end, due: idle + awaited.late(&params, two_trips) };
            (lost, changed) = (awaited.gap.replace(look), true);
        }
        if let Some(look) = lost {
            self.ask_for_data(qpn, 0, look.until);
        }
        if changed {
            self.look_at_reads(qpn);
        }
    }

    /// Asks for what is due of READ data: what others have overtaken, or, where nothing has been heard for long, all that has been asked
    /// for. Who answers with nothing is asked less and less often, for he may have others to serve.
    pub(super) fn check_reads(&mut self, now: Instant, qpn: u32) {
        let (idle, two_trips, params) = (self.idle(now), self.two_trips(), self.params);
        let Some(awaited) = self.reads.get_mut(&qpn) else { return };
        let mut wanted = None;
        if let Some(look) = awaited.gap.take_if(|look| look.due <= idle) {
            wanted = Some((0, look.until));
            let more = after(awaited.reach, look.until) > 0;
            let due = idle + awaited.late(&params, two_trips);
            let again = Look { until: awaited.reach, granted: awaited.end, due };
            awaited.gap = more.then_some(again);
        } else if awaited.silent(&params, two_trips) <= idle {
            wanted = Some((awaited.end, awaited.end));
            (awaited.asked, awaited.idle) = (awaited.asked + 1, idle);
        }
        if let Some((offset, end)) = wanted {
            self.ask_for_data(qpn, offset, end);
        }
        self.look_at_reads(qpn);
    }

    /// Puts READ data in their place among what is looked at.
    fn look_at_reads(&mut self, qpn: u32) {
        let (two_trips, params) = (self.two_trips(), self.params);
        let most = DOUBLINGS + u32::from(params.resends);
        let Some(awaited) = self.reads.get_mut(&qpn) else { return };
        let silent = (awaited.asked <= most).then(|| awaited.silent(&params, two_trips));
        let due = [silent, awaited.gap.map(|look| look.due)].into_iter().flatten().min();
        awaited.due = due;
        if let Some(due) = due {
            self.looks.push(Reverse((due, Whole::Reads(qpn))));
        }
        self.tidy();
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
        awaited.gap = None;
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
