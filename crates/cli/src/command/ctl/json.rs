//! What an endpoint answers, as JSON.

use serde_json::{Map, Value, json};

/// A line of registers: queue pair, law, name, and a value that may have spaces.
fn register(line: &str) -> Option<[&str; 4]> {
    let mut words = line.splitn(4, ' ');
    Some([words.next()?, words.next()?, words.next()?, words.next()?])
}

/// A list of queue pairs, each with its `law` and its `registers`; all values are texts, as they are written too. The lines of a queue pair
/// stand together. Where its program has failed a line of `program` comes first, and `law` is the one that took over, whose registers follow.
pub(super) fn registers(answer: &str) -> Value {
    let mut pairs: Vec<(&str, &str, Map<String, Value>)> = Vec::new();
    for [pair, law, name, value] in answer.lines().filter_map(register) {
        if pairs.last().is_none_or(|(known, ..)| *known != pair) {
            pairs.push((pair, law, Map::new()));
        }
        if let Some((_, latest, registers)) = pairs.last_mut() {
            *latest = law;
            registers.insert(name.to_owned(), value.into());
        }
    }
    let told = |(pair, law, registers)| json!({ "queue_pair": pair, "law": law, "registers": registers });
    pairs.into_iter().map(told).collect()
}

/// A register that changed, as a line of its own; `at` is in seconds since 1970.
pub(super) fn change(line: &str, at: f64) -> String {
    let Some([pair, law, name, value]) = register(line) else { return String::new() };
    let microseconds = (at * 1e6).round() / 1e6;
    let change = json!({
        "time_s": microseconds, "queue_pair": pair, "law": law, "register": name, "value": value,
    });
    format!("{change}\n")
}

/// A list of counters: `name`, `labels` and `value`.
pub(super) fn counters(answer: &str) -> Value {
    answer.lines().filter_map(counter).collect()
}

/// A sample of Prometheus' text format; `None` of comments, and of what is none.
fn counter(line: &str) -> Option<Value> {
    if line.starts_with('#') {
        return None;
    }
    let (told, value) = line.trim_end().rsplit_once(' ')?;
    let (name, labels) = match told.split_once('{') {
        Some((name, rest)) => (name, labels(rest.trim_end().strip_suffix('}')?)?),
        None => (told.trim_end(), Map::new()),
    };
    // Counters are whole; what is not keeps its digits after the point.
    let value =
        value.parse::<u64>().map(Value::from).or_else(|_| value.parse::<f64>().map(Value::from)).ok()?;
    Some(json!({ "name": name, "labels": labels, "value": value }))
}

/// `a="b",c="d"`, where a backslash stands before quotes and backslashes, and `\\n` for the end of a line.
fn labels(text: &str) -> Option<Map<String, Value>> {
    let mut labels = Map::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, behind) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut letters = behind.char_indices();
        let end = loop {
            match letters.next()? {
                (place, '"') => break place,
                (_, '\\') => value.push(match letters.next()?.1 {
                    'n' => '\n',
                    letter => letter,
                }),
                (_, letter) => value.push(letter),
            }
        };
        labels.insert(name.to_owned(), value.into());
        rest = behind[end + 1..].trim_start_matches(',');
    }
    Some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_gathered_by_queue_pair_in_the_order_in_which_they_came() {
        let answer = "0x2c dcqcn state ReadyToSend\n0x2c dcqcn rai 40Mb/s\n0x11 program failed trapped at law.c:3\n0x11 dctcp g 1/16\n";
        let expected = json!([
            { "queue_pair": "0x2c", "law": "dcqcn", "registers": { "state": "ReadyToSend", "rai": "40Mb/s" } },
            // A failed program's, of which the law that took over is in force.
            { "queue_pair": "0x11", "law": "dctcp", "registers": { "failed": "trapped at law.c:3", "g": "1/16" } },
        ]);
        assert_eq!(registers(answer), expected);
        assert_eq!(registers(""), json!([]));
    }

    #[test]
    fn a_change_is_one_line_with_its_time_to_a_microsecond() {
        let line = change("0x2c dcqcn alpha 664/1024", 1_700_000_000.123_456_7);
        assert_eq!(line.matches('\n').count(), 1);
        let expected = json!({
            "time_s": 1_700_000_000.123_457, "queue_pair": "0x2c", "law": "dcqcn", "register": "alpha", "value": "664/1024",
        });
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), expected);
    }

    #[test]
    fn counters_have_their_labels_whatever_is_in_them_and_comments_are_left_out() {
        let answer = "# HELP a_total Things.\n# TYPE a_total counter\na_total{device=\"10.0.0.1\",qp=\"0x11\"} 18446744073709551615\n\
                      b_total 2.5\nc_total{at=\"x, \\\"y\\\" {z}\\\\\\n\"} 0\n";
        let expected = json!([
            { "name": "a_total", "labels": { "device": "10.0.0.1", "qp": "0x11" }, "value": u64::MAX },
            { "name": "b_total", "labels": {}, "value": 2.5 },
            { "name": "c_total", "labels": { "at": "x, \"y\" {z}\\\n" }, "value": 0 },
        ]);
        assert_eq!(counters(answer), expected);
    }

    #[test]
    fn what_is_no_sample_is_left_out() {
        for line in ["", "word", "a{b=\"c} 1", "a{b} 1", "a{b=\"c\\\"} 1", "a one"] {
            assert_eq!(counters(line), json!([]), "{line}");
        }
    }
}
