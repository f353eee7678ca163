//! The oldest message's share: by the octets that have still to come alone, a message that shorter ones surpass without end would never
//! be granted, or what it sends would wait in the switches, on the lowest priority, for as long.
//!
//! Of all octets that come a part is owed to whoever began first. Once that is as much as grants run ahead, it has a turn out of order, beyond
//! what it was granted before, on the highest of the priorities of granted octets. It has another when something has come of it since,
//! so that a sender that has died is not favoured for long.

use super::{Grants, Incoming};
use roci_control::{Class, Emit, Part};
use roci_units::Qpn;

impl Grants {
    /// So many octets have come of whatever message.
    pub(super) fn owe(&mut self, octets: u32) {
        let turn = u64::from(self.params.grant(0, u32::MAX)) << 16;
        self.owed = (self.owed + u64::from(octets) * u64::from(self.oldest)).min(turn);
        if self.oldest > 0 && self.owed == turn {
            // Whether anybody takes it or not: to look for the oldest with each packet would be work for all that wait.
            self.owed = 0;
            let turn = self.turn_of_oldest();
            self.out.extend(turn);
        }
    }

    /// The turn of the message that began first, unless it is the first in order as well.
    fn turn_of_oldest(&mut self) -> Option<(Qpn, Emit)> {
        let moved = |place: &u32| {
            let incoming = &self.messages[*place as usize];
            incoming.received.octets > incoming.favoured
        };
        let oldest =
            self.order.places().filter(moved).min_by_key(|&place| self.messages[place as usize].began)?;
        if self.order.first().first().is_some_and(|rank| rank.place == oldest) {
            return None;
        }
        let incoming = &mut self.messages[oldest as usize];
        incoming.favoured = incoming.received.octets;
        let &mut Incoming { qpn, message, length: message_length, granted: offset, .. } = incoming;
        let end = self.params.grant(offset, message_length);
        let priority = self.params.scheduled_priority(0, usize::MAX);
        let part = Part { message, message_length, offset, end, priority };
        Some((Qpn::new(qpn), Emit { part, ..Emit::plain(Class::GRANT) }))
    }
}
