//! RoCE with DCQCN, on the engine through a scenario and as its paper has it over a plain bottleneck (Tonic, Figure 4
//! and §6.2.2).

use super::super::bench::{Bench, DCQCN};
use super::super::plain::bottleneck::{Bottleneck, Pause, Red};
use super::super::plain::dcqcn::Dcqcn;
use super::super::plot::Plot;
use super::super::statistics::{count, distance_over_chance, mean};
use super::super::trace::{Trace, drops};
use super::super::{FigureError, Measured};
use super::flows::{cdf, other};
use crate::output::digits::float;
use crate::results::Results;
use roci_units::{BitsPerSec, Instant, Span};

/// The scenario's link, and the octets of a packet on it, in a queue, and of its payload.
const LINK: BitsPerSec = BitsPerSec::from_gbps(40);
const LINK_BPS: f64 = 40e9;
const WIRE: u64 = 1_082;
const FRAME: u64 = 1_062;
const PAYLOAD: u64 = 1_000;
/// The scenario's marking.
const RED: Red = Red { kmin: 40e3, kmax: 1e6, pmax: 0.2 };
/// The length of a run.
const END: Instant = Instant::from_ps(1_000_000_000_000);
/// Two flows have converged by then, in seconds.
const SETTLED: f64 = 0.5;
/// The engine in Tonic's pipeline.
const TONIC: (&str, &str) = ("nic.model", "tonic");
/// What both a rate's samples and its plot are read by, in seconds.
const BIN: f64 = 0.01;

/// `flows` by the book.
fn plain(flows: usize, seed: u64) -> Vec<Dcqcn> {
    let delay = Span::from_micros(1);
    // Of the scenario's 24 MB each of three ports keeps the usual headroom; a PAUSE frame has 84 octets.
    let headroom = 3 * (3 * LINK.octets_in(delay) + 2 * FRAME + 84);
    let pause =
        Pause { buffer: 24_000_000 - headroom, parts: 64, resume: 3_000, delay: delay + LINK.time_for(84) };
    let net = Bottleneck {
        hosts: 2,
        rate: LINK,
        delay,
        wire: WIRE,
        frame: FRAME,
        capacity: u64::MAX,
        // Two links, and a CNP of 82 octets on each.
        back: delay * 2 + LINK.time_for(82) * 2,
        red: Some(RED),
        pause: Some(pause),
        seed: other(seed),
    };
    let all = Dcqcn::new(LINK_BPS, float(WIRE), float(PAYLOAD));
    let mut flows = vec![all; flows];
    net.run(&mut flows, END);
    flows
}

/// Figure 4, and the 200 flows of §6.2.2.
pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    two(bench, &mut measured)?;
    let runs = bench.run(DCQCN, &[("traffic.0.qps", "100")])?;
    let references: Vec<Vec<Dcqcn>> = bench.seeds().iter().map(|&seed| plain(200, seed)).collect();
    measured.each("mean", &runs, |run| mean(&throughputs(run)).unwrap_or(f64::NAN));
    measured.each("farthest", &runs, |run| farthest(&throughputs(run)));
    measured.each("plain_farthest", &references, |flows| {
        farthest(&flows.iter().map(|flow| float(flow.came)).collect::<Vec<_>>())
    });
    let pipeline = bench.run(DCQCN, &[("traffic.0.qps", "100"), TONIC])?;
    measured.each("tonic_farthest", &pipeline, |run| farthest(&throughputs(run)));
    // The law alone, in any case.
    let alone = bench.control(DCQCN, &[("traffic.0.qps", "100"), ("switch.pfc", "false")])?;
    measured.each("alone_farthest", &alone, |run| farthest(&throughputs(run)));
    let link = LINK_BPS / 1e6;
    measured.each("wire", &runs, |run| 100.0 * throughputs(run).iter().sum::<f64>() / link);
    measured.each("tonic_wire", &pipeline, |run| 100.0 * throughputs(run).iter().sum::<f64>() / link);
    measured.each("drops", &runs, drops);
    let cnps = |runs: &[Results]| -> Vec<Vec<f64>> {
        runs.iter().map(|run| run.flows.iter().map(|flow| f64::from(flow.cnps)).collect()).collect()
    };
    let (ours, tonic) = (cnps(&runs), cnps(&pipeline));
    let theirs: Vec<Vec<f64>> =
        references.iter().map(|flows| flows.iter().map(|flow| float(flow.cnps)).collect()).collect();
    let distances = [&ours, &tonic].map(|engine| distance_over_chance(engine, &theirs).unwrap_or(f64::NAN));
    let [ours, tonic, theirs] = [ours, tonic, theirs].map(|runs| runs.concat());
    let all = |values: &[f64]| mean(values).unwrap_or(f64::NAN);
    measured.add("cnps", vec![all(&ours); runs.len()]);
    measured.add("plain_cnps", vec![all(&theirs); runs.len()]);
    measured.add("cnps_ratio", vec![all(&ours) / all(&theirs); runs.len()]);
    measured.add("cnps_distance", vec![distances[0]; runs.len()]);
    measured.add("tonic_cnps_distance", vec![distances[1]; runs.len()]);
    measured.plots.push(
        Plot::new("200 flows: CNPs in one second", "CNPs of a flow", "share of flows")
            .line("engine", cdf(ours))
            .line("engine on Tonic", cdf(tonic))
            .line("textbook", cdf(theirs)),
    );
    Ok(measured)
}

/// One flow from each host: Figure 4.
fn two(bench: &Bench<'_>, measured: &mut Measured) -> Result<(), FigureError> {
    let runs = bench.run(DCQCN, &[("traffic.0.qps", "1"), ("measure.sample", "\"100us\"")])?;
    let pipeline = bench.run(DCQCN, &[("traffic.0.qps", "1"), ("measure.sample", "\"100us\""), TONIC])?;
    let share = LINK_BPS / 2e9;
    for (runs, keys) in [(&runs, ["first", "second"]), (&pipeline, ["tonic_first", "tonic_second"])] {
        for (place, key) in keys.into_iter().enumerate() {
            measured.each(key, runs, |run| wire(&Trace::at(run, place), SETTLED, END.as_secs_f64()) / share);
        }
    }
    let references: Vec<Vec<Dcqcn>> = bench.seeds().iter().map(|&seed| plain(2, seed)).collect();
    let cnps = |run: &Results| run.flows.iter().map(|flow| f64::from(flow.cnps)).sum::<f64>();
    let theirs: Vec<f64> =
        references.iter().map(|flows| flows.iter().map(|flow| float(flow.cnps)).sum()).collect();
    let ours: Vec<f64> = runs.iter().map(cnps).collect();
    let ratio = mean(&ours).unwrap_or(f64::NAN) / mean(&theirs).unwrap_or(f64::NAN);
    measured.add("two_cnps", vec![ratio; runs.len()]);
    let mut plot = Plot::new("Two flows: throughput in bins of 10 ms", "time (s)", "Gb/s on the wire");
    for (place, name) in ["first", "second"].into_iter().enumerate() {
        let trace = Trace::at(&runs[0], place);
        let bins = (0..).map(|bin| count(bin) * BIN).take_while(|from| from + BIN <= END.as_secs_f64());
        plot = plot.line(name, bins.map(|from| (from + BIN / 2.0, wire(&trace, from, from + BIN))).collect());
    }
    measured.plots.push(plot);
    Ok(())
}

/// What a flow delivers from `from` to `to`, in Gb/s of octets on the wire.
fn wire(trace: &Trace<'_>, from: f64, to: f64) -> f64 {
    trace.goodput(from, to) * float(WIRE) / float(PAYLOAD)
}

/// What each flow delivered over the run, in Mb/s of octets on the wire.
fn throughputs(run: &Results) -> Vec<f64> {
    let seconds = run.simulated.as_secs_f64();
    let each = run.flows.iter().map(|flow| float(flow.delivered / PAYLOAD * WIRE) * 8e-6 / seconds);
    each.collect()
}

/// How far the farthest value is from the mean, in percent.
fn farthest(values: &[f64]) -> f64 {
    let mean = mean(values).unwrap_or(f64::NAN);
    values.iter().map(|value| (value / mean - 1.0).abs() * 100.0).fold(0.0, f64::max)
}
