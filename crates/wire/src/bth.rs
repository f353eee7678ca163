//! The base transport header and the extension headers, as views.

use crate::octets::{be16, be24, be32, be64, view};
use crate::{Aeth, AtomicEth, Deth, Flags, Opcode, Reth};
use roci_units::{Psn, Qpn};

/// The default partition key, full member; RoCEv2 knows no other here.
pub const DEFAULT_PKEY: u16 = 0xffff;

view! {
    /// The base transport header (IBTA Vol 1 §9.2).
    BthView, 12
}

impl BthView<'_> {
    /// What kind of packet it is.
    pub const fn opcode(&self) -> Opcode {
        Opcode(self.0[0])
    }

    /// SE, A, F and B. The migration bit is not among them: RoCEv2 has no automatic path migration.
    pub const fn flags(&self) -> Flags {
        let mut flags = Flags::NONE;
        if self.0[1] & 0x80 != 0 {
            flags = flags.with(Flags::SOLICITED);
        }
        if self.0[4] & 0x80 != 0 {
            flags = flags.with(Flags::FECN);
        }
        if self.0[4] & 0x40 != 0 {
            flags = flags.with(Flags::BECN);
        }
        if self.0[8] & 0x80 != 0 {
            flags = flags.with(Flags::ACK_REQUEST);
        }
        flags
    }

    /// Octets of pad between payload and ICRC, 0 to 3.
    pub const fn pad(&self) -> u8 {
        self.0[1] >> 4 & 3
    }

    /// Transport header version; 0.
    pub const fn version(&self) -> u8 {
        self.0[1] & 15
    }

    /// Partition key, whose highest bit tells a full member; 0xFFFF, the default one, in all that we send.
    pub const fn pkey(&self) -> u16 {
        be16(self.0, 2)
    }

    /// The queue pair that the packet is for.
    pub const fn dest_qpn(&self) -> Qpn {
        Qpn::new(be24(self.0, 5))
    }

    /// Packet sequence number.
    pub const fn psn(&self) -> Psn {
        Psn::new(be24(self.0, 9))
    }
}

view! {
    /// RDMA extended transport header (IBTA Vol 1 §9.3).
    RethView, 16
}

impl RethView<'_> {
    /// Its fields.
    pub const fn get(&self) -> Reth {
        Reth { va: be64(self.0, 0), rkey: be32(self.0, 8), length: be32(self.0, 12) }
    }
}

view! {
    /// The short RETH of layout `srnic`: address and key without length.
    ShortRethView, 12
}

impl ShortRethView<'_> {
    /// Its fields; the length is 0.
    pub const fn get(&self) -> Reth {
        Reth { va: be64(self.0, 0), rkey: be32(self.0, 8), length: 0 }
    }
}

view! {
    /// Acknowledge extended transport header (IBTA Vol 1 §9.3).
    AethView, 4
}

impl AethView<'_> {
    /// Its fields.
    pub const fn get(&self) -> Aeth {
        Aeth { syndrome: self.0[0], msn: be24(self.0, 1) }
    }
}

view! {
    /// Atomic extended transport header (IBTA Vol 1 §9.3).
    AtomicEthView, 28
}

impl AtomicEthView<'_> {
    /// Its fields.
    pub const fn get(&self) -> AtomicEth {
        AtomicEth {
            va: be64(self.0, 0),
            rkey: be32(self.0, 8),
            swap_or_add: be64(self.0, 12),
            compare: be64(self.0, 20),
        }
    }
}

view! {
    /// Atomic acknowledge extended transport header (IBTA Vol 1 §9.3).
    AtomicAckEthView, 8
}

impl AtomicAckEthView<'_> {
    /// The value before the operation.
    pub const fn original(&self) -> u64 {
        be64(self.0, 0)
    }
}

view! {
    /// Immediate data (ImmDt) or the key to invalidate (IETH), IBTA Vol 1 §9.3.
    ImmediateView, 4
}

impl ImmediateView<'_> {
    /// The immediate data or the key.
    pub const fn value(&self) -> u32 {
        be32(self.0, 0)
    }
}

view! {
    /// Datagram extended transport header (IBTA Vol 1 §9.3).
    DethView, 8
}

impl DethView<'_> {
    /// Its fields.
    pub const fn get(&self) -> Deth {
        Deth { q_key: be32(self.0, 0), source_qpn: Qpn::new(be24(self.0, 5)) }
    }
}

view! {
    /// The sixteen reserved octets of a CNP (IBTA Annex A17.9.3).
    CnpView, 16
}
