//! Two senders with five flows each (Figures 12 to 14).

use super::super::bench::{Bench, SWCC_INCAST};
use super::super::plot::Plot;
use super::super::statistics::ratios;
use super::super::trace::queue;
use super::super::{FigureError, Measured};
use super::DCQCN;
use super::drain::{DRAINED, QUEUE, first_rise};
use crate::output::digits::float;
use crate::results::Results;

/// The mean time of a flow from its first post to its last completion, in µs.
fn mean_fct(results: &Results) -> f64 {
    let ends = results.flows.iter().filter_map(|flow| Some(flow.fct()?.as_secs_f64() * 1e6));
    let times: Vec<f64> = ends.collect();
    times.iter().sum::<f64>() / float(times.len() as u64)
}

/// From the top of the queue's first rise until it has drained, in µs: the first rise ends where the queue is back
/// below [`DRAINED`].
fn first_drain(results: &Results) -> f64 {
    let readings = queue(results, QUEUE);
    let Some(start) = readings.iter().position(|(_, octets)| *octets > DRAINED) else { return 0.0 };
    let rise = &readings[start..];
    let end = rise.iter().position(|(_, octets)| *octets <= DRAINED).unwrap_or(rise.len() - 1);
    let top = rise[..=end].iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(rise[0].0, |top| top.0);
    (rise[end].0 - top) * 1e6
}

fn highest(results: &Results) -> f64 {
    queue(results, QUEUE).iter().map(|reading| reading.1).fold(0.0, f64::max) / 1e3
}

/// The queue of the first seed.
fn line(runs: &[Results]) -> Vec<(f64, f64)> {
    queue(&runs[0], QUEUE).into_iter().map(|(at, octets)| (at * 1e6, octets / 1e3)).collect()
}

/// Figure 12: SwCC and a commodity NIC that halts.
pub(in super::super) fn halting(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let swcc = bench.run(SWCC_INCAST, &[("transport.control", DCQCN)])?;
    let cx5 = bench.run(SWCC_INCAST, &[("nic.model", "cx5")])?;
    let mut measured = Measured::default();
    let drains = |runs: &[Results]| runs.iter().map(first_drain).collect::<Vec<_>>();
    let fcts = |runs: &[Results]| runs.iter().map(mean_fct).collect::<Vec<_>>();
    measured.each("swcc_highest", &swcc, highest);
    measured.each("cx5_highest", &cx5, highest);
    measured.add("swcc_drain", drains(&swcc));
    measured.add("cx5_drain", drains(&cx5));
    measured.add("drain_ratio", ratios(&drains(&swcc), &drains(&cx5)));
    measured.add("swcc_fct", fcts(&swcc));
    measured.add("cx5_fct", fcts(&cx5));
    measured.add("fct_ratio", ratios(&fcts(&cx5), &fcts(&swcc)));
    measured.each("halts", &cx5, |run| {
        let halts = run.hosts.iter().filter_map(|host| host.nic.as_deref()).map(|nic| nic.halts);
        float(halts.sum())
    });
    measured.plots.push(
        Plot::new("The queue before the receiver", "time (µs)", "KB")
            .line("SwCC", line(&swcc))
            .line("cx5", line(&cx5)),
    );
    Ok(measured)
}

/// Links of 10 Gb/s on which SwCC's round trip takes 5 µs and that of Soft-RoCE, whose software takes the rest, 30; and
/// links on which SwCC's takes 30.
const NEAR: [(&str, &str); 2] = [("topology.rate", "10Gb/s"), ("topology.delay", "800ns")];
const FAR: [(&str, &str); 2] = [("topology.rate", "10Gb/s"), ("topology.delay", "7us")];
/// All messages are posted at once, so that it is the law which holds them back.
const ALL: (&str, &str) = ("traffic.0.depth", "2000");
const SOFTWARE: [(&str, &str); 2] = [("nic.model", "soft-roce"), ("nic.mtu", "4096")];

/// A part of Soft-RoCE switched off.
type Off = &'static [(&'static str, &'static str)];

/// What is switched off one at a time: nothing, the latencies that make its round trip long, its threads' time for each
/// packet and octet (with a round trip as long as before, by the links), and the timeouts.
const PARTS: [Off; 4] = [
    &[],
    &[
        ("nic.with.send.latency", "0ns"),
        ("nic.with.receive.latency", "0ns"),
        ("nic.with.pcie.read", "0ns"),
        ("nic.with.pcie.write", "0ns"),
    ],
    &[
        ("nic.with.units.send", "0ns"),
        ("nic.with.units.more", "0ns"),
        ("nic.with.units.receive", "0ns"),
        ("nic.with.units.copy", "0ns"),
        ("nic.with.units.jitter", "0ns"),
        ("topology.delay", "7us"),
    ],
    &[("transport.timeout", "0s")],
];

/// A law as its program in C on the NIC's cores: what it is told where the round trip takes 5 µs and where it takes 30; the
/// same in Rust, which takes the cores as long for each event; and the keys of the rows: the drains on SwCC by the round
/// trip, their ratio, and that of the law in Rust; those of Soft-RoCE and of it without its latencies, each over the first;
/// the time of a flow, what it is over that with the longer round trip, on Soft-RoCE, and there with each part off, and the
/// timeouts there.
struct Kind {
    name: &'static str,
    program: [&'static str; 2],
    native: [&'static str; 2],
    /// Until when the queue is looked at: later than it drains, and early enough that a series with all words of the
    /// program's context has room for a reading each microsecond.
    watched: &'static str,
    keys: [&'static str; 13],
}

/// The keys of a law's rows.
macro_rules! keys {
    ($law:literal) => {
        [
            concat!($law, "_drain"),
            concat!($law, "_slow_drain"),
            concat!($law, "_ratio"),
            concat!($law, "_native_ratio"),
            concat!($law, "_soft_drain"),
            concat!($law, "_near_drain"),
            concat!($law, "_fct"),
            concat!($law, "_slow_fct"),
            concat!($law, "_soft_fct"),
            concat!($law, "_near_fct"),
            concat!($law, "_free_fct"),
            concat!($law, "_patient_fct"),
            concat!($law, "_timeouts"),
        ]
    };
}

/// What depends on the round trip is set by it (SwCC §5.1); TIMELY's thresholds in proportion, for the paper is silent. Each
/// acknowledgement is an event of TIMELY's (SwCC Table 3), not one in 64 KB, and its flows begin at the link's rate, as those
/// of the other laws do.
const LAWS: [Kind; 3] = [
    Kind {
        name: "TIMELY",
        program: [
            "{ law = \"program\", elf = \"firmware/timely.elf\", context = { first_den = 1, segment = 1, min_rtt = \"5us\", t_low = \"12500ns\", t_high = \"125us\" } }",
            "{ law = \"program\", elf = \"firmware/timely.elf\", context = { first_den = 1, segment = 1, min_rtt = \"30us\", t_low = \"75us\", t_high = \"750us\" } }",
        ],
        native: [
            "{ law = \"timely\", first_rate = 1, segment = \"1B\", min_rtt = \"5us\", t_low = \"12500ns\", t_high = \"125us\" }",
            "{ law = \"timely\", first_rate = 1, segment = \"1B\", min_rtt = \"30us\", t_low = \"75us\", t_high = \"750us\" }",
        ],
        watched: "3ms",
        keys: keys!("timely"),
    },
    Kind {
        name: "DCQCN",
        program: [DCQCN; 2],
        native: ["{ law = \"dcqcn\" }"; 2],
        watched: "3ms",
        keys: keys!("dcqcn"),
    },
    Kind {
        name: "HPCC",
        program: [
            "{ law = \"program\", elf = \"firmware/hpcc.elf\", context = { base_rtt = \"5us\" } }",
            "{ law = \"program\", elf = \"firmware/hpcc.elf\", context = { base_rtt = \"30us\" } }",
        ],
        native: ["{ law = \"hpcc\", base_rtt = \"5us\" }", "{ law = \"hpcc\", base_rtt = \"30us\" }"],
        watched: "1500us",
        keys: keys!("hpcc"),
    },
];

/// Figures 13 and 14: the longer control loop of Soft-RoCE.
pub(in super::super) fn software(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    for Kind { name, program, native, watched, keys } in LAWS {
        // The ablation makes all round trips the short one, and the laws are told of it.
        let told =
            |[soon, late]: [&'static str; 2]| [soon, if bench.ablation().is_empty() { late } else { soon }];
        let ([soon, late], [native_soon, native_late]) = (told(program), told(native));
        let run = |law, more: &[&[(&'static str, &'static str)]]| {
            let set = [&[ALL, ("transport.control", law)][..]];
            bench.run(SWCC_INCAST, &set.iter().chain(more).copied().flatten().copied().collect::<Vec<_>>())
        };
        let (near, far) = (run(soon, &[&NEAR])?, run(late, &[&FAR])?);
        let fcts = |runs: &[Results]| runs.iter().map(mean_fct).collect::<Vec<_>>();
        let part = |off| run(late, &[&SOFTWARE, &NEAR, off]);
        let [whole, close, free, patient] = PARTS;
        let (whole, close, free, patient) = (part(whole)?, part(close)?, part(free)?, part(patient)?);
        // The same runs, cut off when the queue has drained.
        let watch = |law, more: &[&[(&'static str, &'static str)]]| {
            run(law, &[more, &[&[("stop", watched)]]].concat())
        };
        let drains = |runs: &[Results]| runs.iter().map(|run| first_rise(run, QUEUE)).collect::<Vec<_>>();
        let (near_queue, far_queue) = (watch(soon, &[&NEAR])?, watch(late, &[&FAR])?);
        let soft_queue = watch(late, &[&SOFTWARE, &NEAR])?;
        let told_queue = watch(soon, &[&SOFTWARE, &NEAR, PARTS[1]])?;
        let in_rust = [watch(native_soon, &[&NEAR])?, watch(native_late, &[&FAR])?];
        let first = drains(&near_queue);
        let mut values = vec![first.clone(), drains(&far_queue), ratios(&drains(&far_queue), &first)];
        values.push(ratios(&drains(&in_rust[1]), &drains(&in_rust[0])));
        values.extend([&soft_queue, &told_queue].map(|runs| ratios(&drains(runs), &first)));
        values.extend([fcts(&near), ratios(&fcts(&far), &fcts(&near))]);
        values.extend([&whole, &close, &free, &patient].map(|runs| ratios(&fcts(runs), &fcts(&near))));
        let timeouts = |run: &Results| float(run.flows.iter().map(|flow| u64::from(flow.timeouts)).sum());
        values.push(whole.iter().map(timeouts).collect());
        keys.into_iter().zip(values).for_each(|(key, values)| measured.add(key, values));
        measured.plots.push(
            Plot::new(&format!("{name}: the queue before the receiver"), "time (µs)", "KB")
                .line("5 µs", line(&near_queue))
                .line("30 µs", line(&far_queue))
                .line("Soft-RoCE", line(&soft_queue)),
        );
    }
    Ok(measured)
}
