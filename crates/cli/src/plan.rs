//! What is said of several runs before they begin: how many they are, and what they have to move.

use crate::format::size;
use roci_lab::batch::{Asked, Group, Kept, kept};
use roci_lab::scenario::overrides::seeds_in_words;

/// A line on the runs of `group`, each of which is `asked` for so much; nothing of a single one.
pub(crate) fn plan(group: &Group, asked: &[Asked]) -> Option<String> {
    let runs = group.runs.len();
    if runs < 2 {
        return None;
    }
    let kinds = group.configurations().len();
    let mut seeds: Vec<u64> = Vec::new();
    for run in &group.runs {
        if !seeds.contains(&run.seed) {
            seeds.push(run.seed);
        }
    }
    let seeds = seeds_in_words(&seeds);
    let what = match kinds {
        1 => format!("{runs} runs, {seeds}"),
        _ if kinds == runs => format!("{runs} runs, {seeds}"),
        _ => format!("{runs} runs of {kinds} configurations, {seeds} each"),
    };
    Some(format!("{}: {what}; {}{}", group.title, load(asked), captures(asked)))
}

/// A line on what all of `groups` keep in memory, where that is more than is available.
pub(crate) fn memory<'a>(groups: impl Iterator<Item = &'a Group>) -> Option<String> {
    let all = groups.map(|group| kept(&group.runs)).fold(Kept::default(), |sum, one| Kept {
        flows: sum.flows.saturating_add(one.flows),
        octets: sum.octets.saturating_add(one.octets),
    });
    too_much(all, available(&std::fs::read_to_string("/proc/meminfo").ok()?)?)
}

fn too_much(kept: Kept, available: u64) -> Option<String> {
    (kept.octets > available).then(|| {
        format!(
            "about {} flows: what becomes of them, and of links and collectives, and their samples are kept in memory, {} in all, and {} are \
             available; with fewer runs, an earlier `stop` or `until`, less load, or a longer `measure.sample` it is less",
            kept.flows,
            size(kept.octets),
            size(available)
        )
    })
}

/// Octets that new programs may have, by the text of `/proc/meminfo`.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// What captures are written.
fn captures(asked: &[Asked]) -> String {
    let octets = asked.iter().fold(0, |sum: u64, one| sum.saturating_add(one.captured));
    let many = match asked.iter().filter(|one| one.capture).count() {
        0 => return String::new(),
        1 => "; one capture is written".to_owned(),
        count => format!("; {count} captures are written"),
    };
    match octets {
        0 => many,
        octets => format!("{many}, at least {} in all once all of this is moved", size(octets)),
    }
}

/// What runs are asked to move.
fn load(asked: &[Asked]) -> String {
    let more = if asked.iter().any(|one| one.more) { "at least " } else { "" };
    let flows = range(asked, |one| one.flows, |count| count.to_string());
    let octets = range(asked, |one| one.octets, size);
    let endless = match asked.iter().any(|one| one.endless > 0) {
        true => ", and as much as flows without an end get until they stop",
        false => "",
    };
    let all = size(asked.iter().fold(0, |sum, one| sum.saturating_add(one.octets)));
    format!("{more}{flows} flows and {octets} of payload in each, {more}{all} in all{endless}")
}

/// The least and the greatest of what `of` finds; one number where they look the same.
fn range(asked: &[Asked], of: impl Fn(&Asked) -> u64, show: impl Fn(u64) -> String) -> String {
    let least = show(asked.iter().map(&of).min().unwrap_or(0));
    let most = show(asked.iter().map(&of).max().unwrap_or(0));
    if least == most { least } else { format!("{least} to {most}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_memory_has_no_room_for_are_told_before_the_run_and_others_are_not() {
        let text = "MemTotal:       24689012 kB\nMemFree:         1000 kB\nMemAvailable:   21000000 kB\n";
        assert_eq!(available(text), Some(21_504_000_000));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
        let of = |flows| Kept { flows, octets: flows * 112 };
        assert_eq!(too_much(of(100_000_000), 21_504_000_000), None);
        let told = too_much(of(1_000_000_000), 21_504_000_000).expect("more than there is");
        assert!(
            told.starts_with("about 1000000000 flows: ")
                && told.contains("112.0 GB in all, and 21.50 GB are"),
            "{told}"
        );
    }

    #[test]
    fn runs_are_told_with_the_least_and_the_most_that_they_move() {
        let of = |flows, octets| Asked { flows, octets, ..Asked::default() };
        let told = load(&[of(66, 55_100_000), of(88, 130_000_000), of(70, 60_000_000)]);
        assert_eq!(told, "66 to 88 flows and 55.10 MB to 130.0 MB of payload in each, 245.1 MB in all");
        assert_eq!(load(&[of(4, 800_000); 2]), "4 flows and 800.0 KB of payload in each, 1.600 MB in all");
        let captured = |captured| Asked { capture: true, captured, ..of(4, 800_000) };
        assert_eq!(captures(&[of(4, 800_000); 2]), "");
        assert_eq!(captures(&[captured(0); 2]), "; 2 captures are written");
        assert_eq!(
            captures(&[captured(1_600_000), captured(800_000), of(4, 800_000)]),
            "; 2 captures are written, at least 2.400 MB in all once all of this is moved"
        );
        let cut = Asked { more: true, endless: 1, ..of(4, 800_000) };
        let told = load(&[cut, of(4, 800_000)]);
        assert!(told.starts_with("at least 4 flows") && told.ends_with("until they stop"), "{told}");
    }
}
