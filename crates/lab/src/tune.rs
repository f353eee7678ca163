//! Finds settings: draws configurations from ranges, and runs ever fewer of them with ever more seeds (sequential halving, Karnin,
//! Koren and Somekh, ICML 2013). What is left is drawn from once more nearby, and halved again.
//!
//! Points are those of Halton's sequence, which fill a space of few dimensions evenly whatever their number; so the same request tries the same.
//! Configurations that came out best of many on some seeds did so by chance in part: what they are worth is to be seen on
//! other seeds.

mod aim;
mod knob;

pub use aim::{Aim, Limit, Score};
pub(crate) use knob::Kind;
pub use knob::Knob;

use std::collections::BTreeSet;

/// How many configurations are left in the end.
pub const FINALISTS: usize = 4;

/// The most keys that may be varied: beyond them the sequence's points lie on lines for long.
pub const KNOBS: usize = BASES.len();

/// Prime bases of the sequence.
const BASES: [u32; 10] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29];

/// As many draws for each configuration that is wanted are tried before it is given up to find more that are accepted and new.
const ATTEMPTS: usize = 20;

/// A configuration that is tried. It is its values alone: of many the scenarios, each with its topology, would not fit into memory.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The varied keys with its values of them.
    pub values: Vec<(String, String)>,
    /// What each of its runs came to, seed by seed.
    pub scores: Vec<Score>,
    places: Vec<f64>,
}

impl Candidate {
    /// What it came to over its seeds.
    pub fn score(&self) -> Score {
        Score::mean(&self.scores)
    }
}

/// What has been seen so far.
#[derive(Clone, Copy, Debug)]
pub struct Round<'a> {
    /// How many configurations were held against each other.
    pub configurations: usize,
    /// On how many seeds each.
    pub seeds: usize,
    /// The best of them.
    pub best: &'a Candidate,
}

/// What a search has tried.
#[derive(Clone, Debug)]
pub struct Found {
    /// The best first, and of these the [`FINALISTS`] that were left in the end before all others.
    pub tried: Vec<Candidate>,
    /// Whether it was ended before it had come to these: then all that had run are there, the best first.
    pub stopped: bool,
}

/// What a search has tried, to be shown beside the runs that it is compared in.
#[derive(Clone, Debug)]
pub struct Tried {
    /// What it was for.
    pub aim: Aim,
    /// What it varied.
    pub knobs: Vec<Knob>,
    /// As [`Found::tried`] has them.
    pub candidates: Vec<Candidate>,
}

/// Searches the values of `knobs`, of which there are 1 to [`KNOBS`], for the least score: `draws` configurations at first, and half as many near the best.
///
/// `accept` sees whether values make a scenario, or says why they cannot; `judge` runs candidates, each with the number of a seed from 0 on, and
/// gives their scores in that order, or none where the search is to end; `tell` hears of each round.
///
/// # Errors
/// Where no configuration was accepted, with what was said of the last.
pub fn search<E>(
    knobs: &[Knob],
    draws: usize,
    mut accept: impl FnMut(&[(String, String)]) -> Result<(), E>,
    mut judge: impl FnMut(&[(&Candidate, usize)]) -> Option<Vec<Score>>,
    mut tell: impl FnMut(&Round<'_>),
) -> Result<Found, E> {
    let (mut seen, mut index, mut out) = (BTreeSet::new(), 0, Vec::new());
    let mut draw = |wanted: usize, near: &[Vec<f64>]| {
        let (mut drawn, mut refused) = (Vec::new(), None);
        for _ in 0..wanted * ATTEMPTS {
            if drawn.len() >= wanted {
                break;
            }
            index += 1;
            // Each that is left has the sequence to itself: of every fourth point alone all lie in one quarter of what base 2 fills.
            let count = u32::try_from(near.len()).map_or(1, |count| count.max(1));
            let (place, around) = (index / count, near.get((index % count) as usize));
            let mut places: Vec<f64> =
                BASES.iter().take(knobs.len()).map(|&base| halton(place, base)).collect();
            if let Some(around) = around {
                let moved = knobs.iter().zip(around).zip(&places);
                places = moved.map(|((knob, &place), &toward)| knob.near(place, toward)).collect();
            }
            let set = |(knob, &place): (&Knob, &f64)| (knob.key.clone(), knob.at(place));
            let values: Vec<_> = knobs.iter().zip(&places).map(set).collect();
            if !seen.insert(values.clone()) {
                continue;
            }
            match accept(&values) {
                Ok(()) => drawn.push(Candidate { values, scores: Vec::new(), places }),
                Err(error) => refused = Some(error),
            }
        }
        (drawn, refused)
    };
    let (mut pool, refused) = draw(draws.max(1), &[]);
    if let Some(error) = refused.filter(|_| pool.is_empty()) {
        return Err(error);
    }
    let mut stopped = halve(&mut pool, &mut out, &mut judge, &mut tell).is_none();
    if !stopped {
        let near: Vec<_> = pool.iter().map(|candidate| candidate.places.clone()).collect();
        let (more, _) = draw(draws / 2, &near);
        if !more.is_empty() {
            pool.extend(more);
            stopped = halve(&mut pool, &mut out, &mut judge, &mut tell).is_none();
        }
    }
    if stopped {
        pool.retain(|candidate| !candidate.scores.is_empty());
        out.append(&mut pool);
    }
    out.sort_by(|a, b| a.score().order(&b.score()));
    pool.append(&mut out);
    Ok(Found { tried: pool, stopped })
}

/// Runs all of `pool`, and then the better half of them with twice as many seeds, until [`FINALISTS`] are left, the best first. The others go
/// `out`. `None`: it was ended.
fn halve(
    pool: &mut Vec<Candidate>,
    out: &mut Vec<Candidate>,
    judge: &mut impl FnMut(&[(&Candidate, usize)]) -> Option<Vec<Score>>,
    tell: &mut impl FnMut(&Round<'_>),
) -> Option<()> {
    let mut seeds = 1;
    loop {
        let missing: Vec<(usize, usize)> = (pool.iter().enumerate())
            .flat_map(|(place, candidate)| (candidate.scores.len()..seeds).map(move |seed| (place, seed)))
            .collect();
        let asked: Vec<_> = missing.iter().map(|&(place, seed)| (&pool[place], seed)).collect();
        let scores = judge(&asked)?;
        for ((place, _), score) in missing.into_iter().zip(scores) {
            pool[place].scores.push(score);
        }
        pool.sort_by(|a, b| a.score().order(&b.score()));
        if let Some(best) = pool.first() {
            tell(&Round { configurations: pool.len(), seeds, best });
        }
        if pool.len() <= FINALISTS {
            return Some(());
        }
        out.extend(pool.drain(FINALISTS.max(pool.len().div_ceil(2))..));
        seeds *= 2;
    }
}

/// Member `index` of the sequence of Halton in `base`, 0 to 1: the digits of `index` in reverse behind the point.
fn halton(mut index: u32, base: u32) -> f64 {
    let (mut place, mut part) = (0.0, 1.0);
    while index > 0 {
        part /= f64::from(base);
        place += part * f64::from(index % base);
        index /= base;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Scores by a function of the values, which may differ with the seed.
    fn searched(
        knobs: &[&str],
        draws: usize,
        of: impl Fn(&[f64], usize) -> Score,
    ) -> (Vec<Candidate>, usize) {
        let knobs: Vec<Knob> = knobs.iter().map(|text| Knob::read(text).unwrap()).collect();
        let mut runs = 0;
        let judge = |asked: &[(&Candidate, usize)]| {
            runs += asked.len();
            let number = |(_, value): &(String, String)| value.parse().unwrap();
            let score = |(candidate, seed): &(&Candidate, usize)| {
                of(&candidate.values.iter().map(number).collect::<Vec<f64>>(), *seed)
            };
            Some(asked.iter().map(score).collect())
        };
        let found = search::<()>(&knobs, draws, |_| Ok(()), judge, |_| ()).unwrap();
        assert!(!found.stopped);
        (found.tried, runs)
    }

    #[test]
    fn the_least_of_a_noisy_bowl_is_found_and_most_of_what_is_tried_runs_once() {
        let bowl = |at: &[f64], seed: usize| {
            let seed = f64::from(u32::try_from(seed).unwrap());
            let noise = 0.1 * (at[0] * 37.7 + at[1] * 91.3 + seed * 13.37).fract();
            let away = (at[0].log10() - 1.0).powi(2) + (at[1] - 0.3).powi(2) + noise;
            Score { over: 0.0, value: away }
        };
        let (found, runs) = searched(&["a=1..1000", "b=0.0..1.0"], 64, bowl);
        let number = |place: usize| found[0].values[place].1.parse::<f64>().unwrap();
        assert!((6.0..17.0).contains(&number(0)) && (0.1..0.5).contains(&number(1)), "{:?}", found[0]);
        assert_eq!(found.len(), 96);
        // 64 on one seed, 32 on one more, 16 on two more, 8 on four more; then 32 new ones and so on.
        assert!((200..300).contains(&runs), "{runs}");
        assert!(found.iter().filter(|candidate| candidate.scores.len() == 1).count() >= 45);
        assert!(found[..FINALISTS].iter().all(|candidate| candidate.scores.len() >= 8));
    }

    #[test]
    fn what_is_drawn_near_each_of_those_that_are_left_lies_on_both_sides_of_it() {
        let knobs = ["a=0.0..1.0", "b=1,2,3,4"].map(|text| Knob::read(text).unwrap());
        // Of each word the first is the best, so that one of each is left.
        let (mut best, mut tried) = (BTreeMap::<String, f64>::new(), Vec::new());
        let judge = |asked: &[(&Candidate, usize)]| {
            let score = |(candidate, seed): &(&Candidate, usize)| {
                let (at, word) = (candidate.values[0].1.parse().unwrap(), candidate.values[1].1.clone());
                let away = f64::abs(*best.entry(word.clone()).or_insert(at) - at);
                tried.extend((*seed == 0).then_some((word, at)));
                Score { over: 0.0, value: f64::from(away > 0.0) }
            };
            Some(asked.iter().map(score).collect())
        };
        search::<()>(&knobs, 64, |_| Ok(()), judge, |_| ()).unwrap();
        for (word, best) in best {
            let near = || tried[64..].iter().filter(|(its, _)| *its == word).map(|(_, at)| *at);
            assert!(near().any(|at| at < best) && near().any(|at| at > best), "{word}, {best}: {tried:?}");
        }
    }

    #[test]
    fn what_breaks_a_limit_comes_behind_all_that_does_not() {
        let fenced = |at: &[f64], _| Score { over: (0.5 - at[0]).max(0.0), value: at[0] };
        let (found, _) = searched(&["a=0.0..1.0"], 32, fenced);
        let least: f64 = found[0].values[0].1.parse().unwrap();
        assert!((0.5..0.56).contains(&least), "{least}");
    }

    #[test]
    fn a_short_list_is_tried_whole_and_no_more() {
        let (found, runs) = searched(&["a=3,1,2"], 64, |at, _| Score { over: 0.0, value: at[0] });
        let values: Vec<&str> = found.iter().map(|candidate| candidate.values[0].1.as_str()).collect();
        assert_eq!((values, runs), (vec!["1", "2", "3"], 3));
    }

    #[test]
    fn a_search_says_why_nothing_is_accepted_and_ends_when_it_is_told_to() {
        let knobs = [Knob::read("a=1..9").unwrap()];
        let refused = search::<_>(&knobs, 8, |_| Err("no"), |_| Some(Vec::new()), |_| ());
        assert_eq!(refused.unwrap_err(), "no");
        let mut rounds = 0;
        let judge = |asked: &[(&Candidate, usize)]| {
            rounds += 1;
            let value = |(candidate, _): &(&Candidate, usize)| candidate.values[0].1.parse().unwrap();
            let scores = asked.iter().map(|asked| Score { over: 0.0, value: value(asked) });
            (rounds == 1).then(|| scores.collect())
        };
        let found = search::<()>(&knobs, 8, |_| Ok(()), judge, |_| ()).unwrap();
        let values: Vec<&str> = found.tried.iter().map(|candidate| candidate.values[0].1.as_str()).collect();
        assert!(found.stopped && values.len() == 8 && values.is_sorted(), "{values:?}");
    }

    #[test]
    fn the_sequence_leaves_no_quarter_out() {
        let mut quarters = [0; 16];
        for index in 1..=64 {
            let quarter = |base| {
                let place = halton(index, base);
                [0.25, 0.5, 0.75].into_iter().filter(|bound| place >= *bound).count()
            };
            quarters[quarter(2) * 4 + quarter(3)] += 1;
        }
        assert!(quarters.iter().all(|points| (2..=6).contains(points)), "{quarters:?}");
    }
}
