//! Pacing from 1 Mb/s to 800 Gb/s: each packet's instant against perfect pacing, and Tonic's scheme beside it.

use super::super::bench::Bench;
use super::super::plain::multi_precision::{CYCLE_PS, Limiter};
use super::super::plot::Plot;
use super::super::{FigureError, Measured};
use crate::output::digits::float;
use roci_transport::credit::Pacer;
use roci_units::{Instant, Span};

/// In kb/s.
const LOWEST: u32 = 1_000;
const HIGHEST: u32 = 800_000_000;
/// The rate of Tonic's link.
const TONIC: u32 = 100_000_000;
/// Packets at each rate.
const PACKETS: u64 = 2_000;
/// Octets of a packet on the wire: the least, Tonic's, and one of 4096 octets of payload.
const OCTETS: [u32; 3] = [84, 1_500, 4_198];
/// Cycles of Tonic's periods: those of its published code, which begin at 1.6 Mb/s, and a longer one for 1 Mb/s.
const PERIODS: [u64; 5] = [1, 8, 64, 512, 4_096];

/// Rates a sixth apart, so that few of them come out even.
fn rates() -> impl Iterator<Item = u32> {
    let next = |rate: &u32| (*rate < HIGHEST).then(|| (rate / 6 * 7 + 1).min(HIGHEST));
    std::iter::successors(Some(LOWEST), next)
}

/// The farthest that any packet's instant lies from perfect pacing, in ps.
fn farthest(kbps: u32, octets: u32) -> u64 {
    let mut pacer = Pacer::new(Span::ZERO);
    pacer.set_rate(Instant::ZERO, kbps);
    let mut worst = 0;
    for n in 1..=PACKETS {
        pacer.charge(pacer.eligible_at(), octets);
        // Of the perfect instant this is the part before the point.
        let perfect = u128::from(n) * u128::from(octets) * 8_000_000_000 / u128::from(kbps);
        worst = worst.max(u128::from(pacer.eligible_at().as_ps()).abs_diff(perfect));
    }
    u64::try_from(worst).unwrap_or(u64::MAX)
}

/// What the pacer sends of what the rate allows, in per cent.
fn conformance(kbps: u32, octets: u32) -> f64 {
    let mut pacer = Pacer::new(Span::ZERO);
    pacer.set_rate(Instant::ZERO, kbps);
    for _ in 0..PACKETS {
        pacer.charge(pacer.eligible_at(), octets);
    }
    share(kbps, PACKETS * u64::from(octets), pacer.eligible_at().as_ps())
}

/// Of Tonic's scheme: what it sends of what the rate allows, in per cent, and the longest that a packet waits for the one
/// before it, over the perfect time between them. Nothing, and for ever, where the rate is too low for it.
fn tonic(kbps: u32, octets: u32, periods: &[u64]) -> (f64, f64) {
    let mut limiter = Limiter::new(kbps, periods);
    let (mut cycles, mut longest) = (0, 0);
    for _ in 0..PACKETS {
        let Some(wait) = limiter.send(octets.into()) else { return (0.0, f64::INFINITY) };
        cycles += wait;
        longest = longest.max(wait);
    }
    let perfect = share(kbps, octets.into(), longest * CYCLE_PS);
    (share(kbps, PACKETS * u64::from(octets), cycles * CYCLE_PS), 100.0 / perfect)
}

fn share(kbps: u32, octets: u64, ps: u64) -> f64 {
    float(octets) * 8e9 / (float(kbps.into()) * float(ps)) * 100.0
}

/// The least share over rates from `from` to `to` and packets of all lengths.
fn least(from: u32, to: u32, share: impl Fn(u32, u32) -> f64) -> f64 {
    let rates = rates().filter(|rate| (from..=to).contains(rate));
    rates.flat_map(|rate| OCTETS.map(|octets| share(rate, octets))).fold(f64::INFINITY, f64::min)
}

/// The greatest over rates up to that of Tonic's link and packets of all lengths.
fn longest(value: impl Fn(u32, u32) -> f64) -> f64 {
    let rates = rates().filter(|rate| *rate <= TONIC);
    rates.flat_map(|rate| OCTETS.map(|octets| value(rate, octets))).fold(0.0, f64::max)
}

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let seeds = bench.seeds().len();
    let mut add = |key, value| measured.add(key, vec![value; seeds]);
    add("rates", rates().map(|_| 1.0).sum());
    let worst = rates().flat_map(|rate| OCTETS.map(|octets| farthest(rate, octets))).max();
    add("farthest", float(worst.unwrap_or(u64::MAX)));
    add("least", least(LOWEST, HIGHEST, conformance));
    let several = |rate, octets| tonic(rate, octets, &PERIODS).0;
    let cycle = |rate, octets| tonic(rate, octets, &[1]).0;
    let thousand = |rate, octets| tonic(rate, octets, &[1_000]).0;
    add("tonic_low", least(LOWEST, 1_000_000, several));
    add("tonic_link", least(LOWEST, TONIC, several));
    add("tonic_all", least(LOWEST, HIGHEST, several));
    add("tonic_cycle", least(LOWEST, TONIC, cycle));
    add("tonic_thousand", least(LOWEST, TONIC, thousand));
    add("tonic_wait", longest(|rate, octets| tonic(rate, octets, &PERIODS).1));
    add("tonic_thousand_wait", longest(|rate, octets| tonic(rate, octets, &[1_000]).1));
    let mut plot = Plot::new("Rate reached with packets of 1500 octets", "b/s (decimal logarithm)", "%");
    let line = |share: &dyn Fn(u32, u32) -> f64| {
        rates().map(|rate| (float(u64::from(rate) * 1_000).log10(), share(rate, 1_500))).collect()
    };
    plot = plot.line("ours", line(&conformance)).line("Tonic's periods", line(&several));
    plot = plot.line("octets in a cycle", line(&cycle));
    plot = plot.line("octets in 1000 cycles", line(&thousand));
    measured.plots.push(plot);
    Ok(measured)
}
