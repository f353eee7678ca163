//! A packet in flight: one cache line, moved by index.

use roci_switch::Frames;
use roci_wire::header::Flags;
use roci_wire::{Header, Shape};

/// A host, by its place in the topology's list of hosts. At most 65 535 of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u16);

/// A packet in the [`Packets`](crate::packets::Packets) slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketId(pub u32);

impl PacketId {
    /// No packet: the end of a list.
    pub const NONE: Self = Self(u32::MAX);
}

/// The ECN field of the IP header (RFC 3168 §5), and what a fault did to the packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(pub u8);

impl Marks {
    /// ECN-capable transport: ECT(0).
    pub const ECT: Self = Self(1);
    /// Congestion experienced.
    pub const CE: Self = Self(2);
    /// A fault flipped bits: the receiver's ICRC check fails.
    pub const CORRUPT: Self = Self(4);
    /// It was sent before, or a fault made it of another: that it comes late says nothing of its path.
    pub const AGAIN: Self = Self(8);
    /// A tap records its next arrival.
    pub(crate) const TAPPED: Self = Self(128);

    /// Whether all of `other`'s bits are set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and `other`'s.
    #[must_use]
    #[inline]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These without `other`'s.
    #[must_use]
    #[inline]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// A packet: its place in the fabric, and the header that it carries.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct Packet {
    /// The next packet of the queue that it stands in; while it crosses a link, the port that it will go on by.
    pub(crate) next: u32,
    /// The port that it arrives by, from the moment it is sent; later the port whose account it is charged to.
    pub(crate) port: u32,
    /// The host that it comes from.
    pub source: HostId,
    /// The host that it goes to.
    pub destination: HostId,
    /// What equal-cost paths are chosen by: a hash of addresses and UDP ports. The low 14 bits are the UDP source
    /// port less 0xC000.
    pub flow: u32,
    /// Where its optional header words and its telemetry are, plus one; zero for a packet without. See
    /// [`Side`](crate::packets::Side).
    pub side: u32,
    /// Octets of the frame, FCS included; preamble and gap are added on the link.
    pub frame: u16,
    /// The priority that it travels on, 0 to 7.
    pub priority: u8,
    /// ECN and damage.
    pub marks: Marks,
    /// The transport headers.
    pub header: Header,
}

impl Packet {
    /// A packet from `source` to `destination` with `header`, whose frame, priority and flow are still to be said.
    #[inline]
    pub fn new(source: HostId, destination: HostId, header: Header) -> Self {
        Self { source, destination, header, ..Self::default() }
    }
}

const _: () = assert!(size_of::<Packet>() == 64);

/// The smallest Ethernet frame.
const MIN_FRAME: u16 = 64;

/// The switch sees packets by the handle of their place.
impl Frames for crate::packets::Packets {
    #[inline]
    fn next(&self, handle: u32) -> u32 {
        self[PacketId(handle)].next
    }

    #[inline]
    fn set_next(&mut self, handle: u32, next: u32) {
        self[PacketId(handle)].next = next;
    }

    #[inline]
    fn ingress(&self, handle: u32) -> u32 {
        self[PacketId(handle)].port
    }

    #[inline]
    fn octets(&self, handle: u32) -> u32 {
        u32::from(self[PacketId(handle)].frame)
    }

    #[inline]
    fn priority(&self, handle: u32) -> u8 {
        self[PacketId(handle)].priority & 7
    }

    #[inline]
    fn flow(&self, handle: u32) -> u32 {
        self[PacketId(handle)].flow
    }

    #[inline]
    fn is_ect(&self, handle: u32) -> bool {
        self[PacketId(handle)].marks.0 & (Marks::ECT.0 | Marks::CE.0) != 0
    }

    #[inline]
    fn mark(&mut self, handle: u32) {
        let packet = &mut self[PacketId(handle)];
        packet.marks = packet.marks.with(Marks::CE);
    }

    fn stays_whole(&self, handle: u32) -> bool {
        let header = &self[PacketId(handle)].header;
        let shape = header.opcode.shape();
        let is_bare = header.payload == 0 && !header.flags.has(Flags::TRIMMED);
        is_bare && (shape.has(Shape::LAST) || shape.has(Shape::ATOMIC_ACK))
    }

    fn trim(&mut self, handle: u32, priority: u8) -> bool {
        let packet = &mut self[PacketId(handle)];
        packet.priority = priority;
        let header = &mut packet.header;
        if header.payload == 0 {
            return false;
        }
        // The pad that fills the payload to a multiple of four goes with it.
        packet.frame = packet.frame.saturating_sub(header.payload.next_multiple_of(4)).max(MIN_FRAME);
        header.payload = 0;
        header.flags = header.flags.with(Flags::TRIMMED);
        true
    }

    fn turn_back(&mut self, handle: u32) -> bool {
        let packet = &mut self[PacketId(handle)];
        let turned = packet.header.turn_back();
        if turned {
            std::mem::swap(&mut packet.source, &mut packet.destination);
        }
        turned
    }

    fn swap(&mut self, a: u32, b: u32) {
        let (mut first, mut second) = (self[PacketId(a)], self[PacketId(b)]);
        std::mem::swap(&mut first.next, &mut second.next);
        (self[PacketId(a)], self[PacketId(b)]) = (second, first);
    }
}
