//! `roci reproduce`: the papers' figures, with their values beside ours.

use crate::Failure;
use crate::args::Reproduce;
use crate::execute::{prepare, print};
use crate::progress::{Bar, interrupted, listen};
use crate::table;
use roci_lab::figures::{self, FigureError, GROUPS, Options, Outcome, Report, Step};
use roci_lab::run::{Go, RunError};
use roci_lab::scenario::overrides;
use roci_lab::world::SimulatedWorld;
use serde_json::json;

pub(crate) fn reproduce(arguments: &Reproduce) -> Result<(), Failure> {
    if arguments.list || arguments.figures.is_empty() {
        return list(arguments);
    }
    let names = wanted(arguments)?;
    let default = Options::default();
    let seeds = match &arguments.seeds {
        Some(list) => {
            let seeds = overrides::seeds(list)?;
            super::hint_at_one_seed(list, arguments.quiet);
            seeds
        }
        None => default.seeds,
    };
    let runs = runs_of(&names, arguments.ablate)?;
    let folder = prepare(&arguments.out)?;
    listen()?;
    let mut reports = Vec::new();
    let mut broken_off = None;
    for (name, ablate) in runs {
        let options = Options { ablate, seeds: seeds.clone() };
        let bar = Bar::new(arguments.quiet, name);
        let progress = |step: Step| {
            bar.runs(step.done, step.asked);
            if interrupted() { Go::Stop } else { Go::On }
        };
        let report = figures::reproduce(&SimulatedWorld, name, &options, &progress);
        bar.clear();
        let report = match report {
            Ok(report) => report,
            Err(error) => {
                broken_off = Some((name, error));
                break;
            }
        };
        if !arguments.quiet && !arguments.json {
            print(&table::figure(&report));
        }
        reports.push(report);
    }
    if let Some((_, error)) = broken_off.as_ref().filter(|_| reports.is_empty()) {
        return Err(Failure::Run(match interrupts(error) {
            true => RunError::Interrupted.to_string(),
            false => error.to_string(),
        }));
    }
    let failed = |error: roci_lab::output::OutputError| Failure::Run(error.to_string());
    figures::write(folder.draft(), &reports).map_err(failed)?;
    let target = folder.target().display().to_string();
    folder.publish().map_err(failed)?;
    if arguments.json {
        print(&format!("{:#}\n", json!(reports.iter().map(as_json).collect::<Vec<_>>())));
    } else if !arguments.quiet {
        print(&format!("Tables and plots are in {target}.\n"));
        print(&reports.iter().filter_map(unjudged).collect::<String>());
        print(&summary(&reports));
    }
    let failed = |report: &&Report| report.outcome() == Outcome::Failed;
    let bad: Vec<&str> = reports.iter().filter(failed).map(|report| report.name).collect();
    let bad = (!bad.is_empty()).then(|| format!("not reproduced: {}", bad.join(", ")));
    let broken_off = broken_off.map(|(name, error)| {
        let why = if interrupts(&error) { "interrupted".to_owned() } else { error.to_string() };
        format!("{why}\n`{name}` is not done, nor what was to follow; what was done before it is in {target}")
    });
    let wrong: Vec<String> = bad.into_iter().chain(broken_off).collect();
    if wrong.is_empty() { Ok(()) } else { Err(Failure::Run(wrong.join("\n"))) }
}

/// Whether the user stopped a figure.
fn interrupts(error: &FigureError) -> bool {
    matches!(error, FigureError::Run { error, .. } if **error == RunError::Interrupted)
}

/// Each of `names` as it is; or once for each of its mechanisms, with that one switched off. One without any is refused before
/// others have run for hours.
fn runs_of(names: &[&'static str], ablate: bool) -> Result<Vec<(&'static str, Option<usize>)>, Failure> {
    let mut runs = Vec::new();
    for &name in names {
        if !ablate {
            runs.push((name, None));
            continue;
        }
        let several = figures::ablations(name).map_err(|error| Failure::Request(error.to_string()))?;
        if several == 0 {
            return Err(Failure::Request(FigureError::NoAblation(name).to_string()));
        }
        runs.extend((0..several).map(|which| (name, Some(which))));
    }
    Ok(runs)
}

/// The figures that are asked for, each once.
fn wanted(arguments: &Reproduce) -> Result<Vec<&'static str>, Failure> {
    let request = |error: FigureError| Failure::Request(error.to_string());
    let mut names = Vec::new();
    for name in &arguments.figures {
        let chosen = figures::resolve(name).map_err(request)?;
        let alone = chosen.len() == 1;
        for figure in chosen {
            // Of several, those without a mechanism to switch off are left out; asked for by name, one is refused.
            let wanted = alone || !arguments.ablate || figures::ablations(figure).map_err(request)? > 0;
            if wanted && !names.contains(&figure) {
                names.push(figure);
            }
        }
    }
    Ok(names)
}

/// Lists the figures that are named, or all: what each shows, by paper.
fn list(arguments: &Reproduce) -> Result<(), Failure> {
    let names = if arguments.figures.is_empty() { figures::names() } else { wanted(arguments)? };
    let mut of_groups = GROUPS.map(|group| (group, group.figures()));
    of_groups.iter_mut().for_each(|(_, figures)| figures.retain(|(name, _)| names.contains(name)));
    if arguments.json {
        let of_group = of_groups.iter().flat_map(|(group, figures)| {
            figures.iter().map(move |(name, figure)| {
                json!({
                    "name": name, "group": group.name, "from": group.from, "title": figure.title,
                    "kind": figure.kind.name(), "rows": figure.rows.len(), "ablation": !figure.ablations.is_empty(),
                    "about_s": { "one_seed": figure.takes.one_seed, "five_seeds": figure.takes.five_seeds },
                })
            })
        });
        print(&format!("{:#}\n", json!(of_group.collect::<Vec<_>>())));
    } else if !arguments.quiet {
        for (group, figures) in of_groups.iter().filter(|(_, figures)| !figures.is_empty()) {
            print(&table::figures(group, figures));
        }
        print(
            "`roci reproduce NAME` runs a figure, `roci reproduce GROUP` all of a group, `roci reproduce all` every one.\n\
             Ablations are mechanisms behind a figure that `--ablate` switches off, one after the other.\n\
             Times are what one core took once, with one seed (`--seeds 1`) and with five, the default.\n",
        );
    }
    Ok(())
}

/// What is to be said of rows of `report` that were not judged for want of seeds.
fn unjudged(report: &Report) -> Option<String> {
    let (rows, seeds) = report.wants_seeds()?;
    let rows = match report.outcome() {
        Outcome::NotJudged => "none of its rows is judged".to_owned(),
        _ if rows == 1 => "1 row is not judged".to_owned(),
        _ => format!("{rows} rows are not judged"),
    };
    let name = report.name;
    let run = report.seeds.len();
    let s = if run == 1 { "" } else { "s" };
    Some(format!(
        "{name}: {rows} with {run} seed{s}, as the bounds are those of a mean over {seeds}. To have them judged leave out --seeds, or \
         say --seeds 1..{seeds}.\n"
    ))
}

/// How many of the figures passed, miss something that the paper has, failed, and were not judged, with the names of all but
/// the first.
fn summary(reports: &[Report]) -> String {
    let of = |outcome: Outcome| {
        let alike: Vec<&str> =
            reports.iter().filter(|report| report.outcome() == outcome).map(|report| report.name).collect();
        let names = match (outcome, alike.as_slice()) {
            (Outcome::Passed, _) | (_, []) => String::new(),
            (_, names) => format!(" ({})", names.join(", ")),
        };
        format!("{} {}{names}", alike.len(), outcome.name())
    };
    let missed = reports.iter().any(|report| report.outcome() == Outcome::Missed);
    let outcomes = [Outcome::Passed, Outcome::Missed, Outcome::Failed, Outcome::NotJudged];
    let shown = outcomes.into_iter().filter(|outcome| missed || *outcome != Outcome::Missed);
    format!("{}.\n", shown.map(of).collect::<Vec<_>>().join(", "))
}

fn as_json(report: &Report) -> serde_json::Value {
    let rows = report.rows.iter().map(|row| {
        json!({
            "what": row.what,
            "unit": row.unit,
            "paper": row.paper,
            "ours": row.ours.map(|ours| json!({
                "mean": ours.mean, "half_width": ours.half_width, "min": ours.min, "max": ours.max,
            })),
            "off_by_percent": row.deviation(),
            "wanted_seeds": row.seeds,
            "verdict": row.verdict.name(),
        })
    });
    json!({
        "name": report.name,
        "title": report.title,
        "without": report.without,
        "seeds": report.seeds,
        "passed": match report.outcome() {
            Outcome::Passed => Some(true),
            Outcome::Missed | Outcome::Failed => Some(false),
            Outcome::NotJudged => None,
        },
        "rows": rows.collect::<Vec<_>>(),
        "note": report.note,
    })
}
