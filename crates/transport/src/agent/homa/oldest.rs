//! The oldest message's share: by the octets that have still to come alone, a message that shorter ones surpass without end would never
//! be granted, or what it sends would wait in the switches, on the lowest priority, for as long.
//!
//! Of all octets that come a part is owed to whoever began first. Once that is as much as grants run ahead, it has a turn out of order, beyond
//! what it was granted before, on the highest of the priorities of granted octets. It has another when something has come of it since,
//! so that a sender that has died is not favoured for long.
//!
//! What it was granted before, by its place in the order, may wait on a low priority for all that time, and what it is favoured with would
//! come behind a gap. Such octets are asked for again in one of its turns. As first sent they still stand in the switch: until they have
//! come, or the link was idle for long enough to have brought them, its place in the order brings it no more of those.

use super::{Grants, Incoming};
use roci_control::{Class, Emit, Part};
use roci_units::{Instant, Qpn, Span};

/// What of a message its turns as the oldest have brought.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Favour {
    /// How many octets had come at the last one, and up to where without a gap.
    octets: u32,
    start: u32,
    /// Octets that were asked for again and are still to come as they were first sent, and how long the link had been idle then.
    pub(super) stale: u32,
    since: Span,
}

impl Grants {
    /// So many octets have come of whatever message.
    pub(super) fn owe(&mut self, now: Instant, octets: u32) {
        let turn = u64::from(self.params.grant(0, u32::MAX)) << 16;
        self.owed = (self.owed + u64::from(octets) * u64::from(self.oldest)).min(turn);
        if self.oldest > 0 && self.owed == turn {
            // Whether anybody takes it or not: to look for the oldest with each packet would be work for all that wait.
            self.owed = 0;
            self.favour_oldest(now);
        }
    }

    /// The turn of the message that began first, unless it is the first in order as well.
    fn favour_oldest(&mut self, now: Instant) {
        let moved = |place: &u32| {
            let incoming = &self.messages[*place as usize];
            incoming.received.octets > incoming.favour.octets
        };
        let oldest =
            self.order.places().filter(moved).min_by_key(|&place| self.messages[place as usize].began);
        let Some(place) = oldest else { return };
        if self.order.first().first().is_some_and(|rank| rank.place == place) {
            return;
        }
        let (idle, ahead) = (self.idle(now), self.params.grant(0, u32::MAX));
        let priority = self.params.scheduled_priority(0, usize::MAX);
        let incoming = &mut self.messages[place as usize];
        let (start, octets) = (incoming.received.start, incoming.received.octets);
        incoming.favour.octets = octets;
        let stands = core::mem::replace(&mut incoming.favour.start, start) == start;
        let raised = incoming.raised_packets();
        if stands && start < raised {
            let missing = start..incoming.received.first_missing(start..raised, ahead);
            let asked: u32 = incoming.received.gaps(missing.clone()).map(|(from, to)| to - from).sum();
            (incoming.favour.stale, incoming.favour.since) = (asked, idle);
            return self.ask_for(place, missing, priority);
        }
        let &mut Incoming { qpn, message, length: message_length, granted: offset, .. } = incoming;
        let end = self.params.grant(offset, message_length);
        let part = Part { message, message_length, offset, end, priority };
        self.out.push_back((Qpn::new(qpn), Emit { part, ..Emit::plain(Class::GRANT) }));
    }

    /// So many octets came as they were first sent of a message of which they had come before. What was asked for again in its turns is
    /// waited for no longer when all of it has come like that, or the link was idle for two round trips; whether that is so now.
    pub(super) fn get_over(&mut self, now: Instant, place: u32, octets: u32) -> bool {
        let over =
            self.idle(now).saturating_sub(self.messages[place as usize].favour.since) >= self.two_trips();
        let favour = &mut self.messages[place as usize].favour;
        let waited = favour.stale > 0;
        favour.stale = if over { 0 } else { favour.stale.saturating_sub(octets) };
        waited && favour.stale == 0
    }
}
