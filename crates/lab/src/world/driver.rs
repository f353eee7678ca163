//! The application on the simulated hosts: it connects queue pairs, posts messages and records their end.

use super::profile::Profiles;
use crate::results::{FlowResult, FlowStatus, Op};
use crate::traffic::JobId;
use roci_fabric::net::Net;
use roci_fabric::packet::HostId;
use roci_fabric::routing::flow_hash;
use roci_nic::{Application, Host, Path};
use roci_transport::{
    Change, Completion, CompletionKind, Operation, QpConfig, RecvRequest, SendRequest, Status, Tail,
};
use roci_units::{Instant, Psn, Qpn, Random};

/// A flow to be started: what is posted on a queue pair of its own.
#[derive(Clone, Debug)]
pub(super) struct Start {
    /// Where it stands in the scenario.
    pub(super) id: JobId,
    /// Its record, as it stands before anything was sent.
    pub(super) record: FlowResult,
    /// Octets of each message but the last.
    pub(super) message: u64,
    /// Messages that may be outstanding.
    pub(super) depth: u32,
    /// The priority of its data; `None`: the scenario's.
    pub(super) priority: Option<u8>,
    /// Which of the scenario's laws it runs.
    pub(super) law: u16,
}

/// A flow whose queue pairs exist.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    /// Its record's place.
    pub(super) record: u32,
    pub(super) src_qpn: Qpn,
    pub(super) dst_qpn: Qpn,
    /// The PSN of the requester's first packet.
    first_psn: Psn,
    /// Octets of each message but the last.
    pub(super) message: u64,
    /// Octets not yet posted.
    left: u64,
    outstanding: u32,
    depth: u32,
}

/// A flow that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    /// Its record's place.
    pub(super) record: u32,
    /// Octets of each of its messages but the last.
    pub(super) message: u64,
}

/// The longest message: half of what a RETH can say, as the specification has it.
const MESSAGE_MAX: u64 = 1 << 30;
/// What receive requests are named, so that their completions are told from those of flows.
const RECV: u64 = u64::MAX;

/// All flows of a run.
pub(super) struct Driver {
    pub(super) profiles: Profiles,
    /// Records of flows, in the order of their starts.
    pub(super) records: Vec<FlowResult>,
    /// Where each of them stands in the scenario.
    pub(super) order: Vec<JobId>,
    /// The flows that are alive; a work request's name is its flow's place here.
    pub(super) live: Vec<Option<Live>>,
    vacant: Vec<u32>,
    /// Flows that ended since the last sample.
    pub(super) ended: Vec<Ended>,
    pub(super) alive: usize,
    /// Octets that completed.
    pub(super) completed_octets: u64,
    /// When the last flow ended.
    pub(super) last_end: Instant,
    /// When the first receive request ended.
    pub(super) first_received: Option<Instant>,
    random: Random,
}

/// The stream of chance that initial PSNs and UDP ports are drawn from.
const CONNECT_STREAM: u64 = 1 << 42;

impl Driver {
    pub(super) fn new(profiles: Profiles, seed: u64) -> Self {
        Self {
            profiles,
            records: Vec::new(),
            order: Vec::new(),
            live: Vec::new(),
            vacant: Vec::new(),
            ended: Vec::new(),
            alive: 0,
            completed_octets: 0,
            last_end: Instant::ZERO,
            first_received: None,
            random: Random::new(seed, CONNECT_STREAM),
        }
    }

    /// Connects two queue pairs for `start` and posts its first messages. The caller pokes the source's NIC.
    pub(super) fn start(&mut self, now: Instant, hosts: &mut [Host], start: Start) {
        let Start { id, record, message, depth, priority, law } = start;
        let (src, dst) = (HostId(record.src), HostId(record.dst));
        let (src_qpn, dst_qpn, first_psn) = self.connect(now, hosts, src, dst, priority, law);
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.live.push(None);
            index(self.live.len() - 1)
        });
        let live = Live {
            record: index(self.records.len()),
            src_qpn,
            dst_qpn,
            first_psn,
            message: message.min(MESSAGE_MAX),
            left: record.bytes,
            outstanding: 0,
            depth,
        };
        self.live[place as usize] = Some(live);
        self.records.push(record);
        self.order.push(id);
        self.alive += 1;
        self.post(now, hosts, place);
    }

    /// A pair of queue pairs that know each other, as connection management would leave them.
    fn connect(
        &mut self,
        now: Instant,
        hosts: &mut [Host],
        src: HostId,
        dst: HostId,
        priority: Option<u8>,
        law: u16,
    ) -> (Qpn, Qpn, Psn) {
        let [psn, back_psn] = [self.psn(), self.psn()];
        #[expect(clippy::cast_possible_truncation, reason = "14 bits")]
        let port = 0xc000 | self.random.below(1 << 14) as u16;
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
        let responder = QpConfig {
            peer: src_qpn,
            send_psn: back_psn,
            receive_psn: psn,
            ..config(&self.profiles, dst, src)
        };
        let dst_qpn =
            hosts[at(dst)].engine.create_qp(responder).expect("the scenario's attributes were checked");
        let known = Change { peer: Some(dst_qpn), ..Change::default() };
        hosts[at(src)].engine.modify_qp(now, src_qpn, &known).expect("a peer may be named in any state");
        (src_qpn, dst_qpn, psn)
    }

    #[expect(clippy::cast_possible_truncation, reason = "24 bits")]
    fn psn(&mut self) -> Psn {
        Psn::new(self.random.below(1 << 24) as u32)
    }

    /// Posts as many messages of a flow as may be outstanding.
    fn post(&mut self, now: Instant, hosts: &mut [Host], place: u32) {
        let Some(live) = &mut self.live[place as usize] else { return };
        let record = &self.records[live.record as usize];
        let (src, dst, op) = (HostId(record.src), HostId(record.dst), record.op);
        while live.left > 0 && live.outstanding < live.depth {
            let length = u32::try_from(live.message.min(live.left)).expect("messages are below 2^30");
            if op == Op::Send {
                let request = RecvRequest { id: RECV, address: 0, length, lkey: self.profiles.key(dst) };
                hosts[at(dst)].engine.post_recv(live.dst_qpn, request).expect("the queue pair is connected");
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

    /// Octets of a flow's payload that have arrived in order, those of open messages included.
    fn delivered(&self, hosts: &[Host], live: &Live) -> u64 {
        let record = &self.records[live.record as usize];
        let src = hosts[usize::from(record.src)].engine.query(live.src_qpn);
        let dst = hosts[usize::from(record.dst)].engine.query(live.dst_qpn);
        let (Ok(src), Ok(dst)) = (src, dst) else { return record.delivered };
        let acknowledged = src.acknowledged;
        let packets = if record.op == Op::Read {
            let responses = hosts[usize::from(record.src)].engine.responses(live.src_qpn);
            u64::from(responses.unwrap_or(acknowledged))
        } else {
            // The responder tells its place on the circle of PSNs; it is less than half of it ahead of what the
            // requester has heard.
            let ahead = dst.receive_psn.since(live.first_psn.plus(acknowledged));
            u64::from(acknowledged).saturating_add_signed(ahead.into())
        };
        let mtu = u64::from(self.profiles.mtu(HostId(record.src), HostId(record.dst)));
        let of_message = live.message.div_ceil(mtu);
        let open = (packets % of_message * mtu).min(live.message);
        (packets / of_message * live.message + open).min(record.bytes).max(record.delivered)
    }

    /// Writes what the queue pairs of a flow have counted into its record.
    pub(super) fn update(&mut self, hosts: &[Host], live: &Live) {
        let delivered = self.delivered(hosts, live);
        let record = &mut self.records[live.record as usize];
        let sender = hosts[usize::from(record.src)].engine.counters(live.src_qpn);
        let receiver = hosts[usize::from(record.dst)].engine.counters(live.dst_qpn);
        // A READ's data travel the other way: its responder sends and counts them.
        let (data, arrivals) = if record.op == Op::Read { (receiver, sender) } else { (sender, receiver) };
        record.delivered = delivered;
        record.packets = u64::from(data.packets);
        record.retransmitted = data.retransmitted;
        record.timeouts = sender.timeouts;
        record.naks = sender.naks;
        record.cnps = data.cnps;
        record.ecn_marked = arrivals.ecn_marked;
    }

    /// Ends a flow: its record is closed and its queue pairs are gone.
    fn end(&mut self, now: Instant, hosts: &mut [Host], place: u32, status: Status) {
        let Some(live) = self.live[place as usize].take() else { return };
        self.update(hosts, &live);
        let record = &mut self.records[live.record as usize];
        record.status = FlowStatus::Completed(status);
        if status == Status::Success {
            record.delivered = record.bytes;
        }
        record.end = now;
        if let (Some(fct), Status::Success) = (record.fct(), status) {
            assert!(
                fct >= record.ideal,
                "flow {} took {fct}, less than the {} that it takes alone on an idle path",
                record.name,
                record.ideal
            );
        }
        let (src, dst) = (usize::from(record.src), usize::from(record.dst));
        hosts[src].engine.destroy_qp(live.src_qpn).expect("it exists until here");
        hosts[dst].engine.destroy_qp(live.dst_qpn).expect("it exists until here");
        self.vacant.push(place);
        self.ended.push(Ended { record: live.record, message: live.message });
        self.alive -= 1;
        self.last_end = now;
    }
}

impl Application for Driver {
    fn completed(&mut self, net: &mut Net, hosts: &mut [Host], host: HostId, completion: &Completion) {
        if completion.id == RECV
            || matches!(completion.kind, CompletionKind::Recv | CompletionKind::RecvWrite)
        {
            self.first_received.get_or_insert(net.now());
            return;
        }
        let place = u32::try_from(completion.id).expect("a flow's place");
        let now = net.now();
        let Some(Some(live)) = self.live.get_mut(place as usize) else { return };
        live.outstanding -= 1;
        if completion.status != Status::Success {
            self.end(now, hosts, place, completion.status);
            return;
        }
        let done = live.left == 0 && live.outstanding == 0;
        self.completed_octets += u64::from(completion.length);
        if done {
            self.end(now, hosts, place, Status::Success);
        } else {
            self.post(now, hosts, place);
            let src =
                HostId(self.records[self.live[place as usize].expect("still alive").record as usize].src);
            debug_assert_eq!(src, host, "requests complete where they were posted");
        }
    }
}

fn at(host: HostId) -> usize {
    usize::from(host.0)
}

fn index(place: usize) -> u32 {
    u32::try_from(place).expect("fewer than 2^32 flows")
}
