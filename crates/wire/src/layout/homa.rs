//! Layout `homa`: receiver-driven messages (Homa, SIGCOMM 2018; packet types as in HomaModule).
//!
//! Data travels in SENDs, WRITEs and READ responses, whose words begin with type 0x10. Each other type has an opcode
//! of its own, 0xc0 plus the type.

use crate::layout::LayoutWords;
use crate::opcode::{Opcode, Shape};
use crate::{Header, PacketError};

/// Packet type of data; of the others the opcode is 0xc0 plus the type.
pub const DATA: u8 = 0x10;
const GRANT: u8 = 0x11;
const RESEND: u8 = 0x12;
const RPC_UNKNOWN: u8 = 0x13;
const BUSY: u8 = 0x14;
const CUTOFFS: u8 = 0x15;
const FREEZE: u8 = 0x16;
const NEED_ACK: u8 = 0x17;
const ACK: u8 = 0x18;

/// Messages that take a receive request are numbered modulo this.
pub const NUMBERS: u16 = 1 << 15;

/// The most RPCs that one ACK names besides its own.
pub const ACKS_MAX: usize = 5;

/// The words of a packet: type, priority, RPC id, and what the type adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Homa {
    /// The RPC that the packet belongs to; the lower bit tells client (0) from server (1).
    pub rpc: u64,
    /// What the type adds.
    pub body: HomaBody,
}

/// What each packet type adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomaBody {
    /// Octets of a message.
    Data {
        /// Octets of the whole message.
        length: u32,
        /// Octets of the message before this packet.
        offset: u32,
        /// Octets from the start of the message that its sender will send without a further grant.
        incoming: u32,
        /// Whether it is sent again.
        retransmit: bool,
        /// Which of the messages that take a receive request this is, modulo [`NUMBERS`]; zero for the others.
        number: u16,
    },
    /// The receiver lets the sender send more.
    Grant {
        /// Octets from the start of the message that may be sent.
        offset: u32,
        /// The priority to send them with, 0 to 7.
        priority: u8,
        /// Whether everything before is to be sent again.
        resend_all: bool,
    },
    /// The receiver asks for octets again.
    Resend {
        /// The first octet.
        offset: u32,
        /// How many.
        length: u32,
        /// The priority to send them with, 0 to 7.
        priority: u8,
    },
    /// The receiver of a RESEND knows no such RPC.
    RpcUnknown,
    /// The receiver of a RESEND will not send yet; do not time out.
    Busy,
    /// The receiver announces how it maps unscheduled messages to priorities.
    Cutoffs {
        /// For each priority from 0 to 7, the octets of the longest message that is sent with it.
        octets: [u32; 8],
        /// Grows with each change.
        version: u16,
    },
    /// Debugging: stop and keep traces.
    Freeze,
    /// The server asks whether its response has arrived.
    NeedAck,
    /// The client says that responses have arrived.
    Ack {
        /// How many of `others` count, at most [`ACKS_MAX`].
        count: u8,
        /// RPCs acknowledged besides the packet's own.
        others: [u64; ACKS_MAX],
    },
}

/// How many words packets with `opcode` carry.
pub(crate) const fn words(opcode: Opcode) -> usize {
    const COMMON: usize = 3;
    match opcode.0 {
        0xd1 => COMMON + 1,
        0xd2 => COMMON + 2,
        0xd5 => COMMON + 8,
        0xd8 => COMMON + 2 * ACKS_MAX,
        0xd3..=0xd8 => COMMON,
        _ if carries_message(opcode) => COMMON + 3,
        _ => 0,
    }
}

/// Whether a packet is part of a message: all of reliable connections but acknowledgements.
const fn carries_message(opcode: Opcode) -> bool {
    let shape = opcode.shape();
    opcode.0 < 0x20 && shape.has(Shape::KNOWN) && (shape.has(Shape::PAYLOAD) || !shape.has(Shape::RESPONSE))
}

impl Homa {
    /// The packet type.
    pub const fn packet_type(&self) -> u8 {
        match self.body {
            HomaBody::Data { .. } => DATA,
            HomaBody::Grant { .. } => GRANT,
            HomaBody::Resend { .. } => RESEND,
            HomaBody::RpcUnknown => RPC_UNKNOWN,
            HomaBody::Busy => BUSY,
            HomaBody::Cutoffs { .. } => CUTOFFS,
            HomaBody::Freeze => FREEZE,
            HomaBody::NeedAck => NEED_ACK,
            HomaBody::Ack { .. } => ACK,
        }
    }

    /// The opcode of a packet of this type, or `None` for data, whose opcode is the operation's.
    pub const fn opcode(&self) -> Option<Opcode> {
        match self.packet_type() {
            DATA => None,
            other => Some(Opcode(0xc0 + other)),
        }
    }

    /// The words of `header`'s packet.
    ///
    /// # Errors
    /// [`PacketError::Homa`] when the type contradicts the opcode or the number of words.
    pub fn decode(header: &Header, words: &LayoutWords) -> Result<Self, PacketError> {
        let words = words.as_slice();
        let packet_type = words.first().map_or(0, |word| (word >> 24) as u8);
        let refused = PacketError::Homa { got: packet_type, words: words.len() };
        let agrees = match packet_type {
            DATA => carries_message(header.opcode),
            other => header.opcode.0.checked_sub(0xc0) == Some(other),
        };
        let &[common, high, low, ref rest @ ..] = words else { return Err(refused) };
        if !agrees {
            return Err(refused);
        }
        let priority = (common >> 16 & 7) as u8;
        let flag = common & 1 == 1;
        let body = match (packet_type, rest) {
            (DATA, &[length, offset, incoming]) => {
                let number = (common & 0xffff) as u16 >> 1;
                HomaBody::Data { length, offset, incoming, retransmit: flag, number }
            }
            (GRANT, &[offset]) => HomaBody::Grant { offset, priority, resend_all: flag },
            (RESEND, &[offset, length]) => HomaBody::Resend { offset, length, priority },
            (RPC_UNKNOWN, []) => HomaBody::RpcUnknown,
            (BUSY, []) => HomaBody::Busy,
            (CUTOFFS, rest) => {
                let octets = *rest.first_chunk().ok_or(refused)?;
                HomaBody::Cutoffs { octets, version: (common & 0xffff) as u16 }
            }
            (FREEZE, []) => HomaBody::Freeze,
            (NEED_ACK, []) => HomaBody::NeedAck,
            (ACK, rest) => {
                let mut others = [0; ACKS_MAX];
                for (other, pair) in others.iter_mut().zip(rest.chunks_exact(2)) {
                    *other = u64::from(pair[0]) << 32 | u64::from(pair[1]);
                }
                let count = (common & 0xff) as u8;
                if usize::from(count) > ACKS_MAX {
                    return Err(refused);
                }
                HomaBody::Ack { count, others }
            }
            _ => return Err(refused),
        };
        Ok(Self { rpc: u64::from(high) << 32 | u64::from(low), body })
    }

    /// The words on the wire.
    #[expect(clippy::cast_possible_truncation, reason = "the halves of an RPC id")]
    pub fn encode(&self) -> LayoutWords {
        let mut words = [0; LayoutWords::MAX];
        let mut priority = 0;
        let mut detail = 0;
        let body: &mut [u32] = &mut words[3..];
        let len = match self.body {
            HomaBody::Data { length, offset, incoming, retransmit, number } => {
                detail = u32::from(number % NUMBERS) << 1 | u32::from(retransmit);
                body[..3].copy_from_slice(&[length, offset, incoming]);
                3
            }
            HomaBody::Grant { offset, priority: level, resend_all } => {
                priority = level;
                detail = u32::from(resend_all);
                body[0] = offset;
                1
            }
            HomaBody::Resend { offset, length, priority: level } => {
                priority = level;
                body[..2].copy_from_slice(&[offset, length]);
                2
            }
            HomaBody::Cutoffs { octets, version } => {
                detail = u32::from(version);
                body[..8].copy_from_slice(&octets);
                8
            }
            HomaBody::Ack { count, others } => {
                detail = u32::from(count);
                for (pair, other) in body.chunks_exact_mut(2).zip(others) {
                    pair.copy_from_slice(&[(other >> 32) as u32, other as u32]);
                }
                2 * ACKS_MAX
            }
            HomaBody::RpcUnknown | HomaBody::Busy | HomaBody::Freeze | HomaBody::NeedAck => 0,
        };
        words[0] = u32::from(self.packet_type()) << 24 | u32::from(priority & 7) << 16 | detail;
        words[1] = (self.rpc >> 32) as u32;
        words[2] = self.rpc as u32;
        LayoutWords::new(&words[..3 + len]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_units::{Psn, Qpn};

    const BODIES: [HomaBody; 9] = [
        HomaBody::Data { length: 100_000, offset: 1_024, incoming: 40_000, retransmit: true, number: 0x7ffe },
        HomaBody::Grant { offset: 50_000, priority: 5, resend_all: false },
        HomaBody::Resend { offset: 7, length: 9, priority: 6 },
        HomaBody::RpcUnknown,
        HomaBody::Busy,
        HomaBody::Cutoffs { octets: [1, 2, 3, 4, 5, 200, 2_800, 15_000], version: 0xfffe },
        HomaBody::Freeze,
        HomaBody::NeedAck,
        HomaBody::Ack { count: 2, others: [u64::MAX, 4, 0, 0, 0] },
    ];

    fn header(opcode: Opcode) -> Header {
        Header::new(opcode, Qpn::new(2), Psn::new(3))
    }

    #[test]
    fn each_type_is_decoded_as_encoded_and_has_its_length() {
        for body in BODIES {
            let homa = Homa { rpc: 0x0123_4567_89ab_cdee, body };
            let opcode = homa.opcode().unwrap_or(Opcode::SEND_ONLY);
            let encoded = homa.encode();
            assert_eq!(encoded.as_slice().len(), words(opcode), "{body:?}");
            assert_eq!(Homa::decode(&header(opcode), &encoded), Ok(homa));
        }
    }

    #[test]
    fn a_type_that_contradicts_the_opcode_is_refused() {
        let grant = Homa { rpc: 2, body: BODIES[1] }.encode();
        let refused = Err(PacketError::Homa { got: GRANT, words: 4 });
        assert_eq!(Homa::decode(&header(Opcode::HOMA_BUSY), &grant), refused);
        assert_eq!(Homa::decode(&header(Opcode::SEND_ONLY), &grant), refused);
        let nothing = Err(PacketError::Homa { got: 0, words: 0 });
        assert_eq!(Homa::decode(&header(Opcode::HOMA_BUSY), &LayoutWords::NONE), nothing);
    }
}
