//! The engine: who is called for what. The roles decide; this room only chooses among them.

use crate::agent::{Agents, PortAgent};
use crate::arrival::{Arrival, Deferral, Reaction, Refusal, Resolution, Token};
use crate::aside::Asides;
use crate::config::{EngineConfig, Pd, QpError, Service, Srq};
use crate::credit::flight::Flights;
use crate::credit::room::ReadRooms;
use crate::deferred_law::Backlog;
use crate::delivery::onload::SlowPath;
use crate::delivery::pool::Pool;
use crate::delivery::receive::Receiver;
use crate::delivery::sender::Sender;
use crate::incidents::{Incidents, SharedQueue};
use crate::laws::{Laws, TIMER_PACE};
use crate::memory::{Access, AccessError, Regions, RegisterError};
use crate::qp::{BITMAP_PACKETS, BITMAP_PACKETS_MAX, Common, Facts, Profile, Qp, Standing};
use crate::queue::{NONE, RecvWork, SendWork, Slab};
use crate::reads::ReadPool;
use crate::schedule::Schedule;
use crate::segment::Segment;
use crate::state::QpState;
use crate::timer::{TimerId, Timers};
use crate::token::{Purpose, TokenParts};
use crate::work::Completion;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use roci_control::Law;
use roci_units::{Instant, Qpn};
use roci_wire::{Flags, Header, Opcode, Shape};

/// The RDMA transport of one port: all its queue pairs, keys and work.
///
/// It does no I/O. `now` never goes back from one call to the next. After any call that changes something, the
/// caller asks, in this order and until each is empty: [`poll_notice`](Self::poll_notice) for packets that are to go
/// at once, [`poll_deferral`](Self::poll_deferral) for work to do elsewhere,
/// [`poll_completion`](Self::poll_completion); whenever the port is free, [`transmit`](Self::transmit) or
/// [`offer`](Self::offer); and last [`next_wakeup`](Self::next_wakeup), for sending arms timers.
///
/// The fields stand in the order in which packets need them: at some thousand hosts each operation finds its engine
/// out of the cache, and what it costs is the number of lines that it touches.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Engine {
    pub(crate) qps: Vec<Qp>,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) agent: Option<Box<Agents>>,
    pub(crate) sends: Slab<SendWork>,
    /// Entries of the queues below that wait to be polled, so that one look tells that there are none.
    pub(crate) unpolled: usize,
    /// How many keys have ended. A message whose key was checked since then need not be checked packet by packet.
    pub(crate) keys_ended: u32,
    last_pd: u32,
    pub(crate) schedule: Schedule,
    pub(crate) timers: Timers,
    pub(crate) laws: Laws,
    pub(crate) config: EngineConfig,
    outbox: VecDeque<Segment>,
    deferrals: VecDeque<Deferral>,
    completions: VecDeque<Completion>,
    pub(crate) regions: Regions,
    pub(crate) recvs: Slab<RecvWork>,
    pub(crate) shared: Vec<SharedQueue>,
    pub(crate) asides: Asides,
    pub(crate) reads: ReadPool,
    /// Places of destroyed queue pairs.
    pub(crate) vacant: Vec<u32>,
    /// Numbers that do not tell their place.
    #[expect(
        clippy::box_collection,
        reason = "engines of simulations, which are many, have none: 8 octets in place of 24"
    )]
    pub(crate) elsewhere: Option<Box<BTreeMap<u32, u32>>>,
    /// Bitmaps of senders in a loss.
    pub(crate) boards: Pool,
    /// Bitmaps of receivers with a gap.
    pub(crate) kept: Pool,
    pub(crate) refusals: [u64; Refusal::COUNT],
    /// Numbers drawn from the seed.
    pub(crate) draws: u64,
    /// What the slow paths of recovery have done.
    pub(crate) slow: SlowPath,
    /// What laws that are out have not heard.
    pub(crate) backlog: Option<Box<Backlog>>,
    /// What READs may ask for together, where that is bounded.
    pub(crate) read_rooms: Option<Box<ReadRooms>>,
    /// What requests may have under way to one place together, where that is bounded.
    pub(crate) flights: Option<Box<Flights>>,
    /// What has happened to queues and nobody was told of, where somebody wants to be.
    pub(crate) incidents: Option<Box<Incidents>>,
}

/// The kind of a queue pair's timer for pacing and parking.
pub(crate) const TIMER_SEND: u8 = 0;
/// The kind of its timer for acknowledgements and RNR waits.
pub(crate) const TIMER_ACK: u8 = 1;

impl Engine {
    /// An engine without queue pairs. Law 0 is "none" ([`Law::None`]).
    pub fn new(config: EngineConfig) -> Self {
        Self::with_bitmaps(config, BITMAP_PACKETS)
    }

    /// The same with bitmaps of selective repeat that cover `bitmap` packets: no more are in flight on a queue pair that keeps
    /// what comes out of order. Both ends need the same.
    ///
    /// # Panics
    /// When `bitmap` is no power of two from [`BITMAP_PACKETS`] to [`BITMAP_PACKETS_MAX`].
    pub fn with_bitmaps(config: EngineConfig, bitmap: u32) -> Self {
        assert!((BITMAP_PACKETS..=BITMAP_PACKETS_MAX).contains(&bitmap), "a bitmap of {bitmap} packets");
        Self {
            config,
            qps: Vec::new(),
            profiles: Vec::new(),
            vacant: Vec::new(),
            elsewhere: None,
            sends: Slab::default(),
            recvs: Slab::default(),
            shared: Vec::new(),
            laws: Laws::new(),
            asides: Asides::default(),
            reads: ReadPool::default(),
            boards: Sender::pool(bitmap, config.bitmaps_max),
            kept: Receiver::pool(bitmap, config.bitmaps_max),
            regions: Regions::new(config.seed),
            schedule: Schedule::new(),
            timers: Timers::new(2),
            unpolled: 0,
            keys_ended: 0,
            completions: VecDeque::new(),
            deferrals: VecDeque::new(),
            outbox: VecDeque::new(),
            refusals: [0; Refusal::COUNT],
            draws: 0,
            last_pd: 0,
            slow: SlowPath::default(),
            backlog: None,
            read_rooms: None,
            flights: None,
            incidents: None,
            agent: None,
        }
    }

    /// Adds a law with its parameters; queue pairs name it by the number given back ([`QpConfig::law`](crate::QpConfig)).
    /// A law whose receivers have a part in it brings the agent that plays it, unless the port has one of its kind.
    pub fn add_law(&mut self, law: Law) -> u16 {
        self.bring_agent(&law);
        self.laws.add(law)
    }

    /// A law that was added, for its parameters.
    pub fn law_mut(&mut self, law: u16) -> Option<&mut Law> {
        self.laws.law_mut(law)
    }

    /// Bounds what all queue pairs together may have asked for by READs and not yet received, to `octets`: for a port whose
    /// receive buffer holds so many. Short READs, of at most a 64th, have as much for themselves, and one that is longer goes when
    /// it is alone, or [in parts](Self::cut_reads). Without this nothing bounds them but each queue pair's window. It is said before any is posted.
    ///
    /// READs that are answered slowly hold others up, though the buffer is empty: whoever sees that it is, and that
    /// [`reads_wait`](Self::reads_wait) has not changed for a while, calls [`let_reads`](Self::let_reads).
    pub fn bound_reads(&mut self, octets: u64) {
        self.read_rooms = Some(Box::new(ReadRooms::new(octets)));
    }

    /// Nothing holds the caller to the rate of [`EngineConfig::link`], as over sockets, where it is that of some link on the way: what a
    /// law has once paced is paced at that rate when the law takes its limit away. Without this the port is the link, and is limit
    /// enough.
    pub const fn hold_to_link(&mut self) {
        self.laws.link_is_apart = true;
    }

    /// Has a READ that is longer than that bound asked for in parts of half of it, each by a request of its own, of which the peer
    /// counts each among the READs that are outstanding. It ends once, with its last part or the first that fails.
    pub fn cut_reads(&mut self) {
        if let Some(rooms) = &mut self.read_rooms {
            rooms.cut();
        }
    }

    /// Raises that bound to `octets`, if there is one and it is lower: what one queue pair may have asked for alone.
    pub fn widen_reads(&mut self, octets: u64) {
        if let Some(rooms) = &mut self.read_rooms {
            rooms.widen(octets);
        }
    }

    /// Bounds what the requests of all queue pairs with one path may have under way together, to `packets` that have been sent and
    /// not been acknowledged: for a receiver whose buffer holds so many, whatever their windows come to. A run goes whole where one
    /// packet of it has room; queue pairs beyond it wait in line. A READ or atomic is one packet until it has ended; what answers it is
    /// not among them ([`bound_reads`](Self::bound_reads)), nor are datagrams. What is taken for lost, was not answered in time, or was
    /// sent so many packets before what others have had acknowledged, is under way no more. It is said before any is posted.
    pub fn bound_flight(&mut self, packets: u32) {
        self.flights = Some(Box::new(Flights::new(packets.max(1))));
    }

    /// Where READs wait for others to end, a number that changes when any of them gets on.
    pub fn reads_wait(&self) -> Option<u32> {
        self.read_rooms.as_ref()?.waiting()
    }

    /// Makes a protection domain. [`Pd`] 0 exists from the beginning.
    pub fn allocate_pd(&mut self) -> Pd {
        self.last_pd += 1;
        Pd(self.last_pd)
    }

    /// Registers `length` octets from `address` and gives their local and remote keys, which are the same number.
    ///
    /// # Errors
    /// [`RegisterError`] says what is wrong with them.
    pub fn register(
        &mut self,
        pd: Pd,
        address: u64,
        length: u64,
        access: Access,
    ) -> Result<(u32, u32), RegisterError> {
        self.regions.register(pd, address, length, access).map(|key| (key, key))
    }

    /// Registers the whole address space, for worlds without memory, in which any address will do.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    pub fn register_everything(&mut self, pd: Pd, access: Access) -> Result<(u32, u32), RegisterError> {
        self.regions.register_everything(pd, access).map(|key| (key, key))
    }

    /// Ends a region: its keys fit no longer, not even in the middle of a message.
    ///
    /// # Errors
    /// When there is no such region.
    pub fn deregister(&mut self, key: u32) -> Result<(), AccessError> {
        self.regions.deregister(key)?;
        self.keys_ended = self.keys_ended.wrapping_add(1);
        Ok(())
    }

    /// Has a region be another one under the same keys, also in the middle of a message.
    ///
    /// # Errors
    /// [`RegisterError`] says what is wrong; nothing has changed then.
    pub fn reregister(
        &mut self,
        key: u32,
        pd: Pd,
        address: u64,
        length: u64,
        access: Access,
    ) -> Result<(), RegisterError> {
        self.regions.reregister(key, pd, address, length, access)?;
        self.keys_ended = self.keys_ended.wrapping_add(1);
        Ok(())
    }

    /// The memory of receive requests was taken away, in a world that gives the engine no keys of it: those whose name `is_gone` take no
    /// message any more, as one whose key fits no longer, not even the rest of one.
    pub fn void_recvs(&mut self, is_gone: impl Fn(u64) -> bool) {
        for recv in self.recvs.all() {
            recv.is_void |= is_gone(recv.request.id);
        }
        self.keys_ended = self.keys_ended.wrapping_add(1);
    }

    /// Invalidates a key at the peer's wish; done by the engine itself where the wish arrives. A world with several engines
    /// tells the others.
    ///
    /// # Errors
    /// When the key does not fit, is invalid already, belongs to another domain or to a region without remote rights.
    pub fn invalidate(&mut self, pd: Pd, key: u32) -> Result<(), AccessError> {
        self.regions.invalidate(pd, key)?;
        self.keys_ended = self.keys_ended.wrapping_add(1);
        Ok(())
    }

    /// Makes a shared receive queue.
    #[expect(clippy::cast_possible_truncation, reason = "made one by one")]
    pub fn create_srq(&mut self) -> Srq {
        self.shared.push(SharedQueue::EMPTY);
        Srq(self.shared.len() as u32 - 1)
    }

    /// Takes back what was posted to a shared receive queue and no message has taken, so that it can serve as a new one; tells the name
    /// of each.
    pub fn clear_srq(&mut self, srq: Srq, mut taken: impl FnMut(u64)) {
        let Some(shared) = self.shared.get_mut(srq.0 as usize) else { return };
        let mut queue = core::mem::replace(shared, SharedQueue::EMPTY).queue;
        while let Some(recv) = queue.take(&self.recvs) {
            taken(self.recvs.get(recv).request.id);
            self.recvs.remove(recv);
        }
    }

    /// Bitmaps in use, of senders in a loss and receivers with a gap.
    pub fn bitmaps_taken(&self) -> u32 {
        self.boards.taken() + self.kept.taken()
    }

    /// Times that a queue pair in a loss or with a gap would have had a bitmap and found none left
    /// ([`EngineConfig::bitmaps_max`]).
    pub const fn bitmaps_refused(&self) -> u64 {
        self.boards.refused() as u64 + self.kept.refused() as u64
    }

    /// What the slow paths of loss recovery have done, deferred or not.
    pub const fn slow_path(&self) -> SlowPath {
        self.slow
    }

    /// What became of the packets that were refused, by reason.
    pub const fn refused(&self, reason: Refusal) -> u64 {
        self.refusals[reason as usize]
    }

    /// Deals with a packet that arrived; what follows from it at once is in `reaction`, which is overwritten.
    ///
    /// It may come from anywhere: a packet that the protocol does not allow changes nothing but a counter.
    #[inline]
    pub fn receive(&mut self, now: Instant, arrival: &Arrival<'_>, reaction: &mut Reaction) {
        reaction.clear();
        if !self.take_common_acknowledgement(now, arrival, reaction) {
            self.receive_other(now, arrival, reaction);
        }
    }

    /// Whatever is no common acknowledgement.
    #[inline(never)]
    fn receive_other(&mut self, now: Instant, arrival: &Arrival<'_>, reaction: &mut Reaction) {
        if self.agent.is_some() || !self.take_common(arrival, reaction) {
            self.take_any(now, arrival, reaction);
        }
        self.take_notice(reaction);
    }

    /// What is to be sent besides an answer goes with the reaction.
    #[inline]
    pub(crate) fn take_notice(&mut self, reaction: &mut Reaction) {
        if self.unpolled > 0 && reaction.notice.is_none() {
            reaction.notice = self.poll_notice();
        }
    }

    /// The long way of a packet that arrived.
    #[inline(never)]
    fn take_any(&mut self, now: Instant, arrival: &Arrival<'_>, reaction: &mut Reaction) {
        if let Err(refusal) = self.accept(now, arrival, reaction) {
            self.refusals[refusal as usize] += 1;
            reaction.refused = Some(refusal);
            if arrival.ce {
                self.hear_mark_of_refused(now, arrival, refusal);
            }
        }
        // NDP's receiver pulls for duplicates as well: they were sent for want of something.
        if self.agent.is_some()
            && (reaction.refused.is_none()
                || reaction.refused == Some(Refusal::Duplicate) && self.is_pulled(arrival.header))
        {
            self.tell_agent(now, arrival);
        }
    }

    #[inline]
    fn accept(
        &mut self,
        now: Instant,
        arrival: &Arrival<'_>,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let slot = self.place(arrival.header.dest_qpn).ok_or(Refusal::NoQueuePair)?;
        let common = &self.qps[slot].common;
        let profile = &self.profiles[usize::from(common.profile)];
        if !common.state.receives() {
            return Err(Refusal::NoQueuePair);
        }
        let opcode = arrival.header.opcode;
        let shape = opcode.shape();
        match profile.service {
            Service::Rc => {}
            Service::Uc => return self.on_unreliable(now, slot, arrival, reaction),
            Service::Ud => return self.on_datagram(now, slot, arrival, reaction),
        }
        if common.path != arrival.path {
            return Err(Refusal::WrongPeer);
        }
        // Those of other services lie between the reliable connections' and ours.
        if (0x20..0x80).contains(&opcode.0) || !profile.layout.permits(opcode) {
            return Err(Refusal::WrongOpcode);
        }
        self.note_stamp(slot, arrival);
        if arrival.header.flags.has(Flags::TRIMMED) {
            return Err(self.on_trimmed(now, slot, arrival.header, reaction));
        }
        if self.qps[slot].requester.standing.meets(Standing::PARKED) {
            self.unpark_by(now, slot, arrival);
        }
        if shape.has(Shape::AGENT) {
            self.on_law_packet(now, slot, arrival)
        } else if opcode == Opcode::READ_ACKNOWLEDGE {
            if self.profile(slot).separate_reads() {
                return self.on_read_acknowledge(now, slot, arrival);
            }
            // READ responses share the PSNs of requests: there is nothing that it could acknowledge.
            Err(Refusal::WrongOpcode)
        } else if !shape.has(Shape::RESPONSE) {
            self.on_request(now, slot, arrival, reaction)
        } else if opcode == Opcode::CNP {
            self.on_cnp(now, slot, arrival);
            Ok(())
        } else {
            self.on_response(now, slot, arrival, reaction)
        }
    }

    /// Asks the processor to fetch the engine's own lines, before any operation that is known to come.
    #[inline]
    pub fn prefetch(&self) {
        roci_prefetch::prefetch_lines::<_, 5>(self);
        roci_prefetch::prefetch_lines::<_, 2>(&self.timers);
        roci_prefetch::prefetch(&self.laws.timers);
    }

    /// Asks the processor to fetch what [`receive`](Self::receive) will touch of a queue pair for a packet with
    /// `header`. The engine's own lines should have come by then.
    #[inline]
    pub fn prefetch_receive(&self, header: &Header) {
        let Some(place) = direct(header.dest_qpn) else { return };
        let Some(qp) = self.qps.get(place) else { return };
        roci_prefetch::prefetch(&qp.requester);
        roci_prefetch::prefetch(&qp.common);
        roci_prefetch::prefetch_at(&self.profiles, 0);
        if header.opcode == Opcode::CNP {
            self.laws.prefetch();
        } else if header.opcode.shape().has(Shape::RESPONSE) {
            self.sends.prefetch();
        } else {
            roci_prefetch::prefetch(&qp.responder);
        }
    }

    /// The same for [`transmit`](Self::transmit) and for [`wake`](Self::wake): the queue pair whose turn or whose
    /// timer is next, as far as that can be told.
    #[inline]
    pub fn prefetch_transmit(&self) {
        // A sender's timer is known without work, and whose turn it is only after another fetch.
        let place = self.timers.first().map(|id| id.qp).or_else(|| self.schedule.ahead(u8::MAX, 0));
        self.schedule.prefetch();
        let Some(qp) = place.and_then(|place| self.qps.get(place as usize)) else { return };
        roci_prefetch::prefetch(&qp.requester);
        roci_prefetch::prefetch(&qp.common);
        roci_prefetch::prefetch_at(&self.profiles, 0);
        self.sends.prefetch();
        roci_prefetch::prefetch_at(&self.laws.states, 0);
        if self.laws.timers.next() < self.timers.next() {
            self.laws.prefetch();
        }
    }

    /// Gives back the result of a deferral. A token that was spent, or whose queue pair is gone, changes nothing.
    pub fn resolve(&mut self, now: Instant, token: Token, resolution: Resolution) {
        let parts = TokenParts::read(token);
        let slot = parts.slot as usize;
        let is_of = |common: &Common| common.facts.has(Facts::ALIVE) && common.generation == parts.generation;
        if !self.qps.get(slot).is_some_and(|qp| is_of(&qp.common)) {
            return;
        }
        match (parts.purpose, resolution) {
            (Purpose::Law, Resolution::Law(outcome)) => self.law_answered(now, slot, parts.number, &outcome),
            (Purpose::Inbound, Resolution::Placed) => self.placed_inbound(now, slot, parts.number),
            (Purpose::Outbound, Resolution::Placed) => self.placed_outbound(slot, parts.number),
            (Purpose::Recovery, Resolution::Recovered) => self.recovered(now, slot, parts.number),
            (Purpose::Gap, Resolution::Recovered) => self.gap_resolved(now, slot, parts.number),
            (Purpose::ReadGap, Resolution::Recovered) => self.read_gap_resolved(now, slot, parts.number),
            (Purpose::LostResponses, Resolution::Recovered) => {
                self.lost_responses_decided(now, slot, parts.number);
            }
            (Purpose::Memory, Resolution::Memory { original }) => {
                self.memory_answered(now, slot, parts.number, original);
            }
            _ => {}
        }
    }

    /// Whether there is anything to poll: a notice, a deferral or a completion.
    #[inline(always)]
    pub const fn has_told(&self) -> bool {
        self.unpolled > 0
    }

    /// A packet that is to be sent at once: a late acknowledgement, or what a law emits.
    #[inline]
    pub fn poll_notice(&mut self) -> Option<Segment> {
        if self.unpolled == 0 {
            return None;
        }
        let first = self.outbox.pop_front();
        self.unpolled -= usize::from(first.is_some());
        first
    }

    /// Work that is to be done elsewhere.
    #[inline]
    pub fn poll_deferral(&mut self) -> Option<Deferral> {
        if self.unpolled == 0 {
            return None;
        }
        let first = self.deferrals.pop_front();
        self.unpolled -= usize::from(first.is_some());
        first
    }

    /// The end of a work request.
    #[inline]
    pub fn poll_completion(&mut self) -> Option<Completion> {
        if self.unpolled == 0 {
            return None;
        }
        let first = self.completions.pop_front();
        self.unpolled -= usize::from(first.is_some());
        first
    }

    /// Leaves a packet to be polled.
    pub(crate) fn post(&mut self, segment: Segment) {
        self.unpolled += 1;
        self.outbox.push_back(segment);
    }

    /// Leaves work that is done elsewhere to be polled.
    pub(crate) fn defer(&mut self, deferral: Deferral) {
        self.unpolled += 1;
        self.deferrals.push_back(deferral);
    }

    /// Leaves the end of a work request to be polled.
    pub(crate) fn tell(&mut self, completion: Completion) {
        self.unpolled += 1;
        self.completions.push_back(completion);
    }

    /// When [`wake`](Self::wake) is due, if at all.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Instant> {
        let mut at = self.timers.next().min(self.laws.timers.next());
        if let Some(agent) = self.agent.as_ref().and_then(|agent| agent.next_wakeup()) {
            at = at.min(agent);
        }
        (at != Instant::NEVER).then_some(at)
    }

    /// Fires the first timer that is due by `now`, a queue pair's or a law's, for a NIC that looks after one flow at a time
    /// (Tonic §3.2.3, Periodic Updates); false where none is. Timers of the port's agent that are due fire with it.
    ///
    /// A timeout of `heard`, which has an acknowledgement in the same cycle, is discarded (§3.4), and looked at again
    /// from `again` on: an acknowledgement that moved nothing leaves the timer as it is.
    pub fn wake_one(&mut self, now: Instant, heard: Option<Qpn>, again: Instant) -> bool {
        let of_law = self.laws.timers.next() < self.timers.next();
        let first = if of_law { self.laws.timers.expire(now) } else { self.timers.expire(now) };
        if let Some(timer) = first {
            let heard = heard.and_then(|qpn| self.place(qpn));
            if of_law {
                self.law_expired(now, timer);
            } else if timer.kind == TIMER_ACK && heard == Some(timer.qp as usize) {
                self.timers.arm(timer, again);
            } else {
                self.expired(now, timer);
            }
        }
        if self.agent.is_some() {
            self.wake_agent(now);
        }
        first.is_some()
    }

    /// Fires the timers that are due by `now`.
    pub fn wake(&mut self, now: Instant) {
        while let Some(timer) = self.timers.expire(now) {
            self.expired(now, timer);
        }
        self.wake_laws(now);
    }

    #[inline]
    fn expired(&mut self, now: Instant, TimerId { qp, kind }: TimerId) {
        let slot = qp as usize;
        if kind == TIMER_SEND {
            self.send_timer(now, slot);
        } else {
            self.ack_timer(now, slot);
        }
    }

    #[inline(always)]
    fn wake_laws(&mut self, now: Instant) {
        if self.laws.timers.next() <= now || self.agent.is_some() {
            self.fire_laws(now);
        }
    }

    #[inline(never)]
    fn fire_laws(&mut self, now: Instant) {
        while let Some(timer) = self.laws.timers.expire(now) {
            self.law_expired(now, timer);
        }
        if self.agent.is_some() {
            self.wake_agent(now);
        }
    }

    fn law_expired(&mut self, now: Instant, TimerId { qp, kind }: TimerId) {
        if kind == TIMER_PACE {
            self.port_eligible(now, qp);
        } else {
            self.law_timer(now, qp);
        }
    }

    /// Whether [`transmit_open`](Self::transmit_open) may have something to send; never false when it has.
    #[inline]
    pub fn has_work(&self, open: u8) -> bool {
        self.schedule.any(open)
    }

    /// The place of queue pair `qpn` among those of this engine, which is another's once it is destroyed.
    #[inline]
    pub fn place_of(&self, qpn: Qpn) -> Option<usize> {
        self.place(qpn)
    }

    /// The place of queue pair `qpn`.
    #[inline]
    pub(crate) fn place(&self, qpn: Qpn) -> Option<usize> {
        if let Some(place) = direct(qpn)
            && let Some(Qp { common, .. }) = self.qps.get(place)
            && common.qpn == qpn
            && common.facts.has(Facts::ALIVE)
        {
            return Some(place);
        }
        self.found_elsewhere(qpn)
    }

    #[cold]
    fn found_elsewhere(&self, qpn: Qpn) -> Option<usize> {
        self.elsewhere.as_ref()?.get(&qpn.get()).map(|&place| place as usize)
    }

    /// The place of queue pair `qpn`, or the error that there is none.
    pub(crate) fn find(&self, qpn: Qpn) -> Result<usize, QpError> {
        self.place(qpn).ok_or(QpError::Unknown(qpn))
    }

    #[inline]
    pub(crate) fn profile(&self, slot: usize) -> &Profile {
        &self.profiles[usize::from(self.qps[slot].common.profile)]
    }

    /// What trouble needs of queue pair `slot`, taken now if it is the first trouble.
    pub(crate) fn aside(&mut self, slot: usize) -> &mut crate::aside::Aside {
        let common = &mut self.qps[slot].common;
        if common.aside == NONE {
            common.aside = self.asides.take();
        }
        self.asides.get_mut(common.aside)
    }

    /// The token of something that queue pair `slot` waits for.
    pub(crate) fn token(&self, slot: usize, purpose: Purpose, number: u32) -> Token {
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        TokenParts { slot: slot as u32, generation: self.qps[slot].common.generation, purpose, number }
            .write()
    }

    pub(crate) fn state(&self, slot: usize) -> QpState {
        self.qps[slot].common.state
    }
}

/// Bits of a queue pair number that tell its place; the upper ones may be drawn at random.
pub(crate) const PLACE_BITS: u32 = 20;
/// The lowest number: 0 and 1 are for management.
pub(crate) const FIRST_QPN: u32 = 2;

/// Where a queue pair is by its number, if it is where its number says.
#[inline]
pub(crate) const fn direct(qpn: Qpn) -> Option<usize> {
    let low = qpn.get() & ((1 << PLACE_BITS) - 1);
    if low < FIRST_QPN { None } else { Some((low - FIRST_QPN) as usize) }
}
