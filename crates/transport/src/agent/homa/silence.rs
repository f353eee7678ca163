//! Messages of which nothing is heard though octets were granted: when they are asked for, for how much of it, and when they are given up.
//!
//! It may be that packets are lost, or the grant, or the request for them; that the sender has died; or that all stand in a queue for
//! longer than the interval. The last is the commonest behind a narrow core, and there whatever is asked for stands in that queue as
//! well, which feeds on itself: where each silence asked for all that was granted, seven of eight packets were copies.
//!
//! Whoever is granted octets on a low priority waits for as long as others fill the link on higher ones, by the receiver's own order. What
//! it would be asked for stands in the switch, and copies would stand there behind it until no room is left. So time in which the link
//! brings packets of higher priorities than the message's place in the order gives it is no silence, however long it lasts; and the sender,
//! which hears no acknowledgement meanwhile either, is told now and then that its message is known, lest it send of its own accord what
//! would be copies as well. The place is that of now, not of the last grant: whoever has come to the front since then may be waiting behind
//! some that belong behind it, and is asked for again by the priority that it has there.

use super::{Grants, INCOMING, Incoming, LENGTH};
use core::ops::Range;
use roci_control::homa::Params;
use roci_control::{Class, Emit, Event, Part};
use roci_units::{Instant, Qpn, Span};

/// How long the port's link took for what has come: for all of it, and for what came by a higher priority than each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy {
    pub(super) all: Span,
    above: [Span; 8],
}

/// When something was heard, and what [`Busy`] was then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub(super) at: Instant,
    pub(super) busy: Busy,
}

impl Busy {
    pub(super) const NEVER: Self = Self { all: Span::ZERO, above: [Span::ZERO; 8] };

    /// A packet came by `priority`, for which the link took `took`; not beyond now, though it be faster than was said.
    pub(super) fn take(&mut self, now: Instant, took: Span, priority: u8) {
        let all = (self.all + took).min(now.since(Instant::ZERO));
        let took = all.saturating_sub(self.all);
        self.all = all;
        for above in &mut self.above[..usize::from(priority.min(7))] {
            *above += took;
        }
    }
}

impl Heard {
    /// Before anything was.
    pub(super) const NEVER: Self = Self { at: Instant::ZERO, busy: Busy::NEVER };
}

/// What of a message was asked for after a silence: little at first, for all may stand in a queue, and copies of it would stand there as
/// well. When it comes as it was sent again, more is asked for at once.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    /// From the first octet that was asked for to the last, and how many were meant to be.
    pub(super) asked: Range<u32>,
    octets: u32,
    /// What was granted at the silence.
    granted: u32,
    /// When the message had been heard of before the silence.
    heard: Heard,
}

/// How many intervals a silence may last at most before it is asked about, whatever else came meanwhile by no higher priority.
const PATIENCE: u64 = 8;
/// After how many intervals the sender of octets that do not come is told once more of their grant: fewer than it waits for one, and
/// than its timer as a rule.
const REMINDER: u64 = 2;
/// How many times more is asked for each time: as much as all of a window comes within five round trips of one packet.
const GROWTH: u32 = 4;

impl Incoming {
    /// When it is asked for or given up, after a silence of `patience`, where it stands at `priority`; never, if it is the receiver's turn.
    fn due(&self, patience: Span, params: &Params, busy: &Busy, priority: u8) -> Instant {
        if !self.is_awaited(params) {
            return Instant::NEVER;
        }
        let others = busy.all.saturating_sub(self.heard.busy.all);
        self.heard.at + (patience + others).min(params.resend * PATIENCE + self.above(busy, priority))
    }

    /// For how long of its silence the link was busy with packets of higher priorities than `priority`.
    fn above(&self, busy: &Busy, priority: u8) -> Span {
        let level = usize::from(priority.min(7));
        busy.above[level].saturating_sub(self.heard.busy.above[level])
    }

    /// Whether others that stand above it, at `priority`, have most of the link.
    fn is_held_back(&self, now: Instant, busy: &Busy, priority: u8) -> bool {
        self.above(busy, priority) * 2 > now.since(self.heard.at)
    }

    /// When its sender is told once more of its grant if it is held back, and not asked for something before. One that waits for its turn has nothing
    /// under way of which it could miss the acknowledgement, and is told in time for it not to send unasked.
    fn reminder(&self, params: &Params) -> Instant {
        if self.is_given_up(params) {
            return Instant::NEVER;
        }
        let waits = self.is_through() && self.favour.stale == 0;
        let intervals = if waits { u64::from(params.resends) + 1 } else { REMINDER };
        self.heard.at.max(self.told) + params.resend * intervals
    }

    /// Whether octets have still to come that were granted.
    fn is_awaited(&self, params: &Params) -> bool {
        self.received.octets < self.granted && !self.is_given_up(params)
    }
}

impl Grants {
    /// After how long a silence a message is asked for: the interval, and more where such silences are no losses.
    pub(super) fn patience(&self) -> Span {
        self.params.resend.max(self.lull + self.lull / 4).min(self.params.resend * PATIENCE)
    }

    /// Something came that had been asked for, sent `again` or, late, as it was sent first: then nothing was lost.
    pub(super) fn learn(&mut self, now: Instant, probe: &Probe, again: bool) {
        let Heard { at, busy } = probe.heard;
        let since = now.since(at).saturating_sub(self.busy.all.saturating_sub(busy.all));
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
            // What comes again is no sooner there than what may still wait in a queue, unless that queue stands still.
            let (granted, in_vain) = (incoming.priority, incoming.asked > 1);
            let priority = if in_vain { granted.max(self.standing(place)) } else { granted };
            self.ask_for(place, asked, priority);
        }
    }

    /// Says once more how much of a message was granted, for that may be lost as well: by a RESEND of nothing, which tells the sender no
    /// more than that. A GRANT would be news of the message, for which its timer starts anew.
    fn grant_again(&mut self, place: u32) {
        let incoming = &self.messages[place as usize];
        if incoming.granted > incoming.unasked {
            self.out.push_back(incoming.resend(incoming.granted, incoming.granted, incoming.priority));
        }
    }

    /// A message is looked at again when it is to be asked for, or its sender to be told of its grant.
    pub(super) fn check(&mut self, place: u32) {
        let incoming = &self.messages[place as usize];
        let due = incoming.due(self.patience(), &self.params, &self.busy, self.standing(place));
        self.check = self.check.min(due).min(incoming.reminder(&self.params));
    }

    /// Asks for what is overdue, gives up who was asked in vain, and tells others of their grants.
    pub(super) fn ask(&mut self, now: Instant) {
        let patience = self.patience();
        self.check = Instant::NEVER;
        let mut makes_room = false;
        for at in 0..self.places.len() {
            let place = self.places[at].1;
            let standing = self.standing(place);
            let incoming = &mut self.messages[place as usize];
            if incoming.due(patience, &self.params, &self.busy, standing) <= now {
                incoming.asked += 1;
                let before = core::mem::replace(&mut incoming.heard, Heard { at: now, busy: self.busy });
                if incoming.is_given_up(&self.params) {
                    (makes_room, incoming.probe) = (true, None);
                    self.leave(place);
                    continue;
                }
                let octets =
                    incoming.first_ask.saturating_mul(GROWTH.saturating_pow(u32::from(incoming.asked) - 1));
                let granted = incoming.granted;
                let heard = incoming.probe.take().map_or(before, |probe| probe.heard);
                self.grant_again(place);
                self.probe(place, 0, Probe { asked: 0..0, octets, granted, heard });
            } else if incoming.reminder(&self.params) <= now {
                incoming.told = now;
                if incoming.is_held_back(now, &self.busy, standing) {
                    incoming.reminds = true;
                    self.remind(place);
                }
                makes_room |= self.get_over(now, place, 0);
            }
            self.check(place);
        }
        if makes_room {
            self.take_turns();
        }
    }

    /// Tells the sender of a message once more of its grant. This one is news of the message, for which the sender's timer starts anew.
    fn remind(&mut self, place: u32) {
        let &Incoming { qpn, message, length: message_length, granted: end, priority, ref received, .. } =
            &self.messages[place as usize];
        let part = Part { message, message_length, offset: received.octets, end, priority };
        self.out.push_back((Qpn::new(qpn), Emit { part, ..Emit::plain(Class::GRANT) }));
    }

    /// The priority that a message's octets may have now, whatever they were granted: that of its place in the order, the first place if
    /// it is granted to its end, and the last if it has none. Octets without a grant have their own.
    fn standing(&self, place: u32) -> u8 {
        let incoming = &self.messages[place as usize];
        let unscheduled = self.params.unscheduled_priority(incoming.length);
        if incoming.priority >= unscheduled {
            return unscheduled;
        }
        let first = self.order.first();
        let active = first.len().min(usize::from(self.params.overcommit));
        if incoming.granted == incoming.length {
            return self.params.scheduled_priority(0, active + 1);
        }
        let rank = first[..active].iter().position(|rank| rank.place == place);
        self.params.scheduled_priority(rank.unwrap_or(active), active)
    }

    /// The priority that a packet came by, as far as it can be told: what other layouts carry counts as the lowest, and so does what
    /// carries nothing.
    pub(super) fn came_by(&self, event: &Event<'_>) -> u8 {
        let Part { message, message_length: length, offset, .. } = event.part;
        match event.class {
            Class::SEND | Class::WRITE if event.words.len() > INCOMING => match self.find(event.qpn, message)
            {
                Ok(at) if offset >= self.params.unscheduled => {
                    self.messages[self.places[at].1 as usize].priority
                }
                _ => self.params.unscheduled_priority(length),
            },
            Class::READ_RESPONSE => {
                event.words.get(LENGTH).map_or(0, |&length| self.params.read_priority(length))
            }
            _ => 0,
        }
    }

    /// The sender of a message says that others have their turn.
    pub(super) fn busy(&mut self, now: Instant, qpn: u32, message: u32) {
        let Ok(at) = self.find(qpn, message) else { return };
        let place = self.places[at].1;
        let incoming = &mut self.messages[place as usize];
        let back = incoming.is_given_up(&self.params) && incoming.granted < incoming.length;
        (incoming.heard, incoming.asked) = (Heard { at: now, busy: self.busy }, 0);
        if let Some(probe) = &mut incoming.probe {
            probe.heard = incoming.heard;
        }
        self.check(place);
        if back {
            self.join(place);
            self.take_turns();
        }
    }
}
