//! What must come out: `figures/expectations.toml`, which holds no result of ours, only the papers' values and the
//! bounds of what reproduces them.

use super::statistics::Estimate;
use std::fmt;
use toml::de::{DeTable, DeValue};

const TEXT: &str = include_str!("../../../../figures/expectations.toml");

/// Where a figure's numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing in the model was fitted to it.
    Emergent,
    /// One of its points fitted one input.
    Calibrated,
    /// Sums and counts.
    Accounting,
    /// Printed beside the paper's value and not judged, because the paper leaves out what decides it.
    Reported,
    /// Not from a paper's figure: the model against a formula.
    Validation,
}

impl Kind {
    const ALL: [Self; 5] =
        [Self::Emergent, Self::Calibrated, Self::Accounting, Self::Reported, Self::Validation];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Emergent => "emergent",
            Self::Calibrated => "calibrated",
            Self::Accounting => "accounting",
            Self::Reported => "reported",
            Self::Validation => "validation",
        }
    }
}

/// What a figure is, and what must come out of it.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// Where its numbers come from.
    pub kind: Kind,
    /// The mechanisms that bring it about, and how a scenario switches each off by itself; none where no ablation is asked
    /// for.
    pub ablations: Vec<Ablation>,
    /// What is measured, in the order of the table.
    pub rows: Vec<Expectation>,
    /// Why ours differs from the paper's, where it does.
    pub note: String,
    /// How long it takes.
    pub takes: Takes,
}

/// About how many seconds a figure takes one core, as they were measured once; `None` where it is more than two minutes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Takes {
    /// With one seed.
    pub one_seed: Option<f64>,
    /// With five, the default.
    pub five_seeds: Option<f64>,
}

/// A mechanism that can be switched off.
#[derive(Clone, Debug)]
pub struct Ablation {
    /// What rows call the mechanism; empty where it is the only one.
    pub name: String,
    /// What is switched off.
    pub without: String,
    /// The overrides that do it.
    pub set: Vec<(String, String)>,
}

/// What must come out of one measurement.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// What the figure's code calls it.
    pub key: String,
    /// What is measured.
    pub what: String,
    /// Its unit; empty for a number.
    pub unit: String,
    /// The paper's value, as it prints it; empty where it gives none.
    pub paper: String,
    /// The bound.
    pub bound: Bound,
    /// How many seeds the bound was made for: it speaks of their mean, and with fewer it is not judged.
    pub seeds: usize,
    /// The mechanism without which it must fail, by the name of its ablation.
    pub mechanism: Option<String>,
    /// The point that an input was fitted to which decides it; empty where none does.
    pub calibrated_to: String,
    /// Whether it is known to be missed: the paper has it so, and this model does not.
    pub missed: bool,
}

/// What a measurement is held against.
///
/// A value with a tolerance is compared with the mean over the seeds; every other bound must hold for each seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// This value, plus or minus so many percent of it.
    About {
        /// The value.
        value: f64,
        /// The tolerance.
        percent: f64,
    },
    /// At least this.
    AtLeast(f64),
    /// More than this.
    Above(f64),
    /// At most this.
    AtMost(f64),
    /// Exactly this.
    Exactly(f64),
    /// It is not judged.
    Reported,
}

impl Bound {
    /// Whether `ours` keeps it.
    #[expect(clippy::float_cmp, reason = "an exact bound is about counts")]
    pub fn holds(self, ours: &Estimate) -> bool {
        match self {
            Self::About { value, percent } => (ours.mean - value).abs() <= value.abs() * percent / 100.0,
            Self::AtLeast(least) => ours.min >= least,
            Self::Above(floor) => ours.min > floor,
            Self::AtMost(most) => ours.max <= most,
            Self::Exactly(value) => ours.min == value && ours.max == value,
            Self::Reported => true,
        }
    }

    /// The bound for a table, where it was made for so many seeds.
    pub(super) fn of_seeds(self, seeds: usize) -> String {
        match seeds {
            1 => self.to_string(),
            seeds => format!("{self}, mean of {seeds} seeds"),
        }
    }

    /// Reads `1.54 ± 5 %`, `>= 0.99`, `> 0`, `<= 0.8`, `= 0` or `reported`.
    fn parse(text: &str) -> Option<Self> {
        if text == "reported" {
            return Some(Self::Reported);
        }
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        if let Some((value, percent)) = text.split_once('±') {
            let percent = number(percent.trim().strip_suffix('%')?)?;
            return Some(Self::About { value: number(value)?, percent });
        }
        let after = |sign: &str| text.strip_prefix(sign).and_then(number);
        let at_least = after(">=").map(Self::AtLeast);
        let at_most = after("<=").map(Self::AtMost);
        at_least.or(at_most).or(after(">").map(Self::Above)).or(after("=").map(Self::Exactly))
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::About { value, percent } => write!(f, "{value} ± {percent} %"),
            Self::AtLeast(least) => write!(f, "≥ {least}"),
            Self::Above(floor) => write!(f, "> {floor}"),
            Self::AtMost(most) => write!(f, "≤ {most}"),
            Self::Exactly(value) => write!(f, "= {value}"),
            Self::Reported => f.write_str("not judged"),
        }
    }
}

/// The expectations of the figure `name`.
///
/// # Panics
/// When there are none, or the file is not well formed: it is part of this program, and a test reads all of it.
pub(super) fn figure(name: &str) -> Figure {
    let table = DeTable::parse(TEXT).expect("figures/expectations.toml is TOML");
    let figure = table.get_ref().get(name).unwrap_or_else(|| panic!("expectations.toml has no [{name}]"));
    let figure = figure.get_ref().as_table().expect("a figure is a table");
    let kind = text(figure, "kind");
    Figure {
        title: text(figure, "title"),
        kind: *Kind::ALL.iter().find(|other| other.name() == kind).expect("a kind of figure"),
        ablations: figure.get("ablation").map_or_else(Vec::new, |found| match found.get_ref() {
            DeValue::Array(several) => several.iter().map(ablation).collect(),
            _ => vec![ablation(found)],
        }),
        rows: figure
            .get("rows")
            .and_then(|rows| rows.get_ref().as_array())
            .expect("rows")
            .iter()
            .map(row)
            .collect(),
        note: optional(figure, "note"),
        takes: takes(figure),
    }
}

fn takes(figure: &DeTable<'_>) -> Takes {
    let list = figure.get("takes_s").and_then(|list| list.get_ref().as_array()).expect("`takes_s` is a list");
    let second = |place: usize| {
        let value = list.get(place)?.get_ref();
        let text =
            value.as_float().map(|float| float.as_str()).or_else(|| Some(value.as_integer()?.as_str()));
        Some(text.and_then(|text| text.parse().ok()).expect("a number of seconds"))
    };
    Takes { one_seed: second(0), five_seeds: second(1) }
}

fn ablation(ablation: &toml::Spanned<DeValue<'_>>) -> Ablation {
    let ablation = ablation.get_ref().as_table().expect("an ablation is a table");
    let set = ablation.get("set").and_then(|set| set.get_ref().as_table()).expect("what it sets");
    let pair = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let key: &std::borrow::Cow<'_, str> = key.get_ref();
        (key.to_string(), value.get_ref().as_str().expect("a value is a string").to_owned())
    };
    Ablation {
        name: optional(ablation, "name"),
        without: text(ablation, "without"),
        set: set.iter().map(pair).collect(),
    }
}

fn row(row: &toml::Spanned<DeValue<'_>>) -> Expectation {
    let row = row.get_ref().as_table().expect("a row is a table");
    let bound = text(row, "expect");
    Expectation {
        key: text(row, "key"),
        what: match optional(row, "calibrated_to").as_str() {
            "" => text(row, "what"),
            point => format!("{} (calibrated to {point})", text(row, "what")),
        },
        unit: optional(row, "unit"),
        paper: optional(row, "paper"),
        bound: Bound::parse(&bound).unwrap_or_else(|| panic!("not a bound: {bound}")),
        seeds: row.get("seeds").map_or(1, |seeds| {
            let seeds = seeds.get_ref().as_integer().and_then(|seeds| seeds.as_str().parse().ok());
            seeds.expect("`seeds` is a whole number")
        }),
        mechanism: row.get("mechanism").map(|name| match name.get_ref() {
            DeValue::Boolean(true) => String::new(),
            name => name.as_str().expect("`mechanism` is true, or the name of an ablation").to_owned(),
        }),
        calibrated_to: optional(row, "calibrated_to"),
        missed: matches!(row.get("missed").map(toml::Spanned::get_ref), Some(DeValue::Boolean(true))),
    }
}

fn text(table: &DeTable<'_>, key: &str) -> String {
    let value = table.get(key).and_then(|value| value.get_ref().as_str());
    value.unwrap_or_else(|| panic!("expectations.toml: a string `{key}` is missing")).trim().to_owned()
}

fn optional(table: &DeTable<'_>, key: &str) -> String {
    if table.contains_key(key) { text(table, key) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_as_they_are_printed() {
        for (text, bound, printed) in [
            ("1.54 ± 5 %", Bound::About { value: 1.54, percent: 5.0 }, "1.54 ± 5 %"),
            (">= 0.99", Bound::AtLeast(0.99), "≥ 0.99"),
            ("> 0", Bound::Above(0.0), "> 0"),
            ("<= 0.8", Bound::AtMost(0.8), "≤ 0.8"),
            ("= 0", Bound::Exactly(0.0), "= 0"),
            ("reported", Bound::Reported, "not judged"),
        ] {
            assert_eq!(Bound::parse(text), Some(bound), "{text}");
            assert_eq!(bound.to_string(), printed);
        }
        assert_eq!(Bound::parse("about 5"), None);
    }

    #[test]
    fn a_tolerance_is_for_the_mean_and_a_bound_for_every_seed() {
        let ours = Estimate::of(&[0.9, 1.0, 1.1]).unwrap();
        assert!(Bound::About { value: 1.04, percent: 5.0 }.holds(&ours));
        assert!(!Bound::About { value: 1.06, percent: 5.0 }.holds(&ours));
        assert!(Bound::AtLeast(0.9).holds(&ours) && !Bound::AtLeast(0.95).holds(&ours));
        assert!(Bound::AtMost(1.1).holds(&ours) && !Bound::AtMost(1.05).holds(&ours));
        assert!(!Bound::Exactly(1.0).holds(&ours) && !Bound::Above(0.9).holds(&ours));
    }

    /// What `docs/reproductions.md` says of each figure that a command prints: of each row what is measured, and what must
    /// come of it.
    fn page() -> Vec<(String, Vec<[String; 2]>)> {
        let text = include_str!("../../../../docs/reproductions.md");
        let headings = format!("| {} |", super::super::report::Report::HEADINGS.join(" | "));
        let mut sections = Vec::new();
        for section in text.split("\n## ").skip(1) {
            let (name, _) = section.split_once(": ").expect("a heading has a name and a title");
            let mut table = section.lines().filter(|line| line.starts_with("| "));
            if table.next() != Some(&headings) {
                continue;
            }
            let rows = table.skip(1).map(|line| {
                // A stroke within a cell has a stroke back before it.
                let line = line.replace("\\|", "\0");
                let cell = |n: usize| line.split('|').nth(n).unwrap_or("").trim().replace('\0', "|");
                [cell(1), cell(5)]
            });
            sections.push((name.to_owned(), rows.collect()));
        }
        sections
    }

    #[test]
    fn the_page_of_reproductions_has_the_rows_and_bounds_of_today() {
        let page = page();
        for (name, rows) in &page {
            assert!(
                super::super::names().contains(&name.as_str()),
                "docs/reproductions.md: no figure {name}"
            );
            let today: Vec<[String; 2]> = figure(name)
                .rows
                .iter()
                .map(|row| [row.what.clone(), row.bound.of_seeds(row.seeds)])
                .collect();
            assert_eq!(*rows, today, "docs/reproductions.md, {name}: run it again and paste its figures.md");
        }
        for name in super::super::names() {
            let there = page.iter().filter(|(other, _)| other == name).count();
            assert_eq!(there, 1, "docs/reproductions.md has {name} so many times");
        }
    }

    #[test]
    fn the_saw_tooth_is_judged_by_its_every_climb_and_its_median_decay() {
        let rows = figure("lst-fig13").rows;
        let judged = |key: &str, bound| rows.iter().any(|row| row.key == key && row.bound == bound);
        assert!(judged("climb", Bound::AtLeast(40.0)) && judged("linear_median", Bound::AtLeast(0.9)));
    }

    #[test]
    fn only_bounds_of_means_ask_for_seeds_and_for_no_more_than_there_are_by_default() {
        let default = super::super::Options::default().seeds.len();
        let rows = super::super::names().into_iter().flat_map(|name| figure(name).rows);
        let asking: Vec<Expectation> = rows.filter(|row| row.seeds != 1).collect();
        assert!(!asking.is_empty());
        for row in asking {
            assert!(
                matches!(row.bound, Bound::About { .. }),
                "{}: every other bound is each seed's",
                row.what
            );
            assert_eq!(row.seeds, default, "{}", row.what);
        }
    }

    #[test]
    fn every_figure_has_expectations_and_every_emergent_one_an_ablation() {
        for name in super::super::names() {
            let figure = figure(name);
            assert!(!figure.rows.is_empty(), "{name}");
            assert!(figure.kind != Kind::Emergent || !figure.ablations.is_empty(), "{name} has no ablation");
        }
    }

    #[test]
    fn every_figure_says_what_it_takes_and_five_seeds_take_no_less_than_one() {
        for name in super::super::names() {
            let Takes { one_seed, five_seeds } = figure(name).takes;
            assert!(one_seed.is_none_or(|seconds| (0.0..=120.0).contains(&seconds)), "{name}: {one_seed:?}");
            assert!(
                five_seeds.is_none_or(|five| one_seed.is_some_and(|one| one <= five)),
                "{name}: {five_seeds:?}"
            );
        }
    }

    #[test]
    fn every_ablation_has_a_row_that_must_fail_by_it_alone() {
        for name in super::super::names() {
            let figure = figure(name);
            for ablation in &figure.ablations {
                assert!(!ablation.set.is_empty(), "{name}: it switches nothing off");
                let needs = |row: &Expectation| row.mechanism.as_ref() == Some(&ablation.name);
                assert!(
                    figure.rows.iter().any(needs),
                    "{name}: no row needs the mechanism `{}`",
                    ablation.name
                );
            }
            for row in figure.rows {
                let known = |name: &String| figure.ablations.iter().any(|ablation| ablation.name == *name);
                assert!(
                    row.mechanism.as_ref().is_none_or(known),
                    "{name}: no ablation is that of `{}`",
                    row.key
                );
                assert!(
                    !row.missed || (row.bound != Bound::Reported && row.mechanism.is_none()),
                    "{name}: `{}` is missed, but not judged, or by an ablation",
                    row.key
                );
            }
        }
    }

    #[test]
    fn a_row_that_an_input_was_fitted_to_names_the_point_that_the_input_names() {
        use roci_nic::arch::presets;
        let mut fitted = 0;
        for name in super::super::names() {
            for row in figure(name).rows.iter().filter(|row| !row.calibrated_to.is_empty()) {
                let named = format!("calibrated_to = \"{}", row.calibrated_to);
                let texts = presets::names().filter_map(presets::text);
                assert!(texts.into_iter().any(|text| text.contains(&named)), "{name}: no input has {named}");
                assert!(
                    row.what.ends_with(&format!("(calibrated to {})", row.calibrated_to)),
                    "{}",
                    row.what
                );
                fitted += 1;
            }
        }
        assert!(fitted > 0);
    }
}
