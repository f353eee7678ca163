//! What an acknowledgement costs a sender of SACK that recovers: `cargo bench -p roci-transport --bench gap`.
//!
//! By itself, as `selective` is: there acknowledgements come in order. Here the engine takes others before, so the compiler
//! calls in each round what it puts into the loop there; that is 2 ns.
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

/// One packet of each flow is missing and has been sent again, flows in turn: each acknowledgement names the next packet that
/// came beyond the gap.
#[divan::bench(args = [1, 128, 1024, 2048], sample_count = 40, sample_size = 1)]
fn acknowledgement(bencher: Bencher, flows: u32) {
    let config = QpConfig {
        recovery: Recovery::Sack,
        layout: Layout::Irn,
        initial_window: 1500,
        ..QpConfig::default()
    };
    let round = if flows == 1 { 1024 } else { ROUND };
    bencher
        .counter(ItemsCount::new(round))
        .with_inputs(|| {
            let mut engine = under_way(flows, config);
            let mut reaction = Reaction::default();
            for _ in 0..round + 5 * flows {
                engine.transmit(Instant::ZERO).unwrap();
            }
            for (n, (flow, turn)) in (0..3 * flows).zip(turns(flows)) {
                acknowledge(&mut engine, n, flow, 2 + turn, &mut reaction);
            }
            while engine.transmit(Instant::ZERO).is_some_and(|segment| segment.retransmission) {}
            engine
        })
        .bench_local_refs(|engine| {
            let mut reaction = Reaction::default();
            for (n, (flow, turn)) in (0..round).zip(turns(flows)) {
                acknowledge(engine, n, flow, 5 + turn, &mut reaction);
                black_box(&reaction);
            }
        });
}

/// The `n`th acknowledgement: nothing new in order, but packet `came`.
#[inline(always)]
fn acknowledge(engine: &mut Engine, n: u32, flow: u32, came: u32, reaction: &mut Reaction) {
    let mut header = Header::new(Opcode::ACKNOWLEDGE, Qpn::new(2 + flow), Psn::new(0));
    header.set_aeth(Aeth { syndrome: 0x1f, msn: 0 });
    header.set_trigger(Psn::new(came));
    let arrival = Arrival::new(&header, 0);
    engine.receive(Instant::ZERO + Span::from_nanos(u64::from(n)), &arrival, reaction);
}
