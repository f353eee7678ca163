//! Numbers for people: four digits and a unit.

use roci_lab::batch::Metric;
use roci_lab::figures::statistics::Estimate;

/// A count as a number to divide; a table shows fewer digits than it holds.
#[expect(clippy::cast_precision_loss, reason = "a table shows fewer digits than f64 holds")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

/// `value` with about four digits.
pub(crate) fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size == 0.0 || size >= 999.95 => 0,
        size if size >= 99.995 => 1,
        size if size >= 9.9995 => 2,
        size if size >= 0.1 => 3,
        _ => return format!("{value:.2e}"),
    };
    format!("{value:.decimals$}")
}

/// `value` in the largest of `units` that leaves at least one before the point.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let fits = |(size, _): &&(f64, &str)| value.abs() >= *size * 0.99995;
    match units.iter().find(fits).or(units.last()) {
        Some((size, unit)) if value != 0.0 => format!("{} {unit}", number(value / size)),
        _ => "0".to_owned(),
    }
}

/// Seconds.
pub(crate) fn time(seconds: f64) -> String {
    scaled(seconds, &[(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")])
}

/// Bits per second.
pub(crate) fn rate(bps: f64) -> String {
    scaled(bps, &[(1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "Kb/s"), (1.0, "b/s")])
}

/// Octets.
pub(crate) fn size(octets: u64) -> String {
    if octets < 1_000 {
        return format!("{octets} B");
    }
    octets_of(float(octets))
}

/// Octets that may be a mean.
fn octets_of(value: f64) -> String {
    scaled(value, &[(1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1.0, "B")])
}

/// A value that may be missing.
pub(crate) fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}

/// A mean, and half the width of its confidence interval where there are several values.
pub(crate) fn estimate(metric: Metric, estimate: &Estimate) -> String {
    let one = |value: f64| match metric {
        Metric::MeanCompletion | Metric::P99Completion | Metric::Paused => time(value),
        Metric::Offered | Metric::Goodput => rate(value),
        Metric::Buffered => octets_of(value),
        Metric::MeanSlowdown | Metric::P99Slowdown | Metric::Fairness => number(value),
        Metric::Completed
        | Metric::Drops
        | Metric::Lost
        | Metric::Marks
        | Metric::Pauses
        | Metric::Timeouts => match value.fract() == 0.0 {
            true => format!("{value:.0}"),
            false => number(value),
        },
    };
    match estimate.half_width > 0.0 {
        true => format!("{} ± {}", one(estimate.mean), one(estimate.half_width)),
        false => one(estimate.mean),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_and_a_unit() {
        assert_eq!(time(0.283_41), "283.4 ms");
        assert_eq!(time(0.999_99), "1.000 s");
        assert_eq!(time(0.0), "0");
        assert_eq!(rate(1_104_000_000.0), "1.104 Gb/s");
        assert_eq!(size(38_000_000), "38.00 MB");
        assert_eq!(size(1), "1 B");
        assert_eq!(number(12_345.6), "12346");
    }
}
