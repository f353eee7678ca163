//! What was lost, by what took it: each fault of a link, each outage of a switch, each switch.

use super::Count;

/// The books of losses. What has taken nothing takes no room.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// By place among the faults of the configuration.
    faults: Vec<Count>,
    /// By place among its outages.
    outages: Vec<Count>,
    switches: Vec<InSwitch>,
}

/// Packets that a switch lost, but for those that it had no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InSwitch {
    /// What it held as it failed.
    pub failed: u64,
    /// What it knew no way on for.
    pub no_way: u64,
}

impl Losses {
    /// A fault has lost a packet of so many octets, or damaged it.
    #[cold]
    pub(crate) fn by_fault(&mut self, place: u32, octets: u64) {
        entry(&mut self.faults, place).add(octets);
    }

    /// An outage of a switch has.
    #[cold]
    pub(crate) fn by_outage(&mut self, place: u32, octets: u64) {
        entry(&mut self.outages, place).add(octets);
    }

    /// What a switch has lost.
    #[cold]
    pub(crate) fn in_switch(&mut self, switch: u32) -> &mut InSwitch {
        entry(&mut self.switches, switch)
    }

    pub(crate) fn of_fault(&self, place: usize) -> Count {
        self.faults.get(place).copied().unwrap_or_default()
    }

    pub(crate) fn of_outage(&self, place: usize) -> Count {
        self.outages.get(place).copied().unwrap_or_default()
    }

    pub(crate) fn of_switch(&self, switch: u32) -> InSwitch {
        self.switches.get(switch as usize).copied().unwrap_or_default()
    }

    /// Packets that were lost in switches.
    pub(crate) fn in_switches(&self) -> u64 {
        self.switches.iter().map(|switch| switch.failed + switch.no_way).sum()
    }
}

/// The entry at `place`, made with those before it where it is not there yet.
fn entry<T: Clone + Default>(entries: &mut Vec<T>, place: u32) -> &mut T {
    let place = place as usize;
    if entries.len() <= place {
        entries.resize(place + 1, T::default());
    }
    &mut entries[place]
}
