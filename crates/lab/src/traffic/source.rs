//! One source of jobs for each kind of traffic, each in the order of its starts.

use super::collective::{Carried, Pairs, Schedule};
use super::fault::Fault;
use super::jobs::{Job, JobId};
use super::spec::{Common, Incast, Op, Repeat, Traffic};
use roci_fabric::packet::HostId;
use roci_units::{Bytes, Instant, Random, Ratio, Span};
use std::sync::Arc;

/// What one `[[traffic]]` table generates.
#[derive(Debug)]
pub(super) struct Source {
    traffic: Arc<[Traffic]>,
    index: usize,
    state: State,
    random: Random,
    /// How many jobs were taken.
    taken: u32,
    hosts: usize,
}

#[derive(Debug)]
enum State {
    /// A list, by the order of starts.
    Flows {
        order: Vec<u32>,
    },
    /// An HPCC file, which is in order already.
    Hpcc,
    /// All begin at once.
    ClosedLoop,
    Rpc,
    AllToAll,
    /// All begin at once.
    Goal {
        /// The host of each rank.
        hosts: Vec<HostId>,
    },
    /// All begin at once.
    Collective {
        /// The host of each rank.
        hosts: Vec<HostId>,
        schedule: Schedule,
        pairs: Pairs,
        /// What each edge of each kind of channels carries in one iteration.
        carried: Vec<Vec<Carried>>,
    },
    Permutation {
        /// To whom each host sends.
        to: Vec<u16>,
    },
    /// Bursts of several senders to one receiver.
    Bursts(Bursts),
    Poisson(Arrivals),
}

impl Source {
    /// The source of table `index`, which has been checked. `capacity` is the sum of the host link rates in b/s.
    pub(super) fn new(
        traffic: &Arc<[Traffic]>,
        index: usize,
        hosts: usize,
        capacity: u128,
        stop: Option<Instant>,
        mut random: Random,
    ) -> Result<Self, Fault> {
        let end = |until: Option<Instant>| match (until, stop) {
            (Some(until), Some(stop)) => until.min(stop),
            (one, other) => one.or(other).unwrap_or(Instant::NEVER),
        };
        let state = match &traffic[index] {
            Traffic::Flows(flows) => {
                let mut order: Vec<u32> = (0u32..).take(flows.len()).collect();
                order.sort_by_key(|&number| flows[number as usize].start);
                State::Flows { order }
            }
            Traffic::Hpcc(_) => State::Hpcc,
            Traffic::ClosedLoop(_) => State::ClosedLoop,
            Traffic::Rpc(_) => State::Rpc,
            Traffic::AllToAll(_) => State::AllToAll,
            Traffic::Collective(spec) => {
                let hosts = dealt(&spec.ranks, spec.shuffled, &mut random);
                let pairs = spec.pairs();
                if u64::from(pairs.count()) > FLOWS_MAX {
                    return Err(Fault::TooManyFlows(pairs.count().into()));
                }
                let carried = (0..spec.kinds()).map(|channel| spec.carried(channel)).collect();
                State::Collective { hosts, schedule: spec.schedule(), pairs, carried }
            }
            Traffic::Goal(spec) => State::Goal { hosts: dealt(&spec.hosts, spec.shuffled, &mut random) },
            Traffic::Permutation(_) => State::Permutation { to: one_cycle(hosts, &mut random) },
            Traffic::Incast(spec) => {
                State::Bursts(Bursts::of_incast(spec, hosts, capacity, end(spec.until), &mut random)?)
            }
            Traffic::Trigger(spec) => {
                let mean = mean_gap("rate", PS_PER_SECOND, spec.rate, 1)?;
                let arrivals = Arrivals::random(mean, spec.start, end(spec.until), &mut random);
                State::Bursts(Bursts::new(
                    arrivals,
                    spec.hosts.iter().map(|h| h.0).collect(),
                    spec.hosts.len(),
                    Receiver::Fixed(spec.receiver),
                ))
            }
            Traffic::Poisson(spec) => {
                // The mean size in parts of 1/(2·10¹²) octet, times 8 bits and 10¹² ps: a factor of 4.
                let mean = mean_gap("load", spec.sizes.mean_parts() * 4, spec.load, capacity)?;
                State::Poisson(Arrivals::random(mean, spec.start, end(spec.until), &mut random))
            }
        };
        let mut source = Self { traffic: Arc::clone(traffic), index, state, random, taken: 0, hosts };
        let flows = source.expected(stop);
        if flows > FLOWS_MAX {
            return Err(Fault::TooManyFlows(flows));
        }
        if let State::Bursts(bursts) = &mut source.state {
            bursts.deal(&mut source.random);
        }
        Ok(source)
    }

    /// How many jobs begin before `stop`; of those by the clock, about how many come.
    pub(super) fn expected(&self, stop: Option<Instant>) -> u64 {
        let begins = |start: Instant| stop.is_none_or(|stop| start < stop);
        if !self.next_start().is_some_and(begins) {
            return 0;
        }
        let count = match (&self.traffic[self.index], &self.state) {
            (_, State::Bursts(bursts)) => {
                return bursts.arrivals.expected().saturating_mul(bursts.size as u64);
            }
            (_, State::Poisson(arrivals)) => return arrivals.expected(),
            (Traffic::Flows(flows), _) => flows.iter().filter(|flow| begins(flow.start)).count(),
            (Traffic::Hpcc(file), _) => file.flows.iter().filter(|flow| begins(flow.start)).count(),
            (Traffic::ClosedLoop(spec), _) => spec.pairs.len().saturating_mul(spec.qps as usize),
            (Traffic::Rpc(spec), _) => spec.queue_pairs() as usize,
            (_, State::Collective { pairs, .. }) => pairs.count() as usize,
            (Traffic::Goal(spec), _) => spec.lines().len(),
            (Traffic::AllToAll(_), _) => self.hosts.saturating_mul(self.hosts.saturating_sub(1)),
            (Traffic::Permutation(_), _) => self.hosts,
            _ => 0,
        };
        count as u64
    }

    /// When the next job starts; `None` when there is none.
    pub(super) fn next_start(&self) -> Option<Instant> {
        let taken = self.taken as usize;
        let within = |total: usize, start| (taken < total).then_some(start);
        match (&self.traffic[self.index], &self.state) {
            (Traffic::Flows(flows), State::Flows { order }) => {
                order.get(taken).map(|&number| flows[number as usize].start)
            }
            (Traffic::Hpcc(file), _) => file.flows.get(taken).map(|flow| flow.start),
            (Traffic::ClosedLoop(spec), _) => {
                within(spec.pairs.len().saturating_mul(spec.qps as usize), spec.start)
            }
            (Traffic::Rpc(spec), _) => within(spec.queue_pairs() as usize, spec.start),
            (Traffic::Collective(spec), State::Collective { pairs, .. }) => {
                within(pairs.count() as usize, spec.start)
            }
            (Traffic::Goal(spec), _) => within(spec.lines().len(), spec.start),
            (Traffic::AllToAll(spec), _) => within(self.hosts * (self.hosts - 1), spec.start),
            (Traffic::Permutation(spec), _) => within(self.hosts, spec.start),
            (_, State::Bursts(bursts)) => bursts.arrivals.next,
            (_, State::Poisson(arrivals)) => arrivals.next,
            _ => None,
        }
    }

    /// The next job.
    pub(super) fn take(&mut self) -> Option<Job> {
        let start = self.next_start()?;
        let number = self.taken;
        let n = number as usize;
        let job = |src: u16, dst: u16, size, common| Job {
            id: JobId { traffic: narrow(self.index), number },
            src: HostId(src),
            dst: HostId(dst),
            start,
            size,
            longest: size,
            messages: Some(1),
            depth: 1,
            common,
        };
        let job = match (&self.traffic[self.index], &mut self.state) {
            (Traffic::Flows(flows), State::Flows { order }) => {
                let flow = &flows[order[n] as usize];
                let mut job = job(flow.src.0, flow.dst.0, flow.size, flow.common);
                job.id.number = order[n];
                job
            }
            (Traffic::Hpcc(file), _) => {
                let flow = &file.flows[n];
                let common = Common { priority: Some(flow.priority), ..file.common };
                job(flow.src.0, flow.dst.0, flow.size, common)
            }
            (Traffic::ClosedLoop(spec), _) => {
                let (src, dst) = spec.pairs[n / spec.qps as usize];
                let job = job(src.0, dst.0, spec.message, spec.common);
                Job { messages: spec.count, depth: spec.depth, ..job }
            }
            (Traffic::Rpc(spec), _) => {
                let client = spec.clients[n / spec.connections as usize];
                let job = job(client.0, spec.server.0, spec.request, spec.common);
                Job { messages: spec.count, depth: 0, ..job }
            }
            (Traffic::Collective(spec), State::Collective { hosts, schedule, pairs, carried }) => {
                let (channel, edge) = pairs.at(number);
                let (from, to) = schedule.ends(edge);
                let [src, dst] = [from, to].map(|place| hosts[spec.rank_at(channel, place) as usize].0);
                let Carried { messages, sizes } = carried[channel as usize % carried.len()][edge as usize];
                let job = job(src, dst, Bytes(sizes.0), spec.common);
                let messages = Some(messages * u64::from(spec.iterations));
                Job { longest: Bytes(sizes.1), messages, depth: 0, ..job }
            }
            (Traffic::Goal(spec), State::Goal { hosts }) => {
                let line = spec.lines()[n];
                let [src, dst] = [line.from, line.to].map(|rank| hosts[rank as usize].0);
                let job = job(src, dst, Bytes(line.octets), spec.common);
                Job { longest: Bytes(line.longest), depth: 0, ..job }
            }
            (Traffic::AllToAll(spec), _) => {
                // Round r pairs each host with the r-th after it, so that no receiver is first for all.
                let (round, from) = (n / self.hosts + 1, n % self.hosts);
                job(host(from), host((from + round) % self.hosts), spec.size, spec.common)
            }
            (Traffic::Permutation(spec), State::Permutation { to }) => {
                job(host(n), to[n], spec.size, spec.common)
            }
            (Traffic::Incast(spec), State::Bursts(bursts)) => {
                let (src, dst) = bursts.take(spec.common.op, &mut self.random);
                job(src, dst, spec.size, spec.common)
            }
            (Traffic::Trigger(spec), State::Bursts(bursts)) => {
                let (src, dst) = bursts.take(spec.common.op, &mut self.random);
                job(src, dst, spec.size, spec.common)
            }
            (Traffic::Poisson(spec), State::Poisson(arrivals)) => {
                let hosts = self.hosts as u64;
                let src = self.random.below(hosts);
                let other = self.random.below(hosts - 1);
                let dst = if other < src { other } else { other + 1 };
                let size = spec.sizes.sample(self.random.next_u64());
                arrivals.advance(&mut self.random);
                #[expect(clippy::cast_possible_truncation, reason = "numbers of hosts have 16 bits")]
                job(src as u16, dst as u16, size, spec.common)
            }
            _ => return None,
        };
        self.taken += 1;
        Some(job)
    }
}

/// When things happen: once, at a period, or at random.
#[derive(Debug)]
struct Arrivals {
    gap: Gap,
    /// When the next happens; `None` when no more do.
    next: Option<Instant>,
    /// Nothing happens at or after this.
    end: Instant,
}

#[derive(Debug)]
enum Gap {
    Never,
    Fixed(Span),
    /// Exponential with this mean, in picoseconds.
    Exponential(f64),
}

impl Arrivals {
    fn once(start: Instant) -> Self {
        Self { gap: Gap::Never, next: Some(start), end: Instant::NEVER }
    }

    fn every(period: Span, start: Instant, end: Instant) -> Self {
        Self { gap: Gap::Fixed(period), next: Some(start).filter(|&first| first < end), end }
    }

    /// A Poisson process from `start` on; the first gap counts from there.
    fn random(mean_ps: f64, start: Instant, end: Instant, random: &mut Random) -> Self {
        let mut arrivals = Self { gap: Gap::Exponential(mean_ps), next: Some(start), end };
        arrivals.advance(random);
        arrivals
    }

    /// About how many are still to come.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an estimate"
    )]
    fn expected(&self) -> u64 {
        let Some(next) = self.next else { return 0 };
        let left = self.end.since(next).as_ps();
        match self.gap {
            Gap::Never => 1,
            Gap::Fixed(period) => left.div_ceil(period.as_ps().max(1)),
            Gap::Exponential(mean_ps) => 1 + (left as f64 / mean_ps) as u64,
        }
    }

    fn advance(&mut self, random: &mut Random) {
        let gap = match self.gap {
            Gap::Never => None,
            Gap::Fixed(period) => Some(period),
            Gap::Exponential(mean_ps) => Some(exponential(mean_ps, random)),
        };
        let next = self.next.zip(gap).map(|(last, gap)| last + gap);
        self.next = next.filter(|&next| next < self.end);
    }
}

/// The most flows of a table: each keeps its result in memory, and so many take some hundred gigabytes.
const FLOWS_MAX: u64 = 1 << 30;

const PS_PER_SECOND: u128 = 1_000_000_000_000;

/// The mean gap in picoseconds between things of `work` bit-picoseconds each that together take the share `load` of
/// `capacity` bits per second. `key` is to blame where that is less than a picosecond.
#[expect(clippy::cast_precision_loss, reason = "a mean needs no more than 53 bits")]
fn mean_gap(key: &'static str, work: u128, load: Ratio, capacity: u128) -> Result<f64, Fault> {
    let share = capacity as f64 * f64::from(load.numerator());
    let mean = work as f64 * f64::from(load.denominator()) / share;
    if mean < 1.0 { Err(Fault::TooOften(key)) } else { Ok(mean) }
}

/// An exponential variate, rounded to the picosecond. The logarithm is `libm`'s, which is the same everywhere, unlike
/// the platform's; the other operations are exact by IEEE 754.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "never negative; the cast saturates"
)]
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
fn exponential(mean_ps: f64, random: &mut Random) -> Span {
    // Above zero and at most one, so that the logarithm is finite.
    let uniform = ((random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
    Span::from_ps((-libm::log(uniform) * mean_ps + 0.5) as u64)
}

/// Who receives a burst.
#[derive(Debug)]
enum Receiver {
    Fixed(HostId),
    /// Drawn anew for each burst from all hosts.
    Drawn,
}

/// Bursts of several senders to one receiver.
#[derive(Debug)]
struct Bursts {
    arrivals: Arrivals,
    receiver: Receiver,
    /// Those who may send. For an incast all hosts, of which each burst draws the first `size`, the receiver moved
    /// to the end; for triggers just the senders.
    deck: Vec<u16>,
    /// Senders of a burst.
    size: usize,
    /// The receiver of this burst.
    to: u16,
    /// How many of this burst were taken.
    taken: usize,
}

impl Bursts {
    fn new(arrivals: Arrivals, deck: Vec<u16>, size: usize, receiver: Receiver) -> Self {
        Self { arrivals, receiver, deck, size, to: 0, taken: 0 }
    }

    fn of_incast(
        spec: &Incast,
        hosts: usize,
        capacity: u128,
        end: Instant,
        random: &mut Random,
    ) -> Result<Self, Fault> {
        let (arrivals, receiver) = match spec.repeat {
            Repeat::Once => (Arrivals::once(spec.start), Receiver::Fixed(HostId(0))),
            Repeat::Every(period) => (Arrivals::every(period, spec.start, end), Receiver::Fixed(HostId(0))),
            Repeat::Load(load) => {
                let bits = u128::from(spec.size.0) * 8 * u128::from(spec.senders);
                let mean = mean_gap("load", bits * PS_PER_SECOND, load, capacity)?;
                (Arrivals::random(mean, spec.start, end, random), Receiver::Drawn)
            }
        };
        let receiver = spec.receiver.map_or(receiver, Receiver::Fixed);
        Ok(Self::new(arrivals, (0..hosts).map(host).collect(), spec.senders as usize, receiver))
    }

    /// Draws the receiver and the senders of the next burst. Triggers have theirs.
    fn deal(&mut self, random: &mut Random) {
        self.taken = 0;
        self.to = match self.receiver {
            Receiver::Fixed(host) => host.0,
            Receiver::Drawn => self.deck[index_below(self.deck.len(), random)],
        };
        let Some(place) = self.deck.iter().position(|&host| host == self.to) else { return };
        let last = self.deck.len() - 1;
        self.deck.swap(place, last);
        for sender in 0..self.size {
            self.deck.swap(sender, sender + index_below(last - sender, random));
        }
    }

    /// Who posts the next job, and the other end: the sender and the receiver, but the octets of a READ travel to who posts
    /// it, so that there the receiver is the first.
    fn take(&mut self, op: Op, random: &mut Random) -> (u16, u16) {
        let (sender, receiver) = (self.deck[self.taken], self.to);
        let pair = if op == Op::Read { (receiver, sender) } else { (sender, receiver) };
        self.taken += 1;
        if self.taken == self.size {
            self.arrivals.advance(random);
            self.deal(random);
        }
        pair
    }
}

/// The host of each rank.
pub(super) fn dealt(listed: &[HostId], shuffled: bool, random: &mut Random) -> Vec<HostId> {
    let mut hosts = listed.to_vec();
    if shuffled {
        for last in (1..hosts.len()).rev() {
            hosts.swap(last, index_below(last + 1, random));
        }
    }
    hosts
}

/// A random permutation of the hosts that is one cycle, so that none sends to itself (Sattolo 1986).
fn one_cycle(hosts: usize, random: &mut Random) -> Vec<u16> {
    let mut to: Vec<u16> = (0..hosts).map(host).collect();
    for last in (1..hosts).rev() {
        to.swap(last, index_below(last, random));
    }
    to
}

#[expect(clippy::cast_possible_truncation, reason = "below a length")]
fn index_below(length: usize, random: &mut Random) -> usize {
    random.below(length as u64) as usize
}

#[expect(clippy::cast_possible_truncation, reason = "a topology has at most 65 535 hosts")]
const fn host(index: usize) -> u16 {
    index as u16
}

#[expect(clippy::cast_possible_truncation, reason = "fewer than 2³² tables fit a scenario")]
const fn narrow(index: usize) -> u32 {
    index as u32
}
