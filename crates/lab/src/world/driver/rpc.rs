//! Requests and responses: clients post what window and credits allow, and the threads of servers consume what has come, as fast
//! as their machines let them.

mod serving;

use super::{Driver, RECV, at};
use crate::results::rpc::{IdleTimes, MachineResult, RpcResult, Times};
use crate::results::series::Series;
use crate::scenario::Scenario;
use crate::traffic::rpc::Rpc;
use crate::traffic::{Job, JobId, Traffic};
use roci_fabric::net::Net;
use roci_fabric::packet::HostId;
use roci_machine::Machine;
use roci_nic::Host;
use roci_rpc::{Client, ClientConfig, Credits, RETURN_HEADER, Return, Server, basic_credits};
use roci_transport::{Completion, Operation, RecvRequest, SendRequest, Srq, Status, Tail};
use roci_units::{Instant, Qpn, Span};
use serving::{RING, Served, Step};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

/// All requests and responses of a run.
#[derive(Default)]
pub(in crate::world) struct Rpcs {
    /// By `[[traffic]]` table.
    groups: Vec<Option<Box<Group>>>,
    servers: Vec<Served>,
    /// When threads are done with what they do, or can begin: when, which server and which thread.
    due: BinaryHeap<Reverse<(Instant, u32, u32)>>,
}

/// One table.
struct Group {
    spec: Rpc,
    server: usize,
    /// Its first thread there.
    first: usize,
    connections: Vec<Connection>,
    /// When counting begins.
    from: Instant,
    answered: u64,
    /// Those before that too.
    answered_in_all: u64,
    times: Times,
    /// Lines that its threads read, and those that came from memory.
    reads: u64,
    misses: u64,
    /// The δ that clients had when credits came back: the sum, and how often.
    deltas: (i128, u64),
}

/// A connection of a table.
struct Connection {
    client: Client,
    server: Server,
    /// Packets of the request that is coming which the thread has consumed.
    consumed: u32,
    /// What is on its way back: whether a response, and the credits with it.
    backs: VecDeque<(bool, Return)>,
    /// The first lines of where a request is put together, and of the response.
    message: u32,
    response: u32,
}

impl Rpcs {
    /// The machines and connections of `scenario`, and the receive buffers of the servers' threads; `key` is that of the memory of a NIC.
    pub(in crate::world) fn new(
        scenario: &Scenario,
        hosts: &mut [Host],
        key: impl Fn(HostId) -> u32,
    ) -> Self {
        let homes = &scenario.topology.homes;
        let mut rpcs = Self::default();
        for (table, traffic) in (0u32..).zip(scenario.traffic.iter()) {
            let Traffic::Rpc(spec) = traffic else {
                rpcs.groups.push(None);
                continue;
            };
            let known = rpcs.servers.iter().position(|served| served.host() == spec.server);
            let server = known.unwrap_or_else(|| {
                let nics: Vec<HostId> = homes.nics(spec.server).collect();
                if scenario.machine.hostcc.is_some() {
                    nics.iter().for_each(|nic| hosts[at(*nic)].listen_to_machine());
                }
                rpcs.servers.push(Served::new(nics, &scenario.machine));
                rpcs.servers.len() - 1
            });
            let served = &mut rpcs.servers[server];
            let group = Group::new(spec, scenario, served, server);
            served.add_threads(spec, table);
            // Which of several NICs connections take is decided when these begin.
            if let [nic] = served.nics[..] {
                for thread in group.threads() {
                    let engine = &mut hosts[at(nic)].engine;
                    served.srq(thread, spec, group.packet(), nic, engine, key(nic));
                }
            }
            rpcs.groups.push(Some(Box::new(group)));
        }
        rpcs
    }

    /// When a thread is due next.
    pub(in crate::world) fn next(&self) -> Instant {
        self.due.peek().map_or(Instant::NEVER, |Reverse((at, ..))| *at)
    }

    fn take_due(&mut self, now: Instant) -> Option<(usize, usize)> {
        if self.next() > now {
            return None;
        }
        self.due.pop().map(|Reverse((_, server, thread))| (server as usize, thread as usize))
    }

    /// Lets a thread be due; gives whether nothing comes before.
    fn wait(&mut self, until: Instant, server: usize, thread: usize) -> bool {
        let first = until < self.next();
        let [server, thread] = [server, thread].map(|it| u32::try_from(it).expect("few threads"));
        self.due.push(Reverse((until, server, thread)));
        first
    }

    fn group(&mut self, table: u32) -> Option<&mut Group> {
        self.groups.get_mut(table as usize)?.as_deref_mut()
    }

    /// Adds what machines hold and what was answered to the sample that is open.
    pub(in crate::world) fn sample(&self, now: Instant, series: &mut Series) {
        for served in &self.servers {
            series.machine(served.host().0, served.sample(now));
        }
        for (table, group) in (0u32..).zip(&self.groups) {
            if let Some(group) = group {
                series.answered(table, group.answered_in_all);
            }
        }
    }

    /// What became of the tables and of the machines until `now`.
    pub(in crate::world) fn results(&self, now: Instant) -> (Vec<RpcResult>, Vec<MachineResult>) {
        let tables = self.groups.iter().enumerate().filter_map(|(table, group)| {
            let group = group.as_ref()?;
            let served = &self.servers[group.server];
            let mut idle = IdleTimes::default();
            group.threads().for_each(|thread| idle.add(&served.idle(thread, now)));
            Some(group.result(table, served.host(), now, idle))
        });
        (tables.collect(), self.servers.iter().map(|served| served.result(now)).collect())
    }
}

impl Group {
    fn new(spec: &Rpc, scenario: &Scenario, served: &mut Served, server: usize) -> Self {
        let all = scenario.traffic.iter().map(|traffic| match traffic {
            Traffic::Rpc(other) if other.server == spec.server => other.queue_pairs(),
            _ => 0,
        });
        let all = all.fold(0, u32::saturating_add);
        let mtu = |host: HostId| u32::from(scenario.nic.mtu_of(host, &scenario.topology));
        let machine = &mut served.machine;
        let config = *machine.config();
        let allocate = |machine: &mut Machine, octets| {
            machine.allocate(octets).expect("the scenario's sizes were checked")
        };
        let cache = spec.credits_cache.map_or_else(|| config.cache_octets(), |cache| cache.0);
        let connections = (0..spec.queue_pairs()).map(|number| {
            let host = spec.clients[(number / spec.connections) as usize];
            let client = Client::new(ClientConfig {
                request: spec.request.0,
                packet: mtu(host).min(mtu(spec.server)),
                window: spec.window,
                count: spec.count,
                credits: spec.credits,
                basic: basic_credits(cache, config.line, all),
                line: config.line,
            });
            let message = if client.packets() > 1 { spec.request.0 } else { 0 };
            Connection {
                server: Server::new((spec.credits != Credits::Unlimited).then(|| client.limit())),
                client,
                consumed: 0,
                backs: VecDeque::new(),
                message: allocate(machine, message),
                response: allocate(machine, spec.response.0 + u64::from(RETURN_HEADER)),
            }
        });
        let connections = connections.collect();
        Self {
            first: served.threads(),
            connections,
            server,
            from: spec.start + spec.warmup,
            answered: 0,
            answered_in_all: 0,
            times: Times::default(),
            reads: 0,
            misses: 0,
            deltas: (0, 0),
            spec: spec.clone(),
        }
    }

    /// The most octets of a packet of its requests.
    fn packet(&self) -> u32 {
        self.connections.iter().map(|one| one.client.packet_octets()).max().unwrap_or(1)
    }

    /// Its threads.
    fn threads(&self) -> Range<usize> {
        self.first..self.first + usize::from(self.spec.threads)
    }

    /// The thread of connection `number`.
    fn thread(&self, number: u32) -> usize {
        self.first + number as usize % usize::from(self.spec.threads)
    }

    /// So many lines were read, and so many of them came from memory.
    pub(super) fn count(&mut self, now: Instant, lines: u32, missed: u32) {
        if now >= self.from {
            self.reads += u64::from(lines);
            self.misses += u64::from(missed);
        }
    }

    fn result(&self, table: usize, host: HostId, now: Instant, idle: IdleTimes) -> RpcResult {
        let blocked = self.connections.iter().map(|one| one.client.blocked(now));
        let spec = &self.spec;
        let share = self.connections.first().filter(|_| spec.credits != Credits::Unlimited);
        let (sum, count) = self.deltas;
        RpcResult {
            table,
            server: host.0,
            threads: spec.threads,
            connections: spec.queue_pairs(),
            request: spec.request.0,
            response: spec.response.0,
            measured: if now > self.from { now.since(self.from) } else { Span::ZERO },
            answered: self.answered,
            times: self.times.clone(),
            reads: self.reads,
            read_misses: self.misses,
            blocked: blocked.fold(Span::ZERO, |all, one| all + one),
            share: share.map(|one| one.client.share()),
            delta_mean: (spec.credits == Credits::Loosened && count > 0)
                .then(|| i64::try_from(sum / i128::from(count)).unwrap_or(0)),
            idle,
        }
    }
}

impl Driver {
    /// Octets of all requests of a queue pair of `job`'s table, and those of a message, where that has requests and responses; notes
    /// where the queue pair stands.
    pub(super) fn connect_rpc(&mut self, job: &Job, place: u32, dst: Qpn) -> (u64, u64) {
        let group =
            self.rpcs.groups[job.id.traffic as usize].as_ref().expect("such jobs come from such tables");
        let packet = group.connections[job.id.number as usize].client.packet_octets();
        let message = group.spec.request.0.min(u64::from(packet));
        self.rpcs.servers[group.server].connect(job.dst, dst, place);
        (job.octets(), message)
    }

    /// The shared receive queue of the thread that answers on the queue pair of `job`, at that one's NIC.
    pub(super) fn rpc_srq(&mut self, hosts: &mut [Host], job: &Job) -> Option<Srq> {
        let group = self.rpcs.groups.get(job.id.traffic as usize)?.as_ref()?;
        let (thread, nic) = (group.thread(job.id.number), job.dst);
        let (engine, key) = (&mut hosts[at(nic)].engine, self.profiles.key(nic));
        Some(self.rpcs.servers[group.server].srq(thread, &group.spec, group.packet(), nic, engine, key))
    }

    /// Posts what a connection's window and credits allow.
    pub(super) fn pump(&mut self, now: Instant, hosts: &mut [Host], place: u32) {
        let Some(live) = self.live[place as usize] else { return };
        let Some(group) = self.rpcs.group(live.id.traffic) else { return };
        let client = &mut group.connections[live.id.number as usize].client;
        while let Some(packet) = client.next(now) {
            let request = send(place, packet.octets, self.profiles.key(live.src));
            hosts[at(live.src)]
                .engine
                .post_send(now, live.src_qpn, &request)
                .expect("the queue pair is connected");
        }
    }

    /// A SEND has come: what it was for, if it belongs to requests and responses.
    pub(super) fn came(&mut self, net: &mut Net, hosts: &mut [Host], host: HostId, it: &Completion) -> bool {
        if it.id & RING != 0 {
            self.request_came(net, hosts, host, it);
            return true;
        }
        let place = u32::try_from(it.id & !RECV).expect("a flow's place");
        let Some(Some(live)) = self.live.get(place as usize) else { return false };
        let id = live.id;
        if self.rpcs.group(id.traffic).is_none() {
            return false;
        }
        if it.status == Status::Success {
            self.back_came(net, hosts, place, id);
        }
        true
    }

    /// A packet of a request is in a buffer of a thread.
    fn request_came(&mut self, net: &mut Net, hosts: &mut [Host], host: HostId, it: &Completion) {
        let is_of = |served: &Served| served.nics.contains(&host);
        let Some(server) = self.rpcs.servers.iter().position(is_of) else { return };
        let key = self.profiles.key(host);
        let served = &mut self.rpcs.servers[server];
        let place = served.place(host, it.qpn);
        let id = place.and_then(|place| Some((place, self.live.get(place as usize)?.as_ref()?.id)));
        let due = served.take(net.now(), host, &mut hosts[at(host)].engine, key, it, id);
        if let Some(congested) = served.congested() {
            served.nics.iter().for_each(|nic| hosts[at(*nic)].set_congested(congested));
        }
        if let Some((at, thread)) = due
            && self.rpcs.wait(at, server, thread)
        {
            net.pause_here();
        }
    }

    /// A response or credits have come to a client, which may post more.
    fn back_came(&mut self, net: &mut Net, hosts: &mut [Host], place: u32, id: JobId) {
        let now = net.now();
        let Some(group) = self.rpcs.group(id.traffic) else { return };
        let Connection { client, backs, .. } = &mut group.connections[id.number as usize];
        let Some((answers, credits)) = backs.pop_front() else { return };
        client.returned(now, &credits);
        if group.spec.credits == Credits::Loosened && now >= group.from {
            group.deltas.0 += i128::from(client.delta());
            group.deltas.1 += 1;
        }
        let mut done = false;
        if answers && let Some(request) = client.answered(now) {
            done = client.is_done();
            group.answered_in_all += 1;
            if now >= group.from {
                group.answered += 1;
                group.times.add(now.since(request.begun));
            }
            let octets = group.spec.request.0;
            if let Some(live) = &mut self.live[place as usize] {
                live.delivered += octets;
                live.left = live.left.saturating_sub(octets);
            }
        }
        if done {
            self.end(now, hosts, place, Status::Success);
            if self.alive == 0 {
                net.pause_here();
            }
        } else {
            self.pump(now, hosts, place);
        }
    }

    /// Lets the threads go on whose time has come.
    pub(in crate::world) fn serve_due(&mut self, net: &mut Net, hosts: &mut [Host]) {
        let now = net.now();
        while let Some((server, thread)) = self.rpcs.take_due(now) {
            let mut posted: Vec<HostId> = Vec::new();
            loop {
                let Rpcs { groups, servers, .. } = &mut self.rpcs;
                let key = |nic| self.profiles.key(nic);
                match servers[server].go_on(now, thread, groups, hosts, key) {
                    Step::Until(at) => {
                        self.rpcs.wait(at, server, thread);
                        break;
                    }
                    Step::Idle => break,
                    Step::Send { place, id, answers, credits } => {
                        let nic = self.send_back(now, hosts, place, id, answers, credits);
                        posted.extend(nic.filter(|nic| !posted.contains(nic)));
                    }
                }
            }
            for nic in posted {
                hosts[at(nic)].poke(net, nic);
            }
        }
    }

    /// Posts a response, or credits alone, and the receive request that it takes, and gives the NIC where it did. Not where the connection is
    /// gone.
    fn send_back(
        &mut self,
        now: Instant,
        hosts: &mut [Host],
        place: u32,
        id: JobId,
        answers: bool,
        credits: Return,
    ) -> Option<HostId> {
        let live = self.live[place as usize].filter(|live| live.id == id)?;
        let group = self.rpcs.groups[id.traffic as usize].as_deref_mut()?;
        let connection = &mut group.connections[id.number as usize];
        connection.backs.push_back((answers, credits));
        let octets =
            RETURN_HEADER + if answers { u32::try_from(group.spec.response.0).unwrap_or(0) } else { 0 };
        let machine = &mut self.rpcs.servers[group.server].machine;
        machine.dma_read(now, connection.response, octets);
        let lkey = self.profiles.key(live.src);
        let recv = RecvRequest { id: RECV | u64::from(place), address: 0, length: octets, lkey };
        hosts[at(live.src)].engine.post_recv(live.src_qpn, recv).expect("the queue pair is connected");
        let request = send(place, octets, self.profiles.key(live.dst));
        hosts[at(live.dst)]
            .engine
            .post_send(now, live.dst_qpn, &request)
            .expect("the queue pair is connected");
        Some(live.dst)
    }
}

/// A SEND of which only a failure is told.
fn send(place: u32, length: u32, lkey: u32) -> SendRequest {
    SendRequest {
        id: u64::from(place),
        operation: Operation::Send(Tail::Plain),
        length,
        address: 0,
        lkey,
        solicited: false,
        signaled: false,
        fence: false,
    }
}
