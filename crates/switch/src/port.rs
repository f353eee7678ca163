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
    /// Whether it keeps its place in a queue that is full where others are trimmed: it has no payload to be cut off, and no later
    /// packet makes up for it, as one does for an acknowledgement.
    fn stays_whole(&self, handle: u32) -> bool;
    /// Puts it on `priority` and cuts its payload off, if it has one; whether it had.
    fn trim(&mut self, handle: u32, priority: u8) -> bool;
    /// Turns a trimmed packet back to its sender; `false` if it cannot be: it was before, or does not name its sender.
    fn turn_back(&mut self, handle: u32) -> bool;
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

/// A port of the switch with the caller's `link`, which is all that the switch does not know: where the other end
/// is, when the transmission ends.
///
/// With a link of 32 octets the link, the masks and the queue of priority 3, where data travel by default, make one
/// cache line: a hop of a data packet touches one line of its egress port, and one of its ingress port where it
/// has to wait. The other queues are the switch's own, lest the lines that are touched lie far apart, where they
/// would share few sets of the caches.
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
    /// How often the share of the free buffer at which its peer is paused is doubled.
    pub(crate) doublings: u8,
    /// Most octets of a priority in the headroom.
    pub(crate) headroom: u32,
    /// The queue of priority [`NEAR`].
    pub(crate) near: Queue,
}

/// The priority whose queue lies with the port.
pub const NEAR: u8 = 3;

/// The queues of the other priorities; the place of [`NEAR`] is not used.
pub(crate) type FarQueues = [Queue; PRIORITIES];

impl<L> Port<L> {
    /// A port with empty queues. The switch sets it up when it is built.
    pub const fn new(link: L) -> Self {
        Self { link, backlog: 0, xoff: 0, red: 0, doublings: 0, headroom: 0, near: Queue::EMPTY }
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

    /// The first packet of priority [`NEAR`] that waits, or [`NONE`]: for prefetching it.
    #[inline(always)]
    pub const fn first(&self) -> u32 {
        self.near.head
    }

    /// The last packet of priority [`NEAR`] that waits, where one does: for prefetching it, behind which others queue.
    #[inline(always)]
    pub const fn last(&self) -> u32 {
        self.near.tail
    }

    /// The queue of `priority`, here or at `place` of `far`.
    #[inline(always)]
    pub(crate) const fn queue<'a>(
        &'a mut self,
        far: &'a mut [FarQueues],
        place: u32,
        priority: u8,
    ) -> &'a mut Queue {
        if priority == NEAR { &mut self.near } else { &mut far[place as usize][(priority & 7) as usize] }
    }
}

impl Queue {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE, octets: 0, peak: 0, held: 0, headroom: 0 };

    /// Puts a packet last.
    #[inline]
    pub(crate) fn append<F: Frames>(&mut self, frames: &mut F, handle: u32) {
        frames.set_next(handle, NONE);
        if self.head == NONE {
            self.head = handle;
        } else {
            frames.set_next(self.tail, handle);
        }
        self.tail = handle;
    }

    /// Takes the first packet.
    #[inline]
    pub(crate) fn take<F: Frames>(&mut self, frames: &F) -> u32 {
        let handle = self.head;
        self.head = frames.next(handle);
        handle
    }
}
