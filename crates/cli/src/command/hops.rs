//! Hops of queue pairs' ways, as switches have told of them: a table, and the same for programs.

use crate::format::{or_dash, rate, size, time};
use crate::table;
use roci_endpoint::control::board::{Pair, Path};
use serde_json::{Value, json};

/// What a column is called; the first two of them name the queue pair and the socket.
const HEADER: [&str; 8] = ["way", "hop", "queue", "waits", "rate", "carried", "used", "told"];
/// What stands behind the hop that holds its way back.
const BOTTLENECK: &str = "◂ bottleneck";

/// A line for each hop of some queue pairs, each behind the names that it is given; `None` where there is no hop.
pub(super) fn text<'a>(
    names: &[&str],
    pairs: impl Iterator<Item = (Vec<String>, &'a Pair)>,
) -> Option<String> {
    let mut header = names.to_vec();
    header.extend(HEADER);
    header.push("");
    let mut table = table::table(&header);
    let mut is_empty = true;
    for (names, pair) in pairs {
        for path in &pair.paths {
            let bottleneck = path.bottleneck();
            for place in 0..path.way.hops.len() {
                let mark = if bottleneck == Some(place) { BOTTLENECK } else { "" };
                table.add_row(names.iter().cloned().chain(cells(path, place)).chain([mark.to_owned()]));
                is_empty = false;
            }
        }
    }
    (!is_empty).then(|| table::lines(&table))
}

fn cells(path: &Path, place: usize) -> [String; 8] {
    let hop = &path.way.hops[place];
    [
        path.way.direction().to_owned(),
        (place + 1).to_string(),
        size(hop.queued.0),
        time(path.waits(place)),
        rate(crate::format::float(hop.rate.0)),
        or_dash(path.carried[place].map(rate)),
        or_dash(path.used(place).map(percent)),
        format!("{} ago", time(path.way.age.as_secs_f64())),
    ]
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// The hop that holds the way of our packets back, or where nobody told of that the peer's, and how much it is used; a dash where none does, and nothing without ways.
pub(super) fn brief(pair: &Pair) -> String {
    let Some(path) = pair.paths.first() else { return String::new() };
    let Some(place) = path.bottleneck() else { return "-".to_owned() };
    let used = or_dash(path.used(place).map(percent));
    format!("{} {}/{} {used}", path.way.direction(), place + 1, path.way.hops.len())
}

/// The ways of a queue pair with their hops. What is carried and used is null where too little was told, and the bottleneck where there is none.
pub(super) fn json(pair: &Pair) -> Value {
    let way = |path: &Path| {
        let hop = |place: usize| {
            let hop = &path.way.hops[place];
            json!({
                "hop": place + 1,
                "queue_bytes": hop.queued.0,
                "rate_bps": hop.rate.0,
                "carried_bps": path.carried[place],
                "used": path.used(place),
            })
        };
        json!({
            "way": path.way.direction(),
            "told_s_ago": path.way.age.as_secs_f64(),
            "bottleneck": path.bottleneck().map(|place| place + 1),
            "hops": (0..path.way.hops.len()).map(hop).collect::<Vec<_>>(),
        })
    };
    pair.paths.iter().map(way).collect()
}
