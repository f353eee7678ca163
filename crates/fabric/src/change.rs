//! What changes in a network while it runs: the rates of links, switches that fail, and the routes around what is down.
//!
//! All of it is known beforehand, so that whether a packet or a PAUSE frame survives is decided as it is sent, and only what
//! stands still, as buffers and tables do, changes by an event. A network in which nothing changes has none of these.

use crate::fault::Turns;
use crate::graph::Graph;
use crate::link::{FAULTY, LinkClass, UNEVEN};
use crate::net::{BuildError, FabricConfig, Net, OUTAGE, RATE, REROUTE};
use crate::packet::{HostId, PacketId};
use crate::queue::{EventQueue, HORIZON_PS};
use crate::routing::{Rates, Routes};
use roci_switch::LinkSpec;
use roci_units::{BitsPerSec, Instant, Pace};
use std::collections::BTreeMap;

/// Something is down for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// What.
    pub part: Part,
    /// From when on.
    pub start: Instant,
    /// Until when; [`Instant::NEVER`] if it does not end.
    pub until: Instant,
    /// Where it is not down all of that time: when it is.
    pub turns: Option<Turns>,
}

/// What may be down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// A link, by its place in the graph, for routes alone: what it loses is a matter of [`Fault`](crate::fault::Fault).
    Link(u32),
    /// A switch, by its place in the graph's list. It loses what it holds and what is on its way to it; what has left it whole
    /// arrives. When it comes up again it has forgotten whom it paused and who paused it, and is told anew.
    Switch(u32),
}

impl Outage {
    /// The first instant from `time` on at which it is down, in picoseconds; `u64::MAX` if there is none.
    fn next_down(&self, time: u64) -> u64 {
        let time = time.max(self.start.as_ps());
        let at = self.turns.map_or(time, |turns| turns.next_down(time));
        if at < self.until.as_ps() { at } else { u64::MAX }
    }

    /// When it is up again, if it is down at `time`.
    fn next_up(&self, time: u64) -> u64 {
        let until = self.until.as_ps();
        self.turns.map_or(until, |turns| turns.next_up(time).min(until))
    }

    /// Whether it is down at some instant of `from..=to`.
    pub(crate) fn meets(&self, from: u64, to: u64) -> bool {
        self.next_down(from) <= to
    }
}

/// A port's rate from some instant on.
#[derive(Clone, Copy, Debug)]
struct RateChange {
    /// In picoseconds.
    at: u64,
    port: u32,
    class: u16,
    rate: BitsPerSec,
}

/// A part that outages are about.
#[derive(Clone, Copy, Debug)]
struct PartState {
    part: Part,
    /// How many outages hold it down.
    down: u32,
    /// When it last went down or came up.
    changed: u64,
    /// Whether routes avoid it.
    avoided: bool,
    /// Whether the switches that have a port there do.
    shut: bool,
}

/// All that changes.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    rates: Vec<RateChange>,
    /// Outages, each with the place of its part and its own among those of the configuration.
    outages: Vec<(Outage, u32, u32)>,
    parts: Vec<PartState>,
    /// Where there are outages, the graph and the routes through all of it.
    home: Option<Box<(Graph, Routes)>>,
    /// How long a part must have been down, or up again, until routes follow, in picoseconds; `None`: they do not.
    detect: Option<u64>,
    /// The same until the switches that have a port there follow.
    detect_own: Option<u64>,
    /// Whether routes are about to be laid anew, in this instant.
    stale: bool,
    /// Where routes go by the rates of links: the rates in kb/s that they know of, by port.
    known_rates: Option<Vec<u64>>,
}

/// The event after the parts' that lays routes anew.
const LAY: u32 = u32::MAX;
/// That at which a changed rate is noticed.
const WEIGH: u32 = u32::MAX - 1;

impl Changes {
    /// The routes where nothing is down, if others may be in force.
    pub(crate) fn home(&self) -> Option<&Routes> {
        self.home.as_ref().map(|home| &home.1)
    }

    /// The routes that avoid what is to be avoided now; `first_ports` are those of the switches.
    fn routes(&self, first_ports: &[u32]) -> Option<Result<Routes, crate::routing::RoutingError>> {
        let (graph, home) = &**self.home.as_ref()?;
        if self.known_rates.is_none() && !self.parts.iter().any(|state| state.avoided || state.shut) {
            return Some(Ok(home.clone()));
        }
        let links_of = |is: fn(&PartState) -> bool| {
            let mut links = vec![false; graph.links.len()];
            for state in self.parts.iter().filter(|state| is(state)) {
                match state.part {
                    Part::Link(link) => links[link as usize] = true,
                    Part::Switch(switch) => {
                        let node = graph.hosts.len() + switch as usize;
                        for (of_part, link) in links.iter_mut().zip(&graph.links) {
                            *of_part |= [link.a, link.b].iter().any(|end| end.0 as usize == node);
                        }
                    }
                }
            }
            links
        };
        let (dead, shut) = (links_of(|state| state.avoided), links_of(|state| state.shut));
        let rates = self.known_rates.as_ref().map(|known| by_switch(known, first_ports));
        let rates = rates.as_ref().map(|rates| rates as Rates<'_>);
        Some(Routes::around(graph, |link| dead[link as usize], |link| shut[link as usize], rates))
    }
}

/// Rates by port as they are asked for: by a switch and its port.
fn by_switch<'a>(known: &'a [u64], first_ports: &'a [u32]) -> impl Fn(usize, u16) -> u64 {
    move |switch, port| known[first_ports[switch] as usize + usize::from(port)]
}

impl Net {
    /// From `start` to `until` the port's link has `rate`, which is not above the one it is built for.
    pub(crate) fn degrade(
        &mut self,
        port: u32,
        rate: BitsPerSec,
        start: Instant,
        until: Instant,
    ) -> Result<(), BuildError> {
        let spec = self.class(port).spec;
        // Not the class that the link has now: another rule may have slowed it down from the beginning.
        let (slower, own) = (self.class_of(spec, rate)?, self.class_of(spec, spec.rate)?);
        for (at, class, rate) in [(start, slower, rate), (until, own, spec.rate)] {
            let place = self.changes.rates.len();
            self.changes.rates.push(RateChange { at: at.as_ps(), port, class, rate });
            #[expect(clippy::cast_possible_truncation, reason = "far fewer than 2^32 faults")]
            let handle = place as u32;
            if at == Instant::ZERO {
                self.change_rate(handle); // ahead of what hosts send before the first event
            } else if at.as_ps() < HORIZON_PS {
                self.queue.push_at(at.as_ps(), RATE, handle);
            }
        }
        Ok(())
    }

    /// The class of links built as `spec` that run at `rate`.
    fn class_of(&mut self, spec: LinkSpec, rate: BitsPerSec) -> Result<u16, BuildError> {
        let class = LinkClass::at(spec, rate);
        let known = self.classes.iter().position(|known| known.is(&class));
        let place = known.unwrap_or_else(|| {
            self.classes.push(class);
            self.classes.len() - 1
        });
        if class.octet_ps == 0 && self.paces.is_empty() {
            let pace = |port: &roci_switch::Port<crate::link::LinkEnd>| {
                Pace::new(self.classes[usize::from(port.link.class)].spec.rate)
            };
            self.paces = self.ports.iter().map(pace).collect();
        }
        u16::try_from(place).map_err(|_| BuildError::LinkKinds)
    }

    /// A link has another rate from now on. What is being sent ends as it began.
    #[cold]
    pub(crate) fn change_rate(&mut self, handle: u32) {
        let RateChange { port, class, rate, .. } = self.changes.rates[handle as usize];
        let end = &mut self.ports[port as usize].link;
        end.class = class;
        let uneven = self.classes[usize::from(class)].octet_ps == 0;
        end.flags = if uneven { end.flags | UNEVEN } else { end.flags & !UNEVEN };
        if let Some(pace) = self.paces.get_mut(port as usize) {
            *pace = Pace::new(rate);
        }
        self.faults.set_rate(port, rate);
        let now = self.queue.now();
        if let Some(detect) = self.changes.detect.filter(|_| self.changes.known_rates.is_some())
            && now.saturating_add(detect) < HORIZON_PS
        {
            self.queue.push_at(now + detect, REROUTE, WEIGH);
        }
    }

    /// Lays routes anew as they are to be now, where they may change.
    fn lay(&mut self) -> Result<(), BuildError> {
        if let Some(routes) = self.changes.routes(&self.first_ports) {
            self.routes = routes.map_err(BuildError::Routing)?;
        }
        Ok(())
    }

    /// Puts the outages of `config` in place.
    pub(crate) fn place_outages(&mut self, graph: &Graph, config: &FabricConfig) -> Result<(), BuildError> {
        if config.weighted {
            let rate = |port: u32| self.class(port).rate_kbps;
            let known: Vec<u64> = (0..).take(self.ports.len()).map(rate).collect();
            let weighted = Routes::weighted(graph, &by_switch(&known, &self.first_ports));
            self.routes = weighted.map_err(BuildError::Routing)?;
            self.changes.known_rates = Some(known);
        }
        if config.outages.is_empty() && !config.weighted {
            return Ok(());
        }
        let mut places = BTreeMap::new();
        self.changes.home = Some(Box::new((graph.clone(), self.routes.clone())));
        self.changes.detect = config.detect.map(|detect| detect.as_ps());
        let own = config.detect_own.map(|own| own.as_ps());
        self.changes.detect_own = own.filter(|&own| self.changes.detect.is_none_or(|detect| own < detect));
        for (own, outage) in (0u32..).zip(&config.outages) {
            // What is never up has no turns.
            let outage = &Outage { turns: outage.turns.filter(|turns| !turns.up.is_zero()), ..*outage };
            let exists = match outage.part {
                Part::Link(link) => (link as usize) < graph.links.len(),
                Part::Switch(switch) => (switch as usize) < graph.switches.len(),
            };
            if !exists {
                return Err(BuildError::NoSuchPart(outage.part));
            }
            if outage.turns.is_some_and(|turns| turns.down.is_zero()) || outage.start >= outage.until {
                continue; // it is never down
            }
            let changes = &mut self.changes;
            #[expect(clippy::cast_possible_truncation, reason = "far fewer than 2^32 faults")]
            let place = *places.entry(outage.part).or_insert_with(|| {
                let state = PartState { part: outage.part, down: 0, changed: 0, avoided: false, shut: false };
                changes.parts.push(state);
                changes.parts.len() as u32 - 1
            });
            #[expect(clippy::cast_possible_truncation, reason = "far fewer than 2^32 faults")]
            let handle = changes.outages.len() as u32;
            changes.outages.push((*outage, place, own));
            if let Part::Switch(switch) = outage.part {
                self.cut_off(switch, (*outage, own));
            }
            let changes = &mut self.changes;
            let mut next = outage.next_down(0);
            if next == 0 {
                // It is down as the run begins, and everybody knows it.
                let state = &mut changes.parts[place as usize];
                (state.down, state.avoided) = (state.down + 1, changes.detect.is_some());
                state.shut = changes.detect_own.is_some();
                next = outage.next_up(0);
            }
            push(&mut self.queue, next, handle);
        }
        self.lay()
    }

    /// The links of a switch lose what is sent to it, or by it, while it is down.
    fn cut_off(&mut self, switch: u32, outage: (Outage, u32)) {
        for port in self.switch_ports(switch) {
            let peer = self.peer(port);
            self.faults.cut(port, outage, true);
            self.faults.cut(peer, outage, false);
            for end in [port, peer] {
                self.ports[end as usize].link.flags |= FAULTY;
            }
        }
    }

    /// A part goes down or comes up again.
    #[cold]
    pub(crate) fn turn_outage(&mut self, handle: u32) {
        let now = self.queue.now();
        let (outage, place, own) = self.changes.outages[handle as usize];
        let down = outage.meets(now, now);
        push(&mut self.queue, if down { outage.next_up(now) } else { outage.next_down(now) }, handle);
        let state = &mut self.changes.parts[place as usize];
        let before = state.down;
        state.down = if down { before + 1 } else { before - 1 };
        if (before == 0) == (state.down == 0) {
            return;
        }
        state.changed = now;
        for detect in [self.changes.detect, self.changes.detect_own].into_iter().flatten() {
            if now.saturating_add(detect) < HORIZON_PS {
                self.queue.push_at(now + detect, REROUTE, place);
            }
        }
        if let Part::Switch(switch) = outage.part {
            if down { self.fail(switch, own) } else { self.revive(switch) }
        }
    }

    /// A part has been down or up for as long as it takes to be sure of it, if it has; or routes are to be laid anew.
    #[cold]
    pub(crate) fn reroute(&mut self, handle: u32) {
        let now = self.queue.now();
        let changes = &mut self.changes;
        if handle == LAY {
            changes.stale = false;
            // There are as many ports as there were, so nothing can fail.
            let _ = self.lay();
            return;
        }
        let mut noticed = handle == WEIGH;
        if let (Some(known), Some(detect)) = (&mut changes.known_rates, changes.detect.filter(|_| noticed)) {
            for change in changes.rates.iter().filter(|change| change.at.checked_add(detect) == Some(now)) {
                known[change.port as usize] = change.rate.0 / 1_000;
            }
        }
        if let Some(state) = changes.parts.get_mut(handle as usize) {
            let is_down = state.down > 0;
            for (detect, known) in
                [(changes.detect, &mut state.avoided), (changes.detect_own, &mut state.shut)]
            {
                if detect.and_then(|detect| state.changed.checked_add(detect)) == Some(now) {
                    noticed |= std::mem::replace(known, is_down) != is_down;
                }
            }
        }
        if !noticed {
            return;
        }
        if !std::mem::replace(&mut changes.stale, true) {
            // Behind what else is noticed in this instant.
            self.queue.push_at(now, REROUTE, LAY);
        }
    }

    /// A switch loses what it holds; nobody is paused by it any more, nor it by anybody.
    fn fail(&mut self, switch: u32, outage: u32) {
        let mut lost = Vec::new();
        let (ports, packets) = (&mut self.ports, &mut self.packets);
        self.switches[switch as usize].clear(ports, packets, |handle| lost.push(PacketId(handle)));
        for id in lost {
            self.lose_held(switch, outage, id);
        }
        for port in self.switch_ports(switch) {
            let peer = self.peer(port);
            (self.pauses[port as usize].asks, self.pauses[port as usize].told) = (0, 0);
            for end in [port, peer] {
                let link = &mut self.ports[end as usize].link;
                if std::mem::take(&mut link.paused) != 0 {
                    let now = self.now();
                    self.count_paused(end, 0, now);
                }
            }
            self.resume(peer);
        }
    }

    /// A switch is back: it tells its neighbours whom a storm has it pause, and is told whom they pause.
    fn revive(&mut self, switch: u32) {
        for port in self.switch_ports(switch) {
            for end in [port, self.peer(port)] {
                self.tell_anew(end);
            }
        }
    }

    /// The peer of `port` knows nothing of whom it pauses: it is told.
    fn tell_anew(&mut self, port: u32) {
        let pausing = self.pausing(port) | self.faults.storms(port);
        let pauses = &mut self.pauses[port as usize];
        (pauses.asks, pauses.told) = (0, 0);
        for priority in (0..8).filter(|priority| pausing >> priority & 1 == 1) {
            self.emit_pause(port, priority, true);
        }
    }

    /// Whether the link that `port` sends into is down before a PAUSE frame that leaves now is there, at `arrival`. Then what it
    /// says is told once the link is up again.
    #[inline]
    pub(crate) fn is_cut_off(&mut self, port: u32, arrival: u64) -> bool {
        let down = self.faults.next_down(port, self.queue.now());
        if down > arrival {
            return false;
        }
        self.faults.look_at(port, self.faults.next_up(port, down), &mut self.queue);
        true
    }

    /// `port` has been paused: if the link over which it was told goes down, that is forgotten.
    #[inline]
    pub(crate) fn pause_may_lapse(&mut self, port: u32) {
        let teller = self.peer(port);
        if self.faults.rests(teller) {
            return;
        }
        let down = self.faults.next_down(teller, self.queue.now());
        self.faults.look_at(teller, down, &mut self.queue);
    }

    /// Looks again at links that nobody looked at while nothing happened, if something does.
    #[inline]
    pub(crate) fn rouse(&mut self) {
        let outstanding = self.queue.pushed() - self.totals.events;
        let asked = (self.kicked.len() + self.wakeful.len()) as u64;
        if self.faults.is_roused(outstanding + asked) {
            self.look_again();
        }
    }

    #[cold]
    fn look_again(&mut self) {
        for port in self.faults.rouse() {
            let down = self.faults.next_down(port, self.queue.now());
            self.faults.look_at(port, down, &mut self.queue);
        }
    }

    /// The link that `port` sends into may have gone down, or come up again. A port that loses its link is paused by nobody:
    /// its peer tells it anew when the link is back.
    #[cold]
    pub(crate) fn lapse(&mut self, port: u32) {
        let now = self.queue.now();
        if !self.faults.take_look(port, now) {
            return;
        }
        let up = self.faults.next_up(port, now);
        let peer = self.peer(port);
        let sent = self.tx_octets(peer);
        if up == now {
            let outstanding = self.queue.pushed() - self.totals.events;
            if !self.faults.rest(port, sent, outstanding) {
                self.look_again();
            }
            return self.tell_anew(port);
        }
        self.faults.look_at(port, up, &mut self.queue);
        self.faults.note_sent(port, sent);
        if std::mem::take(&mut self.ports[peer as usize].link.paused) != 0 {
            self.count_paused(peer, 0, self.now());
            self.resume(peer);
        }
    }

    /// `port` may send again, if it has something.
    #[expect(clippy::cast_possible_truncation, reason = "there are at most 65 535 hosts")]
    pub(crate) fn resume(&mut self, port: u32) {
        match self.switch_of(port) {
            Some(switch) => self.serve_soon(switch, port),
            None => self.kick(HostId(port as u16)),
        }
    }
}

/// Calls for an outage's next turn, if it comes before the end of time.
fn push(queue: &mut EventQueue, at: u64, handle: u32) {
    if at < HORIZON_PS {
        queue.push_at(at, OUTAGE, handle);
    }
}
