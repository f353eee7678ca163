//! Who talks to whom, where that is known before a run.

use super::spec::{Common, HpccFlow, Traffic};
use roci_fabric::packet::HostId;

/// Two hosts between which there is a flow, from the first to the second, and what its messages share.
pub(crate) type Pair = (HostId, HostId, Common);

impl Traffic {
    /// The hosts of all flows, some of them more than once; `None` where chance has a part in who talks to whom, or all talk to all.
    pub(crate) fn pairs(&self) -> Option<Box<dyn Iterator<Item = Pair> + '_>> {
        Some(match self {
            Self::Flows(flows) => Box::new(flows.iter().map(|flow| (flow.src, flow.dst, flow.common))),
            Self::ClosedLoop(spec) => Box::new(spec.pairs.iter().map(|&(src, dst)| (src, dst, spec.common))),
            Self::Collective(spec) if !spec.shuffled => {
                let schedule = spec.schedule();
                let host = |channel, place| spec.ranks[spec.rank_at(channel, place) as usize];
                let pairs = spec.pairs();
                let edges = (0..spec.kinds()).flat_map(move |channel| {
                    pairs.edges(channel).map(move |edge| (channel, edge)).collect::<Vec<_>>()
                });
                Box::new(edges.map(move |(channel, edge)| {
                    let (from, to) = schedule.ends(edge);
                    (host(channel, from), host(channel, to), spec.common)
                }))
            }
            Self::Goal(spec) if !spec.shuffled => {
                let host = |rank: u32| spec.hosts[rank as usize];
                Box::new(spec.lines().iter().map(move |line| (host(line.from), host(line.to), spec.common)))
            }
            Self::Rpc(spec) => {
                Box::new(spec.clients.iter().map(|&client| (client, spec.server, spec.common)))
            }
            Self::Trigger(spec) => {
                Box::new(spec.hosts.iter().map(|&host| (host, spec.receiver, spec.common)))
            }
            Self::Hpcc(hpcc) => {
                let common = |flow: &HpccFlow| Common { priority: Some(flow.priority), ..hpcc.common };
                Box::new(hpcc.flows.iter().map(move |flow| (flow.src, flow.dst, common(flow))))
            }
            Self::Collective(_)
            | Self::Goal(_)
            | Self::Incast(_)
            | Self::Permutation(_)
            | Self::AllToAll(_)
            | Self::Poisson(_) => return None,
        })
    }
}
