//! How long a flow takes alone on an idle path: the yardstick of slowdown.
//!
//! Every node on the path stores a frame whole before it forwards it, so the packets of a message move like a convoy
//! over hops of different speed. Packet i leaves hop h once it has arrived there and packet i − 1 has left it. Unrolled,
//! that is the costliest walk through the grid of packets and hops from the first packet at the first hop to the last
//! packet at the last hop, each step going one packet or one hop on. All packets between the first and the last are
//! alike, so such a walk is given by three numbers, and trying them all takes no longer for a gigabyte than for a
//! kilobyte.

mod together;

pub use together::Links;

use crate::results::Op;
use roci_units::{BitsPerSec, Span};
use roci_wire::Opcode;

/// A link on a path, in the direction of travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// Its rate, above zero.
    pub rate: BitsPerSec,
    /// Its propagation delay.
    pub delay: Span,
}

impl Hop {
    /// How long the data of `frames` keep it busy.
    pub fn busy(self, frames: &Frames) -> Span {
        Span::from_ps(self.time(frames.all()))
    }

    /// The time of `octets` sent without a gap, rounded down.
    ///
    /// Down, because a link that carries remainders from frame to frame never needs less: the formula stays a lower
    /// bound at odd rates too.
    fn time(self, octets: u64) -> u64 {
        const PS: u64 = 8_000_000_000_000;
        if PS.is_multiple_of(self.rate.0) {
            return octets * (PS / self.rate.0);
        }
        let ps = u128::from(octets) * u128::from(PS) / u128::from(self.rate.0);
        u64::try_from(ps).unwrap_or(u64::MAX)
    }
}

/// The frames of a message, or of several alike that follow one another, in octets on the wire, preamble and gap included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames {
    /// What the requester sends ahead of the data: a READ's or an atomic's request; none for the others.
    request: Option<u64>,
    /// Whether the data go from the responder to the requester.
    turned: bool,
    /// Number of messages.
    messages: u64,
    /// Number of data packets of each.
    packets: u64,
    /// The first data packet.
    first: u64,
    /// Each one between the first and the last.
    middle: u64,
    /// The last data packet; the first too where there is one only.
    last: u64,
    /// What the first and the last that are sent may be as short as, where messages of several lengths go in an order that nobody knows.
    shortest: Option<u64>,
    /// What the responder sends when all has arrived: an acknowledgement; none where the data are the answer.
    answer: Option<u64>,
}

impl Frames {
    /// The frames of a message of `bytes` octets, or of an atomic for each eight of them, in packets of up to `mtu` octets of payload, where `wire_octets` gives
    /// the length of a packet from its opcode and payload.
    ///
    /// # Panics
    /// When `mtu` is zero.
    pub fn new(op: Op, bytes: u64, mtu: u32, wire_octets: impl Fn(Opcode, u32) -> u32) -> Self {
        let octets = |opcode, payload| u64::from(wire_octets(opcode, payload));
        let (only, first, middle, last) = match op {
            Op::Send => (Opcode::SEND_ONLY, Opcode::SEND_FIRST, Opcode::SEND_MIDDLE, Opcode::SEND_LAST),
            Op::Write => (Opcode::WRITE_ONLY, Opcode::WRITE_FIRST, Opcode::WRITE_MIDDLE, Opcode::WRITE_LAST),
            Op::Read => (
                Opcode::READ_RESPONSE_ONLY,
                Opcode::READ_RESPONSE_FIRST,
                Opcode::READ_RESPONSE_MIDDLE,
                Opcode::READ_RESPONSE_LAST,
            ),
            Op::FetchAdd | Op::CompareSwap => {
                let opcode = if op == Op::FetchAdd { Opcode::FETCH_ADD } else { Opcode::COMPARE_SWAP };
                let request = octets(opcode, 0);
                let answer = octets(Opcode::ATOMIC_ACKNOWLEDGE, 0);
                return Self {
                    request: None,
                    turned: false,
                    messages: 1,
                    packets: bytes.div_ceil(8).max(1),
                    first: request,
                    middle: request,
                    last: request,
                    shortest: None,
                    answer: Some(answer),
                };
            }
        };
        let packets = bytes.div_ceil(u64::from(mtu)).max(1);
        let rest = u32::try_from(bytes - (packets - 1) * u64::from(mtu)).expect("at most one MTU");
        let (first, last) = if packets == 1 {
            (octets(only, rest), octets(only, rest))
        } else {
            (octets(first, mtu), octets(last, rest))
        };
        let (request, answer) = match op {
            Op::Read => (Some(octets(Opcode::READ_REQUEST, 0)), None),
            _ => (None, Some(octets(Opcode::ACKNOWLEDGE, 0))),
        };
        Self {
            request,
            turned: op == Op::Read,
            messages: 1,
            packets,
            first,
            middle: octets(middle, mtu),
            last,
            shortest: None,
            answer,
        }
    }

    /// At least the frames of messages of `op` of several lengths, `octets` in all, of which the longest has `longest` and the
    /// shortest `least`, in an order that nobody knows.
    ///
    /// # Panics
    /// When `mtu` is zero.
    pub fn mixed(
        op: Op,
        octets: u64,
        [least, longest]: [u64; 2],
        mtu: u32,
        wire_octets: impl Fn(Opcode, u32) -> u32,
    ) -> Self {
        // Where none of them fills a packet, packets are shorter.
        let mtu = u32::try_from(longest).map_or(mtu, |longest| longest.clamp(1, mtu));
        let tail = if longest > u64::from(mtu) { 1 } else { least };
        // The last of several has a shorter header than one that is alone, and than the first.
        let shortest = Self::new(op, u64::from(mtu) + tail, mtu, &wire_octets).last;
        let shortest = shortest.min(Self::new(op, tail, mtu, &wire_octets).last);
        Self { shortest: Some(shortest), ..Self::new(op, octets, mtu, wire_octets) }
    }

    /// The frames of a WRITE with immediate, which tells its responder.
    ///
    /// # Panics
    /// When `mtu` is zero.
    pub fn told(bytes: u64, mtu: u32, wire_octets: impl Fn(Opcode, u32) -> u32) -> Self {
        let told = |opcode, payload| {
            let opcode = match opcode {
                Opcode::WRITE_ONLY => Opcode::WRITE_ONLY_IMMEDIATE,
                Opcode::WRITE_LAST => Opcode::WRITE_LAST_IMMEDIATE,
                other => other,
            };
            wire_octets(opcode, payload)
        };
        Self::new(Op::Write, bytes, mtu, told)
    }

    /// The same until all has arrived, and nobody answers.
    pub fn unanswered(self) -> Self {
        Self { answer: None, ..self }
    }

    /// The same from the responder to the requester.
    pub fn turned(self) -> Self {
        Self { turned: true, ..self }
    }

    /// So many `messages` of these frames, one behind the other, of which the last is answered.
    ///
    /// # Panics
    /// When there are none.
    pub fn repeated(self, messages: u64) -> Self {
        assert!(messages > 0, "a flow has a message");
        Self { messages, ..self }
    }

    /// The first data packet and the last, or what is no longer than these.
    fn ends(&self) -> [u64; 2] {
        self.shortest.map_or([self.first, self.last], |shortest| [shortest; 2])
    }

    /// Octets of all data packets.
    fn all(&self) -> u64 {
        let message = match self.packets {
            1 => self.first,
            packets => self.first + self.middle * (packets - 2) + self.last,
        };
        message * self.messages
    }
}

/// The time from the post of a message to its sender's completion, alone on the idle `path` from requester to
/// responder; the way back has the same links.
///
/// Neither node takes any time of its own, and nothing limits the sender but its link.
///
/// # Panics
/// When the path has no hop.
pub fn completion_time(path: &[Hop], frames: &Frames) -> Span {
    least_completion_time(&[path], frames, false)
}

/// The same where there are several paths, and each of request, data and answer takes the one that is best for it: what
/// goes there and what comes back choose by themselves. Where packets are `sprayed`, so does each of the data.
///
/// # Panics
/// When there is no path, or one has no hop.
pub fn least_completion_time<P: AsRef<[Hop]>>(paths: &[P], frames: &Frames, sprayed: bool) -> Span {
    let least = |time: &dyn Fn(&[Hop]) -> u64| {
        let times = paths.iter().map(|path| {
            assert!(!path.as_ref().is_empty(), "a path has a hop");
            time(path.as_ref())
        });
        times.min().expect("a path")
    };
    let single =
        |octets: u64| least(&|path| path.iter().map(|hop| hop.time(octets) + hop.delay.as_ps()).sum::<u64>());
    let walk = if sprayed { scattered } else { convoy };
    let data = least(&|path| {
        if !frames.turned {
            return walk(path, frames);
        }
        let back: Vec<Hop> = path.iter().rev().copied().collect();
        walk(&back, frames)
    });
    Span::from_ps(frames.request.map_or(0, single) + data + frames.answer.map_or(0, single))
}

/// The same where each packet takes a way of its own between the first link and the last, which all of them share: those
/// in between hold up the whole only where all of them together are slower than the first.
///
/// It is a lower bound: in between, each packet is taken for the shorter of the first and the last.
fn scattered(path: &[Hop], frames: &Frames) -> u64 {
    if frames.packets * frames.messages == 1 || path.len() < 3 {
        return convoy(path, frames);
    }
    let (all, [first, last]) = (frames.all(), frames.ends());
    let least = first.min(last);
    let sum = |hops: &[Hop], octets: u64| hops.iter().map(|hop| hop.time(octets)).sum::<u64>();
    let by_first = path[0].time(all) + sum(&path[1..], last);
    let by_others =
        (1..path.len()).filter(|&hop| hop + 1 == path.len() || path[hop].rate < path[0].rate).map(|hop| {
            path[0].time(first)
                + sum(&path[1..hop], least)
                + path[hop].time(all)
                + sum(&path[hop + 1..], least)
        });
    path.iter().map(|hop| hop.delay.as_ps()).sum::<u64>() + by_others.fold(by_first, u64::max)
}

/// A time that nothing beats where packets are sprayed over `paths` that carry no more than `rate` together, which is less than the
/// links of both ends: all data cross the links that bound it, each packet after it has crossed the first link of its path, and
/// before it crosses the last.
///
/// # Panics
/// When there is no path, or one has no hop.
pub fn least_time_at<P: AsRef<[Hop]>>(paths: &[P], frames: &Frames, rate: BitsPerSec) -> Span {
    let least =
        |time: &dyn Fn(&[Hop]) -> u64| paths.iter().map(|path| time(path.as_ref())).min().expect("a path");
    let delays = |path: &[Hop]| path.iter().map(|hop| hop.delay.as_ps()).sum::<u64>();
    let single =
        |octets: u64| least(&|path| delays(path) + path.iter().map(|hop| hop.time(octets)).sum::<u64>());
    let [first, last] = frames.ends();
    let shortest = first.min(last);
    let ends = least(&|path| {
        let [first, last] =
            [path.first(), path.last()].map(|hop| hop.expect("a path has a hop").time(shortest));
        delays(path) + first + last
    });
    let all = Hop { rate, delay: Span::ZERO }.time(frames.all());
    Span::from_ps(frames.request.map_or(0, single) + ends + all + frames.answer.map_or(0, single))
}

/// The time from the first data packet's start to the last one's arrival, in picoseconds. Of several messages it is a lower
/// bound: packets differ within each, and only walks that turn at one hop are tried.
fn convoy(path: &[Hop], frames: &Frames) -> u64 {
    let delays = path.iter().map(|hop| hop.delay.as_ps()).sum::<u64>();
    let walk = match frames.packets {
        _ if frames.messages > 1 || frames.shortest.is_some() => {
            let [first, last] = frames.ends();
            let sum = |hops: &[Hop], octets: u64| hops.iter().map(|hop| hop.time(octets)).sum::<u64>();
            let turn = |hop: usize| {
                sum(&path[..hop], first) + path[hop].time(frames.all()) + sum(&path[hop + 1..], last)
            };
            (0..path.len()).map(turn).max().unwrap_or(0)
        }
        1 => path.iter().map(|hop| hop.time(frames.first)).sum(),
        2 => (0..path.len()).map(|turn| cost(path, frames, turn, turn, None)).max().unwrap_or(0),
        packets => {
            let mut costliest = 0;
            for enter in 0..path.len() {
                let mut slowest = enter;
                for leave in enter..path.len() {
                    if path[leave].rate < path[slowest].rate {
                        slowest = leave;
                    }
                    let stay = Stay { hop: slowest, packets: packets - 2 };
                    costliest = costliest.max(cost(path, frames, enter, leave, Some(stay)));
                }
            }
            costliest
        }
    };
    delays + walk
}

/// Where on a walk the middle packets follow one another.
#[derive(Clone, Copy)]
struct Stay {
    hop: usize,
    packets: u64,
}

/// The cost of the walk that follows the first packet up to hop `enter`, a middle packet from there to hop `leave`, with
/// all other middle packets at hop `stay`, and the last packet from `leave` on.
fn cost(path: &[Hop], frames: &Frames, enter: usize, leave: usize, stay: Option<Stay>) -> u64 {
    let octets = |hop: usize| {
        let first = if hop <= enter { frames.first } else { 0 };
        let last = if hop >= leave { frames.last } else { 0 };
        let middle = match stay {
            Some(stay) if hop == stay.hop => frames.middle * stay.packets,
            Some(_) if (enter..=leave).contains(&hop) => frames.middle,
            _ => 0,
        };
        first + middle + last
    };
    path.iter().enumerate().map(|(place, hop)| hop.time(octets(place))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 1000 octets of payload, 100 of everything else.
    fn frame(_: Opcode, payload: u32) -> u32 {
        payload + 100
    }

    fn hop(gbps: u64, delay_us: u64) -> Hop {
        Hop { rate: BitsPerSec::from_gbps(gbps), delay: Span::from_micros(delay_us) }
    }

    #[test]
    fn one_packet_is_sent_once_per_hop_and_acknowledged() {
        // 1100 octets at 10 Gb/s: 880 ns a hop; an ACK of 100: 80 ns.
        let frames = Frames::new(Op::Write, 1_000, 1_000, frame);
        let path = [hop(10, 1), hop(10, 1)];
        assert_eq!(completion_time(&path, &frames), Span::from_nanos(2 * 880 + 2_000 + 2 * 80 + 2_000));
    }

    #[test]
    fn packets_overlap_on_equal_hops() {
        // Ten frames at the first hop, then the last one alone at the second.
        let frames = Frames::new(Op::Send, 10_000, 1_000, frame);
        let path = [hop(10, 1), hop(10, 1)];
        assert_eq!(completion_time(&path, &frames), Span::from_nanos(11 * 880 + 2_000 + 160 + 2_000));
    }

    #[test]
    fn the_slowest_hop_sets_the_pace() {
        // One frame at 100 Gb/s (88 ns), ten at 10 Gb/s (880 ns each), the last one at 40 Gb/s (220 ns).
        let frames = Frames::new(Op::Write, 10_000, 1_000, frame);
        let path = [hop(100, 0), hop(10, 0), hop(40, 0)];
        let acknowledgement = 8 + 80 + 20;
        assert_eq!(completion_time(&path, &frames), Span::from_nanos(88 + 8_800 + 220 + acknowledgement));
    }

    #[test]
    fn a_short_last_packet_that_takes_another_way_waits_for_nobody_but_on_the_links_of_the_ends() {
        // 1000 + 1 octets over four hops: 960.8 ns on the first, then 80.8 ns on each; or 880 ns on the first, and both
        // on the last: 880 + 2 · 80.8 + 960.8 ns. In order it would wait on each for the first.
        let frames = Frames::new(Op::Write, 1_001, 1_000, frame);
        let path = [hop(10, 0), hop(10, 0), hop(10, 0), hop(10, 0)];
        let sprayed = least_completion_time(&[path], &frames, true);
        assert_eq!(sprayed, Span::from_ps(880_000 + 2 * 80_800 + 960_800 + 4 * 80_000));
        assert!(sprayed < completion_time(&path, &frames));
        let alike = Frames::new(Op::Write, 9_000, 1_000, frame);
        assert_eq!(least_completion_time(&[path], &alike, true), completion_time(&path, &alike));
    }

    #[test]
    fn a_short_last_packet_catches_up_with_the_one_before() {
        // 1000 + 1 octets. The last is short and waits at the second hop behind the first: 880 + 880 + 80.8 ns.
        let frames = Frames::new(Op::Write, 1_001, 1_000, frame);
        let path = [hop(10, 0), hop(10, 0)];
        assert_eq!(completion_time(&path, &frames), Span::from_ps(880_000 * 2 + 80_800 + 2 * 80_000));
    }

    #[test]
    fn a_read_asks_first_and_needs_no_acknowledgement() {
        let frames = Frames::new(Op::Read, 2_000, 1_000, frame);
        // The responder's link is slow: both frames follow one another there, and the last one travels on.
        let path = [hop(100, 1), hop(10, 1)];
        let request = 8 + 80 + 2_000;
        assert_eq!(completion_time(&path, &frames), Span::from_nanos(request + 2 * 880 + 88 + 2_000));
    }

    #[test]
    fn an_atomic_is_a_packet_there_and_a_packet_back() {
        let frames = Frames::new(Op::FetchAdd, 8, 1_000, frame);
        assert_eq!(completion_time(&[hop(10, 1)], &frames), Span::from_nanos(2 * (80 + 1_000)));
    }

    #[test]
    fn an_empty_message_is_one_packet() {
        let frames = Frames::new(Op::Write, 0, 1_000, frame);
        assert_eq!(completion_time(&[hop(10, 1)], &frames), Span::from_nanos(2 * (80 + 1_000)));
    }

    /// The packets of some messages.
    fn packets(frames: &Frames) -> impl Iterator<Item = u64> {
        (0..frames.packets * frames.messages).map(|packet| match packet % frames.packets {
            0 => frames.first,
            packet if packet + 1 == frames.packets => frames.last,
            _ => frames.middle,
        })
    }

    /// The recurrence itself, packet by packet and hop by hop.
    fn packet_by_packet(path: &[Hop], packets: impl IntoIterator<Item = u64>) -> u64 {
        let mut free = vec![0; path.len()];
        let mut arrival = 0;
        for octets in packets {
            arrival = 0;
            for (hop, free) in path.iter().zip(&mut free) {
                *free = arrival.max(*free) + hop.time(octets);
                arrival = *free + hop.delay.as_ps();
            }
        }
        arrival
    }

    proptest! {
        #[test]
        fn the_formula_equals_the_recurrence(
            rates in prop::collection::vec(prop::sample::select(vec![1u64, 10, 25, 40, 50, 100, 200, 400]), 1..7),
            bytes in 0u64..40_000,
            delay_us in 0u64..5,
        ) {
            let path: Vec<Hop> = rates.into_iter().map(|gbps| hop(gbps, delay_us)).collect();
            let extra = |opcode: Opcode, payload: u32| payload + if opcode == Opcode::WRITE_FIRST { 116 } else { 100 };
            let frames = Frames::new(Op::Write, bytes, 1_000, extra);
            prop_assert_eq!(convoy(&path, &frames), packet_by_packet(&path, packets(&frames)));
        }

        #[test]
        fn messages_in_a_row_take_no_less_and_those_of_one_packet_just_that(
            rates in prop::collection::vec(prop::sample::select(vec![1u64, 10, 25, 40, 50, 100, 200, 400]), 1..7),
            (bytes, messages) in (0u64..5_000, 1u64..20),
        ) {
            let path: Vec<Hop> = rates.into_iter().map(|gbps| hop(gbps, 1)).collect();
            let extra = |opcode: Opcode, payload: u32| payload + if opcode == Opcode::WRITE_FIRST { 116 } else { 100 };
            let frames = Frames::new(Op::Write, bytes, 1_000, extra).repeated(messages);
            let (least, one_by_one) = (convoy(&path, &frames), packet_by_packet(&path, packets(&frames)));
            prop_assert!(least <= one_by_one && (bytes > 1_000 || least == one_by_one), "{least}, {one_by_one}");
            prop_assert!(scattered(&path, &frames) <= one_by_one);
        }

        #[test]
        fn messages_of_several_lengths_take_no_less_in_whatever_order(
            rates in prop::collection::vec(prop::sample::select(vec![1u64, 10, 25, 40, 100]), 1..7),
            lengths in prop::collection::vec(prop_oneof![0u64..5_000, 990u64..1_010], 1..12),
        ) {
            let path: Vec<Hop> = rates.into_iter().map(|gbps| hop(gbps, 1)).collect();
            let extra = |opcode: Opcode, payload: u32| {
                payload + 100 + if opcode.shape().has(roci_wire::Shape::RETH) { 16 } else { 0 }
            };
            let ends = [lengths.iter().min(), lengths.iter().max()].map(|of| *of.expect("there is one"));
            let frames = Frames::mixed(Op::Write, lengths.iter().sum(), ends, 1_000, extra);
            let of = |&bytes: &u64| packets(&Frames::new(Op::Write, bytes, 1_000, extra)).collect::<Vec<_>>();
            let one_by_one = packet_by_packet(&path, lengths.iter().flat_map(of));
            for least in [convoy(&path, &frames), scattered(&path, &frames)] {
                prop_assert!(least <= one_by_one, "{least}, {one_by_one}");
                // No more is given away than the shorter ends and the headers.
                let most = path.iter().map(|hop| hop.time(2_300 + 116 * 60)).sum::<u64>();
                prop_assert!(one_by_one - least <= most, "{least}, {one_by_one}");
            }
        }
    }
}
