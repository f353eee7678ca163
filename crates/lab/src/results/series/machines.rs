//! Time series of the machines that answer requests, and of the requests themselves.

use super::{Metric, Reading, Row, Series, Source, thin};
use crate::output::digits::float;
use roci_units::Instant;

/// What a machine holds, and what it has counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineSample {
    /// Octets that have arrived and nobody has consumed, with 64 for each completion.
    pub unconsumed: u64,
    /// Cache lines that its threads have read since the start.
    pub reads: u64,
    /// Of those, lines that came from memory.
    pub read_misses: u64,
    /// Lines in the buffer between PCIe and memory, as hostCC's moving average.
    pub iio: u32,
}

/// The rows of both.
#[derive(Clone, Debug, Default)]
pub(super) struct Machines {
    machines: Vec<Row<MachineSample>>,
    /// Requests of each table that were answered since the start.
    answered: Vec<Row<u64>>,
}

impl Machines {
    pub(super) const fn rows(&self) -> usize {
        self.machines.len() + self.answered.len()
    }

    pub(super) fn halve(&mut self) {
        thin(&mut self.machines, |_| ());
        thin(&mut self.answered, |_| ());
    }

    pub(super) fn each(&self, times: &[Instant], mut each: impl FnMut(Reading)) {
        // A machine has a row in each sample, so that its row before is of the sample before.
        let mut before = vec![(0, 0); sources(&self.machines)];
        for row in &self.machines {
            let (at, source) = (times[row.sample as usize], Source::Machine(row.source));
            let mut emit = |metric, value| each(Reading { at, source, metric, value });
            let MachineSample { unconsumed, reads, read_misses, iio } = row.reading;
            let (reads_before, misses_before) = &mut before[row.source as usize];
            emit(Metric::Unconsumed, float(unconsumed));
            if reads > *reads_before {
                emit(Metric::Misses, float(read_misses - *misses_before) / float(reads - *reads_before));
            }
            emit(Metric::Iio, f64::from(iio));
            (*reads_before, *misses_before) = (reads, read_misses);
        }
        let mut before = vec![0; sources(&self.answered)];
        for row in &self.answered {
            let (at, source) = (times[row.sample as usize], Source::Requests(row.source));
            let since = row.sample.checked_sub(1).map_or(Instant::ZERO, |sample| times[sample as usize]);
            let seconds = at.since(since).as_secs_f64();
            let before = &mut before[row.source as usize];
            if seconds > 0.0 {
                let value = float(row.reading - *before) / seconds;
                each(Reading { at, source, metric: Metric::Answered, value });
            }
            *before = row.reading;
        }
    }
}

impl Series {
    /// Records a machine: `host` is its host's place in the results. Each has a row in every sample.
    ///
    /// # Panics
    /// Before the first [`Series::begin`].
    pub fn machine(&mut self, host: u16, reading: MachineSample) {
        let sample = self.current();
        self.of_machines.machines.push(Row { sample, source: host.into(), reading });
    }

    /// Records that so many requests of a table were answered since the start: `table` is its place among the tables of traffic. Each
    /// has a row in every sample.
    ///
    /// # Panics
    /// Before the first [`Series::begin`].
    pub fn answered(&mut self, table: u32, requests: u64) {
        let sample = self.current();
        self.of_machines.answered.push(Row { sample, source: table, reading: requests });
    }
}

/// One more than the greatest number of a source.
fn sources<S>(rows: &[Row<S>]) -> usize {
    rows.iter().map(|row| row.source as usize + 1).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_units::Span;

    const STEP: Span = Span::from_micros(100);

    fn only(series: &Series, metric: Metric) -> Vec<(u64, Source, f64)> {
        let mut readings = Vec::new();
        series.rows(|reading| readings.push(reading));
        let matching = readings.into_iter().filter(|reading| reading.metric == metric);
        matching.map(|it| (it.at.as_ps() / STEP.as_ps(), it.source, it.value)).collect()
    }

    #[test]
    fn a_machine_tells_what_waits_and_what_share_of_lines_missed_since_the_sample_before() {
        let mut series = Series::new(STEP, Vec::new());
        for (step, unconsumed, reads, read_misses) in [(1, 900, 100, 10), (2, 0, 200, 60), (3, 50, 200, 60)] {
            series.begin(Instant::ZERO + STEP * step);
            series.machine(2, MachineSample { unconsumed, reads, read_misses, iio: 7 });
        }
        let it = Source::Machine(2);
        assert_eq!(only(&series, Metric::Unconsumed), [(1, it, 900.0), (2, it, 0.0), (3, it, 50.0)]);
        assert_eq!(
            only(&series, Metric::Misses),
            [(1, it, 0.1), (2, it, 0.5)],
            "no line was read in the third"
        );
        assert_eq!(only(&series, Metric::Iio).len(), 3);
    }

    #[test]
    fn answers_are_a_rate_and_none_is_lost_when_samples_are_halved() {
        let mut series = Series::new(STEP, Vec::new());
        for (step, answered) in [(1, 10), (2, 30), (3, 30), (4, 40)] {
            series.begin(Instant::ZERO + STEP * step);
            series.answered(0, answered);
        }
        let it = Source::Requests(0);
        assert_eq!(
            only(&series, Metric::Answered),
            [(1, it, 100_000.0), (2, it, 200_000.0), (3, it, 0.0), (4, it, 100_000.0)]
        );
        series.halve();
        assert_eq!(only(&series, Metric::Answered), [(2, it, 150_000.0), (4, it, 50_000.0)]);
    }
}
