//! A responder that says how many receive requests it has: what would find none waits at the requester.

use crate::scripts::{config, request};
use roci_transport::{Arrival, Engine, EngineConfig, Operation, QpConfig, Reaction, Status, Tail};
use roci_units::{Instant, Psn, Qpn, Span};
use roci_wire::{Aeth, Header, Opcode, Syndrome};

const QPN: Qpn = Qpn::new(2);
const SEND: Operation = Operation::Send(Tail::Plain);
const WRITE: Operation = Operation::Write { va: 0, rkey: 1, tail: Tail::Plain };
const NOTIFYING: Operation = Operation::Write { va: 0, rkey: 1, tail: Tail::Immediate(1) };
const READ: Operation = Operation::Read { va: 0, rkey: 1 };

struct Asker {
    engine: Engine,
    now: Instant,
}

impl Asker {
    fn new(config: QpConfig) -> Self {
        let mut engine = Engine::new(EngineConfig::default());
        let config = QpConfig { qpn: Some(QPN), peer: Qpn::new(9), timeout: Span::ZERO, ..config };
        engine.create_qp(config).unwrap();
        Self { engine, now: Instant::ZERO }
    }

    fn post(&mut self, operations: &[Operation]) {
        for operation in operations {
            self.engine.post_send(self.now, QPN, &request(1, *operation, 0, 10)).unwrap();
        }
    }

    /// The PSNs of what it sends now.
    fn sends(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.engine.transmit(self.now))
            .map(|segment| segment.header.psn.get())
            .collect()
    }

    fn hears(&mut self, opcode: Opcode, psn: u32, msn: u32, syndrome: Syndrome) {
        let mut header = Header::new(opcode, QPN, Psn::new(psn));
        header.set_aeth(Aeth { syndrome: syndrome.to_u8(), msn });
        header.payload = if opcode == Opcode::READ_RESPONSE_ONLY { 10 } else { 0 };
        let arrival = Arrival { header: &header, path: 0, ce: false, words: &[], hops: &[] };
        self.engine.receive(self.now, &arrival, &mut Reaction::default());
    }

    fn is_answered(&mut self, psn: u32, msn: u32, credits: u8) {
        self.hears(Opcode::ACKNOWLEDGE, psn, msn, Syndrome::Ack { credits });
    }
}

/// One that has sent a message, and has heard that there are so many receive requests more.
fn told(credits: u8) -> Asker {
    let mut asker = Asker::new(config());
    asker.post(&[SEND]);
    assert_eq!(asker.sends(), [0]);
    asker.is_answered(0, 1, credits);
    asker
}

#[test]
fn a_message_goes_beyond_what_there_are_receive_requests_for_where_nothing_else_would_bring_an_answer() {
    let mut asker = told(2);
    asker.post(&[SEND; 9]);
    assert_eq!(asker.sends(), [1, 2], "two have receive requests");
    asker.is_answered(1, 2, 1);
    assert_eq!(asker.sends(), [], "the answer to the other may say more");
    asker.is_answered(2, 3, 0);
    assert_eq!(asker.sends(), [3], "it does not, and this one asks");
    // Receive requests that are posted later are told of unasked.
    asker.is_answered(2, 3, 3);
    assert_eq!(asker.sends(), [4, 5], "one of the three is for the one that has gone");
    asker.is_answered(2, 3, 0);
    asker.is_answered(4, 5, 3);
    assert_eq!(asker.sends(), [6, 7], "an older acknowledgement takes nothing back");
}

#[test]
fn only_what_consumes_a_receive_request_waits_for_one() {
    for last in [SEND, NOTIFYING] {
        let mut asker = told(1);
        asker.post(&[WRITE, WRITE, last, last, WRITE]);
        assert_eq!(asker.sends(), [1, 2, 3], "nothing overtakes the next");
        asker.is_answered(2, 3, 1);
        assert_eq!(asker.sends(), []);
        asker.is_answered(2, 3, 2);
        assert_eq!(asker.sends(), [4, 5]);
    }
}

#[test]
fn each_packet_of_a_lone_write_is_a_message_to_the_responder() {
    let mut asker = Asker::new(QpConfig { lone_writes: true, ..config() });
    let qpn = QPN;
    asker.engine.post_send(asker.now, qpn, &request(1, WRITE, 0, 3 * 1024)).unwrap();
    assert_eq!(asker.sends(), [0, 1, 2]);
    asker.is_answered(2, 3, 2);
    asker.post(&[SEND; 4]);
    assert_eq!(asker.sends(), [3, 4]);
}

#[test]
fn what_brings_data_tells_of_receive_requests_too() {
    for (operation, opcode) in [
        (READ, Opcode::READ_RESPONSE_ONLY),
        (Operation::FetchAdd { va: 0, rkey: 1, add: 1 }, Opcode::ATOMIC_ACKNOWLEDGE),
    ] {
        let mut asker = told(1);
        asker
            .engine
            .post_send(asker.now, QPN, &request(1, operation, 0, if operation == READ { 10 } else { 8 }))
            .unwrap();
        asker.post(&[SEND; 5]);
        assert_eq!(asker.sends(), [1, 2]);
        asker.hears(opcode, 1, 2, Syndrome::Ack { credits: 3 });
        assert_eq!(asker.sends(), [3, 4]);
    }
}

#[test]
fn nothing_waits_where_credits_are_off_and_where_nothing_would_bring_an_answer() {
    let mut asker = told(Syndrome::CREDITS_OFF);
    asker.post(&[SEND; 5]);
    assert_eq!(asker.sends(), [1, 2, 3, 4, 5]);
    let mut asker = told(0);
    asker.post(&[SEND; 5]);
    assert_eq!(asker.sends(), [1]);
    asker.is_answered(1, 2, Syndrome::CREDITS_OFF);
    assert_eq!(asker.sends(), [2, 3, 4, 5], "it gives none any more");
    // Who counts messages otherwise, or pretends to, has one at a time.
    let mut asker = told(0);
    asker.post(&[SEND; 3]);
    for psn in 1..4 {
        assert_eq!(asker.sends(), [psn]);
        asker.is_answered(psn, 0x00ff_0000, 0);
    }
    assert_eq!(std::iter::from_fn(|| asker.engine.poll_completion()).count(), 4);
}

/// A responder that has two receive requests at first and one more each microsecond, as long as it takes to ask it; gives the RNR NAKs that
/// 100 SENDs draw, and how many packets they take.
fn refusals(tells: bool) -> (u32, usize) {
    let mut asker = Asker::new(config());
    asker.post(&[SEND; 100]);
    let (mut receives, mut expected, mut refusals, mut sent) = (2u8, 0u32, 0, 0);
    for _ in 0..2_000 {
        asker.now += Span::from_micros(1);
        asker.engine.wake(asker.now);
        let mut is_ready = true;
        for psn in asker.sends() {
            sent += 1;
            is_ready &= receives > 0;
            if is_ready && psn == expected {
                (receives, expected) = (receives - 1, expected + 1);
            }
        }
        let credits = if tells { receives } else { Syndrome::CREDITS_OFF };
        if expected > 0 {
            asker.is_answered(expected - 1, expected, credits);
        }
        if !is_ready {
            refusals += 1;
            // 10 us.
            asker.hears(Opcode::ACKNOWLEDGE, expected, expected, Syndrome::RnrNak { timer: 1 });
        }
        receives = (receives + 1).min(2);
    }
    let ends = std::iter::from_fn(|| asker.engine.poll_completion());
    assert_eq!(ends.filter(|end| end.status == Status::Success).count(), 100);
    (refusals, sent)
}

#[test]
fn a_responder_with_few_receive_requests_that_tells_of_them_refuses_hardly_anything() {
    let (with, without) = (refusals(true), refusals(false));
    assert!(with.0 <= 1 && with.1 < 200, "{with:?}");
    assert!(without.0 > 30 && without.1 > 1_000, "{without:?}");
}
