//! DCQCN's fixed point: rate and queue of N flows against the fluid model, and against the model with memory.

use super::super::bench::{Bench, FIXED_POINT};
use super::super::plot::Plot;
use super::super::statistics::mean;
use super::super::trace::{Trace, deviation_of_steps, mean_of_steps, queue};
use super::super::{FigureError, Measured};
use super::fluid::Fluid;
use super::renewal::Renewal;
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

/// The other marking line, twenty times less steep: all numbers of flows are stable on it.
const FLAT_KMAX: f64 = KMIN + 20.0 * (KMAX - KMIN);

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let mut ours = Vec::new();
    for keys in &ROWS {
        let flows = keys.flows;
        let fluid = fluid(flows, KMAX);
        let window = if keys.single.is_some() { LONG } else { WINDOW };
        let runs =
            bench.run(FIXED_POINT, &[("stop", &format!("{}s", window.1)), ("traffic", &senders(flows))])?;
        let share = LINK / 1e9 / f64::from(flows);
        let rates = |results: &Results| -> Vec<f64> {
            let rate = |trace: &Trace<'_>| trace.rate(window.0, window.1).unwrap_or(f64::NAN) / share;
            Trace::all(results).iter().map(rate).collect()
        };
        measured.each(keys.rate, &runs, |results| mean(&rates(results)).unwrap_or(f64::NAN));
        if let Some((farthest, deviations)) = keys.single {
            let chance = fluid.scatter(window.1 - window.0) * 100.0;
            measured.each(farthest, &runs, |results| farthest_from_one(&rates(results)));
            measured.each(deviations, &runs, |results| farthest_from_one(&rates(results)) / chance);
        }
        let renewal = Renewal::at_rest(fluid);
        let mean_queue = |results: &Results| mean_of_steps(&queue(results, QUEUE), window.0, window.1);
        measured.each(keys.queue, &runs, |results| mean_queue(results) / (fluid.queue() * frame()));
        if let Some(alone) = keys.alone {
            let fluids = fluid.queue() * frame();
            measured.each(alone, &runs, |results| 100.0 * (mean_queue(results) / fluids - 1.0).abs());
        }
        measured.each(keys.renewal, &runs, |results| mean_queue(results) / (renewal.queue() * frame()));
        measured.each(keys.swing, &runs, |results| swing(results, window));
        measured.add(keys.margin, vec![renewal.phase_margin(); runs.len()]);
        measured.add(keys.fluid_margin, vec![fluid.phase_margin(); runs.len()]);
        if let Some(fourfold) = keys.fourfold {
            let set = fourfold_of(flows);
            let set = set.each_ref().map(|(key, value)| (*key, value.as_str()));
            let larger = bench.run(FIXED_POINT, &set)?;
            let swings = |(one, four): (&Results, &Results)| swing(four, WINDOW) / swing(one, window);
            measured.add(fourfold, runs.iter().zip(&larger).map(swings).collect());
        }
        ours.push((f64::from(flows), mean_over_runs(&runs, mean_queue)));
    }
    let mean_queue = |results: &Results| mean_of_steps(&queue(results, QUEUE), WINDOW.0, WINDOW.1);
    let mut ours_flat = Vec::new();
    for Keys { flows, flat, .. } in &ROWS {
        let renewal = Renewal::at_rest(fluid(*flows, FLAT_KMAX));
        let ecn = format!("{{ kmin = {KMIN}, kmax = {FLAT_KMAX}, pmax = 1 }}");
        let runs = bench.run(FIXED_POINT, &[("switch.ecn", &ecn), ("traffic", &senders(*flows))])?;
        measured.each(flat, &runs, |results| mean_queue(results) / (renewal.queue() * frame()));
        ours_flat.push((f64::from(*flows), mean_over_runs(&runs, mean_queue)));
    }
    let saturated = bench.run(
        FIXED_POINT,
        &[("traffic.0.senders", "16"), ("switch.ecn", "{ kmin = \"5KB\", kmax = \"200KB\", pmax = 0.01 }")],
    )?;
    measured.each("saturated", &saturated, |results| mean_queue(results) / 200e3);
    for (title, kmax, ours) in [
        ("Mean queue of N flows at DCQCN's fixed point", KMAX, ours),
        ("The same, on a marking line that is twenty times less steep", FLAT_KMAX, ours_flat),
    ] {
        let theory = |queue: fn(Fluid) -> f64| {
            (2..=64u32).map(|flows| (f64::from(flows), queue(fluid(flows, kmax)) * frame() / 1e3)).collect()
        };
        measured.plots.push(
            Plot::new(title, "flows", "queue (KB)")
                .line("fluid model", theory(|fluid| fluid.queue()))
                .line("with memory", theory(|fluid| Renewal::at_rest(fluid).queue()))
                .line("simulated", ours),
        );
    }
    Ok(measured)
}

/// The standard deviation of the queue over its mean.
fn swing(results: &Results, (from, to): (f64, f64)) -> f64 {
    let readings = queue(results, QUEUE);
    deviation_of_steps(&readings, from, to) / mean_of_steps(&readings, from, to)
}

/// Four times of all: flows, link and marking line. Each flow meets what it met, and the queue is four times as long. What
/// swings by chance swings half as much in proportion; a loop that swings by itself does so as before.
fn fourfold_of(flows: u32) -> [(&'static str, String); 5] {
    [
        ("topology.hosts", (4 * flows + 1).to_string()),
        ("topology.rate", format!("{}Gb/s", 4.0 * LINK / 1e9)),
        ("switch.buffer", "\"96MB\"".to_owned()),
        ("switch.ecn", format!("{{ kmin = {}, kmax = {}, pmax = 1 }}", 4.0 * KMIN, 4.0 * KMAX)),
        ("traffic", senders(4 * flows)),
    ]
}

/// The mean over seeds of what `of` says of a run in octets, in KB.
fn mean_over_runs(runs: &[Results], of: impl Fn(&Results) -> f64) -> f64 {
    mean(&runs.iter().map(of).collect::<Vec<_>>()).unwrap_or(f64::NAN) / 1e3
}

/// The rows of one number of flows.
struct Keys {
    flows: u32,
    margin: &'static str,
    fluid_margin: &'static str,
    rate: &'static str,
    /// How far the farthest flow lies from its share, and how many standard deviations that is: where the loop is stable.
    single: Option<(&'static str, &'static str)>,
    queue: &'static str,
    /// How far the queue is off the fluid model's: where that one calls the loop stable, and the model with memory does not.
    alone: Option<&'static str>,
    renewal: &'static str,
    swing: &'static str,
    /// How much of that is left with four times of all: where the margin changes its sign.
    fourfold: Option<&'static str>,
    flat: &'static str,
}

macro_rules! keys {
    ($flows:literal, $single:expr, $alone:expr, $fourfold:expr) => {
        Keys {
            flows: $flows,
            margin: concat!("margin_", $flows),
            fluid_margin: concat!("fluid_margin_", $flows),
            rate: concat!("rate_", $flows),
            single: $single,
            queue: concat!("queue_", $flows),
            alone: $alone,
            renewal: concat!("renewal_", $flows),
            swing: concat!("swing_", $flows),
            fourfold: $fourfold,
            flat: concat!("flat_", $flows),
        }
    };
}

/// All numbers of flows. Those at which the loop is stable have each flow judged by itself.
const ROWS: [Keys; 8] = [
    keys!(2, Some(("farthest_2", "chance_2")), None, None),
    keys!(4, Some(("farthest_4", "chance_4")), None, None),
    keys!(6, Some(("farthest_6", "chance_6")), None, None),
    keys!(8, Some(("farthest_8", "chance_8")), None, None),
    keys!(12, Some(("farthest_12", "chance_12")), None, None),
    keys!(16, Some(("farthest_16", "chance_16")), None, Some("fourfold_16")),
    keys!(32, None, Some("alone_32"), Some("fourfold_32")),
    keys!(64, None, Some("alone_64"), Some("fourfold_64")),
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

/// The model on a marking line up to `kmax`, with the scenario's other parameters, which are those of the preset `sigcomm15`.
fn fluid(flows: u32, kmax: f64) -> Fluid {
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
        slope: frame() / (kmax - KMIN),
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
        for Keys { flows, rate, queue, renewal, single, alone, .. } in &ROWS {
            let margin = Renewal::at_rest(fluid(*flows, KMAX)).phase_margin();
            for key in [rate, queue, renewal] {
                let row = figure.rows.iter().find(|row| row.key == *key).unwrap();
                let judged = row.bound != super::super::super::expect::Bound::Reported;
                assert_eq!(judged, margin > 0.0, "{key}: {margin}");
            }
            assert_eq!(single.is_some(), margin > 0.0, "{flows}");
            let called_stable = fluid(*flows, KMAX).phase_margin() > 0.0;
            assert_eq!(alone.is_some(), called_stable && margin <= 0.0, "{flows}: the models disagree");
            assert!(Renewal::at_rest(fluid(*flows, FLAT_KMAX)).phase_margin() > 0.0, "{flows}");
        }
    }

    /// Over the time of the others chance alone moves a flow's mean by more than the tolerance of 2 %.
    #[test]
    fn single_flows_are_averaged_over_so_long_that_chance_moves_them_by_a_hundredth() {
        for Keys { flows, .. } in ROWS.iter().filter(|keys| keys.single.is_some()) {
            let [short, long] = [WINDOW, LONG].map(|(from, to)| fluid(*flows, KMAX).scatter(to - from));
            assert!(short > 0.03 && long < 0.0115, "{flows}: {short} and {long}");
        }
    }

    #[test]
    fn one_starved_flow_of_many_is_what_is_judged() {
        assert!((farthest_from_one(&[1.02, 1.02, 0.94, 1.02]) - 6.0).abs() < 1e-9);
        assert!(farthest_from_one(&[1.0, f64::NAN, 1.0]).is_nan());
    }
}
