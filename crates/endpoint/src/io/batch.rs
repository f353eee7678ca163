//! Packets gathered for one system call: headers in an arena, payload where it lies.

use super::arena::Arena;
use crate::icrc::{Flow, Heads};
use roci_wire::Ecn;
use std::net::IpAddr;

/// Octets of headers and copied payload in one batch.
const ARENA: usize = 192 << 10;
/// Octets after which a batch is full: what fits the second-level cache beside the receiver's buffers, and four messages
/// of 64 KiB with their headers, so that they do not end in a run of the last few packets.
const OCTETS: usize = 272 << 10;
/// The most pieces that one run may consist of (`UIO_MAXIOV`, less those of a packet).
const PIECES_MAX: usize = 1000;
/// The most octets that a run may carry: what an IP datagram holds, less its headers.
const RUN_OCTETS: usize = 65_000;
/// Runs of one batch.
const RUNS_MAX: usize = 64;
/// Octets of the most that [`Batch::push`] writes into the arena besides copied payload.
const FRAMING_MAX: usize = 256;

/// Runs of packets to be sent.
///
/// Payload that is not copied is referred to by address. Whoever fills a batch keeps that memory alive until the
/// batch is cleared; this is why filling it is `pub(crate)` and [`PacketIo::send`](super::PacketIo::send) has no way to keep it.
pub struct Batch {
    arena: Arena,
    /// Whether the last piece lies in the arena.
    in_arena: bool,
    pieces: Vec<libc::iovec>,
    runs: Vec<Run>,
    run_max: usize,
    packets: usize,
    octets: usize,
    heads: Heads,
}

// SAFETY: the addresses in `pieces` are used only while the memory behind them is kept alive by the shard that owns
// the batch and moves with it; nothing about them belongs to a thread.
#[expect(unsafe_code, reason = "see above")]
unsafe impl Send for Batch {}

/// Consecutive packets to one address, all of one length but for a shorter last one.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Where to.
    pub destination: IpAddr,
    /// The mark in the IP header.
    pub ecn: Ecn,
    /// The code point in the IP header.
    pub dscp: u8,
    /// Octets of each packet but the last.
    pub segment: usize,
    /// Octets of all packets.
    pub octets: usize,
    /// How many packets.
    pub packets: usize,
    /// The identification of the first packet.
    pub id: u16,
    first_piece: usize,
    pieces: usize,
    closed: bool,
}

/// Where a packet goes, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) destination: IpAddr,
    pub(crate) ecn: Ecn,
    pub(crate) dscp: u8,
    pub(crate) flow: Flow,
}

/// One packet's octets.
pub(crate) enum Payload<'a> {
    /// Octets that are copied into the batch by the function, which is given their place.
    Copied(usize, &'a mut dyn FnMut(&mut [u8])),
    /// Octets that stay where they are until the batch is cleared.
    InPlace(&'a [u8]),
}

impl Payload<'_> {
    fn len(&self) -> usize {
        match self {
            Payload::Copied(len, _) => *len,
            Payload::InPlace(octets) => octets.len(),
        }
    }
}

impl Batch {
    /// An empty batch for runs of up to `run_max` packets.
    pub(crate) fn new(run_max: usize) -> Self {
        Self {
            arena: Arena::new(ARENA),
            in_arena: false,
            pieces: Vec::with_capacity(4096),
            runs: Vec::with_capacity(RUNS_MAX),
            run_max,
            packets: 0,
            octets: 0,
            heads: Heads::default(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        self.arena.clear();
        self.runs.clear();
        (self.packets, self.octets) = (0, 0);
    }

    /// Whether `packets` packets with `copied` octets of payload that is copied still fit for certain.
    pub(crate) fn has_room(&self, packets: usize, copied: usize) -> bool {
        self.octets < OCTETS
            && self.arena.used() + copied + packets * FRAMING_MAX <= ARENA
            && self.runs.len() + 4 + packets / 32 <= RUNS_MAX
    }

    /// The runs.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Packets in all runs.
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// The pieces of a run, for `sendmsg`.
    pub(crate) fn pieces(&self, run: &Run) -> &[libc::iovec] {
        &self.pieces[run.first_piece..run.first_piece + run.pieces]
    }

    /// All octets of a run, one packet after the other, for wires that are no sockets.
    pub fn copy_run(&self, run: &Run, to: &mut Vec<u8>) {
        to.clear();
        for piece in self.pieces(run) {
            // SAFETY: each piece lies in the arena or in memory that its owner keeps until the batch is cleared.
            #[expect(unsafe_code, reason = "see above")]
            to.extend_from_slice(unsafe { std::slice::from_raw_parts(piece.iov_base.cast(), piece.iov_len) });
        }
    }

    /// Appends a packet: `headers` are BTH and extensions, of which the `cc` octets behind the BTH count as ones in
    /// the ICRC; pad and ICRC are added.
    ///
    /// It joins the last run where it may. The caller has asked [`has_room`](Self::has_room).
    pub(crate) fn push(
        &mut self,
        route: &Route,
        next_id: impl FnOnce() -> u16,
        headers: &[u8],
        cc: usize,
        payload: Payload<'_>,
    ) {
        let length = payload.len();
        let pad = length.next_multiple_of(4) - length;
        let octets = headers.len() + length + pad + crate::icrc::ICRC_LEN;
        let id = self.join_or_begin(route, octets, next_id);
        let head = self.heads.head(&route.flow, octets, id, roci_wire::udp::ROCE_PORT);
        match headers.first_chunk::<{ crate::icrc::BTH_LEN }>() {
            Some(bth) if headers.len() == bth.len() => self.put_some(bth),
            _ => self.put(headers),
        }
        let crc = match payload {
            Payload::Copied(length, fill) => {
                let (begin, crc) = self.arena.append(length, |place| {
                    fill(place);
                    crate::icrc::update_packet(head, headers, cc, place)
                });
                self.extend_piece(begin, length);
                crc
            }
            Payload::InPlace(octets) => {
                self.pieces
                    .push(libc::iovec { iov_base: octets.as_ptr().cast_mut().cast(), iov_len: octets.len() });
                self.in_arena = false;
                crate::icrc::update_packet(head, headers, cc, octets)
            }
        };
        if pad == 0 {
            self.put_some(&crc.to_le_bytes());
        } else {
            const ZEROS: [u8; 3] = [0; 3];
            self.put(&ZEROS[..pad]);
            self.put_some(&crate::icrc::update_few(crc, &ZEROS[..pad]).to_le_bytes());
        }
        let pieces = self.pieces.len();
        if let Some(run) = self.runs.last_mut() {
            run.pieces = pieces - run.first_piece;
        }
        (self.packets, self.octets) = (self.packets + 1, self.octets + octets);
    }

    /// The identification of a packet of `octets` in the last run, or in a new one.
    fn join_or_begin(&mut self, route: &Route, octets: usize, next_id: impl FnOnce() -> u16) -> u16 {
        let pieces = self.pieces.len();
        if let Some(run) = self.runs.last_mut()
            && !run.closed
            && octets <= run.segment
            && run.packets < self.run_max
            && run.octets + octets <= RUN_OCTETS
            && pieces - run.first_piece < PIECES_MAX
            && (run.destination, run.ecn, run.dscp) == (route.destination, route.ecn, route.dscp)
        {
            #[expect(clippy::cast_possible_truncation, reason = "at most 128")]
            let id = run.id.wrapping_add(run.packets as u16);
            run.closed = octets < run.segment;
            run.octets += octets;
            run.packets += 1;
            return id;
        }
        let id = next_id();
        self.runs.push(Run {
            destination: route.destination,
            ecn: route.ecn,
            dscp: route.dscp,
            segment: octets,
            octets,
            packets: 1,
            id,
            first_piece: pieces,
            pieces: 0,
            closed: false,
        });
        id
    }

    #[inline]
    fn put(&mut self, octets: &[u8]) {
        let (begin, ()) = self.arena.append(octets.len(), |place| place.copy_from_slice(octets));
        self.extend_piece(begin, octets.len());
    }

    /// The same for a number of octets that is known.
    #[inline]
    fn put_some<const N: usize>(&mut self, octets: &[u8; N]) {
        let (begin, ()) = self.arena.append(N, |place| place.copy_from_slice(octets));
        self.extend_piece(begin, N);
    }

    /// Counts the `length` octets of the arena at `begin` to the last piece, or to a new one.
    #[inline]
    fn extend_piece(&mut self, begin: *mut u8, length: usize) {
        let first = self.runs.last().map_or(0, |run| run.first_piece);
        if self.pieces.len() > first
            && self.in_arena
            && let Some(last) = self.pieces.last_mut()
            && last.iov_base.cast::<u8>().wrapping_add(last.iov_len) == begin
        {
            last.iov_len += length;
        } else {
            self.pieces.push(libc::iovec { iov_base: begin.cast(), iov_len: length });
            self.in_arena = true;
        }
    }
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("packets", &self.packets)
            .field("runs", &self.runs)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_consists_of_is_what_was_pushed_also_after_more_was_pushed() {
        let (source, destination) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let route = Route { destination, ecn: Ecn::Ect0, dscp: 0, flow: Flow::new(source, destination) };
        let mut batch = Batch::new(64);
        let lent: Vec<u8> = (0..100).collect();
        for round in 0..2u8 {
            for packet in 0..5u8 {
                let headers = [packet; 12];
                batch.push(&route, || 0, &headers, 0, Payload::InPlace(&lent));
                let mut fill = |place: &mut [u8]| place.fill(packet ^ 0x55);
                batch.push(&route, || 0, &headers, 0, Payload::Copied(100, &mut fill));
            }
            let (mut octets, run) = (Vec::new(), batch.runs()[0]);
            batch.copy_run(&run, &mut octets);
            assert_eq!((batch.runs().len(), run.packets, run.segment), (1, 10, 116));
            for (packet, pair) in (0..5u8).zip(octets.chunks(2 * 116)) {
                assert_eq!((&pair[..12], &pair[12..112]), (&[packet; 12][..], &lent[..]), "round {round}");
                assert_eq!(
                    (&pair[116..128], &pair[128..228]),
                    (&[packet; 12][..], &[packet ^ 0x55; 100][..])
                );
            }
            batch.clear();
        }
    }
}
