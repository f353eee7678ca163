//! Connection set-up as a machine without I/O (IBTA Vol 1 §12.9).
//!
//! Datagrams come in by [`Machine::handle`], the user's wishes by `connect`, `accept` and so on, the time by
//! [`Machine::wake`]. What is to be sent is polled by [`Machine::poll_transmit`], what has happened by
//! [`Machine::poll_event`], and last, by [`Machine::poll_timeout`], when to call `wake`. `now` never goes back.
//!
//! Whatever is waited for ends: a request that the user does not answer is forgotten when its sender has given up, and of
//! those the user has not answered and those that are over, there are at most [`PENDING_MAX`] and [`OVER_MAX`]. No address
//! has more than [`PENDING_SHARE`] of the former, so that one that asks without end shuts nobody else out.
//!
//! Loss is mended by sending again: a request, a reply and the wish to disconnect until they are answered, everything else
//! when what it answers comes again. A connection that is over is remembered for a while for that reason alone.
//! A datagram touches a connection only if it comes from that connection's peer and bears its ids.

mod peer;
mod sidr;

pub use sidr::Serving;

use crate::io::steer::SLOTS;
use roci_units::{Instant, Span};
use roci_wire::cm::{
    Answered, MAD_LEN, Mad, Message, Private, Reject, Reply, Request, ServiceReply, ServiceRequest, reason,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

/// An answer is expected within 4.096 µs · 2¹⁸, about a second.
pub const RESPONSE_TIMEOUT: u8 = 18;
/// What is not answered is sent again so often.
pub const RETRIES: u8 = 7;
/// Requests that the user has not answered, at most: more are rejected.
pub const PENDING_MAX: usize = 8192;
/// And of one address, at most: as many as wait at one who listens with Linux, so that who connects a thousand times at once is served.
pub const PENDING_SHARE: usize = PENDING_MAX / 8;
/// Connections that are over and remembered, at most: the oldest are forgotten first.
pub const OVER_MAX: usize = 4096;
/// Datagrams that wait to be sent, at most: as many connections may end at once, and what is beyond is lost, as it may be on the way.
const OUTGOING_MAX: usize = OVER_MAX;
/// Who is told that nobody listens asks again after this time,
const AGAIN: Span = Span::from_millis(20);
/// until this long after it asked first: programs tell their peers of a port before they listen there (qperf; perftest for the connections
/// of the data), and a peer without hardware is as fast.
const LATE: Span = Span::from_millis(300);
/// The longest wait that a peer is granted that asks for time, and that a request waits for the user.
const PATIENCE: Span = Span::from_secs(60);

/// A connection, by our id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u32);

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A peer asks for a connection: `accept` or `reject` it.
    Asked {
        /// The connection.
        id: Id,
        /// The peer.
        from: IpAddr,
        /// What it asks for.
        request: Box<Request>,
    },
    /// The peer grants what we asked for: make the queue pair ready, and then say `ready`, or `reject`.
    Granted {
        /// The connection.
        id: Id,
        /// On what terms.
        reply: Box<Reply>,
    },
    /// The peer knows that we have granted it.
    Established(Id),
    /// The peer refuses, or gave up, perhaps before the user has answered.
    Rejected {
        /// The connection.
        id: Id,
        /// Why.
        reject: Box<Reject>,
    },
    /// The peer did not answer; or has stopped asking, where the user did not answer.
    Unreachable(Id),
    /// The peer has said that it takes its time over what we asked for, and nothing more: somebody listens there whose user does not
    /// answer.
    Unanswered(Id),
    /// A peer asks which queue pair takes the datagrams of a service: `serve` it.
    Queried {
        /// The request.
        id: Id,
        /// The peer.
        from: IpAddr,
        /// What it asks for.
        request: Box<ServiceRequest>,
    },
    /// The peer says which queue pair takes the datagrams that we asked for, or that none does; it is over with that.
    Resolved {
        /// What was asked for.
        id: Id,
        /// The answer.
        reply: Box<ServiceReply>,
    },
    /// What was said to who asked for the datagrams of a service, or that a connection was refused, is remembered no longer: a request that
    /// comes again is another one.
    Forgotten(Id),
    /// It is over: the peer wished so, or has answered our wish.
    Disconnected(Id),
    /// A connection that was over has left IBTA's TimeWait: the peer will not say anything of it again, and nothing of it is remembered.
    TimeWaitExit(Id),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// We asked, and wait for a reply.
    Asking,
    /// It was granted; the user is to say `ready`.
    Granted,
    /// The peer asks; the user is to answer.
    Asked,
    /// We granted it, and wait to hear that the peer knows.
    Granting,
    Connected,
    /// We wish to disconnect, and wait for an answer.
    Leaving,
    /// Remembered for what may come again.
    Over,
}

#[derive(Debug)]
struct Connection {
    peer: IpAddr,
    state: State,
    /// The peer's id; 0 as long as we do not know it.
    remote: u32,
    /// The peer's device, where it has told.
    guid: Option<u64>,
    /// The request's transaction; answers to it bear it as well.
    transaction: u64,
    peer_qpn: roci_units::Qpn,
    /// What is sent again: when it is not answered, or when what it answers comes again.
    last: Option<Mad>,
    retries: u8,
    timer: Option<Instant>,
    /// The peer has asked for time.
    is_heard: bool,
    /// It is over, and was more than asked for.
    was_connected: bool,
    /// Until when nobody may listen yet at a peer that we ask.
    late: Instant,
}

impl Connection {
    /// Whether it is over because we have refused what the peer asked for.
    fn has_refused(&self) -> bool {
        let message = self.last.map(|mad| mad.message);
        matches!(message, Some(Message::Reject(Reject { of: Answered::Request, .. })))
    }
}

/// All connections of one device.
pub struct Machine {
    /// Our device.
    guid: u64,
    random: Box<dyn FnMut() -> u32 + Send>,
    /// The remainder of its ids.
    place: Option<u32>,
    services: BTreeSet<u64>,
    connections: BTreeMap<u32, Connection>,
    /// Connections that a peer asked for, by the peer's id.
    asked: BTreeMap<(IpAddr, u32), u32>,
    timers: BTreeSet<(Instant, u32)>,
    /// Those that are over, by when they are forgotten.
    over: BTreeSet<(Instant, u32)>,
    outgoing: Outgoing,
    events: VecDeque<Event>,
    /// Requests that the user has not answered, and how many of them each address has.
    pending: usize,
    pending_of: BTreeMap<IpAddr, usize>,
    queries: sidr::Queries,
}

/// What is to be sent.
struct Outgoing(VecDeque<(IpAddr, Mad)>);

impl Outgoing {
    fn say(&mut self, peer: IpAddr, mad: Mad) {
        if self.0.len() < OUTGOING_MAX {
            self.0.push_back((peer, mad));
        }
    }
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine")
            .field("connections", &self.connections)
            .field("queries", &self.queries)
            .finish_non_exhaustive()
    }
}

const fn interval(exponent: u8) -> Span {
    Span::from_nanos(4_096 << if exponent > 31 { 31 } else { exponent })
}

/// How long who asks so often waits for an answer, up to [`PATIENCE`]; not less than we would.
fn patience(exponent: u8, retries: u8) -> Span {
    let whole = |exponent, retries: u8| interval(exponent) * (u64::from(retries) + 1);
    whole(exponent, retries).max(whole(RESPONSE_TIMEOUT, RETRIES)).min(PATIENCE)
}

impl Machine {
    /// Without connections, of the device `guid`. `random` draws ids that nobody is to guess.
    pub fn new(guid: u64, random: impl FnMut() -> u32 + Send + 'static) -> Self {
        Self {
            guid,
            random: Box::new(random),
            place: None,
            services: BTreeSet::new(),
            connections: BTreeMap::new(),
            asked: BTreeMap::new(),
            timers: BTreeSet::new(),
            over: BTreeSet::new(),
            outgoing: Outgoing(VecDeque::new()),
            events: VecDeque::new(),
            pending: 0,
            pending_of: BTreeMap::new(),
            queries: sidr::Queries::default(),
        }
    }

    /// Draws ids with the remainder `place` modulo [`SLOTS`] from now on, by which those who share an address tell whose an answer is.
    pub fn draws_at(&mut self, place: u32) {
        self.place = Some(place % SLOTS);
    }

    /// Offers a service; whether nobody did before.
    pub fn listen(&mut self, service: u64) -> bool {
        self.services.insert(service)
    }

    /// Offers it no longer.
    pub fn unlisten(&mut self, service: u64) {
        self.services.remove(&service);
    }

    /// Asks `peer` for a connection. The request's own id is filled in here.
    pub fn connect(&mut self, now: Instant, peer: IpAddr, request: Request) -> Id {
        let id = self.draw();
        let transaction = u64::from((self.random)()) << 32 | u64::from(id);
        let request = Request { local: id, ..request };
        let peer_qpn = roci_units::Qpn::new(0);
        let (last, retries, timer) = (None, 0, None);
        let (state, remote, guid) = (State::Asking, 0, None);
        let (is_heard, late) = (false, now + LATE);
        let connection = Connection {
            peer,
            state,
            remote,
            guid,
            transaction,
            peer_qpn,
            last,
            retries,
            timer,
            is_heard,
            was_connected: false,
            late,
        };
        self.connections.insert(id, connection);
        self.ask(now, id, State::Asking, Mad { transaction, message: Message::Request(request) });
        Id(id)
    }

    /// Whether the peer still waits for the user's answer.
    pub fn is_asked(&self, id: Id) -> bool {
        self.connections.get(&id.0).is_some_and(|connection| connection.state == State::Asked)
    }

    /// Grants what was asked for. The ids are filled in here. `false` where it is not asked for any more.
    pub fn accept(&mut self, now: Instant, id: Id, reply: Reply) -> bool {
        let Some(connection) = self.connections.get(&id.0) else { return false };
        if connection.state != State::Asked {
            return false;
        }
        let (remote, transaction, peer) = (connection.remote, connection.transaction, connection.peer);
        self.answered(peer);
        let message = Message::Reply(Reply { local: id.0, remote, ..reply });
        self.ask(now, id.0, State::Granting, Mad { transaction, message });
        true
    }

    /// Says that we are ready after the peer granted the connection. `false` where it is over by now.
    pub fn ready(&mut self, id: Id) -> bool {
        let Some(connection) = self.connections.get_mut(&id.0) else { return false };
        if connection.state != State::Granted {
            return false;
        }
        connection.state = State::Connected;
        let message = Message::ReadyToUse { local: id.0, remote: connection.remote };
        let mad = Mad { transaction: connection.transaction, message };
        connection.last = Some(mad);
        self.outgoing.say(connection.peer, mad);
        true
    }

    /// The queue pair has received the first request of the peer, which therefore knows that we have granted it: its word that it does may
    /// have been lost (IBTA Vol 1 §12.9.7.2, *Communication Established*).
    pub fn begun(&mut self, id: Id) {
        if self.connections.get(&id.0).is_some_and(|connection| connection.state == State::Granting) {
            self.establish(id.0);
        }
    }

    /// The peer knows that we have granted it.
    fn establish(&mut self, id: u32) {
        self.stop(id);
        self.set(id, State::Connected);
        self.events.push_back(Event::Established(Id(id)));
    }

    /// Refuses what the peer asked for, or what it granted. `false` where it is over by now. What was asked for is refused again to who asks
    /// again, until [`Event::Forgotten`].
    pub fn reject(
        &mut self,
        now: Instant,
        id: Id,
        reason: u16,
        private: Private<{ roci_wire::cm::REJECT_PRIVATE }>,
    ) -> bool {
        let Some(connection) = self.connections.get_mut(&id.0) else { return false };
        let of = match connection.state {
            State::Asked => Answered::Request,
            State::Granted => Answered::Reply,
            _ => return false,
        };
        let reject = Reject { local: id.0, remote: connection.remote, of, reason, guid: None, private };
        let mad = Mad { transaction: connection.transaction, message: Message::Reject(reject) };
        connection.last = Some(mad);
        let peer = connection.peer;
        self.outgoing.say(peer, mad);
        if of == Answered::Request {
            self.answered(peer);
        }
        self.end(now, id.0);
        true
    }

    /// Wishes to end a connection, in whatever state it is.
    pub fn disconnect(&mut self, now: Instant, id: Id) {
        let Some(connection) = self.connections.get(&id.0) else { return };
        match connection.state {
            State::Asking => {
                // Who takes note of it need not wait for us. It can only be told how we call it.
                self.say_timed_out(now, id.0);
            }
            State::Asked | State::Granted => {
                self.reject(now, id, reason::CONSUMER, Private::NONE);
            }
            State::Granting | State::Connected => {
                let (remote, qpn) = (connection.remote, connection.peer_qpn);
                let transaction = u64::from((self.random)()) << 32 | u64::from(id.0);
                let message = Message::DisconnectRequest { local: id.0, remote, qpn };
                self.ask(now, id.0, State::Leaving, Mad { transaction, message });
            }
            State::Leaving | State::Over => {}
        }
    }

    /// It is `now`: sends again what was not answered, and gives up what was sent too often.
    pub fn wake(&mut self, now: Instant) {
        self.wake_queries(now);
        while let Some(&(at, id)) = self.timers.first()
            && at <= now
        {
            self.stop(id);
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            if connection.state == State::Over {
                self.forget(id);
                continue;
            }
            if connection.retries > 0
                && let Some(mad) = connection.last
            {
                connection.retries -= 1;
                self.outgoing.say(connection.peer, mad);
                self.start(id, now + interval(RESPONSE_TIMEOUT));
                continue;
            }
            self.give_up(now, id);
        }
    }

    /// The next datagram to send, and where to.
    pub fn poll_transmit(&mut self) -> Option<(IpAddr, [u8; MAD_LEN])> {
        self.outgoing.0.pop_front().map(|(peer, mad)| (peer, mad.emit()))
    }

    /// Whether there is one.
    pub fn has_to_transmit(&self) -> bool {
        !self.outgoing.0.is_empty()
    }

    /// The next thing that has happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to `wake` it.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let first = [self.timers.first(), self.queries.timers.first()];
        first.into_iter().flatten().map(|(at, _)| *at).min()
    }

    /// Connections that are remembered, and requests for the datagrams of services.
    pub fn len(&self) -> usize {
        self.connections.len() + self.queries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn draw(&mut self) -> u32 {
        loop {
            let drawn = (self.random)();
            let id = self.place.map_or(drawn, |place| drawn / SLOTS * SLOTS + place);
            if id != 0 && !self.connections.contains_key(&id) && !self.queries.has(id) {
                return id;
            }
        }
    }

    /// The state of our connection `local` if `from` is its peer and calls it `remote`, or we do not know yet how it does.
    fn state(&self, from: IpAddr, local: u32, remote: u32) -> Option<State> {
        let connection = self.connections.get(&local)?;
        let fits =
            connection.peer == from && (connection.remote == remote || connection.state == State::Asking);
        fits.then_some(connection.state)
    }

    fn set(&mut self, id: u32, state: State) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.state = state;
        }
    }

    fn start(&mut self, id: u32, at: Instant) {
        self.stop(id);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.timer = Some(at);
            self.timers.insert((at, id));
        }
    }

    fn stop(&mut self, id: u32) {
        if let Some(at) = self.connections.get_mut(&id).and_then(|connection| connection.timer.take()) {
            self.timers.remove(&(at, id));
            self.over.remove(&(at, id));
        }
    }

    /// Sends what wants an answer.
    fn ask(&mut self, now: Instant, id: u32, state: State, mad: Mad) {
        if let Some(connection) = self.connections.get_mut(&id) {
            (connection.state, connection.last, connection.retries) = (state, Some(mad), RETRIES);
            self.outgoing.say(connection.peer, mad);
            self.start(id, now + interval(RESPONSE_TIMEOUT));
        }
    }

    /// From now on it is only remembered: as long as the peer may send again.
    fn end(&mut self, now: Instant, id: u32) {
        self.set(id, State::Over);
        let at = now + patience(RESPONSE_TIMEOUT, RETRIES);
        self.start(id, at);
        self.over.insert((at, id));
        while self.over.len() > OVER_MAX
            && let Some(&(_, oldest)) = self.over.first()
        {
            self.stop(oldest);
            self.forget(oldest);
        }
    }

    /// What was connected is so no longer.
    fn disconnected(&mut self, now: Instant, id: u32) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.was_connected = true;
        }
        self.end(now, id);
        self.events.push_back(Event::Disconnected(Id(id)));
    }

    /// One that is over, and has no timer, is remembered no longer.
    fn forget(&mut self, id: u32) {
        let Some(connection) = self.connections.remove(&id) else { return };
        if connection.was_connected {
            self.events.push_back(Event::TimeWaitExit(Id(id)));
        } else if connection.has_refused() {
            self.events.push_back(Event::Forgotten(Id(id)));
        }
        let key = (connection.peer, connection.remote);
        if self.asked.get(&key) == Some(&id) {
            self.asked.remove(&key);
        }
    }

    /// Sends again what was said last.
    fn repeat(&mut self, id: u32) {
        if let Some(connection) = self.connections.get(&id)
            && let Some(mad) = connection.last
        {
            self.outgoing.say(connection.peer, mad);
        }
    }

    /// Nobody has answered.
    fn give_up(&mut self, now: Instant, id: u32) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.state == State::Asked {
            // The user; and by now nobody waits for what it would say.
            let peer = connection.peer;
            self.answered(peer);
            self.end(now, id);
            self.events.push_back(Event::Unreachable(Id(id)));
            return;
        }
        if !matches!(connection.state, State::Asking | State::Granting) {
            connection.last = None;
            self.disconnected(now, id);
            return;
        }
        let is_heard = connection.is_heard && connection.state == State::Asking;
        self.say_timed_out(now, id);
        self.events.push_back(if is_heard { Event::Unanswered(Id(id)) } else { Event::Unreachable(Id(id)) });
    }

    /// Tells the peer that we wait no longer. It may not have told us how it calls the connection: it finds it by our id and
    /// our device, as Linux does for this reason whatever the ids are.
    fn say_timed_out(&mut self, now: Instant, id: u32) {
        let guid = Some(self.guid);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let (remote, of, private) = (connection.remote, Answered::Other, Private::NONE);
        let reject = Reject { local: id, remote, of, reason: reason::TIMEOUT, guid, private };
        let mad = Mad { transaction: connection.transaction, message: Message::Reject(reject) };
        connection.last = Some(mad);
        self.outgoing.say(connection.peer, mad);
        self.end(now, id);
    }

    /// The user has to answer a request of `peer` more.
    fn wait_for_user(&mut self, peer: IpAddr) {
        self.pending += 1;
        *self.pending_of.entry(peer).or_default() += 1;
    }

    /// A request of `peer` waits for the user no more.
    fn answered(&mut self, peer: IpAddr) {
        self.pending -= 1;
        if let Some(left) = self.pending_of.get_mut(&peer) {
            *left -= 1;
            if *left == 0 {
                self.pending_of.remove(&peer);
            }
        }
    }

    /// Whether there is room for another request of `peer`.
    fn has_room_for(&self, peer: IpAddr) -> bool {
        self.pending < PENDING_MAX && self.pending_of.get(&peer).is_none_or(|count| *count < PENDING_SHARE)
    }
}

#[cfg(test)]
mod tests;
