//! Layout `irn`: what selective repeat needs to place packets out of order (IRN, SIGCOMM 2018, §5).
//!
//! Every WRITE packet has a RETH with its own address and the octets of the message from there on; a SEND says which
//! receive it consumes and where in it the payload goes; an acknowledgement names the packet that drew it. READ
//! responses have a PSN space of their own and are acknowledged by [`Opcode::READ_ACKNOWLEDGE`](crate::Opcode).

use crate::Header;
use roci_units::Psn;

/// Where the payload of a SEND goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendPosition {
    /// SEND sequence number, modulo 2²⁴: counts the messages that consume a receive (WRITEs with immediate do).
    pub ssn: u32,
    /// Octets of the message before this packet; a WRITE with immediate does not carry it.
    pub offset: u32,
}

impl Header {
    /// The position of a SEND or the number of a WRITE with immediate, in layouts `irn` and `ndp`.
    #[inline]
    pub const fn send_position(&self) -> SendPosition {
        let [ssn, offset, _] = self.layout_words();
        SendPosition { ssn: ssn & 0x00ff_ffff, offset }
    }

    /// Sets the position of a SEND or the number of a WRITE with immediate; the number is taken modulo 2²⁴.
    #[inline]
    pub const fn set_send_position(&mut self, position: SendPosition) {
        self.set_layout_word(0, position.ssn & 0x00ff_ffff);
        self.set_layout_word(1, position.offset);
    }

    /// The packet that drew this acknowledgement, in layout `irn`. The BTH's PSN is cumulative.
    #[inline]
    pub const fn trigger(&self) -> Psn {
        Psn::new(self.layout_words()[0])
    }

    /// Sets the packet that drew this acknowledgement.
    #[inline]
    pub const fn set_trigger(&mut self, psn: Psn) {
        self.set_layout_word(0, psn.get());
    }
}
