//! Collectives: each rank posts the next message of a chunk when the one that it waits for has come.
//!
//! Nothing is kept of a message but its place in a queue. Its immediate tells its step and chunk, the queue pair that it comes by
//! its channel and the two ranks, and from these the schedule tells which one is next.

use super::{Driver, at};
use crate::results::collective::{CollectiveResult, Iteration, SlowStep};
use crate::traffic::collective::{Collective, Schedule};
use crate::traffic::{Job, JobId, Traffic};
use roci_fabric::net::Net;
use roci_fabric::packet::HostId;
use roci_fabric::topology::Homes;
use roci_nic::Host;
use roci_transport::{Completion, Status, Tail};
use roci_units::{Instant, Random, Span};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// The jitter of table `n`'s ranks is drawn from stream `n` of these.
const JITTER_STREAMS: u64 = 3 << 40;

/// The collectives of a run, by their tables.
#[derive(Default)]
pub(in crate::world) struct Collectives {
    groups: Vec<Option<Box<Group>>>,
    /// When ranks begin an iteration: when, which table and which rank.
    due: BinaryHeap<Reverse<(Instant, u32, u32)>>,
    homes: Homes,
}

/// One collective under way.
struct Group {
    spec: Collective,
    schedule: Schedule,
    /// The host of each rank; of one with several NICs the first of these.
    hosts: Vec<HostId>,
    /// Of each queue pair, by its number, the NICs at its ends.
    ends: Vec<[HostId; 2]>,
    /// Of each the place among the flows that are alive.
    places: Vec<u32>,
    /// How many of them are connected.
    connected: usize,
    /// Of each the messages that have still to arrive, over all iterations.
    coming: Vec<u64>,
    /// The octets of each of a channel in one iteration, of the first channel and of the last one asked for.
    octets: (u32, Vec<u64>),
    /// Of each rank the messages that have still to arrive in this iteration.
    missing: Vec<u64>,
    /// What the schedule keeps of each chunk of each channel at each rank.
    received: Vec<u32>,
    /// Whether each rank has begun this iteration.
    begun: Vec<bool>,
    /// What arrived at ranks before they had begun: the rank, the channel, the step and the chunk.
    early: Vec<(u32, Arrived)>,
    /// Ranks that are not done with this iteration.
    open: usize,
    start: Instant,
    first_end: Option<Instant>,
    /// Of each step when it was last received, and by which rank.
    steps: Vec<(Instant, u32)>,
    done: Vec<Iteration>,
    failed: bool,
    jitter: Random,
    /// The bound of each host's jitter.
    jitter_max: Vec<Span>,
}

/// What has arrived.
#[derive(Clone, Copy)]
struct Arrived {
    channel: u32,
    step: u32,
    chunk: u32,
}

/// A message to be posted.
struct Post {
    place: u32,
    octets: u32,
    tag: u32,
}

/// What an arrival has brought about.
struct Outcome {
    rank: u32,
    arrived: Arrived,
    /// The steps whose messages the rank may send now.
    steps: Range<u32>,
    /// No more will arrive by this queue pair.
    last: bool,
    /// The iteration is over.
    over: bool,
}

impl Collectives {
    /// Those of `traffic`, whose ranks on each host begin up to `jitter_max` late; hosts have NICs as in `homes`.
    pub(in crate::world) fn new(traffic: &[Traffic], homes: &Homes, jitter_max: &[Span], seed: u64) -> Self {
        let group = |(table, traffic): (u64, &Traffic)| {
            let Traffic::Collective(spec) = traffic else { return None };
            let jitter = Random::new(seed, JITTER_STREAMS + table);
            Some(Box::new(Group::new(spec, jitter_max, jitter)))
        };
        Self { groups: (0..).zip(traffic).map(group).collect(), due: BinaryHeap::new(), homes: homes.clone() }
    }

    /// When ranks begin next.
    pub(in crate::world) fn next(&self) -> Instant {
        self.due.peek().map_or(Instant::NEVER, |Reverse((at, ..))| *at)
    }

    /// The tables that are collectives, with the NICs at the ends of each queue pair where all are connected.
    pub(in crate::world) fn ends(&self) -> impl Iterator<Item = (&Collective, Option<&[[HostId; 2]]>)> {
        self.groups.iter().flatten().map(|group| {
            let ends = (group.connected == group.places.len()).then_some(&group.ends[..]);
            (&group.spec, ends)
        })
    }

    /// What became of them; `ideals` are those of [`Collectives::ends`].
    pub(in crate::world) fn results(&self, ideals: &[Option<Span>]) -> Vec<CollectiveResult> {
        let groups =
            self.groups.iter().enumerate().filter_map(|(table, group)| Some((table, group.as_ref()?)));
        let results = groups.zip(ideals).map(|((table, group), ideal)| CollectiveResult {
            table,
            operation: group.spec.operation,
            algorithm: group.spec.algorithm,
            ranks: group.schedule.ranks(),
            bytes: group.spec.size.0,
            channels: group.spec.channels,
            chunks: group.spec.chunks,
            asked: group.spec.iterations,
            iterations: group.done.clone(),
            ideal: *ideal,
            failed: group.failed,
        });
        results.collect()
    }

    /// Notes where a queue pair stands; gives its octets, and those of its longest message.
    pub(super) fn connect(&mut self, now: Instant, job: &Job, place: u32) -> (u64, u64) {
        let table = job.id.traffic;
        let group = self.groups[table as usize].as_mut().expect("such jobs come from collectives");
        let hosts = [job.src, job.dst].map(|nic| self.homes.host(nic));
        let answer = group.connect(job, hosts, place);
        if group.connected == group.places.len() {
            self.begin(now, table);
        }
        answer
    }

    /// Lets an iteration begin on all ranks.
    fn begin(&mut self, start: Instant, table: u32) {
        let Some(group) = &mut self.groups[table as usize] else { return };
        group.begin(start);
        for rank in 0..group.schedule.ranks() {
            let at = start + group.jitter_of(rank);
            self.due.push(Reverse((at, table, rank)));
        }
    }

    /// The next rank that has begun by `now`.
    fn take_due(&mut self, now: Instant) -> Option<(u32, u32)> {
        if self.next() > now { None } else { self.due.pop().map(|Reverse((_, table, rank))| (table, rank)) }
    }
}

impl Group {
    fn new(spec: &Collective, jitter_max: &[Span], jitter: Random) -> Self {
        let schedule = spec.schedule();
        let (ranks, pairs) = (schedule.ranks() as usize, spec.queue_pairs() as usize);
        Self {
            hosts: spec.ranks.clone(),
            ends: vec![[HostId(0); 2]; pairs],
            places: vec![0; pairs],
            connected: 0,
            coming: (0..spec.queue_pairs()).map(|pair| spec.messages(pair % schedule.edges())).collect(),
            octets: (0, spec.octets_by_edge(0)),
            missing: vec![0; ranks],
            received: vec![0; ranks * parts(spec) * schedule.kept() as usize],
            begun: vec![false; ranks],
            early: Vec::new(),
            open: 0,
            start: Instant::ZERO,
            first_end: None,
            steps: vec![(Instant::ZERO, 0); schedule.steps() as usize],
            done: Vec::new(),
            failed: false,
            jitter,
            jitter_max: jitter_max.to_vec(),
            schedule,
            spec: spec.clone(),
        }
    }

    fn connect(&mut self, job: &Job, hosts: [HostId; 2], place: u32) -> (u64, u64) {
        let number = job.id.number;
        let (channel, edge) = (number / self.schedule.edges(), number % self.schedule.edges());
        let (from, to) = self.schedule.ends(edge);
        for (place, host) in [from, to].into_iter().zip(hosts) {
            self.hosts[self.spec.rank_at(channel, place) as usize] = host;
        }
        self.ends[number as usize] = [job.src, job.dst];
        self.places[number as usize] = place;
        self.connected += 1;
        if self.octets.0 != channel {
            self.octets = (channel, self.spec.octets_by_edge(channel));
        }
        let octets = self.octets.1[edge as usize] * u64::from(self.spec.iterations);
        (octets, self.spec.message_sizes(edge).1)
    }

    fn jitter_of(&mut self, rank: u32) -> Span {
        let most = self.jitter_max[at(self.hosts[rank as usize])];
        if most.is_zero() {
            return Span::ZERO;
        }
        Span::from_ps(self.jitter.below(most.as_ps().saturating_add(1)))
    }

    fn begin(&mut self, start: Instant) {
        let channels = 0..self.spec.channels;
        for (missing, rank) in self.missing.iter_mut().zip(0..) {
            let of = |channel| u64::from(self.schedule.receives(self.spec.place_of(channel, rank)));
            *missing = channels.clone().map(of).sum::<u64>() * u64::from(self.spec.chunks);
        }
        self.received.fill(0);
        self.begun.fill(false);
        self.steps.fill((start, 0));
        self.open = self.begun.len();
        (self.start, self.first_end) = (start, None);
    }

    /// The message of `rank` in `step`, if there is one.
    fn post(&self, rank: u32, channel: u32, step: u32, chunk: u32) -> Option<Post> {
        let message = self.schedule.message(self.spec.place_of(channel, rank), step)?;
        let octets = self.spec.octets(channel, chunk, &message);
        Some(Post {
            place: self.places[(channel * self.schedule.edges() + message.edge) as usize],
            octets: u32::try_from(octets).expect("the length of messages has been checked"),
            tag: step * self.spec.chunks + chunk,
        })
    }

    /// The steps whose messages `rank` may send by what has arrived.
    fn follows(&mut self, rank: u32, arrived: Arrived) -> Range<u32> {
        let Arrived { channel, step, chunk } = arrived;
        let of_rank = rank as usize * parts(&self.spec) + (channel * self.spec.chunks + chunk) as usize;
        let kept = self.schedule.kept() as usize;
        let received = &mut self.received[of_rank * kept..(of_rank + 1) * kept];
        self.schedule.follows(self.spec.place_of(channel, rank), received, step)
    }

    /// A message has arrived by queue pair `number`.
    fn arrive(&mut self, now: Instant, number: u32, tag: u32) -> Outcome {
        let (channel, edge) = (number / self.schedule.edges(), number % self.schedule.edges());
        let rank = self.spec.rank_at(channel, self.schedule.ends(edge).1);
        let (step, chunk) = (tag / self.spec.chunks, tag % self.spec.chunks);
        let arrived = Arrived { channel, step, chunk };
        self.steps[step as usize] = (now, rank);
        let coming = &mut self.coming[number as usize];
        *coming -= 1;
        let last = *coming == 0;
        let missing = &mut self.missing[rank as usize];
        *missing -= 1;
        let done = *missing == 0;
        if !self.begun[rank as usize] {
            self.early.push((rank, arrived));
            return Outcome { rank, arrived, steps: 0..0, last, over: false };
        }
        let steps = self.follows(rank, arrived);
        Outcome { rank, arrived, steps, last, over: done && self.end(now, rank) }
    }

    /// `rank` is done with this iteration: whether it was the last.
    fn end(&mut self, now: Instant, rank: u32) -> bool {
        self.open -= 1;
        let first_end = *self.first_end.get_or_insert(now);
        if self.open > 0 {
            return false;
        }
        let slowest = if self.schedule.has_rounds() { self.slowest() } else { None };
        let last = self.hosts[rank as usize].0;
        self.done.push(Iteration { start: self.start, first_end, end: now, last, slowest });
        true
    }

    /// The step that took longest; of several the first.
    fn slowest(&self) -> Option<SlowStep> {
        let mut until = self.start;
        let mut slowest: Option<SlowStep> = None;
        for (step, &(last, rank)) in (0..).zip(&self.steps) {
            let time = if last > until { last.since(until) } else { Span::ZERO };
            until = until.max(last);
            if slowest.is_none_or(|slowest| time > slowest.time) {
                slowest = Some(SlowStep { step, time, host: self.hosts[rank as usize].0 });
            }
        }
        slowest
    }
}

/// Chunks of all channels.
fn parts(spec: &Collective) -> usize {
    spec.channels as usize * spec.chunks as usize
}

impl Driver {
    /// Lets the ranks whose time has come begin.
    pub(in crate::world) fn begin_due(&mut self, net: &mut Net, hosts: &mut [Host]) {
        let now = net.now();
        while let Some((table, rank)) = self.collectives.take_due(now) {
            let Some(mut group) = self.collectives.groups[table as usize].take() else { continue };
            let over = self.begin_rank(now, hosts, &mut group, rank);
            for nic in self.collectives.homes.nics(group.hosts[rank as usize]) {
                hosts[at(nic)].poke(net, nic);
            }
            self.keep(net, table, group, over);
        }
    }

    /// Whether the iteration is over then.
    fn begin_rank(&mut self, now: Instant, hosts: &mut [Host], group: &mut Group, rank: u32) -> bool {
        group.begun[rank as usize] = true;
        let firsts = |channel| group.schedule.at_once(group.spec.place_of(channel, rank)).collect::<Vec<_>>();
        let firsts: Vec<Vec<u32>> = (0..group.spec.kinds()).map(firsts).collect();
        for nth in 0..firsts.iter().map(Vec::len).max().unwrap_or(0) {
            for chunk in 0..group.spec.chunks {
                for channel in 0..group.spec.channels {
                    let first = firsts[(channel % group.spec.kinds()) as usize].get(nth);
                    if let Some(post) = first.and_then(|step| group.post(rank, channel, *step, chunk)) {
                        self.post_part(now, hosts, &post);
                    }
                }
            }
        }
        let mut early = std::mem::take(&mut group.early);
        early.retain(|&(at, arrived)| {
            if at == rank {
                let steps = group.follows(rank, arrived);
                self.post_steps(now, hosts, group, rank, arrived, steps);
            }
            at != rank
        });
        group.early = early;
        group.missing[rank as usize] == 0 && group.end(now, rank)
    }

    /// Puts a group back; the next iteration begins after the gap where this one is `over`.
    fn keep(&mut self, net: &mut Net, table: u32, group: Box<Group>, over: bool) {
        let more = group.done.len() < group.spec.iterations as usize;
        let gap = group.spec.gap;
        self.collectives.groups[table as usize] = Some(group);
        if over && more {
            self.collectives.begin(net.now() + gap, table);
            // The run is to look at what is due before it goes on.
            net.pause_here();
        }
    }

    /// Posts the messages of `rank` in `steps`, of the channel and the chunk that have `arrived`.
    fn post_steps(
        &mut self,
        now: Instant,
        hosts: &mut [Host],
        group: &Group,
        rank: u32,
        arrived: Arrived,
        steps: Range<u32>,
    ) {
        for step in steps {
            if let Some(post) = group.post(rank, arrived.channel, step, arrived.chunk) {
                self.post_part(now, hosts, &post);
            }
        }
    }

    /// Posts a message of a collective.
    fn post_part(&mut self, now: Instant, hosts: &mut [Host], post: &Post) {
        let Some(live) = &self.live[post.place as usize] else { return };
        // What was posted before has been sent when the last has.
        let signaled = live.left == u64::from(post.octets);
        self.write(now, hosts, post.place, post.octets, post.tag, signaled);
    }

    /// A message of a collective has come to the host that is told of it, which may send on.
    pub(super) fn part_arrived(
        &mut self,
        net: &mut Net,
        hosts: &mut [Host],
        place: u32,
        completion: &Completion,
    ) {
        let Some(Some(live)) = self.live.get(place as usize) else { return };
        let (table, number) = (live.id.traffic, live.id.number);
        let sent = live.left == 0 && live.outstanding == 0;
        // Of one that failed its sender hears.
        let (Status::Success, Tail::Immediate(tag)) = (completion.status, completion.tail) else { return };
        let Some(mut group) = self.collectives.groups[table as usize].take() else { return };
        let now = net.now();
        let heard = live.dst;
        let Outcome { rank, arrived, steps, last, over } = group.arrive(now, number, tag);
        self.post_steps(now, hosts, &group, rank, arrived, steps);
        // The NIC that has brought it goes on by itself, which is all that most hosts have.
        for nic in self.collectives.homes.nics(group.hosts[rank as usize]).filter(|nic| *nic != heard) {
            hosts[at(nic)].poke(net, nic);
        }
        self.keep(net, table, group, over);
        if last && sent {
            self.end_part(net, hosts, place, Status::Success);
        }
    }

    /// The last message of a queue pair of a collective has been acknowledged, or one of them has failed.
    pub(super) fn parts_sent(&mut self, net: &mut Net, hosts: &mut [Host], place: u32, status: Status) {
        let Some(live) = &mut self.live[place as usize] else { return };
        let JobId { traffic: table, number } = live.id;
        if status == Status::Success {
            live.outstanding -= 1;
            // Where a NIC acknowledges before data are in their place, the last may still be on its way there.
            let group = self.collectives.groups[table as usize].as_ref();
            if group.is_some_and(|group| group.coming[number as usize] == 0) {
                self.end_part(net, hosts, place, status);
            }
            return;
        }
        self.end_part(net, hosts, place, status);
        // The others wait for what will not come, and nobody begins any more.
        self.collectives.due.retain(|Reverse((_, of, _))| *of != table);
        let Some(group) = &mut self.collectives.groups[table as usize] else { return };
        group.failed = true;
        let places = group.places.clone();
        self.flush(net, hosts, table, &places);
    }
}
