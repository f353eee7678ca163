//! Work queues: send and receive requests in two slabs, each queue a list of indices.
//!
//! A queue pair without work owns nothing here. Entries are used again last in, first out, so that a busy few stay
//! in cache, and a slab grows only when more requests are queued than ever before.

use crate::work::{CompletionKind, Operation, RecvRequest, SendRequest, Tail};
use alloc::vec::Vec;
use roci_units::Qpn;
use roci_wire::layout::srnic::RequestPosition;

/// No entry: the end of a list, or an empty one.
pub(crate) const NONE: u32 = u32::MAX;

/// A bit of [`SendWork::flags`].
pub(crate) mod flag {
    /// A successful end is told.
    pub(crate) const SIGNALED: u8 = 1;
    /// The responder is to be woken.
    pub(crate) const SOLICITED: u8 = 2;
    /// Waits for earlier READs and atomics.
    pub(crate) const FENCE: u8 = 4;
    /// [`super::SendWork::immediate`] is immediate data.
    pub(crate) const IMMEDIATE: u8 = 8;
    /// [`super::SendWork::immediate`] is a key to invalidate.
    pub(crate) const INVALIDATE: u8 = 16;
    /// Of a READ, which has no such key: the rest of it is the next in the queue.
    pub(crate) const CONTINUES: u8 = INVALIDATE;
    /// Its packets have sequence numbers.
    pub(crate) const NUMBERED: u8 = 32;
    /// All responses of a READ have come, or the result of an atomic, where READ responses are acknowledged on their own.
    pub(crate) const ANSWERED: u8 = 64;
    /// Of a datagram and of all requests of an unreliable connection, which nobody answers: it ends as its last packet leaves.
    pub(crate) const LEAVES: u8 = ANSWERED;
    /// Its packets, but the first and the last, are all alike: full, and with nothing that a law or a layout adds to one
    /// of them.
    pub(crate) const STREAMS: u8 = 128;
}

/// What a send request asks for, in one octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Send,
    Write,
    Read,
    FetchAdd,
    CompareSwap,
    Datagram,
}

impl Kind {
    pub(crate) const fn completion(self) -> CompletionKind {
        match self {
            Self::Send | Self::Datagram => CompletionKind::Send,
            Self::Write => CompletionKind::Write,
            Self::Read => CompletionKind::Read,
            Self::FetchAdd => CompletionKind::FetchAdd,
            Self::CompareSwap => CompletionKind::CompareSwap,
        }
    }

    /// Whether it is answered with data, which the responder limits.
    pub(crate) const fn is_read_or_atomic(self) -> bool {
        matches!(self, Self::Read | Self::FetchAdd | Self::CompareSwap)
    }
}

/// A send request in its queue: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct SendWork {
    pub(crate) id: u64,
    /// Where the octets lie, or go; the result of an atomic that is [answered](flag::ANSWERED).
    pub(crate) address: u64,
    /// Remote address; the path of a datagram.
    pub(crate) va: u64,
    /// What an atomic adds or swaps in; the queue pair of a datagram's receiver; else, in the upper half, the number
    /// among all requests, and in the lower half the one among the messages that consume a
    /// receive, or the sequence of a READ's first response.
    pub(crate) operand: u64,
    pub(crate) lkey: u32,
    /// Remote key; the queue key of a datagram.
    pub(crate) rkey: u32,
    /// Octets of the message; the upper half of a compare-and-swap's comparand, for atomics are 8 octets.
    pub(crate) length: u32,
    /// Immediate data or key to invalidate; the lower half of the comparand; octets of a READ that its earlier pieces bring.
    pub(crate) immediate: u32,
    /// Sequence of the first packet.
    pub(crate) first: u32,
    /// Sequence after the last packet.
    pub(crate) end: u32,
    pub(crate) next: u32,
    pub(crate) kind: Kind,
    pub(crate) flags: u8,
}

const _: () = assert!(size_of::<SendWork>() == 64);

#[expect(clippy::cast_possible_truncation, reason = "the halves are meant")]
const fn halves(value: u64) -> (u32, u32) {
    ((value >> 32) as u32, value as u32)
}

impl SendWork {
    /// The number among the messages that consume a receive, or the sequence of a READ's first response.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the half is meant")]
    pub(crate) const fn number(&self) -> u32 {
        self.operand as u32
    }

    /// The number among all requests, from zero on; of a SEND, a WRITE or a READ.
    pub(crate) const fn message(&self) -> u32 {
        (self.operand >> 32) as u32
    }

    /// Which request the packet at `offset` packets belongs to, in layout `srnic`. Atomics carry none.
    #[expect(clippy::cast_possible_truncation, reason = "the halves are meant, modulo 2²⁴ and 2¹⁶")]
    pub(crate) const fn position(&self, offset: u32) -> RequestPosition {
        let ssn = if self.consumes_receive() { self.operand as u16 } else { 0 };
        RequestPosition { msn: (self.operand >> 32) as u32 & 0x00ff_ffff, psn_offset: offset, ssn }
    }

    /// The entry of `request`; its packets are numbered when it comes to be sent.
    #[inline]
    pub(crate) fn new(request: &SendRequest) -> Self {
        let mut work = Self {
            id: request.id,
            address: request.address,
            va: 0,
            operand: 0,
            lkey: request.lkey,
            rkey: 0,
            length: request.length,
            immediate: 0,
            first: 0,
            end: 0,
            next: NONE,
            kind: Kind::Send,
            flags: 0,
        };
        for (wanted, bit) in [
            (request.signaled, flag::SIGNALED),
            (request.solicited, flag::SOLICITED),
            (request.fence, flag::FENCE),
        ] {
            if wanted {
                work.flags |= bit;
            }
        }
        match request.operation {
            Operation::Send(tail) => work.set_tail(tail),
            Operation::Write { va, rkey, tail } => {
                (work.kind, work.va, work.rkey) = (Kind::Write, va, rkey);
                work.set_tail(tail);
            }
            Operation::Read { va, rkey } => (work.kind, work.va, work.rkey) = (Kind::Read, va, rkey),
            Operation::FetchAdd { va, rkey, add } => {
                (work.kind, work.va, work.rkey, work.operand) = (Kind::FetchAdd, va, rkey, add);
            }
            Operation::CompareSwap { va, rkey, compare, swap } => {
                (work.kind, work.va, work.rkey, work.operand) = (Kind::CompareSwap, va, rkey, swap);
                (work.length, work.immediate) = halves(compare);
            }
            Operation::Datagram { path, qpn, q_key, tail } => {
                (work.kind, work.va, work.rkey) = (Kind::Datagram, path, q_key);
                work.operand = u64::from(qpn.get());
                work.set_tail(tail);
            }
        }
        work
    }

    fn set_tail(&mut self, tail: Tail) {
        match tail {
            Tail::Plain => {}
            Tail::Immediate(value) => {
                self.immediate = value;
                self.flags |= flag::IMMEDIATE;
            }
            Tail::Invalidate(key) => {
                self.immediate = key;
                self.flags |= flag::INVALIDATE;
            }
        }
    }

    /// Whether all bits of `flag` are set.
    #[inline]
    pub(crate) const fn has(&self, flag: u8) -> bool {
        self.flags & flag == flag
    }

    /// Cuts the first `octets` off a READ.
    pub(crate) fn split(&mut self, octets: u32) -> Self {
        let mut piece = *self;
        piece.length = octets;
        piece.flags = piece.flags & !flag::SIGNALED | flag::CONTINUES;
        self.address = self.address.wrapping_add(octets.into());
        self.va = self.va.wrapping_add(octets.into());
        self.length -= octets;
        self.immediate += octets;
        self.flags &= !flag::FENCE;
        piece
    }

    /// Whether it is a piece of a READ, and not the last.
    #[inline]
    pub(crate) fn continues(&self) -> bool {
        self.kind == Kind::Read && self.has(flag::CONTINUES)
    }

    /// Octets that it moves, those of a READ's earlier pieces among them.
    #[inline]
    pub(crate) const fn octets(&self) -> u32 {
        match self.kind {
            Kind::FetchAdd | Kind::CompareSwap => 8,
            Kind::Read => self.length + self.immediate,
            _ => self.length,
        }
    }

    /// What a compare-and-swap compares with.
    pub(crate) const fn compare(&self) -> u64 {
        (self.length as u64) << 32 | self.immediate as u64
    }

    /// The queue pair that a datagram is for.
    #[expect(clippy::cast_possible_truncation, reason = "it was made from a Qpn")]
    pub(crate) const fn datagram_qpn(&self) -> Qpn {
        Qpn::new(self.operand as u32)
    }

    /// Whether the responder spends a receive request on it.
    pub(crate) const fn consumes_receive(&self) -> bool {
        matches!(self.kind, Kind::Send) || matches!(self.kind, Kind::Write) && self.has(flag::IMMEDIATE)
    }
}

/// A receive request in its queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecvWork {
    pub(crate) request: RecvRequest,
    next: u32,
    /// The memory that it names was taken away.
    pub(crate) is_void: bool,
}

/// A slab whose free entries form a list.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<T>,
    free: u32,
}

/// What a [`Slab`] links.
pub(crate) trait Linked {
    /// The entry after this one.
    fn next(&mut self) -> &mut u32;
}

impl Linked for SendWork {
    #[inline]
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

impl Linked for RecvWork {
    #[inline]
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: NONE }
    }
}

impl<T: Linked> Slab<T> {
    /// Stores `entry` and gives its index.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "2³² entries would need 256 GB")]
    pub(crate) fn insert(&mut self, mut entry: T) -> u32 {
        *entry.next() = NONE;
        if self.free == NONE {
            if self.entries.len() == self.entries.capacity() {
                // By an eighth: many queue pairs with work must not cost double.
                self.entries.reserve_exact(if self.entries.len() < 16 { 4 } else { self.entries.len() / 8 });
            }
            self.entries.push(entry);
            return (self.entries.len() - 1) as u32;
        }
        let index = self.free;
        let place = &mut self.entries[index as usize];
        self.free = *place.next();
        *place = entry;
        index
    }

    /// Gives the entry back.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) {
        *self.entries[index as usize].next() = self.free;
        self.free = index;
    }

    /// All entries, those that were given back among them.
    pub(crate) fn all(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut()
    }

    /// Asks the processor to fetch the first entry, which is in use where any is.
    #[inline]
    pub(crate) fn prefetch(&self) {
        roci_prefetch::prefetch_at(&self.entries, 0);
    }

    /// The entry at a place that may be none.
    #[inline]
    pub(crate) fn find(&self, index: u32) -> Option<&T> {
        self.entries.get(index as usize)
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &T {
        &self.entries[index as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut T {
        &mut self.entries[index as usize]
    }
}

/// First and last receive request of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecvQueue {
    pub(crate) head: u32,
    pub(crate) tail: u32,
}

impl RecvQueue {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE };

    /// Appends `request`.
    pub(crate) fn push(&mut self, slab: &mut Slab<RecvWork>, request: RecvRequest) {
        let index = slab.insert(RecvWork { request, next: NONE, is_void: false });
        if self.tail == NONE {
            self.head = index;
        } else {
            slab.get_mut(self.tail).next = index;
        }
        self.tail = index;
    }

    /// Takes the first request out of the queue, but leaves it in the slab for as long as it is filled.
    #[inline]
    pub(crate) fn take(&mut self, slab: &Slab<RecvWork>) -> Option<u32> {
        if self.head == NONE {
            return None;
        }
        let index = self.head;
        self.head = slab.get(index).next;
        if self.head == NONE {
            self.tail = NONE;
        }
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Operation;
    use roci_units::{Psn, Qpn};
    use roci_wire::{Header, Opcode};

    /// A READ's responses echo it, and are known by that.
    #[test]
    fn a_request_s_position_is_what_the_wire_brings_back_after_two_to_the_24_messages() {
        let operation = Operation::Read { va: 0, rkey: 0 };
        let request = SendRequest {
            id: 1,
            operation,
            length: 64,
            address: 0,
            lkey: 0,
            solicited: false,
            signaled: true,
            fence: false,
        };
        let mut work = SendWork::new(&request);
        for (messages, msn) in [(0xff_ffff, 0xff_ffff), (0x100_0000, 0), (u32::MAX, 0xff_ffff)] {
            work.operand = u64::from(messages) << 32;
            let mut header = Header::new(Opcode::READ_RESPONSE_ONLY, Qpn::new(1), Psn::new(0));
            header.set_request_position(work.position(3));
            assert_eq!(header.request_position(), work.position(3));
            assert_eq!(work.position(3).msn, msn);
        }
    }
}
