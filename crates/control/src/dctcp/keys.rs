//! DCTCP's registers and presets.

use super::{Dctcp, Params, State};
use crate::fixed::octets_in;
use crate::keys::{Key, keyed, registers};
use crate::register::{Register, Value, flag, fraction, octets, period_within};
use crate::units::{MSS, PORTION, octets_of, time};
use roci_units::{Ratio, Span};

/// The names of the presets; the first is the default.
pub const PRESETS: [&str; 2] = ["sigcomm10", "hpcc"];

/// All registers: the parameters, then the words of a context.
pub static REGISTERS: [Register; 11] = registers(&KEYS);

/// The greatest window that can be asked for.
const WINDOW_MAX: u32 = 1 << 30;
const OCTETS: &str = "0 to 1GiB";

static KEYS: [Key<Params, State>; 11] = [
    Key::parameter(
        ("g", "ratio", PORTION, "The weight of the newest share of marks in α."),
        |p| Value::Fraction(p.g),
        |p, t| fraction(t).map(|v| p.g = v),
    ),
    Key::parameter(MSS, |p| octets_of(p.mss), |p, t| octets(t, 1, 4096).map(|v| p.mss = v)),
    Key::parameter(
        ("step", "octets", OCTETS, "What the window grows by in a window of data; 0: one full packet."),
        |p| octets_of(p.step),
        |p, t| octets(t, 0, WINDOW_MAX).map(|v| p.step = v),
    ),
    Key::parameter(
        ("slow_start", "true or false", "true or false", "Whether a queue pair begins with slow start."),
        |p| Value::Flag(p.slow_start),
        |p, t| flag(t).map(|v| p.slow_start = v),
    ),
    Key::parameter(
        ("first_window", "octets", OCTETS, "The first window; 0: what the link carries in base_rtt."),
        |p| octets_of(p.first_window),
        |p, t| octets(t, 0, WINDOW_MAX).map(|v| p.first_window = v),
    ),
    Key::parameter(
        ("wmax", "octets", OCTETS, "The greatest window; 0: what the link carries in base_rtt."),
        |p| octets_of(p.wmax),
        |p, t| octets(t, 0, WINDOW_MAX).map(|v| p.wmax = v),
    ),
    Key::parameter(
        ("paced", "true or false", "true or false", "Whether the window is spread over base_rtt."),
        |p| Value::Flag(p.paced),
        |p, t| flag(t).map(|v| p.paced = v),
    ),
    Key::parameter(
        ("base_rtt", "time", "200ns to 67ms", "The round trip without queues."),
        |p| time(p.base_rtt),
        |p, t| period_within(t, Span::from_nanos(200), Span::from_millis(67)).map(|v| p.base_rtt = v),
    ),
    Key::word(
        ("window", "octets", "mss to wmax", "The window."),
        |_, s| octets_of(s.window),
        |p, s, t| octets(t, 1, WINDOW_MAX).map(|v| s.window = v.clamp(p.mss.min(s.wmax), s.wmax)),
    ),
    Key::word(
        ("alpha", "ratio", PORTION, "α: the estimate of the share of marks, in 2⁻¹⁶."),
        |_, s| Value::Fraction(Ratio::new(s.alpha, 1 << 16)),
        |_, s, t| fraction(t).map(|v| s.alpha = crate::fixed::fraction(v)),
    ),
    Key::shown(("ssthresh", "octets", OCTETS, "The window up to which it is in slow start."), |_, s| {
        octets_of(s.ssthresh)
    }),
];

keyed!(Dctcp, |law, state, outcome| outcome.credit = law.credit(state));

impl Params {
    /// The preset `name` for a link of `link`, or `None` where there is no such preset.
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "sigcomm10" => Some(sigcomm10()),
            "hpcc" => Some(hpcc()),
            _ => None,
        }
    }
}

/// Alizadeh et al., SIGCOMM 2010, §3: g 1/16, one packet in each window of data. The first window is ten packets (RFC
/// 6928) and the greatest 16 MiB, as our choice.
fn sigcomm10() -> Params {
    Params {
        g: Ratio::new(1, 16),
        mss: 1024,
        step: 0,
        slow_start: true,
        first_window: 10 * 1024,
        wmax: 16 << 20,
        paced: false,
        base_rtt: Span::from_micros(13),
    }
}

/// The rate-based DCTCP of the ns-3 model that came with HPCC, with the values of its `run.py`: it begins at the link's
/// rate, has no slow start, and grows by 615 Mb/s in each round trip, which is said as octets in a base round trip of
/// 13 µs here (999). Its switches mark from 30 KB times the link's rate over 10 Gb/s on.
fn hpcc() -> Params {
    Params {
        step: octets_in(615_000, 13_000),
        slow_start: false,
        first_window: 0,
        wmax: 0,
        paced: true,
        ..sigcomm10()
    }
}
