//! What the engine hands out to be sent.

use roci_control::{Event, Outcome, Words};
use roci_units::{Instant, Qpn};
use roci_wire::layout::irn::SendPosition;
use roci_wire::layout::srnic::RequestPosition;
use roci_wire::{Flags, Header, Layout, Opcode, Reth, Shape};

/// Where the payload of a segment lies. The engine never touches it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The first octet, in the terms of the work request or of the registered region.
    pub address: u64,
    /// The key of the region it lies in; zero for inline data and worlds without memory.
    pub lkey: u32,
}

/// The head of some queue pair's segment ring, offered for sending: take it with `commit` or refuse with `decline`.
///
/// Until then the queue pair is owned by the offer and offers nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The queue pair.
    pub qpn: Qpn,
    /// Octets of payload in all packets of the run.
    pub length: u32,
    /// Packets in the run.
    pub packets: u16,
    /// The priority that it will travel on.
    pub priority: u8,
    /// Whether it has been sent before.
    pub retransmission: bool,
    /// Whether it answers a READ: no send request of ours is behind it.
    pub response: bool,
    /// Whether the caller has to run the law's `TRANSMIT` event and pass its outcome to `commit`.
    pub wants_law: bool,
}

/// Until when a declined queue pair parks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until its next receive event.
    Received,
    /// Until its law's timer.
    Timer,
    /// Until an instant.
    At(Instant),
    /// It goes to the end of the ready list at once (SwCC's recirculation).
    Recirculated,
}

/// What a caller brings to `commit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "boxing the outcome of a law would allocate for each packet")]
pub enum Grant {
    /// The engine runs the law itself, if it is to be run.
    Engine,
    /// The caller ran the law.
    Law(Outcome),
}

/// A run of consecutive packets of one message, ready to be sent.
///
/// Fields that are filled in together stand together, so that they are written together: of what it takes to make a
/// segment a third is storing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Segment {
    /// Where to: as given when the queue pair was made.
    pub path: u64,
    /// Where the payload lies.
    pub source: Source,
    /// The header of the first packet; see [`Segment::packet`] for the others.
    pub header: Header,
    /// Octets of payload in all packets.
    pub length: u32,
    /// The opcode of the last packet.
    pub last_opcode: Opcode,
    /// The flags of the last packet.
    pub last_flags: Flags,
    /// Payload octets of each packet but the last.
    pub mtu: u16,
    /// The layout of its headers.
    pub layout: Layout,
    /// Whether each packet says by itself where its payload goes, as layouts that allow overtaking want it, or as it is a
    /// message of its own.
    pub each_placed: bool,
    /// The priority to travel on.
    pub priority: u8,
    /// Packets, at least one.
    pub packets: u16,
    /// Whether the packets are ECN-capable (data are, acknowledgements are not).
    pub ecn_capable: bool,
    /// Whether it has been sent before.
    pub retransmission: bool,
    /// Optional header words on each packet; `None` on the standard layout.
    pub words: Option<Words>,
}

impl Segment {
    /// The header and the payload's place of packet `index` of the run.
    ///
    /// # Panics
    /// In debug builds, when the run has no such packet.
    #[inline]
    pub fn packet(&self, index: u16) -> (Header, Source) {
        debug_assert!(index < self.packets, "a run of {} packets has no packet {index}", self.packets);
        let mut header = self.header;
        if self.packets == 1 {
            return (header, self.source);
        }
        let before = u32::from(index) * u32::from(self.mtu);
        let source = Source { address: self.source.address.wrapping_add(u64::from(before)), ..self.source };
        header.psn = header.psn.plus(u32::from(index));
        if index + 1 == self.packets {
            header.opcode = self.last_opcode;
            header.flags = self.last_flags;
            #[expect(clippy::cast_possible_truncation, reason = "at most one MTU is left")]
            {
                header.payload = (self.length - before) as u16;
            }
        } else if index > 0 {
            header.opcode = middle_of(header.opcode);
        }
        if self.each_placed {
            place_at(&mut header, self.layout, u32::from(index), before);
        }
        (header, source)
    }

    /// The optional header words of packet `index` of the run.
    #[inline]
    pub fn packet_words(&self, index: u16) -> Option<Words> {
        let mut words = self.words;
        if self.layout == Layout::Homa
            && let Some(Words { words: [_, _, _, _, offset, ..], .. }) = &mut words
        {
            *offset += u32::from(index) * u32::from(self.mtu);
        }
        words
    }
}

/// Moves the place that a packet names by `packets` with `before` octets of its message.
const fn place_at(header: &mut Header, layout: Layout, packets: u32, before: u32) {
    let shape = header.opcode.shape();
    if matches!(layout, Layout::Srnic) {
        let position = header.request_position();
        header.set_request_position(RequestPosition {
            psn_offset: position.psn_offset.wrapping_add(packets),
            ..position
        });
    }
    if shape.has(Shape::WRITE) {
        let reth = header.reth();
        // A message of its own has no more octets than are in the packet.
        let lone = shape.has(Shape::FIRST) && shape.has(Shape::LAST);
        header.set_reth(Reth {
            va: reth.va.wrapping_add(before as u64),
            length: if lone { header.payload as u32 } else { reth.length - before },
            ..reth
        });
    } else if shape.has(Shape::SEND) && !matches!(layout, Layout::Srnic) {
        let position = header.send_position();
        header.set_send_position(SendPosition { offset: position.offset + before, ..position });
    }
}

/// The opcode of the packets between first and last of a message that `opcode` belongs to.
const fn middle_of(opcode: Opcode) -> Opcode {
    let shape = opcode.shape();
    let middle = if shape.has(Shape::FIRST) && shape.has(Shape::LAST) {
        opcode
    } else if shape.has(Shape::SEND) {
        Opcode::SEND_MIDDLE
    } else if shape.has(Shape::WRITE) {
        Opcode::WRITE_MIDDLE
    } else {
        Opcode::READ_RESPONSE_MIDDLE
    };
    // The upper three bits are the service's.
    Opcode(middle.0 | opcode.0 & 0xe0)
}

/// A law's event that the engine has asked the NIC to run.
#[derive(Clone, Copy, Debug)]
pub struct OwnedEvent {
    /// The event; its `words` and `hops` are empty here.
    pub event: Event<'static>,
    /// The packet's header words.
    pub words: Words,
    /// The packet's telemetry.
    pub hops: [roci_control::Hop; 8],
    /// How many of the hops count.
    pub hop_count: u8,
}

#[cfg(test)]
mod tests {
    use super::Grant;
    use crate::config::{EngineConfig, QpConfig};
    use crate::engine::Engine;
    use crate::work::{Operation, SendRequest, Tail};
    use roci_units::{Instant, Qpn};
    use roci_wire::{Opcode, Reth};

    #[test]
    fn a_lone_write_is_a_message_in_each_packet() {
        let mut engine = Engine::new(EngineConfig::default());
        let (qpn, now) = (Qpn::new(2), Instant::ZERO);
        let config = QpConfig { qpn: Some(qpn), peer: qpn, lone_writes: true, ..QpConfig::default() };
        engine.create_qp(config).unwrap();
        let request = SendRequest {
            id: 1,
            operation: Operation::Write { va: 10_000, rkey: 7, tail: Tail::Plain },
            length: 5_000,
            address: 0,
            lkey: 0,
            solicited: false,
            signaled: true,
            fence: false,
        };
        engine.post_send(now, qpn, &request).unwrap();
        let mut sent = alloc::vec::Vec::new();
        while let Some(offer) = engine.offer(now, 3_000) {
            let segment = engine.commit(now, offer, Grant::Engine).unwrap();
            sent.extend((0..segment.packets).map(|index| segment.packet(index)));
        }
        for (index, (header, source)) in (0..).zip(&sent) {
            let length = if index == 4 { 5_000 - 4 * 1_024 } else { 1_024 };
            let va = 10_000 + u64::from(index) * 1_024;
            assert_eq!((header.psn.get(), u32::from(header.payload)), (index, length));
            assert_eq!((header.reth(), source.address), (Reth { va, rkey: 7, length }, va - 10_000));
            assert_eq!(header.opcode, Opcode::WRITE_ONLY);
        }
        assert_eq!(sent.len(), 5);
    }
}
