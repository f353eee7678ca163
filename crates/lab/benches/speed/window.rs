//! The fabric with NICs that know a window and nothing else.

use super::{Run, Workload, cpu_seconds};
use roci_fabric::{Fabric, FabricConfig, HostId, Marks, Net, Nics, Packet, PacketId, Stopped};
use roci_prefetch::prefetch_at;
use roci_units::{Instant, Psn, Qpn};
use roci_wire::header::Header;
use roci_wire::opcode::Opcode;

/// A frame with 4096 octets of payload, and an acknowledgement.
const DATA: u16 = 4_174;
const ACK: u16 = 66;

/// A host: the sender of one flow, and the receiver of others.
#[derive(Clone)]
#[repr(align(64))]
struct Host {
    destination: HostId,
    flow: u32,
    total: u32,
    next: u32,
    acknowledged: u32,
    window: u32,
    received: u32,
    /// Replies that wait for the port, linked by the packets' own numbers in a ring.
    replies: std::collections::VecDeque<PacketId>,
}

struct Window {
    hosts: Vec<Host>,
    unfinished: usize,
}

impl Nics for Window {
    #[inline]
    fn receive(&mut self, net: &mut Net, host: HostId, id: PacketId) {
        let state = &mut self.hosts[usize::from(host.0)];
        let packet = &mut net.packets_mut()[id];
        if packet.header.opcode == Opcode::ACKNOWLEDGE {
            state.acknowledged += 1;
            let finished = state.acknowledged == state.total;
            net.free(id);
            self.unfinished -= usize::from(finished);
            if state.next < state.total {
                net.kick(host);
            }
        } else {
            state.received += 1;
            std::mem::swap(&mut packet.source, &mut packet.destination);
            packet.flow = packet.flow.rotate_left(9);
            packet.frame = ACK;
            packet.marks = Marks::default();
            packet.header = Header::new(Opcode::ACKNOWLEDGE, packet.header.dest_qpn, packet.header.psn);
            state.replies.push_back(id);
            net.kick(host);
        }
    }

    #[inline]
    fn transmit(&mut self, net: &mut Net, host: HostId, open: u8) -> Option<PacketId> {
        if open & 1 << 3 == 0 {
            return None;
        }
        let state = &mut self.hosts[usize::from(host.0)];
        if let Some(reply) = state.replies.pop_front() {
            return Some(reply);
        }
        if state.next == state.total || state.next - state.acknowledged == state.window {
            return None;
        }
        let mut header = Header::new(Opcode::WRITE_MIDDLE, Qpn::new(2), Psn::new(state.next));
        header.payload = 4_096;
        state.next += 1;
        let mut packet = Packet::default();
        packet.source = host;
        packet.destination = state.destination;
        packet.flow = state.flow;
        packet.frame = DATA;
        packet.priority = 3;
        packet.marks = Marks::ECT;
        packet.header = header;
        Some(net.packets_mut().alloc(packet))
    }

    #[inline]
    fn has_more(&self, host: HostId) -> bool {
        let state = &self.hosts[usize::from(host.0)];
        !state.replies.is_empty()
            || (state.next < state.total && state.next - state.acknowledged < state.window)
    }

    fn wake(&mut self, net: &mut Net, host: HostId) {
        net.kick(host);
    }

    #[inline]
    fn prefetch(&self, host: HostId, _packet: &Packet) {
        prefetch_at(&self.hosts, usize::from(host.0));
    }
}

pub(crate) fn run(workload: &Workload) -> Run {
    let mut random = roci_units::Random::new(2, 0);
    let hosts: Vec<Host> = (0u16..)
        .zip(&workload.destinations)
        .map(|(host, &destination)| Host {
            destination: HostId(destination),
            flow: (random.next_u64() >> 32) as u32,
            total: if destination == host { 0 } else { workload.packets },
            next: 0,
            acknowledged: 0,
            window: workload.window,
            received: 0,
            replies: std::collections::VecDeque::new(),
        })
        .collect();
    let unfinished = hosts.iter().filter(|host| host.total > 0).count();
    let nics = Window { hosts, unfinished };
    let mut config = FabricConfig { seed: 1, ..FabricConfig::default() };
    config.switch.buffer = roci_units::Bytes(32 << 20);
    config.switch.ecn = Some(super::RED);
    let mut fabric = Fabric::new(&workload.graph, &config, nics).expect("a sound configuration");
    for host in 0..workload.destinations.len() {
        let start = Instant::from_ps(random.below(10_000_000));
        fabric.net.wake_at(HostId(u16::try_from(host).expect("few hosts")), start);
    }
    let begun = cpu_seconds();
    let stopped = fabric.run_until(Instant::from_ps(1_000_000_000_000));
    let cpu_s = cpu_seconds() - begun;
    assert_eq!(stopped, Stopped::Idle);
    assert_eq!(fabric.nics.unfinished, 0, "every flow ends");
    assert_eq!(fabric.net.totals().dropped, 0, "nothing is lost");
    assert_eq!(fabric.net.packets().live(), 0, "every packet ends");
    let totals = fabric.net.totals();
    Run { hops: totals.packet_hops, events: totals.events, cpu_s }
}
