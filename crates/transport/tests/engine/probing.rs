//! What is sent again after a timeout where a few packets are to find out first whether anything was lost.

use crate::pair::{Client, Fate, Pair, Server};
use crate::scripts::{MTU, config, request};
use roci_transport::{
    Arrival, Counters, Engine, EngineConfig, Operation, QpConfig, QpState, Reaction, Status, Tail,
};
use roci_units::{Instant, Psn, Qpn, Span};
use roci_wire::{Aeth, Flags, Header, NakCode, Opcode, Syndrome};
use std::collections::VecDeque;

const QPN: Qpn = Qpn::new(2);
const TIMEOUT: Span = Span::from_micros(100);
/// Packets of each message, of which the last asks for an answer.
const EACH: u32 = 10;

/// A requester whose timer runs out, or has.
struct Late {
    engine: Engine,
    now: Instant,
}

impl Late {
    /// One whose timer has run out with all of so many messages in flight, and no answer.
    fn new(messages: u32, probes: bool) -> Self {
        let mut late = Self::posted(messages, probes, 0);
        assert_eq!(late.sends(), (0..messages * EACH).collect::<Vec<_>>());
        late.waits();
        late
    }

    /// One that has so many to send, and sends `max_in_flight` packets at most before an answer comes; 0: all.
    fn posted(messages: u32, probes: bool, max_in_flight: u32) -> Self {
        let mut engine = Engine::new(EngineConfig::default());
        let config = QpConfig {
            qpn: Some(QPN),
            peer: Qpn::new(9),
            timeout: TIMEOUT,
            probes,
            ack_every: 100,
            max_in_flight,
            ..config()
        };
        engine.create_qp(config).unwrap();
        let mut late = Self { engine, now: Instant::ZERO };
        late.post(messages);
        late
    }

    fn post(&mut self, messages: u32) {
        self.post_of(messages, EACH);
    }

    fn post_of(&mut self, messages: u32, packets: u32) {
        let write = Operation::Write { va: 0, rkey: 1, tail: Tail::Plain };
        for _ in 0..messages {
            self.engine.post_send(self.now, QPN, &request(1, write, 0, packets * MTU)).unwrap();
        }
    }

    /// Until the timer has run out.
    fn waits(&mut self) {
        let before = self.engine.counters(QPN).timeouts;
        while self.engine.counters(QPN).timeouts == before {
            self.now = self.engine.next_wakeup().expect("a timer runs");
            self.engine.wake(self.now);
        }
    }

    /// The PSNs of what it sends now. The last asks for an answer.
    fn sends(&mut self) -> Vec<u32> {
        let (mut sent, mut asks) = (Vec::new(), true);
        while let Some(segment) = self.engine.transmit(self.now) {
            let first = segment.header.psn.get();
            sent.extend(first..first + u32::from(segment.packets));
            asks = segment.last_flags.has(Flags::ACK_REQUEST);
        }
        assert!(asks, "who sends no more has asked");
        sent
    }

    fn hears(&mut self, psn: u32, syndrome: Syndrome) {
        let mut header = Header::new(Opcode::ACKNOWLEDGE, QPN, Psn::new(psn));
        header.set_aeth(Aeth { syndrome: syndrome.to_u8(), msn: 0 });
        let arrival = Arrival::new(&header, 0);
        self.engine.receive(self.now, &arrival, &mut Reaction::default());
    }

    /// All up to `psn` has come.
    fn is_acknowledged(&mut self, psn: u32) {
        self.hears(psn, Syndrome::Ack { credits: Syndrome::CREDITS_OFF });
    }
}

fn packets(range: core::ops::Range<u32>) -> Vec<u32> {
    range.collect()
}

#[test]
fn after_a_timeout_a_few_packets_are_sent_again_and_once_they_came_twice_as_many() {
    let mut late = Late::new(10, true);
    assert_eq!(late.sends(), packets(0..17));
    late.is_acknowledged(16);
    assert_eq!(late.sends(), packets(17..51));
    // Another timeout begins anew.
    late.waits();
    assert_eq!(late.sends(), packets(17..34));
    late.is_acknowledged(19);
    assert_eq!(late.sends(), [], "it may have come before");
    late.is_acknowledged(33);
    assert_eq!(late.sends(), packets(34..68));
    late.is_acknowledged(67);
    assert_eq!(late.sends(), packets(68..100));
    late.post(1);
    assert_eq!(late.sends(), packets(100..110), "new packets behind all that was in flight");
    late.is_acknowledged(109);
    assert_eq!(late.engine.query(QPN).unwrap().in_flight, 0);
    // Else all goes at once.
    assert_eq!(Late::new(10, false).sends(), packets(0..100));
}

#[test]
fn what_twice_acknowledges_more_than_was_sent_again_says_that_nothing_was_lost() {
    for before_any in [false, true] {
        let mut late = Late::new(10, true);
        if !before_any {
            assert_eq!(late.sends(), packets(0..17));
        }
        late.is_acknowledged(19);
        assert_eq!(late.sends(), [20], "a duplicate may have been answered, and nothing come since");
        late.is_acknowledged(29);
        late.post(1);
        assert_eq!(late.sends(), packets(100..110), "new packets alone");
        // That which lies further behind may be lost all the same.
        late.waits();
        assert_eq!(late.sends(), packets(30..47));
        late.is_acknowledged(109);
        assert_eq!(late.sends(), []);
        assert_eq!(late.engine.query(QPN).unwrap().in_flight, 0);
    }
}

#[test]
fn what_acknowledges_more_than_was_sent_again_once_says_how_much_came_before_the_loss() {
    let mut late = Late::new(10, true);
    assert_eq!(late.sends(), packets(0..17));
    late.is_acknowledged(26);
    assert_eq!(late.sends(), [27]);
    late.is_acknowledged(26);
    assert_eq!(late.sends(), []);
    late.is_acknowledged(27);
    assert_eq!(late.sends(), packets(28..62));
}

#[test]
fn a_new_packet_finds_out_whether_what_follows_the_first_few_was_lost() {
    for lost in [false, true] {
        let mut late = Late::posted(20, true, 100);
        assert_eq!(late.sends(), packets(0..100));
        late.waits();
        assert_eq!(late.sends(), packets(0..17));
        late.is_acknowledged(16);
        assert_eq!(late.sends(), [17, 100]);
        late.is_acknowledged(17);
        assert_eq!(late.sends(), [], "either may have been acknowledged");
        if lost {
            late.hears(18, Syndrome::Nak(NakCode::PsnSequenceError));
            assert_eq!(late.sends(), packets(18..118), "all in flight, and what has room behind it");
        } else {
            late.is_acknowledged(18);
            assert_eq!(late.sends(), packets(101..119), "what has room");
        }
    }
}

#[test]
fn what_ends_before_a_read_says_nothing_of_what_came_behind_it() {
    let mut late = Late::posted(0, true, 100);
    late.post_of(1, 17);
    late.engine
        .post_send(late.now, QPN, &request(2, Operation::Read { va: 0, rkey: 1 }, 0, 5 * MTU))
        .unwrap();
    late.post_of(2, 78);
    assert_eq!(late.sends(), [packets(0..18), packets(22..100)].concat());
    late.waits();
    assert_eq!(late.sends(), packets(0..17));
    late.is_acknowledged(16);
    // It may have refused one behind the READ already, and would be silent to a new one.
    assert_eq!(late.sends(), [packets(17..18), packets(22..51)].concat());
}

#[test]
fn a_nak_after_a_timeout_has_all_sent_again_at_once() {
    let mut late = Late::new(10, true);
    assert_eq!(late.sends(), packets(0..17));
    late.hears(4, Syndrome::Nak(NakCode::PsnSequenceError));
    assert_eq!(late.sends(), packets(4..100));
}

#[test]
fn a_peer_that_is_gone_is_found_out_after_as_many_timeouts() {
    let ends = [true, false].map(|probes| {
        let mut late = Late::new(10, probes);
        while late.engine.query(QPN).unwrap().state == QpState::ReadyToSend {
            late.sends();
            late.now = late.engine.next_wakeup().expect("not for ever");
            late.engine.wake(late.now);
        }
        assert_eq!(late.engine.poll_completion().unwrap().status, Status::TransportRetryCounterExceeded);
        late.now
    });
    assert_eq!(ends[0], ends[1]);
}

/// How WRITEs of 408 packets end, `each` of so many, whose responder stands still for 150 us after the twentieth packet, and takes a
/// microsecond for each that comes in order and five for one that it has; and how many packets were sent.
fn beside_one_who_stands_still(probes: bool, each: u32) -> (Vec<Status>, usize) {
    let mut late = Late::posted(0, probes, 100);
    late.post_of(408 / each, each);
    let (mut waiting, mut expected, mut sent, mut busy) = (VecDeque::new(), 0, 0, 0u32);
    for _ in 0..100_000 {
        late.now += Span::from_micros(1);
        late.engine.wake(late.now);
        while let Some(segment) = late.engine.transmit(late.now) {
            let (first, count) = (segment.header.psn.get(), u32::from(segment.packets));
            let asks = segment.last_flags.has(Flags::ACK_REQUEST);
            waiting.extend((first..first + count).map(|psn| (psn, asks && psn + 1 == first + count)));
            sent += count as usize;
        }
        busy = busy.saturating_sub(1);
        if busy > 0 {
            continue;
        }
        let Some((psn, asks)) = waiting.pop_front() else { continue };
        let is_next = psn == expected;
        expected += u32::from(is_next);
        busy = if psn == 20 && is_next {
            150
        } else if is_next {
            1
        } else {
            5
        };
        // A duplicate is answered whether it asks or not, as Soft-RoCE has it.
        if asks || psn + 1 < expected {
            late.is_acknowledged(expected - 1);
        }
    }
    (std::iter::from_fn(|| late.engine.poll_completion()).map(|end| end.status).collect(), sent)
}

#[test]
fn who_stands_still_for_longer_than_the_timer_is_not_buried_under_duplicates() {
    // Who answers each packet, or just so many as go again, seems to answer those.
    for each in [12, 1, 2, 17, 34, 136] {
        let (ends, sent) = beside_one_who_stands_still(true, each);
        assert!(ends.iter().all(|&end| end == Status::Success), "{each}");
        assert_eq!(ends.len(), 408 / each as usize);
        // With each timeout a few more than the 408.
        assert!(sent < 408 + 100, "{each}: {sent}");
    }
    // What is new stands behind a hundred duplicates, and more come with each timeout, until the retries are over.
    let (ends, _) = beside_one_who_stands_still(false, 12);
    assert!(ends.contains(&Status::TransportRetryCounterExceeded), "{ends:?}");
}

/// A pair whose requester probes after a timeout, and whose answers are as rare as an endpoint's.
fn pair(config: QpConfig) -> Pair {
    Pair::connected(QpConfig { probes: true, timeout: TIMEOUT, ack_every: 64, ..config })
}

fn counters(pair: &Pair) -> Counters {
    pair.client.engine.counters(pair.client.qpns[0])
}

#[test]
fn a_lost_tail_costs_one_timeout_however_much_before_it_came_unacknowledged() {
    for (lost, packets) in
        [(119, 120), (100, 120), (64, 120), (40, 120), (18, 40), (17, 40), (16, 20), (0, 20)]
    {
        let mut pair = pair(config()).script(move |side, n, _, _| {
            if side == Client && (lost..packets).contains(&n) { Fate::Drop } else { Fate::Pass }
        });
        pair.write(1, 0, 0, packets as u32 * MTU);
        pair.run();
        assert_eq!(pair.client.ended(), [(1, Status::Success)]);
        assert_eq!(counters(&pair).timeouts, 1, "{lost} of {packets}");
    }
}

#[test]
fn a_write_that_comes_again_behind_a_read_is_answered_though_an_atomic_followed_it() {
    let run = |lost| {
        let mut pair = pair(config())
            .script(move |side, n, _, _| if side == Server && n < lost { Fate::Drop } else { Fate::Pass });
        let rkey = pair.server.key;
        pair.read(1, 100_000, 0, 10 * MTU);
        pair.write(2, 0, 0, 30 * MTU);
        pair.post(Client, request(3, Operation::FetchAdd { va: 64, rkey, add: 1 }, 0, 8));
        pair.run();
        assert_eq!(pair.client.ended(), [1, 2, 3].map(|id| (id, Status::Success)));
        (pair.server.sent.len(), counters(&pair).timeouts)
    };
    let (answers, _) = run(0);
    // The READ goes again, and of the WRITE so much that what has been asked for is seventeen packets.
    assert_eq!(run(answers).1, 1);
}
