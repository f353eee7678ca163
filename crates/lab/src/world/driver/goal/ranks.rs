//! The ranks of a GOAL schedule: what may begin, what its CPUs do, and which message a receive takes. Of a network they know nothing but
//! when messages come.

use crate::results::goal::{CriticalPath, GoalRank, LinkKind, PathLink};
use crate::traffic::goal::{Does, Goal};
use roci_fabric::packet::HostId;
use roci_units::{Instant, Span};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

/// What is to be done outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The message of this send is to be posted.
    Post { rank: u32, operation: u32 },
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

/// Operations in the order in which they came to stand there.
type Queue = VecDeque<(u64, u32)>;

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
    /// Receives that wait for a message of one rank and tag, and those that take others too.
    posted: BTreeMap<(u32, u32), Queue>,
    posted_any: Queue,
    /// Messages that nobody has waited for yet, by rank and tag; known by their sends.
    unexpected: BTreeMap<(u32, u32), Queue>,
    /// How many receives and messages have stood there.
    order: u64,
    /// Operations that may begin.
    ready: VecDeque<u32>,
    /// CPUs that may have something to do.
    free: VecDeque<u32>,
    undone: u32,
    told: GoalRank,
}

/// All ranks of one table.
#[derive(Debug)]
pub(super) struct Ranks {
    pub(super) spec: Goal,
    states: Vec<State>,
    /// Operations that are not done.
    pub(super) undone: u64,
    effects: Vec<Effect>,
}

impl Ranks {
    /// Those of `spec`, with their hosts.
    pub(super) fn new(spec: &Goal, hosts: &[HostId]) -> Self {
        let state = |(rank, host): (&crate::traffic::goal::Rank, &HostId)| {
            let operations = rank.operations();
            let count = operations.len();
            State {
                needs: operations.iter().map(|operation| operation.needs).collect(),
                began: vec![Instant::NEVER; count],
                done: vec![Instant::NEVER; count],
                by: vec![By::Begin; count],
                cpus: vec![Cpu::default(); rank.cpus()],
                undone: u32::try_from(count).unwrap_or(u32::MAX),
                told: GoalRank { host: host.0, operations: count as u64, ..GoalRank::default() },
                ..State::default()
            }
        };
        let states: Vec<State> = spec.schedule.ranks.iter().zip(hosts).map(state).collect();
        Self { spec: spec.clone(), states, undone: spec.schedule.operations(), effects: Vec::new() }
    }

    /// The host of a rank.
    pub(super) fn host(&self, rank: u32) -> HostId {
        HostId(self.states[rank as usize].told.host)
    }

    /// The receiver, tag and octets of a send.
    pub(super) fn message(&self, rank: u32, operation: u32) -> (u32, u32, u64) {
        match self.does(rank, operation).0 {
            Does::Send { to, tag, size } => (to, tag, size),
            Does::Recv { .. } | Does::Calc(_) => unreachable!("only sends have messages"),
        }
    }

    /// What is to be done since this was asked last.
    pub(super) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
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

    /// The message of a send has come to its receiver.
    pub(super) fn came(&mut self, now: Instant, from: u32, operation: u32) {
        let (to, ..) = self.message(from, operation);
        self.take_in(now, from, operation);
        self.go_on(now, to);
    }

    /// The message of a send that is not eager has been acknowledged.
    pub(super) fn acknowledged(&mut self, now: Instant, rank: u32, operation: u32) {
        if !self.is_eager(rank, operation) {
            self.finish(now, rank, operation);
            self.go_on(now, rank);
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
            Does::Send { .. } | Does::Recv { .. } => self.spec.overhead,
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
        let (Does::Recv { from, tag, .. }, _) = self.does(rank, operation) else {
            return self.queue(now, rank, operation);
        };
        // It has begun when it waits for its message.
        self.release(rank, operation, true);
        let state = &mut self.states[rank as usize];
        if state.take_unexpected(from, tag).is_some() {
            return self.queue(now, rank, operation);
        }
        state.order += 1;
        let stands = (state.order, operation);
        match from.zip(tag) {
            Some(one) => state.posted.entry(one).or_default().push_back(stands),
            None => state.posted_any.push_back(stands),
        }
    }

    /// A message has come: the receive that it is for is the CPU's business now, or there is none yet.
    fn take_in(&mut self, now: Instant, from: u32, operation: u32) {
        let (to, tag, size) = self.message(from, operation);
        let receives = &self.spec.schedule.ranks[to as usize].operations();
        let state = &mut self.states[to as usize];
        state.told.received += 1;
        state.told.received_bytes += size;
        let takes = |(_, receive): &(u64, u32)| {
            let Does::Recv { from: of, tag: with, .. } = receives[*receive as usize].does else {
                return false;
            };
            of.is_none_or(|of| of == from) && with.is_none_or(|with| with == tag)
        };
        let any = state.posted_any.iter().position(takes);
        let any_order = any.map_or(u64::MAX, |place| state.posted_any[place].0);
        let exact =
            state.posted.get(&(from, tag)).and_then(VecDeque::front).filter(|exact| exact.0 < any_order);
        let receive = match (exact, any) {
            (Some(_), _) => pop(&mut state.posted, (from, tag)),
            (None, Some(place)) => state.posted_any.remove(place).map(|(_, receive)| receive),
            (None, None) => None,
        };
        if let Some(receive) = receive {
            state.by[receive as usize] = By::Message(from, operation);
            return self.queue(now, to, receive);
        }
        state.order += 1;
        state.unexpected.entry((from, tag)).or_default().push_back((state.order, operation));
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
        if let (Does::Send { to, size, .. }, _) = self.does(rank, operation) {
            let told = &mut self.states[rank as usize].told;
            told.sent += 1;
            told.sent_bytes += size;
            if to == rank {
                self.take_in(now, rank, operation);
            } else {
                self.effects.push(Effect::Post { rank, operation });
            }
            if !self.is_eager(rank, operation) {
                return;
            }
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
        let told =
            |state: &State| GoalRank { undone: state.undone.into(), untaken: state.untaken(), ..state.told };
        self.states.iter().map(told).collect()
    }

    /// How many messages no receive has taken.
    pub(super) fn untaken(&self) -> u64 {
        self.states.iter().map(State::untaken).sum()
    }

    /// Some of the receives that wait for a message, in words.
    pub(super) fn waiting(&self) -> Vec<(u32, Does)> {
        let of_rank = |(rank, state): (u32, &State)| {
            let exact = state.posted.values().flatten();
            let first = exact.chain(&state.posted_any).min().map(|(_, receive)| *receive)?;
            Some((rank, self.does(rank, first).0))
        };
        (0..).zip(&self.states).filter_map(of_rank).collect()
    }

    /// What the operation that was done last waited for, and so on back to the beginning; `None` where some are not done.
    pub(super) fn critical_path(&self) -> Option<CriticalPath> {
        if self.undone > 0 {
            return None;
        }
        let of_rank = |(rank, state): (u32, &State)| {
            let last = (0u32..).zip(&state.done).min_by_key(|(_, done)| Reverse(**done));
            last.map(|(operation, done)| (*done, rank, operation))
        };
        // Of several that were done last the first.
        let lasts = (0..).zip(&self.states).filter_map(of_rank);
        let (end, mut rank, mut operation) = lasts.min_by_key(|(done, ..)| Reverse(*done))?;
        let mut path = CriticalPath { time: end.since(self.spec.start), ..CriticalPath::default() };
        // When the operation was over for the one behind it.
        let mut until = end;
        loop {
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
                Does::Send { .. } | Does::Recv { .. } => LinkKind::Overhead,
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
                By::Cpu(before) => (state.began[before as usize] + self.duration(rank, before), before),
                By::Message(from, send) => {
                    let posted = self.states[from as usize].began[send as usize] + self.duration(from, send);
                    path.messages += began.since(posted);
                    path.links.push(self.link(LinkKind::Message, from, send, posted, began));
                    rank = from;
                    (posted, send)
                }
            };
        }
    }

    fn link(&self, kind: LinkKind, rank: u32, operation: u32, from: Instant, to: Instant) -> PathLink {
        let (does, _) = self.does(rank, operation);
        let line = match does {
            Does::Send { to, tag, .. } if kind.is_message() => self.spec.line(rank, to, tag),
            _ => None,
        };
        PathLink { kind, from, to, rank, operation, does, line, ideal: Span::ZERO }
    }
}

impl State {
    /// How many messages have come that no receive has taken.
    fn untaken(&self) -> u64 {
        self.unexpected.values().map(|queue| queue.len() as u64).sum()
    }

    /// The first message that has come and that such a receive takes.
    fn take_unexpected(&mut self, from: Option<u32>, tag: Option<u32>) -> Option<u32> {
        let key = match from.zip(tag) {
            Some(one) => one,
            None => {
                let is_meant = |(of, with): &(u32, u32)| {
                    from.is_none_or(|from| from == *of) && tag.is_none_or(|tag| tag == *with)
                };
                let fronts = self.unexpected.iter().filter(|(key, _)| is_meant(key));
                *fronts.min_by_key(|(_, queue)| queue.front().map(|(order, _)| *order))?.0
            }
        };
        pop(&mut self.unexpected, key)
    }
}

/// The first of what stands under `key`, which is taken away.
fn pop(queues: &mut BTreeMap<(u32, u32), Queue>, key: (u32, u32)) -> Option<u32> {
    let queue = queues.get_mut(&key)?;
    let first = queue.pop_front();
    if queue.is_empty() {
        queues.remove(&key);
    }
    first.map(|(_, operation)| operation)
}

#[cfg(test)]
mod tests;
