//! Rules of `[[transport.on]]` that no flow falls under.

use crate::traffic::Traffic;
use roci_fabric::packet::HostId;
use roci_fabric::topology::{Pairing, Topology};
use std::collections::BTreeSet;

/// So many pairs of hosts are looked at. Of rules that no flow has met by then nothing is said, for one of the others may.
const PAIRS: usize = 1 << 17;

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
    let hosts = topology.hosts().len();
    let mut looked_at = BTreeSet::new();
    let everybody = || {
        let all = || (0u16..).map(HostId).take(hosts);
        all().flat_map(move |a| all().filter(move |b| *b != a).map(move |b| [a, b]))
    };
    for table in traffic {
        let mut known = table.pairs().into_iter().flatten().map(|(a, b, _)| [a, b]).peekable();
        let pairs: &mut dyn Iterator<Item = [HostId; 2]> =
            if known.peek().is_some() { &mut known } else { &mut everybody() };
        for hosts in pairs {
            if met.iter().all(|met| *met == Met::Yes) {
                return Some(met);
            }
            if !looked_at.insert(hosts) {
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
        let text = format!("{RAILS}{traffic}\ntransport.on = [{rules}]\n");
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
