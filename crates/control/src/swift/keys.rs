//! Swift's registers and presets.

use super::{Params, State, Swift};
use crate::keys::{Key, keyed, registers};
use crate::register::{Register, Value, ValueError, count, fraction, octets, period_within};
use crate::units::{MSS, PORTION, octets_of, time};
use roci_units::{Ratio, Span};

/// The names of the presets; the first is the default.
pub const PRESETS: [&str; 2] = ["htsim", "falcon"];

/// All registers: the parameters, then the words of a context.
pub static REGISTERS: [Register; 17] = registers(&KEYS);

const TIMES: &str = "0s to 67ms";
const PACKETS: &str = "1/1000 to 60000";
const SCALED: &str = "1/1000 to 255";

static KEYS: [Key<Params, State>; 17] = [
    Key::parameter(
        ("ai", "ratio", PACKETS, "Packets that the window grows by in a round trip."),
        |p| Value::Fraction(p.ai),
        |p, t| packets(t, 60_000).map(|v| p.ai = v),
    ),
    Key::parameter(
        ("beta", "ratio", PORTION, "β: how strongly an excess of delay cuts."),
        |p| Value::Fraction(p.beta),
        |p, t| fraction(t).map(|v| p.beta = v),
    ),
    Key::parameter(
        ("max_mdf", "ratio", PORTION, "The greatest cut."),
        |p| Value::Fraction(p.max_mdf),
        |p, t| fraction(t).map(|v| p.max_mdf = v),
    ),
    Key::parameter(
        ("base_target", "time", TIMES, "The base of the target delay."),
        |p| time(p.base_target),
        |p, t| within(t, Span::from_millis(67)).map(|v| p.base_target = v),
    ),
    Key::parameter(
        ("per_hop", "time", TIMES, "ħ: what each hop adds to the target."),
        |p| time(p.per_hop),
        |p, t| within(t, Span::from_millis(67)).map(|v| p.per_hop = v),
    ),
    Key::parameter(
        ("hops", "count", "0 to 64", "Hops where packets do not tell: without telemetry."),
        |p| Value::Count(p.hops),
        |p, t| count(t, 0, 64).map(|v| p.hops = v),
    ),
    Key::parameter(
        ("fs_range", "time", "0s to 500us", "The most that flow scaling adds to the target."),
        |p| time(p.fs_range),
        |p, t| within(t, Span::from_micros(500)).map(|v| p.fs_range = v),
    ),
    Key::parameter(
        ("fs_min_cwnd", "ratio", SCALED, "The window in packets at which flow scaling adds all of that."),
        |p| Value::Fraction(p.fs_min_cwnd),
        |p, t| packets(t, 255).map(|v| p.fs_min_cwnd = v),
    ),
    Key::parameter(
        ("fs_max_cwnd", "ratio", SCALED, "The window in packets from which it adds nothing."),
        |p| Value::Fraction(p.fs_max_cwnd),
        |p, t| packets(t, 255).map(|v| p.fs_max_cwnd = v),
    ),
    Key::parameter(
        ("min_cwnd", "ratio", PACKETS, "The least window in packets."),
        |p| Value::Fraction(p.min_cwnd),
        |p, t| packets(t, 60_000).map(|v| p.min_cwnd = v),
    ),
    Key::parameter(
        ("max_cwnd", "ratio", PACKETS, "The greatest window in packets."),
        |p| Value::Fraction(p.max_cwnd),
        |p, t| packets(t, 60_000).map(|v| p.max_cwnd = v),
    ),
    Key::parameter(
        ("first_cwnd", "ratio", PACKETS, "The first window in packets."),
        |p| Value::Fraction(p.first_cwnd),
        |p, t| packets(t, 60_000).map(|v| p.first_cwnd = v),
    ),
    Key::parameter(
        ("retx_reset", "count", "1 to 255", "Timeouts in a row after which the window is the least."),
        |p| Value::Count(p.retx_reset),
        |p, t| count(t, 1, 255).map(|v| p.retx_reset = v),
    ),
    Key::parameter(MSS, |p| octets_of(p.mss), |p, t| octets(t, 1, 4096).map(|v| p.mss = v)),
    Key::shown(("cwnd", "ratio", "min_cwnd to max_cwnd", "The window in packets."), |_, s| {
        Value::Fraction(Ratio::new(s.cwnd, 1 << 16))
    }),
    Key::shown(("target", "time", TIMES, "The target delay of this window."), |_, s| {
        time(Span::from_nanos(s.target.into()))
    }),
    Key::shown(("rtt", "time", TIMES, "The last round trip."), |_, s| time(Span::from_nanos(s.rtt.into()))),
];

fn within(text: &str, most: Span) -> Result<Span, ValueError> {
    period_within(text, Span::ZERO, most)
}

/// Packets, from a thousandth to `most`.
fn packets(text: &str, most: u32) -> Result<Ratio, ValueError> {
    let ratio: Ratio = text.parse()?;
    let (number, of) = (u64::from(ratio.numerator()), u64::from(ratio.denominator()));
    if number * 1_000 >= of && number <= u64::from(most) * of { Ok(ratio) } else { Err(ValueError::Range) }
}

keyed!(Swift, |law, state, outcome| outcome.credit = law.credit(state));

impl Params {
    /// The preset `name`, or `None` where there is no such preset.
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "htsim" => Some(htsim()),
            "falcon" => Some(falcon()),
            _ => None,
        }
    }
}

/// csg-htsim's `swift.cpp`: ai 1, β 0.8, max_mdf 0.5, a base of 20 µs and 20/6.55 µs for each hop, flow scaling of up to
/// five bases between windows of 0.1 and 100 packets. The paper leaves its values to the network; the first window of 12
/// packets is htsim's, bounds of 0.01 and 1000 packets and one hop where packets do not tell are our choice.
fn htsim() -> Params {
    Params {
        ai: Ratio::ONE,
        beta: Ratio::new(4, 5),
        max_mdf: Ratio::new(1, 2),
        base_target: Span::from_micros(20),
        per_hop: Span::from_nanos(3_053),
        hops: 1,
        fs_range: Span::from_micros(100),
        fs_min_cwnd: Ratio::new(1, 10),
        fs_max_cwnd: Ratio::new(100, 1),
        min_cwnd: Ratio::new(1, 100),
        max_cwnd: Ratio::new(1_000, 1),
        first_cwnd: Ratio::new(12, 1),
        retx_reset: 5,
        mss: 1024,
    }
}

/// google/isekai's Falcon: a base of 25 µs, 1 µs for each hop, flow scaling of 100 µs between 0.1 and 256 packets (255
/// here, the most that our root takes), windows from 0.01 to 256 packets, the least after three timeouts.
fn falcon() -> Params {
    Params {
        base_target: Span::from_micros(25),
        per_hop: Span::from_micros(1),
        fs_max_cwnd: Ratio::new(255, 1),
        max_cwnd: Ratio::new(256, 1),
        retx_reset: 3,
        ..htsim()
    }
}
