//! The packets that wait for a host's port, and which of them goes next.

use super::{GRANTED, Host, QUEUES, REPLIES};
use roci_fabric::net::Net;
use roci_fabric::packet::PacketId;
use roci_wire::Shape;

/// What goes next of what waits for the port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foremost {
    pub(crate) queue: usize,
    pub(crate) priority: u8,
}

impl Foremost {
    /// The higher priorities, bit p for priority p.
    pub(crate) const fn above(self) -> u8 {
        0xfe << self.priority
    }

    /// The one of the highest priority, and of those the one of the first queue.
    fn of(queues: impl Iterator<Item = Self>) -> Option<Self> {
        queues.reduce(|first, next| if next.priority > first.priority { next } else { first })
    }
}

impl Host {
    /// The acknowledgement that waits for the port, if one does.
    #[inline]
    pub(crate) fn first_reply(&self) -> Option<PacketId> {
        (self.waits > 0).then_some(self.first[REPLIES])
    }

    /// What goes next of what waits for the port.
    #[inline]
    pub(crate) fn foremost(&mut self, net: &Net, open: u8) -> Option<Foremost> {
        if open != u8::MAX || self.apart.is_some() {
            return self.foremost_unpaused(net, open);
        }
        let waiting = self.first.iter().enumerate().filter(|(_, packet)| **packet != PacketId::NONE);
        Foremost::of(
            waiting.map(|(queue, &packet)| Foremost { queue, priority: net.packets()[packet].priority }),
        )
    }

    /// The same where some priorities are paused, or were: whoever is paused lets others pass.
    #[inline(never)]
    pub(crate) fn foremost_unpaused(&mut self, net: &Net, open: u8) -> Option<Foremost> {
        let of = |queue| Some(Foremost { queue, priority: self.unpaused_of(net, queue, open)? });
        Foremost::of((0..QUEUES).filter_map(of))
    }

    /// Takes what [`foremost`](Self::foremost) has found.
    #[inline]
    pub(crate) fn take_waiting(&mut self, open: u8, Foremost { queue, priority }: Foremost) -> PacketId {
        self.waits -= 1;
        if let Some(apart) = &mut self.apart
            && apart.highest(queue, open) == Some(priority)
            && let Some(packet) = apart.take(queue, open)
        {
            if apart.is_empty() && !self.has_parts() {
                self.apart = None;
            }
            return packet;
        }
        self.step_up(queue)
    }

    /// Takes the first packet of a queue, in whose place the next one comes.
    fn step_up(&mut self, queue: usize) -> PacketId {
        let next = if self.waits == 0 { None } else { self.behind[queue].pop_front() };
        std::mem::replace(&mut self.first[queue], next.unwrap_or(PacketId::NONE))
    }

    /// The priority of a queue's next packet that is not paused.
    fn unpaused_of(&mut self, net: &Net, queue: usize, open: u8) -> Option<u8> {
        let apart = self.apart.as_ref().and_then(|apart| apart.highest(queue, open));
        loop {
            let first = self.first[queue];
            if first == PacketId::NONE {
                return apart;
            }
            let packet = &net.packets()[first];
            if open >> packet.priority & 1 == 1 {
                return apart.max(Some(packet.priority));
            }
            // Where acknowledgements have a priority of their own, one of a READ must not overtake its responses.
            let leads = self.classes.ack.is_some() && packet.header.opcode.shape().has(Shape::RESPONSE);
            if self.behind[queue].is_empty() || queue == REPLIES && leads {
                return apart;
            }
            let priority = packet.priority;
            let first = self.step_up(queue);
            self.apart.get_or_insert_default().push(queue, priority, first);
        }
    }

    /// Lets a packet wait for the port.
    #[inline]
    pub(crate) fn wait(&mut self, queue: usize, packet: PacketId) {
        self.waits += 1;
        if self.first[queue] == PacketId::NONE {
            self.first[queue] = packet;
        } else {
            self.behind[queue].push_back(packet);
        }
    }

    /// Lets a packet that the parts of a NIC have made wait for the port.
    pub(crate) fn wait_made(&mut self, net: &Net, packet: PacketId) {
        self.waits += 1;
        let priority = net.packets()[packet].priority;
        self.apart.get_or_insert_default().push(GRANTED, priority, packet);
    }
}
