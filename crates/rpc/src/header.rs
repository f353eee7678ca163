//! What stands before the payload of each SEND; `docs/wire.md` draws it.

use crate::server::Return;
use roci_units::Span;

/// Octets before the payload of each packet of a request: as many as eRPC's packet header has.
pub const REQUEST_HEADER: u32 = 16;
/// Octets before the payload of a response, and those of a packet that returns credits alone: the same, and what [`Return`] says.
pub const RETURN_HEADER: u32 = 32;

/// First octet of a packet of a request,
const REQUEST: u8 = 1;
/// and of a response or of credits.
const RETURN: u8 = 2;

/// Flag of a request's last packet.
const LAST: u8 = 1;
/// Flags of what returns: a response follows, the receiver has nothing to do, lines were lost from the cache.
const ANSWERS: u8 = 1;
const IDLE: u8 = 2;
const PRESSED: u8 = 4;

/// Why octets are none of these headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// They end before the header does.
    #[error("{got} octets, but the header takes {need}")]
    Truncated {
        /// Octets that there are.
        got: usize,
        /// Octets that the header takes.
        need: u32,
    },
    /// The first octet names another header.
    #[error("a header of kind {got}, not {need}")]
    Kind {
        /// The first octet.
        got: u8,
        /// What it should be.
        need: u8,
    },
}

/// Before the payload of each packet of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Which request of the connection it belongs to, from 0.
    pub request: u64,
    /// Its place in the request, from 0.
    pub number: u32,
    /// Whether the request ends with it.
    pub last: bool,
}

impl RequestHeader {
    /// Its octets.
    pub fn emit(&self) -> [u8; REQUEST_HEADER as usize] {
        let mut octets = [0; REQUEST_HEADER as usize];
        octets[0] = REQUEST;
        octets[1] = if self.last { LAST } else { 0 };
        octets[4..8].copy_from_slice(&self.number.to_be_bytes());
        octets[8..].copy_from_slice(&self.request.to_be_bytes());
        octets
    }

    /// The header that `octets` begin with, and what follows it. Reserved bits are ignored.
    ///
    /// # Errors
    /// [`HeaderError`] when they are too few, or begin with another header.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), HeaderError> {
        let (header, payload) = split::<{ REQUEST_HEADER as usize }>(octets, REQUEST)?;
        let it = Self {
            request: u64::from_be_bytes(part(header, 8)),
            number: u32::from_be_bytes(part(header, 4)),
            last: header[1] & LAST != 0,
        };
        Ok((it, payload))
    }
}

/// Before the payload of a response, and by itself where credits return alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnHeader {
    /// The request whose response follows; `None`: credits alone.
    pub answers: Option<u64>,
    /// The credits. On the wire its times are whole nanoseconds, at most 2³² − 1 of them.
    pub credits: Return,
}

impl ReturnHeader {
    /// Its octets.
    pub fn emit(&self) -> [u8; RETURN_HEADER as usize] {
        let Return { packets, lines, service, residence, idle, pressed } = self.credits;
        let nanos = |span: Span| u32::try_from(span.as_ps() / 1000).unwrap_or(u32::MAX);
        let flag = |set, flag| if set { flag } else { 0 };
        let mut octets = [0; RETURN_HEADER as usize];
        octets[0] = RETURN;
        octets[1] = flag(self.answers.is_some(), ANSWERS) | flag(idle, IDLE) | flag(pressed, PRESSED);
        for (word, value) in
            octets[4..20].chunks_exact_mut(4).zip([packets, lines, nanos(service), nanos(residence)])
        {
            word.copy_from_slice(&value.to_be_bytes());
        }
        octets[24..].copy_from_slice(&self.answers.unwrap_or(0).to_be_bytes());
        octets
    }

    /// The header that `octets` begin with, and what follows it. Reserved bits are ignored.
    ///
    /// # Errors
    /// [`HeaderError`] when they are too few, or begin with another header.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), HeaderError> {
        let (header, payload) = split::<{ RETURN_HEADER as usize }>(octets, RETURN)?;
        let word = |at| u32::from_be_bytes(part(header, at));
        let credits = Return {
            packets: word(4),
            lines: word(8),
            service: Span::from_nanos(word(12).into()),
            residence: Span::from_nanos(word(16).into()),
            idle: header[1] & IDLE != 0,
            pressed: header[1] & PRESSED != 0,
        };
        let answers = (header[1] & ANSWERS != 0).then(|| u64::from_be_bytes(part(header, 24)));
        Ok((Self { answers, credits }, payload))
    }
}

/// The header of `kind` and `N` octets at the front.
fn split<const N: usize>(octets: &[u8], kind: u8) -> Result<(&[u8; N], &[u8]), HeaderError> {
    let truncated = HeaderError::Truncated {
        got: octets.len(),
        need: if kind == REQUEST { REQUEST_HEADER } else { RETURN_HEADER },
    };
    let (header, payload) = octets.split_first_chunk::<N>().ok_or(truncated)?;
    if header[0] != kind {
        return Err(HeaderError::Kind { got: header[0], need: kind });
    }
    Ok((header, payload))
}

/// `N` octets from octet `at` on.
fn part<const M: usize, const N: usize>(octets: &[u8; M], at: usize) -> [u8; N] {
    std::array::from_fn(|place| octets[at + place])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn octets_stand_where_the_page_draws_them() {
        let header = RequestHeader { request: 0x0102_0304_0506_0708, number: 0x0a0b_0c0d, last: true };
        assert_eq!(header.emit(), [1, 1, 0, 0, 0xa, 0xb, 0xc, 0xd, 1, 2, 3, 4, 5, 6, 7, 8]);
        let credits = Return {
            packets: 2,
            lines: 130,
            service: Span::from_nanos(0x0001_0203),
            residence: Span::from_micros(5_000_000),
            idle: true,
            pressed: true,
        };
        let octets = ReturnHeader { answers: Some(9), credits }.emit();
        let drawn = [
            [2, 7, 0, 0, 0, 0, 0, 2],
            [0, 0, 0, 130, 0, 1, 2, 3],
            [255, 255, 255, 255, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 0, 9],
        ];
        assert_eq!(octets, drawn.concat()[..]);
    }

    #[test]
    fn what_is_too_short_or_of_another_kind_is_refused() {
        let octets = RequestHeader { request: 0, number: 0, last: false }.emit();
        assert_eq!(RequestHeader::parse(&octets[..15]), Err(HeaderError::Truncated { got: 15, need: 16 }));
        let long = [octets, octets].concat();
        assert_eq!(ReturnHeader::parse(&long), Err(HeaderError::Kind { got: 1, need: 2 }));
        assert_eq!(ReturnHeader::parse(&octets), Err(HeaderError::Truncated { got: 16, need: 32 }));
    }

    proptest! {
        #[test]
        fn what_is_parsed_is_emitted_again_but_for_reserved_bits(octets in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok((header, payload)) = RequestHeader::parse(&octets) {
                prop_assert_eq!(payload, &octets[16..]);
                let again = header.emit();
                prop_assert_eq!(RequestHeader::parse(&again).unwrap().0, header);
                prop_assert_eq!(&again[4..], &octets[4..16]);
            }
        }

        #[test]
        fn what_returns_is_what_was_sent(
            answers in any::<Option<u64>>(), packets: u32, lines: u32, service: u32, residence: u32, idle: bool, pressed: bool,
        ) {
            let [service, residence] = [service, residence].map(|nanos| Span::from_nanos(nanos.into()));
            let header = ReturnHeader { answers, credits: Return { packets, lines, service, residence, idle, pressed } };
            prop_assert_eq!(ReturnHeader::parse(&header.emit()).unwrap().0, header);
        }
    }
}
