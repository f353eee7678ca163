//! Finding a PFC deadlock: ports that can never send again, because each waits for others that cannot either.
//!
//! A switch pauses a port because of the packets that came from it and wait in the switch, and lets it go on when enough
//! of those have left. They may wait for several ports, and one that is free to send may leave too few of them behind
//! to go on pausing. So a port counts as held only where *every* port that its packets wait for is held as well: the
//! largest such set is what is left when ports are struck out that wait for one outside of it. Each port of the set waits
//! for another one of it, so that it contains a cycle. Nothing may be on its way to a port of the set, for what arrives and
//! leaves at once makes the switch look anew at whom it pauses: hence a second look, at ports that have been paused ever
//! since the first.

use crate::net::Net;
use crate::packet::PacketId;
use std::collections::{BTreeMap, BTreeSet};

/// A port that could not send, as it was seen at one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    port: u32,
    priority: u8,
    /// The PAUSE frames that it had received.
    pauses: u32,
}

/// A cycle of ports that wait for one another for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// The priority whose packets wait.
    pub priority: u8,
    /// Switch ports (switch, and port as numbered here), each paused by the switch of the next because of packets that
    /// wait for the next, and for nothing else that could move.
    pub cycle: Vec<(u32, u32)>,
}

/// For each port the ports of the next switch that its packets wait for there.
type Waits = BTreeMap<u32, Vec<u32>>;

impl Net {
    /// The deadlock that there is, if any; of several the one of the lowest priority.
    ///
    /// This holds when no event is left in the network. While packets move, ask [`deadlock_since`](Self::deadlock_since).
    pub fn deadlock(&self) -> Option<Deadlock> {
        self.deadlock_since(&self.held())
    }

    /// The ports that stand still now, each until another one of them sends.
    pub fn held(&self) -> Vec<Held> {
        let held = |priority| {
            let waits = self.closed(priority, self.paused_ports(priority));
            waits.into_keys().map(move |port| self.held_now(port, priority))
        };
        (0..8).flat_map(held).collect()
    }

    /// A deadlock of ports that were held `before` and have been paused without a break since, as in
    /// [`deadlock`](Self::deadlock).
    ///
    /// Between the two looks must lie the time that a frame takes over the slowest link, so that nothing is on its way
    /// from any of those ports: then they never send again.
    pub fn deadlock_since(&self, before: &[Held]) -> Option<Deadlock> {
        (0..8).find_map(|priority| {
            let still = before.iter().filter(|held| held.priority == priority);
            let still = still.filter(|held| **held == self.held_now(held.port, priority));
            let still: BTreeSet<u32> = still.map(|held| held.port).collect();
            let ports = self.paused_ports(priority).intersection(&still).copied().collect();
            let cycle = cycle(&self.closed(priority, ports))?;
            let owner = |port| self.switch_of(port).map(|switch| (switch, port));
            Some(Deadlock { priority, cycle: cycle.into_iter().filter_map(owner).collect() })
        })
    }

    fn held_now(&self, port: u32, priority: u8) -> Held {
        Held { port, priority, pauses: self.pauses[port as usize].received }
    }

    /// The ports of switches with packets that they may not send because another switch, and no fault, pauses them.
    fn paused_ports(&self, priority: u8) -> BTreeSet<u32> {
        let bit = 1 << priority;
        let ports = 0..self.first_ports.len() - 1;
        let ports = ports.flat_map(|switch| self.first_ports[switch]..self.first_ports[switch + 1]);
        let paused = |port: &u32| {
            let port = &self.ports[*port as usize];
            let peer = port.link.peer;
            port.backlog() & port.link.paused & bit != 0
                && self.switch_of(peer).is_some()
                && self.ports[peer as usize].pausing() & bit != 0
        };
        ports.filter(paused).collect()
    }

    /// The largest part of `ports` of which each waits for others of it alone.
    fn closed(&self, priority: u8, ports: BTreeSet<u32>) -> Waits {
        let mut waits = self.waits(priority, &ports);
        let mut left = ports;
        loop {
            waits.retain(|_, on| !on.is_empty() && on.iter().all(|port| left.contains(port)));
            if waits.len() == left.len() {
                return waits;
            }
            left = waits.keys().copied().collect();
        }
    }

    /// What each of `ports` waits for.
    fn waits(&self, priority: u8, ports: &BTreeSet<u32>) -> Waits {
        let mut waits: Waits = ports.iter().map(|port| (*port, Vec::new())).collect();
        let switches: BTreeSet<u32> =
            ports.iter().filter_map(|port| self.switch_of(self.peer(*port))).collect();
        for switch in switches {
            for egress in self.switch_ports(switch) {
                let visit = |handle| {
                    let from = self.peer(self.packets[PacketId(handle)].port);
                    if let Some(on) = waits.get_mut(&from).filter(|on| on.last() != Some(&egress)) {
                        on.push(egress);
                    }
                };
                self.switch(switch).for_each_waiting(&self.ports, &self.packets, egress, priority, visit);
            }
        }
        waits
    }
}

/// A cycle among ports that all wait for one another.
fn cycle(waits: &Waits) -> Option<Vec<u32>> {
    let mut path = vec![*waits.keys().next()?];
    loop {
        let next = *waits.get(path.last()?)?.first()?;
        if let Some(from) = path.iter().position(|port| *port == next) {
            return Some(path.split_off(from));
        }
        path.push(next);
    }
}
