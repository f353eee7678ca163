//! Slips in a program's text that compile, and that nobody sees in the image: what is assigned and lost, and events that it
//! waits for and never hears of.
//!
//! They are found in what the preprocessor leaves of the text, where the calls of `program.h` that matter stand as calls
//! ([`AS_CALLS`]): macros of the program's own are looked through, and what it leaves out is not looked at. What cannot be told
//! from the words alone is passed over.

use super::CLASSES;
use roci_control::Class;
use std::collections::BTreeSet;

/// Stands between `program.h` and a program's text where that is only looked at.
pub(super) const AS_CALLS: &str = "#undef pollEventSync\n#define pollEventSync(event) roci_poll(event)\n\
    #undef pollEvent\n#define pollEvent(event) roci_poll(event)\n\
    #undef postEvent\n#define postEvent(event) roci_post(event)\n\
    #undef readContext\n#define readContext(place) (place)\n\
    #undef loadContext\n#define loadContext(event) roci_load(event)\n\
    #undef updateContext\n#define updateContext(place, value) roci_update(place, value)\n\
    #undef updatePkt\n#define updatePkt(place, value) roci_update(place, value)\n\
    #undef tracePackets\n#define tracePackets(classes) roci_trace(classes)\n";

const ASSIGNMENTS: [&str; 13] =
    ["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"];
/// Of two and three characters, those of three first.
const LONG: [&str; 22] = [
    "<<=", ">>=", "...", "->", "++", "--", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "+=", "-=", "*=",
    "/=", "%=", "&=", "|=", "^=",
];

/// A word, a number, a sign, or a string of the text, and where it stands.
#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    text: &'a str,
    file: &'a str,
    line: usize,
}

/// What is to be warned of in `text`, what the preprocessor leaves: a line each, as compilers write them. Files in the folder
/// `ours` are not the user's.
pub(super) fn warnings(text: &str, ours: &str) -> String {
    let tokens = tokens(text);
    let mut found = lost(&tokens);
    found.extend(overwritten(&tokens));
    found.extend(unheard(&tokens));
    found.extend(answered(&tokens));
    found.extend(elsewhere(&tokens));
    found.extend(beyond(&tokens));
    found.extend(hidden(&tokens));
    found.sort_by_key(|(at, _)| *at);
    let mut told = BTreeSet::new();
    let mut lines = String::new();
    for (at, message) in found {
        let Token { file, line, .. } = tokens[at];
        let line = format!("{file}:{line}: warning: {message}\n");
        if !file.starts_with(ours) && told.insert(line.clone()) {
            lines += &line;
        }
    }
    lines
}

/// Fields of the context or the packet that are assigned, and nothing comes of it: where, and what to do.
fn lost(tokens: &[Token<'_>]) -> Vec<(usize, String)> {
    // Who writes a field with its own value keeps what was assigned to it before.
    let kept: BTreeSet<String> = calls(tokens, "roci_update")
        .filter_map(|arguments| {
            let (place, value) = arguments.split_at(comma(arguments)?);
            let [place, value] = [place, &value[1..]].map(written);
            (place == value).then_some(place)
        })
        .collect();
    let pointers = pointers(tokens);
    let mut lost = Vec::new();
    for at in 0..tokens.len() {
        let through = field_through(tokens, at, &pointers).map(|field| (field, "context"));
        let Some((field, of)) = through.or_else(|| field(tokens, at)) else { continue };
        let place = written(&tokens[field.clone()]);
        if !is_assigned(tokens, &field) || kept.contains(&place) {
            continue;
        }
        lost.push((
            field.start,
            match of {
                "context" => format!(
                    "`{place}` is assigned without updateContext, so the queue pair does not keep it: write \
                     updateContext({place}, …){}",
                    constant_index(&place)
                ),
                _ => format!(
                    "`{place}` is assigned without updatePkt, so no packet goes out with it: write updatePkt({place}, …)"
                ),
            },
        ));
    }
    lost
}

/// What else is to be heeded where the word of the context has an index that is no number.
fn constant_index(place: &str) -> &'static str {
    let mut indices = place.split('[').skip(1).filter_map(|rest| rest.split(']').next());
    if indices.all(|index| index.chars().all(|one| one.is_ascii_digit())) {
        return "";
    }
    ", where the index must be a constant, as behind `case 0:` of a switch or in a loop behind `#pragma GCC unroll 8`"
}

/// Fields of an event that are only to be read, and the call that sets what they tell, if there is one.
const TOLD: [(&str, &str); 18] = [
    ("rate", "setRate"),
    ("window", "setWindow"),
    ("tokens", "setTokens"),
    ("now", ""),
    ("sent", ""),
    ("peerSent", ""),
    ("echoed", ""),
    ("acked", ""),
    ("inFlight", ""),
    ("ackedSequence", ""),
    ("nextSequence", ""),
    ("timer", ""),
    ("periods", ""),
    ("hops", ""),
    ("timeout", ""),
    ("drained", ""),
    ("sentKnown", ""),
    ("stamped", ""),
];

/// The names of the fields of an event that are only to be read.
pub(super) fn told() -> [&'static str; TOLD.len()] {
    TOLD.map(|(field, _)| field)
}

/// The names of what events are polled into.
fn events<'a>(tokens: &[Token<'a>]) -> BTreeSet<&'a str> {
    calls(tokens, "roci_poll")
        .filter_map(|arguments| arguments.last().map(|token| token.text).filter(|name| is_word(name)))
        .collect()
}

/// Fields of the event itself that are assigned though they only tell: where, and what to do.
fn overwritten(tokens: &[Token<'_>]) -> Vec<(usize, String)> {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let events = events(tokens);
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let begins = events.contains(word(at)) && !matches!(at.checked_sub(1).map_or("", word), "." | "->");
        let Some((field, call)) = TOLD.iter().find(|(field, _)| *field == word(at + 2)) else { continue };
        if !begins || !matches!(word(at + 1), "." | "->") || !is_assigned(tokens, &(at..at + 3)) {
            continue;
        }
        let place = written(&tokens[at..at + 3]);
        let instead = match *call {
            "" => format!("`{field}` is only to be read: keep what is computed in a variable"),
            call => format!("it only tells what is so: write {call}(…)"),
        };
        found.push((at, format!("`{place}` is assigned, and nothing comes of it; {instead}")));
    }
    found
}

/// Calls of updateContext and updatePkt for what an event only tells: where, and what to do.
fn elsewhere(tokens: &[Token<'_>]) -> Vec<(usize, String)> {
    let events = events(tokens);
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let word = |more: usize| tokens.get(at + more).map_or("", |token| token.text);
        let begins = word(0) == "roci_update"
            && word(1) == "("
            && events.contains(word(2))
            && matches!(word(3), "." | "->");
        if !begins || word(5) != "," {
            continue;
        }
        let instead = match (TOLD.iter().find(|(field, _)| *field == word(4)), word(4)) {
            (Some((_, "")), field) => {
                format!("`{field}` is only to be read: keep what is computed in a variable")
            }
            (Some((_, call)), _) => format!("write {call}(…)"),
            (None, "eventType") => format!("write `{} = …;`", written(&tokens[at + 2..at + 5])),
            _ => continue,
        };
        let place = written(&tokens[at + 2..at + 5]);
        found.push((at + 2, format!("`{place}` is no field of the context or the packet, and another word would be written: {instead}")));
    }
    found
}

/// Words of an array of the context that are beyond its end, which are other words of it or none: where, and what to do.
fn beyond(tokens: &[Token<'_>]) -> Vec<(usize, String)> {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let number = |at: usize| word(at).parse::<usize>().ok();
    let end = (1..tokens.len()).find(|&at| word(at) == "QPContext" && word(at - 1) == "}");
    let Some((begin, end)) = end.and_then(|end| Some((opening(tokens, end - 1)?, end))) else {
        return Vec::new();
    };
    let array =
        |at: usize| Some((word(at), number(at + 2).filter(|_| (word(at + 1), word(at + 3)) == ("[", "]"))?));
    let arrays: Vec<(&str, usize)> = (begin..end).filter_map(array).collect();
    let pointers = pointers(tokens);
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let direct = matches!(word(at), "." | "->") && word(at + 1) == "context" && word(at + 2) == ".";
        let name = if direct {
            at + 3
        } else if pointers.contains(word(at)) && word(at + 1) == "->" {
            at + 2
        } else {
            continue;
        };
        let Some((field, index)) = array(name) else { continue };
        if let Some((_, length)) = arrays.iter().find(|(array, length)| *array == field && index >= *length) {
            found.push((
                name,
                format!(
                    "`{field}[{index}]` is beyond the array, whose words are {field}[0] to {field}[{}]: it is another word of the context, or \
                     none",
                    length - 1
                ),
            ));
        }
    }
    found
}

/// `recv` or `send` where it is static: where, and what to do.
fn hidden(tokens: &[Token<'_>]) -> Vec<(usize, String)> {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let is_static = |at: usize| {
        let before = (at.saturating_sub(4)..at).rev().map(word);
        before.take_while(|word| is_word(word)).any(|word| word == "static")
    };
    let begins = (0..tokens.len()).filter(|&at| matches!(word(at), "recv" | "send") && word(at + 1) == "(");
    begins
        .filter(|&at| is_static(at))
        .map(|at| {
            let name = word(at);
            (at, format!("`{name}` is static, so nobody can start a core with it: write `int {name}()`"))
        })
        .collect()
}

/// The names of pointers that are only ever set to an event's context or to a part of it, as by `Link *link =
/// &e.context.links[n]`.
fn pointers<'a>(tokens: &[Token<'a>]) -> BTreeSet<&'a str> {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let (mut into, mut elsewhere) = (BTreeSet::new(), BTreeSet::new());
    for at in (1..tokens.len()).filter(|&at| word(at) == "=" && is_word(word(at - 1))) {
        let is_context = word(at + 1) == "&"
            && is_word(word(at + 2))
            && matches!(word(at + 3), "." | "->")
            && word(at + 4) == "context";
        let set = if is_context { &mut into } else { &mut elsewhere };
        set.insert(tokens[at - 1].text);
    }
    &into - &elsewhere
}

/// The field that is reached through one of `pointers` whose name stands at `at`: its tokens.
fn field_through(
    tokens: &[Token<'_>],
    at: usize,
    pointers: &BTreeSet<&str>,
) -> Option<std::ops::Range<usize>> {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let reaches = pointers.contains(word(at)) && word(at + 1) == "->" && is_word(word(at + 2));
    reaches.then(|| end_of_field(tokens, at + 3).map(|end| at..end))?
}

/// Where the field ends of whose first name the end is at `end`.
fn end_of_field(tokens: &[Token<'_>], mut end: usize) -> Option<usize> {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
    loop {
        match word(end) {
            "." if is_word(word(end + 1)) => end += 2,
            "[" => end = closing(tokens, end)? + 1,
            _ => return Some(end),
        }
    }
}

/// The field of an event's context or packet whose name after the event stands at `at`, such as `.context` in `e.context.x`: the
/// tokens from the event to the field's end, and of which it is one.
fn field<'a>(tokens: &[Token<'a>], at: usize) -> Option<(std::ops::Range<usize>, &'a str)> {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let of = word(at + 1);
    let opens = matches!(word(at), "." | "->") && matches!(of, "context" | "packet") && word(at + 2) == ".";
    if !opens || !is_word(word(at + 3)) {
        return None;
    }
    let end = end_of_field(tokens, at + 4)?;
    let before = at.checked_sub(1)?;
    let start = match word(before) {
        ")" => opening(tokens, before)?,
        name if is_word(name) => before,
        _ => return None,
    };
    Some((start..end, of))
}

/// Whether something is assigned to `field` itself, and not to what it points to.
fn is_assigned(tokens: &[Token<'_>], field: &std::ops::Range<usize>) -> bool {
    let word = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map_or("", |token| token.text);
    let before = field.start.checked_sub(1);
    let is_cast = word(before) == ")" && {
        let opening = before.and_then(|at| opening(tokens, at));
        !matches!(word(opening.and_then(|at| at.checked_sub(1))), "if" | "while" | "for" | "switch")
    };
    if is_cast || word(before) == "*" {
        return false;
    }
    ASSIGNMENTS.contains(&word(Some(field.end))) || matches!(word(before), "++" | "--")
}

/// Classes that an event is compared with, and that the program does not trace: where, and what to do.
fn unheard(tokens: &[Token<'_>]) -> Vec<(usize, String)> {
    let mut heard = Class::TIMER.with(Class::TRANSMIT);
    for arguments in calls(tokens, "roci_trace") {
        // What is worked out during the run may be anything.
        let Some(classes) = classes(arguments) else { return Vec::new() };
        heard = heard.with(classes);
    }
    let mut unheard = Vec::new();
    let mut compared = |at: usize, words: &[Token<'_>]| {
        if let Some(classes) =
            classes(words).filter(|classes| *classes != Class::NONE && !classes.meets(heard))
        {
            let names: Vec<_> =
                CLASSES.iter().filter(|(class, _)| class.meets(classes)).map(|(_, name)| *name).collect();
            let (names, none) =
                (names.join(" | "), if names.len() == 1 { "no event is one" } else { "no event is any" });
            unheard.push((at, format!("TracedPkts has no {names}, so {none}: add it there to hear of it")));
        }
    };
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
    for at in 0..tokens.len() {
        let Some(class) = class_of_event(tokens, at) else { continue };
        let next = class.end + 1;
        match word(class.end) {
            "==" | "!=" => compared(next, tokens.get(next..=next).unwrap_or_default()),
            "&" if word(next) == "(" => {
                let end = closing(tokens, next).unwrap_or(next);
                compared(next, &tokens[next..end]);
            }
            "&" => compared(next, tokens.get(next..=next).unwrap_or_default()),
            _ => {}
        }
        if let Some(other) =
            class.start.checked_sub(2).filter(|_| matches!(word(class.start - 1), "==" | "!="))
        {
            compared(other, &tokens[other..=other]);
        }
        // switch (e.packet.opcode) { case X: … }
        let switched = class.start >= 2 && (word(class.start - 2), word(class.start - 1)) == ("switch", "(");
        if switched && (word(class.end), word(next)) == (")", "{") {
            let end = closing(tokens, next).unwrap_or(next);
            for case in (next..end).filter(|at| word(*at) == "case") {
                compared(case + 1, &tokens[case + 1..case + 2]);
            }
        }
    }
    unheard
}

/// Comparisons of `e.eventType` with a class where the answer has been put in its place: where, and what to do.
fn answered(tokens: &[Token<'_>]) -> Vec<(usize, String)> {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let mut found = Vec::new();
    // Of the event that was polled last: in how many brackets, and the line from which on it is answered on all ways.
    let (mut depth, mut polled, mut line) = (0, 0, None);
    for at in 0..tokens.len() {
        depth += depth_of(word(at));
        match word(at) {
            "roci_poll" => (polled, line) = (depth, None),
            "eventType" if matches!(word(at.wrapping_sub(1)), "." | "->") => {
                // One that stands on its own behind the poll: `else e.eventType = Done;` is on one way alone.
                let alone = depth == polled && matches!(word(at.wrapping_sub(3)), ";" | "{" | "}");
                if alone && word(at + 1) == "=" {
                    line = line.or(Some(tokens[at].line));
                }
                let is_class = |at| classes(tokens.get(at..=at)?).filter(|class| *class != Class::NONE);
                if let (Some(line), "==" | "!=") = (line, word(at + 1))
                    && is_class(at + 2).is_some()
                {
                    let place = written(&tokens[at - 2..=at]);
                    let polled = word(at - 2);
                    let dot = word(at - 1);
                    found.push((
                        at,
                        format!(
                            "`{place}` is the answer from line {line} on, and no class: compare {polled}{dot}packet.opcode"
                        ),
                    ));
                }
            }
            _ => {}
        }
    }
    found
}

/// Where the text defines TracedPkts with `||` or `&&`, each of which makes one bit of all classes, or with a comma, which
/// leaves the last class: the line, and what to do.
pub(super) fn joined(text: &str) -> Option<(usize, String)> {
    let defines = |line: &str| line.trim_start().strip_prefix("#define TracedPkts").map(str::to_owned);
    let (at, value) = text.lines().enumerate().find_map(|(at, line)| Some((at, defines(line)?)))?;
    let value = value.split("/*").next().unwrap_or_default().split("//").next().unwrap_or_default();
    let sign = ["||", "&&", ","].into_iter().find(|sign| value.contains(sign))?;
    let means = match sign {
        "," => "whose value is what follows the last one",
        _ => "whose value is 1, the class SEND_REQ",
    };
    Some((1 + at, format!("TracedPkts has `{sign}`, {means}: join classes by `|`")))
}

/// An event's class, `e.packet.opcode` or `e.eventType`, whose first sign after the event stands at `at`.
fn class_of_event(tokens: &[Token<'_>], at: usize) -> Option<std::ops::Range<usize>> {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
    if matches!(word(at), "." | "->") && word(at + 1) == "eventType" {
        return at.checked_sub(1).map(|before| before..at + 2);
    }
    let (field, of) = field(tokens, at)?;
    (of == "packet" && field.len() == 5 && word(field.end - 1) == "opcode").then_some(field)
}

/// The classes that `words` name, or-ed; `None` where they say anything else.
fn classes(words: &[Token<'_>]) -> Option<Class> {
    words.iter().try_fold(Class::NONE, |all, token| match token.text {
        "|" | "(" | ")" | "0" => Some(all),
        name => CLASSES.iter().find(|(_, known)| *known == name).map(|(class, _)| all.with(*class)),
    })
}

/// The arguments of each call of `function`.
fn calls<'t, 'a>(tokens: &'t [Token<'a>], function: &str) -> impl Iterator<Item = &'t [Token<'a>]> {
    tokens.windows(2).enumerate().filter_map(move |(at, pair)| {
        let is_call = pair[0].text == function && pair[1].text == "(";
        is_call.then(|| tokens.get(at + 2..closing(tokens, at + 1)?))?
    })
}

/// The place of the first comma that stands in no brackets.
fn comma(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0;
    tokens.iter().position(|token| {
        depth += depth_of(token.text);
        depth == 0 && token.text == ","
    })
}

fn depth_of(sign: &str) -> i32 {
    match sign {
        "(" | "[" | "{" => 1,
        ")" | "]" | "}" => -1,
        _ => 0,
    }
}

/// Where the bracket closes that opens at `at`.
fn closing(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let mut depth = 0;
    let found = tokens[at..].iter().position(|token| {
        depth += depth_of(token.text);
        depth == 0
    });
    found.map(|more| at + more)
}

/// Where the bracket opens that closes at `at`.
fn opening(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let mut depth = 0;
    tokens[..=at].iter().rposition(|token| {
        depth += depth_of(token.text);
        depth == 0
    })
}

fn written(tokens: &[Token<'_>]) -> String {
    tokens.iter().map(|token| token.text).collect()
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// The tokens of what a preprocessor has written, whose lines `# 12 "file.c"` say where the next one comes from.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut file, mut line) = ("", 0);
    for row in text.lines() {
        if let Some(marker) = row.strip_prefix('#') {
            if let Some((number, name)) = marker.trim_start().split_once(" \"")
                && let Ok(number) = number.parse()
            {
                (file, line) = (name.split('"').next().unwrap_or_default(), number);
            }
            continue;
        }
        let mut rest = row.trim_start();
        while let Some(first) = rest.chars().next() {
            let (token, behind) = rest.split_at(length(rest, first));
            tokens.push(Token { text: token, file, line });
            rest = behind.trim_start();
        }
        line += 1;
    }
    tokens
}

/// How many octets the token takes that `text` begins with.
fn length(text: &str, first: char) -> usize {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if word(first) {
        return text.find(|c| !word(c)).unwrap_or(text.len());
    }
    if matches!(first, '"' | '\'') {
        let mut escaped = false;
        let end = text.char_indices().skip(1).find(|&(_, c)| {
            let ends = c == first && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        return end.map_or(text.len(), |(at, _)| at + 1);
    }
    let long = LONG.iter().find(|sign| text.starts_with(**sign));
    long.map_or(first.len_utf8(), |sign| sign.len())
}

#[cfg(test)]
mod tests;
