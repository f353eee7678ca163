//! A receiver's loss recovery state with its bitmap on a slow path (SRNIC, NSDI 2023, §4.4.2, Figures 7 and 8).
//!
//! In order a receiver keeps the packet expected (ePSN) alone. The first gap brings it into the *loss recovery state*:
//! from then on the fast path only places payload, notes the range `[left, right]` of the most advanced run of packets,
//! and passes the number of each packet on as *metadata*; the slow path fills the bitmap and answers with a new ePSN.
//!
//! While the slow path decides, more packets come, so its ePSN is seldom the latest. The state ends all the same when
//! the ePSN lies in `[left, right + 1]`: all before it have arrived, and all from `left` to `right` as well, so that
//! `right + 1` is expected now. What is still on its way to the slow path then lies before `right + 1` and says nothing
//! any more.

use super::pool::{Pool, Slot};
use alloc::collections::VecDeque;
use roci_units::Psn;

/// The plane of a slot that is used.
const ARRIVED: u32 = 0;

/// One receiver in the loss recovery state.
#[derive(Debug)]
pub struct Onloaded {
    /// The most advanced run of packets: its first and its last. The fast path's.
    left: Psn,
    right: Psn,
    /// Numbers of packets that the slow path has not dealt with, oldest first.
    metadata: VecDeque<Psn>,
    /// How many of them it has been asked about.
    asked: u32,
    /// The slow path's ePSN, and its bitmap of what arrived beyond.
    expected: Psn,
    bitmap: Slot,
}

/// What slow paths have done, or would have where the decision is immediate, for whoever charges for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowPath {
    /// Times that a queue pair's side went into the loss recovery state.
    pub entries: u64,
    /// Times that one left it.
    pub exits: u64,
    /// Packets of which the metadata went to the slow path: data out of order, NACKs and selective acknowledgements.
    pub packets: u64,
    /// Bitmaps read: once for each packet, to find what is missing.
    pub bitmap_reads: u64,
    /// Bitmaps written: once for each packet that was not known to have arrived.
    pub bitmap_writes: u64,
}

impl SlowPath {
    /// Adds `other`'s counts.
    pub const fn add(&mut self, other: &Self) {
        self.entries += other.entries;
        self.exits += other.exits;
        self.packets += other.packets;
        self.bitmap_reads += other.bitmap_reads;
        self.bitmap_writes += other.bitmap_writes;
    }
}

impl Onloaded {
    /// Goes into the loss recovery state: `psn` came where `expected` was. `None` where the pool has no bitmap left;
    /// the packet must not be kept then.
    #[must_use]
    pub fn enter(pool: &mut Pool, expected: Psn, psn: Psn) -> Option<Self> {
        let (bitmap, mut metadata) = pool.take_with_queue()?;
        metadata.push_back(psn);
        Some(Self { left: psn, right: psn, metadata, asked: 0, expected, bitmap })
    }

    /// Fast path: a packet arrived that is not older than the fast path's ePSN, and less than a window ahead of it.
    pub fn arrived(&mut self, psn: Psn) {
        let ahead = psn.since(self.right);
        if ahead > 1 {
            self.left = psn;
        }
        if ahead > 0 {
            self.right = psn;
        }
        self.metadata.push_back(psn);
    }

    /// The packet after the furthest that came.
    #[must_use]
    pub const fn reach(&self) -> Psn {
        self.right.plus(1)
    }

    /// Whether there is metadata that the slow path has not been asked about.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.metadata.len() > self.asked as usize
    }

    /// Whether the slow path has been asked and has not answered.
    #[must_use]
    pub const fn is_out(&self) -> bool {
        self.asked > 0
    }

    /// Hands all metadata to the slow path; gives how many there are. What comes after it waits.
    #[expect(clippy::cast_possible_truncation, reason = "fewer than packets in flight")]
    pub fn ask(&mut self) -> u32 {
        self.asked = self.metadata.len() as u32;
        self.asked
    }

    /// Slow path: fills the bitmap with what was asked, and answers with its ePSN.
    pub fn decide(&mut self, pool: &mut Pool, done: &mut SlowPath) -> Psn {
        for psn in self.metadata.drain(..core::mem::take(&mut self.asked) as usize) {
            done.packets += 1;
            done.bitmap_reads += 1;
            if psn.since(self.expected) < 0 {
                continue;
            }
            let mut arrived = pool.plane_mut(&self.bitmap, ARRIVED);
            done.bitmap_writes += u64::from(arrived.set(psn));
            if psn == self.expected {
                let window = pool.packets();
                let end = pool.plane(&self.bitmap, ARRIVED).first_clear(psn, window);
                let count = end.map_or(window, |end| end.since(psn).unsigned_abs());
                pool.plane_mut(&self.bitmap, ARRIVED).clear_range(psn, count);
                self.expected = psn.plus(count);
            }
        }
        self.expected
    }

    /// Fast path: the slow path's ePSN has come. Gives the packet expected where that ends the loss recovery state.
    #[must_use]
    pub const fn exit(&self, expected: Psn) -> Option<Psn> {
        if expected.since(self.left) >= 0 && expected.since(self.right) <= 1 {
            return Some(self.right.plus(1));
        }
        None
    }

    /// Whether the slow path knows that `psn` arrived.
    #[must_use]
    pub fn knows(&self, pool: &Pool, psn: Psn) -> bool {
        pool.plane(&self.bitmap, ARRIVED).test(psn)
    }

    /// How many packets have come that are not before `from`; those of which the slow path has yet to hear may be counted twice
    /// where they came twice.
    #[must_use]
    pub fn beyond(&self, pool: &Pool, from: Psn) -> u32 {
        let known = self.expected.since(from).max(0).unsigned_abs();
        let reach = self.reach().since(self.expected).max(0).unsigned_abs().min(pool.packets());
        let untold = u32::try_from(self.metadata.len()).unwrap_or(u32::MAX);
        known + pool.plane(&self.bitmap, ARRIVED).count(self.expected, reach) + untold
    }

    /// Gives the bitmap back.
    pub fn leave(self, pool: &mut Pool) {
        pool.give_with_queue(self.bitmap, self.metadata);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    /// A receiver as the engine drives it, with a slow path that takes as long as it likes.
    struct Receiver {
        expected: u32,
        onloaded: Option<Onloaded>,
        pool: Pool,
        done: SlowPath,
        arrived: u32,
        /// Exits at an ePSN that was not the latest.
        races: u32,
    }

    const FIRST: u32 = 0x00ff_fffe;

    impl Receiver {
        fn new() -> Self {
            let pool = Pool::new(64, 1, 1);
            Self { expected: 0, onloaded: None, pool, done: SlowPath::default(), arrived: 0, races: 0 }
        }

        fn psn(index: u32) -> Psn {
            Psn::new(FIRST).plus(index)
        }

        fn prefix(&self) -> u32 {
            self.arrived.trailing_ones()
        }

        fn packet(&mut self, index: u32) {
            self.arrived |= 1 << index;
            match &mut self.onloaded {
                _ if index < self.expected => {}
                Some(onloaded) => onloaded.arrived(Self::psn(index)),
                None if index == self.expected => self.expected += 1,
                None => {
                    let expected = Self::psn(self.expected);
                    self.onloaded = Onloaded::enter(&mut self.pool, expected, Self::psn(index));
                }
            }
        }

        /// What the slow path may do next, if anything.
        fn has_slow_step(&self) -> bool {
            self.onloaded.as_ref().is_some_and(|onloaded| onloaded.is_out() || onloaded.waits())
        }

        fn slow_step(&mut self) {
            let Some(onloaded) = &mut self.onloaded else { return };
            if !onloaded.is_out() {
                onloaded.ask();
                return;
            }
            let expected = onloaded.decide(&mut self.pool, &mut self.done);
            let index = |psn: Psn| psn.since(Psn::new(FIRST)).unsigned_abs();
            assert!(index(expected) >= self.expected, "it never goes back");
            self.expected = index(expected);
            if let Some(exit) = onloaded.exit(expected) {
                self.races += u32::from(exit != expected);
                self.expected = index(exit);
                self.onloaded.take().unwrap().leave(&mut self.pool);
                assert_eq!(self.expected, self.prefix(), "on exit all that arrived is in order");
            }
            assert!(self.expected <= self.prefix(), "nothing is taken for arrived that is not");
        }
    }

    /// All ways in which `packets`, in any order, and the steps of the slow path may follow each other.
    fn explore(packets: &[u32], visit: &mut impl FnMut(&Receiver)) -> u32 {
        let mut choices: Vec<(usize, usize)> = Vec::new();
        let mut ways = 0;
        loop {
            let mut receiver = Receiver::new();
            let mut left = packets.to_vec();
            let mut depth = 0;
            loop {
                let slow = usize::from(receiver.has_slow_step());
                let options = left.len() + slow;
                if options == 0 {
                    break;
                }
                if depth == choices.len() {
                    choices.push((0, options));
                }
                let choice = choices[depth].0;
                depth += 1;
                if choice < left.len() {
                    receiver.packet(left.remove(choice));
                } else {
                    receiver.slow_step();
                }
            }
            assert_eq!(receiver.expected, receiver.prefix(), "{packets:?} by {choices:?}");
            let gap = receiver.arrived >> receiver.prefix() != 0;
            assert_eq!(receiver.onloaded.is_some(), gap, "{packets:?} by {choices:?}");
            assert_eq!(receiver.pool.taken(), u32::from(gap));
            visit(&receiver);
            ways += 1;
            while let Some((choice, options)) = choices.pop() {
                if choice + 1 < options {
                    choices.push((choice + 1, options));
                    break;
                }
            }
            if choices.is_empty() {
                return ways;
            }
        }
    }

    #[test]
    fn however_packets_and_the_slow_path_interleave_the_exit_is_found_and_right() {
        let (mut ways, mut races, mut entries) = (0, 0, 0);
        for packets in [
            vec![0, 1, 2, 3],
            vec![0, 1, 2, 3, 4],
            // One is never sent again, one comes twice, both.
            vec![0, 1, 3, 4],
            vec![0, 1, 1, 2, 3],
            vec![0, 1, 2, 3, 3],
            vec![0, 0, 2, 3, 4],
        ] {
            ways += explore(&packets, &mut |receiver| {
                races += receiver.races;
                entries += u32::from(receiver.done.packets > 0);
            });
        }
        assert!(ways > 10_000 && entries > ways / 2, "{ways} ways, {entries} through the slow path");
        assert!(races > 100, "packets overtook the slow path's ePSN {races} times in {ways} ways");
    }

    #[test]
    fn an_epsn_between_the_runs_keeps_it_in_the_loss_recovery_state() {
        let mut pool = Pool::new(64, 1, 1);
        let mut done = SlowPath::default();
        let mut onloaded = Onloaded::enter(&mut pool, Psn::new(5), Psn::new(6)).unwrap();
        onloaded.arrived(Psn::new(8));
        onloaded.arrived(Psn::new(5));
        assert_eq!(onloaded.ask(), 3);
        onloaded.arrived(Psn::new(9));
        let expected = onloaded.decide(&mut pool, &mut done);
        assert_eq!((expected, onloaded.exit(expected)), (Psn::new(7), None), "7 is missing still");
        onloaded.arrived(Psn::new(7));
        assert_eq!(onloaded.ask(), 2);
        onloaded.arrived(Psn::new(10));
        let expected = onloaded.decide(&mut pool, &mut done);
        assert_eq!(expected, Psn::new(10), "which the slow path has not heard of");
        assert_eq!(onloaded.exit(expected), Some(Psn::new(11)));
        assert_eq!((done.packets, done.bitmap_writes), (5, 5));
        onloaded.leave(&mut pool);
        assert_eq!(pool.taken(), 0);
    }

    #[test]
    fn without_a_bitmap_left_it_cannot_enter() {
        let mut pool = Pool::new(64, 1, 0);
        assert!(Onloaded::enter(&mut pool, Psn::new(5), Psn::new(7)).is_none());
    }
}
