//! The small shapes: star, dumbbell, tree and leaf-spine.

use super::{Builder, Topology, TopologyError, check};
use roci_units::{BitsPerSec, Span};

/// `value` of `key`, at least 1.
pub(super) fn at_least_one(key: &'static str, value: u32) -> Result<u64, TopologyError> {
    if value == 0 {
        return Err(TopologyError::TooFew { key, value: 0, least: 1 });
    }
    Ok(u64::from(value))
}

/// Hosts around one switch, `s0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Star {
    /// How many hosts.
    pub hosts: u32,
    /// The rate of each link.
    pub rate: BitsPerSec,
    /// The delay of each link.
    pub delay: Span,
}

impl Star {
    /// Builds it.
    ///
    /// # Errors
    /// When a number is out of range.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let mut builder = Builder::new(at_least_one("hosts", self.hosts)?, self.delay)?;
        let center = builder.switches("s", 1)?;
        for host in 0..self.hosts {
            builder.link(host, center, self.rate);
        }
        builder.finish()
    }
}

/// Two switches with one link between them: `h0` and the other left hosts on `s0`, the right ones, which are numbered
/// after them, on `s1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dumbbell {
    /// How many hosts are on the left.
    pub left: u32,
    /// How many hosts are on the right.
    pub right: u32,
    /// The rate of the hosts' links.
    pub rate: BitsPerSec,
    /// The rate of the link between the switches.
    pub bottleneck: BitsPerSec,
    /// The delay of each link.
    pub delay: Span,
}

impl Dumbbell {
    /// Builds it.
    ///
    /// # Errors
    /// When a number is out of range.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let hosts = at_least_one("left", self.left)? + at_least_one("right", self.right)?;
        let mut builder = Builder::new(hosts, self.delay)?;
        let left = builder.switches("s", 2)?;
        for host in 0..self.left + self.right {
            builder.link(host, if host < self.left { left } else { left + 1 }, self.rate);
        }
        builder.link(left, left + 1, self.bottleneck);
        builder.finish()
    }
}

/// A receiver under which senders gather: host `h0` receives, on the switch `root`; the senders are `h1`, `h2`, …,
/// first those of `leaf0`, then those of `leaf1`, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// How many senders are on each leaf.
    pub leaves: Vec<u32>,
    /// The rate of the hosts' links, the receiver's included.
    pub rate: BitsPerSec,
    /// The rate of the links from the leaves to the root.
    pub uplink: BitsPerSec,
    /// The delay of each link.
    pub delay: Span,
}

impl Tree {
    /// Builds it.
    ///
    /// # Errors
    /// When a number is out of range; a leaf without senders is let be.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let senders: u64 = self.leaves.iter().map(|&n| u64::from(n)).sum();
        if senders == 0 {
            return Err(TopologyError::TooFew { key: "leaves", value: 0, least: 1 });
        }
        let mut builder = Builder::new(senders.saturating_add(1), self.delay)?;
        let root = builder.switch("root");
        let first_leaf = builder.switches("leaf", self.leaves.len() as u64)?;
        builder.link(0, root, self.rate);
        let mut host = 1;
        for (leaf, &senders) in (first_leaf..).zip(&self.leaves) {
            builder.link(leaf, root, self.uplink);
            for _ in 0..senders {
                builder.link(host, leaf, self.rate);
                host += 1;
            }
        }
        builder.finish()
    }
}

/// Two tiers: every switch `leaf0`, `leaf1`, … has hosts and a link to every switch `spine0`, `spine1`, ….
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafSpine {
    /// How many leaves.
    pub leaves: u32,
    /// How many spines.
    pub spines: u32,
    /// Hosts on each leaf.
    pub hosts_per_leaf: u32,
    /// The rate of the hosts' links.
    pub rate: BitsPerSec,
    /// The rate of the links between switches; `None`: `rate`.
    pub fabric_rate: Option<BitsPerSec>,
    /// The delay of each link.
    pub delay: Span,
}

impl LeafSpine {
    /// Builds it.
    ///
    /// # Errors
    /// When a number is out of range.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let leaves = at_least_one("leaves", self.leaves)?;
        let spines = at_least_one("spines", self.spines)?;
        let hosts = leaves * at_least_one("hosts_per_leaf", self.hosts_per_leaf)?;
        let mut builder = Builder::new(hosts, self.delay)?;
        let first_leaf = builder.switches("leaf", leaves)?;
        let first_spine = builder.switches("spine", spines)?;
        check::link_count(hosts + leaves * spines)?;
        let fabric_rate = self.fabric_rate.unwrap_or(self.rate);
        let mut host = 0;
        for leaf in first_leaf..first_leaf + self.leaves {
            for _ in 0..self.hosts_per_leaf {
                builder.link(host, leaf, self.rate);
                host += 1;
            }
            for spine in first_spine..first_spine + self.spines {
                builder.link(leaf, spine, fabric_rate);
            }
        }
        builder.finish()
    }
}
