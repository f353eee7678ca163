//! Time series: reads flows, queues, and machines that answer requests at a fixed interval.
//!
//! Of each switch port the queue of the priority that data travel on is read from the start. A queue of another priority
//! is read from when it first holds something at a sample, and a host's port from when it has first been paused, so that
//! what is not used costs nothing. A port's marks and pauses are told with the first of its queues; where ports count by
//! priority, each queue's own with that queue.

use super::build::port_name;
use super::driver::{Counted, Driver, Live};
use crate::results::{FlowSample, QueueSample, Series};
use crate::scenario::Scenario;
use roci_control::Credit;
use roci_fabric::fabric::Fabric;
use roci_fabric::net::Net;
use roci_fabric::packet::HostId;
use roci_fabric::priorities::OfPriority;
use roci_nic::{Host, Simulated};
use roci_units::{Instant, Qpn, Span};
use roci_wire::ethernet::WIRE_OVERHEAD;
use roci_wire::{IpVersion, Opcode};
use std::num::NonZeroU32;

/// What is read, and when next.
pub(super) struct Sampler {
    series: Series,
    due: Instant,
    last: Option<Instant>,
    /// The queues that are read, in the order of their names.
    queues: Vec<Queue>,
    /// By port, bit p: the queue of priority p is read, or never is.
    known: Vec<u8>,
    /// What the names of queues are made of: those of all nodes.
    nodes: Vec<String>,
    /// The priority of data.
    data: u8,
    /// Octets besides payload of a data packet on the wire.
    overhead: u64,
    /// Whether the contexts of receivers are read as well.
    receivers: bool,
    /// Whether it is recorded what all flows have delivered: there are faults whose effect is to be told.
    delivered: bool,
}

/// A queue that is read.
#[derive(Clone, Copy)]
struct Queue {
    port: u32,
    priority: u8,
    /// Whether the marks and pauses of its port are told with it, where these are not counted by priority.
    first: bool,
}

impl Sampler {
    pub(super) fn new(scenario: &Scenario, net: &Net) -> Self {
        let graph = &scenario.topology.graph;
        let interval = scenario.measure.sample.unwrap_or(Span::ZERO);
        let layout = scenario.transport.layout;
        let overhead = u64::from(roci_wire::overhead(Opcode::WRITE_MIDDLE, layout, IpVersion::V4));
        let mut sampler = Self {
            series: Series::new(interval, Vec::new()),
            due: if interval.is_zero() { Instant::NEVER } else { Instant::ZERO + interval },
            last: None,
            queues: Vec::new(),
            known: Vec::new(),
            nodes: graph.hosts.iter().chain(&graph.switches).cloned().collect(),
            data: scenario.data_priority(),
            overhead: overhead + WIRE_OVERHEAD as u64,
            receivers: scenario.measure.receivers,
            delivered: !(scenario.faults.rules.is_empty() && scenario.faults.switches.is_empty()),
        };
        sampler.series.set_text(scenario.measure.series_csv);
        if !interval.is_zero() {
            // Single CNPs that wait are no queue worth a line, unless data share their priority.
            let notice =
                1 << scenario.switch.classes.cnp & !(1 << sampler.data) & !scenario.named_priorities();
            sampler.known = vec![notice; net.port_count()];
            for port in switch_ports(net) {
                sampler.read_from_now(net, port, sampler.data);
            }
        }
        sampler
    }

    /// Reads a queue from this sample on.
    fn read_from_now(&mut self, net: &Net, port: u32, priority: u8) {
        let name = port_name(net, port, |node| &self.nodes[node as usize]);
        self.series.add_queue(format!("{name}:{priority}"));
        self.queues.push(Queue { port, priority, first: priority == self.data });
        self.known[port as usize] |= 1 << priority;
    }

    /// Finds queues that hold something for the first time, and hosts that have been paused for the first time.
    fn find_queues(&mut self, net: &Net) {
        for port in switch_ports(net) {
            let found = net.backlog(port) | befell(net, port);
            self.read_all_from_now(net, port, found);
        }
        for port in 0..switch_ports(net).start {
            if net.pauses(port).received > 0 {
                let counted = net.of_priority(port, self.data).is_some();
                let found = if counted { befell(net, port) } else { 1 << self.data };
                self.read_all_from_now(net, port, found);
            }
        }
    }

    /// Reads the queues of the priorities `found` from this sample on, those that are read already aside.
    fn read_all_from_now(&mut self, net: &Net, port: u32, found: u8) {
        let new = found & !self.known[port as usize];
        for priority in (0..8).filter(|priority| new & 1 << priority != 0) {
            self.read_from_now(net, port, priority);
        }
    }

    /// When the next sample is due; [`Instant::NEVER`] where nothing is sampled.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Takes a sample if one is due.
    pub(super) fn take_due(&mut self, now: Instant, fabric: &mut Fabric<Simulated<Driver>>) {
        if now >= self.due {
            self.take(now, fabric);
            // Where nothing happened time has been passed over, and with it samples like this one.
            let next =
                |interval: Span| self.due + interval * (now.since(self.due).as_ps() / interval.as_ps() + 1);
            self.due = self.series.interval().map_or(Instant::NEVER, next);
        }
    }

    /// Takes the last sample, at the end of the run.
    pub(super) fn finish(&mut self, fabric: &mut Fabric<Simulated<Driver>>) {
        let now = fabric.net.now();
        if self.series.interval().is_some() && self.last.is_none_or(|last| last < now) {
            self.take(now, fabric);
        }
        self.due = Instant::NEVER;
    }

    fn take(&mut self, now: Instant, fabric: &mut Fabric<Simulated<Driver>>) {
        let Fabric { net, nics } = fabric;
        self.series.begin(now);
        self.last = Some(now);
        let driver = &mut nics.application;
        for ended in &driver.ended[driver.sampled..] {
            // Its queue pairs are gone: what they did is in its result.
            let flow = &ended.result;
            let wire = wire_octets(flow.packets, flow.retransmitted, flow.bytes, ended.packet, self.overhead);
            let sample =
                FlowSample { wire, payload: flow.delivered, cnps: flow.cnps, ..FlowSample::default() };
            self.series.flow(ended.number, sample);
        }
        driver.sampled = driver.ended.len();
        let mut delivered = driver.ended_octets;
        for place in 0..driver.live.len() {
            let Some((live, counted)) = driver.count(&nics.hosts, place) else { continue };
            delivered = delivered.saturating_add(counted.delivered);
            let reading = read(driver, &mut nics.hosts, &live, &counted, now, self.overhead);
            self.series.flow(live.number, reading);
            let (sender, qpn) = sending_end(&live);
            let series = &mut self.series;
            nics.hosts[usize::from(sender.0)]
                .engine
                .program_context(qpn, now, |name, value| series.word(live.number, name, value));
            if self.receivers {
                let (receiver, qpn) = receiving_end(&live);
                nics.hosts[usize::from(receiver.0)]
                    .engine
                    .program_context(qpn, now, |name, value| series.receiver_word(live.number, name, value));
            }
        }
        if self.delivered {
            self.series.delivered(delivered);
        }
        driver.rpcs.sample(now, &mut self.series);
        self.find_queues(net);
        for (place, &queue) in (0u32..).zip(&self.queues) {
            self.series.queue(place, read_queue(net, queue, now));
        }
    }

    pub(super) fn take_series(&mut self) -> Series {
        std::mem::take(&mut self.series)
    }
}

/// The ports of all switches; those of hosts come before them.
#[expect(clippy::cast_possible_truncation, reason = "there are fewer than 2^28 ports")]
fn switch_ports(net: &Net) -> std::ops::Range<u32> {
    let ports = net.port_count() as u32;
    let first = if net.switch_count() == 0 { ports } else { net.switch_ports(0).start };
    first..ports
}

/// Bit p: packets of priority p were marked on their way to `port`, or it was told to stop them; nothing where that is not counted
/// by priority.
fn befell(net: &Net, port: u32) -> u8 {
    if net.pauses(port).received == 0 && net.counters(port).is_none_or(|counters| counters.marked == 0) {
        return 0;
    }
    let any = |priority| {
        net.of_priority(port, priority).is_some_and(|counted| counted.marked > 0 || counted.pauses > 0)
    };
    (0..8).filter(|priority| any(*priority)).fold(0, |bits, priority| bits | 1 << priority)
}

/// What a queue holds, and what has befallen it.
fn read_queue(net: &Net, Queue { port, priority, first }: Queue, now: Instant) -> QueueSample {
    let bytes = u64::from(net.queued(port, priority));
    if let Some(counted) = net.of_priority(port, priority) {
        let OfPriority { marked, pauses, paused, .. } = counted;
        return QueueSample { bytes, marks: marked, pauses, paused };
    }
    if !first {
        return QueueSample { bytes, ..QueueSample::default() };
    }
    let (counters, pauses) = (net.counters(port), net.pauses(port));
    QueueSample {
        bytes,
        marks: counters.map_or(0, |counters| counters.marked),
        pauses: pauses.received.into(),
        paused: pauses.paused(now),
    }
}

/// The end of a flow that sends data, and so is paced: of a READ its responder.
pub(super) fn sending_end(live: &Live) -> (HostId, Qpn) {
    let reads = live.op == crate::results::Op::Read;
    if reads { (live.dst, live.dst_qpn) } else { (live.src, live.src_qpn) }
}

/// The other end.
fn receiving_end(live: &Live) -> (HostId, Qpn) {
    let reads = live.op == crate::results::Op::Read;
    if reads { (live.src, live.src_qpn) } else { (live.dst, live.dst_qpn) }
}

/// What a flow has done so far and may do now.
fn read(
    driver: &Driver,
    hosts: &mut [Host],
    live: &Live,
    counted: &Counted,
    now: Instant,
    overhead: u64,
) -> FlowSample {
    let (sender, qpn) = sending_end(live);
    let mtu = driver.profiles.mtu(live.src, live.dst);
    let engine = &mut hosts[usize::from(sender.0)].engine;
    let status = engine.query(qpn).ok();
    let sample = engine.sample(qpn, now);
    let limited = |value: u32| (value != Credit::UNLIMITED).then_some(value);
    let packets = u64::from(counted.packets);
    FlowSample {
        wire: wire_octets(packets, counted.retransmitted, live.bytes, driver.packet(live), overhead),
        payload: counted.delivered,
        rate_kbps: sample.and_then(|sample| limited(sample.rate_kbps)),
        target_kbps: sample.and_then(|sample| limited(sample.target_kbps)),
        #[expect(clippy::cast_possible_truncation, reason = "a report shows fewer digits than f32 holds")]
        alpha: sample.and_then(|sample| sample.alpha_as_f64()).map(|alpha| alpha as f32),
        window: status.and_then(|status| {
            let program = status.congestion_window.map(|packets| packets.saturating_mul(mtu.into()));
            limited(status.credit.window).into_iter().chain(program).min()
        }),
        rtt_ns: sample.and_then(|sample| NonZeroU32::new(limited(sample.rtt_ns)?)),
        cnps: counted.cnps,
    }
}

/// Octets on the wire of all data packets that a flow of so many `bytes` has sent, where `packet` is the payload of the
/// largest: full ones, but for what is known to be less.
fn wire_octets(packets: u64, retransmitted: u32, bytes: u64, packet: u16, overhead: u64) -> u64 {
    let (again, packet) = (u64::from(retransmitted), u64::from(packet));
    let fresh = packets.saturating_sub(again);
    (fresh * packet).min(bytes) + again * packet + packets * overhead
}
