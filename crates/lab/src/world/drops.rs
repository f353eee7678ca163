//! Why switches and NICs dropped packets though they pause their neighbours.

use super::build::node_name;
use crate::results::HostResult;
use crate::scenario::Scenario;
use roci_fabric::net::Net;
use roci_switch::config::Headroom;
use roci_units::{BitsPerSec, Bytes};

/// Of packets that switches with PFC dropped all the same; `None` where there are none.
pub(super) fn warning(scenario: &Scenario, net: &Net) -> Option<String> {
    let graph = &scenario.topology.graph;
    let (mut late, mut unpaused, mut short) = (0, 0, None);
    for (number, name) in (0u32..).zip(&graph.switches) {
        let ports = || net.switch_ports(number);
        let fastest = ports().map(|port| net.link(port).rate).max().unwrap_or(BitsPerSec(0));
        let config = scenario.switch.config_of(name, fastest);
        let Some(pfc) = &config.pfc else { continue };
        for port in ports() {
            let Some(counters) = net.counters(port) else { continue };
            late += counters.headroom_dropped;
            unpaused += counters.dropped;
            let of = |headroom: Headroom| headroom.octets(net.link(port), config.max_frame);
            let (has, exact) = (of(pfc.headroom), of(Headroom::Exact));
            if short.is_none() && counters.headroom_dropped > 0 && has < exact {
                let peer = node_name(graph, net.node_of(net.peer(port)));
                let [has, exact] = [has, exact].map(Bytes);
                short = Some(format!(
                    ": `{name}` has a headroom of {has} for what comes from `{peer}`, and `switch.pfc.headroom = \"exact\"` would be {exact}"
                ));
            }
        }
    }
    let late = (late > 0).then(|| {
        let enough = match scenario.faults.is_none() {
            true => {
                ", though the headroom is enough for the rate and the delay of the links: the shared buffer had no room for packets that \
                 PAUSE was sent for, which took of the headroom. Set `switch.buffer` to some packets more for each port"
            }
            false => {
                ", though the headroom is enough for the rate and the delay of the links: something came later still, as `[faults]` \
                 can have it"
            }
        };
        let why = short.as_deref().unwrap_or(enough);
        format!("{late} packets that came after PAUSE found no room{why}")
    });
    let unpaused = (unpaused > 0).then(|| {
        format!("{unpaused} packets were dropped on priorities that PAUSE does not act on (`switch.classes.pause`)")
    });
    let both: Vec<_> = late.into_iter().chain(unpaused).collect();
    (!both.is_empty()).then(|| format!("switches dropped packets though PFC is on: {}", both.join("; ")))
}

/// Of packets that NICs dropped at their receive FIFOs though PFC is on; `None` where there are none.
pub(super) fn of_hosts(scenario: &Scenario, hosts: &[HostResult]) -> Option<String> {
    let dropping = || hosts.iter().filter(|host| host.dropped > 0);
    let first = dropping().next().filter(|_| scenario.switch.config.pfc.is_some())?;
    let packets: u64 = dropping().map(|host| host.dropped).sum();
    let others = match dropping().count() - 1 {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let why = match scenario.faults.is_none() {
        true => "",
        false => ", or came later still, as `[faults]` can have it",
    };
    Some(format!(
        "{packets} packets found no room in the receive FIFO of `{}`{others} though PFC is on: they travel on priorities that PAUSE does not \
         act on (`switch.classes.pause`), or the FIFO holds less than may still arrive after PAUSE{why}",
        first.name
    ))
}
