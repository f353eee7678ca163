use super::{Run, Workload};
pub(crate) fn run(_: &Workload) -> Run {
    Run { hops: 1, events: 1, cpu_s: 1.0 }
}
