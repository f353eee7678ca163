//! The order of queue pairs by what is left of their messages.

use alloc::vec::Vec;

/// What stands for "not known".
const UNKNOWN: u32 = u32::MAX;

/// Octets left of the messages of some queue pairs, and the order of those that are ready.
#[derive(Clone, Debug, Default)]
pub(super) struct Shortest {
    left: Vec<u32>,
    /// The ready ones whose octets are known, the fewest last, where the one that is served comes and goes; the number
    /// breaks ties.
    ready: Vec<(u32, u32)>,
}

impl Shortest {
    fn left(&self, qp: u32) -> u32 {
        self.left.get(qp as usize).copied().unwrap_or(UNKNOWN)
    }

    /// Whether the queue pair stands in this order.
    pub(super) fn orders(&self, qp: u32) -> bool {
        self.left(qp) != UNKNOWN
    }

    /// The first for which `is_open` holds.
    pub(super) fn first(&self, is_open: impl Fn(u32) -> bool) -> Option<u32> {
        self.ready.iter().rev().map(|&(_, qp)| qp).find(|&qp| is_open(qp))
    }

    /// What is left changes, of a queue pair that is `ready` or not.
    pub(super) fn set(&mut self, qp: u32, octets: Option<u32>, ready: bool) {
        self.leave(qp);
        if qp as usize >= self.left.len() {
            self.left.resize(qp as usize + 1, UNKNOWN);
        }
        self.left[qp as usize] = octets.map_or(UNKNOWN, |octets| octets.min(UNKNOWN - 1));
        if ready {
            self.enter(qp);
        }
    }

    /// The queue pair has become ready.
    pub(super) fn enter(&mut self, qp: u32) {
        let left = self.left(qp);
        if left != UNKNOWN
            && let Err(place) = self.place((left, qp))
        {
            self.ready.insert(place, (left, qp));
        }
    }

    /// The queue pair is ready no longer.
    pub(super) fn leave(&mut self, qp: u32) {
        let left = self.left(qp);
        if left != UNKNOWN
            && let Ok(place) = self.place((left, qp))
        {
            self.ready.remove(place);
        }
    }

    /// Where an entry is among the ready ones, or would be.
    fn place(&self, entry: (u32, u32)) -> Result<usize, usize> {
        self.ready.binary_search_by(|other| entry.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use crate::schedule::Schedule;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const ALL: u8 = u8::MAX;

    #[test]
    fn the_message_with_the_least_left_goes_first_whatever_its_priority() {
        let mut schedule = Schedule::new();
        for (qp, priority, left) in [(1, 6, 9_000), (2, 0, 500), (3, 3, 4_000)] {
            schedule.set_left(qp, Some(left));
            schedule.add(qp, priority);
        }
        assert_eq!((schedule.turn(ALL), schedule.turn(ALL)), (Some(2), Some(2)), "it stays a member");
        schedule.set_left(1, Some(100));
        assert_eq!((schedule.turn(ALL), schedule.take(ALL)), (Some(1), Some(1)));
        assert_eq!(schedule.take(!1), Some(3), "priority 0 is paused");
        assert_eq!((schedule.take(ALL), schedule.take(ALL)), (Some(2), None));
    }

    #[test]
    fn those_without_a_known_rest_take_their_turns_among_the_others() {
        let mut schedule = Schedule::new();
        schedule.set_left(1, Some(9_000));
        schedule.set_left(2, Some(500));
        for qp in [0, 1, 2] {
            schedule.add(qp, 3);
        }
        let served: Vec<_> = (0..6).filter_map(|_| schedule.turn(ALL)).collect();
        assert_eq!(served, [0, 2, 2, 0, 2, 2]);
        schedule.add(4, 5);
        assert_eq!(schedule.turn(ALL), Some(4), "it is more urgent than all of them");
        schedule.remove(4);
        schedule.set_left(2, None);
        schedule.remove(0);
        let served: Vec<_> = (0..4).filter_map(|_| schedule.turn(ALL)).collect();
        assert_eq!(served, [1, 2, 1, 2]);
    }

    proptest! {
        /// Whatever becomes of rests and members: who is served is a member, open, and has the least left.
        #[test]
        fn who_is_served_has_the_least_left(
            steps in prop::collection::vec((0u32..6, 0u8..4, 0u32..50, any::<u8>(), 0u8..8), 1..200),
        ) {
            let mut schedule = Schedule::new();
            let mut members: [Option<u8>; 6] = [None; 6];
            let mut left = [0u32; 6];
            for qp in 0..6 {
                schedule.set_left(qp, Some(0));
            }
            for (qp, what, octets, open, priority) in steps {
                let at = qp as usize;
                match what {
                    0 => {
                        schedule.add(qp, priority);
                        members[at] = Some(priority);
                    }
                    1 => {
                        schedule.remove(qp);
                        members[at] = None;
                    }
                    _ => {
                        schedule.set_left(qp, Some(octets));
                        left[at] = octets;
                    }
                }
                let is_open = |n: &u32| members[*n as usize].is_some_and(|priority| open & 1 << priority != 0);
                let expected = (0..6).filter(is_open).min_by_key(|&n| (left[n as usize], n));
                prop_assert_eq!(schedule.turn(open), expected);
                if octets % 3 == 0 {
                    prop_assert_eq!(schedule.take(open), expected);
                    if let Some(n) = expected {
                        members[n as usize] = None;
                    }
                }
            }
        }
    }
}
