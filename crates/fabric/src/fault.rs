//! Faults: nodes that stand on one direction of a link and look at each packet that crosses it.
//!
//! Several may stand in line; a packet passes them in the order in which they were given. Each draws from a stream
//! of chance of its own, so one more disturbs no other. PAUSE frames are exempt, but for links that are down.

mod losses;

pub use losses::InSwitch;

use crate::change::Outage;
use crate::graph::NodeId;
use crate::net::{LAPSE, STORM};
use crate::packet::Packet;
use crate::queue::{EventQueue, HORIZON_PS};
use losses::Losses;
use roci_units::{BitErrorRate, BitsPerSec, Instant, Pace, Random, Ratio, Span};
use roci_wire::ethernet::WIRE_OVERHEAD;
use std::collections::VecDeque;
use std::fmt;

/// A fault on one direction of a link, for some time.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultSpec {
    /// The link, by its place in the graph.
    pub link: u32,
    /// The end that sends into it.
    pub from: NodeId,
    /// When it begins.
    pub start: Instant,
    /// When it ends; [`Instant::NEVER`] if it does not.
    pub until: Instant,
    /// What it does.
    pub fault: Fault,
}

/// What a fault does to packets that cross it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// Loses each packet with this probability.
    Loss(Ratio),
    /// Loses packets in bursts (Gilbert 1960, Elliott 1963): a chain of two states, which steps at each packet.
    GilbertElliott {
        /// The probability of going from good to bad.
        to_bad: Ratio,
        /// The probability of going from bad to good.
        to_good: Ratio,
        /// The loss while good.
        loss_good: Ratio,
        /// The loss while bad.
        loss_bad: Ratio,
        /// Those of one way of a link that have the same number go on with each other's state, as a fault does that another one
        /// stood in for.
        chain: u32,
    },
    /// Loses each packet of which a bit is wrong: the frame's check sequence tells.
    BitErrors(BitErrorRate),
    /// Damages each packet with this probability; the receiver's ICRC finds out.
    Corrupt(Ratio),
    /// Sends a second copy at the same time with this probability.
    Duplicate(Ratio),
    /// Holds packets back with this probability, so that later ones overtake them.
    Reorder {
        /// The probability.
        chance: Ratio,
        /// For how long.
        delay: Span,
    },
    /// Holds every packet back by `delay` and an equally distributed part of `jitter`, without changing their order: they follow
    /// each other no sooner than the link's rate lets them, also those that come when it is over.
    Delay {
        /// At least so long.
        delay: Span,
        /// And up to this much more.
        jitter: Span,
    },
    /// The link goes up and down in turn, up first. A packet is lost if the link is down as its transmission begins.
    Flap(Turns),
    /// The link is down: it loses everything.
    Down,
    /// The link runs at this rate, which is not above the one that it is built for. What is being sent as it changes ends as it
    /// began; the switch has its thresholds and its headroom for the other rate.
    Rate(BitsPerSec),
    /// The far end keeps `priority` paused.
    PauseStorm {
        /// The priority.
        priority: u8,
    },
    /// Calls for a CNP to the source of the data packet that lifts the link's load above a threshold.
    ForgedCnp {
        /// The load, preamble and gap included.
        threshold: BitsPerSec,
        /// The time over which it is taken, up to the present.
        window: Span,
        /// The least time between two CNPs.
        cooldown: Span,
    },
}

/// What goes down and comes up again for as long as it is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// When the first of its turns began, up: not after it came into force, and before it where something else was in force
    /// in its place.
    pub began: Instant,
    /// How long it is up.
    pub up: Span,
    /// How long it is down.
    pub down: Span,
}

impl Turns {
    /// The first instant from `time` on at which it is down, in picoseconds.
    pub(crate) fn next_down(&self, time: u64) -> u64 {
        let (turn, up) = (self.turn(time), self.up.as_ps());
        if turn >= up { time } else { time + (up - turn) }
    }

    /// When it comes up, if it is down at `time`.
    pub(crate) fn next_up(&self, time: u64) -> u64 {
        time + (self.up + self.down).as_ps() - self.turn(time)
    }

    /// How much of its turn, up and down, is over at `time`.
    fn turn(&self, time: u64) -> u64 {
        time.saturating_sub(self.began.as_ps()) % (self.up + self.down).as_ps()
    }
}

/// Why a fault makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultError {
    /// No link joins the two nodes.
    NoSuchLink,
    /// A probability above one.
    Probability,
    /// Priorities are 0 to 7.
    Priority,
    /// A flapping link needs times, and a window must have a length.
    Times,
    /// A rate of zero, or above the link's own.
    Rate,
}

impl fmt::Display for FaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSuchLink => "a fault on a link that does not exist",
            Self::Probability => "a probability above 1",
            Self::Priority => "a priority above 7",
            Self::Times => "a time of zero where a length is needed",
            Self::Rate => "a rate of zero or above the link's own",
        })
    }
}

impl Fault {
    fn check(&self) -> Result<(), FaultError> {
        let proper = |ratios: &[Ratio]| ratios.iter().all(|ratio| ratio.is_proper());
        let (probabilities, times) = match *self {
            Self::Loss(p) | Self::Corrupt(p) | Self::Duplicate(p) => (proper(&[p]), true),
            Self::Reorder { chance, .. } => (proper(&[chance]), true),
            Self::GilbertElliott { to_bad, to_good, loss_good, loss_bad, .. } => {
                (proper(&[to_bad, to_good, loss_good, loss_bad]), true)
            }
            Self::Delay { .. } | Self::BitErrors(_) | Self::Down | Self::Rate(_) => (true, true),
            Self::Flap(Turns { up, down, .. }) => (true, !(up + down).is_zero()),
            Self::ForgedCnp { window, .. } => (true, !window.is_zero()),
            Self::PauseStorm { priority } if priority > 7 => return Err(FaultError::Priority),
            Self::PauseStorm { .. } => (true, true),
        };
        match (probabilities, times) {
            (false, _) => Err(FaultError::Probability),
            (_, false) => Err(FaultError::Times),
            _ => Ok(()),
        }
    }
}

/// What the faults on one direction of a link have done.
///
/// Octets in and duplicated are octets out, dropped and corrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounters {
    /// What was sent into the link.
    pub entered: Count,
    /// Copies that were added.
    pub duplicated: Count,
    /// What came out undamaged.
    pub left: Count,
    /// What was lost.
    pub dropped: Count,
    /// What came out damaged.
    pub corrupted: Count,
    /// Packets that were held back and may have been overtaken; part of what came out.
    pub reordered: u64,
    /// CNPs called for.
    pub forged: u64,
}

/// Packets and the octets of their frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Octets of their frames.
    pub octets: u64,
}

impl Count {
    fn add(&mut self, octets: u64) {
        self.packets += 1;
        self.octets += octets;
    }
}

/// A packet that comes out of the faults of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) arrival: u64,
    pub(crate) corrupt: bool,
}

/// A fault where it stands.
#[derive(Debug)]
struct Node {
    fault: Fault,
    /// Its place among the faults of the configuration.
    place: u32,
    start: u64,
    until: u64,
    random: Random,
    /// Gilbert-Elliott: the place of its chain among those of the line, and whether that is in its bad state. Others leave the one
    /// at their place as it is.
    chain: usize,
    bad: bool,
    /// Delay: when the last packet came out, and the pace at which they may follow each other.
    last: u64,
    pace: Pace,
    /// Forger: when packets were sent and their octets, those within the window; their sum; when it may call again.
    window: VecDeque<(u64, u32)>,
    octets: u64,
    ready_at: u64,
}

/// The faults of one direction of a link.
#[derive(Debug, Default)]
struct Line {
    nodes: Vec<Node>,
    /// The chains of Gilbert-Elliott, each with its number, and whether they are in their bad states.
    chains: Vec<(u32, bool)>,
    /// When the switch that sends into it is down, and when the one at its other end is; each with its place among the outages of the
    /// configuration.
    sender: Vec<(Outage, u32)>,
    receiver: Vec<(Outage, u32)>,
    counters: FaultCounters,
    /// When it will be looked whether the link is down, for the sake of who is paused across it.
    look_at: Option<u64>,
    /// What the peer had sent when the link last went down, in octets.
    sent: u64,
    /// Whether nobody looks until something happens ([`Faults::rest`]).
    rests: bool,
}

/// When a frame is sent, in picoseconds.
#[derive(Clone, core::marker::Copy, Debug)]
pub(crate) struct Passage {
    /// Its first octet leaves.
    pub(crate) now: u64,
    /// Its last one has left.
    pub(crate) end: u64,
    /// It is there.
    pub(crate) arrival: u64,
}

impl Line {
    /// The place of the chain of this number.
    fn chain(&mut self, number: u32) -> usize {
        let known = self.chains.iter().position(|chain| chain.0 == number);
        known.unwrap_or_else(|| {
            self.chains.push((number, false));
            self.chains.len() - 1
        })
    }

    /// The outage of a switch that takes what is sent with it: one that sends what has not left it whole, one that receives
    /// what is on its way.
    fn cut_by(&self, passage: Passage) -> Option<u32> {
        let Passage { now, end, arrival } = passage;
        let sender = self.sender.iter().find(|(outage, _)| outage.meets(now, end));
        let cut = sender.or_else(|| self.receiver.iter().find(|(outage, _)| outage.meets(now, arrival)));
        cut.map(|(_, place)| *place)
    }
}

/// A pause storm: its port is the one that sends the PAUSE frames.
#[derive(Clone, Copy, Debug)]
struct Storm {
    /// The port that is paused.
    victim: u32,
    priority: u8,
    raging: bool,
}

/// All faults.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    lines: Vec<Line>,
    /// By port, the place among the lines, or [`NONE`]. It ends with the last port that has one: without faults it is empty.
    of_port: Vec<u32>,
    storms: Vec<Storm>,
    /// Looks at links that are down that are outstanding, also those that an earlier one took the place of.
    looks: u64,
    /// Ports whose links nobody looks at until something happens.
    resting: Vec<u32>,
    /// By port, bits of the priorities that it storms with. It ends with the last port that has stormed.
    storming: Vec<u8>,
    pub(crate) losses: Losses,
    /// Room for what comes out of a link.
    pub(crate) copies: Vec<Copy>,
}

/// No line.
const NONE: u32 = u32::MAX;

/// The entry of `port` in `by_port`, made with those before it where it is not there yet, as `empty`.
fn at_port<T: Clone>(by_port: &mut Vec<T>, port: u32, empty: T) -> &mut T {
    let place = port as usize;
    if by_port.len() <= place {
        by_port.resize(place + 1, empty);
    }
    &mut by_port[place]
}

/// What befell a packet in a link, besides what comes out of it.
pub(crate) struct Crossing {
    /// Whether a forger calls for a CNP.
    pub(crate) forge: bool,
    /// How many of its copies were lost.
    pub(crate) lost: u64,
}

/// What one node does to one copy.
enum Fate {
    Pass,
    Lost,
    Corrupt,
    Twice,
    Until(u64),
    Overtaken(u64),
}

impl Faults {
    /// Puts a fault, with its place among all, on the link of `rate` that `port` sends into, behind those that stand there.
    #[expect(clippy::cast_possible_truncation, reason = "far fewer than 2^31 faults")]
    pub(crate) fn add(
        &mut self,
        port: u32,
        (place, spec): (u32, &FaultSpec),
        rate: BitsPerSec,
        random: Random,
        queue: &mut EventQueue,
    ) -> Result<(), FaultError> {
        spec.fault.check()?;
        if let Fault::PauseStorm { priority } = spec.fault {
            // Two events for each storm: an even handle begins it, the odd one behind it ends it.
            let handle = self.storms.len() as u32 * 2;
            self.storms.push(Storm { victim: port, priority, raging: false });
            queue.push_at(spec.start.as_ps(), STORM, handle);
            queue.push_at(spec.until.as_ps().max(spec.start.as_ps()), STORM, handle + 1);
        }
        let line = self.line(port);
        let chain = if let Fault::GilbertElliott { chain, .. } = spec.fault { line.chain(chain) } else { 0 };
        line.nodes.push(Node {
            fault: spec.fault,
            place,
            start: spec.start.as_ps(),
            until: spec.until.as_ps(),
            random,
            chain,
            bad: false,
            last: 0,
            pace: Pace::new(rate),
            window: VecDeque::new(),
            octets: 0,
            ready_at: 0,
        });
        Ok(())
    }

    /// The faults of the link that `port` sends into, none at first.
    #[expect(clippy::cast_possible_truncation, reason = "no more than ports")]
    fn line(&mut self, port: u32) -> &mut Line {
        let entry = at_port(&mut self.of_port, port, NONE);
        if *entry == NONE {
            *entry = self.lines.len() as u32;
            self.lines.push(Line::default());
        }
        &mut self.lines[*entry as usize]
    }

    /// A switch has an outage, with its place among all: the one that sends into `port`'s link, or the one at its other end.
    pub(crate) fn cut(&mut self, port: u32, outage: (Outage, u32), sends: bool) {
        let line = self.line(port);
        if sends { &mut line.sender } else { &mut line.receiver }.push(outage);
    }

    /// Whether a frame that `port` sends is lost with a switch that fails.
    pub(crate) fn cuts(&self, port: u32, passage: Passage) -> bool {
        self.place(port).is_some_and(|place| self.lines[place].cut_by(passage).is_some())
    }

    /// Whether the switch that sends into `port`'s link is down at some instant of `from..=to`.
    pub(crate) fn is_cut(&self, port: u32, from: u64, to: u64) -> bool {
        let outages = self.place(port).map_or(&[][..], |place| &self.lines[place].sender);
        outages.iter().any(|(outage, _)| outage.meets(from, to))
    }

    /// The first instant from `time` on at which the link that `port` sends into is down, in picoseconds; `u64::MAX` if there
    /// is none.
    pub(crate) fn next_down(&self, port: u32, time: u64) -> u64 {
        let nodes = self.place(port).map_or(&[][..], |place| &self.lines[place].nodes);
        nodes.iter().map(|node| node.next_down(time)).min().unwrap_or(u64::MAX)
    }

    /// When the link that `port` sends into is up again, in picoseconds; `time` if it is not down then, and `u64::MAX` if it
    /// stays down.
    pub(crate) fn next_up(&self, port: u32, time: u64) -> u64 {
        let nodes = self.place(port).map_or(&[][..], |place| &self.lines[place].nodes);
        let mut up = time;
        // Where one fault ends another may begin.
        while let Some(later) = nodes.iter().filter_map(|node| node.down_until(up)).max() {
            up = later;
        }
        up
    }

    /// Has it looked at `time` whether the link that `port` sends into is down, if that is not done before.
    pub(crate) fn look_at(&mut self, port: u32, time: u64, queue: &mut EventQueue) {
        if time >= HORIZON_PS {
            return;
        }
        if let Some(place) = self.place(port) {
            let line = &mut self.lines[place];
            if line.look_at.is_none_or(|at| time < at) {
                line.look_at = Some(time);
                self.looks += 1;
                queue.push_at(time, LAPSE, port);
            }
        }
    }

    /// The link that `port` sends into goes down, and its peer has sent so many octets by now.
    pub(crate) fn note_sent(&mut self, port: u32, octets: u64) {
        if let Some(place) = self.place(port) {
            self.lines[place].sent = octets;
        }
    }

    /// The link that `port` sends into is up again, and its peer has sent so many octets. Where that had nothing to send, and nothing
    /// is under way of `outstanding` events but such looks, it would be the same each time that the link goes down: nobody looks until
    /// something happens, lest a network that stands still never come to rest.
    /// Tells whether that is so.
    pub(crate) fn rest(&mut self, port: u32, sent: u64, outstanding: u64) -> bool {
        let still = outstanding <= self.looks;
        let Some(place) = self.place(port) else { return still };
        let line = &mut self.lines[place];
        let rests = still && line.sent == sent;
        if rests && !std::mem::replace(&mut line.rests, true) {
            self.resting.push(port);
        }
        rests
    }

    /// Whether nobody looks at the link that `port` sends into for now.
    pub(crate) fn rests(&self, port: u32) -> bool {
        !self.resting.is_empty() && self.place(port).is_some_and(|place| self.lines[place].rests)
    }

    /// Whether some links are not looked at though `outstanding` events tell that something happens.
    pub(crate) fn is_roused(&self, outstanding: u64) -> bool {
        !self.resting.is_empty() && outstanding > self.looks
    }

    /// The ports whose links are to be looked at again.
    pub(crate) fn rouse(&mut self) -> Vec<u32> {
        let ports = std::mem::take(&mut self.resting);
        for place in ports.iter().filter_map(|port| self.place(*port)).collect::<Vec<_>>() {
            self.lines[place].rests = false;
        }
        ports
    }

    /// Whether the look at the link that `port` sends into is one that is due `now`, and not one whose place an earlier one took.
    pub(crate) fn take_look(&mut self, port: u32, now: u64) -> bool {
        self.looks -= 1;
        let Some(place) = self.place(port) else { return false };
        self.lines[place].look_at.take_if(|at| *at == now).is_some()
    }

    /// `port`'s link has another rate from now on.
    pub(crate) fn set_rate(&mut self, port: u32, rate: BitsPerSec) {
        if let Some(place) = self.place(port) {
            self.lines[place].nodes.iter_mut().for_each(|node| node.pace = Pace::new(rate));
        }
    }

    pub(crate) fn counters(&self, port: u32) -> Option<&FaultCounters> {
        self.place(port).map(|place| &self.lines[place].counters)
    }

    /// The place among the lines of the link that `port` sends into.
    fn place(&self, port: u32) -> Option<usize> {
        self.of_port.get(port as usize).filter(|place| **place != NONE).map(|place| *place as usize)
    }

    /// Bit p: `port` storms with PAUSE frames of priority p.
    pub(crate) fn storms(&self, port: u32) -> u8 {
        self.storming.get(port as usize).copied().unwrap_or(0)
    }

    /// The port that the storm of an event pauses, and the priority.
    pub(crate) fn storm_at(&self, handle: u32) -> (u32, u8) {
        let storm = &self.storms[handle as usize / 2];
        (storm.victim, storm.priority)
    }

    /// The storm of an event, from the port `from`, begins or ends. Storms may overlap: a priority is let go when the
    /// last of its storms ends.
    pub(crate) fn turn_storm(&mut self, handle: u32, from: u32) {
        let storm = &mut self.storms[handle as usize / 2];
        storm.raging = handle.is_multiple_of(2);
        let victim = storm.victim;
        let raging = self.storms.iter().filter(|storm| storm.victim == victim && storm.raging);
        let bits = raging.fold(0, |bits, storm| bits | 1 << storm.priority);
        *at_port(&mut self.storming, from, 0) = bits;
    }

    /// A packet is sent into `port`'s link, and without faults would arrive so. Adds what comes out to `copies`.
    pub(crate) fn cross(
        &mut self,
        port: u32,
        passage: Passage,
        packet: &Packet,
        copies: &mut Vec<Copy>,
    ) -> Crossing {
        let Passage { now, end, arrival } = passage;
        let Some(place) = self.place(port) else {
            copies.push(Copy { arrival, corrupt: false });
            return Crossing { forge: false, lost: 0 };
        };
        let (line, losses) = (&mut self.lines[place], &mut self.losses);
        let lost_before = line.counters.dropped.packets;
        let octets = u64::from(packet.frame);
        line.counters.entered.add(octets);
        copies.push(Copy { arrival, corrupt: false });
        let mut forge = false;
        for node in line.nodes.iter_mut().filter(|node| node.concerns(now)) {
            forge |= node.calls_for_cnp(now, packet);
            let chain = line.chains.get_mut(node.chain);
            node.bad = chain.as_ref().is_some_and(|chain| chain.1);
            let entered = copies.len();
            let mut kept = 0;
            for at in 0..entered {
                let mut copy = copies[at];
                match node.meet(now, copy.arrival, packet) {
                    Fate::Pass => {}
                    Fate::Lost => {
                        line.counters.dropped.add(octets);
                        losses.by_fault(node.place, octets);
                        continue;
                    }
                    Fate::Corrupt => {
                        if !copy.corrupt {
                            losses.by_fault(node.place, octets);
                        }
                        copy.corrupt = true;
                    }
                    Fate::Twice => {
                        line.counters.duplicated.add(octets);
                        copies.push(copy);
                    }
                    Fate::Until(time) => copy.arrival = time,
                    Fate::Overtaken(time) => {
                        line.counters.reordered += 1;
                        copy.arrival = time;
                    }
                }
                copies[kept] = copy;
                kept += 1;
            }
            copies.drain(kept..entered);
            if let Some(chain) = chain {
                chain.1 = node.bad;
            }
        }
        if !(line.sender.is_empty() && line.receiver.is_empty()) {
            let mut dropped = Count::default();
            copies.retain(|copy| {
                let cut = line.cut_by(Passage { now, end, arrival: copy.arrival });
                if let Some(outage) = cut {
                    dropped.add(octets);
                    losses.by_outage(outage, octets);
                }
                cut.is_none()
            });
            line.counters.dropped.packets += dropped.packets;
            line.counters.dropped.octets += dropped.octets;
        }
        for copy in copies.iter() {
            let counters = &mut line.counters;
            if copy.corrupt { &mut counters.corrupted } else { &mut counters.left }.add(octets);
        }
        line.counters.forged += u64::from(forge);
        Crossing { forge, lost: line.counters.dropped.packets - lost_before }
    }
}

impl Node {
    /// Whether it is in force at `now`, or packets that it has held back are still on their way.
    const fn concerns(&self, now: u64) -> bool {
        self.start <= now && (now < self.until || now < self.last)
    }

    /// The first instant from `time` on at which it has the link down; `u64::MAX` if there is none.
    fn next_down(&self, time: u64) -> u64 {
        let time = time.max(self.start);
        let at = match self.fault {
            Fault::Down => time,
            Fault::Flap(turns) if !turns.down.is_zero() => turns.next_down(time),
            _ => u64::MAX,
        };
        if at < self.until { at } else { u64::MAX }
    }

    /// When it lets the link up again, if it has it down at `time`.
    fn down_until(&self, time: u64) -> Option<u64> {
        let up = match self.fault {
            Fault::Flap(turns) if !turns.up.is_zero() => turns.next_up(time).min(self.until),
            _ => self.until,
        };
        (self.next_down(time) == time && time < u64::MAX).then_some(up)
    }

    fn meet(&mut self, now: u64, arrival: u64, packet: &Packet) -> Fate {
        let random = &mut self.random;
        match self.fault {
            Fault::Loss(p) if random.chance(p) => Fate::Lost,
            Fault::BitErrors(rate) if random.next_u64() >= rate.survival(packet.frame.into()) => Fate::Lost,
            Fault::Corrupt(p) if random.chance(p) => Fate::Corrupt,
            Fault::Duplicate(p) if random.chance(p) => Fate::Twice,
            Fault::Reorder { chance, delay } if random.chance(chance) => {
                Fate::Overtaken(arrival.saturating_add(delay.as_ps()))
            }
            Fault::GilbertElliott { to_bad, to_good, loss_good, loss_bad, .. } => {
                self.bad ^= random.chance(if self.bad { to_good } else { to_bad });
                let lost = random.chance(if self.bad { loss_bad } else { loss_good });
                if lost { Fate::Lost } else { Fate::Pass }
            }
            Fault::Delay { delay, jitter } => {
                let mut held = arrival;
                if now < self.until {
                    let extra = random.below(jitter.as_ps().saturating_add(1).max(1));
                    held = held.saturating_add(delay.as_ps()).saturating_add(extra);
                }
                // A time that is rounded by itself would have a link that is always busy fall behind ever more.
                let behind = self.pace.advance(u32::from(packet.frame) + WIRE_OVERHEAD);
                self.last = held.max(self.last.saturating_add(behind.as_ps()));
                Fate::Until(self.last)
            }
            Fault::Flap(turns) if turns.next_down(now) == now => Fate::Lost,
            Fault::Down => Fate::Lost,
            _ => Fate::Pass,
        }
    }

    /// A forger counts the packet; whether the load over the window now exceeds the threshold, the packet carries
    /// data, and the last call is long enough ago.
    fn calls_for_cnp(&mut self, now: u64, packet: &Packet) -> bool {
        let Fault::ForgedCnp { threshold, window, cooldown } = self.fault else { return false };
        let octets = u32::from(packet.frame) + WIRE_OVERHEAD;
        self.window.push_back((now, octets));
        self.octets += u64::from(octets);
        while let Some(&(sent, octets)) = self.window.front() {
            if sent + window.as_ps() > now {
                break;
            }
            self.window.pop_front();
            self.octets -= u64::from(octets);
        }
        let over = self.octets > threshold.octets_in(window);
        let call = over && packet.header.payload > 0 && now >= self.ready_at;
        if call {
            self.ready_at = now.saturating_add(cooldown.as_ps());
        }
        call
    }
}
