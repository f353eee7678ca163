//! Figures that sum up many flows: percentiles, fairness, and slowdown by message size.

use super::{FlowResult, FlowStatus, Results};
use roci_control::program::Fault;
use roci_transport::Status;
use roci_units::Bytes;

/// Values in ascending order, of which percentiles are asked.
#[derive(Clone, Debug, Default)]
pub struct Sorted(Vec<f64>);

impl Sorted {
    /// Sorts `values`.
    pub fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// The values, ascending.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The least value that at least `percent` of a hundred values do not exceed (nearest rank); `None` of nothing.
    pub fn percentile(&self, percent: u32) -> Option<f64> {
        let rank = (self.0.len() * percent as usize).div_ceil(100).max(1);
        self.0.get(rank - 1).copied()
    }

    /// The arithmetic mean; `None` of nothing.
    #[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
    pub fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.iter().sum::<f64>() / self.0.len() as f64)
    }

    /// The greatest value; `None` of nothing.
    pub fn max(&self) -> Option<f64> {
        self.0.last().copied()
    }
}

/// Jain's fairness index of `shares`: 1 when all are equal, 1/n when one has everything. `None` where nobody has any.
#[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

impl Results {
    /// What is to be said of a run that failed, by a deadlock or by flows that did: how many, and what became of the
    /// first that others did not take with it; `None` where all is well.
    pub fn failure(&self) -> Option<String> {
        let (failed, flows) = (self.failed().count(), self.flows.len());
        // A collective that is given up flushes its other flows, which may stand before the one to blame.
        let flushed = FlowStatus::Completed(Status::WorkRequestFlushed);
        let first = self.failed().find(|flow| flow.status != flushed).or_else(|| self.failed().next());
        let of_flows = first.map(|first| {
            let mut text = format!(
                "{failed} of {flows} flows failed, the first: {}, {}",
                first.name,
                first.status.name()
            );
            let failures = self.programs.iter().flat_map(|program| &program.failures);
            if let Some(failure) = failures.into_iter().find(|one| self.flow_of(one) == Some(&first.name)) {
                let Fault { image, why, .. } = &failure.fault;
                text += &if self.was_in_vain(failure) {
                    format!(
                        ": its program {image} let nothing be sent again, and of what the fallback law then sent in all its retries nothing \
                         was answered either, so look at the path first"
                    )
                } else {
                    format!(", after its program {image} had failed ({why})")
                };
            }
            text
        });
        match &self.deadlock {
            None => of_flows,
            Some(deadlock) => {
                let left = self.all().running().count();
                let of_flows = of_flows.unwrap_or_else(|| format!("{left} of {flows} flows are not done"));
                Some(format!("{deadlock}\n{of_flows}"))
            }
        }
    }

    /// Completed flows grouped by size: one group per size where there are few sizes, else three groups per decade.
    pub fn by_size(&self) -> Vec<SizeGroup> {
        let mut flows: Vec<&FlowResult> = self.completed().collect();
        flows.sort_by_key(|flow| flow.bytes);
        let few = flows.chunk_by(|a, b| a.bytes == b.bytes).count() <= FEW_SIZES;
        let group = |flow: &FlowResult| if few { (flow.bytes, flow.bytes) } else { bounds(flow.bytes) };
        let groups = flows.chunk_by(|a, b| group(a) == group(b));
        groups.map(|flows| SizeGroup::new(group(flows[0]), flows)).collect()
    }
}

/// Up to so many different sizes have a group each.
const FEW_SIZES: usize = 8;

/// The neighbours among 0, 1, 2, 5, 10, 20, 50, … that `bytes` lies between: above the first, up to the second.
fn bounds(bytes: u64) -> (u64, u64) {
    let mut below = 0;
    let mut decade = 1u64;
    loop {
        for step in [1, 2, 5] {
            match decade.checked_mul(step) {
                Some(bound) if bound < bytes => below = bound,
                bound => return (below, bound.unwrap_or(u64::MAX)),
            }
        }
        match decade.checked_mul(10) {
            Some(next) => decade = next,
            None => return (below, u64::MAX),
        }
    }
}

/// Completed flows of similar size.
#[derive(Clone, Debug)]
pub struct SizeGroup {
    /// They are longer than this, or, where it equals [`SizeGroup::to`], exactly so long.
    pub from: Bytes,
    /// They are no longer than this.
    pub to: Bytes,
    /// Their completion times in seconds.
    pub completion_times: Sorted,
    /// Their slowdowns.
    pub slowdowns: Sorted,
}

impl SizeGroup {
    fn new((from, to): (u64, u64), flows: &[&FlowResult]) -> Self {
        let seconds = |flow: &&FlowResult| flow.fct().map(|fct| fct.as_secs_f64());
        Self {
            from: Bytes(from),
            to: Bytes(to),
            completion_times: Sorted::new(flows.iter().filter_map(seconds).collect()),
            slowdowns: Sorted::new(flows.iter().filter_map(|flow| flow.slowdown()).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let sorted = Sorted::new((1..=200).rev().map(f64::from).collect());
        assert_eq!(sorted.percentile(0), Some(1.0));
        assert_eq!(sorted.percentile(50), Some(100.0));
        assert_eq!(sorted.percentile(99), Some(198.0));
        assert_eq!(sorted.percentile(100), Some(200.0));
        assert_eq!(Sorted::default().percentile(50), None);
        assert_eq!(Sorted::new(vec![7.0]).percentile(99), Some(7.0));
    }

    #[test]
    fn fairness_runs_from_one_over_n_to_one() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[0.0, 0.0]), None);
    }

    #[test]
    fn sizes_lie_between_bounds_three_to_a_decade() {
        for (bytes, from, to) in [
            (0, 0, 1),
            (1, 0, 1),
            (3, 2, 5),
            (5, 2, 5),
            (6, 5, 10),
            (1_001, 1_000, 2_000),
            (u64::MAX, 10_000_000_000_000_000_000, u64::MAX),
        ] {
            assert_eq!(bounds(bytes), (from, to), "{bytes}");
        }
    }

    #[test]
    fn many_sizes_are_grouped_and_few_are_not() {
        let template = crate::output::test_results::sample().flows[0].clone();
        let results = |sizes: &[u64]| Results {
            flows: sizes.iter().map(|&bytes| FlowResult { bytes, ..template.clone() }).collect(),
            ..Results::default()
        };
        let sizes = |results: &Results| -> Vec<(u64, u64, usize)> {
            let group = |group: SizeGroup| (group.from.0, group.to.0, group.slowdowns.values().len());
            results.by_size().into_iter().map(group).collect()
        };
        assert_eq!(sizes(&results(&[3_000, 900, 3_000])), [(900, 900, 1), (3_000, 3_000, 2)]);
        let many = [120, 130, 140, 150, 160, 170, 180, 190, 1_500, 200];
        assert_eq!(sizes(&results(&many)), [(100, 200, 9), (1_000, 2_000, 1)]);
    }
}
