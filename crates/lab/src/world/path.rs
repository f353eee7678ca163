//! The way of a flow through the network, for the time that it would take there alone.

use crate::ideal::{Frames, Hop, completion_time};
use crate::scenario::Scenario;
use crate::traffic::Job;
use roci_fabric::net::Net;
use roci_fabric::packet::HostId;
use roci_fabric::routing::NO_PORT;
use roci_switch::LinkSpec;
use roci_units::Span;
use roci_wire::IpVersion;
use roci_wire::ethernet::WIRE_OVERHEAD;

/// Paths between hosts.
pub(super) struct Paths<'a> {
    scenario: &'a Scenario,
    hops: Vec<Hop>,
}

impl<'a> Paths<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Self {
        Self { scenario, hops: Vec::new() }
    }

    /// How long `job` takes with `bytes` octets, alone on an idle path.
    pub(super) fn ideal(&mut self, net: &Net, job: &Job, bytes: u64, mtu: u16) -> Span {
        self.walk(net, job.src, job.dst);
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
    fn walk(&mut self, net: &Net, src: HostId, dst: HostId) {
        let graph = &self.scenario.topology.graph;
        self.hops.clear();
        let mut port = u32::from(src.0);
        loop {
            let LinkSpec { rate, delay } = net.link(port);
            self.hops.push(Hop { rate, delay });
            let Some(switch) = net.switch_of(net.peer(port)) else { return };
            let next = net.routes().next_port(switch, dst, 0);
            assert!(next != NO_PORT, "{} has no route to host {}", graph.switches[switch as usize], dst.0);
            port = net.switch_ports(switch).start + u32::from(next);
        }
    }
}
