//! Homa's senders: which message goes first, and what they answer to a receiver that misses something.

use crate::scripts::{MTU, config, request};
use roci_control::Law;
use roci_transport::{
    Arrival, Engine, EngineConfig, Operation, QpConfig, Reaction, Recovery, Segment, SendRequest, Tail,
};
use roci_units::{Instant, Psn, Qpn, Span};
use roci_wire::layout::homa::{Homa, HomaBody};
use roci_wire::{Header, Layout, Opcode};

/// An engine with queue pairs of law `homa`; the peer of the one numbered n is 100 + n.
fn sender(unscheduled: &str, count: u32) -> (Engine, Vec<Qpn>) {
    let mut engine = Engine::new(EngineConfig::default());
    let link = EngineConfig::default().link;
    let law = Law::from_settings("homa", &[("unscheduled", unscheduled)], link).unwrap();
    let law = engine.add_law(law);
    let homa = QpConfig { law, layout: Layout::Homa, recovery: Recovery::Irn, path: 9, ..config() };
    let create = |n| engine.create_qp(QpConfig { peer: Qpn::new(100 + n), ..homa }).unwrap();
    let qpns = (0..count).map(create).collect();
    (engine, qpns)
}

/// The receiver asks for the first `length` octets of the first message on `qpn`; what it is answered at once.
fn resend(engine: &mut Engine, now: Instant, qpn: Qpn, length: u32) -> Option<Opcode> {
    let body = HomaBody::Resend { offset: 0, length, priority: 4 };
    let header = Header::new(Opcode::HOMA_RESEND, qpn, Psn::new(0));
    let words = Homa { rpc: 0, body }.encode();
    let arrival = Arrival { header: &header, path: 9, ce: false, words: words.as_slice(), hops: &[] };
    let mut reaction = Reaction::default();
    engine.receive(now, &arrival, &mut reaction);
    assert_eq!(reaction.refused, None);
    reaction.notice.map(|notice| notice.header.opcode)
}

fn message(id: u64, length: u32) -> SendRequest {
    request(id, Operation::Send(Tail::Plain), 0, length)
}

fn all(engine: &mut Engine, now: Instant) -> Vec<Segment> {
    core::iter::from_fn(|| engine.transmit(now)).collect()
}

#[test]
fn the_message_with_the_least_left_goes_first() {
    let (mut engine, qpns) = sender("64KB", 3);
    let now = Instant::ZERO;
    engine.post_send(now, qpns[0], &message(0, 20 * MTU)).unwrap();
    let next = |engine: &mut Engine| engine.transmit(now).map(|segment| segment.header.dest_qpn.get());
    assert_eq!((next(&mut engine), next(&mut engine)), (Some(100), Some(100)));
    engine.post_send(now, qpns[1], &message(1, 18 * MTU + 1)).unwrap();
    engine.post_send(now, qpns[2], &message(2, 3 * MTU)).unwrap();
    let order: Vec<u32> = core::iter::from_fn(|| next(&mut engine)).collect();
    // How long a message is, is known once its first packet goes, which takes its turn.
    let mut expected = vec![101, 102, 102, 102];
    expected.extend([100; 18]);
    expected.extend([101; 18]);
    assert_eq!(order, expected);
}

#[test]
fn who_has_granted_packets_to_send_is_busy_and_sends_nothing_again() {
    let (mut engine, qpns) = sender("64KB", 1);
    engine.post_send(Instant::ZERO, qpns[0], &message(0, 4 * MTU)).unwrap();
    assert!(engine.transmit(Instant::ZERO).is_some());
    let now = Instant::ZERO + Span::from_millis(1);
    assert_eq!(resend(&mut engine, now, qpns[0], MTU), Some(Opcode::HOMA_BUSY));
    let sent = all(&mut engine, now);
    assert_eq!((sent.len(), sent.iter().any(|segment| segment.retransmission)), (3, false));
    assert_eq!(resend(&mut engine, now, qpns[0], MTU), None);
    let again: Vec<Segment> = all(&mut engine, now);
    assert_eq!(again.len(), 1, "all is sent: the packet may be lost");
    assert!(again[0].retransmission && again[0].header.psn == config().send_psn);
}
