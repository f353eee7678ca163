//! NICs that are made of parts, each part by itself: SRNIC's turns and what they fetch, and how a commodity NIC halts.

use roci_fabric::routing::flow_hash;
use roci_fabric::topology::Star;
use roci_fabric::{Fabric, FabricConfig, HostId, Net, Nics, Packet, Stopped};
use roci_nic::arch::counters::Cause;
use roci_nic::arch::spec::{Entries, Time};
use roci_nic::arch::{Architecture, presets};
use roci_nic::{Application, Classes, Host, Path, Simulated};
use roci_transport::{
    Access, Change, Completion, Engine, EngineConfig, Operation, Pd, QpConfig, RecvRequest, SendRequest,
    Status, Tail,
};
use roci_units::{BitsPerSec, Bytes, Instant, Qpn, Random, Span};
use roci_wire::Header;
use std::cell::Cell;
use std::sync::Arc;

const RATE: BitsPerSec = BitsPerSec::from_gbps(100);
const SENDER: HostId = HostId(0);
const MTU: u16 = 4096;

/// Writes down what completes, when, and of which queue pair.
#[derive(Default)]
struct Heard(Vec<(Instant, Qpn)>);

impl Application for Heard {
    fn completed(&mut self, net: &mut Net, _: &mut [Host], _: HostId, completion: &Completion) {
        assert_eq!(completion.status, Status::Success);
        self.0.push((net.now(), completion.qpn));
    }
}

/// Two hosts with the NIC `preset`, and a queue pair from the first to the second for each of `posts`, which says how
/// many WRITEs of how many octets are posted on it at once.
fn posted(preset: &str, posts: &[(u32, u32)]) -> (Fabric<Simulated<Heard>>, Vec<Qpn>) {
    let nic = presets::find(preset).expect("there is such a preset");
    posted_on(nic, posts, |rkey| Operation::Write { va: 0, rkey, tail: Tail::Plain })
}

/// The same on any NIC and with any operation, on the region of the second host whose key it is given.
fn posted_on(
    nic: Architecture,
    posts: &[(u32, u32)],
    operation: impl Fn(u32) -> Operation,
) -> (Fabric<Simulated<Heard>>, Vec<Qpn>) {
    posted_between([nic.clone(), nic], posts, operation)
}

/// The same with a NIC of its own at each host.
fn posted_between(
    nics: [Architecture; 2],
    posts: &[(u32, u32)],
    operation: impl Fn(u32) -> Operation,
) -> (Fabric<Simulated<Heard>>, Vec<Qpn>) {
    let graph = Star { hosts: 2, rate: RATE, delay: Span::from_micros(1) }.build().expect("two hosts").graph;
    let nics = nics.map(Arc::new);
    let deferred = [0, 1].map(|number: usize| nics[number].deferred());
    let mut key = 0;
    let mut hosts: Vec<Host> = (0..)
        .zip(nics)
        .map(|(number, nic)| {
            let mut engine = Engine::new(EngineConfig { link: RATE, ..EngineConfig::default() });
            (_, key) = engine.register_everything(Pd::default(), Access::ALL).expect("the first region");
            Host::of_parts(engine, Classes::default(), nic, Random::new(1, number))
        })
        .collect();
    let flow = flow_hash(SENDER, HostId(1), 0xc000);
    let config = |peer: HostId| QpConfig {
        path: Path { host: peer, flow }.pack(),
        mtu: MTU,
        deferred: deferred[usize::from(peer == SENDER)],
        ..QpConfig::default()
    };
    let mut qpns = Vec::new();
    for &(count, length) in posts {
        let qpn = hosts[0].engine.create_qp(config(HostId(1))).expect("usable");
        let peer = hosts[1].engine.create_qp(QpConfig { peer: qpn, ..config(SENDER) }).expect("usable");
        let known = Change { peer: Some(peer), ..Change::default() };
        hosts[0].engine.modify_qp(Instant::ZERO, qpn, &known).expect("it exists");
        for id in 0..count {
            let receive = RecvRequest { id: id.into(), address: 0, length, lkey: 0 };
            hosts[1].engine.post_recv(peer, receive).expect("it is connected");
            let operation = operation(key);
            let (id, solicited, signaled, fence) = (id.into(), false, true, false);
            let request =
                SendRequest { id, operation, length, address: 0, lkey: 0, solicited, signaled, fence };
            hosts[0].engine.post_send(Instant::ZERO, qpn, &request).expect("it is connected");
        }
        qpns.push(qpn);
    }
    let nics = Simulated::new(hosts, Heard::default());
    let mut fabric = Fabric::new(&graph, &FabricConfig::default(), nics).expect("it can be built");
    let Fabric { net, nics } = &mut fabric;
    nics.hosts[0].poke(net, SENDER);
    (fabric, qpns)
}

const END: Instant = Instant::from_ps(1_000_000_000_000);

#[test]
fn a_turn_serves_up_to_eight_fetched_requests() {
    let (mut fabric, _) = posted("srnic", &[(20, 64)]);
    assert_eq!(fabric.run_until(END), Stopped::Idle);
    assert_eq!(fabric.nics.application.0.len(), 20);
    let parts = fabric.nics.hosts[0].parts().expect("it is made of parts");
    assert_eq!((parts.turns, parts.dropped_wqes), (3, 0), "eight, eight and four");
}

#[test]
fn a_turn_ends_at_16_kib_and_drops_what_it_fetched_beyond_that() {
    let (mut fabric, _) = posted("srnic", &[(8, 8_192)]);
    assert_eq!(fabric.run_until(END), Stopped::Idle);
    let parts = fabric.nics.hosts[0].parts().expect("it is made of parts");
    assert_eq!(parts.turns, 4, "two of 8 KiB each time");
    assert_eq!(parts.dropped_wqes, 6 + 4 + 2, "of eight, six, four and two");
    let requests = 8 + 6 + 4 + 2;
    assert!(parts.pcie_of(Cause::Wqe) >= requests * 64, "each was fetched as often as that");
    let (mut other, _) = posted("srnic", &[(2, 8_192)]);
    other.run_until(END);
    let once = other.nics.hosts[0].parts().expect("it is made of parts").pcie_of(Cause::Wqe);
    assert!(parts.pcie_of(Cause::Wqe) > 4 * once, "and in four reads, not in one");
}

#[test]
fn a_request_that_is_fetched_when_its_turn_comes_counts_as_missed() {
    // The request itself, and the headers of two transactions.
    const FETCHED: u64 = 64 + 48;
    let key = Cell::new(0);
    let write = |rkey| {
        key.set(rkey);
        Operation::Write { va: 0, rkey, tail: Tail::Plain }
    };
    let (mut fabric, qpns) = posted_on(presets::find("cx5").expect("it exists"), &[(1, 64)], write);
    for id in 1..4 {
        assert_eq!(fabric.run_until(END), Stopped::Idle);
        let Fabric { net, nics } = &mut fabric;
        let parts = nics.hosts[0].parts().expect("it is made of parts");
        let (lookups, octets) = (parts.wqe, parts.pcie_of(Cause::Wqe));
        assert_eq!((lookups.hits, lookups.misses, octets), (0, id, id * FETCHED), "after number {id}");
        let operation = write(key.get());
        let (length, address, lkey, solicited, signaled, fence) = (64, 0, 0, false, true, false);
        let request = SendRequest { id, operation, length, address, lkey, solicited, signaled, fence };
        nics.hosts[0].engine.post_send(net.now(), qpns[0], &request).expect("it is connected");
        nics.hosts[0].poke(net, SENDER);
    }
}

/// The sender of so many WRITEs of 64 octets on each of 64 queue pairs, on a NIC with room for all contexts and for the requests of
/// so many queue pairs; and when the last of them ended.
fn sender_with(room: Entries, writes: u32) -> (Fabric<Simulated<Heard>>, Instant) {
    let mut nic = presets::find("cx5").expect("it exists");
    (nic.context.entries, nic.wqe.entries) = (Entries::All, room);
    let write = |rkey| Operation::Write { va: 0, rkey, tail: Tail::Plain };
    let (mut fabric, _) = posted_on(nic, &[(writes, 64); 64], write);
    assert_eq!(fabric.run_until(END), Stopped::Idle);
    let last = fabric.nics.application.0.iter().map(|(at, _)| *at).max().expect("all ended");
    (fabric, last)
}

#[test]
fn no_unit_waits_for_requests() {
    let (fabric, missed) = sender_with(Entries::Count(4), 20);
    let parts = fabric.nics.hosts[0].parts().expect("it is made of parts");
    assert_eq!((parts.wqe.hits, parts.wqe.misses), (0, 64 * 20), "the others come between");
    assert_eq!(parts.units_waited, Span::ZERO);
    let (_, at_hand) = sender_with(Entries::All, 20);
    let (missed, at_hand) = (missed.since(Instant::ZERO), at_hand.since(Instant::ZERO));
    // 160 turns of each unit take 25 µs, and a fetch of 0.55 µs before the first is all that comes to that.
    assert!(missed > at_hand && missed < at_hand + Span::from_nanos(700), "{missed} and {at_hand}");
}

#[test]
fn requests_are_fetched_ahead_where_they_stay_until_their_turn() {
    let fetched = |room| {
        let (fabric, _) = sender_with(room, 20);
        let parts = fabric.nics.hosts[0].parts().expect("it is made of parts");
        (parts.wqe.misses, parts.pcie_of(Cause::Wqe))
    };
    let (misses, octets) = fetched(Entries::Count(4));
    assert_eq!((misses, octets), (64 * 20, 64 * 20 * (64 + 48)), "one for each turn, and none in vain");
    let (misses, octets) = fetched(Entries::Count(64));
    assert_eq!(misses, 64 * 2, "the first, and that which shows that its queue pair comes again");
    assert!(octets < 64 * 20 * (64 + 24), "several by one read: {octets}");
}

#[test]
fn payload_in_requests_crosses_pcie_with_them() {
    let octets = |inline| {
        let mut nic = presets::find("srnic").expect("it exists");
        nic.send.inline = Bytes(inline);
        let write = |rkey| Operation::Write { va: 0, rkey, tail: Tail::Plain };
        let (mut fabric, _) = posted_on(nic, &[(8, 200)], write);
        assert_eq!(fabric.run_until(END), Stopped::Idle);
        let parts = fabric.nics.hosts[0].parts().expect("it is made of parts");
        (parts.pcie_of(Cause::Wqe), parts.pcie_of(Cause::Payload))
    };
    // Eight requests in one read, with transactions of 256 octets each and its own request.
    assert_eq!(octets(0), (8 * 64 + (2 + 1) * 24, 8 * (200 + 2 * 24)));
    assert_eq!(octets(199).1, octets(0).1, "longer ones lie outside");
    assert_eq!(octets(200), (8 * (64 + 256) + (10 + 1) * 24, 0));
}

#[test]
fn no_request_is_used_before_it_has_come() {
    const ROUND_TRIP: Span = Span::from_micros(50);
    let took = |count| {
        let mut nic = presets::find("cx5").expect("it exists");
        nic.pcie.read = ROUND_TRIP;
        let write = |rkey| Operation::Write { va: 0, rkey, tail: Tail::Plain };
        let (mut fabric, _) = posted_between([nic, Architecture::default()], &[(count, 64)], write);
        assert_eq!(fabric.run_until(END), Stopped::Idle);
        let last = fabric.nics.application.0.iter().map(|(at, _)| *at).max().expect("all ended");
        last.since(Instant::ZERO)
    };
    // Eight at most come in a round trip, however many turns there are in it; and some are fetched ahead.
    for count in [80, 400] {
        let took = took(count);
        assert!(took > ROUND_TRIP * u64::from(count / 8), "{count}: {took}");
        assert!(took < ROUND_TRIP * u64::from(count / 3), "{count}: {took}");
    }
}

#[test]
fn a_short_message_waits_for_turns_of_16_kib_and_not_for_a_long_message() {
    let (mut fabric, qpns) = posted("srnic", &[(1, 4_000_000), (1, 64)]);
    assert_eq!(fabric.run_until(END), Stopped::Idle);
    let heard = &fabric.nics.application.0;
    assert_eq!(heard.iter().map(|(_, qpn)| *qpn).collect::<Vec<_>>(), [qpns[1], qpns[0]]);
    // Two links each way, PCIe there and back, and what is made ahead of the link and one turn take of it; the long one
    // takes 335 µs.
    let least = Span::from_micros(4);
    let most = least + Span::from_micros(4) + RATE.time_for(65_536 + 16_384);
    let at = heard[0].0.since(Instant::ZERO);
    assert!(at > least && at < most, "{at}");
}

#[test]
fn a_responder_translates_what_a_read_or_an_atomic_reaches() {
    // Five pages, of which the last is reached by one octet; each is looked up for each of its packets.
    let read = |rkey| Operation::Read { va: 0, rkey };
    let add = |rkey| Operation::FetchAdd { va: 0, rkey, add: 1 };
    let looked_up = |operation: &dyn Fn(u32) -> Operation, posts: &[(u32, u32)]| {
        let (mut fabric, _) = posted_on(presets::find("cx5").expect("it exists"), posts, operation);
        assert_eq!(fabric.run_until(END), Stopped::Idle);
        let parts = fabric.nics.hosts[1].parts().expect("it is made of parts");
        (parts.mtt.misses, parts.mtt.hits, parts.pcie_of(Cause::Mtt))
    };
    let (misses, hits, octets) = looked_up(&read, &[(1, 4 * 4_096 + 1)]);
    // Eight octets, and a transaction's header each way.
    assert_eq!((misses, hits, octets), (5, 0, 5 * (8 + 2 * 24)));
    let (misses, hits, octets) = looked_up(&read, &[(3, 64), (1, 64)]);
    assert_eq!((misses, hits, octets), (2, 2, 2 * (8 + 2 * 24)), "a page for each of two queue pairs");
    let (misses, hits, ..) = looked_up(&add, &[(3, 8)]);
    assert_eq!((misses, hits), (1, 2));
    // The payload waits for its translation, there and where the octets go: a round trip each, and 32 octets on the link.
    let ends = |entries| {
        let mut nic = presets::find("cx5").expect("it exists");
        nic.mtt.store.entries = entries;
        let (mut fabric, _) = posted_on(nic, &[(1, 64)], read);
        assert_eq!(fabric.run_until(END), Stopped::Idle);
        fabric.nics.application.0[0].0
    };
    let later = ends(Entries::Count(65_536)).since(ends(Entries::All));
    assert!(later >= Span::from_nanos(1_100) && later < Span::from_nanos(1_120), "{later}");
}

#[test]
fn a_read_s_responses_take_the_way_of_requests() {
    let read = |rkey| Operation::Read { va: 0, rkey };
    let ends = |length: u32, latency: u64, pace: u64| {
        let mut nic = presets::find("srnic").expect("it exists");
        (nic.send.latency, nic.send.pace) =
            (Time::Span(Span::from_nanos(latency)), Time::Span(Span::from_nanos(pace)));
        let (mut fabric, _) = posted_on(nic, &[(1, length)], read);
        assert_eq!(fabric.run_until(END), Stopped::Idle);
        fabric.nics.application.0[0].0
    };
    // The request takes it, and so does its response.
    let later = ends(64, 3_000, 0).since(ends(64, 1_000, 0));
    assert_eq!(later, Span::from_nanos(2 * 2_000));
    // Sixteen packets, each a microsecond behind the one before it.
    let paced = ends(16 * u32::from(MTU), 0, 1_000).since(ends(u32::from(MTU), 0, 1_000));
    assert!(paced >= Span::from_micros(15) && paced < Span::from_micros(16), "{paced}");
}

#[test]
fn a_read_takes_its_responder_s_pcie_as_long_as_a_write_takes_its_requester_s() {
    let slow = |preset| {
        let mut nic = presets::find(preset).expect("it exists");
        nic.pcie.rate = Some(BitsPerSec::from_gbps(10));
        nic
    };
    let ended = |nics, posts: &[(u32, u32)], operation: fn(u32) -> Operation| {
        let (mut fabric, _) = posted_between(nics, posts, operation);
        assert_eq!(fabric.run_until(END), Stopped::Idle);
        let payload = fabric
            .nics
            .hosts
            .iter()
            .map(|host| host.parts().map_or(0, |parts| parts.pcie_of(Cause::Payload)));
        let last = fabric.nics.application.0.iter().map(|(at, _)| *at).max().expect("all ended");
        (last.since(Instant::ZERO), payload.max().expect("two hosts"))
    };
    for preset in ["srnic", "cx5"] {
        for posts in [vec![(1, 1_000_000)], vec![(20, 50_000)], vec![(5, 50_000); 4]] {
            let read = |rkey| Operation::Read { va: 0, rkey };
            let write = |rkey| Operation::Write { va: 0, rkey, tail: Tail::Plain };
            let (read, read_octets) = ended([Architecture::default(), slow(preset)], &posts, read);
            let (write, write_octets) = ended([slow(preset), Architecture::default()], &posts, write);
            assert_eq!(read_octets, write_octets, "{preset}, {posts:?}");
            // A megabyte takes 875 µs there, and 80 on the link; a WRITE's requests come to that.
            let (least, most) = (Span::from_micros(875), Span::from_micros(920));
            assert!(least < read && read <= write && write < most, "{preset}, {posts:?}: {read} and {write}");
        }
    }
}

#[test]
fn reads_of_one_queue_pair_are_answered_without_a_round_trip_of_pcie_between_them() {
    let (mut fabric, _) = posted_between(
        [Architecture::default(), presets::find("srnic").expect("it exists")],
        &[(160, 64)],
        |rkey| Operation::Read { va: 0, rkey },
    );
    assert_eq!(fabric.run_until(END), Stopped::Idle);
    let heard = &fabric.nics.application.0;
    let took = heard[heard.len() - 1].0.since(heard[0].0);
    // 16 are outstanding at a time, for five microseconds or so; one after the other they would take 1.1 µs each.
    assert!(took < Span::from_nanos(160 * 500), "{took}");
}

#[test]
fn units_that_wait_for_contexts_are_known_with_what_made_way_for_what() {
    let counted = |queue_pairs: usize| {
        let (mut fabric, _) = posted("cx5", &vec![(4, 64); queue_pairs]);
        assert_eq!(fabric.run_until(END), Stopped::Idle);
        fabric.nics.hosts[0].parts().expect("it is made of parts")
    };
    let (few, many) = (counted(128), counted(1_024));
    assert_eq!((few.context.misses, few.context.evictions), (128, 0), "all of them find room");
    assert!(many.context.misses > 1_024 && many.context.evictions == many.context.misses - 256);
    assert_eq!(few.units, 8);
    // Each of these waits is one for PCIe, a round trip or longer.
    assert!(few.units_waited >= Span::from_nanos(550) * 128);
    assert!(many.units_waited >= Span::from_nanos(550) * many.context.misses);
}

#[test]
fn a_completion_is_written_for_each_request_that_ends_and_for_no_acknowledgement() {
    let read = |rkey| Operation::Read { va: 0, rkey };
    let write = |rkey| Operation::Write { va: 0, rkey, tail: Tail::Plain };
    let add = |rkey| Operation::FetchAdd { va: 0, rkey, add: 1 };
    let operations: [(&dyn Fn(u32) -> Operation, u32); 4] =
        [(&read, 64), (&write, 64), (&write, 65_536), (&add, 8)];
    for (operation, length) in operations {
        let (mut fabric, _) = posted_on(presets::find("cx5").expect("it exists"), &[(10, length)], operation);
        assert_eq!(fabric.run_until(END), Stopped::Idle);
        let octets = [0, 1].map(|host: usize| {
            fabric.nics.hosts[host].parts().expect("it is made of parts").pcie_of(Cause::Completion)
        });
        assert_eq!(octets, [10 * (64 + 24), 0], "{length} octets");
    }
}

#[test]
fn where_payload_goes_is_translated_when_the_receive_request_has_said_it() {
    let ended = |requests, translations| {
        let mut nic = presets::find("srnic").expect("it exists");
        (nic.receive_wqe.entries, nic.mtt.store.entries) = (requests, translations);
        nic.receive.ack_after_placement = true;
        let send = |_| Operation::Send(Tail::Plain);
        let (mut fabric, _) = posted_between([Architecture::default(), nic], &[(1, 64)], send);
        assert_eq!(fabric.run_until(END), Stopped::Idle);
        fabric.nics.application.0.iter().map(|(at, _)| *at).max().expect("it ended")
    };
    let (none, all) = (Entries::Count(0), Entries::All);
    let at_hand = ended(all, all);
    let trips = [(none, all), (all, none), (none, none)].map(|(requests, translations)| {
        ended(requests, translations).since(at_hand).as_ps() / Span::from_nanos(1_100).as_ps()
    });
    assert_eq!(trips, [1, 1, 2], "round trips of PCIe");
}

#[test]
fn a_context_is_written_back_where_none_is_kept() {
    let mut nic = presets::find("cx5").expect("it exists");
    nic.context.entries = Entries::Count(0);
    let write = |rkey| Operation::Write { va: 0, rkey, tail: Tail::Plain };
    let (mut fabric, _) = posted_on(nic, &[(4, 64)], write);
    assert_eq!(fabric.run_until(END), Stopped::Idle);
    let parts = fabric.nics.hosts[0].parts().expect("it is made of parts");
    // Each way 375 octets in two transactions, and the read's request.
    assert_eq!(parts.pcie_of(Cause::Context), parts.context.misses * (2 * (375 + 48) + 24));
}

#[test]
fn a_commodity_nic_halts_for_90_us_when_it_hears_of_congestion() {
    for (preset, expected) in
        [("cx6", Span::from_micros(90)), ("cx5", Span::from_micros(90)), ("srnic", Span::ZERO)]
    {
        let (mut fabric, qpns) = posted(preset, &[(1, 20_000_000)]);
        let heard_at = Instant::ZERO + Span::from_micros(50);
        fabric.run_until(heard_at);
        let Fabric { net, nics } = &mut fabric;
        let header = Header::cnp(qpns[0]);
        let flow = flow_hash(SENDER, HostId(1), 0xc000);
        let mut cnp = Packet::new(HostId(1), SENDER, header);
        (cnp.flow, cnp.frame, cnp.priority) = (flow, 78, 6);
        let id = net.packets_mut().alloc(cnp);
        nics.receive(net, SENDER, id);
        let mut quiet = Span::ZERO;
        let (mut now, mut sent) = (heard_at, fabric.net.tx_octets(0));
        for _ in 0..200 {
            now += Span::from_micros(1);
            fabric.run_until(now);
            let octets = fabric.net.tx_octets(0);
            if octets == sent {
                quiet += Span::from_micros(1);
            }
            sent = octets;
        }
        // What was made already still goes; making the next packet takes a few microseconds.
        let slack = Span::from_micros(10);
        assert!(quiet + slack >= expected && quiet <= expected + slack, "{preset}: {quiet}");
        let halts = fabric.nics.hosts[0].parts().expect("it is made of parts").halts;
        assert_eq!(halts, u64::from(!expected.is_zero()), "{preset}");
        assert_eq!(fabric.run_until(END), Stopped::Idle);
        assert_eq!(fabric.nics.application.0.len(), 1, "{preset}: and then all arrives");
    }
}
