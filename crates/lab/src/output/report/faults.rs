//! What each table of faults did, on the page of a run.

use super::page::{Cell, Section, Table, Unit};
use crate::results::{Outcome, Results, RuleResult};

const NOTE: &str = "Packets lost or damaged by each, and the goodput of all flows together: before, over the millisecond before it came into \
                    force; the least over a millisecond; how long it was less than 95 % of that before, and when it was back.";

const COLUMNS: [(&str, Unit); 10] = [
    ("fault", Unit::Text),
    ("what", Unit::Text),
    ("from", Unit::Time),
    ("until", Unit::Time),
    ("lost", Unit::Count),
    ("octets lost", Unit::Bytes),
    ("goodput before", Unit::Rate),
    ("least", Unit::Rate),
    ("below 95 %", Unit::Time),
    ("back after", Unit::Time),
];

/// The tables of `[[faults.on]]` of a run; nothing where there are none.
pub(super) fn of_run(results: &Results) -> Section {
    if results.rules.is_empty() {
        return Section::default();
    }
    let rows = results.rules.iter().map(row).collect();
    let table = Some(Table { columns: COLUMNS.to_vec(), rows });
    Section { title: "Faults", note: NOTE.into(), table, ..Section::default() }
}

fn row(rule: &RuleResult) -> Vec<Cell> {
    let effect = &rule.effect;
    let back = match effect.outcome {
        Outcome::Back(span) => span.as_secs_f64().into(),
        Outcome::Unaffected if rule.lost == 0 => "no traffic affected".into(),
        Outcome::Unaffected => "kept up".into(),
        Outcome::NotReached | Outcome::NotBack => effect.outcome.name().into(),
        Outcome::Unknown => Cell::None,
    };
    vec![
        rule.name.as_str().into(),
        rule.what.as_str().into(),
        rule.from.as_secs_f64().into(),
        rule.until.map(|until| until.as_secs_f64()).into(),
        rule.lost.into(),
        rule.lost_octets.into(),
        effect.before_bps.into(),
        effect.least_bps.into(),
        effect.below.as_secs_f64().into(),
        back,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::test_results::{sample, with_rule};

    #[test]
    fn each_table_of_faults_has_a_row_and_other_runs_have_none() {
        assert!(of_run(&sample()).is_empty());
        let table = of_run(&with_rule()).table.expect("there is one");
        assert_eq!(table.rows[0].len(), table.columns.len());
        assert_eq!(table.rows[0][9], Cell::Number(1e-3));
    }
}
