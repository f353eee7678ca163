//! The registers and presets of PowerTCP and θ-PowerTCP.

use super::{Params, PowerTcp, State, ThetaPowerTcp, theta};
use crate::keys::{Key, keyed, registers};
use crate::register::{Register, Value, count, fraction, octets, period_within, share};
use crate::units::{PORTION, octets_of, time};
use roci_units::{BitsPerSec, Ratio, Span};

/// The names of the presets of both; the first is the default.
pub const PRESETS: [&str; 2] = ["nsdi22", "ns3"];

/// All registers of PowerTCP: the parameters, then the words of a context.
pub static REGISTERS: [Register; 8] = registers(&KEYS);

/// All registers of θ-PowerTCP.
pub static THETA_REGISTERS: [Register; 10] = registers(&theta_keys::KEYS);

const OCTETS: &str = "1B to 1GiB";
const OCTETS_MAX: u32 = 1 << 30;

/// The registers of both laws, of contexts `$state`, and behind them those of one.
macro_rules! keys {
    ($state:ty, $count:literal, $($more:expr),*) => {
        pub(super) static KEYS: [Key<Params, $state>; $count] = [
            Key::parameter(
                ("gamma", "ratio", PORTION, "γ: the weight of the new window."),
                |p| Value::Fraction(p.gamma),
                |p, t| fraction(t).map(|v| p.gamma = v),
            ),
            Key::parameter(
                (
                    "base_rtt",
                    "time",
                    "1us to 1ms",
                    "τ: the round trip of the longest path without queues; the network's unless it is set here.",
                ),
                |p| time(p.base_rtt),
                |p, t| period_within(t, Span::from_micros(1), Span::from_millis(1)).map(|v| p.base_rtt = v),
            ),
            Key::parameter(
                (
                    "flows",
                    "count",
                    "1 to 65535",
                    "N: flows that are expected to share a NIC. β is what its link carries in base_rtt, over N.",
                ),
                |p| Value::Count(p.flows),
                |p, t| count(t, 1, 65_535).map(|v| p.flows = v),
            ),
            Key::parameter(
                ("eta", "ratio", PORTION, "The utilisation aimed for, by which Γ is divided."),
                |p| Value::Fraction(p.eta),
                |p, t| fraction(t).map(|v| p.eta = v),
            ),
            Key::parameter(
                ("wmin", "octets", OCTETS, "The least window; below a packet it still sets the rate."),
                |p| octets_of(p.wmin),
                |p, t| octets(t, 1, OCTETS_MAX).map(|v| p.wmin = v),
            ),
            Key::word(
                ("window", "octets", "wmin to what the link carries in base_rtt, and β", "W and W_old: the window."),
                |_, s| octets_of(s.window.window),
                |p, s, t| {
                    let most = crate::powertcp::Terms::new(p).wmax(s.window.link_kbps);
                    s.window.window = octets(t, 1, OCTETS_MAX)?.clamp(p.wmin, most);
                    s.window.old = s.window.window;
                    Ok(())
                },
            ),
            Key::shown(
                ("old", "octets", OCTETS, "W_old: the window of a round trip ago."),
                |_, s| octets_of(s.window.old),
            ),
            Key::shown(
                ("power", "ratio", "0 to 64", "Γ: the power of the link that has the most, over that of a busy one without a queue."),
                |_, s| Value::Fraction(Ratio::new(s.window.power, 1 << 24)),
            ),
            $($more),*
        ];
    };
}

keys!(State, 8,);
keyed!(PowerTcp, |law, state, outcome| outcome.credit = law.credit(state));

/// θ-PowerTCP's, whose contexts are others.
mod theta_keys {
    use super::theta::State;
    use super::*;

    keys!(
        State,
        10,
        Key::parameter(
            (
                "floor",
                "ratio",
                "0 to 1",
                "The least dRTT/dt + 1 that counts; 0: all but what is below zero, which the algorithm as it is printed counts too."
            ),
            |p| Value::Fraction(p.floor),
            |p, t| share(t).map(|v| p.floor = v),
        ),
        Key::shown(("rtt", "time", "0s to 67ms", "The last round trip."), |_, s| {
            time(Span::from_nanos(s.rtt.into()))
        })
    );
    keyed!(ThetaPowerTcp, |law, state, outcome| outcome.credit = law.credit(state));
}

impl Params {
    /// The preset `name` of PowerTCP for a link of `link`, or `None` where there is no such preset. Only `ns3` depends on the link's
    /// rate.
    pub fn preset(name: &str, link: BitsPerSec) -> Option<Self> {
        match name {
            "nsdi22" => Some(nsdi22()),
            "ns3" => Some(ns3(link.as_kbps())),
            _ => None,
        }
    }

    /// The preset `name` of θ-PowerTCP, likewise.
    pub fn theta_preset(name: &str, link: BitsPerSec) -> Option<Self> {
        let preset = Self::preset(name, link)?;
        Some(if name == "ns3" {
            Self { gamma: Ratio::new(7, 10), eta: Ratio::ONE, ..preset }
        } else {
            preset
        })
    }
}

/// Addanki et al., NSDI 2022: γ 0.9, and β by ten flows, as its authors' kernel module has it. The least window is of our choice, as is
/// τ where the network does not say it, and the floor is that of their model in ns-3.
fn nsdi22() -> Params {
    Params {
        gamma: Ratio::new(9, 10),
        base_rtt: Span::from_micros(13),
        flows: 10,
        eta: Ratio::ONE,
        wmin: 80,
        floor: Ratio::new(1, 2),
    }
}

/// Its authors' model in ns-3 (inet-tub/ns3-datacenter): 95 % of the link are aimed for, and β is 150 Mb/s in τ, whatever the link. Its
/// least rate of 100 Mb/s is said as octets in 13 µs here. Of θ-PowerTCP γ is 0.7, and no utilisation is aimed for. It moves rates and
/// keeps the window at what the link carries in τ, and takes τ for a twentieth longer with θ-PowerTCP; that is not reproduced.
fn ns3(link_kbps: u32) -> Params {
    let flows = (link_kbps / 150_000).clamp(1, 65_535);
    Params { flows, eta: Ratio::new(19, 20), wmin: crate::fixed::octets_in(100_000, 13_000), ..nsdi22() }
}
