//! Which messages of an unreliable connection have been taken, so that one which the network doubles does not stand for one that is lost.
//!
//! Nothing is kept while all comes in order. From the first packet on that does not, one bit for each of the last PSNs says whether a
//! message that begins there is still missing.

use roci_units::Psn;

/// So many PSNs back it is known what was taken.
pub(crate) const KEPT: u32 = 1024;
const WORDS: usize = KEPT as usize / 64;

/// What is missing of the last [`KEPT`] packets.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    /// The PSN after the furthest packet that is known of.
    newest: Psn,
    /// A bit for each PSN before, modulo [`KEPT`].
    missing: [u64; WORDS],
    /// Whether the message under way was taken before.
    pub(super) again: bool,
    /// How many were taken again.
    pub(crate) doubled: u32,
}

/// Where the first packet of a message lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Beyond all that is known of.
    Ahead,
    /// Behind the furthest packet; nothing was taken from there before.
    Late,
    /// Behind the furthest packet, and a message was taken from there.
    Again,
    /// Too far behind for anything to be known.
    Unknown,
}

impl Taken {
    /// All packets before `newest` have come in order.
    pub(super) const fn new(newest: Psn) -> Self {
        Self { newest, missing: [0; WORDS], again: false, doubled: 0 }
    }

    /// All packets before `to` are known of now: those since the furthest one came in order, or are `missing`. Nothing where `to` is no
    /// further.
    pub(super) fn pass(&mut self, to: Psn, missing: bool) {
        let new = u32::try_from(to.since(self.newest)).unwrap_or(0);
        for back in 1..=new.min(KEPT) {
            self.set(to.minus(back), missing);
        }
        self.newest = self.newest.plus(new);
    }

    /// The message that begins at `first` is dropped: it is missing.
    pub(super) fn drop(&mut self, first: Psn) {
        if self.knows(first) {
            self.set(first, true);
        }
    }

    /// A message begins at `first`.
    pub(super) fn begin(&mut self, first: Psn) -> Place {
        let place = match self.newest.since(first) {
            ..=0 => Place::Ahead,
            _ if !self.knows(first) => Place::Unknown,
            _ if self.is_missing(first) => Place::Late,
            _ => Place::Again,
        };
        match place {
            Place::Ahead => self.pass(first, true),
            // The sender may have begun anew elsewhere.
            Place::Unknown => *self = Self { doubled: self.doubled, ..Self::new(first) },
            Place::Late => self.set(first, false),
            Place::Again => {}
        }
        self.again = place == Place::Again;
        place
    }

    fn knows(&self, psn: Psn) -> bool {
        (1..=KEPT.cast_signed()).contains(&self.newest.since(psn))
    }

    fn is_missing(&self, psn: Psn) -> bool {
        let (word, bit) = place(psn);
        self.missing[word] & bit != 0
    }

    fn set(&mut self, psn: Psn, missing: bool) {
        let (word, bit) = place(psn);
        if missing {
            self.missing[word] |= bit;
        } else {
            self.missing[word] &= !bit;
        }
    }
}

/// The word and the bit of a PSN.
const fn place(psn: Psn) -> (usize, u64) {
    let place = psn.get() % KEPT;
    (place as usize / 64, 1 << (place % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_passed_over_is_late_once_and_then_comes_again() {
        let mut taken = Taken::new(Psn::new(0x00ff_fffe));
        assert_eq!(taken.begin(Psn::new(2)), Place::Ahead, "four PSNs are passed over");
        taken.pass(Psn::new(4), false);
        for psn in [0x00ff_fffe, 0x00ff_ffff, 0, 1] {
            assert_eq!(taken.begin(Psn::new(psn)), Place::Late, "{psn}");
            assert_eq!(taken.begin(Psn::new(psn)), Place::Again, "{psn}");
        }
        assert_eq!(taken.begin(Psn::new(3)), Place::Again, "it came in order");
        taken.drop(Psn::new(3));
        assert_eq!(taken.begin(Psn::new(3)), Place::Late, "it was dropped");
    }

    #[test]
    fn so_many_packets_back_it_is_known_and_no_further() {
        let mut taken = Taken::new(Psn::new(5_000));
        assert_eq!(taken.begin(Psn::new(5_000 - KEPT)), Place::Again);
        assert_eq!(taken.begin(Psn::new(5_000 - KEPT - 1)), Place::Unknown);
        // From there on it is as if all had begun anew.
        assert_eq!(taken.begin(Psn::new(5_000 - KEPT - 2)), Place::Again);
        assert_eq!(taken.begin(Psn::new(9_000)), Place::Ahead);
        assert_eq!(taken.begin(Psn::new(9_000 - KEPT)), Place::Late, "all of them were passed over");
    }
}
