//! What every graph must fulfil before a fabric is built from it.

use super::node_index;
use super::ports::Ports;
use crate::graph::{Graph, NodeId};
use roci_units::BitsPerSec;
use std::collections::BTreeSet;

/// The most hosts: their numbers have 16 bits, and one value is kept free.
pub const HOSTS_MAX: u32 = 65_535;

/// The most switches. The routes take two octets for each switch and each switch that has hosts.
pub const SWITCHES_MAX: u32 = 16_384;

/// The fastest link. At this rate the shortest frame lasts several picoseconds, in which time is counted.
pub const RATE_MAX: BitsPerSec = BitsPerSec::from_gbps(100_000);

/// The fastest link whose rate laws and telemetry can tell: they count in kb/s, in words of 32 bits, whose greatest value stands for all that is
/// faster.
pub const COUNTED_MAX: BitsPerSec = BitsPerSec::from_gbps(4_000);

/// The most NICs of a host.
pub const NICS_MAX: usize = 64;

/// The most links.
pub const LINKS_MAX: u32 = 4_194_304;

/// Why a topology cannot be built, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// A number is too small for the shape.
    #[error("{key} is {value}, but must be at least {least}")]
    TooFew {
        /// The number's key.
        key: &'static str,
        /// What it is.
        value: u64,
        /// What it must be.
        least: u64,
    },
    /// More hosts than can be numbered.
    #[error("{0} hosts; at most {HOSTS_MAX} can be simulated")]
    TooManyHosts(u64),
    /// More switches than routes are made for.
    #[error("{0} switches; at most {SWITCHES_MAX} can be simulated")]
    TooManySwitches(u64),
    /// More links than memory is foreseen for.
    #[error("{0} links; at most {LINKS_MAX} can be simulated")]
    TooManyLinks(u64),
    /// A fat tree's radix is odd.
    #[error("k is {0}, but must be even: half of a switch's ports lead up, half down")]
    OddRadix(u64),
    /// Several ToRs, or several pods, that nothing joins.
    #[error("{parts} {what} are not joined; give {key} at least 1")]
    NotJoined {
        /// What there is several of.
        what: &'static str,
        /// How many.
        parts: u64,
        /// The key that is zero.
        key: &'static str,
    },
    /// Cores that the aggregation switches cannot share evenly.
    #[error(
        "{cores} cores cannot be shared evenly by {aggs} aggregation switches per pod; one must be a multiple of the other"
    )]
    UnevenCores {
        /// Cores in all.
        cores: u64,
        /// Aggregation switches in a pod.
        aggs: u64,
    },
    /// Two nodes have one name.
    #[error("the name {0:?} is given twice; every host and switch needs its own")]
    DuplicateName(String),
    /// A node has no name.
    #[error("an empty name; every host and switch needs one")]
    EmptyName,
    /// A node's name would break lines and columns of the results, or read as the way of a link, which is called `a>b`.
    #[error(
        "the name {0:?} has a control character or `>`, which stands between the ends of a link; use other characters"
    )]
    UnfitName(String),
    /// A link names a node that does not exist.
    #[error(
        "link {link} leads to {name:?}, which is neither a host nor a switch; add it or correct the name"
    )]
    UnknownNode {
        /// The link's place in the list, from 0.
        link: usize,
        /// The name.
        name: String,
    },
    /// A link's ends are one node.
    #[error("link {link} leads from {name:?} to itself; give it two ends")]
    SelfLink {
        /// The link's place in the list, from 0.
        link: usize,
        /// The node.
        name: String,
    },
    /// A link carries nothing.
    #[error("link {link} ({a} to {b}) has a rate of zero; give it a rate such as \"10Gb/s\"")]
    ZeroRate {
        /// The link's place in the list, from 0.
        link: usize,
        /// One end.
        a: String,
        /// The other end.
        b: String,
    },
    /// A link faster than any can be.
    #[error("link {link} ({a} to {b}) has a rate of {rate}; at most {RATE_MAX} can be simulated")]
    TooFast {
        /// The link's place in the list, from 0.
        link: usize,
        /// One end.
        a: String,
        /// The other end.
        b: String,
        /// Its rate.
        rate: BitsPerSec,
    },
    /// A host that nothing is attached to.
    #[error("host {0:?} has no link; connect it to a switch")]
    HostWithoutLink(String),
    /// A host with more than one link.
    #[error("host {host:?} has {links} links, but a host has one port; connect it to one switch")]
    HostWithSeveralLinks {
        /// The host.
        host: String,
        /// How many links it has.
        links: usize,
    },
    /// A host with more links than one that has a NIC at each may have.
    #[error("host {host:?} has {links} links; at most {NICS_MAX} can be simulated, each with a NIC")]
    TooManyNics {
        /// The host.
        host: String,
        /// How many links it has.
        links: usize,
    },
    /// Two hosts without a path between them.
    #[error("there is no path from {from:?} to {to:?}; add a link between their switches")]
    Unreachable {
        /// A host.
        from: String,
        /// A host that it cannot reach.
        to: String,
    },
}

impl TopologyError {
    /// The link that the error is about, by its place in the list.
    pub const fn link(&self) -> Option<usize> {
        match self {
            Self::UnknownNode { link, .. }
            | Self::SelfLink { link, .. }
            | Self::ZeroRate { link, .. }
            | Self::TooFast { link, .. } => Some(*link),
            _ => None,
        }
    }
}

/// `hosts`, if so many can be built.
pub(super) fn host_count(hosts: u64) -> Result<u32, TopologyError> {
    if hosts == 0 {
        return Err(TopologyError::TooFew { key: "hosts", value: 0, least: 1 });
    }
    u32::try_from(hosts).ok().filter(|&n| n <= HOSTS_MAX).ok_or(TopologyError::TooManyHosts(hosts))
}

/// `switches`, if so many can be built.
pub(super) fn switch_count(switches: u64) -> Result<u32, TopologyError> {
    u32::try_from(switches)
        .ok()
        .filter(|&n| n <= SWITCHES_MAX)
        .ok_or(TopologyError::TooManySwitches(switches))
}

/// `links`, if so many can be built.
pub(super) fn link_count(links: u64) -> Result<(), TopologyError> {
    if links > u64::from(LINKS_MAX) { Err(TopologyError::TooManyLinks(links)) } else { Ok(()) }
}

/// Checks that a fabric can be built from `graph`: names are unique, links have two ends and a rate up to [`RATE_MAX`], each host has
/// one link, and every host reaches every other. Parallel links between switches are fine.
///
/// # Errors
/// The first thing that is wrong, in that order.
pub fn check(graph: &Graph) -> Result<(), TopologyError> {
    counts(graph)?;
    check_names(graph)?;
    check_links(graph)?;
    let ports = Ports::of(graph);
    check_hosts(graph, &ports)?;
    check_reach(graph, &ports)
}

/// Whether there are no more nodes and links than can be built.
pub(super) fn counts(graph: &Graph) -> Result<(), TopologyError> {
    host_count(graph.hosts.len() as u64)?;
    switch_count(graph.switches.len() as u64)?;
    link_count(graph.links.len() as u64)
}

pub(super) fn check_names(graph: &Graph) -> Result<(), TopologyError> {
    let mut seen = BTreeSet::new();
    for name in graph.hosts.iter().chain(&graph.switches) {
        if name.is_empty() {
            return Err(TopologyError::EmptyName);
        }
        if name.contains(|it: char| it.is_control() || it == '>') {
            return Err(TopologyError::UnfitName(name.clone()));
        }
        if !seen.insert(name) {
            return Err(TopologyError::DuplicateName(name.clone()));
        }
    }
    Ok(())
}

pub(super) fn check_links(graph: &Graph) -> Result<(), TopologyError> {
    for (link, end) in graph.links.iter().enumerate() {
        for node in [end.a, end.b] {
            if node.0 as usize >= graph.hosts.len() + graph.switches.len() {
                return Err(TopologyError::UnknownNode { link, name: format!("node {}", node.0) });
            }
        }
        if end.a == end.b {
            return Err(TopologyError::SelfLink { link, name: name(graph, end.a) });
        }
        if end.rate.0 == 0 {
            return Err(TopologyError::ZeroRate { link, a: name(graph, end.a), b: name(graph, end.b) });
        }
        if end.rate > RATE_MAX {
            let (a, b) = (name(graph, end.a), name(graph, end.b));
            return Err(TopologyError::TooFast { link, a, b, rate: end.rate });
        }
    }
    Ok(())
}

pub(super) fn check_hosts(graph: &Graph, ports: &Ports) -> Result<(), TopologyError> {
    for (index, host) in graph.hosts.iter().enumerate() {
        match ports.of_node(NodeId(node_index(index))).len() {
            0 => return Err(TopologyError::HostWithoutLink(host.clone())),
            1 => {}
            links => return Err(TopologyError::HostWithSeveralLinks { host: host.clone(), links }),
        }
    }
    Ok(())
}

fn check_reach(graph: &Graph, ports: &Ports) -> Result<(), TopologyError> {
    let mut seen = vec![false; graph.hosts.len() + graph.switches.len()];
    let mut open = vec![NodeId(0)];
    seen[0] = true;
    while let Some(node) = open.pop() {
        for port in ports.of_node(node) {
            if !seen[port.peer.0 as usize] {
                seen[port.peer.0 as usize] = true;
                open.push(port.peer);
            }
        }
    }
    match seen[..graph.hosts.len()].iter().position(|&seen| !seen) {
        Some(host) => {
            let (from, to) = (graph.hosts[0].clone(), graph.hosts[host].clone());
            Err(TopologyError::Unreachable { from, to })
        }
        None => Ok(()),
    }
}

/// The name of a node that exists.
fn name(graph: &Graph, node: NodeId) -> String {
    let index = node.0 as usize;
    graph.hosts.get(index).unwrap_or_else(|| &graph.switches[index - graph.hosts.len()]).clone()
}
