//! One run of a collective: what has come to each rank, and what it may send for that. Of a network it knows nothing but when messages
//! come.

use crate::traffic::collective::{Collective, Schedule};
use std::collections::BTreeMap;
use std::ops::Range;

/// A message of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) channel: u32,
    /// The queue pair, of its channel's.
    pub(super) edge: u32,
    pub(super) step: u32,
    pub(super) chunk: u32,
}

/// A message that is to be sent, and its octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Post {
    pub(super) part: Part,
    pub(super) octets: u64,
}

/// What has come of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Came {
    /// The rank that has the message.
    pub(super) rank: u32,
    /// Whether that is done: it has begun, and has received all that it is to receive.
    pub(super) is_done: bool,
}

/// See above.
#[derive(Debug)]
pub(super) struct Course {
    spec: Collective,
    schedule: Schedule,
    /// Of each rank the messages that have still to come.
    missing: Vec<u64>,
    /// What the schedule keeps of each chunk of each channel at each rank.
    received: Vec<u32>,
    /// Whether each rank has begun.
    begun: Vec<bool>,
    /// What has come to ranks before they had begun, by rank.
    early: BTreeMap<u32, Vec<Part>>,
    /// How many ranks are not done.
    open: usize,
}

impl Course {
    /// One that no rank has begun.
    pub(super) fn new(spec: Collective) -> Self {
        let schedule = spec.schedule();
        let ranks = schedule.ranks() as usize;
        let parts = spec.channels as usize * spec.chunks as usize;
        let mut course = Self {
            missing: vec![0; ranks],
            received: vec![0; ranks * parts * schedule.kept() as usize],
            begun: vec![false; ranks],
            early: BTreeMap::new(),
            open: 0,
            schedule,
            spec,
        };
        course.start_anew();
        course
    }

    /// Makes it one that no rank has begun.
    pub(super) fn start_anew(&mut self) {
        for (missing, rank) in self.missing.iter_mut().zip(0..) {
            let of = |channel| u64::from(self.spec.receives(channel, rank));
            *missing = (0..self.spec.channels).map(of).sum::<u64>() * u64::from(self.spec.chunks);
        }
        self.received.fill(0);
        self.begun.fill(false);
        self.early.clear();
        self.open = self.begun.len();
    }

    pub(super) fn spec(&self) -> &Collective {
        &self.spec
    }

    pub(super) fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Whether all ranks are done.
    pub(super) fn is_over(&self) -> bool {
        self.open == 0
    }

    /// Whether a rank has begun, and has received all that it is to receive.
    pub(super) fn is_done(&self, rank: u32) -> bool {
        self.begun[rank as usize] && self.missing[rank as usize] == 0
    }

    /// A rank begins: `posts` get what it sends then. Whether it is done already.
    pub(super) fn begin(&mut self, rank: u32, posts: &mut Vec<Post>) -> bool {
        self.begun[rank as usize] = true;
        let firsts: Vec<Vec<u32>> =
            (0..self.spec.kinds()).map(|channel| self.spec.at_once(channel, rank)).collect();
        for nth in 0..firsts.iter().map(Vec::len).max().unwrap_or(0) {
            for chunk in 0..self.spec.chunks {
                for channel in 0..self.spec.channels {
                    let first = firsts[(channel % self.spec.kinds()) as usize].get(nth);
                    posts.extend(first.and_then(|step| self.post(rank, channel, *step, chunk)));
                }
            }
        }
        for part in self.early.remove(&rank).unwrap_or_default() {
            self.follow(rank, part, posts);
        }
        let is_done = self.missing[rank as usize] == 0;
        self.open -= usize::from(is_done);
        is_done
    }

    /// A message has come: `posts` get what its receiver sends for that.
    pub(super) fn arrive(&mut self, part: Part, posts: &mut Vec<Post>) -> Came {
        let rank = self.receiver(part);
        let missing = &mut self.missing[rank as usize];
        *missing -= 1;
        let has_all = *missing == 0;
        if !self.begun[rank as usize] {
            self.early.entry(rank).or_default().push(part);
            return Came { rank, is_done: false };
        }
        self.follow(rank, part, posts);
        self.open -= usize::from(has_all);
        Came { rank, is_done: has_all }
    }

    /// The rank that a message comes to.
    fn receiver(&self, part: Part) -> u32 {
        self.spec.rank_at(part.channel, self.schedule.ends(part.edge).1)
    }

    /// What `rank` may send now that it has a message, of the same channel and chunk.
    fn follow(&mut self, rank: u32, Part { channel, step, chunk, .. }: Part, posts: &mut Vec<Post>) {
        let parts = self.spec.channels as usize * self.spec.chunks as usize;
        let of_rank = rank as usize * parts + (channel * self.spec.chunks + chunk) as usize;
        let kept = self.schedule.kept() as usize;
        let received = &mut self.received[of_rank * kept..(of_rank + 1) * kept];
        let steps: Range<u32> = self.spec.follows(channel, rank, received, step);
        posts.extend(steps.filter_map(|step| self.post(rank, channel, step, chunk)));
    }

    /// The message of `rank` in `step`, if there is one.
    fn post(&self, rank: u32, channel: u32, step: u32, chunk: u32) -> Option<Post> {
        let message = self.spec.message(channel, self.spec.place_of(channel, rank), step)?;
        let octets = self.spec.octets(channel, chunk, &message);
        Some(Post { part: Part { channel, edge: message.edge, step, chunk }, octets })
    }
}
