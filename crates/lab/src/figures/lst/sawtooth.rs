//! One board of three with a slow increase timer and a target that remembers (Figure 13).

use super::super::bench::{Bench, SAWTOOTH};
use super::super::plot::Plot;
use super::super::statistics::{count, median, regression};
use super::super::trace::{Trace, gbps};
use super::super::{FigureError, Measured};
use crate::results::{FlowSample, Results};

/// The first cuts, from line rate with alpha at one, are no tooth: teeth are looked for from here on, in seconds.
const SETTLED: f64 = 0.02;
/// The increase timer of board a, in seconds.
const TIMER: f64 = 0.2;

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let runs = bench.run(SAWTOOTH, &[])?;
    let mut measured = Measured::default();
    measured.each("teeth", &runs, |results| count(teeth(results).len()));
    let worst = |results: &Results, value: fn(&Tooth) -> f64, worse: fn(f64, f64) -> f64| {
        teeth(results).iter().map(value).reduce(worse).unwrap_or(f64::NAN)
    };
    measured.each("timer", &runs, |results| {
        worst(results, |tooth| (tooth.waited / TIMER - 1.0).abs() * 100.0, f64::max)
    });
    measured.each("climb", &runs, |results| worst(results, |tooth| tooth.climb * 100.0, f64::min));
    measured.each("cnps", &runs, |results| worst(results, |tooth| tooth.cnps, f64::min));
    measured.each("linear", &runs, |results| {
        median(&teeth(results).iter().map(|tooth| tooth.r_squared).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    });
    measured.each("linear_worst", &runs, |results| worst(results, |tooth| tooth.r_squared, f64::min));
    measured.each("hyperbolic", &runs, |results| {
        let teeth: Vec<f64> = teeth(results).iter().map(|tooth| tooth.r_squared_of_inverse).collect();
        median(&teeth).unwrap_or(f64::NAN)
    });
    measured
        .each("linear_in_cnps", &runs, |results| worst(results, |tooth| tooth.r_squared_in_cnps, f64::min));
    let mut plot =
        Plot::new("One board with a timer of 200 ms and no clamp: R_C of each", "time (s)", "Gb/s");
    for trace in Trace::all(&runs[0]) {
        let rates = trace.readings.iter().filter_map(|(at, reading)| Some((*at, gbps(reading.rate_kbps?))));
        plot = plot.line(runs[0].host(trace.flow.src), rates.collect());
    }
    measured.plots.push(plot);
    Ok(measured)
}

/// A climb and the decay after it.
#[derive(Clone, Copy, Debug)]
struct Tooth {
    /// Seconds from the CNP or climb before to this climb.
    waited: f64,
    /// The share of R_T − R_C that the climb covers.
    climb: f64,
    /// CNPs in the decay: at least so many, for those within one sample count once.
    cnps: f64,
    /// How linear log R_C is in time while it decays, from the first cut to the last.
    r_squared: f64,
    /// How linear 1/R_C is in time, as it would be if every packet were as likely to be marked.
    r_squared_of_inverse: f64,
    /// How linear log R_C is in the number of cuts.
    r_squared_in_cnps: f64,
}

/// What happened between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Nothing,
    Climb,
    Cnp,
}

fn change(old: &FlowSample, new: &FlowSample) -> Change {
    let (before, after) = (old.rate_kbps.unwrap_or(0), new.rate_kbps.unwrap_or(0));
    if after > before {
        Change::Climb
    } else if after < before || new.alpha > old.alpha {
        // At the least rate a CNP cuts nothing, but alpha rises all the same.
        Change::Cnp
    } else {
        Change::Nothing
    }
}

/// The teeth of board a that begin and end within the run.
fn teeth(results: &Results) -> Vec<Tooth> {
    let trace = Trace::of_host(results, "a");
    let changes: Vec<Change> = trace.readings.windows(2).map(|pair| change(&pair[0].1, &pair[1].1)).collect();
    let climbs: Vec<usize> = (0..changes.len())
        .filter(|place| changes[*place] == Change::Climb && trace.readings[*place].0 > SETTLED)
        .collect();
    let mut teeth = Vec::new();
    for pair in climbs.windows(2) {
        let (climb, next) = (pair[0], pair[1]);
        let (old, new) = (trace.readings[climb].1, trace.readings[climb + 1].1);
        let (Some(before), Some(after), Some(target)) = (old.rate_kbps, new.rate_kbps, old.target_kbps)
        else {
            continue;
        };
        let last = changes[..climb].iter().rposition(|change| *change != Change::Nothing);
        let since = last.map_or(0.0, |place| trace.readings[place + 1].0);
        let cnps: Vec<usize> = (climb + 1..next).filter(|place| changes[*place] == Change::Cnp).collect();
        let fell =
            |place: &&usize| trace.readings[**place + 1].1.rate_kbps < trace.readings[**place].1.rate_kbps;
        let end = cnps.iter().rfind(fell).map_or(climb + 1, |place| place + 1);
        let decay = trace.readings[climb + 1..=end].iter();
        let decay: Vec<(f64, f64)> =
            decay.filter_map(|(at, reading)| Some((*at, gbps(reading.rate_kbps?)))).collect();
        let fit = |of: fn(f64) -> f64| {
            let points: Vec<(f64, f64)> = decay.iter().map(|(at, rate)| (*at, of(*rate))).collect();
            regression(&points).map_or(0.0, |line| line.r_squared)
        };
        let cuts = (0..cnps.len()).map(count).zip(&cnps);
        let by_cut: Vec<(f64, f64)> = cuts
            .filter_map(|(n, place)| Some((n, gbps(trace.readings[*place + 1].1.rate_kbps?).ln())))
            .collect();
        teeth.push(Tooth {
            waited: trace.readings[climb + 1].0 - since,
            climb: (gbps(after) - gbps(before)) / (gbps(target) - gbps(before)),
            cnps: count(cnps.len()),
            r_squared: fit(f64::ln),
            r_squared_of_inverse: fit(f64::recip),
            r_squared_in_cnps: regression(&by_cut).map_or(0.0, |line| line.r_squared),
        });
    }
    teeth
}
