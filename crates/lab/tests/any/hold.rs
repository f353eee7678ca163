//! What holds of every run, whatever its scenario says.

use roci_lab::output::{flows, links, priorities, report, series, summary};
use roci_lab::results::statistics::Sorted;
use roci_lab::results::{FlowResult, FlowStatus, LinkResult, PriorityResult, Results, SwitchResult};
use roci_lab::scenario::Scenario;
use roci_transport::Service;
use roci_units::{BitsPerSec, Instant, Span};
use std::collections::BTreeMap;

/// What does not hold, in words.
#[derive(Debug, Default)]
pub(crate) struct Broken(pub(crate) Vec<String>);

impl Broken {
    fn unless(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.0.push(what());
        }
    }

    fn equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, left: T, right: T) {
        self.unless(left == right, || format!("{what}: {left:?} and {right:?}"));
    }
}

/// What does not hold of a run that is over.
pub(crate) fn broken(scenario: &Scenario, results: &Results) -> Broken {
    let mut broken = Broken::default();
    of_flows(scenario, results, &mut broken);
    of_tables(scenario, results, &mut broken);
    of_links(results, &mut broken);
    of_switches(scenario, results, &mut broken);
    of_queues(results, &mut broken);
    of_files(results, &mut broken);
    broken
}

/// Whether ways through the network may change while it runs: then packets of a flow may be on two at once, and be faster than its ideal.
fn routes_change(scenario: &Scenario) -> bool {
    let faults = &scenario.faults;
    let changes = |text: &str| scenario.source.as_run().contains(text);
    !faults.is_none() && (changes("down") || changes("flap"))
}

fn of_flows(scenario: &Scenario, results: &Results, broken: &mut Broken) {
    let now = results.simulated;
    let unreliable = scenario.transport.service == Service::Uc;
    let fastest = results.links.iter().map(|link| link.rate.0).max().unwrap_or(0);
    for flow in &results.flows {
        let name = &flow.name;
        let done = flow.status == FlowStatus::OK;
        broken.unless(flow.delivered <= flow.bytes, || {
            format!("{name} delivered {} of {}", flow.delivered, flow.bytes)
        });
        broken.unless(!done || flow.delivered == flow.bytes, || {
            format!("{name} is done with {} of {}", flow.delivered, flow.bytes)
        });
        broken.unless(flow.start <= now, || format!("{name} starts after the end"));
        let ended = flow.end != Instant::NEVER;
        broken.unless(ended != (flow.status == FlowStatus::Running), || {
            format!("{name} is {} and ends at {}", flow.status.name(), flow.end)
        });
        broken.unless(!ended || (flow.start <= flow.end && flow.end <= now), || {
            format!("{name} ends at {}, the run at {now}", flow.end)
        });
        broken.unless(u64::from(flow.retransmitted) <= flow.packets, || {
            format!("{name} sent {} packets, {} again", flow.packets, flow.retransmitted)
        });
        broken.unless(flow.repeated <= flow.retransmitted, || {
            format!("{name} sent {} again, {} of these again", flow.retransmitted, flow.repeated)
        });
        broken.unless(flow.goodput_bps(now) < fastest, || {
            format!("{name} has a goodput of {}", flow.goodput_bps(now))
        });
        if let Some(slowdown) = flow.slowdown() {
            let faster = routes_change(scenario)
                || unreliable && results.faults.is_some_and(|faults| faults.duplicated > 0);
            broken.unless(slowdown.is_finite() && (slowdown >= 1.0 || faster), || {
                format!("{name} has a slowdown of {slowdown}")
            });
        }
        let ideal_ends = flow.ideal.is_none_or(|ideal| !ideal.is_zero());
        broken.unless(ideal_ends, || format!("{name} takes no time alone"));
        let duplicated = results.faults.is_some_and(|faults| faults.duplicated > 0);
        broken.unless(duplicated || u64::from(flow.ecn_marked) <= flow.packets, || {
            format!("{name} sent {} packets, {} came marked", flow.packets, flow.ecn_marked)
        });
    }
    of_first_sendings(scenario, results, broken);
}

/// Each packet of a flow of one message that is done was sent once for the first time.
fn of_first_sendings(scenario: &Scenario, results: &Results, broken: &mut Broken) {
    let one_message = ["flows", "incast", "permutation", "all-to-all", "poisson", "trigger"];
    if !scenario.nic.rules.is_empty() {
        return;
    }
    let mtu = u64::from(scenario.nic.config.mtu);
    for traffic in results.traffic.iter().filter(|traffic| one_message.contains(&traffic.kind)) {
        for flow in results.flows_of(traffic).flows.iter().filter(|flow| flow.status == FlowStatus::OK) {
            let first = flow.packets - u64::from(flow.retransmitted);
            let needed = flow.bytes.div_ceil(mtu);
            broken.unless(first == needed, || {
                format!(
                    "{} ({}) is of {needed} packets and sent {first} and {} again",
                    flow.name,
                    flow.op.name(),
                    flow.retransmitted
                )
            });
        }
    }
}

fn of_tables(scenario: &Scenario, results: &Results, broken: &mut Broken) {
    let mut from = 0;
    for traffic in &results.traffic {
        let name = &traffic.name;
        broken.equal(&format!("flows of {name} begin"), traffic.flows.start, from);
        from = traffic.flows.end;
        let set = results.flows_of(traffic);
        let lost = set.flows.iter().filter(|flow| flow.status == FlowStatus::Lost).count();
        let counted = set.completed().count() + set.failed().count() + set.running().count() + lost;
        broken.equal(&format!("flows of {name}"), counted, set.flows.len());
        let ascends = |sorted: Sorted| {
            let [of_half, of_most] = [50, 99].map(|percent| sorted.percentile(percent));
            // The mean of what is all alike may round up.
            let mean = sorted.mean().map(|mean| mean * (1.0 - 1e-12));
            [of_half, of_most, sorted.max()].is_sorted() && mean <= sorted.max()
        };
        broken.unless(ascends(set.slowdowns()), || format!("slowdowns of {name} do not ascend"));
        broken.unless(ascends(set.completion_times()), || format!("times of {name} do not ascend"));
        if let Some(fairness) = set.fairness() {
            let least = 1.0 / set.flows.len() as f64;
            broken.unless((least - 1e-9..=1.0 + 1e-9).contains(&fairness), || {
                format!("the fairness of {name} is {fairness}")
            });
        }
    }
    broken.equal("flows of all tables", from, results.flows.len());
    for collective in &results.collectives {
        let name = &results.traffic[collective.table].name;
        broken.unless(collective.iterations.len() <= collective.asked as usize, || {
            format!("{name} has too many iterations")
        });
        for iteration in &collective.iterations {
            let ordered = iteration.start <= iteration.first_end && iteration.first_end <= iteration.end;
            broken.unless(ordered && iteration.end <= results.simulated, || format!("{name}: {iteration:?}"));
            if let Some(ideal) = collective.ideal
                && !routes_change(scenario)
            {
                broken.unless(iteration.time() >= ideal, || {
                    format!("{name} took {} and takes {ideal} at least", iteration.time())
                });
            }
            let slow = iteration.slowest.is_none_or(|slow| slow.time <= iteration.time());
            broken.unless(slow, || format!("{name}: {iteration:?}"));
        }
    }
    for goal in &results.goals {
        let name = &results.traffic[goal.table].name;
        let totals = goal.totals();
        broken.unless(totals.received <= totals.sent && totals.received_bytes <= totals.sent_bytes, || {
            format!("{name} received more than it sent: {totals:?}")
        });
        broken.unless(goal.path.is_some() == (totals.undone == 0), || format!("{name} is done or not"));
        let Some(path) = &goal.path else { continue };
        let parts = path.late + path.computed + path.overhead + path.messages + path.collectives;
        broken.unless(parts == path.time && goal.start + path.time <= results.simulated, || {
            format!("{name} took {} of which {parts} are told", path.time)
        });
        broken.unless(path.links.windows(2).all(|two| two[0].to == two[1].from), || {
            format!("the links of {name} do not meet")
        });
        // A collective may take less where some ranks began before the last.
        let of_messages = path.links.iter().filter(|link| link.kind.is_message());
        let ideal = of_messages.fold(Span::ZERO, |sum, link| sum + link.ideal);
        broken.unless(routes_change(scenario) || path.messages >= ideal, || {
            format!("messages of {name} took {} and take {ideal} at least", path.messages)
        });
        let least = goal.joint.iter().find(|it| it.time() < it.ideal);
        broken.unless(routes_change(scenario) || least.is_none(), || {
            format!("a collective of {name} took less than it takes at least: {least:?}")
        });
        broken.unless(goal.joint.iter().all(|it| it.times.done == it.ranks), || {
            format!("{name} is done, and not all of its collectives: {:?}", goal.joint)
        });
    }
    for rpc in &results.rpcs {
        let name = &results.traffic[rpc.table].name;
        broken.unless(rpc.read_misses <= rpc.reads, || {
            format!("{name} missed {} of {}", rpc.read_misses, rpc.reads)
        });
        broken.unless(rpc.measured <= results.simulated.since(Instant::ZERO), || {
            format!("{name} was measured too long")
        });
        broken.unless(rpc.idle_share().is_none_or(|share| (0.0..=1.0 + 1e-9).contains(&share)), || {
            format!("{name} was idle {:?}", rpc.idle_share())
        });
        let (mean, max) = (rpc.times.mean(), rpc.times.max());
        broken.unless(mean <= max && rpc.times.percentile(50) <= rpc.times.percentile(99), || {
            format!("times of {name}")
        });
    }
}

/// Octets of preamble and gap of each frame.
const GAP: u64 = 20;

/// How long `octets` take at `rate`.
fn transmission(octets: u64, rate: BitsPerSec) -> Span {
    let ps = u128::from(octets) * 8_000_000_000_000 / u128::from(rate.0.max(1));
    Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
}

fn sum<T>(of: &[T], value: impl Fn(&T) -> u64) -> u64 {
    of.iter().map(value).sum()
}

fn of_links(results: &Results, broken: &mut Broken) {
    for link in &results.links {
        let name = &link.name;
        let of = |value: fn(&PriorityResult) -> u64| sum(&link.priorities, value);
        if !link.priorities.is_empty() {
            broken.equal(&format!("octets of {name}"), link.tx_bytes, of(|it| it.tx_bytes));
            broken.equal(&format!("drops of {name}"), link.drops, of(|it| it.drops));
            broken.equal(&format!("marks of {name}"), link.ecn_marks, of(|it| it.ecn_marks));
            broken.equal(&format!("losses of {name}"), link.lost, of(|it| it.lost));
            broken.equal(&format!("damages of {name}"), link.corrupted, of(|it| it.corrupted));
            broken.equal(&format!("pauses of {name}"), link.pause_received, of(|it| it.pause_received));
            let paused = link.priorities.iter().map(|it| it.paused).fold(Span::ZERO, |sum, it| sum + it);
            broken.equal(&format!("time that {name} was paused"), link.paused, paused);
        }
        // Counted from the start of a transmission: one may be under way, and what is rounded up for each packet is a picosecond.
        let packets = of(|it| it.packets);
        let busy = transmission(link.tx_bytes + GAP * packets, link.rate);
        let frame = transmission(16_000, link.rate);
        let most = results.simulated.since(Instant::ZERO) + frame;
        broken.unless(busy <= most, || format!("{name} was busy for {busy} of {}", results.simulated));
        for it in &link.priorities {
            broken.unless(it.paused <= results.simulated.since(Instant::ZERO), || {
                format!("{name} was paused for {}", it.paused)
            });
        }
    }
    let crossed: u64 = results.links.iter().flat_map(|link| &link.priorities).map(|it| it.packets).sum();
    broken.equal("link crossings", results.packet_hops, crossed);
    if let Some(faults) = results.faults {
        broken.equal(
            "lost to faults",
            faults.dropped,
            sum(&results.links, |link| link.lost) + faults.dropped_in_switches,
        );
        broken.equal("damaged by faults", faults.corrupted, sum(&results.links, |link| link.corrupted));
        let by_rules: u64 = sum(&results.rules, |rule| rule.lost);
        broken.unless(by_rules <= results.lost(), || {
            format!("{by_rules} lost by rules, of {}", results.lost())
        });
    } else {
        broken.equal("lost without faults", sum(&results.links, |link| link.lost + link.corrupted), 0);
    }
    for (place, host) in results.hosts.iter().enumerate() {
        let sends = &results.links[place];
        broken.equal(&format!("octets sent by {}", host.name), host.tx_bytes, sends.tx_bytes);
        broken.equal(&format!("time that {} was paused", host.name), host.paused, sends.paused);
        broken.equal(
            &format!("how often {} was paused", host.name),
            host.pause_received,
            sends.pause_received,
        );
        let to: Vec<&LinkResult> = into(results, &host.name);
        let sent: u64 = to.iter().map(|link| link.tx_bytes).sum();
        let copies = results.faults.is_some_and(|faults| faults.duplicated + faults.forged_cnps > 0);
        broken.unless(copies || host.rx_bytes <= sent, || {
            format!("{} received {} of {sent}", host.name, host.rx_bytes)
        });
    }
    let of_hosts: u64 = results.links[..results.hosts.len()]
        .iter()
        .flat_map(|link| &link.priorities)
        .map(|it| it.packets)
        .sum();
    broken.equal("packets", results.packets, of_hosts);
}

/// The ways of links that lead to `node`.
fn into<'a>(results: &'a Results, node: &str) -> Vec<&'a LinkResult> {
    let end = |link: &LinkResult| {
        link.name.split_once('>').map(|(_, to)| to.split('#').next().unwrap_or(to).to_owned())
    };
    results.links.iter().filter(|link| end(link).as_deref() == Some(node)).collect()
}

/// And those that begin there.
fn out_of<'a>(results: &'a Results, node: &str) -> Vec<&'a LinkResult> {
    results
        .links
        .iter()
        .filter(|link| link.name.split_once('>').map(|(from, _)| from) == Some(node))
        .collect()
}

fn of_switches(scenario: &Scenario, results: &Results, broken: &mut Broken) {
    let (links, switches) = (&results.links, &results.switches);
    broken.equal("drops", sum(switches, |it| it.drops), sum(links, |it| it.drops));
    broken.equal("marks", sum(switches, |it| it.ecn_marks), sum(links, |it| it.ecn_marks));
    broken.equal("trimmed", sum(switches, |it| it.trimmed), sum(links, |it| it.trimmed));
    let in_switches = sum(switches, |it| it.lost_as_it_failed + it.lost_without_way);
    broken.equal("lost in switches", in_switches, results.faults.map_or(0, |it| it.dropped_in_switches));
    let fastest = scenario.topology.graph.fastest_rates();
    for (switch, rate) in switches.iter().zip(fastest) {
        let name = &switch.name;
        let config = scenario.switch.config_of(name, rate);
        let buffer = config.buffer.0;
        broken.unless(switch.max_buffer_bytes <= buffer, || {
            format!("{name} held {} of {buffer}", switch.max_buffer_bytes)
        });
        let (from, to) = (out_of(results, name), into(results, name));
        let of = |of: &[&LinkResult], value: fn(&LinkResult) -> u64| {
            of.iter().map(|link| value(link)).sum::<u64>()
        };
        broken.equal(&format!("pauses of {name}"), switch.pause_received, of(&from, |it| it.pause_received));
        broken.unless(switch.pause_sent >= of(&to, |it| it.pause_received), || {
            format!("{name} paused less often than it was heard")
        });
        broken
            .unless(switch.drops_behind_pause <= switch.drops, || format!("{name} dropped {}", switch.drops));
        broken.unless(config.trim.is_some() || switch.trimmed == 0, || {
            format!("{name} trimmed {}", switch.trimmed)
        });
        broken.unless(config.ecn.is_some() || switch.ecn_marks == 0, || {
            format!("{name} marked {}", switch.ecn_marks)
        });
        broken.unless(switch.imbalance.is_none_or(f64::is_finite), || {
            format!("{name}: {:?}", switch.imbalance)
        });
        for link in &from {
            for it in &link.priorities {
                let most = it.max_queue_bytes.unwrap_or(0);
                broken.unless(most <= switch.max_buffer_bytes, || {
                    format!("{} held {most}, {name} {}", link.name, switch.max_buffer_bytes)
                });
            }
        }
        kept(results, switch, (&from, &to), broken);
    }
    lossless(scenario, results, broken);
}

/// What came into a switch left it, was dropped or lost there, or is there or on its way there still.
fn kept(
    results: &Results,
    switch: &SwitchResult,
    (from, to): (&[&LinkResult], &[&LinkResult]),
    broken: &mut Broken,
) {
    let packets =
        |of: &[&LinkResult]| of.iter().flat_map(|link| &link.priorities).map(|it| it.packets).sum::<u64>();
    let name = &switch.name;
    let lost: u64 = to.iter().map(|link| link.lost).sum();
    let copies = results.faults.map_or(0, |faults| faults.duplicated + faults.forged_cnps);
    let (came, left) = (packets(to) + copies, packets(from));
    let gone = left + switch.drops + switch.lost_as_it_failed + switch.lost_without_way + lost;
    broken.unless(gone <= came, || {
        format!("{name} was sent {came} packets, and of {gone} it is known where they went")
    });
    // The last flow is one that begins when all others are over, and finds nothing on its way.
    let alone = results.flows.last().is_some_and(|last| {
        let others = &results.flows[..results.flows.len() - 1];
        let over = others.iter().map(|flow| flow.end).max().unwrap_or(Instant::ZERO);
        let slowest = results.links.iter().map(|link| link.rate).min().unwrap_or(BitsPerSec(1));
        let empties =
            transmission(sum(&results.switches, |it| it.max_buffer_bytes), slowest) + Span::from_millis(100);
        let alone = over != Instant::NEVER && over + empties < last.start;
        alone && last.name.to_string() == LAST && last.status == FlowStatus::OK && last.retransmitted == 0
    });
    // A storm of pauses that goes on may hold packets for ever.
    if alone && copies == 0 && !results.scenario.contains("pause_storm") {
        broken.unless(gone + 1 >= came, || {
            format!("{name} was sent {came} packets, and only of {gone} it is known where they went")
        });
    }
}

/// The name of the flow that comes when all is over.
pub(crate) const LAST: &str = "last";

/// Where all that is sent is lossless and the buffer has room, no switch drops a packet.
fn lossless(scenario: &Scenario, results: &Results, broken: &mut Broken) {
    let all_pause = scenario.switch.classes.pause == u8::MAX;
    let plain = scenario.faults.is_none() && scenario.switch_writes.is_empty();
    let room = scenario
        .switch
        .configs()
        .all(|config| config.pfc.is_some() && config.trim.is_none() && config.buffer.0 >= 1_000_000);
    if all_pause && plain && room {
        broken.equal("drops where all is lossless", sum(&results.switches, |it| it.drops), 0);
    }
}

fn of_queues(results: &Results, broken: &mut Broken) {
    let peaks: BTreeMap<String, u64> = results
        .priorities()
        .filter_map(|(link, of)| Some((format!("{}:{}", link.name, of.priority), of.max_queue_bytes?)))
        .collect();
    for depth in results.series.depths() {
        let ordered = depth.p50_bytes <= depth.p99_bytes && depth.p99_bytes <= depth.max_bytes;
        broken.unless(ordered && depth.mean_bytes <= depth.max_bytes as f64, || format!("{depth:?}"));
        let peak = peaks.get(&depth.queue).copied();
        broken.unless(peak.is_none_or(|peak| depth.max_bytes <= peak), || {
            format!("{depth:?} with a peak of {peak:?}")
        });
    }
    for (place, flow) in (0u32..).zip(&results.flows) {
        let mut before = 0;
        for (at, reading) in results.series.flow_readings(place) {
            broken.unless(before <= reading.payload && reading.payload <= flow.delivered, || {
                format!(
                    "{} had delivered {} at {at}, after {before}, of {}",
                    flow.name, reading.payload, flow.delivered
                )
            });
            before = reading.payload;
        }
    }
}

/// `flows.csv`.
pub(crate) fn flows_csv(results: &Results) -> String {
    let mut csv = Vec::new();
    flows::write(&mut csv, results).expect("memory can be written");
    String::from_utf8(csv).expect("it is text")
}

fn of_files(results: &Results, broken: &mut Broken) {
    let csv = flows_csv(results);
    broken.equal("lines of flows.csv", csv.lines().count(), results.flows.len() + 1);
    let mut file = Vec::new();
    links::write(&mut file, results).expect("memory can be written");
    priorities::write(&mut file, results).expect("memory can be written");
    series::write_csv(&mut file, results).expect("memory can be written");
    report::write(&mut file, results).expect("memory can be written");
    let text = String::from_utf8(file).expect("it is text");
    for odd in ["NaN", "inf,", "inf\n", ">inf<"] {
        broken.unless(!text.contains(odd), || {
            let at = text.find(odd).unwrap_or(0);
            let around = text[..at].char_indices().rev().nth(60).map_or(0, |(place, _)| place);
            format!("an output has {odd}: {}", &text[around..(at + 8).min(text.len())])
        });
    }
    let mut json = Vec::new();
    summary::write(&mut json, results).expect("memory can be written");
    match serde_json::from_slice::<serde_json::Value>(&json) {
        Err(error) => broken.0.push(format!("summary.json: {error}")),
        Ok(summary) => {
            broken.equal(
                "flows in summary.json",
                summary["flows"].as_array().map(Vec::len),
                Some(results.flows.len()),
            );
            let told: u64 = summary["traffic"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|it| it["flows"].as_u64())
                .sum();
            broken.equal("flows of tables in summary.json", told, results.flows.len() as u64);
            let slowdowns =
                summary["flows"].as_array().into_iter().flatten().map(|it| it["slowdown"].as_f64());
            let same = slowdowns.zip(results.flows.iter().map(FlowResult::slowdown)).all(|(told, of)| {
                told.zip(of)
                    .map_or(told.is_none() && of.is_none(), |(told, of)| (told / of - 1.0).abs() < 1e-12)
            });
            broken.unless(same, || "slowdowns in summary.json".to_owned());
        }
    }
}
