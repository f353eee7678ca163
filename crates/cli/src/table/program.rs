//! What is printed of programs.

use super::{lines, table};
use crate::format::{float, number, rate, time};
use roci_lab::program::check::Held;
use roci_lab::program::profile::{LINKS_GBPS, Profile, Rate, spread};
use roci_lab::program::{Check, Class, Fault, Side, class_name};
use roci_lab::results::cores::{REMEDY, Strained};
use roci_lab::results::{Failure, ProgramResult, Results};
use roci_units::Instant;
use std::collections::BTreeMap;

/// How a program failed in a run, and with whom; nothing where it did not.
pub(super) fn failures(program: &ProgramResult, results: &Results) -> String {
    /// Failures that are told one by one.
    const TOLD: usize = 4;
    let tally = &program.tally;
    if tally.fallen() == 0 {
        return String::new();
    }
    let counts = [
        (tally.traps, "trapped"),
        (tally.overruns, "overran"),
        (tally.starved, "let nothing go any more"),
        (tally.wrong, "answered wrongly"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    let counts: Vec<_> = counts.collect();
    let mut images: Vec<&str> = Vec::new();
    for failure in &program.failures {
        if !images.contains(&failure.fault.image.as_str()) {
            images.push(&failure.fault.image);
        }
    }
    let several = images.len() > 1;
    // Not all failures are kept, and those that are not may be of a program that came later.
    if tally.replaced > 0 && tally.fallen() > program.failures.len() as u64 {
        images.push("perhaps others");
    }
    let counted = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let pairs = counted(tally.fallen(), "queue pair");
    // A flow has two of them, of which either may have failed, or both.
    let whom = match program.flows_fallen {
        // Another program came after the failure, and the flow fell back no more.
        flows if flows == 0 || tally.replaced > 0 => {
            format!(
                "{pairs}, of which a flow has two, before {} replaced",
                if several { "they were" } else { "it was" }
            )
        }
        flows => format!("{} ({pairs})", counted(flows, "flow")),
    };
    let mut text = format!(
        "\n  {} failed with {whom}, which went over to the fallback law: {}\n",
        images.join(" and "),
        counts.join(", ")
    );
    for failure in program.failures.iter().take(TOLD) {
        let fault = &failure.fault;
        let image = if several { format!("{}, ", fault.image) } else { String::new() };
        let vain = if results.was_in_vain(failure) { "; the fallback law got no answer either" } else { "" };
        text += &format!("    {}: {image}{fault}{vain}\n", results.place_of(failure));
    }
    let more = tally.fallen().saturating_sub(TOLD as u64);
    if more > 0 {
        text += &format!("    and {more} more: `programs` in summary.json\n");
    }
    text + &seen_again(program)
}

/// How the event is seen, and told again, with which a program failed first; nothing where no single event is to blame.
fn seen_again(program: &ProgramResult) -> String {
    /// Events that are recorded unless the failure came later, of each host.
    const RECORDED: u64 = 100_000;
    let single = |failure: &&Failure| failure.fault.why.kind() != "starved";
    let Some(Failure { host, fault, .. }) = program.failures.iter().find(single) else {
        return String::new();
    };
    let Fault { image, class, number, qpn, at, .. } = fault;
    let name = class_name(*class);
    // Timers follow from what the program answers, and each line tells when its queue pair was opened.
    let line = match name {
        "Timer" | "Open" => format!("with what it heard besides {name}"),
        _ => format!(
            "in which the event is the line `{host} {qpn} {} {name} …`",
            at.since(Instant::ZERO).as_ps()
        ),
    };
    let recorded = if program.events.is_empty() {
        let most = RECORDED.max(2 * number);
        match program.control {
            0 => format!("`--set transport.control.record={most}` writes events.txt"),
            _ => format!("`record = {most}` in its `control` writes events.txt"),
        }
    } else {
        "there is events.txt".to_owned()
    };
    format!(
        "    to see it: {recorded} beside the results, {line}; `roci program profile {image} --events events.txt` tells the program all of \
         it again, with `--context` where its control has one\n"
    )
}

/// Of how much laws did not hear, and where; nothing where they heard of all.
pub(super) fn unheard(results: &Results) -> String {
    /// Hosts that are told one by one.
    const TOLD: usize = 4;
    if results.unheard() == 0 {
        return String::new();
    }
    let hosts: Vec<_> = results.hosts.iter().filter(|host| host.unheard > 0).collect();
    let told = hosts.iter().take(TOLD).map(|host| format!("{} {}", host.name, host.unheard));
    let told = told.collect::<Vec<_>>().join(", ");
    let more =
        if hosts.len() > TOLD { format!(" and {} hosts more", hosts.len() - TOLD) } else { String::new() };
    format!(
        "\n  warning: laws never heard of {} events, because too many waited for them: {told}{more}\n",
        results.unheard()
    )
}

/// Of cores that did not keep up, and what to do; nothing where all did.
pub(super) fn strained(results: &Results) -> String {
    /// Hosts that are told one by one.
    const TOLD: usize = 4;
    let (hosts, packets) = (results.strained().count(), results.packets_held_up());
    let mut text = match (hosts, packets) {
        (0, _) => return String::new(),
        (_, 0) => "\n  cores were busy without a break, and may be what limits the rates\n".to_owned(),
        _ => format!(
            "\n  warning: cores did not keep up with what arrived, and {packets} packets waited for them in receive FIFOs\n"
        ),
    };
    for Strained { host, cores, packets, waited, busiest } in results.strained().take(TOLD) {
        let busiest = busiest * 100.0;
        text += &format!(
            "    {}: {}, {cores}, the busiest of them busy for {busiest:.0} % of its time",
            host.name, cores.nic
        );
        text += &match packets {
            0 => "\n".to_owned(),
            _ => format!("; {packets} packets waited {} in sum\n", time(waited.as_secs_f64())),
        };
    }
    let more = hosts.saturating_sub(TOLD);
    if more > 0 {
        text += &format!("    and {more} hosts more: `cores` in summary.json\n");
    }
    text + &format!("    what to do: {REMEDY}\n")
}

/// What was proved of a program.
pub(crate) fn check(name: &str, check: &Check, cores: Cores<'_>) -> String {
    let Cores { nic, clock, load, .. } = cores;
    let megahertz = number(float(clock) / 1e6);
    let mut text = format!(
        "{name}: {} B of code, {} B of 128 B of context, {} B of 64 B of header, on cores of {nic} at {megahertz} MHz\n",
        check.code, check.context, check.header
    );
    for warning in check.warnings().chain(check.hasty(clock)) {
        text += &format!("\nwarning: {warning}\n");
    }
    for side in &check.sides {
        text += &format!("\n{}(): {} B of stack; {}\n", side.side.function(), side.stack, side.kept);
        let mut rows = table(&["event", "cycles, at most", "time"]);
        let mut row = |event: &str, cycles: u64| {
            // In picoseconds; a bound has fewer than 2^40 cycles.
            let span = cycles.saturating_mul(1_000_000_000_000) / clock;
            rows.add_row([event.to_owned(), cycles.to_string(), format!("{} ns", span.div_ceil(1_000))]);
        };
        for (class, cycles) in &side.kinds {
            row(class_name(*class), *cycles);
        }
        row("any", side.cycles);
        row("the start", side.start_cycles);
        text += &lines(&rows);
    }
    let of = cores.all.filter(|all| *all > 1).map_or_else(String::new, |all| format!(" of {nic}'s {all}"));
    let longest = check.sides.iter().map(|side| format!("{} {}", side.side.function(), side.cycles));
    let longest = longest.collect::<Vec<_>>().join(", ");
    text += &format!("\nif each packet takes its longest event ({longest} cycles");
    text += &if load > 0.0 {
        format!(", {} more to load a context that is at hand), ", number(load))
    } else {
        "), ".to_owned()
    };
    text += &format!("one core pair{of} at {megahertz} MHz sustains, and for a link needs a clock of\n\n");
    text + &rates(&check.rates(clock, load)) + "\n"
}

/// What cores sustain, and the clocks that links need.
fn rates(rates: &[Rate]) -> String {
    let links = LINKS_GBPS.map(|gbps| format!("{gbps} Gb/s: MHz"));
    let mut header = vec!["payload", "packets/s", "link", "goodput"];
    header.extend(links.iter().map(String::as_str));
    let mut rows = table(&header);
    for one in rates {
        let mut row = vec![format!("{} B", one.payload), format!("{} M", number(one.packets_per_s / 1e6))];
        row.extend([rate(one.link_bps), rate(one.goodput_bps)]);
        row.extend(one.clocks_hz.map(|hertz| number(hertz / 1e6)));
        rows.add_row(row);
    }
    lines(&rows)
}

/// The cores that a profile is for.
#[derive(Clone, Copy)]
pub(crate) struct Cores<'a> {
    /// Whose they are.
    pub(crate) nic: &'a str,
    /// Their clock in hertz.
    pub(crate) clock: u64,
    /// How many pairs there are.
    pub(crate) pairs: u32,
    /// How many the NIC has, if it is one.
    pub(crate) all: Option<u32>,
    /// Cycles that an event takes before the program sees it.
    pub(crate) load: f64,
}

impl Cores<'_> {
    /// How many they are, and of how many.
    fn counted(&self) -> String {
        let Self { nic, pairs, all, .. } = *self;
        let number = if pairs == 1 { "one core pair".to_owned() } else { format!("{pairs} core pairs") };
        match all {
            Some(all) if all > 1 && pairs == 1 => {
                format!("{number} of {nic}'s {all} (`--pairs {all}` counts all)")
            }
            Some(all) if all != pairs => format!("{number} ({nic} has {all})"),
            _ => number,
        }
    }
}

/// What a program took.
pub(crate) fn profile(name: &str, profile: &Profile, rates: &[Rate], cores: Cores<'_>) -> String {
    let Cores { nic, clock, load, .. } = cores;
    let mut text =
        format!("{name}, on cores of {nic}: {} packets offered, {} sent\n\n", profile.offered, profile.sent);
    let refused = Some(("  LoopBack", &profile.refused)).filter(|(_, histogram)| !histogram.is_empty());
    let kinds = || {
        let kinds = profile.kinds.iter().map(|(class, histogram)| (class_name(Class(*class)), histogram));
        kinds.chain(refused)
    };
    let most = kinds().filter_map(|(_, kind)| kind.keys().last()).max().copied().unwrap_or(0);
    let range = format!("0 to {most} cycles");
    let mut rows =
        table(&["event", "events", "a packet", "cycles: min", "p50", "mean", "p99", "max", &range]);
    for (name, histogram) in kinds() {
        let spread = spread(histogram);
        let [least, median, p99, most_here] =
            [spread.least, spread.median, spread.p99, spread.most].map(|cycles| cycles.to_string());
        let [share, mean] = [profile.per_packet(spread.count), spread.mean].map(number);
        let (name, count) = (name.to_owned(), spread.count.to_string());
        rows.add_row([name, count, share, least, median, mean, p99, most_here, bars(histogram, most)]);
    }
    text += &lines(&rows);
    if profile.sent == 0 {
        text += "\nno packet was sent, so there are no rates";
        return text
            + match refused {
                Some(_) => {
                    ": send() answered each with LoopBack\n\
                     what to do: give it what it waits for, such as `--context total_credit=64KiB` to credit.elf\n"
                }
                None => "\n",
            };
    }
    let [recv, send] = [Side::Rx, Side::Tx].map(|side| number(profile.cycles_per_packet(side, load)));
    let megahertz = number(float(clock) / 1e6);
    text += &format!("\nper packet: recv {recv}, send {send} cycles on average");
    text += &if load > 0.0 {
        format!(", {} an event to load a context that is at hand\n", number(load))
    } else {
        "\n".to_owned()
    };
    if refused.is_some() {
        text +=
            "A LoopBack is not among them: it takes its cycles again each time that the packet comes back.\n";
    }
    text += &match cores.pairs {
        1 => format!("{} at {megahertz} MHz sustains, and for a link needs a clock of\n\n", cores.counted()),
        _ => {
            format!("{} at {megahertz} MHz sustain, and for a link they need a clock of\n\n", cores.counted())
        }
    };
    text + &self::rates(rates)
}

/// What was proved of a program's events, beside the longest that were measured.
pub(crate) fn held(name: &str, profile: &Profile, held: &[Held], cores: Cores<'_>) -> String {
    let (nic, offered) = (cores.nic, profile.offered);
    let mut rows = table(&["side", "event", "longest", "at most, proved"]);
    for Held { side, what, measured, proved } in held {
        let name = format!("{}()", side.function());
        rows.add_row([name, (*what).to_owned(), measured.to_string(), proved.to_string()]);
    }
    format!("{name}, on cores of {nic}: cycles with {offered} packets of anything at all\n\n{}", lines(&rows))
}

/// A histogram in one line: each letter is a sixteenth of the range, its height the share of events by powers of two.
fn bars(histogram: &BTreeMap<u64, u64>, most: u64) -> String {
    const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let mut bins = [0u64; 16];
    for (cycles, count) in histogram {
        let bin = usize::try_from(cycles * 16 / (most + 1)).unwrap_or(0);
        bins[bin] += count;
    }
    let all: u64 = bins.iter().sum();
    let height = |count: u64| match count {
        0 => HEIGHTS[0],
        // All of them is the highest, a hundredth or less the lowest.
        _ => HEIGHTS[8 - (all / count).ilog2().min(7) as usize],
    };
    bins.map(height).iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_control::program::Tally;
    use roci_control::program::fault::Why;
    use roci_lab::results::HostResult;

    #[test]
    fn failures_of_programs_that_followed_each_other_are_told_apart() {
        let fault = |image: &str| Fault {
            image: image.into(),
            side: Side::Rx,
            qpn: 7,
            at: Instant::ZERO,
            class: Class::ACK,
            number: 40,
            place: "law.c:12".into(),
            why: Why::Silent,
        };
        let told = |images: &[&str], fallen, replaced| {
            let failures: Vec<_> =
                images.iter().map(|image| Failure { host: 0, flow: None, fault: fault(image) }).collect();
            let tally = Tally { wrong: fallen, replaced, ..Tally::default() };
            let (elf, events) = ("last.elf".into(), String::new());
            let hosts = vec![HostResult { name: "h0".into(), ..HostResult::default() }];
            let results = Results { hosts, ..Results::default() };
            let flows_fallen = if replaced > 0 { 0 } else { fallen / 2 };
            let program = ProgramResult { control: 0, elf, tally, flows_fallen, failures, events };
            super::failures(&program, &results)
        };
        let both = told(&["a.elf", "b.elf", "a.elf"], 3, 2);
        assert!(both.contains("  a.elf and b.elf failed with 3 queue pairs, of which a flow has two, before they were replaced, which"), "{both}");
        assert!(both.contains("    h0: b.elf, recv at ") && !both.contains("either"), "{both}");
        // The fourth was not kept: it may be of the program that came later.
        let more = told(&["a.elf"; 3], 4, 1);
        assert!(more.contains("  a.elf and perhaps others failed with 4 queue pairs"), "{more}");
        assert!(more.contains("    h0: recv at "), "{more}");
        let one = told(&["last.elf"; 3], 4, 0);
        assert!(one.contains("  last.elf failed with 2 flows (4 queue pairs), which went over"), "{one}");
        assert!(one.contains("recv at 0.000 us of queue pair 7, event 40, ACK, law.c:12"), "{one}");
    }

    #[test]
    fn core_pairs_are_counted_beside_those_of_the_nic() {
        let counted = |pairs, all| Cores { nic: "swcc", clock: 1, pairs, all, load: 0.0 }.counted();
        assert_eq!(counted(1, Some(8)), "one core pair of swcc's 8 (`--pairs 8` counts all)");
        assert_eq!(counted(8, Some(8)), "8 core pairs");
        assert_eq!(counted(4, Some(8)), "4 core pairs (swcc has 8)");
        assert_eq!(counted(1, None), "one core pair");
        assert_eq!(counted(8, None), "8 core pairs");
    }

    #[test]
    fn a_histogram_shows_where_events_lie() {
        let histogram = BTreeMap::from([(0, 1), (8, 200), (15, 199)]);
        assert_eq!(bars(&histogram, 15), "▁       ▇      ▇");
    }
}
