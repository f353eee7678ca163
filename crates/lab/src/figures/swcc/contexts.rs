//! How a core comes by the context of a queue pair (Figures 5 and 11a).

use super::super::bench::Bench;
use super::super::plot::Plot;
use super::super::{FigureError, Measured};
use super::budget::packet_time;
use super::event::{self, PACED};
use crate::nic::load;
use crate::output::digits::float;
use roci_control::Class;
use roci_control::program::csr;
use roci_nic::Architecture;
use roci_nic::arch::cores::{Cores, Side, Turn};
use roci_units::{Instant, Qpn, Random, Span};

/// Events that are timed.
const EVENTS: u64 = 200_000;
const QUEUE_PAIRS: [u32; 3] = [1_000, 10_000, 100_000];

/// The preset `name`, with the figure's mechanism off where that is asked for.
fn nic(bench: &Bench<'_>, name: &str) -> Architecture {
    let mut architecture = load(name).expect("a preset");
    for (key, value) in bench.ablation() {
        architecture.set(key, value).expect("an ablation names a key of a NIC");
    }
    architecture
}

/// Nanoseconds.
#[expect(clippy::cast_precision_loss, reason = "spans of figures are short")]
fn ns(span: Span) -> f64 {
    span.as_ps() as f64 / 1e3
}

/// A packet that arrives at `at`: the hint is given, and when the logic before the core is through, the event comes in
/// line.
fn arrive(cores: &mut Cores, nic: &Architecture, at: Instant, qpn: Qpn, cycles: u32) -> Turn {
    cores.table.hint(at, qpn);
    cores.run(at + nic.span(nic.receive.latency), Side::Receive, qpn, cycles)
}

/// Figure 5: a context that is not on the chip.
pub(in super::super) fn miss(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let (hinted, plain) = (nic(bench, "swcc"), nic(bench, "swcc-naive"));
    let fresh = |nic: &Architecture| Cores::new(nic).expect("it has cores");
    let cycles = event_cycles(&hinted);
    let alone = arrive(&mut fresh(&hinted), &hinted, Instant::ZERO, Qpn::new(8), cycles);
    let naive = arrive(&mut fresh(&plain), &plain, Instant::ZERO, Qpn::new(8), event_cycles(&plain));
    // Another queue pair's event came a little earlier, and has the core while this one's context is fetched.
    let mut busy = fresh(&hinted);
    arrive(&mut busy, &hinted, Instant::ZERO, Qpn::new(0), cycles);
    let behind = arrive(&mut busy, &hinted, Instant::ZERO + Span::from_nanos(10), Qpn::new(8), cycles);
    let mut measured = Measured::default();
    let seeds = bench.seeds().len();
    let mut add = |key, value: f64| measured.add(key, vec![value; seeds]);
    let stall = |turn: Turn| ns(turn.reached.since(turn.begun));
    add("logic", ns(hinted.span(hinted.receive.latency)));
    add("stall", stall(alone));
    add("hidden", ns(hinted.table.memory) - stall(alone));
    add("behind", stall(behind));
    add("naive", stall(naive));
    let how = if hinted.table.hint { "with the hint" } else { "without it" };
    measured.remarks.push(format!("The packet enters the RX parser at 0; {how} {}.", timeline(alone)));
    Ok(measured)
}

/// How an event comes to its end, in ns from the arrival of its packet.
fn timeline(turn: Turn) -> String {
    let at = |instant: Instant| ns(instant.since(Instant::ZERO));
    format!(
        "its event is in line at {} ns, begins at {} ns, has its context at {} ns and its registers at {} ns, and ends at {} ns",
        at(turn.arrived),
        at(turn.begun),
        at(turn.reached),
        at(turn.loaded),
        at(turn.done)
    )
}

/// Cycles of an event about arriving data on the cores of `nic`.
fn event_cycles(nic: &Architecture) -> u32 {
    let mut core = event::Bench::new(PACED, csr::Side::Rx, &nic.cores).open(100_000_000);
    u32::try_from(core.cycles(Class::WRITE, 1024)).expect("a few dozen")
}

/// The mean time in ns from an event's turn until all words of its context are in the core's registers.
fn access(nic: &Architecture, queue_pairs: u32, seed: u64) -> f64 {
    let mut cores = Cores::new(nic).expect("it has cores");
    let mut random = Random::new(seed, queue_pairs.into());
    let program = event::Bench::new(PACED, csr::Side::Rx, &nic.cores);
    let clock = nic.core_clock().expect("cores have a clock");
    let words = clock.cycles(program.context_words() * nic.cores.word);
    let cycles = event_cycles(nic);
    let gap = packet_time(100, 1024);
    // As many again before, so that the table is as full as it becomes.
    let warm = u64::from(queue_pairs) * 2;
    let mut total = Span::ZERO;
    for number in 0..warm + EVENTS {
        #[expect(clippy::cast_possible_truncation, reason = "below the number of queue pairs")]
        let qpn = Qpn::new(random.below(queue_pairs.into()) as u32);
        let turn = arrive(&mut cores, nic, Instant::ZERO + gap * number, qpn, cycles);
        if number >= warm {
            total += turn.loaded.since(turn.begun) + words;
        }
    }
    ns(total) / float(EVENTS)
}

/// Figure 11a: the time to reach a context.
pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let hinted = nic(bench, "swcc");
    let mut unhinted = hinted.clone();
    unhinted.table.hint = false;
    let naive = nic(bench, "swcc-naive");
    let mut measured = Measured::default();
    let mut plot = Plot::new("Time to reach a context", "queue pairs", "ns");
    let keys = [
        ("naive", &naive, ["naive_1k", "naive_10k", "naive_100k"]),
        ("QP-aware, no hint", &unhinted, ["plain_1k", "plain_10k", "plain_100k"]),
        ("QP-aware with hint", &hinted, ["hint_1k", "hint_10k", "hint_100k"]),
    ];
    let mut all = Vec::new();
    for (name, nic, keys) in keys {
        let mut line = Vec::new();
        for (queue_pairs, key) in QUEUE_PAIRS.into_iter().zip(keys) {
            let values: Vec<f64> = bench.seeds().iter().map(|&seed| access(nic, queue_pairs, seed)).collect();
            line.push((f64::from(queue_pairs), values[0]));
            measured.add(key, values.clone());
            all.push(values);
        }
        plot = plot.line(name, line);
    }
    measured.plots.push(plot);
    let seeds = 0..bench.seeds().len();
    for (index, key) in ["share_1k", "share_10k", "share_100k"].into_iter().enumerate() {
        let share = |seed: usize| 100.0 * all[6 + index][seed] / all[index][seed];
        measured.add(key, seeds.clone().map(share).collect());
    }
    let grows = |first: usize, seed: usize| all[first + 2][seed] / all[first][seed];
    measured.add("share_grows", seeds.clone().map(|seed| grows(6, seed) / grows(0, seed)).collect());
    measured.add("hint_grows", seeds.clone().map(|seed| grows(6, seed)).collect());
    measured.add("plain_grows", seeds.map(|seed| grows(3, seed)).collect());
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packets of queue pairs whose contexts are not on the chip, the second 10 ns behind the first, at one core; then
    /// one more of each, whose contexts are there.
    fn trace(name: &str, hint: bool) -> String {
        let mut nic = load(name).expect("a preset");
        (nic.table.hint, nic.cores.pairs) = (hint, 1);
        let mut cores = Cores::new(&nic).expect("it has cores");
        // As many as `firmware/paced.c` takes by the compiler whose images are in the repository.
        let cycles = nic.cores.native;
        let packets = [(0, 0), (10, 8), (2_000, 0), (2_010, 8)];
        let line = |(after, qpn)| {
            let at = Instant::ZERO + Span::from_nanos(after);
            format!(
                "queue pair {qpn}, packet at {after} ns: {}\n",
                timeline(arrive(&mut cores, &nic, at, Qpn::new(qpn), cycles))
            )
        };
        packets.map(line).concat()
    }

    #[test]
    fn a_miss_hides_behind_the_logic_before_the_core_and_the_event_before_it() {
        let of = |title, name, hint| format!("{title}\n{}\n", trace(name, hint));
        let trace = [
            of("With the hint", "swcc", true),
            of("Without it", "swcc", false),
            of("A plain cache", "swcc-naive", false),
        ];
        insta::assert_snapshot!(trace.concat());
    }
}
