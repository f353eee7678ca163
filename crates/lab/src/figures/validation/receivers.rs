//! What receiver-driven transports promise: Homa's short messages hardly wait at 80 % load (Montazeri et al., SIGCOMM
//! 2018), and NDP fills a link in an incast without losing a header (Handley et al., SIGCOMM 2017).

use super::super::bench::{
    Bench, HOMA, HOMA_BUSY, HOMA_CORE, HOMA_INCAST, HOMA_OLDEST, HOMA_READS, HOMA_SENDS, HOMA_STARVED, NDP,
    NDP_CLOSED, NDP_LOSS,
};
use super::super::statistics::{count, median};
use super::super::trace::drops;
use super::super::{FigureError, Measured};
use crate::output::digits::float;
use crate::results::{FlowResult, Results};
use roci_wire::ethernet::WIRE_OVERHEAD;
use roci_wire::{IpVersion, Layout, Opcode, overhead};
use std::ops::RangeInclusive;

/// Octets of messages that count as short, of longer ones, and of long ones.
const SHORT: RangeInclusive<u64> = 0..=10_000;
const MEDIUM: RangeInclusive<u64> = 10_001..=100_000;
const LONG: RangeInclusive<u64> = 1_000_001..=u64::MAX;
/// The receiver's link in b/s, as in the scenario.
const LINK: f64 = 10e9;
/// Room for so few headers that an incast overflows it: some dozen.
const FEW_HEADERS: &str = "1KB";

pub(in super::super) fn homa(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let runs = bench.run(HOMA, &[])?;
    measured.each("median", &runs, |results| median(&slowdowns(results, &SHORT)).unwrap_or(f64::NAN));
    measured.each("tail", &runs, |results| tail(slowdowns(results, &SHORT)));
    measured.each("medium", &runs, |results| tail(slowdowns(results, &MEDIUM)));
    measured.each("long", &runs, |results| tail(slowdowns(results, &LONG)));
    measured.each("incomplete", &runs, incomplete);
    measured.each("drops", &runs, drops);
    measured.each("again", &runs, again);
    // Long enough that the load is that of the scenario and not of a few long messages that happen to be drawn.
    let settled = bench.first(HOMA, &[("traffic.0.until", "\"100ms\"")])?;
    measured.each("settled_load", &settled, offered);
    measured
        .each("settled_median", &settled, |results| median(&slowdowns(results, &SHORT)).unwrap_or(f64::NAN));
    measured.each("settled_tail", &settled, |results| tail(slowdowns(results, &SHORT)));
    sends(bench, &mut measured)?;
    reads(bench, &mut measured)?;
    busy(bench, &mut measured)?;
    oldest(bench, &mut measured)?;
    Ok(measured)
}

/// Hosts of the scenario, and the seconds for which messages begin.
const HOSTS: f64 = 32.0;
const SETTLED: f64 = 100e-3;

/// What messages bring in payload, of what the hosts' links carry while they begin, in per cent.
fn offered(results: &Results) -> f64 {
    let octets = float(results.flows.iter().map(|flow| flow.bytes).sum());
    octets * 8.0 / SETTLED / (HOSTS * LINK) * 100.0
}

/// What a message has of the link while shorter ones come without end, with the share that the oldest is owed and without.
fn oldest(bench: &Bench<'_>, measured: &mut Measured) -> Result<(), FigureError> {
    let owed = bench.run(HOMA_OLDEST, &[])?;
    measured.each("oldest_share", &owed, |results| {
        let all = results.flows.iter().map(|flow| float(flow.delivered)).sum::<f64>();
        let rate = all / results.simulated.as_secs_f64();
        // Its last megabyte goes before all others, at once.
        let time = results.flows.first().and_then(FlowResult::fct);
        let waits = time.map_or(f64::NAN, |time| time.as_secs_f64() - OTHERS / rate);
        (OLDEST - OTHERS) / (rate * waits) * 100.0
    });
    let shortest_first = bench.run(HOMA_OLDEST, &[("transport.control.oldest", "0")])?;
    measured.each("oldest_starved", &shortest_first, |results| {
        results.flows.first().map_or(f64::NAN, |flow| float(flow.delivered) / OLDEST * 100.0)
    });
    Ok(())
}

/// The oldest message's octets, as in the scenario.
const OLDEST: f64 = 4e6;
/// Those of each of the others.
const OTHERS: f64 = 1e6;

/// Messages of the busy sender to the other host, which come first among the flows.
const ELSEWHERE: usize = 8;

/// What the receiver's link does while the sender of its shorter messages is busy elsewhere, and the same where one message is granted
/// at a time, so that no other sender fills in.
fn busy(bench: &Bench<'_>, measured: &mut Measured) -> Result<(), FigureError> {
    for (overcommit, slowdown, load) in
        [("4", "busy_slowdown", "busy_load"), ("1", "lone_slowdown", "lone_load")]
    {
        let runs = bench.run(HOMA_BUSY, &[("transport.control.overcommit", overcommit)])?;
        let other = |results: &Results| results.flows.last().and_then(FlowResult::slowdown);
        measured.each(slowdown, &runs, |results| other(results).unwrap_or(f64::NAN));
        measured.each(load, &runs, |results| load_of(results.flows.iter().skip(ELSEWHERE)));
    }
    Ok(())
}

/// A window of little more than the pieces of 120 KB that a reader asks for at a time.
const NARROW: &str = "200";
/// What a reader may have asked for together, as in the scenario: four round trips' octets.
const ROOM: f64 = 160e3;

/// READs on sprayed paths, beside WRITEs of the same octets the other way; and both with a packet lost in a hundred on each link.
fn reads(bench: &Bench<'_>, measured: &mut Measured) -> Result<(), FigureError> {
    for (loss, again, incomplete_key, time) in [
        ("0", "reads_again", "reads_incomplete", "reads_time"),
        ("0.01", "reads_lost", "reads_lossy_incomplete", "reads_lossy_time"),
    ] {
        let reads = bench.run(HOMA_READS, &[("faults.loss", loss)])?;
        let writes = bench.run(HOMA_READS, &[("faults.loss", loss), ("traffic.0.op", "\"write\"")])?;
        measured.each(again, &reads, |results| self::again(results) / packets(results) * 100.0);
        measured.each(incomplete_key, &reads, incomplete);
        let ratios = reads.iter().zip(&writes).map(|(read, write)| mean_time(read) / mean_time(write));
        measured.add(time, ratios.collect());
    }
    let narrow = [("faults.loss", "0.01"), ("transport.max_in_flight", NARROW)];
    let reads = bench.run(HOMA_READS, &narrow)?;
    let writes = bench.run(HOMA_READS, &[&narrow[..], &[("traffic.0.op", "\"write\"")]].concat())?;
    let ratios = reads.iter().zip(&writes).map(|(read, write)| mean_time(read) / mean_time(write));
    measured.add("reads_narrow_time", ratios.collect());
    let core = bench.run(HOMA_CORE, &[])?;
    measured.each("core_incomplete", &core, incomplete);
    measured.each("core_drops", &core, drops);
    measured.each("core_again", &core, |results| again(results) / packets(results) * 100.0);
    let sprayed = [
        ("topology.spines", "4"),
        ("topology.fabric_rate", "\"2.5Gb/s\""),
        ("switch.routing", "\"spray\""),
        ("traffic.0.size", "\"100KB\""),
    ];
    let sprayed = bench.run(HOMA_CORE, &sprayed)?;
    measured.each("sprayed_incomplete", &sprayed, incomplete);
    measured.each("sprayed_again", &sprayed, |results| again(results) / packets(results) * 100.0);
    let deep = [("switch.buffer", "\"2GB\""), ("traffic.0.size", "\"100KB\"")];
    let core_reads = bench.run(HOMA_CORE, &deep)?;
    let writes = bench.run(HOMA_CORE, &[&deep[..], &[("traffic.0.op", "\"write\"")]].concat())?;
    measured.each("writes_incomplete", &writes, incomplete);
    measured.each("writes_again", &writes, |results| again(results) / packets(results) * 100.0);
    let ratios = writes.iter().zip(&core_reads).map(|(write, read)| mean_time(write) / mean_time(read));
    measured.add("writes_time", ratios.collect());
    let incast = bench.run(HOMA_INCAST, &[])?;
    measured.each("incast_goodput", &incast, goodput);
    measured.each("incast_buffer", &incast, |results| {
        results.switches.iter().map(|switch| float(switch.max_buffer_bytes)).fold(0.0, f64::max) / ROOM
    });
    measured.each("incast_again", &incast, again);
    let starved = bench.run(HOMA_STARVED, &[])?;
    measured.each("starved_incomplete", &starved, incomplete);
    measured.each("starved_timeouts", &starved, timeouts);
    measured.each("starved_again", &starved, |results| again(results) / timeouts(results));
    Ok(())
}

/// The mean completion time of the flows, in seconds.
fn mean_time(results: &Results) -> f64 {
    let times: Vec<f64> = results.completed().map(|flow| flow.end.as_secs_f64()).collect();
    times.iter().sum::<f64>() / count(times.len())
}

/// The place of the queue pair of short SENDs among the flows; the two before it send long ones.
const SHORTS: usize = 2;
/// Round trips that the short SENDs take alone: 3000 messages, four at a time.
const ROUNDS: f64 = 750.0;
/// What a lost packet of a long message and a lost short message wait for, as in the scenario, in seconds.
const RESEND: f64 = 500e-6;
const TIMEOUT: f64 = 5e-3;

/// Short SENDs among long ones, and the same with a packet lost in a thousand on each link.
fn sends(bench: &Bench<'_>, measured: &mut Measured) -> Result<(), FigureError> {
    let clean = bench.run(HOMA_SENDS, &[])?;
    let lossy = bench.run(HOMA_SENDS, &[("faults.loss", "0.001")])?;
    let short = |results: &Results| results.flows.get(SHORTS).and_then(FlowResult::slowdown);
    measured.each("sends_short", &clean, |results| short(results).unwrap_or(f64::NAN));
    measured.each("sends_load", &clean, load_of_long);
    // The same where the long ones are READs of the receiver's.
    let reads = [("traffic.0.op", "\"read\""), ("traffic.0.pairs", "[[\"h0\", \"h1\"], [\"h0\", \"h2\"]]")];
    let reads = bench.run(HOMA_SENDS, &reads)?;
    measured.each("sends_read_short", &reads, |results| short(results).unwrap_or(f64::NAN));
    measured.each("sends_read_load", &reads, load_of_long);
    measured.each("sends_again", &clean, again);
    measured.each("sends_incomplete", &lossy, incomplete);
    measured.each("sends_lost", &lossy, again);
    let (mut long, mut short) = (Vec::new(), Vec::new());
    for (clean, lossy) in clean.iter().zip(&lossy) {
        let mut added: Vec<_> = clean.flows.iter().zip(&lossy.flows).map(added).collect();
        let trip = clean.flows.get(SHORTS).and_then(|flow| flow.ideal);
        let trip = trip.map_or(f64::NAN, |ideal| ideal.as_secs_f64() / ROUNDS);
        let of_short = added.split_off(SHORTS.min(added.len()));
        long.push(added.into_iter().fold(0.0, f64::max) / (RESEND + trip));
        short.push(of_short.into_iter().fold(0.0, f64::max) / (TIMEOUT + trip));
    }
    measured.add("sends_long_added", long);
    measured.add("sends_short_added", short);
    Ok(())
}

/// What the long SENDs or READs take of the receiver's link, in per cent.
fn load_of_long(results: &Results) -> f64 {
    load_of(results.flows.iter().take(SHORTS))
}

/// Payload of some flows until the last of them ended, of what the receiver's link carries, in per cent.
fn load_of<'a>(flows: impl Iterator<Item = &'a FlowResult> + Clone) -> f64 {
    let last = flows.clone().map(|flow| flow.end.as_secs_f64()).fold(0.0, f64::max);
    float(flows.map(|flow| flow.bytes).sum()) * 8.0 / last / LINK * 100.0
}

/// Seconds by which losses delayed the end of a flow, for each packet of it that was sent again.
fn added((clean, lossy): (&FlowResult, &FlowResult)) -> f64 {
    let later = lossy.end.as_secs_f64() - clean.end.as_secs_f64();
    later / f64::from(lossy.retransmitted.max(1))
}

/// Packets that a sender of NDP's sends before it is pulled, by default.
const FIRST_WINDOW: f64 = 15.0;

pub(in super::super) fn ndp(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let runs = bench.run(NDP, &[])?;
    measured.each("incomplete", &runs, incomplete);
    measured.each("drops", &runs, drops);
    measured.each("again", &runs, again);
    measured.each("late", &runs, |results| again(results) / (count(results.flows.len()) * FIRST_WINDOW));
    measured.each("timeouts", &runs, timeouts);
    measured.each("goodput", &runs, goodput);
    let runs = bench.run(NDP, &[("switch.trimming.headers", FEW_HEADERS)])?;
    measured.each("few_incomplete", &runs, incomplete);
    measured.each("few_drops", &runs, drops);
    measured.each("few_returned", &runs, |results| {
        float(results.switches.iter().map(|switch| switch.returned).sum())
    });
    measured.each("few_timeouts", &runs, timeouts);
    measured.each("few_goodput", &runs, goodput);
    short(bench, &mut measured)?;
    Ok(measured)
}

/// Octets of a whole packet's payload in an incast, as in the scenario.
const PACKET: u16 = 4096;
/// Packets that are in flight at most, for so long are bitmaps.
const BITMAP: f64 = 2048.0;

/// Messages shorter than a first window, in an incast and one after the other; and a long one of which links lose packets.
fn short(bench: &Bench<'_>, measured: &mut Measured) -> Result<(), FigureError> {
    for (size, again_key, late, timeouts_key) in [
        ("\"4KB\"", "one_again", "one_late", "one_timeouts"),
        ("\"20KB\"", "short_again", "short_late", "short_timeouts"),
        ("\"40KB\"", "window_again", "window_late", "window_timeouts"),
    ] {
        let runs = bench.run(NDP, &[("traffic.0.size", size)])?;
        measured.each(again_key, &runs, again_for_each);
        measured.each(late, &runs, lateness);
        measured.each(timeouts_key, &runs, timeouts);
    }
    let closed = bench.run(NDP_CLOSED, &[])?;
    measured.each("closed_again", &closed, again_for_each);
    measured.each("closed_goodput", &closed, goodput);
    measured.each("closed_timeouts", &closed, timeouts);
    let lossy = bench.run(NDP_LOSS, &[])?;
    measured.each("lossy_incomplete", &lossy, incomplete);
    measured.each("lossy_again", &lossy, |results| again_for_each(results) * 100.0);
    measured.each("lossy_timeouts", &lossy, |results| timeouts(results) * BITMAP / once(results));
    Ok(())
}

/// Packets that were not sent again.
fn once(results: &Results) -> f64 {
    packets(results) - again(results)
}

/// Packets sent again for each packet of the messages.
fn again_for_each(results: &Results) -> f64 {
    again(results) / once(results)
}

/// The end of an incast's last message, over what all take on the receiver's link, headers included, if the first comes as over
/// an idle path.
fn lateness(results: &Results) -> f64 {
    let headers =
        u64::from(overhead(Opcode::WRITE_MIDDLE, Layout::Ndp, IpVersion::V4)) + u64::from(WIRE_OVERHEAD);
    let wire = |bytes: u64| float(bytes + bytes.div_ceil(PACKET.into()) * headers) * 8.0 / LINK;
    let last = results.completed().map(|flow| flow.end.as_secs_f64()).fold(0.0, f64::max);
    let first =
        results.flows.first().and_then(|flow| flow.ideal).map_or(f64::NAN, |ideal| ideal.as_secs_f64());
    last / (first + results.flows.iter().skip(1).map(|flow| wire(flow.bytes)).sum::<f64>())
}

/// Payload until the last message ended, of what the receiver's link carries.
fn goodput(results: &Results) -> f64 {
    let last = results.completed().map(|flow| flow.end.as_secs_f64()).fold(0.0, f64::max);
    float(results.completed().map(|flow| flow.bytes).sum()) * 8.0 / last / LINK * 100.0
}

fn timeouts(results: &Results) -> f64 {
    results.flows.iter().map(|flow| f64::from(flow.timeouts)).sum()
}

/// Completion times over those on an idle path, of messages of some lengths.
fn slowdowns(results: &Results, lengths: &RangeInclusive<u64>) -> Vec<f64> {
    let those = results.completed().filter(|flow| lengths.contains(&flow.bytes));
    those.filter_map(|flow| flow.slowdown()).collect()
}

/// The 99th percentile.
fn tail(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) * 99 / 100).copied().unwrap_or(f64::NAN)
}

fn incomplete(results: &Results) -> f64 {
    count(results.flows.len() - results.completed().count())
}

/// Packets of all flows.
fn packets(results: &Results) -> f64 {
    float(results.flows.iter().map(|flow| flow.packets).sum())
}

/// Packets sent again.
fn again(results: &Results) -> f64 {
    results.flows.iter().map(|flow| f64::from(flow.retransmitted)).sum()
}
