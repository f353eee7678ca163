//! `roci tune`: searches settings, and then shows what the best are worth on seeds that the search has not seen.

use super::{assignments, default_folder, seeds};
use crate::Failure;
use crate::args::{Common, Tune};
use crate::execute::{Executed, PART, Request, execute_all, prepare, print, threads};
use crate::plan::memory;
use crate::progress::{Watcher, listen};
use crate::table::tuned::{self, AS_IT_IS, Asked};
use roci_lab::batch::{self, Group, Run, Task, in_one_line};
use roci_lab::output::{self, flows::quoted};
use roci_lab::results::Results;
use roci_lab::run::RunError;
use roci_lab::scenario::overrides;
use roci_lab::scenario::{Scenario, ScenarioError};
use roci_lab::tune::{Aim, Candidate, FINALISTS, Found, KNOBS, Knob, Limit, Round, Score, Tried, search};
use roci_lab::world::SimulatedWorld;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is searched for.
struct Search<'a> {
    /// The scenario as it is.
    plain: Arc<Scenario>,
    aim: Aim,
    limits: Vec<Limit>,
    /// The seed that the search begins with; the next runs of a configuration have those behind it.
    first_seed: u64,
    common: &'a Common,
    /// Whether something has run.
    has_begun: bool,
    /// Why it ended before its time.
    ended: Option<Failure>,
}

/// What a run came to, and which of the metrics that are asked for it yields.
type Answer = Result<(Score, Vec<bool>), RunError>;

/// Seeds of the last comparison where nobody names any.
const SEEDS: &str = "1..5";

pub(crate) fn tune(arguments: &Tune) -> Result<(), Failure> {
    let common = &arguments.common;
    let knobs: Vec<Knob> = arguments.vary.iter().map(|text| Knob::read(text)).collect::<Result<_, _>>()?;
    if knobs.len() > KNOBS {
        return Err(Failure::Request(format!(
            "{} keys are too many to vary at once; at most {KNOBS} can be",
            knobs.len()
        )));
    }
    let seeds = match seeds(common)? {
        none if none.is_empty() => overrides::seeds(SEEDS)?,
        some => some,
    };
    let set = assignments(&arguments.set)?;
    check_keys(&knobs)?;
    let plain = Scenario::load(&arguments.scenario, &set)
        .map(Arc::new)
        .map_err(|error| Failure::Request(error.to_string()))?;
    let mut wanted = Search {
        plain: Arc::clone(&plain),
        aim: Aim::read(&arguments.aim).map_err(|error| Failure::Request(format!("--aim {error}")))?,
        limits: arguments.keep.iter().map(|text| Limit::read(text)).collect::<Result<_, _>>()?,
        first_seed: first_seed(&seeds),
        common,
        has_begun: false,
        ended: None,
    };
    wanted.check(&plain)?;
    let folder = common.out.clone().unwrap_or_else(|| default_folder(&format!("{}-tune", plain.name)));
    // Whoever waits an hour should not learn then that it cannot be written.
    drop(prepare(&folder)?);
    let draws = usize::try_from(arguments.draws).unwrap_or(usize::MAX);
    // Of the search scores alone are kept, of the last comparison all.
    if let Some(note) = memory(std::iter::once(&planned(&plain, &seeds, draws))).filter(|_| !common.quiet) {
        let _ = writeln!(std::io::stderr(), "{note}");
    }
    listen()?;
    let tried = wanted.search(&knobs, draws, &folder)?;
    wanted.compare(&knobs, &tried, &seeds, folder)
}

impl Search<'_> {
    /// Searches, and gives what was tried, the best first. Where it is stopped, what was tried by then is in `folder`.
    fn search(&mut self, knobs: &[Knob], draws: usize, folder: &Path) -> Result<Vec<Candidate>, Failure> {
        let (plain, common) = (Arc::clone(&self.plain), self.common);
        let mut refusals = BTreeMap::new();
        let accept = |values: &[(String, String)]| {
            with_values(&plain, values).map(drop).inspect_err(|error| {
                let is_listed = |(key, value): &&(String, String)| {
                    knobs.iter().any(|knob| knob.key == *key && knob.words().contains(value))
                };
                for value in values.iter().filter(is_listed) {
                    refusals.entry(value.clone()).or_insert_with(|| error.clone());
                }
            })
        };
        let found = search(knobs, draws, accept, |asked| self.judge(asked), |round| tell(round, common));
        let Found { tried, stopped } = found.map_err(|error| refused(&error))?;
        if stopped {
            if !tried.is_empty() {
                self.write_part(folder, &tried)?;
            }
            let ended = self.ended.take();
            return Err(ended.unwrap_or_else(|| Failure::Run("interrupted while it searched".to_owned())));
        }
        if !common.quiet {
            for note in never_tried(knobs, &tried, &refusals) {
                let _ = writeln!(std::io::stderr(), "{note}");
            }
        }
        Ok(tried)
    }

    /// Runs the best that were `tried` beside the scenario as it is, with seeds that the search has not seen, and says which it is.
    fn compare(
        &self,
        knobs: &[Knob],
        tried: &[Candidate],
        seeds: &[u64],
        folder: PathBuf,
    ) -> Result<(), Failure> {
        let common = self.common;
        let finalists = &tried[..tried.len().min(FINALISTS)];
        let broke = finalists.iter().filter(|candidate| !candidate.score().keeps());
        let asked = Asked {
            configurations: finalists.len() + 1,
            seeds: seeds.len(),
            broke: broke.map(|candidate| in_one_line(&candidate.values)).collect(),
        };
        let mut group = last(&self.plain, knobs, finalists, seeds)
            .map_err(|error| Failure::Request(error.to_string()))?;
        let of_search = Tried { aim: self.aim.clone(), knobs: knobs.to_vec(), candidates: tried.to_vec() };
        group.tried = Some(of_search);
        let marks = |group: &Group, results: &[Results]| {
            Some(tuned::standings(&self.aim, &self.limits, group, results, &asked))
        };
        let requests = vec![Request { group, folder: folder.clone() }];
        let Executed { done, failed } = execute_all(requests, common, &marks)?;
        let written = |error: output::OutputError| Failure::Run(error.to_string());
        if done.is_empty() {
            self.write_part(&folder, tried)?;
        }
        for (Request { group, folder }, results) in &done {
            output::write(&folder.join(TRIED), |file| self.write_csv(file, tried)).map_err(written)?;
            let verdict = tuned::verdict(&self.aim, &self.limits, group, results, &asked);
            let tried = match tried.len() {
                1 => "The one that was tried is".to_owned(),
                all => format!("All {all} that were tried are"),
            };
            let told = format!("{verdict}{tried} in {}.\n", folder.join(TRIED).display());
            match (common.quiet, common.json) {
                (true, _) => {}
                (false, false) => print(&told),
                // What is on stdout is JSON and nothing else.
                (false, true) => _ = write!(std::io::stderr(), "{told}"),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Refuses names of tables that the scenario has not.
    fn check(&self, plain: &Scenario) -> Result<(), Failure> {
        for name in self.named().filter_map(|aim| aim.traffic.as_ref()) {
            if !plain.traffic_names.contains(name) {
                return Err(Failure::Request(format!(
                    "there is no `[[traffic]]` table `{name}`; those that exist are {}",
                    plain.traffic_names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
                )));
            }
        }
        Ok(())
    }

    /// Runs candidates; `None` where the user ends it, or a run fails for a reason that is none of the configuration.
    fn judge(&mut self, asked: &[(&Candidate, usize)]) -> Option<Vec<Score>> {
        let task = |index: usize| {
            let (candidate, seed) = asked[index];
            let scenario = with_values(&self.plain, &candidate.values).map_err(RunError::Scenario)?;
            // Nothing that is searched for is found by it, and only the last comparison shows it.
            let scenario = scenario.without_replays();
            let seed = self.first_seed + seed as u64;
            let run = Run { label: String::new(), values: Vec::new(), scenario: Arc::new(scenario), seed };
            Ok(Task { run, folder: None })
        };
        let keep = |answer: Result<Results, RunError>| {
            let results = answer?;
            let yields = self.named().map(|aim| aim.of(&results).is_some()).collect();
            Ok((Score::of(&results, &self.aim, &self.limits), yields))
        };
        let watcher = Watcher::new(self.common.quiet, vec![self.plain.name.clone(); asked.len()], &[]);
        let threads = threads(self.common);
        let answers = batch::run_each(&SimulatedWorld, asked.len(), threads, &watcher, task, keep);
        watcher.clear();
        if !std::mem::replace(&mut self.has_begun, true)
            && let Some(aim) = self.without_value(&answers)
        {
            self.ended = Some(Failure::Run(format!(
                "none of the first {} yields `{aim}`: nothing that it is of was completed, or its flows are not alike; name another metric",
                match answers.len() {
                    1 => "run".to_owned(),
                    runs => format!("{runs} runs"),
                }
            )));
            return None;
        }
        let mut scores = Vec::with_capacity(answers.len());
        for answer in answers {
            scores.push(match answer {
                Ok((score, _)) => score,
                Err(RunError::Stalled { .. } | RunError::Impossible(_)) => Score::NOTHING,
                Err(RunError::Interrupted) => return None,
                Err(error) => {
                    self.ended = Some(Failure::Run(error.to_string()));
                    return None;
                }
            });
        }
        Some(scores)
    }

    /// The metrics that are asked for.
    fn named(&self) -> impl Iterator<Item = &Aim> {
        [&self.aim].into_iter().chain(self.limits.iter().map(Limit::metric))
    }

    /// What is asked for and came of no run, though all were done.
    fn without_value(&self, answers: &[Answer]) -> Option<&Aim> {
        let done: Vec<_> = answers.iter().map(Result::as_ref).collect::<Result<_, _>>().ok()?;
        let mut named = (0..).zip(self.named());
        named.find(|(place, _)| done.iter().all(|(_, yields)| !yields[*place])).map(|(_, aim)| aim)
    }

    /// Writes what was `tried` beside `folder` where nothing else comes of a search that took long.
    fn write_part(&self, folder: &Path, tried: &[Candidate]) -> Result<(), Failure> {
        let written = |error: output::OutputError| Failure::Run(error.to_string());
        let part = prepare(folder)?.beside(PART);
        output::write(&part.draft().join(TRIED), |file| self.write_csv(file, tried)).map_err(written)?;
        if !self.common.quiet {
            let place = part.target().join(TRIED);
            let _ =
                writeln!(std::io::stderr(), "all {} that were tried are in {}", tried.len(), place.display());
        }
        part.publish().map_err(written)
    }

    /// A line for each configuration that was tried, the best first: its values, on how many seeds it ran, by what part it broke limits,
    /// and its metric.
    fn write_csv(&self, out: &mut dyn std::io::Write, tried: &[Candidate]) -> std::io::Result<()> {
        for (key, _) in tried.first().map_or(&[][..], |first| &first.values) {
            write!(out, "{},", quoted(key))?;
        }
        writeln!(out, "seeds,over_limits,{}", quoted(&self.aim.to_string()))?;
        for candidate in tried {
            for (_, value) in &candidate.values {
                write!(out, "{},", quoted(value))?;
            }
            let score = candidate.score();
            write!(out, "{},{},", candidate.scores.len(), score.over)?;
            match score.yields() {
                false => writeln!(out)?,
                true => writeln!(out, "{}", if self.aim.is_to_grow() { -score.value } else { score.value })?,
            }
        }
        Ok(())
    }
}

/// The first seed of the search: it and those that follow are none of `seeds`, of which the greatest is far below what 64 bits hold.
fn first_seed(seeds: &[u64]) -> u64 {
    seeds.iter().max().map_or(1, |most| most + 1)
}

/// The scenario `plain` with `values` of some keys, from its text as it was read then.
fn with_values(plain: &Scenario, values: &[(String, String)]) -> Result<Scenario, ScenarioError> {
    let overrides = [plain.source.overrides(), values].concat();
    Scenario::read(plain.source.with_overrides(&overrides))
}

/// Refuses keys that no search can be about.
fn check_keys(knobs: &[Knob]) -> Result<(), Failure> {
    for (place, Knob { key, .. }) in knobs.iter().enumerate() {
        if key == "seed" {
            let message = "--vary seed: the search takes seeds of its own; --seed and --seeds name those of the comparison";
            return Err(Failure::Request(message.to_owned()));
        }
        if knobs[..place].iter().any(|other| other.key == *key) {
            return Err(Failure::Request(format!("--vary {key}: this key stands there twice; name it once")));
        }
    }
    Ok(())
}

/// The last comparison as far as it is known before the search: as many runs, of the scenario as it is.
fn planned(plain: &Arc<Scenario>, seeds: &[u64], draws: usize) -> Group {
    let run = |seed: &u64| Run {
        label: AS_IT_IS.to_owned(),
        values: Vec::new(),
        scenario: Arc::clone(plain),
        seed: *seed,
    };
    let runs = (0..=draws.min(FINALISTS)).flat_map(|_| seeds.iter().map(run)).collect();
    Group { title: plain.name.clone(), runs, left_out: Vec::new(), tried: None }
}

/// What is said where no configuration that was drawn can be.
fn refused(error: &ScenarioError) -> Failure {
    Failure::Request(format!(
        "{error}\n  every configuration that was drawn was refused, the last for this; vary other keys, or in other ranges"
    ))
}

/// A line for each value of a list that was drawn and went with nothing that it was drawn with, and why.
fn never_tried(
    knobs: &[Knob],
    tried: &[Candidate],
    refusals: &BTreeMap<(String, String), ScenarioError>,
) -> Vec<String> {
    let mut notes = Vec::new();
    for knob in knobs {
        let is_tried = |word: &String| {
            tried.iter().any(|candidate| {
                candidate.values.iter().any(|(key, value)| *key == knob.key && value == word)
            })
        };
        for word in knob.words().iter().filter(|word| !is_tried(word)) {
            if let Some(error) = refusals.get(&(knob.key.clone(), word.clone())) {
                notes.push(format!(
                    "{}={word} was not tried, as it went with no other value: {error}",
                    knob.key
                ));
            }
        }
    }
    notes
}

/// A line on each round, for whoever waits.
fn tell(round: &Round<'_>, common: &Common) {
    if common.quiet {
        return;
    }
    let keeps = if round.best.score().keeps() { "" } else { ", which breaks limits" };
    let _ = writeln!(
        std::io::stderr(),
        "{} {} on {} {}: the best has {}{keeps}",
        round.configurations,
        if round.configurations == 1 { "configuration" } else { "configurations" },
        round.seeds,
        if round.seeds == 1 { "seed" } else { "seeds" },
        in_one_line(&round.best.values)
    );
}

/// What is compared last: the scenario as it is, and those that are left.
fn last(
    plain: &Arc<Scenario>,
    knobs: &[Knob],
    finalists: &[Candidate],
    seeds: &[u64],
) -> Result<Group, ScenarioError> {
    let as_it_is = knobs.iter().map(|knob| (knob.key.clone(), AS_IT_IS.to_owned())).collect();
    let mut configurations = vec![(AS_IT_IS.to_owned(), as_it_is, Arc::clone(plain))];
    for Candidate { values, .. } in finalists {
        configurations.push((in_one_line(values), values.clone(), Arc::new(with_values(plain, values)?)));
    }
    let runs = configurations.into_iter().flat_map(|(label, values, scenario)| {
        let run = move |&seed: &u64| Run {
            label: label.clone(),
            values: values.clone(),
            scenario: Arc::clone(&scenario),
            seed,
        };
        seeds.iter().map(run)
    });
    Ok(Group {
        title: format!("{}-tune", plain.name),
        runs: runs.collect(),
        left_out: Vec::new(),
        tried: None,
    })
}

/// The file with all that were tried.
const TRIED: &str = "tried.csv";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_asked_for_all_that_the_last_comparison_will_keep() {
        let text = "[topology]\nkind = \"star\"\nhosts = 4\nrate = \"10Gb/s\"\ndelay = \"1us\"\n\
                    [[traffic]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
        let plain = Arc::new(Scenario::parse(text, "here.toml", &[]).unwrap());
        let flows = |draws: usize| batch::kept(&planned(&plain, &[1, 2, 3], draws).runs).flows;
        assert_eq!(
            [flows(32), flows(2)],
            [4 * 3 * (4 + 1), 4 * 3 * (2 + 1)],
            "the finalists, and the scenario as it is"
        );
    }

    #[test]
    fn the_search_begins_behind_all_seeds_of_the_comparison_however_great() {
        for list in ["1..5", "7,3", "5,4611686018427387907", "9223372036854775807"] {
            let seeds = overrides::seeds(list).unwrap();
            let first = first_seed(&seeds);
            assert!(seeds.iter().all(|seed| *seed < first) && first.checked_add(1 << 32).is_some(), "{list}");
        }
    }
}
