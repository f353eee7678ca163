//! Layout `cc`: a congestion-control header of 0 to 64 octets behind the BTH, for a law to fill (SwCC §4.3.1).
//!
//! Its parts, each present or not for all packets of the queue pair, in this order: in-band telemetry (11 words), which
//! switches find there whatever else a packet has room for, the hardware time (2 words), and words that the law defines.

use crate::layout::LayoutWords;
use crate::layout::int::IntStack;

/// What the CC header of a queue pair holds; at most 16 words in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cc {
    /// [`TIME`], [`INT`] and, in five bits, how many words are the law's own.
    code: u8,
}

/// It holds hardware time.
const TIME: u8 = 0x80;
/// It holds telemetry.
const INT: u8 = 0x40;
/// The octet's bit that means nothing yet.
const UNUSED: u8 = 0x20;

/// Hardware time in the CC header, in nanoseconds modulo 2³² (4.29 s).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CcTime {
    /// When this packet was sent, by its sender's clock.
    pub sent_ns: u32,
    /// The `sent_ns` of the packet that this one answers, or 0.
    pub echo_ns: u32,
}

const TIME_WORDS: usize = 2;

impl Cc {
    /// A header with hardware `time`, in-band telemetry (`int`) and `own` words of the law's, or `None` where that is
    /// more than 16 words.
    pub const fn new(time: bool, int: bool, own: u8) -> Option<Self> {
        if own >= UNUSED {
            return None;
        }
        let cc = Self { code: own | if time { TIME } else { 0 } | if int { INT } else { 0 } };
        if cc.words() <= LayoutWords::MAX { Some(cc) } else { None }
    }

    /// Whether it holds hardware time.
    pub const fn has_time(self) -> bool {
        self.code & TIME != 0
    }

    pub(crate) const fn has_int(self) -> bool {
        self.code & INT != 0
    }

    /// How many words it takes, 0 to 16.
    pub const fn words(self) -> usize {
        self.own_at() + (self.code & (UNUSED - 1)) as usize
    }

    /// The octet by which connection set-up names it: hardware time, telemetry, five bits of words.
    pub(crate) const fn code(self) -> u8 {
        self.code
    }

    /// The header with that name.
    pub(crate) const fn from_code(code: u8) -> Option<Self> {
        if code & UNUSED != 0 {
            return None;
        }
        Self::new(code & TIME != 0, code & INT != 0, code & (UNUSED - 1))
    }

    /// A header of zeros.
    pub const fn empty(self) -> LayoutWords {
        LayoutWords::zeroed(self.words())
    }

    /// The hardware time in `words`, where this header has one.
    pub fn time(self, words: &LayoutWords) -> Option<CcTime> {
        match words.as_slice().get(self.time_at()..)?.first_chunk() {
            Some(&[sent_ns, echo_ns]) if self.has_time() => Some(CcTime { sent_ns, echo_ns }),
            _ => None,
        }
    }

    /// Writes the hardware time; says whether this header has room for it.
    pub fn set_time(self, words: &mut LayoutWords, time: CcTime) -> bool {
        let place = words.as_mut_slice().get_mut(self.time_at()..).and_then(|rest| rest.first_chunk_mut());
        match place {
            Some(place) if self.has_time() => {
                *place = [time.sent_ns, time.echo_ns];
                true
            }
            _ => false,
        }
    }

    /// The telemetry in `words`, where this header has it.
    pub fn int(self, words: &LayoutWords) -> Option<IntStack> {
        let block = words.as_slice().first_chunk()?;
        self.has_int().then(|| IntStack::decode(block))
    }

    /// Writes the telemetry; says whether this header has room for it.
    pub fn set_int(self, words: &mut LayoutWords, stack: &IntStack) -> bool {
        match words.as_mut_slice().first_chunk_mut() {
            Some(block) if self.has_int() => {
                *block = stack.encode();
                true
            }
            _ => false,
        }
    }

    /// The law's own words.
    pub fn own(self, words: &LayoutWords) -> &[u32] {
        words.as_slice().get(self.own_at()..).unwrap_or_default()
    }

    /// The law's own words, to be written.
    pub fn own_mut(self, words: &mut LayoutWords) -> &mut [u32] {
        words.as_mut_slice().get_mut(self.own_at()..).unwrap_or_default()
    }

    /// Where hardware time begins: behind telemetry.
    pub const fn time_at(self) -> usize {
        if self.has_int() { IntStack::WORDS } else { 0 }
    }

    /// Where the law's own words begin.
    pub const fn own_at(self) -> usize {
        self.time_at() + if self.has_time() { TIME_WORDS } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::int::{IntHop, LineRate};

    #[test]
    fn sixteen_words_fit_and_seventeen_do_not() {
        assert_eq!(Cc::new(false, false, 16).map(Cc::words), Some(16));
        assert_eq!(Cc::new(false, false, 17), None);
        assert_eq!(Cc::new(true, true, 3).map(Cc::words), Some(16));
        assert_eq!(Cc::new(true, true, 4), None);
    }

    #[test]
    fn its_parts_do_not_overlap() {
        let cc = Cc::new(true, true, 3).unwrap();
        let mut words = cc.empty();
        let time = CcTime { sent_ns: 0xffff_ffff, echo_ns: 0xeeee_eeee };
        let mut stack = IntStack::default();
        for queue in 0..5 {
            stack.push(
                queue,
                IntHop {
                    rate: LineRate::G400,
                    time_ns: 0x00ff_ffff,
                    bytes_128: 0x000f_ffff,
                    queue_80: queue,
                },
            );
        }
        assert!(cc.set_time(&mut words, time));
        assert!(cc.set_int(&mut words, &stack));
        cc.own_mut(&mut words).copy_from_slice(&[1, 2, 3]);
        assert_eq!(cc.time(&words), Some(time));
        assert_eq!(cc.int(&words), Some(stack));
        assert_eq!(cc.own(&words), [1, 2, 3]);
        assert_eq!(words.as_slice()[..IntStack::WORDS], stack.encode(), "where a switch looks for it");
    }

    #[test]
    fn a_header_without_a_part_neither_reads_nor_writes_it() {
        let cc = Cc::new(false, false, 16).unwrap();
        let mut words = cc.empty();
        assert!(!cc.set_time(&mut words, CcTime { sent_ns: 1, echo_ns: 1 }));
        assert!(!cc.set_int(&mut words, &IntStack::default()));
        assert_eq!(words, cc.empty());
        assert_eq!((cc.time(&words), cc.int(&words)), (None, None));
    }
}
