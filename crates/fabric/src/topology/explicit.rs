//! A graph given node by node and link by link.

use super::{Topology, TopologyError, node_index};
use crate::graph::{Graph, Link, NodeId};
use roci_units::{BitsPerSec, Span};
use std::collections::BTreeMap;

/// A link between two nodes by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedLink {
    /// One end.
    pub a: String,
    /// The other end.
    pub b: String,
    /// Its rate.
    pub rate: BitsPerSec,
    /// Its delay.
    pub delay: Span,
}

/// A graph as a scenario lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explicit {
    /// The hosts' names.
    pub hosts: Vec<String>,
    /// The switches' names.
    pub switches: Vec<String>,
    /// The links; a switch's ports are numbered in this order.
    pub links: Vec<NamedLink>,
}

impl Explicit {
    /// Builds it. Hosts may have several links.
    ///
    /// # Errors
    /// What [`Topology::of`] refuses, and links to names that no node has.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let names = self.hosts.iter().chain(&self.switches);
        let nodes: BTreeMap<&str, NodeId> =
            names.enumerate().map(|(index, name)| (name.as_str(), NodeId(node_index(index)))).collect();
        let find = |link: usize, name: &str| {
            let unknown = || TopologyError::UnknownNode { link, name: name.to_owned() };
            nodes.get(name).copied().ok_or_else(unknown)
        };
        let links = self.links.iter().enumerate().map(|(index, link)| {
            let (a, b) = (find(index, &link.a)?, find(index, &link.b)?);
            Ok(Link { a, b, rate: link.rate, delay: link.delay })
        });
        let links = links.collect::<Result<Vec<_>, TopologyError>>()?;
        Topology::of(Graph { hosts: self.hosts.clone(), switches: self.switches.clone(), links })
    }
}
