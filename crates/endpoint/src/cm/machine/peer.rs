//! What the peer says, and what becomes of a connection by it.

use super::{
    AGAIN, Connection, Event, Id, Machine, PATIENCE, RESPONSE_TIMEOUT, RETRIES, State, interval, patience,
};
use roci_units::{Instant, Span};
use roci_wire::cm::{self, Answered, Mad, Message, Private, Reject, Reply, Request, reason};
use std::net::IpAddr;

impl Machine {
    /// A datagram has arrived. What is none of connection set-up, and what fits no connection, changes nothing.
    pub fn handle(&mut self, now: Instant, from: IpAddr, octets: &[u8]) {
        let Ok(mad) = Mad::parse(octets) else { return };
        match mad.message {
            Message::Request(request) => self.asked(now, from, mad.transaction, &request),
            Message::Reply(reply) => self.granted(from, &reply),
            Message::ReadyToUse { local, remote } => {
                if self.state(from, remote, local) == Some(State::Granting) {
                    self.establish(remote);
                }
            }
            Message::Reject(reject) => self.rejected(now, from, &reject),
            Message::Acknowledge { local, remote, timeout } => {
                let state = self.state(from, remote, local);
                if matches!(state, Some(State::Asking | State::Granting)) {
                    if let Some(connection) = self.connections.get_mut(&remote) {
                        connection.is_heard = true;
                    }
                    let wait = Span::from_ps(interval(timeout).as_ps().min(PATIENCE.as_ps()));
                    self.start(remote, now + wait + interval(RESPONSE_TIMEOUT));
                }
            }
            Message::DisconnectRequest { local, remote, .. } => {
                self.left(now, from, mad.transaction, local, remote);
            }
            Message::DisconnectReply { local, remote } => {
                if self.state(from, remote, local) == Some(State::Leaving) {
                    self.disconnected(now, remote);
                }
            }
            Message::Resolve(request) => self.queried(now, from, mad.transaction, &request),
            Message::Resolved(reply) => self.resolved(now, from, mad.transaction, &reply),
        }
    }

    fn asked(&mut self, now: Instant, from: IpAddr, transaction: u64, request: &Request) {
        let remote = request.local;
        if let Some(&id) = self.asked.get(&(from, remote)) {
            let has_refused = self.connections.get(&id).is_some_and(Connection::has_refused);
            match self.connections.get(&id).map(|connection| connection.state) {
                // The answer was lost: the reply, or the rejection, which may be lost once more.
                Some(State::Granting | State::Over) => {
                    self.repeat(id);
                    if has_refused {
                        self.end(now, id);
                    }
                }
                Some(State::Asked) => {
                    self.start(id, now + patience(request.response_timeout, request.max_retries));
                    let message = Message::Acknowledge { local: id, remote, timeout: RESPONSE_TIMEOUT + 2 };
                    self.outgoing.say(from, Mad { transaction, message });
                }
                _ => {}
            }
            return;
        }
        let reason = if !self.services.contains(&request.service) {
            Some(reason::INVALID_SERVICE)
        } else if request.service_type > cm::UNRELIABLE {
            Some(reason::INVALID_SERVICE_TYPE)
        } else if request.gids.0.to_canonical() != from {
            Some(reason::INVALID_GID)
        } else if !self.has_room_for(from) {
            Some(reason::NO_RESOURCES)
        } else {
            None
        };
        if let Some(reason) = reason {
            // Nothing is remembered of it: who asks again is told again.
            let (of, guid, private) = (Answered::Request, None, Private::NONE);
            let reject = Reject { local: 0, remote, of, reason, guid, private };
            self.outgoing.say(from, Mad { transaction, message: Message::Reject(reject) });
            return;
        }
        let id = self.draw();
        let connection = Connection {
            peer: from,
            state: State::Asked,
            remote,
            guid: Some(request.guid),
            transaction,
            peer_qpn: request.qpn,
            last: None,
            retries: 0,
            timer: None,
            is_heard: false,
            was_connected: false,
            late: now,
        };
        self.connections.insert(id, connection);
        self.asked.insert((from, remote), id);
        self.wait_for_user(from);
        self.start(id, now + patience(request.response_timeout, request.max_retries));
        self.events.push_back(Event::Asked { id: Id(id), from, request: Box::new(*request) });
    }

    fn granted(&mut self, from: IpAddr, reply: &Reply) {
        let id = reply.remote;
        match self.state(from, id, reply.local) {
            Some(State::Asking) => {
                self.stop(id);
                if let Some(connection) = self.connections.get_mut(&id) {
                    (connection.state, connection.remote) = (State::Granted, reply.local);
                    connection.guid = Some(reply.guid);
                    (connection.peer_qpn, connection.last) = (reply.qpn, None);
                }
                self.events.push_back(Event::Granted { id: Id(id), reply: Box::new(*reply) });
            }
            // That we are ready was lost, or that we gave up.
            Some(State::Connected | State::Over) => self.repeat(id),
            _ => {}
        }
    }

    fn rejected(&mut self, now: Instant, from: IpAddr, reject: &Reject) {
        let id = match reject.remote {
            // Who has not heard our answer does not know how we call what it gives up: by its own id, and by its device
            // if it names one, we know. It rejects the request, or (Linux) no message.
            0 => match self.asked.get(&(from, reject.local)) {
                Some(&id) if reject.of != Answered::Reply && self.is_of_device(id, reject.guid) => id,
                _ => return,
            },
            id => id,
        };
        // Who rejects a request need not have an id.
        let is_asking = self
            .connections
            .get(&id)
            .is_some_and(|connection| connection.peer == from && connection.state == State::Asking);
        let state = if is_asking { Some(State::Asking) } else { self.state(from, id, reject.local) };
        if state == Some(State::Asked) {
            self.answered(from);
        }
        match state {
            // It remembers nothing of the request, which may be the first next time.
            Some(State::Asking)
                if (reject.reason, reject.local) == (reason::INVALID_SERVICE, 0)
                    && self.may_be_early(now, id) =>
            {
                self.start(id, now + AGAIN);
            }
            Some(State::Asking | State::Granting | State::Granted | State::Asked) => {
                self.forget_last(id);
                self.end(now, id);
                self.events.push_back(Event::Rejected { id: Id(id), reject: Box::new(*reject) });
            }
            Some(State::Connected | State::Leaving) => {
                self.forget_last(id);
                self.disconnected(now, id);
            }
            _ => {}
        }
    }

    /// Whether the peer may yet come to listen; what was asked for is sent once more at the next timer then, as if it had not been before.
    fn may_be_early(&mut self, now: Instant, id: u32) -> bool {
        let Some(connection) = self.connections.get_mut(&id) else { return false };
        connection.retries = RETRIES;
        now < connection.late
    }

    /// Whether a connection's peer is this device, as far as anybody has said.
    fn is_of_device(&self, id: u32, guid: Option<u64>) -> bool {
        let known = self.connections.get(&id).and_then(|connection| connection.guid);
        guid.is_none() || known.is_none() || guid == known
    }

    fn forget_last(&mut self, id: u32) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.last = None;
        }
    }

    fn left(&mut self, now: Instant, from: IpAddr, transaction: u64, local: u32, remote: u32) {
        let answer = Mad { transaction, message: Message::DisconnectReply { local: remote, remote: local } };
        match self.state(from, remote, local) {
            Some(State::Asking | State::Asked) => {}
            Some(State::Over) | None => self.outgoing.say(from, answer),
            Some(_) => {
                self.outgoing.say(from, answer);
                self.forget_last(remote);
                self.disconnected(now, remote);
            }
        }
    }
}
