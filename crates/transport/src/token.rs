//! What a deferral's name says: whose it is, and what for.

use crate::arrival::Token;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Law,
    /// Placement of payload that the responder received.
    Inbound,
    /// Placement of READ data.
    Outbound,
    Recovery,
    Memory,
    /// The slow path of a responder with a gap.
    Gap,
    /// The same for READ responses.
    ReadGap,
    /// The slow path of a responder whose READ responses were lost.
    LostResponses,
    Unknown,
}

/// A token, taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenParts {
    /// The queue pair's place, 24 bits.
    pub(crate) slot: u32,
    /// Which of the queue pairs that were there.
    pub(crate) generation: u16,
    pub(crate) purpose: Purpose,
    /// Its number among those, 20 bits.
    pub(crate) number: u32,
}

impl TokenParts {
    pub(crate) fn write(self) -> Token {
        Token(
            u64::from(self.slot) << 40
                | u64::from(self.generation) << 24
                | (self.purpose as u64) << 20
                | u64::from(self.number),
        )
    }

    #[expect(clippy::cast_possible_truncation, reason = "each is masked or shifted to its width")]
    pub(crate) const fn read(token: Token) -> Self {
        let bits = token.0;
        Self {
            slot: (bits >> 40) as u32,
            generation: (bits >> 24) as u16,
            purpose: match bits >> 20 & 15 {
                0 => Purpose::Law,
                1 => Purpose::Inbound,
                2 => Purpose::Outbound,
                3 => Purpose::Recovery,
                4 => Purpose::Memory,
                5 => Purpose::Gap,
                6 => Purpose::ReadGap,
                7 => Purpose::LostResponses,
                _ => Purpose::Unknown,
            },
            number: bits as u32 & 0xf_ffff,
        }
    }
}
