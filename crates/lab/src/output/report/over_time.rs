//! What a run's page shows over time: rates, windows, what programs remember, and queues.

use super::lines::{LINES_MAX, Points, Readings, means_over, over_lengths, per_stretch};
use super::page::{Axis, Line, Plot, Section, Unit};
use super::run::{grouped, span};
use crate::results::series::{FLOWS_MAX, Metric, drawn};
use crate::results::{Results, TrafficResult};
use roci_units::Span;
use std::collections::BTreeMap;

const TIME: Axis = Axis::new("time", Unit::Time);

pub(super) fn sections(results: &Results, readings: &Readings) -> Vec<Section> {
    let mut sections = rates(results, readings);
    sections.extend(words(results, readings));
    sections.extend(queues(results, readings));
    sections
}

/// What flows were allowed and what they got, over time.
fn rates(results: &Results, readings: &Readings) -> Vec<Section> {
    if results.series.is_empty() {
        let note = "This run took no samples; set measure.sample to see rates and queues over time.".into();
        return vec![Section { title: "Over time", note, ..Section::default() }];
    }
    let shown = readings.with_greatest_sums(Metric::Throughput);
    let note = [which_flows(results, readings, &shown), left_alone(results, readings, &shown)];
    let note = note.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let mut section = Section { title: "Rates", note, ..Section::default() };
    let asked = |metric| !matches!(metric, Metric::Rate | Metric::Target | Metric::Alpha);
    let name = |place: usize| results.flows[place].name.to_string();
    let lines = |metric, suffix: &str, dashed| -> Vec<Line> {
        let line = |(colour, place): (usize, &usize)| {
            let points = readings.get(metric, *place).filter(|points| points.x.len() > 1)?;
            let drawn = asked(metric)
                || readings.get(Metric::Alpha, *place).is_none()
                || moved(results, readings, metric, *place);
            drawn.then(|| points.line(format!("{}{suffix}", name(*place)), colour, dashed))
        };
        shown.iter().enumerate().filter_map(line).collect()
    };
    let mut plot = |title: &str, y, step, lines: Vec<Line>| {
        if !lines.is_empty() {
            section.plots.push(Plot { title: title.into(), x: TIME.above_zero(), y, step, lines });
        }
    };
    let rate = Axis::new("rate", Unit::Rate).above_zero();
    let interval = results.series.interval().unwrap_or(Span::ZERO).as_secs_f64();
    for (title, metric) in [("Throughput on the wire", Metric::Throughput), ("Goodput", Metric::Goodput)] {
        let each = readings.stretch(metric);
        let line = |(colour, place): (usize, &usize)| {
            let points = readings.get(metric, *place)?.means(each);
            (points.x.len() > 1).then(|| points.line(name(*place), colour, false))
        };
        #[expect(clippy::cast_precision_loss, reason = "few readings")]
        let title = match each {
            1 => title.to_owned(),
            each => format!("{title}, means over {}", span(each as f64 * interval)),
        };
        plot(&title, rate, false, shown.iter().enumerate().filter_map(line).collect());
    }
    if let Some((title, lines)) = by_table(results, readings) {
        plot(&title, rate, false, lines);
    }
    let targets = lines(Metric::Target, " R_T", true);
    let title = if targets.is_empty() { "Rate allowed" } else { "Rate allowed (R_C) and aimed for (R_T)" };
    let suffix = if targets.is_empty() { "" } else { " R_C" };
    plot(title, rate, true, lines(Metric::Rate, suffix, false).into_iter().chain(targets).collect());
    let alpha = Axis::new("alpha", Unit::Number).up_to(1.0);
    plot("Congestion estimate (alpha)", alpha, true, lines(Metric::Alpha, "", false));
    let window = Axis::new("window", Unit::Bytes).above_zero();
    plot("Window", window, true, lines(Metric::Window, "", false));
    let rtt = Axis::new("round trip", Unit::Time).above_zero();
    plot("Round trip that the law used", rtt, true, lines(Metric::Rtt, "", false));
    vec![section]
}

/// Which flows are `shown`, where those are not all.
fn which_flows(results: &Results, readings: &Readings, shown: &[usize]) -> Option<String> {
    let sampled = readings.sources(Metric::Throughput);
    let flows = results.flows.len();
    if shown.len() >= sampled {
        return None;
    }
    Some(if sampled < flows {
        format!(
            "The {LINES_MAX} flows that moved the most, of {} with samples; these are in series.parquet. The run had {} \
             flows.",
            grouped(sampled as u64),
            grouped(flows as u64)
        )
    } else {
        format!("The {LINES_MAX} flows of {sampled} that moved the most; all are in series.parquet.")
    })
}

/// How many of the flows that are `shown` a law left alone that waits for CNPs.
fn left_alone(results: &Results, readings: &Readings, shown: &[usize]) -> Option<String> {
    let is_alone = |place: &&usize| {
        readings.get(Metric::Alpha, **place).is_some() && !moved(results, readings, Metric::Rate, **place)
    };
    let alone = shown.iter().filter(is_alone).count();
    (alone > 0).then(|| {
        format!(
            "{alone} of these flows received no CNP: the law left {} rate alone, and R_C, R_T and alpha are not \
             drawn.",
            if alone == 1 { "its" } else { "their" }
        )
    })
}

/// Whether what the law of a flow would do, `metric`, is of interest: not where it was never asked. Without a CNP alpha is but its first
/// value, and a rate that never changes is the link's.
fn moved(results: &Results, readings: &Readings, metric: Metric, place: usize) -> bool {
    let constant = |points: &Points| points.y.windows(2).all(|pair| pair[0] == pair[1]);
    results.flows[place].cnps > 0
        || (metric != Metric::Alpha && !readings.get(metric, place).is_none_or(constant))
}

/// The goodput of each table of traffic over time, where there are several: the title of its plot, and a line for each.
fn by_table(results: &Results, readings: &Readings) -> Option<(String, Vec<Line>)> {
    let times: Vec<f64> = results.series.times().iter().map(|at| at.as_secs_f64()).collect();
    let tables = results.traffic.iter();
    let sums = tables.map(|table| (table, readings.sum_at(Metric::Goodput, table.flows.clone(), &times)));
    let moved = |points: &Points| points.y.iter().sum::<f64>();
    let mut sums: Vec<_> = sums.filter(|(_, points)| moved(points) > 0.0).enumerate().collect();
    if results.traffic.len() < 2 || times.len() < 2 {
        return None;
    }
    let mut title = "Goodput of each table of traffic".to_owned();
    if sums.len() > LINES_MAX {
        title += &format!(", the {LINES_MAX} of {} that moved the most", sums.len());
        sums.sort_by(|(_, (_, a)), (_, (_, b))| moved(b).total_cmp(&moved(a)));
        sums.truncate(LINES_MAX);
        sums.sort_by_key(|(place, _)| *place);
    }
    if results.flows.len() > FLOWS_MAX {
        title +=
            &format!(", flows with samples alone ({})", grouped(readings.sources(Metric::Goodput) as u64));
    }
    let each = means_over(times.len());
    if each > 1 {
        let interval = results.series.interval().unwrap_or(Span::ZERO).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "few readings")]
        let over = span(each as f64 * interval);
        title += &format!(", means over {over}");
    }
    let line = |(colour, (_, (table, points))): (usize, (usize, (&TrafficResult, Points)))| {
        points.means(each).line(table.name.clone(), colour, false)
    };
    let lines: Vec<Line> = sums.into_iter().enumerate().map(line).collect();
    (!lines.is_empty()).then_some((title, lines))
}

/// The words of the contexts that programs keep of the flows whose rates are shown, in the order in which they stand there: a plot for
/// each that changed in any of them.
fn words(results: &Results, readings: &Readings) -> Option<Section> {
    /// Words that have a plot.
    const WORDS_MAX: usize = 16;
    let shown = readings.with_greatest_sums(Metric::Throughput);
    let mut words: Vec<(&str, BTreeMap<usize, Points>)> = Vec::new();
    results.series.words(|at, flow, name, value| {
        let Ok(colour) = shown.binary_search(&(flow as usize)) else { return };
        let place = words.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            words.push((name, BTreeMap::new()));
            words.len() - 1
        });
        words[place].1.entry(colour).or_default().push(at.as_secs_f64(), drawn(value));
    });
    let all = words.len();
    let constant = |points: &Points| points.y.windows(2).all(|pair| pair[0] == pair[1]);
    words.retain(|(_, flows)| !flows.values().all(constant));
    if all == 0 {
        return None;
    }
    let mut section = Section { title: "Words of programs' contexts", ..Section::default() };
    let still = all - words.len();
    let notes = [
        (still > 0).then(|| {
            format!("{still} of {all} words never changed in the flows that are shown, and are not drawn.")
        }),
        (words.len() > WORDS_MAX).then(|| {
            format!("The first {WORDS_MAX} of {} that did; all are in series.parquet.", words.len())
        }),
    ];
    section.note = notes.into_iter().flatten().collect::<Vec<_>>().join(" ");
    for (name, flows) in words.into_iter().take(WORDS_MAX) {
        let y = Axis::new("value", Unit::Count);
        let below = flows.values().any(|points| points.y.iter().any(|value| *value < 0.0));
        let y = if below { y } else { y.above_zero() };
        let line = |(colour, points): (usize, Points)| {
            points.line(results.flows[shown[colour]].name.to_string(), colour, false)
        };
        let lines = flows.into_iter().map(line).collect();
        section.plots.push(Plot { title: name.to_owned(), x: TIME.above_zero(), y, step: true, lines });
    }
    Some(section)
}

/// What queues held, and what befell them, over time.
fn queues(results: &Results, readings: &Readings) -> Option<Section> {
    if results.series.is_empty() {
        return None;
    }
    let mut section = Section { title: "Queues", ..Section::default() };
    let seconds = results.simulated.as_secs_f64();
    let interval = results.series.interval().unwrap_or(Span::ZERO).as_secs_f64();
    let times: Vec<f64> = results.series.times().iter().map(|at| at.as_secs_f64()).collect();
    let name = |place: usize| results.series.queue_names()[place].clone();
    // A queue has the same colour in every plot: its place among all that are shown.
    let mut shown: Vec<usize> = [Metric::Bytes, Metric::Marks, Metric::Pauses, Metric::Paused]
        .iter()
        .flat_map(|metric| readings.with_highest_peaks(*metric))
        .collect();
    shown.sort_unstable();
    shown.dedup();
    let colour = |place: usize| shown.binary_search(&place).unwrap_or(0);

    let deepest = readings.with_highest_peaks(Metric::Bytes);
    let lines: Vec<Line> = deepest
        .iter()
        .filter_map(|&place| {
            let points = readings.get(Metric::Bytes, place)?;
            Some(held(points, seconds).line(name(place), colour(place), false))
        })
        .collect();
    if lines.is_empty() {
        section.note = "No queue held anything when it was sampled.".into();
    } else {
        let y = Axis::new("octets held", Unit::Bytes).above_zero();
        section.plots.push(Plot {
            title: "Queue depth".into(),
            x: TIME.up_to(seconds),
            y,
            step: true,
            lines,
        });
        let sampled = readings.sources(Metric::Bytes);
        if deepest.len() < sampled {
            section.note = match deepest.len() {
                LINES_MAX => {
                    format!("The {LINES_MAX} deepest of {sampled} queues; all are in series.parquet.")
                }
                held => format!("{held} of {sampled} queues held something when they were sampled."),
            };
        }
    }
    for (metric, what) in [(Metric::Marks, "CE marks"), (Metric::Pauses, "PAUSE frames received")] {
        let mut width = 0.0;
        let lines: Vec<Line> = readings
            .with_highest_peaks(metric)
            .into_iter()
            .filter_map(|place| {
                let points;
                (width, points) = per_stretch(readings.get(metric, place)?, &times, seconds, interval);
                Some(points.line(name(place), colour(place), false))
            })
            .collect();
        if lines.is_empty() {
            section.note = format!("{} No {what}.", section.note).trim().into();
            continue;
        }
        let title = format!("{what} in each {}", span(width));
        let y = Axis::new("count", Unit::Count).above_zero();
        section.plots.push(Plot { title, x: TIME.up_to(seconds), y, step: true, lines });
    }
    let mut width = 0.0;
    let lines = readings.with_highest_peaks(Metric::Paused).into_iter().filter_map(|place| {
        let points;
        (width, points) = per_stretch(readings.get(Metric::Paused, place)?, &times, seconds, interval);
        Some(over_lengths(points).line(name(place), colour(place), false))
    });
    let lines: Vec<Line> = lines.collect();
    if !lines.is_empty() {
        let title = format!("Time stood paused, of each {}", span(width));
        let y = Axis::new("share of the time", Unit::Share).up_to(1.0);
        section.plots.push(Plot { title, x: TIME.up_to(seconds), y, step: true, lines });
    }
    Some(section)
}

/// A queue's readings, from an empty one at the start to the end of the run: a reading holds until the next.
fn held(points: &Points, seconds: f64) -> Points {
    let mut held = Points::default();
    held.push(0.0, 0.0);
    for (x, y) in points.x.iter().zip(&points.y) {
        held.push(*x, *y);
    }
    if let Some(last) = points.y.last() {
        held.push(seconds, *last);
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::test_results::{sample, two_tables};
    use crate::results::series::{FlowSample, Series};
    use roci_units::Instant;

    #[test]
    fn words_of_contexts_that_change_have_a_plot_each_with_a_line_for_each_flow() {
        let step = Span::from_micros(10);
        let mut series = Series::new(step, Vec::new());
        for at in 1..=3u32 {
            series.begin(Instant::ZERO + step * u64::from(at));
            for flow in 0..2u32 {
                series.flow(flow, FlowSample { wire: u64::from(1_000 * at), ..FlowSample::default() });
                let [at, number] = [at, flow].map(i64::from);
                series.word(flow, "target", 100 * at + number);
                series.word(flow, "link", 7);
                series.word(flow, "difference", (2 - at) * number);
            }
        }
        let results = Results { series, ..sample() };
        let section = words(&results, &Readings::of(&results)).expect("there are words");
        assert!(section.note.starts_with("1 of 3 words never changed"), "{}", section.note);
        let titles: Vec<_> = section.plots.iter().map(|plot| &plot.title[..]).collect();
        assert_eq!(titles, ["target", "difference"], "as they stand in the context");
        let lines = &section.plots[0].lines;
        let names: Vec<_> = results.flows[..2].iter().map(|flow| flow.name.to_string()).collect();
        assert_eq!(lines.iter().map(|line| line.name.clone()).collect::<Vec<_>>(), names);
        assert_eq!((&lines[1].y[..], lines[1].x.len()), (&[101.0, 201.0, 301.0][..], 3));
        let begins = section.plots.iter().map(|plot| plot.y.from).collect::<Vec<_>>();
        assert_eq!(begins, [Some(0.0), None], "an axis goes below zero where a word does");
        assert!(words(&sample(), &Readings::of(&sample())).is_none(), "no program, no words");
    }

    #[test]
    fn tables_of_traffic_have_a_line_each_of_the_goodput_of_their_flows() {
        let one = sample();
        assert!(by_table(&one, &Readings::of(&one)).is_none(), "one table has what all have");
        let results = Results { traffic: two_tables(), ..sample() };
        let readings = Readings::of(&results);
        let (title, lines) = by_table(&results, &readings).expect("two tables");
        assert_eq!(title, "Goodput of each table of traffic, means over 200 µs");
        assert_eq!(lines.iter().map(|line| &line.name[..]).collect::<Vec<_>>(), ["0", "background"]);
        let all: f64 = readings.sum(Metric::Goodput).y.iter().sum::<f64>() / 2.0;
        let told: f64 = lines.iter().flat_map(|line| &line.y).sum();
        assert!((told / all - 1.0).abs() < 1e-4, "{told} of {all}");
        let idle = readings.sum_at(Metric::Goodput, 1..2, &[0.0, 1e-4, 1.0]);
        assert!(idle.y[0] == 0.0 && idle.y[1] > 0.0, "nothing was read at first");
    }

    #[test]
    fn a_port_that_is_paused_at_the_end_is_shown_so_to_the_end() {
        let points = Points { x: vec![0.0, 1.0, 2.0, 2.25], y: vec![0.5, 0.0, 0.25, 0.25] };
        assert_eq!(over_lengths(points).y, [0.5, 0.0, 1.0, 1.0]);
    }
}
