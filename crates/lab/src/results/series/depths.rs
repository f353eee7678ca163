//! How deep queues were, summed up over the samples of a run.

use super::Series;

/// How deep one queue was. The frame that its port is sending is in none.
#[derive(Clone, Debug, PartialEq)]
pub struct Depth {
    /// Its name, `<node>><neighbour>:<priority>`.
    pub queue: String,
    /// The mean over the run, in octets: each sample counts for the time since the one before it.
    pub mean_bytes: f64,
    /// The median.
    pub p50_bytes: u64,
    /// What it did not exceed for 99 hundredths of that time.
    pub p99_bytes: u64,
    /// The greatest; between samples it may have been deeper.
    pub max_bytes: u64,
}

impl Series {
    /// Of each queue that held something at a sample, the one with the greatest mean first.
    pub fn depths(&self) -> Vec<Depth> {
        let mut rows: Vec<(u32, u32, u64)> =
            self.queues.iter().map(|row| (row.source, row.sample, row.reading.bytes)).collect();
        rows.sort_unstable();
        let mut depths: Vec<Depth> = rows
            .chunk_by(|row, next| row.0 == next.0)
            .filter_map(|rows| self.depth(rows[0].0, rows.iter().map(|&(_, sample, bytes)| (sample, bytes))))
            .collect();
        depths.sort_by(|a, b| b.mean_bytes.total_cmp(&a.mean_bytes).then_with(|| a.queue.cmp(&b.queue)));
        depths
    }

    /// Of the queue at `source`, whose `rows` tell at which samples it held another number of octets than before: none at first.
    #[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
    fn depth(&self, source: u32, rows: impl Iterator<Item = (u32, u64)>) -> Option<Depth> {
        // A sample stands for the time since the one before it: where nothing happened none was taken.
        let by = |samples: u32| {
            let last = samples.checked_sub(1).and_then(|place| self.times.get(place as usize));
            last.map_or(0, |time| u128::from(time.as_ps()))
        };
        let whole = self.times.last().map_or(0, |time| u128::from(time.as_ps()));
        // Octets, and for how many picoseconds it held as many.
        let mut held: Vec<(u64, u128)> = Vec::new();
        let (mut since, mut bytes) = (0, 0);
        for (sample, now) in rows {
            held.push((bytes, by(sample) - by(since)));
            (since, bytes) = (sample, now);
        }
        held.push((bytes, whole - by(since)));
        held.sort_unstable();
        let max_bytes = held.iter().filter(|(_, time)| *time > 0).map(|(bytes, _)| *bytes).max()?;
        let percentile = |percent: u128| {
            let mut passed = 0;
            let at = held.iter().find(|(_, time)| {
                passed += time;
                passed * 100 >= whole * percent
            });
            at.map_or(max_bytes, |(bytes, _)| *bytes)
        };
        let sum: f64 = held.iter().map(|&(bytes, time)| bytes as f64 * time as f64).sum();
        (max_bytes > 0).then(|| Depth {
            queue: self.queue_names[source as usize].clone(),
            mean_bytes: sum / whole as f64,
            p50_bytes: percentile(50),
            p99_bytes: percentile(99),
            max_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{QueueSample, Series};
    use super::*;
    use roci_units::{Instant, Span};

    #[test]
    fn a_queue_counts_at_each_sample_with_what_it_held_when_it_last_changed() {
        let names = ["a>b:3", "b>c:3", "c>d:3"].map(str::to_owned).to_vec();
        let mut series = Series::new(Span::from_micros(1), names);
        // Of a hundred samples the first queue holds nothing at ten, 100 octets at 88 and 5000 at two, the second 50 at the last.
        for sample in 0..100u64 {
            series.begin(Instant::ZERO + Span::from_micros(sample + 1));
            let bytes = match sample {
                0..10 => 0,
                40..42 => 5_000,
                _ => 100,
            };
            series.queue(0, QueueSample { bytes, ..QueueSample::default() });
            let bytes = if sample == 99 { 50 } else { 0 };
            series.queue(1, QueueSample { bytes, ..QueueSample::default() });
            // Marks alone do not make it deep.
            series.queue(2, QueueSample { marks: sample, ..QueueSample::default() });
        }
        let depth = |queue: &str, mean_bytes, p50_bytes, p99_bytes, max_bytes| Depth {
            queue: queue.to_owned(),
            mean_bytes,
            p50_bytes,
            p99_bytes,
            max_bytes,
        };
        assert_eq!(
            series.depths(),
            [depth("a>b:3", 188.0, 100, 5_000, 5_000), depth("b>c:3", 0.5, 0, 0, 50)]
        );
        assert_eq!(Series::default().depths(), []);
    }
}
