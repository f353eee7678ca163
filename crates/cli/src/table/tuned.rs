//! What is said of settings that were found: the best of the last comparison, and whether it is more than chance.

use crate::format::{difference, estimate};
use roci_lab::batch::Group;
use roci_lab::figures::statistics::Estimate;
use roci_lab::results::Results;
use roci_lab::scenario::overrides::seeds_in_words;
use roci_lab::tune::{Aim, Limit, Score};

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

/// Which configuration of `group` is the best by `aim` within `limits`, and what it is worth beside the scenario as it is.
pub(crate) fn verdict(aim: &Aim, limits: &[Limit], group: &Group, results: &[Results]) -> String {
    let known = |label| {
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
    all.sort_by(|a, b| a.score.order(&b.score));
    let (Some(best), Some(plain)) = (all.first(), all.iter().find(|known| known.label == AS_IT_IS)) else {
        return String::new();
    };
    let seeds: Vec<u64> = best.worth.iter().map(|(seed, _)| *seed).collect();
    let over = format!("over {}, which the search had not seen", seeds_in_words(&seeds));
    let limits: Vec<String> = limits.iter().map(|limit| format!("`{limit}`")).collect();
    let limits = limits.join(" and ");
    let within = if limits.is_empty() { String::new() } else { format!(" within {limits}") };
    let none_keeps = format!("None that was left keeps {limits} in every run");
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
    let broken =
        if plain.score.keeps() || limits.is_empty() { "" } else { ", which does not keep the limits" };
    let mut told = format!(
        "\n{head}: {}\n{} against {} as it is{broken}, {over}.\n",
        set.join(" "),
        shown(best),
        shown(plain)
    );
    match best.more_than(plain).filter(|_| seeds.len() > 1) {
        None => told.push_str("One seed does not tell gain from chance: compare with --seeds 1..8.\n"),
        Some(more) => {
            told.push_str(&format!("Seed by seed the difference is {}", difference(aim.metric, &more)));
            told.push_str(match more.mean.abs() > more.half_width {
                true => ".\n",
                false => ": these seeds do not tell the two apart.\n",
            });
        }
    }
    told
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

    #[test]
    fn a_value_with_signs_of_the_shell_is_put_in_quotes() {
        assert_eq!(shell("switch.ecn.kmin=350KB"), "switch.ecn.kmin=350KB");
        assert_eq!(shell("transport.control={ law = \"dcqcn\" }"), "'transport.control={ law = \"dcqcn\" }'");
        assert_eq!(shell("a=b'c"), "'a=b'\\''c'");
    }
}
