//! Collectives: each rank posts the next message of a chunk when the one that it waits for has come.
//!
//! Nothing is kept of a message but its place in a queue. Its immediate tells its step and chunk, the queue pair that it comes by
//! its channel and the two ranks, and from these the schedule tells which one is next.

use super::course::{Came, Course, Part, Post};
use super::{Driver, at};
use crate::results::collective::{CollectiveResult, Iteration, SlowStep};
use crate::traffic::collective::{Carried, Collective, Pairs};
use crate::traffic::{Job, JobId, Traffic};
use roci_fabric::net::Net;
use roci_fabric::packet::HostId;
use roci_fabric::topology::Homes;
use roci_nic::Host;
use roci_transport::{Completion, Status, Tail};
use roci_units::{Instant, Random, Span};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The jitter of table `n`'s ranks is drawn from stream `n` of these.
const JITTER_STREAMS: u64 = 3 << 40;

/// The collectives of a run, by their tables.
#[derive(Default)]
pub(in crate::world) struct Collectives {
    groups: Vec<Option<Box<Group>>>,
    /// When ranks begin an iteration: when, which table and which rank.
    due: BinaryHeap<Reverse<(Instant, u32, u32)>>,
    homes: Homes,
    /// What ranks send, empty between any two of these.
    posts: Vec<Post>,
}

/// One collective under way.
struct Group {
    /// The iteration.
    course: Course,
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
    /// What they are.
    pairs: Pairs,
    /// What each edge of each kind of channels carries in one iteration.
    carried: Vec<Vec<Carried>>,
    /// The octets of each of a channel in one iteration, of the first channel and of the last one asked for.
    octets: (u32, Vec<u64>),
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

impl Collectives {
    /// Those of `traffic`, whose ranks on each host begin up to `jitter_max` late; hosts have NICs as in `homes`.
    pub(in crate::world) fn new(traffic: &[Traffic], homes: &Homes, jitter_max: &[Span], seed: u64) -> Self {
        let group = |(table, traffic): (u64, &Traffic)| {
            let Traffic::Collective(spec) = traffic else { return None };
            let jitter = Random::new(seed, JITTER_STREAMS + table);
            Some(Box::new(Group::new(spec, jitter_max, jitter)))
        };
        let groups = (0..).zip(traffic).map(group).collect();
        Self { groups, due: BinaryHeap::new(), homes: homes.clone(), posts: Vec::new() }
    }

    /// When ranks begin next.
    pub(in crate::world) fn next(&self) -> Instant {
        self.due.peek().map_or(Instant::NEVER, |Reverse((at, ..))| *at)
    }

    /// The tables that are collectives, with the NICs at the ends of each queue pair where all are connected.
    pub(in crate::world) fn ends(&self) -> impl Iterator<Item = (&Collective, Option<&[[HostId; 2]]>)> {
        self.groups.iter().flatten().map(|group| {
            let ends = (group.connected == group.places.len()).then_some(&group.ends[..]);
            (group.course.spec(), ends)
        })
    }

    /// What became of them; `ideals` are those of [`Collectives::ends`].
    pub(in crate::world) fn results(&self, ideals: &[Option<Span>]) -> Vec<CollectiveResult> {
        let groups =
            self.groups.iter().enumerate().filter_map(|(table, group)| Some((table, group.as_ref()?)));
        let results = groups.zip(ideals).map(|((table, group), ideal)| {
            let spec = group.course.spec();
            CollectiveResult {
                table,
                operation: spec.operation,
                algorithm: spec.algorithm,
                ranks: group.course.schedule().ranks(),
                bytes: spec.size.0,
                busiest: spec.busiest(),
                root: spec.operation.has_root().then_some(spec.root),
                channels: spec.channels,
                chunks: spec.chunks,
                asked: spec.iterations,
                iterations: group.done.clone(),
                ideal: *ideal,
                failed: group.failed,
            }
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
        for rank in 0..group.course.schedule().ranks() {
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
        let course = Course::new(spec.clone());
        let schedule = course.schedule();
        let numbers = spec.pairs();
        let pairs = numbers.count() as usize;
        let carried: Vec<Vec<Carried>> = (0..spec.kinds()).map(|channel| spec.carried(channel)).collect();
        let coming = |number| {
            let (channel, edge) = numbers.at(number);
            let of_one = carried[(channel % spec.kinds()) as usize][edge as usize].messages;
            of_one * u64::from(spec.iterations)
        };
        Self {
            hosts: spec.ranks.clone(),
            ends: vec![[HostId(0); 2]; pairs],
            places: vec![0; pairs],
            connected: 0,
            coming: (0..numbers.count()).map(coming).collect(),
            octets: (0, spec.octets_by_edge(0)),
            start: Instant::ZERO,
            first_end: None,
            steps: vec![(Instant::ZERO, 0); schedule.steps() as usize],
            done: Vec::new(),
            failed: false,
            jitter,
            jitter_max: jitter_max.to_vec(),
            course,
            pairs: numbers,
            carried,
        }
    }

    fn connect(&mut self, job: &Job, hosts: [HostId; 2], place: u32) -> (u64, u64) {
        let (spec, schedule) = (self.course.spec(), self.course.schedule());
        let number = job.id.number;
        let (channel, edge) = self.pairs.at(number);
        let (from, to) = schedule.ends(edge);
        for (place, host) in [from, to].into_iter().zip(hosts) {
            self.hosts[spec.rank_at(channel, place) as usize] = host;
        }
        self.ends[number as usize] = [job.src, job.dst];
        self.places[number as usize] = place;
        self.connected += 1;
        if self.octets.0 != channel {
            self.octets = (channel, spec.octets_by_edge(channel));
        }
        let octets = self.octets.1[edge as usize] * u64::from(spec.iterations);
        (octets, self.carried[(channel % spec.kinds()) as usize][edge as usize].sizes.1)
    }

    fn jitter_of(&mut self, rank: u32) -> Span {
        let most = self.jitter_max[at(self.hosts[rank as usize])];
        if most.is_zero() {
            return Span::ZERO;
        }
        Span::from_ps(self.jitter.below(most.as_ps().saturating_add(1)))
    }

    fn begin(&mut self, start: Instant) {
        self.course.start_anew();
        self.steps.fill((start, 0));
        (self.start, self.first_end) = (start, None);
    }

    /// What comes by queue pair `number`, with this tag.
    fn part(&self, number: u32, tag: u32) -> Part {
        let ((channel, edge), chunks) = (self.pairs.at(number), self.course.spec().chunks);
        Part { channel, edge, step: tag / chunks, chunk: tag % chunks }
    }

    /// `rank` is done with this iteration: whether it was the last.
    fn end(&mut self, now: Instant, rank: u32) -> bool {
        let first_end = *self.first_end.get_or_insert(now);
        if !self.course.is_over() {
            return false;
        }
        let slowest = if self.course.schedule().has_rounds() { self.slowest() } else { None };
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
        let mut posts = std::mem::take(&mut self.collectives.posts);
        let is_done = group.course.begin(rank, &mut posts);
        self.post_parts(now, hosts, group, posts);
        is_done && group.end(now, rank)
    }

    /// Puts a group back; the next iteration begins after the gap where this one is `over`.
    fn keep(&mut self, net: &mut Net, table: u32, group: Box<Group>, over: bool) {
        let spec = group.course.spec();
        let (more, gap) = (group.done.len() < spec.iterations as usize, spec.gap);
        self.collectives.groups[table as usize] = Some(group);
        if over && more {
            self.collectives.begin(net.now() + gap, table);
            // The run is to look at what is due before it goes on.
            net.pause_here();
        }
    }

    /// Posts messages of a collective.
    fn post_parts(&mut self, now: Instant, hosts: &mut [Host], group: &Group, mut posts: Vec<Post>) {
        let chunks = group.course.spec().chunks;
        for Post { part: Part { channel, edge, step, chunk }, octets } in posts.drain(..) {
            let place = group.places[group.pairs.number(channel, edge) as usize];
            let Some(live) = &self.live[place as usize] else { continue };
            // What was posted before has been sent when the last has.
            let signaled = live.left == octets;
            let octets = u32::try_from(octets).expect("the length of messages has been checked");
            self.write(now, hosts, place, octets, step * chunks + chunk, signaled);
        }
        self.collectives.posts = posts;
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
        let part = group.part(number, tag);
        let mut posts = std::mem::take(&mut self.collectives.posts);
        let Came { rank, is_done } = group.course.arrive(part, &mut posts);
        group.steps[part.step as usize] = (now, rank);
        let coming = &mut group.coming[number as usize];
        *coming -= 1;
        let last = *coming == 0;
        let over = is_done && group.end(now, rank);
        self.post_parts(now, hosts, &group, posts);
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
