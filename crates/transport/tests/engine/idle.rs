//! What a paced queue pair may send at once after it had nothing to send.

use crate::scripts::{MTU, config, request};
use roci_control::Law;
use roci_transport::{
    Access, Arrival, Engine, EngineConfig, Grant, Operation, Pd, QpConfig, Reaction, Recovery, Tail,
};
use roci_units::{Instant, Psn, Qpn, Span};
use roci_wire::{Flags, Header, Layout, Opcode, Reth};

const QPN: Qpn = Qpn::new(2);
const RUN: Span = Span::from_micros(64);

/// Octets that leave at once, and in a millisecond, of a queue pair that is paced at 1 Gb/s, may make up for 20 ms of being late,
/// and had nothing to send for 50 ms before `begin`.
fn sent(recovery: Recovery, begin: impl Fn(&mut Engine, u32, Instant)) -> [u32; 2] {
    let engine =
        EngineConfig { pacing_burst: Span::from_millis(20), paced_run: RUN, ..EngineConfig::default() };
    let mut engine = Engine::new(engine);
    let settings = [("increase_timer", "1000s"), ("byte_counter", "0B")];
    let law = engine.add_law(Law::from_settings("dcqcn", &settings, EngineConfig::default().link).unwrap());
    let (key, _) = engine.register_everything(Pd(0), Access::ALL).unwrap();
    let layout = if recovery == Recovery::GoBackN { Layout::Standard } else { Layout::Irn };
    let qp = QpConfig {
        qpn: Some(QPN),
        peer: Qpn::new(9),
        law,
        recovery,
        layout,
        timeout: Span::ZERO,
        ..config()
    };
    engine.create_qp(qp).unwrap();
    engine.control_set(QPN, "rc", "1Gb/s", Instant::ZERO).unwrap();
    let mut now = Instant::ZERO + Span::from_millis(50);
    engine.wake(now);
    begin(&mut engine, key, now);
    let (mut octets, end) = ([0; 2], now + Span::from_millis(1));
    for count in &mut octets {
        loop {
            while let Some(offer) = engine.offer(now, 60 << 10) {
                *count += engine.commit(now, offer, Grant::Engine).map_or(0, |segment| segment.length);
            }
            let next = engine.next_wakeup().filter(|next| *count > 0 && now < *next && *next <= end);
            match next {
                Some(next) if now > Instant::ZERO + Span::from_millis(50) => now = next,
                _ => break,
            }
            engine.wake(now);
        }
        now += Span::from_nanos(1);
    }
    octets
}

#[test]
fn who_had_nothing_to_send_has_saved_up_no_more_than_a_paced_run() {
    // 1 Gb/s is 8000 octets in the time of a run, and 125 000 in a millisecond; a packet is always allowed.
    let [run, packet] = [8_000, MTU + 82];
    let read = |engine: &mut Engine, rkey: u32, now: Instant| {
        let mut header = Header::new(Opcode::READ_REQUEST, QPN, Psn::new(0));
        header.set_reth(Reth { va: 0, rkey, length: 1 << 20 });
        header.flags = Flags::ACK_REQUEST;
        let arrival = Arrival::new(&header, 0);
        engine.receive(now, &arrival, &mut Reaction::default());
    };
    let write = |engine: &mut Engine, rkey: u32, now: Instant| {
        let write = Operation::Write { va: 0, rkey, tail: Tail::Plain };
        engine.post_send(now, QPN, &request(1, write, 0, 1 << 20)).unwrap();
    };
    for recovery in [Recovery::GoBackN, Recovery::Irn] {
        for (what, octets) in [("read", sent(recovery, read)), ("write", sent(recovery, write))] {
            assert!(octets[0] > 0 && octets[0] <= 2 * run + packet, "{recovery:?}, {what}: {octets:?}");
            assert!(octets[0] + octets[1] <= 125_000 + 2 * run + packet, "{recovery:?}, {what}: {octets:?}");
        }
    }
}
