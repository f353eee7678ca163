//! Queue pair numbers: drawn at random on the wire, dense in the engine.

use crate::io::steer::SLOTS;
use roci_units::Qpn;

/// Numbers with the shard's remainder: 2²⁴ / 64.
const COUNT: usize = (1 << 24) / SLOTS as usize;
/// What the engine calls the first queue pair.
const FIRST: u32 = 2;
/// The number for management datagrams.
pub(crate) const MANAGEMENT: Qpn = Qpn::new(1);

/// Which queue pair has which number. Untouched parts of the table take no memory.
#[derive(Debug)]
pub(crate) struct Numbers {
    slot: u32,
    /// One more than the queue pair's place, by the number's upper 18 bits.
    places: Vec<u32>,
    management: u32,
}

impl Numbers {
    pub(crate) fn new(slot: u32) -> Self {
        Self { slot, places: vec![0; COUNT], management: 0 }
    }

    /// Draws a number for the queue pair at `place`.
    pub(crate) fn draw(&mut self, place: u32) -> Qpn {
        loop {
            let drawn = random() >> 14;
            let qpn = Qpn::new(drawn * SLOTS + self.slot);
            if qpn.get() < FIRST {
                continue;
            }
            let entry = &mut self.places[drawn as usize];
            if *entry == 0 {
                *entry = place + 1;
                return qpn;
            }
        }
    }

    /// Gives the management number to the queue pair at `place`, if nobody has it.
    pub(crate) fn manage(&mut self, place: u32) -> Option<Qpn> {
        (self.management == 0).then(|| {
            self.management = place + 1;
            MANAGEMENT
        })
    }

    pub(crate) fn remove(&mut self, qpn: Qpn) {
        if qpn == MANAGEMENT {
            self.management = 0;
        } else {
            self.places[(qpn.get() / SLOTS) as usize] = 0;
        }
    }

    /// The place of the queue pair with this number.
    #[inline]
    pub(crate) fn find(&self, qpn: Qpn) -> Option<u32> {
        let entry = if qpn.get() % SLOTS == self.slot && qpn != MANAGEMENT {
            self.places[(qpn.get() / SLOTS) as usize]
        } else if qpn == MANAGEMENT {
            self.management
        } else {
            0
        };
        entry.checked_sub(1)
    }
}

/// The engine's number of the queue pair at `place`.
pub(crate) const fn inner(place: u32) -> Qpn {
    Qpn::new(place + FIRST)
}

/// The place of the queue pair that the engine numbers so.
pub(crate) const fn place_of(inner: Qpn) -> u32 {
    inner.get().wrapping_sub(FIRST)
}

/// Thirty-two bits that nobody can guess.
///
/// # Panics
/// Where the operating system has no entropy to give, for then nothing that is to be unpredictable would be.
pub(crate) fn random() -> u32 {
    #[expect(clippy::expect_used, reason = "see above")]
    getrandom::u32().expect("entropy of the operating system")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_numbers_have_the_shards_remainder_and_lead_back() {
        let mut numbers = Numbers::new(1);
        let drawn: Vec<Qpn> = (0..1000).map(|place| numbers.draw(place)).collect();
        for (place, qpn) in (0..).zip(&drawn) {
            assert_eq!((qpn.get() % SLOTS, numbers.find(*qpn)), (1, Some(place)));
            assert!(qpn.get() >= 2, "0 and 1 are for management");
        }
        assert_eq!(numbers.find(MANAGEMENT), None);
        assert_eq!(numbers.manage(7), Some(MANAGEMENT));
        assert_eq!((numbers.manage(8), numbers.find(MANAGEMENT)), (None, Some(7)));
        numbers.remove(drawn[3]);
        assert_eq!(numbers.find(drawn[3]), None);
    }

    #[test]
    fn drawn_numbers_do_not_repeat_from_one_device_to_the_next() {
        let draw = || {
            (0..8)
                .map({
                    let mut n = Numbers::new(0);
                    move |p| n.draw(p)
                })
                .collect::<Vec<_>>()
        };
        assert_ne!(draw(), draw());
    }
}
