//! The ranks of a GOAL schedule: what may begin, what its CPUs do, and which message a receive takes. Of a network they know nothing but
//! when messages come.

use super::joint::{Courses, Done, Origin, number_of};
use crate::results::goal::{
    CriticalPath, GoalRank, JointResult, JointTimes, LinkKind, OperationTimes, PathLink,
};
use crate::traffic::goal::{Does, Goal, Joint, Rank, Schedule};
use roci_fabric::packet::HostId;
use roci_units::{Instant, Span};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What is to be done outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// A message is to be posted by this queue pair: that of the send of this number in its rank, or of a collective.
    Post { line: u32, id: u32 },
    /// A CPU is busy until then.
    Busy { until: Instant, rank: u32, cpu: u32 },
}

/// What an operation waited for last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum By {
    /// The beginning of its rank.
    #[default]
    Begin,
    /// Another operation of its rank.
    Done(u32),
    /// Its CPU, which was busy with that one.
    Cpu(u32),
    /// The message of that send of that rank.
    Message(u32, u32),
}

/// A CPU of a rank.
#[derive(Clone, Debug, Default)]
struct Cpu {
    /// What it is busy with.
    task: Option<u32>,
    /// What it was busy with before.
    last: u32,
    /// What waits for it, in the order in which it could begin, and since when.
    queue: VecDeque<(u32, Instant)>,
}

/// Operations in the order in which they came to stand there: of receives their numbers, of messages the ranks and numbers of their sends.
type Queue<T> = VecDeque<(u64, T)>;

/// A rank and a tag; `None`: any.
type Key = (Option<u32>, Option<u32>);

/// The keys under which a message of a rank and tag is asked for.
fn keys(from: u32, tag: u32) -> [Key; 4] {
    [(Some(from), Some(tag)), (Some(from), None), (None, Some(tag)), (None, None)]
}

/// Messages that nobody has waited for yet, known by their sends.
#[derive(Debug, Default)]
struct Unexpected {
    /// By the rank and tag that they are asked for with; each stands under four keys where the rank takes any.
    queues: BTreeMap<Key, Queue<(u32, u32)>>,
    /// Those that were taken under one key and may stand under others still.
    taken: BTreeSet<u64>,
    /// Whether the rank takes messages of any rank or tag.
    takes_any: bool,
    count: u64,
}

impl Unexpected {
    fn add(&mut self, from: u32, tag: u32, order: u64, operation: u32) {
        self.count += 1;
        let message = (order, (from, operation));
        let keys = keys(from, tag);
        for key in if self.takes_any { &keys[..] } else { &keys[..1] } {
            self.queues.entry(*key).or_default().push_back(message);
        }
    }

    /// The first that a receive takes which asks for `key`: its rank and its send.
    fn take(&mut self, key: Key) -> Option<(u32, u32)> {
        while let Some((order, send)) = pop(&mut self.queues, key) {
            if !self.takes_any || self.taken.insert(order) {
                self.count -= 1;
                return Some(send);
            }
        }
        None
    }
}

/// One rank under way.
#[derive(Debug, Default)]
struct State {
    /// Of each operation for how many it still waits.
    needs: Vec<u32>,
    /// When a CPU began with it.
    began: Vec<Instant>,
    /// When it was done.
    done: Vec<Instant>,
    by: Vec<By>,
    cpus: Vec<Cpu>,
    /// Receives that wait for a message, by the rank and tag that they ask for.
    posted: BTreeMap<Key, Queue<u32>>,
    unexpected: Unexpected,
    /// The octets of what receives took, of those that say another size.
    lengths: BTreeMap<u32, u64>,
    /// How many receives and messages have stood there.
    order: u64,
    /// Operations that may begin.
    ready: VecDeque<u32>,
    /// CPUs that may have something to do.
    free: VecDeque<u32>,
    undone: u32,
    told: GoalRank,
    /// What the end of each collective that is done goes back to, by its operation.
    origins: BTreeMap<u32, Origin>,
    /// Of each operation when it waited for no other any more, and of sends when their messages had come; empty where no times are noted.
    ready_at: Vec<Instant>,
    came_at: Vec<Instant>,
}

impl State {
    /// A rank on `host` that has done nothing yet, in the memory of another.
    fn new(rank: &Rank, host: HostId, other: Self) -> Self {
        let operations = rank.operations();
        let count = operations.len();
        let Self { mut needs, mut began, mut done, mut by, .. } = other;
        needs.clear();
        needs.extend(operations.iter().map(|operation| operation.needs));
        for times in [&mut began, &mut done] {
            times.clear();
            times.resize(count, Instant::NEVER);
        }
        by.clear();
        by.resize(count, By::Begin);
        Self {
            needs,
            began,
            done,
            by,
            cpus: vec![Cpu::default(); rank.cpus()],
            undone: u32::try_from(count).unwrap_or(u32::MAX),
            unexpected: Unexpected {
                takes_any: operations.iter().any(
                    |it| matches!(it.does, Does::Recv { from, tag, .. } if from.is_none() || tag.is_none()),
                ),
                ..Unexpected::default()
            },
            told: GoalRank { host: host.0, operations: count as u64, ..GoalRank::default() },
            ..Self::default()
        }
    }
}

/// A message and the receive that took it, though that says fewer octets: rank and operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) struct Longer {
    pub(in crate::world) send: (u32, u32),
    pub(in crate::world) receive: (u32, u32),
}

/// All ranks of one table.
#[derive(Debug)]
pub(super) struct Ranks {
    pub(super) spec: Goal,
    states: Vec<State>,
    /// The first message that was longer than its receive says.
    longer: Option<Longer>,
    /// Operations that are not done.
    pub(super) undone: u64,
    effects: Vec<Effect>,
    courses: Courses,
}

impl Ranks {
    /// Those of `spec`, with their hosts.
    pub(super) fn new(spec: &Goal, hosts: &[HostId]) -> Self {
        let ranks = spec.schedule.ranks.iter().zip(hosts);
        let states = ranks.map(|(rank, host)| State::new(rank, *host, State::default())).collect();
        let undone = spec.schedule.operations();
        Self {
            spec: spec.clone(),
            states,
            longer: None,
            undone,
            effects: Vec::new(),
            courses: Courses::new(spec),
        }
    }

    /// Makes them such as have done nothing yet.
    pub(super) fn start_anew(&mut self) {
        for (state, rank) in self.states.iter_mut().zip(&self.spec.schedule.ranks) {
            let before = std::mem::take(state);
            *state = State::new(rank, HostId(before.told.host), before);
        }
        self.undone = self.spec.schedule.operations();
        self.effects.clear();
        self.courses = Courses::new(&self.spec);
    }

    /// From now on it is noted what happens when.
    pub(super) fn note_times(&mut self) {
        for state in &mut self.states {
            state.ready_at = vec![Instant::NEVER; state.done.len()];
            state.came_at = state.ready_at.clone();
        }
    }

    /// What was noted, by ranks; nothing where that was not asked for.
    pub(super) fn times(&self) -> Vec<Vec<OperationTimes>> {
        let of_rank = |(rank, state): (u32, &State)| {
            let of = |(operation, (ready, came)): (u32, (&Instant, &Instant))| {
                let ((does, cpu), began) = (self.does(rank, operation), state.began[operation as usize]);
                let left =
                    if began == Instant::NEVER { began } else { began + self.duration(rank, operation) };
                let came = if number_of(does).is_some() { state.done[operation as usize] } else { *came };
                let line = match does {
                    Does::Send { to, tag, .. } => self.spec.line(rank, to, tag),
                    Does::Recv { .. } | Does::Calc(_) | Does::Collective { .. } => None,
                };
                OperationTimes { does, cpu, ready: *ready, began, left, came, line }
            };
            (0..).zip(state.ready_at.iter().zip(&state.came_at)).map(of).collect()
        };
        (0..).zip(&self.states).map(of_rank).collect()
    }

    /// The host of a rank.
    pub(super) fn host(&self, rank: u32) -> HostId {
        HostId(self.states[rank as usize].told.host)
    }

    /// Those of all.
    pub(super) fn hosts(&self) -> Vec<HostId> {
        self.states.iter().map(|state| HostId(state.told.host)).collect()
    }

    /// When a rank was done with all that it has to do.
    pub(super) fn end(&self, rank: u32) -> Option<Instant> {
        self.states[rank as usize].told.end
    }

    /// The octets of a message by this queue pair.
    pub(super) fn octets(&self, line: u32, id: u32) -> u64 {
        if self.spec.is_joint(line) {
            return self.courses.octets(id);
        }
        self.message(self.spec.lines()[line as usize].from, id).2
    }

    /// The receiver, tag and octets of a send.
    fn message(&self, rank: u32, operation: u32) -> (u32, u32, u64) {
        match self.does(rank, operation).0 {
            Does::Send { to, tag, size } => (to, tag, size),
            Does::Recv { .. } | Does::Calc(_) | Does::Collective { .. } => {
                unreachable!("only sends have messages")
            }
        }
    }

    /// Adds what is to be done since this was asked last.
    pub(super) fn take_effects(&mut self, to: &mut Vec<Effect>) {
        to.append(&mut self.effects);
    }

    /// A rank begins.
    pub(super) fn begin(&mut self, now: Instant, rank: u32) {
        let state = &mut self.states[rank as usize];
        let free = (0..).zip(&state.needs).filter(|(_, needs)| **needs == 0);
        state.ready = free.map(|(operation, _)| operation).collect();
        self.go_on(now, rank);
    }

    /// A CPU is done with what it was busy with.
    pub(super) fn cpu_done(&mut self, now: Instant, rank: u32, cpu: u32) {
        let of = &mut self.states[rank as usize].cpus[cpu as usize];
        let Some(operation) = of.task.take() else { return };
        of.last = operation;
        self.states[rank as usize].free.push_back(cpu);
        self.carried_out(now, rank, operation);
        self.go_on(now, rank);
    }

    /// A message has come to its receiver.
    pub(super) fn came(&mut self, now: Instant, line: u32, id: u32) {
        if self.spec.is_joint(line) {
            let size = self.courses.octets(id);
            let done = self.courses.came(now, &self.spec, id, &mut self.effects);
            let told = &mut self.states[done.rank as usize].told;
            told.received += 1;
            told.received_bytes += size;
            self.take_part(now, done);
            return self.go_on(now, done.rank);
        }
        let from = self.spec.lines()[line as usize].from;
        let (to, ..) = self.message(from, id);
        self.take_in(now, from, id);
        self.go_on(now, to);
    }

    /// A message has been acknowledged.
    pub(super) fn acknowledged(&mut self, now: Instant, line: u32, id: u32) {
        if self.spec.is_joint(line) {
            if let Some(done) = self.courses.acknowledged(now, &self.spec, id) {
                self.take_part(now, done);
                self.go_on(now, done.rank);
            }
            return;
        }
        let rank = self.spec.lines()[line as usize].from;
        if !self.is_eager(rank, id) {
            self.finish(now, rank, id);
            self.go_on(now, rank);
        }
    }

    /// Notes what a rank has sent for a collective, and finishes its operation if that is done.
    fn take_part(&mut self, now: Instant, Done { rank, operation, origin, sent }: Done) {
        let told = &mut self.states[rank as usize].told;
        told.sent += sent.0;
        told.sent_bytes += sent.1;
        if let Some(operation) = operation {
            self.states[rank as usize].origins.insert(operation, origin);
            self.finish(now, rank, operation);
        }
    }

    fn is_eager(&self, rank: u32, operation: u32) -> bool {
        let (to, _, size) = self.message(rank, operation);
        size <= self.spec.eager.0 || to == rank
    }

    /// What an operation does, and on which CPU.
    fn does(&self, rank: u32, operation: u32) -> (Does, u8) {
        let operation = self.spec.schedule.ranks[rank as usize].operations()[operation as usize];
        (operation.does, operation.cpu)
    }

    /// How long a CPU is busy with an operation.
    fn duration(&self, rank: u32, operation: u32) -> Span {
        match self.does(rank, operation).0 {
            Does::Calc(units) => Span::from_ps(self.spec.unit.as_ps().saturating_mul(units)),
            Does::Collective { .. } => self.spec.overhead,
            Does::Send { size, .. } => self.spec.overhead_of(size),
            Does::Recv { size, .. } => {
                let taken = self.states[rank as usize].lengths.get(&operation);
                self.spec.overhead_of(taken.copied().unwrap_or(size))
            }
        }
    }

    /// Notes a message that is not as long as the receive that takes it says.
    fn compare(&mut self, (from, send): (u32, u32), (to, receive): (u32, u32)) {
        let (sends, receives) = (self.does(from, send).0, self.does(to, receive).0);
        let (Does::Send { size, .. }, Does::Recv { size: said, .. }) = (sends, receives) else { return };
        if size == said {
            return;
        }
        let state = &mut self.states[to as usize];
        state.lengths.insert(receive, size);
        if size < said {
            state.told.shorter += 1;
        } else {
            state.told.longer += 1;
            self.longer.get_or_insert(Longer { send: (from, send), receive: (to, receive) });
        }
    }

    /// Begins what may begin, and what follows from it.
    fn go_on(&mut self, now: Instant, rank: u32) {
        loop {
            let state = &mut self.states[rank as usize];
            if let Some(operation) = state.ready.pop_front() {
                self.ready(now, rank, operation);
            } else if let Some(cpu) = state.free.pop_front() {
                self.next_task(now, rank, cpu);
            } else {
                return;
            }
        }
    }

    /// An operation waits for no other any more.
    fn ready(&mut self, now: Instant, rank: u32, operation: u32) {
        note(&mut self.states[rank as usize].ready_at, now, operation);
        let (Does::Recv { from, tag, .. }, _) = self.does(rank, operation) else {
            return self.queue(now, rank, operation);
        };
        // It has begun when it waits for its message.
        self.release(rank, operation, true);
        if let Some(message) = self.states[rank as usize].unexpected.take((from, tag)) {
            self.compare(message, (rank, operation));
            return self.queue(now, rank, operation);
        }
        let state = &mut self.states[rank as usize];
        state.order += 1;
        state.posted.entry((from, tag)).or_default().push_back((state.order, operation));
    }

    /// A message has come: the receive that it is for is the CPU's business now, or there is none yet.
    fn take_in(&mut self, now: Instant, from: u32, operation: u32) {
        note(&mut self.states[from as usize].came_at, now, operation);
        let (to, tag, size) = self.message(from, operation);
        let state = &mut self.states[to as usize];
        state.told.received += 1;
        state.told.received_bytes += size;
        // Four searches for each message were a third of what ranks cost.
        let keys = keys(from, tag);
        let asked = if state.unexpected.takes_any { &keys[..] } else { &keys[..1] };
        let fronts = asked.iter().filter_map(|key| Some((*state.posted.get(key)?.front()?, *key)));
        if let Some((_, key)) = fronts.min()
            && let Some((_, receive)) = pop(&mut state.posted, key)
        {
            state.by[receive as usize] = By::Message(from, operation);
            self.compare((from, operation), (to, receive));
            return self.queue(now, to, receive);
        }
        state.order += 1;
        state.unexpected.add(from, tag, state.order, operation);
    }

    /// Has an operation wait for its CPU.
    fn queue(&mut self, now: Instant, rank: u32, operation: u32) {
        let number = self.does(rank, operation).1;
        let state = &mut self.states[rank as usize];
        state.cpus[usize::from(number)].queue.push_back((operation, now));
        state.free.push_back(number.into());
    }

    /// Lets a CPU begin with what waits for it.
    fn next_task(&mut self, now: Instant, rank: u32, cpu: u32) {
        let state = &mut self.states[rank as usize];
        let of = &mut state.cpus[cpu as usize];
        if of.task.is_some() {
            return;
        }
        let Some((operation, since)) = of.queue.pop_front() else { return };
        let at = operation as usize;
        if now > since {
            state.by[at] = By::Cpu(of.last);
        }
        state.began[at] = now;
        let (does, _) = self.does(rank, operation);
        if !matches!(does, Does::Recv { .. }) {
            self.release(rank, operation, true);
        }
        let duration = self.duration(rank, operation);
        let state = &mut self.states[rank as usize];
        if matches!(does, Does::Calc(_)) {
            state.told.computed += duration;
        }
        if duration.is_zero() {
            state.cpus[cpu as usize].last = operation;
            state.free.push_back(cpu);
            return self.carried_out(now, rank, operation);
        }
        state.cpus[cpu as usize].task = Some(operation);
        self.effects.push(Effect::Busy { until: now + duration, rank, cpu });
    }

    /// A CPU has done its part of an operation.
    fn carried_out(&mut self, now: Instant, rank: u32, operation: u32) {
        if let (Does::Send { to, tag, size }, _) = self.does(rank, operation) {
            let told = &mut self.states[rank as usize].told;
            told.sent += 1;
            told.sent_bytes += size;
            if to == rank {
                self.take_in(now, rank, operation);
            } else {
                let line = self.spec.line(rank, to, tag).expect("sends to other ranks have queue pairs");
                self.effects.push(Effect::Post { line, id: operation });
            }
            if !self.is_eager(rank, operation) {
                return;
            }
        }
        if let Some(number) = number_of(self.does(rank, operation).0) {
            let done = self.courses.begin(now, &self.spec, (rank, operation), number, &mut self.effects);
            return self.take_part(now, done);
        }
        self.finish(now, rank, operation);
    }

    fn finish(&mut self, now: Instant, rank: u32, operation: u32) {
        let state = &mut self.states[rank as usize];
        state.done[operation as usize] = now;
        state.undone -= 1;
        if state.undone == 0 {
            state.told.end = Some(now);
        }
        self.undone -= 1;
        self.release(rank, operation, false);
    }

    /// Tells those that wait for an operation that it has begun, or that it is done.
    fn release(&mut self, rank: u32, operation: u32, at_begin: bool) {
        let state = &mut self.states[rank as usize];
        // What it waited for itself is what those waited for that begin with it.
        let by = if at_begin { state.by[operation as usize] } else { By::Done(operation) };
        let edges = self.spec.schedule.ranks[rank as usize].edges(operation);
        for edge in edges.filter(|edge| edge.at_begin == at_begin) {
            let needs = &mut state.needs[edge.to as usize];
            *needs -= 1;
            if *needs == 0 {
                state.by[edge.to as usize] = by;
                state.ready.push_back(edge.to);
            }
        }
    }

    /// What became of each rank.
    pub(super) fn results(&self) -> Vec<GoalRank> {
        let told = |state: &State| GoalRank {
            undone: state.undone.into(),
            untaken: state.unexpected.count,
            ..state.told
        };
        self.states.iter().map(told).collect()
    }

    /// How many messages no receive has taken.
    pub(super) fn untaken(&self) -> u64 {
        self.states.iter().map(|state| state.unexpected.count).sum()
    }

    /// How many messages were longer than their receives say, with the first.
    pub(super) fn longer(&self) -> Option<(u64, Longer)> {
        Some((self.states.iter().map(|state| state.told.longer).sum(), self.longer?))
    }

    /// What ranks wait for: of each the first receive or collective.
    pub(super) fn waiting(&self) -> Vec<(u32, String)> {
        let of_rank = |(rank, state): (u32, &State)| {
            let receive = state.posted.values().flatten().min().map(|(_, receive)| *receive);
            let first = receive.or_else(|| self.courses.waiting(&self.spec, rank))?;
            Some((rank, self.spec.schedule.words(rank, first)))
        };
        (0..).zip(&self.states).filter_map(of_rank).collect()
    }

    /// The operation that was done last, with when and by which rank; `None` where some are not done.
    fn last(&self) -> Option<(Instant, u32, u32)> {
        if self.undone > 0 {
            return None;
        }
        let of_rank = |(rank, state): (u32, &State)| {
            let last = (0u32..).zip(&state.done).min_by_key(|(_, done)| Reverse(**done));
            last.map(|(operation, done)| (*done, rank, operation))
        };
        // Of several that were done last the first.
        (0..).zip(&self.states).filter_map(of_rank).min_by_key(|(done, ..)| Reverse(*done))
    }

    /// From the table's start until all is done; `None` where it is not.
    pub(super) fn time(&self) -> Option<Span> {
        self.last().map(|(end, ..)| end.since(self.spec.start))
    }

    /// What became of each collective, but for how long it takes alone.
    pub(super) fn joint(&self) -> Vec<JointResult> {
        let Schedule { joint, groups, matrices, .. } = &*self.spec.schedule;
        let result = |((number, it), times): ((u32, &Joint), &JointTimes)| JointResult {
            operation: it.operation,
            algorithm: self.spec.way(number).map(|(_, way)| way.algorithm()),
            group: it.group,
            ranks: u32::try_from(groups[it.group as usize].ranks.len()).unwrap_or(u32::MAX),
            root: it.operation.has_root().then_some(it.root),
            size: it.size,
            busiest: it.matrix.and_then(|place| Some(matrices.get(place as usize)?.busiest())),
            parts: self.spec.collective(number).map_or((1, 1), |one| (one.channels, one.chunks)),
            first: it.first,
            times: *times,
            ideal: None,
        };
        (0..).zip(joint).zip(&self.courses.times).map(result).collect()
    }

    /// When each rank began each collective, by its place in the order of the way of that; nothing of those that not all have begun, or that a rank
    /// does by itself.
    pub(super) fn begins(&self) -> Vec<Vec<Instant>> {
        let of = |(number, times): (u32, &JointTimes)| {
            let ranks = self.spec.way(number).map_or(0, |(_, way)| way.ranks().len());
            if times.begun as usize == ranks { vec![Instant::NEVER; ranks] } else { Vec::new() }
        };
        let mut begins: Vec<Vec<Instant>> = (0..).zip(&self.courses.times).map(of).collect();
        for (rank, it) in (0..).zip(&self.spec.schedule.ranks) {
            for (operation, it) in (0..).zip(it.operations()) {
                let Some(number) = number_of(it.does) else { continue };
                let place = self.spec.way(number).and_then(|(_, way)| way.place(rank));
                if let Some(begin) = place.and_then(|place| begins[number as usize].get_mut(place as usize)) {
                    *begin = self.carried_out_at(rank, operation);
                }
            }
        }
        begins
    }

    /// What the operation that was done last waited for, and so on back to the beginning; `None` where some are not done.
    pub(super) fn critical_path(&self) -> Option<CriticalPath> {
        let (end, mut rank, mut operation) = self.last()?;
        let mut path = CriticalPath { time: end.since(self.spec.start), ..CriticalPath::default() };
        // When the operation was over for the one behind it.
        let mut until = end;
        loop {
            let carried_out = self.carried_out_at(rank, operation);
            if let Some(origin) = self.states[rank as usize].origins.get(&operation)
                && until > carried_out
            {
                let to_rank = rank;
                (rank, operation) = *origin;
                let from = self.carried_out_at(rank, operation);
                path.collectives += until.since(from);
                let link = self.link(LinkKind::Collective, rank, operation, from, until);
                path.links.push(PathLink { to_rank, ..link });
                until = from;
            }
            let (state, at) = (&self.states[rank as usize], operation as usize);
            let (began, duration) = (state.began[at], self.duration(rank, operation));
            let carried_out = began + duration;
            if until > carried_out {
                // The send was done when it had been acknowledged.
                let link = self.link(LinkKind::Acknowledged, rank, operation, carried_out, until);
                path.messages += until.since(carried_out);
                path.links.push(link);
            }
            let kind = match self.does(rank, operation).0 {
                Does::Calc(_) => LinkKind::Calculation,
                Does::Send { .. } | Does::Recv { .. } | Does::Collective { .. } => LinkKind::Overhead,
            };
            let spent = if kind == LinkKind::Calculation { &mut path.computed } else { &mut path.overhead };
            *spent += duration;
            if !duration.is_zero() {
                path.links.push(self.link(kind, rank, operation, began, carried_out));
            }
            (until, operation) = match state.by[at] {
                By::Begin => {
                    path.late = began.since(self.spec.start);
                    path.links.reverse();
                    return Some(path);
                }
                By::Done(before) => (began, before),
                By::Cpu(before) => (self.carried_out_at(rank, before), before),
                By::Message(from, send) => {
                    let posted = self.carried_out_at(from, send);
                    path.messages += began.since(posted);
                    path.links.push(self.link(LinkKind::Message, from, send, posted, began));
                    rank = from;
                    (posted, send)
                }
            };
        }
    }

    /// When a CPU had done its part of an operation.
    pub(super) fn carried_out_at(&self, rank: u32, operation: u32) -> Instant {
        self.states[rank as usize].began[operation as usize] + self.duration(rank, operation)
    }

    fn link(&self, kind: LinkKind, rank: u32, operation: u32, from: Instant, to: Instant) -> PathLink {
        let (does, _) = self.does(rank, operation);
        let (line, to_rank) = match does {
            Does::Send { to, tag, .. } if kind.is_message() => (self.spec.line(rank, to, tag), to),
            _ => (None, rank),
        };
        PathLink { kind, from, to, rank, to_rank, operation, does, line, ideal: Span::ZERO }
    }
}

/// Notes when something happened to an operation, where times are noted.
fn note(times: &mut [Instant], now: Instant, operation: u32) {
    if let Some(time) = times.get_mut(operation as usize) {
        *time = now;
    }
}

/// The first of what stands under `key`, which is taken away.
fn pop<T>(queues: &mut BTreeMap<Key, Queue<T>>, key: Key) -> Option<(u64, T)> {
    let queue = queues.get_mut(&key)?;
    let first = queue.pop_front();
    if queue.is_empty() {
        queues.remove(&key);
    }
    first
}

#[cfg(test)]
mod tests;
