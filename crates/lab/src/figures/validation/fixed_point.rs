//! DCQCN's fixed point: rate and queue of N flows against the fluid model.

use super::super::bench::{Bench, FIXED_POINT};
use super::super::plot::Plot;
use super::super::statistics::mean;
use super::super::trace::{Trace, mean_of_steps, queue};
use super::super::{FigureError, Measured};
use super::fluid::Fluid;
use crate::results::Results;
use roci_wire::ethernet::WIRE_OVERHEAD;
use roci_wire::{IpVersion, Layout, Opcode};

/// The scenario's link in bits per second, its packets, its marking line and its loop.
const LINK: f64 = 40e9;
const MTU: u16 = 1_024;
const KMIN: f64 = 40e3;
const KMAX: f64 = 1e6;
const DELAY: f64 = 4e-6;
/// The queue of the receiver's link.
const QUEUE: &str = "s0>h0:3";
/// What is averaged over, in seconds: the start is over by then.
const WINDOW: (f64, f64) = (0.1, 0.3);
/// The same where each flow is judged by itself: so long that the lot of its marks averages out to a hundredth
/// ([`Fluid::scatter`]).
const LONG: (f64, f64) = (0.1, 3.1);

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let mut ours = Vec::new();
    for (rate, length, margin, flows) in [
        ("rate_2", "queue_2", "margin_2", 2u32),
        ("rate_4", "queue_4", "margin_4", 4),
        ("rate_6", "queue_6", "margin_6", 6),
        ("rate_8", "queue_8", "margin_8", 8),
        ("rate_12", "queue_12", "margin_12", 12),
        ("rate_16", "queue_16", "margin_16", 16),
        ("rate_32", "queue_32", "margin_32", 32),
        ("rate_64", "queue_64", "margin_64", 64),
    ] {
        let fluid = fluid(flows);
        let single = SINGLE.iter().find(|(judged, ..)| *judged == flows);
        let window = if single.is_some() { LONG } else { WINDOW };
        let runs =
            bench.run(FIXED_POINT, &[("stop", &format!("{}s", window.1)), ("traffic", &senders(flows))])?;
        let share = LINK / 1e9 / f64::from(flows);
        let rates = |results: &Results| -> Vec<f64> {
            let rate = |trace: &Trace<'_>| trace.rate(window.0, window.1).unwrap_or(f64::NAN) / share;
            Trace::all(results).iter().map(rate).collect()
        };
        measured.each(rate, &runs, |results| mean(&rates(results)).unwrap_or(f64::NAN));
        if let Some((_, farthest, deviations)) = single {
            let chance = fluid.scatter(window.1 - window.0) * 100.0;
            measured.each(farthest, &runs, |results| farthest_from_one(&rates(results)));
            measured.each(deviations, &runs, |results| farthest_from_one(&rates(results)) / chance);
        }
        let theory = fluid.queue() * frame();
        let mean_queue = |results: &Results| mean_of_steps(&queue(results, QUEUE), window.0, window.1);
        measured.each(length, &runs, |results| mean_queue(results) / theory);
        measured.add(margin, vec![fluid.phase_margin(); runs.len()]);
        ours.push((
            f64::from(flows),
            mean(&runs.iter().map(mean_queue).collect::<Vec<_>>()).unwrap_or(f64::NAN) / 1e3,
        ));
    }
    let mean_queue = |results: &Results| mean_of_steps(&queue(results, QUEUE), WINDOW.0, WINDOW.1);
    let saturated = bench.run(
        FIXED_POINT,
        &[("traffic.0.senders", "16"), ("switch.ecn", "{ kmin = \"5KB\", kmax = \"200KB\", pmax = 0.01 }")],
    )?;
    measured.each("saturated", &saturated, |results| mean_queue(results) / 200e3);
    let theory = (2..=64u32).map(|flows| (f64::from(flows), fluid(flows).queue() * frame() / 1e3));
    measured.plots.push(
        Plot::new("Mean queue of N flows at DCQCN's fixed point", "flows", "queue (KB)")
            .line("fluid model", theory.collect())
            .line("simulated", ours),
    );
    Ok(measured)
}

/// The numbers of flows at which the loop is stable and each flow is judged by itself, with the keys of its rows.
const SINGLE: [(u32, &str, &str); 4] = [
    (4, "farthest_4", "chance_4"),
    (6, "farthest_6", "chance_6"),
    (8, "farthest_8", "chance_8"),
    (12, "farthest_12", "chance_12"),
];

/// Traffic of `flows` hosts that send to the first one for ever: one message would be too long.
fn senders(flows: u32) -> String {
    let pairs: Vec<String> = (1..=flows).map(|host| format!("[\"h{host}\", \"h0\"]")).collect();
    let pairs = pairs.join(", ");
    format!("[{{ kind = \"closed-loop\", pairs = [{pairs}], message = \"1GB\", depth = 2 }}]")
}

/// The greatest deviation from one, in percent; not a number where one of `shares` is none.
fn farthest_from_one(shares: &[f64]) -> f64 {
    let deviations = shares.iter().map(|share| (share - 1.0).abs() * 100.0);
    deviations
        .fold(0.0, |most, deviation| if deviation.is_nan() || deviation > most { deviation } else { most })
}

/// Octets of a full packet in a queue.
fn frame() -> f64 {
    f64::from(roci_wire::frame_len(Opcode::WRITE_MIDDLE, Layout::Standard, IpVersion::V4, MTU))
}

/// The model with the scenario's parameters, which are those of the preset `sigcomm15`.
fn fluid(flows: u32) -> Fluid {
    let wire = frame() + f64::from(WIRE_OVERHEAD);
    let cut_period = 50e-6;
    Fluid {
        flows: f64::from(flows),
        link: LINK / 8.0 / wire,
        gain: 1.0 / 256.0,
        cut_period,
        alpha_period: 55e-6,
        timer: 55e-6,
        byte_counter: 10e6 / f64::from(MTU),
        stages: 5.0,
        increment: 40e6 / 8.0 / wire,
        slope: frame() / (KMAX - KMIN),
        kmin: KMIN / frame(),
        delay: DELAY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_flows_that_are_judged_are_those_where_the_loop_is_stable() {
        let figure = super::super::super::expect::figure("validation-fixed-point");
        for flows in [2u32, 4, 6, 8, 12, 16, 32, 64] {
            let row = figure.rows.iter().find(|row| row.key == format!("queue_{flows}")).unwrap();
            let judged = row.bound != super::super::super::expect::Bound::Reported;
            assert_eq!(judged, fluid(flows).phase_margin() > 0.0, "{flows}: {}", fluid(flows).phase_margin());
            assert_eq!(judged, SINGLE.iter().any(|(single, ..)| *single == flows), "{flows}");
        }
    }

    /// Over the time of the others chance alone moves a flow's mean by more than the tolerance of 2 %.
    #[test]
    fn single_flows_are_averaged_over_so_long_that_chance_moves_them_by_a_hundredth() {
        for (flows, ..) in SINGLE {
            let [short, long] = [WINDOW, LONG].map(|(from, to)| fluid(flows).scatter(to - from));
            assert!(short > 0.03 && long < 0.0105, "{flows}: {short} and {long}");
        }
    }

    #[test]
    fn one_starved_flow_of_many_is_what_is_judged() {
        assert!((farthest_from_one(&[1.02, 1.02, 0.94, 1.02]) - 6.0).abs() < 1e-9);
        assert!(farthest_from_one(&[1.0, f64::NAN, 1.0]).is_nan());
    }
}
