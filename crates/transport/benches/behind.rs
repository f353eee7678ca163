//! What a packet costs behind many requests that wait for an earlier one: `cargo bench -p roci-transport --bench behind`.
//!
//! Neither should cost more the more there are.
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
    let arrival = Arrival { header, path: 0, ce: false, words: &[], hops: &[] };
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
