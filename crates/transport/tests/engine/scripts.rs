//! A few packets by hand, one sentence each.

use crate::pair::{ALL_DEFERRED, Client, Fate, Pair, Server};
use roci_transport::{
    Access, Arrival, Change, CompletionKind, Deferred, Engine, EngineConfig, Operation, QpConfig, QpState,
    Reaction, Recovery, Refusal, SendRequest, Status, Tail, Transition,
};
use roci_units::{Instant, Psn, Span};
use roci_wire::layout::srnic::RequestPosition;
use roci_wire::{Layout, Opcode, Shape};

pub(crate) const MTU: u32 = 1024;

pub(crate) fn config() -> QpConfig {
    QpConfig::default()
}

pub(crate) fn request(id: u64, operation: Operation, address: u64, length: u32) -> SendRequest {
    SendRequest { id, operation, length, address, lkey: 0, solicited: false, signaled: true, fence: false }
}

impl Pair {
    pub(crate) fn write(&mut self, id: u64, from: u64, va: u64, length: u32) {
        let rkey = self.server.key;
        self.post(Client, request(id, Operation::Write { va, rkey, tail: Tail::Plain }, from, length));
    }

    pub(crate) fn send(&mut self, id: u64, from: u64, length: u32) {
        self.post(Client, request(id, Operation::Send(Tail::Plain), from, length));
    }

    pub(crate) fn read(&mut self, id: u64, to: u64, va: u64, length: u32) {
        let rkey = self.server.key;
        self.post(Client, request(id, Operation::Read { va, rkey }, to, length));
    }

    pub(crate) fn assert_copied(&self, from: u64, to: u64, length: u32) {
        let (from, to, length) = (from as usize, to as usize, length as usize);
        assert!(
            self.client.memory[from..from + length] == self.server.memory[to..to + length],
            "octets differ"
        );
    }
}

#[test]
fn a_write_of_one_packet_is_placed_acknowledged_and_completed() {
    let mut pair = Pair::connected(config());
    pair.write(1, 0, 4096, 100);
    pair.run();
    assert_eq!(pair.client.story(), ["w0!"]);
    assert_eq!(pair.server.story(), ["ack0"]);
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
    assert!(pair.server.completions.is_empty(), "a WRITE is silent at the responder");
    pair.assert_copied(0, 4096, 100);
}

#[test]
fn a_message_is_cut_at_the_mtu_and_its_last_packet_is_the_rest() {
    let mut pair = Pair::connected(config());
    pair.write(1, 10, 4096, 3 * MTU + 5);
    pair.run();
    assert_eq!(pair.client.story(), ["w0!", "w1!", "w2!", "w3!"]);
    assert_eq!(pair.client.sent[3].payload.len(), 5);
    pair.assert_copied(10, 4096, 3 * MTU + 5);
}

#[test]
fn acknowledgements_are_asked_for_every_so_often_and_at_the_end() {
    let mut pair = Pair::connected(QpConfig { ack_every: 4, ..config() });
    pair.write(1, 0, 4096, 10 * MTU);
    pair.run();
    assert_eq!(pair.client.story(), ["w0", "w1", "w2", "w3!", "w4", "w5", "w6", "w7!", "w8", "w9!"]);
    assert_eq!(pair.server.story(), ["ack3", "ack7", "ack9"]);
}

#[test]
fn a_send_fills_a_receive_and_both_sides_hear_of_it() {
    let mut pair = Pair::connected(config());
    pair.post_recv(Server, 70, 8192, 4 * MTU);
    let send = request(1, Operation::Send(Tail::Immediate(0xabcd)), 0, 2 * MTU);
    pair.post(Client, SendRequest { solicited: true, ..send });
    pair.run();
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
    let received = pair.server.completions[0];
    assert_eq!((received.id, received.kind, received.length), (70, CompletionKind::Recv, 2 * MTU));
    assert_eq!((received.tail, received.solicited), (Tail::Immediate(0xabcd), true));
    pair.assert_copied(0, 8192, 2 * MTU);
}

#[test]
fn a_gap_in_psns_draws_one_nak_and_no_more() {
    let mut pair = Pair::connected(config()).fate(1, Fate::Drop);
    pair.write(1, 0, 4096, 4 * MTU);
    pair.run();
    assert_eq!(pair.server.story(), ["ack0", "nak1:0", "ack1", "ack2", "ack3"]);
    assert_eq!(pair.client.story(), ["w0!", "w1!", "w2!", "w3!", "w1!", "w2!", "w3!"]);
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
    pair.assert_copied(0, 4096, 4 * MTU);
}

#[test]
fn a_lost_last_packet_is_sent_again_after_the_timeout() {
    let mut pair = Pair::connected(config()).fate(1, Fate::Drop);
    pair.write(1, 0, 4096, 2 * MTU);
    pair.run();
    assert_eq!(pair.client.story(), ["w0!", "w1!", "w1!"]);
    let counters = pair.client.engine.counters(pair.client.qpns[0]);
    assert_eq!((counters.packets, counters.retransmitted, counters.timeouts), (3, 1, 1));
}

#[test]
fn a_duplicate_is_acknowledged_again_and_placed_once() {
    let mut pair = Pair::connected(config()).fate(0, Fate::Duplicate);
    pair.write(1, 0, 4096, 100);
    pair.run();
    assert_eq!(pair.server.story(), ["ack0", "ack0"]);
    assert_eq!(pair.server.refused, [Refusal::Duplicate]);
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
}

#[test]
fn a_read_is_answered_by_as_many_packets_as_it_spans() {
    let mut pair = Pair::connected(config());
    pair.read(1, 50_000, 4096, 3 * MTU + 7);
    pair.write(2, 0, 9_000, 10);
    pair.run();
    assert_eq!(pair.client.story(), ["read0", "w4!"]);
    assert_eq!(pair.server.story(), ["data0", "data1", "data2", "data3", "ack4"]);
    assert_eq!(pair.client.ended(), [(1, Status::Success), (2, Status::Success)]);
    pair.assert_copied(50_000, 4096, 3 * MTU + 7);
}

#[test]
fn a_lost_read_response_is_asked_for_from_where_it_stopped() {
    let mut pair = Pair::connected(config()).fate_of(Server, 1, Fate::Drop);
    pair.read(1, 50_000, 4096, 3 * MTU + 7);
    pair.run();
    assert_eq!(pair.client.story(), ["read0", "read1"]);
    assert_eq!(pair.client.sent[1].header.reth().va, 4096 + u64::from(MTU));
    assert_eq!(pair.client.sent[1].header.reth().length, 2 * MTU + 7);
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
    pair.assert_copied(50_000, 4096, 3 * MTU + 7);
}

#[test]
fn an_atomic_is_carried_out_once_though_its_result_is_lost() {
    let mut pair = Pair::connected(config()).fate_of(Server, 0, Fate::Drop);
    let rkey = pair.server.key;
    pair.server.memory[64..72].copy_from_slice(&40u64.to_le_bytes());
    pair.post(Client, request(1, Operation::FetchAdd { va: 64, rkey, add: 2 }, 0, 8));
    pair.post(Client, request(2, Operation::CompareSwap { va: 64, rkey, compare: 42, swap: 7 }, 0, 8));
    pair.run();
    assert_eq!(pair.client.ended(), [(1, Status::Success), (2, Status::Success)]);
    assert_eq!(pair.client.completions.iter().map(|c| c.original).collect::<Vec<_>>(), [40, 42]);
    assert_eq!(pair.server.memory[64..72], 7u64.to_le_bytes());
}

#[test]
fn a_receiver_that_is_not_ready_is_tried_again_after_its_timer() {
    let mut pair = Pair::connected(config());
    pair.send(1, 0, 100);
    pair.run_until(roci_units::Instant::ZERO + Span::from_micros(100));
    assert_eq!(pair.server.story(), ["rnr0"]);
    pair.post_recv(Server, 9, 8192, 100);
    pair.run();
    assert_eq!(pair.client.story(), ["s0!", "s0!"]);
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
    assert!(pair.now.as_ps() >= 640_000_000, "the timer asked for 640 us");
}

#[test]
fn retries_run_out() {
    let mut pair = Pair::connected(QpConfig { retry: 2, ..config() })
        .script(|side, _, _, _| if side == Client { Fate::Drop } else { Fate::Pass });
    pair.write(1, 0, 4096, 100);
    pair.write(2, 0, 4096, 100);
    pair.run();
    assert_eq!(
        pair.client.ended(),
        [(1, Status::TransportRetryCounterExceeded), (2, Status::WorkRequestFlushed),]
    );
    assert_eq!(pair.client.story().len(), 6);
}

#[test]
fn a_wrong_key_ends_both_sides_and_moves_nothing() {
    let mut pair = Pair::connected(config());
    let before = pair.server.memory.clone();
    let write = Operation::Write { va: 0, rkey: pair.server.key ^ 1, tail: Tail::Plain };
    pair.post(Client, request(1, write, 0, 100));
    pair.run();
    assert_eq!(pair.server.story(), ["nak0:2"]);
    assert_eq!(pair.client.ended(), [(1, Status::RemoteAccessError)]);
    assert_eq!(pair.server.refused, [Refusal::Rejected]);
    assert!(pair.server.memory == before);
}

/// The responder has given up, so the READ cannot be asked for again; but it is not what was refused.
#[test]
fn a_fatal_nak_behind_a_read_whose_response_was_lost_ends_the_request_that_drew_it() {
    let layouts = [
        (Recovery::GoBackN, Layout::Standard),
        (Recovery::Irn, Layout::Irn),
        (Recovery::Srnic, Layout::Srnic),
    ];
    for (recovery, layout) in layouts {
        let mut pair =
            Pair::connected(QpConfig { recovery, layout, ..config() }).script(|side, _, packet, _| {
                let response = packet.header.opcode.shape().has(Shape::RESPONSE);
                let lost = side == Server && response && packet.header.opcode != Opcode::ACKNOWLEDGE;
                if lost { Fate::Drop } else { Fate::Pass }
            });
        pair.read(1, 50_000, 4096, 2 * MTU);
        pair.write(2, 0, 4096, 100);
        let write = Operation::Write { va: 0, rkey: pair.server.key ^ 1, tail: Tail::Plain };
        pair.post(Client, request(3, write, 0, 3 * MTU));
        pair.write(4, 0, 4096, 100);
        pair.run();
        let flushed = Status::WorkRequestFlushed;
        assert_eq!(
            pair.client.ended(),
            [(1, flushed), (2, flushed), (3, Status::RemoteAccessError), (4, flushed)],
            "{layout:?}"
        );
    }
}

#[test]
fn a_receiver_that_is_never_ready_ends_the_send_that_found_it_so_and_not_the_read_before_it() {
    let mut pair = Pair::connected(QpConfig { rnr_retry: 0, ..config() }).script(|side, _, packet, _| {
        let lost = side == Server && packet.header.opcode == Opcode::READ_RESPONSE_ONLY;
        if lost { Fate::Drop } else { Fate::Pass }
    });
    pair.read(1, 50_000, 4096, 100);
    pair.send(2, 0, 100);
    pair.run();
    assert_eq!(pair.client.ended(), [(1, Status::WorkRequestFlushed), (2, Status::RnrRetryCounterExceeded)]);
}

#[test]
fn a_nak_behind_a_read_reaches_the_requester() {
    for deferred in [Deferred::default(), ALL_DEFERRED] {
        let mut pair = Pair::connected(QpConfig { deferred, ..config() });
        pair.read(1, 50_000, 4096, 20 * MTU);
        let write = Operation::Write { va: 0, rkey: pair.server.key ^ 1, tail: Tail::Plain };
        pair.post(Client, request(2, write, 0, 100));
        pair.run();
        assert_eq!(pair.client.ended(), [(1, Status::Success), (2, Status::RemoteAccessError)]);
        assert_eq!(pair.server.story().last().unwrap(), "nak20:2");
        pair.assert_copied(50_000, 4096, 20 * MTU);
    }
}

#[test]
fn a_responder_whose_own_request_failed_answers_no_more() {
    let deferred = Deferred { memory: true, ..Deferred::default() };
    let mut pair = Pair::connected(QpConfig { deferred, retry: 0, ..config() }).late(1);
    pair.read(1, 50_000, 4096, 20 * MTU);
    pair.run_until(Instant::ZERO + Span::from_micros(2));
    let (now, qpn) = (pair.now, pair.server.qpns[0]);
    let change = Change { transition: Some(Transition::Fail), ..Change::default() };
    pair.server.engine.modify_qp(now, qpn, &change).unwrap();
    let sent = pair.server.sent.len();
    pair.run();
    assert!(pair.server.sent.len() <= sent + 3, "at most what was on its way to the port");
    assert_eq!(pair.client.ended(), [(1, Status::TransportRetryCounterExceeded)]);
}

#[test]
fn everything_works_late_as_well() {
    for seed in 0..20 {
        let mut pair = Pair::connected(QpConfig { deferred: ALL_DEFERRED, ..config() }).late(seed);
        pair.post_recv(Server, 9, 100_000, 9 * MTU);
        pair.write(1, 0, 4096, 5 * MTU + 1);
        pair.send(2, 20_000, 7 * MTU);
        pair.read(3, 50_000, 60_000, 6 * MTU);
        let rkey = pair.server.key;
        pair.post(Client, request(4, Operation::FetchAdd { va: 64, rkey, add: 2 }, 0, 8));
        pair.write(5, 0, 30_000, 3 * MTU);
        pair.run();
        let ok = Status::Success;
        assert_eq!(pair.client.ended(), [(1, ok), (2, ok), (3, ok), (4, ok), (5, ok)]);
        pair.assert_copied(0, 4096, 5 * MTU + 1);
        pair.assert_copied(20_000, 100_000, 7 * MTU);
        pair.assert_copied(50_000, 60_000, 6 * MTU);
        pair.assert_copied(0, 30_000, 3 * MTU);
    }
}

#[test]
fn a_region_that_ends_in_the_middle_of_a_message_takes_no_more_of_it() {
    let irn = QpConfig { recovery: Recovery::Irn, layout: Layout::Irn, ..config() };
    for config in [config(), irn] {
        for (is_send, is_void) in [(false, false), (true, false), (true, true)] {
            let mut pair = Pair::connected(config);
            let expected = if is_send {
                pair.post_recv(Server, 9, 4096, 50 * MTU);
                pair.send(1, 0, 50 * MTU);
                Status::RemoteOperationError
            } else {
                pair.write(1, 0, 4096, 50 * MTU);
                Status::RemoteAccessError
            };
            pair.run_until(Instant::ZERO + Span::from_micros(5));
            if is_void {
                pair.server.engine.void_recvs(|id| id == 9);
            } else {
                let key = pair.server.key;
                pair.server.engine.deregister(key).unwrap();
            }
            let before = pair.server.memory.clone();
            assert_ne!(pair.client.memory[..1024], before[4096 + 49 * 1024..][..1024]);
            pair.run();
            assert_eq!(pair.client.ended(), [(1, expected)]);
            assert!(pair.server.memory == before, "nothing is placed any more");
            assert_eq!(pair.server.completions.len(), usize::from(is_send));
            assert!(pair.server.completions.iter().all(|end| end.status != Status::Success));
        }
    }
}

#[test]
fn the_end_of_another_key_does_not_disturb_a_message() {
    let mut pair = Pair::connected(config());
    let pd = pair.server.pd;
    let (other, _) = pair.server.engine.register(pd, 0, 64, Access::ALL).unwrap();
    pair.write(1, 0, 4096, 50 * MTU);
    pair.run_until(Instant::ZERO + Span::from_micros(5));
    pair.server.engine.deregister(other).unwrap();
    pair.run();
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
    pair.assert_copied(0, 4096, 50 * MTU);
}

#[test]
fn a_duplicate_does_not_take_the_place_of_an_owed_nak() {
    // While a READ is answered, the last WRITE but one is lost, and after the last one the first arrives again.
    let mut pair = Pair::connected(config()).fate(2, Fate::Drop);
    pair.write(0, 0, 4096, 100);
    pair.read(1, 50_000, 4096, 40 * MTU);
    pair.write(2, 0, 4096, 100);
    pair.write(3, 0, 4096, 100);
    pair.run_until(Instant::ZERO + Span::from_nanos(1_600));
    assert_eq!(pair.client.story(), ["w0!", "read1", "w41!", "w42!"]);
    assert_eq!(pair.server.refused, [Refusal::OutOfSequence]);
    let again = pair.client.sent[0].header;
    let arrival = Arrival::new(&again, 9);
    let now = pair.now;
    pair.server.engine.receive(now, &arrival, &mut Reaction::default());
    pair.run();
    assert_eq!(pair.server.story()[41..], ["nak41:0", "ack41", "ack42"]);
    assert_eq!(pair.client.engine.counters(pair.client.qpns[0]).timeouts, 0);
    assert!(pair.client.ended().iter().all(|end| end.1 == Status::Success));
}

#[test]
fn a_nack_waits_for_no_read_and_names_the_packet_that_drew_it() {
    for (recovery, layout) in [(Recovery::Irn, Layout::Irn), (Recovery::Srnic, Layout::Srnic)] {
        let mut pair = Pair::connected(QpConfig { recovery, layout, ..config() }).fate(1, Fate::Drop);
        pair.read(1, 50_000, 4096, 40 * MTU);
        pair.write(2, 0, 4096, 100);
        pair.write(3, 0, 4096, 100);
        pair.run();
        let place = pair.server.story().iter().position(|word| word == "nak1:0").expect("it was sent");
        assert!(place < 10, "long before the last response");
        let nak = &pair.server.sent[place].header;
        if layout == Layout::Srnic {
            assert_eq!(nak.echoed_psn(), Psn::new(2));
            assert_eq!(nak.request_position(), RequestPosition { msn: 2, psn_offset: 0, ssn: 0 });
        } else {
            assert_eq!(nak.trigger(), Psn::new(2));
        }
        let mut sent = pair.client.story();
        sent.retain(|word| !word.starts_with("got"));
        assert_eq!(sent, ["read0", "w1!", "w2!", "w1!"], "what came is not sent again");
        assert_eq!(pair.client.ended(), [1, 2, 3].map(|id| (id, Status::Success)));
        assert_eq!(pair.client.engine.counters(pair.client.qpns[0]).timeouts, 0);
    }
}

#[test]
fn a_read_response_that_was_lost_is_sent_again_alone() {
    for (recovery, layout) in [(Recovery::Irn, Layout::Irn), (Recovery::Srnic, Layout::Srnic)] {
        let mut pair = Pair::connected(QpConfig { recovery, layout, ack_every: 4, ..config() }).fate_of(
            Server,
            6,
            Fate::Drop,
        );
        pair.read(1, 50_000, 4096, 20 * MTU);
        pair.run();
        let mut responses = pair.server.story();
        responses.retain(|word| word.starts_with("data"));
        assert_eq!(responses.len(), 21, "{responses:?}");
        responses.sort();
        responses.dedup();
        assert_eq!(responses.len(), 20, "one of them twice");
        assert_eq!(pair.client.story()[0], "read0");
        assert!(pair.client.story()[1..].iter().all(|word| word.starts_with("got")));
        let octets = 20 * MTU as usize;
        assert!(pair.client.memory[50_000..][..octets] == pair.server.memory[4096..][..octets]);
        assert_eq!(pair.client.ended(), [(1, Status::Success)]);
        for node in [&pair.client, &pair.server] {
            assert_eq!(node.engine.counters(node.qpns[0]).timeouts, 0);
            assert_eq!(node.engine.query(node.qpns[0]).unwrap().in_flight, 0);
        }
    }
}

#[test]
fn the_requester_of_a_read_notices_that_its_responder_is_gone() {
    let config = QpConfig { recovery: Recovery::Srnic, layout: Layout::Srnic, ..config() };
    // The request is acknowledged; from then on the responder is silent.
    let mut pair = Pair::connected(config)
        .script(|side, n, _, _| if side == Server && n > 2 { Fate::Drop } else { Fate::Pass });
    pair.read(1, 50_000, 4096, 20 * MTU);
    pair.run();
    assert_eq!(pair.client.ended(), [(1, Status::TransportRetryCounterExceeded)]);
    assert_eq!(
        pair.server.engine.query(pair.server.qpns[0]).unwrap().state,
        QpState::Error,
        "it gave up too"
    );
}

#[test]
fn a_read_whose_key_ends_is_broken_off() {
    let layouts = [
        (Recovery::GoBackN, Layout::Standard),
        (Recovery::Irn, Layout::Irn),
        (Recovery::Srnic, Layout::Srnic),
    ];
    for (recovery, layout) in layouts {
        let mut pair = Pair::connected(QpConfig { recovery, layout, ..config() });
        pair.read(1, 50_000, 4096, 40 * MTU);
        pair.run_until(Instant::ZERO + Span::from_nanos(2_500));
        let key = pair.server.key;
        pair.server.engine.deregister(key).unwrap();
        pair.run();
        assert_eq!(pair.client.ended(), [(1, Status::RemoteAccessError)], "{layout:?}");
        assert!(pair.server.sent.len() < 40, "nothing is read any more");
    }
}

/// A queue pair with selective repeat whose first result of an atomic is lost, and the client's packet `lost` if any.
fn without_first_result(recovery: Recovery, layout: Layout, lost: Option<usize>) -> Pair {
    let config =
        QpConfig { recovery, layout, min_rnr_timer: Span::from_micros(10), ack_every: 1, ..config() };
    let mut results = 0;
    Pair::connected(config).script(move |side, number, packet, _| {
        let is_result = packet.header.opcode == Opcode::ATOMIC_ACKNOWLEDGE;
        results += u32::from(is_result);
        let drop = is_result && results == 1 || side == Client && lost == Some(number);
        if drop { Fate::Drop } else { Fate::Pass }
    })
}

const SELECTIVE: [(Recovery, Layout); 5] = [
    (Recovery::Irn, Layout::Irn),
    (Recovery::Srnic, Layout::Srnic),
    (Recovery::NewReno, Layout::Irn),
    (Recovery::Sack, Layout::Irn),
    (Recovery::Ndp, Layout::Ndp),
];

impl Pair {
    fn add(&mut self, id: u64) {
        let rkey = self.server.key;
        self.post(Client, request(id, Operation::FetchAdd { va: 64, rkey, add: 1 }, 0, 8));
    }

    fn assert_added_once(&self, ids: &[u64]) {
        assert_eq!(self.client.ended(), ids.iter().map(|&id| (id, Status::Success)).collect::<Vec<_>>());
        let original = self.client.completions.iter().find(|c| c.kind == CompletionKind::FetchAdd);
        assert_eq!(original.map(|c| c.original), Some(40));
        assert_eq!(self.server.memory[64..72], 41u64.to_le_bytes());
    }
}

#[test]
fn an_atomic_that_arrived_early_is_asked_for_again_when_its_result_is_lost() {
    for (recovery, layout) in SELECTIVE {
        let mut pair = without_first_result(recovery, layout, Some(0));
        pair.server.memory[64..72].copy_from_slice(&40u64.to_le_bytes());
        pair.write(1, 0, 4096, 100);
        pair.add(2);
        pair.write(3, 0, 4096, 100);
        pair.run();
        pair.assert_added_once(&[1, 2, 3]);
    }
}

#[test]
fn a_receiver_that_is_not_ready_behind_a_lost_result_leaves_the_atomic_to_be_sent_again() {
    for (recovery, layout) in SELECTIVE.into_iter().chain([(Recovery::GoBackN, Layout::Standard)]) {
        let mut pair = without_first_result(recovery, layout, None);
        pair.server.memory[64..72].copy_from_slice(&40u64.to_le_bytes());
        pair.add(1);
        pair.send(2, 0, 100);
        pair.run_until(Instant::ZERO + Span::from_micros(5));
        assert!(pair.server.story().contains(&"rnr1".to_owned()), "{recovery:?}: {:?}", pair.server.story());
        pair.post_recv(Server, 9, 8192, 100);
        pair.run();
        pair.assert_added_once(&[1, 2]);
    }
}

#[test]
fn a_read_whose_data_overtook_the_lost_result_of_an_atomic_is_not_asked_for_again() {
    for (recovery, layout) in SELECTIVE {
        let mut pair = without_first_result(recovery, layout, None);
        pair.server.memory[64..72].copy_from_slice(&40u64.to_le_bytes());
        pair.add(1);
        pair.read(2, 50_000, 4096, 100);
        pair.run();
        pair.assert_added_once(&[1, 2]);
        let reads = pair.client.story().iter().filter(|word| word.starts_with("read")).count();
        assert_eq!(reads, 1, "{recovery:?}: {:?}", pair.client.story());
    }
}

#[test]
fn a_lost_result_alone_is_asked_for_again_however_many_atomics_follow() {
    for (recovery, layout) in SELECTIVE {
        let mut pair = without_first_result(recovery, layout, None);
        pair.server.memory[64..72].copy_from_slice(&40u64.to_le_bytes());
        for id in 0..50 {
            pair.add(id);
        }
        pair.run();
        let originals: Vec<u64> =
            pair.client.completions.iter().map(|completion| completion.original).collect();
        assert_eq!(originals, (40..90).collect::<Vec<_>>(), "{recovery:?}");
        let counters = pair.client.engine.counters(pair.client.qpns[0]);
        assert_eq!((counters.retransmitted, counters.timeouts), (1, 0), "{recovery:?}");
    }
}

#[test]
fn selective_repeat_complains_again_after_a_receiver_that_was_not_ready() {
    let wait = Span::from_micros(10);
    let srnic =
        QpConfig { recovery: Recovery::Srnic, layout: Layout::Srnic, min_rnr_timer: wait, ..config() };
    // The first packet comes through at the second attempt; what follows is lost, and an early READ shows it.
    let mut pair = Pair::connected(srnic).fate(3, Fate::Drop);
    pair.send(1, 0, 2 * MTU);
    pair.run_until(Instant::ZERO + Span::from_micros(5));
    pair.post_recv(Server, 9, 0, 2 * MTU);
    pair.read(2, 50_000, 4096, 100);
    pair.run();
    assert_eq!(pair.client.story()[2..5], ["s0!", "s1!", "read2"]);
    assert_eq!(pair.client.engine.counters(pair.client.qpns[0]).timeouts, 0);
    assert!(pair.client.ended().iter().all(|end| end.1 == Status::Success));
}

#[test]
fn on_a_long_link_selective_repeat_times_out_as_it_is_told_to() {
    let irn = QpConfig { recovery: Recovery::Irn, layout: Layout::Irn, ..config() };
    // A round trip takes 400 µs: less than 5/16 of 2 ms.
    let config = QpConfig { timeout: Span::from_millis(2), ..irn };
    let mut pair = Pair::connected(config).apart(Span::from_micros(200)).fate(50, Fate::Drop);
    pair.write(1, 0, 4096, 40 * MTU);
    pair.write(2, 0, 65_536, 11 * MTU);
    pair.run();
    assert_eq!(pair.client.ended(), [(1, Status::Success), (2, Status::Success)]);
    let counters = pair.client.engine.counters(pair.client.qpns[0]);
    assert_eq!((counters.timeouts, counters.retransmitted), (1, 1), "only the last packet was lost");
    let waited = pair.now.since(Instant::ZERO);
    assert!(
        waited > Span::from_micros(1_025) && waited < Span::from_millis(2),
        "{waited}, by the shorter timeout"
    );
}

#[test]
fn longer_bitmaps_keep_more_in_flight_and_all_of_it_behind_a_lost_packet() {
    let engine =
        |seed, bitmap| Engine::with_bitmaps(EngineConfig { seed, ..EngineConfig::default() }, bitmap);
    for (recovery, layout) in [(Recovery::Irn, Layout::Irn), (Recovery::Srnic, Layout::Srnic)] {
        for (bitmap, in_flight) in [(2048, 2048), (8192, 5000)] {
            let config = QpConfig {
                recovery,
                layout,
                max_in_flight: 5000,
                timeout: Span::from_millis(20),
                ..config()
            };
            let mut pair = Pair::with_engines(engine(1, bitmap), engine(2, bitmap), config, 1)
                .apart(Span::from_micros(400))
                .fate(0, Fate::Drop);
            (1..=6000).for_each(|id| pair.write(id, 0, 4096 + id % 1000 * 8, 8));
            // Each packet takes 100 ns to leave; the first answer comes after 800 us.
            pair.run_until(Instant::ZERO + Span::from_micros(790));
            assert_eq!(pair.client.sent.len(), in_flight, "{recovery:?}");
            pair.run();
            let counters = pair.client.engine.counters(pair.client.qpns[0]);
            assert_eq!((counters.retransmitted, counters.timeouts), (1, 0), "{recovery:?}");
            assert_eq!(pair.client.ended().len(), 6000, "{recovery:?}");
        }
    }
}

fn with_window(recovery: Recovery) -> QpConfig {
    QpConfig { recovery, layout: Layout::Irn, ..config() }
}

#[test]
fn a_recovery_program_s_window_bounds_what_is_in_flight_and_grows() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let config = QpConfig { initial_window: 4, ..with_window(recovery) };
        let mut pair = Pair::connected(config).apart(Span::from_micros(50));
        let qpn = pair.client.qpns[0];
        assert_eq!(pair.client.engine.query(qpn).unwrap().congestion_window, None);
        pair.write(1, 0, 4096, 100 * MTU);
        for (round, window) in [(1, 4u32), (2, 8), (3, 16)] {
            pair.run_until(Instant::ZERO + Span::from_micros(100 * round - 10));
            assert_eq!(pair.client.sent.len() as u32, 2 * window - 4, "{recovery:?}");
            assert_eq!(pair.client.engine.query(qpn).unwrap().congestion_window, Some(window));
        }
        pair.run();
        pair.assert_copied(0, 4096, 100 * MTU);
        assert_eq!(pair.client.engine.counters(qpn).retransmitted, 0);
    }
}

#[test]
fn a_law_s_window_and_the_program_s_both_apply() {
    let config = QpConfig { max_in_flight: 3, ..with_window(Recovery::NewReno) };
    let mut pair = Pair::connected(config).apart(Span::from_micros(50));
    pair.write(1, 0, 4096, 30 * MTU);
    pair.run_until(Instant::ZERO + Span::from_micros(40));
    assert_eq!(pair.client.sent.len(), 3);
    pair.run();
    pair.assert_copied(0, 4096, 30 * MTU);
}

#[test]
fn repeated_acknowledgements_name_what_came_and_bring_back_the_lost_packet_alone() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let mut pair =
            Pair::connected(with_window(recovery)).apart(Span::from_micros(10)).fate(2, Fate::Drop);
        pair.write(1, 0, 4096, 40 * MTU);
        pair.run();
        pair.assert_copied(0, 4096, 40 * MTU);
        let repeated: Vec<_> =
            pair.server.sent.iter().filter(|packet| packet.header.psn == Psn::new(1)).collect();
        assert!(repeated.len() > 3, "{recovery:?}");
        for (number, packet) in repeated.iter().enumerate() {
            let named = if number == 0 { 1 } else { 2 + number as u32 };
            assert_eq!(packet.header.trigger(), Psn::new(named), "{recovery:?}");
        }
        let counters = pair.client.engine.counters(pair.client.qpns[0]);
        assert_eq!((counters.retransmitted, counters.timeouts, counters.naks), (1, 0, 0), "{recovery:?}");
    }
}

#[test]
fn a_timeout_comes_after_twice_the_time_until_something_is_acknowledged() {
    let config = QpConfig { timeout: Span::from_micros(100), ..with_window(Recovery::NewReno) };
    let mut pair = Pair::connected(config);
    for number in 0..4 {
        pair = pair.fate(number, Fate::Drop);
    }
    pair.write(1, 0, 4096, 100);
    let qpn = pair.client.qpns[0];
    for (number, after) in [(1, 100), (2, 300), (3, 700), (4, 1_500)] {
        pair.run_until(Instant::ZERO + Span::from_micros(after) - Span::from_nanos(1));
        assert_eq!(pair.client.engine.counters(qpn).timeouts, number - 1);
        pair.run_until(Instant::ZERO + Span::from_micros(after + 5));
        assert_eq!(pair.client.engine.counters(qpn).timeouts, number);
    }
    pair.run();
    pair.assert_copied(0, 4096, 100);
}

#[test]
fn with_fewer_acknowledgements_the_last_packet_of_a_window_asks_for_one() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let config = QpConfig { initial_window: 1, ack_every: 8, ..with_window(recovery) };
        let mut pair = Pair::connected(config);
        pair.write(1, 0, 4096, 60 * MTU);
        pair.run();
        let counters = pair.client.engine.counters(pair.client.qpns[0]);
        assert_eq!((counters.retransmitted, counters.timeouts), (0, 0), "{recovery:?}");
    }
}
