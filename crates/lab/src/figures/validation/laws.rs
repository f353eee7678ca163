//! HPCC, PowerTCP, DCTCP, Swift and TIMELY against what their papers compute or promise of the queue.

use super::super::bench::{Bench, LAWS};
use super::super::statistics::mean;
use super::super::trace::{Trace, mean_of_steps, queue};
use super::super::{FigureError, Measured};
use crate::results::Results;

/// From here to the end all is measured, in seconds: the laws have settled.
const SETTLED: f64 = 0.01;
/// The end of HPCC's run, in seconds, as in the scenario.
const END: f64 = 0.04;
/// The same, for TIMELY: it begins far off, and 10 Mb/s for each segment of 16 KB take it to a fair share in some
/// 10 ms at best and, from its least rate, in 80 ms.
const LONG_SETTLED: f64 = 0.1;
/// The end of the runs with round trips of 50 µs and more.
const LONG_END: f64 = 0.2;

/// Octets of a full packet in a switch's queue: payload, headers and frame check sequence.
const PACKET: f64 = 1024.0 + 62.0;
/// The same on the wire, with preamble and gap.
const WIRE: f64 = PACKET + 20.0;

/// The links' rates in Gb/s: HPCC's, as in the scenario, and that of the other laws.
const HPCC_RATE: f64 = 100.0;
const SLOW_RATE: f64 = 10.0;

/// PowerTCP's queue comes to rest at the β of all flows. Each is a tenth of what the link carries in the round trip without a queue. That is
/// 4 µs of wire and the times of a packet, twice, and of an acknowledgement, twice; the one more header of telemetry is left out.
const POWERTCP_BETA: f64 = 0.1 * (HPCC_RATE * 1e9 / 8.0 * 4e-6 + 2.0 * (WIRE + 86.0));

/// DCTCP's link in bits per second, its round trip without a queue in seconds, and its K in packets.
const DCTCP_RATE: f64 = 10e9;
const DCTCP_K: f64 = 40.0;
/// 100 µs of wire and the times of a packet, twice, and of an acknowledgement, twice.
const DCTCP_RTT: f64 = 100e-6 + 2.0 * (WIRE + 86.0) * 8.0 / DCTCP_RATE;
/// Swift's target, with flow scaling and hops left out, in seconds.
const SWIFT_TARGET: f64 = 50e-6;
/// TIMELY's T_low and T_high in seconds.
const TIMELY: (f64, f64) = (50e-6, 500e-6);

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let hpcc = bench.run(LAWS, &[("transport.control", "{ law = \"hpcc\", base_rtt = \"5us\" }")])?;
    measured.each("hpcc_queue", &hpcc, |results| {
        mean_of_steps(&towards_receiver(results), SETTLED, END) / PACKET
    });
    measured.each("hpcc_utilisation", &hpcc, |results| throughput(results, SETTLED, END) / HPCC_RATE * 100.0);
    for (law, queue, utilisation) in [
        ("powertcp", "powertcp_queue", "powertcp_utilisation"),
        ("theta-powertcp", "theta_queue", "theta_utilisation"),
    ] {
        let runs = bench.run(LAWS, &[("transport.control", law)])?;
        measured.each(queue, &runs, |results| {
            mean_of_steps(&towards_receiver(results), SETTLED, END) / (8.0 * POWERTCP_BETA)
        });
        measured.each(utilisation, &runs, |results| throughput(results, SETTLED, END) / HPCC_RATE * 100.0);
    }
    let two = bench.run(LAWS, &[("transport.control", "powertcp"), ("traffic.0.senders", "2")])?;
    measured.each("powertcp_two_queue", &two, |results| {
        mean_of_steps(&towards_receiver(results), SETTLED, END) / (2.0 * POWERTCP_BETA)
    });
    for (flows, top, amplitude) in
        [(2u32, "dctcp_two_top", "dctcp_two_amplitude"), (4, "dctcp_four_top", "dctcp_four_amplitude")]
    {
        let runs = dctcp(bench, flows)?;
        let flows = f64::from(flows);
        measured.each(top, &runs, |results| sawtooth(results).0 / (DCTCP_K + flows));
        // ½·√(2N(C·RTT + K)) packets.
        let bdp = DCTCP_RATE * DCTCP_RTT / (WIRE * 8.0);
        let theory = 0.5 * (2.0 * flows * (bdp + DCTCP_K)).sqrt();
        measured.each(amplitude, &runs, |results| sawtooth(results).1 / theory);
    }
    let settings = "{ law = \"swift\", base_target = \"50us\", per_hop = \"0s\", fs_range = \"0s\" }";
    let swift = bench.run(LAWS, &slow("4", settings, "5us"))?;
    measured.each("swift_delay", &swift, |results| {
        mean(&round_trips(results, SETTLED)).unwrap_or(0.0) / SWIFT_TARGET
    });
    measured.each("swift_utilisation", &swift, |results| {
        throughput(results, SETTLED, LONG_END) / SLOW_RATE * 100.0
    });
    for (beta, within, utilisation) in [
        ("0.09", "timely_within", "timely_utilisation"),
        ("0.8", "timely_coarse_within", "timely_coarse_utilisation"),
    ] {
        let settings = format!("{{ law = \"timely\", segment = \"16KB\", beta = {beta} }}");
        let runs = bench.run(LAWS, &slow("4", &settings, "5us"))?;
        measured.each(within, &runs, |results| within_band(&round_trips(results, LONG_SETTLED)));
        measured.each(utilisation, &runs, |results| {
            throughput(results, LONG_SETTLED, LONG_END) / SLOW_RATE * 100.0
        });
    }
    Ok(measured)
}

/// `senders` on 10 Gb/s links of `delay`, without marks, under `control`.
fn slow<'a>(senders: &'a str, control: &'a str, delay: &'a str) -> [(&'a str, &'a str); 6] {
    [
        ("stop", "200ms"),
        ("topology.rate", "10Gb/s"),
        ("topology.delay", delay),
        ("traffic.0.senders", senders),
        ("transport.control", control),
        ("transport.timeout", "10ms"),
    ]
}

fn dctcp(bench: &Bench<'_>, flows: u32) -> Result<Vec<Results>, FigureError> {
    // DCTCP marks a packet by the queue that it finds (§3.1). Marked by what it leaves behind, senders would hear of it
    // earlier by the time in the queue, a quarter of the round trip, and cut by as much less.
    let k = format!("{{ kmin = \"{0}B\", kmax = \"{0}B\", pmax = 1.0, at = \"enqueue\" }}", DCTCP_K * PACKET);
    let flows = flows.to_string();
    let mut set = slow(&flows, "{ law = \"dctcp\" }", "25us").to_vec();
    set.push(("switch.ecn", k.as_str()));
    bench.run(LAWS, &set)
}

/// The queue before the receiver.
fn towards_receiver(results: &Results) -> Vec<(f64, f64)> {
    let names = results.series.queue_names();
    let name = names.iter().find(|name| name.contains(">h0:")).expect("the receiver has a port");
    queue(results, name)
}

/// What all senders put on the wire from `from` to `to`, in Gb/s.
fn throughput(results: &Results, from: f64, to: f64) -> f64 {
    Trace::all(results).iter().map(|trace| trace.throughput(from, to)).sum()
}

/// How many of these round trips lie between TIMELY's bounds, in percent.
fn within_band(all: &[f64]) -> f64 {
    let within = all.iter().filter(|rtt| (TIMELY.0..=TIMELY.1).contains(*rtt)).count();
    100.0 * within as f64 / all.len().max(1) as f64
}

/// The round trips that the laws used after `from`, in seconds.
fn round_trips(results: &Results, from: f64) -> Vec<f64> {
    let settled = |trace: Trace<'_>| {
        let readings = trace.readings.into_iter().filter(|(at, _)| *at >= from);
        readings
            .filter_map(|(_, reading)| reading.rtt_ns)
            .map(|nanos| f64::from(nanos.get()) * 1e-9)
            .collect::<Vec<_>>()
    };
    Trace::all(results).into_iter().flat_map(settled).collect()
}

/// The top of the queue's saw-tooth and its amplitude from peak to trough, in packets: the mean of the peaks, and how far
/// below it the mean of the troughs lies.
fn sawtooth(results: &Results) -> (f64, f64) {
    let (peaks, troughs) = turns(&settled(&towards_receiver(results)));
    let mean = |values: &[f64]| mean(values).unwrap_or(f64::NAN) / PACKET;
    (mean(&peaks), mean(&peaks) - mean(&troughs))
}

/// What is read between the law's settling and the end of the run.
fn settled(readings: &[(f64, f64)]) -> Vec<f64> {
    let within = readings.iter().filter(|(at, _)| (SETTLED..=LONG_END).contains(at));
    within.map(|(_, value)| *value).collect()
}

/// Where the values turn: peaks and troughs, each at least half of the whole range away from the turn before it, so that
/// the steps of single packets are none.
fn turns(values: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let (least, most) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), value| (a.min(*value), b.max(*value)));
    let swing = (most - least) / 2.0;
    let mut turns = [Vec::new(), Vec::new()];
    // The farthest value since the last turn, upwards or downwards.
    let Some(mut extreme) = values.first().copied() else { return (Vec::new(), Vec::new()) };
    let mut up = true;
    for &value in values {
        if if up { value > extreme } else { value < extreme } {
            extreme = value;
        } else if (value - extreme).abs() >= swing {
            turns[usize::from(!up)].push(extreme);
            (extreme, up) = (value, !up);
        }
    }
    let [peaks, troughs] = turns;
    (peaks, troughs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saw_tooth_turns_at_its_peaks_and_troughs_and_not_at_its_steps() {
        // Up by single packets with a step back in each tooth, then halved.
        let tooth = [20.0, 22.0, 24.0, 23.0, 26.0, 28.0, 30.0, 29.0, 32.0];
        let values: Vec<f64> = tooth.into_iter().cycle().take(9 * 5).collect();
        let (peaks, troughs) = turns(&values);
        assert_eq!((peaks, troughs), (vec![32.0; 4], vec![20.0; 4]));
        assert_eq!(turns(&[]), (vec![], vec![]));
    }
}
