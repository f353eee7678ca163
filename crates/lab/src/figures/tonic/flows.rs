//! Two hundred NewReno flows from two hosts, on the engine through a scenario and as the RFCs have it over a plain
//! bottleneck (Tonic, Figure 3c).

use super::super::bench::{Bench, NEWRENO};
use super::super::plain::bottleneck::Bottleneck;
use super::super::plain::stream::Stream;
use super::super::plot::Plot;
use super::super::statistics::{count, distance_over_chance, kolmogorov_smirnov, mean};
use super::super::{FigureError, Measured};
use crate::output::digits::float;
use crate::results::{FlowResult, Results};
use roci_units::{BitsPerSec, Instant, Random, Ratio, Span};

/// The scenario's link, and the octets of a segment, in the queue and on the link.
const LINK: BitsPerSec = BitsPerSec::from_gbps(10);
const SEGMENT: u64 = 1_000;
const FRAME: u64 = 1_078;
const WIRE: u64 = 1_098;
/// The scenario's switch: a queue may hold as much as is left free of 11 MB.
const QUEUE: u64 = 5_500_000;
const LOSS: Ratio = Ratio::new(1, 100);
const RTO: Span = Span::from_millis(200);
/// First and greatest windows, in segments.
const WINDOWS: (u64, u64) = (10, 2_048);
const FLOWS: u64 = 200;
/// The engine in Tonic's pipeline, with its cycle of 100 ns at 10 Gb/s (§6.2.1).
const TONIC: [(&str, &str); 2] = [("nic.model", "tonic"), ("nic.with.clock", "10MHz")];
const END: Instant = Instant::from_ps(5_000_000_000_000);

/// A seed that the engine's runs do not have.
pub(super) const fn other(seed: u64) -> u64 {
    seed.wrapping_add(1_000_000)
}

/// The flows by the book: megabits per second and segments sent again.
fn plain(seed: u64) -> Vec<(f64, f64)> {
    let delay = Span::from_nanos(2_500);
    let net = Bottleneck {
        hosts: 2,
        rate: LINK,
        delay,
        wire: WIRE,
        frame: FRAME,
        capacity: QUEUE,
        // Two links, and an acknowledgement of 90 octets on each.
        back: delay * 2 + LINK.time_for(90) * 2,
        red: None,
        pause: None,
        seed: other(seed),
    };
    let stream = |flow| {
        let random = Random::new(other(seed), 1 + flow);
        Stream::new(SEGMENT, WINDOWS.0, WINDOWS.1, RTO, LOSS, random)
    };
    let mut flows: Vec<Stream> = (0..FLOWS).map(stream).collect();
    net.run(&mut flows, END);
    flows.iter().map(|flow| (mbps(flow.expected * SEGMENT), float(flow.again))).collect()
}

fn mbps(delivered: u64) -> f64 {
    float(delivered) * 8e-6 / END.as_secs_f64()
}

/// Goodput and segments sent again of each flow of each run.
fn flows_of(runs: &[Results]) -> Vec<Vec<(f64, f64)>> {
    let of_flow = |flow: &FlowResult| (mbps(flow.delivered), f64::from(flow.retransmitted));
    runs.iter().map(|run| run.flows.iter().map(of_flow).collect()).collect()
}

/// Figure 3c, and the distribution of retransmissions (§6.2.1).
pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let runs = bench.run(NEWRENO, &[])?;
    let ours = flows_of(&runs);
    let tonic = flows_of(&bench.run(NEWRENO, &TONIC)?);
    let theirs: Vec<_> = bench.seeds().iter().map(|&seed| plain(seed)).collect();
    let mut measured = Measured::default();
    let mut compare = |keys: [&'static str; 7], value: fn(&(f64, f64)) -> f64, title, x| {
        let [a, b, c] = [&ours, &theirs, &tonic].map(|runs| {
            runs.iter().map(|flows| flows.iter().map(value).collect()).collect::<Vec<Vec<f64>>>()
        });
        let distances = [&a, &c].map(|engine| distance_over_chance(engine, &b));
        let [a, b, c] = [a, b, c].map(|runs| runs.concat());
        let plain = [&a, &c].map(|engine| kolmogorov_smirnov(engine, &b));
        let values = [mean(&a), mean(&b), plain[0], distances[0], mean(&c), plain[1], distances[1]];
        for (key, value) in keys.into_iter().zip(values) {
            measured.add(key, vec![value.unwrap_or(f64::NAN); runs.len()]);
        }
        let plot = Plot::new(title, x, "share of flows");
        measured
            .plots
            .push(plot.line("program", cdf(a)).line("program on Tonic", cdf(c)).line("textbook", cdf(b)));
    };
    compare(
        [
            "goodput",
            "plain_goodput",
            "goodput_apart",
            "goodput_distance",
            "tonic_goodput",
            "tonic_goodput_apart",
            "tonic_goodput_distance",
        ],
        |flow| flow.0,
        "200 NewReno flows: goodput over 5 s",
        "Mb/s",
    );
    compare(
        [
            "again",
            "plain_again",
            "again_apart",
            "again_distance",
            "tonic_again",
            "tonic_again_apart",
            "tonic_again_distance",
        ],
        |flow| flow.1,
        "200 NewReno flows: segments sent again in 5 s",
        "segments",
    );
    Ok(measured)
}

/// The distribution of a sample.
pub(super) fn cdf(mut values: Vec<f64>) -> Vec<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let all = count(values.len());
    values.into_iter().enumerate().map(|(place, value)| (value, count(place + 1) / all)).collect()
}
