//! The papers' figures, reproduced from scenarios, and the model held against what is known of it independently.
//!
//! A figure is a scenario, what its code measures in the results, and what `figures/expectations.toml` expects of it.
//! Inputs may come from a paper; results come out of the model. An *emergent* figure names the mechanism that brings
//! it about; with that switched off its rows must fail, else they would prove nothing.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`expect`] | what must come out |
//! | [`report`] | the paper's value beside ours |
//! | [`deviation`] | how far the two are apart |
//! | [`statistics`] | means over seeds, fits and distances |
//! | [`plot`] | line plots |
//! | `bench` | running a scenario for every seed |
//! | `trace` | flows and queues over time |
//! | `lst` | the figures of the LST front-end paper |
//! | `swcc` | the figures of the SwCC paper |
//! | `srnic` | the figures of the SRNIC paper |
//! | `tonic`, `plain` | the figures of the Tonic paper, and senders by the book that they are compared with |
//! | `carc` | the figures of the CARC paper |
//! | `hpcc` | HPCC's comparison of laws |
//! | `validation` | queueing theory, DCQCN's fixed point, headroom, shares, the other laws, Homa, NDP |

mod bench;
mod carc;
pub mod deviation;
pub mod expect;
mod hpcc;
mod lst;
mod plain;
pub mod plot;
pub mod report;
mod srnic;
pub mod statistics;
mod swcc;
mod tonic;
mod trace;
mod validation;

pub use report::{Outcome, Report, Row, Verdict};

use crate::output::{self, OutputError};
use crate::run::{Go, RunError, World};
use crate::scenario::source::{listed, nearest};
use bench::Bench;
use std::io::Write as _;
use std::path::Path;

/// How a figure is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which of the mechanisms behind it is switched off, counted from zero; `None`: none is.
    pub ablate: Option<usize>,
    /// The seeds to run with, at least one. Default 1 to 5.
    pub seeds: Vec<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self { ablate: None, seeds: (1..=5).collect() }
    }
}

/// How far a figure has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Runs that have ended.
    pub done: usize,
    /// Runs that have been asked for so far; a figure may ask for more.
    pub asked: usize,
}

/// Why a figure could not be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FigureError {
    /// There is no such figure.
    #[error("there is no figure `{name}`; {known}", name = .0, known = known(.0))]
    Unknown(String),
    /// It has no mechanism to switch off.
    #[error("`{name}` has no ablation; {others}", name = .0, others = with_ablations(.0))]
    NoAblation(&'static str),
    /// One of its runs failed.
    #[error("{name} with seed {seed}: {error}")]
    Run {
        /// The scenario.
        name: String,
        /// The seed.
        seed: u64,
        /// What happened.
        error: Box<RunError>,
    },
}

/// What a figure's code found out.
#[derive(Debug, Default)]
struct Measured {
    /// Each quantity with its value for each seed.
    values: Vec<(&'static str, Vec<f64>)>,
    /// What is drawn, of the first seed.
    plots: Vec<plot::Plot>,
    /// What a reader should know and no row says.
    remarks: Vec<String>,
}

impl Measured {
    fn add(&mut self, key: &'static str, values: Vec<f64>) {
        self.values.push((key, values));
    }

    /// Adds what `value` reads from each run.
    fn each<R>(&mut self, key: &'static str, runs: &[R], value: impl Fn(&R) -> f64) {
        self.add(key, runs.iter().map(value).collect());
    }
}

/// A figure's code.
type Measure = fn(&Bench<'_>) -> Result<Measured, FigureError>;

/// Every figure, in the order of the papers; what validates the model comes last.
const FIGURES: [(&str, Measure); 50] = [
    ("swcc-table1", swcc::delay::measure),
    ("swcc-table3", swcc::lines::measure),
    ("swcc-fig1", swcc::drain::measure),
    ("swcc-fig2", swcc::interface::measure),
    ("swcc-fig3", swcc::budget::measure),
    ("swcc-fig5", swcc::contexts::miss),
    ("swcc-fig10", swcc::rate::measure),
    ("swcc-fig11a", swcc::contexts::measure),
    ("swcc-fig11b", swcc::cycles::measure),
    ("swcc-fig11c", swcc::rate::memory),
    ("swcc-fig11d", swcc::rate::clock),
    ("swcc-fig12", swcc::incast::halting),
    ("swcc-fig13", swcc::incast::software),
    ("srnic-fig9", srnic::connections::measure),
    ("srnic-table1", srnic::memory::measure),
    ("srnic-norm", srnic::connections::normalised),
    ("srnic-fig10", srnic::single::measure),
    ("srnic-fig11", srnic::loss::measure),
    ("srnic-fig12", srnic::scale::measure),
    ("srnic-header", srnic::header::measure),
    ("tonic-table3", tonic::size::measure),
    ("tonic-table4", tonic::capacity::measure),
    ("tonic-fig3", tonic::newreno::measure),
    ("tonic-fig3c", tonic::flows::measure),
    ("tonic-fig4", tonic::dcqcn::measure),
    ("tonic-rate", tonic::rate::measure),
    ("lst-fig4", lst::incast::pfc_alone),
    ("lst-fig5", lst::incast::dcqcn),
    ("lst-fig9", lst::forged::measure),
    ("lst-fig11", lst::three::without_dcqcn),
    ("lst-fig12", lst::three::with_dcqcn),
    ("lst-fig13", lst::sawtooth::measure),
    ("lst-fig14", lst::limiter::measure),
    ("lst-scale", lst::scale::measure),
    ("carc-fig2", carc::connections),
    ("carc-fig3", carc::toy),
    ("carc-fig5a", carc::slower),
    ("carc-fig5b", carc::faster),
    ("carc-fig7", carc::idle),
    ("carc-fig8", carc::slower_with_credits),
    ("carc-table1", carc::table),
    ("hpcc-compare", hpcc::measure),
    ("validation-queueing", validation::queueing::measure),
    ("validation-fixed-point", validation::fixed_point::measure),
    ("validation-headroom", validation::headroom::measure),
    ("validation-shares", validation::shares::measure),
    ("validation-laws", validation::laws::measure),
    ("validation-pacing", validation::pacing::measure),
    ("validation-homa", validation::receivers::homa),
    ("validation-ndp", validation::receivers::ndp),
];

/// The figures whose names begin with `name`: those of one paper, or those that hold the model against theory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// What its figures' names begin with; it stands for all of them.
    pub name: &'static str,
    /// Where they are from.
    pub from: &'static str,
}

/// Every group, in the order of the figures.
pub const GROUPS: [Group; 7] = [
    Group { name: "swcc", from: "SwCC: Software-Programmable and Per-Packet Congestion Control (ATC 2025)" },
    Group { name: "srnic", from: "SRNIC: A Scalable Architecture for RDMA NICs (NSDI 2023)" },
    Group { name: "tonic", from: "Enabling Programmable Transport Protocols in High-Speed NICs (NSDI 2020)" },
    Group { name: "lst", from: "A Congestion-Aware RDMA Front-End for LST Advanced Camera Readout (2026)" },
    Group { name: "carc", from: "Cache-Aware I/O Rate Control for RDMA (APNet 2025)" },
    Group { name: "hpcc", from: "HPCC: High Precision Congestion Control (SIGCOMM 2019)" },
    Group { name: "validation", from: "the model against what is known independently of it" },
];

impl Group {
    /// The names of its figures, with what each is.
    pub fn figures(&self) -> Vec<(&'static str, expect::Figure)> {
        let ours = names().into_iter().filter(|figure| self.holds(figure));
        ours.map(|figure| (figure, expect::figure(figure))).collect()
    }

    fn holds(&self, figure: &str) -> bool {
        figure.strip_prefix(self.name).is_some_and(|rest| rest.starts_with('-'))
    }
}

/// What there is in place of a figure `wrong`: what is spelled most like it, and those of its group.
fn known(wrong: &str) -> String {
    let near = nearest(wrong, names()).map(|near| format!("did you mean `{near}`? "));
    let of_group = GROUPS.iter().find(|group| group.holds(wrong)).map(|group| {
        format!(
            "of `{}` there are {}; ",
            group.name,
            listed(group.figures().into_iter().map(|(name, _)| name))
        )
    });
    format!(
        "{}{}`all` stands for all, and the groups are {}. `roci reproduce --list` lists them",
        near.unwrap_or_default(),
        of_group.unwrap_or_default(),
        listed(GROUPS.map(|group| group.name))
    )
}

/// Those beside the figure `name`, which has no ablation, that have one.
fn with_ablations(name: &str) -> String {
    let of_group = GROUPS.iter().find(|group| group.holds(name)).map(|group| {
        let figures = group.figures().into_iter();
        let have: Vec<&str> =
            figures.filter(|(_, it)| !it.ablations.is_empty()).map(|(name, _)| name).collect();
        match have.as_slice() {
            [] => format!("no figure of `{}` has one. ", group.name),
            have => format!("of `{}` these have one: {}. ", group.name, listed(have.iter().copied())),
        }
    });
    format!("{}`roci reproduce --list` counts those of each figure", of_group.unwrap_or_default())
}

/// The names of all figures.
pub fn names() -> Vec<&'static str> {
    FIGURES.iter().map(|(name, _)| *name).collect()
}

/// What the files of figures are called, those of ablations that have a name of their own too.
pub(crate) fn file_names() -> Vec<String> {
    let of = |name: &'static str| {
        let ablations =
            expect::figure(name).ablations.into_iter().filter(|ablation| !ablation.name.is_empty());
        let named = ablations.map(move |ablation| report::file_name(name, &ablation.name));
        std::iter::once(name.to_owned()).chain(named)
    };
    names().into_iter().flat_map(of).collect()
}

/// The figures that `name` stands for: one, those of a group ([`GROUPS`]), or `all`.
///
/// # Errors
/// [`FigureError::Unknown`] where it stands for none.
pub fn resolve(name: &str) -> Result<Vec<&'static str>, FigureError> {
    let name = alias(name);
    let all = names();
    let figure = all.iter().find(|figure| **figure == name);
    match (figure, GROUPS.iter().find(|group| group.name == name)) {
        (Some(figure), _) => Ok(vec![*figure]),
        (None, Some(group)) => Ok(all.into_iter().filter(|figure| group.holds(figure)).collect()),
        (None, None) if name == "all" => Ok(all),
        (None, None) => Err(FigureError::Unknown(name.to_owned())),
    }
}

/// How many mechanisms the figure `name` has that can be switched off, each by itself.
///
/// # Errors
/// [`FigureError::Unknown`] where there is no such figure.
pub fn ablations(name: &str) -> Result<usize, FigureError> {
    find(name).map(|(name, _)| expect::figure(name).ablations.len())
}

/// Runs the figure `name` in `world` and judges it, with the mechanism off that `options` name. `progress` is asked now and then, from several threads, whether
/// to go on.
///
/// # Errors
/// When there is no such figure, it has no ablation and one is asked for, or a run fails.
pub fn reproduce(
    world: &dyn World,
    name: &str,
    options: &Options,
    progress: &(dyn Fn(Step) -> Go + Sync),
) -> Result<Report, FigureError> {
    let (name, measure) = find(name)?;
    let figure = expect::figure(name);
    let ablation = match options.ablate {
        None => None,
        Some(index) => Some(figure.ablations.get(index).cloned().ok_or(FigureError::NoAblation(name))?),
    };
    let off = ablation.as_ref().map(|ablation| ablation.set.clone()).unwrap_or_default();
    let bench = Bench::new(world, &options.seeds, off, progress);
    let measured = measure(&bench)?;
    let mut report = Report::new(name, figure, options.seeds.clone(), ablation.as_ref(), &measured.values);
    for remark in measured.remarks {
        report.note.push_str(if report.note.is_empty() { "" } else { " " });
        report.note.push_str(&remark);
    }
    report.plots = measured.plots;
    Ok(report)
}

/// Figures that are shown with another.
fn alias(name: &str) -> &str {
    match name {
        "lst-fig6" => "lst-fig5",
        "swcc-fig7" => "swcc-table1",
        "swcc-fig14" => "swcc-fig13",
        "srnic-fig2" => "srnic-fig9",
        "srnic-table2" => "srnic-table1",
        _ => name,
    }
}

fn find(name: &str) -> Result<(&'static str, Measure), FigureError> {
    let name = alias(name);
    FIGURES
        .into_iter()
        .find(|(figure, _)| *figure == name)
        .ok_or_else(|| FigureError::Unknown(name.to_owned()))
}

/// Writes `reports` into `folder`: `figures.html` with tables and plots, `figures.md` with the tables, and each plot as
/// `<figure>.svg`, numbered where a figure has several.
///
/// # Errors
/// [`OutputError::Write`] names the file.
pub fn write(folder: &Path, reports: &[Report]) -> Result<(), OutputError> {
    output::write(&folder.join("figures.html"), |file| file.write_all(plot::page(reports).as_bytes()))?;
    output::write(&folder.join("figures.md"), |file| file.write_all(markdown(reports).as_bytes()))?;
    for report in reports {
        for (index, plot) in report.plots.iter().enumerate() {
            let number = if report.plots.len() == 1 { String::new() } else { format!("-{}", index + 1) };
            let path = folder.join(format!("{}{number}.svg", report.file_name()));
            output::write(&path, |file| file.write_all(plot.svg().as_bytes()))?;
        }
    }
    Ok(())
}

/// The tables of `reports` as Markdown: what `docs/reproductions.md` holds below its introduction.
pub fn markdown(reports: &[Report]) -> String {
    reports.iter().map(Report::markdown).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_a_figure_or_for_a_group() {
        assert_eq!(resolve("lst-fig6").unwrap(), ["lst-fig5"]);
        assert_eq!(resolve("all").unwrap().len(), FIGURES.len());
        assert_eq!(resolve("validation").unwrap().len(), 8);
        assert_eq!(resolve("lst").unwrap().len(), 8);
        let error = resolve("lst-fig7").unwrap_err().to_string();
        assert!(error.contains("lst-fig5") && error.contains("lst-fig7"), "{error}");
        assert!(error.contains("`tonic`") && error.contains("`hpcc`"), "{error}");
        let error = resolve("figure5").unwrap_err().to_string();
        assert!(error.starts_with("there is no figure `figure5`; `all` stands for all"), "{error}");
    }

    #[test]
    fn every_figure_is_of_one_group_and_every_group_has_figures() {
        let of_groups: Vec<&str> = GROUPS.iter().flat_map(Group::figures).map(|(figure, _)| figure).collect();
        assert_eq!(of_groups, names());
        for group in GROUPS {
            assert_eq!(resolve(group.name).unwrap().len(), group.figures().len());
        }
    }

    fn with_one_seed(name: &str, ablate: Option<usize>) -> Report {
        let options = Options { ablate, seeds: vec![1] };
        reproduce(&crate::world::SimulatedWorld, name, &options, &|_| Go::On).unwrap()
    }

    /// The quick ones, in full but for the number of seeds; `roci reproduce all` runs every one.
    #[test]
    fn quick_figures_are_reproduced() {
        for name in [
            "swcc-table3",
            "swcc-fig2",
            "swcc-fig3",
            "swcc-fig5",
            "tonic-table3",
            "tonic-fig3",
            "lst-fig4",
            "lst-fig9",
            "validation-headroom",
            "validation-pacing",
        ] {
            let report = with_one_seed(name, None);
            assert_eq!(report.outcome(), Outcome::Passed, "{}", report.markdown());
        }
    }

    #[test]
    fn without_its_mechanism_a_figure_fails_as_it_should() {
        for name in ["swcc-fig5", "tonic-fig3", "lst-fig4"] {
            let report = with_one_seed(name, Some(0));
            assert!(report.rows.iter().any(|row| row.verdict == Verdict::FailsAsItShould));
            assert_eq!(report.outcome(), Outcome::Passed, "{}", report.markdown());
        }
        let calibrated = Options { ablate: Some(0), seeds: vec![1] };
        let error =
            reproduce(&crate::world::SimulatedWorld, "lst-fig9", &calibrated, &|_| Go::On).unwrap_err();
        assert_eq!(error, FigureError::NoAblation("lst-fig9"));
    }

    #[test]
    fn of_a_figure_without_ablation_those_beside_it_that_have_one_are_named() {
        let told = |name| FigureError::NoAblation(name).to_string();
        let beside = "of `srnic` these have one: `srnic-fig9`, `srnic-fig10` and `srnic-fig12`. ";
        let list = "`roci reproduce --list` counts those of each figure";
        assert_eq!(told("srnic-fig11"), format!("`srnic-fig11` has no ablation; {beside}{list}"));
        assert_eq!(
            told("hpcc-compare"),
            format!("`hpcc-compare` has no ablation; no figure of `hpcc` has one. {list}")
        );
    }

    #[test]
    fn what_a_calibrated_figure_was_fitted_to_is_named_beside_the_input() {
        use roci_nic::arch::presets;
        let presets = presets::names().filter_map(presets::text);
        let texts: Vec<&str> = presets.chain(bench::SCENARIOS.iter().map(|scenario| scenario.text)).collect();
        for name in names() {
            let named = texts.iter().any(|text| text.contains(&format!("calibrated_to = \"{name}")));
            let calibrated = expect::figure(name).kind == expect::Kind::Calibrated;
            assert!(named || !calibrated, "{name}: no input says `calibrated_to = \"{name}`");
        }
    }

    #[test]
    fn every_scenario_of_a_figure_is_read() {
        for scenario in bench::SCENARIOS {
            scenario.read(&[]).unwrap_or_else(|error| panic!("{error:?}"));
        }
    }
}
