//! What the engine remembers of a queue pair, by who reads it: requester, responder, and what both share.
//!
//! The three stand in one record of three cache lines. Attributes that queue pairs have in
//! common are kept once, in a [`Profile`]; what only trouble needs is taken when trouble comes
//! ([`Aside`](crate::aside::Aside)).

mod facts;

pub(crate) use facts::{Duties, Facts, Notes, Standing};

use crate::arrival::Deferred;
use crate::config::{Pd, QpConfig, Recovery, Service, Srq};
use crate::credit::Pacer;
use crate::delivery::irn::{FEW_IN_FLIGHT, Irn, timeout_of_few};
use crate::delivery::program::Recover;
use crate::queue::{Kind, NONE, RecvQueue, SendWork, flag};
use crate::state::QpState;
use crate::stream::Middle;
use core::hint::cold_path;
use roci_control::{Class, Credit};
use roci_units::{Instant, Psn, Qpn, Span};
use roci_wire::{IpVersion, Layout, Opcode, WIRE_OVERHEAD, frame_len, rnr_timer};

/// A queue pair: three cache lines, one for each part. A sender needs the first two, which the processor fetches as
/// a pair.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Qp {
    pub(crate) requester: Requester,
    pub(crate) common: Common,
    pub(crate) responder: Responder,
}

impl Qp {
    /// Of what is left of the run only the fill of a ring of `ring` packets is let through whatever comes. The ring was filled as
    /// often as it was empty, and is now what is left of a whole number of rings, which are a power of two long if they are several.
    #[inline(always)]
    pub(crate) fn end_run(&mut self, ring: u8) {
        if self.common.run > 0 {
            cold_path();
            let mut left = u16::from(self.common.run) + u16::from(self.requester.staged);
            debug_assert!(left < ring.into() || ring.is_power_of_two(), "a run of several rings");
            if left >= ring.into() {
                left &= u16::from(ring) - 1;
                self.common.facts.clear(Facts::SHUTS);
            }
            #[expect(clippy::cast_possible_truncation, reason = "less than the ring")]
            {
                self.requester.staged = left as u8;
            }
            self.common.run = 0;
        }
    }

    /// Sets when the oldest packet is given up; whether the timer in the wheel has to be told.
    #[inline(always)]
    pub(crate) fn set_deadline(&mut self, at: Instant, profile: &Profile) -> bool {
        if self.common.facts.has(Facts::MARKS) {
            let in_flight = self.requester.in_flight_packets();
            self.common.facts.put(Facts::SOON, in_flight > 0 && profile.times_few(in_flight));
            self.common.facts.put(Facts::UNASKED, self.requester.has_still_to_ask());
        }
        self.requester.set_deadline(at, profile.recovery)
    }

    /// The deadline has come. If it is one of few packets in flight and more are by now, gives the later one, which holds
    /// for those: RTO_low runs from the first packet of a burst on, and says nothing of the rest of it.
    pub(crate) fn put_off(&self, profile: &Profile) -> Option<Instant> {
        let Self { requester, common, .. } = self;
        let puts_off = common.facts.has(Facts::SOON)
            && !requester.standing.has(Standing::RNR_WAIT)
            && !profile.times_few(requester.in_flight_packets());
        puts_off.then(|| requester.deadline + (profile.timeout - timeout_of_few(profile.timeout)))
    }

    /// It has `window` octets from now on.
    #[inline]
    pub(crate) fn set_window(&mut self, profile: &Profile, window: u32) {
        self.end_run(profile.ring);
        let window = profile.window(window);
        self.requester.window = window;
        self.common.asks_every = profile.asks_every_at(self.requester.pacer.rate_kbps(), window);
    }
}

/// The sending side: one cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Requester {
    /// Sequence up to which all is acknowledged. The lower 24 bits of a sequence are the PSN.
    pub(crate) una: u32,
    /// Sequence after the last packet ever sent.
    pub(crate) high: u32,
    /// The request that `high` is in, or the first that has no numbers yet.
    pub(crate) current: u32,
    /// Messages so far that consume a receive.
    pub(crate) ssn: u32,
    /// Octets of payload sent and not acknowledged.
    pub(crate) in_flight: u32,
    /// Octets that may be.
    pub(crate) window: u32,
    /// When the queue pair may send next, and at which rate.
    pub(crate) pacer: Pacer,
    /// When the oldest packet is given up for lost, or when an RNR wait ends.
    pub(crate) deadline: Instant,
    pub(crate) standing: Standing,
    pub(crate) notes: Notes,
    /// Packets of new segments that the window has already let through: the fill of the segment ring. During a
    /// [run](Common::run): what it will be after that.
    pub(crate) staged: u8,
    /// Retransmissions left before the queue pair fails.
    pub(crate) retries: u8,
    /// RNR retries left.
    pub(crate) rnr_retries: u8,
    /// READs and atomics sent and not complete.
    pub(crate) reads: u8,
    /// The priority of data.
    pub(crate) priority: u8,
    /// Packets since an acknowledgement was asked for, at most 255.
    pub(crate) unasked: u8,
}

/// What keeps a queue pair from sending anything.
pub(crate) const BLOCKED: Standing = Standing::OFFERED
    .with(Standing::PARKED)
    .with(Standing::HELD)
    .with(Standing::AWAITS_LAW)
    .with(Standing::LAW_DECIDES);

impl Requester {
    /// Packets sent and not acknowledged in order.
    #[inline(always)]
    pub(crate) const fn in_flight_packets(&self) -> u32 {
        self.high.wrapping_sub(self.una)
    }

    /// Whether something is in flight, and none of it asks for an acknowledgement.
    #[inline(always)]
    pub(crate) const fn has_still_to_ask(&self) -> bool {
        let in_flight = self.in_flight_packets();
        in_flight > 0 && in_flight <= self.unasked as u32
    }

    /// Whether the queue pair has something that only time holds back, by what this line tells.
    #[inline(always)]
    pub(crate) const fn wants_to_send(&self) -> bool {
        !self.standing.meets(BLOCKED) && (self.notes.has(Notes::RESPONSES) || self.has_requests())
    }

    /// Whether a request of it has a packet that may go.
    #[inline(always)]
    pub(crate) const fn has_requests(&self) -> bool {
        let waits = self.standing.meets(Standing::RNR_WAIT.with(Standing::RECOVERY_OUT));
        self.notes.has(Notes::SENDS)
            && !waits
            && (self.notes.has(Notes::RESENDS)
                || self.current != NONE
                    && (self.staged > 0
                        || self.in_flight < self.window
                        || self.in_flight == 0
                        || self.unasked > 0))
    }

    /// When the oldest packet is given up if the acknowledgement timer starts again: `timeout` from now (zero: never), or never
    /// when nothing is in flight. `None`: an RNR wait goes on.
    #[inline(always)]
    pub(crate) fn deadline_from(&self, now: Instant, timeout: Span) -> Option<Instant> {
        if self.standing.has(Standing::RNR_WAIT) {
            return None;
        }
        let idle = self.una == self.high && self.reads == 0;
        Some(if idle || timeout.is_zero() { Instant::NEVER } else { now + timeout })
    }

    /// Sets when the oldest packet is given up; whether the timer in the wheel has to be told. It is moved only when it fires.
    ///
    /// With go-back-N no deadline is before the last. IRN's timeout is shorter with few packets in flight, and others' after
    /// progress.
    #[inline(always)]
    pub(crate) fn set_deadline(&mut self, at: Instant, recovery: Recovery) -> bool {
        let earlier = at < self.deadline && recovery != Recovery::GoBackN;
        self.deadline = at;
        let told = at != Instant::NEVER && (!self.notes.has(Notes::ACK_TIMER) || earlier);
        if told {
            self.notes.set(Notes::ACK_TIMER);
        }
        told
    }
}

/// The receiving side, within one cache line.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Responder {
    /// Where the next octet of the message goes.
    pub(crate) address: u64,
    /// Sequence of the next packet expected. The lower 24 bits of a sequence are the PSN.
    pub(crate) expected: u32,
    /// Messages completed, modulo 2²⁴.
    pub(crate) msn: u32,
    /// The key of the region that the message goes to. With selective repeat this and the next two hold the [`Course`].
    pub(crate) key: u32,
    /// Octets of the message that may still come.
    pub(crate) remaining: u32,
    /// Octets of the message that came.
    pub(crate) received: u32,
    /// The identity of the receive request in use, in the slab; NONE: none.
    pub(crate) recv: u32,
    /// How many of the engine's keys had ended when the message's key was checked.
    pub(crate) keys_ended: u32,
    /// Receive requests that no message has taken.
    pub(crate) queue: RecvQueue,
    /// Receive requests of its own whose message has not ended.
    pub(crate) receives: u32,
    /// READs and atomics kept for replay, in the pool; NONE: none came yet.
    pub(crate) reads: u32,
    /// Packets accepted since the last acknowledgement.
    pub(crate) unacknowledged: u16,
    pub(crate) duties: Duties,
    /// The syndrome of an owed reply.
    pub(crate) owed: u8,
    /// The packet that drew an owed NAK, which is kept.
    pub(crate) trigger: Option<Psn>,
}

/// How far a responder with selective repeat has come.
///
/// It needs no place for the rest of a message, which each packet names itself: the three words take the room of those
/// that the responder in order has in their stead. A queue pair is the one or the other for life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Course {
    /// The first sequence of all.
    pub(crate) first: u32,
    /// Messages so far that consumed a receive, modulo 2²⁴: the number of the next one.
    pub(crate) number: u32,
    /// The sequence at which the message in course began.
    pub(crate) start: u32,
}

impl Responder {
    /// How far it has come; only with selective repeat.
    #[inline]
    pub(crate) const fn course(&self) -> Course {
        Course { first: self.key, number: self.remaining, start: self.received }
    }

    /// Sets how far it has come; only with selective repeat.
    #[inline]
    pub(crate) const fn set_course(&mut self, course: Course) {
        (self.key, self.remaining, self.received) = (course.first, course.number, course.start);
    }

    /// A message ended before sequence `start`; only with selective repeat.
    #[inline]
    pub(crate) const fn begin_message(&mut self, start: u32) {
        self.set_course(Course { start, ..self.course() });
    }
}

/// What both sides need.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Common {
    pub(crate) path: u64,
    pub(crate) qpn: Qpn,
    pub(crate) peer: Qpn,
    /// The oldest send request that is not complete.
    pub(crate) head: u32,
    /// The send request that was posted last.
    pub(crate) tail: u32,
    /// The first sequence sent, for laws that count from it.
    pub(crate) base: u32,
    /// What trouble needed, in its pool; NONE: there was none.
    pub(crate) aside: u32,
    /// The law's side of it, in its slab; NONE: the law hears nothing.
    pub(crate) law: u32,
    /// What that law hears of: asked for each packet.
    pub(crate) hears: Class,
    /// Requests that have come to be sent: the MSN of the next, modulo 2²⁴.
    pub(crate) msn: u32,
    /// Data packets sent.
    pub(crate) packets: u32,
    /// CNPs received.
    pub(crate) cnps: u32,
    /// Data packets received with CE.
    pub(crate) ecn_marked: u32,
    pub(crate) profile: u16,
    /// How often this place was used: a token of an earlier queue pair is refused.
    pub(crate) generation: u16,
    pub(crate) state: QpState,
    pub(crate) facts: Facts,
    /// After how many packets at most the sender asks for an acknowledgement at its rate and with its window, and so for
    /// responses that are acknowledged: as [`Profile::asks_every_at`] has it.
    pub(crate) asks_every: u8,
    /// How many packets are left of a run, of which none need be looked at by itself: they are in the middle of a message whose
    /// packets are all alike, and window and program have let them all through as things stand. Whatever changes how
    /// things stand [ends the run](Qp::end_run) first.
    pub(crate) run: u8,
}

const _: () = assert!(size_of::<Requester>() == 64);
const _: () = assert!(size_of::<Responder>() <= 64);
const _: () = assert!(size_of::<Common>() == 64);
const _: () = assert!(size_of::<Profile>() == 128);
const _: () = assert!(size_of::<Qp>() == 192);

/// Attributes, kept once for all queue pairs that have the same: two cache lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Profile {
    pub(crate) timeout: Span,
    pub(crate) pd: Pd,
    pub(crate) srq: Option<Srq>,
    pub(crate) q_key: u32,
    pub(crate) max_in_flight: u32,
    pub(crate) mtu: u16,
    /// Octets that a full packet in the middle of a WRITE, or of a SEND where that is as long, takes on the wire over
    /// IPv4, preamble and gap included; zero on layouts whose packets differ.
    pub(crate) middle_octets: u16,
    pub(crate) ack_every: u16,
    pub(crate) law: u16,
    pub(crate) initial_window: u16,
    pub(crate) layout: Layout,
    pub(crate) service: Service,
    pub(crate) recovery: Recovery,
    /// After how many packets at most the sender asks for an acknowledgement: `ack_every`, at most 255.
    pub(crate) asks_every: u8,
    pub(crate) ring: u8,
    pub(crate) priority: u8,
    pub(crate) retry: u8,
    pub(crate) rnr_retry: u8,
    pub(crate) header_room: u8,
    /// The code of the wait that our RNR NAKs ask for.
    pub(crate) rnr_timer: u8,
    pub(crate) max_rd_atomic: u8,
    pub(crate) max_dest_rd_atomic: u8,
    pub(crate) deferred: Deferred,
    /// Whether each packet of a WRITE is a message of its own.
    pub(crate) lone_writes: bool,
    /// Whether acknowledgements tell of receive requests.
    pub(crate) credits: bool,
    /// Whether a timeout sends a few packets again at first; with go-back-N alone.
    pub(crate) probes: bool,
    /// Whether WRITEs of an unreliable connection are told when they have come.
    pub(crate) tells_writes: bool,
    pub(crate) short: ShortWay,
    /// What packets in the middle of a message have in common: of a SEND, of a WRITE, and of the same that ask for an
    /// acknowledgement.
    pub(crate) middles: [Middle; 4],
}

/// Which packets of a reliable connection may go the short way of `intake`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ShortWay {
    None,
    /// Acknowledgements in order: a packet may be kept that comes early, the recovery program may own the window, packets may
    /// carry more than the standard's headers, and be placed late.
    Acknowledgements,
    /// The same, where the program owns the window, and the way is the plainest unless a law hears of them: no header has times
    /// for one.
    InWindow,
    /// The same while nothing is lost.
    InOrder,
    /// Requests as well: they are taken and acknowledged at once by the plainest rules, go-back-N with the standard layout,
    /// and their placement is immediate.
    All,
}

impl ShortWay {
    const fn of(config: &QpConfig) -> Self {
        let deferred = config.deferred.placement || config.deferred.ack_after_placement;
        match (config.service, config.recovery, config.layout) {
            (Service::Rc, Recovery::GoBackN, Layout::Standard) if !deferred => Self::All,
            (Service::Uc | Service::Ud, ..) | (_, Recovery::Ndp, _) | (.., Layout::Homa | Layout::Ndp) => {
                Self::None
            }
            (.., Layout::Cc(_)) => Self::Acknowledgements,
            (_, recovery, _) if recovery.owns_window() => Self::InWindow,
            _ => Self::InOrder,
        }
    }

    /// Whether that of an acknowledgement is the plainest if no law hears of it.
    #[inline(always)]
    pub(crate) fn is_plainest(self, recovers: bool) -> bool {
        if recovers { self == Self::InWindow } else { self >= Self::InOrder }
    }
}

impl Profile {
    /// As [`Facts::MARKS`] has it.
    pub(crate) const fn marks_deadlines(&self) -> bool {
        matches!(self.recovery, Recovery::Irn) || self.asks_seldom()
    }

    /// Whether packets may wait for an answer that they have not asked for. Under layouts `ndp` and `homa` receivers answer unasked.
    pub(crate) const fn asks_seldom(&self) -> bool {
        self.asks_every > 1 && !matches!(self.layout, Layout::Ndp | Layout::Homa)
    }

    /// Whether so many packets in flight are few enough for RTO_low. With layout `homa` receivers ask for what is missing, and do
    /// not acknowledge each packet: that few are in flight says nothing.
    #[inline]
    fn times_few(&self, in_flight: u32) -> bool {
        self.recovery == Recovery::Irn && self.layout != Layout::Homa && in_flight <= FEW_IN_FLIGHT
    }

    /// The retransmission timeout with so many packets in flight where nothing is lost; zero: never.
    #[inline(always)]
    pub(crate) fn timeout_in_order(&self, in_flight: u32) -> Span {
        match self.recovery {
            Recovery::Irn => Irn::default().timeout(in_flight, self.timeout),
            _ => self.timeout,
        }
    }

    /// Whether READ responses are acknowledged, in sequences of their own.
    #[inline]
    pub(crate) const fn separate_reads(&self) -> bool {
        self.recovery.keeps_out_of_order()
    }

    /// Whether each packet of a request is a message of its own. A WRITE with immediate is one message, for the peer's
    /// completion tells its length.
    #[inline]
    pub(crate) const fn is_lone(&self, work: &SendWork) -> bool {
        self.lone_writes && matches!(work.kind, Kind::Write) && !work.has(flag::IMMEDIATE)
    }

    /// Whether an acknowledgement names the packet that drew it, whichever of those in flight that is.
    #[inline]
    pub(crate) const fn names_packets(&self) -> bool {
        matches!(self.layout, Layout::Irn | Layout::Srnic | Layout::Ndp) && self.recovery.keeps_out_of_order()
    }

    /// Whether what of a request is neither its first nor its last packet goes the quick way of `stream`.
    #[inline]
    pub(crate) const fn streams(&self, work: &SendWork) -> bool {
        let alike = match work.kind {
            Kind::Send => true,
            Kind::Write => !self.is_lone(work),
            _ => false,
        };
        let names_place = matches!(self.layout, Layout::Irn) && work.consumes_receive();
        alike && !names_place && self.middle_octets != 0
    }

    /// After how many packets at most the sender asks for an acknowledgement when it is paced at `rate_kbps` and has a window
    /// of so many octets.
    ///
    /// Those of a slow one take no more than a quarter of the timer, or it would give up what nobody has been asked about;
    /// and a window has two at least, or it would stand still for a round trip, and for a timeout where the one packet that
    /// asks or its answer is lost.
    ///
    /// It is found where rate and window are set, so that a packet has but to be counted: to compare what is not asked for with
    /// the window at each took 1.4 ns of the 9.5 that a segment takes.
    #[inline]
    pub(crate) fn asks_every_at(&self, rate_kbps: u32, window: u32) -> u8 {
        if self.asks_every <= 1 {
            return self.asks_every;
        }
        let half = window / (2 * u32::from(self.mtu));
        let most = u8::try_from(half).map_or(self.asks_every, |half| half.clamp(1, self.asks_every));
        if rate_kbps == Credit::UNLIMITED || self.timeout.is_zero() {
            return most;
        }
        // A kilobit per second times a picosecond is this part of an octet.
        const PARTS: u64 = 8_000_000_000;
        let packet = PARTS * u64::from(middle_octets(self.layout, self.mtu));
        let quarter = u128::from(rate_kbps) * u128::from(self.timeout.as_ps() / 4);
        if quarter >= u128::from(packet * u64::from(most)) {
            return most;
        }
        u8::try_from(quarter / u128::from(packet)).map_or(most, |packets| packets.max(1))
    }

    /// What of the window that a law gives counts: an unreliable connection has none, for nothing would open it again.
    #[inline(always)]
    pub(crate) const fn window(&self, window: u32) -> u32 {
        if matches!(self.service, Service::Uc) { Credit::UNLIMITED } else { window }
    }

    /// The MTU is another one.
    pub(crate) const fn set_mtu(&mut self, mtu: u16) {
        (self.mtu, self.middle_octets) = (mtu, middle_octets_streamed(self.layout, mtu));
        self.middles = Middle::all(self.service, self.layout, mtu, self.priority);
    }

    /// Of a queue pair whose bitmaps are `bitmap` packets long.
    pub(crate) const fn new(config: &QpConfig, bitmap: u32) -> Self {
        // What nobody acknowledges waits for nothing.
        let unanswered = matches!(config.service, Service::Uc);
        let lone_writes = config.lone_writes
            && !unanswered
            && matches!(config.layout, Layout::Standard)
            && matches!(config.recovery, Recovery::GoBackN);
        let most = if config.recovery.keeps_out_of_order() { bitmap } else { MAX_OUTSTANDING };
        let wanted = if unanswered { 0 } else { config.max_in_flight };
        let max_in_flight = if wanted == 0 || wanted > most { most } else { wanted };
        // Twice in what may be in flight, as in a window.
        let half = if max_in_flight < 2 { 1 } else { max_in_flight / 2 };
        let every = if unanswered { 1 } else { config.ack_every as u32 };
        let asks_every = if every < half { every } else { half };
        Self {
            timeout: if unanswered { Span::ZERO } else { config.timeout },
            pd: config.pd,
            srq: config.srq,
            q_key: config.q_key,
            header_room: config.header_room,
            max_in_flight,
            mtu: config.mtu,
            middle_octets: middle_octets_streamed(config.layout, config.mtu),
            ack_every: config.ack_every,
            #[expect(clippy::cast_possible_truncation, reason = "bounded here")]
            asks_every: if asks_every < 255 { asks_every as u8 } else { 255 },
            law: config.law,
            initial_window: config.initial_window,
            layout: config.layout,
            service: config.service,
            recovery: config.recovery,
            ring: config.ring,
            priority: config.priority,
            retry: config.retry,
            rnr_retry: config.rnr_retry,
            rnr_timer: rnr_timer(config.min_rnr_timer),
            max_rd_atomic: config.max_rd_atomic,
            max_dest_rd_atomic: config.max_dest_rd_atomic,
            deferred: config.deferred,
            lone_writes,
            tells_writes: config.tells_writes && unanswered,
            probes: config.probes && !unanswered && matches!(config.recovery, Recovery::GoBackN),
            credits: config.credits
                && config.srq.is_none()
                && matches!(config.service, Service::Rc)
                && !matches!(config.layout, Layout::Ndp | Layout::Homa),
            short: ShortWay::of(config),
            middles: Middle::all(config.service, config.layout, config.mtu, config.priority),
        }
    }
}

/// [`Profile::middle_octets`].
const fn middle_octets_streamed(layout: Layout, mtu: u16) -> u16 {
    match layout {
        Layout::Standard | Layout::Irn => middle_octets(layout, mtu),
        Layout::Srnic | Layout::Ndp | Layout::Homa | Layout::Cc(_) => 0,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "at most 4096 octets and 300 of headers")]
const fn middle_octets(layout: Layout, mtu: u16) -> u16 {
    (frame_len(Opcode::WRITE_MIDDLE, layout, IpVersion::V4, mtu) + WIRE_OVERHEAD) as u16
}

/// Packets that may be outstanding: half the circle less one, so that "before" and "after" stay apart.
pub(crate) const MAX_OUTSTANDING: u32 = (1 << 23) - 1;

/// Packets that a bitmap of selective repeat covers unless an engine asks for longer ones
/// ([`Engine::with_bitmaps`](crate::Engine::with_bitmaps)): no more are in flight on a queue pair that keeps what
/// comes out of order.
pub const BITMAP_PACKETS: u32 = 2048;

/// The most that a bitmap covers: 400 Gb/s times 180 us in packets of 1024 octets.
pub const BITMAP_PACKETS_MAX: u32 = 8192;

impl Requester {
    pub(crate) const fn new(psn: Psn, profile: &Profile, priority: u8, credit: Credit) -> Self {
        Self {
            una: psn.get(),
            high: psn.get(),
            current: NONE,
            ssn: 0,
            in_flight: 0,
            window: profile.window(credit.window),
            pacer: Pacer::new(Span::ZERO),
            deadline: Instant::NEVER,
            standing: Standing::EMPTY,
            notes: Notes::EMPTY,
            staged: 0,
            retries: profile.retry,
            rnr_retries: profile.rnr_retry,
            reads: 0,
            priority,
            unasked: 0,
        }
    }
}

impl Responder {
    pub(crate) const fn new(psn: Psn, recovery: Recovery) -> Self {
        let mut responder = Self {
            address: 0,
            expected: psn.get(),
            msn: 0,
            key: 0,
            remaining: 0,
            received: 0,
            recv: NONE,
            keys_ended: 0,
            queue: RecvQueue::EMPTY,
            receives: 0,
            reads: NONE,
            unacknowledged: 0,
            duties: Duties::EMPTY,
            owed: 0,
            trigger: None,
        };
        responder.expect(psn, recovery);
        responder
    }

    /// The first packet of all will be `psn`.
    pub(crate) const fn expect(&mut self, psn: Psn, recovery: Recovery) {
        self.expected = psn.get();
        if recovery.keeps_out_of_order() {
            self.set_course(Course { first: psn.get(), number: 0, start: psn.get() });
        }
    }
}

/// The sequence that `psn` means, seen from `reference`: the nearest with these lower 24 bits.
#[inline]
pub(crate) const fn sequence(psn: Psn, reference: u32) -> u32 {
    reference.wrapping_add_signed(psn.since(Psn::new(reference)))
}

/// How far `a` lies after `b`, on the circle of 2³².
#[inline]
pub(crate) const fn after(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b).cast_signed()
}
