//! Rules of `[[transport.on]]` that no flow falls under.

mod alike;

use crate::traffic::Traffic;
use crate::traffic::collective::Algorithm;
use alike::Alike;
use roci_fabric::packet::HostId;
use roci_fabric::topology::{Pairing, Topology};
use std::collections::BTreeSet;

/// So many pairs of hosts are looked at of which no two are alike, and among no more hosts each two. Of rules that no flow has met by then nothing is
/// said, for one of the others may.
const PAIRS: usize = 1 << 17;

/// So many pairs of which it is known that they talk are gone through to find those that are not alike.
const KNOWN: usize = 1 << 22;

/// How far a rule got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Met {
    /// No flow has both ends on its NICs.
    No,
    /// Flows have, and rules after it decide for all of them.
    Below,
    /// It decides for some flow.
    Yes,
}

/// What a user should know of `rules`, each the NICs that it is about, in the order of the text: the `first` of them that is written has number 1, and
/// those before are nobody's.
pub(super) fn notes(
    topology: &Topology,
    rules: &[BTreeSet<u32>],
    first: usize,
    traffic: &[Traffic],
) -> Vec<String> {
    if rules.len() == first {
        return Vec::new();
    }
    let Some(met) = met(topology, rules, traffic) else { return Vec::new() };
    let why = |met: &Met| match met {
        Met::No => Some("none has both ends on NICs that it names"),
        Met::Below => Some("of those between NICs that it names, later rules decide for all"),
        Met::Yes => None,
    };
    let written = met.iter().skip(first).zip(1..);
    let unmet = written.filter_map(|(met, number)| Some((number, why(met)?)));
    unmet
        .map(|(number, why)| format!("rule {number} of `[[transport.on]]` is about no flow: {why}"))
        .collect()
}

/// How far each rule got; `None` where there is too much to look at.
fn met(topology: &Topology, rules: &[BTreeSet<u32>], traffic: &[Traffic]) -> Option<Vec<Met>> {
    let mut pairing = Pairing::of(topology)?;
    let mut met = vec![Met::No; rules.len()];
    // Flows are between two NICs.
    let is_known = |(rule, met): (&BTreeSet<u32>, &Met)| rule.len() < 2 || *met == Met::Yes;
    let alike = Alike::of(topology, rules);
    let mut looked_at = BTreeSet::new();
    let (mut left, mut all_are) = (KNOWN, false);
    for table in traffic {
        let mut known = table.pairs().into_iter().flatten().map(|(a, b, _)| [a, b]).peekable();
        // Known too, but not worth counting up.
        let is_each_two = matches!(table, Traffic::Collective(it) if it.algorithm == Algorithm::Direct
            && !it.operation.has_root()
            && it.ranks.len() == topology.hosts().len());
        let are_known = !is_each_two && known.peek().is_some();
        if all_are && !are_known {
            continue;
        }
        all_are |= !are_known;
        let pairs: &mut dyn Iterator<Item = [HostId; 2]> =
            if are_known { &mut known } else { &mut alike.each_two(PAIRS)?.into_iter() };
        for hosts in pairs {
            if rules.iter().zip(&met).all(is_known) {
                return Some(met);
            }
            left = left.checked_sub(1)?;
            if !looked_at.insert(alike.kind(hosts)) {
                continue;
            }
            if looked_at.len() > PAIRS {
                return None;
            }
            for nics in pairing.nearest(hosts) {
                let holds = |rule: &BTreeSet<u32>| nics.iter().all(|nic| rule.contains(&nic.0.into()));
                let of_both = rules.iter().zip(&mut met).rev().filter(|(rule, _)| holds(rule));
                for ((_, met), got) in
                    of_both.zip([Met::Yes].into_iter().chain(std::iter::repeat(Met::Below)))
                {
                    *met = got.max(*met);
                }
            }
        }
    }
    Some(met)
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;
    use crate::scenario::networks::tests::RAILS;

    /// What is said of these rules, with flows between these hosts, or with `traffic` of another kind.
    fn told(rules: &str, traffic: &str) -> Vec<String> {
        told_on(RAILS, rules, traffic)
    }

    fn told_on(network: &str, rules: &str, traffic: &str) -> Vec<String> {
        let text = format!("{network}{traffic}\ntransport.on = [{rules}]\n");
        let scenario = Scenario::parse(&text, "here.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
        scenario.notes().filter(|note| note.contains("is about no flow")).map(str::to_owned).collect()
    }

    fn flows(pairs: &[[&str; 2]]) -> String {
        let flows = pairs.iter().map(|[a, b]| format!("{{ src = \"{a}\", dst = \"{b}\", size = \"1KB\" }}"));
        format!("traffic = [{{ kind = \"flows\", flows = [{}] }}]", flows.collect::<Vec<_>>().join(", "))
    }

    const ANY: &str = "traffic = [{ kind = \"poisson\", sizes = \"10KB\", load = 0.1 }]\nstop = \"1ms\"";

    #[test]
    fn a_rule_about_nics_between_which_no_flow_is_is_told_of() {
        let apart = "rule 1 of `[[transport.on]]` is about no flow: none has both ends on NICs that it names";
        let up = "{ switches = [\"up*\"], control = \"swift\" }";
        assert!(told(up, &flows(&[["h0", "h1"]])).is_empty());
        assert_eq!(told(up, &flows(&[["h0", "h2"], ["h1", "h3"]])), [apart]);
        // Flows within a server take its own links, so that nobody talks between these two.
        let others = "{ hosts = [\"h0.0\", \"h1.0\"], control = \"swift\" }";
        assert_eq!(told(others, &flows(&[["h0", "h1"]])), [apart]);
        assert_eq!(told(others, ANY), [apart]);
        // Each server has a switch of its own: of these two NICs none reaches the other.
        assert_eq!(told("{ hosts = [\"h0.1\", \"h2.1\"], control = \"swift\" }", ANY), [apart]);
        assert_eq!(told("{ hosts = [\"h0.1\"], control = \"swift\" }", ANY), [apart], "a NIC alone");
        assert_eq!(told("{ hosts = [\"h0.1\"] }", ANY), [apart], "without a control too");
        assert!(told("{ switches = [\"up1\"], control = \"swift\" }", ANY).is_empty());
        assert!(told("", ANY).is_empty(), "nobody wrote the rule that there is");
    }

    #[test]
    fn rules_are_judged_among_thousands_of_hosts_too() {
        let rails = "topology = { kind = \"rails\", servers = 512, gpus = 8, spines = 4, servers_per_leaf = 64, rate = \"400Gb/s\", delay = \"1us\", \
            scale_up = \"3.6Tb/s\", scale_up_delay = \"100ns\" }\n";
        let told = |rules: &str| told_on(rails, rules, ANY);
        let rule = |nics: &str| format!("{{ {nics}, control = \"swift\" }}");
        let apart =
            ["rule 1 of `[[transport.on]]` is about no flow: none has both ends on NICs that it names"];
        assert_eq!(told(&rule("hosts = [\"h0.1\"]")), apart, "a NIC alone");
        let of_three_servers = rule("hosts = [\"h0.1\", \"h8.1\", \"h16.1\"]");
        assert_eq!(told(&of_three_servers), apart);
        // Two of one server talk over its own switch.
        assert_eq!(told(&rule("hosts = [\"h0.0\", \"h1.0\"]")), apart);
        assert!(told(&rule("hosts = [\"h0.0\", \"h8.0\"]")).is_empty());
        assert!(told(&rule("switches = [\"up511\"]")).is_empty());
        let both = format!("{}, {}", rule("switches = [\"up7\"]"), rule("switches = [\"up*\"]"));
        let [only] = &told(&both)[..] else { panic!("one rule") };
        assert!(only.contains("later rules decide for all"), "{only}");
        // Of these it is known who talks to whom: millions of pairs.
        for way in ["direct", "pxn\", ranks_per_server = 8, name = \"rails"] {
            let traffic = format!(
                "traffic = [{{ kind = \"collective\", operation = \"all-to-all\", size = \"1MiB\", algorithm = \"{way}\" }}]"
            );
            assert_eq!(told_on(rails, &of_three_servers, &traffic), apart, "{way}");
        }
    }

    #[test]
    fn a_rule_whose_flows_later_ones_all_decide_for_is_told_of_with_its_number() {
        let rule = |nics: &str| format!("{{ {nics}, control = \"swift\" }}");
        let [first, all, one] =
            ["switches = [\"up0\"]", "switches = [\"up*\"]", "switches = [\"up1\"]"].map(rule);
        let below = |number: u32| {
            format!(
                "rule {number} of `[[transport.on]]` is about no flow: of those between NICs that it names, later rules decide for all"
            )
        };
        assert_eq!(told(&format!("{first}, {all}"), ANY), [below(1)]);
        assert!(told(&format!("{all}, {first}"), ANY).is_empty());
        // Neither of the two later ones is about all that the first is about.
        assert_eq!(told(&format!("{all}, {first}, {one}"), ANY), [below(1)]);
        assert_eq!(told(&format!("{first}, {first}, {one}"), &flows(&[["h0", "h1"]])).len(), 2);
    }
}
