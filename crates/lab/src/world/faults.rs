//! From the faults of a scenario, rules in force for a time, to nodes on the links.

use crate::results::effect::{Goodput, RuleResult};
use crate::scenario::Scenario;
use crate::scenario::faults::{FaultRule, Faults, LinkFaults, Loss, SwitchRule, SwitchState};
use roci_fabric::change::{Outage, Part};
use roci_fabric::fault::{Count, Fault, FaultSpec, Turns};
use roci_fabric::graph::{Graph, Link, NodeId};
use roci_fabric::net::Net;
use roci_units::{Instant, Ratio};

/// All faults of `scenario`, those of its topology file included.
pub(super) fn specs(scenario: &Scenario) -> Vec<FaultSpec> {
    with_tables(scenario).into_iter().map(|(_, spec)| spec).collect()
}

/// A fault or an outage, and the place of the table of `[[faults.on]]` that it comes from; `None`: from none.
type Of<T> = (Option<usize>, T);

fn with_tables(scenario: &Scenario) -> Vec<Of<FaultSpec>> {
    let mut specs = Vec::new();
    // First, so that their draws are the same whatever tables there are: of losses alike, each draws by its place among them.
    for &(link, loss) in &scenario.topology.loss {
        let Link { a, b, .. } = scenario.topology.graph.links[link as usize];
        for from in [a, b] {
            let fault = Fault::Loss(loss);
            let (start, until) = (Instant::ZERO, Instant::NEVER);
            specs.push((None, FaultSpec { link, from, start, until, fault }));
        }
    }
    for (place, link) in (0u32..).zip(&scenario.topology.graph.links) {
        for from in [link.a, link.b] {
            one_way(scenario, place, from, &mut specs);
        }
    }
    specs
}

/// The faults of one way of one link: from each change of rules to the next, the last rule in force decides.
fn one_way(scenario: &Scenario, link: u32, from: NodeId, specs: &mut Vec<Of<FaultSpec>>) {
    let faults = &scenario.faults;
    let rules: Vec<&FaultRule> = faults.rules.iter().filter(|rule| rule.concerns(link, from.0)).collect();
    if rules.is_empty() && faults.common.is_none() {
        return;
    }
    let period = |rule: &FaultRule| (rule.from, rule.until.unwrap_or(Instant::NEVER));
    let data = scenario.switch.classes.data;
    for (start, until, rule) in ruling(&rules, period) {
        let (faults, began) = rule.map_or((&faults.common, Instant::ZERO), |rule| (&rule.faults, rule.from));
        // Zero is that of the common ones.
        let chain = (1u32..).zip(&rules).find(|(_, one)| rule.is_some_and(|rule| std::ptr::eq(**one, rule)));
        let nodes = nodes(faults, began, chain.map_or(0, |(chain, _)| chain), data);
        let table = rule.map(|rule| rule.table.0);
        specs.extend(nodes.map(|fault| (table, FaultSpec { link, from, start, until, fault })));
    }
    for rule in rules {
        if let Some(cnp) = rule.cnp {
            let fault =
                Fault::ForgedCnp { threshold: cnp.threshold, window: cnp.window, cooldown: cnp.cooldown };
            let (start, until) = period(rule);
            specs.push((Some(rule.table.0), FaultSpec { link, from, start, until, fault }));
        }
    }
}

/// Which of `rules`, each with its period, holds from when to when: of several in force the last; or none.
fn ruling<'a, R>(
    rules: &[&'a R],
    period: impl Fn(&R) -> (Instant, Instant),
) -> Vec<(Instant, Instant, Option<&'a R>)> {
    let mut changes = vec![Instant::ZERO, Instant::NEVER];
    changes.extend(rules.iter().flat_map(|rule| <[Instant; 2]>::from(period(rule))));
    changes.sort_unstable();
    changes.dedup();
    let mut ruling: Vec<(Instant, Instant, Option<&R>)> = Vec::new();
    for pair in changes.windows(2) {
        let in_force = |rule: &&&R| {
            let (from, until) = period(rule);
            from <= pair[0] && pair[0] < until
        };
        let now = rules.iter().rfind(in_force).copied();
        match ruling.last_mut() {
            // A rule that goes on keeps its state: a burst of losses does not end because another rule began.
            Some(last) if last.2.map(std::ptr::from_ref) == now.map(std::ptr::from_ref) => last.1 = pair[1],
            _ => ruling.push((pair[0], pair[1], now)),
        }
    }
    ruling
}

/// What is down when: switches, and the links that routes are to lead around.
pub(super) fn outages(scenario: &Scenario) -> Vec<Outage> {
    outages_with_tables(scenario).into_iter().map(|(_, outage)| outage).collect()
}

fn outages_with_tables(scenario: &Scenario) -> Vec<Of<Outage>> {
    let faults = &scenario.faults;
    let mut outages = Vec::new();
    for switch in (0u32..).take(scenario.topology.graph.switches.len()) {
        let concerns = |rule: &&SwitchRule| rule.switches.binary_search(&switch).is_ok();
        let rules: Vec<&SwitchRule> = faults.switches.iter().filter(concerns).collect();
        let period = |rule: &SwitchRule| (rule.from, rule.until.unwrap_or(Instant::NEVER));
        for (start, until, rule) in ruling(&rules, period) {
            let turns = match rule.map(|rule| (rule.state, rule.from)) {
                None | Some((SwitchState::Up, _)) => continue,
                Some((SwitchState::Down, _)) => None,
                Some((SwitchState::Flaps(flap), began)) => {
                    Some(Turns { began, up: flap.up, down: flap.down })
                }
            };
            let table = rule.map(|rule| rule.table.0);
            outages.push((table, Outage { part: Part::Switch(switch), start, until, turns }));
        }
    }
    if faults.detect().is_some() {
        // A link that is down one way is avoided both ways: its ends tell each other.
        outages.extend(with_tables(scenario).iter().filter_map(|(table, spec)| {
            let turns = match spec.fault {
                Fault::Down => None,
                Fault::Flap(turns) if faults.follows_flaps() => Some(turns),
                _ => return None,
            };
            let part = Part::Link(spec.link);
            Some((*table, Outage { part, start: spec.start, until: spec.until, turns }))
        }));
        let with_switches = links_with_switches(&scenario.topology.graph, &outages);
        outages.extend(with_switches);
    }
    outages
}

/// The outages of switches as those of their links, where these have some of their own: a neighbour sees neither which of the two is
/// down, nor that one begins as the other ends.
fn links_with_switches(graph: &Graph, outages: &[Of<Outage>]) -> Vec<Of<Outage>> {
    let own = |link: u32| outages.iter().any(|(_, outage)| outage.part == Part::Link(link));
    let links: Vec<(u32, &Link)> = (0u32..).zip(&graph.links).filter(|(place, _)| own(*place)).collect();
    let node = |switch: u32| graph.hosts.len() + switch as usize;
    let of_links = outages.iter().flat_map(|(table, outage)| {
        let Outage { part: Part::Switch(switch), .. } = *outage else { return Vec::new() };
        let ends = |link: &Link| [link.a, link.b].iter().any(|end| end.0 as usize == node(switch));
        let its = links.iter().filter(|(_, link)| ends(link));
        its.map(|(place, _)| (*table, Outage { part: Part::Link(*place), ..*outage })).collect()
    });
    of_links.collect()
}

/// What each table of `[[faults.on]]` did to packets and to `goodput`, in their order.
pub(super) fn results(scenario: &Scenario, net: &Net, goodput: &Goodput<'_>) -> Vec<RuleResult> {
    let Faults { rules, switches, .. } = &scenario.faults;
    let result = |table: &(usize, String), what: Vec<&str>, from, until| {
        let lost = Count::default();
        let recurs = what.contains(&"flap");
        (table.0, lost, table.1.clone(), what.join(", "), from, until, recurs)
    };
    let of_links = rules.iter().map(|rule| {
        let mut what = rule.faults.keys();
        what.extend(rule.cnp.map(|_| "cnp"));
        result(&rule.table, what, rule.from, rule.until)
    });
    let of_switches = switches.iter().map(|rule| {
        let what = match rule.state {
            SwitchState::Up => vec![],
            SwitchState::Down => vec!["down"],
            SwitchState::Flaps(_) => vec!["flap"],
        };
        result(&rule.table, what, rule.from, rule.until)
    });
    let mut results: Vec<_> = of_links.chain(of_switches).collect();
    results.sort_by_key(|result| result.0);
    let faults = with_tables(scenario).into_iter().enumerate();
    let faults = faults.map(|(place, (table, _))| (table, net.lost_to_fault(place)));
    let outages = outages_with_tables(scenario).into_iter().enumerate();
    let outages = outages.map(|(place, (table, _))| (table, net.lost_to_outage(place)));
    for (table, lost) in faults.chain(outages) {
        if let Some(result) = table.and_then(|table| results.get_mut(table)) {
            result.1.packets += lost.packets;
            result.1.octets += lost.octets;
        }
    }
    let told = results.into_iter().map(|(_, lost, name, what, from, until, recurs)| RuleResult {
        name,
        what,
        from,
        until,
        lost: lost.packets,
        lost_octets: lost.octets,
        effect: goodput.effect(from, until, recurs),
    });
    told.collect()
}

/// What stands on a link with these faults, in the order in which a packet meets it. They `began` when their rule did,
/// though another may have held in its place for a while: a flap's turns are counted from there, and the `chain` of its losses goes on.
fn nodes(faults: &LinkFaults, began: Instant, chain: u32, data: u8) -> impl Iterator<Item = Fault> {
    let some = |chance: Ratio| (chance != Ratio::ZERO).then_some(chance);
    let loss = match faults.loss {
        Loss::Bernoulli(chance) => some(chance).map(Fault::Loss),
        Loss::GilbertElliott { to_bad, to_good, good, bad } => {
            Some(Fault::GilbertElliott { to_bad, to_good, loss_good: good, loss_bad: bad, chain })
        }
    };
    [
        faults.rate.map(Fault::Rate),
        faults.down.then_some(Fault::Down),
        faults.flap.map(|flap| Fault::Flap(Turns { began, up: flap.up, down: flap.down })),
        loss,
        (!faults.ber.is_zero()).then_some(Fault::BitErrors(faults.ber)),
        some(faults.corrupt).map(Fault::Corrupt),
        some(faults.duplicate).map(Fault::Duplicate),
        faults
            .delay
            .map(|delay| Fault::Delay { delay: delay.min, jitter: delay.max.saturating_sub(delay.min) }),
        faults.reorder.map(|reorder| Fault::Reorder { chance: reorder.share, delay: reorder.by }),
        faults.pause_storm.map(|storm| Fault::PauseStorm { priority: storm.priority.unwrap_or(data) }),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_units::Span;

    const STAR: &str = r#"
        [topology]
        kind = "star"
        hosts = 2
        rate = "10Gb/s"
        delay = "1us"
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h0", dst = "h1", op = "write", size = "1MB" }]
    "#;

    /// What stands on the link `h0>s0` of a star with these rules.
    fn on_the_first_link(rules: &str) -> Vec<(u64, u64, Fault)> {
        let scenario = Scenario::parse(&format!("{STAR}{rules}"), "here.toml", &[]).unwrap();
        let specs = specs(&scenario);
        let own = specs.iter().filter(|spec| spec.link == 0 && spec.from == NodeId(0));
        let micros = |at: Instant| at.as_ps() / 1_000_000;
        let mut own: Vec<_> = own.map(|spec| (micros(spec.start), micros(spec.until), spec.fault)).collect();
        own.sort_by_key(|(start, ..)| *start);
        own
    }

    #[test]
    fn a_burst_of_losses_goes_on_behind_another_rule_of_the_link() {
        let rules = r#"
            [faults]
            loss = { to_bad = 0.01, to_good = 0.1 }
            [[faults.on]]
            link = "*-*"
            from = "5us"
            until = "90us"
            loss = { to_bad = 0.01, to_good = 0.1 }
            [[faults.on]]
            link = "h0-s0"
            from = "50us"
            until = "60us"
            loss = 0.1
        "#;
        let chains: Vec<_> = on_the_first_link(rules)
            .into_iter()
            .map(|(start, _, fault)| match fault {
                Fault::GilbertElliott { chain, .. } => (start, Some(chain)),
                _ => (start, None),
            })
            .collect();
        assert_eq!(chains, [(0, Some(0)), (5, Some(1)), (50, None), (60, Some(1)), (90, Some(0))]);
    }

    /// A fault draws by its way, what it is and when it begins.
    #[test]
    fn one_more_table_leaves_all_other_faults_as_they_are_wherever_it_stands() {
        let placed = |rules: &str| {
            let scenario = Scenario::parse(&format!("{STAR}{rules}"), "here.toml", &[]).unwrap();
            let drawn_by = |spec: FaultSpec| (spec.link, spec.from, spec.start, spec.fault);
            specs(&scenario).into_iter().map(drawn_by).collect::<Vec<_>>()
        };
        let common = "[faults]\nloss = 0.01\ncorrupt = 0.02\n";
        let table = "[[faults.on]]\nlink = \"h1-s0\"\nfrom = \"7us\"\nduplicate = 0.1\n";
        let before = placed(&format!("{common}{table}"));
        assert_eq!(before.len(), 4 * 2 + 2);
        for link in ["h0-s0", "*-*"] {
            for period in ["from = \"2us\"\nuntil = \"7us\"", "until = \"5us\""] {
                let more = format!("[[faults.on]]\nlink = \"{link}\"\n{period}\nreorder = 0.1\n");
                for rules in [format!("{common}{more}{table}"), format!("{common}{table}{more}")] {
                    let after = placed(&rules);
                    let own =
                        before.iter().filter(|fault| fault.2 > Instant::ZERO || fault.0 > 0 && link != "*-*");
                    assert!(own.clone().count() >= 2);
                    own.for_each(|fault| assert!(after.contains(fault), "{fault:?} of {rules}"));
                }
            }
        }
    }

    #[test]
    fn a_flap_keeps_its_turns_through_another_rule_of_the_link() {
        let (up, down) = (Span::from_micros(30), Span::from_micros(10));
        let flap = |began| Fault::Flap(Turns { began: Instant::ZERO + Span::from_micros(began), up, down });
        let never = Instant::NEVER.as_ps() / 1_000_000;
        let loss = Fault::Loss(Ratio::new(1, 10));
        let rules = r#"
            [[faults.on]]
            link = "h0-s0"
            from = "5us"
            flap = { up = "30us", down = "10us" }
            [[faults.on]]
            link = "h0>s0"
            from = "50us"
            until = "67us"
            loss = 0.1
        "#;
        assert_eq!(on_the_first_link(rules), [(5, 50, flap(5)), (50, 67, loss), (67, never, flap(5))]);
        let common = "[faults]\nflap = { up = \"30us\", down = \"10us\" }\n";
        let rule = "[[faults.on]]\nlink = \"h0-s0\"\nfrom = \"50us\"\nuntil = \"67us\"\nloss = 0.1\n";
        let stand = on_the_first_link(&format!("{common}{rule}"));
        assert_eq!(stand, [(0, 50, flap(0)), (50, 67, loss), (67, never, flap(0))]);
    }
}
