//! Packets that wait for the port apart by priority.

use crate::host::QUEUES;
use roci_fabric::packet::PacketId;
use std::collections::VecDeque;

/// Packets of each line by priority, each in the order in which they came: what stood first in its line while its priority was
/// paused, so that others behind it may go; and in a NIC made of parts, all that its turns made, of which the highest priority
/// goes first. Nothing that has come to a line since may overtake what waits here and has its priority.
#[derive(Debug, Default)]
pub(crate) struct Apart {
    packets: [[VecDeque<PacketId>; 8]; QUEUES],
    /// Of each line the priorities that some packet has, bit p for priority p.
    filled: [u8; QUEUES],
}

impl Apart {
    /// Whether nothing waits here.
    pub(crate) fn is_empty(&self) -> bool {
        self.filled == [0; QUEUES]
    }

    /// Lets a packet of `line` wait here.
    pub(crate) fn push(&mut self, line: usize, priority: u8, packet: PacketId) {
        self.filled[line] |= 1 << priority;
        self.packets[line][usize::from(priority)].push_back(packet);
    }

    /// The highest priority in `line` of those in `open`.
    pub(crate) fn highest(&self, line: usize, open: u8) -> Option<u8> {
        #[expect(clippy::cast_possible_truncation, reason = "eight priorities")]
        (self.filled[line] & open).checked_ilog2().map(|priority| priority as u8)
    }

    /// The next packet of `line`, of the highest priority of those in `open`.
    pub(crate) fn take(&mut self, line: usize, open: u8) -> Option<PacketId> {
        let priority = self.highest(line, open)?;
        let packets = &mut self.packets[line][usize::from(priority)];
        let packet = packets.pop_front();
        self.filled[line] &= !(u8::from(packets.is_empty()) << priority);
        packet
    }

    /// How many packets of `line` have a priority among `open`.
    pub(crate) fn waiting(&self, line: usize, open: u8) -> usize {
        let packets = (0..8).zip(&self.packets[line]).filter(|(priority, _)| open >> priority & 1 == 1);
        packets.map(|(_, packets)| packets.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_priority_that_is_not_paused_goes_first_and_each_in_its_order() {
        let mut apart = Apart::default();
        for (packet, priority) in [(1, 1), (2, 3), (3, 1), (4, 3), (5, 6)] {
            apart.push(0, priority, PacketId(packet));
        }
        apart.push(1, 3, PacketId(9));
        assert_eq!(
            (apart.waiting(0, 1 << 3), apart.waiting(0, !(1 << 3)), apart.waiting(1, 0xff)),
            (2, 3, 1)
        );
        let mut taken = |open| apart.take(0, open).map(|packet| packet.0);
        assert_eq!(
            [taken(0b1010), taken(0b10), taken(0xff), taken(0xff)],
            [Some(2), Some(1), Some(5), Some(4)]
        );
        assert_eq!([taken(1 << 3), taken(0xff), taken(0xff)], [None, Some(3), None]);
        assert!(!apart.is_empty() && apart.take(1, 0xff).is_some() && apart.is_empty());
    }
}
