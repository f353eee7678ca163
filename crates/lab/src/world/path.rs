//! The way of a flow through the network, for the time that it would take there alone.

use super::build::node_name;
use crate::ideal::{Frames, Hop, completion_time};
use crate::scenario::Scenario;
use crate::traffic::Job;
use roci_fabric::graph::{Link, NodeId};
use roci_fabric::packet::HostId;
use roci_fabric::routing::{NO_PORT, Routes};
use roci_fabric::topology::Ports;
use roci_units::Span;
use roci_wire::IpVersion;
use roci_wire::ethernet::WIRE_OVERHEAD;

/// Paths between hosts.
pub(super) struct Paths<'a> {
    scenario: &'a Scenario,
    routes: Routes,
    ports: Ports,
    hops: Vec<Hop>,
}

impl<'a> Paths<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Self {
        let graph = &scenario.topology.graph;
        let routes = Routes::new(graph).expect("the fabric has been built from the same graph");
        Self { scenario, routes, ports: Ports::of(graph), hops: Vec::new() }
    }

    /// How long `job` takes with `bytes` octets, alone on an idle path.
    pub(super) fn ideal(&mut self, job: &Job, bytes: u64, mtu: u16) -> Span {
        self.walk(job.src, job.dst);
        let layout = self.scenario.transport.layout;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "payloads are at most one MTU, the overhead is 20"
        )]
        let wire_octets = |opcode, payload: u32| {
            roci_wire::frame_len(opcode, layout, IpVersion::V4, payload as u16) + WIRE_OVERHEAD
        };
        completion_time(&self.hops, &Frames::new(job.common.op, bytes, u32::from(mtu), wire_octets))
    }

    /// Follows the routes from `src` to `dst`: of equal paths one, since they are equally long.
    fn walk(&mut self, src: HostId, dst: HostId) {
        let graph = &self.scenario.topology.graph;
        self.hops.clear();
        let mut node = u32::from(src.0);
        while node != u32::from(dst.0) {
            let port = match (node as usize).checked_sub(graph.hosts.len()) {
                None => 0,
                Some(switch) => {
                    let switch = u32::try_from(switch).expect("fewer than 2^32 nodes");
                    self.routes.next_port(switch, dst, 0)
                }
            };
            assert!(port != NO_PORT, "{} has no route to host {}", node_name(graph, node), dst.0);
            let port = self.ports.of_node(NodeId(node))[usize::from(port)];
            let Link { rate, delay, .. } = graph.links[port.link as usize];
            self.hops.push(Hop { rate, delay });
            node = port.peer.0;
        }
    }
}
