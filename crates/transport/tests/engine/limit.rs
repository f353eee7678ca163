//! A responder that says how many receive requests it has: what would find none waits at the requester.

use crate::pair::{Client, Fate, Node, Pair, Server};
use crate::scripts::{config, request};
use roci_transport::{
    Arrival, CompletionKind, Engine, EngineConfig, Operation, QpConfig, Reaction, Recovery, Refusal, Status,
    Tail,
};
use roci_units::{Instant, Psn, Qpn, Span};
use roci_wire::{Aeth, Header, Layout, Opcode, Syndrome};

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

    /// The same once it has waited for a word.
    fn sends_after_a_wait(&mut self) -> Vec<u32> {
        assert_eq!(self.sends(), [], "it waits");
        self.now = self.engine.next_wakeup().expect("not for ever");
        self.engine.wake(self.now);
        self.sends()
    }

    fn hears(&mut self, opcode: Opcode, psn: u32, msn: u32, syndrome: Syndrome) {
        self.takes(answer(opcode, psn, msn, syndrome));
    }

    fn takes(&mut self, header: Header) {
        let arrival = Arrival::new(&header, 0);
        self.engine.receive(self.now, &arrival, &mut Reaction::default());
    }

    fn is_answered(&mut self, psn: u32, msn: u32, credits: u8) {
        self.hears(Opcode::ACKNOWLEDGE, psn, msn, Syndrome::Ack { credits });
    }
}

fn answer(opcode: Opcode, psn: u32, msn: u32, syndrome: Syndrome) -> Header {
    let mut header = Header::new(opcode, QPN, Psn::new(psn));
    header.set_aeth(Aeth { syndrome: syndrome.to_u8(), msn });
    header.payload = if opcode == Opcode::READ_RESPONSE_ONLY { 10 } else { 0 };
    header
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
    assert_eq!(asker.sends_after_a_wait(), [3], "it does not, nor does it later, and this one asks");
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
fn data_and_results_that_come_again_tell_of_receive_requests_that_were_posted_since() {
    for (operation, opcode) in [
        (READ, Opcode::READ_RESPONSE_ONLY),
        (Operation::FetchAdd { va: 0, rkey: 1, add: 1 }, Opcode::ATOMIC_ACKNOWLEDGE),
    ] {
        for (recovery, layout) in TELLS {
            let mut asker = Asker::new(QpConfig { recovery, layout, ..config() });
            asker.post(&[SEND]);
            assert_eq!(asker.sends(), [0]);
            asker.is_answered(0, 1, 0);
            let octets = if operation == READ { 10 } else { 8 };
            asker.engine.post_send(asker.now, QPN, &request(1, operation, 0, octets)).unwrap();
            let asked = asker.engine.transmit(asker.now).expect("nothing waits").header;
            let answered = |credits| {
                // Responses are numbered for themselves where they are acknowledged.
                let psn = if recovery == Recovery::GoBackN || operation != READ { 1 } else { 0 };
                let mut header = answer(opcode, psn, 2, Syndrome::Ack { credits });
                if layout == Layout::Srnic && operation == READ {
                    header.set_request_position(asked.request_position());
                }
                header
            };
            asker.takes(answered(1));
            asker.post(&[SEND; 4]);
            assert_eq!(asker.sends(), [2], "{recovery:?}");
            asker.is_answered(2, 3, 0);
            assert_eq!(asker.sends(), [], "{recovery:?}");
            asker.takes(answered(3));
            assert_eq!(asker.sends(), [3, 4], "{recovery:?}");
        }
    }
}

#[test]
fn a_law_does_not_hear_of_what_tells_of_receive_requests_alone() {
    let counts = include_bytes!("../../../control/tests/images/counts.elf");
    let mut engine = crate::acknowledging::programmed(1, counts, &[]);
    let config = QpConfig { qpn: Some(QPN), peer: Qpn::new(9), law: 1, timeout: Span::ZERO, ..config() };
    engine.create_qp(config).unwrap();
    let mut asker = Asker { engine, now: Instant::ZERO };
    asker.post(&[SEND; 2]);
    assert_eq!(asker.sends(), [0, 1]);
    asker.is_answered(1, 2, 0);
    asker.post(&[SEND]);
    assert_eq!(asker.sends(), []);
    asker.is_answered(1, 2, 1);
    assert_eq!(asker.sends(), [2]);
    asker.is_answered(2, 3, 0);
    let heard = asker.engine.control_get(QPN, "heard", asker.now);
    assert_eq!(heard, Some(roci_control::Value::Count(2)));
}

#[test]
fn nothing_waits_where_credits_are_off_and_where_nothing_would_bring_an_answer() {
    let mut asker = told(Syndrome::CREDITS_OFF);
    asker.post(&[SEND; 5]);
    assert_eq!(asker.sends(), [1, 2, 3, 4, 5]);
    let mut asker = told(0);
    asker.post(&[SEND; 5]);
    assert_eq!(asker.sends_after_a_wait(), [1]);
    asker.is_answered(1, 2, Syndrome::CREDITS_OFF);
    assert_eq!(asker.sends(), [2, 3, 4, 5], "it gives none any more");
    // Who counts messages otherwise, or pretends to, has one at a time.
    let mut asker = told(0);
    asker.post(&[SEND; 3]);
    for psn in 1..4 {
        assert_eq!(asker.sends_after_a_wait(), [psn]);
        asker.is_answered(psn, 0x00ff_0000, 0);
    }
    assert_eq!(std::iter::from_fn(|| asker.engine.poll_completion()).count(), 4);
}

#[test]
fn who_has_often_waited_for_a_word_in_vain_waits_no_more_unless_one_comes() {
    let mut asker = told(0);
    asker.post(&[SEND; 9]);
    for psn in 1..5 {
        assert_eq!(asker.sends_after_a_wait(), [psn]);
        asker.is_answered(psn, psn + 1, 0);
    }
    assert_eq!(asker.sends(), [5], "the responder tells only when it is asked");
    asker.is_answered(5, 6, 0);
    assert_eq!(asker.sends(), [6]);
    let mut asker = told(0);
    asker.post(&[SEND; 9]);
    assert_eq!(asker.sends(), [], "it waits");
    asker.is_answered(0, 1, 1);
    assert_eq!(asker.sends(), [1], "a word comes unasked");
    for psn in 2..8 {
        asker.is_answered(psn - 1, psn, 0);
        assert_eq!(asker.sends_after_a_wait(), [psn], "it may have been lost");
    }
}

#[test]
fn who_may_not_be_refused_waits_longer_for_the_first_word_and_for_those_of_who_tells() {
    let (short, long) = (Span::from_micros(4_000), Span::from_micros(64_000));
    for (tells, waits) in [(false, [long, short, short]), (true, [long; 3])] {
        let mut asker = Asker::new(QpConfig { rnr_retry: 0, ..config() });
        asker.post(&[SEND]);
        assert_eq!(asker.sends(), [0]);
        asker.is_answered(0, 1, 0);
        let mut psn = 0;
        if tells {
            asker.is_answered(0, 1, 1);
            asker.post(&[SEND]);
            assert_eq!(asker.sends(), [1]);
            asker.is_answered(1, 2, 0);
            psn = 1;
        }
        for wait in waits {
            asker.post(&[SEND]);
            let before = asker.now;
            psn += 1;
            assert_eq!(asker.sends_after_a_wait(), [psn]);
            assert_eq!(asker.now.since(before), wait, "{tells}: {psn}");
            asker.is_answered(psn, psn + 1, 0);
        }
    }
}

#[test]
fn responses_go_while_a_request_waits_for_a_word() {
    let mut asker = told(0);
    asker.post(&[SEND]);
    assert_eq!(asker.sends(), []);
    let wait = asker.engine.next_wakeup().unwrap();
    let mut header = Header::new(Opcode::READ_REQUEST, QPN, Psn::new(0));
    let (key, _) = asker.engine.register(Default::default(), 0, 4096, roci_transport::Access::ALL).unwrap();
    header.set_reth(roci_wire::Reth { va: 0, rkey: key, length: 100 });
    let arrival = Arrival::new(&header, 0);
    asker.engine.receive(asker.now, &arrival, &mut Reaction::default());
    let segment = asker.engine.transmit(asker.now).expect("its response");
    assert_eq!(segment.header.opcode, Opcode::READ_RESPONSE_ONLY);
    assert_eq!(asker.sends(), []);
    assert_eq!(asker.engine.next_wakeup(), Some(wait));
    asker.engine.wake(wait);
    asker.now = wait;
    assert_eq!(asker.sends(), [1]);
}

#[test]
fn who_has_waited_for_a_word_is_paced_as_before() {
    let mut engine = crate::laws::engine(1, &[("increase_timer", "1s"), ("byte_counter", "0")]);
    let config = QpConfig { qpn: Some(QPN), peer: Qpn::new(9), law: 1, timeout: Span::ZERO, ..config() };
    engine.create_qp(config).unwrap();
    engine.control_set(QPN, "rc", "100Mb/s", Instant::ZERO).unwrap();
    let mut asker = Asker { engine, now: Instant::ZERO };
    asker.post(&[SEND; 4]);
    assert_eq!(asker.sends(), [0]);
    let gap = asker.engine.next_wakeup().unwrap().since(asker.now);
    assert!(gap < Span::from_micros(20), "{gap}");
    // The timer of the gap has still to be heard as the acknowledgement comes.
    asker.now += Span::from_micros(20);
    asker.is_answered(0, 1, 0);
    assert_eq!(asker.sends(), [], "it waits for a word");
    asker.now += Span::from_micros(50);
    asker.is_answered(0, 1, 3);
    assert_eq!(asker.sends(), [1]);
    for psn in [2, 3] {
        assert_eq!(asker.engine.next_wakeup().unwrap().since(asker.now), gap);
        asker.now += gap;
        asker.engine.wake(asker.now);
        assert_eq!(asker.sends(), [psn]);
    }
}

/// What a responder told of receive requests with each answer: the number of messages, and the code's.
fn told_by(node: &Node) -> Vec<(u32, Option<u32>)> {
    let aeth = node.sent.iter().map(|packet| packet.header.aeth());
    let told = aeth.filter_map(|aeth| match Syndrome::from_u8(aeth.syndrome) {
        Some(Syndrome::Ack { credits }) => Some((aeth.msn, Syndrome::credit_count(credits))),
        _ => None,
    });
    told.collect()
}

const TELLS: [(Recovery, Layout); 3] =
    [(Recovery::GoBackN, Layout::Standard), (Recovery::Irn, Layout::Irn), (Recovery::Srnic, Layout::Srnic)];

#[test]
fn each_answer_tells_of_the_receive_requests_that_are_left_and_a_posted_one_after_none_is_told_of_unasked() {
    for (recovery, layout) in TELLS {
        let mut pair = Pair::connected(QpConfig { credits: true, recovery, layout, ..config() });
        for id in 0..5 {
            pair.post_recv(Server, id, 4096 * id, 4096);
        }
        pair.send(1, 0, 10);
        pair.run();
        pair.send(2, 0, 10);
        pair.run();
        // A WRITE takes none, one with immediate does.
        pair.write(3, 0, 65_536, 10);
        pair.run();
        let (va, rkey) = (65_536, pair.server.key);
        pair.post(Client, request(4, Operation::Write { va, rkey, tail: Tail::Immediate(1) }, 0, 10));
        pair.run();
        for id in 5..7 {
            pair.send(id, 0, 10);
            pair.run();
        }
        pair.post_recv(Server, 5, 0, 4096);
        pair.run();
        pair.post_recv(Server, 6, 0, 4096);
        pair.run();
        let left = [(1, 4), (2, 3), (3, 3), (4, 2), (5, 1), (6, 0), (6, 1)];
        assert_eq!(told_by(&pair.server), left.map(|(msn, left)| (msn, Some(left))), "{recovery:?}");
        let ended = pair.client.ended();
        assert!(ended.len() == 6 && ended.iter().all(|end| end.1 == Status::Success), "{ended:?}");
    }
}

#[test]
fn a_response_to_a_read_tells_of_what_has_come_after_it_as_well() {
    let mut pair = Pair::connected(QpConfig { credits: true, max_rd_atomic: 4, ..config() }).late(1);
    for id in 0..4 {
        pair.post_recv(Server, id, 4096 * id, 4096);
    }
    pair.read(1, 0, 8192, 10);
    let rkey = pair.server.key;
    pair.post(Client, request(2, Operation::FetchAdd { va: 8192, rkey, add: 1 }, 64, 8));
    pair.send(3, 0, 10);
    pair.run();
    let told = told_by(&pair.server);
    assert!(told.len() >= 3, "{told:?}");
    // Of whatever message an answer counts, it comes to the same last one that has a receive request.
    for (msn, left) in &told {
        assert!(matches!((msn, left), (1, Some(4..=6)) | (2, Some(4)) | (3, Some(3))), "{told:?}");
    }
}

/// A client that may not be refused sends 40 messages to a server with a few receive requests, which posts each again a while after its
/// message has come; gives the packets of the client.
fn to_a_slow_program(tells: bool, receives: u64, lost: Option<usize>) -> (Pair, usize) {
    let mut pair = Pair::connected(QpConfig { credits: tells, rnr_retry: 0, ..config() });
    if let Some(lost) = lost {
        pair = pair.fate_of(Server, lost, Fate::Drop);
    }
    for id in 0..receives {
        pair.post_recv(Server, id, 4096 * id, 4096);
    }
    // What begins before any answer is beyond credits.
    pair.send(0, 0, 10);
    pair.run();
    for id in 1..40 {
        pair.send(id, 0, 10);
    }
    let mut posted = 0;
    for _ in 0..10_000 {
        let until = pair.now + Span::from_micros(20);
        pair.run_until(until);
        let came = pair.server.completions.iter().filter(|end| end.kind == CompletionKind::Recv).count();
        while posted < came {
            pair.post_recv(Server, 100 + posted as u64, 0, 4096);
            posted += 1;
        }
    }
    let packets = pair.client.sent.len();
    (pair, packets)
}

#[test]
fn who_may_not_be_refused_is_not_where_the_responder_tells_of_its_receive_requests() {
    for receives in [1, 2, 3] {
        let (pair, packets) = to_a_slow_program(true, receives, None);
        assert_eq!(packets, 40, "{receives}");
        assert!(pair.client.ended().iter().all(|end| end.1 == Status::Success));
        assert!(!pair.server.refused.contains(&Refusal::ReceiverNotReady));
        let (pair, _) = to_a_slow_program(false, receives, None);
        assert!(pair.client.ended().contains(&(receives, Status::RnrRetryCounterExceeded)));
    }
}

#[test]
fn a_word_that_is_lost_costs_a_wait_and_one_makes_up_for_an_answer_that_is_lost() {
    // Answers and words take turns, and the first is an answer.
    for lost in [1, 2, 5, 10] {
        let (pair, packets) = to_a_slow_program(true, 1, Some(lost));
        assert_eq!((packets, pair.client.ended().len()), (40, 40), "{lost}");
        assert!(pair.client.ended().iter().all(|end| end.1 == Status::Success), "{lost}");
    }
}

/// Its response may have been lost: Soft-RoCE would take the acknowledgement for it.
#[test]
fn a_word_acknowledges_no_read_and_no_atomic() {
    for (recovery, layout) in TELLS {
        let mut pair =
            Pair::connected(QpConfig { credits: true, recovery, layout, max_rd_atomic: 4, ..config() });
        pair.post_recv(Server, 1, 0, 4096);
        pair.send(1, 0, 10);
        pair.run();
        pair.read(2, 0, 8192, 2048);
        let rkey = pair.server.key;
        pair.post(Client, request(3, Operation::FetchAdd { va: 8192, rkey, add: 1 }, 64, 8));
        pair.run();
        pair.post_recv(Server, 2, 0, 4096);
        pair.run();
        let word = pair.server.sent.last().unwrap().header;
        let Some(Syndrome::Ack { credits }) = Syndrome::from_u8(word.aeth().syndrome) else {
            panic!("no word")
        };
        assert_eq!(
            word.aeth().msn + u32::from(credits),
            4,
            "it is for the message behind both: {recovery:?}"
        );
        // Where READ data are acknowledged, it is known of the READ that they came.
        let at = if recovery == Recovery::GoBackN { 0 } else { 1 };
        assert_eq!((word.opcode, word.psn), (Opcode::ACKNOWLEDGE, Psn::new(at)), "{recovery:?}");
        pair.send(4, 0, 10);
        pair.run();
        assert_eq!(pair.client.ended().len(), 4, "{recovery:?}");
    }
}

#[test]
fn a_word_is_recognised_where_nothing_waits_for_it_and_after_silences() {
    let mut asker = told(0);
    asker.post(&[SEND; 5]);
    for psn in 1..5 {
        assert_eq!(asker.sends_after_a_wait(), [psn]);
        asker.is_answered(psn, psn + 1, 0);
    }
    assert_eq!(asker.sends(), [5], "it tells only when it is asked");
    asker.is_answered(5, 6, 0);
    asker.is_answered(5, 6, 1);
    asker.post(&[SEND; 3]);
    assert_eq!(asker.sends(), [6], "a word came unasked");
    asker.is_answered(6, 7, 0);
    assert_eq!(asker.sends_after_a_wait(), [7]);
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
