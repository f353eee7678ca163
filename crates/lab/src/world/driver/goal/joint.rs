//! The collectives of a schedule that are under way, and their messages.

use super::ranks::Effect;
use crate::results::goal::JointTimes;
use crate::traffic::goal::{Does, Goal};
use crate::world::driver::course::{Course, Part, Post};
use roci_units::Instant;
use std::collections::BTreeMap;

/// An operation, by its rank and its number there: by way of messages that followed one another, something goes back to its beginning.
pub(super) type Origin = (u32, u32);

/// A message under way.
#[derive(Clone, Copy, Debug)]
struct Moving {
    number: u32,
    part: Part,
    octets: u64,
    /// Its sender, within the group.
    from: u32,
    origin: Origin,
    /// What has still to be told of it: that it has come, and that it has been acknowledged.
    left: u8,
}

/// A collective that some rank has begun and not all are done with.
#[derive(Debug)]
pub(super) struct Running {
    course: Course,
    /// The operation of each of its ranks that has begun.
    operations: Vec<Option<u32>>,
    /// Of each rank the messages that it waits for to be acknowledged.
    unacknowledged: Vec<u32>,
}

impl Running {
    /// The operation of a rank, if that is done.
    fn done(&self, place: u32) -> Option<u32> {
        let is_done = self.course.is_done(place) && self.unacknowledged[place as usize] == 0;
        self.operations[place as usize].filter(|_| is_done)
    }
}

/// What has come of a rank's beginning, or of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) rank: u32,
    /// Its operation, if that is done.
    pub(super) operation: Option<u32>,
    /// What that goes back to.
    pub(super) origin: Origin,
    /// Messages that it sends for that, and their octets.
    pub(super) sent: (u64, u64),
}

/// See above.
#[derive(Debug, Default)]
pub(super) struct Courses {
    pub(super) running: BTreeMap<u32, Running>,
    /// Messages, by the number that their immediate has; such as have come leave their place to others.
    moving: Vec<Moving>,
    free: Vec<u32>,
    posts: Vec<Post>,
    /// Of each collective when it was begun and done.
    pub(super) times: Vec<JointTimes>,
}

impl Courses {
    pub(super) fn new(spec: &Goal) -> Self {
        Self { times: vec![JointTimes::default(); spec.schedule.joint.len()], ..Self::default() }
    }

    /// A rank begins one by its `operation`.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        spec: &Goal,
        origin: Origin,
        number: u32,
        effects: &mut Vec<Effect>,
    ) -> Done {
        let (rank, operation) = origin;
        let mut done = Done { rank, operation: Some(operation), origin, sent: (0, 0) };
        self.times[number as usize].begin(now);
        if let Some((_, way)) = spec.way(number)
            && let Some(place) = way.place(rank)
        {
            let running = self.running.entry(number).or_insert_with(|| Running {
                course: Course::new(spec.collective(number).expect("it has a way")),
                operations: vec![None; way.ranks().len()],
                unacknowledged: vec![0; way.ranks().len()],
            });
            running.operations[place as usize] = Some(operation);
            running.course.begin(place, &mut self.posts);
            done.sent = self.post(spec, number, place, origin, effects);
            done.operation = self.running[&number].done(place);
        }
        self.note(now, number, done.operation);
        done
    }

    /// A message has come.
    pub(super) fn came(&mut self, now: Instant, spec: &Goal, id: u32, effects: &mut Vec<Effect>) -> Done {
        let Moving { number, part, origin, .. } = self.told(id);
        let running = self.running.get_mut(&number).expect("a collective is there until all has come");
        let place = running.course.arrive(part, &mut self.posts).rank;
        let sent = self.post(spec, number, place, origin, effects);
        let operation = self.running[&number].done(place);
        self.note(now, number, operation);
        let rank = spec.way(number).map_or(0, |(_, way)| way.ranks()[place as usize]);
        Done { rank, operation, origin, sent }
    }

    /// A message has been acknowledged; what comes of it for its sender, if it waits for that: of one that is longer than `eager`.
    pub(super) fn acknowledged(&mut self, now: Instant, spec: &Goal, id: u32) -> Option<Done> {
        let Moving { number, from, origin, octets, .. } = self.told(id);
        if octets <= spec.eager.0 {
            return None;
        }
        let running = self.running.get_mut(&number).expect("a collective is there until its ranks are done");
        running.unacknowledged[from as usize] -= 1;
        let operation = Some(running.done(from)?);
        self.note(now, number, operation);
        let (_, way) = spec.way(number)?;
        Some(Done { rank: way.ranks()[from as usize], operation, origin, sent: (0, 0) })
    }

    /// One more thing is told of a message, of which nothing is kept when it was the last.
    fn told(&mut self, id: u32) -> Moving {
        let moving = &mut self.moving[id as usize];
        moving.left -= 1;
        if moving.left == 0 {
            self.free.push(id);
        }
        *moving
    }

    /// Has what is to be sent posted; gives how many messages that are, and their octets.
    fn post(
        &mut self,
        spec: &Goal,
        number: u32,
        from: u32,
        origin: Origin,
        effects: &mut Vec<Effect>,
    ) -> (u64, u64) {
        let mut sent = (0, 0);
        let Some((_, way)) = spec.way(number) else { return sent };
        for Post { part, octets } in self.posts.drain(..) {
            let moving = Moving { number, part, octets, from, origin, left: 2 };
            if octets > spec.eager.0
                && let Some(running) = self.running.get_mut(&number)
            {
                running.unacknowledged[from as usize] += 1;
            }
            let id = match self.free.pop() {
                Some(id) => {
                    self.moving[id as usize] = moving;
                    id
                }
                None => {
                    self.moving.push(moving);
                    u32::try_from(self.moving.len() - 1).expect("fewer messages than tags")
                }
            };
            effects.push(Effect::Post { line: way.line(part.channel, part.edge), id });
            sent = (sent.0 + 1, sent.1 + octets);
        }
        sent
    }

    /// Notes that a rank is done, if it is, and forgets what all are done with.
    fn note(&mut self, now: Instant, number: u32, done: Option<u32>) {
        if done.is_some() {
            let times = &mut self.times[number as usize];
            times.end(now);
            if self.running.get(&number).is_some_and(|of| of.operations.len() == times.done as usize) {
                self.running.remove(&number);
            }
        }
    }

    /// The octets of a message under way.
    pub(super) fn octets(&self, id: u32) -> u64 {
        self.moving[id as usize].octets
    }

    /// The first operation of a rank that has begun and is not done.
    pub(super) fn waiting(&self, spec: &Goal, rank: u32) -> Option<u32> {
        self.running.iter().find_map(|(&number, running)| {
            let place = spec.way(number)?.1.place(rank)?;
            running.operations[place as usize].filter(|_| running.done(place).is_none())
        })
    }
}

/// The collective that an operation takes part in.
pub(super) const fn number_of(does: Does) -> Option<u32> {
    match does {
        Does::Collective { number, .. } => Some(number),
        Does::Calc(_) | Does::Send { .. } | Does::Recv { .. } => None,
    }
}
