//! The commands: from arguments to groups of runs, and what they are called.

mod ctl;
mod dash;
mod hops;
mod import;
mod nic;
mod perf;
mod ping;
mod program;
mod reproduce;
mod switch;
mod tune;

pub(crate) use ctl::ctl;
pub(crate) use dash::dash;
pub(crate) use import::import;
pub(crate) use nic::nic;
pub(crate) use perf::perf;
pub(crate) use ping::ping;
pub(crate) use program::program;
pub(crate) use reproduce::reproduce;
pub(crate) use switch::switch;
pub(crate) use tune::tune;

use crate::Failure;
use crate::args::{Arguments, Common, Compare, Help, Run, Sweep};
use crate::execute::{Request, execute, print};
use clap::CommandFactory as _;
use roci_lab::batch::{Group, PlanError};
use roci_lab::scenario::{Place, ScenarioError, overrides};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::Request(error.to_string())
    }
}

impl From<overrides::ArgumentError> for Failure {
    fn from(error: overrides::ArgumentError) -> Self {
        Self::Request(error.to_string())
    }
}

/// `roci run`: each scenario is a group of its own.
pub(crate) fn run(arguments: &Run) -> Result<(), Failure> {
    let set = assignments(&arguments.set)?;
    let seeds = seeds(&arguments.common)?;
    let mut requests = Vec::new();
    let mut names = BTreeSet::new();
    for path in &arguments.scenarios {
        let group = Group::of_seeds(path, &set, &seeds).map_err(hint_at_sweep)?;
        if !names.insert(group.title.clone()) {
            return Err(Failure::Request(format!(
                "{}: another scenario is called `{}` too; give it a name of its own, or run it by itself",
                path.display(),
                group.title
            )));
        }
        let folder = match (&arguments.common.out, arguments.scenarios.len()) {
            (Some(out), 1) => out.clone(),
            (Some(out), _) => out.join(&group.title),
            (None, _) => default_folder(&group.title),
        };
        requests.push(Request { group, folder });
    }
    execute(requests, &arguments.common)
}

/// Adds the command for several values to the error of an override that has such.
fn hint_at_sweep(mut error: PlanError) -> PlanError {
    if let PlanError::Scenario(ScenarioError { place: Place::Override(given), remedy, .. }) = &mut error
        && let Some((_, list)) = given.split_once('=')
        && overrides::values(list).is_ok_and(|values| values.len() > 1)
    {
        remedy.push_str("; `roci sweep` runs with each of several values");
    }
    error
}

/// `roci sweep`: every combination of the values that have several.
pub(crate) fn sweep(arguments: &Sweep) -> Result<(), Failure> {
    let (mut set, mut axes) = (Vec::new(), Vec::new());
    for (path, list) in assignments(&arguments.set)? {
        match overrides::values(&list).as_deref() {
            Ok([value]) => set.push((path, value.clone())),
            // A list that is wrong is refused with its key.
            _ => axes.push((path, list)),
        }
    }
    let group = Group::of_sweep(&arguments.scenario, &set, &axes, &seeds(&arguments.common)?)?;
    one_group(group, &arguments.common)
}

/// `roci compare`: scenarios, or controls of one scenario, side by side.
pub(crate) fn compare(arguments: &Compare) -> Result<(), Failure> {
    let set = assignments(&arguments.set)?;
    let seeds = seeds(&arguments.common)?;
    let group = match (&arguments.control, arguments.scenarios.as_slice()) {
        (Some(controls), [path]) => Group::of_controls(path, &set, controls, &seeds)?,
        (Some(_), _) => {
            let message = "--control compares congestion controls of one scenario; name one, or leave it out";
            return Err(Failure::Request(message.to_owned()));
        }
        (None, [_]) => {
            let message = "one scenario alone cannot be compared; name another, or add --control dcqcn,none";
            return Err(Failure::Request(message.to_owned()));
        }
        (None, paths) => Group::of_scenarios(paths, &set, &seeds)?,
    };
    one_group(group, &arguments.common)
}

/// `roci help`, of the whole or of one command.
pub(crate) fn help(arguments: &Help) -> Result<(), Failure> {
    let mut all = Arguments::command();
    all.build();
    let command = match &arguments.command {
        None => &mut all,
        Some(name) => all.find_subcommand_mut(name).ok_or_else(|| {
            Failure::Request(format!("there is no command `{name}`; `roci help` lists those that exist"))
        })?,
    };
    print(&command.render_help().to_string());
    Ok(())
}

fn one_group(group: Group, common: &Common) -> Result<(), Failure> {
    let folder = common.out.clone().unwrap_or_else(|| default_folder(&group.title));
    execute(vec![Request { group, folder }], common)
}

fn default_folder(title: &str) -> PathBuf {
    // File systems take no longer names; a comparison of many scenarios has one.
    Path::new("out").join(title.chars().take(60).collect::<String>())
}

fn assignments(arguments: &[String]) -> Result<Vec<(String, String)>, Failure> {
    Ok(arguments.iter().map(|argument| overrides::assignment(argument)).collect::<Result<_, _>>()?)
}

fn seeds(common: &Common) -> Result<Vec<u64>, Failure> {
    match (&common.seeds, common.seed) {
        (Some(list), _) => {
            let seeds = overrides::seeds(list)?;
            hint_at_one_seed(list, common.quiet);
            Ok(seeds)
        }
        (None, seed) => Ok(seed.into_iter().collect()),
    }
}

/// Tells whoever asked for seed 3 alone that it is not three of them.
fn hint_at_one_seed(list: &str, quiet: bool) {
    if let Some(hint) = overrides::one_seed_hint(list).filter(|_| !quiet) {
        let _ = writeln!(std::io::stderr(), "{hint}");
    }
}
