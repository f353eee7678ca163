//! What the switch has to know of a frame, and the store that its frames lie in.

use super::Classes;
use roci_switch::port::{Frames, NONE};
use roci_wire::ethernet::{self, EthernetView, FCS_LEN, MIN_FRAME, Mac, VlanView};
use roci_wire::icrc::ICRC_LEN;
use roci_wire::ip::{Ecn, Ipv4View, Ipv6View, UDP_PROTOCOL};
use roci_wire::layout::int::{IntHop, IntStack};
use roci_wire::udp::{ROCE_PORT, UdpView};
use roci_wire::{BthView, Opcode, Shape};

/// The longest frame that is carried, without frame check sequence.
pub const FRAME_MAX: usize = 9_216;

/// What a frame says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) destination: Mac,
    pub(super) source: Mac,
    /// 0 to 7.
    pub(super) priority: u8,
    /// Whether its sender understands ECN.
    pub(super) is_ect: bool,
    /// Tells its flow from others: of addresses and ports.
    pub(super) flow: u32,
    /// Where its IP header begins, and whether it is of version 6.
    ip: Option<(u16, bool)>,
    /// Where its BTH begins, if it may have room for telemetry, and its code point.
    bth: Option<(u16, u8)>,
}

impl Told {
    /// What `frame`, without frame check sequence, says; `None` of what is no frame.
    ///
    /// RoCEv2 packets have the priority that `classes` gives their kind. All others, and they too without `classes`, have that of their
    /// 802.1Q tag, or where that says 0, of the upper three bits of their DSCP (class selectors, RFC 2474 §4.2.2); where `classes` are and that is 0, as
    /// usual, the one of data, lest what connections are set up with wait for a gap in data that go strictly before.
    pub(super) fn of(frame: &[u8], classes: Option<Classes>) -> Option<Self> {
        let (view, mut rest) = EthernetView::split(frame).ok()?;
        let mut told = Self {
            destination: view.destination(),
            source: view.source(),
            priority: 0,
            is_ect: false,
            flow: hash(&[&frame[..12]]),
            ip: None,
            bth: None,
        };
        let (mut ether_type, mut tagged) = (view.ether_type(), None);
        if ether_type == ethernet::VLAN {
            let (tag, behind) = VlanView::split(rest).ok()?;
            tagged = Some(tag.tag().priority);
            ether_type = tag.ether_type();
            rest = behind;
        }
        let at = u16::try_from(frame.len() - rest.len()).ok()?;
        let mut carried = None;
        let dscp = match ether_type {
            ethernet::IPV4 => {
                let (ip, behind) = Ipv4View::split(rest).ok()?;
                told.is_ect = ip.ecn() != Ecn::NotEct;
                told.ip = Some((at, false));
                told.flow = hash(&[&rest[12..20]]);
                let whole = ip.header_words() == 5 && ip.fragment() & 0x3fff == 0;
                carried = (whole && ip.protocol() == UDP_PROTOCOL).then_some(behind);
                ip.dscp()
            }
            ethernet::IPV6 => {
                let (ip, behind) = Ipv6View::split(rest).ok()?;
                told.is_ect = ip.ecn() != Ecn::NotEct;
                told.ip = Some((at, true));
                told.flow = hash(&[&rest[8..40]]);
                carried = (ip.next_header() == UDP_PROTOCOL).then_some(behind);
                ip.dscp()
            }
            _ => 0,
        };
        // A tag for the sake of its VLAN alone has priority 0, and says nothing of it.
        told.priority = tagged.filter(|&priority| priority != 0).unwrap_or(dscp >> 3);
        if let (0, Some(classes)) = (told.priority, classes) {
            told.priority = classes.data;
        }
        if let Some((udp, behind)) = carried.and_then(|carried| UdpView::split(carried).ok()) {
            let ports = [udp.source_port().to_be_bytes(), udp.destination_port().to_be_bytes()];
            // The queue pair tells flows of one pair of hosts apart, whose ports are often the same.
            let pair = behind.get(5..8).filter(|_| udp.destination_port() == ROCE_PORT).unwrap_or_default();
            told.flow ^= hash(&[ports.as_flattened(), pair]);
            if udp.destination_port() == ROCE_PORT
                && let Some(&opcode) = behind.first()
            {
                let opcode = Opcode(opcode);
                let at = u16::try_from(frame.len() - behind.len()).ok();
                // A reliable connection's, as long as one with room for telemetry is at least.
                let has_room = opcode.0 >> 5 == 0
                    && opcode.shape().has(Shape::PAYLOAD)
                    && usize::from(udp.length())
                        >= UdpView::LEN + BthView::LEN + 4 * IntStack::WORDS + ICRC_LEN;
                told.bth = at.map(|at| (at, dscp)).filter(|_| has_room);
                if let Some(classes) = classes {
                    told.priority = classes.of(opcode);
                }
            }
        }
        Some(told)
    }
}

/// A checksum where one 16-bit word that it is over has become another (RFC 1624, equation 3).
fn replaced(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let folded = (sum & 0xffff) + (sum >> 16);
    #[expect(clippy::cast_possible_truncation, reason = "folded twice, it has 16 bits")]
    let folded = ((folded & 0xffff) + (folded >> 16)) as u16;
    !folded
}

/// FNV-1a.
fn hash(parts: &[&[u8]]) -> u32 {
    let octets = parts.iter().copied().flatten();
    octets.fold(0x811c_9dc5, |hash, &octet| (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193))
}

/// A frame in the store.
#[derive(Clone, Debug)]
struct Stored {
    octets: Vec<u8>,
    told: Told,
    next: u32,
    ingress: u32,
}

/// All frames that are in the switch or on its links.
///
/// A switch that once held hundreds of thousands of short frames has as many places, each of which has a long one some day. The room for octets is
/// therefore not theirs: it is no more than twice what the frames that are there need, and [`SPARED_MAX`].
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    frames: Vec<Stored>,
    free: Vec<u32>,
    /// Room for octets of frames to come, and how much that is.
    spare: Vec<Vec<u8>>,
    spared: usize,
}

/// The most octets that are kept for frames to come.
const SPARED_MAX: usize = 1 << 20;

impl Store {
    pub(super) fn put(&mut self, octets: &[u8], told: Told, ingress: u32) -> u32 {
        let frame = Stored { octets: self.take_in(octets), told, next: NONE, ingress };
        if let Some(handle) = self.free.pop() {
            self.frames[handle as usize] = frame;
            return handle;
        }
        let handle = u32::try_from(self.frames.len()).unwrap_or(NONE);
        self.frames.push(frame);
        handle
    }

    /// The octets of a frame, in the room of one that has gone where that is about as long.
    fn take_in(&mut self, octets: &[u8]) -> Vec<u8> {
        if let Some(mut room) = self.spare.pop() {
            self.spared -= room.capacity();
            if (octets.len()..=2 * octets.len()).contains(&room.capacity()) {
                room.clear();
                room.extend_from_slice(octets);
                return room;
            }
        }
        octets.to_vec()
    }

    pub(super) fn copy(&mut self, handle: u32) -> u32 {
        let frame = &mut self.frames[handle as usize];
        let (octets, told, ingress) = (std::mem::take(&mut frame.octets), frame.told, frame.ingress);
        let copy = self.put(&octets, told, ingress);
        self.frames[handle as usize].octets = octets;
        copy
    }

    pub(super) fn free(&mut self, handle: u32) {
        let room = std::mem::take(&mut self.frames[handle as usize].octets);
        if self.spared + room.capacity() <= SPARED_MAX {
            self.spared += room.capacity();
            self.spare.push(room);
        }
        self.free.push(handle);
    }

    pub(super) fn frame(&self, handle: u32) -> &[u8] {
        &self.frames[handle as usize].octets
    }

    /// Adds a record of telemetry to a packet of code point `dscp` that has room for it. The ICRC does not cover the words of layout `cc`; the UDP
    /// checksum, where there is one, is brought up to date.
    pub(super) fn stamp(&mut self, handle: u32, dscp: u8, number: u32, hop: IntHop) {
        let frame = &mut self.frames[handle as usize];
        let Some((at, _)) = frame.told.bth.filter(|(_, own)| *own == dscp) else { return };
        let (udp, bth) = frame.octets.split_at_mut(at.into());
        let Some(block) = bth.get_mut(BthView::LEN..).and_then(<[u8]>::first_chunk_mut) else { return };
        let before = *block;
        IntStack::push_in(block, number, hop);
        let Some(sum @ [_, _]) = udp.last_chunk_mut::<2>() else { return };
        if *sum != [0, 0] {
            let words = before.as_chunks().0.iter().zip(block.as_chunks().0);
            let changed = words.fold(u16::from_be_bytes(*sum), |sum, (old, new)| {
                replaced(sum, u16::from_be_bytes(*old), u16::from_be_bytes(*new))
            });
            // Zero would say that there is none.
            *sum = if changed == 0 { [0xff; 2] } else { changed.to_be_bytes() };
        }
    }

    pub(super) fn told(&self, handle: u32) -> Told {
        self.frames[handle as usize].told
    }

    /// Frames that are held.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.frames.len() - self.free.len()
    }
}

/// Octets of a frame as links and buffers count it: with frame check sequence, and padded.
pub(super) fn counted(frame: &[u8]) -> u32 {
    u32::try_from((frame.len() + FCS_LEN).max(MIN_FRAME)).unwrap_or(u32::MAX)
}

impl Frames for Store {
    fn next(&self, handle: u32) -> u32 {
        self.frames[handle as usize].next
    }

    fn set_next(&mut self, handle: u32, next: u32) {
        self.frames[handle as usize].next = next;
    }

    fn ingress(&self, handle: u32) -> u32 {
        self.frames[handle as usize].ingress
    }

    fn octets(&self, handle: u32) -> u32 {
        counted(&self.frames[handle as usize].octets)
    }

    fn priority(&self, handle: u32) -> u8 {
        self.frames[handle as usize].told.priority
    }

    fn flow(&self, handle: u32) -> u32 {
        self.frames[handle as usize].told.flow
    }

    fn is_ect(&self, handle: u32) -> bool {
        self.frames[handle as usize].told.is_ect
    }

    /// The ICRC does not cover the field, so the packet stays right; the IPv4 checksum is brought up to date.
    fn mark(&mut self, handle: u32) {
        let frame = &mut self.frames[handle as usize];
        let Some((at, is_v6)) = frame.told.ip else { return };
        let Some(ip) = frame.octets.get_mut(usize::from(at)..) else { return };
        if is_v6 {
            ip[1] |= 0x30;
            return;
        }
        let old = u16::from_be_bytes([ip[0], ip[1]]);
        ip[1] |= 3;
        let new = u16::from_be_bytes([ip[0], ip[1]]);
        let checksum = replaced(u16::from_be_bytes([ip[10], ip[11]]), old, new);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    fn stays_whole(&self, _: u32) -> bool {
        true
    }

    fn trim(&mut self, _: u32, _: u8) -> bool {
        false
    }

    fn turn_back(&mut self, _: u32) -> bool {
        false
    }

    fn swap(&mut self, a: u32, b: u32) {
        self.frames.swap(a as usize, b as usize);
        let (next_a, next_b) = (self.frames[a as usize].next, self.frames[b as usize].next);
        (self.frames[a as usize].next, self.frames[b as usize].next) = (next_b, next_a);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn long_frames_leave_no_room_behind_for_the_short_ones_that_come_after_them() {
        let told = Told::of(&[0; 60], None).unwrap();
        let octets: Vec<u8> = (0..=u8::MAX).cycle().take(FRAME_MAX).collect();
        let (mut store, mut held, mut sum) = (Store::default(), VecDeque::new(), 0);
        // A queue that fills to 2 MB and drains in part, now with short frames and now with long ones: each place has both by and by.
        for turn in 0..200 {
            let (size, parts) = ([60, 9000][turn % 2], [7, 11, 13, 17][turn % 4]);
            while sum < 100_000 * parts {
                held.push_back((store.put(&octets[..size], told, 0), size));
                sum += size;
            }
            while sum > 4_000 * parts * (turn % 5) {
                let (handle, size) = held.pop_front().unwrap();
                assert!(store.frame(handle) == &octets[..size], "each has its own octets");
                store.free(handle);
                sum -= size;
            }
            let places = store.frames.iter().map(|frame| frame.octets.capacity()).sum::<usize>();
            let spare = store.spare.iter().map(Vec::capacity).sum::<usize>();
            assert!(places <= 2 * sum && spare <= SPARED_MAX, "{places} and {spare} octets for {sum}");
            assert_eq!((spare, store.held()), (store.spared, held.len()));
        }
    }
}
