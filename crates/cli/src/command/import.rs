//! `roci import`: a scenario of another simulator's configuration, or a schedule of traces and a scenario that runs it.

use crate::Failure;
use crate::args::Import;
use crate::execute::print;
use roci_lab::import::{self, chakra};
use roci_lab::scenario::Scenario;
use std::io::Write as _;
use std::path::{Path, PathBuf};

pub(crate) fn import(arguments: &Import) -> Result<(), Failure> {
    if chakra::is_named(&arguments.given) {
        return traces(arguments);
    }
    let Import { given, out, groups, peak_perf, local_mem_bw } = arguments;
    let of_traces = [
        ("--groups", groups.is_some()),
        ("--peak-perf", peak_perf.is_some()),
        ("--local-mem-bw", local_mem_bw.is_some()),
    ];
    if let Some((option, _)) = of_traces.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::Request(format!(
            "{option} is for Chakra traces, and {} is none: name their folder, one of them, or what their names begin with",
            given.display()
        )));
    }
    let is = |end: &str| given.extension().is_some_and(|other| other == end);
    let elsewhere = [
        (
            "json",
            "is JSON, and Chakra's traces are protocol buffers, step.0.et and so on: make them with Chakra's converter",
        ),
        ("goal", "is a schedule: name it as `file` of traffic of kind \"goal\" in a scenario"),
        ("toml", "is a scenario: roci run takes it"),
    ];
    if let Some((_, what)) = elsewhere.into_iter().find(|(end, _)| is(end)) {
        return Err(Failure::Request(format!("{} {what}", given.display())));
    }
    let path = out.clone().unwrap_or_else(|| given.with_extension("toml"));
    must_be_new(&path)?;
    let beside = path.parent().unwrap_or_else(|| Path::new(""));
    let imported = import::import(given, beside).map_err(|error| refused(given, &error))?;
    // What cannot run is said now, and not left behind.
    Scenario::parse(&imported.scenario, &path.display().to_string(), &[]).map_err(|error| {
        refused(given, &format!("what it says makes no scenario, and none is written: {error}"))
    })?;
    write(&path, &imported.scenario)?;
    tell(&imported.notes, &path);
    Ok(())
}

/// The schedule first, which the scenario names.
fn traces(arguments: &Import) -> Result<(), Failure> {
    let given = &arguments.given;
    let machine = chakra::Machine { peak_perf: arguments.peak_perf, local_mem_bw: arguments.local_mem_bw };
    let options = chakra::Options { machine, groups: arguments.groups.clone() };
    let prefix = chakra::prefix(given).map_err(|error| refused(given, &error))?;
    let (path, schedule) = outputs(&prefix, arguments.out.as_deref());
    must_be_new(&path)?;
    must_be_new(&schedule)?;
    let beside = schedule.file_name().unwrap_or_default().to_string_lossy();
    let imported = chakra::import(&prefix, &options, &beside).map_err(|error| refused(given, &error))?;
    write(&schedule, &imported.schedule)?;
    write(&path, &imported.scenario)?;
    if let Err(error) = Scenario::load(&path, &[]) {
        // What cannot run is not left behind.
        let _ = (std::fs::remove_file(&path), std::fs::remove_file(&schedule));
        return Err(refused(
            given,
            &format!("what they say makes no scenario, and none is written: {error}"),
        ));
    }
    print(&format!("{} is written. ", schedule.display()));
    tell(&imported.notes, &path);
    Ok(())
}

/// The scenario's file and the schedule's.
fn outputs(prefix: &Path, out: Option<&Path>) -> (PathBuf, PathBuf) {
    match out {
        // What traces are called may have points.
        None => [".toml", ".goal"].map(|end| {
            let mut name = prefix.as_os_str().to_owned();
            name.push(end);
            PathBuf::from(name)
        }),
        Some(out) if out.extension().is_some_and(|end| end == "goal") => {
            [out.with_extension("toml"), out.to_owned()]
        }
        Some(out) => [out.to_owned(), out.with_extension("goal")],
    }
    .into()
}

fn refused(given: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::Request(format!("{}: {error}", given.display()))
}

fn must_be_new(path: &Path) -> Result<(), Failure> {
    if path.exists() {
        return Err(Failure::Request(format!(
            "{} exists already, and nothing was written: name another file with --out, or remove it",
            path.display()
        )));
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| {
        Failure::Run(format!("cannot write {}: {error}; name another file with --out", path.display()))
    })
}

/// Says what is written, and what it does not say.
fn tell(notes: &[String], path: &Path) {
    for note in notes {
        let _ = writeln!(std::io::stderr(), "{note}");
    }
    let named = path.display();
    print(&format!("{named} is written. To run it: roci run {named}\n"));
}
