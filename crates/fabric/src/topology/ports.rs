//! The ports of each node, in order.

use super::node_index;
use crate::graph::{Graph, NodeId};

/// One end of a link, seen from the node that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// The node at the other end.
    pub peer: NodeId,
    /// The link, by its place in the graph's list.
    pub link: u32,
}

/// For each node its ports, numbered from 0 in the order of the graph's links.
#[derive(Clone, Debug)]
pub struct Ports {
    /// Where each node's ports begin, and at the end how many there are.
    starts: Vec<u32>,
    ports: Vec<Port>,
}

impl Ports {
    /// The ports of all nodes of `graph`.
    ///
    /// # Panics
    /// When a link leads to a node that does not exist; [`check`](super::check()) refuses such a graph.
    pub fn of(graph: &Graph) -> Self {
        let nodes = graph.hosts.len() + graph.switches.len();
        let mut starts = vec![0u32; nodes + 1];
        for link in &graph.links {
            starts[link.a.0 as usize + 1] += 1;
            starts[link.b.0 as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut ports = vec![Port { peer: NodeId(0), link: 0 }; graph.links.len() * 2];
        for (index, link) in graph.links.iter().enumerate() {
            for (from, peer) in [(link.a, link.b), (link.b, link.a)] {
                let place = &mut next[from.0 as usize];
                ports[*place as usize] = Port { peer, link: node_index(index) };
                *place += 1;
            }
        }
        Self { starts, ports }
    }

    /// The ports of `node`; port `i` is at index `i`.
    pub fn of_node(&self, node: NodeId) -> &[Port] {
        let node = node.0 as usize;
        &self.ports[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}
