//! The yardsticks: an event kernel with nothing around it, and the same with DCQCN's load.
//!
//! One queue per port, a fixed threshold to pause an ingress port, RED, shortest paths, a window: what no simulator of
//! such a network can leave out, in the fewest lines and lines of cache. It shares the fabric's event queue, and
//! none of its code for packets, ports, switches or routes.
//!
//! With `DCQCN` it carries the scenario's traffic, whose queues are what fills the caches: no window, RED as there, a
//! shared buffer with a dynamic threshold to pause. Hosts pace each packet, which costs an event where it is not due
//! when the port is free, answer marks with a notification each 50 µs, cut and raise their rates by timers, watch for a
//! timeout, and are sampled each 100 µs (`reaction.rs`). A run of the scenario has these events and queues too,
//! whatever its engine costs.

use super::reaction::{Reaction, Timer};
use super::{DELAY, RED, Run, Workload, cpu_seconds};
use roci_fabric::graph::Graph;
use roci_fabric::queue::{EventQueue, HORIZON_PS};
use roci_prefetch::prefetch_at;
use roci_switch::Red;
use roci_units::{Bytes, Random, Ratio};
use std::collections::VecDeque;

const NONE: u32 = u32::MAX;
const ARRIVE: u8 = 0;
const FREE: u8 = 1;
const START: u8 = 2;
const STOP: u8 = 3;
const GO_ON: u8 = 4;
const PACED: u8 = 5;
/// And the two kinds after it: one for each [`Timer`].
const TIMER: u8 = 6;
const SAMPLE: u8 = 9;
const SAMPLE_PS: u64 = 100_000_000;
/// Octets with preamble and gap, and picoseconds of one at 100 Gb/s.
const DATA: u32 = 4_194;
const ACK: u32 = 86;
const PAUSE: u32 = 84;
const OCTET_PS: u64 = 80;
/// Octets of an ingress port in the buffer at which its peer is paused, and at which it may go on.
const XOFF: u32 = 200_000;
const XON: u32 = 190_000;
/// With `DCQCN`: of a switch, which pauses a port that holds more than an eighth of what is free, and lets it go on two
/// packets below.
const BUFFER: u32 = 32_000_000;
const SCENARIO_RED: Red = Red { kmin: Bytes(400_000), kmax: Bytes(1_600_000), pmax: Ratio::new(1, 5) };

#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Packet {
    next: u32,
    /// The port that it arrives by.
    port: u32,
    node: u32,
    source: u32,
    destination: u32,
    hash: u32,
    size: u32,
    marked: bool,
    ack: bool,
}

#[derive(Clone)]
#[repr(align(64))]
struct Port {
    free_at: u64,
    sent: u64,
    head: u32,
    tail: u32,
    octets: u32,
    /// Octets in the buffer that came in by here.
    held: u32,
    peer: u32,
    node: u32,
    /// The switch that it is a port of.
    owner: u32,
    pending: bool,
    paused: bool,
    pausing: bool,
}

#[derive(Clone)]
#[repr(align(64))]
struct Host {
    destination: u32,
    hash: u32,
    total: u32,
    next: u32,
    acknowledged: u32,
    window: u32,
    head: u32,
    tail: u32,
    /// It waits for its pacer.
    paced: bool,
}

impl Host {
    fn may_send(&self) -> bool {
        self.next < self.total && self.next - self.acknowledged < self.window && !self.paced
    }
}

struct Kernel<const DCQCN: bool> {
    queue: EventQueue,
    packets: Vec<Packet>,
    free: Vec<u32>,
    ports: Vec<Port>,
    hosts: Vec<Host>,
    /// One a host, with `DCQCN`.
    reactions: Vec<Reaction>,
    unfinished: usize,
    /// Octets that wait at each switch, with `DCQCN`.
    used: Vec<u32>,
    /// Octets sent and waiting by port, and packets acknowledged by host, each 100 µs.
    series: Vec<u32>,
    /// By switch and destination, a group: the first of its ports and their number.
    groups: Vec<u16>,
    spans: Vec<(u32, u32)>,
    choices: Vec<u32>,
    first_span: Vec<u32>,
    random: Random,
    hops: u64,
    events: u64,
}

impl<const DCQCN: bool> Kernel<DCQCN> {
    #[inline(always)]
    fn send(&mut self, port: u32, id: u32) {
        let from = &mut self.ports[port as usize];
        let packet = &mut self.packets[id as usize];
        packet.port = from.peer;
        packet.node = from.node;
        let time = u64::from(packet.size) * OCTET_PS;
        from.free_at = self.queue.now() + time;
        from.sent += u64::from(packet.size);
        self.hops += 1;
        self.queue.push_after(time + DELAY.as_ps(), ARRIVE, id);
    }

    fn pause(&mut self, port: u32, kind: u8) {
        let from = &mut self.ports[port as usize];
        from.pausing = kind == STOP;
        from.free_at = from.free_at.max(self.queue.now()) + u64::from(PAUSE) * OCTET_PS;
        self.queue.push_at(from.free_at + DELAY.as_ps(), kind, from.peer);
    }

    #[inline(always)]
    fn arrive_at_switch(&mut self, switch: usize, id: u32) {
        let packet = &mut self.packets[id as usize];
        let group = self.groups[switch * self.hosts.len() + packet.destination as usize];
        let (first, count) = self.spans[self.first_span[switch] as usize + usize::from(group)];
        let mixed = (packet.hash ^ switch as u32).wrapping_mul(0x9e37_79b1);
        let pick = (u64::from(mixed ^ mixed >> 15) * u64::from(count)) >> 32;
        let egress = self.choices[first as usize + pick as usize];
        let port = &mut self.ports[egress as usize];
        if port.free_at <= self.queue.now() && !port.pending && port.head == NONE && !port.paused {
            return self.send(egress, id);
        }
        packet.next = NONE;
        let (ingress, size) = (packet.port, packet.size);
        if port.head == NONE {
            port.head = id;
        } else {
            self.packets[port.tail as usize].next = id;
        }
        port.tail = id;
        port.octets += size;
        let xoff = if DCQCN {
            self.used[switch] += size;
            BUFFER.saturating_sub(self.used[switch]) / 8
        } else {
            XOFF
        };
        let from = &mut self.ports[ingress as usize];
        from.held += size;
        if from.held > xoff && !from.pausing {
            self.pause(ingress, STOP);
        }
        self.serve_soon(egress);
    }

    #[inline(always)]
    fn serve_soon(&mut self, egress: u32) {
        let port = &mut self.ports[egress as usize];
        if port.pending || port.head == NONE || port.paused {
            return;
        }
        if port.free_at > self.queue.now() {
            port.pending = true;
            self.queue.push_after(port.free_at - self.queue.now(), FREE, egress);
        } else {
            self.serve_switch(egress);
        }
    }

    #[inline(always)]
    fn serve_switch(&mut self, egress: u32) {
        let port = &mut self.ports[egress as usize];
        let id = port.head;
        if id == NONE || port.paused {
            return;
        }
        let packet = &mut self.packets[id as usize];
        port.head = packet.next;
        port.octets -= packet.size;
        let red = if DCQCN { &SCENARIO_RED } else { &RED };
        if !packet.ack && red.marks(port.octets, &mut self.random) {
            packet.marked = true;
        }
        let (ingress, size) = (packet.port, packet.size);
        self.send(egress, id);
        let port = &mut self.ports[egress as usize];
        if port.head != NONE {
            port.pending = true;
            self.queue.push_after(port.free_at - self.queue.now(), FREE, egress);
        }
        let from = &mut self.ports[ingress as usize];
        let xon = if DCQCN {
            let used = &mut self.used[from.owner as usize];
            *used -= size;
            (BUFFER.saturating_sub(*used) / 8).saturating_sub(2 * DATA)
        } else {
            XON
        };
        from.held -= size;
        if from.pausing && from.held < xon {
            self.pause(ingress, GO_ON);
        }
    }

    #[inline(always)]
    fn arrive_at_host(&mut self, host: u32, id: u32) {
        let packet = &mut self.packets[id as usize];
        let state = &mut self.hosts[host as usize];
        if packet.ack {
            state.acknowledged += 1;
            self.free.push(id);
            let more = state.may_send();
            if DCQCN {
                self.react(host, id);
            }
            if more {
                self.kick(host);
            }
        } else {
            std::mem::swap(&mut packet.source, &mut packet.destination);
            packet.hash = packet.hash.rotate_left(9);
            packet.size = ACK;
            packet.ack = true;
            if DCQCN {
                packet.marked = packet.marked && self.reactions[host as usize].notifies(self.queue.now());
            }
            packet.next = NONE;
            if state.head == NONE {
                state.head = id;
            } else {
                self.packets[state.tail as usize].next = id;
            }
            state.tail = id;
            self.kick(host);
        }
    }

    #[inline(always)]
    fn kick(&mut self, host: u32) {
        let port = &mut self.ports[host as usize];
        if port.pending {
            return;
        }
        if port.free_at > self.queue.now() {
            port.pending = true;
            self.queue.push_at(port.free_at, FREE, host);
        } else {
            self.serve_host(host);
        }
    }

    #[inline(always)]
    fn serve_host(&mut self, host: u32) {
        if self.ports[host as usize].paused {
            return;
        }
        let now = self.queue.now();
        let state = &mut self.hosts[host as usize];
        let id = if state.head != NONE {
            let id = state.head;
            state.head = self.packets[id as usize].next;
            id
        } else if state.may_send() {
            state.next += 1;
            if DCQCN {
                let reaction = &mut self.reactions[host as usize];
                let due = reaction.sent(now, DATA);
                if due > now + u64::from(DATA) * OCTET_PS && state.next < state.total {
                    state.paced = true;
                    self.queue.push_at(due, PACED, host);
                }
                if let Some(timeout) = reaction.watch(now) {
                    self.queue.push_at(timeout, TIMER + Timer::Timeout as u8, host);
                }
            }
            let packet = Packet {
                source: host,
                destination: state.destination,
                hash: state.hash,
                size: DATA,
                ..Packet::default()
            };
            match self.free.pop() {
                Some(id) => {
                    self.packets[id as usize] = packet;
                    id
                }
                None => {
                    self.packets.push(packet);
                    self.packets.len() as u32 - 1
                }
            }
        } else {
            return;
        };
        let more = state.head != NONE || state.may_send();
        self.send(host, id);
        if more {
            let port = &mut self.ports[host as usize];
            port.pending = true;
            self.queue.push_after(port.free_at - self.queue.now(), FREE, host);
        }
    }

    /// An acknowledgement has come to a sender.
    #[inline(always)]
    fn react(&mut self, host: u32, id: u32) {
        let now = self.queue.now();
        let (state, reaction) = (&self.hosts[host as usize], &mut self.reactions[host as usize]);
        reaction.heard(now);
        if state.acknowledged == state.total {
            reaction.end();
            self.unfinished -= 1;
        } else if self.packets[id as usize].marked {
            for (timer, due) in reaction.cut(now) {
                self.queue.push_at(due, TIMER + timer as u8, host);
            }
        }
    }

    fn sample(&mut self) {
        for port in &mut self.ports {
            self.series.extend([port.sent as u32, port.octets]);
            port.sent = 0;
        }
        self.series.extend(self.hosts.iter().map(|host| host.acknowledged));
        if self.unfinished > 0 {
            self.queue.push_after(SAMPLE_PS, SAMPLE, 0);
        }
    }

    #[inline(always)]
    fn look_ahead(&self) {
        let [soon, next] = self.queue.ahead([6, 3]);
        if let Some(key) = soon {
            match key.kind() {
                ARRIVE => prefetch_at(&self.packets, key.handle() as usize),
                FREE => prefetch_at(&self.ports, key.handle() as usize),
                _ => {}
            }
        }
        let Some(key) = next else { return };
        if key.kind() == ARRIVE {
            let packet = &self.packets[key.handle() as usize];
            prefetch_at(&self.ports, packet.port as usize);
            match (packet.node as usize).checked_sub(self.hosts.len()) {
                Some(switch) => {
                    prefetch_at(&self.groups, switch * self.hosts.len() + packet.destination as usize);
                }
                None => {
                    prefetch_at(&self.hosts, packet.node as usize);
                    if DCQCN {
                        prefetch_at(&self.reactions, packet.node as usize);
                    }
                }
            }
        } else if key.kind() == FREE {
            prefetch_at(&self.packets, self.ports[key.handle() as usize].head as usize);
        }
    }

    fn run(&mut self) {
        let hosts = self.hosts.len() as u32;
        while let Some(key) = self.queue.pop(HORIZON_PS) {
            self.look_ahead();
            self.events += 1;
            let handle = key.handle();
            match key.kind() {
                ARRIVE => match self.packets[handle as usize].node.checked_sub(hosts) {
                    Some(switch) => self.arrive_at_switch(switch as usize, handle),
                    None => self.arrive_at_host(self.packets[handle as usize].node, handle),
                },
                FREE => {
                    let port = &mut self.ports[handle as usize];
                    if port.free_at > self.queue.now() {
                        self.queue.push_at(port.free_at, FREE, handle);
                        continue;
                    }
                    port.pending = false;
                    if handle < hosts { self.serve_host(handle) } else { self.serve_switch(handle) }
                }
                START => self.kick(handle),
                PACED => {
                    self.hosts[handle as usize].paced = false;
                    self.kick(handle);
                }
                SAMPLE => self.sample(),
                TIMER..SAMPLE => {
                    let timer =
                        [Timer::Alpha, Timer::Increase, Timer::Timeout][usize::from(key.kind() - TIMER)];
                    if let Some(due) = self.reactions[handle as usize].expired(self.queue.now(), timer) {
                        self.queue.push_at(due, key.kind(), handle);
                    }
                }
                kind => {
                    self.ports[handle as usize].paused = kind == STOP;
                    if kind == GO_ON {
                        if handle < hosts { self.kick(handle) } else { self.serve_soon(handle) }
                    }
                }
            }
        }
    }
}

/// The ports and the shortest paths of `graph`.
fn build<const DCQCN: bool>(graph: &Graph, hosts: Vec<Host>) -> Kernel<DCQCN> {
    let count = hosts.len();
    let nodes = count + graph.switches.len();
    let mut near = vec![Vec::new(); nodes];
    for link in &graph.links {
        let (a, b) = (link.a.0 as usize, link.b.0 as usize);
        let (place_a, place_b) = (near[a].len(), near[b].len());
        near[a].push((b, place_b));
        near[b].push((a, place_a));
    }
    let mut first = vec![0];
    for ports in &near {
        first.push(first[first.len() - 1] + ports.len());
    }
    let mut ports = Vec::new();
    for (node, links) in near.iter().enumerate() {
        ports.extend(links.iter().map(|&(peer, place)| Port {
            free_at: 0,
            sent: 0,
            head: NONE,
            tail: NONE,
            octets: 0,
            held: 0,
            peer: (first[peer] + place) as u32,
            node: peer as u32,
            owner: node.saturating_sub(count) as u32,
            pending: false,
            paused: false,
            pausing: false,
        }));
    }
    let switches = nodes - count;
    let mut groups = vec![0; switches * count];
    let mut sets: Vec<Vec<Vec<u32>>> = vec![Vec::new(); switches];
    for host in 0..count {
        let mut distance = vec![usize::MAX; nodes];
        distance[host] = 0;
        let mut open = VecDeque::from([host]);
        while let Some(node) = open.pop_front() {
            for &(peer, _) in &near[node] {
                if distance[peer] == usize::MAX {
                    distance[peer] = distance[node] + 1;
                    open.push_back(peer);
                }
            }
        }
        for switch in 0..switches {
            let node = count + switch;
            let nearer =
                near[node].iter().enumerate().filter(|(_, (peer, _))| distance[*peer] < distance[node]);
            let set: Vec<u32> = nearer.map(|(place, _)| (first[node] + place) as u32).collect();
            let known = &mut sets[switch];
            let group = known.iter().position(|known| *known == set).unwrap_or_else(|| {
                known.push(set);
                known.len() - 1
            });
            groups[switch * count + host] = group as u16;
        }
    }
    let (mut spans, mut choices, mut first_span) = (Vec::new(), Vec::new(), Vec::new());
    for known in sets {
        first_span.push(spans.len() as u32);
        for set in known {
            spans.push((choices.len() as u32, set.len() as u32));
            choices.extend(set);
        }
    }
    Kernel {
        queue: EventQueue::new(),
        packets: Vec::new(),
        free: Vec::new(),
        ports,
        reactions: vec![Reaction::default(); if DCQCN { count } else { 0 }],
        unfinished: hosts.iter().filter(|host| host.total > 0).count(),
        used: vec![0; switches],
        series: Vec::new(),
        hosts,
        groups,
        spans,
        choices,
        first_span,
        random: Random::new(3, 0),
        hops: 0,
        events: 0,
    }
}

pub(crate) fn run<const DCQCN: bool>(workload: &Workload) -> Run {
    let mut random = Random::new(2, 0);
    let hosts = (0..).zip(&workload.destinations).map(|(host, &destination)| Host {
        destination: u32::from(destination),
        hash: (random.next_u64() >> 32) as u32,
        total: match () {
            () if u32::from(destination) == host => 0,
            () if DCQCN => workload.flow.div_ceil(4_096),
            () => workload.packets,
        },
        next: 0,
        acknowledged: 0,
        window: if DCQCN { u32::MAX } else { workload.window },
        head: NONE,
        tail: NONE,
        paced: false,
    });
    let mut kernel = build::<DCQCN>(&workload.graph, hosts.collect());
    if DCQCN {
        kernel.queue.push_at(SAMPLE_PS, SAMPLE, 0);
    }
    for host in 0..kernel.hosts.len() {
        kernel.queue.push_at(random.below(10_000_000), START, host as u32);
    }
    let begun = cpu_seconds();
    kernel.run();
    let cpu_s = cpu_seconds() - begun;
    assert!(kernel.hosts.iter().all(|host| host.acknowledged == host.total), "every flow ends");
    assert_eq!(kernel.free.len(), kernel.packets.len(), "every packet ends");
    Run { hops: kernel.hops, events: kernel.events, cpu_s }
}
