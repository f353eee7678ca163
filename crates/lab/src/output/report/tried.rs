//! What a search has tried: for each key the values that it took, and what came of them.

use super::lines::five_digits;
use super::page::{Axis, Line, Plot, Section, Unit};
use super::run::grouped;
use crate::batch::Metric;
use crate::tune::{Candidate, FINALISTS, Kind, Knob, Tried};

/// A plot for each key; nothing where nothing came of any value.
pub(super) fn section(tried: &Tried) -> Option<Section> {
    let all = tried.candidates.len();
    let told = tried.candidates.iter().filter(|candidate| candidate.score().yields()).count();
    let none = match all - told {
        0 => String::new(),
        without => format!(" {} of them yielded no value of it.", grouped(without as u64)),
    };
    let note = format!(
        "{} over each key that was varied, of all {} configurations that the search tried: the mean over the seeds that each ran with, most with one, \
         where chance makes some look better than those that were left, which ran with many.{none}",
        tried.aim,
        grouped(all as u64)
    );
    let plots: Vec<Plot> =
        tried.knobs.iter().enumerate().filter_map(|(place, knob)| plot(tried, place, knob)).collect();
    (!plots.is_empty()).then(|| Section { title: "What was tried", note, plots, ..Section::default() })
}

/// How far configurations came, each with its colour; the last lie above the others.
const GROUPS: [(&str, usize); 3] = [("broke a limit", 9), ("dropped on the way", 0), ("left in the end", 1)];

/// Which of [`GROUPS`] the configuration is in that came out at `rank`.
fn group(rank: usize, candidate: &Candidate) -> usize {
    if rank < FINALISTS { 2 } else { usize::from(candidate.score().keeps()) }
}

/// The metric over the key at `place`.
fn plot(tried: &Tried, place: usize, knob: &Knob) -> Option<Plot> {
    let sign = if tried.aim.is_to_grow() { -1.0 } else { 1.0 };
    let of_candidate = |candidate: &Candidate| {
        let (x, kind) = knob.number(&candidate.values.get(place)?.1);
        let score = candidate.score();
        score.yields().then_some((x, sign * score.value, kind))
    };
    let line = |(number, (name, colour)): (usize, (&str, usize))| {
        let its = tried.candidates.iter().enumerate().filter(|(rank, it)| group(*rank, it) == number);
        let mut points: Vec<(f64, f64)> =
            its.filter_map(|(_, it)| of_candidate(it)).map(|(x, y, _)| (x, five_digits(y))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (x, y) = points.into_iter().unzip();
        Line { name: name.to_owned(), colour, dashed: false, dots: true, x, y, band: None }
    };
    let mut lines: Vec<Line> = GROUPS.into_iter().enumerate().map(line).collect();
    lines.retain(|line| !line.x.is_empty());
    let kind = tried.candidates.iter().find_map(of_candidate)?.2;
    let sorted = |values: fn(&Line) -> &Vec<f64>| {
        let mut all: Vec<f64> = lines.iter().flat_map(values).copied().collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let (across, up) = (sorted(|line| &line.x), sorted(|line| &line.y));
    let words = (1..).zip(knob.words()).map(|(number, word)| format!("{number} {word}"));
    let title = match kind {
        Kind::Word => format!("{}: {}", knob.key, words.collect::<Vec<_>>().join(", ")),
        _ => knob.key.clone(),
    };
    let x = Axis::new("value", unit_of(kind));
    let x = match kind {
        Kind::Word => Axis { from: Some(0.5), to: across.last().map(|last| last + 0.5), ..x },
        _ => x.log_if_wide(&across),
    };
    let y = Axis::new("metric", unit(tried.aim.metric)).log_if_wide(&up);
    Some(Plot { title, x, y, step: false, lines })
}

const fn unit_of(kind: Kind) -> Unit {
    match kind {
        Kind::Word => Unit::Count,
        Kind::Number => Unit::Number,
        Kind::Share => Unit::Share,
        Kind::Octets => Unit::Bytes,
        Kind::Rate => Unit::Rate,
        Kind::Time => Unit::Time,
    }
}

const fn unit(metric: Metric) -> Unit {
    match metric {
        Metric::MeanCompletion | Metric::P99Completion | Metric::Paused => Unit::Time,
        Metric::MeanSlowdown | Metric::P99Slowdown => Unit::Factor,
        Metric::Offered | Metric::Goodput => Unit::Rate,
        Metric::Fairness | Metric::Imbalance => Unit::Number,
        Metric::Buffered | Metric::QueueMean | Metric::QueueP99 => Unit::Bytes,
        _ => Unit::Count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::{Aim, Score, search};

    /// What a search for the least comes to, where values below 100KB break a limit and one word yields nothing.
    fn tried(aim: &str) -> Tried {
        let knobs: Vec<Knob> =
            ["a=10KB..1MB", "b=x,y,z"].map(|text| Knob::read(text).unwrap()).into_iter().collect();
        let judge = |asked: &[(&Candidate, usize)]| {
            let score = |(it, _): &(&Candidate, usize)| {
                let (octets, _) = knobs[0].number(&it.values[0].1);
                let over = if octets < 1e5 { 0.5 } else { 0.0 };
                if it.values[1].1 == "z" { Score::NOTHING } else { Score { over, value: -octets } }
            };
            Some(asked.iter().map(score).collect())
        };
        let found = search::<()>(&knobs, 32, |_| Ok(()), judge, |_| ()).unwrap();
        Tried { aim: Aim::read(aim).unwrap(), knobs, candidates: found.tried }
    }

    #[test]
    fn each_key_has_a_plot_of_all_that_were_tried_by_how_far_they_came() {
        let tried = tried("goodput");
        let section = section(&tried).expect("there are values");
        let titles: Vec<_> = section.plots.iter().map(|plot| &plot.title[..]).collect();
        assert_eq!(titles, ["a", "b: 1 x, 2 y, 3 z"]);
        let names: Vec<_> = section.plots[0].lines.iter().map(|line| &line.name[..]).collect();
        assert_eq!(names, ["broke a limit", "dropped on the way", "left in the end"]);
        let words = &section.plots[1].x;
        assert_eq!(
            (words.from, words.to, words.log),
            (Some(0.5), Some(2.5), false),
            "of the third nothing came"
        );
        assert_eq!((section.plots[0].x.log, section.plots[0].x.unit), (true, Unit::Bytes));
        let told = tried.candidates.iter().filter(|it| it.score().yields()).count();
        for plot in &section.plots {
            assert_eq!(plot.lines.iter().map(|line| line.x.len()).sum::<usize>(), told);
            assert!(plot.lines.iter().all(|line| line.dots && line.x.is_sorted()));
        }
        assert!(
            section.note.contains(&format!("{} of them yielded no value", tried.candidates.len() - told))
        );
        // More of it is better, so a score is its negative, and the plot has it as it is.
        let [broke, _, left] = &section.plots[0].lines[..] else { panic!("three lines") };
        assert!(broke.x.iter().all(|x| *x < 1e5) && left.y.iter().all(|y| *y > 1e5), "{left:?}");
        assert_eq!(left.x.len(), FINALISTS);
    }
}
