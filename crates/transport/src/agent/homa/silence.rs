//! Messages of which nothing is heard though octets were granted: when they are asked for, for how much of it, and when they are given up.
//!
//! It may be that packets are lost, or the grant, or the request for them; that the sender has died; or that all stand in a queue for
//! longer than the interval. The last is the commonest behind a narrow core, and there whatever is asked for stands in that queue as
//! well, which feeds on itself: where each silence asked for all that was granted, seven of eight packets were copies.

use super::{Grants, Incoming};
use core::ops::Range;
use roci_control::homa::Params;
use roci_units::{Instant, Span};

/// What of a message was asked for after a silence: little at first, for all may stand in a queue, and copies of it would stand there as
/// well. When it comes as it was sent again, more is asked for at once.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    /// From the first octet that was asked for to the last, and how many were meant to be.
    pub(super) asked: Range<u32>,
    octets: u32,
    /// What was granted at the silence.
    granted: u32,
    /// When the message had been heard of before the silence, and what [`Grants::busy`] was then.
    heard: (Instant, Span),
}

/// How many intervals a silence may last at most before it is asked about, whatever else came meanwhile.
const PATIENCE: u64 = 8;
/// How many times more is asked for each time: as much as all of a window comes within five round trips of one packet.
const GROWTH: u32 = 4;

impl Incoming {
    /// When it is asked for or given up, after a silence of `patience`; never, if it is the receiver's turn.
    pub(super) fn due(&self, patience: Span, params: &Params, busy: Span) -> Instant {
        let waits = self.received.octets < self.granted && !self.is_given_up(params);
        let (at, busy_then) = self.heard;
        let silence = patience + busy.saturating_sub(busy_then);
        if waits { at + silence.min(params.resend * PATIENCE) } else { Instant::NEVER }
    }
}

impl Grants {
    /// After how long a silence a message is asked for: the interval, and more where such silences are no losses.
    pub(super) fn patience(&self) -> Span {
        self.params.resend.max(self.lull + self.lull / 4).min(self.params.resend * PATIENCE)
    }

    /// Something came that had been asked for, sent `again` or, late, as it was sent first: then nothing was lost.
    pub(super) fn learn(&mut self, now: Instant, probe: &Probe, again: bool) {
        let (at, busy) = probe.heard;
        let since = now.since(at).saturating_sub(self.busy.saturating_sub(busy));
        let longest = self.lull.max(since.min(self.params.resend * PATIENCE));
        self.lull = if again { self.lull - self.lull / 4 } else { longest };
    }

    /// What a probe asked for had to come again: more of what was granted is lost.
    pub(super) fn probe_further(&mut self, place: u32, probe: Probe) {
        let octets = probe.octets.saturating_mul(GROWTH);
        self.probe(place, probe.asked.end, Probe { octets, ..probe });
    }

    /// Asks for the first octets of a message that are missing from `from` on, as many as `probe` says of those that were granted.
    fn probe(&mut self, place: u32, from: u32, probe: Probe) {
        let incoming = &mut self.messages[place as usize];
        let asked = from..incoming.received.first_missing(from..probe.granted, probe.octets);
        if !asked.is_empty() {
            incoming.probe = Some(Probe { asked: asked.clone(), ..probe });
            self.ask_for(place, asked);
        }
    }

    /// Says once more how much of a message was granted, for that may be lost as well: by a RESEND of nothing, which tells the sender no
    /// more than that. A GRANT would be news of the message, for which its timer starts anew.
    fn grant_again(&mut self, place: u32) {
        let incoming = &self.messages[place as usize];
        if incoming.granted > incoming.unasked {
            self.out.push_back(incoming.resend(&self.params, incoming.granted, incoming.granted));
        }
    }

    /// Asks for what is overdue, and gives up who was asked in vain.
    pub(super) fn ask(&mut self, now: Instant) {
        let patience = self.patience();
        self.check = Instant::NEVER;
        let mut given_up = false;
        for at in 0..self.places.len() {
            let place = self.places[at].1;
            let incoming = &mut self.messages[place as usize];
            if incoming.due(patience, &self.params, self.busy) <= now {
                incoming.asked += 1;
                let before = core::mem::replace(&mut incoming.heard, (now, self.busy));
                if incoming.is_given_up(&self.params) {
                    (given_up, incoming.probe) = (true, None);
                    self.leave(place);
                    continue;
                }
                let octets =
                    incoming.first_ask.saturating_mul(GROWTH.saturating_pow(u32::from(incoming.asked) - 1));
                let granted = incoming.granted;
                let heard = incoming.probe.take().map_or(before, |probe| probe.heard);
                self.grant_again(place);
                self.probe(place, 0, Probe { asked: 0..0, octets, granted, heard });
            }
            self.check = self.check.min(self.messages[place as usize].due(patience, &self.params, self.busy));
        }
        if given_up {
            self.take_turns();
        }
    }

    /// The sender of a message says that others have their turn.
    pub(super) fn busy(&mut self, now: Instant, qpn: u32, message: u32) {
        let Ok(at) = self.find(qpn, message) else { return };
        let patience = self.patience();
        let place = self.places[at].1;
        let incoming = &mut self.messages[place as usize];
        let back = incoming.is_given_up(&self.params) && incoming.granted < incoming.length;
        (incoming.heard, incoming.asked) = ((now, self.busy), 0);
        if let Some(probe) = &mut incoming.probe {
            probe.heard = incoming.heard;
        }
        self.check = self.check.min(incoming.due(patience, &self.params, self.busy));
        if back {
            self.join(place);
            self.take_turns();
        }
    }
}
