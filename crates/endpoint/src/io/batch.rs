//! Packets gathered for one system call: each run in one piece, headers, payload and ICRC one after the other.

use crate::icrc::{self, Flow, Heads, ICRC_LEN};
use crate::io::Start;
use roci_wire::Ecn;
use std::net::IpAddr;

/// The most octets that a run may carry: what an IP datagram holds, less its headers.
const RUN_OCTETS: usize = 65_000;
/// Octets after which a batch is to leave before another run begins: two or three long runs, as what a call brings with it
/// costs more than what is put together again and again in the same octets gains by their being fewer. They stay in the
/// second-level cache.
const ENOUGH: usize = 128 << 10;
/// Octets of a batch: enough, and a run.
const OCTETS_MAX: usize = ENOUGH + RUN_OCTETS;
/// Runs of one batch.
const RUNS_MAX: usize = 64;

/// Runs of packets to be sent.
///
/// Payload is copied into it, while its ICRC is computed: the copy costs nothing beside that, and a piece for each
/// packet's payload and one for its headers would cost the kernel more.
pub struct Batch {
    octets: Box<[u8]>,
    used: usize,
    runs: Vec<Run>,
    run_max: usize,
    packets: usize,
    /// Octets that went into it since it was made.
    passed: u64,
    heads: Heads,
}

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
    /// The UDP source port of its packets.
    pub source_port: u16,
    /// The identification of the first packet.
    pub id: u16,
    /// Where it begins in the batch.
    first: usize,
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
    /// So many, which the function writes to where they are to be.
    Written(usize, &'a mut dyn FnMut(&mut [u8])),
    /// These.
    Octets(&'a [u8]),
}

impl Payload<'_> {
    fn len(&self) -> usize {
        match self {
            Payload::Written(len, _) => *len,
            Payload::Octets(octets) => octets.len(),
        }
    }
}

/// Octets of a packet, BTH to ICRC.
#[inline]
fn packet_len(headers: usize, payload: usize) -> usize {
    headers + payload.next_multiple_of(4) + ICRC_LEN
}

impl Batch {
    /// An empty batch for runs of up to `run_max` packets.
    pub(crate) fn new(run_max: usize) -> Self {
        Self {
            octets: vec![0; OCTETS_MAX].into_boxed_slice(),
            used: 0,
            runs: Vec::with_capacity(RUNS_MAX),
            run_max,
            packets: 0,
            passed: 0,
            heads: Heads::default(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        (self.used, self.packets) = (0, 0);
    }

    /// Octets that went into it since it was made.
    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }

    /// The runs.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Packets in all runs.
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// All octets of a run of this batch, one packet after the other.
    pub fn octets(&self, run: &Run) -> &[u8] {
        &self.octets[run.first..run.first + run.octets]
    }

    /// Whether a packet with so many octets of headers and of payload can join the last run.
    #[inline]
    pub(crate) fn joins(&self, route: &Route, headers: usize, payload: usize) -> bool {
        let octets = packet_len(headers, payload);
        self.runs.last().is_some_and(|run| {
            !run.closed
                && octets <= run.segment
                && run.packets < self.run_max
                && run.octets + octets <= RUN_OCTETS
                && (run.destination, run.ecn, run.dscp) == (route.destination, route.ecn, route.dscp)
        })
    }

    /// Whether the batch is to be sent before another run begins.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.used >= ENOUGH || self.runs.len() >= RUNS_MAX
    }

    /// Appends a packet: `headers` are BTH and extensions, of which the `cc` octets behind the BTH count as ones in
    /// the ICRC; pad and ICRC are added.
    ///
    /// It `joins` the last run where it [may](Self::joins), or begins a new one, before which the batch is sent if it [is
    /// due](Self::is_due).
    #[inline]
    pub(crate) fn push(
        &mut self,
        route: &Route,
        joins: bool,
        start: impl FnOnce() -> Start,
        headers: &[u8],
        cc: usize,
        payload: Payload<'_>,
    ) {
        let length = payload.len();
        let octets = packet_len(headers.len(), length);
        let Start { source_port, id } = match self.runs.last_mut() {
            Some(run) if joins => {
                #[expect(clippy::cast_possible_truncation, reason = "at most 128")]
                let id = run.id.wrapping_add(run.packets as u16);
                run.closed = octets < run.segment;
                run.octets += octets;
                run.packets += 1;
                Start { source_port: run.source_port, id }
            }
            _ => self.begin(route, octets, start()),
        };
        let head = self.heads.head(&route.flow, octets, id, source_port);
        let (front, rest) = self.octets[self.used..self.used + octets].split_at_mut(headers.len());
        match (front.as_mut_array::<{ icrc::BTH_LEN }>(), headers.as_array()) {
            // A length that is known is a few moves.
            (Some(place), Some(bth)) => *place = *bth,
            _ => front.copy_from_slice(headers),
        }
        let (place, tail) = rest.split_at_mut(length);
        let crc = match payload {
            Payload::Written(_, write) => {
                write(place);
                icrc::update_packet(head, headers, cc, place)
            }
            Payload::Octets(octets) => icrc::copy_packet(head, headers, cc, octets, place),
        };
        match tail.as_mut_array() {
            Some(place) => *place = crc.to_le_bytes(),
            None => {
                let (pad, place) = tail.split_at_mut(tail.len() - ICRC_LEN);
                pad.fill(0);
                place.copy_from_slice(&icrc::update_few(crc, pad).to_le_bytes());
            }
        }
        self.used += octets;
        self.packets += 1;
        self.passed += octets as u64;
    }

    /// Begins a run with a packet of `octets`.
    fn begin(&mut self, route: &Route, octets: usize, start: Start) -> Start {
        self.runs.push(Run {
            destination: route.destination,
            ecn: route.ecn,
            dscp: route.dscp,
            segment: octets,
            octets,
            packets: 1,
            source_port: start.source_port,
            id: start.id,
            first: self.used,
            closed: false,
        });
        start
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
                let joins = batch.joins(&route, 12, 100);
                assert_eq!(joins, packet > 0);
                batch.push(&route, joins, || Start::with_id(0), &headers, 0, Payload::Octets(&lent));
                let mut fill = |place: &mut [u8]| place.fill(packet ^ 0x55);
                batch.push(&route, true, || Start::with_id(0), &headers, 0, Payload::Written(100, &mut fill));
            }
            let run = batch.runs()[0];
            assert_eq!((batch.runs().len(), run.packets, run.segment), (1, 10, 116));
            for (packet, pair) in (0..5u8).zip(batch.octets(&run).chunks(2 * 116)) {
                assert_eq!((&pair[..12], &pair[12..112]), (&[packet; 12][..], &lent[..]), "round {round}");
                assert_eq!(
                    (&pair[116..128], &pair[128..228]),
                    (&[packet; 12][..], &[packet ^ 0x55; 100][..])
                );
            }
            batch.clear();
        }
    }

    #[test]
    fn a_batch_that_is_sent_when_it_is_due_holds_the_longest_runs() {
        let (source, destination) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let route = Route { destination, ecn: Ecn::Ect0, dscp: 0, flow: Flow::new(source, destination) };
        let mut batch = Batch::new(64);
        for number in 0..10_000usize {
            // Now longer, now shorter, so that runs end where they may.
            let length = [4096, 4096, 1024, 4096, 1, 4096, 4096, 4093][number / 7 % 8];
            let joins = batch.joins(&route, 28, length);
            if !joins && batch.is_due() {
                assert!(batch.packets() > 0);
                batch.clear();
            }
            batch.push(
                &route,
                joins && !batch.is_empty(),
                || Start::with_id(0),
                &[0; 28],
                0,
                Payload::Octets(&[0; 4096][..length]),
            );
        }
    }
}
