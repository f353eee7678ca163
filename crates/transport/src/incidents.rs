//! What happens to queues besides the ends of requests: asynchronous events (IBTA Vol 1 §11.6.3).

use crate::arrival::Arrival;
use crate::config::{Service, Srq};
use crate::engine::Engine;
use crate::qp::Standing;
use crate::queue::{Kind, RecvQueue, SendWork, flag};
use crate::state::QpState;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use roci_units::{Instant, Psn, Qpn};
use roci_wire::{NakCode, Shape};

/// What happened to a queue, where [that is to be told](Engine::tell_incidents).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    /// The queue pair has come into the error state. A failure that completes nothing is told by nothing else.
    Failed(Qpn),
    /// A request of the peer was refused with this code, and the queue pair has failed by it. Told where no receive request ends
    /// with an error that says so.
    Refused(Qpn, NakCode),
    /// The first packet of a request has come in order while the queue pair is in RTR.
    Established(Qpn),
    /// Fewer receive requests stand in the shared queue than [its limit](Engine::set_srq_limit).
    SharedLow(Srq),
}

/// A receive queue that queue pairs share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedQueue {
    pub(crate) queue: RecvQueue,
    /// Requests in it.
    pub(crate) count: u32,
    /// With fewer of them than this somebody is told, once; zero: nobody.
    pub(crate) limit: u32,
}

impl SharedQueue {
    pub(crate) const EMPTY: Self = Self { queue: RecvQueue::EMPTY, count: 0, limit: 0 };
}

impl Engine {
    /// Has incidents told by [`poll_incident`](Self::poll_incident), which the caller then asks as well, and says by
    /// [`cnps_left`](Self::cnps_left) when CNPs have left.
    pub fn tell_incidents(&mut self) {
        self.incidents.get_or_insert_default();
    }

    /// What happened to a queue, once each time, where [that is to be told](Self::tell_incidents).
    #[inline]
    pub fn poll_incident(&mut self) -> Option<Incident> {
        if self.unpolled == 0 {
            return None;
        }
        let first = self.incidents.as_mut()?.told.pop_front();
        self.unpolled -= usize::from(first.is_some());
        first
    }

    /// Leaves what happened to be polled, if anybody does.
    #[cold]
    pub(crate) fn tell_incident(&mut self, incident: Incident) {
        if let Some(incidents) = &mut self.incidents {
            incidents.told.push_back(incident);
            self.unpolled += 1;
        }
    }

    /// A CNP of this queue pair is asked for, and leaves when the caller sends it.
    pub(crate) fn note_cnp(&mut self, slot: usize) {
        if let Some(incidents) = &mut self.incidents {
            #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
            incidents.cnps.push(slot as u32);
        }
    }

    /// All CNPs that were polled have left by now, at `left`: a law's gap to the next counts from then on, and not from when they were
    /// asked for, so that no two are closer on the wire.
    pub fn cnps_left(&mut self, left: Instant) {
        let Some(incidents) = &mut self.incidents else { return };
        let mut cnps = core::mem::take(&mut incidents.cnps);
        for slot in cnps.drain(..) {
            let slot = slot as usize;
            let index = self.qps[slot].common.law;
            let state = self.laws.states.get(index as usize);
            let number = state.map_or(self.profile(slot).law, |state| state.law);
            self.laws.notified(number, index, slot, left);
        }
        if let Some(incidents) = &mut self.incidents {
            incidents.cnps = cnps;
        }
    }

    /// Has somebody told once when fewer than `limit` requests stand in a shared receive queue, at once where that is so already;
    /// zero: nobody any more.
    pub fn set_srq_limit(&mut self, srq: Srq, limit: u32) {
        let Some(shared) = self.shared.get_mut(srq.0 as usize) else { return };
        shared.limit = limit;
        if shared.count < limit {
            self.shared_is_low(srq);
        }
    }

    /// The limit of a shared receive queue: zero where none was set, or who wanted to be told has been.
    pub fn srq_limit(&self, srq: Srq) -> u32 {
        self.shared.get(srq.0 as usize).map_or(0, |shared| shared.limit)
    }

    #[cold]
    pub(crate) fn shared_is_low(&mut self, srq: Srq) {
        self.shared[srq.0 as usize].limit = 0;
        self.tell_incident(Incident::SharedLow(srq));
    }

    /// Whether a request of the queue pair has begun to be sent and has not ended: what SQD waits for. A READ that is asked for in
    /// parts has begun with the first of them.
    pub fn has_begun(&self, qpn: Qpn) -> bool {
        let head = self.place(qpn).and_then(|slot| self.sends.find(self.qps[slot].common.head));
        head.is_some_and(|work| work.has(flag::NUMBERED) || goes_on(work))
    }

    /// A queue pair has come into RTR. Until the first packet of a request comes in order, packets go the long way: nobody else has
    /// to ask whether theirs is the first. What keeps a queue pair from sending until something is received does just that, and RTR
    /// sends nothing.
    pub(crate) fn await_first(&mut self, slot: usize) {
        if self.incidents.is_some() {
            self.qps[slot].requester.standing.set(Standing::PARKED);
        }
    }

    /// Whether the first packet of a request is awaited in RTR.
    pub(crate) fn awaits_first(&self, slot: usize) -> bool {
        self.state(slot) == QpState::ReadyToReceive && self.incidents.is_some()
    }

    /// A packet came for a queue pair that was parked until then.
    #[cold]
    pub(crate) fn unpark_by(&mut self, now: Instant, slot: usize, arrival: &Arrival<'_>) {
        if self.awaits_first(slot) {
            let shape = arrival.header.opcode.shape();
            let is_next = arrival.header.psn == Psn::new(self.qps[slot].responder.expected);
            // On an unreliable connection the first packet of any message is one that may come next.
            let begins = self.profile(slot).service == Service::Uc && shape.has(Shape::FIRST);
            if shape.has(Shape::RESPONSE) || !is_next && !begins {
                return;
            }
            self.tell_incident(Incident::Established(self.qps[slot].common.qpn));
        }
        self.qps[slot].requester.standing.clear(Standing::PARKED);
        self.arm(now, slot);
    }
}

/// Whether it goes on with a READ that has begun, of which it is a later part.
pub(crate) fn goes_on(work: &SendWork) -> bool {
    work.kind == Kind::Read && work.immediate > 0
}

/// What waits to be told, apart from the engine, which is to stay in its lines in a simulation, where nobody asks.
#[derive(Debug, Default)]
pub(crate) struct Incidents {
    told: VecDeque<Incident>,
    /// Queue pairs whose CNPs have not left.
    cnps: Vec<u32>,
}
