//! What each table of `[[faults.on]]` did, and for how long the traffic felt it.

use super::series::Series;
use super::{FlowResult, FlowStatus};
use roci_units::{Instant, Span};

/// What one table of `[[faults.on]]` did.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleResult {
    /// The links or switches that it names, as it names them.
    pub name: String,
    /// What befell them, by the keys of the table, such as `down` or `loss, delay`.
    pub what: String,
    /// When it came into force.
    pub from: Instant,
    /// When it ended; `None`: with the run.
    pub until: Option<Instant>,
    /// Packets that it lost or damaged.
    pub lost: u64,
    /// Octets of their frames.
    pub lost_octets: u64,
    /// What became of the goodput of the run.
    pub effect: Effect,
}

/// What became of the goodput of all flows together when a fault came into force.
///
/// *Before* is the mean over the millisecond before that. The fault was felt from the first sample on from which the mean over a
/// millisecond was less than 95 % of it, if one of these lies in the time of the fault; goodput was back with the next from which neither
/// that mean was less, nor what was delivered until the sample behind it. Where fewer flows are under way than before, of as large a part
/// of it; a flow that failed counts as under way. A link or switch that flaps is felt anew each time while it does, and goodput was back
/// with the last return. Where samples lie further apart than a millisecond, all this is over one interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// Goodput before, in bits per second; `None` where that is not known, or nothing moved.
    pub before_bps: Option<f64>,
    /// The least mean over a millisecond that began while the fault was in force, or before goodput was back.
    pub least_bps: Option<f64>,
    /// How long goodput was less than 95 %, in all.
    pub below: Span,
    /// How it ended.
    pub outcome: Outcome,
}

/// How the effect of a fault ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The run was over before it came into force.
    NotReached,
    /// It cannot be told: it was in force from the start, or nothing moved before it, or nothing was sampled.
    Unknown,
    /// Goodput never was less than 95 % of what it had been.
    Unaffected,
    /// It was, and was back so long after the fault had come into force.
    Back(Span),
    /// It was, to the end of the run.
    NotBack,
}

impl Outcome {
    /// Its name in `summary.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotReached => "not reached",
            Self::Unknown => "unknown",
            Self::Unaffected => "unaffected",
            Self::Back(_) => "back",
            Self::NotBack => "not back",
        }
    }
}

/// What is left of goodput when nobody is affected, in hundredths.
const KEPT: f64 = 0.95;
/// What goodput is averaged over.
const WINDOW: Span = Span::from_millis(1);

/// Goodput and flows of a run, to be asked for what befell them.
#[derive(Debug)]
pub struct Goodput<'a> {
    series: &'a Series,
    end: Instant,
    /// When flows began and when they were over, each in the order of time, with the sum of all before.
    starts: Vec<(f64, f64)>,
    ends: Vec<(f64, f64)>,
}

impl<'a> Goodput<'a> {
    /// Of a run that ended at `end`.
    pub fn new(series: &'a Series, flows: &[FlowResult], end: Instant) -> Self {
        let summed = |mut times: Vec<f64>| {
            times.sort_by(f64::total_cmp);
            let mut sum = 0.0;
            let with_sum = |time: f64| {
                let before = sum;
                sum += time;
                (time, before)
            };
            times.into_iter().map(with_sum).collect()
        };
        let over = flows.iter().filter(|flow| flow.status == FlowStatus::OK);
        Self {
            series,
            end,
            starts: summed(flows.iter().map(|flow| flow.start.as_secs_f64()).collect()),
            ends: summed(over.map(|flow| flow.end.as_secs_f64()).collect()),
        }
    }

    /// What became of it when a fault was in force from `from` until `until`. Of one that `recurs` the last return counts.
    pub fn effect(&self, from: Instant, until: Option<Instant>, recurs: bool) -> Effect {
        let unknown =
            Effect { before_bps: None, least_bps: None, below: Span::ZERO, outcome: Outcome::Unknown };
        if from >= self.end {
            return Effect { outcome: Outcome::NotReached, ..unknown };
        }
        let Some(window) = self.series.interval().map(|interval| interval.max(WINDOW)) else {
            return unknown;
        };
        let began = Instant::ZERO + from.since(Instant::ZERO).saturating_sub(window);
        let Some(before_bps) = self.mean(began, from).filter(|before| *before > 0.0) else { return unknown };
        let flows = self.under_way(began, from);
        let until = until.map_or(self.end, |until| until.min(self.end));
        let mut effect = Effect { before_bps: Some(before_bps), outcome: Outcome::Unaffected, ..unknown };
        let times = self.series.times();
        let mut next = times.partition_point(|time| *time <= from);
        let mut at = from;
        while let Some(&sample) = times.get(next) {
            let in_force = at < until;
            if !in_force && effect.outcome != Outcome::NotBack {
                break;
            }
            let end = (at + window).min(self.end);
            let (Some(mean), Some(soon)) = (self.mean(at, end), self.mean(at, sample)) else { break };
            let enough = |end| KEPT * before_bps * (self.under_way(at, end) / flows).min(1.0);
            let is_low = mean < enough(end);
            effect.least_bps = Some(effect.least_bps.map_or(mean, |least| least.min(mean)));
            if is_low {
                effect.below += sample.since(at);
            }
            match effect.outcome {
                Outcome::Back(_) if is_low && recurs => effect.outcome = Outcome::NotBack,
                Outcome::Unaffected if is_low => effect.outcome = Outcome::NotBack,
                Outcome::NotBack if !is_low && soon >= enough(sample) => {
                    effect.outcome = Outcome::Back(at.since(from));
                }
                _ => {}
            }
            (at, next) = (sample, next + 1);
        }
        effect
    }

    /// The goodput between two instants; `None` where no time lies between them.
    fn mean(&self, from: Instant, to: Instant) -> Option<f64> {
        let octets = self.series.delivered_by(to)? - self.series.delivered_by(from)?;
        (from < to).then(|| octets * 8.0 / to.since(from).as_secs_f64())
    }

    /// How many flows were under way between two instants, on average.
    fn under_way(&self, from: Instant, to: Instant) -> f64 {
        // The seconds that all flows together were under way by then.
        let by = |times: &[(f64, f64)], at: f64| match times.partition_point(|(time, _)| *time < at) {
            0 => 0.0,
            #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 flows")]
            count => count as f64 * at - (times[count - 1].0 + times[count - 1].1),
        };
        let lived = |at: f64| by(&self.starts, at) - by(&self.ends, at);
        let [from, to] = [from, to].map(Instant::as_secs_f64);
        (lived(to) - lived(from)) / (to - from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::test_results::sample;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Span::from_micros(micros)
    }

    /// Samples of 100 µs, each with the goodput until then in Gb/s.
    fn series(gbps: impl IntoIterator<Item = u64>) -> Series {
        let step = Span::from_micros(100);
        let mut series = Series::new(step, Vec::new());
        let mut octets = 0;
        for (n, gbps) in (1u64..).zip(gbps) {
            series.begin(Instant::ZERO + step * n);
            octets += gbps * 12_500;
            series.delivered(octets);
        }
        series
    }

    /// Flows that begin at 0 and are under way until then; `None`: to the end.
    fn flows(ends: &[Option<u64>]) -> Vec<FlowResult> {
        let flow = |end: &Option<u64>| FlowResult {
            start: Instant::ZERO,
            end: end.map_or(Instant::NEVER, at),
            status: if end.is_some() { FlowStatus::OK } else { FlowStatus::Running },
            ..sample().flows[0].clone()
        };
        ends.iter().map(flow).collect()
    }

    fn effect(series: &Series, flows: &[FlowResult], from: u64, until: Option<u64>) -> Effect {
        let end = *series.times().last().unwrap();
        Goodput::new(series, flows, end).effect(at(from), until.map(at), false)
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small made-up numbers")]
    fn in_gbps(bps: Option<f64>) -> Option<u64> {
        bps.map(|bps| (bps / 1e9).round() as u64)
    }

    #[test]
    fn goodput_is_back_when_it_is_what_it_was_in_the_millisecond_before() {
        // Ten at 40 Gb/s, of which the first of them is from before; nothing for 500 us; half for 500 us; all.
        let gbps = |n: u64| match n {
            0 => 90,
            1..=20 => 40,
            21..=25 => 0,
            26..=30 => 20,
            _ => 40,
        };
        let series = series((0..60).map(gbps));
        let flows = flows(&[None; 4]);
        let told = effect(&series, &flows, 2_100, Some(2_600));
        assert_eq!(in_gbps(told.before_bps), Some(40));
        assert_eq!(told.outcome, Outcome::Back(Span::from_millis(1)));
        assert_eq!((in_gbps(told.least_bps), told.below), (Some(10), Span::from_micros(900)));
        // Nothing befell what was over before, or began later.
        let calm = effect(&series, &flows, 3_500, Some(5_000));
        assert_eq!((calm.outcome, calm.below), (Outcome::Unaffected, Span::ZERO));
    }

    #[test]
    fn what_is_made_up_for_later_does_not_count_as_back_before() {
        let gbps = |n: u64| match n {
            20..30 => 0,
            30..40 => 80,
            _ => 40,
        };
        let series = series((0..60).map(gbps));
        // From 2.5 ms on the mean over a millisecond is that of before, and nothing moves yet.
        let told = effect(&series, &flows(&[None]), 2_000, Some(2_500));
        assert_eq!(told.outcome, Outcome::Back(Span::from_millis(1)));
    }

    #[test]
    fn where_a_link_flaps_the_last_return_counts() {
        // Down from 2.0 to 2.5 ms and from 4.5 to 5.0 ms, in force until 6 ms.
        let series =
            series((0..90).map(|n| if (20..25).contains(&n) || (45..50).contains(&n) { 0 } else { 40 }));
        let flows = flows(&[None]);
        let back = |recurs| {
            let goodput = Goodput::new(&series, &flows, at(9_000));
            goodput.effect(at(2_000), Some(at(6_000)), recurs).outcome
        };
        assert_eq!(back(true), Outcome::Back(Span::from_millis(3)));
        assert_eq!(back(false), Outcome::Back(Span::from_micros(500)));
    }

    #[test]
    fn flows_that_are_done_are_not_waited_for_and_those_that_failed_are() {
        // Two of four flows are over after 3 ms, and then there is half of the goodput.
        let series = series((0..60).map(|n| if n < 30 { 40 } else { 20 }));
        let mut flows = flows(&[None, None, Some(3_000), Some(3_000)]);
        assert_eq!(effect(&series, &flows, 2_000, None).outcome, Outcome::Unaffected);
        flows[3].status = FlowStatus::Completed(roci_transport::Status::TransportRetryCounterExceeded);
        let told = effect(&series, &flows, 2_000, None);
        assert_eq!((told.outcome, in_gbps(told.least_bps)), (Outcome::NotBack, Some(20)));
    }

    #[test]
    fn nothing_is_said_of_faults_from_the_start_on_or_behind_the_end_or_without_samples() {
        let sampled = series([40; 60]);
        let flows = flows(&[None]);
        assert_eq!(effect(&sampled, &flows, 0, None).outcome, Outcome::Unknown);
        assert_eq!(effect(&sampled, &flows, 6_000, None).outcome, Outcome::NotReached);
        assert_eq!(effect(&series([0; 60]), &flows, 2_000, None).outcome, Outcome::Unknown);
        let none = Goodput::new(&Series::default(), &flows, at(5_000)).effect(at(2_000), None, false);
        assert_eq!(none.outcome, Outcome::Unknown);
    }

    #[test]
    fn halved_samples_keep_what_was_delivered() {
        let mut halved = series([40; 61]);
        halved.halve();
        assert_eq!(halved.delivered_by(at(1_000)), Some(5_000_000.0));
        assert_eq!(halved.delivered_by(at(1_050)), Some(5_250_000.0), "between two samples in proportion");
        assert_eq!(halved.delivered_by(at(6_100)), Some(30_500_000.0), "the last one stays");
        assert_eq!(halved.delivered_by(at(9_000)), Some(30_500_000.0));
    }
}
