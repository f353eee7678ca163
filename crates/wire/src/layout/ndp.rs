//! Layout `ndp`: trimmed packets and pulls (NDP, SIGCOMM 2017).
//!
//! Every packet begins with a word of flags, which live in [`Flags`]: trimmed, first window, drained. Packets are
//! sprayed and overtake each other, so WRITEs and SENDs are placed as in layout `irn`. What goes from receiver to
//! sender (ACK, NAK, PULL) carries the pull counter and the next expected PSN. An ACK speaks for the one packet that
//! its BTH names; a NAK with "PSN sequence error" says that this packet arrived without its payload.

use crate::{Flags, Header};
use roci_units::Psn;

/// The flags that travel in this layout, and only in this one.
const CARRIED: Flags = Flags::TRIMMED.with(Flags::FIRST_WINDOW).with(Flags::DRAINED);

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

    /// Sets what an ACK, NAK or PULL grants.
    pub const fn set_pull(&mut self, pull: Pull) {
        self.set_layout_word(0, pull.counter);
        self.set_layout_word(1, pull.expected.get());
    }
}

/// The word of flags as emitted: T, W and D in its three uppermost bits.
pub(crate) const fn flag_word(flags: Flags) -> u32 {
    (flags.has(Flags::TRIMMED) as u32) << 31
        | (flags.has(Flags::FIRST_WINDOW) as u32) << 30
        | (flags.has(Flags::DRAINED) as u32) << 29
}

/// `flags` with those of the received `word`; reserved bits are ignored.
pub(crate) const fn with_flag_word(flags: Flags, word: u32) -> Flags {
    let mut flags = flags.without(CARRIED);
    if word >> 31 & 1 == 1 {
        flags = flags.with(Flags::TRIMMED);
    }
    if word >> 30 & 1 == 1 {
        flags = flags.with(Flags::FIRST_WINDOW);
    }
    if word >> 29 & 1 == 1 {
        flags = flags.with(Flags::DRAINED);
    }
    flags
}
