//! Whether a scenario without a `stop` can come to an end: no path may lose everything for ever.

use super::faults::Faults;
use super::source::{Origin, ScenarioError, Source};
use super::traffic::Reading;
use crate::traffic::spec::Traffic;
use roci_fabric::graph::NodeId;
use roci_fabric::packet::HostId;
use roci_fabric::topology::Topology;
use roci_fabric::topology::ports::Ports;
use std::collections::VecDeque;

/// Refuses traffic between hosts all of whose shortest paths, there or back, lose everything. Of patterns whose pairs
/// are drawn by chance the hosts' own links are looked at.
pub(super) fn refuse_black_holes(
    source: &Source,
    topology: &Topology,
    faults: &Faults,
    reading: &Reading<'_>,
) -> Result<(), ScenarioError> {
    let certain =
        faults.common.loses_everything() || faults.rules.iter().any(|rule| rule.faults.loses_everything());
    if !certain {
        return Ok(());
    }
    let ports = Ports::of(&topology.graph);
    let search = Search { source, topology, faults, ports };
    for traffic in &reading.traffic {
        match traffic {
            Traffic::Flows(flows) => {
                flows.iter().try_for_each(|flow| search.both_ways(flow.src, flow.dst))?;
            }
            Traffic::ClosedLoop(pattern) => {
                pattern.pairs.iter().try_for_each(|(src, dst)| search.both_ways(*src, *dst))?;
            }
            Traffic::Trigger(trigger) => {
                trigger.hosts.iter().try_for_each(|host| search.both_ways(*host, trigger.receiver))?;
            }
            Traffic::Hpcc(hpcc) => {
                hpcc.flows.iter().try_for_each(|flow| search.both_ways(flow.src, flow.dst))?;
            }
            Traffic::Incast(_) | Traffic::Permutation(_) | Traffic::AllToAll(_) | Traffic::Poisson(_) => {
                search.own_links()?
            }
        }
    }
    Ok(())
}

struct Search<'a> {
    source: &'a Source,
    topology: &'a Topology,
    faults: &'a Faults,
    ports: Ports,
}

impl Search<'_> {
    fn both_ways(&self, a: HostId, b: HostId) -> Result<(), ScenarioError> {
        self.one_way(a, b)?;
        self.one_way(b, a)
    }

    /// Follows all shortest paths from `from` to `to` at once, over what does not lose everything.
    fn one_way(&self, from: HostId, to: HostId) -> Result<(), ScenarioError> {
        let distance = self.distances(NodeId(u32::from(to.0)));
        let mut open = vec![NodeId(u32::from(from.0))];
        let mut seen = vec![false; distance.len()];
        let mut blame = Origin::Default;
        while let Some(node) = open.pop() {
            if node.0 == u32::from(to.0) {
                return Ok(());
            }
            for port in self.ports.of_node(node) {
                let peer = port.peer.0 as usize;
                let nearer = distance[peer].is_some_and(|d| Some(d + 1) == distance[node.0 as usize]);
                if !nearer || seen[peer] {
                    continue;
                }
                match self.faults.black_hole(port.link, node.0) {
                    Some(origin) => blame = origin,
                    None => {
                        seen[peer] = true;
                        open.push(port.peer);
                    }
                }
            }
        }
        let name = |host: HostId| &self.topology.graph.hosts[usize::from(host.0)];
        Err(self.refusal(blame, format!("everything from `{}` to `{}` is lost", name(from), name(to))))
    }

    /// Links from each node to `to`; hosts do not forward.
    fn distances(&self, to: NodeId) -> Vec<Option<u32>> {
        let hosts = self.topology.graph.hosts.len();
        let mut distance = vec![None; hosts + self.topology.graph.switches.len()];
        distance[to.0 as usize] = Some(0);
        let mut open = VecDeque::from([(to, 0)]);
        while let Some((node, far)) = open.pop_front() {
            if (node.0 as usize) < hosts && node != to {
                continue;
            }
            for port in self.ports.of_node(node) {
                let place = &mut distance[port.peer.0 as usize];
                if place.is_none() {
                    *place = Some(far + 1);
                    open.push_back((port.peer, far + 1));
                }
            }
        }
        distance
    }

    fn own_links(&self) -> Result<(), ScenarioError> {
        for (node, name) in (0u32..).zip(&self.topology.graph.hosts) {
            for port in self.ports.of_node(NodeId(node)) {
                let lost = self.faults.black_hole(port.link, node);
                let lost = lost.or_else(|| self.faults.black_hole(port.link, port.peer.0));
                if let Some(origin) = lost {
                    return Err(self.refusal(origin, format!("everything on the link of `{name}` is lost")));
                }
            }
        }
        Ok(())
    }

    fn refusal(&self, origin: Origin, what: String) -> ScenarioError {
        self.source.error(
            origin,
            format!("{what} for ever, so its traffic never gets done, and the scenario has no `stop`"),
            "add `stop = \"10ms\"` at the top, or let some packets through",
        )
    }
}
