//! Which queue pair takes the datagrams of a service: asked, and answered by who offers it (IBTA Vol 1 §12.11).
//!
//! A request is sent again until it is answered, and then nothing of it is remembered. Who is asked remembers a request until the user
//! has answered, and the answer for a while, as it may have been lost and the request come again: 8.6 s, from when it last came. That is
//! longer than we ask, and Linux asks twice in that time (each 4.1 s). Requests that the user has not answered count among those for
//! connections, and answers are as few as connections that are over.

use super::{
    AGAIN, Event, Id, LATE, Machine, OVER_MAX, PATIENCE, RESPONSE_TIMEOUT, RETRIES, interval, patience,
};
use roci_units::{Instant, Qpn};
use roci_wire::cm::{Mad, Message, Private, SERVICE_REPLY_PRIVATE, ServiceReply, ServiceRequest, status};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// What serves, as the user says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serving {
    /// 0 where a queue pair does, else why none does ([`status`]).
    pub status: u8,
    /// The queue pair.
    pub qpn: Qpn,
    /// The queue key of its datagrams.
    pub q_key: u32,
    /// What the peer's user is told.
    pub private: Private<SERVICE_REPLY_PRIVATE>,
}

impl Serving {
    /// None does, for this reason.
    pub const fn not(status: u8, private: Private<SERVICE_REPLY_PRIVATE>) -> Self {
        Self { status, qpn: Qpn::new(0), q_key: 0, private }
    }

    /// As the answer to a request of that id.
    pub(super) fn says(&self, id: u32, service: u64) -> Message {
        let Self { status, qpn, q_key, private } = *self;
        let (information_len, information) = (0, Private::NONE);
        Message::Resolved(ServiceReply {
            id,
            status,
            information_len,
            information,
            qpn,
            service,
            q_key,
            private,
        })
    }
}

/// How far a request is.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// We asked, and wait for the answer: what is sent again, how often still, and until when nobody may listen yet.
    Asking { mad: Mad, retries: u8, late: Instant },
    /// The peer asks, by this id and transaction; the user is to answer.
    Asked { theirs: u32, transaction: u64, service: u64 },
    /// The user has, and this was said.
    Answered { theirs: u32, mad: Mad },
}

#[derive(Clone, Copy, Debug)]
struct Query {
    peer: IpAddr,
    phase: Phase,
    timer: Instant,
}

/// All requests, ours and those of peers.
#[derive(Debug, Default)]
pub(super) struct Queries {
    services: BTreeSet<u64>,
    all: BTreeMap<u32, Query>,
    /// Those of peers, by the peer's id.
    asked: BTreeMap<(IpAddr, u32), u32>,
    pub(super) timers: BTreeSet<(Instant, u32)>,
    /// Answers, by when they are forgotten.
    answered: BTreeSet<(Instant, u32)>,
}

impl Queries {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn has(&self, id: u32) -> bool {
        self.all.contains_key(&id)
    }

    /// Remembers it as it is now, until `query.timer`. Gives the oldest answer where there are too many.
    fn put(&mut self, id: u32, query: Query) -> Option<u32> {
        self.stop(id);
        self.timers.insert((query.timer, id));
        match query.phase {
            Phase::Asking { .. } => {}
            Phase::Asked { theirs, .. } => {
                self.asked.insert((query.peer, theirs), id);
            }
            Phase::Answered { .. } => {
                self.answered.insert((query.timer, id));
            }
        }
        self.all.insert(id, query);
        let (_, oldest) = self.answered.first()?;
        (self.answered.len() > OVER_MAX).then_some(*oldest)
    }

    fn stop(&mut self, id: u32) {
        if let Some(query) = self.all.get(&id) {
            self.timers.remove(&(query.timer, id));
            self.answered.remove(&(query.timer, id));
        }
    }

    /// Whether it was an answer.
    fn forget(&mut self, id: u32) -> bool {
        self.stop(id);
        let Some(Query { peer, phase, .. }) = self.all.remove(&id) else { return false };
        if let Phase::Asked { theirs, .. } | Phase::Answered { theirs, .. } = phase {
            self.asked.remove(&(peer, theirs));
        }
        matches!(phase, Phase::Answered { .. })
    }
}

impl Machine {
    /// Offers a service for datagrams; whether nobody did before.
    pub fn listen_datagrams(&mut self, service: u64) -> bool {
        self.queries.services.insert(service)
    }

    /// Offers it no longer.
    pub fn unlisten_datagrams(&mut self, service: u64) {
        self.queries.services.remove(&service);
    }

    /// Asks `peer` which queue pair takes the datagrams of a service. The request's own id is filled in here. [`Event::Resolved`] tells the
    /// answer, and [`Event::Unreachable`] that there is none.
    pub fn resolve(&mut self, now: Instant, peer: IpAddr, request: ServiceRequest) -> Id {
        let id = self.draw();
        let transaction = u64::from((self.random)()) << 32 | u64::from(id);
        let mad = Mad { transaction, message: Message::Resolve(ServiceRequest { id, ..request }) };
        let (phase, timer) =
            (Phase::Asking { mad, retries: RETRIES, late: now + LATE }, now + interval(RESPONSE_TIMEOUT));
        self.remember(id, Query { peer, phase, timer });
        self.outgoing.say(peer, mad);
        Id(id)
    }

    /// Answers who asks for the datagrams of a service. `false` where nobody waits for it any more. What is said is said again to who asks
    /// again, until [`Event::Forgotten`]; but nothing is remembered of [`status::UNSUPPORTED`], for somebody may listen by then.
    pub fn serve(&mut self, now: Instant, id: Id, serving: &Serving) -> bool {
        let Some(&Query { peer, phase: Phase::Asked { theirs, transaction, service }, .. }) =
            self.queries.all.get(&id.0)
        else {
            return false;
        };
        let mad = Mad { transaction, message: serving.says(theirs, service) };
        let timer = now + patience(RESPONSE_TIMEOUT, RETRIES);
        if serving.status == status::UNSUPPORTED {
            self.forget_query(id.0);
        } else {
            self.remember(id.0, Query { peer, phase: Phase::Answered { theirs, mad }, timer });
        }
        self.answered(peer);
        self.outgoing.say(peer, mad);
        true
    }

    /// The answer is of no interest any more. The peer need not know: it has kept nothing, or only for a while.
    pub fn forget_service(&mut self, id: Id) {
        if matches!(self.queries.all.get(&id.0), Some(Query { phase: Phase::Asking { .. }, .. })) {
            self.forget_query(id.0);
        }
    }

    fn remember(&mut self, id: u32, query: Query) {
        if let Some(oldest) = self.queries.put(id, query) {
            self.forget_query(oldest);
        }
    }

    fn forget_query(&mut self, id: u32) {
        if self.queries.forget(id) {
            self.events.push_back(Event::Forgotten(Id(id)));
        }
    }

    /// A peer asks for the datagrams of a service.
    pub(super) fn queried(&mut self, now: Instant, from: IpAddr, transaction: u64, request: &ServiceRequest) {
        let (theirs, service) = (request.id, request.service);
        let known = self.queries.asked.get(&(from, theirs)).copied();
        if let Some((id, query)) = known.and_then(|id| Some((id, *self.queries.all.get(&id)?))) {
            match query.phase {
                // The answer was lost.
                Phase::Answered { mad, .. } if mad.transaction == transaction => {
                    let timer = now + patience(RESPONSE_TIMEOUT, RETRIES);
                    self.remember(id, Query { timer, ..query });
                    self.outgoing.say(from, mad);
                    return;
                }
                // Another request of one that has begun anew, by a number that it had before.
                Phase::Answered { .. } => self.forget_query(id),
                _ => {
                    self.remember(id, Query { timer: now + PATIENCE, ..query });
                    return;
                }
            }
        }
        let status = if !self.queries.services.contains(&service) {
            status::UNSUPPORTED
        } else if !self.has_room_for(from) {
            status::NO_QP
        } else {
            status::VALID
        };
        if status != status::VALID {
            // Nothing is remembered of it: who asks again is told again.
            let message = Serving::not(status, Private::NONE).says(theirs, service);
            self.outgoing.say(from, Mad { transaction, message });
            return;
        }
        let id = self.draw();
        let phase = Phase::Asked { theirs, transaction, service };
        self.remember(id, Query { peer: from, phase, timer: now + PATIENCE });
        self.wait_for_user(from);
        self.events.push_back(Event::Queried { id: Id(id), from, request: Box::new(*request) });
    }

    /// A peer answers what we asked for.
    pub(super) fn resolved(&mut self, now: Instant, from: IpAddr, transaction: u64, reply: &ServiceReply) {
        let id = reply.id;
        let Some(query) = self.queries.all.get(&id).copied() else { return };
        let Phase::Asking { mad, late, .. } = query.phase else { return };
        if query.peer != from || mad.transaction != transaction {
            return;
        }
        if reply.status == status::UNSUPPORTED && now < late {
            // It remembers nothing of the request, which may be the first next time.
            let phase = Phase::Asking { mad, retries: RETRIES, late };
            self.remember(id, Query { phase, timer: now + AGAIN, ..query });
            return;
        }
        self.forget_query(id);
        self.events.push_back(Event::Resolved { id: Id(id), reply: Box::new(*reply) });
    }

    /// It is `now`: sends again what was not answered, and gives up what was sent too often.
    pub(super) fn wake_queries(&mut self, now: Instant) {
        while let Some(&(at, id)) = self.queries.timers.first()
            && at <= now
        {
            let Some(query) = self.queries.all.get(&id).copied() else {
                self.queries.timers.pop_first();
                continue;
            };
            match query.phase {
                Phase::Asking { mad, retries, late } if retries > 0 => {
                    let phase = Phase::Asking { mad, retries: retries - 1, late };
                    self.remember(id, Query { phase, timer: now + interval(RESPONSE_TIMEOUT), ..query });
                    self.outgoing.say(query.peer, mad);
                    continue;
                }
                Phase::Asking { .. } => self.events.push_back(Event::Unreachable(Id(id))),
                // By the user; and by now nobody waits for what it would say.
                Phase::Asked { .. } => {
                    self.answered(query.peer);
                    self.events.push_back(Event::Unreachable(Id(id)));
                }
                Phase::Answered { .. } => {}
            }
            self.forget_query(id);
        }
    }
}
