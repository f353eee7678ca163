//! The course of a flow, read out of a run's time series.

use crate::output::digits::float;
use crate::results::together::count_at;
use crate::results::{FlowResult, FlowSample, Results};
use roci_units::Instant;

/// What one flow did over time.
#[derive(Clone, Debug)]
pub(super) struct Trace<'a> {
    /// Its record.
    pub(super) flow: &'a FlowResult,
    /// Time in seconds and reading, in the order of time.
    pub(super) readings: Vec<(f64, FlowSample)>,
}

impl<'a> Trace<'a> {
    /// The trace of the flow at `place` in the results.
    pub(super) fn at(results: &'a Results, place: usize) -> Self {
        let index = u32::try_from(place).expect("flows are counted in 32 bits");
        let readings = results.series.flow_readings(index);
        let readings = readings.map(|(at, reading)| (at.as_secs_f64(), reading)).collect();
        Self { flow: &results.flows[place], readings }
    }

    /// The trace of the flow that the host called `name` sends.
    ///
    /// # Panics
    /// When there is none: scenarios of figures are part of this program.
    pub(super) fn of_host(results: &'a Results, name: &str) -> Self {
        let place = results.flows.iter().position(|flow| results.host(flow.src) == name);
        Self::at(results, place.unwrap_or_else(|| panic!("no host called {name} sends")))
    }

    /// Traces of all flows.
    pub(super) fn all(results: &'a Results) -> Vec<Self> {
        (0..results.flows.len()).map(|place| Self::at(results, place)).collect()
    }

    /// Mean goodput from `from` to `to`, in seconds, in Gb/s.
    pub(super) fn goodput(&self, from: f64, to: f64) -> f64 {
        let octets = |at| self.count(at, |reading| reading.payload);
        (octets(to) - octets(from)) * 8e-9 / (to - from)
    }

    /// Mean wire throughput of its sender from `from` to `to`, in seconds, in Gb/s.
    pub(super) fn throughput(&self, from: f64, to: f64) -> f64 {
        let octets = |at| self.count(at, |reading| reading.wire);
        (octets(to) - octets(from)) * 8e-9 / (to - from)
    }

    /// Mean of R_C over the readings after `from` and up to `to`, in Gb/s; `None` where there is no reading.
    pub(super) fn rate(&self, from: f64, to: f64) -> Option<f64> {
        let within = self.readings.iter().filter(|(at, _)| *at > from && *at <= to);
        let rates: Vec<f64> = within.filter_map(|(_, reading)| reading.rate_kbps).map(gbps).collect();
        super::statistics::mean(&rates)
    }

    /// A counter at `at`, on a straight line between two readings.
    fn count(&self, at: f64, counter: impl Fn(&FlowSample) -> u64) -> f64 {
        count_at(&self.readings, self.flow.start.as_secs_f64(), at, counter)
    }
}

/// kb/s as Gb/s.
pub(super) fn gbps(kbps: u32) -> f64 {
    f64::from(kbps) / 1e6
}

/// When the first flow ended, in seconds; the end of the run where none did.
pub(super) fn first_end(results: &Results) -> f64 {
    let end = results.flows.iter().map(|flow| flow.end).min().unwrap_or(Instant::NEVER);
    end.min(results.simulated).as_secs_f64()
}

/// Packets that the switches had no room for.
pub(super) fn drops(results: &Results) -> f64 {
    float(results.switches.iter().map(|switch| switch.drops).sum())
}

/// PAUSE frames that the switches sent.
pub(super) fn pauses(results: &Results) -> f64 {
    float(results.switches.iter().map(|switch| switch.pause_sent).sum())
}

/// The readings of the queue called `name`: seconds and octets. A queue that stands still has no reading.
///
/// # Panics
/// When there is no such queue.
pub(super) fn queue(results: &Results, name: &str) -> Vec<(f64, f64)> {
    let names = results.series.queue_names();
    let place = names.iter().position(|queue| queue == name);
    let place = place.unwrap_or_else(|| panic!("no queue is called {name}: {names:?}"));
    let readings = results.series.queue_readings(u32::try_from(place).expect("few queues"));
    readings.map(|(at, reading)| (at.as_secs_f64(), float(reading.bytes))).collect()
}

/// The mean of a queue over time: each reading holds until the next.
pub(super) fn mean_of_steps(readings: &[(f64, f64)], from: f64, to: f64) -> f64 {
    let mut area = 0.0;
    for (index, (at, value)) in readings.iter().enumerate() {
        let until = readings.get(index + 1).map_or(to, |next| next.0).min(to);
        area += value * (until - at.max(from)).max(0.0);
    }
    area / (to - from)
}

/// The standard deviation of a queue over time.
pub(super) fn deviation_of_steps(readings: &[(f64, f64)], from: f64, to: f64) -> f64 {
    let mean = mean_of_steps(readings, from, to);
    let squares: Vec<_> = readings.iter().map(|(at, value)| (*at, (value - mean).powi(2))).collect();
    mean_of_steps(&squares, from, to).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{FlowName, FlowStatus, HostResult, Op, QueueSample, Series};
    use roci_units::Span;

    fn results() -> Results {
        let flow = FlowResult {
            name: FlowName::Given("a".into()),
            src: 0,
            dst: 1,
            control: 0,
            op: Op::Write,
            status: FlowStatus::Running,
            bytes: 1_000_000,
            delivered: 500_000,
            start: Instant::ZERO,
            end: Instant::NEVER,
            ideal: Some(Span::from_micros(1)),
            packets: 0,
            retransmitted: 0,
            repeated: 0,
            timeouts: 0,
            naks: 0,
            rnr_naks: 0,
            cnps: 0,
            ecn_marked: 0,
            reordered: 0,
        };
        let mut series = Series::new(Span::from_millis(1), vec!["s>r:3".to_owned()]);
        for (ms, payload, kbps, bytes) in
            [(1u64, 125_000u64, 1_000_000u32, 10u64), (2, 375_000, 3_000_000, 30), (4, 500_000, 500_000, 30)]
        {
            series.begin(Instant::ZERO + Span::from_millis(ms));
            let rate_kbps = Some(kbps);
            series.flow(0, FlowSample { wire: payload * 2, payload, rate_kbps, ..FlowSample::default() });
            series.queue(0, QueueSample { bytes, ..QueueSample::default() });
        }
        let simulated = Instant::ZERO + Span::from_millis(4);
        let hosts = vec![HostResult { name: "a".to_owned(), ..HostResult::default() }];
        Results { flows: vec![flow], hosts, series, simulated, ..Results::default() }
    }

    #[test]
    fn rates_are_what_counters_gained() {
        let results = results();
        let trace = Trace::of_host(&results, "a");
        // 125 kB in the first millisecond: 1 Gb/s; 250 kB in the second: 2 Gb/s; half of each: 1.5 Gb/s.
        assert!((trace.goodput(0.0, 1e-3) - 1.0).abs() < 1e-9);
        assert!((trace.goodput(0.5e-3, 1.5e-3) - 1.5).abs() < 1e-9);
        assert!((trace.throughput(1e-3, 2e-3) - 4.0).abs() < 1e-9);
        assert!((trace.rate(0.5e-3, 2e-3).unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(trace.rate(2.5e-3, 3e-3), None);
    }

    #[test]
    fn a_run_without_completions_has_no_first_end_but_its_own() {
        assert_eq!(first_end(&results()), 4e-3);
    }

    #[test]
    fn a_queue_keeps_its_length_until_its_next_reading() {
        let results = results();
        let readings = queue(&results, "s>r:3");
        // 10 octets for one millisecond, 30 for two.
        assert!((mean_of_steps(&readings, 1e-3, 4e-3) - 70.0 / 3.0).abs() < 1e-9);
        assert!((mean_of_steps(&readings, 1.5e-3, 2.5e-3) - 20.0).abs() < 1e-9);
    }
}
