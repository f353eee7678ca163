//! What `roci reproduce` prints: the paper's value beside ours.

use super::deviation;
use super::expect::{Ablation, Bound, Expectation, Figure, Kind};
use super::plot::Plot;
use super::statistics::Estimate;
use crate::scenario::overrides::seeds_in_words;
use std::fmt::Write as _;

/// A figure, reproduced or not.
#[derive(Clone, Debug)]
pub struct Report {
    /// The name by which it is asked for.
    pub name: &'static str,
    /// What it shows.
    pub title: String,
    /// Where its numbers come from.
    pub kind: Kind,
    /// The mechanism that was switched off, where it was.
    pub without: Option<String>,
    /// What its rows call that mechanism; empty where it is the figure's only one, or none was switched off.
    pub ablation: String,
    /// The seeds that it ran with.
    pub seeds: Vec<u64>,
    /// What was measured.
    pub rows: Vec<Row>,
    /// Why ours differs from the paper's, where it does; and what else is worth knowing.
    pub note: String,
    /// What is drawn.
    pub plots: Vec<Plot>,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What is measured.
    pub what: String,
    /// Its unit; empty for a number.
    pub unit: String,
    /// The paper's value, as it prints it; empty where it gives none.
    pub paper: String,
    /// Ours; `None` where a run did not yield it.
    pub ours: Option<Estimate>,
    /// What it is held against.
    pub bound: Bound,
    /// How many seeds the bound was made for.
    pub seeds: usize,
    /// The judgement.
    pub verdict: Verdict,
}

/// The judgement of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Pass,
    /// It does not.
    Fail,
    /// It does not, as is known: the paper has it so, and this model does not.
    Missed,
    /// It holds, though it is said to be missed.
    HoldsThoughMissed,
    /// The mechanism is off and the row fails, as it should.
    FailsAsItShould,
    /// The mechanism is off and the row holds all the same: it proves nothing.
    HoldsWithoutMechanism,
    /// The mechanism is off and a run yields no value: a row that measures nothing proves nothing.
    NoValueWithoutMechanism,
    /// It is not judged.
    Reported,
    /// Its bound is for the mean of more seeds than were run: it is not judged.
    TooFewSeeds,
}

impl Verdict {
    /// How it is printed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "FAIL",
            Self::Missed => "MISSED",
            Self::HoldsThoughMissed => "HOLDS, THOUGH SAID TO BE MISSED",
            Self::FailsAsItShould => "fails as it should",
            Self::HoldsWithoutMechanism => "HOLDS WITHOUT THE MECHANISM",
            Self::NoValueWithoutMechanism => "NO VALUE WITHOUT THE MECHANISM",
            Self::Reported => "reported",
            Self::TooFewSeeds => "too few seeds",
        }
    }

    /// Whether it judges at all.
    pub const fn is_judgement(self) -> bool {
        !matches!(self, Self::Reported | Self::TooFewSeeds)
    }

    /// Whether it is as it should be, or not judged.
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Pass | Self::FailsAsItShould | Self::Reported | Self::TooFewSeeds)
    }

    /// Whether it is as it is said to be.
    pub const fn is_expected(self) -> bool {
        self.is_good() || matches!(self, Self::Missed)
    }
}

/// What a figure's rows come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Some were judged, and all of these are as they should be.
    Passed,
    /// All are as they are said to be, of which some are missed: known not to be the paper's.
    Missed,
    /// One is not as it is said to be.
    Failed,
    /// None was judged: they are reported only, or their bounds want more seeds.
    NotJudged,
}

impl Outcome {
    /// How it is printed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Missed => "passed but for rows that are missed",
            Self::Failed => "failed",
            Self::NotJudged => "not judged",
        }
    }
}

impl Report {
    /// What stands above [`Report::cells`].
    pub const HEADINGS: [&str; 6] = ["what", "paper", "ours", "off by", "must be", "verdict"];

    /// Joins what was `measured` over the seeds with what is expected of it.
    ///
    /// # Panics
    /// When the figure's code and its expectations disagree on what is measured: a defect of this program.
    pub(super) fn new(
        name: &'static str,
        figure: Figure,
        seeds: Vec<u64>,
        ablation: Option<&Ablation>,
        measured: &[(&'static str, Vec<f64>)],
    ) -> Self {
        for (key, _) in measured {
            assert!(figure.rows.iter().any(|row| row.key == *key), "{name}: nothing is expected of `{key}`");
        }
        let rows = figure
            .rows
            .iter()
            .map(|expectation| {
                let values = measured.iter().find(|(key, _)| *key == expectation.key);
                let (_, values) =
                    values.unwrap_or_else(|| panic!("{name}: `{}` was not measured", expectation.key));
                Row::new(expectation, values, ablation.map(|ablation| ablation.name.as_str()))
            })
            .collect();
        Self {
            name,
            title: figure.title,
            kind: figure.kind,
            without: ablation.map(|ablation| ablation.without.clone()),
            ablation: ablation.map(|ablation| ablation.name.clone()).unwrap_or_default(),
            seeds,
            rows,
            note: figure.note,
            plots: Vec::new(),
        }
    }

    /// What its rows come to.
    pub fn outcome(&self) -> Outcome {
        let verdicts = || self.rows.iter().map(|row| row.verdict);
        if !verdicts().all(Verdict::is_expected) {
            Outcome::Failed
        } else if self.missed() > 0 {
            Outcome::Missed
        } else if verdicts().any(Verdict::is_judgement) {
            Outcome::Passed
        } else {
            Outcome::NotJudged
        }
    }

    /// How many rows are missed.
    pub fn missed(&self) -> usize {
        self.rows.iter().filter(|row| row.verdict == Verdict::Missed).count()
    }

    /// What its files are called: its name, and what was switched off where it has several mechanisms.
    pub fn file_name(&self) -> String {
        file_name(self.name, &self.ablation)
    }

    /// How many rows were not judged for want of seeds, and how many seeds it takes; `None` where all were.
    pub fn wants_seeds(&self) -> Option<(usize, usize)> {
        let wanting = || self.rows.iter().filter(|row| row.verdict == Verdict::TooFewSeeds);
        wanting().map(|row| row.seeds).max().map(|seeds| (wanting().count(), seeds))
    }

    /// The rows as cells under [`Report::HEADINGS`].
    pub fn cells(&self) -> Vec<[String; 6]> {
        self.rows.iter().map(Row::cells).collect()
    }

    /// The report as a section of Markdown.
    pub fn markdown(&self) -> String {
        let mut out = format!("## {}: {}\n\n", self.name, self.title);
        let _ = write!(out, "*{}*, {}.", self.kind.name(), seeds_in_words(&self.seeds));
        out.push_str(match self.missed() {
            0 => "\n",
            1 => " **One row is missed.**\n",
            _ => " **Some rows are missed.**\n",
        });
        if let Some(without) = &self.without {
            let _ = writeln!(out, "Switched off: {without}.");
        }
        let rule = Self::HEADINGS.map(|_| "---").join(" | ");
        let _ = writeln!(out, "\n| {} |\n| {rule} |", Self::HEADINGS.join(" | "));
        for cells in self.cells() {
            let _ = writeln!(out, "| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
        }
        if !self.note.is_empty() {
            let _ = writeln!(out, "\n{}", self.note);
        }
        out
    }
}

impl Row {
    fn new(expectation: &Expectation, values: &[f64], ablation: Option<&str>) -> Self {
        let ours = Estimate::of(values);
        let holds = ours.map(|ours| expectation.bound.holds(&ours));
        let needs = ablation.is_some() && ablation == expectation.mechanism.as_deref();
        let verdict = match (ablation.is_some(), needs, holds) {
            _ if expectation.bound == Bound::Reported => Verdict::Reported,
            (true, false, _) => Verdict::Reported,
            _ if (1..expectation.seeds).contains(&values.len()) => Verdict::TooFewSeeds,
            (false, _, Some(true)) if expectation.missed => Verdict::HoldsThoughMissed,
            (false, _, Some(false)) if expectation.missed => Verdict::Missed,
            (false, _, Some(true)) => Verdict::Pass,
            (false, _, _) => Verdict::Fail,
            (true, true, Some(true)) => Verdict::HoldsWithoutMechanism,
            (true, true, Some(false)) => Verdict::FailsAsItShould,
            (true, true, None) => Verdict::NoValueWithoutMechanism,
        };
        Self {
            what: expectation.what.clone(),
            unit: expectation.unit.clone(),
            paper: expectation.paper.clone(),
            ours,
            bound: expectation.bound,
            seeds: expectation.seeds,
            verdict,
        }
    }

    /// How far the mean lies from the paper's value, in percent of that; `None` where there is nothing to compare.
    pub fn deviation(&self) -> Option<f64> {
        deviation::of(&self.paper, self.ours?.mean)
    }

    fn cells(&self) -> [String; 6] {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        let ours = match &self.ours {
            None => "none".to_owned(),
            Some(ours) if ours.min.to_bits() == ours.max.to_bits() => format!("{}{unit}", short(ours.mean)),
            Some(ours) => {
                let mean = match self.bound {
                    Bound::AtLeast(_) | Bound::Above(_) => format!(", least {}", short(ours.min)),
                    Bound::AtMost(_) | Bound::Exactly(_) => format!(", most {}", short(ours.max)),
                    _ => String::new(),
                };
                format!("{} ± {}{unit}{mean}", short(ours.mean), short(ours.half_width))
            }
        };
        let paper = match self.paper.as_str() {
            "" => "–".to_owned(),
            // A number has a unit, words such as "line rate" have none.
            number if number.ends_with(|c: char| c.is_ascii_digit()) => format!("{number}{unit}"),
            words => words.to_owned(),
        };
        let off = deviation::shown(self.deviation());
        let bound = self.bound.of_seeds(self.seeds);
        [self.what.clone(), paper, ours, off, bound, self.verdict.name().to_owned()]
    }
}

/// What the files of `figure` are called under the ablation of this name; none: those without one that has a name.
pub(super) fn file_name(figure: &str, ablation: &str) -> String {
    match ablation {
        "" => figure.to_owned(),
        ablation => format!("{figure}-without-{ablation}"),
    }
}

/// A number with four significant digits, and without needless ones.
fn short(value: f64) -> String {
    let magnitude = value.abs();
    let text = match magnitude {
        0.0 => return "0".to_owned(),
        m if m >= 1_000.0 => return format!("{value:.0}"),
        m if m >= 100.0 => format!("{value:.1}"),
        m if m >= 10.0 => format!("{value:.2}"),
        m if m >= 1.0 => format!("{value:.3}"),
        m if m >= 0.1 => format!("{value:.4}"),
        _ => return format!("{value:.2e}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expectation(bound: Bound, needs: bool) -> Expectation {
        Expectation {
            key: "share".to_owned(),
            what: "a share".to_owned(),
            unit: "Gb/s".to_owned(),
            paper: "1.1".to_owned(),
            bound,
            seeds: 1,
            mechanism: needs.then(String::new),
            calibrated_to: String::new(),
            missed: false,
        }
    }

    #[test]
    fn a_row_is_judged_by_its_bound() {
        let about = expectation(Bound::About { value: 1.1, percent: 10.0 }, true);
        assert_eq!(Row::new(&about, &[1.2], None).verdict, Verdict::Pass);
        assert_eq!(Row::new(&about, &[1.3], None).verdict, Verdict::Fail);
        assert_eq!(Row::new(&about, &[], None).verdict, Verdict::Fail);
        let reported = expectation(Bound::Reported, false);
        assert_eq!(Row::new(&reported, &[9.9], None).verdict, Verdict::Reported);
    }

    #[test]
    fn a_bound_of_a_mean_is_not_judged_by_fewer_seeds_than_it_was_made_for() {
        let about = Bound::About { value: 1.1, percent: 10.0 };
        let of_five = Expectation { seeds: 5, ..expectation(about, true) };
        for ablate in [None, Some("")] {
            for one in [1.1, 1.3] {
                let row = Row::new(&of_five, &[one], ablate);
                assert_eq!(row.verdict, Verdict::TooFewSeeds);
                assert_eq!(row.cells()[4], "1.1 ± 10 %, mean of 5 seeds");
            }
        }
        assert_eq!(Row::new(&of_five, &[1.0, 1.1, 1.2, 1.3, 0.9], None).verdict, Verdict::Pass);
        assert_eq!(Row::new(&of_five, &[1.4; 5], None).verdict, Verdict::Fail);
        let unneeded = Expectation { mechanism: None, ..of_five };
        assert_eq!(Row::new(&unneeded, &[1.3], Some("")).verdict, Verdict::Reported);
    }

    #[test]
    fn a_row_needs_its_own_mechanism_and_no_other() {
        let about = expectation(Bound::About { value: 1.1, percent: 10.0 }, false);
        let split = Expectation { mechanism: Some("split".to_owned()), ..about };
        assert_eq!(Row::new(&split, &[0.8], Some("split")).verdict, Verdict::FailsAsItShould);
        assert_eq!(Row::new(&split, &[1.1], Some("split")).verdict, Verdict::HoldsWithoutMechanism);
        for ours in [0.8, 1.1] {
            assert_eq!(Row::new(&split, &[ours], Some("registers")).verdict, Verdict::Reported);
        }
    }

    /// Of an emergent figure, with its mechanism.
    fn emergent(rows: Vec<Row>) -> Report {
        Report {
            name: "x",
            title: String::new(),
            kind: Kind::Emergent,
            without: None,
            ablation: String::new(),
            seeds: vec![1],
            rows,
            note: String::new(),
            plots: Vec::new(),
        }
    }

    #[test]
    fn what_is_said_to_be_missed_shows_and_must_be_missed() {
        let missed = Expectation { missed: true, ..expectation(Bound::AtMost(1.25), false) };
        let report = |ours: f64| {
            let rows = vec![
                Row::new(&missed, &[ours], None),
                Row::new(&expectation(Bound::AtLeast(1.0), false), &[2.0], None),
            ];
            Report { name: "swcc-fig11a", ..emergent(rows) }
        };
        assert_eq!(report(1.7).outcome(), Outcome::Missed);
        let page = report(1.7).markdown();
        assert!(page.contains("**One row is missed.**") && page.contains("| MISSED |"), "{page}");
        assert_eq!(report(1.2).rows[0].verdict, Verdict::HoldsThoughMissed);
        assert_eq!(report(1.2).outcome(), Outcome::Failed);
        assert_eq!(
            report(f64::NAN).outcome(),
            Outcome::Failed,
            "what measures nothing is not missed but failed"
        );
        assert_eq!(Row::new(&missed, &[1.7], Some("")).verdict, Verdict::Reported);
    }

    #[test]
    fn without_the_mechanism_a_row_that_needs_it_must_fail() {
        let about = expectation(Bound::About { value: 1.1, percent: 10.0 }, true);
        assert_eq!(Row::new(&about, &[0.8], Some("")).verdict, Verdict::FailsAsItShould);
        let held = Row::new(&about, &[1.1], Some("")).verdict;
        assert_eq!(held, Verdict::HoldsWithoutMechanism);
        assert!(!held.is_good());
        for nothing in [&[][..], &[f64::NAN], &[0.8, f64::NAN]] {
            let verdict = Row::new(&about, nothing, Some("")).verdict;
            assert_eq!(verdict, Verdict::NoValueWithoutMechanism, "{nothing:?} proves nothing");
            assert!(!verdict.is_good());
        }
        let other = expectation(Bound::Exactly(0.0), false);
        assert_eq!(Row::new(&other, &[3.0], Some("")).verdict, Verdict::Reported);
    }

    #[test]
    fn a_row_prints_mean_and_interval_and_the_seed_that_decides() {
        let row = Row::new(&expectation(Bound::AtLeast(1.0), false), &[1.0, 2.0, 3.0, 4.0, 5.0], None);
        let cells = row.cells();
        assert_eq!(cells[1], "1.1 Gb/s");
        assert_eq!(cells[2], "3 ± 1.963 Gb/s, least 1");
        assert_eq!(cells[3], "+173 %");
        assert_eq!(cells[4], "≥ 1");
        let words = Expectation { paper: "line rate".to_owned(), ..expectation(Bound::AtLeast(1.0), false) };
        assert_eq!(Row::new(&words, &[1.0], None).cells()[1..4], ["line rate", "1 Gb/s", "–"]);
    }

    #[test]
    fn a_figure_of_which_nothing_was_judged_has_not_passed() {
        let of = |rows: Vec<Row>| emergent(rows).outcome();
        let about = expectation(Bound::About { value: 1.1, percent: 10.0 }, false);
        let of_five = Expectation { seeds: 5, ..about.clone() };
        let reported = Row::new(&expectation(Bound::Reported, false), &[1.0], None);
        let (few, good, bad) = (
            Row::new(&of_five, &[1.1], None),
            Row::new(&about, &[1.1], None),
            Row::new(&about, &[9.9], None),
        );
        assert_eq!(of(vec![few.clone(), reported.clone()]), Outcome::NotJudged);
        assert_eq!(of(vec![reported]), Outcome::NotJudged);
        assert_eq!(of(vec![few.clone(), good.clone()]), Outcome::Passed);
        assert_eq!(of(vec![few, good, bad]), Outcome::Failed);
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (0.9975, "0.9975"),
            (98.7654, "98.77"),
            (12_345.6, "12346"),
            (0.000_25, "2.50e-4"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
