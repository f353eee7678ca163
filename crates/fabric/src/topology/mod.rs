//! Topologies: from a few numbers, or a file, to a [`Graph`] that has been checked.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`shapes`] | star, dumbbell, tree and leaf-spine |
//! | [`fat_tree`] | pods of ToR and aggregation switches under a core |
//! | [`explicit`] | a graph given node by node and link by link |
//! | [`rails`] | servers of GPUs, with a rail for each place in a server |
//! | [`hpcc`] | the topology files of the HPCC simulator |
//! | [`homes`] | hosts with several links, and a NIC at each |
//! | [`pairing`] | by which of their NICs two hosts talk |
//! | [`check`](mod@check) | what every graph must fulfil before a fabric is built from it |
//! | [`ports`] | the ports of each node, in order |
//!
//! Hosts are named `h0`, `h1`, …; switches by their role: `tor0`, `agg0`, `core0`, `leaf0`, `spine0`, `s0`, `root`.

pub mod check;
pub mod explicit;
pub mod fat_tree;
pub mod homes;
pub mod hpcc;
pub mod pairing;
pub mod ports;
pub mod rails;
pub mod shapes;
#[cfg(test)]
mod tests;

pub use check::{COUNTED_MAX, HOSTS_MAX, LINKS_MAX, RATE_MAX, SWITCHES_MAX, TopologyError, check};
pub use explicit::{Explicit, NamedLink};
pub use fat_tree::{FatTree, Form};
pub use homes::{Homes, Islands};
pub use hpcc::HpccError;
pub use pairing::Pairing;
pub use ports::{Port, Ports};
pub use rails::Rails;
pub use shapes::{Dumbbell, LeafSpine, Star, Tree};

use crate::graph::{Graph, Link, NodeId};
use roci_units::{BitsPerSec, Ratio, Span};

/// A checked graph, and what else the description of a topology says.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// The hosts, switches and links; where hosts have several NICs, these instead of them.
    pub graph: Graph,
    /// Which of those NICs belong to one host.
    pub homes: Homes,
    /// How many hosts in a row are on one server, where that is known.
    pub per_server: Option<u32>,
    /// The switches of networks within servers, by their places in the graph's list, where the kind of network says which those are.
    pub scale_up: Vec<u32>,
    /// How often a link loses a packet, by its place in the graph's list; links that lose none are left out.
    pub loss: Vec<(u32, Ratio)>,
    /// What the user should be told, such as that a size was rounded up.
    pub note: Option<String>,
}

/// Puts a graph together whose nodes are all known before the first link.
pub(crate) struct Builder {
    graph: Graph,
    delay: Span,
}

impl Builder {
    /// `hosts` hosts `h0`, `h1`, … and no switch yet; every link will have this `delay`.
    ///
    /// Fails when there are no hosts or too many, before anything is allocated for them.
    pub(crate) fn new(hosts: u64, delay: Span) -> Result<Self, TopologyError> {
        let graph = Graph { hosts: numbered("h", check::host_count(hosts)?), ..Graph::default() };
        Ok(Self { graph, delay })
    }

    /// Adds `count` switches with this `prefix`; gives the node of the first.
    pub(crate) fn switches(&mut self, prefix: &str, count: u64) -> Result<u32, TopologyError> {
        let before = self.graph.switches.len();
        let total = check::switch_count((before as u64).saturating_add(count))?;
        self.graph.switches.extend(numbered(prefix, total - node_index(before)));
        Ok(node_index(self.graph.hosts.len() + before))
    }

    /// Adds a link between nodes `a` and `b`.
    pub(crate) fn link(&mut self, a: u32, b: u32, rate: BitsPerSec) {
        self.graph.links.push(Link { a: NodeId(a), b: NodeId(b), rate, delay: self.delay });
    }

    /// Adds a switch of this very name; gives its node.
    pub(crate) fn switch(&mut self, name: &str) -> u32 {
        self.graph.switches.push(name.to_owned());
        node_index(self.graph.hosts.len() + self.graph.switches.len() - 1)
    }

    /// The graph, once it is in order.
    pub(crate) fn finish(self) -> Result<Topology, TopologyError> {
        check(&self.graph)?;
        Ok(Topology { graph: self.graph, ..Topology::default() })
    }
}

/// `count` names `prefix0`, `prefix1`, ….
fn numbered(prefix: &str, count: u32) -> Vec<String> {
    (0..count).map(|i| format!("{prefix}{i}")).collect()
}

/// A position among nodes; their number is bounded by [`HOSTS_MAX`] and [`SWITCHES_MAX`].
#[expect(clippy::cast_possible_truncation, reason = "hosts and switches together are fewer than 2³²")]
pub(crate) const fn node_index(index: usize) -> u32 {
    index as u32
}
