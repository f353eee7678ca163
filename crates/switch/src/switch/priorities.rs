//! What a switch counts of each priority, where it is asked to.

use super::Switch;
use crate::port::PRIORITIES;

/// What a port has counted of one priority; the parts of what [`Counters`](super::Counters) has of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfPriority {
    /// Packets dropped: on their way to this port for want of shared buffer, or that came in by it and found its headroom full.
    pub dropped: u64,
    /// Packets marked with Congestion Experienced on their way to this port.
    pub marked: u64,
}

impl Switch {
    /// Has it count by priority as well, from now on.
    pub fn count_priorities(&mut self) {
        self.of_priorities.resize(self.counters.len(), [OfPriority::default(); PRIORITIES]);
    }

    /// What `port` has counted of `priority` since [`Switch::count_priorities`]; `None` before.
    pub fn of_priority(&self, port: u32, priority: u8) -> Option<&OfPriority> {
        self.of_priorities.get((port - self.first_port) as usize)?.get(usize::from(priority))
    }

    /// Counts something that befell a packet of `priority`; seldom are there many of these.
    #[inline]
    pub(super) fn count_of(&mut self, port: u32, priority: u8, add: impl FnOnce(&mut OfPriority)) {
        if let Some(of) = self.of_priorities.get_mut((port - self.first_port) as usize) {
            add(&mut of[usize::from(priority & 7)]);
        }
    }
}
