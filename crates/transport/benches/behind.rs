//! What a packet costs behind many requests that wait for an earlier one, or beside many queue pairs that wait for room under way:
//! `cargo bench -p roci-transport --bench behind`.
//!
//! Nothing should cost more the more there are.
#![allow(missing_docs, clippy::unwrap_used, reason = "a bench")]

use divan::{Bencher, black_box, counter::ItemsCount};
use roci_transport::{
    Access, Arrival, Engine, EngineConfig, Operation, Pd, QpConfig, Reaction, Recovery, SendRequest, Tail,
};
use roci_units::{Instant, Psn, Qpn};
use roci_wire::{Aeth, Flags, Header, Layout, Opcode, Reth};

fn main() {
    divan::main();
}

const QPN: Qpn = Qpn::new(2);
/// So many are measured.
const ROUND: u32 = 64;

const MTU: u16 = 1024;

/// An engine with one queue pair, and the key of its memory.
fn engine() -> (Engine, u32) {
    let mut engine = Engine::new(EngineConfig::default());
    let (key, _) = engine.register_everything(Pd(0), Access::ALL).unwrap();
    let (recovery, layout) = (Recovery::Irn, Layout::Irn);
    let config = QpConfig { qpn: Some(QPN), peer: QPN, mtu: MTU, recovery, layout, ..QpConfig::default() };
    engine.create_qp(config).unwrap();
    (engine, key)
}

fn request(operation: Operation) -> SendRequest {
    let length = MTU.into();
    SendRequest {
        id: 1,
        operation,
        length,
        address: 0,
        lkey: 0,
        solicited: false,
        signaled: true,
        fence: false,
    }
}

fn receive(engine: &mut Engine, header: &Header, reaction: &mut Reaction) {
    let arrival = Arrival::new(header, 0);
    engine.receive(Instant::ZERO, &arrival, reaction);
    while engine.poll_completion().is_some() {}
}

/// A WRITE of one packet comes, where so many others have come behind one that is missing.
#[divan::bench(args = [1, 128, 1024, 1900], sample_count = 40, sample_size = 1)]
fn write_behind_a_gap(bencher: Bencher, messages: u32) {
    let (_, key) = engine();
    let come = move |engine: &mut Engine, psn: u32, reaction: &mut Reaction| {
        let mut header = Header::new(Opcode::WRITE_ONLY, QPN, Psn::new(psn));
        header.set_reth(Reth { va: 0, rkey: key, length: MTU.into() });
        (header.payload, header.flags) = (MTU, Flags::ACK_REQUEST);
        receive(engine, &header, reaction);
    };
    bencher
        .counter(ItemsCount::new(ROUND))
        .with_inputs(|| {
            let (mut engine, _) = engine();
            (1..=messages).for_each(|psn| come(&mut engine, psn, &mut Reaction::default()));
            engine
        })
        .bench_local_refs(|engine| {
            let mut reaction = Reaction::default();
            for n in 1..=ROUND {
                come(engine, messages + n, &mut reaction);
                black_box(&reaction);
            }
        });
}

/// A WRITE of one packet is acknowledged, where so many others have been behind a READ whose data have still to come.
#[divan::bench(args = [1, 128, 1024, 8192], sample_count = 40, sample_size = 1)]
fn acknowledgement_behind_a_read(bencher: Bencher, messages: u32) {
    let acknowledge = |engine: &mut Engine, psn: u32, reaction: &mut Reaction| {
        let mut header = Header::new(Opcode::ACKNOWLEDGE, QPN, Psn::new(psn));
        header.set_aeth(Aeth { syndrome: 0x1f, msn: 0 });
        header.set_trigger(Psn::new(psn));
        receive(engine, &header, reaction);
    };
    bencher
        .counter(ItemsCount::new(ROUND))
        .with_inputs(|| {
            let (mut engine, rkey) = engine();
            engine.post_send(Instant::ZERO, QPN, &request(Operation::Read { va: 0, rkey })).unwrap();
            engine.transmit(Instant::ZERO).unwrap();
            let mut reaction = Reaction::default();
            for psn in 1..=messages + ROUND {
                let write = Operation::Write { va: 0, rkey, tail: Tail::Plain };
                engine.post_send(Instant::ZERO, QPN, &request(write)).unwrap();
                engine.transmit(Instant::ZERO).unwrap();
                if psn <= messages {
                    acknowledge(&mut engine, psn, &mut reaction);
                }
            }
            engine
        })
        .bench_local_refs(|engine| {
            let mut reaction = Reaction::default();
            for n in 1..=ROUND {
                acknowledge(engine, messages + n, &mut reaction);
                black_box(&reaction);
            }
        });
}

/// Queue pairs to as many places, of which the last so many have sent what their places have room for, each beside another that waits.
fn crowd(places: u32, waiting: u32) -> (Engine, u32) {
    let mut engine = Engine::new(EngineConfig::default());
    let (rkey, _) = engine.register_everything(Pd(0), Access::ALL).unwrap();
    engine.bound_flight(1);
    for index in 0..places + waiting {
        let (qpn, path) =
            (Qpn::new(2 + index), u64::from(if index < places { index } else { index - waiting }));
        engine
            .create_qp(QpConfig { qpn: Some(qpn), peer: qpn, path, mtu: MTU, ..QpConfig::default() })
            .unwrap();
        let write = Operation::Write { va: 0, rkey, tail: Tail::Plain };
        engine.post_send(Instant::ZERO, qpn, &request(write)).unwrap();
    }
    while engine.transmit(Instant::ZERO).is_some() {}
    (engine, rkey)
}

/// One of many queue pairs, each to a place of its own, has a WRITE acknowledged and sends the next, while others wait for room.
#[divan::bench(args = [(1, 1), (100, 1), (10_000, 1), (10_000, 5_000)], sample_count = 40, sample_size = 1)]
fn flight_beside_others(bencher: Bencher, (places, waiting): (u32, u32)) {
    let (qpn, mut psn) = (Qpn::new(2), 0);
    let (mut engine, rkey) = crowd(places, waiting);
    // With one place it is that which the other waits for.
    let (mut next, mut psns) = (qpn, [0u32; 2]);
    bencher.counter(ItemsCount::new(ROUND)).bench_local(|| {
        let mut reaction = Reaction::default();
        for _ in 0..ROUND {
            let of = if places == 1 { next } else { qpn };
            let psn = if places == 1 { &mut psns[of.get() as usize - 2] } else { &mut psn };
            let mut header = Header::new(Opcode::ACKNOWLEDGE, of, Psn::new(*psn));
            header.set_aeth(Aeth { syndrome: 0x1f, msn: 0 });
            *psn += 1;
            let path = 0;
            let arrival = Arrival::new(&header, path);
            engine.receive(Instant::ZERO, &arrival, &mut reaction);
            while engine.poll_completion().is_some() {}
            let write = Operation::Write { va: 0, rkey, tail: Tail::Plain };
            engine.post_send(Instant::ZERO, of, &request(write)).unwrap();
            next = engine.transmit(Instant::ZERO).unwrap().header.dest_qpn;
            black_box(&reaction);
        }
    });
}

/// Queue pairs come to send to as many places, wait in one line where it is one place, and are destroyed.
#[divan::bench(args = [(100, 1), (100, 100), (10_000, 1), (10_000, 10_000)], sample_count = 5, sample_size = 1)]
fn flights_come_and_go(bencher: Bencher, (queue_pairs, places): (u32, u32)) {
    bencher
        .counter(ItemsCount::new(queue_pairs))
        .with_inputs(|| {
            let mut engine = Engine::new(EngineConfig::default());
            let (rkey, _) = engine.register_everything(Pd(0), Access::ALL).unwrap();
            engine.bound_flight(1);
            for index in 0..queue_pairs {
                let (qpn, path) = (Qpn::new(2 + index), u64::from(index % places));
                let config = QpConfig { qpn: Some(qpn), peer: qpn, path, mtu: MTU, ..QpConfig::default() };
                engine.create_qp(config).unwrap();
                let write = Operation::Write { va: 0, rkey, tail: Tail::Plain };
                engine.post_send(Instant::ZERO, qpn, &request(write)).unwrap();
            }
            engine
        })
        .bench_local_refs(|engine| {
            while engine.transmit(Instant::ZERO).is_some() {}
            for index in (0..queue_pairs).rev() {
                engine.destroy_qp(Qpn::new(2 + index)).unwrap();
            }
        });
}
