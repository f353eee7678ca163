//! Time series: reads flows and queues at a fixed interval.

use super::build::node_name;
use super::driver::{Driver, Ended, Live};
use crate::results::{FlowSample, QueueSample, Series};
use crate::scenario::Scenario;
use roci_control::Credit;
use roci_fabric::fabric::Fabric;
use roci_fabric::net::Net;
use roci_nic::{Host, Simulated};
use roci_units::{Instant, Qpn, Span};
use roci_wire::ethernet::WIRE_OVERHEAD;
use roci_wire::{IpVersion, Opcode};

/// What is read, and when next.
pub(super) struct Sampler {
    series: Series,
    due: Instant,
    last: Option<Instant>,
    /// The queues that are read: port and priority, in the order of their names.
    queues: Vec<(u32, u8)>,
    /// Octets besides payload of a data packet on the wire.
    overhead: u64,
}

impl Sampler {
    pub(super) fn new(scenario: &Scenario, net: &Net) -> Self {
        let graph = &scenario.topology.graph;
        let data = scenario.switch.classes.data;
        let interval = scenario.measure.sample.unwrap_or(Span::ZERO);
        let mut queues = Vec::new();
        let mut names = Vec::new();
        if !interval.is_zero() {
            for switch in 0u32.. {
                if switch as usize == net.switch_count() {
                    break;
                }
                for port in net.switch_ports(switch) {
                    queues.push((port, data));
                    let (node, peer) = (net.node_of(port), net.node_of(net.peer(port)));
                    names.push(format!("{}>{}:{data}", node_name(graph, node), node_name(graph, peer)));
                }
            }
        }
        let layout = scenario.transport.layout;
        let overhead = u64::from(roci_wire::overhead(Opcode::WRITE_MIDDLE, layout, IpVersion::V4));
        Self {
            series: Series::new(interval, names),
            due: if interval.is_zero() { Instant::NEVER } else { Instant::ZERO + interval },
            last: None,
            queues,
            overhead: overhead + WIRE_OVERHEAD as u64,
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
            self.due = self.series.interval().map_or(Instant::NEVER, |interval| now + interval);
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
        for Ended { record, message } in driver.ended.drain(..) {
            // Its queue pairs are gone: what they did is in its record.
            let flow = &driver.records[record as usize];
            let mtu = driver.profiles.mtu(roci_fabric::HostId(flow.src), roci_fabric::HostId(flow.dst));
            let wire = wire_octets(flow, message.min(mtu.into()), self.overhead);
            self.series.flow(record, FlowSample { wire, payload: flow.delivered, ..FlowSample::default() });
        }
        let live: Vec<Live> = driver.live.iter().flatten().copied().collect();
        for live in live {
            driver.update(&nics.hosts, &live);
            let reading = read(driver, &mut nics.hosts, &live, now, self.overhead);
            self.series.flow(live.record, reading);
            let (sender, qpn) = sending_end(driver, &live);
            let series = &mut self.series;
            nics.hosts[usize::from(sender)]
                .engine
                .program_context(qpn, now, |name, value| series.word(live.record, name, value));
        }
        for (place, &(port, priority)) in (0u32..).zip(&self.queues) {
            let counters = net.counters(port);
            let pauses = net.pauses(port);
            let reading = QueueSample {
                bytes: u64::from(net.queued(port, priority)),
                marks: counters.map_or(0, |counters| counters.marked),
                pauses: pauses.received,
                paused: pauses.paused(now),
            };
            self.series.queue(place, reading);
        }
    }

    pub(super) fn into_series(self) -> Series {
        self.series
    }
}

/// The end of a flow that sends data, and so is paced: of a READ its responder.
fn sending_end(driver: &Driver, live: &Live) -> (u16, Qpn) {
    let flow = &driver.records[live.record as usize];
    let reads = flow.op == crate::results::Op::Read;
    if reads { (flow.dst, live.dst_qpn) } else { (flow.src, live.src_qpn) }
}

/// What a flow has done so far and may do now.
fn read(driver: &Driver, hosts: &mut [Host], live: &Live, now: Instant, overhead: u64) -> FlowSample {
    let flow = &driver.records[live.record as usize];
    let (sender, qpn) = sending_end(driver, live);
    let mtu = driver.profiles.mtu(roci_fabric::HostId(flow.src), roci_fabric::HostId(flow.dst));
    let engine = &mut hosts[usize::from(sender)].engine;
    let status = engine.query(qpn).ok();
    let sample = engine.sample(qpn, now);
    let limited = |value: u32| (value != Credit::UNLIMITED).then_some(value);
    FlowSample {
        wire: wire_octets(flow, live.message.min(mtu.into()), overhead),
        payload: flow.delivered,
        rate_kbps: sample.and_then(|sample| limited(sample.rate_kbps)),
        target_kbps: sample.and_then(|sample| limited(sample.target_kbps)),
        #[expect(clippy::cast_possible_truncation, reason = "a report shows fewer digits than f32 holds")]
        alpha: sample.and_then(|sample| sample.alpha_as_f64()).map(|alpha| alpha as f32),
        window: status.and_then(|status| {
            let program = status.congestion_window.map(|packets| packets.saturating_mul(mtu.into()));
            limited(status.credit.window).into_iter().chain(program).min()
        }),
        rtt_ns: sample.and_then(|sample| limited(sample.rtt_ns)),
    }
}

/// Octets on the wire of all data packets that a flow has sent, where `packet` is the payload of the largest: full ones,
/// but for what is known to be less.
fn wire_octets(flow: &crate::results::FlowResult, packet: u64, overhead: u64) -> u64 {
    let again = u64::from(flow.retransmitted);
    let fresh = flow.packets.saturating_sub(again);
    (fresh * packet).min(flow.bytes) + again * packet + flow.packets * overhead
}
