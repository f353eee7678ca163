//! A queue per flow within each priority, served in turn: what fair queueing would do, as an ablation.
//!
//! Each is a queue of its own for all that is decided by a queue's length: else a flow that fills the buffer would have the others'
//! packets dropped, trimmed or marked, and taking turns would give them nothing to send.
//!
//! Flows are found by search, not by index, and are forgotten when their queue empties; the usual single queue pays
//! nothing for this, and the code stays out of its way.

use crate::port::{Frames, NONE};
use alloc::collections::{BTreeMap, VecDeque};

/// Packets of one flow that wait for one port at one priority.
#[derive(Clone, Copy, Debug)]
struct Flow {
    head: u32,
    tail: u32,
    /// Octets that wait.
    octets: u32,
}

/// A packet that was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) handle: u32,
    /// Octets left behind it in the queue of its flow.
    pub(crate) behind: u32,
    /// Whether more packets wait, of whatever flow.
    pub(crate) more: bool,
}

/// Flows of one port and priority, in the order of their turns.
#[derive(Clone, Debug, Default)]
struct Turns {
    flows: BTreeMap<u32, Flow>,
    order: VecDeque<u32>,
}

/// The per-flow queues of a switch.
#[derive(Clone, Debug, Default)]
pub struct FlowQueues {
    queues: BTreeMap<(u32, u8), Turns>,
}

impl FlowQueues {
    /// Puts a packet last in the queue of its flow. A flow that had none waiting takes its turn after all others.
    #[cold]
    #[inline(never)]
    pub(crate) fn enqueue<F: Frames>(&mut self, frames: &mut F, port: u32, priority: u8, handle: u32) {
        frames.set_next(handle, NONE);
        let (id, octets) = (frames.flow(handle), frames.octets(handle));
        let turns = self.queues.entry((port, priority)).or_default();
        if let Some(flow) = turns.flows.get_mut(&id) {
            frames.set_next(flow.tail, handle);
            flow.tail = handle;
            flow.octets += octets;
        } else {
            turns.flows.insert(id, Flow { head: handle, tail: handle, octets });
            turns.order.push_back(id);
        }
    }

    /// Takes the next packet of the flow whose turn it is.
    #[cold]
    #[inline(never)]
    pub(crate) fn take<F: Frames>(&mut self, frames: &F, port: u32, priority: u8) -> Option<Taken> {
        let turns = self.queues.get_mut(&(port, priority))?;
        let id = turns.order.pop_front()?;
        let flow = turns.flows.get_mut(&id)?;
        let handle = flow.head;
        flow.octets -= frames.octets(handle);
        let behind = flow.octets;
        if handle == flow.tail {
            turns.flows.remove(&id);
        } else {
            flow.head = frames.next(handle);
            turns.order.push_back(id);
        }
        Some(Taken { handle, behind, more: !turns.order.is_empty() })
    }

    /// Octets of a flow that wait.
    #[cold]
    #[inline(never)]
    pub(crate) fn octets(&self, port: u32, priority: u8, flow: u32) -> u32 {
        let turns = self.queues.get(&(port, priority));
        turns.and_then(|turns| turns.flows.get(&flow)).map_or(0, |flow| flow.octets)
    }

    /// The first packet of each flow that waits.
    pub(crate) fn firsts(&self, port: u32, priority: u8) -> impl Iterator<Item = u32> + '_ {
        self.queues
            .get(&(port, priority))
            .into_iter()
            .flat_map(|turns| turns.flows.values().map(|flow| flow.head))
    }
}
