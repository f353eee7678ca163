//! Homa's parameters as registers.

use super::{Params, State};
use crate::register::{Place, Register, SettingError, Value, ValueError, count, period, share};
use roci_units::Bytes;

/// A parameter of the law alone.
const fn octets_of(name: &'static str, doc: &'static str) -> Register {
    Register { name, place: Place::Law, unit: "octets", range: OCTETS, writable: true, doc }
}

/// A parameter of which the port's agent keeps a copy from the start, so that it does not change under way.
const fn order_of(
    name: &'static str,
    unit: &'static str,
    range: &'static str,
    doc: &'static str,
) -> Register {
    Register { name, place: Place::Law, unit, range, writable: false, doc }
}

const fn state(name: &'static str, unit: &'static str, doc: &'static str) -> Register {
    Register { name, place: Place::Context, unit, range: "0 to 2147483648", writable: false, doc }
}

const OCTETS: &str = "1B to 2GB";

/// All registers: the parameters, then those of a context.
pub static REGISTERS: [Register; 13] = [
    octets_of(
        "unscheduled",
        "RTTbytes: octets of each message that are sent without a grant. It should be what the link carries in a round \
         trip.",
    ),
    octets_of(
        "ahead",
        "How far grants run ahead of what has arrived; unless it is set, as far as `unscheduled`.",
    ),
    order_of(
        "overcommit",
        "count",
        "1 to 64",
        "How many messages a receiver grants at once, each of another sender; the paper takes as many as there are scheduled \
         priorities, and the Linux module 8.",
    ),
    order_of(
        "oldest",
        "fraction",
        "0 to 1",
        "What part of the receiver's link goes to the message that began first, however many are shorter: 0 is the order by length alone, as \
         in the paper's runs; the Linux module takes a twentieth.",
    ),
    order_of(
        "priorities",
        "count",
        "1 to 8",
        "Priorities in use, from 7 down; the upper half, at most four, for unscheduled octets.",
    ),
    octets_of("cutoff_1", "The longest message whose unscheduled octets take priority 7."),
    octets_of("cutoff_2", "The same for priority 6."),
    octets_of("cutoff_3", "The same for priority 5; longer ones take 4."),
    order_of(
        "resend",
        "time",
        "above 0s",
        "How long a receiver that hears nothing waits for octets that it has granted before it asks for them again; up to eight times as long where those asked for lately had been late and not lost.",
    ),
    order_of("resends", "count", "1 to 255", "How often it asks without an answer before it lets go."),
    state("message", "count", "The message being sent: the place of its first packet."),
    state("length", "octets", "The octets of that message."),
    state("granted", "octets", "How many of them may be sent."),
];

const fn octets(value: u32) -> Value {
    Value::Octets(Bytes(value as u64))
}

/// The parameter `name`.
pub(super) fn parameter(params: &Params, name: &str) -> Option<Value> {
    Some(match name {
        "unscheduled" => octets(params.unscheduled),
        "ahead" => octets(params.ahead.unwrap_or(params.unscheduled)),
        "overcommit" => Value::Count(params.overcommit.into()),
        "oldest" => Value::Fraction(params.oldest),
        "priorities" => Value::Count(params.priorities.into()),
        "cutoff_1" => octets(params.cutoffs[0]),
        "cutoff_2" => octets(params.cutoffs[1]),
        "cutoff_3" => octets(params.cutoffs[2]),
        "resend" => Value::Time(params.resend),
        "resends" => Value::Count(params.resends.into()),
        _ => return None,
    })
}

/// The register `name` of a context.
pub(super) const fn of_state(state: &State, name: &str) -> Option<Value> {
    Some(match name.as_bytes() {
        b"message" => Value::Count(state.message),
        b"length" => octets(state.length),
        b"granted" => octets(state.granted),
        _ => return None,
    })
}

/// Writes the parameter that `register` describes; nothing changes where the text is refused.
pub(super) fn set(params: &mut Params, register: &Register, text: &str) -> Result<(), SettingError> {
    write(params, register.name, text).map_err(|why| register.refuse(text, why))
}

fn write(params: &mut Params, name: &str, text: &str) -> Result<(), ValueError> {
    let size = || -> Result<u32, ValueError> {
        let octets: Bytes = text.parse()?;
        u32::try_from(octets.0)
            .ok()
            .filter(|octets| (1..=2_000_000_000).contains(octets))
            .ok_or(ValueError::Range)
    };
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    let small = |low, high| count(text, low, high).map(|number| number as u8);
    match name {
        "unscheduled" => params.unscheduled = size()?,
        "ahead" => params.ahead = Some(size()?),
        "overcommit" => params.overcommit = small(1, 64)?,
        "oldest" => params.oldest = share(text)?,
        "priorities" => params.priorities = small(1, 8)?,
        "cutoff_1" => params.cutoffs[0] = size()?,
        "cutoff_2" => params.cutoffs[1] = size()?,
        "cutoff_3" => params.cutoffs[2] = size()?,
        "resend" => params.resend = period(text)?,
        _ => params.resends = small(1, 255)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use roci_units::{Ratio, Span};

    #[test]
    fn what_a_parameter_prints_is_read_back() {
        let odd = Params {
            unscheduled: 12_345,
            ahead: Some(23_456),
            overcommit: 2,
            oldest: Ratio::new(1, 7),
            priorities: 3,
            cutoffs: [5, 6, 7],
            resend: Span::from_micros(77),
            resends: 9,
        };
        let mut copy = Params::default();
        for register in REGISTERS.iter().filter(|register| register.place == Place::Law) {
            let text = parameter(&odd, register.name).expect("each has a value").to_string();
            assert_eq!(set(&mut copy, register, &text), Ok(()), "{} = {text}", register.name);
        }
        assert_eq!(copy, odd);
    }

    #[test]
    fn what_the_ports_agent_keeps_a_copy_of_does_not_change_under_way() {
        let mut law = super::super::Homa::default();
        for (name, text, changes) in
            [("ahead", "7KB", true), ("cutoff_1", "7KB", true), ("resends", "7", false)]
        {
            assert_eq!(law.set(name, text, true).expect("a parameter").is_ok(), changes, "{name}");
        }
        let Params { ahead, cutoffs, resends, .. } = *law.params();
        assert_eq!((ahead, cutoffs[0], resends), (Some(7_000), 7_000, Params::default().resends));
    }

    #[test]
    fn what_is_out_of_range_is_refused_and_changes_nothing() {
        for (name, text) in [
            ("priorities", "9"),
            ("overcommit", "0"),
            ("oldest", "1.1"),
            ("unscheduled", "0B"),
            ("resend", "0s"),
        ] {
            let register = REGISTERS.iter().find(|register| register.name == name).expect("a register");
            let mut params = Params::default();
            assert!(set(&mut params, register, text).is_err(), "{name} = {text}");
            assert_eq!(params, Params::default());
        }
    }
}
