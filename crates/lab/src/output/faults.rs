//! What `summary.json` says of faults: what they did in sum, and what each table of `[[faults.on]]` did.

use crate::results::{FaultResult, Outcome, RuleResult};
use serde::Serialize;

/// `faults`.
#[derive(Serialize)]
pub(super) struct FaultRecord {
    dropped: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped_in_switches: Option<u64>,
    corrupted: u64,
    duplicated: u64,
    reordered: u64,
    forged_cnps: u64,
}

impl FaultRecord {
    pub(super) const fn new(faults: FaultResult) -> Self {
        let FaultResult { dropped, dropped_in_switches, corrupted, duplicated, reordered, forged_cnps } =
            faults;
        let dropped_in_switches = if dropped_in_switches > 0 { Some(dropped_in_switches) } else { None };
        Self { dropped, dropped_in_switches, corrupted, duplicated, reordered, forged_cnps }
    }
}

/// One of `faults_on`.
#[derive(Serialize)]
pub(super) struct RuleRecord<'a> {
    name: &'a str,
    what: &'a str,
    from_s: f64,
    until_s: Option<f64>,
    lost: u64,
    lost_bytes: u64,
    traffic: &'static str,
    goodput_before_bps: Option<f64>,
    goodput_least_bps: Option<f64>,
    below_s: f64,
    back_after_s: Option<f64>,
}

impl<'a> RuleRecord<'a> {
    pub(super) fn new(rule: &'a RuleResult) -> Self {
        let effect = &rule.effect;
        let back = if let Outcome::Back(span) = effect.outcome { Some(span) } else { None };
        Self {
            name: &rule.name,
            what: &rule.what,
            from_s: rule.from.as_secs_f64(),
            until_s: rule.until.map(|until| until.as_secs_f64()),
            lost: rule.lost,
            lost_bytes: rule.lost_octets,
            traffic: effect.outcome.name(),
            goodput_before_bps: effect.before_bps,
            goodput_least_bps: effect.least_bps,
            below_s: effect.below.as_secs_f64(),
            back_after_s: back.map(|span| span.as_secs_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::test_results::with_rule;

    #[test]
    fn a_table_of_faults_is_told_with_its_losses_and_how_long_goodput_was_hurt() {
        let record = serde_json::to_value(RuleRecord::new(&with_rule().rules[0])).expect("it is plain");
        let expected = serde_json::json!({
            "name": "leaf2-root", "what": "down", "from_s": 2e-3, "until_s": 6e-3, "lost": 12, "lost_bytes": 12_480,
            "traffic": "back", "goodput_before_bps": 8e9, "goodput_least_bps": 1e9, "below_s": 9e-4, "back_after_s": 1e-3,
        });
        assert_eq!(record, expected);
    }
}
