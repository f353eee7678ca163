//! Networks on which flows have a congestion control that goes by the network, whoever sends there.

use super::spec::ControlIndex;
use roci_fabric::packet::HostId;
use std::collections::BTreeSet;

/// Why NICs are not those of networks with a control of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfNetwork {
    /// No rule with a control is about any of them.
    NoControl,
    /// One is about some of them, and about others as well.
    Part,
}

/// The rules of congestion control by network; most scenarios have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    /// Of each rule whether it is about each NIC, and what flows between two of those have; `None`: what they have elsewhere. A later one goes before.
    rules: Vec<(Vec<bool>, Option<ControlIndex>)>,
    /// Of each NIC what its flows may have.
    of_nics: Vec<Vec<Option<ControlIndex>>>,
}

impl Networks {
    /// Those of these rules, where each NIC is on the part of the network that `parts` have it on.
    pub fn new(rules: Vec<(Vec<bool>, Option<ControlIndex>)>, parts: &[u32]) -> Self {
        if rules.iter().all(|(_, control)| control.is_none()) {
            return Self::default();
        }
        let of_nic = |(nic, part): (usize, &u32)| {
            let mut may = Vec::new();
            for (nics, control) in rules.iter().rev().filter(|(nics, _)| nics[nic]) {
                may.push(*control);
                if nics.iter().zip(parts).all(|(is_meant, other)| *is_meant || other != part) {
                    // It is about all that this one can send to.
                    return may;
                }
            }
            may.push(None);
            may
        };
        let of_nics = parts.iter().enumerate().map(of_nic).collect();
        Self { rules, of_nics }
    }

    /// Whether no network has a control of its own.
    pub const fn is_none(&self) -> bool {
        self.rules.is_empty()
    }

    /// The controls that networks have of their own.
    pub fn controls(&self) -> impl Iterator<Item = ControlIndex> {
        self.rules.iter().filter_map(|(_, control)| *control)
    }

    /// The controls of the rules that are about none but `nics`; what is wrong where another one decides for some of them.
    pub fn within(&self, nics: &BTreeSet<u32>) -> Result<Vec<ControlIndex>, OutOfNetwork> {
        let of = |nic: &u32| *nic as usize;
        let is_whole =
            |rule: &[bool]| (0..).zip(rule).all(|(nic, is_meant)| !is_meant || nics.contains(&nic));
        let rules = || self.rules.iter().filter_map(|(rule, control)| Some((rule, (*control)?)));
        let whole: Vec<_> = rules().filter(|(rule, _)| is_whole(rule)).collect();
        if whole.is_empty() && !rules().any(|(rule, _)| nics.iter().any(|nic| rule[of(nic)])) {
            return Err(OutOfNetwork::NoControl);
        }
        let is_covered = |nic: &u32| whole.iter().any(|(rule, _)| rule[of(nic)]);
        let others = || rules().filter(|(rule, _)| !is_whole(rule));
        if nics.iter().any(|nic| !is_covered(nic) && others().any(|(rule, _)| rule[of(nic)])) {
            return Err(OutOfNetwork::Part);
        }
        Ok(whole.into_iter().map(|(_, control)| control).collect())
    }

    /// What flows between `nic` and others may have: controls of its networks, and by `None` what they have anywhere.
    pub fn of_nic(&self, nic: HostId) -> &[Option<ControlIndex>] {
        self.of_nics.get(usize::from(nic.0)).map_or(&[None], Vec::as_slice)
    }

    /// The control of a flow between `nics`, by the last rule that is about both; others have what they have anywhere.
    pub fn control(&self, nics: [HostId; 2]) -> Option<ControlIndex> {
        let holds = |of: &[bool]| nics.iter().all(|nic| of.get(usize::from(nic.0)).copied().unwrap_or(false));
        self.rules.iter().rev().find(|(of, _)| holds(of)).and_then(|(_, control)| *control)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four NICs, of which the first is on a part of its own.
    fn networks(rules: &[(&[usize], Option<ControlIndex>)]) -> Networks {
        let of =
            |(nics, control): &(&[usize], _)| ((0..4).map(|nic| nics.contains(&nic)).collect(), *control);
        Networks::new(rules.iter().map(of).collect(), &[0, 1, 1, 1])
    }

    const ONE: Option<ControlIndex> = Some(ControlIndex(0));
    const OTHER: Option<ControlIndex> = Some(ControlIndex(1));

    #[test]
    fn a_flow_has_the_control_of_the_last_rule_that_is_about_both_its_nics() {
        let networks = networks(&[(&[1, 2, 3], ONE), (&[0, 3], OTHER), (&[2, 3], OTHER)]);
        let of = |from, to| networks.control([HostId(from), HostId(to)]);
        // A later rule about one end of a flow does not take that of an earlier one from it.
        assert_eq!([of(1, 2), of(2, 1), of(1, 3)], [ONE; 3]);
        assert_eq!([of(3, 2), of(3, 3), of(0, 3)], [OTHER; 3]);
        assert_eq!([of(0, 1), of(0, 9)], [None; 2]);
    }

    #[test]
    fn nics_name_networks_whose_rules_are_about_no_others() {
        let networks = networks(&[(&[0, 1, 2], ONE), (&[1, 2], OTHER), (&[3], None)]);
        let within = |nics: &[u32]| networks.within(&nics.iter().copied().collect());
        assert_eq!(within(&[0, 1, 2, 3]), Ok(vec![ControlIndex(0), ControlIndex(1)]));
        // The first rule is about more, but a later one has all of these.
        assert_eq!(within(&[1, 2]), Ok(vec![ControlIndex(1)]));
        assert_eq!(within(&[0]), Err(OutOfNetwork::Part));
        assert_eq!(within(&[0, 1]), Err(OutOfNetwork::Part));
        assert_eq!(within(&[3]), Err(OutOfNetwork::NoControl));
    }

    #[test]
    fn what_flows_of_a_nic_may_have_goes_no_further_than_a_rule_about_its_whole_part() {
        let networks = networks(&[(&[1, 2, 3], ONE), (&[2, 3], OTHER), (&[0, 3], None)]);
        let of = |nic| networks.of_nic(HostId(nic));
        assert_eq!(of(0), [None], "it can send to nobody else");
        assert_eq!(of(1), [ONE]);
        assert_eq!(of(2), [OTHER, ONE]);
        assert_eq!(of(3), [None, OTHER, ONE]);
        assert!(!networks.is_none() && self::networks(&[(&[1], None)]).is_none());
        assert_eq!(Networks::default().of_nic(HostId(2)), [None]);
    }
}
