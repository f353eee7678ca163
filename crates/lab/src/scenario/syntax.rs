//! What to do about a text that is not TOML: the parser says what it met, a reader wants to know what to write.

use std::ops::Range;

/// What would be right, where the parser says `message` about the octets `span` of `text`.
pub(super) fn remedy(text: &str, span: &Range<usize>, message: &str) -> String {
    if let Some(remedy) = without_value(text, span.start) {
        return remedy;
    }
    let has = |word: &str| message.contains(word);
    let fixed = match () {
        () if has("duplicate key") => return duplicate(text, span.start),
        () if has("unclosed array table") || has("unclosed table") || has("table open") => {
            "close the heading: a table begins with [name], a list of tables with [[name]], alone on their line"
        }
        () if has("unclosed array") => closing('['),
        () if has("unclosed inline table") => closing('{'),
        () if has("comma") => {
            "separate items by one comma each, and close a list with `]`, a table in braces with `}`"
        }
        () if has("quote") || has("string") || has("invalid value") => {
            "put text in quotes on one line, such as rate = \"10Gb/s\"; numbers, true and false have none"
        }
        () if has("assignment") || has("no value") || has("missing value") || has("extra `=`") => {
            "write key = value, one on each line"
        }
        () if has("unexpected content") || has("unexpected key or value") || has("key-value pair") => {
            "write key = value, one on each line; a table begins with [name], a list of tables with [[name]]"
        }
        () if has("key") => {
            "a key has letters, digits, dashes and underscores; with anything else it stands in quotes"
        }
        () => "strings stand in quotes, a table begins with [name], a list of tables with [[name]]",
    };
    fixed.to_owned()
}

/// What to do about `key =` with nothing behind it on its line, if that is what the parser stumbles over at octet `at`.
fn without_value(text: &str, at: usize) -> Option<String> {
    let is_told = |(_, line): &(usize, &str)| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let ends = text.as_bytes()[..at.min(text.len())].iter().filter(|octet| **octet == b'\n').count();
    // It may point at the end of the line, at the next, or at what stands there, which is no key, or at the first item of a list.
    let before: Vec<(usize, &str)> = (1..).zip(text.lines()).take(ends + 1).filter(is_told).collect();
    let (number, key) =
        before.iter().rev().take(3).find_map(|(number, line)| Some((*number, key_alone(line)?)))?;
    let next = (1..).zip(text.lines()).skip(number).find(is_told);
    Some(match next.filter(|(_, line)| is_value(line.trim())) {
        Some((next, _)) => {
            format!("a value begins on the line of its key: move that of line {next} up behind `{key} =`")
        }
        None => format!("write the value of `{key}` behind the `=`, or leave the line out"),
    })
}

/// The key of a line that has nothing behind its `=`.
fn key_alone(line: &str) -> Option<&str> {
    let (key, rest) = line.split_once('=')?;
    let (key, rest) = (key.trim(), rest.trim_start());
    let is_alone = rest.is_empty() || rest.starts_with('#');
    (is_alone && !key.is_empty() && !key.starts_with('#')).then_some(key)
}

/// Whether `line` is or begins a value, and no key or heading.
fn is_value(line: &str) -> bool {
    let is_list =
        line == "[" || line.starts_with('[') && (heading(line).is_none() || line.contains(['"', ',']));
    let is_plain = line.starts_with(|first: char| first.is_ascii_digit() || "\"'+-".contains(first));
    let is_flag = ["true", "false"].contains(&line.split(['#', ' ', '\t']).next().unwrap_or_default());
    line.starts_with('{')
        || is_list && !line.starts_with("[[")
        || (is_plain || is_flag) && !line.contains('=')
}

/// How what `opening` begins is closed.
pub(super) const fn closing(opening: char) -> &'static str {
    match opening {
        '{' => "close the table with `}`; its keys are separated by commas",
        _ => "close the list with `]`; what stands between its brackets is separated by commas",
    }
}

/// A bracket or brace that is never closed, and so made the parser stumble at octet `error` on a later line: its place, and
/// which it is. `None` where the one that is open there is closed further down, for then something else is wrong.
pub(super) fn never_closed(text: &str, error: usize) -> Option<(usize, char)> {
    let octets = text.as_bytes();
    let mut open: Vec<(usize, char)> = Vec::new();
    // The innermost one that is open at the error, and how many are open with it.
    let mut watched = None;
    let mut at = 0;
    while let Some(octet) = octets.get(at) {
        if at >= error && watched.is_none() {
            watched = Some((*open.last()?, open.len()));
        }
        at = match octet {
            b'#' => line_end(octets, at),
            b'"' | b'\'' => string_end(octets, at),
            // The heading of a table is closed on its line, or that is what the parser stumbles at.
            b'[' if open.is_empty() && begins_line(octets, at) => line_end(octets, at),
            b'[' | b'{' => {
                open.push((at, char::from(*octet)));
                at + 1
            }
            b']' | b'}' => {
                let opening = if *octet == b']' { '[' } else { '{' };
                let fits = open.last().is_some_and(|(_, bracket)| *bracket == opening);
                if let Some((bracket, depth)) = watched
                    && open.len() <= depth
                {
                    return Some(bracket).filter(|(at, _)| !fits && spans_lines(octets, *at, error));
                }
                open.pop();
                at + 1
            }
            _ => at + 1,
        };
    }
    let bracket = watched.map_or_else(|| open.last().copied(), |(bracket, _)| Some(bracket));
    bracket.filter(|(at, _)| spans_lines(octets, *at, error))
}

fn spans_lines(octets: &[u8], from: usize, to: usize) -> bool {
    octets.get(from..to.min(octets.len())).is_some_and(|between| between.contains(&b'\n'))
}

/// The end of the line of octet `at`.
fn line_end(octets: &[u8], at: usize) -> usize {
    octets[at..].iter().position(|octet| *octet == b'\n').map_or(octets.len(), |length| at + length)
}

fn begins_line(octets: &[u8], at: usize) -> bool {
    octets[..at].iter().rev().find(|octet| !b" \t".contains(octet)).is_none_or(|octet| *octet == b'\n')
}

/// Behind the string that begins at octet `at`: on its line, or behind three more quotes.
fn string_end(octets: &[u8], at: usize) -> usize {
    let quote = octets[at];
    let three = [quote; 3];
    let long = octets[at..].starts_with(&three);
    let mut end = at + if long { 3 } else { 1 };
    while let Some(octet) = octets.get(end) {
        match octet {
            b'\\' if quote == b'"' => end += 1,
            b'\n' if !long => return end,
            _ if long && octets[end..].starts_with(&three) => return end + 3,
            octet if !long && *octet == quote => return end + 1,
            _ => {}
        }
        end += 1;
    }
    octets.len()
}

/// The remedy for a key or a heading at `at` that stands elsewhere already, with its line.
fn duplicate(text: &str, at: usize) -> String {
    let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    let before = (1..).zip(text[..start].lines());
    if let Some(heading) = heading(line) {
        let first = before.into_iter().find(|(_, line)| self::heading(line) == Some(heading));
        let place = first.map_or(String::new(), |(number, _)| format!(" in line {number}"));
        return format!(
            "{heading} stands{place} already: write its keys together, or [{heading}] at both places where there are to be several"
        );
    }
    let key = text[at..].split(['=', '.', '\n', ' ', '\t']).next().unwrap_or_default();
    let sets = |line: &str| {
        let rest = line.trim_start().strip_prefix(key).map(str::trim_start);
        !key.is_empty() && rest.is_some_and(|rest| rest.starts_with(['=', '.']))
    };
    let mut first = None;
    for (number, line) in before {
        // Another table begins: the same key there is another one.
        if heading(line).is_some() {
            first = None;
        } else if sets(line) && first.is_none() {
            first = Some(number);
        }
    }
    match first {
        Some(number) => format!("`{key}` stands in line {number} already: keep one of the two"),
        None => "it stands in the same table already: keep one of the two".to_owned(),
    }
}

/// The heading of a table in `line`, `[name]`; none of a list of tables, which may come twice.
fn heading(line: &str) -> Option<&str> {
    let line = line.trim();
    let name = line.strip_prefix('[').filter(|rest| !rest.starts_with('['))?;
    let end = name.find(']')?;
    // A list within a list has more behind it than a comment.
    let rest = name[end + 1..].trim_start();
    (rest.is_empty() || rest.starts_with('#')).then(|| &line[..end + 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::de::DeTable;

    fn told(text: &str) -> String {
        let error = DeTable::parse(text).expect_err(text);
        remedy(text, &error.span().unwrap(), error.message())
    }

    #[test]
    fn a_key_twice_names_the_line_of_the_first() {
        let text = "[nic]\nmtu = 1\n[switch]\n  buffer = \"1MB\" # x\npfc = true\nbuffer=\"2MB\"\n";
        assert_eq!(told(text), "`buffer` stands in line 4 already: keep one of the two");
        assert!(told("a = { b = 1, b = 2 }").starts_with("it stands in the same table already"));
        assert_eq!(told("\"µ\" = 1\n\"µ\" = 2"), "`\"µ\"` stands in line 1 already: keep one of the two");
    }

    #[test]
    fn a_table_twice_names_the_line_of_the_first_and_offers_a_list() {
        let said = told("[traffic]\nkind = 1\n\n[traffic] # again\nkind = 2\n");
        assert!(
            said.starts_with("[traffic] stands in line 1 already") && said.contains("[[traffic]] at both"),
            "{said}"
        );
    }

    #[test]
    fn what_is_never_closed_is_found_where_it_was_opened() {
        let found = |text: &str| {
            let error = DeTable::parse(text).expect_err(text);
            never_closed(text, error.span().unwrap().start).map(|(at, _)| text[at..].to_owned())
        };
        for (text, opened) in [
            ("[switch]\necn = { kmin = 1 # }\nbuffer = 2\n[nic]\nx = [1]\n", "{ kmin"),
            ("hosts = [\"]\", 'b'\nswitches = [\"s\"]\n", "[\"]\""),
            ("hosts = [1, 2\n[nic]\nmtu = 1\n", "[1, 2"),
            ("flows = [\n  { a = 1,\n  { a = 2 },\n]\n", "{ a = 1,"),
            ("flows = [\n  { a = 1 },\n  { a = \"\\\"}\" },\n\nx = 1\n", "[\n"),
            ("x = [\n'''\n]''',\n", "[\n'''"),
        ] {
            let found = found(text);
            assert!(found.as_ref().is_some_and(|found| found.starts_with(opened)), "{text:?}: {found:?}");
        }
        for other in [
            "hosts = [\n1\n2\n]\n",
            "a = {\nb = 1\nc = 2\n}\n",
            "a = [1]\nb = \n",
            "[switch\nb = 1\n",
            "a = \"[\nb = 1\n",
            "a = [1 2]\nb = [1]\n",
            "a = ]\n",
        ] {
            assert_eq!(found(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_value_that_is_not_on_the_line_of_its_key_is_found_on_the_next() {
        for value in ["\"4MB\"", "4MB # so much", "[1, 2]", "[\n1]", "{ alpha = 1 }", "true", "-1"] {
            let said = told(&format!("[switch]\nbuffer = # octets\n\n# of all\n{value}\npfc = true\n"));
            let moved = "a value begins on the line of its key: move that of line 5 up behind `buffer =`";
            assert_eq!(said, moved, "{value}");
        }
        for rest in ["", "\n", "\npfc = true\n", "\n\n[nic]\nmtu = 1\n", "\n[[traffic]]\n", "\n\"a b\" = 1\n"]
        {
            let said = told(&format!("[switch]\nbuffer ={rest}"));
            assert_eq!(said, "write the value of `buffer` behind the `=`, or leave the line out", "{rest:?}");
        }
    }

    #[test]
    fn each_mistake_has_a_remedy_of_its_own() {
        for (text, remedy) in [
            ("[switch\nbuffer = 1", "close the heading"),
            ("[[traffic]\nkind = 1", "close the heading"),
            ("hosts = [1, 2", "close the list"),
            ("hosts = [1, 2\n[nic]", "separate items"),
            ("ecn = { kmin = 1\n", "close the table"),
            ("hosts = [\"a\" \"b\"]", "separate items"),
            ("rate = 10Gb/s", "put text in quotes"),
            ("rate = \"10Gb/s\nx = 1", "put text in quotes"),
            ("rate", "write key = value"),
            ("nonsense here", "write key = value"),
        ] {
            assert!(
                told(text).starts_with(remedy),
                "{text:?}: {} ({})",
                told(text),
                DeTable::parse(text).unwrap_err().message()
            );
        }
    }
}
