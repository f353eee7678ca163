//! What the header extensions cost in goodput (§4.4.1): a long message with the layout and without.

use super::super::bench::{Bench, HEADER};
use super::super::{FigureError, Measured};
use crate::results::Results;

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let operations = [
        ("\"send\"", ["send_standard", "send_srnic", "send_cost"]),
        ("\"write\"", ["write_standard", "write_srnic", "write_cost"]),
    ];
    for (operation, [standard, srnic, cost]) in operations {
        let operation = ("traffic.0.flows.0.op", operation);
        let without = bench.run(HEADER, &[operation])?;
        let with = bench.run(HEADER, &[operation, ("transport.recovery", "\"srnic\"")])?;
        measured.each(standard, &without, goodput);
        measured.each(srnic, &with, goodput);
        let pairs = without.iter().zip(&with);
        let costs = pairs.map(|(without, with)| (1.0 - goodput(with) / goodput(without)) * 100.0);
        measured.add(cost, costs.collect());
    }
    Ok(measured)
}

/// The flow's octets of payload over its time, in Gb/s.
fn goodput(results: &Results) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a ratio of rates")]
    let goodput = results.flows[0].goodput_bps(results.simulated) as f64;
    goodput / 1e9
}
