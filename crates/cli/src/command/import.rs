//! `roci import`: a scenario of another simulator's configuration.

use crate::Failure;
use crate::args::Import;
use crate::execute::print;
use roci_lab::import;
use roci_lab::scenario::Scenario;
use std::io::Write as _;
use std::path::Path;

pub(crate) fn import(arguments: &Import) -> Result<(), Failure> {
    let Import { config, out } = arguments;
    let path = out.clone().unwrap_or_else(|| config.with_extension("toml"));
    if path.exists() {
        return Err(Failure::Request(format!(
            "{} exists already, and nothing was written: name another file with --out, or remove it",
            path.display()
        )));
    }
    let beside = path.parent().unwrap_or_else(|| Path::new(""));
    let refused = |error: &dyn std::fmt::Display| Failure::Request(format!("{}: {error}", config.display()));
    let imported = import::import(config, beside).map_err(|error| refused(&error))?;
    let named = path.display().to_string();
    // What cannot run is said now, and not left behind.
    Scenario::parse(&imported.scenario, &named, &[])
        .map_err(|error| refused(&format!("what it says makes no scenario, and none is written: {error}")))?;
    std::fs::write(&path, &imported.scenario).map_err(|error| {
        Failure::Run(format!("cannot write {named}: {error}; name another file with --out"))
    })?;
    for note in &imported.notes {
        let _ = writeln!(std::io::stderr(), "{note}");
    }
    print(&format!("{named} is written. To run it: roci run {named}\n"));
    Ok(())
}
