//! The state of one NIC that is made of parts.

use super::answers::Answers;
use super::cache::{self, Cache};
use super::clock::Clock;
use super::cores::Cores;
use super::counters::{ArchCounters, CoreCounters, Lookups};
use super::pcie::Link;
use super::spec::{Architecture, Time};
use crate::drain::Thresholds;
use roci_fabric::packet::PacketId;
use roci_transport::{Offer, Token};
use roci_units::{Instant, Qpn, Random, Span};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What comes due in such a NIC.
pub(crate) enum Step {
    /// The next decision whose turn it is.
    Decide,
    /// A turn's requests are on the chip.
    Requested { offer: Offer },
    /// So is its context.
    Fetched { offer: Offer },
    /// A packet is made and its payload there: it goes to the port.
    Made { packet: PacketId },
    /// A unit has done its work.
    Free { unit: usize },
    /// A packet leaves the receive FIFO.
    Begin { packet: PacketId },
    /// A packet has come through to the engine.
    Judge { packet: PacketId },
    /// The first packet that waits for its core to have room may go on.
    GoOn,
    /// Payload is in the host's memory, and its octets leave the receive FIFO.
    Placed { token: Token, frame: u32 },
}

/// What waits for a unit.
pub(crate) enum Work {
    Turn(Offer),
    Packet(PacketId),
}

/// A processing unit.
#[derive(Default)]
pub(crate) struct Unit {
    pub(crate) busy: bool,
    pub(crate) waiting: VecDeque<Work>,
}

/// Times of the architecture, by its clock.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    pub(crate) decide: Span,
    pub(crate) send: Span,
    pub(crate) pace: Span,
    pub(crate) unit_send: Span,
    pub(crate) unit_more: Span,
    pub(crate) take_out: Span,
    pub(crate) receive: Span,
    pub(crate) unit_receive: Span,
    pub(crate) timer: Span,
    pub(crate) handler: Span,
    pub(crate) loop_back: Span,
    /// From one edge of the clock to the next, rounded down; nothing without a clock.
    pub(crate) cycle: Span,
    copy: Span,
    jitter: Span,
}

/// What stays on the chip of the requests of a queue pair. One read of them is under way at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requests {
    /// How many of those that have come have not been used.
    pub(crate) left: u32,
    /// How many are on their way, and when they are there.
    pub(crate) coming: u32,
    pub(crate) ready: Instant,
    /// Whether it came again before its place was given away, so that more are fetched ahead.
    pub(crate) again: bool,
}

impl Requests {
    /// When there is one to use, if one is there or on its way: at `now`, or later.
    pub(crate) fn there(&mut self, now: Instant) -> Instant {
        if self.ready <= now {
            self.left += std::mem::take(&mut self.coming);
        }
        if self.left > 0 { now } else { self.ready.max(now) }
    }
}

/// The packet that the engine judges, for what follows from it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Judged {
    /// Octets of its frame.
    pub(crate) frame: u32,
    /// Whether it takes a receive request from the queue.
    pub(crate) takes_receive: bool,
    /// Whether a completion is written with its payload.
    pub(crate) completes: bool,
    /// Whether its octets stay in the FIFO until its payload is in its place.
    pub(crate) held: bool,
}

/// A NIC made of parts.
pub(crate) struct Machine {
    pub(crate) arch: Arc<Architecture>,
    pub(crate) times: Times,
    pub(crate) pcie: Link,
    /// Octets of a send request.
    pub(crate) request: u64,
    /// When each context has come.
    pub(crate) contexts: Cache<Instant>,
    /// What is left of the requests that a queue pair fetched.
    pub(crate) wqes: Cache<Requests>,
    pub(crate) receive_wqes: Cache<u32>,
    pub(crate) translations: Cache<Instant>,
    pub(crate) units: Vec<Unit>,
    /// The cores that run the law, if any do.
    pub(crate) cores: Option<Cores>,
    /// Queue pairs whose next packet stood in line for its core when the last one went, by their lowest bits.
    pub(crate) sliced: Vec<u32>,
    random: Random,
    /// What the packets of a turn took their unit besides.
    pub(crate) taken: Span,
    /// When the next turn may be decided, and whether that is waited for.
    pub(crate) next_turn: Instant,
    pub(crate) deciding: bool,
    /// Turns under way.
    pub(crate) turns: u32,
    /// Octets of payload ahead of the port, of each priority: what is paused takes no room from others.
    pub(crate) ahead: [u64; 8],
    /// When the last packet of each unit, or of the pipeline, was made: packets of a queue pair keep their order.
    pub(crate) made: Vec<Instant>,
    /// READ responses among them, and the acknowledgements behind those.
    pub(crate) answers: Answers,
    /// When the next packet may be handed to the port.
    pub(crate) next_out: Instant,
    /// When the next packet may leave the FIFO, and when the last one of the pipeline reached the engine.
    pub(crate) next_in: Instant,
    pub(crate) judged_last: Instant,
    pub(crate) judged: Judged,
    /// Packets in the FIFO that wait until a core has room, or that stand behind such, and since when.
    pub(crate) held_up: VecDeque<(PacketId, Instant)>,
    /// Whether the first of them is about to go on, and when it may.
    pub(crate) going_on: bool,
    pub(crate) next_on: Instant,
    /// When the next timer may be looked at.
    pub(crate) next_timer: Instant,
    /// Octets of frames in the FIFO, and the thresholds of its PAUSE.
    pub(crate) held: u64,
    pub(crate) thresholds: Thresholds,
    pub(crate) paused: bool,
    /// The priorities that it pauses, bit p for priority p.
    pub(crate) pauses: u8,
    /// Queue pairs that are halted, and until when.
    pub(crate) halted: BTreeMap<Qpn, Instant>,
    /// When software decided last about each queue pair in a loss.
    pub(crate) decided: BTreeMap<Qpn, Instant>,
    /// Until when each core of that software is busy.
    pub(crate) deciding_until: Vec<Instant>,
    /// The last acknowledgement or response, for its cycle.
    pub(crate) heard: Option<(Instant, Qpn)>,
    pub(crate) dropped_wqes: u64,
    pub(crate) halts: u64,
    pub(crate) recoveries: u64,
    pub(crate) overflowed: u64,
    pub(crate) turns_begun: u64,
    /// How long units waited for a context or for requests.
    pub(crate) units_waited: Span,
    pub(crate) packets_made: u64,
    pub(crate) made_time: Span,
}

/// How many queue pairs may have packets in line for the cores.
const SLICED: usize = 1024;

impl Machine {
    /// An idle NIC.
    pub(crate) fn new(arch: Arc<Architecture>, random: Random) -> Self {
        let span = |time: Time| arch.span(time);
        let times = Times {
            decide: span(arch.send.interval),
            send: span(arch.send.latency),
            pace: span(arch.send.pace),
            unit_send: span(arch.units.send),
            unit_more: span(arch.units.more),
            take_out: span(arch.receive.interval),
            receive: span(arch.receive.latency),
            unit_receive: span(arch.units.receive),
            timer: span(arch.timers.interval),
            handler: span(arch.cores.handler),
            loop_back: span(arch.cores.loop_back),
            cycle: arch.clock.map_or(Span::ZERO, |clock| clock.cycles(1)),
            copy: span(arch.units.copy),
            jitter: span(arch.units.jitter),
        };
        let units = arch.units.count as usize;
        let cores = Cores::new(&arch);
        // A stream for each cache, apart from what jitter draws.
        let (mut streams, mut stream) = (random.clone(), 0);
        let seed = streams.next_u64();
        let mut random_of = || {
            stream += 1;
            Random::new(seed, stream)
        };
        Self {
            times,
            pcie: Link::new(arch.pcie),
            request: arch.send_request(),
            contexts: Cache::of(&arch.context, random_of()),
            wqes: Cache::of(&arch.wqe, random_of()),
            receive_wqes: Cache::of(&arch.receive_wqe, random_of()),
            translations: Cache::of(&arch.mtt.store, random_of()),
            units: std::iter::repeat_with(Unit::default).take(units).collect(),
            sliced: if cores.is_some() { vec![u32::MAX; SLICED] } else { Vec::new() },
            cores,
            random,
            taken: Span::ZERO,
            next_turn: Instant::ZERO,
            deciding: false,
            turns: 0,
            ahead: [0; 8],
            made: vec![Instant::ZERO; units.max(1)],
            answers: Answers::default(),
            next_out: Instant::ZERO,
            next_in: Instant::ZERO,
            judged_last: Instant::ZERO,
            judged: Judged::default(),
            held_up: VecDeque::new(),
            going_on: false,
            next_on: Instant::ZERO,
            next_timer: Instant::ZERO,
            held: 0,
            thresholds: Thresholds::NEVER,
            paused: false,
            pauses: 0,
            halted: BTreeMap::new(),
            decided: BTreeMap::new(),
            deciding_until: vec![Instant::ZERO; arch.recovery.cores.max(1) as usize],
            heard: None,
            dropped_wqes: 0,
            halts: 0,
            recoveries: 0,
            overflowed: 0,
            turns_begun: 0,
            units_waited: Span::ZERO,
            packets_made: 0,
            made_time: Span::ZERO,
            arch,
        }
    }

    /// Prefetches what each turn and each packet touch.
    #[inline]
    pub(crate) fn prefetch(&self) {
        roci_prefetch::prefetch_lines::<_, 2>(&self.times);
        roci_prefetch::prefetch_lines::<_, 2>(&self.pcie);
        roci_prefetch::prefetch(&self.next_turn);
        roci_prefetch::prefetch(&self.turns);
        roci_prefetch::prefetch(&self.next_in);
        roci_prefetch::prefetch(&self.judged);
        roci_prefetch::prefetch(&self.held);
        if let Some(cores) = &self.cores {
            roci_prefetch::prefetch_lines::<_, 4>(cores);
        }
    }

    /// Octets of payload of `priority` ahead of the port.
    pub(crate) fn ahead_of(&mut self, priority: u8) -> &mut u64 {
        &mut self.ahead[usize::from(priority & 7)]
    }

    /// What was ahead of the port is there, or comes to nothing.
    pub(crate) fn is_through(&mut self, priority: u8, octets: u64) {
        let ahead = self.ahead_of(priority);
        *ahead = ahead.saturating_sub(octets);
    }

    /// The priorities of which more may be fetched ahead of the port.
    pub(crate) fn with_room(&self) -> u8 {
        let room = self.arch.send.buffer.0;
        self.ahead.iter().rev().fold(0, |some, &ahead| some << 1 | u8::from(ahead < room))
    }

    /// The first edge of the clock at or after `at`; without a clock any instant is one.
    pub(crate) fn edge(&self, at: Instant) -> Instant {
        self.arch.clock.map_or(at, |clock: Clock| clock.edge(at))
    }

    /// The unit of a queue pair; `None`: a pipeline.
    pub(crate) fn unit_of(&self, qpn: Qpn) -> Option<usize> {
        (qpn.get() as usize).checked_rem(self.units.len())
    }

    /// How long a unit is taken by so many packets of a turn; no time in a pipeline.
    pub(crate) fn work(&self, packets: u32) -> Span {
        match packets {
            0 => Span::ZERO,
            _ if self.units.is_empty() => Span::ZERO,
            _ => self.times.unit_send + self.times.unit_more * u64::from(packets - 1),
        }
    }

    /// What a unit takes for `octets` of payload besides, for copies and by chance; no time in a pipeline.
    pub(crate) fn extra(&mut self, octets: u64) -> Span {
        if self.units.is_empty() {
            return Span::ZERO;
        }
        let copy = self.times.copy * octets / 1024;
        if self.times.jitter.is_zero() {
            copy
        } else {
            copy + exponential(self.times.jitter, &mut self.random)
        }
    }

    /// Whether the next packet of `qpn` stands in line for its core already.
    pub(crate) fn is_sliced(&self, qpn: Qpn) -> bool {
        self.sliced.get(qpn.get() as usize % SLICED).is_some_and(|known| *known == qpn.get())
    }

    /// Notes whether a further packet of `qpn` stands in line behind the one that goes.
    pub(crate) fn note_sliced(&mut self, now: Instant, qpn: Qpn, more: bool) {
        let Some(cores) = &mut self.cores else { return };
        self.sliced[qpn.get() as usize % SLICED] = if more { qpn.get() } else { u32::MAX };
        if more {
            cores.table.hint(now, qpn);
        }
    }

    /// Has the context of `qpn` on the chip: when it is there.
    pub(crate) fn context(&mut self, now: Instant, qpn: Qpn) -> Instant {
        use super::counters::Cause;
        let number = cache::of(qpn);
        if let Some(at) = self.contexts.there(now, number) {
            return at;
        }
        let size = u64::from(self.arch.context.size);
        let at = self.pcie.read(now, size, Cause::Context);
        if self.contexts.insert(number, at).is_some() || !self.contexts.keeps() {
            // It was changed since it was fetched: each packet changes its queue pair's context.
            self.pcie.write(now, size, Cause::Context);
        }
        at
    }

    /// Translates the pages of `length` octets from `address` of `qpn`: when that is known. Each queue pair's buffer is
    /// its own.
    pub(crate) fn translate(&mut self, now: Instant, qpn: Qpn, address: u64, length: u32) -> Instant {
        use super::counters::Cause;
        let page = self.arch.mtt.page.0;
        if page == 0 || length == 0 || !self.arch.pcie.attached {
            return now;
        }
        let (first, last) = (address / page, address.saturating_add(u64::from(length) - 1) / page);
        let mut at = now;
        for page in first..=last {
            let number = cache::of_page(qpn, page);
            let known = self.translations.there(now, number).unwrap_or_else(|| {
                let known = self.pcie.read(now, self.arch.mtt.store.size.into(), Cause::Mtt);
                self.translations.insert(number, known);
                known
            });
            at = at.max(known);
        }
        at
    }

    /// Whether it comes from the queue in which software puts what is to be sent again (SRNIC's RetryQ, §4.4.2).
    pub(crate) fn is_retry(&self, offer: &Offer) -> bool {
        let path = self.arch.recovery.octets > 0 && self.arch.pcie.attached;
        path && offer.retransmission
    }

    /// Octets of that queue's requests, one for each packet.
    pub(crate) fn retry_octets(&self, offer: &Offer) -> u64 {
        u64::from(offer.packets) * self.request
    }

    /// What it counted.
    pub(crate) fn counters(&self) -> ArchCounters {
        const fn lookups<V: Default>(cache: &Cache<V>) -> Lookups {
            let evictions = if cache.keeps() { cache.evictions } else { cache.misses };
            Lookups { hits: cache.hits, misses: cache.misses, evictions }
        }
        ArchCounters {
            pcie: self.pcie.octets,
            context: lookups(&self.contexts),
            wqe: lookups(&self.wqes),
            receive_wqe: lookups(&self.receive_wqes),
            mtt: lookups(&self.translations),
            dropped_wqes: self.dropped_wqes,
            halts: self.halts,
            recoveries: self.recoveries,
            overflowed: self.overflowed,
            units: self.arch.units.count,
            units_waited: self.units_waited,
            turns: self.turns_begun,
            made: self.packets_made,
            made_time: self.made_time,
            cores: self.cores.as_ref().map_or(CoreCounters::default(), Cores::counters),
        }
    }
}

/// A span of an exponential distribution.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "never negative, 53 bits are exact, and the cast saturates"
)]
fn exponential(mean: Span, random: &mut Random) -> Span {
    // Above zero and at most one, so that the logarithm is finite.
    let uniform = ((random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
    Span::from_ps((-libm::log(uniform) * mean.as_ps() as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::presets;

    #[test]
    fn a_unit_is_taken_by_copies_in_proportion_to_the_octets_however_fast_it_copies() {
        let mut arch = presets::find("soft-roce").expect("it exists");
        arch.units.jitter = Time::Span(Span::ZERO);
        for (copy, octets, ps) in [(1_000, 4_096, 4_000), (4_000_000, 4_096, 16_000_000), (1_000, 100, 97)] {
            arch.units.copy = Time::Span(Span::from_ps(copy));
            let mut machine = Machine::new(Arc::new(arch.clone()), Random::new(1, 1));
            assert_eq!(machine.extra(octets), Span::from_ps(ps), "{copy} ps a KiB");
        }
    }
}
