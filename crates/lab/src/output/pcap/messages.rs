//! Where a packet's payload stands in its message, from the packets that came by before it.

use super::RocePacket;
use roci_units::{Psn, Qpn};
use roci_wire::{Flags, Opcode, Reth, Shape};
use std::collections::{BTreeMap, VecDeque};

/// Messages of a queue pair that are remembered: as many as retransmissions reach back.
const MESSAGES: usize = 64;

/// Where the latest messages of each queue pair began, from which the place of a later packet's payload follows.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// First PSN and MTU of each message, the latest first.
    began: BTreeMap<Stream, VecDeque<(Psn, u16)>>,
    /// The READs asked for, each once, the latest first.
    asked: BTreeMap<Asker, VecDeque<Asked>>,
}

/// Packets whose PSNs count on from one another: source, destination, queue pair, and whether they are responses.
type Stream = (u16, u16, Qpn, bool);

/// Who asks for READs: requester, responder and flow, which is the same both ways.
type Asker = (u16, u16, u32);

/// A READ as it was asked for at first.
#[derive(Clone, Copy, Debug)]
struct Asked {
    psn: Psn,
    reth: Reth,
}

impl Asked {
    /// Whether a request for `reth` at `psn` asks again for what is left of this READ.
    fn goes_on(&self, psn: Psn, reth: &Reth) -> bool {
        let (Ok(packets), octets) = (u64::try_from(psn.since(self.psn)), reth.va.wrapping_sub(self.reth.va))
        else {
            return false;
        };
        packets > 0
            && octets >= packets
            && octets.is_multiple_of(packets)
            && octets.checked_add(reth.length.into()) == Some(self.reth.length.into())
            && reth.rkey == self.reth.rkey
    }
}

impl Messages {
    /// The offset in its message of `packet`'s payload.
    ///
    /// A READ may be asked for again from its middle, and is then answered by a first response in the middle: its
    /// responses stand where the READ's first request puts them. Where that never came by, and for all else, payload
    /// goes on from the message's first packet; where that never came by either, from that of an earlier one.
    pub(super) fn offset(&mut self, packet: &RocePacket) -> u64 {
        let header = &packet.header;
        let shape = header.opcode.shape();
        if header.opcode == Opcode::READ_REQUEST && !packet.numbered_apart {
            self.ask(packet);
        }
        if !shape.has(Shape::PAYLOAD) || header.flags.has(Flags::TRIMMED) {
            return 0;
        }
        let response = shape.has(Shape::RESPONSE);
        if response
            && !packet.numbered_apart
            && let Some(offset) = self.place_in_read(packet)
        {
            return offset;
        }
        let queue_pair = (packet.source, packet.destination, header.dest_qpn, response);
        let began = self.began.entry(queue_pair).or_default();
        if shape.has(Shape::FIRST) {
            if began.iter().all(|(psn, _)| *psn != header.psn) {
                began.push_front((header.psn, header.payload));
                began.truncate(MESSAGES);
            }
            return 0;
        }
        let behind = |(psn, mtu): &(Psn, u16)| {
            let packets = u64::try_from(header.psn.since(*psn)).ok()?;
            Some(packets * u64::from(*mtu))
        };
        began.iter().filter_map(behind).min().unwrap_or(0)
    }

    /// Remembers the READ that a request asks for, unless it asks for the rest of one that is known.
    fn ask(&mut self, packet: &RocePacket) {
        let (psn, reth) = (packet.header.psn, packet.header.reth());
        let asked = self.asked.entry((packet.source, packet.destination, packet.flow)).or_default();
        if asked.iter().any(|read| read.goes_on(psn, &reth)) {
            return;
        }
        asked.retain(|read| read.psn != psn);
        asked.push_front(Asked { psn, reth });
        asked.truncate(MESSAGES);
    }

    /// The offset of a response's payload in the READ that it answers: the nearest whose numbers begin at its own or
    /// before. `None` where that never came by.
    fn place_in_read(&self, packet: &RocePacket) -> Option<u64> {
        let header = &packet.header;
        let asked = self.asked.get(&(packet.destination, packet.source, packet.flow))?;
        let behind = |read: &Asked| {
            let packets = u64::try_from(header.psn.since(read.psn)).ok()?;
            Some((packets, u64::from(read.reth.length)))
        };
        let (packets, length) = asked.iter().filter_map(behind).min()?;
        let payload = u64::from(header.payload);
        let offset = if header.opcode.shape().has(Shape::LAST) {
            length.checked_sub(payload)?
        } else {
            packets * payload
        };
        (offset + payload <= length).then_some(offset)
    }
}
