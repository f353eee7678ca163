//! One run: its flows, its switches and what befell them.

use super::{
    MANY_SWITCHES, SPREAD, collective, depths, faults, goal, lines, priorities, program, rpc, spread, table,
    traffic,
};
use crate::format::{float, number, or_dash, rate, size, time};
use comfy_table::Table;
use roci_lab::results::statistics::jain;
use roci_lab::results::together::Together;
use roci_lab::results::{HostResult, Offered, Results, SwitchResult};

/// More flows than this are shown by their sizes.
const MANY_FLOWS: usize = 24;
/// The place of a flow's goodput among the columns.
const GOODPUT: usize = 7;

/// The tables of one run, and what is to be said of it.
pub(super) fn tables(results: &Results) -> String {
    let mut text = format!(
        "{}, seed {}: {}, {} simulated\n\n",
        results.name,
        results.seed,
        flows_done(results),
        time(results.simulated.as_secs_f64())
    );
    if let Some(deadlock) = &results.deadlock {
        text.push_str(&format!("  {}\n\n", deadlock.to_string().replace('\n', "\n  ")));
    }
    let together = (results.flows.len() <= MANY_FLOWS).then(|| results.together()).flatten();
    if results.flows.len() <= MANY_FLOWS {
        text.push_str(&lines(&flows(results, together.as_ref())));
    } else {
        text.push_str(&many_flows(results));
    }
    text.push_str(&traffic::tables(results));
    text.push_str(&collective::tables(results));
    text.push_str(&goal::tables(results));
    text.push_str(&rpc::tables(results));
    text.push('\n');
    text.push_str(&lines(&switches(results)));
    text.push_str(&priorities::of_run(results));
    text.push_str(&depths::table_of(results));
    text.push_str(&at_hosts(results));
    text.push_str(&faults::tables(results));
    results.programs.iter().for_each(|program| text.push_str(&program::failures(program, results)));
    text.push_str(&program::unheard(results));
    text.push_str(&program::strained(results));
    text.push_str(&misses(results));
    for warning in &results.warnings {
        text.push_str(&format!("\n  warning: {warning}\n"));
    }
    text.push_str(&in_all(results, together.as_ref()));
    text.push_str(&format!("  {}\n", speed(results)));
    text
}

/// Flows that are too many to show one by one.
fn many_flows(results: &Results) -> String {
    let mut text = match results.completed().next() {
        Some(_) => lines(&sizes(results)),
        None if results.endless() == results.flows.len() => {
            "  what each flow moved is in flows.csv\n".to_owned()
        }
        None => "  no flow is done\n".to_owned(),
    };
    if let Some(failure) = results.failure().filter(|_| results.deadlock.is_none()) {
        text.push_str(&format!("\n  {failure}\n"));
    }
    text
}

/// What hosts met: PAUSE frames, receive buffers and receive queues with no room, answers later than the timeout.
fn at_hosts(results: &Results) -> String {
    let mut text = String::new();
    let paused: Vec<&HostResult> = results.hosts.iter().filter(|host| host.pause_received > 0).collect();
    if !paused.is_empty() {
        text.push_str(&format!(
            "\n  {} of {} {} received {} PAUSE frames and stood paused for {} in sum\n",
            paused.len(),
            results.hosts.len(),
            if results.several_nics { "NICs" } else { "hosts" },
            paused.iter().map(|host| host.pause_received).sum::<u64>(),
            time(paused.iter().map(|host| host.paused.as_secs_f64()).sum())
        ));
    }
    let sent: u64 = results.hosts.iter().map(|host| host.pause_sent).sum();
    if sent > 0 {
        text.push_str(&format!("\n  hosts sent {sent} PAUSE frames\n"));
    }
    let dropped: u64 = results.hosts.iter().map(|host| host.dropped).sum();
    if dropped > 0 {
        text.push_str(&format!("\n  receive buffers of hosts had no room for {dropped} frames\n"));
    }
    let unready: u64 = results.flows.iter().map(|flow| u64::from(flow.rnr_naks)).sum();
    if unready > 0 {
        text.push_str(&format!("\n  {unready} RNR NAKs: SENDs found no receive request\n"));
    }
    if let Some(vain) = resent_in_vain(results) {
        text.push_str(&format!("\n  {vain}\n    {LONGER_TIMEOUT}\n"));
    }
    text
}

/// What all flows got, and how equally.
fn in_all(results: &Results, together: Option<&Together>) -> String {
    let fairness = results.fairness().map(|jain| format!("Jain's fairness index {}", number(jain)));
    let both: Vec<String> = goodput(results).into_iter().chain(fairness).collect();
    let mut text = format!("\n  {}\n", both.join(", "));
    if let Some(Together { from, until, goodput_bps }) = together
        && results.fairness().is_some()
        && let Some(jain) = jain(goodput_bps)
    {
        let [from, until] = [from, until].map(|at| time(at.as_secs_f64()));
        let jain = number(jain);
        text.push_str(&format!("  while all sent, {from} to {until}: Jain's fairness index {jain}\n"));
    }
    text
}

/// What is to be done where answers take longer than the timeout.
pub(super) const LONGER_TIMEOUT: &str = "what to do: a longer transport.timeout";

/// Of packets that were sent again though none had been lost.
pub(super) fn resent_in_vain(results: &Results) -> Option<String> {
    let (packets, timeouts) = results.resent_in_vain()?;
    let paused = results.hosts.iter().any(|host| host.pause_received > 0);
    let paused = if paused { ", as behind PAUSE" } else { "" };
    let times = if timeouts == 1 { "timeout" } else { "timeouts" };
    Some(format!(
        "{packets} packets were sent again after {timeouts} {times}, and none had been lost: answers took longer than the timeout{paused}"
    ))
}

/// How many flows are done, of those that have an end.
fn flows_done(results: &Results) -> String {
    let (done, all, endless) = (results.completed().count(), results.flows.len(), results.endless());
    match endless {
        0 => format!("{done} of {all} flows done"),
        _ if endless == all => format!("{all} flows without an end ran until the run stopped"),
        _ => format!(
            "{done} of {} flows done, {endless} without an end ran until the run stopped",
            all - endless
        ),
    }
}

/// Of NICs whose caches are too small; nothing where all are large enough.
pub(super) fn misses(results: &Results) -> String {
    /// Hosts that are told one by one.
    const TOLD: usize = 4;
    let mut text: String = results.misses().take(TOLD).map(|misses| format!("\n  {misses}")).collect();
    let more = results.misses().count().saturating_sub(TOLD);
    if more > 0 {
        text += &format!("\n  and {more} hosts more whose caches miss: `nic` in summary.json");
    }
    if text.is_empty() { text } else { text + "\n" }
}

/// The payload that all flows moved a second: of what was offered where that was by the clock.
fn goodput(results: &Results) -> Option<String> {
    let of_all = rate(results.total_goodput_bps()?);
    Some(match (results.offered, results.offered_bps(), results.goodput_to_the_last_end_bps()) {
        (Some(Offered { from, until }), Some(offered), Some(to_the_end)) => {
            let [from, until, end] = [from, until, results.simulated].map(|at| time(at.as_secs_f64()));
            let offered = rate(offered);
            format!(
                "goodput {of_all} of {offered} offered, {from} to {until}; {} until {end}",
                rate(to_the_end)
            )
        }
        _ => format!("goodput {of_all}"),
    })
}

fn speed(results: &Results) -> String {
    format!(
        "{:.2} M packet-hops in {:.3} s of CPU time: {:.2} M per second; {} of memory",
        float(results.packet_hops) / 1e6,
        results.run.cpu_s,
        results.packet_hops_per_s() / 1e6,
        size(results.run.peak_rss_bytes)
    )
}

/// The flows one by one, with what they got while all sent, where there was such a time.
fn flows(results: &Results, together: Option<&Together>) -> Table {
    let mut header = vec![
        "flow",
        "from",
        "to",
        "op",
        "size",
        "completion",
        "slowdown",
        "goodput",
        "resent",
        "CNPs",
        "marked",
        "status",
    ];
    if together.is_some() {
        header.insert(GOODPUT + 1, "while all sent");
    }
    let controls = results.controls_differ();
    if controls {
        header.push("control");
    }
    let mut table = table(&header);
    for (place, flow) in results.flows.iter().enumerate() {
        let mut row = vec![
            flow.name.to_string(),
            results.host(flow.src).to_owned(),
            results.host(flow.dst).to_owned(),
            flow.op.name().to_owned(),
            size(flow.bytes),
            or_dash(flow.fct().map(|fct| time(fct.as_secs_f64()))),
            or_dash(flow.slowdown().map(number)),
            rate(float(flow.goodput_bps(results.simulated))),
            flow.retransmitted.to_string(),
            flow.cnps.to_string(),
            flow.ecn_marked.to_string(),
            flow.status.name().to_owned(),
        ];
        if let Some(together) = together {
            row.insert(GOODPUT + 1, rate(together.goodput_bps[place]));
        }
        if controls {
            row.push(results.control(flow).to_owned());
        }
        table.add_row(row);
    }
    table
}

fn sizes(results: &Results) -> Table {
    let mut header = vec!["size", "completed"];
    header.extend(SPREAD);
    let mut table = table(&header);
    for group in results.by_size() {
        let range = match group.from == group.to {
            true => size(group.from.0),
            false => format!("{} to {}", size(group.from.0), size(group.to.0)),
        };
        let mut row = vec![range, group.slowdowns.values().len().to_string()];
        row.extend(spread(&group.completion_times, &group.slowdowns));
        table.add_row(row);
    }
    table
}

fn switches(results: &Results) -> Table {
    let chooses = results.switches.iter().any(|switch| switch.imbalance.is_some());
    let mut header =
        vec!["switch", "drops", "ECN marks", "PAUSE sent", "PAUSE received", "time paused", "most buffered"];
    header.extend(chooses.then_some("imbalance"));
    let mut table = table(&header);
    let row = |switch: &SwitchResult| {
        let mut row = vec![
            switch.name.clone(),
            switch.drops.to_string(),
            switch.ecn_marks.to_string(),
            switch.pause_sent.to_string(),
            switch.pause_received.to_string(),
            time(switch.paused.as_secs_f64()),
            size(switch.max_buffer_bytes),
        ];
        row.extend(chooses.then(|| or_dash(switch.imbalance.map(|it| format!("{it:.2}")))));
        row
    };
    if results.switches.len() <= MANY_SWITCHES {
        results.switches.iter().for_each(|switch| {
            table.add_row(row(switch));
        });
        return table;
    }
    let mut all = SwitchResult { name: format!("all {}", results.switches.len()), ..SwitchResult::default() };
    for switch in &results.switches {
        all.drops += switch.drops;
        all.ecn_marks += switch.ecn_marks;
        all.pause_sent += switch.pause_sent;
        all.pause_received += switch.pause_received;
        all.paused += switch.paused;
        all.max_buffer_bytes = all.max_buffer_bytes.max(switch.max_buffer_bytes);
    }
    all.imbalance = results.imbalance();
    table.add_row(row(&all));
    table
}

#[cfg(test)]
mod tests {
    use super::super::fixture::results;
    use super::*;
    use roci_lab::results::{FlowResult, FlowStatus};
    use roci_units::Instant;

    #[test]
    fn what_laws_did_not_hear_of_and_writes_that_were_lost_are_told() {
        let mut one = results(2);
        one.hosts[1].unheard = 743;
        one.warnings.push("nobody took it".to_owned());
        let text = tables(&one);
        assert!(
            text.contains("warning: laws never heard of 743 events") && text.contains(": b 743\n"),
            "{text}"
        );
        assert!(text.contains("warning: nobody took it\n"), "{text}");
        assert!(!tables(&results(2)).contains("warning"));
    }

    #[test]
    fn packets_sent_again_though_none_was_lost_are_explained() {
        let mut one = results(2);
        (one.flows[0].retransmitted, one.flows[0].timeouts) = (1_127, 3);
        one.hosts[0].pause_received = 5;
        let told = "1127 packets were sent again after 3 timeouts, and none had been lost: answers took longer than the timeout, as behind PAUSE";
        assert!(tables(&one).contains(told), "{}", tables(&one));
        // Where something was lost, or asked for again, timeouts have their reason.
        one.switches[0].drops = 1;
        assert!(!tables(&one).contains("none had been lost"));
        (one.switches[0].drops, one.flows[1].naks) = (0, 1);
        assert!(!tables(&one).contains("none had been lost"));
        assert!(!tables(&results(2)).contains("none had been lost"));
    }

    #[test]
    fn sends_that_found_no_receive_request_are_counted() {
        let mut busy = results(2);
        assert!(!tables(&busy).contains("RNR NAKs"));
        busy.flows[1].rnr_naks = 7;
        assert!(tables(&busy).contains("\n  7 RNR NAKs: SENDs found no receive request\n"));
    }

    #[test]
    fn few_flows_are_shown_one_by_one_and_many_by_size() {
        let few = tables(&results(2));
        assert!(few.contains("0.1") && few.contains("80.00 Gb/s"), "{few}");
        let many = tables(&results(100));
        assert!(many.contains("slowdown mean") && !many.contains("0.99 "), "{many}");
        let mut running = results(100);
        running.flows.iter_mut().for_each(|flow| flow.status = FlowStatus::Running);
        let running = tables(&running);
        assert!(running.contains("no flow is done") && !running.contains("slowdown mean"), "{running}");
    }

    #[test]
    fn flows_without_an_end_are_not_told_to_be_undone() {
        let endless = |flow: &mut FlowResult| {
            (flow.status, flow.ideal, flow.end) = (FlowStatus::Running, None, Instant::NEVER);
        };
        let mut all = results(100);
        all.flows.iter_mut().for_each(endless);
        let told = tables(&all);
        assert!(told.contains(": 100 flows without an end ran until the run stopped, "), "{told}");
        assert!(!told.contains("no flow is done") && !told.contains("0 of 100"), "{told}");
        let mut some = results(5);
        some.flows.iter_mut().take(2).for_each(endless);
        let told = tables(&some);
        assert!(told.contains(": 3 of 3 flows done, 2 without an end ran until the run stopped, "), "{told}");
    }
}
