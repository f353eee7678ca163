//! The cores that run a program: one for each side of each pair, made when its first event comes.

use super::csr::Side;
use alloc::vec::Vec;
use roci_hart::Core;

/// The cores of a NIC's pairs. A queue pair is its pair's whose number is the queue pair's modulo theirs (SwCC §4.2.1), so
/// what a program keeps in a core's memory is seen by the queue pairs of that pair alone.
#[derive(Clone, Debug)]
pub(super) struct Cores {
    pairs: u32,
    /// How many cores of each side have a memory of their own: as many as there are pairs where the program
    /// [keeps](super::keeps) something there, else one, which cannot be told from many.
    apart: [u32; 2],
    first: [Option<Core>; 2],
    others: Vec<[Option<Core>; 2]>,
}

impl Cores {
    /// Cores of one pair.
    pub(super) const ONE: Self = Self { pairs: 1, apart: [1; 2], first: [None, None], others: Vec::new() };

    /// Cores of so many pairs, none of which has begun, of a program whose sides keep something or do not.
    pub(super) fn new(pairs: u32, keeps: [bool; 2]) -> Self {
        let pairs = pairs.max(1);
        Self { pairs, apart: keeps.map(|keeps| if keeps { pairs } else { 1 }), ..Self::ONE }
    }

    /// How many pairs there are.
    pub(super) const fn pairs(&self) -> u32 {
        self.pairs
    }

    /// The place of the core of `side` that hears of queue pair `qpn`.
    #[inline]
    pub(super) fn of(&mut self, side: Side, qpn: u32) -> &mut Option<Core> {
        match self.apart[side as usize] {
            1 => &mut self.first[side as usize],
            apart => self.of_pair(side, qpn % apart),
        }
    }

    fn of_pair(&mut self, side: Side, pair: u32) -> &mut Option<Core> {
        let Some(other) = pair.checked_sub(1) else { return &mut self.first[side as usize] };
        let other = other as usize;
        if other >= self.others.len() {
            self.others.resize_with(other + 1, Default::default);
        }
        &mut self.others[other][side as usize]
    }

    /// Those that hear of queue pair `qpn`, alone.
    pub(super) fn that_hear_of(&self, qpn: u32) -> Self {
        let core = |side: Side| {
            let pair = qpn % self.apart[side as usize];
            match pair.checked_sub(1) {
                None => self.first[side as usize].clone(),
                Some(other) => self.others.get(other as usize).and_then(|both| both[side as usize].clone()),
            }
        };
        Self { first: Side::ALL.map(core), ..Self::ONE }
    }

    /// How many cores have begun.
    #[cfg(test)]
    pub(super) fn begun(&self) -> usize {
        self.first.iter().chain(self.others.iter().flatten()).flatten().count()
    }
}
