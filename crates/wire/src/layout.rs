//! Header layouts: what a queue pair's packets carry besides the standard headers. `docs/wire.md` draws them.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`irn`] | an address in every WRITE, message numbers and offsets in SENDs, the PSN that drew a NAK |
//! | [`srnic`] | what a requester needs to find its request again, echoed |
//! | [`ndp`] | flags of trimming, the pull counter |
//! | [`homa`] | RPC id, message length, offset, grant and priority |
//! | [`cc`] | the congestion-control header: 0 to 64 octets for a law |
//! | [`int`] | in-band telemetry, packed, within the CC header |
//!
//! A layout's words follow the BTH at once, before RETH, AETH and the like, so that a switch finds them at one place
//! whatever the opcode is. What a recovery program needs (`irn`, `srnic`, `ndp`) lives in spare words of
//! [`Header`](crate::Header); what a law needs (`homa`, `cc`) travels beside it as [`LayoutWords`].

pub mod cc;
pub mod homa;
pub mod int;
pub mod irn;
pub mod ndp;
pub mod srnic;

pub use cc::Cc;

use crate::opcode::{Opcode, Shape};
use core::fmt;

/// The header layout of a queue pair, fixed when it is connected.
///
/// Which one it is has an octet of its own: were it folded into the CC header's, a caller would read two octets where one
/// was written just before, and wait for the memory between them; a hundredth and a half of an incast's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Layout {
    /// RoCEv2 as IBTA defines it.
    #[default]
    Standard,
    /// What selective repeat needs (IRN §5).
    Irn,
    /// Metadata of outstanding requests in the packets themselves (SRNIC §4.4.1).
    Srnic,
    /// Trimming and pulls (NDP).
    Ndp,
    /// Receiver-driven messages (Homa).
    Homa,
    /// A congestion-control header for a law (SwCC §4.3.1).
    Cc(Cc),
}

/// The RETH that a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RethForm {
    None,
    /// Address, key and length.
    Full,
    /// Address and key.
    Short,
}

impl Layout {
    /// Whether packets with `opcode` exist in this layout. The opcodes that IBTA defines exist in every one, but those of
    /// unreliable connections in the standard one alone.
    pub const fn permits(self, opcode: Opcode) -> bool {
        let own = match opcode.0 {
            0x20..0x40 => matches!(self, Self::Standard),
            0..0xc0 => true,
            0xc0 => !matches!(self, Self::Standard),
            0xc1 => matches!(self, Self::Ndp),
            0xd1..=0xd8 => matches!(self, Self::Homa),
            0xf8..=0xff => matches!(self, Self::Cc(_)),
            _ => false,
        };
        own && opcode.is_known()
    }

    /// How many of the header's spare words a packet with `opcode` carries, 0 to 3; see `docs/wire.md`.
    #[inline]
    pub const fn header_words(self, opcode: Opcode) -> usize {
        match self {
            Self::Standard | Self::Homa | Self::Cc(_) => 0,
            _ => self.spare_words(opcode),
        }
    }

    /// The same of the layouts that use them.
    const fn spare_words(self, opcode: Opcode) -> usize {
        if !extends(opcode) {
            return 0;
        }
        let shape = opcode.shape();
        let receives_with_write = shape.has(Shape::WRITE) && shape.has(Shape::IMMEDIATE);
        match self {
            Self::Irn | Self::Ndp if shape.has(Shape::SEND) => 2,
            Self::Irn | Self::Ndp if receives_with_write => 1,
            Self::Irn if is_acknowledgement(opcode) => 1,
            Self::Ndp if is_acknowledgement(opcode) || opcode.0 == Opcode::PULL.0 => 2,
            Self::Srnic if shape.has(Shape::ATOMIC) || shape.has(Shape::ATOMIC_ACK) => 0,
            Self::Srnic if is_acknowledgement(opcode) => 3,
            Self::Srnic => 2,
            _ => 0,
        }
    }

    /// Whether a packet with `opcode` carries `ndp`'s word of flags.
    pub(crate) const fn has_flag_word(self, opcode: Opcode) -> bool {
        matches!(self, Self::Ndp) && extends(opcode)
    }

    /// How many law words a packet with `opcode` carries, 0 to 16: those of `homa` and `cc`.
    #[inline]
    pub const fn law_words(self, opcode: Opcode) -> usize {
        match self {
            Self::Homa => homa::words(opcode),
            Self::Cc(cc) if extends(opcode) => cc.words(),
            _ => 0,
        }
    }

    /// Octets behind the BTH that switches may rewrite, and which therefore count as ones in the ICRC.
    pub const fn rewritable_len(self, opcode: Opcode) -> usize {
        match self {
            Self::Cc(_) => 4 * self.law_words(opcode),
            _ => 0,
        }
    }

    /// The word behind the BTH at which in-band telemetry begins, where packets have room for it.
    pub const fn int_at(self) -> Option<usize> {
        match self {
            Self::Cc(cc) if cc.has_int() => Some(0),
            _ => None,
        }
    }

    /// Octets of all headers between BTH and payload.
    #[inline]
    pub const fn extension_len(self, opcode: Opcode) -> usize {
        match self {
            Self::Standard => opcode.extension_len(),
            _ => self.extension_len_beyond(opcode),
        }
    }

    /// The same of the layouts that add to the standard one.
    const fn extension_len_beyond(self, opcode: Opcode) -> usize {
        let shape = opcode.shape();
        let reth = match self.reth(opcode) {
            RethForm::Full if !shape.has(Shape::RETH) => 16,
            RethForm::Short => 12,
            RethForm::Full | RethForm::None => 0,
        };
        let words = self.has_flag_word(opcode) as usize + self.header_words(opcode) + self.law_words(opcode);
        opcode.extension_len() + reth + 4 * words
    }

    /// The RETH of a packet with `opcode`: where packets may overtake each other, every WRITE has its own address.
    pub(crate) const fn reth(self, opcode: Opcode) -> RethForm {
        let shape = opcode.shape();
        match self {
            _ if shape.has(Shape::RETH) => RethForm::Full,
            Self::Irn | Self::Ndp | Self::Homa if shape.has(Shape::WRITE) => RethForm::Full,
            Self::Srnic if shape.has(Shape::WRITE) => RethForm::Short,
            _ => RethForm::None,
        }
    }
}

impl Layout {
    /// The two octets by which ends that agree on a layout name it; zeros for the standard one.
    pub const fn code(self) -> [u8; 2] {
        match self {
            Self::Standard => [0, 0],
            Self::Irn => [1, 0],
            Self::Srnic => [2, 0],
            Self::Ndp => [3, 0],
            Self::Homa => [4, 0],
            Self::Cc(cc) => [5, cc.code()],
        }
    }

    /// The layout with that name, or `None` where there is none.
    pub fn from_code([number, words]: [u8; 2]) -> Option<Self> {
        match number {
            0 => Some(Self::Standard),
            1 => Some(Self::Irn),
            2 => Some(Self::Srnic),
            3 => Some(Self::Ndp),
            4 => Some(Self::Homa),
            5 => Cc::from_code(words).map(Self::Cc),
            _ => None,
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standard => "standard",
            Self::Irn => "irn",
            Self::Srnic => "srnic",
            Self::Ndp => "ndp",
            Self::Homa => "homa",
            Self::Cc(cc) => return write!(f, "cc of {} words", cc.words()),
        })
    }
}

/// Layouts extend the packets of reliable connections and our own; never datagrams or CNPs, which are for any peer.
const fn extends(opcode: Opcode) -> bool {
    opcode.is_known() && (opcode.0 < 0x20 || opcode.0 >= 0xc0)
}

/// Whether it acknowledges packets by PSN. An atomic's acknowledgement is a result, of one packet and in order.
const fn is_acknowledgement(opcode: Opcode) -> bool {
    opcode.0 == Opcode::ACKNOWLEDGE.0 || opcode.0 == Opcode::READ_ACKNOWLEDGE.0
}

/// The words of a law's header (`homa`, `cc`): up to 16, each four octets, most significant first.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct LayoutWords {
    words: [u32; Self::MAX],
    len: u8,
}

impl LayoutWords {
    /// The most words that there can be: 64 octets.
    pub const MAX: usize = 16;
    /// No words.
    pub const NONE: Self = Self { words: [0; Self::MAX], len: 0 };

    /// `len` words of zero, at most [`LayoutWords::MAX`].
    #[expect(clippy::cast_possible_truncation, reason = "at most 16")]
    pub const fn zeroed(len: usize) -> Self {
        Self { words: [0; Self::MAX], len: if len < Self::MAX { len } else { Self::MAX } as u8 }
    }

    /// A copy of `words`, or `None` where they are more than [`LayoutWords::MAX`].
    pub fn new(words: &[u32]) -> Option<Self> {
        let mut copy = Self::zeroed(words.len());
        (words.len() <= Self::MAX).then(|| {
            copy.words[..words.len()].copy_from_slice(words);
            copy
        })
    }

    /// The words.
    pub fn as_slice(&self) -> &[u32] {
        &self.words[..usize::from(self.len)]
    }

    /// The words, to be changed in place.
    pub fn as_mut_slice(&mut self) -> &mut [u32] {
        &mut self.words[..usize::from(self.len)]
    }
}

impl fmt::Debug for LayoutWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}
