//! In-band network telemetry as HPCC packs it: up to five hops of 64 bits, their count in four bits and the path's number in twelve,
//! 42 octets (Li et al., SIGCOMM 2019, §4.1 and figure 7).
//!
//! A header is made of words, so the block takes 11 of them; the last two octets are reserved.

use roci_units::{BitsPerSec, Bytes, Instant};

/// What one switch tells of one egress queue as a packet leaves it, in more precision than HPCC's header has: how a
/// simulation carries it. Four words, as laws and programs read them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Hop {
    /// When the packet left, by the switch's clock: whole nanoseconds, modulo 2³² (4.3 s).
    pub at_ns: u32,
    /// Octets that the port had sent by then, modulo 2³².
    pub tx_bytes: u32,
    /// Octets queued behind it.
    pub queue_bytes: u32,
    /// The port's rate in kb/s.
    pub rate_kbps: u32,
}

impl Hop {
    /// Octets that a hop takes on the wire.
    pub const OCTETS: u16 = 8;
    /// No hop.
    pub const NONE: Self = Self { at_ns: 0, tx_bytes: 0, queue_bytes: 0, rate_kbps: 0 };

    /// What a port of `rate_kbps` tells that has sent `sent` octets, this packet left out, with `queue_bytes` waiting, at `now`.
    #[expect(clippy::cast_possible_truncation, reason = "modulo 2³² is meant")]
    pub const fn new(now: Instant, sent: u64, queue_bytes: u32, rate_kbps: u32) -> Self {
        Self { at_ns: (now.as_ps() / 1_000) as u32, tx_bytes: sent as u32, queue_bytes, rate_kbps }
    }
}

/// The rate of the link that a switch sent a packet on, in three bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LineRate {
    /// 25 Gb/s.
    G25 = 0,
    /// 50 Gb/s.
    G50 = 1,
    /// 100 Gb/s.
    G100 = 2,
    /// 200 Gb/s.
    G200 = 3,
    /// 400 Gb/s.
    G400 = 4,
    /// Any other rate. A receiver must know the rate by other means; the simulator carries it beside the packet.
    #[default]
    Other = 7,
}

impl LineRate {
    /// The code of `rate`.
    pub const fn of(rate: BitsPerSec) -> Self {
        const G: u64 = 1_000_000_000;
        match rate.0 {
            r if r == 25 * G => Self::G25,
            r if r == 50 * G => Self::G50,
            r if r == 100 * G => Self::G100,
            r if r == 200 * G => Self::G200,
            r if r == 400 * G => Self::G400,
            _ => Self::Other,
        }
    }

    /// The rate, or `None` where the code does not tell.
    pub const fn rate(self) -> Option<BitsPerSec> {
        let gbps = match self {
            Self::G25 => 25,
            Self::G50 => 50,
            Self::G100 => 100,
            Self::G200 => 200,
            Self::G400 => 400,
            Self::Other => return None,
        };
        Some(BitsPerSec::from_gbps(gbps))
    }

    /// The meaning of the three lower bits of `code`; the reserved 5 and 6 read as [`LineRate::Other`].
    const fn from_code(code: u64) -> Self {
        match code & 7 {
            0 => Self::G25,
            1 => Self::G50,
            2 => Self::G100,
            3 => Self::G200,
            4 => Self::G400,
            _ => Self::Other,
        }
    }
}

/// What one switch wrote when it sent the packet on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntHop {
    /// The rate of the egress link.
    pub rate: LineRate,
    /// The switch's clock in nanoseconds, modulo 2²⁴ (16.8 ms).
    pub time_ns: u32,
    /// Octets that the port has sent, in units of 128, modulo 2²⁰ (134 MB).
    pub bytes_128: u32,
    /// Octets queued at the port, in units of 80, at most 2¹⁷ − 1 (10.5 MB).
    pub queue_80: u32,
}

impl IntHop {
    /// The record of a port of `rate` that has sent `sent` octets and has `queued` ones waiting, at `now`. Counts are
    /// rounded down to their units.
    #[expect(clippy::cast_possible_truncation, reason = "each is masked or bounded to fewer than 32 bits")]
    pub const fn new(rate: BitsPerSec, now: Instant, sent: Bytes, queued: Bytes) -> Self {
        let queue = queued.0 / 80;
        Self {
            rate: LineRate::of(rate),
            time_ns: ((now.as_ps() / 1_000) & 0x00ff_ffff) as u32,
            bytes_128: ((sent.0 / 128) & 0x000f_ffff) as u32,
            queue_80: if queue > 0x0001_ffff { 0x0001_ffff } else { queue as u32 },
        }
    }

    /// Rate code, time, octets and queue from the most significant bit down; higher bits of a field are lost.
    pub const fn pack(self) -> u64 {
        (self.rate as u64) << 61
            | (self.time_ns as u64 & 0x00ff_ffff) << 37
            | (self.bytes_128 as u64 & 0x000f_ffff) << 17
            | self.queue_80 as u64 & 0x0001_ffff
    }

    /// The record in 64 bits.
    pub const fn unpack(bits: u64) -> Self {
        Self {
            rate: LineRate::from_code(bits >> 61),
            time_ns: (bits >> 37 & 0x00ff_ffff) as u32,
            bytes_128: (bits >> 17 & 0x000f_ffff) as u32,
            queue_80: (bits & 0x0001_ffff) as u32,
        }
    }
}

/// The records of a packet's hops, first hop first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntStack {
    hops: [IntHop; Self::HOPS],
    /// nHop: switches that the packet crossed, also those beyond the fifth; at most fifteen.
    count: u8,
    /// pathID, twelve bits.
    path: u16,
}

/// Which switches a packet crossed: the numbers of all of them, exclusive or, as HPCC's pathID. Packets that crossed the same have the
/// same. The header has twelve bits of it, by which one pair in 4096 of other ways agrees by chance; a simulation carries 24.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PathId(u32);

impl PathId {
    /// From these bits, of which the 24 lowest count.
    pub const fn new(bits: u32) -> Self {
        Self(bits & 0x00ff_ffff)
    }

    /// As a number below 2²⁴.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The twelve bits that stand in a header.
    pub const fn header(self) -> u16 {
        (self.0 & 0xfff) as u16
    }

    /// With the switch of this number on the way. Its bits are scattered, as MurmurHash3 ends
    /// (which has the multipliers), for the sums of two ways by consecutive numbers often agree.
    #[must_use]
    pub const fn across(self, switch: u32) -> Self {
        let once = (switch ^ switch >> 16 ^ 0x5bd1_e995).wrapping_mul(0x85eb_ca6b);
        let twice = (once ^ once >> 13).wrapping_mul(0xc2b2_ae35);
        Self::new(self.0 ^ (twice ^ twice >> 16))
    }
}

impl IntStack {
    /// Hops that there is room for.
    pub const HOPS: usize = 5;
    /// Words that it takes.
    pub const WORDS: usize = 2 * Self::HOPS + 1;

    /// The records that were written.
    pub fn hops(&self) -> &[IntHop] {
        &self.hops[..Self::HOPS.min(usize::from(self.count))]
    }

    /// How many switches the packet crossed; more than [`IntStack::HOPS`] left no record.
    pub const fn crossed(&self) -> u8 {
        self.count
    }

    /// Which switches these were, as far as twelve bits tell.
    pub const fn path(&self) -> u16 {
        self.path
    }

    /// Adds the record of the switch of this number; where five are there already, only the count grows, up to fifteen.
    pub fn push(&mut self, switch: u32, hop: IntHop) {
        if let Some(place) = self.hops.get_mut(usize::from(self.count)) {
            *place = hop;
        }
        self.count = if self.count < 15 { self.count + 1 } else { 15 };
        self.path ^= PathId::default().across(switch).header();
    }

    /// The words on the wire: the hops, then the count and the path's number in the upper half of the last.
    #[expect(clippy::cast_possible_truncation, reason = "the halves of a hop")]
    pub fn encode(&self) -> [u32; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        for (pair, hop) in words.chunks_exact_mut(2).zip(self.hops()) {
            let bits = hop.pack();
            pair.copy_from_slice(&[(bits >> 32) as u32, bits as u32]);
        }
        words[2 * Self::HOPS] = u32::from(self.count) << 28 | u32::from(self.path) << 16;
        words
    }

    /// Adds a record to the stack in these octets of a packet, as [`IntStack::push`] does.
    pub fn push_in(octets: &mut [u8; 4 * Self::WORDS], switch: u32, hop: IntHop) {
        let mut words = [0; Self::WORDS];
        for (word, octets) in words.iter_mut().zip(octets.as_chunks().0) {
            *word = u32::from_be_bytes(*octets);
        }
        let mut stack = Self::decode(&words);
        stack.push(switch, hop);
        for (octets, word) in octets.as_chunks_mut().0.iter_mut().zip(stack.encode()) {
            *octets = word.to_be_bytes();
        }
    }

    /// The stack in `words`; hops beyond the count are not read.
    pub fn decode(words: &[u32; Self::WORDS]) -> Self {
        let last = words[2 * Self::HOPS];
        let (count, path) = ((last >> 28) as u8, (last >> 16) as u16 & 0xfff);
        let mut stack = Self { hops: [IntHop::default(); Self::HOPS], count, path };
        let filled = Self::HOPS.min(usize::from(count));
        for (hop, pair) in stack.hops[..filled].iter_mut().zip(words.chunks_exact(2)) {
            *hop = IntHop::unpack(u64::from(pair[0]) << 32 | u64::from(pair[1]));
        }
        stack
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_five_rates_of_hpcc_have_a_code() {
        for gbps in [25, 50, 100, 200, 400] {
            let rate = BitsPerSec::from_gbps(gbps);
            assert_eq!(LineRate::of(rate).rate(), Some(rate));
        }
        for gbps in [10, 40, 800] {
            assert_eq!(LineRate::of(BitsPerSec::from_gbps(gbps)), LineRate::Other);
        }
        assert_eq!(LineRate::Other.rate(), None);
    }

    #[test]
    fn a_long_queue_saturates_and_time_and_octets_wrap() {
        let now = Instant::from_ps(((1 << 24) + 5) * 1_000);
        let hop = IntHop::new(BitsPerSec::from_gbps(100), now, Bytes((1 << 27) + 256), Bytes(1 << 40));
        assert_eq!(hop, IntHop { rate: LineRate::G100, time_ns: 5, bytes_128: 2, queue_80: 0x1_ffff });
    }

    #[test]
    fn the_sixth_hop_is_counted_but_not_kept() {
        let mut stack = IntStack::default();
        for queue in 0..6 {
            stack.push(queue, IntHop { queue_80: queue, ..IntHop::default() });
        }
        assert_eq!(stack.crossed(), 6);
        assert_eq!(stack.hops().last().map(|hop| hop.queue_80), Some(4));
        assert_eq!(IntStack::decode(&stack.encode()), stack);
    }

    #[test]
    fn the_count_ends_at_fifteen_and_leaves_the_path_alone() {
        let mut stack = IntStack::default();
        (0..20).for_each(|switch| stack.push(switch, IntHop::default()));
        assert_eq!((stack.crossed(), stack.encode()[10] >> 28), (15, 15));
        let path = (0..20).fold(PathId::default(), PathId::across).header();
        assert_eq!((stack.path(), IntStack::decode(&stack.encode()).path()), (path, path));
    }

    #[test]
    fn ways_by_other_switches_have_other_numbers() {
        // Up by one of 24 aggregates, over one of its 24 cores, and down by the aggregate of another pod that the core has.
        let ways =
            (0..24).flat_map(|up| (0..24).map(move |core| [700 + up, 2_000 + up * 24 + core, 900 + up]));
        let (mut header, mut alike) = ([0u32; 4096], 0);
        let mut seen = [PathId::default(); 576];
        for (way, place) in ways.zip(0..) {
            let path = way.into_iter().fold(PathId::default(), PathId::across);
            alike += seen[..place].iter().filter(|other| **other == path).count();
            seen[place] = path;
            header[usize::from(path.header())] += 1;
        }
        assert_eq!(alike, 0, "of 576 ways");
        // Of 165 600 pairs some 40 agree in twelve bits by chance.
        let alike: u32 = header.iter().map(|count| count * count.saturating_sub(1) / 2).sum();
        assert!((10..80).contains(&alike), "{alike}");
    }

    proptest! {
        #[test]
        fn a_hop_is_unpacked_as_packed(code in 0u64..5, time_ns in 0u32..1 << 24, bytes_128 in 0u32..1 << 20, queue_80 in 0u32..1 << 17) {
            let hop = IntHop { rate: LineRate::from_code(code), time_ns, bytes_128, queue_80 };
            prop_assert_eq!(IntHop::unpack(hop.pack()), hop);
        }
    }
}
