//! GOAL schedules of several runs side by side.

use super::Group;
use crate::figures::statistics::Estimate;
use crate::results::{CriticalPath, GoalResult, JointKind, Results};
use crate::traffic::Algorithm;
use crate::traffic::collective::Operation;

/// What a schedule came to in one configuration, over its seeds.
#[derive(Clone, Debug)]
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
    /// Its collectives, by what they do, how, and among how many ranks.
    pub joint: Vec<JointSum>,
}

/// What the collectives of one kind of a schedule came to in one configuration, over its seeds; `None` where a seed has done none of them.
#[derive(Clone, Copy, Debug)]
pub struct JointSum {
    /// What they do.
    pub operation: Operation,
    /// How; `None` where ranks do it by themselves.
    pub algorithm: Option<Algorithm>,
    /// How many ranks take part in each.
    pub ranks: u32,
    /// How many there are in all runs,
    pub count: usize,
    /// and how many of them are done.
    pub done: usize,
    /// How long they waited for their last rank, in seconds.
    pub late: Option<Estimate>,
    /// How long they took then, in seconds.
    pub time: Option<Estimate>,
    /// Their bus bandwidth.
    pub bus_bps: Option<Estimate>,
    /// Their times over what they take at least.
    pub over_ideal: Option<Estimate>,
}

impl Group {
    /// What each schedule came to in each configuration, over its seeds; nothing where there are none.
    pub fn sums_of_goals<'a>(&'a self, results: &'a [Results]) -> Vec<GoalSum<'a>> {
        let of = |label: &'a str| GoalSum::all(label, &self.alike(label, results).collect::<Vec<_>>());
        self.configurations().into_iter().flat_map(of).collect()
    }
}

impl<'a> GoalSum<'a> {
    /// Of each schedule of the configuration `label`, which ran with the seeds `alike`.
    pub(crate) fn all(label: &'a str, alike: &[&'a Results]) -> Vec<Self> {
        let places = alike.iter().map(|results| results.goals.len()).min().unwrap_or(0);
        (0..places).map(|place| sum(label, place, alike)).collect()
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
        joint: each().next().map_or_else(Vec::new, |first| {
            let others: Vec<Vec<JointKind>> = each().map(GoalResult::joint_kinds).collect();
            first.joint_kinds().iter().map(|kind| joint_sum(kind, &others)).collect()
        }),
    }
}

/// Of the kind that `first` is of, in each of `seeds`.
fn joint_sum(first: &JointKind, seeds: &[Vec<JointKind>]) -> JointSum {
    let key = |kind: &JointKind| (kind.operation, kind.algorithm, kind.ranks);
    let of_seeds = || seeds.iter().map(|kinds| kinds.iter().find(|kind| key(kind) == key(first)));
    let estimate = |value: fn(&JointKind) -> Option<f64>| {
        Estimate::of(&of_seeds().map(|kind| value(kind?)).collect::<Option<Vec<f64>>>()?)
    };
    JointSum {
        operation: first.operation,
        algorithm: first.algorithm,
        ranks: first.ranks,
        count: of_seeds().flatten().map(|kind| kind.count).sum(),
        done: of_seeds().flatten().map(|kind| kind.done).sum(),
        late: estimate(JointKind::late_mean),
        time: estimate(JointKind::time_mean),
        bus_bps: estimate(JointKind::bus_bps),
        over_ideal: estimate(JointKind::over_ideal),
    }
}
