//! A network as a graph: what every topology becomes before a fabric is built from it.

use roci_units::{BitsPerSec, Span};
use std::string::String;
use std::vec::Vec;

/// A node: hosts first, then switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A full-duplex link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// One end.
    pub a: NodeId,
    /// The other end.
    pub b: NodeId,
    /// Its rate, the same both ways.
    pub rate: BitsPerSec,
    /// Its propagation delay, the same both ways.
    pub delay: Span,
}

/// Hosts, switches and the links between them. Each host has exactly one link, and it leads to a switch or to
/// another host.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Names of the hosts; host `i` is node `i`.
    pub hosts: Vec<String>,
    /// Names of the switches; switch `i` is node `hosts.len() + i`.
    pub switches: Vec<String>,
    /// The links. A switch numbers its ports in the order of this list.
    pub links: Vec<Link>,
}

impl Graph {
    /// The rate of each host's link; zero for a host without one.
    pub fn host_rates(&self) -> Vec<BitsPerSec> {
        let mut rates = vec![BitsPerSec(0); self.hosts.len()];
        for link in &self.links {
            for node in [link.a, link.b] {
                if let Some(rate) = rates.get_mut(node.0 as usize) {
                    *rate = link.rate;
                }
            }
        }
        rates
    }

    /// The links of each switch, in the order of its ports.
    pub fn switch_links(&self) -> Vec<Vec<Link>> {
        let mut links = vec![Vec::new(); self.switches.len()];
        for link in &self.links {
            for NodeId(node) in [link.a, link.b] {
                let switch = (node as usize).checked_sub(self.hosts.len());
                if let Some(of_switch) = switch.and_then(|switch| links.get_mut(switch)) {
                    of_switch.push(*link);
                }
            }
        }
        links
    }

    /// The rate of each switch's fastest link; zero for a switch without one.
    pub fn fastest_rates(&self) -> Vec<BitsPerSec> {
        let fastest = |links: &Vec<Link>| links.iter().map(|link| link.rate).max().unwrap_or(BitsPerSec(0));
        self.switch_links().iter().map(fastest).collect()
    }
}
