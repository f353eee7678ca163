//! TIMELY's registers and presets.

use super::{Params, State, Timely};
use crate::keys::{Key, keyed, registers};
use crate::register::{Register, Value, ValueError, count, fraction, octets, period_within, rate_kbps};
use crate::units::{PORTION, RATES, octets_of, rate, time};
use roci_units::{BitsPerSec, Ratio, Span};

/// The names of the presets; the first is the default.
pub const PRESETS: [&str; 3] = ["sigcomm15", "hpcc", "swcc"];

/// All registers: the parameters, then the words of a context.
pub static REGISTERS: [Register; 15] = registers(&KEYS);

const TIMES: &str = "100ns to 67ms";

static KEYS: [Key<Params, State>; 15] = [
    Key::parameter(
        ("alpha", "ratio", PORTION, "α: the weight of the newest difference of round trips."),
        |p| Value::Fraction(p.alpha),
        |p, t| fraction(t).map(|v| p.alpha = v),
    ),
    Key::parameter(
        ("beta", "ratio", PORTION, "β: how strongly a growing or long round trip cuts the rate."),
        |p| Value::Fraction(p.beta),
        |p, t| fraction(t).map(|v| p.beta = v),
    ),
    Key::parameter(
        ("t_low", "time", TIMES, "T_low: below it the rate rises, whatever the gradient."),
        |p| time(p.t_low),
        |p, t| within(t).map(|v| p.t_low = v),
    ),
    Key::parameter(
        ("t_high", "time", TIMES, "T_high: above it the rate is cut, whatever the gradient."),
        |p| time(p.t_high),
        |p, t| within(t).map(|v| p.t_high = v),
    ),
    Key::parameter(
        ("min_rtt", "time", TIMES, "The least round trip, by which the gradient is normalised."),
        |p| time(p.min_rtt),
        |p, t| within(t).map(|v| p.min_rtt = v),
    ),
    Key::parameter(
        ("delta", "rate", RATES, "δ: the additive step."),
        |p| rate(p.delta_kbps),
        |p, t| rate_kbps(t).map(|v| p.delta_kbps = v),
    ),
    Key::parameter(
        ("hai", "rate", RATES, "N·δ: the step of hyperactive increase."),
        |p| rate(p.hai_kbps),
        |p, t| rate_kbps(t).map(|v| p.hai_kbps = v),
    ),
    Key::parameter(
        ("hai_after", "count", "0 to 255", "Completion events without growth before hyperactive increase."),
        |p| Value::Count(p.hai_after),
        |p, t| count(t, 0, 255).map(|v| p.hai_after = v),
    ),
    Key::parameter(
        ("segment", "octets", "0 to 1GB", "Octets between two completion events; 0: one in each round trip."),
        |p| octets_of(p.segment),
        |p, t| octets(t, 0, 1_000_000_000).map(|v| p.segment = v),
    ),
    Key::parameter(
        ("rmin", "rate", RATES, "The least rate; the link's where the link is slower."),
        |p| rate(p.rmin_kbps),
        |p, t| rate_kbps(t).map(|v| p.rmin_kbps = v),
    ),
    Key::parameter(
        (
            "first_rate",
            "ratio",
            PORTION,
            "What a queue pair begins with, of the link's rate: C/(N + 1), where N flows share it.",
        ),
        |p| Value::Fraction(p.first_rate),
        |p, t| fraction(t).map(|v| p.first_rate = v),
    ),
    Key::word(
        ("rate", "rate", "rmin to the link's rate", "The rate, octets on the wire."),
        |_, s| rate(s.rate_kbps),
        |p, s, t| {
            let kbps = rate_kbps(t)?;
            s.rate_kbps = kbps.clamp(p.rmin_kbps.min(s.link_kbps), s.link_kbps);
            Ok(())
        },
    ),
    Key::shown(("rtt", "time", "0s to 67ms", "The round trip of the last completion event."), |_, s| {
        time(Span::from_nanos(s.prev_rtt.into()))
    }),
    Key::shown(
        (
            "growth",
            "time",
            "0s to 67ms",
            "The smoothed difference of round trips; 0s where it is not positive.",
        ),
        |_, s| time(Span::from_nanos(u64::try_from(s.rtt_diff / 16).unwrap_or(0))),
    ),
    Key::shown(
        ("quiet", "count", "0 or more", "Completion events in a row whose gradient was not positive."),
        |_, s| Value::Count(s.quiet),
    ),
];

fn within(text: &str) -> Result<Span, ValueError> {
    period_within(text, Span::from_nanos(100), Span::from_millis(67))
}

keyed!(Timely, |law, state, outcome| law.answer_rate(state, outcome));

impl Params {
    /// The preset `name` for a link of `link`, or `None` where there is no such preset. Only `hpcc` depends on the
    /// link's rate.
    pub fn preset(name: &str, link: BitsPerSec) -> Option<Self> {
        match name {
            "sigcomm15" => Some(sigcomm15()),
            "hpcc" => Some(hpcc(link.as_kbps())),
            "swcc" => Some(swcc()),
            _ => None,
        }
    }
}

/// Mittal et al., SIGCOMM 2015, §4 and §6: T_low 50 µs, T_high 500 µs, δ 10 Mb/s, N = 5 after five completion events,
/// segments of 64 KB. A new flow begins at C/(N + 1) where N flows share the host's link: half of it, for one.
///
/// The paper leaves α, β and the least round trip to be tuned: 0.875, 0.8 and 20 µs are what its users agreed on (HPCC's
/// model, SwCC's table). The least rate is one δ, as our choice.
fn sigcomm15() -> Params {
    Params {
        alpha: Ratio::new(7, 8),
        beta: Ratio::new(4, 5),
        t_low: Span::from_micros(50),
        t_high: Span::from_micros(500),
        min_rtt: Span::from_micros(20),
        delta_kbps: 10_000,
        hai_kbps: 50_000,
        hai_after: 5,
        segment: 64_000,
        rmin_kbps: 10_000,
        first_rate: Ratio::new(1, 2),
    }
}

/// The ns-3 model that came with HPCC, with the values of its `run.py`: one completion event in each round trip, steps
/// of 10 and 50 Mb/s times the link's rate over 10 Gb/s, and a least rate of 1 Gb/s, which we scale below 25 Gb/s as
/// DCQCN's preset does. Its hyperactive increase begins with the sixth event.
///
/// Departs from it in what counts towards that: there a round trip below T_low does as well, and may take its step, and one above
/// T_high begins the count anew.
fn hpcc(link_kbps: u32) -> Params {
    let scaled = |mbps: u64, at_gbps: u32| {
        let kbps = Ratio::new(link_kbps, at_gbps * 1_000_000).of(mbps * 1_000);
        u32::try_from(kbps.max(1)).unwrap_or(u32::MAX)
    };
    Params {
        delta_kbps: scaled(10, 10),
        hai_kbps: scaled(50, 10),
        hai_after: 6,
        segment: 0,
        rmin_kbps: scaled(1_000, 25).min(1_000_000),
        first_rate: Ratio::new(1, 1),
        ..sigcomm15()
    }
}

/// SwCC's C program (RC4ML/SwCC) with the α and β of the paper's table: times in ticks of 4 ns (least round trip 512,
/// T_low 600, T_high 2000), δ 5 MB/s, and five of them at each completion event without growth.
///
/// The published program has 0.25 for α and 1/16 for β, for a shift binds weaker there than a product; that, its
/// pacing loop and its shift by a negative number are not reproduced. Each packet's acknowledgement is a completion event there; here one in
/// each round trip is. The least rate is one unit of its rates, 1 MB/s.
fn swcc() -> Params {
    Params {
        min_rtt: Span::from_nanos(2_048),
        t_low: Span::from_nanos(2_400),
        t_high: Span::from_nanos(8_000),
        delta_kbps: 40_000,
        hai_kbps: 200_000,
        hai_after: 0,
        segment: 0,
        rmin_kbps: 8_000,
        first_rate: Ratio::new(1, 1),
        ..sigcomm15()
    }
}
