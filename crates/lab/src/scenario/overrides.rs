//! What people write after `--set` and `--seeds`: `path=value`, lists of values, ranges.

/// Why an argument cannot be read, and what would do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{argument}: {message}; {remedy}")]
pub struct ArgumentError {
    /// What was given.
    pub argument: String,
    /// What is wrong with it.
    pub message: &'static str,
    /// What would be right.
    pub remedy: String,
}

/// The most values of one list or range.
const MOST: u64 = 100_000;

/// The path and the value of `path=value`. An equals sign within quotes belongs to a part of the path.
///
/// # Errors
/// When there is no `=`, or nothing before it.
pub fn assignment(argument: &str) -> Result<(String, String), ArgumentError> {
    let sign = unquoted(argument).find(|(_, c)| *c == '=').map(|(at, _)| at);
    match sign.map(|at| (argument[..at].trim(), argument[at + 1..].trim())) {
        Some((path, value)) if !path.is_empty() => Ok((path.to_owned(), value.to_owned())),
        None if argument.contains('=') => Err(ArgumentError {
            argument: argument.to_owned(),
            message: "a quote in its key is never closed",
            remedy: "write it as in at.0.set.\"switch.ecn.kmin\"=50KB".to_owned(),
        }),
        _ => Err(ArgumentError {
            argument: argument.to_owned(),
            message: "this sets nothing",
            remedy: "write key=value, such as switch.buffer=2MB".to_owned(),
        }),
    }
}

/// The keys of a path such as `at.0.set."switch.ecn.kmin"`: they end at its dots, but for those of a key in quotes.
pub(super) fn keys_of(path: &str) -> Vec<&str> {
    let (mut keys, mut start) = (Vec::new(), 0);
    for (at, _) in dots(path) {
        keys.push(bare(&path[start..at]));
        start = at + 1;
    }
    keys.push(bare(&path[start..]));
    keys
}

/// Where the keys of a path end.
pub(crate) fn dots(path: &str) -> impl Iterator<Item = (usize, char)> {
    unquoted(path).filter(|(_, c)| *c == '.')
}

/// A key without the quotes around it.
fn bare(key: &str) -> &str {
    let key = key.trim();
    let within = |quote| key.strip_prefix(quote)?.strip_suffix(quote);
    within('"').or_else(|| within('\'')).unwrap_or(key)
}

/// The signs of a path that stand in no quotes. These begin where a key does, so that a name may have an apostrophe.
fn unquoted(path: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut quote, mut begins) = (None, true);
    path.char_indices().filter(move |&(_, c)| {
        let is_free = quote.is_none();
        match quote {
            Some(open) => quote = quote.filter(|_| c != open),
            None if begins && (c == '"' || c == '\'') => quote = Some(c),
            None => {}
        }
        begins = is_free && (c == '.' || begins && c.is_whitespace());
        is_free
    })
}

/// The values of a list `a,b,c` whose items may be ranges `1..8`, both ends included. Commas within quotes, brackets
/// and braces belong to a value.
///
/// # Errors
/// When a range runs backwards or has more than 100 000 values, or there is no value at all.
pub fn values(list: &str) -> Result<Vec<String>, ArgumentError> {
    let mut values = Vec::new();
    for item in split(list) {
        match range(item)? {
            Some(numbers) => values.extend(numbers.map(|number| number.to_string())),
            None if item.is_empty() => {
                return Err(error(list, "it has an empty value", "write a,b,c or 1..8"));
            }
            None => values.push(item.to_owned()),
        }
    }
    Ok(values)
}

/// The seeds of `1..8` or `1,2,5`.
///
/// # Errors
/// When an item is no whole number below 2⁶³ or stands there twice, or as for [`values`].
pub fn seeds(list: &str) -> Result<Vec<u64>, ArgumentError> {
    seeds_of(list).map_err(|error| ArgumentError { argument: format!("--seeds {}", error.argument), ..error })
}

fn seeds_of(list: &str) -> Result<Vec<u64>, ArgumentError> {
    let number = |value: String| {
        value.parse().ok().filter(|seed| *seed <= super::SEED_MAX).ok_or_else(|| {
            error(
                list,
                "a seed is a whole number, 0 to 2^63-1",
                "write a range such as 1..8, or a list such as 1,2,5",
            )
        })
    };
    let seeds = values(list)?.into_iter().map(number).collect::<Result<Vec<_>, _>>()?;
    let mut sorted = seeds.clone();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|two| two[0] == two[1]) {
        return Err(error(
            list,
            "a seed stands there twice, and the same run is no second sample",
            format!("name seed {} once", twice[0]),
        ));
    }
    Ok(seeds)
}

/// `seed 3`, `seeds 1 to 5` or `seeds 1, 2 and 5`: which runs something is about.
pub fn seeds_in_words(seeds: &[u64]) -> String {
    let consecutive = seeds.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
    match seeds {
        [] => "no seeds".to_owned(),
        [one] => format!("seed {one}"),
        [first, .., last] if consecutive && seeds.len() > 2 => format!("seeds {first} to {last}"),
        [rest @ .., last] => {
            let rest: Vec<String> = rest.iter().map(u64::to_string).collect();
            format!("seeds {} and {last}", rest.join(", "))
        }
    }
}

/// What to tell whoever wrote `--seeds 3`, which may have meant three of them; `None` where nobody can be mistaken.
pub fn one_seed_hint(list: &str) -> Option<String> {
    let seed: u64 = list.trim().parse().ok()?;
    let may_be_a_count = (2..=1_000).contains(&seed);
    may_be_a_count.then(|| format!("--seeds {seed} is seed {seed} alone; {seed} seeds are --seeds 1..{seed}"))
}

/// What separates items, where no quote or bracket is open.
fn split(list: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut start) = (0u32, None, 0);
    let mut items = Vec::new();
    for (at, c) in list.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                items.push(list[start..at].trim());
                start = at + 1;
            }
            (None, _) => {}
        }
    }
    items.push(list[start..].trim());
    items
}

fn range(item: &str) -> Result<Option<std::ops::RangeInclusive<u64>>, ArgumentError> {
    let Some((from, to)) = item.split_once("..") else { return Ok(None) };
    let to = to.strip_prefix('=').unwrap_or(to);
    let (from, to) = (from.trim(), to.trim());
    let (Ok(from), Ok(to)) = (from.parse::<u64>(), to.parse::<u64>()) else {
        // Paths have dots too.
        let is_number = |end: &str| {
            let unit = end.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            unit.len() < end.len()
                && unit.len() <= 4
                && unit.chars().all(|c| c.is_ascii_alphabetic() || c == '/')
        };
        return match is_number(from) && is_number(to) {
            true => Err(error(
                item,
                "ranges are of whole numbers without a unit",
                "list the values, such as 10KB,20KB,40KB; `roci tune` searches between two of them",
            )),
            false => Ok(None),
        };
    };
    if from > to {
        return Err(error(item, "this range runs backwards", format!("write {to}..{from}")));
    }
    if to - from >= MOST {
        return Err(error(item, "this range has more than 100000 values", "write a shorter one"));
    }
    Ok(Some(from..=to))
}

fn error(argument: &str, message: &'static str, remedy: impl Into<String>) -> ArgumentError {
    ArgumentError { argument: argument.to_owned(), message, remedy: remedy.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_and_ranges_are_read_and_ranges_include_their_ends() {
        assert_eq!(values("1..3,7").unwrap(), ["1", "2", "3", "7"]);
        assert_eq!(values("5KB, 10KB").unwrap(), ["5KB", "10KB"]);
        assert_eq!(seeds("1..8").unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn seeds_are_said_in_words_and_a_single_number_is_a_seed() {
        for (list, words) in [
            ("3", "seed 3"),
            ("1..5", "seeds 1 to 5"),
            ("1,2,5", "seeds 1, 2 and 5"),
            ("7,8", "seeds 7 and 8"),
        ] {
            assert_eq!(seeds_in_words(&seeds(list).unwrap()), words);
        }
        assert_eq!(one_seed_hint("3").unwrap(), "--seeds 3 is seed 3 alone; 3 seeds are --seeds 1..3");
        for clear in ["1", "1..3", "3,4", "20260101", "x"] {
            assert_eq!(one_seed_hint(clear), None, "{clear}");
        }
    }

    #[test]
    fn a_comma_within_a_value_does_not_end_it() {
        assert_eq!(
            values("false,{ kmin = \"5KB\", kmax = \"9KB\" },[1,2]").unwrap(),
            ["false", "{ kmin = \"5KB\", kmax = \"9KB\" }", "[1,2]"]
        );
        assert_eq!(values("\"a,b\",c").unwrap(), ["\"a,b\"", "c"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_remedy() {
        assert!(assignment("switch.buffer").is_err());
        assert!(assignment("=2").is_err());
        let open = assignment("at.0.set.\"switch.ecn.kmin=2MB").unwrap_err().to_string();
        assert!(open.contains("a quote in its key is never closed"), "{open}");
        assert!(values("8..1").is_err());
        assert!(values("1..100000000000").is_err());
        for item in ["10KB..40KB", "0.1..0.9", "1Gb/s..4Gb/s", "1us..=2us"] {
            let told = values(item).unwrap_err().to_string();
            assert!(told.contains("without a unit; list the values"), "{told}");
        }
        assert_eq!(values("\"../1.txt\",../2.goal").unwrap().len(), 2);
        assert!(values("1,,2").is_err());
        assert!(seeds("1,x").is_err());
        assert!(seeds("1,2,1").unwrap_err().to_string().contains("name seed 1 once"));
        assert_eq!(
            seeds("4..1").unwrap_err().to_string(),
            "--seeds 4..1: this range runs backwards; write 1..4"
        );
        assert!(seeds("9223372036854775808").is_err());
    }

    #[test]
    fn a_value_may_hold_an_equals_sign() {
        let (path, value) = assignment("transport.control={ law = \"none\" }").unwrap();
        assert_eq!((path.as_str(), value.as_str()), ("transport.control", "{ law = \"none\" }"));
    }

    #[test]
    fn dots_and_equals_signs_within_quotes_belong_to_a_key() {
        for (argument, path, value, keys) in [
            ("a.b = 1", "a.b", "1", &["a", "b"][..]),
            (
                "at.0.set.\"switch.ecn.kmin\"=\"5KB\"",
                "at.0.set.\"switch.ecn.kmin\"",
                "\"5KB\"",
                &["at", "0", "set", "switch.ecn.kmin"],
            ),
            ("at.0.set. 'a.b=c' .d=x.y", "at.0.set. 'a.b=c' .d", "x.y", &["at", "0", "set", "a.b=c", "d"]),
            ("traffic.o'hare.load=0.5", "traffic.o'hare.load", "0.5", &["traffic", "o'hare", "load"]),
            ("a..b=1", "a..b", "1", &["a", "", "b"]),
        ] {
            assert_eq!(assignment(argument).unwrap(), (path.to_owned(), value.to_owned()), "{argument}");
            assert_eq!(keys_of(path), keys, "{argument}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,30}") {
            let _ = assignment(&text);
            let _ = keys_of(&text);
            let _ = values(&text);
            let _ = seeds(&text);
        }
    }
}
