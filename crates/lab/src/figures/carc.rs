//! Figures of "Cache-Aware I/O Rate Control for RDMA" (Li et al., APNet 2025).

use super::bench::{Bench, CARC_CONNECTIONS, CARC_IDLE, CARC_LONG, CARC_SHORT};
use super::plot::Plot;
use super::statistics::ratios;
use super::{FigureError, Measured};
use crate::results::{Results, RpcResult};
use roci_machine::{Geometry, Machine, MachineConfig};
use roci_units::{Instant, Span};

/// Credits of a connection of each table.
const CARC: [(&str, &str); 2] = [("traffic.0.credits", "loosened"), ("traffic.1.credits", "loosened")];
/// hostCC with the law that it was made for.
const HOSTCC: [(&str, &str); 2] = [("machine.hostcc", "true"), ("transport.control.law", "dctcp")];

/// The table of requests called `name`.
///
/// # Panics
/// When there is none: scenarios of figures are part of this program.
fn of<'a>(results: &'a Results, name: &str) -> &'a RpcResult {
    let found = results.rpcs.iter().find(|it| results.traffic[it.table].name == name);
    found.expect("a table of requests")
}

/// The mean time of a request, in µs.
fn time(it: &RpcResult) -> f64 {
    it.times.mean().map_or(f64::NAN, |mean| mean.as_secs_f64() * 1e6)
}

/// The time that `percent` of the requests do not exceed, in µs.
fn percentile(it: &RpcResult, percent: u32) -> f64 {
    it.times.percentile(percent).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
}

/// Lines that came from memory, in percent of those that were read.
fn misses(it: &RpcResult) -> f64 {
    it.miss_share().map_or(f64::NAN, |share| 100.0 * share)
}

/// Requests per second, in millions.
fn millions(it: &RpcResult) -> f64 {
    it.per_second().map_or(f64::NAN, |rate| rate / 1e6)
}

fn each(runs: &[Results], name: &str, value: impl Fn(&RpcResult) -> f64) -> Vec<f64> {
    runs.iter().map(|run| value(of(run, name))).collect()
}

/// Figure 2: long requests to more and more threads, each with one connection.
pub(super) fn connections(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    const COUNTS: [&str; 4] = ["1", "2", "4", "8"];
    let mut measured = Measured::default();
    let mut plot = Plot::new("Goodput of a core", "connections", "Gb/s");
    for (name, with, falls, first, last) in [
        ("plain", &[][..], "plain_falls", "plain_one", "plain_eight"),
        ("hostCC", &HOSTCC[..], "hostcc_falls", "hostcc_one", "hostcc_eight"),
    ] {
        let mut line = Vec::new();
        let mut cores: Vec<Vec<f64>> = Vec::new();
        for count in COUNTS {
            let set = [("traffic.0.threads", count), ("traffic.0.connections", count)];
            let runs = bench.run(CARC_CONNECTIONS, &[with, &set].concat())?;
            // One request after the other on each core.
            let core = each(&runs, "long", |it| 7.9e6 * 8e-3 / time(it));
            line.push((count.parse().unwrap_or(f64::NAN), core[0]));
            cores.push(core);
            if count == "8" && name == "plain" {
                measured.add("misses", each(&runs, "long", misses));
            }
        }
        measured.add(first, cores[0].clone());
        measured.add(last, cores[3].clone());
        measured.add(falls, ratios(&cores[0], &cores[3]));
        plot = plot.line(name, line);
    }
    measured.plots.push(plot);
    Ok(measured)
}

/// Figure 3: eight buffers, two lines for I/O and three others.
pub(super) fn toy(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let io_ways = if bench.ablation().is_empty() { 2 } else { 8 };
    let cache = Geometry { sets: 1, ways: io_ways + if io_ways == 2 { 3 } else { 0 }, io_ways };
    let mut machine = Machine::new(MachineConfig { cache, ..MachineConfig::default() });
    let first = machine.allocate(8 * 64).expect("room for eight lines");
    let now = Instant::ZERO;
    let dma = |machine: &mut Machine, buffers: std::ops::Range<u32>| {
        for buffer in buffers {
            machine.dma_write(now, first + buffer, 64);
        }
    };
    let read = |machine: &mut Machine, buffers: std::ops::Range<u32>| {
        let missed = buffers.filter(|buffer| {
            let mut work = machine.work(now, 0);
            let missed = work.read_first(first + buffer);
            work.done();
            missed
        });
        count(missed.count() as u64)
    };
    let mut measured = Measured::default();
    let seeds = bench.seeds().len();
    let mut add = |key, value| measured.add(key, vec![value; seeds]);
    dma(&mut machine, 0..8);
    add("one_evicts", count(machine.counters().nic_evictions));
    add("two_misses", read(&mut machine, 0..4));
    add("two_evicts", count(machine.counters().cpu_evictions));
    let before = machine.counters();
    dma(&mut machine, 0..4);
    add("three_hits", count(machine.counters().dma_hits - before.dma_hits));
    add("three_evicts", count(machine.counters().nic_evictions - before.nic_evictions));
    add("four_misses", read(&mut machine, 4..8));
    add("four_evicts", count(machine.counters().cpu_evictions - before.cpu_evictions));
    Ok(measured)
}

#[expect(clippy::cast_precision_loss, reason = "a printed figure has few digits")]
fn count(number: u64) -> f64 {
    number as f64
}

/// How long a server is busy with a request besides reading it, in the sweep of Figures 5a and 8a.
const PROCESSING: [&str; 6] = ["0ns", "50ns", "100ns", "150ns", "200ns", "300ns"];
/// A cache that nothing has to leave.
const NO_MISSES: (&str, &str) = ("machine.cache", "384MiB");

/// A sweep of the processing time: the rate in millions and the misses in percent, for each time and seed.
type Sweep = (Vec<Vec<f64>>, Vec<Vec<f64>>);

fn sweep(bench: &Bench<'_>, with: &[(&str, &str)]) -> Result<Sweep, FigureError> {
    let mut swept = (Vec::new(), Vec::new());
    for processing in PROCESSING {
        let set = [with, &[("traffic.0.processing", processing)]].concat();
        let runs = bench.run(CARC_SHORT, &set)?;
        swept.0.push(each(&runs, "short", millions));
        swept.1.push(each(&runs, "short", misses));
    }
    Ok(swept)
}

fn line(values: &[Vec<f64>]) -> Vec<(f64, f64)> {
    let times = PROCESSING.iter().map(|time| time.trim_end_matches("ns").parse().unwrap_or(f64::NAN));
    times.zip(values.iter().map(|seeds| seeds[0])).collect()
}

/// The place in the sweep at which the rate has fallen by 45 % or more.
fn fallen(rates: &[Vec<f64>]) -> usize {
    rates.iter().position(|rate| rate[0] <= 0.55 * rates[0][0]).unwrap_or(rates.len() - 1)
}

/// Figure 5a: short requests to all threads, which take longer and longer for each.
pub(super) fn slower(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let (rates, missed) = sweep(bench, &[])?;
    let (theory, _) = sweep(bench, &[NO_MISSES])?;
    let at = fallen(&rates);
    let mut measured = Measured::default();
    measured.add("first", rates[0].clone());
    measured.add("first_misses", missed[0].clone());
    measured.add("falls", ratios(&rates[at], &rates[0]).iter().map(|left| 100.0 * (1.0 - left)).collect());
    measured.add("misses", missed[at].clone());
    measured.add("of_theory", ratios(&rates[at], &theory[at]));
    measured
        .remarks
        .push(format!("The rate has fallen by 45 % or more at {} of processing.", PROCESSING[at]));
    measured.plots.push(
        Plot::new("Requests per second", "processing (ns)", "millions")
            .line("ours", line(&rates))
            .line("without misses", line(&theory)),
    );
    measured.plots.push(Plot::new("Lines from memory", "processing (ns)", "%").line("ours", line(&missed)));
    Ok(measured)
}

/// Figure 8a: the same with hostCC and with CARC.
pub(super) fn slower_with_credits(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let (host, host_missed) = sweep(bench, &HOSTCC)?;
    let (carc, carc_missed) = sweep(bench, &CARC[..1])?;
    let (theory, _) = sweep(bench, &[NO_MISSES])?;
    let at = fallen(&host);
    let fewer = host_missed[at].iter().zip(&carc_missed[at]).map(|(host, carc)| host - carc);
    let mut measured = Measured::default();
    measured.add("hostcc_misses", host_missed[at].clone());
    measured.add("carc_misses", carc_missed[at].clone());
    measured.add("fewer", fewer.collect());
    measured.add("faster", ratios(&carc[at], &host[at]));
    measured.add("of_theory", ratios(&carc[at], &theory[at]));
    measured.add("hostcc_of_theory", ratios(&host[at], &theory[at]));
    // Without credits and hostCC, but with few buffers a thread.
    let set = [("traffic.0.rx_ring", "256"), ("traffic.0.processing", PROCESSING[at])];
    let short = bench.run(CARC_SHORT, &set)?;
    measured.add("few_buffers", ratios(&each(&short, "short", millions), &host[at]));
    measured.remarks.push(format!("Rows are at {} of processing.", PROCESSING[at]));
    measured.plots.push(
        Plot::new("Requests per second", "processing (ns)", "millions")
            .line("hostCC", line(&host))
            .line("CARC", line(&carc))
            .line("without misses", line(&theory)),
    );
    measured.plots.push(
        Plot::new("Lines from memory", "processing (ns)", "%")
            .line("hostCC", line(&host_missed))
            .line("CARC", line(&carc_missed)),
    );
    Ok(measured)
}

/// Threads that answer long requests, in Figures 5b, 5c and 8b and Table 1.
const LONG: [&str; 4] = ["2", "4", "6", "8"];

fn mixed(bench: &Bench<'_>, threads: &str, with: &[(&str, &str)]) -> Result<Vec<Results>, FigureError> {
    bench.run(CARC_LONG, &[with, &[("traffic.1.threads", threads)]].concat())
}

/// Figures 5b and 5c: short and long requests, these to more and more threads.
pub(super) fn faster(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    // One long request, and no more: a thread that is idle for nearly all of the time.
    let alone = bench.run(CARC_LONG, &[("traffic.1.threads", "1"), ("traffic.1.count", "1")])?;
    let alone = each(&alone, "short", millions);
    let one = mixed(bench, "1", &[])?;
    let core = |runs: &[Results]| each(runs, "long", |it| 7.9e6 * 8e-3 / time(it));
    let (mut short, mut long, mut missed) = (vec![(0.0, alone[0])], vec![(1.0, core(&one)[0])], Vec::new());
    let mut measured = Measured::default();
    measured.add("alone", alone.clone());
    let mut most: Option<Vec<f64>> = None;
    for threads in LONG {
        let runs = mixed(bench, threads, &[])?;
        let at = threads.parse().unwrap_or(f64::NAN);
        let of_long = each(&runs, "long", misses);
        short.push((at, each(&runs, "short", millions)[0]));
        long.push((at, core(&runs)[0]));
        missed.push((at, of_long[0]));
        most = Some(most.map_or_else(
            || of_long.clone(),
            |most| most.iter().zip(&of_long).map(|(a, b)| a.max(*b)).collect(),
        ));
        if threads == "8" {
            let left = ratios(&each(&runs, "short", millions), &alone);
            measured.add("short_falls", left.iter().map(|left| 100.0 * (1.0 - left)).collect());
            measured.add("short_misses", each(&runs, "short", misses));
            let left = ratios(&core(&runs), &core(&one));
            measured.add("long_falls", left.iter().map(|left| 100.0 * (1.0 - left)).collect());
            measured.add("long_misses_at_eight", of_long);
        }
    }
    measured.add("long_misses", most.unwrap_or_default());
    measured.plots.push(
        Plot::new("Short requests per second", "cores with long requests", "millions").line("all", short),
    );
    measured
        .plots
        .push(Plot::new("Goodput of a core", "cores with long requests", "Gb/s").line("long", long));
    measured.plots.push(Plot::new("Lines from memory", "cores with long requests", "%").line("long", missed));
    Ok(measured)
}

/// Figure 7: one connection with credits for a fraction of a round trip.
pub(super) fn idle(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    /// Four links of 25 µs.
    const ROUND_TRIP: Span = Span::from_micros(100);
    let longest = |it: &RpcResult| it.idle.longest.as_secs_f64() / ROUND_TRIP.as_secs_f64();
    let share = |it: &RpcResult| it.idle_share().map_or(f64::NAN, |share| 100.0 * share);
    let basic = bench.control(CARC_IDLE, &[("traffic.0.credits", "basic")])?;
    let loosened = bench.run(CARC_IDLE, &[])?;
    let mut measured = Measured::default();
    measured.add("basic_longest", each(&basic, "one", longest));
    measured.add("basic_idle", each(&basic, "one", share));
    measured.add("loosened_longest", each(&loosened, "one", longest));
    measured.add("loosened_idle", each(&loosened, "one", share));
    measured.add("loosened_misses", each(&loosened, "one", misses));
    measured.add("faster", ratios(&each(&loosened, "one", millions), &each(&basic, "one", millions)));
    Ok(measured)
}

/// Figure 8b and Table 1: long requests beside short ones, with hostCC and with CARC.
pub(super) fn table(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let mut plot = Plot::new("Completion of a long request, median", "cores with long requests", "µs");
    let (mut host, mut carc) = (Vec::new(), Vec::new());
    let (mut most, mut fewer) = (Vec::new(), Vec::<f64>::new());
    for (threads, p50, p99, hostcc, credits) in [
        ("2", "p50_2", "p99_2", "hostcc_2", "carc_2"),
        ("4", "p50_4", "p99_4", "hostcc_4", "carc_4"),
        ("6", "p50_6", "p99_6", "hostcc_6", "carc_6"),
        ("8", "p50_8", "p99_8", "hostcc_8", "carc_8"),
    ] {
        let [with_host, with_carc] = [&HOSTCC, &CARC].map(|with| mixed(bench, threads, with));
        let [with_host, with_carc] = [with_host?, with_carc?];
        let at = |percent| move |it: &RpcResult| percentile(it, percent);
        let medians = [&with_host, &with_carc].map(|runs| each(runs, "long", at(50)));
        measured.add(hostcc, medians[0].clone());
        measured.add(credits, medians[1].clone());
        measured.add(p50, ratios(&medians[0], &medians[1]));
        measured.add(p99, ratios(&each(&with_host, "long", at(99)), &each(&with_carc, "long", at(99))));
        let rate = ratios(&each(&with_host, "long", time), &each(&with_carc, "long", time));
        let missed = [&with_host, &with_carc].map(|runs| each(runs, "long", misses));
        let saved = missed[0].iter().zip(&missed[1]).map(|(host, carc)| host - carc);
        let place = threads.parse().unwrap_or(f64::NAN);
        host.push((place, medians[0][0]));
        carc.push((place, medians[1][0]));
        most = if most.is_empty() { rate } else { most.iter().zip(&rate).map(|(a, b)| a.max(*b)).collect() };
        fewer = if fewer.is_empty() {
            saved.collect()
        } else {
            fewer.iter().zip(saved).map(|(a, b)| a.max(b)).collect()
        };
    }
    measured.add("faster", most);
    measured.add("fewer", fewer);
    let session = [("traffic.0.credits", "session"), ("traffic.1.credits", "session")];
    let session = mixed(bench, "4", &[&HOSTCC[..], &session].concat())?;
    measured.add("session_4", each(&session, "long", |it| percentile(it, 50)));
    plot = plot.line("hostCC", host).line("CARC", carc);
    measured.plots.push(plot);
    Ok(measured)
}
