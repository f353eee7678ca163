//! Priorities that share a host's port, as they share a switch's.

use super::Host;
use crate::delay::Delays;
use crate::work::Slow;
use roci_fabric::net::Net;
use roci_fabric::packet::{HostId, PacketId};
use roci_switch::{Quanta, Shares, Turns};
use roci_units::Random;

/// Whose turn it is at the port.
#[derive(Debug)]
pub(crate) struct Sharing {
    quanta: Quanta,
    turns: Turns,
}

impl Host {
    /// Has priorities share the port by `shares`, in turns that hold a frame of `max_frame` octets; others stay strict, and go first.
    ///
    /// A NIC that answers late ([`Delays`]) makes packets ahead in the order of strict priorities, and shares no more than
    /// what it has made.
    pub fn set_shares(&mut self, shares: &Shares, max_frame: u32) {
        let ideal = || Box::new(Slow::new(Delays::IDEAL, Random::new(0, 0)));
        let sharing = Sharing { quanta: Quanta::new(shares, max_frame), turns: Turns::default() };
        self.slow.get_or_insert_with(ideal).sharing = Some(Box::new(sharing));
    }

    /// The next packet where priorities share the port. Nobody knows whether a priority has one before it is asked for it, nor how
    /// long that is: one that has none loses its turn.
    #[cold]
    #[inline(never)]
    pub(super) fn next_shared(&mut self, net: &mut Net, id: HostId, open: u8) -> Option<PacketId> {
        let Sharing { quanta, .. } = **self.slow.as_ref()?.sharing.as_ref()?;
        let strict = open & !quanta.priorities();
        if strict != 0
            && let Some(packet) = self.next_strict(net, id, strict)
        {
            return Some(packet);
        }
        let mut asked = open & quanta.priorities();
        while asked != 0 {
            let priority = self.turns()?.next(&quanta, asked);
            if let Some(packet) = self.next_strict(net, id, 1 << priority) {
                let octets = net.packets()[packet].frame.into();
                self.turns()?.sent(priority, octets);
                return Some(packet);
            }
            self.turns()?.end(priority);
            asked &= !(1 << priority);
        }
        None
    }

    fn turns(&mut self) -> Option<&mut Turns> {
        Some(&mut self.slow.as_mut()?.sharing.as_mut()?.turns)
    }
}
