//! Floating point in a program: the cores have none, so compilers call libgcc for it.

use roci_hart::{Op, Program};
use std::collections::BTreeMap;
use std::fmt;

/// What to write in place of it.
const REMEDY: &str = "use integers: Fraction with mulShift and ratio, in which 0.8 is 52429 / 65536";
/// Places that are told one by one.
const TOLD: usize = 4;

/// A line of a program that computes with floating point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatLine {
    /// The place: file and line, or where these are not known the address.
    pub place: String,
    /// What libgcc does for it.
    pub functions: Vec<String>,
}

impl fmt::Display for FloatLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, functions } = self;
        let functions = functions.join(", ");
        write!(
            f,
            "{place} computes with floating point, which the cores do in software ({functions}): {REMEDY}"
        )
    }
}

/// The lines of the program's own text that compute with floating point.
pub(super) fn lines(program: &Program) -> Vec<FloatLine> {
    lines_that_call(program, is_soft_float)
}

/// What to do about divisions of 64 bits where they are in lines of the program's own; nothing where there are none.
pub(super) fn of_long_divisions(program: &Program) -> String {
    const NAMES: [&str; 4] = ["__udivdi3", "__umoddi3", "__divdi3", "__moddi3"];
    let lines = lines_that_call(program, |name| NAMES.contains(&name));
    let places: Vec<_> = lines.iter().map(|line| line.place.as_str()).collect();
    let own = places.into_iter().filter(|place| !place.starts_with("program.h:"));
    let own: Vec<_> = own.take(TOLD).collect();
    if own.is_empty() {
        return String::new();
    }
    format!(
        "; it divides by 64 bits at {}, a call of libgcc that takes hundreds of cycles each time: `ratio(a, b)`, or numbers of 32 bits, take \
         one instruction",
        own.join(", ")
    )
}

/// The lines that call functions of libgcc that `is` knows, other than from within these.
fn lines_that_call(program: &Program, is: impl Fn(&str) -> bool) -> Vec<FloatLine> {
    let functions = program.symbols().iter().filter(|symbol| is(&symbol.name));
    // Of several names of one function the first.
    let mut by_address: BTreeMap<u32, &str> = BTreeMap::new();
    for symbol in functions {
        by_address.entry(symbol.address).or_insert(&symbol.name);
    }
    let mut lines: Vec<FloatLine> = Vec::new();
    if by_address.is_empty() {
        return lines;
    }
    let (start, end) = program.code();
    for at in (start..end).step_by(4) {
        let function = target(program, at).and_then(|target| by_address.get(&target));
        let place = program.locate(at);
        let Some(function) = function.filter(|_| place.function.is_none_or(|(name, _)| !is(name))) else {
            continue;
        };
        let (place, function) = (
            place.line.map_or_else(|| place.to_string(), |(file, line)| format!("{file}:{line}")),
            (*function).to_owned(),
        );
        match lines.iter_mut().find(|line| line.place == place) {
            Some(line) if line.functions.contains(&function) => {}
            Some(line) => line.functions.push(function),
            None => lines.push(FloatLine { place, functions: vec![function] }),
        }
    }
    lines
}

/// Why a program is refused that does floating point in a function of which nothing can be proved.
pub(super) fn refusal(lines: &[FloatLine]) -> String {
    let places: Vec<_> = lines
        .iter()
        .take(TOLD)
        .map(|line| format!("{} ({})", line.place, line.functions.join(", ")))
        .collect();
    let more = lines.len().saturating_sub(TOLD);
    let more = if more > 0 { format!(" and {more} more lines") } else { String::new() };
    format!(
        "it computes with floating point, which the cores do in software, and what that takes cannot be bounded: {}{more}; {REMEDY}",
        places.join(", ")
    )
}

/// Where a call at `at` leads: JAL, or AUIPC with the JALR behind it.
fn target(program: &Program, at: u32) -> Option<u32> {
    let first = program.instruction(at)?;
    match first.op {
        Op::Jal => Some(at.wrapping_add_signed(first.imm)),
        Op::Auipc => {
            let second = program.instruction(at.checked_add(4)?)?;
            let follows = second.op == Op::Jalr && second.rs1 == first.rd;
            follows.then(|| at.wrapping_add_signed(first.imm).wrapping_add_signed(second.imm))
        }
        _ => None,
    }
}

/// Whether libgcc has a function of this name for numbers of one or two words with a floating point.
pub(super) fn is_soft_float(name: &str) -> bool {
    const WHAT: [&str; 17] = [
        "add", "sub", "mul", "div", "neg", "eq", "ne", "ge", "gt", "le", "lt", "unord", "fix", "float",
        "extend", "trunc", "pow",
    ];
    let Some(name) = name.strip_prefix("__") else { return false };
    let kind = name.contains("sf") || name.contains("df");
    kind && WHAT.iter().any(|what| name.starts_with(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_floating_point_are_told_from_those_of_integers() {
        for name in ["__mulsf3", "__divdf3", "__fixunssfsi", "__floatundidf", "__gtsf2", "__truncdfsf2"] {
            assert!(is_soft_float(name), "{name}");
        }
        for name in ["__udivdi3", "__mulsi3", "__clzsi2", "__clz_tab", "recv", "mulsf3", "add_self"] {
            assert!(!is_soft_float(name), "{name}");
        }
    }
}
