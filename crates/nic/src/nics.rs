//! The NICs of all hosts, driven by the fabric.

use crate::host::Host;
use roci_fabric::net::Net;
use roci_fabric::nics::Nics;
use roci_fabric::packet::{HostId, Packet, PacketId};
use roci_transport::{Completion, Reaction};

/// What runs on the hosts: it posts work and hears of its end.
pub trait Application {
    /// A work request on `host` has ended. Call [`Host::poke`] on each host that work is then posted to.
    fn completed(&mut self, net: &mut Net, hosts: &mut [Host], host: HostId, completion: &Completion);
}

/// The simulated NICs and the application on them.
pub struct Simulated<A> {
    /// One NIC per host.
    pub hosts: Vec<Host>,
    /// The application.
    pub application: A,
    /// Reused for each packet.
    reaction: Reaction,
    /// Whether NICs are made of parts, which keep much more than an engine does.
    parts: bool,
}

impl<A: Application> Simulated<A> {
    /// NICs with an application on them.
    pub fn new(hosts: Vec<Host>, application: A) -> Self {
        let parts = hosts.iter().any(Host::has_parts);
        Self { hosts, application, reaction: Reaction::default(), parts }
    }

    /// Tells the application what has ended on `host`, and the fabric what the host wants next.
    #[inline(always)]
    fn settle(&mut self, net: &mut Net, host: HostId) {
        let nic = &mut self.hosts[usize::from(host.0)];
        if nic.engine.has_told() {
            self.tell(net, host);
        } else {
            nic.poke(net, host);
        }
    }

    #[inline(never)]
    fn tell(&mut self, net: &mut Net, host: HostId) {
        while let Some(completion) = self.hosts[usize::from(host.0)].engine.poll_completion() {
            if self.parts {
                self.hosts[usize::from(host.0)].write_completion(net.now(), completion.kind);
            }
            self.application.completed(net, &mut self.hosts, host, &completion);
        }
        self.hosts[usize::from(host.0)].poke(net, host);
    }
}

impl<A: Application> Nics for Simulated<A> {
    #[inline]
    fn receive(&mut self, net: &mut Net, host: HostId, packet: PacketId) {
        self.hosts[usize::from(host.0)].receive(net, host, packet, &mut self.reaction);
        self.settle(net, host);
    }

    #[inline]
    fn transmit(&mut self, net: &mut Net, host: HostId, open: u8) -> Option<PacketId> {
        self.hosts[usize::from(host.0)].transmit(net, host, open)
    }

    #[inline]
    fn has_more(&self, host: HostId) -> bool {
        self.hosts[usize::from(host.0)].has_work()
    }

    /// The CNP that the packet's destination would send.
    fn forge_cnp(&self, packet: &Packet) -> Option<Packet> {
        let destination = self.hosts.get(usize::from(packet.destination.0))?;
        destination.cnp_against(packet)
    }

    #[inline]
    fn wake(&mut self, net: &mut Net, host: HostId) {
        self.hosts[usize::from(host.0)].wake(net, host, &mut self.reaction);
        self.settle(net, host);
    }

    #[inline]
    fn is_large(&self) -> bool {
        self.parts
    }

    #[inline]
    fn approach(&self, host: HostId) {
        if let Some(host) = self.hosts.get(usize::from(host.0)) {
            roci_prefetch::prefetch(host);
            host.engine.prefetch();
        }
    }

    #[inline]
    fn prefetch(&self, host: HostId, packet: &Packet) {
        if let Some(host) = self.hosts.get(usize::from(host.0)) {
            host.prefetch_parts();
            host.engine.prefetch_receive(&packet.header);
        }
    }

    #[inline]
    fn waiting(&self, host: HostId) -> Option<PacketId> {
        self.hosts.get(usize::from(host.0)).and_then(Host::first_reply)
    }

    #[inline]
    fn prefetch_transmit(&self, host: HostId) {
        if let Some(host) = self.hosts.get(usize::from(host.0)) {
            host.prefetch_parts();
            host.engine.prefetch_transmit();
        }
    }
}
