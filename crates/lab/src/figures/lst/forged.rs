//! One board and a device that forges CNPs (Figure 9).

use super::super::bench::{Bench, FORGED};
use super::super::plot::Plot;
use super::super::statistics::count;
use super::super::trace::{Trace, gbps};
use super::super::{FigureError, Measured};
use crate::results::{FlowStatus, Results};

/// A threshold and a cooldown under which CNPs come in quick succession.
const AGGRESSIVE: [(&str, &str); 2] =
    [("faults.on.0.cnp.threshold", "1Gb/s"), ("faults.on.0.cnp.cooldown", "50us")];

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let runs = bench.run(FORGED, &[])?;
    let mut measured = Measured::default();
    measured.each("cnps", &runs, |results| f64::from(results.flows[0].cnps));
    measured.each("cuts", &runs, |results| count(cuts(results).len()));
    measured.each("deviation", &runs, worst);
    measured.each("halved", &runs, |results| cuts(results).first().map_or(f64::NAN, |cut| gbps(cut.after)));
    for (place, key) in ["alpha_first", "alpha_second", "alpha_third"].into_iter().enumerate() {
        measured.each(key, &runs, |results| cuts(results).get(place).map_or(f64::NAN, |cut| cut.alpha));
    }
    measured.each("completed", &runs, completed);
    measured.plots.extend(plots(&runs[0]));

    let many = bench.run(FORGED, &AGGRESSIVE)?;
    measured.each("many_cnps", &many, |results| f64::from(results.flows[0].cnps));
    measured.each("many_deviation", &many, worst);
    measured.each("many_completed", &many, completed);
    Ok(measured)
}

/// A fall of R_C.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// R_C before it and after it, in kb/s.
    before: u32,
    after: u32,
    /// Alpha when it came.
    alpha: f64,
    /// How far the cut is from 1 − α/2, rounded down as the firmware has it, in kb/s.
    deviation: f64,
}

/// All cuts. Readings are closer than two cuts can be, so each fall from one to the next is one cut.
fn cuts(results: &Results) -> Vec<Cut> {
    let trace = Trace::at(results, 0);
    let pairs = trace.readings.windows(2).filter_map(|pair| {
        let (old, new) = (pair[0].1, pair[1].1);
        let (before, after) = (old.rate_kbps?, new.rate_kbps?);
        // Alpha may decay between a reading and the cut, or between the cut and the next reading; not both.
        let cut = |alpha: Option<f32>| {
            let alpha = f64::from(alpha?);
            let taken = (f64::from(before) * alpha / 2.0).floor();
            Some(Cut {
                before,
                after,
                alpha,
                deviation: (f64::from(before) - taken - f64::from(after)).abs(),
            })
        };
        let candidates = [cut(old.alpha)?, cut(new.alpha)?];
        let closest = candidates.into_iter().min_by(|a, b| a.deviation.total_cmp(&b.deviation));
        closest.filter(|cut| cut.after < cut.before)
    });
    pairs.collect()
}

fn worst(results: &Results) -> f64 {
    cuts(results).into_iter().map(|cut| cut.deviation).fold(0.0, f64::max)
}

/// The share of the octets of all work requests that completed, with success.
fn completed(results: &Results) -> f64 {
    let flow = &results.flows[0];
    let all = flow.status == FlowStatus::OK && flow.delivered == flow.bytes;
    if all { 100.0 } else { 0.0 }
}

fn plots(results: &Results) -> [Plot; 3] {
    let trace = Trace::at(results, 0);
    let end = trace.flow.end.min(results.simulated).as_secs_f64();
    let ms =
        |points: Vec<(f64, f64)>| points.into_iter().map(|(at, value)| (at * 1e3, value)).collect::<Vec<_>>();
    let window = 32e-6;
    let windows = (0..).map(|bin| count(bin) * window).take_while(|from| from + window <= end);
    let throughput = windows.map(|from| (from + window, trace.throughput(from, from + window))).collect();
    let read = |value: fn(&crate::results::FlowSample) -> Option<f64>| {
        trace.readings.iter().filter_map(|(at, reading)| Some((*at, value(reading)?))).collect::<Vec<_>>()
    };
    [
        Plot::new("Throughput over windows of 32 µs, and the forger's threshold", "time (ms)", "Gb/s")
            .line("throughput (wire)", ms(throughput))
            .line("threshold", ms(vec![(0.0, 5.0), (end, 5.0)])),
        Plot::new("R_C and R_T", "time (ms)", "Gb/s")
            .line("R_C", ms(read(|reading| reading.rate_kbps.map(gbps))))
            .line("R_T", ms(read(|reading| reading.target_kbps.map(gbps)))),
        Plot::new("Congestion estimate", "time (ms)", "alpha")
            .line("alpha", ms(read(|reading| reading.alpha.map(f64::from)))),
    ]
}
