//! The least time that a collective takes: on an idle network, with nothing in its way but itself.

use super::Simulation;
use super::path::{Arrival, Paths};
use super::profile::Profiles;
use crate::results::CollectiveResult;
use crate::run::RunError;
use crate::scenario::Scenario;
use crate::traffic::{Collective, Traffic};
use roci_fabric::fabric::Fabric;
use roci_fabric::net::Net;
use roci_fabric::packet::HostId;
use roci_units::Span;

/// So many packets of a queue pair may be under way: a quarter of the circle of PSNs.
const PACKETS_MAX: u64 = 1 << 22;

/// Refuses a collective of which a queue pair could have too many packets under way: all of its channel's data, where the
/// rank that they go to is slow.
pub(super) fn refuse_too_long(scenario: &Scenario, traffic: &[Traffic]) -> Result<(), RunError> {
    let hosts = &scenario.topology.graph.hosts;
    let mtu = |rank: &HostId| scenario.nic.config_of(&hosts[usize::from(rank.0)]).mtu;
    for (table, traffic) in traffic.iter().enumerate() {
        let Traffic::Collective(spec) = traffic else { continue };
        let Some(mtu) = spec.ranks.iter().map(mtu).min() else { continue };
        let most = PACKETS_MAX * u64::from(mtu);
        if spec.size.0.div_ceil(spec.channels.into()) > most {
            return Err(RunError::Impossible(format!(
                "traffic {table}: a channel's data are more than {PACKETS_MAX} packets of {mtu} octets, and packets are numbered with \
                 24 bits; set `channels` to {} or more, or a larger `nic.mtu`",
                spec.size.0.div_ceil(most)
            )));
        }
    }
    Ok(())
}

impl Simulation<'_> {
    /// What became of the collectives.
    pub(super) fn collectives(&mut self) -> Vec<CollectiveResult> {
        let Fabric { net, nics } = &self.fabric;
        let driver = &nics.application;
        let ideals: Vec<_> = driver
            .collectives
            .ranks()
            .map(|(spec, hosts)| Some(ideal(&mut self.paths, net, &driver.profiles, spec, hosts?)))
            .collect();
        driver.collectives.results(&ideals)
    }
}

/// The longer of two times that `spec` cannot be faster than, where `hosts` are those of its ranks: that of one chunk which is
/// alone and goes through all steps, and that in which the busiest rank gets all that it sends out of its link, and the last
/// packet arrives.
fn ideal(paths: &mut Paths<'_>, net: &Net, profiles: &Profiles, spec: &Collective, hosts: &[HostId]) -> Span {
    let schedule = spec.schedule();
    let arrivals: Vec<Arrival> = (0..schedule.edges())
        .map(|edge| {
            let (from, to) = schedule.ends(edge);
            let [from, to] = [from, to].map(|rank| hosts[rank as usize]);
            paths.arrival(net, from, to, spec.message_sizes(edge).0, profiles.mtu(from, to))
        })
        .collect();
    let ranks = 0..schedule.ranks();
    let copies = u64::from(spec.channels) * u64::from(spec.chunks);
    let mut busy = vec![Span::ZERO; hosts.len()];
    let mut behind = vec![Span::MAX; hosts.len()];
    let mut longest = Span::ZERO;
    // When each rank may send in this step, and in the next.
    let start = |rank: u32| (!schedule.at_once(rank).is_empty()).then_some(Span::ZERO);
    let mut ready: Vec<Option<Span>> = ranks.clone().map(start).collect();
    let mut next = ready.clone();
    for step in 0..schedule.steps() {
        if schedule.waits() {
            next.fill(None);
        }
        for rank in ranks.clone() {
            let at = rank as usize;
            let (Some(since), Some(message)) = (ready[at], schedule.message(rank, step)) else { continue };
            let arrival = arrivals[message.edge as usize];
            let arrived = since + arrival.time;
            longest = longest.max(arrived);
            busy[at] += arrival.busy * copies;
            behind[at] = behind[at].min(arrival.behind);
            if schedule.waits() {
                // All steps before must have come as well.
                next[message.to as usize] = ready[message.to as usize].max(Some(arrived));
            }
        }
        std::mem::swap(&mut ready, &mut next);
    }
    let sends = busy.iter().zip(&behind).filter(|(busy, _)| !busy.is_zero());
    let by_link = sends.map(|(busy, behind)| *busy + *behind).max().unwrap_or(Span::ZERO);
    longest.max(by_link)
}
