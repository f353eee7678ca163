//! What happens to queues besides the ends of requests.

use crate::pair::{Client, Fate, Node, Pair, Server};
use crate::scripts::{MTU, config, request};
use roci_transport::{
    Change, Engine, EngineConfig, Incident, Operation, QpConfig, QpState, RecvRequest, RecvTarget, Service,
    Srq, Status, Tail, Transition,
};
use roci_units::{Psn, Span};
use roci_wire::{NakCode, Opcode};

const SEND: Operation = Operation::Send(Tail::Plain);

fn told(node: &mut Node) -> Vec<Incident> {
    std::iter::from_fn(|| node.engine.poll_incident()).collect()
}

/// Whose server tells.
fn telling(config: QpConfig) -> Pair {
    let mut pair = Pair::connected(config);
    pair.server.engine.tell_incidents();
    pair
}

#[test]
fn a_shared_queue_that_falls_below_its_limit_is_told_once_and_at_once_where_it_has() {
    let engine = |seed| Engine::new(EngineConfig { seed, ..EngineConfig::default() });
    let (mut client, mut server) = (engine(1), engine(2));
    let srq = server.create_srq();
    client.create_srq();
    server.tell_incidents();
    let mut pair = Pair::with_engines(client, server, QpConfig { srq: Some(srq), ..config() }, 1);
    let (pd, lkey) = (pair.server.pd, pair.server.key);
    let recv = |pair: &mut Pair| {
        let request = RecvRequest { id: 0, address: 8192, length: 4096, lkey };
        pair.server.engine.post_recv(RecvTarget::Srq(srq, pd), request).unwrap();
    };
    let sends = |pair: &mut Pair, packets: u32| {
        pair.post(Client, request(1, SEND, 0, packets * MTU));
        pair.run();
    };
    for _ in 0..4 {
        recv(&mut pair);
    }
    pair.server.engine.set_srq_limit(srq, 3);
    sends(&mut pair, 3);
    assert_eq!((told(&mut pair.server), pair.server.engine.srq_limit(srq)), (vec![], 3), "three stand there");
    sends(&mut pair, 1);
    let low = vec![Incident::SharedLow(srq)];
    assert_eq!((told(&mut pair.server), pair.server.engine.srq_limit(srq)), (low.clone(), 0));
    sends(&mut pair, 1);
    assert_eq!(told(&mut pair.server), [], "it is armed for once");
    pair.server.engine.set_srq_limit(srq, 2);
    assert_eq!(told(&mut pair.server), low, "one stands there");
    recv(&mut pair);
    pair.server.engine.set_srq_limit(srq, 2);
    pair.server.engine.set_srq_limit(srq, 0);
    sends(&mut pair, 1);
    assert_eq!(told(&mut pair.server), [], "nobody wants to know any more");
    // Neither its requests nor its limit are left to the next one.
    pair.server.engine.set_srq_limit(srq, 1);
    pair.server.engine.clear_srq(srq, |_| ());
    assert_eq!((pair.server.engine.srq_limit(srq), pair.server.engine.receives_waiting(srq)), (0, 0));
    pair.server.engine.set_srq_limit(Srq(9), 1);
    assert_eq!(told(&mut pair.server), []);
}

/// Brings the server from INIT to RTR, the first packet of the client's expected.
fn receives(pair: &mut Pair) {
    let (now, qpn, client) = (pair.now, pair.server.qpns[0], pair.client.qpns[0]);
    let mut to = |transition| {
        let is_receive = transition == Transition::Receive;
        let change = Change {
            transition: Some(transition),
            peer: is_receive.then_some(client),
            receive_psn: is_receive.then_some(Psn::new(0)),
            ..Change::default()
        };
        pair.server.engine.modify_qp(now, qpn, &change).unwrap();
    };
    [Transition::Reset, Transition::Initialize, Transition::Receive].into_iter().for_each(&mut to);
}

#[test]
fn a_connection_is_established_once_by_the_first_request_in_order_while_in_rtr() {
    // The first packet is lost, and what overtook it says nothing.
    let mut pair = telling(config()).fate(0, Fate::Drop);
    receives(&mut pair);
    let qpn = pair.server.qpns[0];
    assert_eq!(told(&mut pair.server), []);
    pair.post_recv(Server, 1, 8192, 4 * MTU);
    pair.post_recv(Server, 2, 8192, 4 * MTU);
    pair.post(Client, request(1, SEND, 0, 3 * MTU));
    let end = pair.now + Span::from_micros(3);
    pair.run_until(end);
    assert_eq!(told(&mut pair.server), []);
    pair.run();
    assert_eq!(told(&mut pair.server), [Incident::Established(qpn)]);
    pair.post(Client, request(2, SEND, 0, MTU));
    pair.run();
    assert_eq!(told(&mut pair.server), []);
    assert_eq!(pair.client.ended(), [(1, Status::Success), (2, Status::Success)]);
    assert_eq!(pair.server.engine.query(qpn).unwrap().state, QpState::ReadyToReceive);

    // Who is in RTS knows already, and can send before anything has come.
    let mut pair = telling(config());
    receives(&mut pair);
    let (now, qpn) = (pair.now, pair.server.qpns[0]);
    let send = Change { transition: Some(Transition::Send), ..Change::default() };
    pair.server.engine.modify_qp(now, qpn, &send).unwrap();
    pair.post_recv(Client, 3, 8192, MTU);
    pair.post(Server, request(4, SEND, 0, MTU));
    pair.run();
    assert_eq!((told(&mut pair.server), pair.server.ended()), (vec![], vec![(4, Status::Success)]));
}

#[test]
fn an_unreliable_connection_is_established_by_the_first_message_of_which_anything_begins() {
    let mut pair = telling(QpConfig { service: Service::Uc, ..config() }).fate(0, Fate::Drop);
    receives(&mut pair);
    let qpn = pair.server.qpns[0];
    pair.post_recv(Server, 1, 8192, 4 * MTU);
    pair.post(Client, request(1, SEND, 0, 3 * MTU));
    pair.run();
    assert_eq!(told(&mut pair.server), [], "the rest of one whose first packet is lost begins nothing");
    for id in [2, 3] {
        pair.post(Client, request(id, SEND, 0, 3 * MTU));
    }
    pair.run();
    assert_eq!(told(&mut pair.server), [Incident::Established(qpn)]);
    assert_eq!(pair.server.ended(), [(1, Status::Success)]);
}

#[test]
fn a_refused_request_is_told_unless_a_receive_ends_with_the_error() {
    let mut pair = telling(config());
    let qpn = pair.server.qpns[0];
    let write = Operation::Write { va: 0, rkey: pair.server.key ^ 1, tail: Tail::Plain };
    pair.post(Client, request(1, write, 0, MTU));
    pair.run();
    let refused = Incident::Refused(qpn, NakCode::RemoteAccessError);
    assert_eq!(told(&mut pair.server), [Incident::Failed(qpn), refused]);
    assert_eq!(pair.client.ended(), [(1, Status::RemoteAccessError)]);

    let mut pair = telling(config());
    let qpn = pair.server.qpns[0];
    pair.post_recv(Server, 1, 8192, MTU);
    pair.post(Client, request(1, SEND, 0, 2 * MTU));
    pair.run();
    assert_eq!(told(&mut pair.server), [Incident::Failed(qpn)]);
    assert_eq!(pair.server.ended(), [(1, Status::LocalLengthError)]);
}

#[test]
fn a_read_in_parts_that_has_begun_is_finished_in_sqd_and_what_comes_behind_it_waits() {
    let engine = |seed| Engine::new(EngineConfig { seed, ..EngineConfig::default() });
    let mut client = engine(1);
    client.bound_reads(4 * u64::from(MTU));
    client.cut_reads();
    let mut pair = Pair::with_engines(client, engine(2), QpConfig { max_rd_atomic: 1, ..config() }, 1);
    let qpn = pair.client.qpns[0];
    let to = |transition| Change { transition: Some(transition), ..Change::default() };
    assert!(!pair.client.engine.has_begun(qpn));
    pair.read(1, 0, 8192, 10 * MTU);
    pair.write(2, 0, 8192, MTU);
    let end = pair.now + Span::from_micros(1);
    pair.run_until(end);
    let asked = |pair: &Pair| {
        pair.client.sent.iter().filter(|packet| packet.header.opcode == Opcode::READ_REQUEST).count()
    };
    assert_eq!(asked(&pair), 1);
    let now = pair.now;
    pair.client.engine.modify_qp(now, qpn, &to(Transition::Drain)).unwrap();
    assert!(pair.client.engine.has_begun(qpn));
    pair.run();
    assert!(asked(&pair) > 1);
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
    assert!(!pair.client.engine.has_begun(qpn), "what is left has not begun");
    let now = pair.now;
    pair.client.engine.modify_qp(now, qpn, &to(Transition::Send)).unwrap();
    pair.run();
    assert_eq!(pair.client.ended(), [(1, Status::Success), (2, Status::Success)]);
}
