//! Two engines and a scripted wire: the world in which the engine's tests play.
//!
//! Each side has memory, and payload is copied from where a segment says it lies to where a placement says it goes,
//! so a test sees octets and not only headers. Time is simulated: a packet takes 100 ns to leave and 1 µs to arrive.

use roci_control::Words;
use roci_transport::{
    Access, Arrival, Completion, Deferral, Deferred, Engine, EngineConfig, Grant, MemoryOperation, Offer, Pd,
    Placement, QpConfig, Reaction, RecvRequest, Refusal, Resolution, Segment, SendRequest, Token,
};
use roci_units::{Instant, Qpn, Span};
use roci_wire::{Flags, Header, Opcode, Syndrome};
use std::collections::{BTreeMap, VecDeque};

/// One of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}
pub(crate) use Side::{Client, Server};

impl Side {
    const fn other(self) -> Self {
        match self {
            Client => Server,
            Server => Client,
        }
    }
}

/// What the wire does to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    Drop,
    Duplicate,
    Delay(Span),
    Mark,
    /// A switch cuts its payload off, if it has one.
    Trim,
    /// A switch cuts its payload off and sends the header back, or loses it where that cannot be.
    Return,
}

/// A packet on the wire.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) header: Header,
    pub(crate) payload: Vec<u8>,
    pub(crate) ce: bool,
    pub(crate) words: Vec<u32>,
}

impl Packet {
    fn trimmed(mut self) -> Self {
        if !self.payload.is_empty() {
            self.payload.clear();
            self.header.payload = 0;
            self.header.flags = self.header.flags.with(Flags::TRIMMED);
        }
        self
    }
}

enum Event {
    Arrival(Side, Packet),
    Placed(Side, Placement, Vec<u8>),
    Resolve(Side, Token, Deferral),
    Commit(Side, Offer),
    PortFree,
}

/// One engine, its memory and what was seen of it.
pub(crate) struct Node {
    pub(crate) engine: Engine,
    pub(crate) memory: Vec<u8>,
    /// Which octets of it payload has been placed at.
    pub(crate) placed: Vec<bool>,
    /// Octets that other ones have been placed over.
    pub(crate) overwritten: usize,
    pub(crate) key: u32,
    pub(crate) pd: Pd,
    pub(crate) qpns: Vec<Qpn>,
    pub(crate) completions: Vec<Completion>,
    pub(crate) refused: Vec<Refusal>,
    /// Every packet sent, in order.
    pub(crate) sent: Vec<Packet>,
    ready: VecDeque<Packet>,
    busy_until: Instant,
}

/// SplitMix64.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

type Script = Box<dyn FnMut(Side, usize, &Packet, &mut Chance) -> Fate>;

/// Two connected engines.
pub(crate) struct Pair {
    pub(crate) client: Node,
    pub(crate) server: Node,
    pub(crate) now: Instant,
    events: BTreeMap<(Instant, u64), Event>,
    serial: u64,
    script: Script,
    chance: Chance,
    /// Octets offered at once; zero: the fused path.
    pub(crate) quantum: u32,
    /// What the wire takes.
    flight: Span,
    /// Late by up to so much.
    pub(crate) lateness: Span,
}

/// Octets of memory on each side.
pub(crate) const MEMORY: usize = 1 << 20;
const FLIGHT: Span = Span::from_nanos(1_000);
const PORT_TIME: Span = Span::from_nanos(100);

impl Pair {
    /// One queue pair on each side, connected, with `config`'s attributes.
    pub(crate) fn connected(config: QpConfig) -> Self {
        Self::many(config, 1)
    }

    /// `count` queue pairs on each side.
    pub(crate) fn many(config: QpConfig, count: u32) -> Self {
        let engine = |seed| Engine::new(EngineConfig { seed, ..EngineConfig::default() });
        Self::with_engines(engine(1), engine(2), config, count)
    }

    /// The same with engines that have laws.
    pub(crate) fn with_engines(client: Engine, server: Engine, config: QpConfig, count: u32) -> Self {
        let mut pair = Self {
            client: Node::new(client, 3),
            server: Node::new(server, 5),
            now: Instant::ZERO,
            events: BTreeMap::new(),
            serial: 0,
            script: Box::new(|_, _, _, _| Fate::Pass),
            chance: Chance(7),
            quantum: 0,
            lateness: Span::ZERO,
            flight: FLIGHT,
        };
        for index in 0..count {
            let qpn = Qpn::new(2 + index);
            for side in [Client, Server] {
                let node = pair.node(side);
                let pd = node.pd;
                let config = QpConfig { qpn: Some(qpn), peer: qpn, path: 9, pd, ..config };
                node.engine.create_qp(config).expect("the attributes are right");
                node.qpns.push(qpn);
            }
        }
        pair
    }

    pub(crate) fn node(&mut self, side: Side) -> &mut Node {
        match side {
            Client => &mut self.client,
            Server => &mut self.server,
        }
    }

    /// The wire takes so long each way.
    pub(crate) fn apart(mut self, flight: Span) -> Self {
        self.flight = flight;
        self
    }

    /// Each deferral comes back after up to 5 µs, sending included.
    pub(crate) fn late(mut self, seed: u64) -> Self {
        self.lateness = Span::from_micros(5);
        self.quantum = 3_000;
        self.chance = Chance(seed);
        self
    }

    /// What becomes of each packet: `script` sees its sender and its number among those of that side.
    pub(crate) fn script(
        mut self,
        script: impl FnMut(Side, usize, &Packet, &mut Chance) -> Fate + 'static,
    ) -> Self {
        self.script = Box::new(script);
        self
    }

    /// The client's packet `number`, counted from 0, has this fate.
    pub(crate) fn fate(self, number: usize, fate: Fate) -> Self {
        self.fate_of(Client, number, fate)
    }

    pub(crate) fn fate_of(mut self, of: Side, number: usize, fate: Fate) -> Self {
        let mut earlier = std::mem::replace(&mut self.script, Box::new(|_, _, _, _| Fate::Pass));
        self.script =
            Box::new(
                move |side, n, packet, chance| {
                    if (side, n) == (of, number) { fate } else { earlier(side, n, packet, chance) }
                },
            );
        self
    }

    pub(crate) fn post(&mut self, side: Side, request: SendRequest) {
        self.post_on(side, 0, request);
    }

    pub(crate) fn post_on(&mut self, side: Side, qp: usize, request: SendRequest) {
        let now = self.now;
        let node = self.node(side);
        let qpn = node.qpns[qp];
        node.engine.post_send(now, qpn, &request).expect("the request is right");
    }

    pub(crate) fn post_recv(&mut self, side: Side, id: u64, address: u64, length: u32) {
        self.post_recv_on(side, 0, id, address, length);
    }

    pub(crate) fn post_recv_on(&mut self, side: Side, qp: usize, id: u64, address: u64, length: u32) {
        let node = self.node(side);
        let (qpn, lkey) = (node.qpns[qp], node.key);
        node.engine.post_recv(qpn, RecvRequest { id, address, length, lkey }).expect("the request is right");
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.serial += 1;
        self.events.insert((at, self.serial), event);
    }

    fn later(&mut self) -> Instant {
        match self.lateness.as_ps() {
            0 => self.now,
            bound => self.now + Span::from_ps(self.chance.below(bound + 1)),
        }
    }

    /// Runs until nothing is left to do. It panics when that takes more than a million steps.
    pub(crate) fn run(&mut self) {
        self.run_until(Instant::NEVER);
    }

    pub(crate) fn run_until(&mut self, end: Instant) {
        for _ in 0..1_000_000 {
            self.drain(Client);
            self.drain(Server);
            let event = self.events.keys().next().map(|key| key.0);
            let wakes = [&self.client, &self.server].map(|node| node.engine.next_wakeup());
            let wake = wakes.into_iter().flatten().min();
            let Some(next) = event.into_iter().chain(wake).min() else { return };
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            if event == Some(next) {
                let (_, event) = self.events.pop_first().expect("it is there");
                self.happen(event);
            } else {
                let now = self.now;
                self.client.engine.wake(now);
                self.server.engine.wake(now);
            }
        }
        panic!("it does not come to an end");
    }

    fn happen(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::PortFree => {}
            Event::Arrival(side, packet) => self.arrive(side, packet),
            Event::Placed(side, placement, payload) => {
                let node = self.node(side);
                node.place(&placement, &payload);
                if let Some(token) = placement.token {
                    node.engine.resolve(now, token, Resolution::Placed);
                }
            }
            Event::Resolve(side, token, deferral) => {
                let node = self.node(side);
                let resolution = node.answer(&deferral);
                node.engine.resolve(now, token, resolution);
            }
            Event::Commit(side, offer) => {
                let node = self.node(side);
                let grant = if offer.wants_law {
                    let event = node.engine.transmit_event(now, &offer).expect("the queue pair is there");
                    Grant::Law(node.engine.evaluate(offer.qpn, &event).expect("it has a law"))
                } else {
                    Grant::Engine
                };
                if let Some(segment) = node.engine.commit(now, offer, grant) {
                    node.enqueue(&segment);
                }
            }
        }
    }

    fn arrive(&mut self, side: Side, packet: Packet) {
        let now = self.now;
        let mut reaction = Reaction::default();
        let arrival = Arrival { ce: packet.ce, words: &packet.words, ..Arrival::new(&packet.header, 9) };
        let node = self.node(side);
        node.engine.receive(now, &arrival, &mut reaction);
        if let Some(reply) = &reaction.reply {
            node.enqueue(reply);
        }
        if let Some(notice) = &reaction.notice {
            node.enqueue(notice);
        }
        if let Some(refusal) = reaction.refused {
            node.refused.push(refusal);
        }
        if let Some(placement) = reaction.placement {
            assert_eq!(placement.length as usize, packet.payload.len());
            if placement.token.is_none() {
                node.place(&placement, &packet.payload);
            } else {
                let at = self.later();
                self.schedule(at, Event::Placed(side, placement, packet.payload));
            }
        }
    }

    /// Has an engine's deferred work done, now or later.
    fn defer(&mut self, side: Side) {
        while let Some(deferral) = self.node(side).engine.poll_deferral() {
            let (Deferral::Law { token, .. }
            | Deferral::Recovery { token, .. }
            | Deferral::Memory { token, .. }) = deferral;
            let at = self.later();
            self.schedule(at, Event::Resolve(side, token, deferral));
        }
    }

    /// Takes out of an engine what it has to say, and puts one packet on the wire if the port is free.
    fn drain(&mut self, side: Side) {
        let (now, quantum) = (self.now, self.quantum);
        self.defer(side);
        if quantum > 0 {
            while let Some(offer) = self.node(side).engine.offer(now, quantum) {
                assert!(offer.packets >= 1);
                let at = self.later();
                self.schedule(at, Event::Commit(side, offer));
            }
        }
        let node = self.node(side);
        while let Some(completion) = node.engine.poll_completion() {
            node.completions.push(completion);
        }
        while let Some(segment) = node.engine.poll_notice() {
            node.enqueue(&segment);
        }
        if node.busy_until > now {
            return;
        }
        if quantum == 0
            && node.ready.is_empty()
            && let Some(segment) = node.engine.transmit(now)
        {
            node.enqueue(&segment);
        }
        // Looking for something to send may have found a message that the law is to hear of.
        self.defer(side);
        let node = self.node(side);
        while let Some(segment) = node.engine.poll_notice() {
            node.enqueue(&segment);
        }
        let Some(packet) = node.ready.pop_front() else { return };
        node.busy_until = now + PORT_TIME;
        let number = node.sent.len();
        node.sent.push(packet.clone());
        self.schedule(now + PORT_TIME, Event::PortFree);
        let fate = (self.script)(side, number, &packet, &mut self.chance);
        let arrives = now + PORT_TIME + self.flight;
        let to = side.other();
        match fate {
            Fate::Drop => {}
            Fate::Pass => self.schedule(arrives, Event::Arrival(to, packet)),
            Fate::Trim => self.schedule(arrives, Event::Arrival(to, packet.trimmed())),
            Fate::Return => {
                let mut back = packet.trimmed();
                if back.header.turn_back() {
                    self.schedule(arrives, Event::Arrival(side, back));
                }
            }
            Fate::Delay(span) => self.schedule(arrives + span, Event::Arrival(to, packet)),
            Fate::Mark => self.schedule(arrives, Event::Arrival(to, Packet { ce: true, ..packet })),
            Fate::Duplicate => {
                self.schedule(arrives, Event::Arrival(to, packet.clone()));
                self.schedule(arrives, Event::Arrival(to, packet));
            }
        }
    }
}

impl Node {
    fn new(mut engine: Engine, salt: u8) -> Self {
        let pd = engine.allocate_pd();
        let (key, _) = engine.register(pd, 0, MEMORY as u64, Access::ALL).expect("the region is right");
        let memory =
            (0..MEMORY).map(|i| (i as u8).wrapping_mul(31).wrapping_add((i >> 8) as u8 ^ salt)).collect();
        Self {
            engine,
            placed: vec![false; MEMORY],
            overwritten: 0,
            memory,
            key,
            pd,
            qpns: Vec::new(),
            completions: Vec::new(),
            refused: Vec::new(),
            sent: Vec::new(),
            ready: VecDeque::new(),
            busy_until: Instant::ZERO,
        }
    }

    /// Cuts a segment into packets and gathers their payload.
    pub(crate) fn enqueue(&mut self, segment: &Segment) {
        let mut octets = 0;
        for index in 0..segment.packets {
            let (header, source) = segment.packet(index);
            let from = source.address as usize;
            let payload = match header.payload {
                0 => Vec::new(),
                length => self.memory[from..from + usize::from(length)].to_vec(),
            };
            octets += payload.len();
            let words = segment
                .packet_words(index)
                .map_or(Vec::new(), |w: Words| w.words[..usize::from(w.len)].to_vec());
            self.ready.push_back(Packet { header, payload, ce: false, words });
        }
        assert_eq!(octets, segment.length as usize, "a run's packets carry its octets");
    }

    fn place(&mut self, placement: &Placement, payload: &[u8]) {
        let to = placement.address as usize;
        let range = to..to + payload.len();
        let old = self.memory[range.clone()].iter().zip(&self.placed[range.clone()]);
        self.overwritten += old.zip(payload).filter(|((old, placed), new)| **placed && old != new).count();
        self.placed[range.clone()].fill(true);
        self.memory[range].copy_from_slice(payload);
    }

    fn answer(&mut self, deferral: &Deferral) -> Resolution {
        match *deferral {
            Deferral::Law { qpn, ref event, .. } => {
                self.engine.evaluate(qpn, event).map_or(Resolution::Recovered, Resolution::Law)
            }
            Deferral::Recovery { .. } => Resolution::Recovered,
            Deferral::Memory { operation, .. } => Resolution::Memory { original: self.carry_out(operation) },
        }
    }

    fn carry_out(&mut self, operation: MemoryOperation) -> u64 {
        let (address, change): (u64, &dyn Fn(u64) -> u64) = match operation {
            MemoryOperation::Read { .. } => return 0,
            MemoryOperation::FetchAdd { address, add, .. } => (address, &move |old| old.wrapping_add(add)),
            MemoryOperation::CompareSwap { address, compare, swap, .. } => {
                (address, &move |old| if old == compare { swap } else { old })
            }
        };
        let at = address as usize;
        let old = u64::from_le_bytes(self.memory[at..at + 8].try_into().expect("eight octets"));
        self.memory[at..at + 8].copy_from_slice(&change(old).to_le_bytes());
        old
    }

    /// The packets sent, one word each: `w3` for WRITE, with its PSN, `ack3`, `nak3`, `rnr3`, `read`, `resp`, ….
    pub(crate) fn story(&self) -> Vec<String> {
        self.sent.iter().map(|packet| word(&packet.header)).collect()
    }

    /// The completions' names and ends.
    pub(crate) fn ended(&self) -> Vec<(u64, roci_transport::Status)> {
        self.completions.iter().map(|c| (c.id, c.status)).collect()
    }
}

fn word(header: &Header) -> String {
    let psn = header.psn;
    let asks = if header.flags.has(Flags::ACK_REQUEST) { "!" } else { "" };
    match header.opcode {
        Opcode::ACKNOWLEDGE => match Syndrome::from_u8(header.aeth().syndrome) {
            Some(Syndrome::Ack { .. }) => format!("ack{psn}"),
            Some(Syndrome::RnrNak { .. }) => format!("rnr{psn}"),
            Some(Syndrome::Nak(code)) => format!("nak{psn}:{}", code as u8),
            None => format!("bad{psn}"),
        },
        Opcode::ATOMIC_ACKNOWLEDGE => format!("result{psn}"),
        Opcode::CNP if header.flags == Flags::BECN => "cnp".into(),
        Opcode::CNP => "cnp without BECN".into(),
        Opcode::READ_ACKNOWLEDGE => format!("got{psn}"),
        Opcode::READ_REQUEST => format!("read{psn}"),
        Opcode::FETCH_ADD => format!("add{psn}"),
        Opcode::COMPARE_SWAP => format!("swap{psn}"),
        opcode if opcode.shape().has(roci_wire::Shape::RESPONSE) => format!("data{psn}"),
        opcode if opcode.shape().has(roci_wire::Shape::WRITE) => format!("w{psn}{asks}"),
        opcode if opcode.shape().has(roci_wire::Shape::DATAGRAM) => format!("d{psn}"),
        _ => format!("s{psn}{asks}"),
    }
}

/// All kinds of work deferred.
pub(crate) const ALL_DEFERRED: Deferred =
    Deferred { law: true, placement: true, ack_after_placement: true, recovery: true, memory: true };
