//! The least time that a collective takes: on an idle network, with nothing in its way but itself.

use super::Simulation;
use super::path::{Arrival, Paths};
use super::profile::Profiles;
use crate::results::CollectiveResult;
use crate::run::RunError;
use crate::scenario::Scenario;
use crate::traffic::collective::Schedule;
use crate::traffic::collective::tree::Tree;
use crate::traffic::{Algorithm, Collective, Traffic};
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
    if schedule.algorithm() == Algorithm::Tree {
        return of_trees(&schedule, &arrivals, spec);
    }
    let ranks = 0..schedule.ranks();
    let copies = u64::from(spec.channels) * u64::from(spec.chunks);
    let mut busy = vec![Span::ZERO; hosts.len()];
    let mut behind = vec![Span::MAX; hosts.len()];
    let mut longest = Span::ZERO;
    // When each rank may send in this step, and in the next.
    let start = |rank: u32| schedule.at_once(rank).next().map(|_| Span::ZERO);
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

/// The same of two trees: the time in which a chunk that is alone goes up the higher of them and comes down, and that in which the
/// busiest link of a rank has carried all that goes over it.
fn of_trees(schedule: &Schedule, arrivals: &[Arrival], spec: &Collective) -> Span {
    let copies = u64::from(spec.channels) * u64::from(spec.chunks);
    let mut out = vec![Span::ZERO; schedule.ranks() as usize];
    let mut into = out.clone();
    for (arrival, edge) in arrivals.iter().zip(0..) {
        let (from, to) = schedule.ends(edge);
        out[from as usize] += arrival.busy * copies;
        into[to as usize] += arrival.taken * copies;
    }
    let busiest = out.into_iter().chain(into).max().unwrap_or(Span::ZERO);
    let behind = arrivals.iter().map(|arrival| arrival.behind).min().unwrap_or(Span::ZERO);
    let alone = [false, true].map(|second| {
        let one = OneTree { schedule, tree: schedule.tree(second), second, arrivals };
        one.sum_at(0) + one.all_below(0)
    });
    alone.into_iter().fold(busiest + behind, Span::max)
}

/// A chunk that is alone in one of the two trees. A rank has a sum and its total for both of its children at once, on one link each.
struct OneTree<'a> {
    schedule: &'a Schedule,
    tree: Tree,
    second: bool,
    arrivals: &'a [Arrival],
}

impl OneTree<'_> {
    fn arrival(&self, node: u32, down: bool) -> Arrival {
        self.arrivals[self.schedule.line(self.second, node, down) as usize]
    }

    /// When `node` has the sums of all below it at the earliest.
    fn sum_at(&self, node: u32) -> Span {
        let sums: Vec<_> =
            self.tree.children(node).map(|child| (self.sum_at(child), self.arrival(child, false))).collect();
        let alone = sums.iter().map(|(ready, sum)| *ready + sum.time).max().unwrap_or(Span::ZERO);
        // Both come by one link, however they take turns.
        let first = sums.iter().map(|(ready, _)| *ready).min().unwrap_or(Span::ZERO);
        let taken = sums.iter().fold(first, |sum, (_, arrival)| sum + arrival.taken);
        alone.max(taken)
    }

    /// How long after `node` has the total all below it have it at the earliest: the child that gets all of it last does so when its
    /// link has carried both.
    fn all_below(&self, node: u32) -> Span {
        let totals: Vec<_> = self
            .tree
            .children(node)
            .map(|child| (self.arrival(child, true), self.all_below(child)))
            .collect();
        let both = totals.iter().fold(Span::ZERO, |sum, (total, _)| sum + total.busy);
        let with_last = |last: usize| {
            let each = totals.iter().enumerate().map(|(place, (total, below))| {
                let arrived = if place == last { total.time.max(both + total.behind) } else { total.time };
                arrived + *below
            });
            each.max().unwrap_or(Span::ZERO)
        };
        (0..totals.len()).map(with_last).min().unwrap_or(Span::ZERO)
    }
}
