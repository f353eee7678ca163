//! The transport headers of one packet as values: what the engine makes and reads, in both worlds.
//!
//! A simulated packet *is* one of these and a length; a real one is parsed into it and emitted from it. It takes
//! 40 octets, so that a simulated packet with its place in the fabric fits one cache line.

use crate::opcode::Opcode;
use roci_units::{Psn, Qpn};

/// BTH and extension headers (IBTA Vol 1 §9.2 to §9.3) of one packet.
///
/// Which of the extension fields mean anything follows from [`Opcode::shape`]; the accessors say for which they
/// are. A field that the opcode does not carry is not emitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// BTH: the queue pair that the packet is for.
    pub dest_qpn: Qpn,
    /// BTH: packet sequence number.
    pub psn: Psn,
    /// BTH: opcode.
    pub opcode: Opcode,
    /// BTH: one-bit fields; also what a simulated switch did to the packet.
    pub flags: Flags,
    /// Octets of payload, pad excluded; at most 4096. Not a field on the wire: it follows from the length.
    pub payload: u16,
    /// The extension headers' words, by accessor.
    extension: [u32; 7],
}

const _: () =
    assert!(size_of::<Header>() == 40, "a simulated packet with its place in the fabric fits one line");

/// The one-bit fields of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// None is set.
    pub const NONE: Self = Self(0);
    /// BTH A: the requester asks for an acknowledgement.
    pub const ACK_REQUEST: Self = Self(1);
    /// BTH SE: solicited event.
    pub const SOLICITED: Self = Self(2);
    /// BTH B (BECN), set in each CNP and in the ACK of a packet that carried CE.
    pub const BECN: Self = Self(4);
    /// BTH F (FECN), set in a CNP's BTH by convention of some devices; ignored on receipt.
    pub const FECN: Self = Self(8);
    /// A switch cut the payload off; on the wire in layout `ndp` alone.
    pub const TRIMMED: Self = Self(16);
    /// Belongs to the first window, which nothing paces; on the wire in layout `ndp` alone.
    pub const FIRST_WINDOW: Self = Self(32);
    /// The sender has nothing more to send, so nothing more need be pulled; on the wire in layout `ndp` alone.
    pub const DRAINED: Self = Self(64);
    /// A switch that had no room for the header either sent it back; on the wire in layout `ndp` alone.
    pub const RETURNED: Self = Self(128);

    /// Whether all of `other`'s bits are set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and `other`'s.
    #[must_use]
    #[inline]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These without `other`'s.
    #[must_use]
    #[inline]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// RDMA extended transport header: where a WRITE goes or a READ comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reth {
    /// Virtual address at the responder.
    pub va: u64,
    /// The responder's memory key.
    pub rkey: u32,
    /// Octets of the whole message.
    pub length: u32,
}

/// Atomic extended transport header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtomicEth {
    /// Virtual address at the responder, a multiple of 8.
    pub va: u64,
    /// The responder's memory key.
    pub rkey: u32,
    /// What to swap in, or to add.
    pub swap_or_add: u64,
    /// What to compare with; unused by FETCH-ADD.
    pub compare: u64,
}

/// Acknowledge extended transport header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aeth {
    /// ACK with credit count, RNR NAK with timer, or NAK with code (IBTA Vol 1 §9.7.5.1.2).
    pub syndrome: u8,
    /// Message sequence number, 24 bits.
    pub msn: u32,
}

/// Datagram extended transport header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deth {
    /// Queue key.
    pub q_key: u32,
    /// The sending queue pair.
    pub source_qpn: Qpn,
}

const fn high(value: u64) -> u32 {
    (value >> 32) as u32
}

#[expect(clippy::cast_possible_truncation, reason = "the lower word is meant")]
const fn low(value: u64) -> u32 {
    value as u32
}

const fn join(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

impl Header {
    /// A header without extension fields.
    pub const fn new(opcode: Opcode, dest_qpn: Qpn, psn: Psn) -> Self {
        Self { dest_qpn, psn, opcode, flags: Flags::NONE, payload: 0, extension: [0; 7] }
    }

    /// A CNP to `dest_qpn` (IBTA annex A17): it bears BECN, and neither a number nor more fields.
    pub const fn cnp(dest_qpn: Qpn) -> Self {
        let cnp = Self::new(Opcode::CNP, dest_qpn, Psn::new(0));
        Self { flags: Flags::BECN, ..cnp }
    }

    /// The RETH of a WRITE's first packet or a READ request.
    #[inline]
    pub const fn reth(&self) -> Reth {
        let w = &self.extension;
        Reth { va: join(w[1], w[0]), rkey: w[2], length: w[3] }
    }

    /// Sets the RETH.
    #[inline]
    pub const fn set_reth(&mut self, reth: Reth) {
        self.extension[0] = low(reth.va);
        self.extension[1] = high(reth.va);
        self.extension[2] = reth.rkey;
        self.extension[3] = reth.length;
    }

    /// The AtomicETH of an atomic request.
    pub const fn atomic(&self) -> AtomicEth {
        let w = &self.extension;
        AtomicEth {
            va: join(w[1], w[0]),
            rkey: w[2],
            swap_or_add: join(w[3], w[4]),
            compare: join(w[5], w[6]),
        }
    }

    /// Sets the AtomicETH.
    pub const fn set_atomic(&mut self, atomic: AtomicEth) {
        self.extension = [
            low(atomic.va),
            high(atomic.va),
            atomic.rkey,
            high(atomic.swap_or_add),
            low(atomic.swap_or_add),
            high(atomic.compare),
            low(atomic.compare),
        ];
    }

    /// The AETH of a response.
    #[inline]
    pub const fn aeth(&self) -> Aeth {
        Aeth { syndrome: (self.extension[0] >> 24) as u8, msn: self.extension[0] & 0x00ff_ffff }
    }

    /// Sets the AETH; the MSN is taken modulo 2²⁴.
    #[inline]
    pub const fn set_aeth(&mut self, aeth: Aeth) {
        self.extension[0] = (aeth.syndrome as u32) << 24 | (aeth.msn & 0x00ff_ffff);
    }

    /// The original value in an atomic's acknowledgement.
    pub const fn atomic_ack(&self) -> u64 {
        join(self.extension[1], self.extension[2])
    }

    /// Sets the original value of an atomic's acknowledgement.
    pub const fn set_atomic_ack(&mut self, original: u64) {
        self.extension[1] = high(original);
        self.extension[2] = low(original);
    }

    /// The immediate data, or the key to invalidate (IETH), of a message's last packet.
    #[inline]
    pub const fn immediate(&self) -> u32 {
        self.extension[4]
    }

    /// Sets the immediate data or the key to invalidate.
    #[inline]
    pub const fn set_immediate(&mut self, value: u32) {
        self.extension[4] = value;
    }

    /// The words that layouts `irn`, `srnic` and `ndp` keep in the header, in the order of emission.
    ///
    /// They share their places with the DETH and with the RETH's length, which no packet has that has them.
    pub(crate) const fn layout_words(&self) -> [u32; 3] {
        [self.extension[5], self.extension[6], self.extension[3]]
    }

    /// Sets word `index` (below 3) of those.
    #[inline]
    pub(crate) const fn set_layout_word(&mut self, index: usize, word: u32) {
        self.extension[[5, 6, 3][index]] = word;
    }

    /// The DETH of a datagram.
    pub const fn deth(&self) -> Deth {
        Deth { q_key: self.extension[5], source_qpn: Qpn::new(self.extension[6]) }
    }

    /// Sets the DETH.
    pub const fn set_deth(&mut self, deth: Deth) {
        self.extension[5] = deth.q_key;
        self.extension[6] = deth.source_qpn.get();
    }
}
