use super::*;
use crate::arch::machine::{Step, Work};
use crate::arch::spec::{Architecture, Entries};
use crate::host::Classes;
use crate::nics::{Application, Simulated};
use crate::path::Path;
use roci_control::program::Options;
use roci_control::{Class, Image, Law, Programmed};
use roci_fabric::fabric::{Fabric, Stopped};
use roci_fabric::net::{FabricConfig, Net};
use roci_fabric::topology::Star;
use roci_transport::{
    Access, Change, Completion, Engine, EngineConfig, Operation, Pd, QpConfig, SendRequest, Tail,
};
use roci_units::{BitsPerSec, Random, Span};
use std::sync::Arc;

const RATE: BitsPerSec = BitsPerSec::from_gbps(100);
const A: HostId = HostId(0);
const B: HostId = HostId(1);
/// What each event takes: 4 µs at 250 MHz.
const EVENT: u64 = 1_000 + 2;

/// When requests ended.
#[derive(Default)]
struct Ends(Vec<Instant>);

impl Application for Ends {
    fn completed(&mut self, net: &mut Net, _: &mut [Host], _: HostId, _: &Completion) {
        self.0.push(net.now());
    }
}

/// Two hosts whose NICs have one pair of cores; their queue pairs' law is asked before each packet and after each
/// acknowledgement.
fn fabric(queue_pairs: u32) -> (Fabric<Simulated<Ends>>, Vec<Qpn>, u32) {
    fabric_of("swcc", queue_pairs)
}

fn fabric_of(preset: &str, queue_pairs: u32) -> (Fabric<Simulated<Ends>>, Vec<Qpn>, u32) {
    let architecture = super::super::presets::find(preset).expect("it exists");
    fabric_that_hears(architecture, queue_pairs, Class::TRANSMIT.with(Class::ACK))
}

/// The same with a law that hears `traces`.
fn fabric_that_hears(
    architecture: Architecture,
    queue_pairs: u32,
    traces: Class,
) -> (Fabric<Simulated<Ends>>, Vec<Qpn>, u32) {
    fabric_under(architecture, queue_pairs, &Law::External(traces))
}

/// The same under `law`.
fn fabric_under(
    mut architecture: Architecture,
    queue_pairs: u32,
    law: &Law,
) -> (Fabric<Simulated<Ends>>, Vec<Qpn>, u32) {
    let graph = Star { hosts: 2, rate: RATE, delay: Span::from_nanos(100) }.build().expect("two hosts").graph;
    (architecture.cores.pairs, architecture.cores.native) = (1, 1_000);
    let architecture = Arc::new(architecture);
    let mut key = 0;
    let mut hosts: Vec<Host> = (0..2)
        .map(|number| {
            let mut engine = Engine::new(EngineConfig { link: RATE, ..EngineConfig::default() });
            engine.add_law(law.clone());
            (_, key) = engine.register_everything(Pd::default(), Access::ALL).expect("the first region");
            Host::of_parts(engine, Classes::default(), Arc::clone(&architecture), Random::new(1, number))
        })
        .collect();
    let config = |host| QpConfig {
        path: Path { host, flow: 0 }.pack(),
        law: 1,
        deferred: architecture.deferred(),
        ..QpConfig::default()
    };
    let mut qpns = Vec::new();
    for _ in 0..queue_pairs {
        let qpn = hosts[0].engine.create_qp(config(B)).expect("usable");
        let peer = hosts[1].engine.create_qp(QpConfig { peer: qpn, ..config(A) }).expect("usable");
        let known = Change { peer: Some(peer), ..Change::default() };
        hosts[0].engine.modify_qp(Instant::ZERO, qpn, &known).expect("it exists");
        qpns.push(qpn);
    }
    let nics = Simulated::new(hosts, Ends::default());
    (Fabric::new(&graph, &FabricConfig::default(), nics).expect("it can be built"), qpns, key)
}

fn post(fabric: &mut Fabric<Simulated<Ends>>, qpn: Qpn, rkey: u32) {
    post_request(fabric, qpn, &request(rkey));
}

fn post_request(fabric: &mut Fabric<Simulated<Ends>>, qpn: Qpn, request: &SendRequest) {
    let Fabric { net, nics } = fabric;
    nics.hosts[0].engine.post_send(net.now(), qpn, request).expect("it is connected");
    nics.hosts[0].poke(net, A);
}

fn request(rkey: u32) -> SendRequest {
    SendRequest {
        id: 1,
        operation: Operation::Write { va: 0, rkey, tail: Tail::Plain },
        length: 64,
        address: 0,
        lkey: 0,
        solicited: false,
        signaled: true,
        fence: false,
    }
}

/// When the last of eight messages ends, dealt to so many queue pairs, in times that an event takes.
fn events_until_the_end(queue_pairs: u32) -> u64 {
    let (mut fabric, qpns, key) = fabric(queue_pairs);
    qpns.iter().cycle().take(8).for_each(|qpn| post(&mut fabric, *qpn, key));
    assert_eq!(fabric.run_until(Instant::ZERO + Span::from_millis(10)), Stopped::Idle);
    let ends = &fabric.nics.application.0;
    assert_eq!(ends.len(), 8);
    let cores = fabric.nics.hosts[0].parts().expect("it is made of parts").cores;
    assert_eq!((cores.sends, cores.receives), (8, 8));
    assert_eq!(cores.cycles, [8_000, 8_000]);
    let last = ends.iter().max().expect("eight").as_ps();
    last / (EVENT * 4_000)
}

#[test]
fn an_event_whose_context_is_owned_waits_while_others_go() {
    // One context: what is sent and what is heard take turns, though each has its core. Two: both cores are busy.
    assert!(events_until_the_end(1) >= 14, "{}", events_until_the_end(1));
    assert!(events_until_the_end(2) <= 10, "{}", events_until_the_end(2));
}

/// What one pair of cores does with two messages of a packet on each of so many queue pairs, a line for each event.
fn turns(queue_pairs: u32) -> String {
    let (mut fabric, qpns, key) = fabric(queue_pairs);
    qpns.iter().cycle().take(2 * qpns.len()).for_each(|qpn| post(&mut fabric, *qpn, key));
    assert_eq!(fabric.run_until(Instant::ZERO + Span::from_millis(10)), Stopped::Idle);
    let machine = fabric.nics.hosts[0].slow.as_ref().and_then(|slow| slow.machine.as_ref());
    let cores = machine.and_then(|machine| machine.cores.as_ref()).expect("it has cores");
    let ns = |at: Instant| at.as_ps() / 1_000;
    let line = |(side, qpn, turn): &(Side, Qpn, super::super::cores::Turn)| {
        let core = if *side == Side::Send { "TX" } else { "RX" };
        let [arrived, begun, reached, loaded, done] =
            [turn.arrived, turn.begun, turn.reached, turn.loaded, turn.done].map(ns);
        format!(
            "{core} core, queue pair {}: in line at {arrived} ns, begins at {begun}, has the context at {reached}, its \
             registers at {loaded}, and ends at {done}\n",
            qpn.get()
        )
    };
    cores.turns.iter().map(line).collect()
}

#[test]
fn events_run_to_their_end_one_at_a_time_on_a_core_and_on_a_context() {
    let trace = format!("One queue pair\n{}\nTwo queue pairs\n{}", turns(1), turns(2));
    insta::assert_snapshot!(trace);
}

/// Two hosts whose program hears of data. At a packet of 13 octets it says that it wants to hear of notifications alone.
fn fabric_of_fewer_classes() -> (Fabric<Simulated<Ends>>, Vec<Qpn>, u32) {
    let file = include_bytes!("../../../../control/tests/images/faults.elf");
    let options = Options { checked: false, ..Options::default() };
    let image = Arc::new(Image::new("faults", file, &options).expect("a program"));
    let law = Law::Program(Box::new(Programmed::new(image, Law::None).expect("a law to fall back to")));
    fabric_under(super::super::presets::find("swcc").expect("it exists"), 1, &law)
}

#[test]
fn what_a_program_does_not_hear_takes_no_time_of_its_core() {
    let (mut fabric, qpns, key) = fabric_of_fewer_classes();
    // The second arrives while the core has the first, and waits for the context; then nobody wants to hear of it.
    for _ in 0..2 {
        post_request(&mut fabric, qpns[0], &SendRequest { length: 13, ..request(key) });
    }
    assert_eq!(fabric.run_until(Instant::ZERO + Span::from_millis(10)), Stopped::Idle);
    assert_eq!(fabric.nics.application.0.len(), 2, "both are acknowledged");
    let cores = fabric.nics.hosts[1].parts().expect("it is made of parts").cores;
    let Some(Law::Program(program)) = fabric.nics.hosts[1].engine.law_mut(1) else { panic!("a program") };
    let tally = program.tally();
    assert_eq!((tally.events[0], tally.fallen()), (1, 0), "{tally:?}");
    assert_eq!((cores.receives, cores.cycles[1]), (1, tally.cycles[0]));
}

#[test]
fn what_waits_behind_an_event_of_its_own_queue_pair_is_counted_apart_from_what_waits_in_line() {
    let waits = |queue_pairs: u32| {
        let (mut fabric, qpns, key) = fabric(queue_pairs);
        qpns.iter().cycle().take(8).for_each(|qpn| post(&mut fabric, *qpn, key));
        assert_eq!(fabric.run_until(Instant::ZERO + Span::from_millis(10)), Stopped::Idle);
        let cores = fabric.nics.hosts[0].parts().expect("it is made of parts").cores;
        (cores.behind, cores.waited)
    };
    // Packets of one queue pair that are to go own its context one after the other, and what they are answered with waits.
    let (behind, _) = waits(1);
    assert!(behind > Span::from_nanos(EVENT * 4), "{behind}");
    // Each of its own has but one packet: what is to go stands in line for the core, and no answer waits for anything.
    let (behind, waited) = waits(8);
    assert_eq!(behind, Span::ZERO);
    assert!(waited > Span::from_nanos(EVENT * 4), "{waited}");
}

#[test]
fn a_packet_that_is_refused_comes_again_and_holds_up_no_other() {
    let (mut fabric, qpns, key) = fabric(2);
    post(&mut fabric, qpns[0], key);
    let Fabric { net, nics } = &mut fabric;
    let host = &mut nics.hosts[0];
    let Some(Due::Commit(offer, Grant::Law(granted))) = next_grant(host, net) else {
        panic!("a core was asked")
    };
    let refused = Outcome { verdict: Verdict::LoopBack, ..granted };
    host.ran(net, A, offer, &Grant::Law(refused));
    assert!(host.engine.offer(net.now(), 1).is_none(), "it goes through the send request FIFO once more");
    post(&mut fabric, qpns[1], key);
    assert_eq!(fabric.run_until(Instant::ZERO + Span::from_millis(10)), Stopped::Idle);
    let ends = &fabric.nics.application.0;
    assert_eq!(ends.len(), 2, "both went");
    let cores = fabric.nics.hosts[0].parts().expect("it is made of parts").cores;
    assert_eq!((cores.loop_backs, cores.sends), (1, 3), "an event more, at its cost");
}

#[test]
fn a_refusal_frees_the_processing_unit_for_the_next_packet() {
    for preset in ["bluefield3", "soft-roce"] {
        let (mut fabric, qpns, key) = fabric_of(preset, 1);
        post(&mut fabric, qpns[0], key);
        let Fabric { net, nics } = &mut fabric;
        let host = &mut nics.hosts[0];
        let Some(Due::Commit(offer, Grant::Law(granted))) = next_grant(host, net) else {
            panic!("a core was asked")
        };
        host.ran(net, A, offer, &Grant::Law(Outcome { verdict: Verdict::LoopBack, ..granted }));
        host.poke(net, A);
        assert_eq!(fabric.run_until(Instant::ZERO + Span::from_millis(10)), Stopped::Idle, "{preset}");
        assert_eq!(fabric.nics.application.0.len(), 1, "{preset}: the message ends");
    }
}

#[test]
fn a_turn_may_go_on_until_its_message_ends() {
    // Two messages of four packets each, a turn at a time: when the first has ended, in parts of when the last has.
    let first_of_last = |whole| {
        let mut architecture = super::super::presets::find("swcc").expect("it exists");
        (architecture.send.whole, architecture.send.turns) = (whole, 1);
        let (mut fabric, qpns, key) = fabric_that_hears(architecture, 2, Class::TRANSMIT);
        let mtu = u32::from(QpConfig::default().mtu);
        for qpn in qpns {
            post_request(&mut fabric, qpn, &SendRequest { length: 4 * mtu, ..request(key) });
        }
        assert_eq!(fabric.run_until(Instant::ZERO + Span::from_millis(10)), Stopped::Idle);
        let ends = &fabric.nics.application.0;
        assert_eq!(ends.len(), 2);
        let cores = fabric.nics.hosts[0].parts().expect("it is made of parts").cores;
        assert_eq!(cores.sends, 8, "each packet is asked about");
        100 * ends[0].as_ps() / ends[1].as_ps()
    };
    let (sliced, by_packet) = (first_of_last(true), first_of_last(false));
    assert!((45..65).contains(&sliced), "{sliced} %");
    assert!(by_packet > 80, "{by_packet} %");
}

/// Takes the first answer of a core out of the agenda, whenever it is due.
fn next_grant(host: &mut Host, net: &mut Net) -> Option<Due> {
    loop {
        let slow = host.slow.as_mut()?;
        let at = slow.agenda.next()?;
        match slow.agenda.take(at)? {
            Due::Step(Step::Requested { offer }) => host.begin_work(net, A, at, offer.qpn, Work::Turn(offer)),
            Due::Step(Step::Fetched { offer }) => {
                assert!(host.ask_core(at, offer));
                return next_grant(host, net);
            }
            due @ Due::Commit(..) => return Some(due),
            _ => {}
        }
    }
}

#[test]
fn a_port_that_is_let_go_on_begins_the_turn_that_waited() {
    let (mut fabric, qpns, key) = fabric(1);
    let Fabric { net, nics } = &mut fabric;
    let host = &mut nics.hosts[0];
    // As if the port had been paused when it was posted: nothing is under way.
    host.engine.post_send(net.now(), qpns[0], &request(key)).expect("it is connected");
    assert!(host.transmit(net, A, 0xff).is_none(), "nothing is made yet");
    assert_eq!(fabric.run_until(Instant::ZERO + Span::from_millis(10)), Stopped::Idle);
    assert_eq!(fabric.nics.application.0.len(), 1, "the message ends");
}

/// Two hosts with one pair of cores each, whose law hears of the data that arrives; of `queue` packets it has still to hear at
/// most. The first host sends 64 packets on each of so many queue pairs.
fn with_data(queue: Entries, queue_pairs: u32) -> (Fabric<Simulated<Ends>>, Qpn) {
    let mut architecture = super::super::presets::find("swcc").expect("it exists");
    architecture.cores.queue = queue;
    let (mut fabric, qpns, key) = fabric_that_hears(architecture, queue_pairs, Class::WRITE);
    let length = 64 * u32::from(QpConfig::default().mtu);
    for qpn in &qpns {
        post_request(&mut fabric, *qpn, &SendRequest { length, ..request(key) });
    }
    (fabric, qpns[0])
}

#[test]
fn packets_wait_in_the_fifo_while_their_core_has_too_many_to_hear_of() {
    for queue_pairs in [1, 4] {
        for queue in [1, 8] {
            let (mut fabric, _) = with_data(Entries::Count(queue), queue_pairs);
            let mut most = 0;
            let mut now = Instant::ZERO;
            while fabric.run_until(now) != Stopped::Idle {
                now += Span::from_nanos(500);
                let engine = &fabric.nics.hosts[1].engine;
                most = most.max(engine.packets_waiting(Qpn::new(0)));
                assert!(now < Instant::ZERO + Span::from_millis(10), "all comes through");
            }
            assert!(most < queue, "{most} of {queue}, and one is in line");
            let parts = fabric.nics.hosts[1].parts().expect("it is made of parts");
            let packets = 64 * u64::from(queue_pairs);
            assert_eq!((parts.cores.receives, parts.overflowed), (packets, 0));
            assert!(parts.cores.held_up > packets / 2, "{:?}", parts.cores);
            // Each waits for those before it, which take 4 µs each.
            assert!(parts.cores.held_up_for > Span::from_micros(4) * parts.cores.held_up);
            let ends = &fabric.nics.application.0;
            assert_eq!(ends.len(), queue_pairs as usize);
            // An acknowledgement is of all that the engine has taken, which the law may have still to hear of.
            let work = Span::from_ps(EVENT * 4_000) * packets;
            let heard = Span::from_ps(EVENT * 4_000) * (packets + 1 - u64::from(queue));
            let last = ends.iter().max().expect("there are some").since(Instant::ZERO);
            assert!(last >= heard && last < work + work / 10, "the core is never idle: {last}, {work}");
        }
    }
}

#[test]
fn without_a_limit_no_packet_waits_for_a_core() {
    let (mut fabric, _) = with_data(Entries::All, 2);
    assert_eq!(fabric.run_until(Instant::ZERO + Span::from_millis(10)), Stopped::Idle);
    let parts = fabric.nics.hosts[1].parts().expect("it is made of parts");
    assert_eq!((parts.cores.receives, parts.cores.held_up), (128, 0));
}

#[test]
fn a_queue_pair_that_goes_away_holds_no_packet_up() {
    let (mut fabric, first) = with_data(Entries::Count(4), 2);
    fabric.run_until(Instant::ZERO + Span::from_micros(60));
    let Fabric { net, nics } = &mut fabric;
    let gone = nics.hosts[0].engine.query(first).expect("it exists").peer;
    nics.hosts[1].engine.destroy_qp(gone).expect("it exists");
    nics.hosts[1].poke(net, B);
    fabric.run_until(Instant::ZERO + Span::from_millis(2));
    assert_eq!(fabric.nics.application.0.len(), 1, "the other one's message ends");
}
