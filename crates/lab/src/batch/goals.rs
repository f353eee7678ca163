//! GOAL schedules of several runs side by side.

use super::Group;
use crate::figures::statistics::Estimate;
use crate::results::{CriticalPath, GoalResult, Results};

/// What a schedule came to in one configuration, over its seeds.
#[derive(Clone, Copy, Debug)]
pub struct GoalSum<'a> {
    /// The configuration.
    pub label: &'a str,
    /// The name of its `[[traffic]]` table.
    pub name: &'a str,
    /// How many seeds there are.
    pub runs: usize,
    /// In how many of them it was done.
    pub done: usize,
    /// How long it took, in seconds; `None`, as all that follow, where a seed did not do it.
    pub time: Option<Estimate>,
    /// Of that, calculation,
    pub computed: Option<Estimate>,
    /// what CPUs had to do with messages,
    pub overhead: Option<Estimate>,
    /// and messages and collectives on their way.
    pub messages: Option<Estimate>,
    /// The last over what these would have taken on an idle network.
    pub over_ideal: Option<Estimate>,
    /// The time over that on a fabric that holds nothing up.
    pub over_links: Option<Estimate>,
}

impl Group {
    /// What each schedule came to in each configuration, over its seeds; nothing where there are none.
    pub fn sums_of_goals<'a>(&'a self, results: &'a [Results]) -> Vec<GoalSum<'a>> {
        let of = |label: &'a str| {
            let alike: Vec<&Results> = self.alike(label, results).collect();
            let places = alike.iter().map(|results| results.goals.len()).min().unwrap_or(0);
            (0..places).map(|place| sum(label, place, &alike)).collect::<Vec<_>>()
        };
        self.configurations().into_iter().flat_map(of).collect()
    }
}

/// Of the schedule at `place` among those of each of `alike`, which is not empty.
fn sum<'a>(label: &'a str, place: usize, alike: &[&'a Results]) -> GoalSum<'a> {
    let each = || alike.iter().map(|results| &results.goals[place]);
    let of_each = |value: &dyn Fn(&GoalResult) -> Option<f64>| {
        Estimate::of(&each().map(value).collect::<Option<Vec<f64>>>()?)
    };
    let estimate = |value: &dyn Fn(&CriticalPath) -> Option<f64>| of_each(&|it| value(it.path.as_ref()?));
    GoalSum {
        label,
        name: &alike[0].traffic[alike[0].goals[place].table].name,
        runs: alike.len(),
        done: each().filter(|it| it.seconds().is_some()).count(),
        time: estimate(&|path| Some(path.time.as_secs_f64())),
        computed: estimate(&|path| Some(path.computed.as_secs_f64())),
        overhead: estimate(&|path| Some(path.overhead.as_secs_f64())),
        messages: estimate(&|path| Some(path.on_the_way().as_secs_f64())),
        over_ideal: estimate(&CriticalPath::over_ideal),
        over_links: of_each(&GoalResult::over_links),
    }
}
