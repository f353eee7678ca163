//! GOAL schedules: the messages of their ranks are posted as WRITEs with immediate, and what comes lets the ranks go on.
//!
//! The immediate of a message is the number of its send in its rank, of which nothing else is kept then; of a collective that of a place
//! where it stands while it is under way.

mod alone;
mod joint;
mod ranks;
mod replay;

use super::{Driver, at};
use crate::results::goal::{CriticalPath, GoalResult, Replays};
use crate::run::Go;
use crate::traffic::goal::{Goal, Line};
use crate::traffic::{Job, JobId, Traffic, jobs};
pub(in crate::world) use ranks::Longer;
use ranks::{Effect, Ranks};
pub(in crate::world) use replay::Trip;
use replay::{Shared, play};
use roci_fabric::net::Net;
use roci_fabric::packet::HostId;
use roci_nic::Host;
use roci_transport::{Completion, Status, Tail};
use roci_units::{Instant, Random, Span};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

/// The jitter of table `n`'s ranks is drawn from stream `n` of these.
const JITTER_STREAMS: u64 = 3 << 40;
/// So often a schedule is done again with less in its way.
const TIMES_AGAIN: u64 = 3;
/// Stands for a CPU where the whole rank begins.
const BEGIN: u32 = u32::MAX;
/// So many packets of a queue pair may be under way, a quarter of the circle of PSNs; sends beyond wait for the others.
const PACKETS_MAX: u64 = 1 << 22;

/// The GOAL schedules of a run, by their tables.
#[derive(Default)]
pub(in crate::world) struct Goals {
    groups: Vec<Option<Box<Group>>>,
    /// When ranks begin and CPUs are done: when, which table, which rank and which CPU.
    due: BinaryHeap<Reverse<(Instant, u32, u32, u32)>>,
    /// What ranks want done, empty between any two of these.
    effects: Vec<Effect>,
}

/// One schedule under way.
struct Group {
    ranks: Ranks,
    /// When each of them begins.
    begins: Vec<Instant>,
    /// Of each queue pair what is under way.
    wires: Vec<Wire>,
    /// Of each the place among the flows that are alive.
    places: Vec<u32>,
    failed: bool,
}

/// What is under way by a queue pair.
#[derive(Clone, Debug, Default)]
struct Wire {
    /// The NICs at its ends.
    ends: [HostId; 2],
    /// The messages that were posted and have not been acknowledged, and their packets.
    posted: VecDeque<(u32, u64)>,
    packets: u64,
    /// Those that wait until there is room for their packets.
    held: VecDeque<u32>,
    /// Messages that have still to arrive, and such as have still to be acknowledged.
    coming: u64,
    unacknowledged: u64,
}

impl Wire {
    /// Whether nothing is on its way.
    fn is_idle(&self) -> bool {
        self.posted.is_empty() && self.coming == self.unacknowledged
    }
}

impl Goals {
    /// Those of `traffic`, whose ranks on each host begin up to `jitter_max` late. With `timeline` they note what happens when.
    pub(in crate::world) fn new(traffic: &[Traffic], jitter_max: &[Span], seed: u64, timeline: bool) -> Self {
        let mut goals = Self::default();
        for (table, traffic) in (0u32..).zip(traffic) {
            let Traffic::Goal(spec) = traffic else {
                goals.groups.push(None);
                continue;
            };
            let mut group = Group::new(spec, &jobs::hosts_of_ranks(spec, seed, table));
            if timeline {
                group.ranks.note_times();
            }
            let mut jitter = Random::new(seed, JITTER_STREAMS + u64::from(table));
            for rank in (0..).take(spec.hosts.len()) {
                let most = jitter_max[at(group.ranks.host(rank))];
                let late = Span::from_ps(jitter.below(most.as_ps().saturating_add(1)));
                group.begins.push(spec.start + late);
                goals.due.push(Reverse((spec.start + late, table, rank, BEGIN)));
            }
            goals.groups.push(Some(Box::new(group)));
        }
        goals
    }

    /// When a rank begins next, or a CPU is done.
    pub(in crate::world) fn next(&self) -> Instant {
        self.due.peek().map_or(Instant::NEVER, |Reverse((at, ..))| *at)
    }

    /// Notes where a queue pair stands; gives its octets, and those of its longest message.
    pub(super) fn connect(&mut self, job: &Job, place: u32) -> (u64, u64) {
        let JobId { traffic, number } = job.id;
        let group = self.groups[traffic as usize].as_mut().expect("such jobs come from schedules");
        group.wires[number as usize].ends = [job.src, job.dst];
        group.places[number as usize] = place;
        let line = group.ranks.spec.lines()[number as usize];
        (line.octets, line.longest)
    }

    /// What became of them, but for how long the messages of their critical paths take alone.
    pub(in crate::world) fn results(&self) -> Vec<GoalResult> {
        let groups =
            self.groups.iter().enumerate().filter_map(|(table, group)| Some((table, group.as_ref()?)));
        let results = groups.map(|(table, group)| GoalResult {
            table,
            start: group.ranks.spec.start,
            schedule: group.ranks.spec.schedule.clone(),
            joint: group.ranks.joint(),
            ranks: group.ranks.results(),
            path: group.ranks.critical_path(),
            replays: None,
            times: group.ranks.times(),
            failed: group.failed,
        });
        results.collect()
    }

    /// How many operations are done where the schedule of a table is done again: none where that is not asked for.
    pub(in crate::world) fn operations_again(&self, table: usize) -> u64 {
        let spec = self.groups[table].as_ref().map(|group| &group.ranks.spec);
        spec.filter(|spec| spec.replays).map_or(0, |spec| TIMES_AGAIN * spec.schedule.operations())
    }

    /// Notes how long each collective of the critical path of a table would have taken with nothing in its way but itself; those stay as they are that
    /// are not known when `tell` has had enough, or of a schedule that is not done again.
    pub(in crate::world) fn note_collectives(
        &self,
        table: usize,
        path: &mut CriticalPath,
        trip: &mut dyn FnMut(u32, u64) -> Trip,
        tell: &mut dyn FnMut() -> Go,
    ) -> Go {
        let ranks = self.groups[table].as_ref().map(|group| &group.ranks).filter(|ranks| ranks.spec.replays);
        ranks.map_or(Go::On, |ranks| alone::note_collectives(ranks, path, trip, tell))
    }

    /// How long the schedule of a table takes where less is in its way; `trip` knows the way of so many
    /// octets by a queue pair on an idle network. `None` where `tell`, which hears how many operations are done, has had enough. What was known of
    /// its ranks is known no more.
    pub(in crate::world) fn replay(
        &mut self,
        table: usize,
        trip: &mut dyn FnMut(u32, u64) -> Trip,
        tell: &mut dyn FnMut(u64) -> Go,
    ) -> Option<Replays> {
        let group = self.groups[table].as_mut()?;
        let all = group.ranks.spec.schedule.operations();
        let mut before = 0;
        let mut time = |shared, trip: &mut dyn FnMut(u32, u64) -> Trip| {
            group.ranks.start_anew();
            let begins = (0..).zip(group.begins.iter().copied());
            let went = play(&mut group.ranks, begins, shared, trip, &mut |done| tell(before + done));
            before += all;
            (went == Go::On).then(|| group.ranks.time())
        };
        Some(Replays {
            links: time(Shared::Links, trip)?,
            alone: time(Shared::Nothing, trip)?,
            no_network: time(Shared::Nothing, &mut |_, _| Trip::default())?,
        })
    }

    /// When each rank of each collective of a table began, by its place in the order of its way; of those that not all have begun there is nothing.
    pub(in crate::world) fn begins(&self, table: usize) -> Vec<Vec<Instant>> {
        let Some(group) = &self.groups[table] else { return Vec::new() };
        group.ranks.begins()
    }

    /// The NICs at the ends of each queue pair of a table.
    pub(in crate::world) fn ends(&self, table: usize) -> Vec<[HostId; 2]> {
        let wires = self.groups[table].iter().flat_map(|group| &group.wires);
        wires.map(|wire| wire.ends).collect()
    }

    /// The ranks that wait in schedules of which nothing is under way, with their hosts: of each rank the first receive or collective.
    pub(in crate::world) fn waiting(&self) -> Vec<(usize, u32, HostId, String)> {
        let mut all = Vec::new();
        for (table, group) in self.groups.iter().enumerate() {
            let Some(group) = group else { continue };
            let calculates = self.due.iter().any(|Reverse((_, of, ..))| *of as usize == table);
            if !group.failed && !calculates && group.wires.iter().all(Wire::is_idle) {
                let waiting = group.ranks.waiting().into_iter();
                all.extend(waiting.map(|(rank, does)| (table, rank, group.ranks.host(rank), does)));
            }
        }
        all
    }

    /// Whether operations are left in a schedule that was not given up.
    pub(in crate::world) fn is_undone(&self) -> bool {
        self.groups.iter().flatten().any(|group| group.ranks.undone > 0 && !group.failed)
    }

    /// Of each schedule how many messages no receive took.
    pub(in crate::world) fn untaken(&self) -> impl Iterator<Item = (usize, u64)> {
        let groups = self.groups.iter().enumerate();
        groups.filter_map(|(table, group)| Some((table, group.as_ref()?.ranks.untaken())))
    }

    /// Of each schedule with messages that were longer than their receives say, how many, and the first, with what the two operations say.
    pub(in crate::world) fn longer(&self) -> impl Iterator<Item = (usize, u64, Longer, [String; 2])> {
        let groups = self.groups.iter().enumerate();
        groups.filter_map(|(table, group)| {
            let ranks = &group.as_ref()?.ranks;
            let (count, first) = ranks.longer()?;
            let words = [first.send, first.receive].map(|(rank, it)| ranks.spec.schedule.words(rank, it));
            Some((table, count, first, words))
        })
    }

    fn take_due(&mut self, now: Instant) -> Option<(u32, u32, u32)> {
        let due = if self.next() > now { None } else { self.due.pop() };
        due.map(|Reverse((_, table, rank, cpu))| (table, rank, cpu))
    }
}

impl Group {
    fn new(spec: &Goal, hosts: &[HostId]) -> Self {
        let wire =
            |line: &Line| Wire { coming: line.messages, unacknowledged: line.messages, ..Wire::default() };
        Self {
            ranks: Ranks::new(spec, hosts),
            begins: Vec::new(),
            wires: spec.lines().iter().map(wire).collect(),
            places: vec![0; spec.lines().len()],
            failed: false,
        }
    }
}

impl Driver {
    /// Lets the ranks begin whose time has come, and those go on whose CPUs are done.
    pub(in crate::world) fn go_on_due(&mut self, net: &mut Net, hosts: &mut [Host]) {
        let now = net.now();
        while let Some((table, rank, cpu)) = self.goals.take_due(now) {
            let Some(mut group) = self.goals.groups[table as usize].take() else { continue };
            if cpu == BEGIN {
                group.ranks.begin(now, rank);
            } else {
                group.ranks.cpu_done(now, rank, cpu);
            }
            self.carry_out(net, hosts, table, group, None);
        }
    }

    /// Does what the ranks of a group want done, and puts it back. The NIC of `heard` goes on by itself.
    fn carry_out(
        &mut self,
        net: &mut Net,
        hosts: &mut [Host],
        table: u32,
        mut group: Box<Group>,
        heard: Option<HostId>,
    ) {
        let before = self.goals.next();
        let mut senders = BTreeSet::new();
        let mut effects = std::mem::take(&mut self.goals.effects);
        group.ranks.take_effects(&mut effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Busy { until, rank, cpu } => self.goals.due.push(Reverse((until, table, rank, cpu))),
                Effect::Post { line, id } => {
                    group.wires[line as usize].held.push_back(id);
                    senders.extend(self.post_held(net.now(), hosts, &mut group, line));
                }
            }
        }
        self.goals.effects = effects;
        for nic in senders.into_iter().filter(|nic| Some(*nic) != heard) {
            hosts[at(nic)].poke(net, nic);
        }
        self.goals.groups[table as usize] = Some(group);
        if self.goals.next() < before {
            // The run is to look at what is due before it goes on.
            net.pause_here();
        }
    }

    /// Posts what there is room for by a queue pair; gives the NIC that sends, if it has anything to.
    fn post_held(
        &mut self,
        now: Instant,
        hosts: &mut [Host],
        group: &mut Group,
        number: u32,
    ) -> Option<HostId> {
        let Line { messages, .. } = group.ranks.spec.lines()[number as usize];
        let wire = &mut group.wires[number as usize];
        let mtu = u64::from(self.profiles.mtu(wire.ends[0], wire.ends[1]));
        let mut sender = None;
        while let Some(&id) = wire.held.front() {
            let size = group.ranks.octets(number, id);
            let packets = size.div_ceil(mtu).max(1);
            if !wire.posted.is_empty() && wire.packets + packets > PACKETS_MAX {
                break;
            }
            wire.held.pop_front();
            let is_first = wire.posted.is_empty() && wire.unacknowledged == messages;
            if is_first && let Some(live) = &mut self.live[group.places[number as usize] as usize] {
                live.start = now;
            }
            wire.posted.push_back((id, packets));
            wire.packets += packets;
            let octets = u32::try_from(size).expect("the length of messages has been checked");
            self.write(now, hosts, group.places[number as usize], octets, id, true);
            sender = Some(wire.ends[0]);
        }
        sender
    }

    /// A message of a schedule has come to the host that is told of it.
    pub(super) fn message_of_goal(
        &mut self,
        net: &mut Net,
        hosts: &mut [Host],
        place: u32,
        completion: &Completion,
    ) {
        let Some(Some(live)) = self.live.get_mut(place as usize) else { return };
        // Of one that failed its sender hears.
        let (Status::Success, Tail::Immediate(id)) = (completion.status, completion.tail) else {
            return;
        };
        let (JobId { traffic: table, number }, heard) = (live.id, live.dst);
        let Some(mut group) = self.goals.groups[table as usize].take() else { return };
        live.delivered += group.ranks.octets(number, id);
        let wire = &mut group.wires[number as usize];
        wire.coming -= 1;
        let is_over = wire.coming == 0 && wire.unacknowledged == 0;
        group.ranks.came(net.now(), number, id);
        self.carry_out(net, hosts, table, group, Some(heard));
        if is_over {
            self.end_part(net, hosts, place, Status::Success);
        }
    }

    /// The first message of a queue pair that had not been acknowledged is, or it has failed.
    pub(super) fn sent_of_goal(&mut self, net: &mut Net, hosts: &mut [Host], place: u32, status: Status) {
        let Some(live) = &mut self.live[place as usize] else { return };
        let (JobId { traffic: table, number }, heard) = (live.id, live.src);
        if status != Status::Success {
            return self.fail_goal(net, hosts, place, table, status);
        }
        live.outstanding -= 1;
        let Some(mut group) = self.goals.groups[table as usize].take() else { return };
        let wire = &mut group.wires[number as usize];
        let (id, packets) = wire.posted.pop_front().expect("what is acknowledged was posted");
        wire.packets -= packets;
        wire.unacknowledged -= 1;
        // Where a NIC acknowledges before data are in their place, the last may still be on its way there.
        let is_over = wire.coming == 0 && wire.unacknowledged == 0;
        self.post_held(net.now(), hosts, &mut group, number);
        group.ranks.acknowledged(net.now(), number, id);
        self.carry_out(net, hosts, table, group, Some(heard));
        if is_over {
            self.end_part(net, hosts, place, Status::Success);
        }
    }

    /// A queue pair has failed: the others wait for what will not come, and nobody goes on any more.
    fn fail_goal(&mut self, net: &mut Net, hosts: &mut [Host], place: u32, table: u32, status: Status) {
        self.end_part(net, hosts, place, status);
        self.goals.due.retain(|Reverse((_, of, ..))| *of != table);
        let Some(group) = &mut self.goals.groups[table as usize] else { return };
        group.failed = true;
        let places = group.places.clone();
        self.flush(net, hosts, table, &places);
    }
}
