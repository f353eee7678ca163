//! Senders that choose a path for each packet, by the UDP source port that switches hash.
//!
//! The port is the packet's entropy value (EV). At random it makes oblivious packet spraying (OPS). REPS (Bonato et al., "REPS:
//! Recycled Entropy Packet Spraying for Adaptive Load Balancing and Failure Mitigation", arXiv 2407.21625) uses the ports of
//! packets again that were acknowledged without a mark, and after a timeout, which tells of a path that has failed, no others for a
//! while. What answers a packet brings the port back as its own.

use crate::path::Path;
use roci_fabric::packet::{Marks, Packet};
use roci_fabric::routing::flow_hash;
use roci_transport::{Counters, Engine};
use roci_units::{Instant, Qpn, Random, Span};
use roci_wire::{Flags, NakCode, Opcode, Shape, Syndrome};
use std::collections::HashMap;

/// Where the ports of RoCEv2 begin, of which there are 2¹⁴ (IBTA Annex A17.9.2).
const FIRST_PORT: u16 = 0xc000;
/// The most ports that there are to choose from.
pub const PORTS: u16 = 1 << 14;
/// Ports that REPS remembers for a queue pair (§3 of its paper).
const CACHED: u8 = 8;

/// How the packets of a host's queue pairs choose their ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spreading {
    /// How many ports there are to choose from, 1 to [`PORTS`].
    pub entropies: u16,
    /// REPS; `None`: each port is as good as any other.
    pub recycling: Option<Recycling>,
}

/// What REPS goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recycling {
    /// Packets that take a port at random at the beginning, and when paths that failed are tried again.
    pub explore: u16,
    /// How long after a timeout only known ports are used; zero: it says nothing.
    pub freeze: Span,
    /// Whether a sequence error is about the packet that drew it, as where switches trim, and not about one before it.
    pub nak_is_loss: bool,
}

/// The ports of a host's packets.
#[derive(Debug)]
pub(crate) struct Spread {
    how: Spreading,
    random: Random,
    /// By the place of the queue pair in the engine.
    choosers: Vec<Option<Chooser>>,
    /// Those places, by what the queue pair is connected by.
    by_path: HashMap<u64, usize>,
}

/// One queue pair's choice.
#[derive(Clone, Debug)]
struct Chooser {
    qpn: Qpn,
    /// What it is connected by: the engine knows its peer's packets by that flow.
    path: Path,
    /// The port of the latest packet that came for it, answers aside.
    latest: Option<u16>,
    /// Timeouts that have been answered.
    timeouts: u32,
    /// Packets that still take a port at random.
    explore: u16,
    cache: Cache,
    /// Until when no new port is tried; `None`: they are.
    frozen: Option<Instant>,
    /// Something was answered since the latest timeout.
    heard: bool,
}

/// Ports whose packets came through, in the order in which that was heard.
#[derive(Clone, Debug, Default)]
struct Cache {
    ports: [u16; CACHED as usize],
    /// Where the next one is put.
    head: u8,
    /// How many there are.
    kept: u8,
    /// How many of them, the last ones, have not been used since.
    fresh: u8,
    /// The last that was used although it was not fresh.
    again: u8,
}

impl Cache {
    /// A packet with this port came through.
    fn keep(&mut self, port: u16) {
        self.ports[usize::from(self.head)] = port;
        self.head = (self.head + 1) % CACHED;
        self.kept = (self.kept + 1).min(CACHED);
        self.fresh = (self.fresh + 1).min(CACHED);
    }

    /// The oldest that has not been used since, which it is now.
    fn take_fresh(&mut self) -> Option<u16> {
        let at = (self.head + CACHED).checked_sub(self.fresh)? % CACHED;
        self.fresh = self.fresh.checked_sub(1)?;
        Some(self.ports[usize::from(at)])
    }

    /// The next in turn, whether it has been used or not.
    fn take_again(&mut self) -> Option<u16> {
        self.again = (self.again + 1).checked_rem(self.kept)?;
        Some(self.ports[usize::from(self.again)])
    }
}

impl Spread {
    pub(crate) fn new(how: Spreading, random: Random) -> Self {
        Self { how, random, choosers: Vec::new(), by_path: HashMap::new() }
    }

    /// The queue pair `qpn` at `place` is a new one, connected by `path`.
    pub(crate) fn begin(&mut self, place: usize, qpn: Qpn, path: Path) {
        if self.choosers.len() <= place {
            self.choosers.resize(place + 1, None);
        }
        let explore = self.how.recycling.map_or(0, |recycling| recycling.explore);
        let cache = Cache::default();
        let new = Chooser { qpn, path, latest: None, timeouts: 0, explore, cache, frozen: None, heard: true };
        if let Some(before) = self.choosers[place].replace(new) {
            let before = before.path.pack();
            // Of two with one path, the later one is known by it.
            if self.by_path.get(&before) == Some(&place) {
                self.by_path.remove(&before);
            }
        }
        self.by_path.insert(path.pack(), place);
    }

    /// The queue pair at `place`, if it is the one that `packet` has come for, and not one that had the place before.
    fn chooser_for(&mut self, place: usize, packet: &Packet) -> Option<&mut Chooser> {
        let chooser = self.choosers.get_mut(place)?.as_mut()?;
        (chooser.qpn == packet.header.dest_qpn).then_some(chooser)
    }

    /// The flow by which the engine knows `packet`, which has come for the queue pair at `place`.
    pub(crate) fn flow_of(&self, place: usize, packet: &Packet) -> u32 {
        let chooser = self.choosers.get(place).and_then(Option::as_ref);
        chooser
            .filter(|chooser| chooser.qpn == packet.header.dest_qpn)
            .map_or(packet.flow, |chooser| chooser.path.flow)
    }

    /// Gives `packet`, of the queue pair at `place`, a port of its own.
    pub(crate) fn choose(&mut self, now: Instant, engine: &Engine, place: usize, packet: &mut Packet) {
        let Some(chooser) = self.choosers.get_mut(place).and_then(Option::as_mut) else { return };
        if let Some(recycling) = &self.how.recycling {
            chooser.thaw(now, recycling);
            if packet.marks.has(Marks::AGAIN) {
                chooser.heed(now, recycling, engine.counters(chooser.qpn));
            }
        }
        let port = chooser.next_known().unwrap_or_else(|| any(&mut self.random, self.how.entropies));
        set_port(packet, port);
    }

    /// Gives `packet`, which is no data, the port of the packet that it answers. What answers none, as a pull, takes that of the latest
    /// that came for its queue pair: a sender that keeps to known ports knows it from an answer, which came by it as well.
    pub(crate) fn set_answer(&mut self, answered: Option<u16>, packet: &mut Packet) {
        let latest = || {
            let path = Path { host: packet.destination, flow: packet.flow };
            self.choosers.get(*self.by_path.get(&path.pack())?)?.as_ref()?.latest
        };
        let port = answered.or_else(latest);
        set_port(packet, port.unwrap_or_else(|| any(&mut self.random, self.how.entropies)));
    }

    /// A packet has come for the queue pair at `place`.
    pub(crate) fn hear(&mut self, now: Instant, place: usize, packet: &Packet) {
        let recycling = self.how.recycling;
        let Some(chooser) = self.chooser_for(place, packet) else { return };
        let (header, port) = (&packet.header, port_of(packet));
        if !matches!(header.opcode, Opcode::ACKNOWLEDGE | Opcode::READ_ACKNOWLEDGE) {
            let data = header.opcode != Opcode::CNP && !header.opcode.shape().has(Shape::AGENT);
            // A header that a switch sent back had no way further.
            if data && !header.flags.has(Flags::RETURNED) {
                chooser.latest = Some(port);
            }
            return;
        }
        let Some(recycling) = recycling else { return };
        chooser.thaw(now, &recycling);
        chooser.heard = true;
        let came_through = match Syndrome::from_u8(header.aeth().syndrome) {
            Some(Syndrome::Ack { .. } | Syndrome::RnrNak { .. }) => true,
            Some(Syndrome::Nak(NakCode::PsnSequenceError)) => !recycling.nak_is_loss,
            _ => false,
        };
        if came_through && !header.flags.has(Flags::BECN) {
            chooser.cache.keep(port);
        }
    }
}

impl Chooser {
    /// The freeze may be over: paths that failed are tried again.
    fn thaw(&mut self, now: Instant, recycling: &Recycling) {
        if self.frozen.is_some_and(|until| now >= until) {
            (self.frozen, self.cache, self.explore) = (None, Cache::default(), recycling.explore);
        }
    }

    /// A packet goes again: if for a timeout, then some path has failed, and only known ones are taken for a while. If they brought no
    /// answer either, they have failed too, and none is known any more.
    fn heed(&mut self, now: Instant, recycling: &Recycling, counters: Counters) {
        if std::mem::replace(&mut self.timeouts, counters.timeouts) >= counters.timeouts {
            return;
        }
        let heard = std::mem::take(&mut self.heard);
        if self.frozen.is_some() {
            if !heard {
                self.cache = Cache::default();
            }
        } else if self.explore == 0 && !recycling.freeze.is_zero() {
            self.frozen = Some(now + recycling.freeze);
        }
    }

    /// The port that is to be used again; `None`: any.
    fn next_known(&mut self) -> Option<u16> {
        if self.explore > 0 {
            self.explore -= 1;
            return None;
        }
        let again = self.frozen.is_some();
        self.cache.take_fresh().or_else(|| if again { self.cache.take_again() } else { None })
    }
}

/// Any of so many ports.
#[expect(clippy::cast_possible_truncation, reason = "below a number of 16 bits")]
fn any(random: &mut Random, entropies: u16) -> u16 {
    random.below(entropies.into()) as u16
}

/// The UDP source port less 0xC000.
#[expect(clippy::cast_possible_truncation, reason = "14 bits")]
pub(crate) const fn port_of(packet: &Packet) -> u16 {
    (packet.flow & (PORTS - 1) as u32) as u16
}

/// Has `packet` take the path of a port less 0xC000.
pub(crate) const fn set_port(packet: &mut Packet, port: u16) {
    packet.flow = flow_hash(packet.source, packet.destination, FIRST_PORT | port);
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_fabric::packet::HostId;
    use roci_transport::EngineConfig;
    use roci_wire::{Aeth, Header};

    const RECYCLING: Recycling = Recycling { explore: 0, freeze: Span::from_millis(10), nak_is_loss: true };
    const QPN: Qpn = Qpn::new(0x100);

    fn spread(recycling: Option<Recycling>) -> Spread {
        let mut spread = Spread::new(Spreading { entropies: PORTS, recycling }, Random::new(1, 0));
        spread.begin(0, QPN, Path { host: HostId(1), flow: 5000 });
        spread
    }

    /// An acknowledgement that brings `port`, with a syndrome and flags.
    fn answer(port: u16, syndrome: u8, flags: Flags) -> Packet {
        let mut header = Header::default();
        (header.opcode, header.dest_qpn, header.flags) = (Opcode::ACKNOWLEDGE, QPN, flags);
        header.set_aeth(Aeth { syndrome, msn: 0 });
        let mut packet = Packet::new(HostId(1), HostId(0), header);
        set_port(&mut packet, port);
        packet
    }

    const ACK: u8 = 0x1f;
    const RNR_NAK: u8 = 0x20;
    const NAK: u8 = 0x60;

    fn hear(spread: &mut Spread, now: Instant, ports: &[u16]) {
        for &port in ports {
            spread.hear(now, 0, &answer(port, ACK, Flags::NONE));
        }
    }

    /// The port that REPS takes next; `None`: any.
    fn next(spread: &mut Spread) -> Option<u16> {
        spread.choosers[0].as_mut().expect("it has begun").next_known()
    }

    fn time_out(spread: &mut Spread, now: Instant, timeouts: u32) {
        let counters = Counters { timeouts, ..Counters::default() };
        let recycling = spread.how.recycling.expect("REPS");
        spread.choosers[0].as_mut().expect("it has begun").heed(now, &recycling, counters);
    }

    #[test]
    fn ports_that_came_through_are_used_once_more_the_oldest_first() {
        let mut spread = spread(Some(RECYCLING));
        assert_eq!(next(&mut spread), None);
        hear(&mut spread, Instant::ZERO, &[7, 8]);
        assert_eq!([(); 3].map(|()| next(&mut spread)), [Some(7), Some(8), None]);
        hear(&mut spread, Instant::ZERO, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let all: Vec<_> = (0..9).map(|_| next(&mut spread)).collect();
        assert_eq!(all, [2, 3, 4, 5, 6, 7, 8, 9].map(Some).into_iter().chain([None]).collect::<Vec<_>>());
    }

    #[test]
    fn marks_and_naks_bring_no_port_back() {
        let mut spread = spread(Some(RECYCLING));
        spread.hear(Instant::ZERO, 0, &answer(7, ACK, Flags::BECN));
        spread.hear(Instant::ZERO, 0, &answer(7, NAK, Flags::NONE));
        assert_eq!(next(&mut spread), None);
        // Where nothing is trimmed, a packet out of order draws it, which has come. So has one for which no receive request is posted.
        spread.hear(Instant::ZERO, 0, &answer(6, RNR_NAK, Flags::NONE));
        spread.how.recycling = Some(Recycling { nak_is_loss: false, ..RECYCLING });
        spread.hear(Instant::ZERO, 0, &answer(7, NAK, Flags::NONE));
        assert_eq!([(); 3].map(|()| next(&mut spread)), [Some(6), Some(7), None]);
    }

    #[test]
    fn after_a_timeout_known_ports_are_used_again_until_it_thaws() {
        let mut spread = spread(Some(Recycling { explore: 2, ..RECYCLING }));
        let begin = Instant::ZERO + Span::from_micros(1);
        hear(&mut spread, begin, &[1, 2, 3]);
        assert_eq!([(); 4].map(|()| next(&mut spread)), [None, None, Some(1), Some(2)]);
        time_out(&mut spread, begin, 1);
        let ports: Vec<_> = (0..7).filter_map(|_| next(&mut spread)).collect();
        assert_eq!(ports.len(), 7, "no port is new");
        assert_eq!(ports[0], 3, "what is fresh comes first");
        assert!([1, 2, 3].iter().all(|port| ports[1..4].contains(port)), "{ports:?}");
        hear(&mut spread, begin + RECYCLING.freeze, &[9]);
        assert_eq!([(); 4].map(|()| next(&mut spread)), [None, None, Some(9), None], "it explores first");
    }

    #[test]
    fn known_ports_that_bring_no_answer_between_two_timeouts_are_known_no_more() {
        let mut spread = spread(Some(RECYCLING));
        let known = |spread: &mut Spread| [(); 3].map(|()| next(spread));
        hear(&mut spread, Instant::ZERO, &[7]);
        time_out(&mut spread, Instant::ZERO, 1);
        assert_eq!(known(&mut spread), [Some(7); 3], "it is frozen");
        spread.hear(Instant::ZERO, 0, &answer(8, ACK, Flags::BECN));
        time_out(&mut spread, Instant::ZERO, 2);
        assert_eq!(known(&mut spread), [Some(7); 3], "a mark is an answer too");
        time_out(&mut spread, Instant::ZERO, 3);
        assert_eq!(known(&mut spread), [None; 3]);
        hear(&mut spread, Instant::ZERO, &[9]);
        assert_eq!(known(&mut spread), [Some(9); 3], "it is frozen still");
    }

    #[test]
    fn it_thaws_by_the_clock_although_nothing_is_answered() {
        let mut spread = spread(Some(Recycling { explore: 1, ..RECYCLING }));
        assert_eq!(next(&mut spread), None);
        hear(&mut spread, Instant::ZERO, &[7]);
        time_out(&mut spread, Instant::ZERO, 1);
        let engine = Engine::new(EngineConfig::default());
        let mut choose = |now| {
            let mut packet = answer(0, ACK, Flags::NONE);
            spread.choose(now, &engine, 0, &mut packet);
            port_of(&packet)
        };
        let end = Instant::ZERO + RECYCLING.freeze;
        assert_eq!(choose(end - Span::from_ps(1)), 7);
        let ports = [(); 4].map(|()| choose(end));
        assert!(ports.iter().any(|&port| port != 7), "{ports:?}");
    }

    #[test]
    fn what_is_for_the_queue_pair_that_had_the_place_before_says_nothing_of_this_one() {
        let mut spread = spread(Some(RECYCLING));
        let mut late = answer(7, ACK, Flags::NONE);
        late.header.dest_qpn = Qpn::new(0x200);
        spread.hear(Instant::ZERO, 0, &late);
        assert_eq!(next(&mut spread), None);
        late.header.opcode = Opcode::WRITE_MIDDLE;
        spread.hear(Instant::ZERO, 0, &late);
        assert_eq!(spread.choosers[0].as_ref().and_then(|chooser| chooser.latest), None);
    }

    #[test]
    fn of_two_with_one_path_each_keeps_its_own_when_the_other_ends() {
        let mut spread = spread(None);
        let mut data = answer(77, ACK, Flags::NONE);
        data.header.opcode = Opcode::WRITE_MIDDLE;
        let pulled = |spread: &mut Spread| {
            let mut pull = Packet::new(HostId(0), HostId(1), Header::default());
            pull.flow = 5000;
            spread.set_answer(None, &mut pull);
            port_of(&pull)
        };
        // The second has the path of the first, whose place then goes to one with another path.
        spread.begin(1, QPN, Path { host: HostId(1), flow: 5000 });
        spread.hear(Instant::ZERO, 1, &data);
        spread.begin(0, QPN, Path { host: HostId(1), flow: 6000 });
        assert_eq!(pulled(&mut spread), 77);
    }

    #[test]
    fn each_timeout_is_answered_once_and_none_while_it_explores() {
        let mut spread = spread(Some(Recycling { explore: 1, ..RECYCLING }));
        let frozen = |spread: &Spread| spread.choosers[0].as_ref().is_some_and(|it| it.frozen.is_some());
        time_out(&mut spread, Instant::ZERO, 1);
        assert!(!frozen(&spread));
        assert_eq!(next(&mut spread), None);
        time_out(&mut spread, Instant::ZERO, 1);
        assert!(!frozen(&spread), "it is the same timeout");
        time_out(&mut spread, Instant::ZERO, 2);
        assert!(frozen(&spread));
        spread.how.recycling = Some(Recycling { freeze: Span::ZERO, ..RECYCLING });
        spread.begin(0, QPN, Path { host: HostId(1), flow: 5000 });
        time_out(&mut spread, Instant::ZERO, 1);
        assert!(!frozen(&spread), "without a time there is no freeze");
    }

    #[test]
    fn what_answers_no_packet_takes_the_port_of_the_latest_that_came() {
        let mut spread = spread(None);
        let mut data = answer(77, ACK, Flags::NONE);
        data.header.opcode = Opcode::WRITE_MIDDLE;
        spread.hear(Instant::ZERO, 0, &data);
        spread.hear(Instant::ZERO, 0, &answer(78, ACK, Flags::NONE));
        let mut turned_back = answer(79, ACK, Flags::TRIMMED.with(Flags::RETURNED));
        turned_back.header.opcode = Opcode::WRITE_MIDDLE;
        spread.hear(Instant::ZERO, 0, &turned_back);
        let mut pull = Packet::new(HostId(0), HostId(1), Header::default());
        pull.flow = 5000;
        spread.set_answer(None, &mut pull);
        assert_eq!(port_of(&pull), 77);
        pull.flow = 5000;
        spread.set_answer(Some(79), &mut pull);
        assert_eq!(port_of(&pull), 79);
    }

    #[test]
    fn only_packets_of_a_known_queue_pair_have_another_flow_to_the_engine() {
        let spread = spread(None);
        let mut packet = answer(77, ACK, Flags::NONE);
        assert_eq!(spread.flow_of(0, &packet), 5000);
        assert_eq!(spread.flow_of(3, &packet), packet.flow);
        packet.header.dest_qpn = Qpn::new(0x101);
        assert_eq!(spread.flow_of(0, &packet), packet.flow, "one before it had the place");
        assert_eq!(port_of(&packet), 77);
    }
}
