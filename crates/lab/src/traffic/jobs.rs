//! The stream of jobs: all sources merged by time, coinciding starts set apart.

use super::fault::{TrafficError, check};
use super::goal::Goal;
use super::networks::Networks;
use super::source::{Source, dealt};
use super::spec::{Common, Traffic};
use crate::results::FlowName;
use roci_fabric::packet::HostId;
use roci_fabric::topology::{Pairing, Topology};
use roci_units::{BitsPerSec, Bytes, Instant, Random, Span};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Where a job comes from; it is also its name unless the scenario gives one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    /// The `[[traffic]]` table, from 0.
    pub traffic: u32,
    /// Its number in that table, from 0: the place in the list of `flows`, else the order of starts.
    pub number: u32,
}

/// What one queue pair of its own has to carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Where it comes from.
    pub id: JobId,
    /// Who posts: a host, or where hosts have several NICs one of its.
    pub src: HostId,
    /// The other end.
    pub dst: HostId,
    /// When the first message is posted.
    pub start: Instant,
    /// Octets of each message; of a collective of the shortest, of a schedule of all together.
    pub size: Bytes,
    /// Octets of the longest.
    pub longest: Bytes,
    /// How many messages; `None`: until the run stops.
    pub messages: Option<u64>,
    /// How many of them are outstanding at most; 0 for a queue pair of a collective, of a schedule or of requests and responses, which posts
    /// when what it waits for has come.
    pub depth: u32,
    /// Operation, priority and control.
    pub common: Common,
}

impl Job {
    /// Octets of all its messages; `u64::MAX` without an end.
    pub fn octets(&self) -> u64 {
        self.messages.map_or(u64::MAX, |messages| self.size.0.saturating_mul(messages))
    }
}

/// What a job's flow is called: the name that the scenario gives it, else `<traffic index>.<n>`.
pub fn flow_name(traffic: &[Traffic], id: JobId) -> FlowName {
    if let Some(Traffic::Flows(flows)) = traffic.get(id.traffic as usize)
        && let Some(name) = flows.get(id.number as usize).and_then(|flow| flow.name.as_deref())
    {
        return FlowName::Given(name.into());
    }
    FlowName::Numbered { traffic: u16::try_from(id.traffic).unwrap_or(u16::MAX), n: id.number }
}

/// The world that traffic is generated for.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The network.
    pub topology: &'a Topology,
    /// The run's seed.
    pub seed: u64,
    /// When the run stops, if it has an end of its own.
    pub stop: Option<Instant>,
    /// Octets of a full packet on the wire; its time at the source's rate bounds the jitter of coinciding starts.
    pub packet: u64,
    /// The bound of that jitter instead (`start_jitter`); zero turns it off.
    pub start_jitter: Option<Span>,
}

impl Setting<'_> {
    /// The bound of the jitter at each NIC.
    pub fn jitter_max(&self) -> Vec<Span> {
        let bound = |rate: &BitsPerSec| self.start_jitter.unwrap_or_else(|| rate.time_for(self.packet));
        self.topology.graph.host_rates().iter().map(bound).collect()
    }
}

/// The jobs of a run in the order of their starts; of equal starts, in the order of their tables and numbers.
///
/// Each table draws from random streams of its own, so that a table added at the end changes no other's flows. Where
/// starts coincide, each of them is put off by a random time of up to the jitter's bound.
#[derive(Debug)]
pub struct Jobs {
    sources: Vec<Source>,
    /// Where hosts have several NICs, who chooses among these.
    pairing: Option<Pairing>,
    /// And which of these have a congestion control of their network.
    networks: Networks,
    /// The start of each source's next job, and the source.
    upcoming: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Jobs whose start is settled and may lie before that of jobs still to come.
    settled: BinaryHeap<Reverse<Settled>>,
    /// The bound of the jitter at each source.
    jitter_max: Vec<Span>,
    /// For each source, what its jitter is drawn from.
    jitter: Vec<Random>,
    /// Jobs that start together; kept for its memory, as far as that is little.
    together: Vec<Job>,
}

/// A job in the order in which it is handed out.
#[derive(Debug)]
struct Settled(Job);

impl Settled {
    const fn key(&self) -> (Instant, JobId) {
        (self.0.start, self.0.id)
    }
}

impl PartialEq for Settled {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Settled {}

impl PartialOrd for Settled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Settled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// The random streams of table `n` are these plus `n`. Other rooms draw from streams below 2³², one per node.
const SOURCE_STREAMS: u64 = 1 << 40;
const JITTER_STREAMS: u64 = 2 << 40;
/// Ranks of collectives and of schedules begin late by the streams from 3 · 2⁴⁰ on; what the former send is drawn from these.
pub(crate) const AMOUNTS_STREAMS: u64 = 4 << 40;

/// The hosts of the ranks of `spec`, which is table `table` of a run with this seed.
pub(crate) fn hosts_of_ranks(spec: &Goal, seed: u64, table: u32) -> Vec<HostId> {
    dealt(&spec.hosts, spec.shuffled, &mut Random::new(seed, SOURCE_STREAMS + u64::from(table)))
}

/// The traffic of a run with this seed, where what it sends is drawn before anything begins.
pub(crate) fn drawn(traffic: &[Traffic], seed: u64) -> Arc<[Traffic]> {
    let of = |(table, it): (u64, &Traffic)| match it {
        Traffic::Collective(spec) => {
            Traffic::Collective(spec.drawn(Random::new(seed, AMOUNTS_STREAMS + table)))
        }
        other => other.clone(),
    };
    (0..).zip(traffic).map(of).collect()
}

/// Room for so many jobs is kept when they are gone.
const KEPT: usize = 1024;

impl Jobs {
    /// The jobs that `traffic` asks for in this setting.
    ///
    /// # Errors
    /// When they cannot be generated: an unknown host, a flow to itself, a load of zero, a source without an end, ….
    pub fn new(traffic: &Arc<[Traffic]>, setting: &Setting<'_>) -> Result<Self, TrafficError> {
        let hosts = setting.topology.hosts();
        check(traffic, hosts, setting.stop)?;
        let capacity = setting.topology.capacities().iter().map(|rate| u128::from(rate.0)).sum();
        let stream = |base: u64, index: usize| Random::new(setting.seed, base + index as u64);
        let sources = (0..traffic.len()).map(|index| {
            let random = stream(SOURCE_STREAMS, index);
            Source::new(traffic, index, hosts.len(), capacity, setting.stop, random)
                .map_err(|fault| TrafficError { traffic: index, flow: None, fault })
        });
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        let upcoming = sources.iter().enumerate();
        let upcoming = upcoming.filter_map(|(index, s)| Some(Reverse((s.next_start()?, index)))).collect();
        Ok(Self {
            jitter: (0..sources.len()).map(|index| stream(JITTER_STREAMS, index)).collect(),
            sources,
            pairing: Pairing::of(setting.topology),
            networks: Networks::default(),
            upcoming,
            settled: BinaryHeap::new(),
            jitter_max: setting.jitter_max(),
            together: Vec::new(),
        })
    }

    /// The same jobs, of which those on `networks` with controls of their own have these.
    pub fn on(self, networks: &Networks) -> Self {
        Self { networks: networks.clone(), ..self }
    }

    /// How many jobs begin before `stop`, those by the clock as many as come about; before the first is taken.
    pub fn expected(&self, stop: Option<Instant>) -> u64 {
        self.sources.iter().fold(0, |sum, source| sum.saturating_add(source.expected(stop)))
    }

    /// How many jobs are held because their order is not settled yet, or another's start comes first.
    pub fn waiting(&self) -> usize {
        self.settled.len()
    }

    /// Takes the next job of the source that is due first.
    fn take(&mut self) -> Option<Job> {
        let Reverse((_, index)) = self.upcoming.pop()?;
        let mut job = self.sources[index].take();
        if let (Some(job), Some(pairing)) = (&mut job, &mut self.pairing) {
            [job.src, job.dst] = pairing.choose([job.src, job.dst]);
            job.common.control = self.networks.control([job.src, job.dst]).or(job.common.control);
        }
        if let Some(start) = self.sources[index].next_start() {
            self.upcoming.push(Reverse((start, index)));
        }
        job
    }

    /// Settles the starts of all jobs that begin together next.
    fn settle(&mut self, start: Instant) {
        while self.upcoming.peek().is_some_and(|Reverse((next, _))| *next == start) {
            let Some(job) = self.take() else { break };
            self.together.push(job);
        }
        let coincide = self.together.len() > 1;
        for mut job in self.together.drain(..) {
            let most = self.jitter_max[usize::from(job.src.0)];
            // The ranks of a collective are set apart where each of its iterations begins, and connections wait for one another.
            if coincide && !most.is_zero() && job.depth > 0 {
                let random = &mut self.jitter[job.id.traffic as usize];
                job.start += Span::from_ps(random.below(most.as_ps().saturating_add(1)));
            }
            self.settled.push(Reverse(Settled(job)));
        }
        self.together.shrink_to(KEPT);
    }
}

impl Iterator for Jobs {
    type Item = Job;

    fn next(&mut self) -> Option<Job> {
        // A start only ever moves back, so what is settled up to the next unsettled start is final.
        while let Some(&Reverse((start, _))) = self.upcoming.peek() {
            match self.settled.peek() {
                Some(Reverse(Settled(first))) if first.start < start => break,
                _ => self.settle(start),
            }
        }
        let Reverse(Settled(job)) = self.settled.pop()?;
        // Where all flows start together, they are all settled at first; once they live, their room is wanted for them.
        let room = self.settled.capacity();
        if room > KEPT && self.settled.len() < room / 4 {
            self.settled.shrink_to(room / 2);
        }
        Some(job)
    }
}
