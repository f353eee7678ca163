//! What it means on these cores when a compiler or a linker misses something, and what to do.

use super::{CLASSES, slips};

/// The C library's functions that designers reach for first, and what is there in their place.
const LIBRARY: [(&[&str], &str); 12] = [
    (&["min", "MIN", "fmin"], "`least(a, b)` is the smaller of two"),
    (&["max", "MAX", "fmax"], "`most(a, b)` is the greater of two"),
    (
        &["abs", "labs", "llabs"],
        "of an int take `__builtin_abs(a)`, of two numbers without a sign `a < b ? b - a : a - b`",
    ),
    (
        &["rand", "random", "srand", "rand_r", "drand48"],
        "a generator of your own has its state in a word of QPContext: `x ^= x << 13; x ^= x >> 17; x ^= x << 5;`, begun with what is not \
         zero, such as `e.packet.qpn`",
    ),
    (
        &["time", "clock", "gettimeofday", "clock_gettime"],
        "`e.now` is the time of the event in nanoseconds, modulo 2³²",
    ),
    (
        &["sleep", "usleep", "nanosleep"],
        "`armTimer(n, ns)` gives a `Timer` event later; until then answer this one",
    ),
    (
        &["assert", "abort", "exit"],
        "`require(condition)` before the loop refuses parameters; an event with which nothing can be done is answered with Done",
    ),
    (&["strlen", "strcpy", "strcmp", "strncpy", "strncmp"], "programs have no use for text"),
    (
        &["div", "ldiv", "qsort", "bsearch"],
        "write it as a loop with a bound that can be seen, `for (uint32_t i = 0; i < 8; i++)`",
    ),
    (
        &["printf", "puts", "putchar", "fprintf", "sprintf", "snprintf", "fflush"],
        "to look at a value put it into a field of QPContext: each is recorded over time by its name, as `context.<name>` in \
         series.parquet",
    ),
    (
        &["malloc", "calloc", "realloc", "free"],
        "what belongs to a queue pair goes into QPContext, what all of a core share into arrays that are `static`",
    ),
    (
        &["sqrt", "pow", "exp", "log", "log2", "fabs", "floor", "ceil", "round"],
        "cores compute with integers: use Fraction with mulShift and ratio",
    ),
];

/// What takes the place of a C library: what is supplied where it is called, and the functions of `program.h`.
const AT_HAND: [&str; 17] = [
    "memset",
    "memcpy",
    "memmove",
    "memcmp",
    "least",
    "most",
    "clamp",
    "within",
    "addSaturating",
    "saturate",
    "midpoint",
    "mulHigh",
    "mulShift",
    "ratio",
    "fraction",
    "passed",
    "roundTrip",
];

/// The first name in quotes.
pub(super) fn quoted(text: &str) -> Option<&str> {
    let open = text.find(['\'', '‘', '`'])?;
    let rest = text[open..].trim_start_matches(['\'', '‘', '`']);
    rest.find(['\'', '’', '`']).map(|end| &rest[..end])
}

/// The functions that `said` misses, each with what the compiler takes it for. Of those that it has only not heard of yet and that may
/// follow, the ones are among them of which it is known that they do not.
fn functions(said: &str) -> Vec<(&str, Option<&str>)> {
    const MISSED: [&str; 2] = ["undefined reference to ", "error: there is no function "];
    const UNHEARD: &str = "implicit declaration of function ";
    let mut functions: Vec<(&str, Option<&str>)> = Vec::new();
    for line in said.lines() {
        let after = |sign: &str| line.split_once(sign).map(|(_, rest)| rest);
        let missed = MISSED.iter().find_map(|sign| after(sign));
        let Some((rest, name)) =
            missed.or_else(|| after(UNHEARD)).and_then(|rest| Some((rest, quoted(rest)?)))
        else {
            continue;
        };
        let meant = rest.split_once("; did you mean ").and_then(|(_, rest)| quoted(rest));
        let is_known = meant.is_some() || LIBRARY.iter().any(|(names, _)| names.contains(&name));
        if (missed.is_some() || is_known) && functions.iter().all(|(other, _)| *other != name) {
            functions.push((name, meant));
        }
    }
    functions
}

/// What to do about what `said` misses, a line each; empty where it misses nothing that is known here.
pub(super) fn remedies(said: &str) -> String {
    let mut told = Vec::new();
    let functions = functions(said);
    for &(name, meant) in &functions {
        let instead = LIBRARY.iter().find(|(names, _)| names.contains(&name)).map(|(_, instead)| *instead);
        told.push(match (name, instead, meant) {
            ("recv", ..) => "what to do: each program has a function `int recv()`; `roci program new` makes a skeleton\n".to_owned(),
            (_, Some(instead), _) => format!("what to do: in place of `{name}`: {instead}\n"),
            (_, None, Some(meant)) => format!("what to do: there is no `{name}`; is `{meant}` meant?\n"),
            (_, None, None) => {
                format!("what to do: define `{name}` in the program, or in a file of C beside it that it includes in quotes\n")
            }
        });
    }
    if functions.iter().any(|&(name, meant)| name != "recv" && meant.is_none()) {
        told.push(format!(
            "what to do: no C library runs on the cores; at hand are {}; docs/guide/programs.md lists all that program.h has\n",
            AT_HAND.join(", ")
        ));
    }
    let headers = said
        .lines()
        .filter_map(|line| line.split_once("fatal error: ")?.1.strip_suffix(": No such file or directory"));
    told.extend(headers.map(|header| {
        format!(
            "what to do: leave `#include <{header}>` out: program.h, which is included by itself, has the types of <stdint.h>{}, and \
             no C library runs on the cores; a header of yours stands beside the program and is included in quotes\n",
            if header == "string.h" { " and memset, memcpy, memmove and memcmp" } else { "" }
        )
    }));
    if said.contains("-Werror=float-conversion") {
        told.push(
            "what to do: cores have integers alone; a Fraction counts in parts of 1 << 16 and a Fraction24 in parts of 1 << 24, so a \
             quarter is `Fraction gain = (1 << 16) / 4`; products of it are made by mulShift\n"
                .to_owned(),
        );
    }
    if said.contains("impossible constraint in 'asm'") || said.contains("impossible constraint in ‘asm’")
    {
        told.push(
            "what to do: the numbers that hopWord and headerWord take must be constants, for they name the register, and so must that of a \
             loop behind `#pragma GCC unroll 4`: `for (uint32_t i = 0; i < 4; i++) if (i == hop) queue = hopWord(i, 2);`\n"
                .to_owned(),
        );
    }
    let signs: [(&[&str], String); 3] = [
        (
            &["struct <anonymous>", " has no member named"],
            format!("an Event has eventType, packet, context and, to be read, {}", slips::told().join(", ")),
        ),
        (
            &["invalid type argument of ", "->", "struct <anonymous>"],
            "pollEventSync, pollEvent, loadContext and postEvent take the event's address, as `pollEventSync(&e)`".to_owned(),
        ),
        (
            &["conflicting types for ", "recv"],
            "recv and send are `int recv()` and `int send()`, and never return".to_owned(),
        ),
    ];
    let is_error = |line: &str, words: &[&str]| {
        line.contains(": error: ") && words.iter().all(|word| line.contains(word))
    };
    let found = signs.iter().filter(|(words, _)| said.lines().any(|line| is_error(line, words)));
    told.extend(found.map(|(_, what)| format!("what to do: {what}\n")));
    let is_alone = |line: &str, name: &str| {
        line.contains(&format!("'{name}' undeclared")) || line.contains(&format!("‘{name}’ undeclared"))
    };
    if said.lines().any(|line| is_alone(line, "context") || is_alone(line, "packet")) {
        told.push(
            "what to do: context and packet are fields of the event: `e.context.rate`, where `Event e;` stands before the loop\n".to_owned(),
        );
    }
    told.concat()
}

/// What numbers that do not fit are to be, for the compiler's warnings of them: a line each.
pub(super) fn ranges(said: &str) -> String {
    let told = [
        ("unsigned char:2", "timers are 0 to 3"),
        ("unsigned char:3", "priorities are 0 to 7"),
        ("unsigned int:28", "a timer takes 268 ms at most, which is 268000000 ns, and a byte counter 268 MB"),
        ("long unsigned int", "registers have 32 bits; rates are in kb/s, so that 5 Gb/s are 5000000"),
    ];
    let overflows = |kind: &str| said.lines().any(|line| line.ends_with("[-Woverflow]") && is_to(line, kind));
    told.iter()
        .filter(|(kind, _)| overflows(kind))
        .map(|(_, range)| format!("what to do: {range}\n"))
        .collect()
}

/// What to do where a compiler warns of what only looks like a type, or of words at places where none can be: a line each.
pub(super) fn types(said: &str) -> String {
    let told = [
        (
            "declared inside parameter list",
            "`Event` is a macro that makes a type anew wherever it stands: give it one name before the function, \
             `typedef Event Heard;`, and let that take a `Heard *` and `recv` have a `Heard e;`",
        ),
        (
            "[-Wcast-align",
            "words lie at multiples of 4 and halves at multiples of 2, for the cores trap at all others: put the word together \
             from its octets, or declare the array with words",
        ),
    ];
    let told = told.iter().filter(|(sign, _)| said.lines().any(|line| line.contains(sign)));
    told.map(|(_, what)| format!("what to do: {what}\n")).collect()
}

/// Whether a warning is of a conversion to that type, in whichever quotes.
fn is_to(line: &str, kind: &str) -> bool {
    line.split_once(" to ").is_some_and(|(_, to)| to.trim_start_matches(['\'', '‘']).starts_with(kind))
}

/// Of a name that TracedPkts has and nothing else: its line in `text`, and what may stand there.
pub(super) fn class(missing: &str, text: &str) -> Option<(usize, String)> {
    let word =
        |line: &str| line.split(|one: char| !one.is_alphanumeric() && one != '_').any(|word| word == missing);
    let traces =
        |line: &str| line.trim_start().starts_with("#define") && line.contains("TracedPkts") && word(line);
    let line = text.lines().position(traces)?;
    let names: Vec<_> = CLASSES.iter().map(|(_, name)| *name).collect();
    Some((1 + line, format!("TracedPkts has `{missing}`, which is no class of events: {}", names.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::build::HEADER;

    #[test]
    fn what_a_c_library_would_have_is_named_once_with_what_is_there_instead() {
        let said = "a.o: in function `recv':\nlaw.c:9: undefined reference to `printf'\nlaw.c:10: undefined reference to `printf'\n\
            law.c:11: undefined reference to `mine'\n";
        let told = remedies(said);
        let lines: Vec<_> = told.lines().collect();
        assert_eq!(lines.len(), 3, "{told}");
        assert!(
            lines[0].starts_with(
                "what to do: in place of `printf`: to look at a value put it into a field of QPContext"
            ),
            "{told}"
        );
        assert!(lines[1].starts_with("what to do: define `mine` in the program"), "{told}");
        assert!(
            lines[2].starts_with("what to do: no C library runs on the cores; at hand are memset, memcpy,"),
            "{told}"
        );
        // Where the compiler found fault with something else, it has only not heard of them yet.
        let said = "law.c:9:5: warning: implicit declaration of function ‘abs’ [-Wimplicit-function-declaration]\n\
            law.c:9:5: warning: implicit declaration of function ‘mine’ [-Wimplicit-function-declaration]\n\
            law.c:9:5: warning: implicit declaration of function 'setrate'; did you mean 'setRate'? [-Wimplicit-function-declaration]\n";
        let told = remedies(said);
        assert!(
            told.starts_with("what to do: in place of `abs`: of an int take `__builtin_abs(a)`"),
            "{told}"
        );
        assert!(
            told.contains("there is no `setrate`; is `setRate` meant?") && !told.contains("mine"),
            "{told}"
        );
        let told = remedies(
            "law.c:4:10: fatal error: math.h: No such file or directory\n    4 | #include <math.h>\n",
        );
        assert!(told.starts_with("what to do: leave `#include <math.h>` out"), "{told}");
        let told = remedies("a.o: in function `rx_start':\nundefined reference to `recv'\n");
        assert!(told.contains("`int recv()`") && !told.contains("library"), "{told}");
        let told = remedies("law.c:8:2: error: impossible constraint in 'asm'\n");
        assert!(told.starts_with("what to do: the numbers that hopWord and headerWord take"), "{told}");
        assert_eq!(remedies("law.c:3:1: error: expected ';'\n"), "");
    }

    #[test]
    fn what_is_at_hand_is_declared_in_the_header() {
        for name in AT_HAND {
            assert!(HEADER.contains(&format!(" {name}(")) || HEADER.contains(&format!("*{name}(")), "{name}");
        }
        for (_, instead) in LIBRARY {
            for call in ["least(", "most(", "armTimer(", "require(", "mulShift"]
                .iter()
                .filter(|call| instead.contains(*call))
            {
                assert!(HEADER.contains(call), "{call}");
            }
        }
    }

    #[test]
    fn slips_that_do_not_compile_are_told_what_is_meant() {
        let told = |said: &str| remedies(&format!("law.c:8:2: error: {said}\n"));
        assert!(
            told("'struct <anonymous>' has no member named 'type'")
                .starts_with("what to do: an Event has eventType, packet, context and, to be read, rate,")
        );
        assert!(
            told("invalid type argument of '->' (have 'struct <anonymous>')").contains("`pollEventSync(&e)`")
        );
        assert!(told("conflicting types for 'recv'; have 'int()'").contains("`int recv()` and `int send()`"));
        assert!(told("'context' undeclared (first use in this function)").contains("`e.context.rate`"));
        assert_eq!(told("'contextual' undeclared (first use in this function)"), "");
    }

    #[test]
    fn a_number_that_does_not_fit_is_told_what_would() {
        let said = |kind| {
            format!(
                "law.c:4:9: warning: unsigned conversion from 'int' to '{kind}' changes value from '9' to '1' [-Woverflow]\n"
            )
        };
        assert_eq!(ranges(&said("unsigned char:3").repeat(2)), "what to do: priorities are 0 to 7\n");
        let both = said("unsigned char:2") + &said("unsigned int:28").replace('\'', "‘");
        assert_eq!(ranges(&both).lines().count(), 2);
        assert!(ranges(&said("long unsigned int")).contains("kb/s"));
        assert_eq!(ranges("law.c:4:9: warning: unused variable 'x' [-Wunused-variable]\n"), "");
    }

    #[test]
    fn what_only_looks_like_a_type_is_told_how_to_be_one() {
        let event = "law.c:4:17: warning: anonymous struct declared inside parameter list will not be visible outside of this definition\n";
        let cast = "law.c:7:9: warning: cast increases required alignment of target type [-Wcast-align]\n";
        assert!(types(event).contains("`typedef Event Heard;`"));
        assert!(types(&cast.repeat(2)).starts_with("what to do: words lie at multiples of 4"));
        assert_eq!(types(&[event, cast].concat()).lines().count(), 2);
        assert_eq!(types("law.c:4:9: warning: unused variable 'x' [-Wunused-variable]\n"), "");
    }
}
