//! Where packets live: a slab of cache lines, and a second one for what few packets carry.

use crate::packet::{Packet, PacketId};
use roci_switch::Hop;
use roci_wire::PathId;
use std::ops::{Index, IndexMut};

/// Optional header words a packet can carry.
pub const WORDS: usize = 16;
/// Telemetry hops a packet can carry; what more switches would add is left out.
pub const HOPS: usize = 8;

/// What only some packets carry: words of an optional header layout, and telemetry.
#[derive(Clone, Copy, Debug)]
pub struct Extra {
    words: [u32; WORDS],
    word_count: u8,
    /// Whether switches add their hop.
    traced: bool,
    hop_count: u8,
    path_id: PathId,
    hops: [Hop; HOPS],
}

impl Extra {
    const EMPTY: Self = Self {
        words: [0; WORDS],
        word_count: 0,
        traced: false,
        hop_count: 0,
        path_id: PathId::new(0),
        hops: [Hop::NONE; HOPS],
    };

    /// The optional header's words, at most [`WORDS`].
    pub fn words(&self) -> &[u32] {
        &self.words[..usize::from(self.word_count)]
    }

    /// Sets the optional header's words; those beyond [`WORDS`] are left out.
    #[expect(clippy::cast_possible_truncation, reason = "at most 16")]
    pub fn set_words(&mut self, words: &[u32]) {
        let count = words.len().min(WORDS);
        self.words[..count].copy_from_slice(&words[..count]);
        self.word_count = count as u8;
    }

    /// What the switches on the way told, first switch first; at most [`HOPS`].
    pub fn hops(&self) -> &[Hop] {
        &self.hops[..usize::from(self.hop_count)]
    }

    /// Which switches are on the way that it was traced on.
    pub const fn path_id(&self) -> PathId {
        self.path_id
    }

    /// Whether switches add their hop.
    pub const fn traced(&self) -> bool {
        self.traced
    }

    /// Chooses whether switches add their hop.
    pub fn set_traced(&mut self, traced: bool) {
        self.traced = traced;
    }

    /// Adds the hop of the switch of this number if the packet is traced and has room; whether it did.
    pub(crate) fn add_hop(&mut self, switch: u32, hop: Hop) -> bool {
        let count = usize::from(self.hop_count);
        if !self.traced {
            return false;
        }
        self.path_id = self.path_id.across(switch);
        if count == HOPS {
            return false;
        }
        self.hops[count] = hop;
        self.hop_count += 1;
        true
    }
}

/// The extras of the packets that have some.
#[derive(Debug, Default)]
pub struct Side {
    slots: Vec<Extra>,
    free: Vec<u32>,
}

impl Side {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a packet has one at most, and packets count in 32 bits"
    )]
    fn alloc(&mut self, extra: Extra) -> u32 {
        if let Some(place) = self.free.pop() {
            self.slots[place as usize] = extra;
            return place + 1;
        }
        self.slots.push(extra);
        self.slots.len() as u32
    }

    fn release(&mut self, side: u32) {
        self.free.push(side - 1);
    }
}

/// All packets that exist, by [`PacketId`].
#[derive(Debug, Default)]
pub struct Packets {
    slots: Vec<Packet>,
    /// Free places; the last one freed is the first one used again, while it is still in a cache.
    free: Vec<u32>,
    side: Side,
}

impl Packets {
    /// A place for `packet`.
    ///
    /// # Panics
    /// When 2³² − 1 packets exist.
    #[inline]
    pub fn alloc(&mut self, packet: Packet) -> PacketId {
        // `grow` makes room without the packet, which so need not be in memory before it is in its place: written field
        // by field and read again as a whole, it would wait for the last field to arrive.
        let place = self.free.pop().unwrap_or_else(|| self.grow());
        self.slots[place as usize] = packet;
        PacketId(place)
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        let place = u32::try_from(self.slots.len()).ok().filter(|&place| place != PacketId::NONE.0);
        roci_prefetch::reserve_with_huge_pages(&mut self.slots);
        self.slots.push(Packet::default());
        place.expect("fewer than 2^32 - 1 packets")
    }

    /// Ends a packet, with its extra.
    #[inline]
    pub fn free(&mut self, id: PacketId) {
        let side = self[id].side;
        if side != 0 {
            self.side.release(side);
        }
        self.free.push(id.0);
    }

    /// A second packet like `id`, with an extra of its own.
    pub fn clone_packet(&mut self, id: PacketId) -> PacketId {
        let mut packet = self[id];
        if let Some(extra) = self.extra(id).copied() {
            packet.side = self.side.alloc(extra);
        }
        self.alloc(packet)
    }

    /// How many packets exist.
    pub fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The extra of packet `id`, if it has one.
    #[inline]
    pub fn extra(&self, id: PacketId) -> Option<&Extra> {
        let side = self[id].side;
        if side == 0 { None } else { self.side.slots.get(side as usize - 1) }
    }

    /// The extra of packet `id`, given an empty one if it has none.
    pub fn extra_mut(&mut self, id: PacketId) -> &mut Extra {
        if self[id].side == 0 {
            self[id].side = self.side.alloc(Extra::EMPTY);
        }
        let place = self[id].side as usize - 1;
        &mut self.side.slots[place]
    }

    /// Takes the extra of packet `id` away, as when it is turned into a reply.
    #[inline]
    pub fn drop_extra(&mut self, id: PacketId) {
        let side = std::mem::take(&mut self[id].side);
        if side != 0 {
            self.side.release(side);
        }
    }

    /// The packet at a place that may be none.
    #[inline(always)]
    pub(crate) fn get(&self, id: u32) -> Option<&Packet> {
        self.slots.get(id as usize)
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, id: u32) {
        roci_prefetch::prefetch_at(&self.slots, id as usize);
    }
}

impl Index<PacketId> for Packets {
    type Output = Packet;
    #[inline(always)]
    fn index(&self, id: PacketId) -> &Packet {
        &self.slots[id.0 as usize]
    }
}

impl IndexMut<PacketId> for Packets {
    #[inline(always)]
    fn index_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.slots[id.0 as usize]
    }
}
