//! `roci reproduce`: the papers' figures, with their values beside ours.

use crate::Failure;
use crate::args::Reproduce;
use crate::execute::{prepare, print};
use crate::progress::{Bar, interrupted, listen};
use crate::table;
use roci_lab::figures::{self, FigureError, Options, Report, Step};
use roci_lab::run::{Go, RunError};
use roci_lab::scenario::overrides;
use roci_lab::world::SimulatedWorld;
use serde_json::json;

pub(crate) fn reproduce(arguments: &Reproduce) -> Result<(), Failure> {
    let request = |error: FigureError| Failure::Request(error.to_string());
    let mut names = Vec::new();
    for name in &arguments.figures {
        let chosen = figures::resolve(name).map_err(request)?;
        let alone = chosen.len() == 1;
        for figure in chosen {
            // Of several, those without a mechanism to switch off are left out; asked for by name, one is refused.
            let wanted = alone || !arguments.ablate || figures::has_ablation(figure).map_err(request)?;
            if wanted && !names.contains(&figure) {
                names.push(figure);
            }
        }
    }
    let default = Options::default();
    let seeds = match &arguments.seeds {
        Some(list) => {
            let seeds = overrides::seeds(list)?;
            super::hint_at_one_seed(list, arguments.quiet);
            seeds
        }
        None => default.seeds,
    };
    let options = Options { ablate: arguments.ablate, seeds };
    let folder = prepare(&arguments.out)?;
    listen()?;
    let mut reports = Vec::new();
    for name in names {
        let bar = Bar::new(arguments.quiet, name);
        let progress = |step: Step| {
            bar.runs(step.done, step.asked);
            if interrupted() { Go::Stop } else { Go::On }
        };
        let report = figures::reproduce(&SimulatedWorld, name, &options, &progress);
        bar.clear();
        let report = report.map_err(|error| match error {
            FigureError::Unknown(_) | FigureError::NoAblation(_) => request(error),
            FigureError::Run { error, .. } if *error == RunError::Interrupted => {
                Failure::Run(RunError::Interrupted.to_string())
            }
            FigureError::Run { .. } => Failure::Run(error.to_string()),
        })?;
        if !arguments.quiet && !arguments.json {
            print(&table::figure(&report));
        }
        reports.push(report);
    }
    let failed = |error: roci_lab::output::OutputError| Failure::Run(error.to_string());
    figures::write(folder.draft(), &reports).map_err(failed)?;
    let target = folder.target().display().to_string();
    folder.publish().map_err(failed)?;
    if arguments.json {
        print(&format!("{:#}\n", json!(reports.iter().map(as_json).collect::<Vec<_>>())));
    } else if !arguments.quiet {
        print(&format!("Tables and plots are in {target}.\n"));
        for report in &reports {
            if let Some((rows, seeds)) = report.wants_seeds() {
                print(&format!(
                    "{}: {rows} rows are not judged, for their bounds are of means over {seeds} seeds, such as --seeds 1..{seeds}.\n",
                    report.name
                ));
            }
        }
    }
    let bad: Vec<&str> = reports.iter().filter(|report| !report.passed()).map(|report| report.name).collect();
    match bad.as_slice() {
        [] => Ok(()),
        bad => Err(Failure::Run(format!("not reproduced: {}", bad.join(", ")))),
    }
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
            "wanted_seeds": row.seeds,
            "verdict": row.verdict.name(),
        })
    });
    json!({
        "name": report.name,
        "title": report.title,
        "without": report.without,
        "seeds": report.seeds,
        "passed": report.passed(),
        "rows": rows.collect::<Vec<_>>(),
        "note": report.note,
    })
}
