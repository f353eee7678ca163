//! The application that takes SENDs: how many receive requests it keeps posted, and how long a message keeps it busy.

use crate::scenario::Application;
use roci_units::{Instant, Span};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// A receive request that the application will post: when, and on the queue pair of which flow, by its place among those that are
/// alive and its number.
pub(super) type Due = (Instant, u32, u32);

/// What the applications of all queue pairs are busy with.
#[derive(Debug)]
pub(super) struct Receiving {
    depth: Option<u32>,
    time: Span,
    due: BinaryHeap<Reverse<Due>>,
    /// When it will be done with all that a flow has brought, by the flow's number.
    free: HashMap<u32, Instant>,
}

impl Receiving {
    /// As `application` has it.
    pub(super) fn new(application: &Application) -> Self {
        let Application { rx_depth, rx_time } = *application;
        Self { depth: rx_depth, time: rx_time, due: BinaryHeap::new(), free: HashMap::new() }
    }

    /// Whether a receive request stands ready for each message that is sent, whatever became of those before it.
    pub(super) fn is_ready(&self) -> bool {
        self.depth.is_none() && self.time.is_zero()
    }

    /// How many receive requests are posted when a flow begins, of whose messages so many are outstanding at most.
    pub(super) fn depth(&self, outstanding: u32) -> u32 {
        self.depth.unwrap_or(outstanding)
    }

    /// A message of flow `number` has come: when its receive request is posted anew.
    pub(super) fn took(&mut self, now: Instant, number: u32) -> Instant {
        if self.time.is_zero() {
            return now;
        }
        let free = self.free.entry(number).or_insert(now);
        *free = now.max(*free) + self.time;
        *free
    }

    /// Remembers what is to be posted; gives whether it comes before all else.
    pub(super) fn postpone(&mut self, due: Due) -> bool {
        let first = due.0 < self.next();
        self.due.push(Reverse(due));
        first
    }

    /// When something is to be posted next.
    pub(super) fn next(&self) -> Instant {
        self.due.peek().map_or(Instant::NEVER, |Reverse((at, ..))| *at)
    }

    /// What is to be posted by `now`, one after the other.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Due> {
        if self.next() > now { None } else { self.due.pop().map(|Reverse(due)| due) }
    }

    /// A flow has ended.
    pub(super) fn forget(&mut self, number: u32) {
        self.free.remove(&number);
    }
}
