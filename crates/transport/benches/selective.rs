//! What an acknowledgement costs a sender of selective repeat: `cargo bench -p roci-transport --bench selective`.
//!
//! By itself, for in one program with the engine's other benches the compiler no longer puts what an acknowledgement does
//! into the loop of theirs, as it does in a NIC, and they take 3 ns more.
#![allow(missing_docs, clippy::unwrap_used, reason = "a bench")]

mod support;

use divan::{Bencher, black_box, counter::ItemsCount};
use roci_transport::{Arrival, QpConfig, Reaction, Recovery};
use roci_units::{Instant, Psn, Qpn, Span};
use roci_wire::{Aeth, Header, Layout, Opcode};
use support::{ROUND, turns, under_way};

fn main() {
    divan::main();
}

/// So many of each flow at least, that its look at the end is not most of it: a run of full packets is up to 255 long.
const EACH: u32 = 32;

/// An acknowledgement of SACK in order, flows in turn, and what its program does when it hears of it: that is put off while a run of
/// packets lasts, and asked for here by a look at each flow's congestion window in the end.
#[divan::bench(args = [1, 128, 1024, 2048], sample_count = 40, sample_size = 1)]
fn acknowledgement(bencher: Bencher, flows: u32) {
    let config = QpConfig {
        recovery: Recovery::Sack,
        layout: Layout::Irn,
        initial_window: 1500,
        ..QpConfig::default()
    };
    let round = if flows == 1 { 1024 } else { ROUND.max(flows * EACH) };
    bencher
        .counter(ItemsCount::new(round))
        .with_inputs(|| {
            let mut engine = under_way(flows, config);
            for _ in 0..round {
                engine.transmit(Instant::ZERO).unwrap();
            }
            engine
        })
        .bench_local_refs(|engine| {
            let mut reaction = Reaction::default();
            for (n, (flow, turn)) in (0..round).zip(turns(flows)) {
                let mut header = Header::new(Opcode::ACKNOWLEDGE, Qpn::new(2 + flow), Psn::new(turn));
                header.set_aeth(Aeth { syndrome: 0x1f, msn: 0 });
                header.set_trigger(Psn::new(turn));
                let arrival = Arrival { header: &header, path: 0, ce: false, words: &[], hops: &[] };
                engine.receive(Instant::ZERO + Span::from_nanos(u64::from(n)), &arrival, &mut reaction);
                black_box(&reaction);
            }
            for flow in 0..flows {
                black_box(engine.query(Qpn::new(2 + flow)).unwrap().congestion_window);
            }
        });
}
