//! What an acknowledgement costs of which the law hears: `cargo bench -p roci-transport --bench heard`.
//!
//! The goals are 15 ns for the acknowledgement and 8 ns for the law's event, so both together 23; `law_alone` is the same
//! events given to the law without an engine. SRNIC's layout without a law stands beside them.
#![allow(missing_docs, clippy::unwrap_used, reason = "a bench")]

#[expect(dead_code, reason = "other benches use the rest")]
mod support;

use divan::{Bencher, black_box, counter::ItemsCount};
use roci_control::{Class, Context, Event, Hop, Law, Outcome};
use roci_transport::{Arrival, Engine, EngineConfig, QpConfig, Reaction, Recovery};
use roci_units::{Instant, Psn, Qpn, Span};
use roci_wire::{Aeth, Header, Layout, Opcode};
use support::{MTU, ROUND, engine_with, write};

fn main() {
    divan::main();
}

/// A law, the switches whose telemetry an acknowledgement brings it, and the recovery below.
#[derive(Clone, Copy, Debug)]
struct Case(&'static str, usize, Recovery);

const CASES: [Case; 10] = [
    Case("timely", 0, Recovery::GoBackN),
    Case("dctcp", 0, Recovery::GoBackN),
    Case("swift", 0, Recovery::GoBackN),
    Case("nscc", 0, Recovery::GoBackN),
    Case("hpcc", 3, Recovery::GoBackN),
    Case("hpcc", 5, Recovery::GoBackN),
    Case("swift", 0, Recovery::Irn),
    Case("dctcp", 0, Recovery::Sack),
    Case("none", 0, Recovery::Srnic),
    Case("dctcp", 0, Recovery::Srnic),
];

fn law(name: &str) -> Law {
    Law::from_settings(name, &[], EngineConfig::default().link).unwrap()
}

/// Telemetry of links that are nine tenths full, as of `now`.
fn hops(now: Instant) -> [Hop; 5] {
    let rate_kbps = 100_000_000;
    [Hop::new(now, now.as_ps() * 9 / 800, 0, rate_kbps); 5]
}

/// Flows that have had one round of acknowledgements, with the packets of the next in flight.
struct Traffic {
    engine: Engine,
    now: Instant,
    in_flight: Vec<(Qpn, Psn)>,
    hops: Vec<[Hop; 5]>,
}

impl Traffic {
    fn new(Case(name, links, recovery): Case, flows: u32) -> Self {
        let layout = match recovery {
            Recovery::GoBackN => Layout::Standard,
            Recovery::Srnic => Layout::Srnic,
            _ => Layout::Irn,
        };
        let timeout = Span::from_micros(1_000_000);
        let config = QpConfig { recovery, layout, timeout, initial_window: 1500, ..QpConfig::default() };
        let (mut engine, key) = engine_with(Some(law(name)), flows, config);
        for index in 0..flows {
            engine.post_send(Instant::ZERO, Qpn::new(2 + index), &write(key)).unwrap();
        }
        let now = Instant::ZERO + Span::from_micros(1);
        let mut traffic = Self { engine, now, in_flight: Vec::new(), hops: Vec::new() };
        traffic.send();
        traffic.acknowledge(links, layout);
        traffic.send();
        traffic
    }

    fn send(&mut self) {
        self.in_flight.clear();
        self.hops.clear();
        for _ in 0..ROUND {
            self.now += Span::from_nanos(5);
            while self.engine.next_wakeup().is_some_and(|at| at <= self.now) {
                self.engine.wake(self.now);
            }
            if let Some(segment) = self.engine.transmit(self.now) {
                self.in_flight.push((segment.header.dest_qpn, segment.header.psn));
                self.hops.push(hops(self.now));
            }
        }
    }

    fn acknowledge(&mut self, links: usize, layout: Layout) {
        let mut reaction = Reaction::default();
        for (&(qpn, psn), hops) in self.in_flight.iter().zip(&self.hops) {
            self.now += Span::from_nanos(5);
            let mut header = Header::new(Opcode::ACKNOWLEDGE, qpn, psn);
            header.set_aeth(Aeth { syndrome: 0x1f, msn: 0 });
            match layout {
                Layout::Srnic => header.set_echoed_psn(psn),
                _ => header.set_trigger(psn),
            }
            let arrival = Arrival { hops: &hops[..links], ..Arrival::new(&header, 0) };
            self.engine.receive(self.now, &arrival, &mut reaction);
            black_box(&reaction);
        }
    }
}

/// An acknowledgement in order, flows in turn, with what its law does.
#[divan::bench(args = CASES, consts = [128, 1024, 2048], sample_count = 40, sample_size = 1)]
fn acknowledgement<const FLOWS: u32>(bencher: Bencher, case: Case) {
    let Case(_, links, recovery) = case;
    let layout = if recovery == Recovery::Srnic { Layout::Srnic } else { Layout::Irn };
    bencher
        .with_inputs(|| Traffic::new(case, FLOWS))
        .input_counter(|traffic| ItemsCount::new(traffic.in_flight.len()))
        .bench_local_refs(|traffic| traffic.acknowledge(links, layout));
}

/// What of it is the law's: the events alone, contexts in turn.
#[divan::bench(args = CASES[..6].iter(), consts = [128, 1024, 2048], sample_count = 40, sample_size = 1)]
fn law_alone<const FLOWS: usize>(bencher: Bencher, &Case(name, links, _): &Case) {
    let link = EngineConfig::default().link.as_kbps();
    bencher
        .counter(ItemsCount::new(ROUND))
        .with_inputs(|| {
            let law = law(name);
            let begun: Vec<(Context, Outcome)> =
                (0..FLOWS).map(|_| law.open(link, 2, Instant::ZERO)).collect();
            let hops: Vec<_> =
                (1..=ROUND).map(|n| hops(Instant::ZERO + Span::from_nanos(5 * u64::from(n)))).collect();
            (law, begun, hops)
        })
        .bench_local_refs(|(law, begun, hops)| {
            let mut event = Event { class: Class::ACK, acked: MTU.into(), ..Event::default() };
            let mut turn = 0;
            for (n, hops) in (0..ROUND).zip(&*hops) {
                let (context, last) = &mut begun[turn];
                turn = if turn + 1 < FLOWS { turn + 1 } else { 0 };
                event.now = Instant::ZERO + Span::from_nanos(50_000 + 5 * u64::from(n));
                event.sent = Instant::ZERO + Span::from_nanos(5 * u64::from(n) + 1);
                event.acked_sequence += u32::from(turn == 0);
                event.next_sequence = event.acked_sequence + 8;
                event.in_flight = 8 * u32::from(MTU);
                event.hops = &hops[..links];
                let mut outcome = Outcome::unchanged(last.credit, Instant::NEVER);
                law.on_event(context, black_box(&event), &mut outcome);
                last.credit = outcome.credit;
            }
        });
}
