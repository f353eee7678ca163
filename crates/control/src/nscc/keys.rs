//! NSCC's registers and presets.

use super::{Nscc, Params, State};
use crate::keys::{Key, keyed, registers};
use crate::register::{Register, Value, ValueError, count, fraction, octets, period_within};
use crate::units::{MSS, PORTION, octets_of, time};
use roci_units::{Ratio, Span};

/// The names of the presets; the first is the default.
pub const PRESETS: [&str; 2] = ["htsim", "htsim-trimming"];

/// All registers: the parameters, then the words of a context.
pub static REGISTERS: [Register; 10] = registers(&KEYS);

const TIMES: &str = "1us to 67ms";

static KEYS: [Key<Params, State>; 10] = [
    Key::parameter(
        ("base_rtt", "time", TIMES, "The network's round trip without queues."),
        |p| time(p.base_rtt),
        |p, t| within(t).map(|v| p.base_rtt = v),
    ),
    Key::parameter(
        ("target", "time", TIMES, "The queueing delay aimed for."),
        |p| time(p.target),
        |p, t| within(t).map(|v| p.target = v),
    ),
    Key::parameter(
        ("gamma", "ratio", PORTION, "γ: how strongly an excess of delay cuts."),
        |p| Value::Fraction(p.gamma),
        |p, t| fraction(t).map(|v| p.gamma = v),
    ),
    Key::parameter(
        ("delay_alpha", "ratio", PORTION, "The weight of the newest delay in the mean."),
        |p| Value::Fraction(p.delay_alpha),
        |p, t| fraction(t).map(|v| p.delay_alpha = v),
    ),
    Key::parameter(
        (
            "qa_gate",
            "count",
            "0 to 31",
            "Quick adapt is for less than the greatest window over 2 to this power.",
        ),
        |p| Value::Count(p.qa_gate),
        |p, t| count(t, 0, 31).map(|v| p.qa_gate = v),
    ),
    Key::parameter(MSS, |p| octets_of(p.mss), |p, t| octets(t, 1, 4096).map(|v| p.mss = v)),
    Key::word(
        ("window", "octets", "mss to one and a half bandwidth-delay products", "The window."),
        |_, s| octets_of(s.window),
        |p, s, t| octets(t, 1, 1 << 30).map(|v| s.window = v.clamp(p.mss, s.wmax.max(p.mss))),
    ),
    Key::shown(("least_rtt", "time", TIMES, "The least round trip seen."), |_, s| {
        time(Span::from_nanos(s.base_rtt.into()))
    }),
    Key::shown(("mean_delay", "time", "0s to 67ms", "The mean queueing delay."), |_, s| {
        time(Span::from_nanos(u64::from(s.avg_delay / 16)))
    }),
    Key::shown(("rtt", "time", TIMES, "The last round trip."), |_, s| time(Span::from_nanos(s.rtt.into()))),
];

fn within(text: &str) -> Result<Span, ValueError> {
    period_within(text, Span::from_micros(1), Span::from_millis(67))
}

keyed!(Nscc, |law, state, outcome| outcome.credit = law.credit(state));

impl Params {
    /// The preset `name`, or `None` where there is no such preset.
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "htsim" => Some(htsim()),
            "htsim-trimming" => Some(Self { target: Span::from_micros(9), ..htsim() }),
            _ => None,
        }
    }
}

/// uet-htsim's `uec.cpp` on its reference network of 12 µs: a target of one round trip (three quarters where switches
/// trim), γ 0.8, a mean of weight 0.0125, quick adapt below an eighth of the greatest window.
fn htsim() -> Params {
    Params {
        base_rtt: Span::from_micros(12),
        target: Span::from_micros(12),
        gamma: Ratio::new(4, 5),
        delay_alpha: Ratio::new(1, 80),
        qa_gate: 3,
        mss: 1024,
    }
}
