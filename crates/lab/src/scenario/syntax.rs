//! What to do about a text that is not TOML: the parser says what it met, a reader wants to know what to write.

use std::ops::Range;

/// What would be right, where the parser says `message` about the octets `span` of `text`.
pub(super) fn remedy(text: &str, span: &Range<usize>, message: &str) -> String {
    let has = |word: &str| message.contains(word);
    let fixed = match () {
        () if has("duplicate key") => return duplicate(text, span.start),
        () if has("unclosed array table") || has("unclosed table") || has("table open") => {
            "close the heading: a table begins with [name], a list of tables with [[name]], alone on their line"
        }
        () if has("unclosed array") => {
            "close the list with `]`; what stands between its brackets is separated by commas"
        }
        () if has("unclosed inline table") => "close the table with `}`; its keys are separated by commas",
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
