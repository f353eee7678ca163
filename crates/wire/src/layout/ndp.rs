//! Layout `ndp`: trimmed packets and pulls (NDP, SIGCOMM 2017).
//!
//! Every packet begins with a word of flags, which live in [`Flags`]: trimmed, first window, drained, returned; WRITEs,
//! SENDs and READ responses name the sending queue pair beside them. Packets are sprayed and overtake each other, so
//! WRITEs and SENDs are placed as in layout `irn`. What goes from receiver to sender (ACK, NAK, PULL) carries the pull
//! counter and the next expected PSN. An ACK speaks for the one packet that its BTH names; a NAK with "PSN sequence
//! error" says that this packet arrived without its payload.

use crate::{Flags, Header, Opcode, Shape};
use roci_units::{Psn, Qpn};

/// The flags that travel in this layout, and only in this one.
const CARRIED: Flags = Flags::TRIMMED.with(Flags::FIRST_WINDOW).with(Flags::DRAINED).with(Flags::RETURNED);

/// What a receiver grants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pull {
    /// Packets that the receiver has pulled since the connection began, modulo 2³²; cumulative, so a lost one costs
    /// nothing once the next arrives.
    pub counter: u32,
    /// The first PSN that has not arrived.
    pub expected: Psn,
}

impl Header {
    /// What an ACK, NAK or PULL grants, in layout `ndp`.
    pub const fn pull(&self) -> Pull {
        let [counter, expected, _] = self.layout_words();
        Pull { counter, expected: Psn::new(expected) }
    }

    /// The queue pair that sent this WRITE, SEND or READ response, in layout `ndp`; zero for other packets. A switch that
    /// sends a header back makes it the destination.
    pub const fn source_qpn(&self) -> Qpn {
        let [_, second, third] = self.layout_words();
        match (names_source(self.opcode), self.opcode.shape().has(Shape::SEND)) {
            (false, _) => Qpn::new(0),
            (true, true) => Qpn::new(third),
            (true, false) => Qpn::new(second),
        }
    }

    /// Sets the queue pair that sends a WRITE, SEND or READ response; nothing for other packets. [`set_send_position`] comes
    /// before.
    ///
    /// [`set_send_position`]: Header::set_send_position
    pub const fn set_source_qpn(&mut self, qpn: Qpn) {
        if names_source(self.opcode) {
            // A SEND has no RETH, whose length is elsewhere, and no packet but a SEND an offset.
            let place = if self.opcode.shape().has(Shape::SEND) { 2 } else { 1 };
            self.set_layout_word(place, qpn.get());
        }
    }

    /// Turns a trimmed header back to the queue pair that sent it, as a switch without room for headers does, which
    /// exchanges the addresses as well. False for a packet that is none or has been turned back before.
    pub fn turn_back(&mut self) -> bool {
        let source = self.source_qpn();
        if !self.flags.has(Flags::TRIMMED) || self.flags.has(Flags::RETURNED) || source == Qpn::new(0) {
            return false;
        }
        self.set_source_qpn(self.dest_qpn);
        self.dest_qpn = source;
        self.flags = self.flags.with(Flags::RETURNED);
        true
    }

    /// Sets what an ACK, NAK or PULL grants.
    pub const fn set_pull(&mut self, pull: Pull) {
        self.set_layout_word(0, pull.counter);
        self.set_layout_word(1, pull.expected.get());
    }
}

/// The flags and their bits in the word of flags.
const BITS: [(Flags, u32); 4] =
    [(Flags::TRIMMED, 31), (Flags::FIRST_WINDOW, 30), (Flags::DRAINED, 29), (Flags::RETURNED, 28)];

/// Whether packets with `opcode` name the queue pair that sends them: what can be trimmed and is then sent again.
const fn names_source(opcode: Opcode) -> bool {
    let shape = opcode.shape();
    shape.has(Shape::SEND)
        || shape.has(Shape::WRITE)
        || shape.has(Shape::RESPONSE) && shape.has(Shape::PAYLOAD)
}

/// The word of flags as emitted: T, W, D and R in its four uppermost bits, the sending queue pair in its lower 24.
pub(crate) fn flag_word(header: &Header) -> u32 {
    let flags = BITS.iter().map(|&(flag, bit)| u32::from(header.flags.has(flag)) << bit).sum::<u32>();
    flags | header.source_qpn().get()
}

/// Sets what the received `word` of flags says; reserved bits are ignored.
pub(crate) fn take_flag_word(header: &mut Header, word: u32) {
    header.flags = header.flags.without(CARRIED);
    for (flag, bit) in BITS {
        if word >> bit & 1 == 1 {
            header.flags = header.flags.with(flag);
        }
    }
    header.set_source_qpn(Qpn::new(word));
}
