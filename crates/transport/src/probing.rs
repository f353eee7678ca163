//! After a timeout of go-back-N: whether what was in flight was lost at all ([`QpConfig::probes`](crate::QpConfig::probes)).
//!
//! A host that takes packets in software may stand still for longer than the timeout. To send all that is in flight again then is work
//! for who is behind already: each packet is a duplicate, which a responder answers one by one, and until it has, the next timeout has
//! come. Soft-RoCE in a virtual machine took 10 000 packets a second in order, and 1000 duplicates while more came, and of 1024 in flight none
//! was acknowledged before seven retries were over.
//!
//! So a few are sent again. Once these are acknowledged, and no more than these, the next one goes and a new one behind it, if one may: where
//! the others were lost it draws a NAK, which says so, and then all from there on goes as before. What is acknowledged beyond all that was
//! sent again says that what was sent before still comes: nothing was lost, and nothing more is sent again. RFC 5682 has this for TCP. Where
//! no new packet may go twice as many are sent again, as after a timeout of TCP (RFC 5681 §3.1). More must not go while acknowledgements come
//! of a part: they may be of what was sent before, and would never get beyond. Where each packet is acknowledged for itself and no new one goes
//! nobody can tell, and all is sent again in the end.
//!
//! When the first acknowledgement reaches beyond all that was sent again, it may answer a duplicate: it acknowledges all that had come
//! before the loss and that nobody had asked about, as before a lost tail. The next one alone is sent again then, and a second one that
//! reaches beyond is waited for. A new packet alone would not do: who has sent a NAK that was lost sends no other before that one comes. Nor
//! does one behind the next where READs or atomics are in flight.

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
    stage: Stage,
    /// READs or atomics were in flight: their responses, and acknowledgements that end before them, reach just as far as what goes again
    /// though the responder may have come further, and be silent to what is new.
    reads: bool,
}

/// What is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing.
    Begins,
    /// More was acknowledged than was sent again, perhaps in answer to a duplicate.
    Beyond,
    /// As much was acknowledged as was sent again: a new packet is to go, if one may.
    New,
    /// It has gone: a NAK comes, or nothing was lost.
    Sent,
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
        let (una, reads) = (self.qps[slot].requester.una, self.qps[slot].requester.reads > 0);
        if let Some(losing) = self.losing(slot) {
            let (until, packets, stage) = (una.wrapping_add(FIRST), FIRST, Stage::Begins);
            losing.probe = timeout.then_some(Probe { until, packets, stage, reads });
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
        let beyond = marked.map_or(-1, |(next, _)| after(una, sequence(next, una)));
        if beyond > 0 && matches!(probe.stage, Stage::Beyond | Stage::Sent) {
            losing.probe = None;
            losing.sender().unmark_range();
        } else if beyond > 0 {
            (probe.until, probe.stage) = (una.wrapping_add(1), Stage::Beyond);
        } else if probe.lets(una) == 0 && probe.stage != Stage::Sent {
            probe.packets = probe.packets.saturating_mul(2);
            (probe.until, probe.stage) = match beyond {
                0 if !probe.reads => (una.wrapping_add(1), Stage::New),
                _ => (una.wrapping_add(probe.packets), Stage::Begins),
            };
        }
    }

    fn probing(&mut self, slot: usize) -> Option<&mut Probe> {
        if !self.profile(slot).probes {
            return None;
        }
        self.losing(slot)?.probe.as_mut()
    }

    /// Whether a new packet is to go now, though more is to be sent again.
    pub(crate) fn probes_with_new(&mut self, slot: usize) -> bool {
        self.probing(slot).is_some_and(|probe| probe.stage == Stage::New)
    }

    /// There is no new packet that may go.
    pub(crate) fn probe_without_new(&mut self, slot: usize) {
        let una = self.qps[slot].requester.una;
        if let Some(probe) = self.probing(slot) {
            (probe.until, probe.stage) = (una.wrapping_add(probe.packets), Stage::Begins);
        }
    }

    /// `plan` is sent: whether nothing more is behind it until something is acknowledged.
    pub(crate) fn ends_probe(&mut self, slot: usize, plan: &Plan) -> bool {
        let Some(probe) = self.probing(slot) else { return false };
        let is_new = probe.stage == Stage::New;
        if plan.fresh && is_new {
            probe.stage = Stage::Sent;
            return true;
        }
        let end = plan.at.wrapping_add(u32::from(plan.packets));
        !plan.fresh && !is_new && probe.lets(end) == 0
    }
}
