//! Numbers for people: four digits and a unit.

/// `value` with about four digits.
pub fn number(value: f64) -> String {
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
pub fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let fits = |(size, _): &&(f64, &str)| value.abs() >= *size * 0.99995;
    match units.iter().find(fits).or(units.last()) {
        Some((size, unit)) if value != 0.0 => format!("{} {unit}", number(value / size)),
        _ => "0".to_owned(),
    }
}

/// A count as a number to compute with. It is exact below 2⁵³, and a figure, a table or a plot shows fewer digits than that.
#[expect(clippy::cast_precision_loss, reason = "counts are below 2^53, or shown with fewer digits")]
pub const fn float(count: u64) -> f64 {
    count as f64
}

/// Seconds.
pub fn time(seconds: f64) -> String {
    scaled(seconds, &[(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_and_a_unit() {
        assert_eq!(time(0.283_41), "283.4 ms");
        assert_eq!(time(0.999_99), "1.000 s");
        assert_eq!(time(0.0), "0");
        assert_eq!(number(12_345.6), "12346");
    }
}
