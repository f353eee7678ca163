//! Whether a scenario without a `stop` can come to an end: no path may lose everything, or be paused, for ever.

use super::faults::{Faults, LinkFaults, SwitchState};
use super::source::{Origin, ScenarioError, Source};
use super::switch::Classes;
use super::traffic::Reading;
use crate::traffic::spec::{Common, Op};
use roci_fabric::graph::NodeId;
use roci_fabric::packet::HostId;
use roci_fabric::topology::ports::Ports;
use roci_fabric::topology::{Pairing, Topology};
use roci_units::Ratio;
use std::cell::RefCell;
use std::collections::VecDeque;

/// What travels, besides the traffic itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kinds {
    /// Which priorities data and acknowledgements have.
    pub(super) classes: Classes,
    /// Where the file was named that says what the topology's links lose.
    pub(super) losses: Origin,
}

/// Refuses traffic between hosts all of whose shortest paths, there or back, let nothing through. Of patterns whose
/// pairs are drawn by chance the hosts' own links are looked at.
pub(super) fn refuse_black_holes(
    source: &Source,
    topology: &Topology,
    faults: &Faults,
    reading: &Reading<'_>,
    kinds: Kinds,
) -> Result<(), ScenarioError> {
    let bars = |faults: &LinkFaults| faults.loses_everything() || faults.pause_storm.is_some();
    let certain = bars(&faults.common)
        || faults.rules.iter().any(|rule| bars(&rule.faults))
        || faults.switches.iter().any(|rule| rule.state == SwitchState::Down)
        || topology.loss.iter().any(|(_, loss)| *loss == Ratio::ONE);
    if !certain {
        return Ok(());
    }
    let ports = Ports::of(&topology.graph);
    let search =
        Search { source, topology, faults, kinds, ports, pairing: Pairing::of(topology).map(RefCell::new) };
    for traffic in &reading.traffic {
        match traffic.pairs() {
            Some(mut pairs) => pairs.try_for_each(|(a, b, common)| search.both_ways(a, b, common))?,
            None => traffic.commons().try_for_each(|common| search.own_links(common))?,
        }
    }
    Ok(())
}

struct Search<'a> {
    source: &'a Source,
    topology: &'a Topology,
    faults: &'a Faults,
    kinds: Kinds,
    ports: Ports,
    pairing: Option<RefCell<Pairing>>,
}

impl Search<'_> {
    /// The priorities of what travels there and back: data and acknowledgements, or requests and a READ's data.
    fn priorities(&self, common: Common) -> [u8; 2] {
        let Classes { data, ack, .. } = self.kinds.classes;
        let own = common.priority.unwrap_or(data);
        [own, if ack == data || common.op == Op::Read { own } else { ack }]
    }

    fn both_ways(&self, a: HostId, b: HostId, common: Common) -> Result<(), ScenarioError> {
        let [there, back] = self.priorities(common);
        let nics = self.pairing.as_ref().map_or(vec![[a, b]], |pairing| pairing.borrow_mut().nearest([a, b]));
        let ways = nics.into_iter().map(|[a, b]| {
            self.one_way(a, b, there)?;
            self.one_way(b, a, back)
        });
        // Of several pairs of NICs it may take any.
        ways.reduce(Result::or).unwrap_or(Ok(()))
    }

    /// Where it was said that nothing at `priority` that node `from` sends on `link` ever arrives.
    fn barred(&self, link: u32, from: u32, priority: u8) -> Option<Origin> {
        let lost = self.topology.loss.iter().any(|(place, loss)| *place == link && *loss == Ratio::ONE);
        let of_file = lost.then_some(self.kinds.losses);
        let graph = &self.topology.graph;
        let ends = graph.links.get(link as usize).map_or([None; 2], |link| {
            [link.a, link.b].map(|end| (end.0 as usize).checked_sub(graph.hosts.len()))
        });
        let gone =
            ends.into_iter().flatten().find_map(|switch| self.faults.gone(u32::try_from(switch).ok()?));
        of_file.or(gone).or_else(|| self.faults.black_hole(link, from, priority, self.kinds.classes.data))
    }

    /// Follows all shortest paths from `from` to `to` at once, over what does not lose everything; all paths, where routes
    /// may lead around what is down.
    fn one_way(&self, from: HostId, to: HostId, priority: u8) -> Result<(), ScenarioError> {
        let distance = self.distances(NodeId(u32::from(to.0)));
        let mut open = vec![NodeId(u32::from(from.0))];
        let mut seen = vec![false; distance.len()];
        let mut blame = Origin::Default;
        let around = self.faults.detect().is_some();
        while let Some(node) = open.pop() {
            if node.0 == u32::from(to.0) {
                return Ok(());
            }
            for port in self.ports.of_node(node) {
                let peer = port.peer.0 as usize;
                let passes = peer >= self.topology.graph.hosts.len() || port.peer.0 == u32::from(to.0);
                let nearer = around && passes
                    || distance[peer].is_some_and(|d| Some(d + 1) == distance[node.0 as usize]);
                if !nearer || seen[peer] {
                    continue;
                }
                match self.barred(port.link, node.0, priority) {
                    Some(origin) => blame = origin,
                    None => {
                        seen[peer] = true;
                        open.push(port.peer);
                    }
                }
            }
        }
        let name = |host: HostId| &self.topology.graph.hosts[usize::from(host.0)];
        Err(self.refusal(blame, format!("nothing gets from `{}` to `{}`", name(from), name(to))))
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

    fn own_links(&self, common: Common) -> Result<(), ScenarioError> {
        let priorities = self.priorities(common);
        for (node, name) in (0u32..).zip(&self.topology.graph.hosts) {
            for port in self.ports.of_node(NodeId(node)) {
                let ends = [node, port.peer.0].into_iter();
                let ways = ends.flat_map(|from| priorities.map(|priority| (from, priority)));
                let barred =
                    ways.filter_map(|(from, priority)| self.barred(port.link, from, priority)).next();
                if let Some(origin) = barred {
                    return Err(self.refusal(origin, format!("nothing gets over the link of `{name}`")));
                }
            }
        }
        Ok(())
    }

    fn refusal(&self, origin: Origin, what: String) -> ScenarioError {
        self.source.error(
            origin,
            format!("{what}, ever, so its traffic never gets done, and the scenario has no `stop`"),
            "add `stop = \"10ms\"` at the top, give the fault an `until`, or let some packets through",
        )
    }
}
