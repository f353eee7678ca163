//! Collectives of several runs side by side, as NCCL's tests tell of them.

use super::Group;
use crate::figures::statistics::Estimate;
use crate::results::{CollectiveResult, Results};

/// What a collective came to in one configuration, over its seeds.
#[derive(Clone, Copy, Debug)]
pub struct CollectiveSum<'a> {
    /// The configuration.
    pub label: &'a str,
    /// The name of its `[[traffic]]` table.
    pub name: &'a str,
    /// That of the first seed: operation, algorithm, ranks and size are those of all.
    pub of: &'a CollectiveResult,
    /// Iterations that are done, of all seeds.
    pub done: usize,
    /// Iterations that were asked for, of all seeds.
    pub asked: usize,
    /// How many seeds there are.
    pub runs: usize,
    /// In how many of them it was given up, as a queue pair failed.
    pub failed: usize,
    /// The mean time of an iteration in seconds; `None`, as all that follow, where a seed has no iteration that is done.
    pub time: Option<Estimate>,
    /// Algorithm bandwidth, in bits per second.
    pub algorithm_bps: Option<Estimate>,
    /// Bus bandwidth, in bits per second.
    pub bus_bps: Option<Estimate>,
    /// The time over the ideal one.
    pub over_ideal: Option<Estimate>,
}

impl Group {
    /// What each collective came to in each configuration, over its seeds; nothing where there are none.
    pub fn sums_of_collectives<'a>(&'a self, results: &'a [Results]) -> Vec<CollectiveSum<'a>> {
        let of = |label: &'a str| {
            let alike: Vec<&Results> = self.alike(label, results).collect();
            let places = alike.iter().map(|results| results.collectives.len()).min().unwrap_or(0);
            (0..places).map(|place| sum(label, place, &alike)).collect::<Vec<_>>()
        };
        self.configurations().into_iter().flat_map(of).collect()
    }
}

/// Of the collective at `place` among those of each of `alike`, which is not empty.
fn sum<'a>(label: &'a str, place: usize, alike: &[&'a Results]) -> CollectiveSum<'a> {
    let of = &alike[0].collectives[place];
    let each = || alike.iter().map(|results| &results.collectives[place]);
    let estimate = |value: &dyn Fn(&CollectiveResult, f64) -> Option<f64>| {
        let values = each().map(|it| value(it, it.times()?.0)).collect::<Option<Vec<f64>>>()?;
        Estimate::of(&values)
    };
    CollectiveSum {
        label,
        name: &alike[0].traffic[of.table].name,
        of,
        done: each().map(|it| it.iterations.len()).sum(),
        asked: each().map(|it| it.asked as usize).sum(),
        runs: alike.len(),
        failed: each().filter(|it| it.failed).count(),
        time: estimate(&|_, mean| Some(mean)),
        algorithm_bps: estimate(&|it, mean| Some(it.algorithm_bps(mean))),
        bus_bps: estimate(&|it, mean| Some(it.bus_bps(mean))),
        over_ideal: estimate(&CollectiveResult::over_ideal),
    }
}
