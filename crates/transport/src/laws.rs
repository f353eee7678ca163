//! The laws of an engine, and what each remembers of whom.

use crate::config::EngineConfig;
use crate::credit::{Pacer, Tokens};
use crate::qp::Requester;
use crate::queue::NONE;
use crate::timer::{TimerId, Timers};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use roci_control::{Class, Context, Credit, Emit, Law, Outcome, Scope};
use roci_units::Instant;

/// The kind of a law's timer.
pub(crate) const TIMER_LAW: u8 = 0;
/// The kind of the timer that a port's pacer uses.
pub(crate) const TIMER_PACE: u8 = 1;

/// All laws of an engine, and what each remembers of whom.
///
/// The fields stand in the order in which packets need them.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Laws {
    pub(crate) states: Vec<LawState>,
    pub(crate) timers: Timers,
    pub(crate) laws: Vec<Law>,
    /// For laws that limit the port: their one state.
    pub(crate) ports: Vec<u32>,
    /// The first state that is vacant; the others are linked by their slots. [`NONE`]: none is.
    pub(crate) vacant: u32,
    /// Whether nothing holds the caller to the link's rate.
    pub(crate) link_is_apart: bool,
    /// By queue pair, when a law that notifies may do so next: all that a receiver needs. It reaches as far as the last
    /// one that has heard of a mark.
    pub(crate) notices: Box<[Instant]>,
}

/// What a law remembers of one queue pair, or of a port. What each packet that is sent touches comes first.
#[derive(Debug)]
#[repr(C, align(32))]
pub(crate) struct LawState {
    /// The queue pair; of a port's state, the one that spoke last.
    pub(crate) slot: u32,
    pub(crate) tokens: Tokens,
    /// What few laws need.
    extra: Option<Box<Extra>>,
    /// Octets until the byte counter's event; zero: stopped.
    pub(crate) count_down: u32,
    pub(crate) counts: u32,
    pub(crate) traces: Class,
    pub(crate) law: u16,
    /// Whether the law's timer may be armed: most laws never ask for one, and looking it up is dearer than this.
    wakes: bool,
    pub(crate) context: Context,
}

// Under congestion each live flow has one, within its 700 octets.
const _: () = assert!(size_of::<LawState>() == 96);

/// What laws need that pace the port or measure round trips.
#[derive(Debug, Default)]
struct Extra {
    port: Option<Port>,
    sent: Option<SentTimes>,
}

impl LawState {
    /// What its queue pairs share, if its law limits the port.
    #[inline]
    pub(crate) fn port(&self) -> Option<&Port> {
        self.extra.as_ref()?.port.as_ref()
    }

    /// As [`LawState::port`].
    #[inline]
    pub(crate) fn port_mut(&mut self) -> Option<&mut Port> {
        self.extra.as_mut()?.port.as_mut()
    }

    /// When packets were sent, for laws that measure round trips.
    #[inline]
    pub(crate) fn sent_mut(&mut self) -> Option<&mut SentTimes> {
        self.extra.as_mut()?.sent.as_mut()
    }

    /// Whether the times of packets are kept.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.sent.is_some())
    }

    /// When the last packet before `sequence` was sent, if it was timed; times of older packets are forgotten.
    #[inline(always)]
    pub(crate) fn sent_at(&mut self, sequence: u32) -> Instant {
        self.sent_mut().map_or(Instant::ZERO, |sent| sent.before(sequence))
    }

    /// When the packet at `sequence` was sent, if it was timed; asked again it is forgotten.
    #[cold]
    pub(crate) fn sent_alone(&mut self, sequence: u32) -> Instant {
        self.sent_mut().map_or(Instant::ZERO, |sent| sent.take(sequence))
    }

    /// When the law is to be woken, of this state at `index`.
    #[inline]
    pub(crate) fn wake(&self, timers: &Timers, index: u32) -> Instant {
        if !self.wakes {
            return Instant::NEVER;
        }
        timers.armed(TimerId { qp: index, kind: TIMER_LAW })
    }

    /// The credit of its queue pair, as it stands.
    #[inline]
    pub(crate) fn credit(&self, requester: &Requester) -> Credit {
        Credit {
            rate_kbps: self.port().map_or(requester.pacer.rate_kbps(), |port| port.pacer.rate_kbps()),
            window: requester.window,
            tokens: self.tokens.left(),
        }
    }

    /// From now on the times of packets are kept, or not.
    pub(crate) fn set_timed(&mut self, timed: bool) {
        if timed {
            self.extra.get_or_insert_default().sent.get_or_insert_default();
        } else if let Some(extra) = &mut self.extra {
            extra.sent = None;
        }
    }
}

/// What queue pairs share whose law limits the port.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) pacer: Pacer,
    pub(crate) window: u32,
    /// Queue pairs whose turn it would be.
    pub(crate) waiting: VecDeque<u32>,
    pub(crate) users: u32,
    /// Whether one of them may be parked.
    pub(crate) parks: bool,
}

/// The sending times of some packets in flight, oldest first; when it is full, packets go untimed.
#[derive(Debug, Default)]
pub(crate) struct SentTimes {
    times: VecDeque<(u32, Instant)>,
}

/// How many packets are timed at once.
const TIMED: usize = 512;

impl SentTimes {
    /// The packet before `end` is sent now.
    #[inline]
    pub(crate) fn note(&mut self, end: u32, now: Instant) {
        if self.times.len() < TIMED {
            self.times.push_back((end.wrapping_sub(1), now));
        }
    }

    /// When the last packet before `sequence` was sent, if it was timed; times of older packets are forgotten.
    #[inline(always)]
    pub(crate) fn before(&mut self, sequence: u32) -> Instant {
        while let Some(&(timed, instant)) = self.times.front() {
            let distance = sequence.wrapping_sub(timed).cast_signed();
            if distance <= 0 {
                break;
            }
            self.times.pop_front();
            if distance == 1 {
                // Those behind it were sent later.
                return instant;
            }
        }
        Instant::ZERO
    }

    /// When the packet at `sequence` was sent, if it was timed: once, for it is acknowledged once.
    pub(crate) fn take(&mut self, sequence: u32) -> Instant {
        let place = self.place(sequence);
        match self.times.get_mut(place) {
            Some((timed, instant)) if *timed == sequence => core::mem::replace(instant, Instant::ZERO),
            _ => Instant::ZERO,
        }
    }

    /// Where the packet at `sequence` stands, or would.
    fn place(&self, sequence: u32) -> usize {
        let Some(&(first, _)) = self.times.front() else { return 0 };
        let distance = |sequence: u32| sequence.wrapping_sub(first).cast_signed();
        self.times.partition_point(|&(timed, _)| distance(timed) < distance(sequence))
    }

    /// Packets from `from` to before `to` are sent again: what is acknowledged of them does not tell which of the two it
    /// answers.
    pub(crate) fn forget_between(&mut self, from: u32, to: u32) {
        let first = self.place(from);
        for (timed, instant) in self.times.iter_mut().skip(first) {
            if to.wrapping_sub(*timed).cast_signed() <= 0 {
                break;
            }
            *instant = Instant::ZERO;
        }
    }

    /// An acknowledgement of what was sent twice does not tell which of the two it answers (Karn and Partridge).
    pub(crate) fn forget(&mut self) {
        self.times.clear();
    }
}

/// The queue pair for which a law begins, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct User {
    pub(crate) slot: u32,
    pub(crate) qpn: u32,
    pub(crate) now: Instant,
}

/// What a queue pair begins with under its law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    /// The law's state; [`NONE`] where it has none yet.
    pub(crate) index: u32,
    pub(crate) credit: Credit,
    /// The priority of what it sends, where the law has an opinion.
    pub(crate) priority: Option<u8>,
    pub(crate) traces: Class,
}

/// What a law hears of that need have no state before it hears of it.
const CONGESTION: Class = Class::CE.with(Class::CNP).with(Class::TIMER).with(Class::BYTE_COUNTER);

impl Laws {
    pub(crate) fn new() -> Self {
        Self {
            laws: alloc::vec![Law::None],
            ports: alloc::vec![NONE],
            states: Vec::new(),
            vacant: NONE,
            link_is_apart: false,
            notices: Box::default(),
            timers: Timers::new(2),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "made one by one")]
    pub(crate) fn add(&mut self, law: Law) -> u16 {
        // A host has few laws and there are many hosts: no room for others is kept.
        self.laws.reserve_exact(1);
        self.ports.reserve_exact(1);
        self.laws.push(law);
        self.ports.push(NONE);
        self.laws.len() as u16 - 1
    }

    /// Asks the processor to fetch what an event touches of a law on a host that sends by one queue pair: the only
    /// state, and the law beside "none". Of many states some are in the cache anyway.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let (Some(state), Some(law)) = (self.states.first(), self.laws.get(1)) {
            roci_prefetch::prefetch_lines::<_, 2>(state);
            roci_prefetch::prefetch_lines::<_, 3>(law);
        }
    }

    pub(crate) fn law(&self, law: u16) -> Option<&Law> {
        self.laws.get(usize::from(law))
    }

    pub(crate) fn law_mut(&mut self, law: u16) -> Option<&mut Law> {
        self.laws.get_mut(usize::from(law))
    }

    /// The state of a new queue pair's law and the credit that it begins with.
    ///
    /// A law that limits nothing until it hears of congestion gets its state when it does: of two ends that are
    /// connected, few ever come to need it, and it is two thirds as large as the rest of the queue pair.
    pub(crate) fn connect(&mut self, config: &EngineConfig, number: u16, user: User) -> Begun {
        if self.may_wait(config, number) {
            let traces = self.traces(number);
            return Begun { index: NONE, credit: Credit::FREE, priority: None, traces };
        }
        self.begin(config, number, user)
    }

    /// Whether a queue pair of this law is as good without a state until the first event of congestion.
    fn may_wait(&self, config: &EngineConfig, number: u16) -> bool {
        let law = &self.laws[usize::from(number)];
        law.limiter() == Scope::Qp
            && law.traces().within(CONGESTION)
            && law.open(config.link.as_kbps(), 0, Instant::ZERO).1
                == Outcome { cycles: 0, ..Outcome::unchanged(Credit::FREE, Instant::NEVER) }
    }

    /// The state of a queue pair's law, made now, and what it begins with.
    pub(crate) fn begin(&mut self, config: &EngineConfig, number: u16, user: User) -> Begun {
        let User { slot, qpn, now } = user;
        let law = &self.laws[usize::from(number)];
        let traces = law.traces();
        if traces == Class::NONE {
            let (_, credit, _) = law.connect(config.link.as_kbps());
            return Begun { index: NONE, credit, priority: None, traces };
        }
        if self.ports[usize::from(number)] != NONE {
            let index = self.ports[usize::from(number)];
            if let Some(port) = self.states[index as usize].port_mut() {
                port.users += 1;
                let credit = Credit { window: port.window, ..Credit::FREE };
                return Begun { index, credit, priority: None, traces };
            }
        }
        let (context, outcome) = law.open(config.link.as_kbps(), qpn, now);
        let (credit, wake) = (outcome.credit, outcome.wake);
        let traces = outcome.traces.unwrap_or(traces);
        let counts = outcome.byte_counter.unwrap_or(0);
        let mut own = credit;
        let port = (law.limiter() == Scope::Port).then(|| {
            let mut pacer = Pacer::new(config.pacing_burst);
            pacer.set_rate(Instant::ZERO, credit.rate_kbps);
            own.rate_kbps = Credit::UNLIMITED;
            Port { pacer, window: credit.window, waiting: VecDeque::new(), users: 1, parks: false }
        });
        let is_port = port.is_some();
        let sent = (traces.meets(Class::ACK) && law.wants_times()).then(SentTimes::default);
        let state = LawState {
            context,
            traces,
            law: number,
            wakes: false,
            slot,
            tokens: Tokens::new(credit.tokens, law.token_unit()),
            count_down: counts,
            counts,
            extra: (port.is_some() || sent.is_some()).then(|| Box::new(Extra { port, sent })),
        };
        let index = match self.states.get(self.vacant as usize) {
            Some(vacant) => core::mem::replace(&mut self.vacant, vacant.slot),
            None => u32::try_from(self.states.len()).unwrap_or(NONE),
        };
        if index as usize == self.states.len() {
            if self.states.len() == self.states.capacity() {
                self.states.reserve_exact(if index < 16 { 2 } else { index as usize / 8 });
            }
            self.states.push(state);
        } else {
            self.states[index as usize] = state;
        }
        if is_port {
            self.ports[usize::from(number)] = index;
        }
        self.set_wake(index, wake);
        Begun { index, credit: own, priority: outcome.priority, traces }
    }

    /// What law `number` hears of.
    pub(crate) fn traces(&self, number: u16) -> Class {
        self.law(number).map_or(Class::NONE, Law::traces)
    }

    /// Whether state `index` counts the octets or the times of what is sent, of one queue pair alone.
    pub(crate) fn counts(&self, index: u32) -> bool {
        self.states.get(index as usize).is_some_and(|state| state.count_down != 0 || state.is_timed())
    }

    /// A mark arrived on a queue pair whose law, of this number, notifies.
    pub(crate) fn notify(&mut self, number: u16, slot: usize, now: Instant) -> Option<Emit> {
        if slot >= self.notices.len() {
            // By a sixty-fourth: many queue pairs must not cost double.
            let mut longer = core::mem::take(&mut self.notices).into_vec();
            let count = slot + 1 + slot / 64;
            longer.reserve_exact(count - longer.len());
            longer.resize(count, Instant::ZERO);
            self.notices = longer.into_boxed_slice();
        }
        self.laws.get_mut(usize::from(number))?.notify(&mut self.notices[slot], now)
    }

    /// A CNP of a queue pair with law `number` and state `index` has left.
    pub(crate) fn notified(&mut self, number: u16, index: u32, slot: usize, left: Instant) {
        let context = self.states.get_mut(index as usize).map(|state| &mut state.context);
        if let Some(law) = self.laws.get_mut(usize::from(number)) {
            law.notified(self.notices.get_mut(slot), context, left);
        }
    }

    /// Gives back what a queue pair's law remembered.
    pub(crate) fn disconnect(&mut self, index: u32, slot: u32) {
        if let Some(next) = self.notices.get_mut(slot as usize) {
            *next = Instant::ZERO;
        }
        if index == NONE {
            return;
        }
        let state = &mut self.states[index as usize];
        if let Some(port) = state.port_mut() {
            port.users -= 1;
            port.waiting.retain(|&waiting| waiting != slot);
            if port.users > 0 {
                return;
            }
            self.ports[usize::from(state.law)] = NONE;
        }
        self.timers.cancel(TimerId { qp: index, kind: TIMER_LAW });
        self.timers.cancel(TimerId { qp: index, kind: TIMER_PACE });
        self.states[index as usize].slot = core::mem::replace(&mut self.vacant, index);
    }

    /// Whether the law must be asked before each packet for tokens or for its port's turn.
    pub(crate) fn limits(&self, index: u32) -> bool {
        self.states.get(index as usize).is_some_and(|state| state.port().is_some() || state.tokens.limit())
    }

    /// When the law of state `index` is to be woken.
    pub(crate) fn wake(&self, index: u32) -> Instant {
        self.states.get(index as usize).map_or(Instant::NEVER, |state| state.wake(&self.timers, index))
    }

    pub(crate) fn set_wake(&mut self, index: u32, wake: Instant) {
        let state = &mut self.states[index as usize];
        if state.wake(&self.timers, index) != wake {
            state.wakes = wake != Instant::NEVER;
            self.timers.arm(TimerId { qp: index, kind: TIMER_LAW }, wake);
        }
    }

    /// Forgets the sending times of packets from `from` to before `to`, where acknowledgements name the packet that they answer.
    pub(crate) fn forget_times_between(&mut self, index: u32, from: u32, to: u32) {
        if let Some(sent) = self.states.get_mut(index as usize).and_then(LawState::sent_mut) {
            sent.forget_between(from, to);
        }
    }

    /// Forgets all sending times: an acknowledgement after a retransmission does not tell what it answers.
    pub(crate) fn forget_times(&mut self, index: u32) {
        if let Some(sent) = self.states.get_mut(index as usize).and_then(LawState::sent_mut) {
            sent.forget();
        }
    }
}
