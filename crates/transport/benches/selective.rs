//! What an acknowledgement costs a sender of selective repeat: `cargo bench -p roci-transport --bench selective`.
//!
//! By itself, for in one program with the engine's other benches the compiler no longer puts what an acknowledgement does
//! into the loop of theirs, as it does in a NIC, and they take 3 ns more.
#![allow(missing_docs, clippy::unwrap_used, reason = "a bench")]

mod support;

use divan::{Bencher, black_box, counter::ItemsCount};
use roci_transport::{Arrival, Engine, QpConfig, Reaction, Recovery};
use roci_units::{Instant, Psn, Qpn, Span};
use roci_wire::{Aeth, Header, Layout, Opcode};
use support::{ROUND, turns, under_way};

fn main() {
    divan::main();
}

/// So many of each flow at least, that its look at the end is not most of it: a run of full packets is up to 255 long.
const EACH: u32 = 64;

fn config(initial_window: u16) -> QpConfig {
    QpConfig { recovery: Recovery::Sack, layout: Layout::Irn, initial_window, ..QpConfig::default() }
}

/// Takes the acknowledgement of the packet `turn` of `flow`.
#[inline(always)]
fn acknowledge(engine: &mut Engine, now: Instant, flow: u32, turn: u32, reaction: &mut Reaction) {
    let mut header = Header::new(Opcode::ACKNOWLEDGE, Qpn::new(2 + flow), Psn::new(turn));
    header.set_aeth(Aeth { syndrome: 0x1f, msn: 0 });
    header.set_trigger(Psn::new(turn));
    let arrival = Arrival::new(&header, 0);
    engine.receive(now, &arrival, reaction);
    black_box(reaction);
}

/// An acknowledgement of SACK in order, flows in turn, and what its program does when it hears of it: that is put off while a run of
/// packets lasts within the window, and asked for here by a look at each flow's congestion window in the end.
#[divan::bench(args = [1, 128, 1024, 2048], sample_count = 40, sample_size = 1)]
fn acknowledgement(bencher: Bencher, flows: u32) {
    let round = if flows == 1 { 1024 } else { ROUND.max(flows * EACH) };
    bencher
        .counter(ItemsCount::new(round))
        .with_inputs(|| {
            let mut engine = under_way(flows, config(1500));
            for _ in 0..round {
                engine.transmit(Instant::ZERO).unwrap();
            }
            engine
        })
        .bench_local_refs(|engine| {
            let mut reaction = Reaction::default();
            for (n, (flow, turn)) in (0..round).zip(turns(flows)) {
                let now = Instant::ZERO + Span::from_nanos(u64::from(n));
                acknowledge(engine, now, flow, turn, &mut reaction);
            }
            for flow in 0..flows {
                black_box(engine.query(Qpn::new(2 + flow)).unwrap().congestion_window);
            }
        });
}

/// The same and the packet that it lets go, where the congestion window is full: it has grown as far as it can.
#[divan::bench(args = [1, 128], sample_count = 40, sample_size = 1)]
fn acknowledgement_and_segment_of_a_full_window(bencher: Bencher, flows: u32) {
    bencher
        .counter(ItemsCount::new(ROUND))
        .with_inputs(|| {
            let mut engine = under_way(flows, config(u16::MAX));
            while engine.transmit(Instant::ZERO).is_some() {}
            engine
        })
        .bench_local_refs(|engine| {
            let mut reaction = Reaction::default();
            for (n, (flow, turn)) in (0..ROUND).zip(turns(flows)) {
                let now = Instant::ZERO + Span::from_nanos(u64::from(n));
                acknowledge(engine, now, flow, turn, &mut reaction);
                black_box(engine.transmit(now).unwrap());
            }
        });
}
