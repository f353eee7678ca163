//! HPCC's registers and presets.

use super::{Hpcc, Params, State};
use crate::fixed::octets_in;
use crate::keys::{Key, keyed, registers};
use crate::register::{Register, Value, count, flag, fraction, octets, period_within};
use crate::units::{PORTION, octets_of, time};
use roci_units::{BitsPerSec, Ratio, Span};

/// The names of the presets; the first is the default.
pub const PRESETS: [&str; 3] = ["sigcomm19", "hpcc", "swcc"];

/// All registers: the parameters, then the words of a context.
pub static REGISTERS: [Register; 10] = registers(&KEYS);

const OCTETS: &str = "1B to 1GiB";
const OCTETS_MAX: u32 = 1 << 30;

static KEYS: [Key<Params, State>; 10] = [
    Key::parameter(
        ("eta", "ratio", PORTION, "η: the utilisation aimed for."),
        |p| Value::Fraction(p.eta),
        |p, t| fraction(t).map(|v| p.eta = v),
    ),
    Key::parameter(
        ("base_rtt", "time", "1us to 1ms", "T: the round trip of the longest path without queues."),
        |p| time(p.base_rtt),
        |p, t| period_within(t, Span::from_micros(1), Span::from_millis(1)).map(|v| p.base_rtt = v),
    ),
    Key::parameter(
        ("w_ai", "octets", OCTETS, "W_AI: the additive step."),
        |p| octets_of(p.w_ai),
        |p, t| octets(t, 1, OCTETS_MAX).map(|v| p.w_ai = v),
    ),
    Key::parameter(
        ("max_stage", "count", "0 to 255", "maxStage: additive steps before the window is divided again."),
        |p| Value::Count(p.max_stage),
        |p, t| count(t, 0, 255).map(|v| p.max_stage = v),
    ),
    Key::parameter(
        ("wmin", "octets", OCTETS, "The least window; below a packet it still sets the rate."),
        |p| octets_of(p.wmin),
        |p, t| octets(t, 1, OCTETS_MAX).map(|v| p.wmin = v),
    ),
    Key::parameter(
        (
            "fixed_window",
            "true or false",
            "true or false",
            "Whether what the link carries in base_rtt may be in flight whatever the window is, which sets the rate alone then (VAR_WIN 0 of HPCC's simulator).",
        ),
        |p| Value::Flag(p.fixed_window),
        |p, t| flag(t).map(|v| p.fixed_window = v),
    ),
    Key::word(
        ("window", "octets", "wmin to what the link carries in base_rtt", "W and W^c: the window."),
        |_, s| octets_of(s.window),
        |p, s, t| {
            let most = octets_in(s.link_kbps, crate::fixed::span_nanos(p.base_rtt)).max(p.wmin);
            s.window = octets(t, 1, OCTETS_MAX)?.clamp(p.wmin, most);
            s.reference = s.window;
            Ok(())
        },
    ),
    Key::shown(
        ("reference", "octets", OCTETS, "W^c: the window that the next one is computed from."),
        |_, s| octets_of(s.reference),
    ),
    Key::shown(
        ("utilisation", "ratio", "0 to 64", "U: octets in flight on the fullest link, over B·T."),
        |_, s| Value::Fraction(Ratio::new(s.utilisation, 1 << 24)),
    ),
    Key::shown(
        ("stage", "count", "0 to max_stage", "incStage: additive steps since the last division."),
        |_, s| Value::Count(s.stage),
    ),
];

keyed!(Hpcc, |law, state, outcome| outcome.credit = law.credit(state));

impl Params {
    /// The preset `name` for a link of `link`, or `None` where there is no such preset. Only `hpcc` depends on the
    /// link's rate.
    pub fn preset(name: &str, link: BitsPerSec) -> Option<Self> {
        match name {
            "sigcomm19" => Some(sigcomm19()),
            "hpcc" => Some(hpcc(link.as_kbps())),
            "swcc" => Some(swcc()),
            _ => None,
        }
    }
}

/// Li et al., SIGCOMM 2019, §5.1: η 95 %, maxStage 5, W_AI 80 octets, T 13 µs. The least window is one W_AI, as our
/// choice.
fn sigcomm19() -> Params {
    Params {
        eta: Ratio::new(19, 20),
        base_rtt: Span::from_micros(13),
        w_ai: 80,
        max_stage: 5,
        wmin: 80,
        fixed_window: false,
    }
}

/// The ns-3 model that came with it, with the values of its `run.py`: no additive stages (maxStage 0), an additive step
/// of 10 Mb/s times the link's rate over 25 Gb/s, which is said as octets in 13 µs here, and a least rate of 1 Gb/s,
/// which we scale below 25 Gb/s as DCQCN's preset does.
fn hpcc(link_kbps: u32) -> Params {
    let step = octets_in(link_kbps / 2_500, 13_000).max(1);
    let wmin = octets_in((link_kbps / 25).min(1_000_000), 13_000).max(1);
    Params { max_stage: 0, w_ai: step, wmin, ..sigcomm19() }
}

/// SwCC's C program (RC4ML/SwCC): T of 512 ticks of 4 ns, W_AI 10, maxStage 5, η 95 %. The published program counts in
/// floating point, smooths with an integer quotient and can wait for ever; that is not reproduced.
fn swcc() -> Params {
    Params { base_rtt: Span::from_nanos(2_048), w_ai: 10, wmin: 64, ..sigcomm19() }
}
