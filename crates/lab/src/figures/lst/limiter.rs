//! Whether the limiter governs what is sent: R_C beside the measured throughput (Figure 14).

use super::super::bench::{Bench, THREE};
use super::super::plot::Plot;
use super::super::statistics::{correlation, count, median};
use super::super::trace::{Trace, gbps};
use super::super::{FigureError, Measured};
use super::three::ends;
use crate::results::Results;

/// The bins of the comparison, in seconds.
const BIN: f64 = 0.001;
/// The board that sees both others depart.
const BOARD: &str = "c";

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let runs = bench.run(THREE, &[])?;
    let mut measured = Measured::default();
    measured.each("deviation", &runs, |results| {
        let pairs = bins(results);
        let deviations: Vec<f64> =
            pairs.iter().map(|bin| (bin.throughput / bin.rate - 1.0).abs() * 100.0).collect();
        median(&deviations).unwrap_or(f64::NAN)
    });
    measured.each("correlation", &runs, |results| together(&bins(results)));
    for (place, key) in ["first", "second", "third"].into_iter().enumerate() {
        measured.each(key, &runs, |results| {
            let ends = ends(results);
            let from = if place == 0 { 0.0 } else { ends[place - 1] };
            let within = bins(results).into_iter().filter(|bin| bin.at >= from && bin.at < ends[place]);
            together(&within.collect::<Vec<_>>())
        });
    }
    let trace = Trace::of_host(&runs[0], BOARD);
    let throughput = bins(&runs[0]).into_iter().map(|bin| (bin.at, bin.throughput)).collect();
    let read = |value: fn(&crate::results::FlowSample) -> Option<u32>| {
        let points = trace.readings.iter().filter_map(|(at, reading)| Some((*at, gbps(value(reading)?))));
        points.collect::<Vec<_>>()
    };
    measured.plots.push(
        Plot::new("The limiter and what is sent, over a run with two departures", "time (s)", "Gb/s")
            .line("throughput (wire, 1 ms)", throughput)
            .line("R_C", read(|reading| reading.rate_kbps))
            .line("R_T", read(|reading| reading.target_kbps)),
    );
    Ok(measured)
}

/// A millisecond of the board.
#[derive(Clone, Copy, Debug)]
struct Bin {
    /// Its middle, in seconds.
    at: f64,
    /// Wire octets sent, in Gb/s.
    throughput: f64,
    /// The mean of R_C, in Gb/s.
    rate: f64,
}

fn bins(results: &Results) -> Vec<Bin> {
    let trace = Trace::of_host(results, BOARD);
    let end = trace.flow.end.min(results.simulated).as_secs_f64();
    let edges = (0..).map(|bin| count(bin) * BIN).take_while(|from| from + BIN <= end);
    let bins = edges.filter_map(|from| {
        let rate = trace.rate(from, from + BIN)?;
        Some(Bin { at: from + BIN / 2.0, throughput: trace.throughput(from, from + BIN), rate })
    });
    bins.collect()
}

fn together(bins: &[Bin]) -> f64 {
    correlation(&bins.iter().map(|bin| (bin.rate, bin.throughput)).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}
