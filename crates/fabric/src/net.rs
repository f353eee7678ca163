//! The network between the NICs, and what a NIC may ask of it.

use crate::balance::{Balancer, Balancing};
use crate::change::{Changes, Outage, Part};
use crate::fault::{Count, Fault, FaultCounters, FaultError, FaultSpec, Faults, InSwitch};
use crate::graph::{Graph, NodeId};
use crate::link::{FAULTY, LinkClass, LinkEnd, PENDING, TAPPED, TAPPED_AFAR, UNEVEN};
use crate::packet::{HostId, Packet, PacketId};
use crate::packets::Packets;
use crate::priorities::Priorities;
use crate::queue::{EventQueue, HORIZON_PS};
use crate::routing::{Routes, RoutingError};
use crate::tap::Tapped;
use roci_switch::{ConfigError, Counters, LinkSpec, Port, Switch, SwitchConfig};
use roci_units::{BitsPerSec, Instant, Pace, Random, Span};
use std::collections::BTreeMap;
use std::fmt;

/// What can be chosen about a fabric, besides its graph.
#[derive(Clone, Debug, Default)]
pub struct FabricConfig {
    /// The seed of the run, from which every node draws its stream.
    pub seed: u64,
    /// The switches.
    pub switch: SwitchConfig,
    /// Switches that differ, by their place in the graph's list.
    pub switch_on: Vec<(u32, SwitchConfig)>,
    /// Octets that each hop of telemetry adds to a frame: 8 for HPCC's.
    pub hop_octets: u16,
    /// How switches choose among ports of equal cost.
    pub balancing: Balancing,
    /// Whether equal ports are chosen by what the paths through them carry (WCMP), and not all alike. Of rates that change, and of what
    /// goes down, routes know after [`detect`](Self::detect).
    pub weighted: bool,
    /// Faults on links.
    pub faults: Vec<FaultSpec>,
    /// Switches that are down for a time, and links that routes avoid while they are.
    pub outages: Vec<Outage>,
    /// How long something must have been down until routes avoid it, and up again until they lead through it; what is down as the
    /// run begins, they avoid from the start. `None`: routes stay as they are.
    pub detect: Option<Span>,
    /// How long a link must have been down until the switches at its ends do not choose it, where they have another of equal cost, and up
    /// again until they may; `None`, or no less than `detect`: not before all others.
    pub detect_own: Option<Span>,
}

/// Why a fabric cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// More than 65 535 hosts.
    Hosts(usize),
    /// More than 2²⁸ ports, or 65 535 at one switch.
    Ports(usize),
    /// A host has no link, or more than one.
    HostLinks {
        /// The host.
        host: u32,
        /// Its links.
        links: usize,
    },
    /// A link names a node that the graph has not.
    NoSuchNode(NodeId),
    /// A link has no rate.
    ZeroRate {
        /// The link's place in the list.
        link: usize,
    },
    /// More than 65 536 kinds of links.
    LinkKinds,
    /// A switch's configuration makes no sense for its ports.
    Switch {
        /// The switch's place in the list.
        switch: u32,
        /// Why.
        cause: ConfigError,
    },
    /// No routes can be laid.
    Routing(RoutingError),
    /// A fault makes no sense.
    Fault(FaultError),
    /// An outage of something that the graph has not.
    NoSuchPart(Part),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hosts(count) => write!(f, "{count} hosts; at most 65535"),
            Self::Ports(count) => write!(f, "{count} ports; at most 2^28 in all and 65535 at one switch"),
            Self::HostLinks { host, links } => write!(f, "host {host} has {links} links; it needs one"),
            Self::NoSuchNode(node) => write!(f, "a link leads to node {}, which does not exist", node.0),
            Self::ZeroRate { link } => write!(f, "link {link} has rate zero"),
            Self::LinkKinds => f.write_str("more than 65536 different rates and delays of links"),
            Self::Switch { switch, cause } => write!(f, "switch {switch}: {cause}"),
            Self::Routing(error) => error.fmt(f),
            Self::Fault(error) => error.fmt(f),
            Self::NoSuchPart(part) => write!(f, "an outage of {part:?}, which does not exist"),
        }
    }
}

impl std::error::Error for BuildError {}

/// What a port has counted of pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// How often the peer was told to stop a priority; that it may go on is not counted.
    pub sent: u32,
    /// How often this port was told so.
    pub received: u32,
    /// The priorities that the peer is to stop, bit p for priority p, and those that the last PAUSE frame told it to.
    pub(crate) asks: u8,
    pub(crate) told: u8,
    /// Whether a PAUSE frame waits for the port.
    pub(crate) waits: bool,
    /// For how long priorities of the port have been paused, summed over them, up to `since`.
    paused: Span,
    /// When a priority was last paused or let go.
    since: Instant,
    /// How many priorities are paused.
    held: u8,
}

impl Pauses {
    const NONE: Self = Self {
        sent: 0,
        received: 0,
        asks: 0,
        told: 0,
        waits: false,
        paused: Span::ZERO,
        since: Instant::ZERO,
        held: 0,
    };

    /// For how long priorities of the port have been paused up to `now`, summed over them.
    pub fn paused(&self, now: Instant) -> Span {
        self.paused + now.since(self.since) * u64::from(self.held)
    }
}

/// Totals of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Events handled.
    pub events: u64,
    /// Packets sent into a link, once per link; PAUSE frames aside.
    pub packet_hops: u64,
    /// Packets that hosts received, corrupt ones included.
    pub delivered: u64,
    /// Packets that faults dropped, or that switches had no room or no route for.
    pub dropped: u64,
}

/// Kinds of events.
pub(crate) const ARRIVE: u8 = 0;
pub(crate) const FREE: u8 = 1;
pub(crate) const WAKE: u8 = 2;
pub(crate) const PAUSE: u8 = 3;
pub(crate) const STORM: u8 = 4;
pub(crate) const LEAVE: u8 = 5;
pub(crate) const RATE: u8 = 6;
pub(crate) const OUTAGE: u8 = 7;
pub(crate) const REROUTE: u8 = 8;
pub(crate) const LAPSE: u8 = 9;

/// What the fabric keeps of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host {
    /// When the NIC wants to be woken, in ps; `u64::MAX` for never.
    pub(crate) wanted: u64,
    /// When the one wake event that counts is due; `u64::MAX` for none.
    pub(crate) armed: u64,
    /// When a later wake event is due that was armed before it, or `u64::MAX`: it serves again instead of a new one.
    pub(crate) spare: u64,
    pub(crate) rx_octets: u64,
    /// Bit p: the NIC has paused its switch's priority p.
    pub(crate) pausing: u8,
}

/// Everything but the NICs: time, events, packets, ports, links, switches, faults.
///
/// Ports are numbered through: port `i` below the number of hosts is host `i`'s, then come those of switch 0 in the
/// order of the graph's links, and so on.
#[derive(Debug)]
pub struct Net {
    pub(crate) queue: EventQueue,
    /// No event after this is taken by the call that is running.
    pub(crate) until: u64,
    pub(crate) packets: Packets,
    pub(crate) ports: Vec<Port<LinkEnd>>,
    pub(crate) classes: Vec<LinkClass>,
    /// By port, where some link has a rate that does not divide; else empty.
    pub(crate) paces: Vec<Pace>,
    pub(crate) switches: Vec<Switch>,
    /// The first port of each switch, and the number of ports.
    pub(crate) first_ports: Vec<u32>,
    pub(crate) routes: Routes,
    pub(crate) balancer: Balancer,
    pub(crate) hosts: Vec<Host>,
    pub(crate) pauses: Vec<Pauses>,
    pub(crate) priorities: Priorities,
    pub(crate) faults: Faults,
    pub(crate) taps: Vec<Tapped>,
    /// Hosts whose idle port is to be served before the next event.
    pub(crate) kicked: Vec<HostId>,
    /// Hosts whose wake-up is to be armed before the next event.
    pub(crate) wakeful: Vec<HostId>,
    /// CNPs that forgers call for: the port that sent the packet, and the packet.
    pub(crate) forged: Vec<(u32, Packet)>,
    pub(crate) totals: Totals,
    pub(crate) hop_octets: u16,
    pub(crate) changes: Changes,
}

impl Net {
    /// Builds the network of `graph`.
    ///
    /// # Errors
    /// When graph or configuration make no sense.
    pub(crate) fn new(graph: &Graph, config: &FabricConfig) -> Result<Self, BuildError> {
        let hosts = graph.hosts.len();
        if hosts > usize::from(u16::MAX) {
            return Err(BuildError::Hosts(hosts));
        }
        let first_ports = number_ports(graph)?;
        let (ports, classes) = connect(graph, &first_ports)?;
        let uneven = classes.iter().any(|class| class.octet_ps == 0);
        let pace = |port: &Port<LinkEnd>| Pace::new(classes[usize::from(port.link.class)].spec.rate);
        let paces = if uneven { ports.iter().map(pace).collect() } else { Vec::new() };
        let balancer = Balancer::new(config.balancing, config.seed, graph.switches.len(), ports.len());
        let mut net = Self {
            queue: EventQueue::new(),
            until: 0,
            packets: Packets::default(),
            pauses: vec![Pauses::NONE; ports.len()],
            priorities: Priorities::default(),
            paces,
            ports,
            classes,
            switches: Vec::with_capacity(graph.switches.len()),
            first_ports,
            routes: Routes::new(graph).map_err(BuildError::Routing)?,
            balancer,
            hosts: vec![
                Host { wanted: u64::MAX, armed: u64::MAX, spare: u64::MAX, rx_octets: 0, pausing: 0 };
                hosts
            ],
            faults: Faults::default(),
            taps: Vec::new(),
            kicked: Vec::new(),
            wakeful: Vec::new(),
            forged: Vec::new(),
            totals: Totals::default(),
            hop_octets: config.hop_octets,
            changes: Changes::default(),
        };
        net.build_switches(config)?;
        net.place_faults(graph, config)?;
        net.place_outages(graph, config)?;
        Ok(net)
    }

    #[expect(clippy::cast_possible_truncation, reason = "there are fewer than 2^28 ports, hence switches")]
    fn build_switches(&mut self, config: &FabricConfig) -> Result<(), BuildError> {
        for switch in 0..self.first_ports.len() - 1 {
            let number = switch as u32;
            let special = config.switch_on.iter().rev().find(|(place, _)| *place == number);
            let chosen = special.map_or(&config.switch, |(_, special)| special);
            let wrong = |cause| BuildError::Switch { switch: number, cause };
            let (first, end) = (self.first_ports[switch], self.first_ports[switch + 1]);
            let specs: Vec<LinkSpec> = (first..end).map(|port| self.class(port).spec).collect();
            let random = Random::new(config.seed, SWITCH_STREAMS + u64::from(number));
            self.balancer.add_switch(chosen.ets.as_ref());
            let built = Switch::new(chosen, &mut self.ports, first, &specs, random).map_err(wrong)?;
            self.switches.push(built);
        }
        Ok(())
    }

    fn place_faults(&mut self, graph: &Graph, config: &FabricConfig) -> Result<(), BuildError> {
        let ports = if config.faults.is_empty() { Vec::new() } else { link_ports(graph, &self.first_ports) };
        let mut slower = Vec::new();
        // How many there are of each kind that begin at a time on a port.
        let mut alike = BTreeMap::new();
        for (place, spec) in config.faults.iter().enumerate() {
            let ends = graph.links.get(spec.link as usize).zip(ports.get(spec.link as usize));
            let port = match ends {
                Some((link, &(port, _))) if link.a == spec.from => port,
                Some((link, &(_, port))) if link.b == spec.from => port,
                _ => return Err(BuildError::Fault(FaultError::NoSuchLink)),
            };
            let before = alike.entry((port, spec.fault.number(), spec.start)).or_insert(0);
            let back = graph.links[spec.link as usize].a != spec.from;
            let random = spec.random(config.seed, back, *before);
            *before += 1;
            let rate = self.rate_of_port(port);
            if let Fault::Rate(lower) = spec.fault {
                let fits = lower.0 > 0 && lower <= rate;
                fits.then_some(()).ok_or(BuildError::Fault(FaultError::Rate))?;
                slower.push((port, lower, spec));
                continue;
            }
            #[expect(clippy::cast_possible_truncation, reason = "far fewer than 2^32 faults")]
            let spec = (place as u32, spec);
            self.faults.add(port, spec, rate, random, &mut self.queue).map_err(BuildError::Fault)?;
            self.ports[port as usize].link.flags |= FAULTY;
        }
        // Last, as the other faults of a link go by the rate that it has from the beginning.
        for (port, lower, spec) in slower {
            self.degrade(port, lower, spec.start, spec.until)?;
        }
        Ok(())
    }

    /// The present.
    #[inline(always)]
    pub const fn now(&self) -> Instant {
        Instant::from_ps(self.queue.now())
    }

    /// Lets the call that is running end with this instant's events: its caller looks whether there is more to do.
    pub fn pause_here(&mut self) {
        self.until = self.queue.now();
    }

    /// Lets time pass up to `at` where nothing happens before; an instant that has passed changes nothing.
    ///
    /// # Panics
    /// In debug builds, when an event would be passed over.
    pub fn pass_to(&mut self, at: Instant) {
        self.queue.advance_to(at.as_ps());
    }

    /// How many events lay beyond the end of time, 75 minutes, and so will never happen.
    pub const fn beyond(&self) -> u64 {
        self.queue.beyond()
    }

    /// The packets.
    #[inline(always)]
    pub const fn packets(&self) -> &Packets {
        &self.packets
    }

    /// The packets, to make and to change them. A packet that is in a queue or on a link belongs to the fabric.
    #[inline(always)]
    pub const fn packets_mut(&mut self) -> &mut Packets {
        &mut self.packets
    }

    /// Ends a packet that the NIC owns.
    #[inline]
    pub fn free(&mut self, packet: PacketId) {
        self.packets.free(packet);
    }

    /// The NIC of `host` has something to send: [`Nics::transmit`](crate::nics::Nics::transmit) is asked as soon as
    /// its port is free, at this instant if it is. Calling it again before costs nothing.
    #[inline(always)]
    pub fn kick(&mut self, host: HostId) {
        let end = &mut self.ports[usize::from(host.0)].link;
        if end.flags & PENDING != 0 {
            return;
        }
        end.flags |= PENDING;
        if end.free_at > self.queue.now() {
            self.queue.push_at(end.free_at, FREE, u32::from(host.0));
        } else {
            self.kicked.push(host);
        }
    }

    /// Wakes the NIC of `host` at `at`, or at the earlier instant that it asked for before: one wake-up per host is
    /// outstanding, and none after it unless asked for again. An instant that has passed means now;
    /// [`Instant::NEVER`], or one past the end of time, asks for nothing.
    #[inline]
    pub fn wake_at(&mut self, host: HostId, at: Instant) {
        let at = at.as_ps().max(self.queue.now());
        let state = &mut self.hosts[usize::from(host.0)];
        if at >= state.wanted || at >= HORIZON_PS {
            return;
        }
        if state.wanted >= state.armed && at < state.armed {
            self.wakeful.push(host);
        }
        state.wanted = at;
    }

    /// Arms the wake-ups that were asked for during the last event. Not sooner, because a NIC often asks for a far one
    /// first and for a near one when it has sent: armed at once, each packet would leave an event behind that comes to
    /// nothing.
    #[inline(always)]
    pub(crate) fn arm_wakeful(&mut self) {
        if !self.wakeful.is_empty() {
            self.arm_each();
        }
    }

    #[inline(never)]
    fn arm_each(&mut self) {
        while let Some(host) = self.wakeful.pop() {
            self.arm(host);
        }
    }

    /// Sees to it that a wake event of `host` is due when it wants one, or before. A NIC that wants a near one after
    /// each packet and its far timer again behind it has two events in the queue, not one timer for each packet.
    pub(crate) fn arm(&mut self, host: HostId) {
        let state = &mut self.hosts[usize::from(host.0)];
        if state.wanted >= state.armed {
            return;
        }
        if state.spare <= state.wanted {
            state.armed = std::mem::replace(&mut state.spare, u64::MAX);
            return;
        }
        if state.spare == u64::MAX {
            state.spare = state.armed;
        }
        state.armed = state.wanted;
        self.queue.push_at(state.wanted, WAKE, u32::from(host.0));
    }

    /// The rate that the host's link is built for.
    pub fn rate_of(&self, host: HostId) -> BitsPerSec {
        self.class(u32::from(host.0)).spec.rate
    }

    /// The propagation delay of the host's link.
    pub fn delay_of(&self, host: HostId) -> Span {
        self.class(u32::from(host.0)).spec.delay
    }

    /// When the host's port has sent what it is sending.
    #[inline]
    pub fn free_at(&self, host: HostId) -> Instant {
        Instant::from_ps(self.ports[usize::from(host.0)].link.free_at)
    }

    /// The NIC of `host` is full, or no longer: pauses its switch's `priority`, or lets it go on.
    pub fn host_pause(&mut self, host: HostId, priority: u8, on: bool) {
        let state = &mut self.hosts[usize::from(host.0)];
        let bit = 1 << priority;
        if (state.pausing & bit != 0) != on {
            state.pausing ^= bit;
            self.send_pause(u32::from(host.0), priority, on);
        }
    }

    /// Ports in all: those of the hosts come first, each with its host's number, and then those of the switches, switch by switch.
    pub fn port_count(&self) -> usize {
        self.ports.len()
    }

    /// How many switches there are.
    pub fn switch_count(&self) -> usize {
        self.switches.len()
    }

    /// A switch, by its place in the graph: its buffer's use and peak.
    ///
    /// # Panics
    /// When there is no such switch.
    pub fn switch(&self, switch: u32) -> &Switch {
        &self.switches[switch as usize]
    }

    /// Has a switch go by the thresholds of `config` from now on: where it marks, both α, and where neighbours may go on.
    ///
    /// # Errors
    /// When they make no sense.
    pub fn set_thresholds(&mut self, switch: u32, config: &SwitchConfig) -> Result<(), ConfigError> {
        let rates: Vec<BitsPerSec> =
            self.switch_ports(switch).map(|port| self.class(port).spec.rate).collect();
        self.switches[switch as usize].set_thresholds(&mut self.ports, config, rates.into_iter())
    }

    /// The ports of a switch, in the order of the graph's links.
    pub fn switch_ports(&self, switch: u32) -> std::ops::Range<u32> {
        self.first_ports[switch as usize]..self.first_ports[switch as usize + 1]
    }

    /// What the switch has counted for its port `port`; `None` for a host's port.
    pub fn counters(&self, port: u32) -> Option<&Counters> {
        self.switch_of(port).map(|switch| self.switches[switch as usize].counters(port))
    }

    /// What `port` has counted of pauses.
    ///
    /// # Panics
    /// When there is no such port; so do all that take one.
    pub fn pauses(&self, port: u32) -> &Pauses {
        &self.pauses[port as usize]
    }

    /// Octets of frames that `port` has sent, PAUSE frames aside; a transmission counts from its start.
    pub fn tx_octets(&self, port: u32) -> u64 {
        self.ports[port as usize].link.tx_octets
    }

    /// Octets of frames that a host has received.
    pub fn rx_octets(&self, host: HostId) -> u64 {
        self.hosts[usize::from(host.0)].rx_octets
    }

    /// Octets of `priority` that wait for `port`.
    pub fn queued(&self, port: u32, priority: u8) -> u32 {
        self.switch_of(port).map_or(0, |switch| self.switch(switch).queued(&self.ports, port, priority))
    }

    /// Bit p: packets of priority p wait for `port`. Of a host's port nothing is told: they wait in its NIC.
    pub fn backlog(&self, port: u32) -> u8 {
        self.ports[port as usize].backlog()
    }

    /// The most octets of `priority` that ever waited for `port`.
    pub fn queue_peak(&self, port: u32, priority: u8) -> u32 {
        let peak = |switch| self.switch(switch).queue_peak(&self.ports, port, priority);
        self.switch_of(port).map_or(0, peak)
    }

    /// Bit p: the peer of `port` has paused its priority p.
    pub fn paused(&self, port: u32) -> u8 {
        self.ports[port as usize].link.paused
    }

    /// The port at the other end of `port`'s link.
    pub fn peer(&self, port: u32) -> u32 {
        self.ports[port as usize].link.peer
    }

    /// What the faults on `port`'s outgoing direction have done; `None` where there are none, but for a lower rate.
    pub fn fault_counters(&self, port: u32) -> Option<&FaultCounters> {
        self.faults.counters(port)
    }

    /// Packets that were lost by faults elsewhere than on a link: those that a switch held as it failed, and those for which
    /// no way was left.
    pub fn lost_elsewhere(&self) -> u64 {
        self.faults.losses.in_switches()
    }

    /// The same of one switch, by its place in the graph.
    pub fn lost_in_switch(&self, switch: u32) -> InSwitch {
        self.faults.losses.of_switch(switch)
    }

    /// What the fault at `place` in [`FabricConfig::faults`] has lost or damaged.
    pub fn lost_to_fault(&self, place: usize) -> Count {
        self.faults.losses.of_fault(place)
    }

    /// What the outage at `place` in [`FabricConfig::outages`] has taken with its switch: what that held, and what was on its way
    /// to it. Nothing of a link, which has faults for that.
    pub fn lost_to_outage(&self, place: usize) -> Count {
        self.faults.losses.of_outage(place)
    }

    /// Totals of the run so far.
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Records what `port` sends and receives from now on, or no longer.
    pub fn tap(&mut self, port: u32, on: bool) {
        let peer = self.ports[port as usize].link.peer;
        for (port, flag) in [(port, TAPPED), (peer, TAPPED_AFAR)] {
            let flags = &mut self.ports[port as usize].link.flags;
            *flags = if on { *flags | flag } else { *flags & !flag };
        }
    }

    /// Takes what the taps have recorded, in the order of time.
    pub fn drain_taps(&mut self) -> Vec<Tapped> {
        std::mem::take(&mut self.taps)
    }

    /// Which ways packets take while nothing is down.
    pub fn routes(&self) -> &Routes {
        self.changes.home().unwrap_or(&self.routes)
    }

    /// The rate and delay that `port`'s link is built for.
    pub fn link(&self, port: u32) -> LinkSpec {
        self.class(port).spec
    }

    /// The node that `port` belongs to: hosts are nodes from 0, switches follow.
    pub fn node_of(&self, port: u32) -> u32 {
        self.owner(port)
    }

    /// The rate that `port`'s link is built for: a fault may have it run at a lower one.
    pub fn rate_of_port(&self, port: u32) -> BitsPerSec {
        self.class(port).spec.rate
    }

    /// The switch that `port` belongs to; `None` for a host's port.
    #[inline(always)]
    pub fn switch_of(&self, port: u32) -> Option<u32> {
        self.switch_at(self.owner(port))
    }

    /// The node that `port` belongs to.
    #[inline(always)]
    pub(crate) fn owner(&self, port: u32) -> u32 {
        self.ports[port as usize].link.owner
    }

    pub(crate) fn class(&self, port: u32) -> &LinkClass {
        &self.classes[usize::from(self.ports[port as usize].link.class)]
    }

    /// From now on these priorities of `port` are paused, bit p for priority p.
    #[expect(clippy::cast_possible_truncation, reason = "eight priorities")]
    pub(crate) fn count_paused(&mut self, port: u32, held: u8, now: Instant) {
        let pauses = &mut self.pauses[port as usize];
        pauses.paused = pauses.paused(now);
        (pauses.since, pauses.held) = (now, held.count_ones() as u8);
        self.priorities.hold(port, held, now);
    }
}

/// Streams of chance of switches and faults, apart from those that hosts and traffic number from zero.
const SWITCH_STREAMS: u64 = 1 << 44;

/// The first port of each switch and, last, the number of ports.
#[expect(clippy::cast_possible_truncation, reason = "compared with the bounds")]
fn number_ports(graph: &Graph) -> Result<Vec<u32>, BuildError> {
    let hosts = graph.hosts.len();
    let mut degree = vec![0usize; hosts + graph.switches.len()];
    for (place, link) in graph.links.iter().enumerate() {
        for node in [link.a, link.b] {
            *degree.get_mut(node.0 as usize).ok_or(BuildError::NoSuchNode(node))? += 1;
        }
        if link.rate.0 == 0 {
            return Err(BuildError::ZeroRate { link: place });
        }
    }
    if let Some(host) = degree[..hosts].iter().position(|&links| links != 1) {
        return Err(BuildError::HostLinks { host: host as u32, links: degree[host] });
    }
    let mut first_ports = vec![hosts as u32];
    let mut ports = hosts;
    for &links in &degree[hosts..] {
        ports += links;
        if ports >= 1 << 28 || links > usize::from(u16::MAX) {
            return Err(BuildError::Ports(ports));
        }
        first_ports.push(ports as u32);
    }
    Ok(first_ports)
}

/// The ports of each link's two ends.
fn link_ports(graph: &Graph, first_ports: &[u32]) -> Vec<(u32, u32)> {
    let mut next: Vec<u32> = (0u32..).take(graph.hosts.len()).chain(first_ports.iter().copied()).collect();
    let mut take = |node: NodeId| {
        let next = &mut next[node.0 as usize];
        *next += 1;
        *next - 1
    };
    graph.links.iter().map(|link| (take(link.a), take(link.b))).collect()
}

/// Makes the ports and joins each link's two.
fn connect(graph: &Graph, first_ports: &[u32]) -> Result<(Vec<Port<LinkEnd>>, Vec<LinkClass>), BuildError> {
    let count = first_ports.last().map_or(0, |&count| count as usize);
    let mut ends: Vec<Option<LinkEnd>> = vec![None; count];
    let mut classes: Vec<LinkClass> = Vec::new();
    for (link, (a, b)) in graph.links.iter().zip(link_ports(graph, first_ports)) {
        let spec = LinkSpec { rate: link.rate, delay: link.delay };
        let class = classes.iter().position(|known| known.spec == spec).unwrap_or_else(|| {
            classes.push(LinkClass::new(spec));
            classes.len() - 1
        });
        let flags = if classes[class].octet_ps == 0 { UNEVEN } else { 0 };
        let class = u16::try_from(class).map_err(|_| BuildError::LinkKinds)?;
        for (port, owner, peer, node) in [(a, link.a, b, link.b), (b, link.b, a, link.a)] {
            let (owner, node) = (owner.0, node.0);
            let end = LinkEnd { free_at: 0, tx_octets: 0, peer, node, owner, class, paused: 0, flags };
            ends[port as usize] = Some(end);
        }
    }
    // Every port was counted from a link, so every one has been given an end.
    let mut ports = roci_prefetch::with_huge_pages(count);
    ports.extend(ends.into_iter().flatten().map(Port::new));
    Ok((ports, classes))
}
