//! Numbers for people: four digits and a unit.

use roci_lab::batch::Metric;
use roci_lab::figures::statistics::Estimate;
use roci_lab::output::digits::scaled;
pub(crate) use roci_lab::output::digits::{float, number, time};

/// Bits per second.
pub(crate) fn rate(bps: f64) -> String {
    scaled(bps, &[(1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "Kb/s"), (1.0, "b/s")])
}

/// Things per second, of which the heading tells.
pub(crate) fn per_second(count: f64) -> String {
    scaled(count, &[(1e9, "G"), (1e6, "M"), (1e3, "K"), (1.0, "")]).trim_end().to_owned()
}

/// Octets.
pub(crate) fn size(octets: u64) -> String {
    if octets < 1_000 {
        return format!("{octets} B");
    }
    octets_of(float(octets))
}

/// Octets that may be a mean.
pub(crate) fn octets_of(value: f64) -> String {
    scaled(value, &[(1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1.0, "B")])
}

/// Things, of which there may be so many on the mean.
pub(crate) fn count(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { number(value) }
}

/// A value that may be missing.
pub(crate) fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}

/// A mean, and half the width of its confidence interval where there are several values.
pub(crate) fn estimate(metric: Metric, estimate: &Estimate) -> String {
    spread(estimate, |value| of_metric(metric, value))
}

fn of_metric(metric: Metric, value: f64) -> String {
    match metric {
        Metric::MeanCompletion | Metric::P99Completion | Metric::Paused => time(value),
        Metric::Offered | Metric::Goodput => rate(value),
        Metric::Buffered | Metric::QueueMean | Metric::QueueP99 => octets_of(value),
        Metric::MeanSlowdown | Metric::P99Slowdown | Metric::Fairness | Metric::Imbalance => number(value),
        Metric::Completed
        | Metric::Drops
        | Metric::Lost
        | Metric::Marks
        | Metric::Pauses
        | Metric::Timeouts
        | Metric::Reordered => count(value),
    }
}

/// A mean of differences with its sign, and half the width of its confidence interval.
pub(crate) fn difference(metric: Metric, difference: &Estimate) -> String {
    signed(difference, |value| of_metric(metric, value))
}

/// The same of what `one` writes.
pub(crate) fn signed(difference: &Estimate, one: impl Fn(f64) -> String) -> String {
    // What rounding leaves of differences that cancel out is none.
    let mean = if difference.mean.abs() < difference.half_width * 1e-9 { 0.0 } else { difference.mean };
    let sign = if mean > 0.0 { "+" } else { "" };
    format!("{sign}{}", spread(&Estimate { mean, ..*difference }, one))
}

/// A mean over seeds, each number as `one` writes it; a dash where there is none.
pub(crate) fn of_seeds(estimate: Option<&Estimate>, one: impl Fn(f64) -> String) -> String {
    or_dash(estimate.map(|estimate| spread(estimate, one)))
}

/// How many a run has on the mean, of `count` in so many `runs`.
pub(crate) fn of_each(count: usize, runs: usize) -> String {
    let runs = runs.max(1);
    match count % runs {
        0 => (count / runs).to_string(),
        _ => number(float(count as u64) / float(runs as u64)),
    }
}

fn spread(estimate: &Estimate, one: impl Fn(f64) -> String) -> String {
    // What rounding leaves of values that are alike is no spread.
    match estimate.half_width > estimate.mean.abs() * 1e-9 {
        true => format!("{} ± {}", one(estimate.mean), one(estimate.half_width)),
        false => one(estimate.mean),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_and_a_unit() {
        assert_eq!(rate(1_104_000_000.0), "1.104 Gb/s");
        assert_eq!(size(38_000_000), "38.00 MB");
        assert_eq!(size(1), "1 B");
    }

    #[test]
    fn differences_that_cancel_out_are_no_difference() {
        let told = |mean| {
            let of = Estimate { mean, half_width: 689.9, min: -54.3, max: 54.3 };
            difference(Metric::QueueMean, &of)
        };
        assert_eq!(told(3.64e-12), told(0.0));
        assert!(told(3.64).starts_with("+3.64"), "{}", told(3.64));
    }
}
