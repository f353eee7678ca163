//! Finding a PFC deadlock: a cycle of ports, each paused until the next one sends.

use crate::net::Net;
use crate::packet::PacketId;

/// What is known of a port in the search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    No,
    OnPath,
    Done,
}

impl Net {
    /// The cycle of a deadlock, if there is one: switch ports (switch, and port as numbered here), each paused by the
    /// switch of the next because of packets that wait for the next.
    ///
    /// A run that still moves packets may have a cycle for a moment, so ask when nothing moves any more: when the run
    /// is idle, or only timers go on.
    pub fn deadlock(&self) -> Option<Vec<(u32, u32)>> {
        (0..8).find_map(|priority| self.cycle(priority))
    }

    fn cycle(&self, priority: u8) -> Option<Vec<(u32, u32)>> {
        let mut seen = vec![Seen::No; self.ports.len()];
        for switch in 0..self.first_ports.len() - 1 {
            for start in self.first_ports[switch]..self.first_ports[switch + 1] {
                if seen[start as usize] == Seen::No
                    && self.is_stuck(start, priority)
                    && let Some(cycle) = self.search(start, priority, &mut seen)
                {
                    let owner = |port| self.switch_of(port).map(|switch| (switch, port));
                    return Some(cycle.into_iter().filter_map(owner).collect());
                }
            }
        }
        None
    }

    /// Follows from `start` what each port waits for, depth first.
    fn search(&self, start: u32, priority: u8, seen: &mut [Seen]) -> Option<Vec<u32>> {
        let mut path = vec![start];
        let mut open = vec![self.waits_for(start, priority)];
        seen[start as usize] = Seen::OnPath;
        while let (Some(&port), Some(next)) = (path.last(), open.last_mut()) {
            let Some(next) = next.pop() else {
                seen[port as usize] = Seen::Done;
                path.pop();
                open.pop();
                continue;
            };
            match seen[next as usize] {
                Seen::OnPath => {
                    let from = path.iter().position(|&port| port == next)?;
                    return Some(path.split_off(from));
                }
                Seen::No => {
                    seen[next as usize] = Seen::OnPath;
                    path.push(next);
                    open.push(self.waits_for(next, priority));
                }
                Seen::Done => {}
            }
        }
        None
    }

    /// Whether packets wait for `port` that it may not send.
    fn is_stuck(&self, port: u32, priority: u8) -> bool {
        let port = &self.ports[port as usize];
        port.backlog() & port.link.paused & (1 << priority) != 0
    }

    /// The stuck ports of the switch at the other end for which packets wait that came from `port`.
    fn waits_for(&self, port: u32, priority: u8) -> Vec<u32> {
        let ingress = self.peer(port);
        let Some(switch) = self.switch_of(ingress) else { return Vec::new() };
        let holds = |egress: u32| {
            let mut found = false;
            let look = |handle| found |= self.packets[PacketId(handle)].port == ingress;
            self.switch(switch).for_each_waiting(&self.ports, &self.packets, egress, priority, look);
            found
        };
        self.switch_ports(switch).filter(|&egress| self.is_stuck(egress, priority) && holds(egress)).collect()
    }
}
