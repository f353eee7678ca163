//! Networks on which flows have a congestion control that goes by the network, whoever sends there.

use super::spec::ControlIndex;
use roci_fabric::packet::HostId;

/// Of each NIC the congestion control of its network, where that has one; of most scenarios nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    of_nics: Vec<Option<ControlIndex>>,
}

impl Networks {
    /// Those in which the NICs have these controls.
    pub fn new(of_nics: Vec<Option<ControlIndex>>) -> Self {
        let is_none = of_nics.iter().all(Option::is_none);
        Self { of_nics: if is_none { Vec::new() } else { of_nics } }
    }

    /// Whether no network has a control of its own.
    pub const fn is_none(&self) -> bool {
        self.of_nics.is_empty()
    }

    /// The control of the network of `nic`.
    pub fn of_nic(&self, nic: HostId) -> Option<ControlIndex> {
        self.of_nics.get(usize::from(nic.0)).copied().flatten()
    }

    /// The control of a flow between `nics`, if these are on one network that has its own; others have what they have anywhere.
    pub fn control(&self, nics: [HostId; 2]) -> Option<ControlIndex> {
        let [from, to] = nics.map(|nic| self.of_nic(nic));
        from.filter(|_| from == to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_has_the_control_of_a_network_that_both_its_nics_are_on() {
        let [one, other] = [0, 1].map(|index| Some(ControlIndex(index)));
        let networks = Networks::new(vec![None, one, one, other]);
        let of = |from, to| networks.control([HostId(from), HostId(to)]);
        assert_eq!([of(1, 2), of(2, 1), of(3, 3)], [one, one, other]);
        assert_eq!([of(0, 1), of(1, 3), of(0, 9)], [None; 3]);
        assert!(!networks.is_none() && Networks::new(vec![None; 3]).is_none());
    }
}
