//! BTH opcodes (IBTA Vol 1 §9.2, tables of operations) and what each implies.

use core::fmt;

/// A BTH opcode: transport service in the upper three bits, operation in the lower five.
///
/// Any octet is a value; [`Opcode::is_known`] tells whether RoCEv2 defines it for RC, UC or UD, it is a CNP, or
/// one of our own: those lie in the range 0xc0 to 0xff, which IBTA leaves to manufacturers, and each belongs to a header
/// layout ([`crate::layout::Layout::permits`]).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Opcode(pub u8);

/// What a packet with some opcode carries; one table entry of flags for each opcode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape(u16);

impl Shape {
    /// Begins a message.
    pub const FIRST: Self = Self(1);
    /// Ends a message.
    pub const LAST: Self = Self(2);
    /// May carry payload.
    pub const PAYLOAD: Self = Self(4);
    /// Carries a RETH.
    pub const RETH: Self = Self(8);
    /// Carries an AETH.
    pub const AETH: Self = Self(16);
    /// Carries an AtomicETH.
    pub const ATOMIC: Self = Self(32);
    /// Carries an AtomicAckETH.
    pub const ATOMIC_ACK: Self = Self(64);
    /// Carries immediate data.
    pub const IMMEDIATE: Self = Self(128);
    /// Carries an IETH.
    pub const INVALIDATE: Self = Self(256);
    /// Carries a DETH.
    pub const DATAGRAM: Self = Self(512);
    /// Travels from responder to requester.
    pub const RESPONSE: Self = Self(1024);
    /// Is defined at all.
    pub const KNOWN: Self = Self(2048);
    /// Belongs to a SEND.
    pub const SEND: Self = Self(4096);
    /// Belongs to a WRITE.
    pub const WRITE: Self = Self(8192);
    /// Carries a CNP's 16 reserved octets.
    pub const NOTIFICATION: Self = Self(16384);
    /// Is neither the requester's nor the responder's, but the port agent's or the law's.
    pub const AGENT: Self = Self(32768);

    const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other`'s flags are set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Octets of the extension headers between the BTH and the payload.
    const fn extension_len(self) -> usize {
        let mut len = 0;
        if self.has(Self::DATAGRAM) {
            len += 8;
        }
        if self.has(Self::RETH) {
            len += 16;
        }
        if self.has(Self::AETH) {
            len += 4;
        }
        if self.has(Self::ATOMIC) {
            len += 28;
        }
        if self.has(Self::ATOMIC_ACK) {
            len += 8;
        }
        if self.has(Self::IMMEDIATE) || self.has(Self::INVALIDATE) {
            len += 4;
        }
        if self.has(Self::NOTIFICATION) {
            len += 16;
        }
        len
    }
}

impl Opcode {
    #![allow(missing_docs, reason = "the names are those of the standard's table")]
    pub const SEND_FIRST: Self = Self(0x00);
    pub const SEND_MIDDLE: Self = Self(0x01);
    pub const SEND_LAST: Self = Self(0x02);
    pub const SEND_LAST_IMMEDIATE: Self = Self(0x03);
    pub const SEND_ONLY: Self = Self(0x04);
    pub const SEND_ONLY_IMMEDIATE: Self = Self(0x05);
    pub const WRITE_FIRST: Self = Self(0x06);
    pub const WRITE_MIDDLE: Self = Self(0x07);
    pub const WRITE_LAST: Self = Self(0x08);
    pub const WRITE_LAST_IMMEDIATE: Self = Self(0x09);
    pub const WRITE_ONLY: Self = Self(0x0a);
    pub const WRITE_ONLY_IMMEDIATE: Self = Self(0x0b);
    pub const READ_REQUEST: Self = Self(0x0c);
    pub const READ_RESPONSE_FIRST: Self = Self(0x0d);
    pub const READ_RESPONSE_MIDDLE: Self = Self(0x0e);
    pub const READ_RESPONSE_LAST: Self = Self(0x0f);
    pub const READ_RESPONSE_ONLY: Self = Self(0x10);
    pub const ACKNOWLEDGE: Self = Self(0x11);
    pub const ATOMIC_ACKNOWLEDGE: Self = Self(0x12);
    pub const COMPARE_SWAP: Self = Self(0x13);
    pub const FETCH_ADD: Self = Self(0x14);
    pub const SEND_LAST_INVALIDATE: Self = Self(0x16);
    pub const SEND_ONLY_INVALIDATE: Self = Self(0x17);
    pub const UC_SEND_FIRST: Self = Self(0x20);
    pub const UC_SEND_MIDDLE: Self = Self(0x21);
    pub const UC_SEND_LAST: Self = Self(0x22);
    pub const UC_SEND_LAST_IMMEDIATE: Self = Self(0x23);
    pub const UC_SEND_ONLY: Self = Self(0x24);
    pub const UC_SEND_ONLY_IMMEDIATE: Self = Self(0x25);
    pub const UC_WRITE_FIRST: Self = Self(0x26);
    pub const UC_WRITE_MIDDLE: Self = Self(0x27);
    pub const UC_WRITE_LAST: Self = Self(0x28);
    pub const UC_WRITE_LAST_IMMEDIATE: Self = Self(0x29);
    pub const UC_WRITE_ONLY: Self = Self(0x2a);
    pub const UC_WRITE_ONLY_IMMEDIATE: Self = Self(0x2b);
    pub const UD_SEND_ONLY: Self = Self(0x64);
    pub const UD_SEND_ONLY_IMMEDIATE: Self = Self(0x65);
    /// The RoCEv2 congestion notification packet (IBTA Annex A17.9.3).
    pub const CNP: Self = Self(0x81);
    /// Acknowledges READ responses, which have a PSN space of their own; from requester to responder.
    pub const READ_ACKNOWLEDGE: Self = Self(0xc0);
    /// NDP: the receiver lets the sender send more.
    pub const PULL: Self = Self(0xc1);
    pub const HOMA_GRANT: Self = Self(0xd1);
    pub const HOMA_RESEND: Self = Self(0xd2);
    pub const HOMA_RPC_UNKNOWN: Self = Self(0xd3);
    pub const HOMA_BUSY: Self = Self(0xd4);
    pub const HOMA_CUTOFFS: Self = Self(0xd5);
    pub const HOMA_FREEZE: Self = Self(0xd6);
    pub const HOMA_NEED_ACK: Self = Self(0xd7);
    pub const HOMA_ACK: Self = Self(0xd8);
    /// The first of the eight types, up to 0xff, that a congestion-control law may define for itself.
    pub const LAW_FIRST: Self = Self(0xf8);

    /// What a packet with this opcode carries.
    #[inline]
    pub const fn shape(self) -> Shape {
        SHAPES[self.0 as usize]
    }

    /// Octets of the extension headers that such a packet has between BTH and payload in the standard layout.
    #[inline]
    pub const fn extension_len(self) -> usize {
        EXTENSIONS[self.0 as usize] as usize
    }

    /// Whether it belongs to an unreliable connection: the operation of a SEND or WRITE of a reliable one, with another
    /// service in the upper three bits.
    #[inline]
    pub const fn is_unreliable_connection(self) -> bool {
        self.0 >= Self::UC_SEND_FIRST.0 && self.0 <= Self::UC_WRITE_ONLY_IMMEDIATE.0
    }

    /// Whether RoCEv2 defines it for RC, UC or UD, it is a CNP, or it is one of our own.
    pub const fn is_known(self) -> bool {
        self.shape().has(Shape::KNOWN)
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            0x00 => "SEND_FIRST",
            0x01 => "SEND_MIDDLE",
            0x02 => "SEND_LAST",
            0x03 => "SEND_LAST_IMMEDIATE",
            0x04 => "SEND_ONLY",
            0x05 => "SEND_ONLY_IMMEDIATE",
            0x06 => "WRITE_FIRST",
            0x07 => "WRITE_MIDDLE",
            0x08 => "WRITE_LAST",
            0x09 => "WRITE_LAST_IMMEDIATE",
            0x0a => "WRITE_ONLY",
            0x0b => "WRITE_ONLY_IMMEDIATE",
            0x0c => "READ_REQUEST",
            0x0d => "READ_RESPONSE_FIRST",
            0x0e => "READ_RESPONSE_MIDDLE",
            0x0f => "READ_RESPONSE_LAST",
            0x10 => "READ_RESPONSE_ONLY",
            0x11 => "ACKNOWLEDGE",
            0x12 => "ATOMIC_ACKNOWLEDGE",
            0x13 => "COMPARE_SWAP",
            0x14 => "FETCH_ADD",
            0x16 => "SEND_LAST_INVALIDATE",
            0x17 => "SEND_ONLY_INVALIDATE",
            0x20 => "UC_SEND_FIRST",
            0x21 => "UC_SEND_MIDDLE",
            0x22 => "UC_SEND_LAST",
            0x23 => "UC_SEND_LAST_IMMEDIATE",
            0x24 => "UC_SEND_ONLY",
            0x25 => "UC_SEND_ONLY_IMMEDIATE",
            0x26 => "UC_WRITE_FIRST",
            0x27 => "UC_WRITE_MIDDLE",
            0x28 => "UC_WRITE_LAST",
            0x29 => "UC_WRITE_LAST_IMMEDIATE",
            0x2a => "UC_WRITE_ONLY",
            0x2b => "UC_WRITE_ONLY_IMMEDIATE",
            0x64 => "UD_SEND_ONLY",
            0x65 => "UD_SEND_ONLY_IMMEDIATE",
            0x81 => "CNP",
            0xc0 => "READ_ACKNOWLEDGE",
            0xc1 => "PULL",
            0xd1 => "HOMA_GRANT",
            0xd2 => "HOMA_RESEND",
            0xd3 => "HOMA_RPC_UNKNOWN",
            0xd4 => "HOMA_BUSY",
            0xd5 => "HOMA_CUTOFFS",
            0xd6 => "HOMA_FREEZE",
            0xd7 => "HOMA_NEED_ACK",
            0xd8 => "HOMA_ACK",
            law @ 0xf8..=0xff => return write!(f, "LAW_{}", law - 0xf8),
            other => return write!(f, "opcode {other:#04x}"),
        };
        f.write_str(name)
    }
}

const SHAPES: [Shape; 256] = {
    use Shape as S;
    let mut table = [Shape(0); 256];
    let entries = [
        (Opcode::SEND_FIRST, S::SEND.with(S::FIRST).with(S::PAYLOAD)),
        (Opcode::SEND_MIDDLE, S::SEND.with(S::PAYLOAD)),
        (Opcode::SEND_LAST, S::SEND.with(S::LAST).with(S::PAYLOAD)),
        (Opcode::SEND_LAST_IMMEDIATE, S::SEND.with(S::LAST).with(S::PAYLOAD).with(S::IMMEDIATE)),
        (Opcode::SEND_ONLY, S::SEND.with(S::FIRST).with(S::LAST).with(S::PAYLOAD)),
        (
            Opcode::SEND_ONLY_IMMEDIATE,
            S::SEND.with(S::FIRST).with(S::LAST).with(S::PAYLOAD).with(S::IMMEDIATE),
        ),
        (Opcode::WRITE_FIRST, S::WRITE.with(S::FIRST).with(S::PAYLOAD).with(S::RETH)),
        (Opcode::WRITE_MIDDLE, S::WRITE.with(S::PAYLOAD)),
        (Opcode::WRITE_LAST, S::WRITE.with(S::LAST).with(S::PAYLOAD)),
        (Opcode::WRITE_LAST_IMMEDIATE, S::WRITE.with(S::LAST).with(S::PAYLOAD).with(S::IMMEDIATE)),
        (Opcode::WRITE_ONLY, S::WRITE.with(S::FIRST).with(S::LAST).with(S::PAYLOAD).with(S::RETH)),
        (
            Opcode::WRITE_ONLY_IMMEDIATE,
            S::WRITE.with(S::FIRST).with(S::LAST).with(S::PAYLOAD).with(S::RETH).with(S::IMMEDIATE),
        ),
        (Opcode::READ_REQUEST, S::FIRST.with(S::LAST).with(S::RETH)),
        (Opcode::READ_RESPONSE_FIRST, S::RESPONSE.with(S::FIRST).with(S::PAYLOAD).with(S::AETH)),
        (Opcode::READ_RESPONSE_MIDDLE, S::RESPONSE.with(S::PAYLOAD)),
        (Opcode::READ_RESPONSE_LAST, S::RESPONSE.with(S::LAST).with(S::PAYLOAD).with(S::AETH)),
        (Opcode::READ_RESPONSE_ONLY, S::RESPONSE.with(S::FIRST).with(S::LAST).with(S::PAYLOAD).with(S::AETH)),
        (Opcode::ACKNOWLEDGE, S::RESPONSE.with(S::AETH)),
        (Opcode::ATOMIC_ACKNOWLEDGE, S::RESPONSE.with(S::AETH).with(S::ATOMIC_ACK)),
        (Opcode::COMPARE_SWAP, S::FIRST.with(S::LAST).with(S::ATOMIC)),
        (Opcode::FETCH_ADD, S::FIRST.with(S::LAST).with(S::ATOMIC)),
        (Opcode::SEND_LAST_INVALIDATE, S::SEND.with(S::LAST).with(S::PAYLOAD).with(S::INVALIDATE)),
        (
            Opcode::SEND_ONLY_INVALIDATE,
            S::SEND.with(S::FIRST).with(S::LAST).with(S::PAYLOAD).with(S::INVALIDATE),
        ),
        (Opcode::UD_SEND_ONLY, S::SEND.with(S::FIRST).with(S::LAST).with(S::PAYLOAD).with(S::DATAGRAM)),
        (
            Opcode::UD_SEND_ONLY_IMMEDIATE,
            S::SEND.with(S::FIRST).with(S::LAST).with(S::PAYLOAD).with(S::DATAGRAM).with(S::IMMEDIATE),
        ),
        (Opcode::CNP, S::RESPONSE.with(S::NOTIFICATION)),
        (Opcode::READ_ACKNOWLEDGE, S::AETH),
        (Opcode::PULL, S::AGENT),
    ];
    let mut i = 0;
    while i < entries.len() {
        table[entries[i].0.0 as usize] = entries[i].1.with(S::KNOWN);
        i += 1;
    }
    // An unreliable connection's SENDs and WRITEs carry what a reliable one's do.
    let mut connected = Opcode::UC_SEND_FIRST;
    while connected.is_unreliable_connection() {
        table[connected.0 as usize] = table[(connected.0 - Opcode::UC_SEND_FIRST.0) as usize];
        connected.0 += 1;
    }
    // The packets of Homa and of laws carry nothing but their layout's words.
    let mut agent = Opcode::HOMA_GRANT.0;
    while agent <= Opcode::HOMA_ACK.0 {
        table[agent as usize] = S::AGENT.with(S::KNOWN);
        agent += 1;
    }
    let mut law = Opcode::LAW_FIRST.0 as usize;
    while law < table.len() {
        table[law] = S::AGENT.with(S::KNOWN);
        law += 1;
    }
    table
};

/// [`Shape::extension_len`] of every opcode.
const EXTENSIONS: [u8; 256] = {
    let mut table = [0; 256];
    let mut code = 0;
    while code < table.len() {
        #[expect(clippy::cast_possible_truncation, reason = "at most 60")]
        {
            table[code] = SHAPES[code].extension_len() as u8;
        }
        code += 1;
    }
    table
};
