//! The statistics by which figures are judged.

/// A mean over runs with different seeds, and how far it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The arithmetic mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval (Student's t); zero for a single run.
    pub half_width: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

impl Estimate {
    /// The estimate from `values`, one per run; `None` where there are none, or one is not a number.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mean = mean(values)?;
        if !mean.is_finite() {
            return None;
        }
        let n = values.len();
        let half_width = match n {
            1 => 0.0,
            _ => student_t_95(n - 1) * sample_deviation(values, mean) / count(n).sqrt(),
        };
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self { mean, half_width, min, max })
    }
}

/// The arithmetic mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count(values.len()))
}

/// Each of `a` over its like in `b`, seed by seed.
pub(super) fn ratios(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a / b).collect()
}

/// The middle value, or the mean of the two in the middle; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n.is_multiple_of(2) => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
        _ => Some(sorted[middle]),
    }
}

/// Standard deviation (of the population) over mean; `None` of nothing, or where the mean is zero.
pub fn coefficient_of_variation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count(values.len());
    (mean != 0.0).then(|| variance.sqrt() / mean)
}

/// Pearson's correlation of pairs; `None` for fewer than two, or where one side never changes.
pub fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let sums = Sums::of(pairs)?;
    let scale = (sums.xx * sums.yy).sqrt();
    (scale > 0.0).then(|| sums.xy / scale)
}

/// A straight line through points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// How much y changes for each x.
    pub slope: f64,
    /// y where x is zero.
    pub intercept: f64,
    /// The share of y's variance that the line explains, 0 to 1.
    pub r_squared: f64,
}

/// The line of least squares; `None` for fewer than three points, or where x or y never changes.
pub fn regression(points: &[(f64, f64)]) -> Option<Line> {
    let sums = Sums::of(points)?;
    if points.len() < 3 || sums.xx == 0.0 || sums.yy == 0.0 {
        return None;
    }
    let slope = sums.xy / sums.xx;
    Some(Line {
        slope,
        intercept: sums.mean_y - slope * sums.mean_x,
        r_squared: sums.xy * sums.xy / (sums.xx * sums.yy),
    })
}

/// The greatest distance between the distributions of two samples (Kolmogorov and Smirnov); `None` where one is empty.
pub fn kolmogorov_smirnov(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let sorted = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values
    };
    let (a, b) = (sorted(a), sorted(b));
    let share =
        |values: &[f64], x: f64| count(values.partition_point(|value| *value <= x)) / count(values.len());
    let at = |x: &f64| (share(&a, *x) - share(&b, *x)).abs();
    Some(a.iter().chain(&b).map(at).fold(0.0, f64::max))
}

/// The distance of the distributions of all values of the runs `a` and of the runs `b`, over the one that chance exceeds once in a hundred
/// times: so above 1 they are most likely of different ones. `None` where one is empty.
///
/// Chance is among values, as if they were independent: Smirnov's limit, `√(−½·ln(α/2))·√((m + n)/(m·n))`. And it is among runs, where flows
/// share a queue and depend on one another: what is found by dealing whole runs to the two sides in every way (a permutation test by
/// clusters), if there are a hundred ways or more. It is the larger of the two.
pub fn distance_over_chance(a: &[Vec<f64>], b: &[Vec<f64>]) -> Option<f64> {
    let distance = kolmogorov_smirnov(&a.concat(), &b.concat())?;
    let [m, n] = [a, b].map(|runs| count(runs.iter().map(Vec::len).sum()));
    let among_values = (-0.5 * (0.01_f64 / 2.0).ln()).sqrt() * ((m + n) / (m * n)).sqrt();
    let runs: Vec<&[f64]> = a.iter().chain(b).map(Vec::as_slice).collect();
    let of_way = |way: u32| {
        let side = |first: bool| -> Vec<f64> {
            let dealt = runs.iter().enumerate().filter(|(place, _)| (way >> place & 1 == 1) == first);
            dealt.flat_map(|(_, run)| *run).copied().collect()
        };
        kolmogorov_smirnov(&side(true), &side(false))
    };
    let mut dealt: Vec<f64> = subsets(runs.len(), a.len()).into_iter().filter_map(of_way).collect();
    dealt.sort_by(f64::total_cmp);
    let among_runs = if dealt.len() < 100 { 0.0 } else { dealt[(dealt.len() * 99).div_ceil(100) - 1] };
    Some(distance / among_values.max(among_runs))
}

/// Each way to take `some` of `all` things, as a bit for each; none where there are more than 20.
fn subsets(all: usize, some: usize) -> Vec<u32> {
    if all > 20 {
        return Vec::new();
    }
    (0..1 << all).filter(|way: &u32| way.count_ones() as usize == some).collect()
}

/// Sums of squares and products about the means.
struct Sums {
    mean_x: f64,
    mean_y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Sums {
    fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        if pairs.len() < 2 {
            return None;
        }
        let n = count(pairs.len());
        let mean_x = pairs.iter().map(|pair| pair.0).sum::<f64>() / n;
        let mean_y = pairs.iter().map(|pair| pair.1).sum::<f64>() / n;
        let mut sums = Self { mean_x, mean_y, xx: 0.0, yy: 0.0, xy: 0.0 };
        for (x, y) in pairs {
            let (dx, dy) = (x - mean_x, y - mean_y);
            sums.xx += dx * dx;
            sums.yy += dy * dy;
            sums.xy += dx * dy;
        }
        Some(sums)
    }
}

/// The standard deviation of a sample, with Bessel's correction.
fn sample_deviation(values: &[f64], mean: f64) -> f64 {
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (squares / count(values.len() - 1)).sqrt()
}

/// The 97.5 % quantile of Student's t with `freedom` degrees of freedom, at least one.
///
/// Beyond the table it is the expansion about the normal quantile z, z + (z³ + z) / 4ν + (5z⁵ + 16z³ + 3z) / 96ν², good
/// to four digits there.
fn student_t_95(freedom: usize) -> f64 {
    const TABLE: [f64; 20] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    ];
    const Z: f64 = 1.959_964;
    match TABLE.get(freedom.saturating_sub(1)) {
        Some(t) => *t,
        None => {
            let freedom = count(freedom);
            let second = 5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z;
            Z + (Z.powi(3) + Z) / (4.0 * freedom) + second / (96.0 * freedom * freedom)
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2⁵³")]
pub(super) fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn five_seeds_have_four_degrees_of_freedom() {
        // Deviations −2 … 2: variance 10/4, so the error of the mean is √(2.5/5) = 0.7071.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!(close(estimate.mean, 3.0));
        assert!(close(estimate.half_width, 2.776 * 0.5f64.sqrt()));
        assert_eq!((estimate.min, estimate.max), (1.0, 5.0));
        assert_eq!(Estimate::of(&[7.0]).unwrap().half_width, 0.0);
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn students_t_joins_its_expansion_without_a_step() {
        assert_eq!(student_t_95(1), 12.706);
        assert_eq!(student_t_95(20), 2.086);
        assert!((student_t_95(21) - 2.080).abs() < 1e-3);
        assert!((student_t_95(1_000_000) - 1.960).abs() < 1e-3);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(median(&[5.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn on_and_off_half_of_the_time_varies_by_its_mean() {
        assert!(close(coefficient_of_variation(&[0.0, 10.0, 0.0, 10.0]).unwrap(), 1.0));
        assert!(close(coefficient_of_variation(&[3.0, 3.0]).unwrap(), 0.0));
        assert_eq!(coefficient_of_variation(&[0.0, 0.0]), None);
    }

    #[test]
    fn correlation_and_regression_agree_with_a_hand_calculation() {
        // x̄ = 2.5, ȳ = 4; Σdx² = 5, Σdy² = 24, Σdxdy = 8.
        let points = [(1.0, 2.0), (2.0, 4.0), (3.0, 2.0), (4.0, 8.0)];
        let line = regression(&points).unwrap();
        assert!(close(line.slope, 1.6) && close(line.intercept, 0.0));
        assert!(close(line.r_squared, 8.0 * 8.0 / (5.0 * 24.0)));
        assert!(close(correlation(&points).unwrap(), 8.0 / 120.0f64.sqrt()));
    }

    #[test]
    fn what_never_changes_has_no_correlation() {
        assert_eq!(correlation(&[(1.0, 1.0), (2.0, 1.0)]), None);
        assert_eq!(regression(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(regression(&[(1.0, 1.0), (2.0, 2.0)]), None);
    }

    #[test]
    fn the_distance_of_two_samples_is_that_of_their_distributions() {
        assert_eq!(kolmogorov_smirnov(&[1.0, 2.0], &[1.0, 2.0]), Some(0.0));
        assert_eq!(kolmogorov_smirnov(&[1.0, 2.0], &[3.0, 4.0]), Some(1.0));
        // At 2 the shares are 2/4 and 0/2.
        assert_eq!(kolmogorov_smirnov(&[1.0, 2.0, 3.0, 4.0], &[2.5, 3.5]), Some(0.5));
        assert_eq!(kolmogorov_smirnov(&[], &[1.0]), None);
    }

    /// Values spread evenly, one more than the last, from `from` on.
    fn values(from: i32) -> Vec<f64> {
        (0..100).map(|n| f64::from(n + from)).collect()
    }

    #[test]
    fn two_runs_of_a_hundred_values_are_told_apart_from_a_distance_of_0_23_on() {
        let distance = |shift| distance_over_chance(&[values(0)], &[values(shift)]).unwrap();
        // 1.6276·√(2/100), as tables have it for 1 %.
        assert!((distance(23) - 0.23 / 0.230_18).abs() < 1e-4 && distance(24) > 1.0, "{}", distance(23));
        assert_eq!(distance_over_chance(&[], &[values(0)]), None);
    }

    #[test]
    fn runs_that_differ_among_themselves_are_told_apart_only_by_what_the_two_sides_differ_in() {
        let runs = |shifts: [i32; 5]| shifts.map(values).to_vec();
        // As if values were independent these would be far apart; but each side has runs like the other's.
        let [one, other] = [[0, 40, 80, 120, 160], [20, 60, 100, 140, 300]].map(runs);
        let mixed = distance_over_chance(&one, &other).unwrap();
        assert!(mixed < 1.0, "{mixed}");
        let independent = distance_over_chance(&[one.concat()], &[other.concat()]).unwrap();
        assert!(independent > 1.0, "{independent}");
        // Every run of one side beyond every run of the other.
        let apart = distance_over_chance(&runs([0, 1, 2, 3, 4]), &runs([60, 61, 62, 63, 64])).unwrap();
        assert!(apart > 1.0, "{apart}");
    }
}
