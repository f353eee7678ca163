//! The bridge, without a clock or a socket: it is told what comes in and what time it is, and says what goes out.

use super::frame::{FRAME_MAX, Store, Told, counted};
use super::stations::{Stations, is_reserved};
use super::{BridgeConfig, BridgeError, Classes, Counts, Link, Report, Telemetry};
use roci_switch::config::{LinkSpec, PAUSE_FRAME};
use roci_switch::port::{Frames as _, PRIORITIES, Port};
use roci_switch::switch::{Outcome, Switch};
use roci_switch::{Quanta, Turns};
use roci_units::{BitsPerSec, Bytes, Instant, Random, Ratio, Span};
use roci_wire::ethernet::{Mac, WIRE_OVERHEAD};
use roci_wire::layout::int::IntHop;
use roci_wire::pause::Pause;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The most that a PFC frame can ask for.
const QUANTA: u16 = u16::MAX;

/// The ports that a bridge may have.
const PORTS: std::ops::RangeInclusive<usize> = 2..=64;

/// What happens at an instant, in the order of their numbers where it is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The host hands a frame to its NIC.
    Hand(u32),
    /// The host's link to the switch is free.
    Idle,
    /// A frame is in the switch.
    Arrive(u32),
    /// The switch's link to the host is free.
    Free,
    /// A frame is at the host.
    Deliver(u32),
    /// The host learns that a priority is to pause, or to go on.
    Pause(u8, bool),
    /// A pause that lasts is asked for again, before its time is over.
    Again(u8),
}

/// One port, besides what the switch keeps of it.
#[derive(Clone, Debug)]
struct Side {
    link: Link,
    /// What waits in the host's NIC.
    waiting: [VecDeque<u32>; PRIORITIES],
    waiting_octets: u64,
    /// Whose turn it is of those that have shares.
    turns: Turns,
    /// Bit p: the NIC has paused priority p, and since when.
    paused: u8,
    since: [Instant; PRIORITIES],
    /// Bit p: a pause of priority p will be asked for again, so much later.
    again: u8,
    renewal: Span,
    host_sends: bool,
    /// Until when the switch's link is taken.
    until: Instant,
    switch_sends: bool,
    /// Octet times of frames that the switch has begun to send there.
    begun: u64,
    counts: Counts,
}

impl Side {
    fn span(&self, octets: u32) -> Span {
        self.link.rate.time_for(u64::from(octets + WIRE_OVERHEAD))
    }
}

/// A switch with hosts at its links.
///
/// ```
/// use roci_endpoint::bridge::{Bridge, BridgeConfig, Link};
/// use roci_units::{BitsPerSec, Instant, Span};
///
/// let link = Link { rate: BitsPerSec::from_gbps(1), delay: Span::from_micros(5), pause_frames: false };
/// let mut bridge = Bridge::new(&BridgeConfig::default(), &[link; 2])?;
/// let mut frame = [0; 60];
/// frame[..6].copy_from_slice(&[0xff; 6]); // to all
/// bridge.send(0, &frame, Instant::ZERO);
/// // 84 octet times on each link, and twice the delay.
/// assert_eq!(bridge.next_event(), Some(Instant::ZERO + Span::from_nanos(672)));
/// let mut arrived = Vec::new();
/// bridge.advance(Instant::ZERO + Span::from_nanos(11_344), |port, _, _| arrived.push(port));
/// assert_eq!(arrived, [1]);
/// # Ok::<(), roci_endpoint::bridge::BridgeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bridge {
    switch: Switch,
    ports: Vec<Port<()>>,
    sides: Vec<Side>,
    count: u32,
    frames: Store,
    stations: Stations,
    events: BinaryHeap<Reverse<(Instant, u64, u32, Event)>>,
    serial: u64,
    classes: Option<Classes>,
    loss: Ratio,
    telemetry: Option<Telemetry>,
    nic_buffer: u64,
    /// What a turn of a NIC's priorities holds, where they have shares.
    quanta: Option<Quanta>,
    random: Random,
}

impl Bridge {
    /// A bridge with these links.
    ///
    /// # Errors
    /// When there are too few or too many of them, one has no rate, or the switch's buffer makes no sense.
    pub fn new(config: &BridgeConfig, links: &[Link]) -> Result<Self, BridgeError> {
        if !PORTS.contains(&links.len()) {
            return Err(BridgeError::Ports(links.len()));
        }
        if let Some(port) = links.iter().position(|link| link.rate.0 == 0) {
            return Err(BridgeError::Rate(port));
        }
        if config.switch.trim.is_some() {
            return Err(BridgeError::Trim);
        }
        let mut ports: Vec<Port<()>> = links.iter().map(|_| Port::new(())).collect();
        let specs: Vec<LinkSpec> =
            links.iter().map(|link| LinkSpec { rate: link.rate, delay: link.delay }).collect();
        let switch = Switch::new(&config.switch, &mut ports, 0, &specs, Random::new(config.seed, 0))
            .map_err(BridgeError::Switch)?;
        let side = |&link: &Link| Side {
            link,
            waiting: Default::default(),
            waiting_octets: 0,
            turns: Turns::default(),
            paused: 0,
            since: [Instant::ZERO; PRIORITIES],
            again: 0,
            renewal: renewal(link.rate),
            host_sends: false,
            until: Instant::ZERO,
            switch_sends: false,
            begun: 0,
            counts: Counts::default(),
        };
        Ok(Self {
            switch,
            ports,
            sides: links.iter().map(side).collect(),
            count: u32::try_from(links.len()).unwrap_or(u32::MAX),
            frames: Store::default(),
            stations: Stations::default(),
            events: BinaryHeap::new(),
            serial: 0,
            classes: config.classes,
            loss: config.loss,
            telemetry: config.telemetry,
            nic_buffer: config.nic_buffer,
            quanta: config.nic_ets.as_ref().map(|shares| Quanta::new(shares, config.switch.max_frame)),
            random: Random::new(config.seed, 1),
        })
    }

    /// The device at `port` has this speed, whatever the link is emulated to have: PFC frames tell its host for how many of its
    /// own bits' times to be silent.
    pub fn set_speed(&mut self, port: u32, speed: BitsPerSec) {
        let side = &mut self.sides[port as usize];
        side.renewal = renewal(speed.max(side.link.rate));
    }

    /// Whether the NIC at `port` takes another frame from its host.
    pub fn takes(&self, port: u32) -> bool {
        self.sides[port as usize].waiting_octets < self.nic_buffer
    }

    /// The host at `port` hands `frame` to its NIC, without frame check sequence, at an instant that is not before the last one told to
    /// [`Bridge::advance`], nor before the one that it handed over another.
    pub fn send(&mut self, port: u32, frame: &[u8], at: Instant) {
        let side = &mut self.sides[port as usize];
        let told = Told::of(frame, self.classes).filter(|_| frame.len() <= FRAME_MAX);
        let Some(told) = told else {
            side.counts.refused += 1;
            return;
        };
        let octets = u64::from(counted(frame));
        side.counts.received += 1;
        side.counts.received_octets += octets;
        let handle = self.frames.put(frame, told, port);
        side.waiting_octets += octets;
        if self.next_event().is_some_and(|next| next < at) {
            return self.at(at, port, Event::Hand(handle));
        }
        self.wait(port, handle, at);
    }

    /// The host at `port` has handed out what is no frame.
    pub(super) fn refuse(&mut self, port: u32) {
        self.sides[port as usize].counts.refused += 1;
    }

    /// When something happens next.
    pub fn next_event(&self) -> Option<Instant> {
        self.events.peek().map(|Reverse((at, ..))| *at)
    }

    /// Lets all happen that happens up to `now`: `deliver` has what reaches hosts, by port, and when
    /// it does, in the order of time.
    pub fn advance(&mut self, now: Instant, mut deliver: impl FnMut(u32, &[u8], Instant)) {
        while let Some(&Reverse((at, _, port, event))) = self.events.peek()
            && at <= now
        {
            self.events.pop();
            match event {
                Event::Hand(handle) => self.wait(port, handle, at),
                Event::Idle => {
                    self.sides[port as usize].host_sends = false;
                    self.host_sends(port, at);
                }
                Event::Arrive(handle) => self.arrive(port, handle, at),
                Event::Free => {
                    self.sides[port as usize].switch_sends = false;
                    self.switch_sends(port, at);
                }
                Event::Deliver(handle) => {
                    let counts = &mut self.sides[port as usize].counts;
                    counts.sent += 1;
                    counts.sent_octets += u64::from(counted(self.frames.frame(handle)));
                    deliver(port, self.frames.frame(handle), at);
                    self.frames.free(handle);
                }
                Event::Pause(priority, on) => {
                    if self.sides[port as usize].link.pause_frames {
                        deliver(port, &pause_frame(priority, if on { QUANTA } else { 0 }), at);
                    }
                    self.pause(port, priority, on, at);
                }
                Event::Again(priority) => {
                    self.sides[port as usize].again &= !(1 << priority);
                    if self.sides[port as usize].paused >> priority & 1 != 0 {
                        deliver(port, &pause_frame(priority, QUANTA), at);
                        self.ask_again(port, priority, at);
                    }
                }
            }
        }
    }

    /// What has been counted up to `now`.
    pub fn report(&self, now: Instant) -> Report {
        let of = |(port, side): (u32, &Side)| {
            let counters = self.switch.counters(port);
            let since = |priority: usize| {
                let is_paused = side.paused >> priority & 1 != 0;
                if is_paused { now.since(side.since[priority]) } else { Span::ZERO }
            };
            let peaks = (0..8).map(|priority| self.switch.queue_peak(&self.ports, port, priority).into());
            let queued = |priority| u64::from(self.switch.queued(&self.ports, port, priority));
            Counts {
                queued: (0..8).map(queued).sum(),
                dropped: counters.dropped + counters.headroom_dropped,
                marked: counters.marked,
                peak: peaks.max().unwrap_or(0),
                paused: (0..PRIORITIES).map(since).fold(side.counts.paused, |sum, span| sum + span),
                ..side.counts
            }
        };
        Report { ports: (0..).zip(&self.sides).map(of).collect(), peak: u64::from(self.switch.peak()) }
    }

    fn at(&mut self, at: Instant, port: u32, event: Event) {
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, port, event)));
    }

    /// A frame waits in the NIC at `port`.
    fn wait(&mut self, port: u32, handle: u32, now: Instant) {
        let place = usize::from(self.frames.told(handle).priority & 7);
        self.sides[port as usize].waiting[place].push_back(handle);
        self.host_sends(port, now);
    }

    /// The NIC at `port` begins the next frame, if its link is free and one may leave.
    fn host_sends(&mut self, port: u32, now: Instant) {
        let side = &mut self.sides[port as usize];
        if side.host_sends {
            return;
        }
        let may = |priority: &u8| {
            side.paused >> priority & 1 == 0 && !side.waiting[usize::from(*priority)].is_empty()
        };
        let Some(mut priority) = (0..8).rev().find(may) else { return };
        let mut is_shared = false;
        if let Some(quanta) = &self.quanta {
            let ready = (0..=priority).filter(may).fold(0_u8, |ready, priority| ready | 1 << priority);
            let strict = ready & !quanta.priorities();
            is_shared = strict == 0;
            priority = if is_shared {
                side.turns.next(quanta, ready)
            } else {
                (0..=priority).rev().find(|priority| strict >> priority & 1 != 0).unwrap_or(priority)
            };
        }
        let Some(handle) = side.waiting[usize::from(priority)].pop_front() else { return };
        let octets = counted(self.frames.frame(handle));
        if is_shared {
            side.turns.sent(priority, octets);
        }
        side.waiting_octets -= u64::from(octets);
        side.host_sends = true;
        let (idle, delay) = (now + side.span(octets), side.link.delay);
        self.at(idle, port, Event::Idle);
        self.at(idle + delay, port, Event::Arrive(handle));
    }

    fn arrive(&mut self, port: u32, handle: u32, now: Instant) {
        let told = self.frames.told(handle);
        if self.loss.numerator() != 0 && self.random.chance(self.loss) {
            self.sides[port as usize].counts.lost += 1;
            return self.frames.free(handle);
        }
        self.stations.learn(told.source, port, now);
        if is_reserved(told.destination) {
            return self.frames.free(handle);
        }
        match self.stations.port(told.destination, now) {
            Some(egress) if egress == port => self.frames.free(handle),
            Some(egress) => self.forward(egress, handle, now),
            None => {
                for egress in (0..self.count).filter(|&egress| egress != port) {
                    let copy = self.frames.copy(handle);
                    self.forward(egress, copy, now);
                }
                self.frames.free(handle);
            }
        }
    }

    fn forward(&mut self, egress: u32, handle: u32, now: Instant) {
        let ingress = self.frames.ingress(handle);
        if !self.sides[egress as usize].switch_sends && self.ports[egress as usize].backlog() == 0 {
            return self.transmit(egress, handle, 0, now);
        }
        let priority = self.frames.told(handle).priority;
        let admission = self.switch.admit(&mut self.ports, &mut self.frames, egress, handle);
        match admission.outcome {
            Outcome::Queued | Outcome::Trimmed => {}
            Outcome::Dropped | Outcome::Returned => self.frames.free(handle),
        }
        if admission.pause {
            self.tell(ingress, priority, true, now);
        }
        self.switch_sends(egress, now);
    }

    /// The switch begins the next frame to `port`, if the link is free.
    fn switch_sends(&mut self, port: u32, now: Instant) {
        if self.sides[port as usize].switch_sends {
            return;
        }
        let departure = self.switch.dequeue(&mut self.ports, &mut self.frames, port, u8::MAX);
        let Some(departure) = departure else { return };
        if let Some(ingress) = departure.resume {
            self.tell(ingress, departure.priority, false, now);
        }
        self.transmit(port, departure.handle, departure.behind, now);
    }

    /// Begins a frame, with so many octets waiting behind it.
    fn transmit(&mut self, port: u32, handle: u32, behind: u32, now: Instant) {
        let side = &mut self.sides[port as usize];
        let begins = now.max(side.until);
        if let Some(Telemetry { dscp, number }) = self.telemetry {
            let hop = IntHop::new(side.link.rate, begins, Bytes(side.begun), Bytes(behind.into()));
            self.frames.stamp(handle, dscp, number, hop);
        }
        let octets = counted(self.frames.frame(handle));
        side.begun += u64::from(octets + WIRE_OVERHEAD);
        let free = begins + side.span(octets);
        side.switch_sends = true;
        side.until = free;
        let delay = side.link.delay;
        self.at(free, port, Event::Free);
        self.at(free + delay, port, Event::Deliver(handle));
    }

    /// Tells the NIC at `port`: a PFC frame leaves when the frame before it has, and takes its time.
    fn tell(&mut self, port: u32, priority: u8, on: bool, now: Instant) {
        let side = &mut self.sides[port as usize];
        side.until = now.max(side.until) + side.span(PAUSE_FRAME);
        let at = side.until + side.link.delay;
        self.at(at, port, Event::Pause(priority, on));
    }

    fn pause(&mut self, port: u32, priority: u8, on: bool, now: Instant) {
        let side = &mut self.sides[port as usize];
        let (bit, place) = (1 << priority, usize::from(priority));
        if on && side.paused & bit == 0 {
            side.paused |= bit;
            side.since[place] = now;
            side.counts.pauses += 1;
            if side.link.pause_frames {
                self.ask_again(port, priority, now);
            }
        } else if !on && side.paused & bit != 0 {
            side.paused &= !bit;
            side.counts.paused += now.since(side.since[place]);
            self.host_sends(port, now);
        }
    }

    fn ask_again(&mut self, port: u32, priority: u8, now: Instant) {
        let side = &mut self.sides[port as usize];
        if side.again >> priority & 1 != 0 {
            return;
        }
        side.again |= 1 << priority;
        let at = now + side.renewal;
        self.at(at, port, Event::Again(priority));
    }
}

/// When a pause is asked for again of a host whose bits last as at `speed`: after half its time.
fn renewal(speed: BitsPerSec) -> Span {
    Span::from_ps(Pause::span(QUANTA, speed).as_ps() / 2)
}

/// The address that PFC frames come from: locally administered.
const OWN: Mac = Mac([0x02, 0x72, 0x6f, 0x63, 0x69, 0x00]);

fn pause_frame(priority: u8, quanta: u16) -> [u8; Pause::LEN] {
    let mut times = [0; PRIORITIES];
    times[usize::from(priority)] = quanta;
    Pause { source: OWN, classes: 1 << priority, quanta: times }.emit()
}

#[cfg(test)]
mod tests;
