//! Schedules from Chakra's execution traces, which ASTRA-sim runs (MLCommons' chakra).
//!
//! A trace has what one rank computes and sends, and what of it waits for what; collectives it names, and says not how they are done, which
//! is the scenario's to say: what comes out is a [GOAL schedule](crate::traffic::goal) that has them as operations.
//!
//! | room | what it holds |
//! | --- | --- |
//! | `trace` | the messages of a file |
//! | `steps` | what a rank does, in which order |
//! | `groups` | process groups |
//! | `joint` | which nodes of ranks are one collective |
//! | `write` | the schedule as text |

mod groups;
mod joint;
mod steps;
mod trace;
mod write;

pub use steps::Machine;

use crate::traffic::collective::Operation;
use crate::traffic::goal::{Goal, GoalError, How, Schedule, WayError};
use crate::traffic::spec::Common;
use groups::Groups;
use joint::Joint;
use roci_fabric::packet::HostId;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steps::{Does, Step, StepError, Steps};

/// What traces do not say.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How fast ranks compute.
    pub machine: Machine,
    /// A file with the ranks of process groups.
    pub groups: Option<PathBuf>,
}

/// A schedule made of traces, and a scenario that runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The schedule, in GOAL.
    pub schedule: String,
    /// The scenario, on a network of its own invention: traces know none.
    pub scenario: String,
    /// What the traces do not say, and what is taken instead.
    pub notes: Vec<String>,
}

/// Why traces make no schedule.
#[derive(Debug, thiserror::Error)]
pub enum ChakraError {
    /// There are none.
    #[error(
        "there are no Chakra traces; name a folder with files such as step.0.et, one of them, or `step` for all of them"
    )]
    NoTraces,
    /// A folder has those of several runs.
    #[error("here are traces of several runs, {}; name one of these", .0.join(", "))]
    Several(Vec<String>),
    /// One is missing.
    #[error("there is no trace of rank {rank}, {file}, and one of rank {last}; add it")]
    Missing {
        /// The rank.
        rank: u32,
        /// The file that should be there.
        file: String,
        /// The last rank that has one.
        last: u32,
    },
    /// A file is no trace, or not all of one; or a node cannot be done.
    #[error("{file}: {what}")]
    File {
        /// Its name.
        file: String,
        /// What is wrong, with the octet or the node, and what to do.
        what: String,
    },
    /// A node cannot be done together with those of others.
    #[error("rank {rank}: node {id}, `{}`: {what}", .name.escape_debug())]
    Node {
        /// Its rank.
        rank: u32,
        /// Its number.
        id: u64,
        /// Its name.
        name: String,
        /// What is wrong, and what to do.
        what: String,
    },
    /// The schedule is too long.
    #[error(
        "the schedule would be longer than a file of it may be, 1GiB; import fewer ranks, or a part of the traces"
    )]
    TooLong,
    /// The schedule cannot come to its end.
    #[error("what the traces say makes no schedule that comes to its end: {0}")]
    Schedule(#[from] GoalError),
    /// A collective cannot be done.
    #[error("a collective cannot be done: {0}")]
    Collective(#[from] WayError),
}

impl ChakraError {
    fn node(rank: u32, step: &Step, what: String) -> Self {
        Self::Node { rank, id: step.id, name: step.name.to_string(), what }
    }

    fn file(file: &Path, what: impl ToString) -> Self {
        Self::File { file: file.display().to_string(), what: what.to_string() }
    }
}

/// Whether `given` names Chakra traces: a folder, one of them, or what their names begin with.
pub fn is_named(given: &Path) -> bool {
    given.is_dir() || given.extension().is_some_and(|end| end == "et") || trace_of(given, 0).is_file()
}

/// The file of `rank` of the traces that begin with `prefix`.
fn trace_of(prefix: &Path, rank: u32) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(format!(".{rank}.et"));
    name.into()
}

/// What the names of the traces begin with that `given` names.
///
/// # Errors
/// When there are none, or those of several runs.
pub fn prefix(given: &Path) -> Result<PathBuf, ChakraError> {
    if given.is_dir() {
        let names = std::fs::read_dir(given).map_err(|error| ChakraError::file(given, error))?;
        let prefixes = names.filter_map(|entry| split(&entry.ok()?.path()).map(|(prefix, _)| prefix));
        let prefixes: std::collections::BTreeSet<PathBuf> = prefixes.collect();
        let mut left = prefixes.iter();
        return match (left.next(), left.next()) {
            (None, _) => Err(ChakraError::NoTraces),
            (Some(one), None) => Ok(one.clone()),
            _ => Err(ChakraError::Several(prefixes.iter().map(|it| it.display().to_string()).collect())),
        };
    }
    match split(given) {
        Some((prefix, _)) => Ok(prefix),
        None if trace_of(given, 0).is_file() => Ok(given.to_owned()),
        None => Err(ChakraError::NoTraces),
    }
}

/// What a trace's name begins with, and its rank.
fn split(file: &Path) -> Option<(PathBuf, u32)> {
    let (prefix, rank) = file.file_name()?.to_str()?.strip_suffix(".et")?.rsplit_once('.')?;
    let rank = rank.parse::<u16>().ok().filter(|it| it.to_string() == rank)?;
    Some((file.with_file_name(prefix), rank.into()))
}

/// The files of all ranks.
fn files(prefix: &Path) -> Result<Vec<PathBuf>, ChakraError> {
    let folder = prefix.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let names = std::fs::read_dir(folder).map_err(|error| ChakraError::file(folder, error))?;
    let mut files = BTreeMap::new();
    for entry in names.flatten() {
        if let Some((its, rank)) = split(&prefix.with_file_name(entry.file_name()))
            && its == prefix
        {
            files.insert(rank, trace_of(prefix, rank));
        }
    }
    let Some(&last) = files.keys().next_back() else { return Err(ChakraError::NoTraces) };
    if let Some(rank) = (0..last).find(|rank| !files.contains_key(rank)) {
        let file = trace_of(prefix, rank).display().to_string();
        return Err(ChakraError::Missing { rank, file, last });
    }
    Ok(files.into_values().collect())
}

/// Makes a schedule of the traces whose names begin with `prefix`, and a scenario that finds it in the file `beside` it.
///
/// # Errors
/// Where a file is no trace, a node cannot be done, or ranks do not fit one another; with the file and the octet, or the rank and the node, and
/// what to do.
pub fn import(prefix: &Path, options: &Options, beside: &str) -> Result<Imported, ChakraError> {
    let files = files(prefix)?;
    let listed = match &options.groups {
        None => Groups::new(),
        Some(file) => {
            let text = std::fs::read_to_string(file).map_err(|error| ChakraError::file(file, error))?;
            groups::of_file(&text).map_err(|what| ChakraError::file(file, what))?
        }
    };
    let ranks = u32::try_from(files.len()).unwrap_or(u32::MAX);
    let mut traces = Vec::with_capacity(files.len());
    for (rank, file) in (0..).zip(&files) {
        let mut from = BufReader::new(File::open(file).map_err(|error| ChakraError::file(file, error))?);
        let is_json = from.fill_buf().is_ok_and(|begins| matches!(begins.first(), Some(b'{' | b'[')));
        let steps = Steps::read(from, rank, ranks, &options.machine);
        traces.push(steps.map_err(|error| match error {
            // A trace may begin so by chance, with the length of its first message.
            StepError::Damage(_) if is_json => {
                ChakraError::file(file, "this is JSON; make a trace of it with Chakra's converter")
            }
            error => ChakraError::file(file, error),
        })?);
    }
    let joint = Joint::new(&traces, &listed)?;
    let name = prefix.file_name().unwrap_or_default().to_string_lossy().replace(char::is_control, " ");
    let occurring = joint::operations(&traces);
    let text = write::write(&head(&name, ranks), &traces, &joint).ok_or(ChakraError::TooLong)?;
    // What cannot be done is said now.
    let schedule = Schedule::read(text.as_bytes())?;
    can_be_done(schedule)?;
    let notes = notes(&traces, &occurring);
    let scenario = scenario(&name, ranks, !occurring.is_empty(), &notes, Path::new(beside));
    Ok(Imported { schedule: text, scenario, notes })
}

/// Whether the collectives can be done as a scenario does them that says nothing of it.
fn can_be_done(schedule: Schedule) -> Result<(), WayError> {
    let hosts = (0u16..).map(HostId).take(schedule.ranks.len()).collect();
    let mut goal =
        Goal::new(Arc::new(schedule), hosts, false, Common::default()).expect("each rank has a host");
    goal.set_how(&How::default())
}

/// What stands before the schedule.
fn head(name: &str, ranks: u32) -> String {
    format!(
        "// From the Chakra traces {name}.0.et to {name}.{}.et. The unit of `calc` is a nanosecond.\n\
         // CPU 0 computes, CPU 1 is the host's processor, CPU 2 has messages, CPU 3 copies, and CPU 4 what takes no time.\n",
        ranks - 1
    )
}

fn notes(traces: &[Steps], operations: &[Operation]) -> Vec<String> {
    let mut notes = Vec::new();
    for operation in operations.iter().filter(|operation| operation.has_root()) {
        let (name, way) = (
            operation.name().to_uppercase(),
            match operation {
                Operation::Reduce | Operation::Gather => "to",
                _ => "from",
            },
        );
        notes.push(format!(
            "{name}: {way} the first rank of its process group, as traces do not say {way} which; write `root` behind it where it is another"
        ));
    }
    let calculations = traces.iter().flat_map(|trace| &trace.steps).filter_map(|step| match step.does {
        Does::Calc { nanos, .. } => Some(nanos),
        _ => None,
    });
    let (all, none) =
        calculations.fold((0u64, 0u64), |(all, none), nanos| (all + 1, none + u64::from(nanos == 0)));
    if none > 0 {
        notes.push(format!(
            "{none} of {all} nodes that compute or copy take no time: they say neither how long nor how many operations"
        ));
    }
    notes
}

/// A network for a schedule that says of none, with the name that the schedule has, and with the keys of `collectives` where it has some.
fn scenario(name: &str, ranks: u32, collectives: bool, notes: &[String], beside: &Path) -> String {
    let mut text = format!(
        "# From the Chakra traces {name}.0.et to {name}.{}.et. They say nothing of a network: put yours in the place of this one.\n",
        ranks - 1
    );
    for note in notes {
        let _ = writeln!(text, "# {note}");
    }
    let plain = |name: &str| name.replace(['"', '\\', '/'], "-").replace(char::is_control, " ");
    let _ = writeln!(
        text,
        "name = \"{}\"\n\n\
         [topology]\nkind = \"star\"\nhosts = {}\nrate = \"400Gb/s\"\ndelay = \"500ns\"\n\n\
         [switch]\nbuffer = \"{}MiB\"\n\
         ecn = {{ kmin = \"1600KB\", kmax = \"6400KB\", pmax = 0.2 }}   # HPCC's run.py for 400 Gb/s, as the preset\n\n\
         [nic]\nmtu = 4096\n\n\
         [transport]\ncontrol = {{ law = \"dcqcn\", preset = \"hpcc\" }}\n\n\
         [[traffic]]\nkind = \"goal\"\nfile = \"{}\"",
        plain(&beside.file_stem().unwrap_or_default().to_string_lossy()),
        ranks.max(2),
        // A quarter for each port: three times what PFC keeps free for it.
        ranks.div_ceil(4).max(16),
        beside.display().to_string().replace('\\', "\\\\").replace('"', "\\\"")
    );
    if collectives {
        text.push_str(
            "# How collectives are done, unless by rings, and all-to-alls by all at once:\n\
             # algorithm = \"auto\"   # by size, or such as { all-reduce = \"tree\" }\n\
             # ranks_per_server = 8\n\
             # channels = 8\n\
             # chunks = 4\n",
        );
    }
    text
}

#[cfg(test)]
mod tests;
