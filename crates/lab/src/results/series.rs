//! Time series: what flows and queues did, sampled at a fixed interval.
//!
//! While a run collects, a row holds all readings of one flow or one queue, as integers, and counters as they stand
//! since the start. That makes the memory bounded: once there are too many rows, every second sample is dropped, the
//! interval doubles, and no count is lost. [`Series::rows`] turns them into the long form of `series.parquet`.

mod depths;
mod machines;

pub use depths::Depth;
pub use machines::MachineSample;

use machines::Machines;
use roci_units::{Instant, Span};
use std::num::NonZeroU32;

/// Rows that are kept before the interval doubles: about 30 MB.
const ROWS_MAX: usize = 1 << 19;
/// Rows of flows that have room from the first one on: a mebibyte, of which the system gives only what is touched. To move
/// them again and again had it give new pages for the old ones: nearly half of the page faults of an incast of 26 ms, which
/// took 4 % of its time.
const FIRST_ROWS: usize = 1 << 14;
/// Flows that have rows: the first so many that are alive at a sample. More are for `flows.csv`.
pub(crate) const FLOWS_MAX: usize = 4096;

/// Readings of flows and queues over time.
#[derive(Clone, Debug)]
pub struct Series {
    interval: Span,
    rows_max: usize,
    queue_names: Vec<String>,
    times: Vec<Instant>,
    flows: Vec<Row<FlowSample>>,
    queues: Vec<Row<QueueSample>>,
    /// Words of programs' contexts, by their names.
    words: Vec<Row<(&'static str, i64)>>,
    /// Those of the other end, where they are asked for.
    receivers: Vec<Row<(&'static str, i64)>>,
    of_machines: Machines,
    /// Octets that all flows had delivered by each of `times`; nothing where that is not asked for.
    delivered: Vec<u64>,
    /// Whether each flow has rows, by its place in the results.
    chosen: Vec<bool>,
    chosen_count: usize,
    /// The latest reading of each queue, so that one which stands still takes no row.
    latest: Vec<QueueSample>,
    /// Whether it is written as text too.
    text: bool,
}

/// What one flow has done so far and may do now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowSample {
    /// Octets that its sender put on the wire since the start, preamble and gap included.
    pub wire: u64,
    /// Octets of payload that have been delivered since the start.
    pub payload: u64,
    /// The rate that it may send at (R_C), in kb/s; `None` without a rate.
    pub rate_kbps: Option<u32>,
    /// The rate that its law aims for (R_T), in kb/s; `None` where the law has none.
    pub target_kbps: Option<u32>,
    /// The law's estimate of congestion: alpha of DCQCN and DCTCP, 0 to 1, or U of HPCC; `None` where the law has none.
    pub alpha: Option<f32>,
    /// The window in octets; `None` without one.
    pub window: Option<u32>,
    /// The round trip that its law used last, in nanoseconds; `None` where the law knows none.
    pub rtt_ns: Option<NonZeroU32>,
    /// CNPs that its sender has received since the start.
    pub cnps: u32,
}

/// What one queue holds, and what has befallen it so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueSample {
    /// Octets that it holds now.
    pub bytes: u64,
    /// Packets marked CE here since the start.
    pub marks: u64,
    /// PAUSE frames received for it since the start (those that stop).
    pub pauses: u64,
    /// How long it has stood paused since the start.
    pub paused: Span,
}

/// A reading and where it belongs.
#[derive(Clone, Copy, Debug)]
struct Row<S> {
    /// Place in `times`.
    sample: u32,
    /// The flow's place in the results, or the queue's in `queue_names`.
    source: u32,
    reading: S,
}

const _: () = assert!(size_of::<Row<FlowSample>>() == 64, "half a million of them are kept");

/// Octets of so many rows of flows and of queues, as far as they are kept.
pub(crate) const fn octets_of(flows: u64, queues: u64) -> u64 {
    let most = ROWS_MAX as u64;
    let flows = if flows < most { flows } else { most };
    let queues = if queues < most - flows { queues } else { most - flows };
    flows * size_of::<Row<FlowSample>>() as u64 + queues * size_of::<Row<QueueSample>>() as u64
}

impl Default for Series {
    /// A series that collects nothing.
    fn default() -> Self {
        Self::new(Span::ZERO, Vec::new())
    }
}

impl Series {
    /// An empty series at `interval`; zero: nothing is to be sampled. A queue is named `<node>><neighbour>:<priority>`.
    pub fn new(interval: Span, queue_names: Vec<String>) -> Self {
        Self {
            interval,
            rows_max: ROWS_MAX,
            latest: vec![QueueSample::default(); queue_names.len()],
            queue_names,
            times: Vec::new(),
            flows: Vec::new(),
            queues: Vec::new(),
            words: Vec::new(),
            receivers: Vec::new(),
            of_machines: Machines::default(),
            delivered: Vec::new(),
            chosen: Vec::new(),
            chosen_count: 0,
            text: false,
        }
    }

    /// Has it written as text too, `series.csv`, or not.
    pub fn set_text(&mut self, text: bool) {
        self.text = text;
    }

    /// Whether it is written as text too.
    pub fn is_text(&self) -> bool {
        self.text
    }

    /// Adds a queue, named as the others are, behind them; from now on it may be recorded.
    pub fn add_queue(&mut self, name: String) {
        self.queue_names.push(name);
        self.latest.push(QueueSample::default());
    }

    /// The time from one sample to the next, or `None` where nothing is sampled. It doubles when a series grows long,
    /// so ask again after each sample.
    pub fn interval(&self) -> Option<Span> {
        (!self.interval.is_zero()).then_some(self.interval)
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty() && self.queues.is_empty() && self.of_machines.rows() == 0
    }

    /// Octets of the rows that it keeps, those of machines and of words of programs aside.
    #[cfg(test)]
    pub(crate) fn octets(&self) -> u64 {
        octets_of(self.flows.len() as u64, self.queues.len() as u64)
    }

    /// When samples were taken, in the order of time.
    pub fn times(&self) -> &[Instant] {
        &self.times
    }

    /// The names of the queues, in the order of their numbers.
    pub fn queue_names(&self) -> &[String] {
        &self.queue_names
    }

    /// Opens the sample of `now`; the readings that follow belong to it.
    ///
    /// # Panics
    /// When `now` is not after the sample before.
    pub fn begin(&mut self, now: Instant) {
        assert!(self.times.last().is_none_or(|last| *last < now), "samples go forward in time");
        let rows = self.flows.len() + self.queues.len() + self.words.len() + self.receivers.len();
        let rows = rows + self.of_machines.rows();
        // Times are kept as well where nothing changes.
        if rows.max(self.times.len()) >= self.rows_max && self.times.len() > 1 {
            self.halve();
        }
        self.times.push(now);
    }

    /// Records a flow that is alive, or that ended since the sample before: `flow` is its place in the results. Once
    /// 4096 flows have rows, others are passed over.
    ///
    /// # Panics
    /// Before the first [`Series::begin`].
    pub fn flow(&mut self, flow: u32, reading: FlowSample) {
        let sample = self.current();
        let place = flow as usize;
        if self.chosen.len() <= place {
            self.chosen.resize(place + 1, false);
        }
        if !self.chosen[place] {
            if self.chosen_count == FLOWS_MAX {
                return;
            }
            self.chosen[place] = true;
            self.chosen_count += 1;
        }
        if self.flows.capacity() == 0 {
            self.flows.reserve_exact(FIRST_ROWS);
        }
        self.flows.push(Row { sample, source: flow, reading });
    }

    /// Records a word of the context of a program that a flow runs: of one that has a row in this sample.
    ///
    /// # Panics
    /// Before the first [`Series::begin`].
    pub fn word(&mut self, flow: u32, name: &'static str, value: i64) {
        let sample = self.current();
        if self.chosen.get(flow as usize).is_some_and(|chosen| *chosen) {
            self.words.push(Row { sample, source: flow, reading: (name, value) });
        }
    }

    /// The same of the program at the end of the flow that does not send its data.
    ///
    /// # Panics
    /// Before the first [`Series::begin`].
    pub fn receiver_word(&mut self, flow: u32, name: &'static str, value: i64) {
        let sample = self.current();
        if self.chosen.get(flow as usize).is_some_and(|chosen| *chosen) {
            self.receivers.push(Row { sample, source: flow, reading: (name, value) });
        }
    }

    /// Records a queue, unless nothing about it changed since its last row.
    ///
    /// # Panics
    /// Before the first [`Series::begin`], or for a queue without a name.
    pub fn queue(&mut self, queue: u32, reading: QueueSample) {
        let sample = self.current();
        let latest = &mut self.latest[queue as usize];
        if *latest != reading {
            *latest = reading;
            self.queues.push(Row { sample, source: queue, reading });
        }
    }

    /// Records what all flows have delivered by now, payload only: in every sample, or in none.
    ///
    /// # Panics
    /// Unless it was recorded in all samples before the open one, and not yet in that.
    pub fn delivered(&mut self, octets: u64) {
        self.delivered.push(octets);
        assert_eq!(self.delivered.len(), self.times.len(), "in every sample or in none");
    }

    /// What all flows had delivered by `at`: between two samples in proportion, and behind the last one as by then. `None` where it was
    /// not recorded.
    #[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
    pub fn delivered_by(&self, at: Instant) -> Option<f64> {
        let last = *self.delivered.last()?;
        let place = self.times.partition_point(|time| *time < at);
        let Some(&by) = self.delivered.get(place) else { return Some(last as f64) };
        let (since, before) = match place.checked_sub(1) {
            Some(place) => (self.times[place], self.delivered[place]),
            None => (Instant::ZERO, 0),
        };
        let share = at.since(since).as_secs_f64() / self.times[place].since(since).as_secs_f64();
        Some(before as f64 + (by.saturating_sub(before)) as f64 * share)
    }

    fn current(&self) -> u32 {
        let last = self.times.len().checked_sub(1).expect("a sample is open");
        u32::try_from(last).expect("fewer samples than rows")
    }

    /// Keeps every second sample and doubles the interval.
    pub(super) fn halve(&mut self) {
        // The last of each pair stays: counters then hold what both samples counted. A last one without a partner
        // stays too.
        self.times = self.times.chunks(2).map(|pair| pair[pair.len() - 1]).collect();
        self.delivered = self.delivered.chunks(2).map(|pair| pair[pair.len() - 1]).collect();
        thin(&mut self.flows, |_| ());
        thin(&mut self.queues, |_| ());
        thin(&mut self.words, |&(name, _)| name);
        thin(&mut self.receivers, |&(name, _)| name);
        self.of_machines.halve();
        self.interval = self.interval * 2;
    }
}

/// Merges the rows of samples 2k and 2k + 1: of a source with both, the later row stays. Sources with one keep it, so
/// the last reading of a flow that ended is not lost. `what` tells readings of one source apart.
fn thin<S, K: Ord>(rows: &mut Vec<Row<S>>, what: impl Fn(&S) -> K) {
    rows.iter_mut().for_each(|row| row.sample /= 2);
    // Stable, so the later of two equal keys stays behind the earlier.
    rows.sort_by_key(|row| (row.sample, row.source, what(&row.reading)));
    rows.reverse();
    rows.dedup_by_key(|row| (row.sample, row.source, what(&row.reading)));
    rows.reverse();
}

/// A reading in the long form of `series.parquet`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// When it was taken.
    pub at: Instant,
    /// Whose it is.
    pub source: Source,
    /// What was read.
    pub metric: Metric,
    /// The value, in the metric's unit.
    pub value: f64,
}

/// Whose a reading is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A flow, by its place in the results.
    Flow(u32),
    /// A queue, by its place in [`Series::queue_names`].
    Queue(u32),
    /// A machine that answers requests, by its host's place in the results.
    Machine(u32),
    /// A table of requests, by its place among the tables of traffic.
    Requests(u32),
}

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Wire octets sent since the row before, in bits per second.
    Throughput,
    /// Payload delivered since the row before, in bits per second.
    Goodput,
    /// The rate that it may send at (R_C), in bits per second.
    Rate,
    /// The rate aimed for (R_T), in bits per second.
    Target,
    /// The law's estimate of congestion.
    Alpha,
    /// The window in octets.
    Window,
    /// The round trip that the law used last, in seconds.
    Rtt,
    /// CNPs received since the start.
    Cnps,
    /// Octets in the queue.
    Bytes,
    /// CE marks since the start.
    Marks,
    /// PAUSE frames received since the start.
    Pauses,
    /// Seconds paused since the start.
    Paused,
    /// Octets that have arrived at a machine and nobody has consumed.
    Unconsumed,
    /// The share of the cache lines read since the row before that came from memory.
    Misses,
    /// Lines in the buffer between PCIe and memory, as a moving average.
    Iio,
    /// Requests answered since the row before, per second.
    Answered,
}

impl Metric {
    /// Every metric: those of flows first, then those of queues, of machines and of requests.
    pub const ALL: [Self; 16] = [
        Self::Throughput,
        Self::Goodput,
        Self::Rate,
        Self::Target,
        Self::Alpha,
        Self::Window,
        Self::Rtt,
        Self::Cnps,
        Self::Bytes,
        Self::Marks,
        Self::Pauses,
        Self::Paused,
        Self::Unconsumed,
        Self::Misses,
        Self::Iio,
        Self::Answered,
    ];

    /// Its name in `series.parquet`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Goodput => "goodput",
            Self::Rate => "rate",
            Self::Target => "target",
            Self::Alpha => "alpha",
            Self::Window => "window",
            Self::Rtt => "rtt",
            Self::Cnps => "cnps",
            Self::Bytes => "bytes",
            Self::Marks => "marks",
            Self::Pauses => "pauses",
            Self::Paused => "paused",
            Self::Unconsumed => "unconsumed",
            Self::Misses => "misses",
            Self::Iio => "iio",
            Self::Answered => "answered",
        }
    }
}

impl Series {
    /// What was recorded of the flow at this place in the results, in the order of time.
    pub fn flow_readings(&self, flow: u32) -> impl Iterator<Item = (Instant, FlowSample)> {
        of_source(&self.times, &self.flows, flow)
    }

    /// Gives flows other places: the flow at `i` goes to `places[i]`.
    ///
    /// # Panics
    /// When `places` is shorter than the places that flows have, or names one beyond its own length.
    pub fn renumber(&mut self, places: &[u32]) {
        for row in &mut self.flows {
            row.source = places[row.source as usize];
        }
        for row in self.words.iter_mut().chain(&mut self.receivers) {
            row.source = places[row.source as usize];
        }
        let mut chosen = vec![false; places.len()];
        for (place, is_chosen) in places.iter().zip(&self.chosen) {
            chosen[*place as usize] = *is_chosen;
        }
        self.chosen = chosen;
    }

    /// What was recorded of the queue at this place in [`Series::queue_names`], in the order of time. A reading holds
    /// until the next.
    pub fn queue_readings(&self, queue: u32) -> impl Iterator<Item = (Instant, QueueSample)> {
        of_source(&self.times, &self.queues, queue)
    }

    /// Calls `each` with the time, the flow, the name and the value of every word of a program's context.
    pub fn words(&self, mut each: impl FnMut(Instant, u32, &'static str, i64)) {
        for row in &self.words {
            let (name, value) = row.reading;
            each(self.times[row.sample as usize], row.source, name, value);
        }
    }

    /// The same of the programs at the ends of flows that do not send their data.
    pub fn receiver_words(&self, mut each: impl FnMut(Instant, u32, &'static str, i64)) {
        for row in &self.receivers {
            let (name, value) = row.reading;
            each(self.times[row.sample as usize], row.source, name, value);
        }
    }

    /// Calls `each` with every reading: flows first, then queues, machines and requests, each in the order of time.
    pub fn rows(&self, mut each: impl FnMut(Reading)) {
        self.flow_rows(&mut each);
        self.queue_rows(&mut each);
        self.of_machines.each(&self.times, &mut each);
    }

    fn flow_rows(&self, each: &mut impl FnMut(Reading)) {
        let sources = self.flows.iter().map(|row| row.source as usize + 1).max().unwrap_or(0);
        // What each flow had sent, delivered and heard of congestion at its row before.
        let mut before = vec![(0u64, 0u64, 0u32); sources];
        for row in &self.flows {
            let sample = row.sample as usize;
            let at = self.times[sample];
            // A row covers the time since the sample before: a live flow has a row in each.
            let since = sample.checked_sub(1).map_or(Instant::ZERO, |previous| self.times[previous]);
            let seconds = at.since(since).as_secs_f64();
            let source = Source::Flow(row.source);
            let reading = row.reading;
            let (wire, payload, cnps) = &mut before[row.source as usize];
            let mut emit = |metric, value| each(Reading { at, source, metric, value });
            if seconds > 0.0 {
                emit(Metric::Throughput, bits(reading.wire - *wire) / seconds);
                emit(Metric::Goodput, bits(reading.payload - *payload) / seconds);
            }
            if reading.cnps != *cnps {
                emit(Metric::Cnps, f64::from(reading.cnps));
            }
            (*wire, *payload, *cnps) = (reading.wire, reading.payload, reading.cnps);
            if let Some(kbps) = reading.rate_kbps {
                emit(Metric::Rate, f64::from(kbps) * 1e3);
            }
            if let Some(kbps) = reading.target_kbps {
                emit(Metric::Target, f64::from(kbps) * 1e3);
            }
            if let Some(alpha) = reading.alpha {
                emit(Metric::Alpha, f64::from(alpha));
            }
            if let Some(window) = reading.window {
                emit(Metric::Window, f64::from(window));
            }
            if let Some(nanos) = reading.rtt_ns {
                emit(Metric::Rtt, f64::from(nanos.get()) * 1e-9);
            }
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
    fn queue_rows(&self, each: &mut impl FnMut(Reading)) {
        let mut before = vec![QueueSample::default(); self.queue_names.len()];
        for row in &self.queues {
            let at = self.times[row.sample as usize];
            let source = Source::Queue(row.source);
            let mut emit = |metric, value| each(Reading { at, source, metric, value });
            let reading = row.reading;
            let before = &mut before[row.source as usize];
            emit(Metric::Bytes, reading.bytes as f64);
            if reading.marks != before.marks {
                emit(Metric::Marks, reading.marks as f64);
            }
            if reading.pauses != before.pauses {
                emit(Metric::Pauses, reading.pauses as f64);
            }
            if reading.paused != before.paused {
                emit(Metric::Paused, reading.paused.as_secs_f64());
            }
            *before = reading;
        }
    }
}

/// A word of a context, to be drawn or written.
#[expect(clippy::cast_precision_loss, reason = "32 bits and a sign")]
pub(crate) const fn drawn(word: i64) -> f64 {
    word as f64
}

/// The rows of one source, with their times.
fn of_source<S: Copy>(times: &[Instant], rows: &[Row<S>], source: u32) -> impl Iterator<Item = (Instant, S)> {
    let of_it = rows.iter().filter(move |row| row.source == source);
    of_it.map(|row| (times[row.sample as usize], row.reading))
}

#[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
fn bits(octets: u64) -> f64 {
    octets as f64 * 8.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Span = Span::from_micros(100);

    fn at(step: u64) -> Instant {
        Instant::ZERO + STEP * step
    }

    fn readings(series: &Series) -> Vec<Reading> {
        let mut readings = Vec::new();
        series.rows(|reading| readings.push(reading));
        readings
    }

    fn only(series: &Series, metric: Metric) -> Vec<(u64, f64)> {
        let matching = readings(series).into_iter().filter(|reading| reading.metric == metric);
        matching.map(|reading| (reading.at.as_ps() / STEP.as_ps(), reading.value)).collect()
    }

    #[test]
    fn throughput_is_what_was_sent_since_the_sample_before() {
        let mut series = Series::new(STEP, Vec::new());
        for (step, wire) in [(1, 12_500), (2, 37_500)] {
            series.begin(at(step));
            series.flow(0, FlowSample { wire, ..FlowSample::default() });
        }
        assert_eq!(only(&series, Metric::Throughput), [(1, 1e9), (2, 2e9)]);
        assert!(only(&series, Metric::Alpha).is_empty(), "the law has none");
    }

    #[test]
    fn cnps_have_a_row_where_there_were_some_and_are_counted_through_a_halving() {
        let mut series = Series::new(STEP, Vec::new());
        for (step, cnps) in [(1, 0), (2, 3), (3, 3), (4, 7)] {
            series.begin(at(step));
            series.flow(0, FlowSample { wire: step, cnps, ..FlowSample::default() });
        }
        assert_eq!(only(&series, Metric::Cnps), [(2, 3.0), (4, 7.0)]);
        series.halve();
        assert_eq!(only(&series, Metric::Cnps), [(2, 3.0), (4, 7.0)]);
    }

    #[test]
    fn a_run_of_very_many_flows_follows_the_first_of_them() {
        let mut series = Series::new(STEP, Vec::new());
        for step in 1..=2 {
            series.begin(at(step));
            for flow in 0..10_000 {
                series.flow(flow * 3, FlowSample { wire: step * 1_000, ..FlowSample::default() });
            }
        }
        let last = u32::try_from(FLOWS_MAX - 1).unwrap() * 3;
        let sources: Vec<Source> = readings(&series).iter().map(|reading| reading.source).collect();
        assert_eq!(sources.iter().max(), Some(&Source::Flow(last)));
        assert_eq!(series.flows.len(), 2 * FLOWS_MAX, "the same flows each time");
    }

    #[test]
    fn words_of_a_context_thin_out_by_their_names() {
        let mut series = Series::new(STEP, Vec::new());
        for step in 1..=4 {
            series.begin(at(step));
            series.flow(0, FlowSample::default());
            for (name, value) in [("rate", 10), ("alpha", 20)] {
                series.word(0, name, value + i64::try_from(step).unwrap());
            }
            series.word(1, "rate", 0);
        }
        series.halve();
        let mut words = Vec::new();
        series.words(|at, flow, name, value| words.push((at, flow, name, value)));
        words.sort_by_key(|word| (word.0, word.2));
        assert_eq!(
            words,
            [
                (at(2), 0, "alpha", 22),
                (at(2), 0, "rate", 12),
                (at(4), 0, "alpha", 24),
                (at(4), 0, "rate", 14)
            ]
        );
    }

    #[test]
    fn a_queue_that_stands_still_takes_no_row() {
        let mut series = Series::new(STEP, vec!["a>b:3".into()]);
        for (step, bytes) in [(1, 0), (2, 700), (3, 700), (4, 0), (5, 0)] {
            series.begin(at(step));
            series.queue(0, QueueSample { bytes, ..QueueSample::default() });
        }
        assert_eq!(only(&series, Metric::Bytes), [(2, 700.0), (4, 0.0)]);
    }

    #[test]
    fn a_long_series_doubles_its_interval_and_loses_no_octet() {
        let mut series = Series::new(STEP, vec!["a>b:3".into()]);
        series.rows_max = 64;
        let mut now = Instant::ZERO;
        let mut sent = 0u32;
        for round in 0..200u64 {
            now += series.interval().unwrap();
            series.begin(now);
            sent += 1_000;
            series.flow(0, FlowSample { wire: sent.into(), ..FlowSample::default() });
            if round == 20 {
                // It ends at an odd sample, and its last word must survive every halving.
                series.flow(1, FlowSample { wire: 5_000, ..FlowSample::default() });
            }
            series.queue(0, QueueSample { marks: round, ..QueueSample::default() });
        }
        assert!(series.interval().unwrap() > STEP);
        assert!(series.flows.len() + series.queues.len() <= 66);
        let mut before = Instant::ZERO;
        let (mut long, mut short) = (0.0, 0.0);
        for time in &series.times {
            let seconds = time.since(before).as_secs_f64();
            before = *time;
            for reading in
                readings(&series).iter().filter(|r| r.at == *time && r.metric == Metric::Throughput)
            {
                match reading.source {
                    Source::Flow(0) => long += reading.value * seconds / 8.0,
                    _ => short += reading.value * seconds / 8.0,
                }
            }
        }
        assert!((long - f64::from(sent)).abs() < 1.0, "{long} of {sent}");
        assert!((short - 5_000.0).abs() < 1.0, "{short}");
    }

    #[test]
    fn the_interval_doubles_where_nothing_changes_too() {
        let mut series = Series::new(Span::from_ps(1), vec!["a>b:3".to_owned()]);
        series.rows_max = 64;
        let (mut at, end) = (Instant::from_ps(1), Instant::from_ps(1_000));
        while at < end {
            series.begin(at);
            series.delivered(7);
            assert!(series.times().len() <= 64, "{at}");
            at += series.interval().unwrap();
        }
        assert_eq!(series.interval(), Some(Span::from_ps(16)));
    }
}
