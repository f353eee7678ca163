//! Layout `srnic`: each packet carries what its requester needs to find the request again (SRNIC, NSDI 2023, §4.4.1).
//!
//! Responses echo it, so the requester keeps no table of outstanding packets. WRITEs in the middle and at the end
//! have a short RETH (address and key) besides, which makes the 8 to 20 octets that the paper counts.

use crate::Header;
use roci_units::Psn;

/// Which request a packet belongs to, and where in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestPosition {
    /// Message sequence number, modulo 2²⁴: which work request at the requester.
    pub msn: u32,
    /// PSN_OFFSET, modulo 2²⁴: packets of the message before this one.
    pub psn_offset: u32,
    /// SEND sequence number, modulo 2¹⁶: which receive at the responder. Fewer than 2¹⁵ may be outstanding.
    pub ssn: u16,
}

impl Header {
    /// Which request this packet belongs to, in layout `srnic`; a response echoes it.
    #[expect(clippy::cast_possible_truncation, reason = "each is masked by its shift")]
    pub const fn request_position(&self) -> RequestPosition {
        let [first, second, _] = self.layout_words();
        RequestPosition {
            msn: second & 0x00ff_ffff,
            psn_offset: first & 0x00ff_ffff,
            ssn: (first >> 24 << 8 | second >> 24) as u16,
        }
    }

    /// Sets which request this packet belongs to.
    pub const fn set_request_position(&mut self, position: RequestPosition) {
        let ssn = position.ssn as u32;
        self.set_layout_word(0, ssn >> 8 << 24 | position.psn_offset & 0x00ff_ffff);
        self.set_layout_word(1, ssn << 24 | position.msn & 0x00ff_ffff);
    }

    /// The packet that drew this acknowledgement, in layout `srnic`. The BTH's PSN is cumulative.
    pub const fn echoed_psn(&self) -> Psn {
        Psn::new(self.layout_words()[2])
    }

    /// Sets the packet that drew this acknowledgement.
    pub const fn set_echoed_psn(&mut self, psn: Psn) {
        self.set_layout_word(2, psn.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Opcode;
    use proptest::prelude::*;
    use roci_units::Qpn;

    proptest! {
        #[test]
        fn a_position_is_read_as_written(msn in 0u32..1 << 24, psn_offset in 0u32..1 << 24, ssn: u16, psn in 0u32..1 << 24) {
            let mut header = Header::new(Opcode::ACKNOWLEDGE, Qpn::new(1), Psn::new(2));
            let position = RequestPosition { msn, psn_offset, ssn };
            header.set_request_position(position);
            header.set_echoed_psn(Psn::new(psn));
            prop_assert_eq!(header.request_position(), position);
            prop_assert_eq!(header.echoed_psn(), Psn::new(psn));
        }
    }
}
