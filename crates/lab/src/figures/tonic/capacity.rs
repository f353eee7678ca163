//! What state a program may have, how many flows and how long a window (Tonic, Table 4).

use super::super::bench::{Bench, CAPACITY};
use super::super::{FigureError, Measured};
use crate::results::Results;
use roci_control::{dcqcn, dctcp, homa, hpcc, ndp as ndp_law, nscc, powertcp, swift, timely};
use roci_transport::delivery::{go_back_n, irn, ndp, newreno, reno, sack, srnic};

/// A credit scheme: the key of its cycle, that of its state, settings, and the octets of state of what uses it.
type Scheme = (&'static str, &'static str, &'static [(&'static str, &'static str)], usize);

/// The largest recovery program that leaves the credit to a law of windows or rates, whichever.
const RECOVERY: usize =
    largest(&[size_of::<go_back_n::GoBackN>(), size_of::<irn::Irn>(), size_of::<srnic::Srnic>()]);
/// The largest recovery program that has a window of its own, and needs no law.
const WINDOWED: usize =
    largest(&[size_of::<reno::Reno>(), size_of::<newreno::NewReno>(), size_of::<sack::Sack>()]);
/// The largest law that sets a window.
const WINDOW_LAW: usize = largest(&[
    size_of::<hpcc::State>(),
    size_of::<powertcp::State>(),
    size_of::<dctcp::State>(),
    size_of::<swift::State>(),
    size_of::<nscc::State>(),
]);

/// The largest program with tokens: NDP's with its law, or one of those that run with Homa's.
const TOKENED: usize = largest(&[
    size_of::<ndp::Ndp>() + size_of::<ndp_law::State>(),
    largest(&[size_of::<go_back_n::GoBackN>(), size_of::<irn::Irn>()]) + size_of::<homa::State>(),
]);

/// One packet of each message goes without a grant, which stands for a packet each; only what ends a message is acknowledged.
const HOMA: [(&str, &str); 2] = [
    ("transport.control", "{ law = \"homa\", unscheduled = \"44B\", ahead = \"20KB\" }"),
    ("transport.ack_every", "255"),
];

const SCHEMES: [Scheme; 4] = [
    (
        "window_cycle",
        "window_state",
        &[("transport.recovery", "sack")],
        largest(&[WINDOWED, RECOVERY + WINDOW_LAW]),
    ),
    (
        "rate_cycle",
        "rate_state",
        &[("transport.recovery", "irn"), ("transport.control", "{ law = \"dcqcn\" }")],
        RECOVERY + largest(&[size_of::<dcqcn::State>(), size_of::<timely::State>()]),
    ),
    ("token_cycle", "token_state", &HOMA, TOKENED),
    // Each segment brings two packets back, its acknowledgement and a pull.
    (
        "pull_cycle",
        "pull_state",
        &[("transport.recovery", "ndp"), ("transport.control", "ndp")],
        size_of::<ndp::Ndp>() + size_of::<ndp_law::State>(),
    ),
];
/// The schemes whose program has no tokens: the first ones.
const WITHOUT_TOKENS: usize = 2;

/// The largest of them.
const fn largest(octets: &[usize]) -> usize {
    match octets {
        [] => 0,
        [first, rest @ ..] => {
            let rest = largest(rest);
            if *first > rest { *first } else { rest }
        }
    }
}

/// One segment in a hundred lost over two links, and a timer for those that only it can tell of.
const LOSSY: [(&str, &str); 2] = [("faults.loss", "0.005"), ("transport.timeout", "50us")];
/// One flow over a round trip of some 175 cycles, with a program that keeps its holes in bitmaps.
const ONE: [(&str, &str); 6] = [
    ("traffic.0.pairs", "[[\"h0\", \"h1\"]]"),
    ("traffic.0.qps", "1"),
    ("traffic.0.depth", "4"),
    ("topology.delay", "400ns"),
    ("transport.recovery", "irn"),
    ("transport.timeout", "50us"),
];

/// Table 4: the longest mean time from one segment to the next over the numbers of flows and the windows.
#[expect(clippy::cast_precision_loss, reason = "small counts")]
pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let seeds = bench.seeds().len();
    let (mut silent, mut lossy) = (vec![0.0; seeds], vec![0.0_f64; seeds]);
    for (number, (of_cycle, of_state, settings, octets)) in SCHEMES.into_iter().enumerate() {
        let mut longest = vec![0.0_f64; seeds];
        // To each of eight hosts: 1024 flows and 2048.
        for flows in ["128", "256"] {
            for window in ["128", "256"] {
                let mut set = settings.to_vec();
                set.extend([("traffic.0.qps", flows), ("transport.max_in_flight", window)]);
                for (place, results) in bench.run(CAPACITY, &set)?.iter().enumerate() {
                    longest[place] = longest[place].max(cycle_ns(results));
                    silent[place] += results.flows.iter().filter(|flow| flow.packets == 0).count() as f64;
                }
                if number >= WITHOUT_TOKENS {
                    continue;
                }
                set.extend(LOSSY);
                for (place, results) in bench.run(CAPACITY, &set)?.iter().enumerate() {
                    lossy[place] = lossy[place].max(cycle_ns(results));
                }
            }
        }
        measured.add(of_cycle, longest);
        measured.each(of_state, bench.seeds(), |_| octets as f64);
    }
    measured.add("lossy_cycle", lossy);
    measured.add("silent", silent);
    let one = |window, loss| {
        let set = [("transport.max_in_flight", window), ("faults.loss", loss)];
        bench.run(CAPACITY, &[&ONE[..], &set].concat())
    };
    measured.each("one_128", &one("128", "0")?, cycle_ns);
    measured.each("one_256", &one("256", "0")?, cycle_ns);
    // One in a thousand over two links.
    let holes = one("256", "0.0005")?;
    measured.each("one_lossy", &holes, cycle_ns);
    measured.each("one_again", &holes, |results| {
        100.0 * f64::from(results.flows[0].retransmitted) / results.flows[0].packets as f64
    });
    Ok(measured)
}

/// From one segment to the next.
#[expect(clippy::cast_precision_loss, reason = "a printed figure has few digits")]
fn cycle_ns(results: &Results) -> f64 {
    let packets: u64 = results.flows.iter().map(|flow| flow.packets).sum();
    results.simulated.as_secs_f64() * 1e9 / packets as f64
}
