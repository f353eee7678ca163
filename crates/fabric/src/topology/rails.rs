//! Servers with several GPUs, each with a NIC on the rail of its place in the server, and links among those of one server.

use super::shapes::at_least_one;
use super::{Topology, TopologyError, check, node_index};
use crate::graph::{Graph, Link, NodeId};
use roci_units::{BitsPerSec, Span};

/// A rail-optimised network: GPU `g` of each server is linked to leaf `g`, so that those of one place in their servers have one switch
/// between them.
///
/// Hosts are the GPUs, server by server. In each group of [`servers_per_leaf`](Rails::servers_per_leaf) servers each rail has a leaf of
/// its own, `leaf0`, `leaf1`, … group by group, and each leaf has a link to each spine, `spine0`, …. Where there is a scale-up network there may
/// be no spines, so that GPUs of different rails reach one another within their server alone; and
/// the GPUs of server `n` are linked to `up<n>` as well, with a second NIC: `h0.0` is on the rail, `h0.1` there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rails {
    /// How many servers.
    pub servers: u32,
    /// How many GPUs each has.
    pub gpus: u32,
    /// How many servers share the leaves of a group; the last group may have fewer.
    pub servers_per_leaf: u32,
    /// How many spines; none only with a scale-up network.
    pub spines: u32,
    /// The rate of the links of rails.
    pub rate: BitsPerSec,
    /// The rate of the links between leaves and spines; `None`: as those of rails.
    pub fabric_rate: Option<BitsPerSec>,
    /// The delay of each link but those of the scale-up networks.
    pub delay: Span,
    /// Rate and delay of the links of the scale-up networks; `None`: there are none.
    pub scale_up: Option<(BitsPerSec, Span)>,
}

impl Rails {
    /// Builds it.
    ///
    /// # Errors
    /// When a number is out of range.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let servers = at_least_one("servers", self.servers)?;
        let gpus = at_least_one("gpus", self.gpus)?;
        let spines =
            if self.scale_up.is_some() { self.spines.into() } else { at_least_one("spines", self.spines)? };
        let per_leaf = at_least_one("servers_per_leaf", self.servers_per_leaf)?;
        let leaves = servers.div_ceil(per_leaf) * gpus;
        let hosts = check::host_count(servers * gpus)?;
        let ups = if self.scale_up.is_some() { servers } else { 0 };
        check::switch_count(leaves + spines + ups)?;
        let named = |prefix: &'static str, count: u64| (0..count).map(move |n| format!("{prefix}{n}"));
        let switches: Vec<String> =
            named("leaf", leaves).chain(named("spine", spines)).chain(named("up", ups)).collect();
        let [first_spine, first_up] = [leaves, leaves + spines].map(|place| hosts + narrow(place));
        let mut links = Vec::new();
        let mut link = |a: u32, b: u32, rate, delay| {
            links.push(Link { a: NodeId(a), b: NodeId(b), rate, delay });
        };
        for host in 0..hosts {
            let (server, rail) = (host / self.gpus, host % self.gpus);
            link(host, hosts + server / self.servers_per_leaf * self.gpus + rail, self.rate, self.delay);
            if let Some((rate, delay)) = self.scale_up {
                link(host, first_up + server, rate, delay);
            }
        }
        for leaf in hosts..first_spine {
            for spine in first_spine..first_up {
                link(leaf, spine, self.fabric_rate.unwrap_or(self.rate), self.delay);
            }
        }
        let hosts = named("h", hosts.into()).collect();
        let topology = Topology::of(Graph { hosts, switches, links })?;
        let first = narrow(leaves + spines);
        let scale_up = (first..first + narrow(ups)).collect();
        Ok(Topology { per_server: Some(self.gpus), scale_up, ..topology })
    }
}

/// A count of switches, which has been checked.
#[expect(clippy::cast_possible_truncation, reason = "at most SWITCHES_MAX")]
const fn narrow(count: u64) -> u32 {
    node_index(count as usize)
}
