//! Homa's receiver (Montazeri et al., SIGCOMM 2018, §3.3 to §3.7): whom it grants how much and at which priority, and
//! what it asks for again.
//!
//! Messages with octets still to be granted stand in order of the octets that have still to come (SRPT), the first of each sender:
//! overcommitment is for senders that do not answer because others have their turn there (§3.5), and who does not answer to one
//! grant answers to none. The first few, as many as the degree of overcommitment says, have their turn with each packet that comes of them: they are to be
//! granted so much that a round trip's worth of octets is under way, each on a priority of its own, of which the lowest
//! are used first. A packet that arrives moves its message forward, and may let another in. A small part of the link is the oldest
//! message's, whatever its place.
//!
//! The agent says whose turn it is and what it would say ([`PortAgent::poll`]). Where the queue pair's law hears of turns,
//! it is the law that says how far the message is granted, and the agent takes note ([`PortAgent::admit`]).
//!
//! Octets that others have overtaken are not lost yet, for packets may take any way and any priority. They are asked for
//! when a round trip has passed: octets have come that were granted after the gap was seen, or, where no
//! grants follow, the port's link was idle for two round trips. Octets that were granted on a lower priority than those
//! behind them may stand in a queue for far longer, of this link or, while it is idle, of another, and are not asked
//! for so soon. A path that holds others up by more than that makes the guess wrong, which costs a duplicate; what then comes
//! without being one shows how much later such packets may be, as TCP's sender learns it (Eifel, RFC 3522), and is waited for from then on.
//!
//! A receiver that has granted octets and hears nothing for a while says the grant once more and asks for the first that are missing, a
//! packet of them, or four times as much each time that it asks in vain or that what it asked for has to come again; who has been
//! asked in vain some times is left alone until a packet comes, for the sender has a timer of its own. Until then it has
//! no place among those that are granted, so that senders that have died do not keep out others. Where what it asked for comes as it was
//! sent first, nothing was lost, and it waits for longer the next time. Time in which the
//! port's link brings packets of other messages does not count, for what is behind them in a queue is not lost; but some intervals by the
//! clock are the end of that, lest a message wait for as long as others are sent. Only what has a higher priority than the message's place
//! in the order gives it may hold it back for longer: the order wants it so, and then its sender is told that it is not forgotten.
//!
//! READ data needs no grants: who reads is the receiver, and asks for so much of it (`credit::room`). What is missing of it is asked
//! for by the same rules, where it is kept out of order: a request is the grant, and all data of a queue pair are one message
//! that goes on. A READ request or an atomic has no payload and is all of its message: others that it has overtaken are asked for when
//! the link was idle for two round trips.
//!
//! Where all has come that was granted, and no more is granted for now, the sender gets an acknowledgement, so that it
//! need not wonder what became of its packets while others have their turn.

mod oldest;
mod order;
mod ranges;
mod reads;
mod silence;

use super::PortAgent;
use crate::messages::RESENDS_AT_ONCE;
use alloc::collections::{BTreeMap, BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;
use oldest::Favour;
use order::{Order, Rank};
use ranges::Ranges;
use reads::Awaited;
use roci_control::homa::Params;
use roci_control::{Class, Emit, Event, Part};
use roci_units::{BitsPerSec, Instant, Qpn, Span};
use silence::{Busy, Heard, Probe};

/// The grants of a port.
#[derive(Debug)]
pub struct Grants {
    params: Params,
    /// Messages that have begun to arrive, and places of such that have ended.
    messages: Vec<Incoming>,
    vacant: Vec<u32>,
    /// Where each message is, in order of queue pair and number.
    places: Vec<((u32, u32), u32)>,
    /// The messages that have octets to be granted.
    order: Order,
    /// What is to be sent.
    out: VecDeque<(Qpn, Emit)>,
    /// No message has waited too long before this.
    check: Instant,
    /// READ data on their way in, by queue pair.
    reads: BTreeMap<u32, Awaited>,
    /// What is missing or has gaps that are looked at, by how long the link has been idle when they are due.
    looks: BinaryHeap<Reverse<(Span, Whole)>>,
    /// By how much packets came later than others that were sent after them, of late the most: how long the link was idle meanwhile, and
    /// how long it was. Paths have unequal queues.
    lateness: (Span, Span),
    /// How many more packets of READ data a silence asks for at first, in doublings: silences of late were losses.
    steps: u32,
    /// How long messages were silent of late though nothing was lost: what is asked for in vain came then as it was sent first.
    lull: Span,
    link: BitsPerSec,
    overhead: u32,
    /// How long the link took for what has come.
    busy: Busy,
    /// Packets so far that have brought new octets.
    moves: u64,
    /// What part of all octets the oldest message is owed, in 16.16, and how many octets it is owed, in 48.16.
    oldest: u32,
    owed: u64,
}

/// A message on its way in.
#[derive(Debug)]
struct Incoming {
    qpn: u32,
    message: u32,
    /// The host that sends it.
    sender: u64,
    length: u32,
    /// Octets from the start that the sender may send.
    granted: u32,
    received: Ranges,
    /// When its first octets and when new ones came last, in [`Grants::moves`].
    began: u64,
    since: u64,
    /// What it has had as the oldest.
    favour: Favour,
    /// When it was last heard of, granted something or asked for.
    heard: Heard,
    /// When its sender was last told of its grant, and whether it is about to be told of it once more.
    told: Instant,
    reminds: bool,
    /// How often it was asked for since a packet came; once more than [`Params::resends`], it was given up.
    asked: u16,
    /// What was asked for of it after a silence.
    probe: Option<Probe>,
    /// The longest payload that came.
    packet: u32,
    /// How much is asked for after a silence.
    first_ask: u32,
    /// What the sender sends without a grant.
    unasked: u32,
    /// Whether a packet has come since it had its turn.
    moved: bool,
    look: Option<Look>,
    /// The priority of the last grant, and the octets that were granted on lower ones: those may come after later ones.
    /// A packet that begins among them is one of theirs.
    priority: u8,
    raised: u32,
}

/// What is looked at: a message, by its place, or the READ data of a queue pair, or the requests without payload that come to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Whole {
    Message(u32),
    Reads(u32),
    Requests(u32),
}

/// A look at the gaps of a message, each between octets that have come.
#[derive(Clone, Copy, Debug)]
struct Look {
    /// The end of what had come then: gaps beyond are of the next look.
    until: u32,
    /// What was granted then: octets beyond it come a round trip later.
    granted: u32,
    /// How long the link had been idle then, and when that was.
    seen: (Span, Instant),
    /// How long the port's link has been idle when the gaps are asked for at the latest.
    due: Span,
}

impl Incoming {
    const fn remaining(&self) -> u32 {
        self.length - self.received.octets
    }

    /// Whether all has come that was granted.
    const fn is_through(&self) -> bool {
        self.received.octets == self.granted
    }

    /// Where the packets end that began among octets which were granted on lower priorities than the last.
    fn raised_packets(&self) -> u32 {
        self.raised.div_ceil(self.packet).saturating_mul(self.packet)
    }

    /// A request for octets of it by `priority`.
    fn resend(&self, offset: u32, end: u32, priority: u8) -> (Qpn, Emit) {
        let &Self { qpn, message, length: message_length, .. } = self;
        let part = Part { message, message_length, offset, end, priority };
        (Qpn::new(qpn), Emit { part, ..Emit::plain(Class::RESEND) })
    }

    const fn rank(&self, place: u32) -> Rank {
        Rank { remaining: self.remaining(), since: self.since, place }
    }

    fn is_given_up(&self, params: &Params) -> bool {
        self.asked > u16::from(params.resends)
    }
}

impl Grants {
    /// An agent that grants by `params`, at a port of `link` where a packet takes `overhead` octets beside its payload.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "a part of at most one, in 16.16")]
    pub const fn new(params: Params, link: BitsPerSec, overhead: u16) -> Self {
        Self {
            params,
            messages: Vec::new(),
            vacant: Vec::new(),
            places: Vec::new(),
            order: Order::new(),
            out: VecDeque::new(),
            check: Instant::NEVER,
            reads: BTreeMap::new(),
            looks: BinaryHeap::new(),
            lateness: (Span::ZERO, Span::ZERO),
            steps: 0,
            lull: Span::ZERO,
            link,
            overhead: overhead as u32,
            busy: Busy::NEVER,
            moves: 0,
            oldest: params.oldest.fixed(16) as u32,
            owed: 0,
        }
    }

    /// Messages that are on their way in.
    #[must_use]
    pub fn incoming(&self) -> usize {
        self.places.len()
    }

    /// A packet of a message came.
    fn arrived(&mut self, event: &Event<'_>) {
        let Part { message, message_length: length, offset, end, .. } = event.part;
        let whole = offset == 0 && end == length;
        if whole || end > length || offset >= end {
            return;
        }
        let place = match self.find(event.qpn, message) {
            Ok(at) => self.places[at].1,
            Err(_) => self.begin(event, message, length),
        };
        let incoming = &mut self.messages[place as usize];
        if incoming.length != length {
            return;
        }
        let before = incoming.rank(place);
        let (fills, octets) = (offset >= incoming.raised, incoming.received.octets);
        let overtaken = incoming.look.filter(|look| offset < look.until && fills);
        incoming.received.add(offset, end);
        if let Some(look) = overtaken.filter(|_| octets < incoming.received.octets && !is_again(event)) {
            self.came_late(event.now, &look);
        }
        let incoming = &mut self.messages[place as usize];
        let unasked = event.words.get(INCOMING).copied().unwrap_or(0).min(length);
        // What its sender sends unasked is as good as granted.
        incoming.unasked = incoming.unasked.max(unasked);
        incoming.granted = incoming.granted.max(unasked).max(end);
        incoming.packet = incoming.packet.max(end - offset);
        // Who keeps nothing out of order has to be sent all again.
        incoming.first_ask = if event.missing > 0 { u32::MAX } else { incoming.packet };
        let new = octets < incoming.received.octets;
        if new {
            self.moves += 1;
            incoming.since = self.moves;
        }
        if incoming.favour.stale > 0 {
            let come_late = if new || is_again(event) { 0 } else { end - offset };
            self.get_over(event.now, place, come_late);
        }
        let incoming = &mut self.messages[place as usize];
        let probed = incoming.probe.take_if(|probe| new && probe.asked.contains(&offset));
        if let Some(probe) = &probed {
            self.learn(event.now, probe, is_again(event));
        }
        let incoming = &mut self.messages[place as usize];
        incoming.heard = Heard { at: event.now, busy: self.busy };
        (incoming.asked, incoming.moved) = (0, true);
        let (after, more) = (incoming.rank(place), incoming.received.octets - octets);
        let (complete, granted) = (incoming.remaining() == 0, incoming.granted == length);
        let sender = incoming.sender;
        if granted {
            self.order.leave(sender, before);
        } else {
            self.order.get_on(sender, before, after);
        }
        if complete {
            self.end(place);
        }
        if let Some(octets) = self.look(place, offset, event.now) {
            self.messages[place as usize].probe.take_if(|probe| probe.asked.start < octets.end);
            self.ask_for_overtaken(place, octets);
        }
        if let Some(probe) = probed.filter(|_| !complete && is_again(event)) {
            self.probe_further(place, probe);
        }
        self.take_turns();
        self.owe(event.now, more);
        if !complete {
            self.check(place);
            if self.messages[place as usize].is_through() {
                let part = Part { message, ..Part::default() };
                self.out.push_back((Qpn::new(event.qpn), Emit { part, ..Emit::plain(Class::ACK) }));
            }
        }
    }

    /// How long the link has been idle.
    fn idle(&self, now: Instant) -> Span {
        now.since(Instant::ZERO).saturating_sub(self.busy.all)
    }

    /// Two round trips, or as much as fits into the interval: for so long the link is idle where octets are lost.
    fn two_trips(&self) -> Span {
        let octets = self.params.unscheduled.max(self.params.grant(0, u32::MAX));
        (self.link.time_for(octets.into()) * 2).min(self.params.resend)
    }

    /// For how long the link is idle where what others have overtaken is lost: two round trips, and twice as much later as packets have come
    /// of late.
    fn late(&self) -> Span {
        self.two_trips().max(self.lateness.0 * 2).min(self.params.resend)
    }

    /// A packet came that others had overtaken as `look` was taken.
    fn came_late(&mut self, now: Instant, look: &Look) {
        let (idle, wall) = self.lateness;
        let before = |span: Span| Span::from_ps(span.as_ps() / 64 * 63);
        let idle = before(idle).max(self.idle(now).saturating_sub(look.seen.0));
        self.lateness = (idle, before(wall).max(now.since(look.seen.1)).min(self.params.resend));
    }

    /// Looks at the gaps of a message of which octets from `offset` on came: gives those within which gaps are losses.
    fn look(&mut self, place: u32, offset: u32, now: Instant) -> Option<Range<u32>> {
        let incoming = &self.messages[place as usize];
        let Some(until) = incoming.received.reach() else {
            self.look_away(place);
            return None;
        };
        let early = |look: Look| offset < look.granted || now < look.seen.1 + self.lateness.1;
        if incoming.look.is_some_and(early) {
            return None;
        }
        let raised = incoming.raised_packets();
        let old = self.look_away(place);
        self.look_until(place, until, now);
        old.map(|old| raised..old.until)
    }

    /// Looks at a message's gaps before `until`.
    fn look_until(&mut self, place: u32, until: u32, now: Instant) {
        let idle = self.idle(now);
        let due = idle + self.late();
        let incoming = &mut self.messages[place as usize];
        incoming.look = Some(Look { until, granted: incoming.granted, seen: (idle, now), due });
        self.looks.push(Reverse((due, Whole::Message(place))));
    }

    /// A message's gaps are looked at no longer.
    fn look_away(&mut self, place: u32) -> Option<Look> {
        let look = self.messages[place as usize].look.take()?;
        self.tidy();
        Some(look)
    }

    /// Takes what is looked at no longer off the top.
    fn tidy(&mut self) {
        while let Some(&Reverse((due, whole))) = self.looks.peek() {
            let stands = match whole {
                Whole::Message(place) => self.messages[place as usize].look.map(|look| look.due),
                Whole::Reads(qpn) => self.reads.get(&qpn).and_then(|awaited| awaited.due),
                Whole::Requests(qpn) => self.reads.get(&qpn).and_then(|awaited| awaited.requests),
            };
            if stands == Some(due) {
                return;
            }
            self.looks.pop();
            let was_queued =
                |awaited: &mut Awaited| awaited.queued.take_if(|queued| *queued == due).is_some();
            if let Whole::Reads(qpn) = whole
                && self.reads.get_mut(&qpn).is_some_and(was_queued)
            {
                self.queue_reads(qpn);
            }
        }
    }

    /// What is asked for first if nothing comes before, and when.
    fn overdue(&self) -> Option<(Instant, Whole)> {
        let &Reverse((due, whole)) = self.looks.peek()?;
        Some((Instant::ZERO + due + self.busy.all, whole))
    }

    /// Asks for what others have overtaken of a message's octets, by the priority that was granted last: what comes again is no sooner
    /// there than what may still wait in a queue.
    fn ask_for_overtaken(&mut self, place: u32, octets: Range<u32>) {
        self.ask_for(place, octets, self.messages[place as usize].priority);
    }

    /// Asks for what is missing of a message's octets.
    fn ask_for(&mut self, place: u32, octets: Range<u32>, priority: u8) {
        let incoming = &self.messages[place as usize];
        for (offset, end) in incoming.received.gaps(octets).take(RESENDS_AT_ONCE) {
            self.out.push_back(incoming.resend(offset, end, priority));
        }
    }

    /// Where a message stands among [`Grants::places`], or would stand.
    fn find(&self, qpn: u32, message: u32) -> Result<usize, usize> {
        self.places.binary_search_by_key(&(qpn, message), |&(name, _)| name)
    }

    /// The places of a queue pair's messages.
    fn of_qp(&self, qpn: u32) -> &[((u32, u32), u32)] {
        let from = self.places.partition_point(|&((other, _), _)| other < qpn);
        let count = self.places[from..].partition_point(|&((other, _), _)| other == qpn);
        &self.places[from..from + count]
    }

    fn join(&mut self, place: u32) {
        let incoming = &self.messages[place as usize];
        self.order.join(incoming.sender, incoming.rank(place));
    }

    fn leave(&mut self, place: u32) {
        let incoming = &self.messages[place as usize];
        self.order.leave(incoming.sender, incoming.rank(place));
    }

    /// A message begins. A queue pair that names more at once than its window has packets lies, and loses the first.
    #[expect(clippy::cast_possible_truncation, reason = "made one by one")]
    fn begin(&mut self, event: &Event<'_>, message: u32, length: u32) -> u32 {
        let (qpn, sender) = (event.qpn, event.peer);
        let priority = self.params.unscheduled_priority(length);
        let of_qp = self.of_qp(qpn);
        if of_qp.len() >= MESSAGES_OF_QP
            && let Some(&(_, first)) = of_qp.first()
        {
            self.leave(first);
            self.end(first);
        }
        let mut incoming = Incoming {
            qpn,
            message,
            sender,
            length,
            granted: 0,
            received: Ranges::default(),
            began: self.moves,
            since: self.moves,
            favour: Favour::default(),
            heard: Heard::NEVER,
            told: Instant::ZERO,
            reminds: false,
            asked: 0,
            probe: None,
            packet: 1,
            first_ask: 1,
            unasked: 0,
            moved: true,
            look: None,
            priority,
            raised: 0,
        };
        let place = match self.vacant.pop() {
            Some(place) => {
                let old = &mut self.messages[place as usize];
                // What the one before noted its stretches in serves this one.
                incoming.received.beyond = core::mem::take(&mut old.received.beyond);
                incoming.received.beyond.clear();
                *old = incoming;
                place
            }
            None => {
                self.messages.push(incoming);
                self.messages.len() as u32 - 1
            }
        };
        if let Err(at) = self.find(qpn, message) {
            self.places.insert(at, ((qpn, message), place));
        }
        place
    }

    fn end(&mut self, place: u32) {
        self.look_away(place);
        let Incoming { qpn, message, .. } = self.messages[place as usize];
        if let Ok(at) = self.find(qpn, message) {
            self.places.remove(at);
        }
        self.vacant.push(place);
    }

    /// Each of the first messages, none of which has another's sender, has its turn, if a packet of it has come since its last. None has
    /// one while octets of it stand in a queue that have come another way, but for the first, which is granted above others.
    fn take_turns(&mut self) {
        let first = self.order.first();
        let active = first.len().min(usize::from(self.params.overcommit));
        for (rank, at) in first[..active].iter().enumerate() {
            let incoming = &mut self.messages[at.place as usize];
            let waits = (rank > 0 || active == 1) && incoming.favour.stale > 0;
            if !waits && core::mem::take(&mut incoming.moved) {
                let part = Part {
                    message: incoming.message,
                    message_length: incoming.length,
                    offset: incoming.received.octets,
                    end: self.params.grant(incoming.received.octets, incoming.length),
                    priority: self.params.scheduled_priority(rank, active),
                };
                self.out.push_back((Qpn::new(incoming.qpn), Emit { part, ..Emit::plain(Class::GRANT) }));
            }
        }
    }
}

/// Messages of one queue pair that may be on their way in at once: each has a packet within the window.
const MESSAGES_OF_QP: usize = 1024;

/// Which word of a data packet tells the length of its message, and which how much of it comes without a grant.
const LENGTH: usize = 3;
const INCOMING: usize = 5;

/// Whether a data packet is one that was sent again.
fn is_again(event: &Event<'_>) -> bool {
    event.words.first().is_some_and(|word| word & 1 == 1)
}

impl PortAgent for Grants {
    fn on_event(&mut self, event: &Event<'_>) {
        if event.class == Class::MESSAGE {
            return self.asked_for(event);
        }
        let took = self.link.time_for(u64::from(event.length + self.overhead));
        self.busy.take(event.now, took, self.came_by(event));
        match event.class {
            Class::SEND | Class::WRITE => self.arrived(event),
            Class::READ_RESPONSE => self.awaits(event),
            Class::READ_REQUEST | Class::ATOMIC if event.missing > 0 => self.overtook(event.now, event.qpn),
            Class::BUSY => self.busy(event.now, event.qpn, event.part.message),
            _ => {}
        }
    }

    fn poll(&mut self, _now: Instant) -> Option<(Qpn, Emit)> {
        loop {
            let (qpn, emit) = self.out.pop_front()?;
            // Since it came to the end of its grants, it may have been granted more.
            let waits = |at: usize| self.messages[self.places[at].1 as usize].is_through();
            if emit.class != Class::ACK || self.find(qpn.get(), emit.part.message).is_ok_and(waits) {
                return Some((qpn, emit));
            }
        }
    }

    fn admit(&mut self, now: Instant, qpn: Qpn, part: &mut Part) -> bool {
        let Ok(at) = self.find(qpn.get(), part.message) else { return false };
        let place = self.places[at].1;
        let incoming = &mut self.messages[place as usize];
        part.end = part.end.min(incoming.length);
        let reminds = core::mem::take(&mut incoming.reminds);
        if part.end <= incoming.granted {
            part.end = incoming.granted;
            return reminds;
        }
        if part.priority > incoming.priority {
            incoming.raised = incoming.granted;
        }
        (incoming.heard, incoming.asked) = (Heard { at: now, busy: self.busy }, 0);
        (incoming.granted, incoming.priority, incoming.told) = (part.end, part.priority, now);
        self.check(place);
        let incoming = &self.messages[place as usize];
        if incoming.granted == incoming.length {
            self.leave(place);
            // Its place among the first goes to another.
            self.take_turns();
        }
        true
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let check = (self.check != Instant::NEVER).then_some(self.check);
        [check, self.overdue().map(|(at, _)| at)].into_iter().flatten().min()
    }

    fn wake(&mut self, now: Instant) {
        if self.check <= now {
            self.ask(now);
        }
        while let Some((_, whole)) = self.overdue().filter(|&(at, _)| at <= now) {
            match whole {
                Whole::Message(place) => {
                    let Some(look) = self.look_away(place) else { break };
                    let incoming = &self.messages[place as usize];
                    let (raised, reach) = (incoming.raised_packets(), incoming.received.reach());
                    self.ask_for_overtaken(place, raised..look.until);
                    if let Some(until) = reach.filter(|&reach| reach > look.until) {
                        self.look_until(place, until, now);
                    }
                }
                Whole::Reads(qpn) => self.check_reads(now, qpn),
                Whole::Requests(qpn) => self.check_requests(qpn),
            }
        }
    }

    fn forget(&mut self, qpn: Qpn) {
        let qpn = qpn.get();
        while let Some(&(_, place)) = self.of_qp(qpn).first() {
            self.leave(place);
            self.end(place);
        }
        self.await_no_longer(qpn);
        self.reads.remove(&qpn);
        self.tidy();
        self.out.retain(|(other, _)| other.get() != qpn);
    }
}

#[cfg(test)]
mod tests;
