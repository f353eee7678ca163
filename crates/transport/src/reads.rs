//! What a responder keeps of READs and atomics: responses still to go, and results for replay (IBTA Vol 1 §9.7.5.1).

use crate::arrival::MemoryOperation;
use crate::qp::after;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use roci_wire::layout::srnic::RequestPosition;

/// A READ or atomic that a responder has accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resource {
    /// Its number on the queue pair, by which a memory result finds it.
    pub(crate) number: u16,
    /// Sequence of its first response: that of its request, but for READs whose responses are acknowledged.
    pub(crate) first: u32,
    /// Sequence after its last response.
    pub(crate) end: u32,
    /// Sequence of the next response to send; `end` when all have gone.
    pub(crate) next: u32,
    /// Sequence after the last response that ever went: those before it are sent again.
    pub(crate) sent: u32,
    /// The message count that its responses carry.
    pub(crate) msn: u32,
    pub(crate) access: Access,
    pub(crate) stage: Stage,
    /// Sequence of its request.
    pub(crate) request: u32,
    /// How many of the engine's keys had ended when its key was checked.
    pub(crate) keys_ended: u32,
    /// Where the request says that it stands, in layout `srnic`.
    pub(crate) position: RequestPosition,
}

/// How far memory is with a resource. Those of a queue pair are carried out one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Payload that came before it is not yet in its place.
    Held,
    /// Its turn has not come.
    Waiting,
    /// Memory has been asked.
    Asked,
    /// Memory has answered, or need not be asked.
    Ready,
}

/// What it does to memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Access {
    Read {
        address: u64,
        key: u32,
        length: u32,
    },
    /// With the original value, once known.
    Atomic {
        operation: MemoryOperation,
        original: u64,
    },
}

impl Resource {
    /// Whether a response has still to go.
    pub(crate) const fn pending(&self) -> bool {
        self.next != self.end
    }

    /// Whether all responses have gone once, whatever of them has to go again.
    const fn answered(&self) -> bool {
        self.sent == self.end
    }
}

/// The resources of one queue pair, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    pub(crate) resources: VecDeque<Resource>,
    next_number: u16,
    /// Whether READ responses are acknowledged, in sequences of their own.
    pub(crate) separate: bool,
    /// A SEND or WRITE that came again while responses before it go again, and asks: answered when these have gone.
    pub(crate) repeated: Option<u32>,
}

impl Reads {
    /// Adds a resource, at the cost of the oldest if there are `limit` and it has been answered. `None`: the peer has
    /// more outstanding than it may.
    ///
    /// A READ that is being answered again must go as well: the request that asked for it again was overtaken by the
    /// first answer, or the peer would not ask for more than it may.
    pub(crate) fn push(&mut self, limit: u8, mut resource: Resource) -> Option<u16> {
        if self.resources.len() >= usize::from(limit) {
            if self.resources.front().is_none_or(|oldest| !oldest.answered()) {
                return None;
            }
            self.resources.pop_front();
        }
        resource.number = self.next_number;
        self.next_number = self.next_number.wrapping_add(1);
        self.resources.push_back(resource);
        Some(resource.number)
    }

    /// The oldest resource with a response still to go: responses leave in order, but for those that are acknowledged.
    pub(crate) fn turn(&mut self) -> Option<&mut Resource> {
        let separate = self.separate;
        let counts =
            |r: &&mut Resource| r.pending() && !(separate && matches!(r.access, Access::Read { .. }));
        self.resources.iter_mut().find(counts)
    }

    /// The READ that acknowledged response `sequence` belongs to.
    pub(crate) fn answering(&mut self, sequence: u32) -> Option<&mut Resource> {
        let holds = |r: &Resource| sequence.wrapping_sub(r.first) < r.end.wrapping_sub(r.first);
        self.resources.iter_mut().find(|r| matches!(r.access, Access::Read { .. }) && holds(r))
    }

    /// The resource that the request with `sequence` asked for.
    pub(crate) fn requested(&mut self, sequence: u32) -> Option<&mut Resource> {
        self.resources.iter_mut().find(|resource| resource.request == sequence)
    }

    /// The resource that `sequence` belongs to.
    pub(crate) fn covering(&mut self, sequence: u32) -> Option<&mut Resource> {
        self.resources.iter_mut().find(|r| sequence.wrapping_sub(r.first) < r.end.wrapping_sub(r.first))
    }

    /// The first resource that was asked for after `sequence`.
    pub(crate) fn following(&mut self, sequence: u32) -> Option<&mut Resource> {
        self.resources.iter_mut().find(|resource| after(resource.request, sequence) > 0)
    }

    /// The sequence after the last request before `end` that is no READ or atomic, and how many messages came up to there where up to `end`
    /// there were `msn`, modulo 2²⁴.
    pub(crate) fn before_last(&self, mut end: u32, mut msn: u32) -> (u32, u32) {
        let after = |r: &Resource| if self.separate { r.request.wrapping_add(1) } else { r.end };
        for resource in self.resources.iter().rev() {
            if after(resource) != end {
                break;
            }
            (end, msn) = (resource.request, resource.msn.wrapping_sub(1) & 0x00ff_ffff);
        }
        (end, msn)
    }

    /// The resource that memory is to be asked for next, unless it is busy with another.
    pub(crate) fn unasked(&mut self) -> Option<&mut Resource> {
        let first = self.resources.iter_mut().find(|resource| resource.stage != Stage::Ready)?;
        (first.stage == Stage::Waiting).then_some(first)
    }

    /// The resource with this number.
    pub(crate) fn numbered(&mut self, number: u16) -> Option<&mut Resource> {
        self.resources.iter_mut().find(|resource| resource.number == number)
    }
}

/// The pool of them: a queue pair takes one with its first READ or atomic and keeps it.
#[derive(Debug, Default)]
pub(crate) struct ReadPool {
    places: Vec<Reads>,
    free: Vec<u32>,
}

impl ReadPool {
    #[expect(clippy::cast_possible_truncation, reason = "at most one per queue pair")]
    pub(crate) fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.places.push(Reads::default());
            (self.places.len() - 1) as u32
        })
    }

    pub(crate) fn give_back(&mut self, index: u32) {
        let reads = &mut self.places[index as usize];
        reads.resources.clear();
        reads.repeated = None;
        self.free.push(index);
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Reads {
        &mut self.places[index as usize]
    }
}
