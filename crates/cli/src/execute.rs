//! Running groups of runs, writing their results, printing what came out.

use crate::Failure;
use crate::args::Common;
use crate::format::time;
use crate::plan::{memory, plan};
use crate::progress::{Watcher, listen};
use crate::table;
use roci_lab::batch::{self, Alike, Group, Run};
use roci_lab::output::{Folder, OutputError, pcap, summary};
use roci_lab::program::Warned;
use roci_lab::results::Results;
use roci_lab::run::RunError;
use roci_lab::world::SimulatedWorld;
use std::collections::BTreeSet;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A group of runs, and the folder for its results.
pub(crate) struct Request {
    pub(crate) group: Group,
    pub(crate) folder: PathBuf,
}

/// Runs all groups at once, and prints what came of them.
pub(crate) fn execute(requests: Vec<Request>, common: &Common) -> Result<(), Failure> {
    execute_all(requests, common, &|_, _| None)?.failed.map_or(Ok(()), Err)
}

/// What tells the runs of a group apart in JSON besides their labels, if anything does.
type Marks<'a> = &'a dyn Fn(&Group, &[Results]) -> Option<Vec<summary::Standing>>;

/// What came of one run.
type Answer = Result<Results, RunError>;

/// What came of several groups.
pub(crate) struct Executed {
    /// Those that have results.
    pub(crate) done: Vec<(Request, Vec<Results>)>,
    /// What failed.
    pub(crate) failed: Option<Failure>,
}

/// Runs all groups at once, and prints what came of them. The results of a group appear when all of its runs are done, also where flows failed, a deadlock
/// ended a run, or some runs stalled and have no results. Where the user interrupts a group of several runs, those that were
/// done by then have their results [beside](PART) its folder. `marks` are those of each group.
pub(crate) fn execute_all(
    requests: Vec<Request>,
    common: &Common,
    marks: Marks<'_>,
) -> Result<Executed, Failure> {
    // Before anything runs: whoever waits an hour should not learn then that the folder cannot be written.
    let folders: Vec<Folder> =
        requests.iter().map(|request| prepare(&request.folder)).collect::<Result<_, _>>()?;
    if !common.quiet {
        tell_before(&requests);
    }
    listen()?;
    let (answers, several) = run_all(&requests, &folders, common);
    let mut failures = Vec::new();
    let mut done = Vec::new();
    let mut nothing = Vec::new();
    for ((request, folder), answers) in requests.into_iter().zip(folders).zip(answers) {
        let answers = answers.into_iter().map(|answer| answer.map_err(|error| as_published(error, &folder)));
        let came = match all_done(&request.group, answers.collect()) {
            Ok(came) => came,
            Err(failure) => {
                failures.push(failure);
                continue;
            }
        };
        if came.results.is_empty() {
            failures.extend(came.failed);
            nothing.push(request.group.title);
            continue;
        }
        match finish(request, folder, came, &mut failures) {
            Ok(finished) => done.push(finished),
            // What others have come to is not lost with it.
            Err(failure) => failures.push(failure),
        }
    }
    if !nothing.is_empty() {
        failures.push(Failure::Run(match done.is_empty() {
            true => RunError::Interrupted.to_string(),
            false => format!("interrupted; nothing was written of {}", nothing.join(", ")),
        }));
    }
    if !common.quiet {
        let notes = done.iter().filter_map(|(request, results)| coarser(&request.group, results));
        for note in notes {
            let _ = writeln!(std::io::stderr(), "{note}");
        }
    }
    report(&done, several, common, marks)?;
    failures.extend(done.iter().filter_map(|(request, results)| flows_failed(&request.group, results)));
    Ok(Executed { done, failed: failures.into_iter().reduce(worse) })
}

/// `error` of a file that a run could not write, as one of where that was to appear: nobody knows of the draft.
fn as_published(error: RunError, folder: &Folder) -> RunError {
    let [draft, target] = [folder.draft(), folder.target()].map(|path| path.display().to_string());
    match error {
        RunError::Output(why) => RunError::Output(why.replace(&draft, &target)),
        error => error,
    }
}

/// Tells what a user should know of the runs before they begin.
fn tell_before(requests: &[Request]) {
    let left_out = requests.iter().flat_map(left_out);
    let mut warned = Warned::default();
    let of_memory = memory(requests.iter().map(|request| &request.group));
    let notes = left_out.chain(requests.iter().flat_map(|request| notes(&request.group, &mut warned)));
    for note in notes.chain(of_memory) {
        let _ = writeln!(std::io::stderr(), "{note}");
    }
}

/// Runs all groups at once, and gives what came of each run, group by group, and whether there were several runs.
fn run_all(requests: &[Request], folders: &[Folder], common: &Common) -> (Vec<Vec<Answer>>, bool) {
    let tasks: Vec<_> = requests
        .iter()
        .zip(folders)
        .flat_map(|(request, folder)| batch::tasks(&request.group, Some(folder)))
        .collect();
    let several = tasks.len() > 1;
    // For whoever waits for it; a single run is asked for by name.
    let watched = several && !common.quiet && std::io::stderr().is_terminal();
    let asked = if watched { batch::asked(tasks.iter().map(|task| &task.run)) } else { Vec::new() };
    let mut rest = &asked[..];
    for group in requests.iter().map(|request| &request.group).filter(|_| watched) {
        let (own, others) = rest.split_at(group.runs.len());
        rest = others;
        if let Some(plan) = plan(group, own) {
            let _ = writeln!(std::io::stderr(), "{plan}");
        }
    }
    let names = tasks.iter().map(|task| task.run.scenario.name.clone()).collect();
    let watcher = Watcher::new(common.quiet, names, &asked);
    let mut answers = batch::run_all(&SimulatedWorld, &tasks, threads(common), &watcher).into_iter();
    watcher.clear();
    let of_groups =
        requests.iter().map(|request| answers.by_ref().take(request.group.runs.len()).collect()).collect();
    (of_groups, several)
}

/// Writes what came of a group: into its folder, [beside](PART) it where the user interrupted it, or [beside](KEPT) it where something else has taken its
/// place. Where the files that show its runs side by side cannot be written, those of the runs are there without them.
fn finish(
    mut request: Request,
    mut folder: Folder,
    came: Done,
    failures: &mut Vec<Failure>,
) -> Result<(Request, Vec<Results>), Failure> {
    let written = |error: OutputError| Failure::Run(error.to_string());
    let Done { results, failed, without, interrupted } = came;
    failures.extend(failed);
    let all = request.group.runs.len();
    request.group.leave_out(&without, folder.draft()).map_err(written)?;
    if interrupted {
        folder = folder.beside(PART);
        request.folder = folder.target().into();
        let Request { group, folder } = &request;
        failures.push(Failure::Run(format!(
            "{}: interrupted; {} of {all} runs were done, and their results are in {}",
            group.title,
            results.len(),
            folder.display()
        )));
    }
    let unwritten = request.group.write_comparison(folder.draft(), &results);
    let unwritten: Vec<_> =
        unwritten.into_iter().map(|error| folder.as_published(error).to_string()).collect();
    let meant = folder.target().to_owned();
    let (place, taken) = folder.publish_or_beside(KEPT).map_err(written)?;
    let why: Vec<String> = unwritten.into_iter().chain(taken.map(|error| error.to_string())).collect();
    if !why.is_empty() {
        failures.push(Failure::Run(format!(
            "{}: {}; the results of {} are in {}",
            request.group.title,
            why.join("; "),
            match (results.len(), all) {
                (1, 1) => "the run".to_owned(),
                (runs, all) if runs == all => format!("all {all} runs"),
                (runs, all) => format!("{runs} of {all} runs"),
            },
            place.display()
        )));
    }
    if place != meant {
        request.folder = place;
    }
    Ok((request, results))
}

/// How many runs go on at once.
pub(crate) fn threads(common: &Common) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    common.jobs.and_then(|jobs| usize::try_from(jobs).ok()).unwrap_or_else(cores)
}

/// What a user should know of the scenarios of `group` and of the programs in them before they run: what holds for several of them
/// is said once, with the configuration where the first does not have it.
fn notes(group: &Group, warned: &mut Warned) -> Vec<String> {
    let mut said: BTreeSet<String> = BTreeSet::new();
    let mut notes = Vec::new();
    let first = group.runs.first().map(|run| run.label.as_str());
    // Those of a configuration's other seeds are the same.
    for alike in group.runs.chunk_by(|one, next| Arc::ptr_eq(&one.scenario, &next.scenario)) {
        let Some(run) = alike.first() else { continue };
        for note in run.scenario.notes().map(str::to_owned).chain(warned.of(&run.scenario)) {
            if !said.insert(note.clone()) {
                continue;
            }
            let name = &run.scenario.name;
            notes.push(match Some(run.label.as_str()) == first || run.label == *name {
                true => format!("{name}: {note}"),
                false => format!("{name}, {}: {note}", run.label),
            });
        }
    }
    notes
}

/// A line for each reason for which combinations of a sweep are not run, with the first of them, and where all are told.
fn left_out(Request { group, folder }: &Request) -> Vec<String> {
    let title = &group.title;
    let (kinds, left_out) = (group.left_out_alike(), group.left_out.len());
    let all = left_out + group.configurations().len();
    let line = |Alike { first, count }: &Alike<'_>| match count {
        1 => format!("{title}: left out {}: {}", first.label(), first.error.message),
        _ => format!(
            "{title}: left out {count} of {all} combinations, the first of them {}: {}",
            first.label(),
            first.error.message
        ),
    };
    let shown = &kinds[..kinds.len().min(NAMED)];
    let rest = (left_out > shown.len()).then(|| {
        format!("{title}: all {left_out} that are left out are in {}", folder.join("left-out.csv").display())
    });
    shown.iter().map(line).chain(rest).collect()
}

/// The draft of a folder of results.
pub(crate) fn prepare(folder: &Path) -> Result<Folder, Failure> {
    let remedy = "  remedy: name a folder that can be written, with --out";
    Folder::prepare(folder).map_err(|error| match error {
        OutputError::Write { .. } => Failure::Request(format!("{error}\n{remedy}")),
        OutputError::Foreign { .. } | OutputError::Nameless { .. } => Failure::Request(error.to_string()),
    })
}

/// What stands behind the name of a folder that has the results of some runs of a group only, since the user ended it: so
/// earlier results of all of them stay.
pub(crate) const PART: &str = "-interrupted";

/// What stands behind the name of a folder of results whose place something else has taken while they came about.
const KEPT: &str = "-kept";

/// What came of a group.
struct Done {
    /// Of the runs that have results: of none, where the user ended it before.
    results: Vec<Results>,
    /// What is to be said of runs that failed.
    failed: Option<Failure>,
    /// Which runs have no results, in ascending order.
    without: Vec<usize>,
    /// Whether the user ended it.
    interrupted: bool,
}

/// The results of a group, or what its failed runs say. Of several runs some may fail or be interrupted, and the others have
/// their results all the same.
fn all_done(group: &Group, answers: Vec<Answer>) -> Result<Done, Failure> {
    let mut results = Vec::with_capacity(answers.len());
    let mut errors = Vec::new();
    let mut without = Vec::new();
    for (index, answer) in answers.into_iter().enumerate() {
        match answer {
            Ok(result) => results.push(result),
            Err(error) => {
                without.push(index);
                if error != RunError::Interrupted {
                    errors.push((index, error));
                }
            }
        }
    }
    let interrupted = without.len() > errors.len();
    let Some((first, error)) = errors.first() else {
        return Ok(Done { results, failed: None, without, interrupted });
    };
    if let (RunError::Scenario(error), true) = (error, results.is_empty()) {
        // Its message begins with its place.
        return Err(Failure::Request(error.to_string()));
    }
    let first = &group.runs[*first];
    let name = &first.scenario.name;
    let message = match group.runs.len() {
        1 => format!("{name}, seed {}: {error}", first.seed),
        all => format!(
            "{name}, seed {}: {} of {all} runs failed, the first: {}: {error}{}",
            first.seed,
            errors.len(),
            group.full_label(first),
            others(
                group,
                errors.iter().skip(1).map(|(index, error)| (&group.runs[*index], error.to_string()))
            )
        ),
    };
    let failure = match error {
        RunError::Impossible(_) | RunError::Scenario(_) => Failure::Request(message),
        _ => Failure::Run(message),
    };
    // What took hours is not thrown away for what another run met.
    if results.is_empty() {
        Err(failure)
    } else {
        Ok(Done { results, failed: Some(failure), without, interrupted })
    }
}

/// As many runs that failed, or reasons for which some were left out, are named; of more, how many they are.
const NAMED: usize = 24;

/// A line for each of the `failed` runs of `group` behind the first, with the values that tell it from the others.
fn others<'a>(group: &Group, failed: impl Iterator<Item = (&'a Run, String)>) -> String {
    let failed: Vec<_> = failed.collect();
    let line = |(run, said): &(&Run, String)| {
        // Where ports wait for each other, or which remedy there is, the first one told.
        let said = said.lines().next().unwrap_or_default();
        format!("\n  {}: {said}", group.full_label(run))
    };
    let more = match failed.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("\n  and {more} more"),
    };
    failed.iter().take(NAMED).map(line).chain([more]).collect()
}

/// What is to be said where samples of `group` lie farther apart than was asked for.
fn coarser(group: &Group, results: &[Results]) -> Option<String> {
    first_of(group, results, |run, results| {
        let (asked, taken) = (run.scenario.measure.sample?, results.series.interval()?);
        (taken > asked).then(|| {
            let taken = time(taken.as_secs_f64());
            format!(
                "samples are {taken} apart and not {asked}: the interval doubles each time that half a million readings have \
                 gathered"
            )
        })
    })
}

/// What `of` says of the first run that it says something of, and of how many others too.
fn first_of(
    group: &Group,
    results: &[Results],
    of: impl Fn(&Run, &Results) -> Option<String>,
) -> Option<String> {
    let mut all = group.runs.iter().zip(results).filter_map(|(run, results)| Some((run, of(run, results)?)));
    let (run, said) = all.next()?;
    let name = match results.len() {
        1 => group.title.clone(),
        _ => format!("{}, {}", group.title, group.full_label(run)),
    };
    Some(match all.count() {
        0 => format!("{name}: {said}"),
        more => format!("{name}: {said}; the like in {more} more runs"),
    })
}

/// What is to be said where flows of `group` ended in error completions, or runs in a deadlock. The results are there all
/// the same.
fn flows_failed(group: &Group, results: &[Results]) -> Option<Failure> {
    let mut runs =
        group.runs.iter().zip(results).filter_map(|(run, results)| Some((run, results.failure()?)));
    let (first, failure) = runs.next()?;
    let rest: Vec<_> = runs.collect();
    let failed = 1 + rest.len();
    let others = others(group, rest.into_iter());
    let deadlocks = results.iter().filter(|results| results.deadlock.is_some()).count();
    let title = &group.title;
    Some(Failure::Run(match (results.len(), deadlocks) {
        (1, _) => format!("{title}: {failure}"),
        (all, 0) => format!(
            "{title}: flows failed in {failed} of {all} runs, the first: {}: {failure}{others}",
            group.full_label(first)
        ),
        (all, deadlocks) => format!(
            "{title}: {failed} of {all} runs failed, {deadlocks} in a deadlock, the first: {}: {failure}{others}",
            group.full_label(first)
        ),
    }))
}

/// Both messages, with the exit code that says more about what to do: a wrong request.
fn worse(a: Failure, b: Failure) -> Failure {
    let (wrong, first, second) = match (a, b) {
        (Failure::Run(a), Failure::Run(b)) => (false, a, b),
        (Failure::Request(a) | Failure::Run(a), Failure::Request(b) | Failure::Run(b)) => (true, a, b),
    };
    let message = format!("{first}\n{second}");
    if wrong { Failure::Request(message) } else { Failure::Run(message) }
}

/// Prints what `done` came to; `several`: as JSON it is an array, even of one run where others stalled.
fn report(
    done: &[(Request, Vec<Results>)],
    several: bool,
    common: &Common,
    marks: Marks<'_>,
) -> Result<(), Failure> {
    if common.json {
        let mut all = Vec::new();
        for (Request { group, .. }, results) in done {
            let standings = marks(group, results).map(|marks| marks.into_iter().map(Some).collect());
            let standings: Vec<_> = standings.unwrap_or_else(|| vec![None; results.len()]);
            let labels = group.full_labels().into_iter().zip(standings);
            all.extend(labels.map(|(label, standing)| summary::Told { label, standing }).zip(results));
        }
        let mut text = Vec::new();
        for (place, (told, results)) in all.iter().enumerate() {
            text.extend_from_slice(match (several, place) {
                (false, _) => b"",
                (true, 0) => b"[\n",
                (true, _) => b",\n",
            });
            let written = match several {
                true => summary::write_told(&mut text, told, results),
                false => summary::write(&mut text, results),
            };
            written.map_err(|error| Failure::Run(error.to_string()))?;
        }
        text.extend_from_slice(if several { b"]\n" } else { b"" });
        print(&String::from_utf8_lossy(&text));
    } else if !common.quiet {
        for (request, results) in done {
            print(&table::group(&request.group, results));
            print(&format!("Results are in {}.\n", request.folder.display()));
            if let [run] = &request.group.runs[..]
                && !run.scenario.measure.pcap.is_empty()
            {
                let capture = request.folder.join(pcap::FILE);
                print(&format!("Its packets: {}\n", pcap::tshark(run.scenario.transport.layout, &capture)));
            }
        }
    }
    Ok(())
}

/// Why something could not be printed, other than that the pipe was closed.
static UNPRINTED: Mutex<Option<std::io::Error>> = Mutex::new(None);

/// Prints `text`. Whoever has closed the pipe wants no more of it; what else goes wrong, [`unprinted`] tells in the end.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush())
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        UNPRINTED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Why not all was printed that was to be, if so.
pub(crate) fn unprinted() -> Option<String> {
    let error = UNPRINTED.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    Some(format!("cannot write to the standard output: {error}"))
}
