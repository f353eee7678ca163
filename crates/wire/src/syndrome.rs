//! What an AETH says: the syndrome, and the RNR timer's code.

use core::fmt;
use roci_units::Span;

/// The meaning of an AETH's syndrome octet (IBTA Vol 1 §9.7.5.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syndrome {
    /// All up to this PSN arrived.
    Ack {
        /// End-to-end credit code, 5 bits; [`Syndrome::CREDITS_OFF`] where flow control is not in use.
        credits: u8,
    },
    /// Receiver not ready: come again after a time.
    RnrNak {
        /// Code of the time, 5 bits; [`rnr_delay`] translates it.
        timer: u8,
    },
    /// Refused.
    Nak(NakCode),
}

/// Why a request was refused (IBTA Vol 1 §9.7.5.2, NAK codes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum NakCode {
    /// A packet before this one is missing.
    PsnSequenceError = 0,
    /// The responder does not support or cannot take such a request.
    InvalidRequest = 1,
    /// A key, its bounds or its rights forbid the access.
    RemoteAccessError = 2,
    /// The responder failed while it carried out the request.
    RemoteOperationalError = 3,
    /// Reliable datagram only: the request names the wrong context.
    InvalidRdRequest = 4,
}

impl Syndrome {
    /// The credit code of a responder without end-to-end flow control.
    pub const CREDITS_OFF: u8 = 31;

    /// The receive requests that a credit code stands for (IBTA Vol 1 §9.7.7.2): 0 to 32768, each power of two and what lies half way to
    /// the next; `None` where flow control is not in use. Of `code` the lower five bits count.
    pub const fn credit_count(code: u8) -> Option<u32> {
        match code & 31 {
            Self::CREDITS_OFF => None,
            few @ ..=1 => Some(few as u32),
            code => Some((2 + (code as u32 & 1)) << (code / 2 - 1)),
        }
    }

    /// The largest credit code that stands for no more than `count` receive requests, 0 to 30; never [`CREDITS_OFF`](Self::CREDITS_OFF).
    pub const fn credit_code(count: u32) -> u8 {
        let code = match count {
            0 | 1 => count,
            // The highest bit, and the one below it.
            _ => 2 * count.ilog2() + (count >> (count.ilog2() - 1) & 1),
        };
        let bounded = if code < 30 { code } else { 30 };
        bounded.to_le_bytes()[0]
    }

    /// The meaning of `octet`, or `None` where it is reserved.
    pub const fn from_u8(octet: u8) -> Option<Self> {
        let low = octet & 31;
        match octet >> 5 {
            0 => Some(Self::Ack { credits: low }),
            1 => Some(Self::RnrNak { timer: low }),
            3 => match low {
                0 => Some(Self::Nak(NakCode::PsnSequenceError)),
                1 => Some(Self::Nak(NakCode::InvalidRequest)),
                2 => Some(Self::Nak(NakCode::RemoteAccessError)),
                3 => Some(Self::Nak(NakCode::RemoteOperationalError)),
                4 => Some(Self::Nak(NakCode::InvalidRdRequest)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Its octet; of credits and timer the lower five bits count.
    pub const fn to_u8(self) -> u8 {
        match self {
            Self::Ack { credits } => credits & 31,
            Self::RnrNak { timer } => 1 << 5 | timer & 31,
            Self::Nak(code) => 3 << 5 | code as u8,
        }
    }
}

impl fmt::Display for Syndrome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ack { .. } => f.write_str("ACK"),
            Self::RnrNak { timer } => write!(f, "RNR-NAK {}", rnr_delay(*timer)),
            Self::Nak(code) => write!(f, "NAK {code}"),
        }
    }
}

impl fmt::Display for NakCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PsnSequenceError => "psn-sequence-error",
            Self::InvalidRequest => "invalid-request",
            Self::RemoteAccessError => "remote-access-error",
            Self::RemoteOperationalError => "remote-operational-error",
            Self::InvalidRdRequest => "invalid-rd-request",
        })
    }
}

/// The time that each RNR timer code stands for, in units of 10 µs (IBTA Vol 1 §9.7.5.2.8).
const RNR_DELAY_10US: [u16; 31] = [
    1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096,
    6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

/// How long a requester waits at least after an RNR NAK with timer code `timer`, of which the lower five bits count.
///
/// Code 1 is 10 µs, and from there it grows by about √2 to 491.52 ms at code 31; code 0 is the longest, 655.36 ms.
pub const fn rnr_delay(timer: u8) -> Span {
    match timer & 31 {
        0 => Span::from_micros(655_360),
        code => Span::from_micros(RNR_DELAY_10US[code as usize - 1] as u64 * 10),
    }
}

/// The code of the shortest RNR timer that is at least `delay`; code 0 (655.36 ms) where `delay` is longer than all.
pub const fn rnr_timer(delay: Span) -> u8 {
    let mut code = 1;
    while code < 32 {
        if rnr_delay(code).as_ps() >= delay.as_ps() {
            return code;
        }
        code += 1;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_octets_seen_on_the_wire_mean_what_their_senders_meant() {
        let codes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 29, 30, 31, 32];
        let counts = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 24576, 32768];
        let counts = counts.map(Some).into_iter().chain([None, Some(0)]);
        assert!(codes.map(Syndrome::credit_count).into_iter().eq(counts), "credit codes");
        assert_eq!(Syndrome::from_u8(0x1f), Some(Syndrome::Ack { credits: Syndrome::CREDITS_OFF }));
        assert_eq!(Syndrome::from_u8(0x2c), Some(Syndrome::RnrNak { timer: 12 }));
        assert_eq!(Syndrome::from_u8(0x60), Some(Syndrome::Nak(NakCode::PsnSequenceError)));
        assert_eq!(Syndrome::from_u8(0x62), Some(Syndrome::Nak(NakCode::RemoteAccessError)));
    }

    #[test]
    fn a_credit_code_tells_of_no_more_receive_requests_than_there_are_and_the_next_of_more() {
        for count in (0..100_000).chain([u32::MAX]) {
            let code = Syndrome::credit_code(count);
            assert!(Syndrome::credit_count(code).unwrap() <= count, "{count}");
            assert!(Syndrome::credit_count(code + 1).is_none_or(|next| next > count), "{count}");
        }
    }

    #[test]
    fn every_octet_is_reserved_or_leads_back_to_itself() {
        let known = (0..=u8::MAX).filter(|&octet| {
            Syndrome::from_u8(octet).is_some_and(|syndrome| {
                assert_eq!(syndrome.to_u8(), octet);
                true
            })
        });
        assert_eq!(known.count(), 32 + 32 + 5);
    }

    #[test]
    fn rnr_timers_span_10_us_to_655_ms() {
        assert_eq!(rnr_delay(1), Span::from_micros(10));
        assert_eq!(rnr_delay(12), Span::from_micros(640));
        assert_eq!(rnr_delay(14), Span::from_micros(1_280));
        assert_eq!(rnr_delay(31), Span::from_micros(491_520));
        assert_eq!(rnr_delay(0), Span::from_micros(655_360));
        for code in 0..32 {
            assert_eq!(rnr_timer(rnr_delay(code)), code);
        }
        assert_eq!(rnr_timer(Span::from_micros(9)), 1);
        assert_eq!(rnr_timer(Span::from_micros(11)), 2);
        assert_eq!(rnr_timer(Span::from_secs(1)), 0);
    }
}
