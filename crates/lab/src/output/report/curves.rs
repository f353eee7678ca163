//! What a comparison draws of completion and over time: a line for each run, or, where configurations ran with several seeds, one for
//! each of them, the median over its seeds in a band from the least to the greatest.

use super::comparison::configurations;
use super::lines::{
    self, LINES_MAX, Points, Readings, counts, distribution, over_lengths, place, since, stretch, stretches,
};
use super::page::{Axis, Line, Plot, Section, Unit};
use super::run::{grouped, span};
use super::{Run, by_size};
use crate::results::Results;
use crate::results::series::{FLOWS_MAX, Metric};
use crate::results::statistics::Sorted;
use roci_units::Span;

/// What one line is drawn of: a name, and the runs.
type Drawn<'a> = (&'a str, Vec<&'a Results>);

/// What is drawn of `runs`, and what one of these is called.
fn drawn<'a>(runs: &[Run<'a>]) -> (Vec<Drawn<'a>>, &'static str) {
    let configurations = configurations(runs);
    match configurations.len() == runs.len() {
        true => (runs.iter().map(|run| (run.label, vec![run.results])).collect(), "runs"),
        false => (configurations, "configurations"),
    }
}

/// Which of them are, and what a line of several seeds is.
fn told(drawn: &[Drawn<'_>], what: &str) -> Vec<String> {
    let first =
        (drawn.len() > LINES_MAX).then(|| format!("The first {LINES_MAX} of {} {what}.", drawn.len()));
    let several = drawn.iter().any(|(_, runs)| runs.len() > 1).then(|| {
        "Each configuration has a line, the median over its seeds, in a band from the least to the greatest; the runs are in the table."
            .to_owned()
    });
    first.into_iter().chain(several).collect()
}

/// The name of a run, or of a configuration with several, in a legend of what flows completed: where some did not, it says so.
fn of_completed(name: &str, runs: &[&Results]) -> String {
    let sum = |count: fn(&Results) -> usize| runs.iter().copied().map(count).sum::<usize>();
    match (sum(|run| run.completed().count()), sum(|run| run.flows.len())) {
        (done, all) if done == all => name.into(),
        (done, all) => format!("{name} ({done} of {all} flows completed)"),
    }
}

/// How completion times and slowdowns are distributed, and slowdowns over sizes.
pub(super) fn distributions(runs: &[Run<'_>]) -> Section {
    let (all, what) = drawn(runs);
    let shown = || all.iter().take(LINES_MAX);
    let plot = |title: &str, axis: Axis, of: fn(&Results) -> Sorted| {
        let sorted: Vec<Vec<Sorted>> =
            shown().map(|(_, runs)| runs.iter().map(|results| of(results)).collect()).collect();
        let values =
            Sorted::new(sorted.iter().flatten().flat_map(|sorted| sorted.values().to_vec()).collect());
        let line = |(colour, ((name, runs), sorted)): (usize, (&Drawn<'_>, &Vec<Sorted>))| {
            share(of_completed(name, runs), colour, sorted)
        };
        let lines: Vec<Line> = shown().zip(&sorted).enumerate().filter_map(line).collect();
        let y = Axis::new("share of completed flows", Unit::Share).up_to(1.0);
        (!lines.is_empty()).then(|| Plot {
            title: title.into(),
            x: axis.log_if_wide(values.values()),
            y,
            step: true,
            lines,
        })
    };
    let slowdown = plot("Slowdown", Axis::new("slowdown", Unit::Factor), Results::slowdowns);
    let time = plot("Completion time", Axis::new("completion time", Unit::Time), Results::completion_times);
    let mut note = told(&all, what);
    let configurations = configurations(runs);
    let named: Vec<_> = configurations
        .iter()
        .take(LINES_MAX)
        .map(|(name, alike)| (of_completed(name, alike), alike.clone()))
        .collect();
    let by_size = by_size::of_configurations(&named);
    if !by_size.is_empty() {
        let configurations = match configurations.len() {
            few if few <= LINES_MAX => "configuration".to_owned(),
            many => format!("of the first {LINES_MAX} of {many} configurations"),
        };
        note.push(format!(
            "Slowdowns by size are those of tenths of a configuration's completed flows, with all its seeds: each {configurations} has a line."
        ));
    }
    Section {
        title: "Flow completion",
        note: note.join(" "),
        plots: slowdown.into_iter().chain(time).chain(by_size).collect(),
        ..Section::default()
    }
}

/// Which share of the values of each of `runs` is no greater than a value; `None` of fewer than two values.
fn share(name: String, colour: usize, runs: &[Sorted]) -> Option<Line> {
    if let [one] = runs {
        return (one.values().len() > 1).then(|| distribution(one.values()).line(name, colour, false));
    }
    let all = Sorted::new(runs.iter().flat_map(|run| run.values().to_vec()).collect());
    if all.values().len() < 2 {
        return None;
    }
    let x = distribution(all.values()).x;
    #[expect(clippy::cast_precision_loss, reason = "a plot shows fewer digits than f64 holds")]
    let shares = |run: &Sorted| {
        let share = |at: &f64| run.values().partition_point(|value| value <= at) as f64;
        let mut shares: Vec<f64> = x.iter().map(|at| share(at) / run.values().len() as f64).collect();
        shares[0] = 0.0;
        shares
    };
    // A run in which nothing completed has no distribution.
    let shares: Vec<_> = runs.iter().filter(|run| !run.values().is_empty()).map(shares).collect();
    Some(lines::of_runs(name, colour, x, &shares))
}

/// The throughput of all sampled flows together, and the deepest queue.
pub(super) fn over_time(runs: &[Run<'_>]) -> Section {
    let (all, what) = drawn(runs);
    let several = all.iter().any(|(_, runs)| runs.len() > 1);
    let shown = &all[..all.len().min(LINES_MAX)];
    let width = several.then(|| width(shown));
    let (mut throughput, mut depth, mut sampled) = (Vec::new(), Vec::new(), String::new());
    for (colour, (name, runs)) in shown.iter().enumerate() {
        let readings: Vec<Readings> = runs
            .iter()
            .map(|results| Readings::only(results, &[Metric::Throughput, Metric::Bytes]))
            .collect();
        let (moved, held) = match (width, &readings[..]) {
            (None, [readings]) => of_run(name, colour, runs[0], readings),
            _ => of_seeds(name, colour, runs, &readings, width.unwrap_or_default()),
        };
        if moved.is_some() {
            let with: usize = readings.iter().map(|readings| readings.sources(Metric::Throughput)).sum();
            let flows: usize = runs.iter().map(|results| results.flows.len()).sum();
            if with < flows {
                let [with, flows] = [with, flows].map(|count| grouped(count as u64));
                sampled += &format!(" {name}: {with} of {flows}.");
            }
        }
        throughput.extend(moved);
        depth.extend(held);
    }
    let time = Axis::new("time", Unit::Time).above_zero();
    let title = |what: &str, of_stretches: &str| match width {
        None => what.to_owned(),
        Some(width) => format!("{what}, {of_stretches} {}", span(width)),
    };
    let mut plots = vec![
        Plot {
            title: title("Throughput of all sampled flows", "means over"),
            x: time,
            y: Axis::new("rate", Unit::Rate).above_zero(),
            step: several,
            lines: throughput,
        },
        Plot {
            title: title("Deepest queue", "the most in each"),
            x: time,
            y: Axis::new("octets held", Unit::Bytes).above_zero(),
            step: true,
            lines: depth,
        },
    ];
    plots.retain(|plot| !plot.lines.is_empty());
    let mut note = told(&all, what);
    if several {
        note.push("A run that has ended moves and holds nothing.".to_owned());
    }
    if !sampled.is_empty() {
        let most = grouped(FLOWS_MAX as u64);
        note.push(format!(
            "No more than the first {most} flows of a run are sampled, and the throughput is that of these: it may end while others go \
             on.{sampled}"
        ));
    }
    Section { title: "Over time", note: note.join(" "), plots, ..Section::default() }
}

/// The lines of one run.
fn of_run(name: &str, colour: usize, results: &Results, readings: &Readings) -> (Option<Line>, Option<Line>) {
    let sum = readings.sum(Metric::Throughput);
    let throughput = (sum.x.len() > 1).then(|| sum.line(name.into(), colour, false));
    let depth =
        readings.peak(Metric::Bytes).filter(|(_, points)| points.x.len() > 1).map(|(place, points)| {
            let name = format!("{name} ({})", results.series.queue_names()[place]);
            points.line(name, colour, false)
        });
    (throughput, depth)
}

/// The lines of a configuration with several seeds, over stretches of a `width`.
fn of_seeds(
    name: &str,
    colour: usize,
    runs: &[&Results],
    readings: &[Readings],
    width: f64,
) -> (Option<Line>, Option<Line>) {
    let seconds = runs.iter().map(|results| results.simulated.as_secs_f64()).fold(0.0, f64::max);
    let both = || readings.iter().zip(runs);
    let moved: Vec<Points> =
        both().map(|(readings, results)| moved(readings, results, seconds, width)).collect();
    let held: Vec<Vec<f64>> =
        both().map(|(readings, results)| held(readings, results, seconds, width)).collect();
    let Some(x) = moved.first().map(|points| points.x.clone()) else { return (None, None) };
    let some = |metric| readings.iter().any(|readings| readings.sources(metric) > 0);
    let line = |values: &[Vec<f64>]| lines::of_runs(name.into(), colour, x.clone(), values);
    let moved: Vec<Vec<f64>> = moved.into_iter().map(|points| points.y).collect();
    let any_held = some(Metric::Bytes) && held.iter().flatten().any(|bytes| *bytes > 0.0);
    (some(Metric::Throughput).then(|| line(&moved)), any_held.then(|| line(&held)))
}

/// How long a stretch is that fits all of `shown`.
fn width(shown: &[Drawn<'_>]) -> f64 {
    let runs = || shown.iter().flat_map(|(_, runs)| runs);
    let seconds = runs().map(|results| results.simulated.as_secs_f64()).fold(0.0, f64::max);
    let interval = runs()
        .map(|results| results.series.interval().unwrap_or(Span::ZERO).as_secs_f64())
        .fold(0.0, f64::max);
    stretch(seconds, interval)
}

/// When samples of a run were taken, in seconds.
fn times(results: &Results) -> Vec<f64> {
    results.series.times().iter().map(|at| at.as_secs_f64()).collect()
}

/// What all sampled flows of a run moved in each stretch, in bits per second.
fn moved(readings: &Readings, results: &Results, seconds: f64, width: f64) -> Points {
    let times = times(results);
    let sum = readings.sum(Metric::Throughput);
    let mut bits = 0.0;
    let mut moved = Points::default();
    for (at, rate) in sum.x.iter().zip(&sum.y) {
        bits += rate * (at - since(&times, *at));
        moved.push(*at, bits);
    }
    over_lengths(counts(&moved, &times, seconds, width))
}

/// The most octets that the deepest queue of a run held at a sample in each stretch, and at the end.
fn held(readings: &Readings, results: &Results, seconds: f64, width: f64) -> Vec<f64> {
    let n = stretches(seconds, width);
    let mut most = vec![0.0_f64; n + 1];
    if let Some((_, points)) = readings.peak(Metric::Bytes) {
        let ends = points.x.iter().skip(1).copied().chain([results.simulated.as_secs_f64()]);
        for ((at, until), bytes) in points.x.iter().zip(ends).zip(&points.y) {
            // It holds until the next reading. One that was taken where a stretch begins is of that, however its time was rounded.
            let [first, last] = [at + width * 1e-6, until - width * 1e-6].map(|at| place(at, width, n));
            for stretch in &mut most[first..=last.max(first)] {
                *stretch = stretch.max(*bytes);
            }
        }
    }
    most[n] = most[n - 1];
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::test_results::sample;
    use crate::results::series::{FlowSample, QueueSample, Series};
    use roci_units::Instant;

    /// A run of so many intervals of 100 µs, in each of which one flow moves `octets`, and a queue holds `bytes` at the end of the
    /// first.
    fn run(steps: u64, octets: u64, bytes: u64) -> Results {
        let step = Span::from_micros(100);
        let mut series = Series::new(step, vec!["s0>h0:3".into()]);
        for at in 1..=steps {
            series.begin(Instant::ZERO + step * at);
            series.flow(0, FlowSample { wire: octets * at, ..FlowSample::default() });
            let bytes = if at == 1 { bytes } else { 0 };
            series.queue(0, QueueSample { bytes, ..QueueSample::default() });
        }
        Results { series, simulated: Instant::ZERO + step * steps, ..sample() }
    }

    fn runs<'a>(results: &'a [Results], configurations: &[&'a str]) -> Vec<Run<'a>> {
        let run = |(results, configuration): (&'a Results, &&'a str)| Run {
            label: "run",
            configuration,
            folder: None,
            results,
        };
        results.iter().zip(configurations).map(run).collect()
    }

    #[test]
    fn several_seeds_are_one_line_the_median_in_a_band_from_the_least_to_the_greatest() {
        // 8 Mb/s a hundred octets.
        let results = [run(4, 100, 9), run(4, 300, 5), run(4, 200, 7)];
        let section = over_time(&runs(&results, &["a", "a", "a"]));
        let [moved, held] = &section.plots[..] else { panic!("{section:?}") };
        assert_eq!(moved.title, "Throughput of all sampled flows, means over 100 µs");
        let [line] = &moved.lines[..] else { panic!("{moved:?}") };
        let band = line.band.as_ref().expect("three seeds");
        assert_eq!((line.name.as_str(), &line.y[..]), ("a", &[16e6; 5][..]));
        assert_eq!((&band.low[..], &band.high[..]), (&[8e6; 5][..], &[24e6; 5][..]));
        let [line] = &held.lines[..] else { panic!("{held:?}") };
        assert_eq!(line.y, [0.0, 7.0, 0.0, 0.0, 0.0], "it is sampled where the second interval begins");
        assert_eq!(line.band.as_ref().expect("three seeds").high, [0.0, 9.0, 0.0, 0.0, 0.0]);
        assert!(section.note.contains("the median over its seeds"), "{}", section.note);
    }

    #[test]
    fn a_run_that_has_ended_moves_nothing_while_others_of_its_configuration_go_on() {
        let results = [run(2, 100, 0), run(4, 100, 0), run(4, 100, 0), run(3, 400, 0)];
        let section = over_time(&runs(&results, &["a", "a", "a", "b"]));
        let [moved] = &section.plots[..] else { panic!("no queue holds anything: {section:?}") };
        let low = |line: usize| moved.lines[line].band.as_ref().expect("a band").low.clone();
        assert_eq!(low(0), [8e6, 8e6, 0.0, 0.0, 0.0]);
        assert_eq!(moved.lines[0].y, [8e6; 5]);
        assert_eq!((low(1), moved.lines[1].x.len()), (vec![32e6; 4], 4), "it ends where its runs do");
    }

    #[test]
    fn a_long_run_has_stretches_of_many_samples_and_none_of_its_peaks_is_lost() {
        let results = [run(1_000, 100, 9), run(1_000, 100, 9)];
        let section = over_time(&runs(&results, &["a", "a"]));
        assert_eq!(section.plots[0].title, "Throughput of all sampled flows, means over 700 µs");
        let [moved, held] = [0, 1].map(|plot| &section.plots[plot].lines[0].y);
        assert_eq!((moved.len(), held.len()), (144, 144));
        assert!(moved.iter().all(|rate| (rate - 8e6).abs() < 1e3), "{moved:?}");
        assert_eq!((held[0], held[1]), (9.0, 0.0));
    }

    #[test]
    fn runs_of_one_seed_each_have_a_line_each_and_many_configurations_their_first_ones() {
        let results: Vec<Results> = (0..14).map(|_| run(3, 100, 0)).collect();
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"];
        let section = over_time(&runs(&results, &names));
        assert_eq!(section.plots[0].lines.len(), LINES_MAX);
        assert!(section.plots[0].lines.iter().all(|line| line.band.is_none() && line.name == "run"));
        assert!(section.note.starts_with("The first 12 of 14 runs."), "{}", section.note);
        let twice: Vec<&str> = names.iter().map(|name| if *name < "c" { "a" } else { name }).collect();
        let section = over_time(&runs(&results, &twice));
        assert_eq!(section.plots[0].lines.len(), LINES_MAX);
        assert!(section.note.starts_with("The first 12 of 13 configurations."), "{}", section.note);
    }

    #[test]
    fn shares_of_several_seeds_are_those_of_each_and_not_of_all_together() {
        let sorted = |values: &[f64]| Sorted::new(values.to_vec());
        let line = share("a".into(), 0, &[sorted(&[1.0, 2.0]), sorted(&[2.0; 8]), sorted(&[1.0, 1.0])]);
        let line = line.expect("values");
        let at = |x: f64| line.x.iter().rposition(|it| *it == x).expect("a place");
        let band = line.band.as_ref().expect("three runs");
        assert_eq!((line.y[0], line.y[at(1.0)], line.y[at(2.0)]), (0.0, 0.5, 1.0));
        assert_eq!((band.low[at(1.0)], band.high[at(1.0)]), (0.0, 1.0));
        assert!(share("a".into(), 0, &[sorted(&[1.0]), sorted(&[])]).is_none());
    }
}
