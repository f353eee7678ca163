//! The ways of a flow through the network, for the time that it would take there alone.

use crate::ideal::{Frames, Hop, Links, least_completion_time, least_time_at};
use crate::results::Op;
use crate::scenario::Scenario;
use crate::traffic::rpc::Rpc;
use crate::traffic::{Job, Traffic};
use roci_fabric::net::Net;
use roci_fabric::packet::HostId;
use roci_rpc::{REQUEST_HEADER, RETURN_HEADER};
use roci_switch::LinkSpec;
use roci_transport::Service;
use roci_units::{BitsPerSec, Span};
use roci_wire::ethernet::WIRE_OVERHEAD;
use roci_wire::{IpVersion, Opcode};
use std::collections::{BTreeMap, BTreeSet};

/// Paths between hosts.
pub(super) struct Paths<'a> {
    scenario: &'a Scenario,
    /// Whether all links between switches are alike, so that paths of equal length take equal time.
    alike: bool,
    /// The rate of the slowest link between switches.
    slowest: BitsPerSec,
    /// What was found, each once.
    found: Vec<Found>,
    /// Its places there.
    by_kind: BTreeMap<Kind, usize>,
    /// The place of what was asked for last.
    last: usize,
}

/// The paths between two hosts.
#[derive(Debug)]
struct Found {
    /// Each sequence of links once.
    paths: Vec<Vec<Hop>>,
    /// What packets that take all of them have of these together, where it is less than the links of the ends have.
    together: Option<BitsPerSec>,
    /// The times that were asked for last: among many hosts alike most messages are.
    times: Vec<(Frames, Span)>,
}

/// So many times are kept of each.
const TIMES: usize = 4;

/// What two hosts have in common with others that have the same paths: at each end the link, and the switch that it leads to, by which
/// routes go. A host without a switch stands for itself.
type Kind = [(BitsPerSec, Span, Result<u32, u16>); 2];

/// How a message gets to its destination on an idle network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// The NICs at both ends.
    pub(super) ends: [HostId; 2],
    /// Until all of it has arrived.
    pub(super) time: Span,
    /// How long it keeps the source's link busy.
    pub(super) busy: Span,
    /// How long it keeps the destination's link busy.
    pub(super) taken: Span,
    /// How long its last packet is on its way when it has left the source.
    pub(super) behind: Span,
}

/// A way as far as it was followed: the switch that it has come to, through which links, and how many ways there are
/// that far.
type Way = (u32, Vec<Hop>, u64);

impl<'a> Paths<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Self {
        let graph = &scenario.topology.graph;
        let inner = |link: &&roci_fabric::graph::Link| {
            [link.a, link.b].iter().all(|end| end.0 as usize >= graph.hosts.len())
        };
        let inner = || graph.links.iter().filter(inner).map(|link| (link.rate, link.delay));
        let alike = inner().all(|link| Some(link) == inner().next());
        let slowest = inner().map(|(rate, _)| rate).min().unwrap_or(BitsPerSec(u64::MAX));
        Self { scenario, alike, slowest, found: Vec::new(), by_kind: BTreeMap::new(), last: 0 }
    }

    /// The least time that `job` takes alone on an idle path: that of all its messages one behind the other, or that of so
    /// many in a row as must wait for one another. `None` for one without an end.
    pub(super) fn ideal(&mut self, net: &Net, job: &Job, mtu: u16) -> Option<Span> {
        let messages = job.messages?;
        self.look_up(net, job.src, job.dst);
        if let Some(Traffic::Rpc(spec)) = self.scenario.traffic.get(job.id.traffic as usize) {
            return Some(self.requests(spec, messages, u32::from(mtu)));
        }
        let depth = match job.common.op {
            Op::Read | Op::FetchAdd | Op::CompareSwap => {
                job.depth.min(self.scenario.transport.max_rd_atomic.into())
            }
            Op::Send | Op::Write => job.depth,
        };
        // Those of a collective may all follow one another, for all that is known of them here.
        let rounds = if depth == 0 { 1 } else { messages.div_ceil(u64::from(depth)) };
        let wire_octets = |opcode, payload| self.wire_octets(opcode, payload);
        let bytes = job.size.0.min(BYTES_MAX);
        let (op, mtu, longest) = (job.common.op, u32::from(mtu), job.longest.0.min(BYTES_MAX));
        // Messages of a schedule count as one here; of a collective all are as long as the shortest.
        let (one, messages) = match self.scenario.traffic.get(job.id.traffic as usize) {
            Some(Traffic::Goal(spec)) => {
                let several = spec.lines()[job.id.number as usize].messages;
                if longest.checked_mul(several) == Some(bytes) {
                    (Frames::new(op, longest, mtu, wire_octets), several)
                } else {
                    (Frames::mixed(op, bytes, [0, longest], mtu, wire_octets), 1)
                }
            }
            Some(Traffic::Collective(_)) if longest > bytes => {
                let all = bytes.saturating_mul(messages.min(BYTES_MAX)).min(BYTES_MAX);
                (Frames::mixed(op, all, [bytes, longest], mtu, wire_octets), 1)
            }
            _ => (Frames::new(op, bytes, mtu, wire_octets), messages),
        };
        let is_unanswered = self.scenario.transport.service == Service::Uc;
        let one = if is_unanswered { one.unanswered() } else { one };
        // Who waits for no answer posts the next message when one has left.
        let rounds = if is_unanswered { 1 } else { rounds };
        let all = one.repeated(messages.clamp(1, BYTES_MAX / bytes.max(1)));
        let [one, all] = [one, all].map(|frames| self.time(&frames));
        Some(all.max(Span::from_ps(one.as_ps().saturating_mul(rounds))))
    }

    /// The least time of so many requests of `spec` on a connection of packets of up to `mtu` octets, by all that bounds them: the
    /// window, the way there, the way back, and the thread.
    fn requests(&mut self, spec: &Rpc, count: u64, mtu: u32) -> Span {
        let bytes = spec.request.0.clamp(1, BYTES_MAX);
        // Each packet is a SEND of its own, with a header.
        let packets = bytes.div_ceil(u64::from(mtu.saturating_sub(REQUEST_HEADER).max(1)));
        let sends = |bytes| {
            let only = |_, payload| self.wire_octets(Opcode::SEND_ONLY, payload);
            Frames::new(Op::Send, bytes, mtu, only).unanswered()
        };
        let there = sends(bytes + packets * u64::from(REQUEST_HEADER));
        let first = sends((bytes + u64::from(REQUEST_HEADER)).min(mtu.into()));
        let back = spec.response.0.min(BYTES_MAX) + u64::from(RETURN_HEADER);
        let back = Frames::new(Op::Send, back, mtu, |opcode, payload| self.wire_octets(opcode, payload))
            .unanswered()
            .turned();
        let mut times = |frames: Frames, bytes: u64| {
            [frames, frames.repeated(count.clamp(1, BYTES_MAX / bytes))].map(|it| self.time(&it))
        };
        let [there, all_there] = times(there, bytes);
        let [back, all_back] = times(back, spec.response.0.max(1));
        let served = spec.overhead + spec.processing;
        let thread = |requests: u64| {
            let each = spec.overhead.as_ps().saturating_mul(packets) + spec.processing.as_ps();
            Span::from_ps(each.saturating_mul(requests))
        };
        let one = (there + served + back).max(self.time(&first) + thread(1) + back);
        let rounds = count.div_ceil(u64::from(spec.window.max(1)));
        let by_window = Span::from_ps(one.as_ps().saturating_mul(rounds));
        let by_thread = self.time(&first) + thread(count) + back;
        by_window.max(all_there + served + back).max(there + served + all_back).max(by_thread)
    }

    /// Of a message with immediate of `bytes` octets from `src` to `dst`, on an idle network: the time until it has
    /// arrived, and that of its last packet alone; and the times that the two keep the links of source and destination busy.
    pub(super) fn arrival(&mut self, net: &Net, src: HostId, dst: HostId, bytes: u64, mtu: u16) -> Arrival {
        self.look_up(net, src, dst);
        let mtu = u32::from(mtu);
        let frames = |bytes| {
            Frames::told(bytes, mtu, |opcode, payload| self.wire_octets(opcode, payload)).unanswered()
        };
        let rest = bytes.saturating_sub(1) % u64::from(mtu) + u64::from(bytes > 0);
        let all = frames(bytes);
        let last = if bytes > u64::from(mtu) {
            // It has no RETH, which the first of several has. A SEND is four octets shorter still, as it has no immediate.
            Frames::new(Op::Send, rest, mtu, |opcode, payload| self.wire_octets(opcode, payload)).unanswered()
        } else {
            frames(rest)
        };
        let [link, to] = [src, dst].map(|host| {
            let port = u32::from(host.0);
            self.hop(net, port, 1, net.link(port).rate)
        });
        let [time, tail] = [&all, &last].map(|it| self.time(it));
        let behind = tail.saturating_sub(link.busy(&last));
        Arrival { ends: [src, dst], time, busy: link.busy(&all), taken: to.busy(&all), behind }
    }

    /// The least of each for messages of `least` to `most` octets: one that is an octet longer may have a much shorter last packet.
    pub(super) fn least_arrival(
        &mut self,
        net: &Net,
        [src, dst]: [HostId; 2],
        sizes: (u64, u64),
        mtu: u16,
    ) -> Arrival {
        let shortest = self.arrival(net, src, dst, sizes.0, mtu);
        let Some(longer) = with_short_end(sizes, mtu) else { return shortest };
        let behind = self.arrival(net, src, dst, longer, mtu).behind;
        Arrival { behind: behind.min(shortest.behind), ..shortest }
    }

    /// How long the first packet of such a message takes to the destination's link at least, whose last one is no longer.
    pub(super) fn ahead(&mut self, net: &Net, [src, dst]: [HostId; 2], sizes: (u64, u64), mtu: u16) -> Span {
        self.look_up(net, src, dst);
        let rest = sizes.0.saturating_sub(1) % u64::from(mtu) + 1;
        let payload = if with_short_end(sizes, mtu).is_some() { 1 } else { rest };
        // Without an immediate, which the first of several does not have.
        let first =
            Frames::new(Op::Write, payload, mtu.into(), |opcode, payload| self.wire_octets(opcode, payload))
                .unanswered();
        let port = u32::from(dst.0);
        let to = self.hop(net, port, 1, net.link(port).rate);
        self.time(&first).saturating_sub(to.busy(&first))
    }

    /// The time of a message with immediate of `bytes` octets from `src` to `dst` on an idle network, until it has been acknowledged.
    pub(super) fn acknowledged(&mut self, net: &Net, src: HostId, dst: HostId, bytes: u64, mtu: u16) -> Span {
        self.look_up(net, src, dst);
        self.time(&Frames::told(bytes, mtu.into(), |opcode, payload| self.wire_octets(opcode, payload)))
    }

    /// The least time of `frames` on the paths that were looked up.
    fn time(&mut self, frames: &Frames) -> Span {
        let sprayed = self.sprayed();
        let Found { paths, together, times } = &mut self.found[self.last];
        if let Some((_, time)) = times.iter().find(|(known, _)| known == frames) {
            return *time;
        }
        let by_path = least_completion_time(paths, frames, sprayed);
        let time = together.map_or(by_path, |rate| by_path.max(least_time_at(paths, frames, rate)));
        if times.len() == TIMES {
            times.remove(0);
        }
        times.push((*frames, time));
        time
    }

    fn sprayed(&self) -> bool {
        self.scenario.spreads()
    }

    /// The octets of a frame, preamble and gap included.
    #[expect(clippy::cast_possible_truncation, reason = "payloads are at most one MTU, the overhead is 20")]
    fn wire_octets(&self, opcode: Opcode, payload: u32) -> u32 {
        let layout = self.scenario.transport.layout;
        roci_wire::frame_len(opcode, layout, IpVersion::V4, payload as u16) + WIRE_OVERHEAD
    }

    /// Makes `last` the place of the paths from `src` to `dst`.
    fn look_up(&mut self, net: &Net, src: HostId, dst: HostId) {
        let kind = [src, dst].map(|host| {
            let port = u32::from(host.0);
            let LinkSpec { rate, delay } = net.link(port);
            (rate, delay, net.switch_of(net.peer(port)).ok_or(host.0))
        });
        self.last = match self.by_kind.get(&kind) {
            Some(&place) => place,
            None => {
                let (paths, together) = (self.find(net, src, dst), self.together(net, src, dst));
                self.found.push(Found { paths, together, times: Vec::new() });
                let place = self.found.len() - 1;
                self.by_kind.insert(kind, place);
                place
            }
        };
    }

    /// The shortest paths from `src` to `dst`, each sequence of links once; where all are alike, one.
    fn find(&self, net: &Net, src: HostId, dst: HostId) -> Vec<Vec<Hop>> {
        let port = u32::from(src.0);
        let line = net.link(port).rate;
        let (mut paths, mut ways) = (BTreeSet::new(), BTreeSet::<Way>::new());
        let mut go = |port: u32, hops: &[Hop], width: u64, onward: &mut BTreeSet<Way>| {
            let next = net.switch_of(net.peer(port));
            let width = if next.is_none() { 1 } else { width };
            let hops: Vec<Hop> = hops.iter().copied().chain([self.hop(net, port, width, line)]).collect();
            match next {
                Some(switch) => _ = onward.insert((switch, hops, width)),
                None => _ = paths.insert(hops),
            }
        };
        go(port, &[], 1, &mut ways);
        while !ways.is_empty() {
            let mut onward = BTreeSet::new();
            for (switch, hops, width) in &ways {
                // Ports with weights stand there several times, and are no more ways for that.
                let choices: BTreeSet<u16> = net.routes().equal(*switch, dst).ports().collect();
                let graph = &self.scenario.topology.graph;
                assert!(
                    !choices.is_empty(),
                    "{} has no route to host {}",
                    graph.switches[*switch as usize],
                    dst.0
                );
                let width = width.saturating_mul(choices.len() as u64);
                let followed = if self.alike { 1 } else { choices.len() };
                for next in choices.iter().take(followed) {
                    go(net.switch_ports(*switch).start + u32::from(*next), hops, width, &mut onward);
                }
            }
            ways = onward;
        }
        paths.into_iter().collect()
    }

    /// What the shortest paths from `src` to `dst` carry together, where packets take all of them and that is less than the links of
    /// both ends carry.
    fn together(&self, net: &Net, src: HostId, dst: HostId) -> Option<BitsPerSec> {
        let ends = [src, dst].map(|host| net.link(u32::from(host.0)).rate);
        let ends = ends[0].min(ends[1]);
        if !self.sprayed() || self.slowest >= ends {
            return None;
        }
        let mut links = Links::default();
        let mut seen = BTreeSet::new();
        let mut open = vec![u32::from(src.0)];
        while let Some(port) = open.pop() {
            let peer = net.peer(port);
            let next = net.node_of(peer);
            links.add(net.node_of(port), next, net.link(port).rate);
            if let Some(switch) = net.switch_of(peer).filter(|switch| seen.insert(*switch)) {
                // Ports with weights stand there several times.
                let choices: BTreeSet<u16> = net.routes().equal(switch, dst).ports().collect();
                open.extend(choices.iter().map(|choice| net.switch_ports(switch).start + u32::from(*choice)));
            }
        }
        Some(links.together(src.0.into(), dst.0.into())).filter(|rate| *rate < ends && rate.0 > 0)
    }

    /// The link of `port`. Packets that are sprayed over `width` ways together go as fast as the source's link, of rate
    /// `line`, though each of these links may be slower.
    fn hop(&self, net: &Net, port: u32, width: u64, line: BitsPerSec) -> Hop {
        let LinkSpec { rate, delay } = net.link(port);
        let sprayed = self.sprayed() && rate < line;
        let rate = if sprayed { BitsPerSec(rate.0.saturating_mul(width)).min(line) } else { rate };
        Hop { rate, delay }
    }
}

/// The length of the shortest message whose last packet has a single octet, of those longer than the first of `sizes` and up to the second.
fn with_short_end(sizes: (u64, u64), mtu: u16) -> Option<u64> {
    let longer = sizes.0.max(1).next_multiple_of(mtu.into()) + 1;
    (longer <= sizes.1).then_some(longer)
}

/// Beyond this many octets the formula's numbers would overflow: eleven days at 10 Gb/s.
const BYTES_MAX: u64 = 1 << 50;

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;

    #[test]
    fn hosts_at_the_same_switches_by_the_same_links_have_their_paths_found_once_and_as_each_by_itself() {
        let rates = |host: usize| if host == 5 { "25Gb/s" } else { "100Gb/s" };
        let mut links: Vec<String> = (0..6)
            .map(|host| {
                format!(
                    "{{ a = \"h{host}\", b = \"leaf{}\", rate = \"{}\", delay = \"1us\" }}",
                    host / 3,
                    rates(host)
                )
            })
            .collect();
        for (leaf, spine, rate) in [(0, 0, 40), (0, 1, 10), (1, 0, 40), (1, 1, 50)] {
            links.push(format!(
                "{{ a = \"leaf{leaf}\", b = \"spine{spine}\", rate = \"{rate}Gb/s\", delay = \"2us\" }}"
            ));
        }
        let names =
            |of: &str, count| (0..count).map(|n| format!("\"{of}{n}\"")).collect::<Vec<_>>().join(", ");
        for routing in ["ecmp", "spray"] {
            let text = format!(
                "[topology]\nkind = \"graph\"\nhosts = [{}]\nswitches = [{}, {}]\nlinks = [{}]\n[switch]\nrouting = \"{routing}\"\n\
                 [transport]\nrecovery = \"irn\"\n[[traffic]]\nkind = \"permutation\"\nsize = \"1KB\"\n",
                names("h", 6),
                names("leaf", 2),
                names("spine", 2),
                links.join(", ")
            );
            let scenario = Scenario::parse(&text, "here.toml", &[]).unwrap();
            let traffic = scenario.traffic.clone().into();
            let fabric = build::fabric(&scenario, traffic, 1).unwrap();
            let mut paths = Paths::new(&scenario);
            for bytes in [1, 1_000_000, 5_000, 3, 70_000, 1] {
                for src in 0..6 {
                    for dst in (0..6).filter(|dst| *dst != src) {
                        let [src, dst] = [src, dst].map(HostId);
                        let told = paths.acknowledged(&fabric.net, src, dst, bytes, 1024);
                        let alone = Paths::new(&scenario).acknowledged(&fabric.net, src, dst, bytes, 1024);
                        assert_eq!(told, alone, "{bytes} octets from {src:?} to {dst:?} with {routing}");
                    }
                }
            }
            // Within the first leaf, and between it and the other; and all of that with the slower link.
            assert_eq!(paths.found.len(), 4 + 4, "{:?}", paths.by_kind);
        }
    }
}
