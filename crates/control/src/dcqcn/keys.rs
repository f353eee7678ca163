//! Every parameter as a register: its name, range and meaning, how it is read and how it is written.

use super::alpha::Rounding;
use super::params::{AlphaRise, ClampOff, Cut, Hyper, Params, Recovery, ResetOn};
use crate::outcome::Scope;
use crate::register::{Place, Register, Value, ValueError, count, flag, fraction, period, rate_kbps};
use roci_units::{BitsPerSec, Bytes, Span};

/// How a parameter is read.
type Get = fn(&Params) -> Value;
/// How a parameter is written; nothing changes where the text is refused.
type Set = fn(&mut Params, &str) -> Result<(), ValueError>;

/// How the parameter `name` is read and written.
pub(super) fn parameter(name: &str) -> Option<(&'static Register, Get, Set)> {
    // The two tables have one order, which a test checks.
    let index = REGISTERS.iter().position(|register| register.name == name)?;
    let (_, get, set) = *PARAMETERS.get(index)?;
    Some((&REGISTERS[index], get, set))
}

/// What of `words` the text names.
fn word<T: Copy>(text: &str, words: &[(&'static str, T)]) -> Result<T, ValueError> {
    words.iter().find(|(name, _)| *name == text.trim()).map(|(_, value)| *value).ok_or(ValueError::Range)
}

/// The name of `value` among `words`.
fn name<T: PartialEq>(value: &T, words: &[(&'static str, T)]) -> Value {
    Value::Word(words.iter().find(|(_, other)| other == value).map_or("", |(name, _)| name))
}

const CUTS: [(&str, Cut); 2] = [("at-once", Cut::AtOnce), ("by-flag", Cut::ByFlag)];
const RISES: [(&str, AlphaRise); 2] = [("on-cnp", AlphaRise::OnCnp), ("by-flag", AlphaRise::ByFlag)];
const RESETS: [(&str, ResetOn); 2] = [("cnp", ResetOn::Cnp), ("cut", ResetOn::Cut)];
const CLAMPS: [(&str, ClampOff); 2] =
    [("plain", ClampOff::Plain), ("unless-stage-zero", ClampOff::UnlessStageZero)];
const RECOVERIES: [(&str, Recovery); 2] = [("below", Recovery::Below), ("through", Recovery::Through)];
const HYPERS: [(&str, Hyper); 4] = [
    ("none", Hyper::None),
    ("after-one", Hyper::AfterOne),
    ("min-stage", Hyper::MinStage),
    ("scaled", Hyper::Scaled),
];
const SCOPES: [(&str, Scope); 2] = [("qp", Scope::Qp), ("port", Scope::Port)];
const ROUNDINGS: [(&str, Rounding); 2] = [("nearest", Rounding::Nearest), ("down", Rounding::Down)];

const fn rate(kbps: u32) -> Value {
    Value::Rate(BitsPerSec::from_kbps(kbps as u64))
}

/// A number of increases.
#[expect(clippy::cast_possible_truncation, reason = "in range")]
pub(super) fn stage(text: &str) -> Result<u16, ValueError> {
    count(text, 0, u16::MAX.into()).map(|value| value as u16)
}

const PARAMETERS: [(&str, Get, Set); 24] = [
    ("g", |p| Value::Fraction(p.g), |p, t| fraction(t).map(|v| p.g = v)),
    ("rai", |p| rate(p.rai_kbps), |p, t| rate_kbps(t).map(|v| p.rai_kbps = v)),
    ("rhai", |p| rate(p.rhai_kbps), |p, t| rate_kbps(t).map(|v| p.rhai_kbps = v)),
    ("rmin", |p| rate(p.rmin_kbps), |p, t| rate_kbps(t).map(|v| p.rmin_kbps = v)),
    ("first_alpha", |p| Value::Fraction(p.first_alpha), |p, t| fraction(t).map(|v| p.first_alpha = v)),
    ("first_rate", |p| Value::Fraction(p.first_rate), |p, t| fraction(t).map(|v| p.first_rate = v)),
    ("cut", |p| name(&p.cut, &CUTS), |p, t| word(t, &CUTS).map(|v| p.cut = v)),
    (
        "decrease_interval",
        |p| Value::Time(p.decrease_interval),
        |p, t| t.parse::<Span>().map(|v| p.decrease_interval = v).map_err(ValueError::from),
    ),
    ("alpha_rise", |p| name(&p.alpha_rise, &RISES), |p, t| word(t, &RISES).map(|v| p.alpha_rise = v)),
    ("alpha_timer", |p| Value::Time(p.alpha_timer), |p, t| period(t).map(|v| p.alpha_timer = v)),
    ("increase_timer", |p| Value::Time(p.increase_timer), |p, t| period(t).map(|v| p.increase_timer = v)),
    ("reset_on", |p| name(&p.reset_on, &RESETS), |p, t| word(t, &RESETS).map(|v| p.reset_on = v)),
    (
        "byte_counter",
        |p| Value::Octets(Bytes(u64::from(p.byte_counter))),
        |p, t| {
            let octets = t.parse::<Bytes>()?;
            p.byte_counter = u32::try_from(octets.0).map_err(|_| ValueError::Range)?;
            Ok(())
        },
    ),
    ("threshold", |p| Value::Count(p.threshold), |p, t| count(t, 1, 255).map(|v| p.threshold = v)),
    ("recovery", |p| name(&p.recovery, &RECOVERIES), |p, t| word(t, &RECOVERIES).map(|v| p.recovery = v)),
    ("hyper", |p| name(&p.hyper, &HYPERS), |p, t| word(t, &HYPERS).map(|v| p.hyper = v)),
    ("clamp", |p| Value::Flag(p.clamp), |p, t| flag(t).map(|v| p.clamp = v)),
    ("clamp_off", |p| name(&p.clamp_off, &CLAMPS), |p, t| word(t, &CLAMPS).map(|v| p.clamp_off = v)),
    (
        "cnp_gap",
        |p| Value::Time(p.cnp_gap),
        |p, t| t.parse::<Span>().map(|v| p.cnp_gap = v).map_err(ValueError::from),
    ),
    ("cnp_scope", |p| name(&p.cnp_scope, &SCOPES), |p, t| word(t, &SCOPES).map(|v| p.cnp_scope = v)),
    ("limiter", |p| name(&p.limiter, &SCOPES), |p, t| word(t, &SCOPES).map(|v| p.limiter = v)),
    (
        "alpha_bits",
        |p| Value::Count(u32::from(p.alpha_bits)),
        |p, t| {
            #[expect(clippy::cast_possible_truncation, reason = "at most 30")]
            count(t, 4, 30).map(|v| p.alpha_bits = v as u8)
        },
    ),
    (
        "alpha_rounding",
        |p| name(&p.alpha_rounding, &ROUNDINGS),
        |p, t| word(t, &ROUNDINGS).map(|v| p.alpha_rounding = v),
    ),
    (
        "rate_rounding",
        |p| name(&p.rate_rounding, &ROUNDINGS),
        |p, t| word(t, &ROUNDINGS).map(|v| p.rate_rounding = v),
    ),
];

const fn parameter_of(
    name: &'static str,
    unit: &'static str,
    range: &'static str,
    doc: &'static str,
) -> Register {
    Register { name, place: Place::Law, unit, range, writable: true, doc }
}

const fn fixed(register: Register) -> Register {
    Register { writable: false, ..register }
}

const fn state(
    name: &'static str,
    unit: &'static str,
    range: &'static str,
    writable: bool,
    doc: &'static str,
) -> Register {
    Register { name, place: Place::Context, unit, range, writable, doc }
}

const RATES: &str = "1Kb/s to 4.29Tb/s";
const PORTION: &str = "above 0, at most 1";

/// All registers: the parameters in one fixed order, then those of a context.
pub static REGISTERS: [Register; 29] = [
    parameter_of(
        "g",
        "ratio",
        PORTION,
        "The gain of alpha; rounded to the nearest that alpha_bits hold, at least one unit.",
    ),
    parameter_of("rai", "rate", RATES, "R_AI: how much an additive increase adds to the target rate."),
    parameter_of("rhai", "rate", RATES, "R_HAI: how much a hyper increase adds to the target rate."),
    parameter_of(
        "rmin",
        "rate",
        RATES,
        "The least rate that a cut leaves; the link's where the link is slower.",
    ),
    parameter_of("first_alpha", "ratio", PORTION, "Alpha when a queue pair's first CNP comes."),
    parameter_of(
        "first_rate",
        "ratio",
        PORTION,
        "What the first CNP leaves of rate and target, before it cuts like any other.",
    ),
    parameter_of(
        "cut",
        "word",
        "at-once or by-flag",
        "Whether a CNP cuts when it comes, with decrease_interval as cooldown, or at the end of its decrease period.",
    ),
    parameter_of(
        "decrease_interval",
        "time",
        "0s or more",
        "The decrease period (by-flag; 0s is taken as 1ps) or the cooldown after a cut (at-once).",
    ),
    parameter_of(
        "alpha_rise",
        "word",
        "on-cnp or by-flag",
        "Whether alpha rises with each CNP, which restarts its timer, or at the end of an alpha period with a CNP.",
    ),
    parameter_of("alpha_timer", "time", "above 0s", "The period at which alpha is updated."),
    parameter_of("increase_timer", "time", "above 0s", "T: the period of increases by time."),
    parameter_of(
        "reset_on",
        "word",
        "cnp or cut",
        "What restarts the increase timer and the byte counter and zeroes their stages.",
    ),
    parameter_of(
        "byte_counter",
        "octets",
        "0 to 4294967295",
        "B: payload octets sent between increases by volume; 0 for none. Takes effect at the next reset.",
    ),
    parameter_of("threshold", "count", "1 to 255", "F: the stage at which fast recovery ends."),
    parameter_of(
        "recovery",
        "word",
        "below or through",
        "Whether fast recovery is the stages below F or through F, the current increase counted.",
    ),
    parameter_of(
        "hyper",
        "word",
        "none, after-one, min-stage or scaled",
        "When R_HAI replaces R_AI: never; after one additive step; once both stages exceed F; so, times the excess.",
    ),
    parameter_of(
        "clamp",
        "true or false",
        "true or false",
        "Whether each cut sets R_T to the R_C before it.",
    ),
    parameter_of(
        "clamp_off",
        "word",
        "plain or unless-stage-zero",
        "With clamp = false: a cut leaves R_T alone, or only if nothing was increased since the last reset.",
    ),
    parameter_of("cnp_gap", "time", "0s or more", "The least time between two CNPs from a receiver."),
    parameter_of(
        "cnp_scope",
        "word",
        "qp or port",
        "Whether that gap is kept per queue pair or over the port.",
    ),
    fixed(parameter_of(
        "limiter",
        "word",
        "qp or port",
        "Whether each queue pair has a limiter of its own, or all of a port share one.",
    )),
    parameter_of("alpha_bits", "count", "4 to 30", "Fractional bits of alpha."),
    parameter_of("alpha_rounding", "word", "nearest or down", "Rounding of alpha's product."),
    parameter_of(
        "rate_rounding",
        "word",
        "nearest or down",
        "Rounding of what a cut takes, and of the half-way step of an increase, to 1 kb/s.",
    ),
    state("rc", "rate", "rmin to the link's rate", true, "R_C: the current rate, octets on the wire."),
    state("rt", "rate", "rc to the link's rate", true, "R_T: the target rate of recovery."),
    state("alpha", "ratio", "0 to 1", true, "The congestion estimate; before the first CNP, first_alpha."),
    state("stage", "count", "0 to 65535", true, "Increases by the timer since the last reset."),
    state("byte_stage", "count", "0 to 65535", true, "Increases by the byte counter since the last reset."),
];

#[cfg(test)]
mod tests {
    use super::super::presets::PRESETS;
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn both_tables_have_one_order() {
        for (register, (name, ..)) in REGISTERS.iter().zip(&PARAMETERS) {
            assert_eq!(register.name, *name);
            assert_eq!(register.place, Place::Law);
        }
        assert!(REGISTERS[PARAMETERS.len()..].iter().all(|register| register.place == Place::Context));
    }

    #[test]
    fn what_a_preset_prints_is_read_back() {
        for preset in PRESETS {
            let params = Params::preset(preset, BitsPerSec::from_gbps(100)).expect("a preset");
            let mut copy = Params::preset("isekai", BitsPerSec::from_gbps(10)).expect("a preset");
            for (name, get, set) in PARAMETERS {
                let text = get(&params).to_string();
                assert_eq!(set(&mut copy, &text), Ok(()), "{preset}: {name} = {text}");
            }
            assert_eq!(copy, params, "{preset}");
        }
    }
}
