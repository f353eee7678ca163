//! A port: the queues that wait for it, and what its peer has in the buffer.

/// Priorities of IEEE 802.1Q.
pub const PRIORITIES: usize = 8;

/// No packet: the end of a queue.
pub const NONE: u32 = u32::MAX;

/// The packets of the caller, by handle. A packet stands in at most one queue.
pub trait Frames {
    /// The packet behind it in its queue.
    fn next(&self, handle: u32) -> u32;
    /// Sets the packet behind it.
    fn set_next(&mut self, handle: u32, next: u32);
    /// The port that it came in by.
    fn ingress(&self, handle: u32) -> u32;
    /// Octets of its frame.
    fn octets(&self, handle: u32) -> u32;
    /// The priority that it travels on, 0 to 7.
    fn priority(&self, handle: u32) -> u8;
    /// What tells its flow from others.
    fn flow(&self, handle: u32) -> u32;
    /// Whether its sender understands ECN (ECT(0), ECT(1) or CE).
    fn is_ect(&self, handle: u32) -> bool;
    /// Marks it: Congestion Experienced.
    fn mark(&mut self, handle: u32);
    /// Cuts its payload off and puts it on `priority`; `false` if it has none to cut off.
    fn trim(&mut self, handle: u32, priority: u8) -> bool;
    /// Exchanges two packets, except for what stands behind each.
    fn swap(&mut self, a: u32, b: u32);
}

/// One priority of a port: the queue that leaves by it, and the account of what came in by it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Queue {
    pub(crate) head: u32,
    pub(crate) tail: u32,
    /// Octets that wait to leave.
    pub(crate) octets: u32,
    /// The most octets that ever waited.
    pub(crate) peak: u32,
    /// Octets that came in by here and are charged to reserve and shared buffer.
    pub(crate) held: u32,
    /// Octets that came in by here and are charged to the headroom.
    pub(crate) headroom: u32,
}

impl Queue {
    const EMPTY: Self = Self { head: NONE, tail: NONE, octets: 0, peak: 0, held: 0, headroom: 0 };
}

/// A port of the switch with the caller's `link`, which is all that the switch does not know: where the other end
/// is, when the transmission ends.
///
/// With a link of 32 octets the link, the masks and the queue of priority 3, where data travel by default, make one
/// cache line: a hop of a data packet touches one line of its egress port, and one of its ingress port where it
/// has to wait. The other priorities work alike, a line further.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Port<L> {
    /// What the caller keeps here.
    pub link: L,
    /// Bit p: packets of priority p wait.
    pub(crate) backlog: u8,
    /// Bit p: the peer has been told to pause priority p.
    pub(crate) xoff: u8,
    /// Which of the switch's marking lines applies, plus one; zero for none.
    pub(crate) red: u8,
    /// Most octets of a priority in the headroom.
    pub(crate) headroom: u32,
    queues: [Queue; PRIORITIES],
}

/// The place of a priority's queue: that of priority 3 comes first.
#[inline(always)]
const fn place(priority: u8) -> usize {
    ((priority + 5) & 7) as usize
}

impl<L> Port<L> {
    /// A port with empty queues. The switch sets it up when it is built.
    pub const fn new(link: L) -> Self {
        Self { link, backlog: 0, xoff: 0, red: 0, headroom: 0, queues: [Queue::EMPTY; PRIORITIES] }
    }

    /// Bit p: packets of priority p wait for this port.
    #[inline(always)]
    pub const fn backlog(&self) -> u8 {
        self.backlog
    }

    /// Bit p: the peer at this port has been told to pause priority p.
    #[inline(always)]
    pub const fn pausing(&self) -> u8 {
        self.xoff
    }

    /// Octets of `priority` that wait for this port.
    pub const fn queued(&self, priority: u8) -> u32 {
        self.queues[place(priority)].octets
    }

    /// The most octets of `priority` that ever waited for this port.
    pub const fn peak(&self, priority: u8) -> u32 {
        self.queues[place(priority)].peak
    }

    /// Octets of `priority` in the buffer that came in by this port and are held against it by PFC.
    pub const fn held(&self, priority: u8) -> u32 {
        let queue = &self.queues[place(priority)];
        queue.held + queue.headroom
    }

    /// The first packet of `priority` that waits, or [`NONE`]. With a queue per flow, of the flow whose turn it is
    /// there is no list to follow: then always [`NONE`].
    #[inline]
    pub const fn first(&self, priority: u8) -> u32 {
        self.queues[place(priority)].head
    }

    #[inline(always)]
    pub(crate) const fn queue(&mut self, priority: u8) -> &mut Queue {
        &mut self.queues[place(priority)]
    }

    /// Puts a packet last.
    #[inline]
    pub(crate) fn enqueue<F: Frames>(&mut self, frames: &mut F, handle: u32, priority: u8, octets: u32) {
        frames.set_next(handle, NONE);
        let queue = self.queue(priority);
        if queue.head == NONE {
            queue.head = handle;
        } else {
            frames.set_next(queue.tail, handle);
        }
        queue.tail = handle;
        self.charge(priority, octets);
    }

    /// Counts octets that wait.
    #[inline]
    pub(crate) fn charge(&mut self, priority: u8, octets: u32) {
        self.backlog |= 1 << priority;
        let queue = self.queue(priority);
        queue.octets += octets;
        queue.peak = queue.peak.max(queue.octets);
    }

    /// Takes the first packet.
    #[inline]
    pub(crate) fn take<F: Frames>(&mut self, frames: &F, priority: u8) -> u32 {
        let queue = self.queue(priority);
        let handle = queue.head;
        queue.head = frames.next(handle);
        handle
    }
}
