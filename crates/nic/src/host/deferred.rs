//! What the engine leaves to be done: laws, recoveries, memory and grants that take time in the NIC, or none.

use super::{GRANTED, GRANTED_MAX, Host};
use crate::delay::{Delays, Range};
use crate::work::Due;
use roci_control::{Class, Emit};
use roci_fabric::net::Net;
use roci_fabric::packet::HostId;
use roci_transport::{Deferral, Grant, MemoryOperation, Resolution};
use roci_units::Instant;

impl Host {
    #[inline(never)]
    pub(super) fn settle_told(&mut self, net: &mut Net, id: HostId) {
        loop {
            if let Some(segment) = self.engine.poll_notice() {
                self.send(net, None, id, &segment);
            } else if let Some(deferral) = self.engine.poll_deferral() {
                self.defer(net.now(), deferral);
            } else {
                return;
            }
        }
    }

    fn defer(&mut self, now: Instant, deferral: Deferral) {
        let parts = self.parts_take_until(now, &deferral);
        let (token, resolution, range) = match deferral {
            Deferral::Law { token, qpn, event } if self.has_cores() => {
                return self.run_event(now, token, qpn, &event);
            }
            Deferral::Law { token, qpn, event } => {
                // A queue pair that is gone has no law, and its token is void.
                let Some(mut outcome) = self.engine.evaluate(qpn, &event) else { return };
                let acknowledges = self.slow.as_ref().is_some_and(|slow| slow.delays.law_acknowledges);
                if acknowledges && event.event.class.meets(Class::DATA) {
                    outcome.emit = Some(Emit::plain(Class::ACK));
                }
                (token, Resolution::Law(outcome), self.range(|delays| delays.law))
            }
            Deferral::Recovery { token, .. } => {
                (token, Resolution::Recovered, self.range(|delays| delays.recovery))
            }
            Deferral::Memory { token, operation, .. } => {
                let original = self.access(operation);
                (token, Resolution::Memory { original }, self.range(|delays| delays.memory))
            }
        };
        match (range, &mut self.slow) {
            (_, Some(slow)) if parts.is_some_and(|at| at > now) => {
                slow.agenda.at(parts.unwrap_or(now), Due::Resolve(token, resolution));
            }
            (Some(_), Some(slow)) => slow.after(now, range, Due::Resolve(token, resolution)),
            _ => self.engine.resolve(now, token, resolution),
        }
    }

    fn range(&self, of: impl Fn(&Delays) -> Option<Range>) -> Option<Range> {
        self.slow.as_ref().and_then(|slow| of(&slow.delays))
    }

    /// Asks for a grant for each segment that is offered; they become packets when they are granted. A port that
    /// falls behind, as under a pause, holds further ones back: what is granted is sent and takes up the window.
    pub(super) fn request_grants(&mut self, net: &mut Net, id: HostId, open: u8) {
        let now = net.now();
        let Some(slow) = &mut self.slow else { return };
        let apart = self.apart.as_ref().map_or(0, |apart| apart.waiting(GRANTED, open));
        while self.behind[GRANTED].len() + apart + 1 < GRANTED_MAX
            && let Some(offer) = self.engine.offer_open(now, 1, open)
        {
            let grant = match self.engine.transmit_event(now, &offer) {
                Some(event) if offer.wants_law => {
                    self.engine.evaluate(offer.qpn, &event).map_or(Grant::Engine, Grant::Law)
                }
                _ => Grant::Engine,
            };
            let due = if slow.loops_back() { Due::Decline(offer) } else { Due::Commit(offer, grant) };
            let range = slow.delays.grant;
            slow.after(now, range, due);
        }
        self.settle(net, id);
        if let Some(at) = self.slow.as_ref().and_then(|slow| slow.next()) {
            net.wake_at(id, at);
        }
    }

    /// Atomics are the only payload that a simulation computes with.
    fn access(&mut self, operation: MemoryOperation) -> u64 {
        match operation {
            MemoryOperation::Read { .. } => 0,
            MemoryOperation::FetchAdd { address, add, .. } => {
                let word = self.memory.get_or_insert_default().entry(address).or_default();
                std::mem::replace(word, word.wrapping_add(add))
            }
            MemoryOperation::CompareSwap { address, compare, swap, .. } => {
                let word = self.memory.get_or_insert_default().entry(address).or_default();
                let original = *word;
                if original == compare {
                    *word = swap;
                }
                original
            }
        }
    }

    /// The eight-octet word at `address`, as atomics left it.
    pub fn word(&self, address: u64) -> u64 {
        self.memory.as_ref().and_then(|memory| memory.get(&address)).copied().unwrap_or(0)
    }
}
