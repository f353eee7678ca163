//! How switches choose among ports of equal cost: by a hash, in turn, or by how loaded the ports are.
//!
//! A hash and turns are looked up as a packet is sent to the switch, so that its port can be prefetched. Loads are looked at when it has
//! come, as a switch sees them; and each switch sees its own ports alone.

use crate::hop::NOWHERE;
use crate::net::Net;
use crate::packet::PacketId;
use crate::routing::{NO_PORT, mix, scale};
use roci_switch::Shares;
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
        /// The silence after which a flow may change its port, above zero: what the delays of equal paths may differ by without packets
        /// overtaking each other.
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
#[derive(Debug)]
pub(crate) struct Balancer {
    pub(crate) how: Balancing,
    /// How many choices each switch has made, begun at random; empty where it goes by a hash.
    pub(crate) turns: Vec<u32>,
    /// By switch and place in its table.
    flowlets: Vec<Flowlet>,
    /// By port: how busy it has been.
    usage: Vec<Usage>,
    /// By switch and priority: which leave before it or in turn with it.
    ahead: Vec<[u8; 8]>,
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
    /// What it sent in the window before.
    before: u64,
}

impl Usage {
    /// Takes windows of `window` ps up to `now`, when the port has sent `sent` in all. To be told whenever it has sent something: what was
    /// sent since is taken for sent in the window that is over.
    fn pass(&mut self, now: u64, sent: u64, window: u64) {
        let passed = now - self.begin;
        if passed >= 2 * window {
            *self = Self { begin: now, sent, before: 0 };
        } else if passed >= window {
            *self = Self { begin: self.begin + window, sent, before: sent - self.sent };
        }
    }

    /// About how many octets were sent in the last `window` ps before `now`, when the port has sent `sent` in all.
    fn recent(mut self, now: u64, sent: u64, window: u64) -> u64 {
        self.pass(now, sent, window);
        let left = u128::from(self.before) * u128::from(window - (now - self.begin)) / u128::from(window);
        u64::try_from(left).unwrap_or(u64::MAX) + sent - self.sent
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
            _ => (Vec::new(), Vec::new()),
        };
        let turns = if how == Balancing::Hash { Vec::new() } else { (0..switches).map(turn).collect() };
        Self { how, turns, flowlets, usage, ahead: Vec::with_capacity(switches) }
    }

    /// The next switch has these shares of a port's bandwidth.
    pub(crate) fn add_switch(&mut self, shares: Option<&Shares>) {
        let shared = shares.map_or(0, Shares::priorities);
        self.ahead.push(std::array::from_fn(|priority| match shared >> priority & 1 {
            1 => u8::MAX,
            _ => !shared & u8::MAX << priority,
        }));
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
            mix(*turn, switch)
        };
        let ahead = balancer.ahead[switch as usize][usize::from(packet.priority & 7)];
        // How long the link takes for `sent` octets and for what leaves before the packet; where that is paused, longer than any.
        let load = |port: u32, sent: u64| {
            let (buffer, state) = (&switches[switch as usize], &ports[port as usize]);
            let waits = state.backlog() & ahead & !state.link.paused;
            let priorities = (0..8).filter(|priority| waits >> priority & 1 == 1);
            let waiting: u64 = priorities.map(|it| u64::from(buffer.queued(ports, port, it))).sum();
            let paused = state.link.paused >> packet.priority & 1;
            classes[usize::from(state.link.class)].nanoseconds(sent + waiting) | u64::from(paused) << 62
        };
        let local = match balancer.how {
            Balancing::Flowlet { gap, table } => {
                let place = usize::from(scale(mix(packet.flow, !switch), table));
                let flowlet = &mut balancer.flowlets[switch as usize * usize::from(table) + place];
                let (usage, gap) = (&mut balancer.usage, gap.as_ps().max(1));
                let known = equal.ports().any(|port| port == flowlet.port);
                if !known || now - flowlet.last > gap {
                    let used = |local: u16| {
                        let port = first + u32::from(local);
                        let sent = ports[port as usize].link.tx_octets;
                        load(port, usage[port as usize].recent(now, sent, gap))
                    };
                    let before = known.then_some(flowlet.port);
                    flowlet.port = equal.least(before, anywhere(), used);
                }
                flowlet.last = now;
                let port = (first + u32::from(flowlet.port)) as usize;
                if let Some((usage, state)) = usage.get_mut(port).zip(ports.get(port)) {
                    usage.pass(now, state.link.tx_octets, gap);
                }
                flowlet.port
            }
            _ => equal.least(None, anywhere(), |local| load(first + u32::from(local), 0)),
        };
        if local == NO_PORT { NOWHERE } else { first + u32::from(local) }
    }
}

/// The random streams by which turns begin, one a switch.
const TURN_STREAMS: u64 = 1 << 46;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_port_sent_is_forgotten_after_two_windows_and_known_until_then() {
        const WINDOW: u64 = 16_000_000;
        let mut usage = Usage::default();
        let mut sent = 0;
        // 12.5 octets a nanosecond for three windows, a packet of 1000 each 80 ns.
        for n in 0..600 {
            sent += 1_000;
            usage.pass(n * 80_000, sent, WINDOW);
        }
        let at = 600 * 80_000;
        assert!(usage.recent(at, sent, WINDOW).abs_diff(200_000) < 10_000, "{usage:?}");
        assert!((50_000..150_000).contains(&usage.recent(at + WINDOW / 2, sent, WINDOW)), "{usage:?}");
        assert_eq!(usage.recent(at + 2 * WINDOW, sent, WINDOW), 0);
        // After a silence what is sent now counts, and nothing of before.
        usage.pass(at + 100 * WINDOW, sent + 4_000, WINDOW);
        assert_eq!(usage.recent(at + 100 * WINDOW + 80_000, sent + 8_000, WINDOW), 4_000);
    }

    #[test]
    fn what_leaves_before_a_priority_or_in_turn_with_it_is_ahead_of_it() {
        let mut balancer = Balancer::new(Balancing::Adaptive, 1, 2, 8);
        balancer.add_switch(None);
        balancer.add_switch(Some(&Shares::new([40, 0, 0, 60, 0, 0, 0, 0]).unwrap()));
        assert_eq!(balancer.ahead[0], [0xff, 0xfe, 0xfc, 0xf8, 0xf0, 0xe0, 0xc0, 0x80]);
        // Strict priorities go before those with shares, whichever they are.
        assert_eq!(balancer.ahead[1], [0xff, 0xf6, 0xf4, 0xff, 0xf0, 0xe0, 0xc0, 0x80]);
    }
}
