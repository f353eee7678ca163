//! Eight boards, three leaves, one server: the parking lot of PFC alone (Figure 4) and what DCQCN makes of it
//! (Figures 5 and 6).

use super::super::bench::{Bench, INCAST};
use super::super::plot::Plot;
use super::super::statistics::{count, mean};
use super::super::trace::{Trace, drops, first_end, pauses};
use super::super::{FigureError, Measured};
use crate::output::digits::float;
use crate::results::Results;
use crate::results::statistics::jain;

/// The boards behind the leaf of four, by the number that the paper gives them.
const OF_FOUR: std::ops::RangeInclusive<u32> = 7..=10;
/// When the start is over, in seconds.
const SETTLED: f64 = 0.005;
/// From when on DCQCN's shares are averaged, in seconds.
const FAIR_FROM: f64 = 0.05;

/// Figure 4: PFC on, ECN off.
pub(in super::super) fn pfc_alone(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let runs = bench.run(INCAST, &[("switch.ecn", "false")])?;
    let mut measured = Measured::default();
    let of = |results: &Results, four: bool| {
        let shares = shares(results, SETTLED);
        let group: Vec<f64> = shares
            .iter()
            .filter(|(board, _)| OF_FOUR.contains(board) == four)
            .map(|(_, share)| *share)
            .collect();
        mean(&group).unwrap_or(f64::NAN)
    };
    measured.each("two", &runs, |results| of(results, false));
    measured.each("four", &runs, |results| of(results, true));
    measured.each("ratio", &runs, |results| of(results, false) / of(results, true));
    measured.each("spread", &runs, |results| {
        let within = |four| {
            let mean = of(results, four);
            let group = shares(results, SETTLED);
            let group = group.iter().filter(|(board, _)| OF_FOUR.contains(board) == four);
            group.map(|(_, share)| (share / mean - 1.0).abs() * 100.0).fold(0.0, f64::max)
        };
        within(true).max(within(false))
    });
    measured.each("drops", &runs, drops);
    measured.plots.push(throughputs("PFC alone: goodput of each board", &runs[0]));
    Ok(measured)
}

/// Figures 5 and 6: PFC and DCQCN on; and a second run in which seven boards have half as much to send.
pub(in super::super) fn dcqcn(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let runs = bench.run(INCAST, &[])?;
    let mut measured = Measured::default();
    let values = |results: &Results| -> Vec<f64> {
        shares(results, FAIR_FROM).into_iter().map(|(_, share)| share).collect()
    };
    for (place, key) in ["s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12"].into_iter().enumerate() {
        measured.each(key, &runs, |results| values(results)[place]);
    }
    measured.each("farthest", &runs, |results| {
        let values = values(results);
        let mean = mean(&values).unwrap_or(f64::NAN);
        values.into_iter().map(|value| (value / mean - 1.0).abs() * 100.0).fold(0.0, f64::max)
    });
    measured.each("jain", &runs, |results| jain(&values(results)).unwrap_or(f64::NAN));
    measured.each("drops", &runs, drops);
    measured.each("cnps", &runs, |results| {
        results.flows.iter().map(|flow| f64::from(flow.cnps)).fold(f64::INFINITY, f64::min)
    });
    // Without a law there is no alpha at all, which is a failure as well.
    let alphas = |results: &Results| -> Vec<f64> {
        let traces = Trace::all(results);
        let alive = |trace: &Trace<'_>, at: f64| at > SETTLED && at < trace.flow.end.as_secs_f64();
        let readings =
            traces.iter().flat_map(|trace| trace.readings.iter().filter(|(at, _)| alive(trace, *at)));
        readings.map(|(_, reading)| reading.alpha.map_or(f64::NAN, f64::from)).collect()
    };
    measured.each("alpha_least", &runs, |results| alphas(results).into_iter().fold(f64::INFINITY, least));
    measured.each("alpha_most", &runs, |results| alphas(results).into_iter().fold(0.0, most));
    // A run with the same seed that ends early has sent the same PAUSE frames until then.
    let start = bench.run(INCAST, &[("stop", "5ms")])?;
    let later = runs.iter().zip(&start).map(|(all, start)| pauses(all) - pauses(start));
    measured.add("pauses", later.collect());
    measured.plots.push(throughputs("PFC and DCQCN: goodput of each board", &runs[0]));

    let halves = bench.run(INCAST, &halved())?;
    measured.each("last", &halves, |results| {
        let (_, last) = last_alone(results);
        last
    });
    let trace = Trace::of_host(&halves[0], LAST);
    let mut plot = Plot::new("Board 12 of the second run: rates as the others end", "time (s)", "Gb/s");
    plot = plot.line("goodput", bins(&trace, 1e-3, trace.flow.end.as_secs_f64()));
    let rates =
        trace.readings.iter().filter_map(|(at, reading)| Some((*at, f64::from(reading.rate_kbps?) / 1e6)));
    plot = plot.line("R_C", rates.collect());
    measured.plots.push(plot);
    Ok(measured)
}

/// The board whose climb Figure 6 shows.
const LAST: &str = "s12";

/// Seven of the eight have half as much to send.
fn halved() -> Vec<(&'static str, &'static str)> {
    [
        "traffic.0.flows.0.size",
        "traffic.0.flows.1.size",
        "traffic.0.flows.2.size",
        "traffic.0.flows.3.size",
        "traffic.0.flows.4.size",
        "traffic.0.flows.5.size",
        "traffic.0.flows.6.size",
    ]
    .into_iter()
    .map(|path| (path, "19MB"))
    .collect()
}

/// When the last of the others ended, and the goodput of the last board from 5 ms before its own end on, in Gb/s.
fn last_alone(results: &Results) -> (f64, f64) {
    let trace = Trace::of_host(results, LAST);
    let others = results.flows.iter().filter(|flow| flow.src != trace.flow.src);
    let alone = others.map(|flow| flow.end.min(results.simulated)).max().map_or(0.0, |end| end.as_secs_f64());
    let end = trace.flow.end.min(results.simulated).as_secs_f64();
    let from = alone.max(end - 0.005);
    (alone, if end > from { trace.goodput(from, end) } else { 0.0 })
}

/// Each board's number and its goodput in Gb/s, from `from` to the first completion.
fn shares(results: &Results, from: f64) -> Vec<(u32, f64)> {
    let to = first_end(results);
    let share = |trace: Trace<'_>| {
        let name = results.host(trace.flow.src);
        let board = name.trim_start_matches('s').parse().expect("a board is called s and its number");
        (board, if to > from { trace.goodput(from, to) } else { 0.0 })
    };
    Trace::all(results).into_iter().map(share).collect()
}

/// Goodput of each flow in bins of one millisecond.
pub(super) fn throughputs(title: &str, results: &Results) -> Plot {
    let mut plot = Plot::new(title, "time (s)", "goodput (Gb/s)");
    for trace in Trace::all(results) {
        let end = trace.flow.end.min(results.simulated).as_secs_f64();
        plot = plot.line(results.host(trace.flow.src), bins(&trace, 1e-3, end));
    }
    plot
}

/// Goodput in bins of `width` seconds, up to `end`.
pub(super) fn bins(trace: &Trace<'_>, width: f64, end: f64) -> Vec<(f64, f64)> {
    let edges = (0..).map(|bin| count(bin) * width).take_while(|from| from + width <= end);
    edges.map(|from| (from + width / 2.0, trace.goodput(from, from + width))).collect()
}

/// The lesser of two, where not a number is least.
fn least(a: f64, b: f64) -> f64 {
    if b.is_nan() { f64::NEG_INFINITY } else { a.min(b) }
}

/// The greater of two, where not a number is greatest.
fn most(a: f64, b: f64) -> f64 {
    if b.is_nan() { f64::INFINITY } else { a.max(b) }
}

/// Octets that all flows delivered, in bits over `seconds`, in Gb/s.
pub(super) fn aggregate(results: &Results, seconds: f64) -> f64 {
    float(results.flows.iter().map(|flow| flow.delivered).sum()) * 8e-9 / seconds
}
