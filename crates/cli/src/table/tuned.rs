//! What is said of settings that were found: the best of the last comparison, and whether it is more than chance.

use crate::format::{difference, estimate};
use roci_lab::batch::{Group, Metric, Run};
use roci_lab::figures::statistics::Estimate;
use roci_lab::output::summary::Standing;
use roci_lab::results::Results;
use roci_lab::scenario::overrides::seeds_in_words;
use roci_lab::tune::{Aim, Limit, Score};
use roci_units::Span;

/// What the scenario with its own values is called.
pub(crate) const AS_IT_IS: &str = "as it is";

/// One configuration of the last comparison.
struct Known<'a> {
    label: &'a str,
    /// The varied keys with its values.
    values: &'a [(String, String)],
    score: Score,
    /// What it came to with each seed.
    worth: Vec<(u64, Option<f64>)>,
}

impl Known<'_> {
    /// Over all seeds; `None` where a run does not yield it.
    fn estimate(&self) -> Option<Estimate> {
        let worth: Option<Vec<f64>> = self.worth.iter().map(|(_, worth)| *worth).collect();
        Estimate::of(&worth?)
    }

    /// How much more it is than `other`, seed by seed.
    fn more_than(&self, other: &Self) -> Option<Estimate> {
        let of_other = |seed: u64| other.worth.iter().find(|(its, _)| *its == seed)?.1;
        let more = self.worth.iter().filter_map(|&(seed, worth)| Some(worth? - of_other(seed)?));
        Estimate::of(&more.collect::<Vec<_>>())
    }
}

/// What was to be compared last, before some stalled or the user ended it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) configurations: usize,
    pub(crate) seeds: usize,
    /// The labels of those that broke limits with the seeds of the search.
    pub(crate) broke: Vec<String>,
}

/// The configurations of `group` that ran with all seeds, the best first: the others take no part, for these had to.
fn ranked<'a>(
    aim: &Aim,
    limits: &[Limit],
    group: &'a Group,
    results: &[Results],
    asked: &Asked,
) -> Vec<Known<'a>> {
    let known = |label: &'a str| {
        let runs = || group.runs.iter().zip(results).filter(move |(run, _)| run.label == label);
        let scores: Vec<Score> = runs().map(|(_, results)| Score::of(results, aim, limits)).collect();
        Known {
            label,
            values: runs().next().map_or(&[], |(run, _)| &run.values),
            score: Score::mean(&scores),
            worth: runs().map(|(run, results)| (run.seed, aim.of(results))).collect(),
        }
    };
    let mut all: Vec<Known<'_>> = group.configurations().into_iter().map(known).collect();
    // The others have stalled, or were not done when the user ended it.
    all.retain(|known| known.worth.len() == asked.seeds);
    all.sort_by(|a, b| a.score.order(&b.score));
    all
}

/// The best of them, where something is to be said: the scenario as it is alone is not the best of anything.
fn best<'a, 'b>(all: &'b [Known<'a>]) -> Option<&'b Known<'a>> {
    all.first().filter(|known| known.label != AS_IT_IS || all.len() > 1)
}

/// How the configuration of each run came out.
pub(crate) fn standings(
    aim: &Aim,
    limits: &[Limit],
    group: &Group,
    results: &[Results],
    asked: &Asked,
) -> Vec<Standing> {
    let all = ranked(aim, limits, group, results, asked);
    let best = best(&all).map(|known| known.label);
    let standing =
        |run: &Run| Standing { best: best == Some(run.label.as_str()), as_it_is: run.label == AS_IT_IS };
    group.runs.iter().map(standing).collect()
}

/// Which configuration of `group` is the best by `aim` within `limits`, and what it is worth beside the scenario as it is.
pub(crate) fn verdict(
    aim: &Aim,
    limits: &[Limit],
    group: &Group,
    results: &[Results],
    asked: &Asked,
) -> String {
    let all = ranked(aim, limits, group, results, asked);
    let missing = asked.configurations - all.len();
    let plain = all.iter().find(|known| known.label == AS_IT_IS);
    let Some(best) = best(&all) else {
        return format!(
            "\nNo verdict: of {} configurations {missing} did not run with all seeds.\n",
            asked.configurations
        );
    };
    let judged = judged(aim, limits, group, results, asked, (best, plain));
    match missing {
        0 => judged,
        _ => format!(
            "{judged}Not judged, as they did not run with all seeds: {missing} of {} configurations.\n",
            asked.configurations
        ),
    }
}

/// What is said of `best` beside `plain`, the scenario as it is, if that came to its end.
fn judged(
    aim: &Aim,
    limits: &[Limit],
    group: &Group,
    results: &[Results],
    asked: &Asked,
    (best, plain): (&Known<'_>, Option<&Known<'_>>),
) -> String {
    let mut told = winner(aim, limits, best, plain);
    if best.label == AS_IT_IS {
        return told;
    }
    let Some(plain) = plain else { return told };
    told.push_str(&gain(aim, group, results, best, plain));
    if best.score.keeps() && asked.broke.iter().any(|label| label == best.label) {
        told.push_str(
            "With seeds of the search it broke the limits: more seeds than these may tell of it.\n",
        );
    }
    told.push_str(&reservations(aim, group, results, best, plain));
    told
}

/// Which it is, how to set it, and what it is worth beside `plain`.
fn winner(aim: &Aim, limits: &[Limit], best: &Known<'_>, plain: Option<&Known<'_>>) -> String {
    let seeds: Vec<u64> = best.worth.iter().map(|(seed, _)| *seed).collect();
    let over = format!("over {}, which the search had not seen", seeds_in_words(&seeds));
    let limits: Vec<String> = limits.iter().map(|limit| format!("`{limit}`")).collect();
    let limits = limits.join(" and ");
    let within = if limits.is_empty() { String::new() } else { format!(" within {limits}") };
    let none_keeps = match limits.is_empty() {
        true => "None that was left ran without a failure".to_owned(),
        false => format!("None that was left keeps {limits} in every run"),
    };
    let shown = |known: &Known<'_>| {
        known.estimate().map_or_else(|| "nothing".to_owned(), |known| estimate(aim.metric, &known))
    };
    if best.label == AS_IT_IS {
        let worth = shown(best);
        return match best.score.keeps() {
            true => {
                format!("\nNothing better by {aim}{within} than the scenario as it is: {worth} {over}.\n")
            }
            false => format!("\n{none_keeps}, and the scenario as it is comes nearest: {worth} {over}.\n"),
        };
    }
    let set: Vec<String> = best
        .values
        .iter()
        .map(|(key, value)| format!("--set {}", shell(&format!("{key}={value}"))))
        .collect();
    let head = match best.score.keeps() {
        true => format!("The best by {aim}{within}"),
        false => format!("{none_keeps}; the nearest"),
    };
    let breaks = |plain: &Known<'_>| !plain.score.keeps() && !limits.is_empty();
    let broken = if plain.is_some_and(breaks) { ", which does not keep the limits" } else { "" };
    format!(
        "\n{head}: {}\n{} against {} as it is{broken}, {over}.\n",
        set.join(" "),
        shown(best),
        plain.map_or_else(|| "nothing".to_owned(), shown)
    )
}

/// Whether `known` has the flows of the scenario as it is, so that the two can be compared seed by seed.
fn has_same_flows(group: &Group, results: &[Results], known: &Known<'_>) -> bool {
    let pairs = group.differences(results);
    pairs.iter().any(|pair| pair.label == known.label && pair.against == AS_IT_IS)
}

/// What `best` is more than `plain`, seed by seed, and whether that is more than chance.
fn gain(aim: &Aim, group: &Group, results: &[Results], best: &Known<'_>, plain: &Known<'_>) -> String {
    match best.more_than(plain) {
        _ if best.worth.len() < 2 => {
            "One seed does not tell gain from chance: compare with --seeds 1..8.\n".to_owned()
        }
        Some(more) if has_same_flows(group, results, best) => {
            let verdict = match more.mean.abs() > more.half_width {
                true => "",
                false => ": these seeds do not tell the two apart",
            };
            format!("Seed by seed the difference is {}{verdict}.\n", difference(aim.metric, &more))
        }
        Some(_) => {
            "Its flows are not those of the scenario as it is, so this is no gain of a setting.\n".to_owned()
        }
        None => "Not every run of the two has a value: there is no difference seed by seed.\n".to_owned(),
    }
}

/// What the figure by which `best` was chosen does not say of it beside `plain`.
fn reservations(
    aim: &Aim,
    group: &Group,
    results: &[Results],
    best: &Known<'_>,
    plain: &Known<'_>,
) -> String {
    let mut told = String::new();
    let completed = |known: &Known<'_>| {
        let of = group.runs.iter().zip(results).filter(|(run, _)| run.label == known.label);
        Estimate::of(&of.filter_map(|(_, results)| Metric::Completed.of(results)).collect::<Vec<_>>())
    };
    if let (Some(own), Some(other)) = (completed(best), completed(plain))
        && own.mean < other.mean
    {
        let [own, other] = [own, other].map(|it| estimate(Metric::Completed, &it));
        told.push_str(&format!(
            "It completed fewer flows: {own} against {other}. A limit on `completed` rules such settings out.\n"
        ));
    }
    let incomplete = |label: &str| {
        let mut runs = group.runs.iter().zip(results).filter(|(run, _)| run.label == label);
        runs.any(|(_, results)| aim.leaves_out(results))
    };
    if [best, plain].into_iter().any(|known| incomplete(known.label)) {
        told.push_str(
            "Flows that did not complete count here for as long as the run went on, in the table not at all.\n",
        );
    }
    let is_slowdown = matches!(aim.metric, Metric::MeanSlowdown | Metric::P99Slowdown);
    let comparable = best.worth.len() < 2 || has_same_flows(group, results, best);
    if is_slowdown && comparable && ideals(group, results, best) != ideals(group, results, plain) {
        told.push_str("The ideal times that slowdowns are over are not the same in both: look at completion times too.\n");
    }
    told
}

/// The ideal times of the flows of one configuration.
fn ideals<'a>(group: &'a Group, results: &'a [Results], known: &Known<'_>) -> Vec<Option<Span>> {
    let runs = group.runs.iter().zip(results).filter(|(run, _)| run.label == known.label);
    runs.flat_map(|(_, results)| results.flows.iter().map(|flow| flow.ideal)).collect()
}

/// `word` as a shell takes it for one.
fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._=/%+-,:".contains(c);
    match word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_lab::results::SwitchResult;
    use roci_lab::scenario::Scenario;
    use std::sync::Arc;

    #[test]
    fn a_value_with_signs_of_the_shell_is_put_in_quotes() {
        assert_eq!(shell("switch.ecn.kmin=350KB"), "switch.ecn.kmin=350KB");
        assert_eq!(shell("transport.control={ law = \"dcqcn\" }"), "'transport.control={ law = \"dcqcn\" }'");
        assert_eq!(shell("a=b'c"), "'a=b'\\''c'");
    }

    /// What is said of configurations with so many drops by seed, of which there are least to be.
    fn said(configurations: &[(&str, &[(u64, u64)])]) -> String {
        let text = "topology = { kind = \"star\", hosts = 2, rate = \"10Gb/s\", delay = \"1us\" }\n\
                    [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n";
        let scenario = Arc::new(Scenario::parse(text, "here.toml", &[]).unwrap());
        let (mut runs, mut results) = (Vec::new(), Vec::new());
        for (label, of_seeds) in configurations {
            for &(seed, drops) in *of_seeds {
                let values = vec![("nic.mtu".to_owned(), (*label).to_owned())];
                runs.push(Run { label: (*label).to_owned(), values, scenario: Arc::clone(&scenario), seed });
                let switches = vec![SwitchResult { drops, ..SwitchResult::default() }];
                results.push(Results { switches, ..Results::default() });
            }
        }
        let group = Group { title: String::new(), runs, left_out: Vec::new(), tried: None };
        let asked =
            Asked { configurations: configurations.len().max(3), seeds: 2, broke: vec!["2048".to_owned()] };
        verdict(&Aim::read("drops").unwrap(), &[], &group, &results, &asked)
    }

    #[test]
    fn who_did_not_run_with_all_seeds_is_not_judged_and_alone_the_scenario_is_no_verdict() {
        let plain = (AS_IT_IS, &[(1, 9), (2, 9)][..]);
        let interrupted = said(&[plain, ("1024", &[(1, 0)])]);
        assert_eq!(interrupted, "\nNo verdict: of 3 configurations 2 did not run with all seeds.\n");
        let stalled = said(&[plain, ("1024", &[(1, 0)]), ("2048", &[(1, 5), (2, 5)])]);
        assert!(
            stalled.starts_with("\nThe best by drops: --set nic.mtu=2048\n5 against 9 as it is"),
            "{stalled}"
        );
        assert!(stalled.contains("\nWith seeds of the search it broke the limits"), "{stalled}");
        assert!(
            stalled.ends_with("Not judged, as they did not run with all seeds: 1 of 3 configurations.\n"),
            "{stalled}"
        );
    }

    #[test]
    fn what_stalled_with_some_seeds_is_not_the_best_for_what_it_came_to_with_the_others() {
        let plain = (AS_IT_IS, &[(1, 9), (2, 9)][..]);
        let told = said(&[plain, ("1024", &[(1, 5), (2, 4)]), ("4096", &[(1, 1)])]);
        assert!(told.contains("--set nic.mtu=1024\n4.5"), "{told}");
    }

    #[test]
    fn the_best_is_told_of_where_the_scenario_as_it_is_comes_to_no_end() {
        let told = said(&[("1024", &[(1, 5), (2, 4)]), ("4096", &[(1, 8), (2, 8)])]);
        assert!(told.contains("--set nic.mtu=1024\n") && told.contains("against nothing as it is"), "{told}");
    }
}
