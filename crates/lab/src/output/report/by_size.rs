//! Slowdown over the size of flows, as papers since HPCC plot it: percentiles over groups of equally many flows.

use super::lines::{LINES_MAX, Points};
use super::page::{Axis, Line, Plot, Unit};
use crate::output::digits::float;
use crate::results::Results;
use crate::results::statistics::Sorted;

/// How many groups there are, where no two flows are of one size: deciles.
const GROUPS: usize = 10;
/// From so many flows on, ten to a group: of fewer a 95th percentile is the greatest.
const FLOWS_MIN: usize = 100;
/// What is told of each group.
const PERCENTILES: [(u32, &str); 3] =
    [(50, "Slowdown by size, p50"), (95, "Slowdown by size, p95"), (99, "Slowdown by size, p99")];

/// Flows of neighbouring sizes.
#[derive(Debug)]
struct Group {
    /// The greatest of them.
    to: u64,
    slowdowns: Sorted,
}

/// A tenth of the flows each, in the order of their sizes; none of too few. Flows of one size are not torn apart: a group ends behind the
/// last flow of the size at which its tenth ends.
fn groups(mut flows: Vec<(u64, f64)>) -> Vec<Group> {
    if flows.len() < FLOWS_MIN {
        return Vec::new();
    }
    flows.sort_by_key(|(bytes, _)| *bytes);
    let mut groups = Vec::new();
    let mut begin = 0;
    for n in 1..=GROUPS {
        let to = flows[n * flows.len() / GROUPS - 1].0;
        let end = flows.partition_point(|(bytes, _)| *bytes <= to);
        if end > begin {
            let slowdowns = flows[begin..end].iter().map(|(_, slowdown)| *slowdown).collect();
            groups.push(Group { to, slowdowns: Sorted::new(slowdowns) });
        }
        begin = end;
    }
    groups
}

/// The groups of the completed flows of several runs.
fn groups_of(runs: &[&Results]) -> Vec<Group> {
    let flows = runs.iter().flat_map(|results| results.completed());
    groups(flows.filter_map(|flow| Some((flow.bytes, flow.slowdown()?))).collect())
}

fn line(groups: &[Group], percent: u32, name: String, colour: usize) -> Line {
    let mut points = Points::default();
    for group in groups {
        if let Some(slowdown) = group.slowdowns.percentile(percent) {
            points.push(float(group.to), slowdown);
        }
    }
    points.line(name, colour, false)
}

/// `lines` over the greatest sizes of their groups; nothing where none has two groups.
fn plot(title: &str, mut lines: Vec<Line>) -> Option<Plot> {
    lines.retain(|line| line.x.len() > 1);
    let mut sizes: Vec<f64> = lines.iter().flat_map(|line| line.x.iter().copied()).collect();
    sizes.sort_by(f64::total_cmp);
    (!lines.is_empty()).then(|| Plot {
        title: title.into(),
        x: Axis::new("greatest size of the group", Unit::Bytes).log_if_wide(&sizes),
        y: Axis::new("slowdown", Unit::Factor).above_zero(),
        step: false,
        lines,
    })
}

/// Of one run: a line for each percentile.
pub(super) fn of_run(results: &Results) -> Option<Plot> {
    let groups = groups_of(&[results]);
    let line = |(colour, (percent, _))| line(&groups, percent, format!("p{percent}"), colour);
    plot("Slowdown by size, of tenths of the flows", PERCENTILES.into_iter().enumerate().map(line).collect())
}

/// Of several configurations, the flows of all seeds of one together: a plot for each percentile, with a line for each configuration.
pub(super) fn of_configurations(configurations: &[(String, Vec<&Results>)]) -> Vec<Plot> {
    let shown = configurations.iter().take(LINES_MAX);
    let grouped: Vec<(&String, Vec<Group>)> = shown.map(|(name, runs)| (name, groups_of(runs))).collect();
    let of_percentile = |(percent, title)| {
        let lines = grouped.iter().enumerate();
        plot(
            title,
            lines.map(|(colour, (name, groups))| line(groups, percent, (*name).clone(), colour)).collect(),
        )
    };
    PERCENTILES.into_iter().filter_map(of_percentile).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Run, comparison};
    use super::*;
    use crate::batch::Names;
    use crate::output::test_results::sample;
    use crate::results::FlowResult;
    use roci_units::Span;

    /// A run with a flow for each of `flows`, of a size and a slowdown.
    fn run(flows: impl Iterator<Item = (u64, u64)>) -> Results {
        let of = sample().flows[0].clone();
        let flow = |(bytes, slowdown): (u64, u64)| {
            let (start, ideal) = (of.start, Span::from_micros(10));
            FlowResult { bytes, start, end: start + ideal * slowdown, ideal: Some(ideal), ..of.clone() }
        };
        Results { flows: flows.map(flow).collect(), ..sample() }
    }

    #[test]
    fn groups_hold_equally_many_flows_in_the_order_of_their_sizes() {
        // The slowdown is the size's place within its hundred, in no order of sizes.
        let results = run((0..1000).map(|n| n * 7 % 1000).map(|n| (1000 + n, 1 + n % 100)));
        let groups = groups_of(&[&results]);
        assert_eq!(
            groups.iter().map(|group| group.to).collect::<Vec<_>>(),
            [1099, 1199, 1299, 1399, 1499, 1599, 1699, 1799, 1899, 1999]
        );
        for group in &groups {
            assert_eq!(group.slowdowns.values().len(), 100);
        }
        for line in of_run(&results).expect("sizes differ").lines {
            let percent: f64 = line.name[1..].parse().expect("a number");
            assert_eq!(line.y, [percent; 10]);
        }
    }

    #[test]
    fn flows_of_one_size_stay_together_and_few_flows_have_no_groups() {
        // Six tenths of one size, and the others of another each.
        let sizes = |n: u64| if n < 120 { 64 } else { 1000 + n };
        let groups = groups_of(&[&run((0..200).map(|n| (sizes(n), 1)))]);
        let told: Vec<_> = groups.iter().map(|group| (group.to, group.slowdowns.values().len())).collect();
        assert_eq!(told, [(64, 120), (1139, 20), (1159, 20), (1179, 20), (1199, 20)]);
        assert!(groups_of(&[&run((0..99).map(|n| (n + 1, 1)))]).is_empty());
    }

    #[test]
    fn each_configuration_has_a_line_of_all_its_seeds_and_flows_of_one_size_have_no_plot() {
        let fast = [1, 2].map(|slow| run((0..100).map(move |n| (10 + 20 * n, slow))));
        let slow = [3, 3].map(|slow| run((0..100).map(move |n| (10 + 20 * n, slow))));
        let both = [("fast".to_owned(), fast.iter().collect()), ("slow".to_owned(), slow.iter().collect())];
        let plots = of_configurations(&both);
        assert_eq!(
            plots.iter().map(|plot| plot.title.as_str()).collect::<Vec<_>>(),
            PERCENTILES.map(|it| it.1)
        );
        for (plot, of_fast) in plots.iter().zip([1.0, 2.0, 2.0]) {
            let told: Vec<_> = plot.lines.iter().map(|line| (line.name.as_str(), line.y.clone())).collect();
            assert_eq!(told, [("fast", vec![of_fast; 10]), ("slow", vec![3.0; 10])]);
            assert!(plot.x.log, "from 190 to 1990");
        }
        let one = of_run(&fast[0]).expect("sizes differ");
        assert_eq!(
            one.lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(),
            ["p50", "p95", "p99"]
        );
        let shown = [("fast", &fast[0]), ("fast", &fast[1]), ("slow", &slow[0]), ("slow", &slow[1])];
        let shown =
            shown.map(|(name, results)| Run { label: "run", configuration: name, folder: None, results });
        let page =
            serde_json::to_string(&comparison::page("both", &Names::default(), &shown)).expect("it is plain");
        assert!(
            PERCENTILES.iter().all(|(_, title)| page.contains(title)) && page.contains("each configuration")
        );
        let alike = run((0..200).map(|_| (4096, 2)));
        assert!(of_run(&alike).is_none() && of_configurations(&[("a".to_owned(), vec![&alike])]).is_empty());
    }
}
