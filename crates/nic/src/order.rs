//! Whether data arrive in the order in which they were sent (RFC 4737).

use roci_units::Psn;

/// What has arrived of the data of each queue pair, by its place in the engine.
#[derive(Debug, Default)]
pub(crate) struct Order {
    seen: Vec<Seen>,
}

/// What has arrived for one queue pair, in three words.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// The flow that it is connected by: packets of one before it, which had its number, count for nothing.
    flow: u32,
    /// NextExp (§3.3): one more than the highest PSN that has come; [`NOTHING`] before the first.
    next: u32,
    reordered: u32,
}

/// No PSN.
const NOTHING: u32 = u32::MAX;

impl Seen {
    /// Nothing of `flow`.
    const fn nothing_of(flow: u32) -> Self {
        Self { flow, next: NOTHING, reordered: 0 }
    }
}

impl Order {
    /// The queue pair at `place` is a new one, connected by `flow`.
    pub(crate) fn begin(&mut self, place: usize, flow: u32) {
        if self.seen.len() <= place {
            self.seen.resize(place + 1, Seen::nothing_of(0));
        }
        self.seen[place] = Seen::nothing_of(flow);
    }

    /// A packet of `flow` with payload has arrived for the queue pair at `place`, whole and sent for the first time: it is reordered if one with a
    /// higher PSN came before it (Type-P-Reordered, §3.3).
    pub(crate) fn arrived(&mut self, place: usize, flow: u32, psn: Psn) {
        let Some(seen) = self.seen.get_mut(place).filter(|seen| seen.flow == flow) else { return };
        if seen.next != NOTHING && psn.since(Psn::new(seen.next)) < 0 {
            seen.reordered = seen.reordered.saturating_add(1);
        } else {
            seen.next = psn.plus(1).get();
        }
    }

    /// How many packets were reordered that came for the queue pair at `place`.
    pub(crate) fn reordered(&self, place: usize) -> u32 {
        self.seen.get(place).map_or(0, |seen| seen.reordered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of these PSNs, in the order of their arrival, are reordered.
    fn reordered(psns: &[u32]) -> u32 {
        let mut order = Order::default();
        order.begin(3, 7);
        for &psn in psns {
            order.arrived(3, 7, Psn::new(psn));
        }
        order.reordered(3)
    }

    #[test]
    fn a_packet_is_reordered_if_one_with_a_higher_psn_came_before_it() {
        assert_eq!(reordered(&[5, 6, 7, 8]), 0);
        assert_eq!(reordered(&[5, 8, 9]), 0, "a loss reorders nothing");
        // The one that came early is in order, and all that it overtook are not.
        assert_eq!(reordered(&[5, 8, 6, 7, 9]), 2);
        assert_eq!(reordered(&[6, 5, 8, 7]), 2);
        assert_eq!(reordered(&[0xff_fffe, 0, 0xff_ffff, 1]), 1, "PSNs go around");
    }

    #[test]
    fn what_came_for_the_queue_pair_that_had_the_place_before_is_forgotten() {
        let mut order = Order::default();
        order.begin(0, 1);
        order.arrived(0, 1, Psn::new(9));
        order.arrived(0, 1, Psn::new(8));
        assert_eq!(order.reordered(0), 1);
        order.begin(0, 2);
        order.arrived(0, 2, Psn::new(5));
        order.arrived(0, 1, Psn::new(4));
        assert_eq!(order.reordered(0), 0);
    }
}
