//! What compilers and linkers say of a program, in the program's own words: without the text around it, which nobody has written, and
//! without advice that is good elsewhere and not on these cores.

use super::missing;

/// Headers that compilers bring along themselves. All others belong to a C library.
const FREESTANDING: [&str; 8] =
    ["stddef.h", "stdint.h", "stdbool.h", "limits.h", "stdarg.h", "stdalign.h", "stdnoreturn.h", "iso646.h"];

/// What the compiler says, without the text around the program, which nobody has written: what that asks of the program is
/// said of `name`, the program's file, and of the line of its `text` where that can be told.
pub(super) fn own_words(said: &str, name: &str, text: &str) -> String {
    const END: &str = "program_end.h:";
    // A call of `program.h` that was not given what it needs.
    const CALLED: &str = "error: call to ";
    const ATTRIBUTE: &str = " declared with attribute error: ";
    let (mut words, mut advice) = (String::new(), Vec::new());
    let mut quotes = false;
    let mut last = "";
    for line in said.lines().filter(|line| !line.starts_with("In file included from <stdin>:")) {
        // Below a message stand the line that it is about and its marks.
        quotes &= line.starts_with(' ');
        if quotes {
            continue;
        }
        if is_idle(line) {
            quotes = true;
            continue;
        }
        // Of a macro that names its argument several times the compiler says the same as often.
        if is_message(line) && std::mem::replace(&mut last, line) == line {
            quotes = true;
            continue;
        }
        if let Some((place, (function, message))) =
            line.split_once(CALLED).and_then(|(place, rest)| Some((place, rest.split_once(ATTRIBUTE)?)))
        {
            let of_program = place.starts_with(&format!("{name}:"));
            let function = function.trim_matches(['\'', '‘', '’']);
            let (message, remedy) =
                if of_program { refused(place, function, message, text) } else { (message.to_owned(), None) };
            let line = format!("{place}error: {message}\n");
            quotes = words.contains(&line);
            if !quotes {
                words += &line;
            }
            advice.extend(remedy.filter(|remedy| !advice.contains(remedy)));
            continue;
        }
        // What is missing at the end of the text is missed behind it, where nobody has written anything.
        if let Some(message) = line.strip_prefix("<stdin>:").and_then(|line| line.split_once(": error: ")) {
            let (end, message) = (text.lines().count(), message.1);
            words += &format!(
                "{name}:{end}: error: {message}, and there the text ends: is a bracket left open?\n"
            );
            continue;
        }
        if !line.starts_with(END) {
            // The linker takes the lines of the program for lines of what it was handed in.
            words += &line
                .replace("././<stdin>:", &format!("{name}:"))
                .replace("<stdin>: In", &format!("{name}: In"));
            words += "\n";
            continue;
        }
        quotes = true;
        match of_text_around(line, name, text) {
            Around::Nothing => {}
            Around::Open(line) => {
                // All else that is said then follows from it.
                return format!("{name}:{line}: error: a bracket of TracedPkts is left open\n");
            }
            Around::Told(line) if words.contains(&line) => {}
            Around::Told(line) => words += &line,
        }
    }
    words + &advice.concat()
}

/// What a line of the compiler about the text around the program means.
enum Around {
    /// Nothing that is to be told.
    Nothing,
    /// A bracket of TracedPkts is open in this line of the program.
    Open(usize),
    /// This, in the program's own words.
    Told(String),
}

/// What `line`, which is about the text around the program, asks of the program, whose file is `name`.
fn of_text_around(line: &str, name: &str, text: &str) -> Around {
    const MADE: &str = "`roci program new` makes a skeleton";
    // What follows from a structure that is not there, and from commas in TracedPkts, of which there is a warning of its own.
    const IN_VAIN: [&str; 4] = [
        "expression in static assertion is not an integer",
        "expected specifier-qualifier-list before",
        "expected expression before",
        "left-hand operand of comma expression has no effect",
    ];
    // Notes, and in which function, are of a text that nobody has written.
    let kinds = ["error", "warning"].into_iter();
    let Some((kind, (_, message))) =
        kinds.filter_map(|kind| Some((kind, line.split_once(&format!("{kind}: "))?))).next()
    else {
        return Around::Nothing;
    };
    let mut at = None;
    let message = if IN_VAIN.iter().any(|begin| message.starts_with(begin)) {
        return Around::Nothing;
    } else if let Some((_, rest)) = message.split_once("‘").or_else(|| message.split_once('\''))
        && let Some((missing, _)) = rest.split_once("’").or_else(|| rest.split_once('\''))
        && message.contains("undeclared")
    {
        match missing::class(missing, text) {
            Some((line, told)) => {
                at = Some(line);
                told
            }
            None => format!("it has no `{missing}`; {MADE}"),
        }
    } else {
        if message.starts_with("unterminated argument list")
            && let Some(line) = open_bracket(text)
        {
            return Around::Open(line);
        }
        match message.strip_prefix("static assertion failed: ") {
            Some(asserted) => asserted.trim_matches('"').to_owned(),
            None => message.to_owned(),
        }
    };
    let at = at.or_else(|| place(&message, text)).map(|line| format!(":{line}")).unwrap_or_default();
    Around::Told(format!("{name}{at}: {kind}: {message}\n"))
}

/// Whether the compiler finds fault in `line` with a place that it names.
fn is_message(line: &str) -> bool {
    [": error: ", ": warning: "].iter().any(|kind| line.contains(kind))
}

/// The line of `text` that such a message is about: of the field that is too wide, or where the structure ends that it names.
fn place(message: &str, text: &str) -> Option<usize> {
    let structure = ["QPContext", "PktHeader"].into_iter().find(|name| message.contains(name))?;
    let lines: Vec<&str> = text.lines().collect();
    let end = lines.iter().position(|line| line.contains('}') && line.contains(structure))?;
    let begin = lines[..=end].iter().rposition(|line| line.contains("struct"))?;
    let wide =
        |line: &&str| ["int64_t", "long long", "double", "aligned"].iter().any(|word| line.contains(word));
    let field = lines[begin..=end].iter().position(wide).filter(|_| message.contains("bits wide"));
    Some(1 + field.map_or(end, |field| begin + field))
}

/// Whether a line is of no use to who writes a program: a note on text that is not theirs, the advice to include what is not there,
/// or what only follows from a register that is no constant.
fn is_idle(line: &str) -> bool {
    let ours = ["program.h:", "memory.h:"].iter().any(|file| line.starts_with(file));
    let header = line.split_once("is defined in header").and_then(|(_, rest)| rest.split_once('<'));
    let header = header.and_then(|(_, rest)| rest.split_once('>')).map(|(header, _)| header);
    ours && line.contains(": note: ")
        || header.is_some_and(|header| !FREESTANDING.contains(&header))
        || line.contains("probably does not match constraints")
}

/// What linkers say in `said`, each at its line of the program: a function that is not there is an error, and the folders of a
/// compiler are nobody's. Those of which the compiler has said so already are left out, as `told` has it.
pub(super) fn linked(said: &str, told: &str, name: &str) -> String {
    let mut words = String::new();
    let linkers = said.lines().skip_while(|line| !is_linkers(line));
    for line in linkers.filter(|line| !line.starts_with("collect2: ")) {
        let line = line.split_once("/ld: ").map_or(line, |(_, rest)| rest);
        let Some((place, function)) = line.split_once("undefined reference to `") else {
            // In which function, a line of its own.
            if !line.contains(": in function `") {
                words += &format!("{line}\n");
            }
            continue;
        };
        let function = function.trim_end_matches('\'');
        // Where the cores start, no program has a line.
        let of_program = !place.contains("program_end.h");
        let place = if of_program { place.to_owned() } else { format!("{name}: ") };
        let line = format!("{place}error: there is no function `{function}`\n");
        if !told.contains(&format!("there is no function '{function}'")) && !words.contains(&line) {
            words += &line;
        }
    }
    words
}

/// Whether a line is a linker's.
fn is_linkers(line: &str) -> bool {
    ["/ld: ", "undefined reference to `", "multiple definition of `"].iter().any(|sign| line.contains(sign))
}

/// What the compiler warns of where a function has never been heard of, as the error that it is once the linker does not find it
/// either, by what that has `said`.
pub(super) fn unknown(warnings: &str, said: &str) -> String {
    const IMPLICIT: &str = "warning: implicit declaration of function ";
    let mut words = String::new();
    for line in warnings.lines() {
        let name = line.split_once(IMPLICIT).and_then(|(place, rest)| Some((place, missing::quoted(rest)?)));
        match name {
            Some((place, name)) if said.contains(&format!("undefined reference to `{name}'")) => {
                words += &format!("{place}error: there is no function '{name}'");
                words += rest_of(line).unwrap_or_default();
            }
            _ => words += line,
        }
        words.push('\n');
    }
    words
}

/// What a compiler takes a name for that it does not know, as it says it: `; did you mean 'setRate'?`.
fn rest_of(line: &str) -> Option<&str> {
    let begin = line.find("; did you mean ")?;
    let end = line[begin..].find('?')?;
    line.get(begin..=begin + end)
}

/// What a call of `program.h` is not given, which it says by a function that must not be called: the message and what to do, for the
/// call at the line and column of the program that `place` names.
fn refused(place: &str, function: &str, message: &str, text: &str) -> (String, Option<String>) {
    let plain = || (message.to_owned(), None);
    let calls = calls_at(place, text);
    let is_variable = |(_, argument): &&(&str, String)| variable_index(argument).is_some();
    let variable = calls.iter().find(is_variable).filter(|_| function == "roci_not_constant");
    let Some((call, argument)) = variable.or(calls.first()) else { return plain() };
    match function {
        "roci_not_constant" => not_constant(call, argument, text).unwrap_or_else(plain),
        "roci_not_a_word" => {
            let field = argument.rsplit(['.', '>']).next().unwrap_or_default();
            let remedy = format!(
                "what to do: declare it `uint32_t {field}` (or int32_t, Fraction and its like) in QPContext, or in PktHeader behind its four \
                 words; flags and small numbers share a word by shifts and masks\n"
            );
            (format!("`{argument}` in {call}: {message}"), Some(remedy))
        }
        "roci_not_writable" => {
            let remedy = "what to do: keep what is computed in a variable or, for the peer, in a word of PktHeader behind its four\n";
            (format!("{message}, and not `{argument}`"), Some(remedy.to_owned()))
        }
        _ => plain(),
    }
}

/// A word that is to be written or read, and of which the compiler cannot tell which it is.
fn not_constant(call: &str, argument: &str, text: &str) -> Option<(String, Option<String>)> {
    let value = if call == "readContext" { "" } else { ", …" };
    let Some((array, index, behind)) = variable_index(argument) else {
        if argument.contains("context") {
            return None;
        }
        let (what, remedy) = if argument.contains("->") || argument.starts_with('*') {
            (
                "is reached through a pointer, and it cannot be told that it always is the same word of an event's context",
                "call it in recv with the event itself, as `e.context.rate`, or have the compiler put the function into its caller: \
                 `static inline __attribute__((always_inline))`",
            )
        } else {
            ("is no field of an Event's context", "a variable of the program's own is set by `=`")
        };
        let remedy = format!("what to do: {remedy}\n");
        return Some((format!("`{argument}` in {call} {what}"), Some(remedy)));
    };
    let name = array.rsplit(['.', '>']).next().unwrap_or_default();
    let length = length_of(name, text);
    // What stands in a pragma is no macro's name to the compiler.
    let turns = length.and_then(|length| number(length, text)).unwrap_or("8");
    let length = length.unwrap_or(turns);
    let counter = if index == "k" { "j" } else { "k" };
    let remedy = format!(
        "what to do: name each word of `{name}` by a constant: `switch ({index}) {{ case 0: {call}({array}[0]{behind}{value}); break; … }}`, or \
         behind `#pragma GCC unroll {turns}`: `for (uint32_t {counter} = 0; {counter} < {length}; {counter}++) if ({counter} == {index}) \
         {call}({array}[{counter}]{behind}{value});`; a loop of the program's own over constant bounds needs that pragma alone. A table that \
         queue pairs may share can be a `static` array, which takes any index\n"
    );
    let told = format!(
        "`{index}` in {call}({argument}{value}) is a variable, and the index of a word of the context must be a constant, for it names the \
         register"
    );
    Some((told, Some(remedy)))
}

/// The first index in `argument` that is no number: the array before it, the index, and what stands behind.
fn variable_index(argument: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let open = from + argument.get(from..)?.find('[')?;
        let close = open + closing(&argument[open..], '[', ']')?;
        let index = argument.get(open + 1..close)?;
        if !index.chars().all(|one| one.is_ascii_digit()) {
            return Some((&argument[..open], index, &argument[close + 1..]));
        }
        from = close + 1;
    }
}

/// Where the bracket closes that `text` begins with.
fn closing(text: &str, opens: char, closes: char) -> Option<usize> {
    let mut depth = 0;
    let found = text.char_indices().find(|(_, one)| {
        depth += i32::from(*one == opens) - i32::from(*one == closes);
        depth == 0
    });
    found.map(|(at, _)| at)
}

/// How many words the array `name` of a structure in `text` has, as the program writes it.
fn length_of<'t>(name: &str, text: &'t str) -> Option<&'t str> {
    let structures = text.split("typedef struct").skip(1).filter_map(|rest| rest.split_once('}'));
    let declared =
        structures.flat_map(|(fields, _)| fields.match_indices(name).map(move |(at, _)| (fields, at)));
    let lengths = declared.filter_map(|(fields, at)| {
        let is_whole = !fields[..at].ends_with(|one: char| one.is_alphanumeric() || one == '_');
        let (length, _) = fields[at + name.len()..].strip_prefix('[')?.split_once(']')?;
        is_whole.then(|| length.trim())
    });
    lengths.filter(|length| !length.is_empty()).last()
}

/// The number that `length` is, or that `text` defines it as.
fn number<'t>(length: &'t str, text: &'t str) -> Option<&'t str> {
    let is_number = |one: &&str| !one.is_empty() && one.chars().all(|one| one.is_ascii_digit());
    let defined = || {
        text.lines().find_map(|line| {
            let mut words = line.trim_start().strip_prefix("#define")?.split_whitespace();
            (words.next() == Some(length)).then(|| words.next())?
        })
    };
    Some(length).filter(is_number).or_else(|| defined().filter(is_number))
}

/// The calls of `program.h` in the line of `text` that a place such as `law.c:34:13: ` names, the nearest to its column first, each with its
/// first argument without spaces.
fn calls_at(place: &str, text: &str) -> Vec<(&'static str, String)> {
    const CALLS: [&str; 3] = ["updateContext", "updatePkt", "readContext"];
    let mut numbers = place.split(':').skip(1).map_while(|number| number.trim().parse::<usize>().ok());
    let (line, column) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(1));
    let begin = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    let rest = &text[begin..];
    let end = rest.find('\n').unwrap_or(rest.len());
    let found = CALLS.iter().flat_map(|call| rest[..end].match_indices(call).map(move |(at, _)| (at, *call)));
    let mut found: Vec<_> = found.collect();
    // Tabs may have moved the column.
    found.sort_by_key(|(at, _)| at.abs_diff(column.saturating_sub(1)));
    found
        .into_iter()
        .filter_map(|(at, call)| Some((call, first_argument(&rest[at + call.len()..])?)))
        .collect()
}

/// The first argument of a call whose name `text` follows, without spaces.
fn first_argument(text: &str) -> Option<String> {
    let open = text.trim_start().strip_prefix('(')?;
    let mut depth = 0;
    let end = open.find(|one: char| {
        depth += i32::from(matches!(one, '(' | '[')) - i32::from(matches!(one, ')' | ']'));
        depth < 0 || depth == 0 && one == ','
    })?;
    Some(open[..end].split_whitespace().collect())
}

/// The line that defines TracedPkts, where that leaves a bracket open.
fn open_bracket(text: &str) -> Option<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let begin = lines.iter().position(|line| {
        line.trim_start().strip_prefix('#').is_some_and(|rest| {
            let mut words = rest.split_whitespace();
            words.next() == Some("define") && words.next() == Some("TracedPkts")
        })
    })?;
    let length = lines[begin..].iter().position(|line| !line.ends_with('\\')).map_or(0, |last| last + 1);
    let count = |bracket| {
        lines[begin..begin + length].iter().map(|line| line.matches(bracket).count()).sum::<usize>()
    };
    (count('(') > count(')')).then_some(begin + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_text_around_asks_of_a_program_is_said_of_its_file() {
        let said = "In file included from <stdin>:3:\n\
            program_end.h:2:23: error: 'QPContext' undeclared here (not in a function); did you mean 'loadContext'?\n    \
            2 | _Static_assert(sizeof(QPContext) <= 128)\n      |                       ^~~~~~~~~\n\
            program_end.h:2:16: error: expression in static assertion is not an integer\n\
            program_end.h:2:1: error: static assertion failed: \"QPContext is at most 32 words\"\n    2 | _Static_assert\n\
            law.c:4:1: warning: a word\n    4 | word\nld: a.o: in function `recv':\n././<stdin>:11: undefined reference\n";
        assert_eq!(
            own_words(said, "law.c", "typedef struct {\n    int qpn;\n} PktHeader;\n"),
            "law.c: error: it has no `QPContext`; `roci program new` makes a skeleton\n\
             law.c: error: QPContext is at most 32 words\nlaw.c:4:1: warning: a word\n    4 | word\n\
             ld: a.o: in function `recv':\nlaw.c:11: undefined reference\n"
        );
    }

    #[test]
    fn a_bracket_that_is_left_open_is_told_of_the_programs_last_line() {
        let said = "<stdin>: In function 'recv':\n<stdin>:4: error: expected declaration or statement at end of input\n";
        assert_eq!(
            own_words(said, "law.c", "int recv() {\n    if (1) {\n}\n"),
            "law.c: In function 'recv':\nlaw.c:3: error: expected declaration or statement at end of input, and there the text \
             ends: is a bracket left open?\n"
        );
    }

    #[test]
    fn a_bracket_that_traced_packets_leave_open_is_told_by_its_line() {
        let said = "program_end.h:20: error: unterminated argument list invoking macro \"ROCI_DO\"\n\
            program.h:187:9: error: 'ROCI_DO' undeclared (first use in this function); did you mean 'ROCI_NOW'?\n";
        let told = |text: &str| own_words(said, "law.c", text);
        let line = "law.c:2: error: a bracket of TracedPkts is left open\n";
        assert_eq!(told("/* A law. */\n#define TracedPkts (ACK | Open\nint recv() {}\n"), line);
        assert_eq!(told("/* A law. */\n#define TracedPkts (ACK | \\\n  Open\nint recv() { f(); }\n"), line);
        // Where it is another's, in the compiler's words.
        let other = "law.c: error: unterminated argument list invoking macro \"ROCI_DO\"\n";
        assert!(told("#define TracedPkts (ACK | \\\n  Open)\n").starts_with(other), "it is not theirs");
    }

    #[test]
    fn what_the_compiler_says_of_each_use_of_an_argument_is_said_once() {
        let no = "law.c:9:5: error: 'QPContext' has no member named 'x'\n";
        let quote = "    9 |     updateContext(e.context.x, 5);\n      |     ^~~~~~~~~~~~~\n";
        let other = "law.c:9:5: error: 'QPContext' has no member named 'y'\n";
        let told = own_words(&[no, quote, no, no, quote, other, no].concat(), "law.c", "");
        assert_eq!(told, [no, quote, other, no].concat());
    }

    #[test]
    fn a_class_that_there_is_not_is_told_by_the_line_that_traces_it() {
        let said = "program_end.h: In function 'rx_start':\n\
            law.c:2:29: error: 'CNPS' undeclared (first use in this function); did you mean 'CNP'?\n    \
            2 | #define TracedPkts (ACK | CNPS)\n      |                           ^~~~\n\
            program_end.h:16:18: error: ‘CNPS’ undeclared (first use in this function); did you mean ‘CNP’?\n   16 | x\n\
            program_end.h:16:18: note: each undeclared identifier is reported only once\n";
        let told = own_words(said, "law.c", "/* A law. */\n#define TracedPkts (ACK | CNPS)\n");
        let line =
            "law.c:2: error: TracedPkts has `CNPS`, which is no class of events: SEND_REQ, WRITE_REQ, ";
        assert!(told.contains(line) && told.contains(", ACK, ") && told.ends_with(", LAW_7\n"), "{told}");
        assert!(!told.contains("rx_start") && !told.contains("note"), "{told}");
        let missing = own_words(&said.replace("CNPS", "TracedPkts"), "law.c", "int recv() {}\n");
        assert!(missing.contains("law.c: error: it has no `TracedPkts`; `roci program new`"), "{missing}");
    }

    #[test]
    fn a_field_that_is_too_wide_is_named_by_its_line() {
        let text = "typedef struct {\n    int qpn;\n} PktHeader;\n\ntypedef struct {\n    uint32_t at;\n    uint64_t sum;\n} QPContext;\n";
        let said =
            |message: &str| format!("program_end.h:6:1: error: static assertion failed: \"{message}\"\n");
        let told = |message: &str| own_words(&said(message), "law.c", text);
        assert_eq!(
            told("fields of QPContext are at most 32 bits wide"),
            "law.c:7: error: fields of QPContext are at most 32 bits wide\n"
        );
        assert_eq!(told("QPContext is at most 32 words"), "law.c:8: error: QPContext is at most 32 words\n");
        assert_eq!(told("PktHeader begins so"), "law.c:3: error: PktHeader begins so\n");
    }

    #[test]
    fn a_warning_of_what_no_one_has_written_is_no_error() {
        let said = "program_end.h:16:5: warning: left-hand operand of comma expression has no effect [-Wunused-value]\n";
        assert_eq!(own_words(said, "law.c", ""), "");
        let said = "program_end.h:16:5: warning: something else [-Wother]\n";
        assert_eq!(own_words(said, "law.c", ""), "law.c: warning: something else [-Wother]\n");
    }

    const LAW: &str = "#define PLACES 4\ntypedef struct {\n    uint32_t at, n[PLACES], link[8];\n    bool b;\n} QPContext;\n\
        updateContext(e.context.n[i % 4], 5);\nupdateContext(c->link[k], 5);\nupdateContext(e.context.at, readContext(e.context.n[at]));\n\
        updateContext(rate, 5);\nupdateContext(e.context.b, 5);\nupdatePkt(e.packet.ecn, 1);\n";

    /// What is said of the call in a line of [`LAW`], by the function that it must not call.
    fn told(line: usize, function: &str) -> String {
        let said = format!(
            "law.c:{line}:1: error: call to 'roci_{function}' declared with attribute error: why\n    {line} | x\n      | ^\n"
        );
        own_words(&said, "law.c", LAW)
    }

    #[test]
    fn an_index_that_is_a_variable_is_named_with_what_to_write_in_its_place() {
        assert_eq!(
            told(6, "not_constant"),
            "law.c:6:1: error: `i%4` in updateContext(e.context.n[i%4], …) is a variable, and the index of a word of the context must be a \
             constant, for it names the register\n    6 | x\n      | ^\n\
             what to do: name each word of `n` by a constant: `switch (i%4) { case 0: updateContext(e.context.n[0], …); break; … }`, or \
             behind `#pragma GCC unroll 4`: `for (uint32_t k = 0; k < PLACES; k++) if (k == i%4) updateContext(e.context.n[k], …);`; a loop \
             of the program's own over constant bounds needs that pragma alone. A table that queue pairs may share can be a `static` \
             array, which takes any index\n"
        );
        let through = told(7, "not_constant");
        assert!(
            through.contains("`for (uint32_t j = 0; j < 8; j++) if (j == k) updateContext(c->link[j], …);`"),
            "{through}"
        );
        let read = told(8, "not_constant");
        assert!(
            read.contains("`at` in readContext(e.context.n[at]) is a variable")
                && read.contains("case 0: readContext(e.context.n[0]);"),
            "{read}"
        );
    }

    #[test]
    fn what_is_no_word_of_a_context_or_packet_is_named() {
        let local = told(9, "not_constant");
        assert!(
            local
                .starts_with("law.c:9:1: error: `rate` in updateContext is no field of an Event's context\n"),
            "{local}"
        );
        let narrow = told(10, "not_a_word");
        assert!(
            narrow.contains("`e.context.b` in updateContext: why")
                && narrow.contains("declare it `uint32_t b`"),
            "{narrow}"
        );
        assert!(told(11, "not_writable").starts_with("law.c:11:1: error: why, and not `e.packet.ecn`\n"));
        // What stands in another file, or nowhere, is said as it is.
        assert!(told(99, "not_constant").starts_with("law.c:99:1: error: why\n"));
        assert_eq!(
            own_words("a.h:1:2: error: call to 'x' declared with attribute error: why\n", "law.c", ""),
            "a.h:1:2: error: why\n"
        );
    }

    #[test]
    fn advice_to_include_what_is_not_there_is_not_passed_on() {
        let said = "law.c:9:5: warning: implicit declaration of function 'printf' [-Wimplicit-function-declaration]\n    9 | printf\n\
            law.c:1:1: note: 'printf' is defined in header '<stdio.h>'; did you forget to '#include <stdio.h>'?\n  +++ |+#include <stdio.h>\n    1 | x\n\
            program.h:290:33: note: in definition of macro 'ROCI_INTEGER'\n  290 |     if\n\
            law.c:9:5: warning: 'asm' operand 0 probably does not match constraints\n    9 | x\n\
            law.c:2:1: note: 'NULL' is defined in header '<stddef.h>'; did you forget to '#include <stddef.h>'?\n";
        let told = own_words(said, "law.c", "");
        let lines: Vec<_> = told.lines().collect();
        assert_eq!(lines.len(), 3, "{told}");
        assert!(lines[1] == "    9 | printf" && lines[2].contains("<stddef.h>"), "{told}");
    }

    #[test]
    fn a_function_that_is_not_there_is_an_error_at_the_line_that_calls_it() {
        let warnings = "law.c:9:5: warning: implicit declaration of function 'setrate'; did you mean 'setRate'? [-Wimplicit-function-declaration]\n\
            law.c:8:5: warning: implicit declaration of function 'later' [-Wimplicit-function-declaration]\n";
        let said = "law.c:9:5: warning: of the compiler\n\
            /usr/bin/../ld: /tmp/a.o: in function `recv':\nlaw.c:9: undefined reference to `setrate'\n/usr/bin/ld: law.c:11: undefined reference to `next'\n\
            law.c:11: undefined reference to `next'\n/usr/bin/ld: /tmp/a.o: in function `rx_start':\n\
            ./include/program_end.h:19: undefined reference to `recv'\ncollect2: error: ld returned 1 exit status\n";
        let told = unknown(warnings, said);
        assert_eq!(
            told,
            "law.c:9:5: error: there is no function 'setrate'; did you mean 'setRate'?\n\
             law.c:8:5: warning: implicit declaration of function 'later' [-Wimplicit-function-declaration]\n"
        );
        assert_eq!(
            linked(said, &told, "law.c"),
            "law.c:11: error: there is no function `next`\nlaw.c: error: there is no function `recv`\n"
        );
        assert_eq!(linked("law.c:9:5: error: of the compiler\n", "", "law.c"), "");
    }
}
