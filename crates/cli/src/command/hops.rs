//! Hops of queue pairs' ways, as switches have told of them: a table, and the same for programs.

use crate::format::{or_dash, rate, size, time};
use crate::table;
use roci_endpoint::control::board::{Pair, Path};
use serde_json::{Value, json};

/// How many packets told of other hops than rates were said for one by one, and how many rates these are, in what `counters` answers.
const UNRATED: &str = "roci_telemetry_unrated_total";
const RATES: &str = "roci_telemetry_hop_rates";
/// How often a port had sent more than the rate lets through that was said for it.
const BEYOND: &str = "roci_telemetry_beyond_total";
/// What is said then.
pub(super) const WRONG_RATES: &str = "a hop has sent more than the rate of --hop-rate lets through: give each hop's own rate, in the order in which data pass them";
/// How often one had sent less for long while packets waited, and what is said then.
const SHORT: &str = "roci_telemetry_short_total";
pub(super) const LOWER_RATES: &str = "a hop has sent less for long than the rate of --hop-rate lets through, while packets waited there: give it the rate that it has";
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

/// What is said of telemetry that an endpoint has left alone, by its counters, and of rates that do not fit what it has taken; nothing of
/// either where there is none.
pub(super) fn left_alone(counters: &str) -> Option<String> {
    let sum = |name: &str| -> u64 {
        let samples = counters.lines().filter(|line| line.split('{').next() == Some(name));
        samples.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    };
    let count = sum(UNRATED);
    let left = (count > 0).then(|| format!("{count} {}", other_hops(sum(RATES))));
    let wrong = (sum(BEYOND) > 0).then(|| WRONG_RATES.to_owned());
    let lower = (sum(SHORT) > 0).then(|| LOWER_RATES.to_owned());
    left.into_iter().chain(wrong).chain(lower).reduce(|one, next| one + "\n" + &next)
}

/// What packets did whose telemetry was left alone, and what can be done.
pub(super) fn other_hops(rates: u64) -> String {
    format!(
        "packets told of more or fewer hops than the {rates} rates of --hop-rate, and nothing of that was taken: give one rate for all, or one for each hop"
    )
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

#[cfg(test)]
mod tests {
    use super::*;
    use roci_endpoint::{Backend, Device, DeviceConfig, MemoryWire, control};
    use roci_units::BitsPerSec;

    #[test]
    fn telemetry_that_was_left_alone_is_told_with_how_many_rates_there_are() {
        let config = DeviceConfig {
            backend: Backend::Memory(MemoryWire::new(1)),
            hop_rates: vec![BitsPerSec::from_gbps(1); 3],
            ..DeviceConfig::default()
        };
        let device = Device::open_with([10, 0, 0, 1].into(), config).unwrap();
        let path = std::env::temp_dir().join(format!("roci-left-alone-{}", std::process::id()));
        device.serve_control(&path).unwrap();
        let counters = control::ask(&path, "counters").unwrap().unwrap();
        assert_eq!(left_alone(&counters), None);
        let (before, after) =
            (format!("{UNRATED}{{device=\"10.0.0.1\"}} 0\n"), "roci_telemetry_unrated_total{} 4120\n");
        assert!(counters.contains(&before), "{counters}");
        let told = left_alone(&counters.replace(&before, after)).unwrap();
        assert!(
            told.starts_with("4120 packets told of more or fewer hops than the 3 rates of --hop-rate"),
            "{told}"
        );
        let none = format!("{BEYOND}{{device=\"10.0.0.1\"}} 0\n");
        assert!(counters.contains(&none), "{counters}");
        let told = left_alone(&counters.replace(&none, &none.replace(" 0", " 3")));
        assert_eq!(told.as_deref(), Some(WRONG_RATES));
        let none = format!("{SHORT}{{device=\"10.0.0.1\"}} 0\n");
        assert!(counters.contains(&none), "{counters}");
        let told = left_alone(&counters.replace(&none, &none.replace(" 0", " 1")));
        assert_eq!(told.as_deref(), Some(LOWER_RATES));
    }
}
