//! After a timeout of go-back-N: whether what was in flight was lost at all ([`QpConfig::probes`](crate::QpConfig::probes)).
//!
//! A host that takes packets in software may stand still for longer than the timeout. To send all that is in flight again then is work
//! for who is behind already: each packet is a duplicate, which a responder answers one by one, and until it has, the next timeout has
//! come. Soft-RoCE in a virtual machine took 10 000 packets a second in order, and 1000 duplicates while more came, and of 1024 in flight none
//! was acknowledged before seven retries were over.
//!
//! So a few are sent again, and once these are acknowledged twice as many, as after a timeout of TCP (RFC 5681 §3.1). What reaches beyond all
//! that was sent again acknowledges what was sent before. The first time that may be the answer to a duplicate, which acknowledges all that had
//! come before the loss and that nobody had asked about, as before a lost tail: the next packet alone is sent again. Where more is acknowledged
//! once more, packets still come, nothing was lost, and nothing more is sent again (RFC 5682 §2.1 has this for TCP, and its two steps).
//! More must not go while acknowledgements come of a part: they may be of what was sent before, and would never get beyond. Where each
//! packet is acknowledged for itself nobody can tell, and all is sent again in the end. A NAK, or a response behind a missing one, says what
//! is lost, and then all from there on goes as before.

use crate::engine::Engine;
use crate::qp::{after, sequence};
use crate::transmit::Plan;

/// How many packets are sent again at first. Messages, and the packets between two that ask for an answer, are most often powers of two:
/// what was sent before is then not acknowledged just as far as these reach, which would look like their answer.
const FIRST: u32 = 17;

/// What may be sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    /// All before this sequence.
    until: u32,
    /// So many packets at once.
    packets: u32,
    /// More was acknowledged than was sent again, and since then the next packet was or will be.
    beyond: bool,
}

impl Probe {
    /// How many packets may be sent again from `at` on.
    pub(crate) fn lets(self, at: u32) -> u32 {
        after(self.until, at).max(0).unsigned_abs()
    }
}

impl Engine {
    /// All that is in flight is marked to be sent again: because a `timeout` says so, or somebody who knows.
    pub(crate) fn probe_after(&mut self, slot: usize, timeout: bool) {
        if !self.profile(slot).probes {
            return;
        }
        let una = self.qps[slot].requester.una;
        if let Some(losing) = self.losing(slot) {
            losing.probe =
                timeout.then(|| Probe { until: una.wrapping_add(FIRST), packets: FIRST, beyond: false });
        }
    }

    /// Something was acknowledged, which the fixed stage has not heard of yet.
    pub(crate) fn probed(&mut self, slot: usize) {
        if !self.profile(slot).probes {
            return;
        }
        let una = self.qps[slot].requester.una;
        let Some(losing) = self.losing(slot) else { return };
        let marked = losing.sender().marked_range();
        let Some(probe) = &mut losing.probe else { return };
        if marked.is_some_and(|(next, _)| after(una, sequence(next, una)) > 0) {
            if probe.beyond {
                losing.probe = None;
                losing.sender().unmark_range();
                return;
            }
            (probe.until, probe.beyond) = (una.wrapping_add(1), true);
        } else if probe.lets(una) == 0 {
            (probe.packets, probe.beyond) = (probe.packets.saturating_mul(2), false);
            probe.until = una.wrapping_add(probe.packets);
        }
    }

    /// Whether no more is sent again behind `plan` until something is acknowledged.
    pub(crate) fn ends_probe(&mut self, slot: usize, plan: &Plan) -> bool {
        if plan.fresh || !self.profile(slot).probes {
            return false;
        }
        let end = plan.at.wrapping_add(u32::from(plan.packets));
        self.losing(slot).and_then(|losing| losing.probe).is_some_and(|probe| probe.lets(end) == 0)
    }
}
