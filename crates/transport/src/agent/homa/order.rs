//! Who is granted next: messages with octets to be granted, the one with the fewest to come first, one of each sender.
//!
//! A second message of the same sender would not bring more: while he is busy elsewhere both wait, and a place is lost that another
//! sender would have filled the link from. As long as his first has octets to be granted his others wait behind it.

use alloc::vec::Vec;

/// A message's place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// Octets that have still to come.
    pub(super) remaining: u32,
    /// Of several that are as short, who came there first goes first. Were it the oldest, messages of equal lengths whose packets come in
    /// turns, the oldest's last, would overtake each other with each packet, and all be granted.
    pub(super) since: u64,
    pub(super) place: u32,
}

/// The messages that have octets to be granted.
#[derive(Debug)]
pub(super) struct Order {
    /// All of them, by sender.
    waiting: Vec<(u64, Rank)>,
    /// The first of each sender.
    first: Vec<Rank>,
}

impl Order {
    pub(super) const fn new() -> Self {
        Self { waiting: Vec::new(), first: Vec::new() }
    }

    /// The first message of each sender.
    pub(super) fn first(&self) -> &[Rank] {
        &self.first
    }

    pub(super) fn join(&mut self, sender: u64, rank: Rank) {
        let Err(at) = self.waiting.binary_search(&(sender, rank)) else { return };
        let behind = self.of_sender(sender, at);
        self.waiting.insert(at, (sender, rank));
        if self.is_first(at) {
            match behind {
                Some(behind) => move_up(&mut self.first, behind, rank),
                None => insert(&mut self.first, rank),
            }
        }
    }

    pub(super) fn leave(&mut self, sender: u64, rank: Rank) {
        let Ok(at) = self.waiting.binary_search(&(sender, rank)) else { return };
        let was_first = self.is_first(at);
        self.waiting.remove(at);
        if was_first {
            if let Ok(at) = self.first.binary_search(&rank) {
                self.first.remove(at);
            }
            if let Some(next) = self.of_sender(sender, at) {
                insert(&mut self.first, next);
            }
        }
    }

    /// Fewer octets of a message have still to come, or as many. It joins if it was not there.
    pub(super) fn get_on(&mut self, sender: u64, before: Rank, after: Rank) {
        let Ok(at) = self.waiting.binary_search(&(sender, before)) else { return self.join(sender, after) };
        let to = self.waiting[..at].partition_point(|other| *other < (sender, after));
        // Who was first before: itself or, from now on, the one behind it.
        let first = self.waiting[to].1;
        self.waiting[to..=at].rotate_right(1);
        self.waiting[to].1 = after;
        if self.is_first(to) {
            move_up(&mut self.first, first, after);
        }
    }

    /// The places of all that wait.
    pub(super) fn places(&self) -> impl ExactSizeIterator<Item = u32> {
        self.waiting.iter().map(|(_, rank)| rank.place)
    }

    /// The message that stands at `at`, if it is one of the sender's.
    fn of_sender(&self, sender: u64, at: usize) -> Option<Rank> {
        self.waiting.get(at).filter(|(other, _)| *other == sender).map(|&(_, rank)| rank)
    }

    /// Whether the message at `at` is the first of its sender.
    fn is_first(&self, at: usize) -> bool {
        at == 0 || self.waiting[at - 1].0 != self.waiting[at].0
    }
}

fn insert(ranks: &mut Vec<Rank>, rank: Rank) {
    if let Err(at) = ranks.binary_search(&rank) {
        ranks.insert(at, rank);
    }
}

/// Puts `after` in the place of `before`, and further to the front where it belongs there.
fn move_up(ranks: &mut [Rank], before: Rank, after: Rank) {
    if let Ok(at) = ranks.binary_search(&before) {
        let to = ranks[..at].partition_point(|other| *other < after);
        ranks[to..=at].rotate_right(1);
        ranks[to] = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn rank(remaining: u32, place: u32) -> Rank {
        Rank { remaining, since: place as u64, place }
    }

    #[test]
    fn a_sender_is_in_the_order_once_and_his_next_message_follows_when_the_first_has_left() {
        let mut order = Order::new();
        order.join(7, rank(30, 0));
        order.join(7, rank(20, 1));
        order.join(8, rank(25, 2));
        assert_eq!(order.first(), [rank(20, 1), rank(25, 2)]);
        order.leave(7, rank(20, 1));
        assert_eq!(order.first(), [rank(25, 2), rank(30, 0)]);
    }

    #[test]
    fn who_gets_on_overtakes_his_senders_others_and_other_senders() {
        let mut order = Order::new();
        for (sender, rank) in [(7, rank(20, 0)), (7, rank(30, 1)), (8, rank(10, 2))] {
            order.join(sender, rank);
        }
        order.get_on(7, rank(30, 1), rank(21, 1));
        assert_eq!(order.first(), [rank(10, 2), rank(20, 0)]);
        order.get_on(7, rank(21, 1), rank(5, 1));
        assert_eq!(order.first(), [rank(5, 1), rank(10, 2)]);
        order.leave(7, rank(5, 1));
        assert_eq!(order.first(), [rank(10, 2), rank(20, 0)]);
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_each_senders_shortest(
            steps in proptest::collection::vec((0usize..12, 0u32..4, 0u32..5), 1..200),
        ) {
            let mut order = Order::new();
            // What of each message has still to come, if it waits. Three senders have four each.
            let mut waiting = [None; 12];
            for (message, what, octets) in steps {
                let (sender, place) = (message as u64 / 4, u32::try_from(message).unwrap());
                match (what, waiting[message]) {
                    (0, Some(remaining)) => {
                        order.leave(sender, rank(remaining, place));
                        waiting[message] = None;
                    }
                    (_, Some(remaining)) => {
                        let after = remaining.saturating_sub(octets);
                        order.get_on(sender, rank(remaining, place), rank(after, place));
                        waiting[message] = Some(after);
                    }
                    (0, None) => order.leave(sender, rank(octets, place)),
                    (1, None) => {
                        order.get_on(sender, rank(octets + 20, place), rank(octets + 9, place));
                        waiting[message] = Some(octets + 9);
                    }
                    (_, None) => {
                        order.join(sender, rank(octets + 9, place));
                        waiting[message] = Some(octets + 9);
                    }
                }
                let shortest = |messages: &[Option<u32>], from: u32| {
                    (from..).zip(messages).filter_map(|(place, left)| Some(rank((*left)?, place))).min()
                };
                let mut expected: Vec<Rank> =
                    (0..12).step_by(4).zip(waiting.chunks(4)).filter_map(|(at, own)| shortest(own, at)).collect();
                expected.sort_unstable();
                prop_assert_eq!(order.first(), expected);
            }
        }
    }
}
