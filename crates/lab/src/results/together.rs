//! What flows got while all of them sent: their means over whole lives hide who was favoured, for those who are left at the
//! end have the network to themselves.

use super::{FlowSample, Results};
use roci_units::Instant;

/// The time during which all flows sent, and what each of them got.
#[derive(Clone, Debug, PartialEq)]
pub struct Together {
    /// When the last flow began.
    pub from: Instant,
    /// When the first one ended, or the run.
    pub until: Instant,
    /// The goodput of each flow meanwhile, in b/s.
    pub goodput_bps: Vec<f64>,
}

impl Results {
    /// What the flows got while all of them sent, by the time series; `None` for a single flow, where they never all did,
    /// or where fewer than two samples were taken meanwhile.
    pub fn together(&self) -> Option<Together> {
        let from = self.flows.iter().map(|flow| flow.start).max()?;
        let until = self.flows.iter().map(|flow| flow.end).min()?.min(self.simulated);
        if self.flows.len() < 2 || until <= from {
            return None;
        }
        let (begin, end) = (from.as_secs_f64(), until.as_secs_f64());
        let mut goodput_bps = Vec::with_capacity(self.flows.len());
        for (place, flow) in (0u32..).zip(&self.flows) {
            let readings: Vec<(f64, FlowSample)> =
                self.series.flow_readings(place).map(|(at, reading)| (at.as_secs_f64(), reading)).collect();
            if readings.iter().filter(|(at, _)| (begin..=end).contains(at)).count() < 2 {
                return None;
            }
            let octets = |at| {
                count_at(&readings, flow.start.as_secs_f64(), at, |reading: &FlowSample| reading.payload)
            };
            goodput_bps.push((octets(end) - octets(begin)) * 8.0 / (end - begin));
        }
        Some(Together { from, until, goodput_bps })
    }
}

/// A counter that was zero at `start`, at `at`: on a straight line between two readings, in seconds.
pub(crate) fn count_at(
    readings: &[(f64, FlowSample)],
    start: f64,
    at: f64,
    counter: impl Fn(&FlowSample) -> u64,
) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2⁵³")]
    let point = |index: usize| {
        let (time, reading) = &readings[index];
        (*time, counter(reading) as f64)
    };
    let next = readings.partition_point(|(time, _)| *time < at);
    let before = if next == 0 { (start, 0.0) } else { point(next - 1) };
    let Some(after) = (next < readings.len()).then(|| point(next)) else { return before.1 };
    if at <= before.0 || after.0 <= before.0 {
        return before.1;
    }
    before.1 + (after.1 - before.1) * (at - before.0) / (after.0 - before.0)
}
