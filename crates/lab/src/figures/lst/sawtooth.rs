//! One board of three with a slow increase timer and a target that remembers (Figure 13).

use super::super::bench::{Bench, SAWTOOTH};
use super::super::plot::Plot;
use super::super::statistics::{count, mean, median, regression};
use super::super::trace::{Trace, gbps};
use super::super::{FigureError, Measured};
use super::incast::bins;
use crate::results::{FlowSample, Results};

/// The first cuts, from line rate with alpha at one, are no tooth: teeth are looked for from here on, in seconds.
const SETTLED: f64 = 0.02;
/// The increase timer of board a, in seconds.
const TIMER: f64 = 0.2;
/// The bins in which boards are compared, in seconds.
const BIN: f64 = 0.01;

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let runs = bench.run(SAWTOOTH, &[])?;
    let mut measured = Measured::default();
    measured.each("teeth", &runs, |results| count(teeth(results).len()));
    let worst = |results: &Results, value: fn(&Tooth) -> f64, worse: fn(f64, f64) -> f64| {
        teeth(results).iter().map(value).reduce(worse).unwrap_or(f64::NAN)
    };
    measured.each("timer", &runs, |results| {
        worst(results, |tooth| (tooth.waited / TIMER - 1.0).abs() * 100.0, f64::max)
    });
    measured.each("climb", &runs, |results| worst(results, |tooth| tooth.climb * 100.0, f64::min));
    measured.each("bottom", &runs, |results| {
        let bottoms: Vec<f64> = teeth(results).iter().map(|tooth| tooth.bottom).collect();
        median(&bottoms).unwrap_or(f64::NAN)
    });
    let absorbed: Vec<Absorbed> = runs.iter().map(|results| Absorbed::of(&shares(results))).collect();
    measured.add("absorbed", absorbed.iter().map(|absorbed| absorbed.carried).collect());
    measured.add("unabsorbed", absorbed.iter().map(|absorbed| absorbed.if_idle).collect());
    measured.each("cnps", &runs, |results| worst(results, |tooth| tooth.cnps, f64::min));
    measured.each("linear", &runs, |results| worst(results, |tooth| tooth.r_squared, f64::min));
    measured.each("linear_median", &runs, |results| {
        median(&teeth(results).iter().map(|tooth| tooth.r_squared).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    });
    measured.each("hyperbolic", &runs, |results| {
        let teeth: Vec<f64> = teeth(results).iter().map(|tooth| tooth.r_squared_of_inverse).collect();
        median(&teeth).unwrap_or(f64::NAN)
    });
    measured
        .each("linear_in_cnps", &runs, |results| worst(results, |tooth| tooth.r_squared_in_cnps, f64::min));
    let mut plot =
        Plot::new("One board with a timer of 200 ms and no clamp: R_C of each", "time (s)", "Gb/s");
    for trace in Trace::all(&runs[0]) {
        let rates = trace.readings.iter().filter_map(|(at, reading)| Some((*at, gbps(reading.rate_kbps?))));
        plot = plot.line(runs[0].host(trace.flow.src), rates.collect());
    }
    measured.plots.push(plot);
    Ok(measured)
}

/// A climb and the decay after it.
#[derive(Clone, Copy, Debug)]
struct Tooth {
    /// Seconds from the CNP or climb before to this climb.
    waited: f64,
    /// The share of R_T − R_C, as they were before it, that the climb covers at the next reading.
    climb: f64,
    /// R_C at the end of the decay, over the highest of the tooth.
    bottom: f64,
    /// CNPs from the climb to the next.
    cnps: f64,
    /// How linear log R_C is in time while it decays, from the first cut to the last.
    r_squared: f64,
    /// How linear 1/R_C is in time, as it would be if every packet were as likely to be marked.
    r_squared_of_inverse: f64,
    /// How linear log R_C is in the number of CNPs.
    r_squared_in_cnps: f64,
}

/// What happened between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Nothing,
    /// R_C rose, and CNPs may have come after that.
    Climb,
    Cnp,
}

fn change(old: &FlowSample, new: &FlowSample) -> Change {
    if new.rate_kbps > old.rate_kbps {
        Change::Climb
    } else if new.cnps > old.cnps {
        Change::Cnp
    } else {
        Change::Nothing
    }
}

/// The goodput of boards a, b and c in each bin.
fn shares(results: &Results) -> Vec<[f64; 3]> {
    let end = results.simulated.as_secs_f64();
    let [a, b, c] = ["a", "b", "c"].map(|board| bins(&Trace::of_host(results, board), BIN, end));
    a.iter().zip(&b).zip(&c).map(|(((_, a), (_, b)), (_, c))| [*a, *b, *c]).collect()
}

/// What becomes of the bandwidth that board a leaves: of the bins, the quarter in which it sends least beside the quarter
/// in which it sends most.
#[derive(Clone, Copy, Debug)]
struct Absorbed {
    /// What all three carry in the former over what they carry in the latter: one where the others take all of it.
    carried: f64,
    /// The same, had the others sent at their mean throughout.
    if_idle: f64,
}

impl Absorbed {
    fn of(shares: &[[f64; 3]]) -> Self {
        let mut shares = shares.to_vec();
        shares.sort_by(|one, other| one[0].total_cmp(&other[0]));
        let quarter = shares.len() / 4;
        let (least, most) = (&shares[..quarter], &shares[shares.len() - quarter..]);
        let average = |bins: &[[f64; 3]], of: fn(&[f64; 3]) -> f64| {
            mean(&bins.iter().map(of).collect::<Vec<_>>()).unwrap_or(f64::NAN)
        };
        let others = average(&shares, |[_, b, c]| b + c);
        let [low, high] = [least, most].map(|bins| average(bins, |[a, ..]| *a));
        Self {
            carried: average(least, |all| all.iter().sum()) / average(most, |all| all.iter().sum()),
            if_idle: (low + others) / (high + others),
        }
    }
}

/// The teeth of board a that begin and end within the run.
fn teeth(results: &Results) -> Vec<Tooth> {
    let trace = Trace::of_host(results, "a");
    let changes: Vec<Change> = trace.readings.windows(2).map(|pair| change(&pair[0].1, &pair[1].1)).collect();
    let climbs: Vec<usize> = (0..changes.len())
        .filter(|place| changes[*place] == Change::Climb && trace.readings[*place].0 > SETTLED)
        .collect();
    let mut teeth = Vec::new();
    for pair in climbs.windows(2) {
        let (climb, next) = (pair[0], pair[1]);
        let last = changes[..climb].iter().rposition(|change| *change != Change::Nothing);
        let since = last.map_or(0.0, |place| trace.readings[place + 1].0);
        let rate = |place: usize| trace.readings[place].1.rate_kbps.map_or(0.0, gbps);
        let heard = |place: usize| f64::from(trace.readings[place].1.cnps - trace.readings[climb].1.cnps);
        let target = trace.readings[climb].1.target_kbps.map_or(0.0, gbps);
        let falls = (climb + 1..next).rev().find(|place| rate(place + 1) < rate(*place));
        let end = falls.map_or(climb + 1, |place| place + 1);
        let decay = climb + 1..=end;
        let fit = |of: fn(f64) -> f64| {
            let points = decay.clone().map(|place| (trace.readings[place].0, of(rate(place))));
            regression(&points.collect::<Vec<_>>()).map_or(0.0, |line| line.r_squared)
        };
        // A point for each reading that heard of more CNPs than the one before.
        let told = decay.clone().filter(|place| *place == climb + 1 || heard(*place) > heard(place - 1));
        let by_cut: Vec<(f64, f64)> = told.map(|place| (heard(place), rate(place).ln())).collect();
        teeth.push(Tooth {
            waited: trace.readings[climb + 1].0 - since,
            climb: (rate(climb + 1) - rate(climb)) / (target - rate(climb)),
            bottom: rate(end) / decay.clone().map(rate).fold(f64::MIN_POSITIVE, f64::max),
            cnps: heard(next),
            r_squared: fit(f64::ln),
            r_squared_of_inverse: fit(f64::recip),
            r_squared_in_cnps: regression(&by_cut).map_or(0.0, |line| line.r_squared),
        });
    }
    teeth
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A board that swings between nothing and four, and two that take a share of what it leaves.
    fn absorbed(share: f64) -> Absorbed {
        let bins = (0..400u16).map(|bin| {
            let a = f64::from(bin % 5);
            let other = 3.0 + share * (4.0 - a) / 2.0;
            [a, other, other]
        });
        Absorbed::of(&bins.collect::<Vec<_>>())
    }

    #[test]
    fn bandwidth_that_nobody_takes_is_seen_to_be_lost() {
        let (all, half, none) = (absorbed(1.0), absorbed(0.5), absorbed(0.0));
        assert!((all.carried - 1.0).abs() < 1e-9 && all.if_idle < 0.8, "{all:?}");
        assert!((0.7..0.9).contains(&half.carried), "{half:?}");
        assert!(none.carried < 0.7 && (none.carried - none.if_idle).abs() < 1e-9, "{none:?}");
    }
}
