//! Streams of events that exercise a program: what a queue pair of a busy NIC hears, drawn from a seed.

use roci_control::program::{Programmed, Run};
use roci_control::{Class, Context, Credit, Event, Hop, Law, Outcome, Part, Verdict};
use roci_units::{BitsPerSec, Instant, Random, Span};
use roci_wire::{IpVersion, Layout, Opcode, WIRE_OVERHEAD, frame_len};

/// The link that the queue pair sends on, in kb/s.
const LINK_KBPS: u32 = 100_000_000;
/// Octets of payload of most packets.
const MTU: u32 = 1_024;
/// Switches on a path, at most.
const HOPS_MAX: u32 = 5;
/// Notifications of a queue pair are at least so far apart: what a notification point keeps, however much it marks.
const CNP_GAP: Span = Span::from_micros(50);
/// What waits longer than this before the bottleneck is marked there.
const MARKED_AFTER: Span = Span::from_micros(100);
/// What the bottleneck of the path may leave to the queue pair, in Gb/s; each holds for some milliseconds.
const SHARES_GBPS: [u64; 4] = [100, 25, 10, 5];
/// What arrives as data, by the first of these that a law hears.
const DATA: [Class; 5] =
    [Class::SEND, Class::WRITE, Class::READ_RESPONSE, Class::ATOMIC, Class::READ_REQUEST];
/// What is rare in a stream of [`Kind::Even`], by the first of these that a law hears.
const RARE: [Class; 6] = [Class::CNP, Class::RNR, Class::LOSS, Class::NACK, Class::RESEND, Class::BUSY];
/// Octets of a message that go without a grant in a stream of [`Kind::Even`]: as many as Homa's programs send so.
const UNSCHEDULED: u32 = 40_000;
/// A packet that a program holds back in a stream of [`Kind::Even`] is offered again after twice the time, at most after so
/// many picoseconds: more than one of 1 KiB takes at 40 Mb/s.
const PATIENCE_PS_MAX: u32 = 300_000_000;

/// What kind of stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A connection under changing load: an acknowledgement and a data packet for each packet sent, marks on one in 25 of
    /// those that arrive, a loss now and then, messages and grants. Packets follow each other closely, and keep to the
    /// rate that the law sets. Where they are more than a bottleneck lets through, there are notifications, each
    /// 50 µs at most one, as a notification point sends them.
    Typical,
    /// 49 % packets to be sent, 49 % of what arrives for them, 2 % notifications, and the timers that run out meanwhile. What
    /// arrives is data that a switch has marked, where the law hears of those; else data and acknowledgements in turns, or
    /// the one of them that it hears; else grants of long messages. Who hears no notifications hears instead 2 % of what is
    /// rarest among the rest, or nothing more.
    ///
    /// Packets follow each other within 200 ns whatever rate the law sets, and notifications are not 50 µs apart: a queue
    /// pair that hears so many of them would soon be at a rate where its timers are the most that it hears. A program that
    /// holds packets back itself is given the time that it asks for.
    Even,
    /// Anything at all: silences, round trips of any length, other switches in each packet.
    Wild,
}

/// One run of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// What it was told, and what that took.
    pub run: Run,
    /// Whether it was asked about a packet and answered `LoopBack`.
    pub refused: bool,
}

/// What a law has limited so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// It has set a rate.
    pub rate: bool,
    /// It has set a window.
    pub window: bool,
    /// It has dealt tokens.
    pub tokens: bool,
}

impl Limits {
    const fn note(&mut self, credit: Credit) {
        self.rate |= credit.rate_kbps != Credit::UNLIMITED;
        self.window |= credit.window != Credit::UNLIMITED;
        self.tokens |= credit.tokens != Credit::UNLIMITED;
    }
}

/// A queue pair that runs a law, and what happens to it.
pub struct Stream {
    kind: Kind,
    law: Law,
    /// Words of the law's own in each packet.
    own_words: usize,
    context: Context,
    outcome: Outcome,
    limits: Limits,
    random: Random,
    now: Instant,
    acked_sequence: u32,
    next_sequence: u32,
    /// Octets until the byte counter's event; zero while it is off.
    counter: u32,
    /// The round trip in nanoseconds, and the switches of the path.
    rtt: u32,
    hops: Vec<Hop>,
    message: Part,
    /// What the bottleneck lets through, when it will have done so with all that was sent, and when the next notification
    /// may come.
    share: BitsPerSec,
    passed: Instant,
    cnp_next: Instant,
    /// When the rate lets the next packet go.
    paced: Instant,
    /// How long a packet that was held back last was waited for, in picoseconds, and whether data come next.
    patience: u32,
    data_next: bool,
}

impl Stream {
    /// A new queue pair of `law`.
    pub fn new(mut law: Law, kind: Kind, seed: u64) -> Self {
        let own_words = match &mut law {
            Law::Program(law) => {
                law.note_runs();
                usize::from(law.image().header_words())
            }
            _ => 0,
        };
        let now = Instant::ZERO + Span::from_micros(10);
        let (context, outcome) = law.open(LINK_KBPS, 1, now);
        let mut limits = Limits::default();
        limits.note(outcome.credit);
        let mut stream = Self {
            kind,
            law,
            own_words,
            context,
            counter: outcome.byte_counter.unwrap_or(0),
            outcome,
            limits,
            random: Random::new(seed, 0),
            now,
            acked_sequence: 0,
            next_sequence: 0,
            rtt: 10_000,
            hops: Vec::new(),
            message: Part::default(),
            share: BitsPerSec::from_gbps(SHARES_GBPS[0]),
            passed: now,
            cnp_next: now,
            paced: now,
            patience: 0,
            data_next: true,
        };
        stream.reroute();
        stream
    }

    /// The program's first failure, after which the stream is of no use; a native law has none.
    pub fn failure(&self) -> Option<String> {
        self.program().and_then(|law| law.tally().first()).map(ToString::to_string)
    }

    /// What the law has limited so far.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    fn program(&self) -> Option<&Programmed> {
        match &self.law {
            Law::Program(law) => Some(law),
            _ => None,
        }
    }

    /// What the law hears; a program's packets about to be sent are among it where it is asked about them.
    fn traces(&self) -> Class {
        self.program().map_or_else(|| self.law.traces(), |law| law.image().traces())
    }

    /// One packet's worth of events, each of which `hear` is told of. Returns whether the packet was sent.
    pub fn packet(&mut self, hear: &mut impl FnMut(Heard)) -> bool {
        self.wait(hear);
        let length = if self.one_in(16) { 1 + self.below(MTU) } else { MTU };
        let asked = self.traces().meets(Class::TRANSMIT);
        if asked {
            self.tell(&Event { class: Class::TRANSMIT, length, ..self.event() }, hear);
        }
        let sent = !asked || self.outcome.verdict == Verdict::Proceed;
        if sent {
            self.next_sequence = self.next_sequence.wrapping_add(1);
            self.pass(length, hear);
            self.count(length, hear);
        }
        match self.kind {
            Kind::Even => self.even(length, sent, hear),
            Kind::Typical | Kind::Wild => self.arrivals(length, sent, hear),
        }
        sent
    }

    /// What arrives for one packet, or while it is held back, in a stream of [`Kind::Even`].
    fn even(&mut self, length: u32, sent: bool, hear: &mut impl FnMut(Heard)) {
        if sent {
            self.patience -= self.patience / 8;
            if self.outcome.credit.tokens != Credit::UNLIMITED {
                self.outcome.credit.tokens = self.outcome.credit.tokens.saturating_sub(length);
            }
        } else {
            self.patience = (2 * self.patience).clamp(100_000, PATIENCE_PS_MAX);
        }
        let traces = self.traces();
        let data = DATA.into_iter().find(|class| traces.meets(*class));
        let acks = traces.meets(Class::ACK);
        self.data_next = !self.data_next || !acks;
        match data {
            _ if traces.meets(Class::CE) => {
                let event = Event { class: Class::CE, ..self.answer() };
                self.tell(&event, hear);
            }
            Some(data) if self.data_next => {
                let event = Event { class: data, length, ..self.answer() };
                self.tell(&event, hear);
            }
            _ if acks => {
                self.acknowledge(Class::ACK, length, true, hear);
            }
            _ => self.grant(hear),
        }
        let rare = RARE.into_iter().find(|class| traces.meets(*class));
        // Two for 49 packets and what arrives for them.
        if let Some(class) = rare.filter(|_| self.below(49) < 2) {
            let timeout = class == Class::LOSS && self.one_in(2);
            let part = Part { offset: self.message.end.saturating_sub(MTU), ..self.message };
            let event = Event { class, timeout, part, ..self.answer() };
            self.tell(&event, hear);
        }
    }

    /// One packet more of a long message is granted; once all of it is, another begins.
    fn grant(&mut self, hear: &mut impl FnMut(Heard)) {
        if self.message.end == self.message.message_length {
            let message_length = 1 + self.below(1 << 20);
            let end = message_length.min(UNSCHEDULED);
            self.message = Part { message: self.next_sequence, message_length, offset: 0, end, priority: 0 };
            self.hear_traced(&Event { class: Class::MESSAGE, part: self.message, ..self.event() }, hear);
        }
        let offset = self.message.end;
        self.message.end = (offset + MTU).min(self.message.message_length);
        let priority = self.random.below(8).to_le_bytes()[0];
        let part = Part { offset, priority, ..self.message };
        let event = Event { class: Class::GRANT, part, ..self.answer() };
        self.hear_traced(&event, hear);
    }

    /// A packet that was sent takes its time at the law's rate, and passes the bottleneck.
    fn pass(&mut self, length: u32, hear: &mut impl FnMut(Heard)) {
        let octets =
            frame_len(Opcode::WRITE_MIDDLE, Layout::Standard, IpVersion::V4, 0) + WIRE_OVERHEAD + length;
        let time = |rate: BitsPerSec| rate.time_for(octets.into());
        self.paced = match self.outcome.credit.rate_kbps {
            Credit::UNLIMITED => self.now,
            kbps => self.now + time(BitsPerSec::from_kbps(kbps.into())),
        };
        self.passed = self.passed.max(self.now) + time(self.share);
        let marked = self.passed.since(self.now) > MARKED_AFTER;
        if self.kind == Kind::Typical && marked && self.now >= self.cnp_next {
            self.cnp_next = self.now + CNP_GAP;
            let event = Event { class: Class::CNP, ..self.answer() };
            self.hear_traced(&event, hear);
        }
    }

    /// Time passes up to the next packet, and timers run out.
    fn wait(&mut self, hear: &mut impl FnMut(Heard)) {
        let gap = match (self.kind, self.below(64)) {
            (Kind::Typical, 0) => self.below(100_000_000),
            (Kind::Typical, _) => self.below(200_000),
            (Kind::Even, _) => self.patience + self.below(200_000),
            (Kind::Wild, 0..=7) => self.below(20_000_000),
            (Kind::Wild, 8..=9) => self.below(4_000_000_000),
            (Kind::Wild, _) => self.below(1_000_000),
        };
        let mut then = self.now + Span::from_ps(gap.into());
        if self.kind == Kind::Typical {
            then = then.max(self.paced);
        }
        while self.outcome.wake <= then {
            self.now = self.outcome.wake;
            self.tell(&Event { class: Class::TIMER, ..self.event() }, hear);
        }
        self.now = then;
        // Private timers are told before what comes next; like this they are told by themselves.
        self.tell(&Event { class: Class::TIMER, ..self.event() }, hear);
        match self.kind {
            Kind::Typical | Kind::Even => {
                let step = self.rtt / 16;
                self.rtt = (self.rtt - step / 2 + self.below(step + 1)).clamp(5_000, 600_000);
            }
            Kind::Wild => self.rtt = self.below(1_000_000),
        }
        if self.kind == Kind::Wild || self.one_in(4_096) {
            self.reroute();
        }
    }

    /// A path of other switches.
    fn reroute(&mut self) {
        if self.kind != Kind::Wild {
            self.share = BitsPerSec::from_gbps(SHARES_GBPS[self.below(4) as usize]);
        }
        let another = self.one_in(8);
        let count = match self.kind {
            Kind::Typical | Kind::Even => 1 + self.below(HOPS_MAX),
            // Mostly of one length: a program may take a path of another one for a new one.
            Kind::Wild if another => self.below(HOPS_MAX + 1),
            Kind::Wild => HOPS_MAX,
        };
        let rates: [u32; 6] = [25_000_000, 100_000_000, 400_000_000, 40_000_000, 1_000_000, 3_333_333];
        let known = if self.kind == Kind::Wild { 6 } else { 3 };
        self.hops.resize(count as usize, Hop::NONE);
        for at in 0..self.hops.len() {
            let rate_kbps = rates[self.below(known) as usize];
            self.hops[at].rate_kbps = rate_kbps;
        }
    }

    /// Octets count towards the byte counter's event.
    fn count(&mut self, length: u32, hear: &mut impl FnMut(Heard)) {
        if self.counter == 0 {
            return;
        }
        self.counter = self.counter.saturating_sub(length);
        // The counters of laws are long; here they come often enough to be seen.
        if self.counter == 0 || (self.kind != Kind::Even && self.one_in(256)) {
            self.counter = 0;
            self.tell(&Event { class: Class::BYTE_COUNTER, length, ..self.event() }, hear);
        }
    }

    /// What arrives while one packet is offered. While none is sent that is what was under way, and grants.
    fn arrivals(&mut self, length: u32, sent: bool, hear: &mut impl FnMut(Heard)) {
        let traces = self.traces();
        let data = DATA.into_iter().find(|class| traces.meets(*class));
        let class = match (data, self.kind) {
            (Some(data), Kind::Wild) if self.one_in(2) => data,
            (Some(data), Kind::Typical) if sent => {
                let event = Event { class: data, length, ..self.answer() };
                self.hear_traced(&event, hear);
                Class::ACK
            }
            _ => Class::ACK,
        };
        let wild = self.kind == Kind::Wild;
        let words = self.acknowledge(class, length, sent || wild, hear);
        if wild && self.one_in(25) {
            let event = Event { class: Class::CNP, pulled: 1, ..self.answer() };
            self.hear_traced(&event, hear);
        }
        let rare = [
            (Class::CE, 25),
            (Class::NACK, 250),
            (Class::LOSS, 250),
            (Class::RNR, 1_000),
            (Class::PULL, 4),
            (Class::TRIMMED, 16),
        ];
        for (class, every) in rare {
            if (sent || wild) && self.one_in(every) {
                let timeout = class == Class::LOSS && self.one_in(2);
                let event = Event { class, timeout, pulled: 1, ..self.answer() };
                self.hear_traced(&event, hear);
            }
        }
        // Only who hears of them draws for packets of its own: what others hear stays as it was.
        for class in (0..8).map(Class::law).filter(|class| traces.meets(*class)) {
            if self.one_in(4) {
                let event = Event { class, words: &words[..self.own_words], ..self.answer() };
                self.hear_traced(&event, hear);
            }
        }
        self.messages(hear);
    }

    /// Some of what is under way is acknowledged, by an event of this class; if nothing is, only where it is told `always`.
    /// Returns the words that a program's own packets have.
    fn acknowledge(
        &mut self,
        class: Class,
        length: u32,
        always: bool,
        hear: &mut impl FnMut(Heard),
    ) -> [u32; 16] {
        let acked = self
            .below(2 + self.next_sequence.wrapping_sub(self.acked_sequence).min(4))
            .min(self.next_sequence.wrapping_sub(self.acked_sequence));
        self.acked_sequence = self.acked_sequence.wrapping_add(acked);
        self.stamp(length);
        // A program's own words, where it has some, say how much is acknowledged, as a receiver's credit would.
        let own = self.own_words;
        let word = if self.kind == Kind::Wild { self.below(1 << 17) } else { acked * MTU };
        let words = [word; 16];
        let hops = std::mem::take(&mut self.hops);
        let seen = if own > 0 { &[][..] } else { &hops[..] };
        let event =
            Event { class, acked: acked * MTU, length, hops: seen, words: &words[..own], ..self.answer() };
        if always || acked > 0 {
            self.hear_traced(&event, hear);
        }
        self.hops = hops;
        words
    }

    /// Messages begin, and are granted.
    fn messages(&mut self, hear: &mut impl FnMut(Heard)) {
        if self.one_in(64) {
            let magnitude = 4 + self.below(17);
            let message_length = 1 + self.below(1 << magnitude);
            let end = message_length.min(MTU);
            self.message = Part { message: self.next_sequence, message_length, offset: 0, end, priority: 0 };
            self.hear_traced(&Event { class: Class::MESSAGE, part: self.message, ..self.event() }, hear);
        }
        for (class, every) in [(Class::GRANT, 4), (Class::RESEND, 250), (Class::BUSY, 250)] {
            if self.one_in(every) {
                let more = self.below(16 * MTU);
                let end = self.message.end.saturating_add(more).min(self.message.message_length);
                let priority = self.random.below(8).to_le_bytes()[0];
                let part = Part { offset: self.message.end, end, priority, ..self.message };
                self.message.end = end;
                let event = Event { class, part, ..self.answer() };
                self.hear_traced(&event, hear);
            }
        }
        // Only who hears of turns draws for them: what others hear stays as it was.
        if self.traces().meets(Class::TURN) && self.one_in(4) {
            let timeout = self.one_in(64);
            let message_length = 1 + self.below(1 << 20);
            let offset = self.below(message_length);
            let end = message_length.min(offset + 16 * MTU);
            let priority = self.random.below(8).to_le_bytes()[0];
            let part = Part { message: self.acked_sequence, message_length, offset, end, priority };
            self.hear_traced(&Event { class: Class::TURN, part, timeout, ..self.event() }, hear);
        }
    }

    /// Telemetry as the switches have it now. Unless anything goes, links carry no more than they can, and the slowest of
    /// them is the bottleneck: there waits what was sent and has not passed, or anything up to 100 packets where no rate is
    /// kept. At others a few packets wait now and then.
    fn stamp(&mut self, length: u32) {
        let slowest = (0..self.hops.len()).min_by_key(|at| self.hops[*at].rate_kbps);
        let now_ns = Hop::new(self.now, 0, 0, 0).at_ns;
        for at in 0..self.hops.len() {
            let hop = self.hops[at];
            let (more, queue) = if self.kind == Kind::Wild {
                (self.below(1 << 26).into(), self.below(1 << 24))
            } else {
                let rate = BitsPerSec::from_kbps(hop.rate_kbps.into());
                let backlog = self.share.octets_in(self.passed.since(self.now));
                let waits = match self.kind {
                    _ if Some(at) != slowest => 0,
                    Kind::Even => self.below(100 * MTU),
                    _ => u32::try_from(backlog).unwrap_or(u32::MAX),
                };
                let few = if self.one_in(8) { self.below(8 * MTU) } else { 0 };
                let load = if waits > 0 { 100 } else { 40 + u64::from(self.below(50)) };
                let since = Span::from_nanos(now_ns.wrapping_sub(hop.at_ns).into());
                let sent = rate.octets_in(since) * load / 100;
                (sent.max(length.into()), waits.max(few))
            };
            self.hops[at] = Hop::new(self.now, u64::from(hop.tx_bytes) + more, queue, hop.rate_kbps);
        }
    }

    fn event(&self) -> Event<'static> {
        Event {
            now: self.now,
            qpn: 1,
            in_flight: self.next_sequence.wrapping_sub(self.acked_sequence).wrapping_mul(MTU),
            acked_sequence: self.acked_sequence,
            next_sequence: self.next_sequence,
            ..Event::default()
        }
    }

    /// An event of a packet that answers one of ours.
    fn answer(&mut self) -> Event<'static> {
        let known = self.kind != Kind::Wild || !self.one_in(8);
        let age = Span::from_nanos(self.rtt.into()).min(self.now.since(Instant::ZERO));
        let sent = if known {
            Instant::ZERO + self.now.since(Instant::ZERO).saturating_sub(age)
        } else {
            Instant::ZERO
        };
        let ecn = self.one_in(16);
        Event { sent, ecn, hop_count: self.hops.len().to_le_bytes()[0], ..self.event() }
    }

    fn hear_traced(&mut self, event: &Event<'_>, hear: &mut impl FnMut(Heard)) {
        if self.traces().meets(event.class) {
            self.tell(event, hear);
        }
    }

    /// Tells the program, and how long that took.
    fn tell(&mut self, event: &Event<'_>, hear: &mut impl FnMut(Heard)) {
        self.outcome = Outcome::unchanged(self.outcome.credit, self.outcome.wake);
        self.law.on_event(&mut self.context, event, &mut self.outcome);
        self.limits.note(self.outcome.credit);
        if let Some(octets) = self.outcome.byte_counter {
            self.counter = octets;
        }
        let Law::Program(law) = &mut self.law else { return };
        // Timers that have run out are told first, each by itself.
        for run in law.take_runs() {
            let refused = run.class == Class::TRANSMIT && self.outcome.verdict == Verdict::LoopBack;
            hear(Heard { run, refused });
        }
    }

    fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.random.below(u64::from(bound).max(1))).unwrap_or(0)
    }

    fn one_in(&mut self, count: u32) -> bool {
        self.below(count) == 0
    }
}
