//! How far ours lies from what a paper prints.

/// How far `ours` lies from the value that a paper prints as `paper`, in percent of that; from the nearer end of a range,
/// and zero within it. `None` where the paper prints words, or zero and ours is not.
pub fn of(paper: &str, ours: f64) -> Option<f64> {
    let (least, most) = printed(paper)?;
    let nearest = ours.clamp(least, most);
    match ours - nearest {
        0.0 => Some(0.0),
        off if nearest != 0.0 => Some(100.0 * off / nearest.abs()),
        _ => None,
    }
}

/// A deviation for a table: with its sign, and no more digits than it deserves.
pub fn shown(percent: Option<f64>) -> String {
    match percent {
        None => "–".to_owned(),
        Some(0.0) => "0 %".to_owned(),
        Some(percent) if percent.abs() < 0.05 => "< 0.1 %".to_owned(),
        Some(percent) if percent.abs() < 9.95 => format!("{percent:+.1} %"),
        Some(percent) => format!("{percent:+.0} %"),
    }
}

/// The ends of what a paper prints: `2.46`, `10,000`, `1.1 to 1.5` or `1.9–2.2`.
fn printed(text: &str) -> Option<(f64, f64)> {
    let number = |text: &str| {
        let plain = text.trim().replace(',', "");
        // What parses but is no number, such as "nan", is a word.
        plain.starts_with(|c: char| c.is_ascii_digit()).then(|| plain.parse().ok()).flatten()
    };
    match text.split_once(" to ").or_else(|| text.split_once('–')) {
        Some((least, most)) => {
            let (least, most) = (number(least)?, number(most)?);
            (least <= most).then_some((least, most))
        }
        None => number(text).map(|value| (value, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deviation_is_from_the_value_or_from_the_nearer_end_of_a_range() {
        for (paper, ours, percent) in [
            ("2", 2.5, Some(25.0)),
            ("2", 1.5, Some(-25.0)),
            ("10,000", 12_500.0, Some(25.0)),
            ("1 to 4", 5.0, Some(25.0)),
            ("1.1 to 1.5", 1.3, Some(0.0)),
            ("2–4", 1.0, Some(-50.0)),
            ("0", 0.0, Some(0.0)),
            ("0", 3.0, None),
            ("at most 50", 20.0, None),
            ("–", 1.0, None),
            ("", 1.0, None),
            ("nan", 1.0, None),
        ] {
            assert_eq!(of(paper, ours), percent, "{paper} and {ours}");
        }
    }

    #[test]
    fn a_deviation_has_a_sign_and_few_digits() {
        for (percent, text) in [
            (None, "–"),
            (Some(0.0), "0 %"),
            (Some(-0.04), "< 0.1 %"),
            (Some(-1.26), "-1.3 %"),
            (Some(9.96), "+10 %"),
            (Some(152.3), "+152 %"),
        ] {
            assert_eq!(shown(percent), text);
        }
    }
}
