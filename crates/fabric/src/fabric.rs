//! The fabric with its NICs, and the loop that runs it.

use crate::graph::Graph;
use crate::link::PENDING;
use crate::net::{
    ARRIVE, BuildError, FREE, FabricConfig, LAPSE, LEAVE, Net, OUTAGE, PAUSE, RATE, REROUTE, STORM, WAKE,
};
use crate::nics::Nics;
use crate::packet::{HostId, Marks, PacketId};
use crate::queue::{HORIZON_PS, Key};
use roci_units::Instant;

/// Why a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The instant asked for has come; what lies at it has happened.
    At,
    /// Nothing will happen any more.
    Idle,
    /// There is more to do before the instant asked for; the caller may look around first.
    Early,
}

/// How many events lie at most between two chances to look around. A power of two.
const STRETCH: u64 = 1 << 20;

/// A simulated network with a NIC at each edge.
#[derive(Debug)]
pub struct Fabric<N> {
    /// Everything but the NICs.
    pub net: Net,
    /// The NICs.
    pub nics: N,
}

/// How many events lie between the steps of looking ahead.
const AHEAD: usize = 3;

/// With fewer hosts all stays in the processor's nearest caches.
const FEW: usize = 64;
/// From so many hosts on, their NICs do not stay in the processor's own cache.
const FAR: usize = 256;

impl<N: Nics> Fabric<N> {
    /// Builds the network of `graph` with these NICs.
    ///
    /// # Errors
    /// When graph or configuration make no sense.
    pub fn new(graph: &Graph, config: &FabricConfig, nics: N) -> Result<Self, BuildError> {
        Ok(Self { net: Net::new(graph, config)?, nics })
    }

    /// Lets everything happen up to and including `until`, and moves the present there. Where nothing more will
    /// happen, the present stays at the last event.
    ///
    /// # Panics
    /// When `until` lies at the end of time (2⁵² ps, 75 minutes) or beyond.
    pub fn run_until(&mut self, until: Instant) -> Stopped {
        loop {
            match self.run_some(until) {
                Stopped::Early => {}
                stopped => return stopped,
            }
        }
    }

    /// As [`Fabric::run_until`], but returns [`Stopped::Early`] after each 2²⁰ events, so that a caller who wants to
    /// stop need not wait for simulated time to pass; and [`Stopped::At`] with the events of the instant in which
    /// [`Net::pause_here`] was called.
    ///
    /// # Panics
    /// When `until` lies at the end of time (2⁵² ps, 75 minutes) or beyond.
    pub fn run_some(&mut self, until: Instant) -> Stopped {
        assert!(until.as_ps() < HORIZON_PS, "a run lasts at most 75 minutes");
        self.net.until = until.as_ps();
        self.net.rouse();
        self.serve_kicked();
        while let Some(key) = self.net.queue.pop(self.net.until) {
            if self.net.hosts.len() >= FEW {
                self.look_ahead();
            }
            self.net.totals.events += 1;
            let handle = key.handle();
            // Nine of ten events are of two kinds, and most of these at switches.
            match key.kind() {
                ARRIVE => self.arrive(PacketId(handle)),
                FREE => self.port_free(handle),
                kind => self.happen(kind, handle),
            }
            if !self.net.forged.is_empty() {
                self.forge();
            }
            // The count is at hand, so this costs a test and a branch that is never taken.
            if self.net.totals.events & (STRETCH - 1) == 0 {
                return Stopped::Early;
            }
        }
        if self.net.until < until.as_ps() {
            return Stopped::At;
        }
        if self.net.queue.next_time().is_none() {
            return Stopped::Idle;
        }
        self.net.queue.advance_to(until.as_ps());
        Stopped::At
    }

    /// An event of a rarer kind.
    #[inline(never)]
    fn happen(&mut self, kind: u8, handle: u32) {
        match kind {
            WAKE => self.wake(handle),
            PAUSE => self.pause(handle),
            LEAVE => self.net.pause_leaves(handle),
            RATE => self.net.change_rate(handle),
            OUTAGE => self.net.turn_outage(handle),
            REROUTE => self.net.reroute(handle),
            LAPSE => self.net.lapse(handle),
            _ => {
                debug_assert_eq!(kind, STORM);
                self.net.storm(handle);
            }
        }
        self.serve_kicked();
    }

    /// Prefetches what the events after this one will touch, in steps, each with what the one before has fetched:
    /// packets; hosts; queue pairs and accounts; routes.
    #[inline(always)]
    fn look_ahead(&self) {
        let net = &self.net;
        let [soon, sooner, next] = net.queue.ahead([3 * AHEAD, 2 * AHEAD, AHEAD]);
        if let Some(key) = soon {
            match key.kind() {
                ARRIVE => net.packets.prefetch(key.handle()),
                FREE => roci_prefetch::prefetch_at(&net.ports, key.handle() as usize),
                _ => {}
            }
        }
        let far = net.hosts.len() >= FAR || self.nics.is_large();
        if far && let Some(key) = sooner {
            if let Some(host) = self.host_of(key) {
                roci_prefetch::prefetch_at(&net.ports, usize::from(host.0));
                roci_prefetch::prefetch_at(&net.hosts, usize::from(host.0));
                self.nics.approach(host);
            } else if key.kind() == FREE
                && let Some(port) = net.ports.get(key.handle() as usize)
            {
                net.packets.prefetch(port.first());
            }
        }
        let Some(key) = next else { return };
        match (key.kind(), self.host_of(key)) {
            (ARRIVE, Some(host)) if far => self.nics.prefetch(host, &net.packets[PacketId(key.handle())]),
            (ARRIVE, None) => {
                let packet = &net.packets[PacketId(key.handle())];
                roci_prefetch::prefetch_at(&net.ports, packet.port as usize);
                roci_prefetch::prefetch_at(&net.ports, packet.next as usize);
            }
            (FREE, None) => {
                let Some(port) = net.ports.get(key.handle() as usize) else { return };
                if !far {
                    net.packets.prefetch(port.first());
                } else if let Some(packet) = net.packets.get(port.first()) {
                    // The packet is taken off the account of the port that it came by.
                    roci_prefetch::prefetch_at(&net.ports, packet.port as usize);
                }
            }
            (_, Some(host)) if far => {
                if let Some(packet) = self.nics.waiting(host) {
                    net.packets.prefetch(packet.0);
                }
                self.nics.prefetch_transmit(host);
            }
            _ => {}
        }
        if far {
            self.look_closer();
        }
    }

    /// Prefetches the packet that the next one will queue behind, for which its port must have come.
    #[inline(always)]
    fn look_closer(&self) {
        let net = &self.net;
        let [next] = net.queue.ahead([0]);
        let Some(key) = next.filter(|key| key.kind() == ARRIVE) else { return };
        if let Some(port) = net.ports.get(net.packets[PacketId(key.handle())].next as usize)
            && port.backlog() != 0
        {
            net.packets.prefetch(port.last());
        }
    }

    /// The host at which an event happens, if it is at one.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "there are at most 65 535 hosts")]
    fn host_of(&self, key: Key) -> Option<HostId> {
        let port = match key.kind() {
            ARRIVE => self.net.packets[PacketId(key.handle())].port,
            FREE | WAKE => key.handle(),
            _ => return None,
        };
        ((port as usize) < self.net.hosts.len()).then_some(HostId(port as u16))
    }

    #[inline]
    fn arrive(&mut self, id: PacketId) {
        let packet = &self.net.packets[id];
        let port = packet.port;
        if packet.marks.has(Marks::TAPPED) {
            self.arrive_tapped(id);
        }
        // The port of host i is port i.
        if port as usize >= self.net.hosts.len() {
            return self.net.arrive(id);
        }
        self.arrive_at_host(port, id);
    }

    /// Apart from the loop, which so keeps what it needs in registers.
    #[inline(never)]
    #[expect(clippy::cast_possible_truncation, reason = "there are at most 65 535 hosts")]
    fn arrive_at_host(&mut self, port: u32, id: PacketId) {
        let Some(host) = self.net.hosts.get_mut(port as usize) else { return };
        host.rx_octets += u64::from(self.net.packets[id].frame);
        self.net.totals.delivered += 1;
        self.nics.receive(&mut self.net, HostId(port as u16), id);
        self.serve_kicked();
    }

    #[cold]
    fn arrive_tapped(&mut self, id: PacketId) {
        let packet = &mut self.net.packets[id];
        packet.marks = packet.marks.without(Marks::TAPPED);
        let port = packet.port;
        self.net.record(port, false, id);
    }

    /// The transmission that a port was waiting for has ended.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "there are at most 65 535 hosts")]
    fn port_free(&mut self, port: u32) {
        let end = &mut self.net.ports[port as usize].link;
        if end.free_at > self.net.queue.now() {
            // A PAUSE frame went ahead.
            return self.net.queue.push_at(end.free_at, FREE, port);
        }
        end.flags &= !PENDING;
        match self.net.switch_of(port) {
            Some(switch) => self.net.serve(switch, port),
            None => self.host_free(HostId(port as u16)),
        }
    }

    #[inline(never)]
    fn host_free(&mut self, host: HostId) {
        self.serve_host(host);
        self.serve_kicked();
    }

    /// Asks a host's NIC for the next packet; its port is free.
    #[inline]
    fn serve_host(&mut self, host: HostId) {
        let port = u32::from(host.0);
        let open = !self.net.ports[port as usize].link.paused;
        let Some(id) = self.nics.transmit(&mut self.net, host, open) else { return };
        let more = self.nics.has_more(host);
        self.net.transmit(port, id);
        let end = &mut self.net.ports[port as usize].link;
        // A kick from within has asked for this port already, before it was taken.
        if more && end.flags & PENDING == 0 {
            end.flags |= PENDING;
            self.net.queue.push_after(end.free_at - self.net.queue.now(), FREE, port);
        }
    }

    /// Serves the hosts that were kicked while their port was free, and arms the wake-ups that were asked for.
    #[inline(always)]
    fn serve_kicked(&mut self) {
        let mut next = 0;
        while let Some(&host) = self.net.kicked.get(next) {
            next += 1;
            let end = &mut self.net.ports[usize::from(host.0)].link;
            end.flags &= !PENDING;
            if end.free_at > self.net.queue.now() {
                self.net.kick(host);
            } else {
                self.serve_host(host);
            }
        }
        self.net.kicked.clear();
        self.net.arm_wakeful();
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "there are at most 65 535 hosts")]
    fn wake(&mut self, host: u32) {
        let now = self.net.queue.now();
        let id = HostId(host as u16);
        let state = &mut self.net.hosts[host as usize];
        if state.spare == now {
            state.spare = u64::MAX;
        }
        if state.armed != now {
            return; // an earlier wake-up was asked for after this one had been armed, and has been given
        }
        state.armed = u64::MAX;
        if state.wanted > now {
            self.net.arm(id);
            return;
        }
        state.wanted = u64::MAX;
        self.nics.wake(&mut self.net, id);
    }

    fn pause(&mut self, handle: u32) {
        let (port, priority, on) = (handle & 0xfff_ffff, (handle >> 28 & 7) as u8, handle >> 31 != 0);
        if self.net.pause_arrived(port, priority, on) {
            self.net.resume(port);
        }
    }

    /// Injects the CNPs that forgers call for at the node that sent the packet, a link's delay from now.
    #[cold]
    fn forge(&mut self) {
        for (port, packet) in std::mem::take(&mut self.net.forged) {
            if let Some(cnp) = self.nics.forge_cnp(&packet) {
                self.net.inject(port, cnp);
            }
        }
    }
}

#[cfg(test)]
mod tests;
