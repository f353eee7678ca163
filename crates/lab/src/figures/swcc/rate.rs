//! Throughput against packet size (Figures 10 and 11c), and the clock that the cores need (Figure 11d).

use super::super::bench::{Bench, SWCC_RATE};
use super::super::plot::Plot;
use super::super::statistics::ratios;
use super::super::{FigureError, Measured};
use super::PACED;
use super::budget::packet_time;
use super::cycles::Events;
use crate::nic::load;
use crate::output::digits::float;
use crate::results::Results;
use roci_nic::arch::spec::Time;
use roci_wire::ethernet::WIRE_OVERHEAD;
use roci_wire::{IpVersion, Layout, Opcode, frame_len};

/// Octets of payload of a packet.
const SIZES: [u16; 7] = [64, 128, 256, 512, 1024, 2048, 4096];
/// The share of the wire from which on a NIC is at line rate.
const LINE_RATE: f64 = 97.0;

/// Messages to the second host that were acknowledged, each of one packet. Where a program hears of data, no more than that
/// host's cores have dealt with: what comes when too many wait for a core is acknowledged without it.
fn packets(results: &Results, payload: u16) -> u64 {
    let to_it = results.flows.iter().filter(|flow| flow.dst == 1);
    let packets = to_it.map(|flow| flow.delivered).sum::<u64>() / u64::from(payload);
    let cores = |host: usize| results.hosts[host].nic.as_deref().map(|nic| nic.cores).unwrap_or_default();
    if cores(0).sends > 0 { packets.min(cores(1).receives) } else { packets }
}

fn packets_per_second(results: &Results, payload: u16) -> f64 {
    float(packets(results, payload)) / results.simulated.as_secs_f64()
}

/// Frames, in Gb/s.
fn frame_gbps(results: &Results, payload: u16) -> f64 {
    packets_per_second(results, payload) * f64::from(frame(payload)) * 8e-9
}

/// Payload, in Gb/s.
fn goodput_gbps(results: &Results, payload: u16) -> f64 {
    packets_per_second(results, payload) * f64::from(payload) * 8e-9
}

/// What the frames with preamble and gap take of a link of so many Gb/s, in percent.
fn wire_share(results: &Results, payload: u16, gbps: f64) -> f64 {
    packets_per_second(results, payload) * f64::from(frame(payload) + WIRE_OVERHEAD) * 8e-9 / gbps * 100.0
}

/// Octets of the frame of a WRITE in one packet.
fn frame(payload: u16) -> u32 {
    frame_len(Opcode::WRITE_ONLY, Layout::Standard, IpVersion::V4, payload)
}

/// A NIC by what its line is called, and what sets it up.
type Kind = (&'static str, &'static [(&'static str, &'static str)]);

const SWCC: [(&str, &str); 2] = [("nic.model", "swcc"), ("transport.control", PACED)];

/// SwCC with so many pairs of cores, and packets in line for each.
macro_rules! pairs {
    ($pairs:literal, $turns:literal) => {
        &[SWCC[0], SWCC[1], ("nic.with.cores.pairs", $pairs), ("nic.with.send.turns", $turns)]
    };
}

const KINDS: [Kind; 9] = [
    ("SwCC-1", pairs!("1", "4")),
    ("SwCC-2", pairs!("2", "8")),
    ("SwCC-4", pairs!("4", "16")),
    ("SwCC-8", pairs!("8", "32")),
    ("RoCE-1", &[("nic.model", "cx5"), ("nic.with.units.count", "1"), ("traffic.0.qps", "1")]),
    ("RoCE-8", &[("nic.model", "cx5")]),
    ("Soft-RoCE-24", &[("nic.model", "soft-roce"), ("stop", "3ms")]),
    ("BF3", &[("nic.model", "bluefield3")]),
    ("RDMA-HLS", &[("nic.model", "hdl"), ("transport.control", "{ law = \"none\" }")]),
];

/// WRITEs both ways, so that both cores of a pair have work.
const BOTH_WAYS: (&str, &str) = ("traffic.0.pairs", r#"[["h0", "h1"], ["h1", "h0"]]"#);

/// One core of each pair for both sides, in place of two.
const SHARED: (&str, &str) = ("nic.with.cores.shared", "true");
/// A load and a store for each word of context and header, in place of registers that hardware fills.
const WORDS: (&str, &str) = ("nic.with.cores.word", "4");

/// Runs of one kind of NIC, by packet size.
struct Sweep {
    points: Vec<(u16, Vec<Results>)>,
}

impl Sweep {
    /// Messages of one packet each.
    fn run(bench: &Bench<'_>, sizes: &[u16], set: &[(&str, &str)]) -> Result<Self, FigureError> {
        Self::of_messages(bench, sizes, None, set)
    }

    /// Messages of `message`, or of one packet each.
    fn of_messages(
        bench: &Bench<'_>,
        sizes: &[u16],
        message: Option<&str>,
        set: &[(&str, &str)],
    ) -> Result<Self, FigureError> {
        let mut points = Vec::new();
        for &size in sizes {
            let (octets, mtu) = (format!("{size}B"), size.to_string());
            let message = match message {
                Some(message) => [("traffic.0.message", message), ("nic.mtu", mtu.as_str())].to_vec(),
                None => [("traffic.0.message", octets.as_str())].to_vec(),
            };
            let set: Vec<_> = set.iter().copied().chain(message).collect();
            points.push((size, bench.run(SWCC_RATE, &set)?));
        }
        Ok(Self { points })
    }

    /// Of packets of `size`, for each seed.
    fn at(&self, size: u16, value: impl Fn(&Results) -> f64) -> Vec<f64> {
        let found = self.points.iter().find(|point| point.0 == size);
        found.map_or(Vec::new(), |(_, runs)| runs.iter().map(value).collect())
    }

    fn frames(&self, size: u16) -> Vec<f64> {
        self.at(size, |run| frame_gbps(run, size))
    }

    fn goodputs(&self, size: u16) -> Vec<f64> {
        self.at(size, |run| goodput_gbps(run, size))
    }

    fn share(&self, size: u16) -> Vec<f64> {
        self.at(size, |run| wire_share(run, size, 100.0))
    }

    /// The smallest size of the sweep from which on each seed is at line rate; 0 where there is none.
    fn line_rate_from(&self) -> Vec<f64> {
        let seeds = self.points.first().map_or(0, |(_, runs)| runs.len());
        let from = |seed: usize| {
            let at_line = |&&(size, ref runs): &&(u16, Vec<Results>)| {
                runs.get(seed).is_some_and(|run| wire_share(run, size, 100.0) >= LINE_RATE)
            };
            self.points.iter().rev().take_while(at_line).last().map_or(0.0, |(size, _)| f64::from(*size))
        };
        (0..seeds).map(from).collect()
    }

    fn line(&self) -> Vec<(f64, f64)> {
        self.line_of(frame_gbps)
    }

    /// What `value` reads from the first seed.
    fn line_of(&self, value: fn(&Results, u16) -> f64) -> Vec<(f64, f64)> {
        let first = |(size, runs): &(u16, Vec<Results>)| {
            runs.first().map(|run| (f64::from(*size), value(run, *size)))
        };
        self.points.iter().filter_map(first).collect()
    }
}

/// Figure 10.
pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut sweeps = Vec::new();
    let mut plot = Plot::new("Throughput of WRITEs", "octets of payload", "frames (Gb/s)");
    for (name, set) in KINDS {
        let sweep = Sweep::run(bench, &SIZES, set)?;
        plot = plot.line(name, sweep.line());
        sweeps.push(sweep);
    }
    let of = |name: &str| &sweeps[KINDS.iter().position(|kind| kind.0 == name).expect("a kind")];
    let mut measured = Measured::default();
    measured.plots.push(plot);
    measured.add("swcc8_512", of("SwCC-8").share(512));
    measured.add("roce8_512", of("RoCE-8").share(512));
    for (name, key) in [
        ("SwCC-1", "swcc1_line"),
        ("SwCC-2", "swcc2_line"),
        ("SwCC-4", "swcc4_line"),
        ("SwCC-8", "swcc8_line"),
        ("RoCE-8", "roce8_line"),
    ] {
        measured.add(key, of(name).line_rate_from());
    }
    for (size, key) in [(64, "ratio_64"), (256, "ratio_256"), (512, "ratio_512")] {
        measured.add(key, ratios(&of("SwCC-1").frames(size), &of("RoCE-1").frames(size)));
    }
    // One mechanism taken away by itself, the other in place.
    let without = |off: (&'static str, &'static str), ways: Option<(&'static str, &'static str)>| {
        let set: Vec<_> = KINDS[0].1.iter().copied().chain(ways).chain([off]).collect();
        let runs = bench.control(SWCC_RATE, &[&set[..], &[("traffic.0.message", "64B")]].concat())?;
        Ok::<Vec<f64>, FigureError>(runs.iter().map(|run| frame_gbps(run, 64)).collect())
    };
    let unit = bench.control(SWCC_RATE, &[KINDS[4].1, &[("traffic.0.message", "64B")]].concat())?;
    let unit: Vec<f64> = unit.iter().map(|run| frame_gbps(run, 64)).collect();
    measured.add("shared_64", ratios(&without(SHARED, None)?, &unit));
    measured.add("shared_both", ratios(&without(SHARED, Some(BOTH_WAYS))?, &without(SHARED, None)?));
    measured.add("words_64", ratios(&without(WORDS, None)?, &unit));
    let both_ways = |name: &str| {
        let set = KINDS.iter().find(|kind| kind.0 == name).map_or(&[][..], |kind| kind.1);
        let set: Vec<_> = set.iter().copied().chain([BOTH_WAYS]).collect();
        Ok::<_, FigureError>(Sweep::run(bench, &[64], &set)?.frames(64))
    };
    let (pair, unit) = (both_ways("SwCC-1")?, both_ways("RoCE-1")?);
    measured.add("both_ways", ratios(&pair, &of("SwCC-1").frames(64)));
    measured.add("both_ratio", ratios(&pair, &unit));
    measured.add("soft_4k", of("Soft-RoCE-24").frames(4096));
    let halves = |key, a: &str, b: &str, measured: &mut Measured| {
        measured.add(key, ratios(&of(a).frames(256), &of(b).frames(256)));
    };
    halves("bf3", "BF3", "RoCE-8", &mut measured);
    halves("hls", "RDMA-HLS", "SwCC-8", &mut measured);
    measured.remarks.push(format!(
        "A packet costs one pair of cores {:.1} ns in the mean at 64 B.",
        1e9 / packets_per_second(&of("SwCC-1").points[0].1[0], 64)
    ));
    Ok(measured)
}

/// Figure 11c: one pair of cores, a hundred thousand flows, messages of 1 KB (§5.4).
pub(in super::super) fn memory(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    const SIZES: [u16; 4] = [64, 128, 256, 1024];
    let many = |model, message: Option<&'static str>| {
        let set = [
            ("nic.model", model),
            SWCC[1],
            ("nic.with.cores.pairs", "1"),
            ("nic.with.send.turns", "4"),
            ("traffic.0.qps", "100000"),
            ("traffic.0.depth", "1"),
            ("stop", "2ms"),
        ];
        Sweep::of_messages(bench, &SIZES, message, &set)
    };
    let both = |message| Ok::<_, FigureError>((many("swcc-naive", message)?, many("swcc", message)?));
    let (naive, aware) = both(Some("1KiB"))?;
    let mut measured = Measured::default();
    let mut shares = |naive: &Sweep, aware: &Sweep, rows: &[(u16, &'static str)]| {
        for &(size, key) in rows {
            let shares = ratios(&naive.goodputs(size), &aware.goodputs(size));
            measured.add(key, shares.iter().map(|share| share * 100.0).collect());
        }
    };
    shares(&naive, &aware, &[(64, "share_64"), (128, "share_128"), (256, "share_256"), (1024, "share_1k")]);
    let single = both(None)?;
    shares(&single.0, &single.1, &[(64, "single_64")]);
    measured.add("naive_64", naive.goodputs(64));
    measured.add("aware_64", aware.goodputs(64));
    measured.plots.push(
        Plot::new("One pair of cores, 100 000 flows", "octets of payload", "goodput (Gb/s)")
            .line("naive cache", naive.line_of(goodput_gbps))
            .line("QP-aware", aware.line_of(goodput_gbps)),
    );
    Ok(measured)
}

/// Link rates of Figure 11d, in Gb/s, with the keys of its rows.
const LINKS: [(u32, [&str; 3]); 4] = [
    (100, ["naive_100", "aware_100", "ratio_100"]),
    (200, ["naive_200", "aware_200", "ratio_200"]),
    (400, ["naive_400", "aware_400", "ratio_400"]),
    (800, ["naive_800", "aware_800", "ratio_800"]),
];

/// Figure 11d: the clock that one queue pair's cores need for line rate.
pub(in super::super) fn clock(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let mut lines = [Vec::new(), Vec::new()];
    for (gbps, [naive, aware, ratio_key]) in LINKS {
        let needed = |model| needed_mhz(bench, model, gbps);
        let both = [needed("swcc-naive")?, needed("swcc")?];
        for (line, value) in lines.iter_mut().zip(&both) {
            line.push((f64::from(gbps), value[0]));
        }
        measured.add(ratio_key, ratios(&both[0], &both[1]));
        let [first, second] = both;
        measured.add(naive, first);
        measured.add(aware, second);
    }
    // One core alone: the receiver's, and the sender's where DCQCN paces.
    let alone = |cycles: fn(&Events) -> f64, keys: [&'static str; 3], measured: &mut Measured| {
        let [naive, aware] = ["swcc-naive", "swcc"].map(|model| core_ghz(model, cycles, 800));
        for (key, value) in keys.into_iter().zip([naive, aware, naive / aware]) {
            measured.add(key, vec![value; bench.seeds().len()]);
        }
    };
    alone(|events| events.data, ["naive_data", "aware_data", "ratio_data"], &mut measured);
    alone(|events| events.paced, ["naive_paced", "aware_paced", "ratio_paced"], &mut measured);
    let [naive, aware] = lines;
    measured.plots.push(
        Plot::new("Clock for line rate with one queue pair", "link (Gb/s)", "GHz")
            .line("naive cache", naive)
            .line("QP-aware", aware),
    );
    Ok(measured)
}

/// The lowest clock in GHz, to 20 MHz, with which packets of 1 KB of one queue pair take the whole link, for each seed.
fn needed_mhz(bench: &Bench<'_>, model: &str, gbps: u32) -> Result<Vec<f64>, FigureError> {
    let rate = format!("{gbps}Gb/s");
    let (mut low, mut high) = (100u32, 32_000u32);
    while high - low > 20 {
        let middle = u32::midpoint(low, high);
        let clock = format!("{middle}MHz");
        let run = |stop| {
            let set = [
                ("nic.model", model),
                SWCC[1],
                ("nic.with.cores.pairs", "1"),
                ("nic.with.clock", clock.as_str()),
                ("topology.rate", rate.as_str()),
                ("traffic.0.qps", "1"),
                ("traffic.0.depth", "2000"),
                ("traffic.0.message", "1KiB"),
                ("stop", stop),
                // An ASIC around them with the same clock, which holds nothing up.
                ("nic.with.pcie.rate", "unlimited"),
                ("nic.with.send.buffer", "1MiB"),
                ("nic.with.receive.fifo", "unlimited"),
                ("switch.buffer", "64MB"),
            ];
            bench.run(SWCC_RATE, &set)
        };
        // The same run cut off early and late: what comes between is what a full pipe carries.
        let (early, late) = (run("30us")?, run("100us")?);
        let enough =
            early.iter().zip(&late).all(|(early, late)| share_between(early, late, gbps) >= LINE_RATE);
        if enough { high = middle } else { low = middle }
    }
    Ok(vec![f64::from(high) / 1e3; bench.seeds().len()])
}

/// The clock in GHz with which one core alone keeps up with packets of 1 KB: the cycles of an event, and those until its
/// context is loaded, in the time that a packet takes.
fn core_ghz(model: &str, cycles: fn(&Events) -> f64, gbps: u64) -> f64 {
    let cores = load(model).expect("a preset").cores;
    let Time::Cycles(before) = cores.load else { unreachable!("its cores load in cycles") };
    let cycles = cycles(&Events::on(model)) + f64::from(before);
    cycles / packet_time(gbps, 1024).as_secs_f64() * 1e-9
}

/// What acknowledged packets of 1 KB took of the link, in percent, from the end of the run `early` to that of `late`.
fn share_between(early: &Results, late: &Results, gbps: u32) -> f64 {
    let packets = packets(late, 1024) - packets(early, 1024);
    let seconds = late.simulated.as_secs_f64() - early.simulated.as_secs_f64();
    float(packets) / seconds * f64::from(frame(1024) + WIRE_OVERHEAD) * 8e-9 / f64::from(gbps) * 100.0
}
