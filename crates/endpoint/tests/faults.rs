//! What a wire does to packets: loss, duplication, reordering, damage, marks, and silence.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Pair, WAIT, in_memory, pattern};
use roci_endpoint::{
    Backend, CompletionKind, Device, DeviceConfig, Faults, MemoryWire, Mtu, Progress, QpState,
    QueuePairBuilder, Recovery, RecvWr, SendWr, Status,
};
use roci_units::BitsPerSec;
use std::time::Duration;

/// A connection with a timeout of 4 ms, so that a lost last packet costs little, but being out of the processor for a
/// while does not cost the connection.
fn impatient(qp: QueuePairBuilder) -> QueuePairBuilder {
    qp.path_mtu(Mtu::Mtu256).timeout(13).min_rnr_timer(Duration::from_micros(100))
}

const BAD: Faults = Faults { loss: 20, duplicate: 20, reorder: 20, corrupt: 10, mark: 50 };

/// SENDs, WRITEs, READs and atomics in both directions at once; everything arrives once, in order, undamaged.
fn traffic(Pair { wire, a, b }: &Pair, rounds: u32) {
    wire.as_ref().unwrap().set_faults(BAD);
    b.open.write(0, &0u64.to_ne_bytes()).unwrap();
    for round in 0..rounds {
        let length = 1 + (round as usize * 977) % 9000;
        let at = 8 * round as usize;
        let round = u64::from(round);
        let data = pattern(round, length);
        b.qp.post_recv(RecvWr::new(b.own.buffer(0..10_000).unwrap()).wr_id(round)).unwrap();
        let mut send = a.own.buffer(0..length).unwrap();
        send.write(0, &data).unwrap();
        let send = send.freeze();
        a.qp.post_send(SendWr::send(send.clone()).wr_id(1)).unwrap();
        a.qp.post_send(SendWr::write(send, b.open.remote().plus(4096)).wr_id(2)).unwrap();
        a.qp.post_send(SendWr::fetch_add(b.open.remote(), 1).wr_id(3)).unwrap();
        let back = a.own.buffer(20_000..20_000 + length).unwrap();
        a.qp.post_send(SendWr::read(back, b.open.remote().plus(4096)).wr_id(4)).unwrap();
        b.qp.post_send(SendWr::write_inline(&round.to_ne_bytes(), a.open.remote().plus(8 * round))).unwrap();
        for expected in 1..=4 {
            let done = a.done();
            assert_eq!(done.wr_id, expected);
            match expected {
                3 => assert_eq!(done.original, round, "each atomic is carried out once"),
                4 => assert!(done.into_buffer().unwrap().to_vec() == data, "READ of round {round}"),
                _ => {}
            }
        }
        let (one, other) = (b.done(), b.done());
        let received = if one.opcode == CompletionKind::Recv { one } else { other };
        assert_eq!((received.wr_id, received.byte_len as usize), (round, length));
        assert!(received.into_buffer().unwrap().to_vec()[..length] == data, "SEND of round {round}");
        assert_eq!(a.open.load(at).unwrap(), round);
    }
    assert_eq!(b.open.load(0).unwrap(), u64::from(rounds));
    assert!(a.qp.counters().retransmitted > 0, "nothing was lost, so nothing was tested");
    assert!(wire.as_ref().unwrap().corrupted() > 0);
    assert!(a.device.counters().corrupt + b.device.counters().corrupt > 0);
}

#[test]
fn everything_arrives_once_in_order_and_undamaged() {
    for seed in 0..4 {
        traffic(&in_memory(seed, impatient), 60);
    }
}

#[test]
fn writes_in_messages_of_a_packet_arrive_as_well() {
    for seed in 4..8 {
        traffic(&in_memory(seed, |qp| impatient(qp).lone_writes(true)), 60);
    }
}

#[test]
fn selective_repeat_delivers_everything_once_as_well() {
    let selective = [Recovery::Irn, Recovery::Srnic, Recovery::Reno, Recovery::NewReno, Recovery::Sack];
    for (seed, recovery) in (8..12).flat_map(|seed| selective.map(|recovery| (seed, recovery))) {
        let build = |qp: QueuePairBuilder| impatient(qp).timeout(12).recovery(recovery, recovery.layout());
        traffic(&in_memory(seed, build), 60);
    }
}

#[test]
fn a_peer_that_falls_silent_ends_the_connection_within_the_retry_time() {
    let pair = in_memory(1, |qp| impatient(qp).timeout(8).retry_cnt(3));
    pair.wire.as_ref().unwrap().cut(pair.b.device.address(), true);
    let begin = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    pair.a.qp.post_send(SendWr::send_inline(b"anyone?").wr_id(1)).unwrap();
    pair.a.qp.post_send(SendWr::send_inline(b"anyone?").wr_id(2)).unwrap();
    let first = pair.a.wait();
    let took = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap() - begin;
    assert_eq!((first.wr_id, first.status), (1, Status::TransportRetryCounterExceeded));
    assert_eq!(pair.a.wait().status, Status::WorkRequestFlushed);
    assert_eq!(pair.a.qp.state(), QpState::Error);
    assert!(took >= Duration::from_millis(4), "four timeouts of 1 ms, but it took {took:?}");
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[test]
fn a_receiver_that_is_not_ready_is_waited_for() {
    let Pair { a, b, .. } = in_memory(2, impatient);
    a.qp.post_send(SendWr::send_inline(b"early")).unwrap();
    assert!(a.cq.wait(Duration::from_millis(20)).is_err(), "nobody has posted a receive");
    b.qp.post_recv(RecvWr::new(b.own.buffer(0..64).unwrap())).unwrap();
    assert_eq!(b.done().byte_len, 5);
    a.done();
    assert!(a.qp.counters().rnr > 0);
}

#[test]
fn a_receive_request_that_is_posted_late_is_told_of_though_nobody_polls() {
    let wire = MemoryWire::new(4);
    let open = |address: &str, progress| {
        let config =
            DeviceConfig { backend: Backend::Memory(wire.clone()), progress, ..DeviceConfig::default() };
        Device::open_with(address.parse().unwrap(), config).unwrap()
    };
    let a = open("10.0.0.1", DeviceConfig::default().progress);
    let b = open("10.0.0.2", Progress::Caller);
    let Pair { a, b, .. } = common::connect(&a, &b, |qp| qp.rnr_retry(0));
    b.qp.post_recv(RecvWr::empty()).unwrap();
    a.qp.post_send(SendWr::send_inline(&[])).unwrap();
    b.done();
    a.done();
    let sent = b.device.counters().sent;
    b.qp.post_recv(RecvWr::empty()).unwrap();
    assert_eq!(b.device.counters().sent, sent + 1, "it went as the request was posted");
    b.qp.post_recv(RecvWr::empty()).unwrap();
    assert_eq!(b.device.counters().sent, sent + 1, "the peer has heard of one");
    a.qp.post_send(SendWr::send_inline(&[])).unwrap();
    b.done();
    a.done();
    assert_eq!(a.qp.counters().rnr, 0);
}

#[test]
fn a_receiver_that_is_never_ready_ends_the_connection_after_the_retries() {
    let Pair { a, b: _b, .. } = in_memory(3, |qp| impatient(qp).rnr_retry(2));
    a.qp.post_send(SendWr::send_inline(b"early")).unwrap();
    assert_eq!(a.wait().status, Status::RnrRetryCounterExceeded);
}

#[test]
fn marks_come_back_as_notifications_that_dcqcn_hears() {
    let wire = MemoryWire::new(5);
    let link = BitsPerSec::from_gbps(10);
    let open = |address: &str| {
        let law = roci_control::Law::from_settings("dcqcn", &[("preset", "sigcomm15")], link).unwrap();
        let backend = Backend::Memory(wire.clone());
        let config = DeviceConfig { backend, link, laws: vec![law], ..DeviceConfig::default() };
        Device::open_with(address.parse().unwrap(), config).unwrap()
    };
    let (a, b) = (open("10.0.0.1"), open("10.0.0.2"));
    let Pair { a, b, .. } = common::connect(&a, &b, |qp| qp.law(1));
    wire.set_faults(Faults { mark: 1000, ..Faults::default() });
    // After a few milliseconds without a notification it is as fast as before, and a busy machine may stand still so long.
    let mut rate = u32::MAX;
    for _ in 0..8 {
        let buffer = a.own.buffer(0..65_536).unwrap();
        a.qp.post_send(SendWr::write(buffer, b.open.remote())).unwrap();
        assert!(a.cq.wait(WAIT).unwrap().is_ok());
        rate = rate.min(a.qp.query().unwrap().credit.rate_kbps);
    }
    assert!(b.qp.counters().ecn_marked > 0);
    assert!(a.qp.counters().cnps > 0, "{:?}", a.qp.counters());
    assert!(rate < 10_000_000, "DCQCN has slowed down, but the rate is {rate} kb/s");
}

#[test]
fn a_slow_flow_hears_of_its_packets_before_its_timer_runs_out() {
    let wire = MemoryWire::new(6);
    let link = BitsPerSec::from_gbps(10);
    let open = |address: &str| {
        let settings = [("increase_timer", "1000s"), ("byte_counter", "0B"), ("rmin", "1Mb/s")];
        let law = roci_control::Law::from_settings("dcqcn", &settings, link).unwrap();
        let backend = Backend::Memory(wire.clone());
        let config = DeviceConfig { backend, link, laws: vec![law], ..DeviceConfig::default() };
        Device::open_with(address.parse().unwrap(), config).unwrap()
    };
    let (a, b) = (open("10.0.0.1"), open("10.0.0.2"));
    // Its timer takes 67 ms, and each packet 3.3: the 32 of them that an acknowledgement is asked for take 107.
    let Pair { a, b, .. } = common::connect(&a, &b, |qp| qp.timeout(14));
    a.qp.set_register("rc", "10Mb/s").unwrap();
    let buffer = a.own.buffer(0..400_000).unwrap();
    a.qp.post_send(SendWr::write(buffer, b.open.remote())).unwrap();
    a.done();
    let counters = a.qp.counters();
    assert_eq!((counters.timeouts, counters.retransmitted), (0, 0));
}
