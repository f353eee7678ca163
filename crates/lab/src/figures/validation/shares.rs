//! Shares against their closed form.
//!
//! PFC alone shares by port: of the receiver's rate C each of L leaves gets C/L, and each of the k senders of a leaf
//! C/(L·k). DCQCN shares by flow: each of n flows gets C/n. ETS shares by priority, as its percentages say. In goodput all are times
//! the MTU over the octets that its packet takes on the wire.

use super::super::bench::{Bench, ETS, FIXED_POINT, SHARES};
use super::super::trace::Trace;
use super::super::{FigureError, Measured};
use crate::results::Results;
use crate::results::statistics::jain;
use roci_wire::ethernet::WIRE_OVERHEAD;
use roci_wire::{IpVersion, Layout, Opcode};

/// Senders of each leaf, as in the scenario.
const LEAVES: [usize; 4] = [1, 2, 3, 6];
/// Shares of the parking lot are averaged from here to the end, in seconds.
const PARKED: (f64, f64) = (0.01, 0.04);
/// Shares under DCQCN are averaged over this time, in seconds: long against its oscillations.
const SHARED: (f64, f64) = (0.1, 0.4);
/// The link that DCQCN's flows share, in Gb/s, as in the scenario.
const LINK: f64 = 40.0;
/// Shares by priority are averaged from when both have packets waiting, in seconds.
const TURNS: (f64, f64) = (0.002, 0.01);
/// The link that two priorities share, in Gb/s, as in the scenario.
const SHARED_LINK: f64 = 25.0;

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let parked = bench.run(SHARES, &[])?;
    measured.each("parked", &parked, |results| {
        let closed =
            LEAVES.iter().flat_map(|senders| std::iter::repeat_n(10.0 / 4.0 / *senders as f64, *senders));
        let closed: Vec<f64> = closed.map(|share| share * payload_share(MTU)).collect();
        let deviation = |trace: &Trace<'_>| {
            // Hosts h1 to h12 stand behind the leaves in this order.
            let expected = closed[usize::from(trace.flow.src) - 1];
            (trace.goodput(PARKED.0, PARKED.1) / expected - 1.0).abs() * 100.0
        };
        Trace::all(results).iter().map(deviation).fold(0.0, f64::max)
    });
    measured.each("parked_drops", &parked, super::super::trace::drops);
    for (deviation, index, flows) in [
        ("two", "two_jain", 2u32),
        ("four", "four_jain", 4),
        ("eight", "eight_jain", 8),
        ("sixteen", "sixteen_jain", 16),
    ] {
        let runs = bench.run(
            FIXED_POINT,
            &[
                ("stop", "400ms"),
                ("traffic.0.senders", &flows.to_string()),
                ("switch.ecn", "{ kmin = \"5KB\", kmax = \"200KB\", pmax = 0.01 }"),
                ("transport.control", "{ law = \"dcqcn\", preset = \"sigcomm15\" }"),
                ("measure.sample", "1ms"),
            ],
        )?;
        let shares = |results: &Results| -> Vec<f64> {
            Trace::all(results).iter().map(|trace| trace.goodput(SHARED.0, SHARED.1)).collect()
        };
        measured.each(deviation, &runs, |results| {
            let expected = LINK * payload_share(MTU) / f64::from(flows);
            shares(results)
                .into_iter()
                .map(|share| (share / expected - 1.0).abs() * 100.0)
                .fold(0.0, f64::max)
        });
        measured.each(index, &runs, |results| jain(&shares(results)).unwrap_or(f64::NAN));
    }
    for (key, percent, mtus) in [
        ("ets_even", [50, 50], [1_024, 1_024]),
        ("ets_more", [60, 40], [4_096, 4_096]),
        ("ets_most", [90, 10], [1_024, 1_024]),
        ("ets_mixed", [60, 40], [64, 4_096]),
    ] {
        let (of_first, of_second) = (mtus[0].to_string(), mtus[1].to_string());
        let shares = format!("{{ 3 = {}, 0 = {} }}", percent[0], percent[1]);
        let set = [("switch.ets", &*shares), ("nic.on.0.mtu", &of_first), ("nic.on.1.mtu", &of_second)];
        let runs = bench.run(ETS, &set)?;
        measured.each(key, &runs, |results| {
            let off = Trace::all(results).into_iter().zip(percent.into_iter().zip(mtus)).map(
                |(trace, (percent, mtu))| {
                    let expected = SHARED_LINK * f64::from(percent) / 100.0 * payload_share(mtu);
                    (trace.goodput(TURNS.0, TURNS.1) / expected - 1.0).abs() * 100.0
                },
            );
            off.fold(0.0, f64::max)
        });
    }
    Ok(measured)
}

/// The MTU of the other scenarios.
const MTU: u16 = 1_024;

/// The share of payload in the octets that a full packet of a long WRITE takes on the wire.
fn payload_share(mtu: u16) -> f64 {
    let frame = roci_wire::frame_len(Opcode::WRITE_MIDDLE, Layout::Standard, IpVersion::V4, mtu);
    f64::from(mtu) / (f64::from(frame) + f64::from(WIRE_OVERHEAD))
}
