//! Which queue pair sends next: the set of those that have both work and credit.
//!
//! Priorities are strict and within one the queue pairs take equal turns (Tonic §3.1's ready list, SRNIC's schedule
//! queue; `docs/decisions/0018`). Each priority has a ring of queue pair numbers, which the processor reads ahead of time
//! better than links, and which lets a caller look ahead and prefetch. Leaving the set is lazy: the ring's entry stays
//! and is passed over when its turn comes, so adding, removing and taking are O(1), amortised.
//!
//! Where a single queue pair has an entry, as on a host that sends to one other, the entry is kept in the record itself
//! and no ring is touched.
//!
//! Queue pairs whose messages are to go in order of what is left of them (Homa's senders, SIGCOMM 2018, §3.2) tell how
//! much that is: a turn that falls to one of them is taken by the one with the least left, whatever its priority, as
//! long as that is not paused. They and the others still stand to each other as their priorities and turns say.

mod rings;
mod shortest;

use alloc::{boxed::Box, vec::Vec};
use rings::Rings;
use shortest::Shortest;

/// Priorities, as a PAUSE frame has them (IEEE 802.1Qbb): 7 is the most urgent.
pub const PRIORITIES: u8 = 8;

/// What stands for "in no ring".
const NONE: u8 = u8::MAX;
/// What stands for "no queue pair".
const NOBODY: u32 = u32::MAX;

/// What is added to [`Schedule::passed_over`] where an order of what is left rules: far more than there are entries.
const RULED: u32 = 1 << 31;

/// The queue pairs that are ready, by priority.
///
/// The caller adds a queue pair when it has work and credit, removes it when it loses either, and adds it again
/// after its turn if it still has both. Queue pairs are dense indices; memory grows with the largest one.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Schedule {
    /// Bit p: ring p has a member.
    ready: u8,
    /// The bit of the front ring's priority while each of its entries in turn has the next turn and no other ring has a
    /// member; else none.
    quick: u8,
    /// The priority of the ring that the lone queue pair has its entry in.
    lone_priority: u8,
    /// The priority whose ring is the front one.
    forward: u8,
    /// While `quick` is set: the first entry of the front ring.
    next: u32,
    /// The queue pair that has the only entry of all rings, which is in none of them then and whose [`Place`] says
    /// nothing; it may have left it behind. [`NOBODY`]: the entries are in the rings.
    lone: u32,
    /// How many entries of the rings are to be passed over, as their queue pair has left. With [`RULED`] added an
    /// order of what is left rules, and the count says nothing. Zero: the first entry of a ring has the turn, and nothing else need be looked at.
    passed_over: u32,
    places: Vec<Place>,
    /// Members of each ring, passed-over entries not counted.
    members: [u32; PRIORITIES as usize],
    rings: Rings,
    /// Those that stand in order of what is left of their messages, where any has.
    shortest: Option<Box<Shortest>>,
}

/// Where one queue pair stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The priority at which it is a member, or [`NONE`].
    member: u8,
    /// Bit p: ring p holds an entry of it, maybe one left behind. There is never a second, so nobody has two turns
    /// in one round and a ring never outgrows the number of queue pairs.
    listed: u8,
}

impl Place {
    const NOWHERE: Self = Self { member: NONE, listed: 0 };
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            ready: 0,
            quick: 0,
            forward: 0,
            next: NOBODY,
            lone_priority: 0,
            lone: NOBODY,
            passed_over: 0,
            places: Vec::new(),
            members: [0; PRIORITIES as usize],
            rings: Rings::default(),
            shortest: None,
        }
    }
}

impl Schedule {
    /// An empty set that serves queue pairs in turn.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes room for queue pairs below `count` at `priority`, so that adding them allocates nothing.
    ///
    /// # Panics
    /// When `priority` is above 7.
    pub fn prepare(&mut self, count: u32, priority: u8) {
        if self.places.len() < count as usize {
            self.places.resize(count as usize, Place::NOWHERE);
        }
        self.rings.of(self.forward, priority).grow_to(count);
    }

    /// Says how many octets are left of a queue pair's message, from which on it stands in order of them; `None`: it
    /// has no message of which that is known, and takes its turns.
    pub fn set_left(&mut self, qp: u32, octets: Option<u32>) {
        if octets.is_none() && self.shortest.is_none() {
            return;
        }
        self.enlist_lone();
        let ready = self.contains(qp);
        self.passed_over |= RULED;
        self.quick = 0;
        self.shortest.get_or_insert_default().set(qp, octets, ready);
    }

    /// Adds a queue pair at the end of its priority's round; nothing happens where it is a member already. A member
    /// of another priority moves.
    ///
    /// # Panics
    /// When `priority` is above 7.
    #[inline(always)]
    pub fn add(&mut self, qp: u32, priority: u8) {
        assert!(priority < PRIORITIES, "there are eight priorities");
        if self.lone == qp && self.lone_priority == priority {
            self.members[usize::from(priority)] = 1;
            self.ready = 1 << priority;
        } else if self.lone != NOBODY || self.places.get(qp as usize).is_none_or(|it| it.member != priority) {
            self.add_among(qp, priority);
        }
    }

    /// The same where the queue pair is not the lone one.
    fn add_among(&mut self, qp: u32, priority: u8) {
        if self.ready == 0 && self.lone == NOBODY && self.shortest.is_none() && self.rings.are_empty() {
            (self.lone, self.lone_priority) = (qp, priority);
            self.members[usize::from(priority)] = 1;
            self.ready = 1 << priority;
            return;
        }
        self.enlist_lone();
        if qp as usize >= self.places.len() {
            self.places.resize(qp as usize + 1, Place::NOWHERE);
        }
        let place = &mut self.places[qp as usize];
        if place.member == priority {
            return;
        }
        if place.member != NONE {
            leave(&mut self.members, &mut self.ready, place.member);
            self.passed_over += 1;
            self.quick = 0;
        }
        if let Some(shortest) = &mut self.shortest {
            shortest.enter(qp);
        }
        place.member = priority;
        self.members[usize::from(priority)] += 1;
        self.ready |= 1 << priority;
        if self.quick != self.ready {
            self.quick = 0;
        }
        if place.listed & 1 << priority == 0 {
            place.listed |= 1 << priority;
            self.rings.of(self.forward, priority).push_back(qp);
        } else {
            self.passed_over -= 1;
        }
    }

    /// Puts the lone queue pair's entry into its ring.
    fn enlist_lone(&mut self) {
        if self.lone == NOBODY {
            return;
        }
        let (qp, priority, ready) = (self.lone, self.lone_priority, self.ready);
        self.lone = NOBODY;
        if qp as usize >= self.places.len() {
            self.places.resize(qp as usize + 1, Place::NOWHERE);
        }
        let member = if ready == 0 { NONE } else { priority };
        self.places[qp as usize] = Place { member, listed: 1 << priority };
        self.passed_over += u32::from(ready == 0);
        self.rings.of(self.forward, priority).push_back(qp);
    }

    /// Takes a queue pair out, if it is a member.
    #[inline]
    pub fn remove(&mut self, qp: u32) {
        if self.lone == qp {
            self.members[usize::from(self.lone_priority)] = 0;
            self.ready = 0;
        } else if self.lone == NOBODY {
            self.remove_among(qp);
        }
    }

    /// The same where entries are in the rings.
    fn remove_among(&mut self, qp: u32) {
        if let Some(place) = self.places.get_mut(qp as usize)
            && place.member != NONE
        {
            leave(&mut self.members, &mut self.ready, place.member);
            place.member = NONE;
            self.passed_over += 1;
            self.quick = 0;
            if let Some(shortest) = &mut self.shortest {
                shortest.leave(qp);
            }
        }
    }

    /// Whether a queue pair is a member.
    #[inline]
    #[must_use]
    pub fn contains(&self, qp: u32) -> bool {
        if self.lone == qp {
            return self.ready != 0;
        }
        self.places.get(qp as usize).is_some_and(|place| place.member != NONE)
    }

    /// Whether [`take`](Self::take) with the same `open` would find anybody.
    #[inline]
    #[must_use]
    pub fn any(&self, open: u8) -> bool {
        self.ready & open != 0
    }

    /// Takes out the queue pair whose turn it is: of the most urgent priority among `open` (bit p: priority p is not
    /// paused) that has a member, the first in its round.
    #[inline]
    pub fn take(&mut self, open: u8) -> Option<u32> {
        let priority = most_urgent(self.ready & open)?;
        if self.lone != NOBODY {
            self.members[usize::from(priority)] = 0;
            self.ready = 0;
            return Some(core::mem::replace(&mut self.lone, NOBODY));
        }
        // The count says that there is a member, so the search ends; each entry passed over is gone for good.
        loop {
            let qp = self.rings.of(self.forward, priority).pop()?;
            let place = &mut self.places[qp as usize];
            place.listed &= !(1 << priority);
            if place.member != priority {
                self.passed_over -= 1;
                continue;
            }
            if self.shortest.is_some() {
                let shorter = self.shorter(qp, open);
                if shorter.is_some() {
                    self.places[qp as usize].listed |= 1 << priority;
                    self.rings.of(self.forward, priority).push_back(qp);
                }
                let taken = shorter.unwrap_or(qp);
                self.remove(taken);
                return Some(taken);
            }
            leave(&mut self.members, &mut self.ready, place.member);
            place.member = NONE;
            self.quick = 0;
            return Some(qp);
        }
    }

    /// Gives the queue pair that [`take`](Self::take) would take and leaves it a member, so that its turn comes again:
    /// at the end of the round. This is the quick way for one that has more to send;
    /// remove it when it has not.
    #[inline(always)]
    pub fn turn(&mut self, open: u8) -> Option<u32> {
        if self.quick & open != 0 {
            let qp = self.next;
            self.next = self.rings.front().rotate();
            return Some(qp);
        }
        if self.lone != NOBODY {
            return (self.ready & open != 0).then_some(self.lone);
        }
        self.turn_among(open)
    }

    /// The same where entries are in the rings.
    #[inline(never)]
    fn turn_among(&mut self, open: u8) -> Option<u32> {
        let priority = most_urgent(self.ready & open)?;
        if self.passed_over == 0 && self.ready == 1 << priority {
            self.rings.bring_forward(self.forward, priority);
            self.forward = priority;
            self.quick = self.ready;
            let qp = self.rings.front().get(0)?;
            self.next = self.rings.front().rotate();
            return Some(qp);
        }
        let ring = self.rings.of(self.forward, priority);
        loop {
            let qp = ring.get(0)?;
            let place = &mut self.places[qp as usize];
            if place.member != priority {
                place.listed &= !(1 << priority);
                ring.pop();
                self.passed_over -= 1;
                continue;
            }
            ring.rotate();
            return Some(self.shorter(qp, open).unwrap_or(qp));
        }
    }

    /// Asks the processor to fetch what adding and taking will touch.
    #[inline]
    pub fn prefetch(&self) {
        if self.lone != NOBODY {
            return;
        }
        roci_prefetch::prefetch_at(&self.places, 0);
        if let Some(priority) = most_urgent(self.ready) {
            roci_prefetch::prefetch_at(&self.rings.look(self.forward, priority).entries, 0);
        }
    }

    /// Who is likely to be taken `distance` turns after the next: a hint for prefetching, which may name a queue
    /// pair that has left.
    #[inline]
    #[must_use]
    pub fn ahead(&self, open: u8, distance: u32) -> Option<u32> {
        let priority = most_urgent(self.ready & open)?;
        if self.lone != NOBODY {
            return (distance == 0).then_some(self.lone);
        }
        self.rings.look(self.forward, priority).get(distance)
    }

    /// The queue pair that takes the turn which falls to `qp`, if that is another.
    fn shorter(&self, qp: u32, open: u8) -> Option<u32> {
        let shortest = self.shortest.as_ref().filter(|shortest| shortest.orders(qp))?;
        let is_open = |qp: u32| {
            self.places
                .get(qp as usize)
                .is_some_and(|place| place.member != NONE && open & 1 << place.member != 0)
        };
        shortest.first(is_open).filter(|first| *first != qp)
    }
}

#[inline]
fn leave(members: &mut [u32; PRIORITIES as usize], ready: &mut u8, priority: u8) {
    let count = &mut members[usize::from(priority)];
    *count -= 1;
    if *count == 0 {
        *ready &= !(1 << priority);
    }
}

/// The most urgent priority of `set`.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "at most 7")]
fn most_urgent(set: u8) -> Option<u8> {
    set.checked_ilog2().map(|bit| bit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use alloc::vec;
    use proptest::prelude::*;

    const ALL: u8 = u8::MAX;

    #[test]
    fn members_of_one_priority_take_turns() {
        let mut schedule = Schedule::new();
        for qp in [4, 0, 9] {
            schedule.add(qp, 3);
        }
        let mut served = Vec::new();
        for _ in 0..7 {
            let qp = schedule.take(ALL).unwrap();
            served.push(qp);
            schedule.add(qp, 3);
        }
        assert_eq!(served, [4, 0, 9, 4, 0, 9, 4]);
    }

    #[test]
    fn the_most_urgent_open_priority_goes_first() {
        let mut schedule = Schedule::new();
        schedule.add(1, 3);
        schedule.add(2, 6);
        assert_eq!(schedule.take(!(1 << 6)), Some(1), "6 is paused");
        schedule.add(1, 3);
        assert_eq!(schedule.take(ALL), Some(2));
        assert!(!schedule.any(1 << 6));
        assert_eq!(schedule.take(1 << 6), None);
        assert_eq!(schedule.take(ALL), Some(1));
        assert_eq!(schedule.take(ALL), None);
    }

    #[test]
    fn who_left_is_passed_over_and_who_returns_has_one_turn() {
        let mut schedule = Schedule::new();
        for qp in 0..3 {
            schedule.add(qp, 0);
        }
        schedule.remove(0);
        schedule.remove(1);
        schedule.add(1, 0);
        schedule.add(1, 0);
        assert_eq!(schedule.take(ALL), Some(1));
        assert_eq!(schedule.take(ALL), Some(2));
        assert_eq!(schedule.take(ALL), None);
    }

    #[test]
    fn a_host_with_two_queue_pairs_spends_little() {
        let mut schedule = Schedule::new();
        schedule.prepare(2, 3);
        let heap = schedule.rings.by_place.iter().map(|ring| ring.entries.len() * 4).sum::<usize>()
            + schedule.places.capacity() * size_of::<Place>();
        assert!(heap <= 16 && size_of::<Schedule>() <= 272, "{heap} and {}", size_of::<Schedule>());
    }

    proptest! {
        /// The plain set: a queue per priority in which a queue pair that left keeps its place as a ghost. With few queue
        /// pairs one is often alone.
        #[test]
        fn it_serves_as_plain_queues_would(
            steps in prop_oneof![
                prop::collection::vec((0u8..4, 0u32..20, 0u8..8, any::<u8>()), 1..500),
                prop::collection::vec((0u8..4, 0u32..2, 2u8..4, any::<u8>()), 1..500),
            ],
        ) {
            let mut schedule = Schedule::new();
            let mut queues: Vec<VecDeque<u32>> = vec![VecDeque::new(); 8];
            let mut member = [NONE; 20];
            for (kind, qp, priority, open) in steps {
                match kind {
                    0 => {
                        schedule.add(qp, priority);
                        member[qp as usize] = priority;
                        let queue = &mut queues[usize::from(priority)];
                        if !queue.contains(&qp) {
                            queue.push_back(qp);
                        }
                    }
                    1 => {
                        schedule.remove(qp);
                        member[qp as usize] = NONE;
                    }
                    _ => {
                        let best = member.iter().copied().filter(|&p| p != NONE && open & 1 << p != 0).max();
                        let due = best.map(|p| loop {
                            let qp = queues[usize::from(p)].pop_front().unwrap();
                            if member[qp as usize] == p {
                                member[qp as usize] = NONE;
                                break qp;
                            }
                        });
                        prop_assert_eq!(schedule.any(open), due.is_some());
                        if kind == 2 {
                            prop_assert_eq!(schedule.take(open), due);
                        } else {
                            prop_assert_eq!(schedule.turn(open), due);
                            if let (Some(qp), Some(p)) = (due, best) {
                                member[qp as usize] = p;
                                queues[usize::from(p)].push_back(qp);
                            }
                        }
                    }
                }
                for qp in 0..20 {
                    prop_assert_eq!(schedule.contains(qp), member[qp as usize] != NONE);
                }
            }
        }
    }
}
