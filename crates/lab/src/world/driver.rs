//! The application on the simulated hosts: it connects queue pairs, posts messages and records their end.

mod collective;
mod counted;
mod course;
mod goal;
mod rpc;
mod unreliable;

use super::build::law_index;
use super::profile::Profiles;
use super::receiving::Receiving;
use super::writes::of_networks;
use crate::results::{FlowName, FlowResult, FlowStatus, Op};
use crate::scenario::RegisterWrite;
use crate::traffic::{Job, JobId, Traffic, flow_name};
pub(super) use collective::Collectives;
pub(super) use counted::Counted;
pub(super) use goal::{Goals, Longer, Trip};
use roci_control::Law;
use roci_fabric::net::Net;
use roci_fabric::packet::HostId;
use roci_fabric::routing::flow_hash;
use roci_nic::{Application, Host, Path};
use roci_transport::{
    Change, Completion, CompletionKind, Operation, QpConfig, RecvRequest, SendRequest, Status, Tail,
};
use roci_units::{BitsPerSec, Instant, Psn, Qpn, Random, Span};
pub(super) use rpc::Rpcs;
use std::ops::Range;
use std::sync::Arc;
use unreliable::Arrivals;

/// A flow whose queue pairs exist. Half a million of them may live at once, so it is small: its result is made when it
/// ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    /// Where it stands in the scenario.
    pub(super) id: JobId,
    /// Its number in the order of starts.
    pub(super) number: u32,
    pub(super) src_qpn: Qpn,
    pub(super) dst_qpn: Qpn,
    /// The PSN of the requester's first packet.
    first_psn: Psn,
    /// Octets of each message but the last.
    message: u32,
    outstanding: u32,
    /// Messages that may be outstanding; 0 where [`Poster`] says that others decide.
    depth: u32,
    poster: Poster,
    pub(super) src: HostId,
    pub(super) dst: HostId,
    /// Which of its engines' laws it runs.
    pub(super) law: u16,
    pub(super) op: Op,
    pub(super) bytes: u64,
    /// Octets not yet posted.
    left: u64,
    /// Octets that were known to have arrived when its queue pairs were last asked.
    delivered: u64,
    start: Instant,
    /// How long it takes alone on an idle path; zero for one without an end.
    ideal: Span,
}

/// Who decides when a flow's messages are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Poster {
    /// So many are outstanding all the time.
    Flow,
    /// What has arrived of a collective.
    Collective,
    /// The ranks of a schedule.
    Goal,
    /// Requests and responses.
    Rpc,
}

impl Poster {
    const fn of(traffic: &Traffic) -> Self {
        match traffic {
            Traffic::Collective(_) => Self::Collective,
            Traffic::Goal(_) => Self::Goal,
            Traffic::Rpc(_) => Self::Rpc,
            _ => Self::Flow,
        }
    }
}

impl Live {
    /// Whether it carries requests and responses.
    fn is_rpc(&self) -> bool {
        self.poster == Poster::Rpc
    }
}

const _: () = assert!(size_of::<Option<Live>>() <= 88, "a live flow is part of its 700 octets");

/// A flow that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) id: JobId,
    /// Its number in the order of starts.
    pub(super) number: u32,
    /// Octets of payload of its full packets.
    pub(super) packet: u16,
    pub(super) result: FlowResult,
}

/// What became of all flows.
pub(super) struct Outcome {
    /// The flows, in the order of the scenario.
    pub(super) flows: Vec<FlowResult>,
    /// The place there of each by its number in the order of starts.
    pub(super) places: Vec<u32>,
    /// The places of the flows of each `[[traffic]]` table.
    pub(super) of_tables: Vec<Range<usize>>,
}

/// A queue pair with which a program failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fallen {
    pub(super) host: HostId,
    pub(super) qpn: Qpn,
    /// Its flow's number in the order of starts, and when that began: numbers of queue pairs are given again.
    pub(super) number: u32,
    pub(super) start: Instant,
}

/// A READ that its requester gave up, while its responder could have sent no packet within a timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlowRead {
    pub(super) id: JobId,
    pub(super) law: u16,
    /// What its responder's law let it send at, in kb/s.
    pub(super) kbps: u32,
}

/// The longest message: half of what a RETH can say, as the specification has it.
const MESSAGE_MAX: u32 = 1 << 30;
/// And an eighth of the circle of PSNs: two are outstanding, and a responder tells old ones from new ones by half of it.
const PACKETS_MAX: u32 = 1 << 21;
/// Set in the names of receive requests, beside their flow's place.
const RECV: u64 = 1 << 63;

/// All flows of a run.
pub(super) struct Driver {
    pub(super) profiles: Profiles,
    traffic: Arc<[Traffic]>,
    /// The flows that are alive; a work request's name is its flow's place here.
    pub(super) live: Vec<Option<Live>>,
    vacant: Vec<u32>,
    pub(super) alive: usize,
    /// The flows that have ended, in that order.
    pub(super) ended: Vec<Ended>,
    /// The queue pairs of those with which a program failed; in the end, of all flows.
    pub(super) fallen: Vec<Fallen>,
    /// The first of the READs that were given up for the slowness of their responders, and how many there were.
    pub(super) slow_reads: (Option<SlowRead>, u32),
    /// How many of them have been sampled since.
    pub(super) sampled: usize,
    /// Octets of payload of all flows that have begun; `u64::MAX` where one has no end.
    pub(super) begun_octets: u64,
    /// Octets that flows which have ended delivered.
    pub(super) ended_octets: u64,
    /// What posts as messages come.
    pub(super) collectives: Collectives,
    pub(super) goals: Goals,
    /// What answers requests.
    pub(super) rpcs: Rpcs,
    /// What takes the SENDs.
    pub(super) receiving: Receiving,
    /// What has come over unreliable connections.
    pub(super) arrivals: Arrivals,
    /// When the first receive request ended.
    pub(super) first_received: Option<Instant>,
    /// Whether routes change during the run. Then packets of a flow may be on two paths at once, and it may take less than alone on either.
    pub(super) reroutes: bool,
    seed: u64,
}

/// Initial PSNs and UDP ports of flow `n` of table `t` are drawn from stream `t`·2³² + `n` of these: so they are the same whatever else flows.
const CONNECT_STREAMS: u64 = 1 << 47;

impl Driver {
    pub(super) fn new(profiles: Profiles, traffic: Arc<[Traffic]>, receiving: Receiving, seed: u64) -> Self {
        Self {
            profiles,
            traffic,
            live: Vec::new(),
            vacant: Vec::new(),
            alive: 0,
            ended: Vec::new(),
            fallen: Vec::new(),
            slow_reads: (None, 0),
            sampled: 0,
            begun_octets: 0,
            ended_octets: 0,
            collectives: Collectives::default(),
            goals: Goals::default(),
            rpcs: Rpcs::default(),
            receiving,
            arrivals: Arrivals::default(),
            first_received: None,
            reroutes: false,
            seed,
        }
    }

    /// What a flow is called.
    pub(super) fn name(&self, id: JobId) -> FlowName {
        flow_name(&self.traffic, id)
    }

    /// Flows that have been started.
    pub(super) fn begun(&self) -> usize {
        self.alive + self.ended.len()
    }

    /// Connects two queue pairs for `job`, whose ideal completion time is `ideal` if it has an end, and posts its first messages;
    /// `writes` are the registers that have yet to be written. The caller pokes the source's NIC.
    pub(super) fn start(
        &mut self,
        now: Instant,
        hosts: &mut [Host],
        job: &Job,
        ideal: Option<Span>,
        writes: &[RegisterWrite],
    ) {
        let law = law_index(job.common.control);
        let number = index(self.begun());
        let (src_qpn, dst_qpn, first_psn) = self.connect(now, hosts, job, law);
        let place = self.vacant.pop().unwrap_or_else(|| {
            // Many live flows must not cost double.
            if self.live.len() == self.live.capacity() {
                self.live.reserve_exact(16 + self.live.len() / 16);
            }
            self.live.push(None);
            index(self.live.len() - 1)
        });
        let poster = Poster::of(&self.traffic[job.id.traffic as usize]);
        let (bytes, size) = match poster {
            Poster::Rpc => self.connect_rpc(job, place, dst_qpn),
            Poster::Collective => self.collectives.connect(now, job, place),
            Poster::Goal => self.goals.connect(job, place),
            Poster::Flow => (job.octets(), job.size.0),
        };
        let most =
            MESSAGE_MAX.min(u32::from(self.profiles.mtu(job.src, job.dst)).saturating_mul(PACKETS_MAX));
        let message = u32::try_from(size).map_or(most, |size| size.min(most));
        let live = Live {
            id: job.id,
            number,
            src_qpn,
            dst_qpn,
            first_psn,
            message,
            outstanding: 0,
            // While one part of a longer one is on its way, the next begins.
            depth: if size > message.into() { job.depth.saturating_mul(2) } else { job.depth },
            poster,
            src: job.src,
            dst: job.dst,
            law,
            op: job.common.op,
            bytes,
            left: bytes,
            delivered: 0,
            start: now,
            ideal: ideal.unwrap_or_default(),
        };
        self.live[place as usize] = Some(live);
        self.expect_arrivals(now, &live, place);
        self.alive += 1;
        self.begun_octets = self.begun_octets.saturating_add(bytes);
        if !writes.is_empty() {
            self.announce(hosts, &live, writes);
        }
        if live.op == Op::Send && !live.is_rpc() && !self.receiving.is_ready() {
            // No more than there are messages.
            let messages = bytes.div_ceil(u64::from(message.max(1)));
            for _ in 0..u64::from(self.receiving.depth(live.depth)).min(messages) {
                self.post_receive(hosts, place);
            }
        }
        if live.is_rpc() {
            self.pump(now, hosts, place);
        } else {
            self.post(now, hosts, place);
        }
    }

    /// Lets a flow's programs know until when `writes`, in the order of time, may write to them.
    fn announce(&self, hosts: &mut [Host], live: &Live, writes: &[RegisterWrite]) {
        let name = self.name(live.id).to_string();
        for (host, qpn) in [(live.src, live.src_qpn), (live.dst, live.dst_qpn)] {
            let Some(Law::Program(program)) = hosts[at(host)].engine.law_mut(live.law) else { continue };
            let names = program.registers();
            let is_for = |write: &&RegisterWrite| {
                write.flow.as_ref().is_none_or(|flow| flow.value == name)
                    && write.traffic.is_none_or(|table| table == live.id.traffic as usize)
                    && of_networks(write).is_none_or(|mut laws| laws.any(|law| law == live.law))
                    && (write.program.image().is_some()
                        || names.iter().any(|register| register.name == write.register.value))
            };
            let last = writes.iter().rev().find(is_for).map(|write| write.time);
            program.await_write(qpn.get(), last);
        }
    }

    /// A pair of queue pairs that know each other, as connection management would leave them.
    fn connect(&mut self, now: Instant, hosts: &mut [Host], job: &Job, law: u16) -> (Qpn, Qpn, Psn) {
        let (src, dst, priority) = (job.src, job.dst, job.common.priority);
        let stream = CONNECT_STREAMS + (u64::from(job.id.traffic) << 32) + u64::from(job.id.number);
        let mut random = Random::new(self.seed, stream);
        #[expect(clippy::cast_possible_truncation, reason = "24 and 14 bits")]
        let [psn, back_psn] = [(); 2].map(|()| Psn::new(random.below(1 << 24) as u32));
        #[expect(clippy::cast_possible_truncation, reason = "14 bits")]
        let port = 0xc000 | random.below(1 << 14) as u16;
        let flow = flow_hash(src, dst, port);
        let config = |profiles: &Profiles, host: HostId, peer: HostId| QpConfig {
            path: Path { host: peer, flow }.pack(),
            law,
            priority: priority.unwrap_or(profiles.priority),
            mtu: profiles.mtu(host, peer),
            created: now,
            ..profiles.qp(host)
        };
        let requester = QpConfig { send_psn: psn, receive_psn: back_psn, ..config(&self.profiles, src, dst) };
        let src_qpn =
            hosts[at(src)].engine.create_qp(requester).expect("the scenario's attributes were checked");
        let srq = self.rpc_srq(hosts, job);
        let responder = QpConfig {
            peer: src_qpn,
            srq,
            send_psn: back_psn,
            receive_psn: psn,
            ..config(&self.profiles, dst, src)
        };
        let dst_qpn =
            hosts[at(dst)].engine.create_qp(responder).expect("the scenario's attributes were checked");
        let known = Change { peer: Some(dst_qpn), ..Change::default() };
        hosts[at(src)].engine.modify_qp(now, src_qpn, &known).expect("a peer may be named in any state");
        for (host, qpn) in [(src, src_qpn), (dst, dst_qpn)] {
            hosts[at(host)].begin(qpn);
        }
        (src_qpn, dst_qpn, psn)
    }

    /// Posts as many messages of a flow as may be outstanding.
    fn post(&mut self, now: Instant, hosts: &mut [Host], place: u32) {
        let Some(live) = &mut self.live[place as usize] else { return };
        let (src, dst, op) = (live.src, live.dst, live.op);
        let posts_receives = op == Op::Send && self.receiving.is_ready();
        while live.left > 0 && live.outstanding < live.depth {
            let length = u32::try_from(live.left).map_or(live.message, |left| left.min(live.message));
            if posts_receives {
                post_receive(hosts, &self.profiles, place, live);
            }
            let rkey = self.profiles.key(dst);
            let operation = match op {
                Op::Send => Operation::Send(Tail::Plain),
                Op::Write => Operation::Write { va: 0, rkey, tail: Tail::Plain },
                Op::Read => Operation::Read { va: 0, rkey },
                Op::FetchAdd => Operation::FetchAdd { va: 0, rkey, add: 1 },
                Op::CompareSwap => Operation::CompareSwap { va: 0, rkey, compare: 0, swap: 1 },
            };
            let request = SendRequest {
                id: u64::from(place),
                operation,
                length,
                address: 0,
                lkey: self.profiles.key(src),
                solicited: false,
                signaled: true,
                fence: false,
            };
            hosts[at(src)]
                .engine
                .post_send(now, live.src_qpn, &request)
                .expect("the queue pair is connected");
            live.left -= u64::from(length);
            live.outstanding += 1;
        }
    }

    /// Posts a WRITE of `octets` with `immediate`, and the receive request that it takes.
    fn write(
        &mut self,
        now: Instant,
        hosts: &mut [Host],
        place: u32,
        octets: u32,
        immediate: u32,
        signaled: bool,
    ) {
        let Some(live) = &mut self.live[place as usize] else { return };
        let (id, lkey) = (RECV | u64::from(place), self.profiles.key(live.dst));
        let request = RecvRequest { id, address: 0, length: octets, lkey };
        hosts[at(live.dst)].engine.post_recv(live.dst_qpn, request).expect("the queue pair is connected");
        live.left -= u64::from(octets);
        live.outstanding += u32::from(signaled);
        let request = SendRequest {
            id: u64::from(place),
            operation: Operation::Write { va: 0, rkey: lkey, tail: Tail::Immediate(immediate) },
            length: octets,
            address: 0,
            lkey: self.profiles.key(live.src),
            solicited: false,
            signaled,
            fence: false,
        };
        hosts[at(live.src)]
            .engine
            .post_send(now, live.src_qpn, &request)
            .expect("the queue pair is connected");
    }

    /// A WRITE with immediate has come.
    fn written(&mut self, net: &mut Net, hosts: &mut [Host], completion: &Completion) {
        let place = u32::try_from(completion.id & !RECV).expect("a flow's place");
        let Some(Some(live)) = self.live.get(place as usize) else { return };
        match live.poster {
            Poster::Goal => self.message_of_goal(net, hosts, place, completion),
            _ => self.part_arrived(net, hosts, place, completion),
        }
    }

    /// Posts a receive request that takes any message of a flow.
    fn post_receive(&self, hosts: &mut [Host], place: u32) {
        if let Some(Some(live)) = self.live.get(place as usize) {
            post_receive(hosts, &self.profiles, place, live);
        }
    }

    /// Posts the receive requests whose time has come.
    pub(super) fn receive_due(&mut self, now: Instant, hosts: &mut [Host]) {
        while let Some((_, place, number)) = self.receiving.take_due(now) {
            // The place may be another flow's by now.
            if self.live[place as usize].is_some_and(|live| live.number == number) {
                self.post_receive(hosts, place);
            }
        }
    }

    /// A message has come that took a receive request.
    fn received(&mut self, net: &mut Net, hosts: &mut [Host], completion: &Completion) {
        let now = net.now();
        self.first_received.get_or_insert(now);
        if completion.status != Status::Success || self.receiving.is_ready() {
            return;
        }
        let place = u32::try_from(completion.id & !RECV).expect("a flow's place");
        let Some(Some(live)) = self.live.get(place as usize) else { return };
        let number = live.number;
        match self.receiving.took(now, number) {
            at if at == now => self.post_receive(hosts, place),
            // The run is to look at what is due before it goes on.
            at if self.receiving.postpone((at, place, number)) => net.pause_here(),
            _ => {}
        }
    }

    /// Notes with which of a flow's queue pairs a program failed, before they are gone.
    fn note_fallen(&mut self, hosts: &[Host], live: &Live) {
        for (host, qpn) in [(live.src, live.src_qpn), (live.dst, live.dst_qpn)] {
            if hosts[at(host)].engine.has_fallen(qpn) {
                self.fallen.push(Fallen { host, qpn, number: live.number, start: live.start });
            }
        }
    }

    /// Notes a READ that was given up if a packet of it takes its responder longer than the timeout.
    #[cold]
    fn note_slow_read(&mut self, hosts: &[Host], live: &Live) {
        let Ok(responder) = hosts[at(live.dst)].engine.query(live.dst_qpn) else { return };
        let kbps = responder.credit.rate_kbps;
        let packet = BitsPerSec::from_kbps(kbps.into()).time_for(self.packet(live).into());
        if packet > self.profiles.timeout() {
            let (first, count) = &mut self.slow_reads;
            first.get_or_insert(SlowRead { id: live.id, law: live.law, kbps });
            *count += 1;
        }
    }

    /// Ends a flow: its result is kept and its queue pairs are gone.
    fn end(&mut self, now: Instant, hosts: &mut [Host], place: u32, status: Status) {
        self.end_as(hosts, place, FlowStatus::Completed(status), now);
    }

    /// Ends one of several flows that go together.
    fn end_part(&mut self, net: &mut Net, hosts: &mut [Host], place: u32, status: Status) {
        self.end(net.now(), hosts, place, status);
        if self.alive == 0 {
            net.pause_here();
        }
    }

    /// Ends those flows of a table that stand at `places`, by their numbers, and are alive: one of them has failed.
    fn flush(&mut self, net: &mut Net, hosts: &mut [Host], table: u32, places: &[u32]) {
        for (number, &place) in (0..).zip(places) {
            let id = JobId { traffic: table, number };
            if self.live[place as usize].is_some_and(|live| live.id == id) {
                self.end_part(net, hosts, place, Status::WorkRequestFlushed);
            }
        }
    }

    /// The same as one that ended at `end`.
    fn end_as(&mut self, hosts: &mut [Host], place: u32, status: FlowStatus, end: Instant) {
        let Some((live, counted)) = self.count(hosts, place as usize) else { return };
        self.live[place as usize] = None;
        self.note_fallen(hosts, &live);
        if live.op == Op::Read && status == FlowStatus::Completed(Status::TransportRetryCounterExceeded) {
            self.note_slow_read(hosts, &live);
        }
        let ended = self.close(&live, &counted, status, end);
        if let Some(fct) = ended.result.fct() {
            debug_assert!(
                fct >= live.ideal || self.reroutes,
                "flow {} took {fct}, less than the {} that it takes alone on an idle path",
                ended.result.name,
                live.ideal
            );
        }
        hosts[at(live.src)].engine.destroy_qp(live.src_qpn).expect("it exists until here");
        hosts[at(live.dst)].engine.destroy_qp(live.dst_qpn).expect("it exists until here");
        self.receiving.forget(live.number);
        self.forget_arrivals(&live);
        self.ended_octets = self.ended_octets.saturating_add(ended.result.delivered);
        self.ended.push(ended);
        self.vacant.push(place);
        self.alive -= 1;
    }

    /// What became of all flows. Those that are alive stay as they are.
    pub(super) fn results(&mut self, hosts: &[Host]) -> Outcome {
        let mut flows = std::mem::take(&mut self.ended);
        for place in 0..self.live.len() {
            if let Some((live, counted)) = self.count(hosts, place) {
                self.note_fallen(hosts, &live);
                flows.push(self.close(&live, &counted, FlowStatus::Running, Instant::NEVER));
            }
        }
        flows.sort_by_key(|flow| flow.id);
        let mut places = vec![0; flows.len()];
        for (place, flow) in (0u32..).zip(&mut flows) {
            places[flow.number as usize] = place;
            if flow.result.bytes == u64::MAX {
                // A flow without an end has posted as much as was done.
                flow.result.bytes = flow.result.delivered;
            }
        }
        let before = |table| flows.partition_point(|flow| flow.id.traffic < table);
        let of_tables = (0u32..).zip(self.traffic.iter()).map(|(table, _)| before(table)..before(table + 1));
        Outcome {
            of_tables: of_tables.collect(),
            flows: flows.into_iter().map(|flow| flow.result).collect(),
            places,
        }
    }
}

impl Application for Driver {
    fn completed(&mut self, net: &mut Net, hosts: &mut [Host], host: HostId, completion: &Completion) {
        let is_received = matches!(completion.kind, CompletionKind::Recv | CompletionKind::RecvWrite);
        if is_received && self.is_unreliable() {
            if completion.kind == CompletionKind::Recv {
                self.received(net, hosts, completion);
            }
            self.message_came(net.now(), hosts, host, completion);
            if self.alive == 0 {
                net.pause_here();
            }
            return;
        }
        match completion.kind {
            CompletionKind::Recv if self.came(net, hosts, host, completion) => return,
            CompletionKind::Recv => return self.received(net, hosts, completion),
            CompletionKind::RecvWrite => return self.written(net, hosts, completion),
            _ => {}
        }
        let place = u32::try_from(completion.id).expect("a flow's place");
        let now = net.now();
        let is_unreliable = self.is_unreliable();
        let Some(Some(live)) = self.live.get_mut(place as usize) else { return };
        match live.poster {
            Poster::Goal => return self.sent_of_goal(net, hosts, place, completion.status),
            Poster::Collective | Poster::Rpc => return self.parts_sent(net, hosts, place, completion.status),
            Poster::Flow => {}
        }
        live.outstanding -= 1;
        let done = live.left == 0 && live.outstanding == 0;
        if done && completion.status == Status::Success && is_unreliable {
            self.all_sent(net, hosts, place);
            if self.alive == 0 {
                net.pause_here();
            }
        } else if done || completion.status != Status::Success {
            self.end(now, hosts, place, completion.status);
            if self.alive == 0 {
                // It may have been the last: the run ends here, whatever is sampled.
                net.pause_here();
            }
        } else {
            debug_assert_eq!(live.src, host, "requests complete where they were posted");
            self.post(now, hosts, place);
        }
    }
}

/// Posts a receive request that takes any message of the flow at `place`.
fn post_receive(hosts: &mut [Host], profiles: &Profiles, place: u32, live: &Live) {
    let (id, lkey) = (RECV | u64::from(place), profiles.key(live.dst));
    let request = RecvRequest { id, address: 0, length: live.message, lkey };
    hosts[at(live.dst)].engine.post_recv(live.dst_qpn, request).expect("the queue pair is connected");
}

fn at(host: HostId) -> usize {
    usize::from(host.0)
}

fn index(place: usize) -> u32 {
    u32::try_from(place).expect("fewer than 2^32 flows")
}
