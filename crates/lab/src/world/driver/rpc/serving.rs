//! The threads of a server: each takes what has arrived one packet after the other.
//!
//! What a piece of work costs is settled when it begins; when it is over the receive buffer is posted anew, and a response or credits
//! go back. A request of several packets is copied together first, and then read as a whole.

use super::{Group, RECV, at};
use crate::results::rpc::{IdleTimes, MachineResult};
use crate::results::series::MachineSample;
use crate::scenario;
use crate::traffic::JobId;
use crate::traffic::rpc::Rpc;
use roci_fabric::packet::HostId;
use roci_machine::Machine;
use roci_nic::Host;
use roci_rpc::{Credits, Processed, REQUEST_HEADER, RETURN_HEADER, Return};
use roci_transport::{Completion, Engine, Pd, RecvRequest, RecvTarget, Srq, Status};
use roci_units::{Instant, Qpn, Span};
use std::collections::VecDeque;

/// Set in the names of receive requests of threads, beside the thread and the number of the buffer.
pub(super) const RING: u64 = 1 << 62;
/// Octets of a completion queue entry.
const CQE: u32 = 64;
/// Lines of a long request that are read in one piece of work, once it is there.
const READ_AT_ONCE: u32 = 256;
/// With credits, more receive buffers are posted when fewer than one in so many of those in use are left.
const FEW: u32 = 16;
/// And then one more for each so many.
const MORE: u32 = 8;
/// And a buffer that was consumed is put aside while more than one in so many are left: the fewer take turns, the more of them are in the
/// cache when a NIC writes to them.
const MANY: u32 = 8;
/// As long as there are more than so many.
const LEAST: u32 = 64;

/// A host that answers.
pub(super) struct Served {
    /// Its NICs, all of which write to its machine; the first has the host's number.
    pub(super) nics: Vec<HostId>,
    pub(super) machine: Machine,
    /// At which occupancy arrivals are marked.
    hostcc: Option<u32>,
    threads: Vec<Thread>,
    /// Of each queue pair, by the place of its NIC and by its number, the place among the flows that are alive.
    places: Vec<Vec<u32>>,
}

/// A thread.
struct Thread {
    table: u32,
    /// One at each NIC that some of its connections are on.
    rings: Vec<Ring>,
    /// Whether buffers that were consumed may be put aside.
    spares: bool,
    queue: VecDeque<Arrived>,
    doing: Doing,
    /// What it has to do before it goes on: credits that went back alone.
    besides: Span,
    /// From when on its idle times count, since when it has had nothing to do, and how that was.
    from: Instant,
    idle_since: Option<Instant>,
    idle: IdleTimes,
}

/// The receive buffers of a thread at one NIC.
struct Ring {
    nic: HostId,
    srq: Srq,
    /// The first lines of them and of their completion queue.
    first: u32,
    completions: u32,
    /// Octets and lines of a buffer.
    buffer: u32,
    stride: u32,
    /// Buffers that there may be, that were ever used, that take turns, and that stand ready.
    most: u32,
    touched: u32,
    used: u32,
    posted: u32,
    /// Buffers that were put aside, the last one last; `None` where all take turns.
    aside: Option<Vec<u32>>,
    /// How many packets have come.
    came: u32,
}

/// A packet of a request that is in a buffer.
#[derive(Clone, Copy)]
struct Arrived {
    place: u32,
    id: JobId,
    /// Which of the thread's rings the buffer is of.
    ring: u32,
    buffer: u32,
    completion: u32,
    octets: u32,
    came: Instant,
    /// When the thread may know of it.
    ready: Instant,
}

/// What a thread is busy with.
#[derive(Clone, Copy)]
enum Doing {
    Nothing,
    /// It waits until it may know of a packet.
    Waiting,
    /// A packet.
    Packet(Piece),
    /// What was put together, of which so many lines are left from `next` on.
    Reading {
        piece: Piece,
        next: u32,
        left: u32,
    },
    /// It is done with the packet that its request ended with, and answers.
    Answering(Piece),
}

/// The work for a packet.
#[derive(Clone, Copy)]
struct Piece {
    of: Arrived,
    lines: u32,
    missed: u32,
    service: Span,
    /// Whether its request ends with it, and whether that has several.
    last: bool,
    joined: bool,
}

/// What a thread does next.
pub(super) enum Step {
    /// It is busy, or waits, until then.
    Until(Instant),
    /// It has nothing to do.
    Idle,
    /// Something goes back on the queue pair of the flow at `place`; then it goes on.
    Send { place: u32, id: JobId, answers: bool, credits: Return },
}

impl Served {
    /// With these NICs.
    pub(super) fn new(nics: Vec<HostId>, machine: &scenario::Machine) -> Self {
        Self {
            places: vec![Vec::new(); nics.len()],
            nics,
            machine: Machine::new(machine.config),
            hostcc: machine.hostcc,
            threads: Vec::new(),
        }
    }

    /// The host, by its first NIC.
    pub(super) fn host(&self) -> HostId {
        self.nics[0]
    }

    /// The threads of a table.
    pub(super) fn add_threads(&mut self, spec: &Rpc, table: u32) {
        for _ in 0..spec.threads {
            self.threads.push(Thread {
                table,
                rings: Vec::new(),
                spares: spec.credits != Credits::Unlimited,
                queue: VecDeque::new(),
                doing: Doing::Nothing,
                besides: Span::ZERO,
                from: spec.start + spec.warmup,
                idle_since: Some(Instant::ZERO),
                idle: IdleTimes::default(),
            });
        }
    }

    /// The shared receive queue of a thread at `nic`; if it is the first that it has there, with receive buffers for packets of up to
    /// `packet` octets.
    pub(super) fn srq(
        &mut self,
        number: usize,
        spec: &Rpc,
        packet: u32,
        nic: HostId,
        engine: &mut Engine,
        lkey: u32,
    ) -> Srq {
        if let Some(ring) = self.threads[number].rings.iter().find(|ring| ring.nic == nic) {
            return ring.srq;
        }
        let needed = spec.request.0.saturating_add(u64::from(REQUEST_HEADER));
        let buffer = u32::try_from(needed).map_or(packet, |needed| needed.min(packet));
        let stride = self.machine.lines(buffer);
        let line = u64::from(self.machine.config().line);
        let octets =
            [u64::from(spec.rx_ring) * u64::from(stride) * line, u64::from(spec.rx_ring) * u64::from(CQE)];
        let [first, completions] =
            octets.map(|octets| self.machine.allocate(octets).expect("the scenario's sizes were checked"));
        let srq = engine.create_srq();
        let spares = self.threads[number].spares;
        let mut ring = Ring {
            nic,
            srq,
            first,
            completions,
            buffer,
            stride,
            most: spec.rx_ring,
            touched: 0,
            used: 0,
            posted: 0,
            aside: spares.then(Vec::new),
            came: 0,
        };
        ring.post_more(if spares { LEAST } else { spec.rx_ring }, number, engine, lkey);
        self.threads[number].rings.push(ring);
        let room = |ring: &Ring| u64::from(ring.most) * u64::from(ring.buffer + CQE);
        let rings = self.threads.iter().flat_map(|thread| &thread.rings);
        self.machine.set_receive_queues(rings.map(room).sum());
        srq
    }

    pub(super) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// A queue pair at `nic` belongs to the flow at `place`.
    pub(super) fn connect(&mut self, nic: HostId, qpn: Qpn, place: u32) {
        let Some(at) = self.nics.iter().position(|own| *own == nic) else { return };
        let (places, number) = (&mut self.places[at], qpn.get() as usize);
        if places.len() <= number {
            places.resize(number + 1, u32::MAX);
        }
        places[number] = place;
    }

    /// The place of the flow of a queue pair at `nic`.
    pub(super) fn place(&self, nic: HostId, qpn: Qpn) -> Option<u32> {
        let at = self.nics.iter().position(|own| *own == nic)?;
        self.places[at].get(qpn.get() as usize).copied()
    }

    /// Whether arrivals are to be marked now; `None` where they never are.
    pub(super) fn congested(&self) -> Option<bool> {
        self.hostcc.map(|threshold| self.machine.iio_occupancy() >= threshold)
    }

    /// A packet has come at `nic` for the flow `of`, if that is alive; gives the thread that is to be told and when.
    pub(super) fn take(
        &mut self,
        now: Instant,
        nic: HostId,
        engine: &mut Engine,
        lkey: u32,
        it: &Completion,
        of: Option<(u32, JobId)>,
    ) -> Option<(Instant, usize)> {
        #[expect(clippy::cast_possible_truncation, reason = "made of these numbers")]
        let (number, buffer) = ((it.id >> 32 & 0xffff) as usize, it.id as u32);
        let thread = &mut self.threads[number];
        let at = thread.rings.iter().position(|ring| ring.nic == nic)?;
        let ring = &mut thread.rings[at];
        ring.posted -= 1;
        let Some((place, id)) = of.filter(|_| it.status == Status::Success) else {
            ring.post(buffer, number, engine, lkey);
            return None;
        };
        if ring.posted < ring.used / FEW {
            ring.post_more((ring.used / MORE).max(1), number, engine, lkey);
        }
        let completion = ring.completions + ring.came % ring.most;
        ring.came = ring.came.wrapping_add(1);
        self.machine.dma_write(now, ring.first + buffer * ring.stride, it.length);
        let ready = self.machine.dma_write(now, completion, CQE);
        thread.queue.push_back(Arrived {
            place,
            id,
            ring: u32::try_from(at).expect("few NICs"),
            buffer,
            completion,
            octets: it.length,
            came: now,
            ready,
        });
        if !matches!(thread.doing, Doing::Nothing) {
            return None;
        }
        thread.doing = Doing::Waiting;
        Some((ready, number))
    }

    /// A thread goes on, with what it was busy with at an end; `key` is that of the memory of a NIC. To be called again after each
    /// [`Step::Send`].
    pub(super) fn go_on(
        &mut self,
        now: Instant,
        number: usize,
        groups: &mut [Option<Box<Group>>],
        hosts: &mut [Host],
        key: impl Fn(HostId) -> u32,
    ) -> Step {
        let thread = &mut self.threads[number];
        let Some(group) = groups[thread.table as usize].as_deref_mut() else { return Step::Idle };
        match thread.doing {
            Doing::Nothing | Doing::Waiting => self.begin(now, number, group),
            Doing::Packet(piece) => {
                self.machine.consume(now, piece.of.octets + CQE);
                let ring = &mut thread.rings[piece.of.ring as usize];
                ring.put_back(piece.of.buffer, number, &mut hosts[at(ring.nic)].engine, key(ring.nic));
                if piece.last && piece.joined {
                    let first = group.connections[piece.of.id.number as usize].message;
                    let left = self.machine.lines(u32::try_from(group.spec.request.0).unwrap_or(u32::MAX));
                    thread.doing = Doing::Reading { piece, next: first, left };
                    return self.read_on(now, number, group);
                }
                thread.doing = Doing::Nothing;
                self.end_packet(now, number, piece, group).unwrap_or_else(|| self.begin(now, number, group))
            }
            Doing::Reading { .. } => self.read_on(now, number, group),
            Doing::Answering(piece) => {
                thread.doing = Doing::Nothing;
                self.end_packet(now, number, piece, group).unwrap_or_else(|| self.begin(now, number, group))
            }
        }
    }

    /// Begins with the next packet, if there is one.
    fn begin(&mut self, now: Instant, number: usize, group: &mut Group) -> Step {
        let Self { machine, threads, .. } = self;
        let thread = &mut threads[number];
        let Some(of) = thread.queue.front().copied() else {
            if thread.besides > Span::ZERO {
                let mut work = machine.work(now, number);
                work.compute(std::mem::take(&mut thread.besides));
                thread.doing = Doing::Waiting;
                return Step::Until(work.done());
            }
            thread.doing = Doing::Nothing;
            thread.idle_since.get_or_insert(now);
            return Step::Idle;
        };
        if of.ready > now {
            thread.doing = Doing::Waiting;
            return Step::Until(of.ready);
        }
        thread.queue.pop_front();
        thread.end_idle(now);
        let connection = &mut group.connections[of.id.number as usize];
        let (packets, place) = (connection.client.packets(), connection.consumed);
        let (last, joined) = (place + 1 == packets, packets > 1);
        connection.consumed = if last { 0 } else { place + 1 };
        let ring = &thread.rings[of.ring as usize];
        let (first, lines) = (ring.first + of.buffer * ring.stride, machine.lines(of.octets));
        let line = machine.config().line;
        let mut work = machine.work(now, number);
        work.compute(group.spec.overhead + std::mem::take(&mut thread.besides));
        // The completion tells where the packet is, and its header what it is.
        let told = work.read_first(of.completion);
        let missed = u32::from(work.read_first(first)) + work.read(first + 1, lines - 1);
        if joined {
            let payload = u64::from(connection.client.packet_octets() - REQUEST_HEADER);
            let from = u64::from(place) * payload;
            let until = from + u64::from(of.octets - REQUEST_HEADER);
            let [from, until] = [from / u64::from(line), until.div_ceil(u64::from(line))]
                .map(|lines| u32::try_from(lines).expect("a request's lines"));
            work.write(connection.message + from, until - from);
        } else {
            work.compute(group.spec.processing);
            work.write(connection.response, response_lines(&group.spec, line));
        }
        let done = work.done();
        let service = done.since(now);
        group.count(now, lines + 1, missed + u32::from(told));
        thread.doing = Doing::Packet(Piece { of, lines, missed, service, last, joined });
        Step::Until(done)
    }

    /// Reads on in what was put together; with its end the request is processed.
    fn read_on(&mut self, now: Instant, number: usize, group: &mut Group) -> Step {
        let Self { machine, threads, .. } = self;
        let thread = &mut threads[number];
        let Doing::Reading { mut piece, next, left } = thread.doing else { return Step::Idle };
        let lines = left.min(READ_AT_ONCE);
        let line = machine.config().line;
        let mut work = machine.work(now, number);
        let missed = work.read(next, lines);
        if lines == left {
            work.compute(group.spec.processing);
            work.write(
                group.connections[piece.of.id.number as usize].response,
                response_lines(&group.spec, line),
            );
        }
        let done = work.done();
        piece.service += done.since(now);
        group.count(now, lines, missed);
        thread.doing = if lines == left {
            Doing::Answering(piece)
        } else {
            Doing::Reading { piece, next: next + lines, left: left - lines }
        };
        Step::Until(done)
    }

    /// A packet has been consumed, and its request been processed if it was the last: what goes back.
    fn end_packet(&mut self, now: Instant, number: usize, piece: Piece, group: &mut Group) -> Option<Step> {
        let thread = &mut self.threads[number];
        let Piece { of, lines, missed, service, last, .. } = piece;
        let processed = Processed {
            lines,
            missed,
            service,
            residence: now.since(of.came),
            answered: last,
            idle: thread.queue.is_empty(),
        };
        let credits = group.connections[of.id.number as usize].server.processed(&processed)?;
        if !last {
            thread.besides += group.spec.overhead;
        }
        Some(Step::Send { place: of.place, id: of.id, answers: last, credits })
    }

    /// How a thread had nothing to do until `now`.
    pub(super) fn idle(&self, thread: usize, now: Instant) -> IdleTimes {
        let thread = &self.threads[thread];
        let mut idle = thread.idle;
        if let Some(since) = thread.idle_since {
            idle.end(since.max(thread.from), now);
        }
        idle
    }

    /// What the machine holds and has counted by `now`.
    pub(super) fn sample(&self, now: Instant) -> MachineSample {
        let counters = self.machine.counters();
        MachineSample {
            unconsumed: self.machine.unconsumed(),
            reads: counters.reads,
            read_misses: counters.read_misses,
            iio: self.machine.iio_occupancy_by(now),
        }
    }

    /// What became of the machine until `now`.
    pub(super) fn result(&self, now: Instant) -> MachineResult {
        MachineResult {
            host: self.host().0,
            counters: self.machine.counters(),
            states: self.machine.spent(now),
            busy: (0..self.threads.len()).map(|thread| self.machine.busy(thread)).collect(),
        }
    }
}

/// Lines of a response.
fn response_lines(spec: &Rpc, line: u32) -> u32 {
    (u32::try_from(spec.response.0).unwrap_or(0) + RETURN_HEADER).div_ceil(line)
}

impl Ring {
    /// Posts so many buffers more, those put aside first and then such as were never used, as far as there are some.
    fn post_more(&mut self, more: u32, number: usize, engine: &mut Engine, lkey: u32) {
        for _ in 0..more {
            let aside = self.aside.as_mut().and_then(Vec::pop);
            let buffer = match aside {
                Some(buffer) => buffer,
                None if self.touched < self.most => {
                    self.touched += 1;
                    self.touched - 1
                }
                None => return,
            };
            self.used += 1;
            self.post(buffer, number, engine, lkey);
        }
    }

    /// A buffer was consumed: it is posted anew, or put aside.
    fn put_back(&mut self, buffer: u32, number: usize, engine: &mut Engine, lkey: u32) {
        match &mut self.aside {
            Some(aside) if self.used > LEAST && self.posted > self.used / MANY => {
                aside.push(buffer);
                self.used -= 1;
            }
            _ => self.post(buffer, number, engine, lkey),
        }
    }

    fn post(&mut self, buffer: u32, number: usize, engine: &mut Engine, lkey: u32) {
        let id = RECV | RING | (number as u64) << 32 | u64::from(buffer);
        let request = RecvRequest { id, address: 0, length: self.buffer, lkey };
        engine.post_recv(RecvTarget::Srq(self.srq, Pd::default()), request).expect("its queue exists");
        self.posted += 1;
    }
}

impl Thread {
    fn end_idle(&mut self, now: Instant) {
        if let Some(since) = self.idle_since.take() {
            self.idle.end(since.max(self.from), now);
        }
    }
}
