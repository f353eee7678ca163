//! Cores of NICs that did not keep up with what arrived.

use super::{HostResult, Results};
use roci_nic::arch::Architecture;
use roci_nic::arch::clock::Clock;
use roci_units::Span;
use std::fmt;

/// What to do about them.
pub const REMEDY: &str = "give `nic.with` a higher `cores.clock`, or more `cores.pairs` where several queue pairs share one, or \
                          write a program that takes fewer cycles (`roci program profile` tells them)";

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

/// A host whose cores had packets wait.
#[derive(Clone, Copy, Debug)]
pub struct HeldUp<'a> {
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
    /// The hosts whose cores had packets wait for them in the receive FIFO.
    pub fn held_up(&self) -> impl Iterator<Item = HeldUp<'_>> {
        self.hosts.iter().filter_map(|host| {
            let counted = host.nic.as_ref()?.cores;
            let cores = host.cores.as_deref().filter(|_| counted.held_up > 0)?;
            let over = counted.busiest_over.as_secs_f64().max(f64::MIN_POSITIVE);
            let busiest = counted.busiest.as_secs_f64() / over;
            Some(HeldUp { host, cores, packets: counted.held_up, waited: counted.held_up_for, busiest })
        })
    }

    /// Packets that waited so, on all hosts.
    pub fn packets_held_up(&self) -> u64 {
        self.held_up().map(|held| held.packets).sum()
    }
}
