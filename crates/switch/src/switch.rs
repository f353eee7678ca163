//! The shared buffer's accounts: who may stay, whom to pause, who leaves next.
//!
//! A packet occupies the buffer from its admission to the start of its transmission. One that arrives for an idle
//! port with nothing before it goes straight on, and is never charged.

use crate::config::{Buffering, ConfigError, LinkSpec, Marking, SwitchConfig, Trim};
use crate::flows::{FlowQueues, Taken};
use crate::port::{FarQueues, Frames, NEAR, NONE, PRIORITIES, Port, Queue};
use crate::red::Red;
use crate::shares::{Quanta, Turns};
use alloc::vec::Vec;
use roci_units::{Random, Ratio};

mod priorities;
mod thresholds;

pub use priorities::OfPriority;

/// What became of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It waits.
    Queued,
    /// A payload was cut off, this packet's or, with a random tail, another's; the handle waits as the header.
    Trimmed,
    /// There was no room for the header of this handle's packet, which now names its sender as its destination: the
    /// caller finds its way anew, from here.
    Returned,
    /// There is no room: the caller ends the packet of this handle.
    Dropped,
}

/// The answer to an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// What became of it.
    pub outcome: Outcome,
    /// The peer at the ingress port is to be paused, at the packet's priority.
    pub pause: bool,
}

impl Admission {
    const DROPPED: Self = Self { outcome: Outcome::Dropped, pause: false };
    const RETURNED: Self = Self { outcome: Outcome::Returned, pause: false };
}

/// A packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The packet.
    pub handle: u32,
    /// The priority of the queue that it leaves.
    pub priority: u8,
    /// The peer at this port may send again, at the packet's priority.
    pub resume: Option<u32>,
    /// Octets left behind it in its queue.
    pub behind: u32,
}

/// What a port has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets dropped on their way to this port, for want of shared buffer.
    pub dropped: u64,
    /// Their octets.
    pub dropped_octets: u64,
    /// Lossless packets dropped that came in by this port, because its headroom was exhausted. Octets are counted
    /// in `dropped_octets`.
    pub headroom_dropped: u64,
    /// Packets marked with Congestion Experienced on their way to this port.
    pub marked: u64,
    /// Packets trimmed to their header on their way to this port.
    pub trimmed: u64,
    /// Octets cut off.
    pub trimmed_octets: u64,
    /// Headers on their way to this port that went back to their senders.
    pub returned: u64,
}

/// A threshold's share in 2⁻¹⁶.
const SHARE_BITS: u32 = 16;

/// A shared-buffer switch.
///
/// Its ports live with the caller in one slice, which may hold the ports of other switches too; ports are named by
/// their place in it.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Switch {
    // What each packet that waits touches comes first.
    /// Octets of the shared buffer that are free.
    free: u32,
    /// Octets in the buffer, reserve and headroom included.
    used: u32,
    peak: u32,
    first_port: u32,
    /// α of lossless ingress, and of egress that may drop.
    pfc_share: u64,
    share: u64,
    resume: u32,
    reserve: u32,
    /// Bit p: priority p is lossless.
    lossless: u8,
    mark_arrivals: bool,
    /// Whether it has one queue per priority, strict ones, and trims nothing, as most have: what others need lies far from
    /// here.
    plain: bool,
    /// The first marking line, where it is at hand: ports seldom differ, and a line elsewhere is on another page.
    red: Option<Red>,
    random: Random,
    /// By port, the queues that do not lie with it.
    far: Vec<FarQueues>,
    flows: Option<FlowQueues>,
    trim: Option<Cuts>,
    ets: Option<Sharing>,
    counters: Vec<Counters>,
    /// By port, the headers that left one after the other while packets waited; nothing where none are cut.
    headers: Vec<u8>,
    /// By port, what it has counted of each priority; nothing where that is not asked for.
    of_priorities: Vec<[OfPriority; PRIORITIES]>,
    /// The other marking lines.
    more_reds: Vec<Red>,
}

/// [`Trim`] where its frames are known.
#[derive(Clone, Copy, Debug)]
struct Cuts {
    threshold: u64,
    headers: u64,
    return_to_sender: bool,
    header_priority: u8,
    random_tail: bool,
    headers_per_packet: u8,
}

impl Cuts {
    fn new(trim: &Trim, max_frame: u32) -> Self {
        let &Trim { return_to_sender, header_priority, random_tail, headers_per_packet, .. } = trim;
        let (threshold, headers) = (trim.threshold(max_frame).0, trim.headers(max_frame).0);
        Self { threshold, headers, return_to_sender, header_priority, random_tail, headers_per_packet }
    }

    /// Whose turn it is where `priority` is the highest of those that are `ready`, and `headers` have left in a row.
    fn turn(&self, headers: &mut u8, ready: u8, priority: u8) -> u8 {
        let lower = ready & !(u8::MAX << priority);
        if self.yields(headers, lower, priority) { highest(lower) } else { priority }
    }

    /// Whether `priority`, which goes first of those that are ready, has to let one of `lower` pass, as the headers'
    /// has to from time to time.
    fn yields(&self, headers: &mut u8, lower: u8, priority: u8) -> bool {
        if priority > self.header_priority {
            return false;
        }
        let waits = priority == self.header_priority && lower != 0 && self.headers_per_packet > 0;
        let yields = waits && *headers >= self.headers_per_packet;
        *headers = if waits && !yields { *headers + 1 } else { 0 };
        yields
    }
}

/// The turns of priorities that have shares of the bandwidth.
#[derive(Clone, Debug)]
struct Sharing {
    quanta: Quanta,
    /// By port.
    turns: Vec<Turns>,
}

impl Sharing {
    /// Whose turn it is of those that are `ready`, at port `place`: the highest of those that have no share, but for the turns of
    /// [`Trim::headers_per_packet`], and then those that have.
    #[inline(never)]
    fn turn(&mut self, trim: Option<(&Cuts, &mut u8)>, place: u32, ready: u8) -> u8 {
        let shared = ready & self.quanta.priorities();
        let mut strict = ready & !shared;
        if strict != 0 {
            let first = highest(strict);
            let lower = strict & !(u8::MAX << first);
            if trim.is_none_or(|(trim, headers)| !trim.yields(headers, lower | shared, first)) {
                return first;
            }
            strict = lower;
        } else if let Some((_, headers)) = trim {
            *headers = 0;
        }
        match strict {
            0 => self.turns[place as usize].next(&self.quanta, shared),
            _ => highest(strict),
        }
    }

    /// A frame of `octets` leaves port `place` by `priority`; whether `more` wait there.
    #[inline(never)]
    fn sent(&mut self, place: u32, priority: u8, octets: u32, more: bool) {
        if self.quanta.priorities() & 1 << priority != 0 {
            let turns = &mut self.turns[place as usize];
            turns.sent(priority, octets);
            if !more {
                turns.end(priority);
            }
        }
    }
}

/// The highest priority of a set that has one.
#[inline(always)]
fn highest(set: u8) -> u8 {
    7 - set.leading_zeros().min(7) as u8
}

/// `share` of `octets`; an α above one may exceed 32 bits, hence 64.
#[inline(always)]
const fn part(octets: u32, share: u64) -> u64 {
    (octets as u64 * share) >> SHARE_BITS
}

fn share_of(alpha: Ratio) -> u64 {
    alpha.fixed(16).min(u64::from(u32::MAX))
}

impl Switch {
    /// A switch with the ports `first..first + links.len()` of `ports`, which it sets up.
    ///
    /// # Errors
    /// When the configuration makes no sense or the buffer is too small for the headroom.
    pub fn new<L>(
        config: &SwitchConfig,
        ports: &mut [Port<L>],
        first: u32,
        links: &[LinkSpec],
        random: Random,
    ) -> Result<Self, ConfigError> {
        let buffer =
            u32::try_from(config.buffer.0).map_err(|_| ConfigError::TooLarge { buffer: config.buffer.0 })?;
        if let Some(trim) = config.trim.filter(|trim| trim.header_priority > 7) {
            return Err(ConfigError::Priority(trim.header_priority));
        }
        if let (Some(Trim { header_priority, .. }), Some(shares)) = (config.trim, config.ets)
            && shares.of(header_priority) > 0
        {
            return Err(ConfigError::SharedHeaders(header_priority));
        }
        let own = &mut ports[first as usize..][..links.len()];
        let set_aside = config.set_aside(links);
        let (mut lossless, mut reserve, mut resume, mut pfc_share) = (0, 0, 0, 0);
        if let Some(pfc) = &config.pfc {
            lossless = pfc.classes;
            pfc_share = share_of(pfc.alpha);
            let too_small = |needed| ConfigError::Buffer { needed, buffer: config.buffer.0 };
            reserve = u32::try_from(pfc.reserve.0).map_err(|_| too_small(pfc.reserve.0))?;
            resume = u32::try_from(pfc.resume.0).unwrap_or(u32::MAX);
            for (port, &link) in own.iter_mut().zip(links) {
                port.doublings = pfc.doublings(link.rate);
                let headroom = pfc.headroom.octets(link, config.max_frame);
                port.headroom = u32::try_from(headroom).map_err(|_| too_small(headroom))?;
            }
        }
        let free = u64::from(buffer).checked_sub(set_aside).filter(|&free| free > 0);
        let free = free.ok_or(ConfigError::Buffer { needed: set_aside, buffer: config.buffer.0 })?;
        let mut switch = Self {
            free: u32::try_from(free).unwrap_or(buffer),
            used: 0,
            peak: 0,
            lossless,
            mark_arrivals: config.marking == Marking::Arrival,
            plain: config.trim.is_none() && config.queues != Buffering::PerFlow && config.ets.is_none(),
            pfc_share,
            share: share_of(config.alpha),
            resume,
            reserve,
            first_port: first,
            random,
            red: None,
            more_reds: Vec::new(),
            counters: alloc::vec![Counters::default(); links.len()],
            headers: alloc::vec![0; if config.trim.is_some() { links.len() } else { 0 }],
            of_priorities: Vec::new(),
            far: alloc::vec![[Queue::EMPTY; PRIORITIES]; links.len()],
            trim: config.trim.map(|trim| Cuts::new(&trim, config.max_frame)),
            flows: (config.queues == Buffering::PerFlow).then(FlowQueues::default),
            ets: config.ets.map(|shares| Sharing {
                quanta: Quanta::new(&shares, config.max_frame),
                turns: alloc::vec![Turns::default(); links.len()],
            }),
        };
        for (port, link) in own.iter_mut().zip(links) {
            switch.set_marking(port, config.marking_at(link.rate))?;
        }
        Ok(switch)
    }

    /// Octets in the buffer.
    pub const fn used(&self) -> u32 {
        self.used
    }

    /// The most octets that were ever in the buffer.
    pub const fn peak(&self) -> u32 {
        self.peak
    }

    /// Octets of the shared buffer that are free.
    pub const fn free(&self) -> u32 {
        self.free
    }

    /// Bit p: priority p is lossless.
    #[inline]
    pub const fn lossless(&self) -> u8 {
        self.lossless
    }

    /// What `port` has counted.
    pub fn counters(&self, port: u32) -> &Counters {
        &self.counters[(port - self.first_port) as usize]
    }

    /// Octets of `priority` that wait for `port`.
    pub fn queued<L>(&self, ports: &[Port<L>], port: u32, priority: u8) -> u32 {
        self.look(ports, port, priority).octets
    }

    /// The most octets of `priority` that ever waited for `port`.
    pub fn queue_peak<L>(&self, ports: &[Port<L>], port: u32, priority: u8) -> u32 {
        self.look(ports, port, priority).peak
    }

    /// Octets of `priority` in the buffer that came in by `port` and are held against it by PFC.
    pub fn held<L>(&self, ports: &[Port<L>], port: u32, priority: u8) -> u32 {
        let queue = self.look(ports, port, priority);
        queue.held + queue.headroom
    }

    fn look<'a, L>(&'a self, ports: &'a [Port<L>], port: u32, priority: u8) -> &'a Queue {
        if priority == NEAR {
            return &ports[port as usize].near;
        }
        &self.far[(port - self.first_port) as usize][usize::from(priority & 7)]
    }

    #[inline(always)]
    fn queue<'a, L>(&'a mut self, ports: &'a mut [Port<L>], port: u32, priority: u8) -> &'a mut Queue {
        ports[port as usize].queue(&mut self.far, port - self.first_port, priority)
    }

    /// Octets that wait in the queue which a packet for `egress` would join: that of its priority, or of its flow where each has its
    /// own. Whether the packet is dropped, trimmed or marked is a matter of these.
    #[inline(always)]
    fn ahead<L, F: Frames>(&mut self, ports: &mut [Port<L>], frames: &F, egress: u32, handle: u32) -> u32 {
        let priority = frames.priority(handle);
        match if self.plain { None } else { self.flows.as_ref() } {
            None => self.queue(ports, egress, priority).octets,
            Some(flows) => flows.octets(egress, priority, frames.flow(handle)),
        }
    }

    fn count(&mut self, port: u32) -> &mut Counters {
        &mut self.counters[(port - self.first_port) as usize]
    }

    /// A packet has arrived, whole, and has to wait for `egress`.
    #[inline]
    pub fn admit<L, F: Frames>(
        &mut self,
        ports: &mut [Port<L>],
        frames: &mut F,
        egress: u32,
        handle: u32,
    ) -> Admission {
        if !self.plain
            && let Some(trim) = self.trim
        {
            let priority = frames.priority(handle);
            if priority == trim.header_priority {
                return self.admit_header(ports, frames, egress, handle, trim);
            }
            let waits = u64::from(self.ahead(ports, frames, egress, handle));
            let full = waits + u64::from(frames.octets(handle)) > trim.threshold;
            if full && self.lossless & (1 << priority) == 0 && !frames.stays_whole(handle) {
                return self.admit_trimmed(ports, frames, egress, handle, trim);
            }
        }
        self.admit_whole(ports, frames, egress, handle)
    }

    #[inline]
    fn admit_whole<L, F: Frames>(
        &mut self,
        ports: &mut [Port<L>],
        frames: &mut F,
        egress: u32,
        handle: u32,
    ) -> Admission {
        let priority = frames.priority(handle);
        let octets = frames.octets(handle);
        let mut pause = false;
        if self.lossless & (1 << priority) != 0 {
            let ingress = frames.ingress(handle);
            match self.charge_lossless(ports, ingress, priority, octets) {
                Some(now) => pause = now,
                None => return self.drop_for_headroom(ingress, priority, octets),
            }
        } else {
            let waits = self.ahead(ports, frames, egress, handle);
            if octets > self.free || u64::from(waits) + u64::from(octets) > part(self.free, self.share) {
                return self.drop_for_buffer(egress, priority, octets);
            }
            self.free -= octets;
        }
        self.used += octets;
        self.peak = self.peak.max(self.used);

        if self.mark_arrivals {
            let red = ports[egress as usize].red;
            let before = self.ahead(ports, frames, egress, handle);
            self.mark(red, frames, egress, handle, before);
        }
        let port = &mut ports[egress as usize];
        port.backlog |= 1 << priority;
        let queue = port.queue(&mut self.far, egress - self.first_port, priority);
        queue.octets += octets;
        queue.peak = queue.peak.max(queue.octets);
        match if self.plain { None } else { self.flows.as_mut() } {
            None => queue.append(frames, handle),
            Some(flows) => flows.enqueue(frames, egress, priority, handle),
        }
        Admission { outcome: Outcome::Queued, pause }
    }

    /// Charges a lossless packet to the account of its ingress port: to reserve and shared buffer while its peer may
    /// send, and to the headroom once it has been told to pause. Whether to tell it now; `None` for no room.
    #[inline]
    fn charge_lossless<L>(
        &mut self,
        ports: &mut [Port<L>],
        ingress: u32,
        priority: u8,
        octets: u32,
    ) -> Option<bool> {
        let port = &mut ports[ingress as usize];
        let paused = port.xoff & (1 << priority) != 0;
        let (room, share) = (port.headroom, self.pfc_share << port.doublings);
        let account = port.queue(&mut self.far, ingress - self.first_port, priority);
        let shared = account.held.saturating_sub(self.reserve);
        let more = (account.held + octets).saturating_sub(self.reserve) - shared;
        let over = paused && u64::from(shared) >= part(self.free, share);
        if !over && more <= self.free {
            account.held += octets;
            self.free -= more;
        } else if account.headroom + octets <= room {
            account.headroom += octets;
        } else {
            return None;
        }
        if paused {
            return Some(false);
        }
        let shared = account.held.saturating_sub(self.reserve);
        let full = shared > 0 && u64::from(shared) >= part(self.free, share);
        let pause = account.headroom > 0 || full;
        port.xoff |= u8::from(pause) << priority;
        Some(pause)
    }

    #[cold]
    fn drop_for_buffer(&mut self, egress: u32, priority: u8, octets: u32) -> Admission {
        self.count_of(egress, priority, |of| of.dropped += 1);
        let counters = self.count(egress);
        counters.dropped += 1;
        counters.dropped_octets += u64::from(octets);
        Admission::DROPPED
    }

    #[cold]
    fn drop_for_headroom(&mut self, ingress: u32, priority: u8, octets: u32) -> Admission {
        self.count_of(ingress, priority, |of| of.dropped += 1);
        let counters = self.count(ingress);
        counters.headroom_dropped += 1;
        counters.dropped_octets += u64::from(octets);
        Admission::DROPPED
    }

    /// Admits the header of the arriving packet, or of the queue's last one, whose place the arriving one takes. An
    /// acknowledgement is a header as it is: it goes with the others.
    #[inline(never)]
    fn admit_trimmed<L, F: Frames>(
        &mut self,
        ports: &mut [Port<L>],
        frames: &mut F,
        egress: u32,
        handle: u32,
        trim: Cuts,
    ) -> Admission {
        let priority = frames.priority(handle);
        let port = &mut ports[egress as usize];
        let queue = port.queue(&mut self.far, egress - self.first_port, priority);
        let one_queue = self.flows.is_none() && queue.head != NONE;
        if trim.random_tail && one_queue && self.random.below(2) == 0 {
            let (last, arriving) = (frames.octets(queue.tail), frames.octets(handle));
            if arriving <= self.free + last && !frames.stays_whole(queue.tail) {
                frames.swap(handle, queue.tail);
                queue.octets = queue.octets - last + arriving;
                queue.peak = queue.peak.max(queue.octets);
                self.free = self.free + last - arriving;
                self.used = self.used - last + arriving;
                self.peak = self.peak.max(self.used);
            }
        }
        let octets = frames.octets(handle);
        let cut = frames.trim(handle, trim.header_priority);
        let counters = self.count(egress);
        counters.trimmed += u64::from(cut);
        counters.trimmed_octets += u64::from(octets - frames.octets(handle));
        let admission = self.admit_header(ports, frames, egress, handle, trim);
        match admission.outcome {
            Outcome::Queued if cut => Admission { outcome: Outcome::Trimmed, ..admission },
            _ => admission,
        }
    }

    /// Admits what travels on the priority of headers, or sends it back where there is no room.
    fn admit_header<L, F: Frames>(
        &mut self,
        ports: &mut [Port<L>],
        frames: &mut F,
        egress: u32,
        handle: u32,
        trim: Cuts,
    ) -> Admission {
        let waits = u64::from(self.ahead(ports, frames, egress, handle));
        let octets = frames.octets(handle);
        let full = waits + u64::from(octets) > trim.headers;
        if !full || self.lossless & (1 << trim.header_priority) != 0 {
            return self.admit_whole(ports, frames, egress, handle);
        }
        if trim.return_to_sender && frames.turn_back(handle) {
            self.count(egress).returned += 1;
            return Admission::RETURNED;
        }
        self.drop_for_buffer(egress, frames.priority(handle), octets)
    }

    /// The packet to send from `egress` now: the first of the highest priority that waits and is in `open` (bit p:
    /// the peer has not paused priority p), but for the turns of [`Trim::headers_per_packet`] and of
    /// [`SwitchConfig::ets`].
    #[inline]
    pub fn dequeue<L, F: Frames>(
        &mut self,
        ports: &mut [Port<L>],
        frames: &mut F,
        egress: u32,
        open: u8,
    ) -> Option<Departure> {
        let port = &mut ports[egress as usize];
        let ready = port.backlog & open;
        if ready == 0 {
            return None;
        }
        let mut priority = highest(ready);
        if !self.plain {
            let place = egress - self.first_port;
            let trim = self.trim.as_ref().zip(self.headers.get_mut(place as usize));
            match (trim, &mut self.ets) {
                (None, None) => {}
                (Some((trim, headers)), None) => priority = trim.turn(headers, ready, priority),
                (trim, Some(ets)) => priority = ets.turn(trim, place, ready),
            }
        }
        let red = port.red;
        let queue = port.queue(&mut self.far, egress - self.first_port, priority);
        let Taken { handle, behind, more } = match if self.plain { None } else { self.flows.as_mut() } {
            None => {
                let handle = queue.take(frames);
                Taken { handle, behind: queue.octets - frames.octets(handle), more: queue.head != NONE }
            }
            Some(flows) => flows.take(frames, egress, priority)?,
        };
        let octets = frames.octets(handle);
        queue.octets -= octets;
        port.backlog &= !(u8::from(!more) << priority);
        if !self.plain
            && let Some(ets) = &mut self.ets
        {
            ets.sent(egress - self.first_port, priority, octets, more);
        }
        if !self.mark_arrivals {
            self.mark(red, frames, egress, handle, behind);
        }
        self.used -= octets;
        let resume = if self.lossless & (1 << priority) != 0 {
            let ingress = frames.ingress(handle);
            self.release_lossless(ports, ingress, priority, octets).then_some(ingress)
        } else {
            self.free += octets;
            None
        };
        Some(Departure { handle, priority, resume, behind })
    }

    /// Forgets everything, as a switch does that loses its power: `lost` is told of each packet that it held, which the
    /// caller ends. What it has counted stays, and its peers are not told that they may send again.
    pub fn clear<L, F: Frames>(&mut self, ports: &mut [Port<L>], frames: &mut F, mut lost: impl FnMut(u32)) {
        for place in (self.first_port..).take(self.counters.len()) {
            // What is lost is not marked.
            let red = core::mem::take(&mut ports[place as usize].red);
            while let Some(departure) = self.dequeue(ports, frames, place, u8::MAX) {
                lost(departure.handle);
            }
            ports[place as usize].red = red;
        }
        self.headers.fill(0);
        if let Some(ets) = &mut self.ets {
            ets.turns.fill(Turns::default());
        }
        // The last packet of an account has let its peer go on.
        debug_assert_eq!(self.used, 0, "each packet was charged once");
    }

    /// Takes a packet off the account of its ingress port, the headroom first; whether its peer may send again.
    #[inline]
    fn release_lossless<L>(
        &mut self,
        ports: &mut [Port<L>],
        ingress: u32,
        priority: u8,
        octets: u32,
    ) -> bool {
        let port = &mut ports[ingress as usize];
        let share = self.pfc_share << port.doublings;
        let account = port.queue(&mut self.far, ingress - self.first_port, priority);
        let of_headroom = account.headroom.min(octets);
        account.headroom -= of_headroom;
        let before = account.held.saturating_sub(self.reserve);
        account.held -= octets - of_headroom;
        let shared = account.held.saturating_sub(self.reserve);
        self.free += before - shared;
        let (held, headroom) = (account.held, account.headroom);
        if port.xoff & (1 << priority) == 0 || headroom > 0 {
            return false;
        }
        let threshold = u64::from(self.reserve) + part(self.free, share);
        let resume = held == 0 || u64::from(held) + u64::from(self.resume) <= threshold;
        port.xoff &= !(u8::from(resume) << priority);
        resume
    }

    #[inline]
    fn mark<F: Frames>(&mut self, red: u8, frames: &mut F, egress: u32, handle: u32, octets: u32) {
        let red = match red {
            0 => return,
            1 => self.red.as_ref(),
            more => self.more_reds.get(usize::from(more) - 2),
        };
        let Some(red) = red else { return };
        if u64::from(octets) > red.kmin.0 && frames.is_ect(handle) && red.marks(octets, &mut self.random) {
            frames.mark(handle);
            self.count(egress).marked += 1;
            self.count_of(egress, frames.priority(handle), |of| of.marked += 1);
        }
    }

    /// Calls `visit` with each packet of `priority` that waits for `egress`; for diagnosis, not for each packet.
    pub fn for_each_waiting<L, F: Frames>(
        &self,
        ports: &[Port<L>],
        frames: &F,
        egress: u32,
        priority: u8,
        mut visit: impl FnMut(u32),
    ) {
        let mut follow = |first: u32| {
            let mut handle = first;
            while handle != NONE {
                visit(handle);
                handle = frames.next(handle);
            }
        };
        match &self.flows {
            Some(flows) => flows.firsts(egress, priority).for_each(&mut follow),
            None => follow(self.look(ports, egress, priority).head),
        }
    }
}

#[cfg(test)]
mod tests;
