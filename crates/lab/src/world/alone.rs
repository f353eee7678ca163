//! The least time that a collective takes, or a chain of messages of a schedule: on an idle network, with nothing in its way but itself.

use super::Simulation;
use super::driver::Trip;
use super::path::{Arrival, Paths};
use super::profile::Profiles;
use crate::results::{CollectiveResult, GoalResult, JointResult, LinkKind};
use crate::run::{Go, Progress, RunError};
use crate::scenario::Scenario;
use crate::traffic::collective::amounts::Matrix;
use crate::traffic::collective::tree::Tree;
use crate::traffic::collective::{Message, Pairs, Schedule};
use crate::traffic::goal::Does;
use crate::traffic::{Algorithm, Collective, Traffic};
use roci_fabric::fabric::Fabric;
use roci_fabric::net::Net;
use roci_fabric::packet::HostId;
use roci_units::{Instant, Span};
use std::collections::BTreeMap;

/// So many packets of a queue pair may be under way: a quarter of the circle of PSNs.
const PACKETS_MAX: u64 = 1 << 22;

/// Refuses a collective of which a queue pair could have too many packets under way: all of its channel's data, where the
/// rank that they go to is slow.
pub(super) fn refuse_too_long(scenario: &Scenario, traffic: &[Traffic]) -> Result<(), RunError> {
    let nics = &scenario.topology.graph.hosts;
    let mtu_of = |nic: HostId| scenario.nic.config_of(&nics[usize::from(nic.0)]).mtu;
    let mtu = |rank: &HostId| scenario.topology.homes.nics(*rank).map(mtu_of).min();
    for (table, traffic) in traffic.iter().enumerate() {
        let Traffic::Collective(spec) = traffic else { continue };
        let Some(mtu) = spec.ranks.iter().filter_map(mtu).min() else { continue };
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
            .ends()
            .map(|(spec, ends)| Some(ideal(&mut self.paths, net, &driver.profiles, spec, ends?, &[])))
            .collect();
        driver.collectives.results(&ideals)
    }

    /// What became of the schedules. They are done again with less in their way until `progress` has had enough, and what is missing then is
    /// told of.
    pub(super) fn goals(&mut self, progress: &mut dyn FnMut(&Progress) -> Go) -> Vec<GoalResult> {
        let so_far = self.progress();
        let mut results = self.fabric.nics.application.goals.results();
        self.note_least_of_collectives(&mut results);
        let Fabric { net, nics } = &mut self.fabric;
        let driver = &mut nics.application;
        let operations = |result: &GoalResult| driver.goals.operations_again(result.table);
        let all = results.iter().filter(|result| result.path.is_some()).map(operations).sum();
        let (mut before, mut stopped) = (0, false);
        for result in &mut results {
            let Some(path) = &mut result.path else { continue };
            let ends = driver.goals.ends(result.table);
            // Many are of one queue pair and length.
            let mut known = vec![BTreeMap::new(); ends.len()];
            let mut trip = |line: u32, size| {
                *known[line as usize].entry(size).or_insert_with(|| {
                    let [from, to] = ends[line as usize];
                    let mtu = driver.profiles.mtu(from, to);
                    let Arrival { ends, busy, time, taken, .. } =
                        self.paths.arrival(net, from, to, size, mtu);
                    let acknowledged = self.paths.acknowledged(net, from, to, size, mtu);
                    Trip { ends, busy, time, taken, acknowledged }
                })
            };
            for link in path.links.iter_mut().filter(|link| link.kind.is_message()) {
                let (Some(line), Does::Send { size, .. }) = (link.line, link.does) else { continue };
                let Trip { time, acknowledged, .. } = trip(line, size);
                link.ideal = if link.kind == LinkKind::Acknowledged { acknowledged } else { time };
            }
            let mut tell = |done| {
                let again = Some((before + done, all));
                progress(&Progress { again, ..so_far.clone() })
            };
            stopped |= !stopped
                && driver.goals.note_collectives(result.table, path, &mut trip, &mut || tell(0)) == Go::Stop;
            path.ideal = path.links.iter().fold(Span::ZERO, |all, link| all + link.ideal);
            let operations = driver.goals.operations_again(result.table);
            if operations == 0 {
                continue;
            }
            let replays =
                if stopped { None } else { driver.goals.replay(result.table, &mut trip, &mut tell) };
            before += operations;
            stopped |= replays.is_none();
            result.replays = replays;
            if stopped {
                let name = &self.scenario.traffic_names[result.table];
                self.warnings.push(format!(
                    "it was interrupted while schedules were done again: how long that of traffic {name} takes with less in its way (`replays`) is missing, and collectives of its critical path may have their least time for that alone; all else is whole"
                ));
            }
        }
        results
    }

    /// Notes how long the collectives of schedules take at least, and those of critical paths until it is known how long these ranks would have
    /// waited.
    fn note_least_of_collectives(&mut self, results: &mut [GoalResult]) {
        let Fabric { net, nics } = &self.fabric;
        let driver = &nics.application;
        for result in results {
            let Traffic::Goal(spec) = &self.scenario.traffic[result.table] else { continue };
            let ends = driver.goals.ends(result.table);
            // Those of one kind of a group and of one size whose ranks begin together take the same.
            let mut known = BTreeMap::new();
            let begins = driver.goals.begins(result.table);
            for ((number, joint), begins) in (0..).zip(&mut result.joint).zip(&begins) {
                let Some((place, way)) = spec.way(number) else { continue };
                let matrix = spec.schedule.joint[number as usize].matrix;
                let first = begins.iter().min().copied().unwrap_or(Instant::ZERO);
                let late: Vec<Span> = begins.iter().map(|begin| begin.since(first)).collect();
                let last = late.iter().max().copied().unwrap_or_default();
                let mut from_first = || {
                    let one = spec.collective(number).expect("it has a way");
                    let pairs = one.pairs();
                    let lines = (0..pairs.count()).map(|number| pairs.at(number));
                    let ends: Vec<_> =
                        lines.map(|(channel, edge)| ends[way.line(channel, edge) as usize]).collect();
                    ideal(&mut self.paths, net, &driver.profiles, &one, &ends, &late)
                };
                let least = if last.is_zero() {
                    *known.entry((place, joint.size, matrix)).or_insert_with(from_first)
                } else {
                    from_first()
                };
                joint.ideal = Some(least.saturating_sub(last));
            }
            for link in result.path.iter_mut().flat_map(|path| &mut path.links) {
                if let (LinkKind::Collective, Does::Collective { number, .. }) = (link.kind, link.does) {
                    let JointResult { ideal, times, .. } = result.joint[number as usize];
                    let end = times.last_begin + ideal.unwrap_or_default();
                    link.ideal = end.since(link.from).min(link.to.since(link.from));
                }
            }
        }
    }
}

/// The longer of two times that `spec` cannot be faster than, where its queue pairs have the NICs of `ends`: that of one chunk which is
/// alone and goes through all steps, and that in which the busiest NIC gets all that it sends out of its link, and the last
/// packet arrives. Ranks begin so `late`, or all at once where that is empty; the time is that from the first of them on.
fn ideal(
    paths: &mut Paths<'_>,
    net: &Net,
    profiles: &Profiles,
    spec: &Collective,
    ends: &[[HostId; 2]],
    late: &[Span],
) -> Span {
    let (schedule, pairs) = (spec.schedule(), spec.pairs());
    // None is done before it begins.
    let last = late.iter().max().copied().unwrap_or_default();
    if pairs.count() == 0 {
        return last;
    }
    // Channels have the same ends, unless hosts have several NICs or rings go different ways.
    let by_channel: Vec<&[[HostId; 2]]> =
        ends.chunks((pairs.count() / spec.channels).max(1) as usize).collect();
    let alike = by_channel.iter().all(|other| *other == by_channel[0]);
    // Or carry what others do not.
    let alike = alike && (spec.matrix().is_none() || spec.kinds() == 1);
    let kinds = if alike { &by_channel[..1] } else { &by_channel[..] };
    let copies = u64::from(spec.channels) / kinds.len() as u64 * u64::from(spec.chunks);
    let mut links = BTreeMap::new();
    let mut longest = Span::ZERO;
    for (channel, ends) in (0..).zip(kinds) {
        let late = Late { spec, channel, of: late };
        if let Some(matrix) = spec.matrix() {
            let uneven = Uneven { spec, matrix, channel, pairs: &pairs, ends, late };
            longest = longest.max(uneven.longest(paths, net, profiles, copies, &mut links));
            continue;
        }
        let carried = spec.carried(channel);
        let sizes = |edge: u32| carried[edge as usize].sizes;
        let arrivals: Vec<Arrival> = (0..)
            .zip(*ends)
            .map(|(edge, &[from, to])| {
                paths.least_arrival(net, [from, to], sizes(edge), profiles.mtu(from, to))
            })
            .collect();
        let of = match schedule.algorithm() {
            Algorithm::Tree => of_trees,
            Algorithm::Pxn => of_rails,
            Algorithm::Ring | Algorithm::HalvingDoubling | Algorithm::Direct => of_steps,
        };
        longest = longest.max(of(&schedule, &arrivals, late, copies, &mut links));
        if schedule.gathers() {
            // All of it comes by one link.
            for (edge, arrival) in (0..).zip(&arrivals) {
                let [from, to] = arrival.ends;
                let ahead = paths.ahead(net, [from, to], sizes(edge), profiles.mtu(from, to));
                let begun = late.of(schedule.ends(edge).0);
                carry(&mut links, (to, true), arrival.taken * copies, begun + ahead);
            }
        }
    }
    let by_link = links.into_values().map(|link| link.busy + link.behind).max();
    longest.max(by_link.unwrap_or(Span::ZERO)).max(last)
}

/// How late ranks begin, behind the first of them; nothing where all begin at once.
#[derive(Clone, Copy)]
struct Late<'a> {
    spec: &'a Collective,
    channel: u32,
    of: &'a [Span],
}

impl Late<'_> {
    /// The rank at a place of the channel.
    fn of(self, place: u32) -> Span {
        let rank = self.spec.rank_at(self.channel, place);
        self.of.get(rank as usize).copied().unwrap_or_default()
    }
}

/// A channel of an all-to-all whose ranks have different amounts for one another.
struct Uneven<'a> {
    spec: &'a Collective,
    matrix: &'a Matrix,
    channel: u32,
    pairs: &'a Pairs,
    /// Of those of the channel the NICs at their ends.
    ends: &'a [[HostId; 2]],
    late: Late<'a>,
}

impl Uneven<'_> {
    /// The time in which the last message of a chunk that is alone arrives; `links` have all `copies` of it to carry, those of receivers too.
    fn longest(
        &self,
        paths: &mut Paths<'_>,
        net: &Net,
        profiles: &Profiles,
        copies: u64,
        links: &mut Links,
    ) -> Span {
        let schedule = self.spec.schedule();
        let on_rail = |message: &Message| message.sources > 1 && schedule.is_on_rail(message.edge);
        let mut longest = Span::ZERO;
        // When a rank has what it is to send on to another.
        let mut ready = BTreeMap::<(u32, u32), Span>::new();
        for rails in [false, true] {
            let messages = self.spec.uneven_steps(self.channel).map(|(.., message)| message);
            for message in messages.filter(|message| on_rail(message) == rails) {
                let sizes = self.spec.cut_sizes(self.matrix, self.channel, &message);
                let place = self.pairs.place(self.channel, message.edge);
                let [from, to] = self.ends[place as usize];
                let mtu = profiles.mtu(from, to);
                let arrival = paths.least_arrival(net, [from, to], sizes, mtu);
                let (sender, shard) = (schedule.ends(message.edge).0, message.shards.start);
                let begun = self.late.of(sender);
                let has = if rails { ready.get(&(sender, shard)).copied() } else { None };
                let arrived = begun.max(has.unwrap_or_default()) + arrival.time;
                longest = longest.max(arrived);
                carry(links, (from, false), arrival.busy * copies, begun + arrival.behind);
                let ahead = paths.ahead(net, [from, to], sizes, mtu);
                carry(links, (to, true), arrival.taken * copies, begun + ahead);
                let ready = ready.entry((message.to, shard)).or_default();
                *ready = arrived.max(*ready);
            }
        }
        longest
    }
}

/// What one way of a NIC's link has to carry.
#[derive(Clone, Copy)]
struct Carried {
    /// How long it is busy.
    busy: Span,
    /// How long the last packet is on its way behind that, or the first ahead of it, at least; with how late its sender begins.
    behind: Span,
}

/// The ways of links, by their NICs: out of these, and into them.
type Links = BTreeMap<(HostId, bool), Carried>;

fn carry(links: &mut Links, way: (HostId, bool), busy: Span, behind: Span) {
    let link = links.entry(way).or_insert(Carried { busy: Span::ZERO, behind: Span::MAX });
    link.busy += busy;
    link.behind = link.behind.min(behind);
}

/// The time of a chunk that is alone, step by step; `links` have all `copies` of it to carry.
fn of_steps(
    schedule: &Schedule,
    arrivals: &[Arrival],
    late: Late<'_>,
    copies: u64,
    links: &mut Links,
) -> Span {
    let ranks = 0..schedule.ranks();
    let mut longest = Span::ZERO;
    // When each rank may send in this step, and in the next.
    let start = |rank: u32| schedule.at_once(rank).next().map(|_| late.of(rank));
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
            carry(links, (arrival.ends[0], false), arrival.busy * copies, late.of(rank) + arrival.behind);
            if schedule.waits() {
                // All steps before must have come as well.
                let begun = arrived.max(late.of(message.to));
                next[message.to as usize] = ready[message.to as usize].max(Some(begun));
            }
        }
        std::mem::swap(&mut ready, &mut next);
    }
    longest
}

/// The same of an all-to-all over rails: what is sent on has come from all ranks of the server.
fn of_rails(
    schedule: &Schedule,
    arrivals: &[Arrival],
    late: Late<'_>,
    copies: u64,
    links: &mut Links,
) -> Span {
    let mut longest = Span::ZERO;
    let mut ready: Vec<Span> = (0..schedule.ranks()).map(|rank| late.of(rank)).collect();
    // Steps within servers come before those on rails.
    for step in 0..schedule.steps() {
        for rank in 0..schedule.ranks() {
            let Some(message) = schedule.message(rank, step) else { continue };
            let arrival = arrivals[message.edge as usize];
            let is_on_rail = schedule.is_on_rail(message.edge);
            let begun = late.of(rank);
            let arrived = if is_on_rail { ready[rank as usize] } else { begun } + arrival.time;
            longest = longest.max(arrived);
            carry(links, (arrival.ends[0], false), arrival.busy * copies, begun + arrival.behind);
            if !is_on_rail {
                let ready = &mut ready[message.to as usize];
                *ready = arrived.max(*ready);
            }
        }
    }
    longest
}

/// The same of two trees: the time in which a chunk that is alone goes up the higher of them and comes down.
fn of_trees(
    schedule: &Schedule,
    arrivals: &[Arrival],
    late: Late<'_>,
    copies: u64,
    links: &mut Links,
) -> Span {
    let behind = arrivals.iter().map(|arrival| arrival.behind).min().unwrap_or(Span::ZERO);
    for (edge, arrival) in (0..).zip(arrivals) {
        let begun = late.of(schedule.ends(edge).0);
        carry(links, (arrival.ends[0], false), arrival.busy * copies, begun + behind);
        carry(links, (arrival.ends[1], true), arrival.taken * copies, behind);
    }
    let alone = [false, true].map(|second| {
        let one = OneTree { schedule, tree: schedule.tree(second), second, arrivals, late };
        one.sum_and_total()
    });
    alone.into_iter().fold(Span::ZERO, Span::max)
}

/// A chunk that is alone in one of the two trees. A rank has a sum and its total for both of its children at once, on one link each.
struct OneTree<'a> {
    schedule: &'a Schedule,
    tree: Tree,
    second: bool,
    arrivals: &'a [Arrival],
    late: Late<'a>,
}

impl OneTree<'_> {
    fn arrival(&self, node: u32, down: bool) -> Arrival {
        self.arrivals[self.schedule.line(self.second, node, down) as usize]
    }

    /// The time in which the sum comes to the root at the earliest, and its total to all. Chains are as long as servers are large, so each node
    /// comes after all below it here, and nothing calls itself.
    fn sum_and_total(&self) -> Span {
        let mut nodes = vec![0];
        let mut place = 0;
        while let Some(&node) = nodes.get(place) {
            nodes.extend(self.tree.children(node));
            place += 1;
        }
        let mut sums = vec![Span::ZERO; nodes.len()];
        let mut totals = sums.clone();
        for &node in nodes.iter().rev() {
            let children = || self.tree.children(node);
            let up: Vec<_> =
                children().map(|child| (sums[child as usize], self.arrival(child, false))).collect();
            let down: Vec<_> =
                children().map(|child| (self.arrival(child, true), totals[child as usize])).collect();
            // Its own data are in it.
            sums[node as usize] = sum_at(&up).max(self.late.of(self.tree.rank(node)));
            totals[node as usize] = all_below(&down);
        }
        sums[0] + totals[0]
    }
}

/// When a node has the sums of all below it at the earliest; of each child when it has its own, and how that comes.
fn sum_at(sums: &[(Span, Arrival)]) -> Span {
    let alone = sums.iter().map(|(ready, sum)| *ready + sum.time).max().unwrap_or(Span::ZERO);
    // Both come by one link, unless there are several, however they take turns.
    let first = sums.iter().map(|(ready, _)| *ready).min().unwrap_or(Span::ZERO);
    let taken = sums.iter().fold(first, |sum, (_, arrival)| sum + arrival.taken);
    let one_link = sums.iter().all(|(_, arrival)| arrival.ends[1] == sums[0].1.ends[1]);
    if one_link { alone.max(taken) } else { alone }
}

/// How long after a node has the total all below it have it at the earliest, of each child how it comes there, and how long after that all
/// below have it: the child that gets all of it last does so when its link has carried both.
fn all_below(totals: &[(Arrival, Span)]) -> Span {
    let one_link = totals.iter().all(|(total, _)| total.ends[0] == totals[0].0.ends[0]);
    let both = if one_link {
        totals.iter().fold(Span::ZERO, |sum, (total, _)| sum + total.busy)
    } else {
        Span::ZERO
    };
    let with_last = |last: usize| {
        let each = totals.iter().enumerate().map(|(place, (total, below))| {
            let arrived = if place == last { total.time.max(both + total.behind) } else { total.time };
            arrived + *below
        });
        each.max().unwrap_or(Span::ZERO)
    };
    (0..totals.len()).map(with_last).min().unwrap_or(Span::ZERO)
}
