//! What state a program may have, how many flows and how long a window (Tonic, Table 4).

use super::super::bench::{Bench, CAPACITY};
use super::super::{FigureError, Measured};
use crate::results::Results;
use roci_control::{dcqcn, homa};
use roci_transport::delivery::{go_back_n, irn, ndp, newreno, reno, sack};

/// A credit scheme: the key of its cycle, that of its state, settings, and the octets of state of what uses it.
type Scheme = (&'static str, &'static str, &'static [(&'static str, &'static str)], usize);

const SCHEMES: [Scheme; 3] = [
    (
        "window_cycle",
        "window_state",
        &[("transport.recovery", "sack")],
        largest([size_of::<reno::Reno>(), size_of::<newreno::NewReno>(), size_of::<sack::Sack>()]),
    ),
    (
        "rate_cycle",
        "rate_state",
        &[("transport.recovery", "irn"), ("transport.control", "{ law = \"dcqcn\" }")],
        size_of::<dcqcn::State>() + largest([size_of::<go_back_n::GoBackN>(), size_of::<irn::Irn>(), 0]),
    ),
    (
        "token_cycle",
        "token_state",
        &[("transport.recovery", "ndp")],
        largest([size_of::<ndp::Ndp>(), size_of::<homa::State>(), 0]),
    ),
];

const fn largest(octets: [usize; 3]) -> usize {
    let [a, b, c] = octets;
    let ab = if a > b { a } else { b };
    if ab > c { ab } else { c }
}

/// Table 4: the longest mean time from one segment to the next over the numbers of flows and the windows.
#[expect(clippy::cast_precision_loss, reason = "small counts")]
pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let mut silent = vec![0.0; bench.seeds().len()];
    for (of_cycle, of_state, settings, octets) in SCHEMES {
        let mut longest = vec![0.0_f64; bench.seeds().len()];
        for flows in ["1024", "2048"] {
            for window in ["128", "256"] {
                let mut set = settings.to_vec();
                set.extend([("traffic.0.qps", flows), ("transport.max_in_flight", window)]);
                for (place, results) in bench.run(CAPACITY, &set)?.iter().enumerate() {
                    longest[place] = longest[place].max(cycle_ns(results));
                    silent[place] += results.flows.iter().filter(|flow| flow.packets == 0).count() as f64;
                }
            }
        }
        measured.add(of_cycle, longest);
        measured.each(of_state, bench.seeds(), |_| octets as f64);
    }
    measured.add("silent", silent);
    Ok(measured)
}

/// From one segment to the next.
#[expect(clippy::cast_precision_loss, reason = "a printed figure has few digits")]
fn cycle_ns(results: &Results) -> f64 {
    let packets: u64 = results.flows.iter().map(|flow| flow.packets).sum();
    results.simulated.as_secs_f64() * 1e9 / packets as f64
}
