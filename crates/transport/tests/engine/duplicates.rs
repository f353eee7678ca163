//! What comes twice is answered twice, and no answer to it misleads the requester (IBTA Vol 1 §9.7.5.1).

use crate::pair::{Client, Pair};
use crate::scripts::{MTU, config, request};
use roci_transport::{Arrival, Deferral, Engine, Grant, Operation, QpConfig, Reaction, Resolution, Status};

/// A WRITE, a READ of four packets and a FETCH-ADD, all answered: PSNs 0, 1 to 4, and 5.
fn answered() -> Pair {
    let mut pair = Pair::connected(config());
    let rkey = pair.server.key;
    pair.write(1, 0, 4096, 100);
    pair.read(2, 50_000, 8192, 4 * MTU);
    pair.post(Client, request(3, Operation::FetchAdd { va: 64, rkey, add: 2 }, 0, 8));
    pair.run();
    assert!(pair.client.ended().iter().all(|end| end.1 == Status::Success));
    assert_eq!(pair.server.story(), ["ack0", "data1", "data2", "data3", "data4", "result5"]);
    pair
}

impl Pair {
    /// The client's packets of these numbers arrive again, in this order, all at once.
    fn again(&mut self, numbers: &[usize]) -> Vec<String> {
        let before = self.server.sent.len();
        let mut reaction = Reaction::default();
        for number in numbers {
            let header = self.client.sent[*number].header;
            let arrival = Arrival::new(&header, 9);
            self.server.engine.receive(self.now, &arrival, &mut reaction);
            for segment in [reaction.reply.take(), reaction.notice.take()].iter().flatten() {
                self.server.enqueue(segment);
            }
        }
        self.run();
        self.server.story().split_off(before)
    }
}

#[test]
fn an_atomic_s_result_does_not_overtake_a_read_that_is_answered_again() {
    let mut pair = answered();
    let memory = pair.server.memory.clone();
    assert_eq!(pair.again(&[1, 2]), ["data1", "data2", "data3", "data4", "result5"]);
    assert_eq!(pair.again(&[2, 1]), ["result5", "data1", "data2", "data3", "data4"]);
    assert!(pair.server.memory == memory, "it is carried out once");
}

#[test]
fn an_atomic_before_a_read_is_answered_again_before_what_is_left_of_it() {
    let mut pair = Pair::connected(config());
    let rkey = pair.server.key;
    pair.post(Client, request(1, Operation::FetchAdd { va: 64, rkey, add: 2 }, 0, 8));
    pair.read(2, 50_000, 8192, 4 * MTU);
    pair.run();
    assert_eq!(pair.again(&[1, 0]), ["result0", "data1", "data2", "data3", "data4"]);
}

#[test]
fn a_write_that_comes_again_is_not_acknowledged_together_with_a_read_or_an_atomic() {
    let mut pair = answered();
    assert_eq!(pair.again(&[0]), ["ack0"]);
    pair.write(4, 0, 4096, 100);
    pair.run();
    assert_eq!(pair.again(&[3]), ["ack6"]);
}

#[test]
fn of_what_a_read_s_responses_acknowledge_only_what_asks_is_acknowledged_again() {
    let mut pair = Pair::connected(QpConfig { ack_every: 8, ..config() });
    pair.write(1, 0, 4096, 3 * MTU);
    pair.read(2, 50_000, 8192, 2 * MTU);
    pair.run();
    assert_eq!(pair.client.story(), ["w0", "w1", "w2!", "read3"]);
    assert!(pair.again(&[0, 1]).is_empty());
    assert_eq!(pair.again(&[2]), ["ack2"]);
    assert_eq!(pair.again(&[0, 1, 2, 3]), ["ack2", "data3", "data4"]);
}

#[test]
fn what_a_response_acknowledges_is_not_acknowledged_again_behind_it() {
    let mut pair = answered();
    assert_eq!(pair.again(&[1, 0]), ["data1", "data2", "data3", "data4"]);
    assert_eq!(pair.again(&[1, 0, 2]), ["data1", "data2", "data3", "data4", "result5"]);
}

#[test]
fn repeated_requests_do_not_use_up_what_a_responder_can_take() {
    let mut pair = answered();
    for round in 0..40 {
        pair.again(&[1, 2]);
        let rkey = pair.server.key;
        pair.post(Client, request(10 + round, Operation::FetchAdd { va: 64, rkey, add: 1 }, 0, 8));
        pair.run();
    }
    assert!(pair.client.ended().iter().all(|end| end.1 == Status::Success));
    assert_eq!(pair.client.ended().len(), 43);
}

#[test]
fn responses_that_go_again_are_counted_and_new_ones_behind_them_are_not() {
    let mut pair = answered();
    let qpn = pair.server.qpns[0];
    let counted = |pair: &Pair| {
        let counters = pair.server.engine.counters(qpn);
        (counters.packets, counters.retransmitted)
    };
    assert_eq!(counted(&pair), (4, 0));
    pair.again(&[1]);
    assert_eq!(counted(&pair), (8, 4), "a READ that comes twice is answered twice");
    pair.read(4, 60_000, 8192, 2 * MTU);
    pair.run();
    assert_eq!(counted(&pair), (10, 4));
}

#[test]
fn what_is_offered_of_responses_is_either_all_new_or_all_sent_again() {
    let mut pair = Pair::connected(config());
    pair.read(1, 50_000, 8192, 6 * MTU);
    // Of six responses three have gone when the READ comes again.
    let (now, qpn) = (pair.now, pair.server.qpns[0]);
    let header = pair.client.engine.transmit(now).expect("the READ").header;
    let arrival = Arrival::new(&header, 9);
    let mut reaction = Reaction::default();
    let engine = &mut pair.server.engine;
    engine.receive(now, &arrival, &mut reaction);
    let take = |engine: &mut Engine, packets: u32| {
        let offer = engine.offer(now, packets * MTU).expect("there is more");
        let segment = engine.commit(now, offer, Grant::Engine).expect("it may go");
        assert_eq!(segment.retransmission, offer.retransmission);
        (segment.header.psn.get(), segment.packets, segment.retransmission)
    };
    assert_eq!(take(engine, 3), (0, 3, false));
    engine.receive(now, &arrival, &mut reaction);
    assert_eq!(
        [take(engine, 2), take(engine, 8), take(engine, 8)],
        [(0, 2, true), (2, 1, true), (3, 3, false)]
    );
    let counters = engine.counters(qpn);
    assert_eq!((counters.packets, counters.retransmitted), (9, 3));
}

#[test]
fn a_result_behind_a_read_that_comes_again_goes_when_another_read_takes_that_one_s_place() {
    let mut pair = Pair::connected(QpConfig { max_dest_rd_atomic: 2, ..config() });
    let (now, rkey) = (pair.now, pair.server.key);
    pair.read(1, 50_000, 8192, MTU);
    pair.post(Client, request(2, Operation::FetchAdd { va: 64, rkey, add: 2 }, 0, 8));
    pair.read(3, 50_000, 8192, MTU);
    let headers = [(); 3].map(|()| pair.client.engine.transmit(now).expect("a request").header);
    let engine = &mut pair.server.engine;
    let mut reaction = Reaction::default();
    let mut arrives = |engine: &mut Engine, number: usize| {
        let arrival = Arrival::new(&headers[number], 9);
        engine.receive(now, &arrival, &mut reaction);
        while let Some(Deferral::Memory { token, .. }) = engine.poll_deferral() {
            engine.resolve(now, token, Resolution::Memory { original: 40 });
        }
        reaction.notice.take().or_else(|| engine.poll_notice()).map(|segment| segment.header.psn.get())
    };
    assert_eq!(arrives(engine, 0), None);
    assert_eq!(engine.transmit(now).map(|segment| segment.header.psn.get()), Some(0));
    assert_eq!(arrives(engine, 0), None);
    assert_eq!(arrives(engine, 1), None, "the first READ is to be answered before");
    assert_eq!(arrives(engine, 2), Some(1));
    assert_eq!(engine.transmit(now).map(|segment| segment.header.psn.get()), Some(2));
}
