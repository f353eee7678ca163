//! How switches choose among ports of equal cost: by a hash, in turn, or by how loaded the ports are.
//!
//! A hash and turns are looked up as a packet is sent to the switch, so that its port can be prefetched. Loads are looked at when it has
//! come, as a switch sees them; and each switch sees its own ports alone.

use crate::hop::NOWHERE;
use crate::net::Net;
use crate::packet::PacketId;
use crate::routing::{NO_PORT, mix, scale};
use roci_units::{Random, Span};

/// How a path is chosen among those of equal cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balancing {
    /// By a hash of the flow (ECMP, RFC 2992): all its packets take one path.
    #[default]
    Hash,
    /// Each switch takes equal ports in turn, packet by packet.
    InTurn,
    /// Each packet takes the port that will have sent what waits the soonest: adaptive routing, "packet-quality" in SONiC's adaptive routing and
    /// switching.
    Adaptive,
    /// A flow keeps its port until it has been silent for `gap`, and then has the one with the least load: "flowlet-quality" there. Load
    /// is the time that the port was busy in the last `gap`, and that for which what waits will keep it busy.
    Flowlet {
        /// The silence after which a flow may change its port: what the delays of equal paths may differ by without packets overtaking
        /// each other.
        gap: Span,
        /// How many flowlets a switch remembers, 1 or more. Flows whose hashes fall on the same place share one.
        table: u16,
    },
}

impl Balancing {
    /// Whether packets of a flow that follow each other closely may take different paths, and so overtake each other.
    pub const fn scatters(self) -> bool {
        matches!(self, Self::InTurn | Self::Adaptive)
    }
}

/// What switches remember to choose by.
#[derive(Debug, Default)]
pub(crate) struct Balancer {
    pub(crate) how: Balancing,
    /// How many choices each switch has made, begun at random; empty where it goes by a hash.
    pub(crate) turns: Vec<u32>,
    /// By switch and place in its table.
    flowlets: Vec<Flowlet>,
    /// By port: how busy it has been.
    usage: Vec<Usage>,
}

/// The packets of a flow that follow each other closely.
#[derive(Clone, Copy, Debug)]
struct Flowlet {
    /// When the last of them came, in ps.
    last: u64,
    /// By which of the switch's ports they leave, or [`NO_PORT`].
    port: u16,
}

/// How many octets a port has sent of late, by two windows: the one that goes on, and the one before it.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// When the present window began, in ps.
    begin: u64,
    /// What the port had sent by then in all.
    sent: u64,
    /// What it sent in a window's time before that.
    before: u64,
}

impl Usage {
    /// About how many octets were sent in the last `window` ps before `now`, when the port has sent `sent` in all.
    fn recent(&mut self, now: u64, sent: u64, window: u64) -> u64 {
        let part = |octets: u64, of: u64, over: u64| {
            u64::try_from(u128::from(octets) * u128::from(of) / u128::from(over.max(1))).unwrap_or(u64::MAX)
        };
        let passed = now - self.begin;
        if passed >= window {
            *self = Self { begin: now, sent, before: part(sent - self.sent, window, passed) };
        }
        part(self.before, window.saturating_sub(now - self.begin), window) + sent - self.sent
    }
}

impl Balancer {
    /// That of `switches` switches with `ports` ports in all, hosts' ones included.
    #[expect(clippy::cast_possible_truncation, reason = "some bits of a random number")]
    pub(crate) fn new(how: Balancing, seed: u64, switches: usize, ports: usize) -> Self {
        let turn = |switch| Random::new(seed, TURN_STREAMS + switch as u64).next_u64() as u32;
        let (flowlets, usage) = match how {
            Balancing::Flowlet { table, .. } => {
                let none = Flowlet { last: 0, port: NO_PORT };
                (vec![none; switches * usize::from(table)], vec![Usage::default(); ports])
            }
            _ => Default::default(),
        };
        let turns = if how == Balancing::Hash { Vec::new() } else { (0..switches).map(turn).collect() };
        Self { how, turns, flowlets, usage }
    }
}

impl Net {
    /// The port by which a packet goes on that has come to `switch`, chosen by what its ports have to send now.
    pub(crate) fn choose_by_load(&mut self, switch: u32, id: PacketId) -> u32 {
        let Self { routes, ports, switches, classes, balancer, first_ports, .. } = self;
        let (now, packet) = (self.queue.now(), &self.packets[id]);
        let first = first_ports[switch as usize];
        let equal = routes.equal(switch, packet.destination);
        let turn = &mut balancer.turns[switch as usize];
        let mut anywhere = || {
            *turn = turn.wrapping_add(1);
            scale(mix(*turn, switch), equal.count())
        };
        // How long the link takes for `sent` octets and for what waits, of all priorities; where this one is paused, longer than any.
        let load = |port: u32, sent: u64| {
            let (buffer, state) = (&switches[switch as usize], &ports[port as usize]);
            let priorities = (0..8).filter(|priority| state.backlog() >> priority & 1 == 1);
            let waiting: u64 = priorities.map(|it| u64::from(buffer.queued(ports, port, it))).sum();
            let paused = state.link.paused >> packet.priority & 1;
            classes[usize::from(state.link.class)].nanoseconds(sent + waiting) | u64::from(paused) << 62
        };
        let local = match balancer.how {
            Balancing::Flowlet { gap, table } => {
                let place = usize::from(scale(mix(packet.flow, !switch), table));
                let flowlet = &mut balancer.flowlets[switch as usize * usize::from(table) + place];
                let known = equal.ports().zip(0..).find(|(port, _)| *port == flowlet.port);
                if known.is_none() || now - flowlet.last > gap.as_ps() {
                    let usage = &mut balancer.usage;
                    let used = |local: u16| {
                        let port = first + u32::from(local);
                        let sent = ports[port as usize].link.tx_octets;
                        load(port, usage[port as usize].recent(now, sent, gap.as_ps()))
                    };
                    flowlet.port = equal.least(known.map_or_else(anywhere, |(_, place)| place), used);
                }
                flowlet.last = now;
                flowlet.port
            }
            _ => equal.least(anywhere(), |local| load(first + u32::from(local), 0)),
        };
        if local == NO_PORT { NOWHERE } else { first + u32::from(local) }
    }
}

/// The random streams by which turns begin, one a switch.
const TURN_STREAMS: u64 = 1 << 46;
