//! Faults: nodes that stand on one direction of a link and look at each packet that crosses it.
//!
//! Several may stand in line; a packet passes them in the order in which they were given. Each draws from a stream
//! of chance of its own, so one more disturbs no other. PAUSE frames are exempt, but for links that are down.

mod losses;
mod node;
mod spec;

pub use losses::InSwitch;
pub use spec::{Fault, FaultError, FaultSpec, Turns};

use crate::change::Outage;
use crate::net::{LAPSE, STORM};
use crate::packet::Packet;
use crate::queue::{EventQueue, HORIZON_PS};
use losses::Losses;
use node::{Fate, Node};
use roci_units::{BitsPerSec, Pace, Random};

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
    /// The place in the configuration of the fault that damaged it first.
    pub(crate) damaged: Option<u32>,
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
        line.nodes.push(Node::new(place, spec, rate, random, chain));
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
            copies.push(Copy { arrival, damaged: None });
            return Crossing { forge: false, lost: 0 };
        };
        let (line, losses) = (&mut self.lines[place], &mut self.losses);
        let lost_before = line.counters.dropped.packets;
        let octets = u64::from(packet.frame);
        line.counters.entered.add(octets);
        copies.push(Copy { arrival, damaged: None });
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
                    Fate::Corrupt => copy.damaged = copy.damaged.or(Some(node.place)),
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
            // What was damaged and then lost has been told as lost.
            if let Some(fault) = copy.damaged {
                losses.by_fault(fault, octets);
                counters.corrupted.add(octets);
            } else {
                counters.left.add(octets);
            }
        }
        line.counters.forged += u64::from(forge);
        Crossing { forge, lost: line.counters.dropped.packets - lost_before }
    }
}
