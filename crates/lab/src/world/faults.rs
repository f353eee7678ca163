//! From the faults of a scenario, rules in force for a time, to nodes on the links.

use crate::scenario::Scenario;
use crate::scenario::faults::{FaultRule, LinkFaults, Loss, Way};
use roci_fabric::fault::{Fault, FaultSpec, Turns};
use roci_fabric::graph::{Link, NodeId};
use roci_units::{Instant, Ratio};

/// All faults of `scenario`, those of its topology file included.
pub(super) fn specs(scenario: &Scenario) -> Vec<FaultSpec> {
    let mut specs = Vec::new();
    for (place, link) in (0u32..).zip(&scenario.topology.graph.links) {
        for from in [link.a, link.b] {
            one_way(scenario, place, from, &mut specs);
        }
    }
    for &(link, loss) in &scenario.topology.loss {
        let Link { a, b, .. } = scenario.topology.graph.links[link as usize];
        for from in [a, b] {
            let fault = Fault::Loss(loss);
            specs.push(FaultSpec { link, from, start: Instant::ZERO, until: Instant::NEVER, fault });
        }
    }
    specs
}

/// The faults of one way of one link: from each change of rules to the next, the last rule in force decides.
fn one_way(scenario: &Scenario, link: u32, from: NodeId, specs: &mut Vec<FaultSpec>) {
    let faults = &scenario.faults;
    let concerns = |rule: &&FaultRule| {
        rule.links.contains(&link)
            && match rule.way {
                Way::Both => true,
                Way::From(node) => node == from.0,
            }
    };
    let rules: Vec<&FaultRule> = faults.rules.iter().filter(concerns).collect();
    if rules.is_empty() && faults.common.is_none() {
        return;
    }
    let end = |rule: &FaultRule| rule.until.unwrap_or(Instant::NEVER);
    let mut changes = vec![Instant::ZERO, Instant::NEVER];
    changes.extend(rules.iter().flat_map(|rule| [rule.from, end(rule)]));
    changes.sort_unstable();
    changes.dedup();
    let data = scenario.switch.classes.data;
    let mut ruling: Vec<(Instant, Instant, &LinkFaults, Instant)> = Vec::new();
    for pair in changes.windows(2) {
        let in_force = |rule: &&&FaultRule| rule.from <= pair[0] && pair[0] < end(rule);
        let rule = rules.iter().rfind(in_force);
        let (now, began) = rule.map_or((&faults.common, Instant::ZERO), |rule| (&rule.faults, rule.from));
        match ruling.last_mut() {
            // A rule that goes on keeps its state: a burst of losses does not end because another rule began.
            Some(last) if std::ptr::eq(last.2, now) => last.1 = pair[1],
            _ => ruling.push((pair[0], pair[1], now, began)),
        }
    }
    for (start, until, faults, began) in ruling {
        let nodes = nodes(faults, began, data);
        specs.extend(nodes.map(|fault| FaultSpec { link, from, start, until, fault }));
    }
    for rule in rules {
        if let Some(cnp) = rule.cnp {
            let fault =
                Fault::ForgedCnp { threshold: cnp.threshold, window: cnp.window, cooldown: cnp.cooldown };
            specs.push(FaultSpec { link, from, start: rule.from, until: end(rule), fault });
        }
    }
}

/// What stands on a link with these faults, in the order in which a packet meets it. They `began` when their rule did,
/// though another may have held in its place for a while: a flap's turns are counted from there.
fn nodes(faults: &LinkFaults, began: Instant, data: u8) -> impl Iterator<Item = Fault> {
    let some = |chance: Ratio| (chance != Ratio::ZERO).then_some(chance);
    let loss = match faults.loss {
        Loss::Bernoulli(chance) => some(chance).map(Fault::Loss),
        Loss::GilbertElliott { to_bad, to_good, good, bad } => {
            Some(Fault::GilbertElliott { to_bad, to_good, loss_good: good, loss_bad: bad })
        }
    };
    [
        faults.flap.map(|flap| Fault::Flap(Turns { began, up: flap.up, down: flap.down })),
        loss,
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
        own.map(|spec| (micros(spec.start), micros(spec.until), spec.fault)).collect()
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
