//! What ports count of each priority, where that is asked for: a run whose packets all travel on one pays nothing for it.

use crate::link::COUNTED;
use crate::net::Net;
use roci_switch::PRIORITIES;
use roci_units::{Instant, Span};

/// What a port has counted of one priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfPriority {
    /// Packets sent, PAUSE frames aside; a transmission counts from its start.
    pub packets: u64,
    /// Octets of their frames.
    pub octets: u64,
    /// Packets that the switch marked on their way here.
    pub marked: u64,
    /// Packets that the switch had no room for: on their way here, or from here where they are lossless.
    pub dropped: u64,
    /// How often this port was told to stop it.
    pub pauses: u64,
    /// How long it has stood paused.
    pub paused: Span,
    /// Packets, copies of them included, that faults lost on their way over this link,
    pub lost: u64,
    /// and that they damaged there.
    pub corrupted: u64,
    /// The most octets that ever waited; `None` of a host's port, whose packets wait in its NIC.
    pub peak: Option<u32>,
}

/// The counts of all ports, or of none.
#[derive(Debug, Default)]
pub(crate) struct Priorities(Vec<OfPort>);

#[derive(Clone, Debug)]
struct OfPort {
    /// By priority: packets and octets together, as both are counted with each packet.
    sent: [(u64, u64); PRIORITIES],
    pauses: [u32; PRIORITIES],
    /// Lost to faults, and damaged by them.
    hurt: [(u64, u64); PRIORITIES],
    /// Up to `since`.
    paused: [Span; PRIORITIES],
    since: Instant,
    /// Bit p: priority p is paused.
    held: u8,
}

impl OfPort {
    const NONE: Self = Self {
        sent: [(0, 0); PRIORITIES],
        pauses: [0; PRIORITIES],
        hurt: [(0, 0); PRIORITIES],
        paused: [Span::ZERO; PRIORITIES],
        since: Instant::ZERO,
        held: 0,
    };

    fn paused(&self, priority: usize, now: Instant) -> Span {
        let held = self.held >> priority & 1 == 1;
        self.paused[priority] + if held { now.since(self.since) } else { Span::ZERO }
    }
}

impl Priorities {
    #[inline(always)]
    pub(crate) fn sent(&mut self, port: u32, priority: u8, frame: u16) {
        if let Some(of) = self.0.get_mut(port as usize) {
            let (packets, octets) = &mut of.sent[usize::from(priority & 7)];
            *packets += 1;
            *octets += u64::from(frame);
        }
    }

    /// Faults have lost or damaged so many copies of a packet on the link of `port`.
    #[cold]
    pub(crate) fn hurt(&mut self, port: u32, priority: u8, lost: u64, corrupted: u64) {
        if let Some(of) = self.0.get_mut(port as usize) {
            let hurt = &mut of.hurt[usize::from(priority & 7)];
            hurt.0 += lost;
            hurt.1 += corrupted;
        }
    }

    pub(crate) fn told_to_stop(&mut self, port: u32, priority: u8) {
        if let Some(of) = self.0.get_mut(port as usize) {
            let pauses = &mut of.pauses[usize::from(priority & 7)];
            *pauses = pauses.saturating_add(1);
        }
    }

    /// From now on the priorities `held` of `port` are paused, and no others.
    pub(crate) fn hold(&mut self, port: u32, held: u8, now: Instant) {
        if let Some(of) = self.0.get_mut(port as usize) {
            for priority in 0..PRIORITIES {
                of.paused[priority] = of.paused(priority, now);
            }
            (of.since, of.held) = (now, held);
        }
    }
}

impl Net {
    /// Has all ports count by priority as well; to be called before anything is sent.
    pub fn count_priorities(&mut self) {
        self.priorities.0.resize(self.ports.len(), OfPort::NONE);
        self.ports.iter_mut().for_each(|port| port.link.flags |= COUNTED);
        self.switches.iter_mut().for_each(roci_switch::Switch::count_priorities);
    }

    /// What `port` has counted of `priority`; `None` unless [`Net::count_priorities`] was called.
    pub fn of_priority(&self, port: u32, priority: u8) -> Option<OfPriority> {
        let (of, place) = (self.priorities.0.get(port as usize)?, usize::from(priority & 7));
        let (packets, octets) = of.sent[place];
        let (lost, corrupted) = of.hurt[place];
        let switch = self.switch_of(port).map(|switch| &self.switches[switch as usize]);
        let counted =
            switch.and_then(|switch| switch.of_priority(port, priority)).copied().unwrap_or_default();
        Some(OfPriority {
            packets,
            octets,
            marked: counted.marked,
            dropped: counted.dropped,
            pauses: of.pauses[place].into(),
            paused: of.paused(place, self.now()),
            lost,
            corrupted,
            peak: switch.map(|switch| switch.queue_peak(&self.ports, port, priority)),
        })
    }
}
