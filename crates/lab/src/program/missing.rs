//! What it means on these cores when a compiler or a linker misses something, and what to do.

use super::CLASSES;

/// The C library's functions that designers reach for first, and what is there in their place.
const LIBRARY: [(&[&str], &str); 3] = [
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

/// What to do about what `said` misses, a line each; empty where it misses nothing that is known here.
pub(super) fn remedies(said: &str) -> String {
    let mut told = Vec::new();
    for (_, rest) in
        said.match_indices("undefined reference to `").map(|(at, found)| said.split_at(at + found.len()))
    {
        let Some((name, _)) = rest.split_once('\'') else { continue };
        if name == "recv" {
            told.push(
                "what to do: each program has a function `int recv()`; `roci program new` makes a skeleton\n"
                    .to_owned(),
            );
            continue;
        }
        let instead = LIBRARY.iter().find(|(names, _)| names.contains(&name)).map(|(_, instead)| *instead);
        let instead = instead.map(|instead| format!("; {instead}")).unwrap_or_default();
        let line = format!(
            "what to do: there is no `{name}`, for no C library runs on the cores{instead}; docs/guide/programs.md lists what \
             program.h has\n"
        );
        if !told.contains(&line) {
            told.push(line);
        }
    }
    let headers = said
        .lines()
        .filter_map(|line| line.split_once("fatal error: ")?.1.strip_suffix(": No such file or directory"));
    told.extend(headers.map(|header| {
        format!(
            "what to do: leave `#include <{header}>` out: program.h, which is included by itself, has the types of <stdint.h>, and \
             no C library runs on the cores; a header of yours stands beside the program and is included in quotes\n"
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

    #[test]
    fn what_a_c_library_would_have_is_named_once_with_what_is_there_instead() {
        let said = "a.o: in function `recv':\nlaw.c:9: undefined reference to `printf'\nlaw.c:10: undefined reference to `printf'\n\
            law.c:11: undefined reference to `mine'\n";
        let told = remedies(said);
        let lines: Vec<_> = told.lines().collect();
        assert_eq!(lines.len(), 2, "{told}");
        assert!(
            lines[0].contains("no `printf`") && lines[0].contains("put it into a field of QPContext"),
            "{told}"
        );
        assert!(lines[1].contains("no `mine`, for no C library runs on the cores; docs/"), "{told}");
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
