//! What a run met with.

use crate::load::{Action, Load, number_of};
use roci_fabric::fabric::Fabric;
use roci_nic::Simulated;
use roci_transport::{Refusal, Status};
use std::collections::BTreeMap;

/// How often each thing happened that can happen to requests and packets.
pub(crate) type Met = BTreeMap<&'static str, u64>;

/// What a run met with until now; every count has its entry.
pub(crate) fn met(fabric: &Fabric<Simulated<Load>>) -> Met {
    let (net, hosts) = (&fabric.net, &fabric.nics.hosts);
    let mut met = Met::new();
    let mut count = |name, number| *met.entry(name).or_default() += number;
    count("dropped by links and switches", net.totals().dropped);
    count("deadlocks", net.deadlock().is_some().into());
    let ports = 0..net.port_count() as u32;
    count("trimmed", ports.filter_map(|port| net.counters(port)).map(|counters| counters.trimmed).sum());
    for host in hosts {
        count("corrupt", host.counters.corrupt);
        count("overflowed", host.overflowed());
        count("duplicates", host.engine.refused(Refusal::Duplicate));
        count("out of sequence", host.engine.refused(Refusal::OutOfSequence));
    }
    for port in 0..net.port_count() as u32 {
        let faults = net.fault_counters(port).copied().unwrap_or_default();
        count("doubled", faults.duplicated.packets);
        count("reordered", faults.reordered);
        count("pauses", net.pauses(port).received.into());
    }
    let load = &fabric.nics.application;
    count("datagrams", load.datagrams.received.len() as u64);
    count("shared receives", load.shared.iter().map(|shared| shared.ended.len() as u64).sum());
    for side in &fabric.nics.application.sides {
        let counters = hosts[usize::from(side.host.0)].engine.counters(side.qpn);
        count("retransmitted", counters.retransmitted.into());
        count("timeouts", counters.timeouts.into());
        count("naks", counters.naks.into());
        count("rnr", counters.rnr.into());
        count("cnps", counters.cnps.into());
        count("marked", counters.ecn_marked.into());
        count("received", side.received.len() as u64);
        let (done, failed): (Vec<_>, Vec<_>) =
            side.sent.iter().partition(|completion| completion.status == Status::Success);
        count("failures", failed.len() as u64);
        for completion in done {
            let name = match side.messages[number_of(completion)].action {
                Action::Send(_) => "sends",
                Action::Write(_) => "writes",
                Action::Read => "reads",
                Action::FetchAdd => "fetch-adds",
                Action::CompareSwap { .. } => "compare-swaps",
            };
            count("successes", 1);
            count(name, 1);
        }
    }
    met
}
