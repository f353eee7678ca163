//! What stands at the edge of the fabric.

use crate::net::Net;
use crate::packet::{HostId, Packet, PacketId};

/// The NICs of all hosts, as the fabric drives them.
///
/// One value stands for all hosts, so that an event finds its host by index without a virtual call.
pub trait Nics {
    /// `packet` has arrived at `host` whole. The NIC owns it from now on: it frees it, or turns it into a reply and
    /// sends that.
    fn receive(&mut self, net: &mut Net, host: HostId, packet: PacketId);

    /// The host's port is free: hand over the packet to send now, of a priority that is in `open` (bit p: priority p
    /// is not paused), or nothing. Asked again after each packet sent, after [`Net::kick`], and when a pause ends.
    fn transmit(&mut self, net: &mut Net, host: HostId, open: u8) -> Option<PacketId>;

    /// Whether the NIC may have something to send once the packet that it has just handed over has left. Where it
    /// knows better than "perhaps" it saves an event; it must then call [`Net::kick`] when that changes.
    fn has_more(&self, _host: HostId) -> bool {
        true
    }

    /// A wake-up that the NIC asked for by [`Net::wake_at`] is due.
    fn wake(&mut self, net: &mut Net, host: HostId);

    /// Whether a few hosts already keep so much that it is seldom in a cache.
    fn is_large(&self) -> bool {
        false
    }

    /// Something will happen at `host` in some events' time: prefetch what that will touch in any case.
    fn approach(&self, _host: HostId) {}

    /// `packet` will arrive at `host` in a few events' time, announced by [`Nics::approach`]: prefetch what
    /// [`Nics::receive`] will touch.
    fn prefetch(&self, host: HostId, packet: &Packet);

    /// The same for [`Nics::transmit`] and [`Nics::wake`].
    fn prefetch_transmit(&self, _host: HostId) {}

    /// A packet that waits at `host` for its port, if the NIC knows one without work: it is prefetched before the port
    /// is free.
    fn waiting(&self, _host: HostId) -> Option<PacketId> {
        None
    }

    /// A forger on the path calls for a congestion notification to the source of `packet`: the CNP that its
    /// destination would send, if the NIC can tell the queue pair that it is for.
    fn forge_cnp(&self, _packet: &Packet) -> Option<Packet> {
        None
    }
}
