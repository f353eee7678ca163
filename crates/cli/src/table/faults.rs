//! What is printed of faults: what they did in sum, what each table of them did, and what switches lost.

use super::{MANY_SWITCHES, lines, table};
use crate::format::{or_dash, rate, size, time};
use roci_lab::results::{FaultResult, Outcome, Results, RuleResult, SwitchResult};

/// All of it; nothing where there were no faults and switches lost nothing but what the table of them tells.
pub(super) fn tables(results: &Results) -> String {
    let mut text = in_switches(results);
    if let Some(faults) = results.faults {
        text += &format!("\n  faults: {}\n", counts(&faults));
    }
    if !results.rules.is_empty() {
        let mut rules = table(&[
            "fault",
            "what",
            "from",
            "until",
            "lost",
            "octets",
            "goodput before",
            "least",
            "below 95 %",
            "back after",
        ]);
        results.rules.iter().for_each(|rule| {
            rules.add_row(row(rule));
        });
        text += &format!("\n{}", lines(&rules));
    }
    text
}

fn row(rule: &RuleResult) -> [String; 10] {
    let effect = &rule.effect;
    let back = match effect.outcome {
        Outcome::NotReached => "not reached".to_owned(),
        Outcome::Unknown => "-".to_owned(),
        Outcome::Unaffected => "no traffic affected".to_owned(),
        Outcome::Back(span) => time(span.as_secs_f64()),
        Outcome::NotBack => "not back".to_owned(),
    };
    let below = matches!(effect.outcome, Outcome::Back(_) | Outcome::NotBack);
    [
        rule.name.clone(),
        rule.what.clone(),
        time(rule.from.as_secs_f64()),
        or_dash(rule.until.map(|until| time(until.as_secs_f64()))),
        rule.lost.to_string(),
        size(rule.lost_octets),
        or_dash(effect.before_bps.map(rate)),
        or_dash(effect.least_bps.map(rate)),
        or_dash(below.then(|| time(effect.below.as_secs_f64()))),
        if rule.lost > 0 && effect.outcome == Outcome::Unaffected { "kept up".to_owned() } else { back },
    ]
}

/// What faults did, such as `12 packets dropped, 3 corrupted, 0 duplicated`.
fn counts(faults: &FaultResult) -> String {
    let FaultResult { dropped, dropped_in_switches, corrupted, duplicated, reordered, forged_cnps } = *faults;
    let mut text = format!("{dropped} packets dropped");
    if dropped_in_switches > 0 {
        text.push_str(&format!(" ({dropped_in_switches} of them in switches)"));
    }
    text.push_str(&format!(", {corrupted} corrupted, {duplicated} duplicated"));
    for (count, what) in [(reordered, "reordered"), (forged_cnps, "CNPs forged")] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text
}

/// Which switches lost packets, and why, where their table does not tell that.
fn in_switches(results: &Results) -> String {
    /// As many are told one by one.
    const TOLD: usize = 6;
    let summed_up = results.switches.len() > MANY_SWITCHES;
    let lost = |switch: &SwitchResult| switch.drops + switch.lost_as_it_failed + switch.lost_without_way;
    let tells = |switch: &&SwitchResult| {
        lost(switch) > switch.drops || switch.drops_behind_pause > 0 || (summed_up && switch.drops > 0)
    };
    let mut switches: Vec<&SwitchResult> = results.switches.iter().filter(tells).collect();
    switches.sort_by_key(|switch| std::cmp::Reverse(lost(switch)));
    let reasons = |switch: &&SwitchResult| {
        let no_room = match switch.drops_behind_pause {
            0 => "for want of room".to_owned(),
            late if late == switch.drops => "for want of room behind PAUSE".to_owned(),
            late => format!("for want of room, {late} of them behind PAUSE"),
        };
        let reasons = [
            (switch.drops, no_room.as_str()),
            (switch.lost_as_it_failed, "as it failed"),
            (switch.lost_without_way, "without a way on"),
        ];
        let reasons = reasons.iter().filter(|(count, _)| *count > 0);
        let reasons: Vec<String> = reasons.map(|(count, why)| format!("{count} {why}")).collect();
        format!("{} {}", switch.name, reasons.join(", "))
    };
    let told: Vec<String> = switches.iter().take(TOLD).map(reasons).collect();
    let more = match switches.len().saturating_sub(TOLD) {
        0 => String::new(),
        more => format!("; {more} more in summary.json"),
    };
    if told.is_empty() { String::new() } else { format!("\n  switches lost: {}{more}\n", told.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::results;
    use super::*;
    use roci_lab::results::Effect;
    use roci_units::{Instant, Span};

    fn rule(lost: u64, outcome: Outcome) -> RuleResult {
        RuleResult {
            name: "leaf0-spine1".to_owned(),
            what: "down".to_owned(),
            from: Instant::ZERO + Span::from_millis(2),
            until: None,
            lost,
            lost_octets: lost * 1_000,
            effect: Effect {
                before_bps: Some(40e9),
                least_bps: Some(10e9),
                below: Span::from_micros(900),
                outcome,
            },
        }
    }

    #[test]
    fn each_table_of_faults_has_a_line_with_what_it_took_and_how_long_goodput_was_hurt() {
        let mut one = results(2);
        assert_eq!(tables(&one), "");
        let outcomes = [Outcome::Back(Span::from_millis(1)), Outcome::NotBack, Outcome::Unaffected];
        one.rules = outcomes.map(|outcome| rule(7, outcome)).to_vec();
        one.rules.push(rule(0, Outcome::Unaffected));
        let text = tables(&one);
        let ends: Vec<&str> = text.lines().filter(|line| line.contains("spine1")).collect();
        let told =
            ["900.0 us    1.000 ms", "900.0 us    not back", "-     kept up", "-  no traffic affected"];
        for (line, told) in ends.iter().zip(told) {
            let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(squeezed(line).ends_with(&squeezed(told)), "{text}");
            assert!(squeezed(line).contains("down 2.000 ms - "), "{text}");
        }
        assert_eq!(ends.len(), 4);
    }

    #[test]
    fn switches_that_lost_packets_are_told_with_the_reasons_the_worst_first() {
        let switch = |name: &str| SwitchResult { name: name.to_owned(), ..SwitchResult::default() };
        let mut one = results(2);
        one.switches = ["leaf0", "spine1", "s2"].map(switch).to_vec();
        one.switches[2].drops = 90;
        assert_eq!(tables(&one), "", "drops alone are in the table of switches");
        one.switches[0].lost_without_way = 3;
        one.switches[1].lost_as_it_failed = 12;
        (one.switches[2].drops, one.switches[2].drops_behind_pause) = (5, 2);
        let told = "\n  switches lost: spine1 12 as it failed; s2 5 for want of room, 2 of them behind PAUSE; leaf0 3 without a way on\n";
        assert_eq!(tables(&one), told);
        one.switches.extend((0..20).map(|n| SwitchResult { drops: 1, ..switch(&format!("x{n}")) }));
        assert!(tables(&one).ends_with("; 17 more in summary.json\n"), "{}", tables(&one));
    }
}
