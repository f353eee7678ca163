//! Cores of NICs that did not keep up with what arrived.

use super::{HostResult, Results};
use roci_nic::arch::Architecture;
use roci_nic::arch::clock::Clock;
use roci_units::{Instant, Span};
use std::fmt;

/// What to do about them.
pub const REMEDY: &str = "give `nic.with` a higher `cores.clock`, or more `cores.pairs` where several queue pairs share one; let laws hear of \
                          fewer packets, by a greater `nic.mtu` or `transport.ack_every`; or write a program that takes fewer cycles \
                          (`roci program profile` tells them)";

/// The cores of a host's NIC, as people name them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreArray {
    /// The NIC's name.
    pub nic: String,
    /// Pairs of cores.
    pub pairs: u32,
    /// Whether a single core does the work of both of a pair.
    pub shared: bool,
    /// Their clock.
    pub clock: Clock,
}

impl CoreArray {
    /// Those of `architecture`; `None` where it has none.
    pub fn of(architecture: &Architecture) -> Option<Self> {
        let (pairs, shared) = (architecture.cores.pairs, architecture.cores.shared);
        let clock = architecture.core_clock().filter(|_| pairs > 0)?;
        Some(Self { nic: architecture.name.clone(), pairs, shared, clock })
    }
}

impl fmt::Display for CoreArray {
    /// `8 pairs of cores at 250MHz`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pairs, clock) = (self.pairs, self.clock);
        match (self.shared, pairs) {
            (false, 1) => write!(f, "1 pair of cores at {clock}"),
            (false, _) => write!(f, "{pairs} pairs of cores at {clock}"),
            (true, 1) => write!(f, "1 core at {clock}"),
            (true, _) => write!(f, "{pairs} cores at {clock}"),
        }
    }
}

/// A host whose cores had packets wait, or hardly ever rested.
#[derive(Clone, Copy, Debug)]
pub struct Strained<'a> {
    /// The host.
    pub host: &'a HostResult,
    /// Its cores.
    pub cores: &'a CoreArray,
    /// How many packets waited in the receive FIFO until a core had room.
    pub packets: u64,
    /// How long, summed over them.
    pub waited: Span,
    /// The share of its time that the core was busy that was busy longest, from its first event to its last.
    pub busiest: f64,
}

impl Results {
    /// The hosts whose cores had packets wait for them in the receive FIFO, and those of which one core was busy without a
    /// break, for half of the run or longer: what is to be sent waits for it where no packet shows it. A core that has
    /// packets come back (LoopBack) is busy because it waits, and does not count.
    pub fn strained(&self) -> impl Iterator<Item = Strained<'_>> {
        /// So much of its time, and it may as well be all.
        const WITHOUT_A_BREAK: f64 = 0.95;
        self.hosts.iter().filter_map(|host| {
            let counted = host.nic.as_ref()?.cores;
            let cores = host.cores.as_deref()?;
            let over = counted.busiest_over.as_secs_f64().max(f64::MIN_POSITIVE);
            let busiest = counted.busiest.as_secs_f64() / over;
            let long = counted.busiest * 2 >= self.simulated.since(Instant::ZERO);
            let restless = busiest >= WITHOUT_A_BREAK && long && counted.loop_backs == 0;
            let (packets, waited) = (counted.held_up, counted.held_up_for);
            (packets > 0 || restless).then_some(Strained { host, cores, packets, waited, busiest })
        })
    }

    /// Packets that waited so, on all hosts.
    pub fn packets_held_up(&self) -> u64 {
        self.strained().map(|host| host.packets).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_nic::arch::presets;
    use roci_nic::{ArchCounters, CoreCounters};

    /// What is told of a host whose busiest core was busy for `busy` of 100 µs, in a run of so many.
    fn told(busy: u64, run: u64, more: CoreCounters) -> usize {
        let (busiest, busiest_over) = (Span::from_micros(busy), Span::from_micros(100));
        let cores = CoreCounters { busiest, busiest_over, ..more };
        let host = HostResult {
            nic: Some(Box::new(ArchCounters { cores, ..ArchCounters::default() })),
            cores: CoreArray::of(&presets::find("swcc").expect("it exists")).map(Box::new),
            ..HostResult::default()
        };
        let simulated = Instant::ZERO + Span::from_micros(run);
        Results { hosts: vec![host], simulated, ..Results::default() }.strained().count()
    }

    #[test]
    fn cores_that_hardly_rest_are_told_of_unless_they_wait_for_something() {
        let none = CoreCounters::default();
        assert_eq!([told(99, 110, none), told(80, 110, none)], [1, 0]);
        assert_eq!(told(99, 1_000, none), 0, "for a moment");
        assert_eq!(told(99, 110, CoreCounters { loop_backs: 7, ..none }), 0);
        assert_eq!(told(10, 110, CoreCounters { held_up: 1, ..none }), 1);
    }
}
