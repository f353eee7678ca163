//! What readings come to over time: rates, and their series. It asks nobody and has no clock; see the `table` request for
//! where readings come from.
//!
//! Two clocks meet here. How long lies between two readings of a queue pair is told by its device (`Row::at`), which makes rates
//! exact however late a reading was asked for or came. Where a reading stands in a series is told by who watches, for the clocks
//! of several devices know nothing of each other.

mod observed;
mod paths;
mod series;

pub use observed::{Observed, Unit, quantity, registers};
pub use paths::Path;
pub use series::{Point, Series};

use super::table::Row;
use roci_units::{Instant, Qpn, Span};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

/// Over how long the rates of a queue pair are taken: CNPs come in handfuls, which a shorter time would show as noise.
pub const AVERAGE: Span = Span::from_secs(1);
/// How long a queue pair that is gone is still shown.
pub const LINGER: Span = Span::from_secs(10);
/// How many points the series of all queue pairs may have together (12 octets each), how many one of them may have however few
/// there are, and how many it may have however many there are.
const POINTS: usize = 2_000_000;
const POINTS_MAX: usize = 1500;
const POINTS_MIN: usize = 150;

/// A queue pair of one of several devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Which of the sockets that were given, from 0.
    pub socket: usize,
    /// Its number there.
    pub qpn: Qpn,
}

/// What is counted in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Payload sent, again or not, in bits per second.
    pub sent_bps: f64,
    /// Data packets sent, again or not.
    pub packets: f64,
    /// Data packets sent again.
    pub retransmitted: f64,
    /// Congestion notifications received.
    pub cnps: f64,
}

impl std::ops::AddAssign for Rates {
    fn add_assign(&mut self, other: Self) {
        self.sent_bps += other.sent_bps;
        self.packets += other.packets;
        self.retransmitted += other.retransmitted;
        self.cnps += other.cnps;
    }
}

/// The counters of a reading, and when it was taken.
#[derive(Clone, Copy, Debug)]
struct Counted {
    at: Instant,
    octets: u64,
    packets: u64,
    retransmitted: u64,
    cnps: u64,
}

impl Counted {
    const fn of(row: &Row) -> Self {
        let Row { at, octets, packets, retransmitted, cnps, .. } = *row;
        Self { at, octets, packets, retransmitted, cnps }
    }

    /// What was counted since an earlier reading; `None` where that is none of the same queue pair: time or a counter went back.
    fn since(&self, earlier: &Self) -> Option<Rates> {
        let seconds = self.at.as_ps().checked_sub(earlier.at.as_ps()).filter(|ps| *ps > 0)?;
        let seconds = Span::from_ps(seconds).as_secs_f64();
        let rate = |now: u64, before: u64| now.checked_sub(before).map(|count| count as f64 / seconds);
        Some(Rates {
            sent_bps: rate(self.octets, earlier.octets)? * 8.0,
            packets: rate(self.packets, earlier.packets)?,
            retransmitted: rate(self.retransmitted, earlier.retransmitted)?,
            cnps: rate(self.cnps, earlier.cnps)?,
        })
    }
}

/// A queue pair, as it was read last and before.
#[derive(Clone, Debug)]
pub struct Pair {
    /// What was read last, but for the ways, which are in `paths`.
    pub row: Row,
    /// What it counts in a second, over the last [`AVERAGE`] or between its last two readings where they lie further apart; `None`
    /// before its second reading.
    pub rates: Option<Rates>,
    /// Whether the last reading had it.
    pub is_there: bool,
    /// What it sent and was allowed.
    pub series: Series,
    /// What switches have told of its ways.
    pub paths: Vec<Path>,
    /// Readings to take rates from: the oldest is the last that lies [`AVERAGE`] back.
    counted: VecDeque<Counted>,
    /// The reading that had it last.
    reading: u64,
    /// When a reading first missed it.
    missed_at: Option<Span>,
}

impl Pair {
    fn new(mut row: Row) -> Self {
        let mut paths = Vec::new();
        paths::take(&mut paths, row.at, std::mem::take(&mut row.ways));
        Self {
            counted: VecDeque::from([Counted::of(&row)]),
            row,
            rates: None,
            is_there: true,
            series: Series::default(),
            paths,
            reading: 0,
            missed_at: None,
        }
    }

    /// Whether a reading has missed it; where it is not there and this is false, its socket gives no answer.
    pub const fn is_gone(&self) -> bool {
        self.missed_at.is_some()
    }

    fn take(&mut self, now: Span, mut row: Row, points_max: usize) {
        let counted = Counted::of(&row);
        match counted.since(&Counted::of(&self.row)) {
            Some(since_last) => {
                paths::take(&mut self.paths, row.at, std::mem::take(&mut row.ways));
                self.row = row;
                self.count(counted);
                self.series.push(now, Some(since_last.sent_bps), self.row.allowed, points_max);
            }
            // Another one by this number: nothing that was known of the first is true of it.
            None => {
                *self = Self::new(row);
                self.series.push(now, None, self.row.allowed, points_max);
            }
        }
    }

    fn count(&mut self, counted: Counted) {
        let between = |later: &Counted, earlier: &Counted| {
            Span::from_ps(later.at.as_ps().saturating_sub(earlier.at.as_ps()))
        };
        // However fast readings follow one another, ten of them will do.
        let tenth = Span::from_ps(AVERAGE.as_ps() / 10);
        if let [.., before, last] = self.counted.make_contiguous()
            && between(last, before) < tenth
        {
            *last = counted;
        } else {
            self.counted.push_back(counted);
        }
        while self.counted.len() > 2 && between(&counted, &self.counted[1]) >= AVERAGE {
            self.counted.pop_front();
        }
        self.rates = self.counted.front().and_then(|first| counted.since(first));
    }
}

/// Whether a socket is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It was not asked yet.
    Unknown,
    /// It answered when it was asked last.
    There,
    /// It did not.
    Away {
        /// Since when, by who watches.
        since: Span,
        /// Why, in the words of whom it was asked by.
        why: String,
    },
}

/// One of the sockets.
#[derive(Clone, Debug)]
pub struct Socket {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it is served.
    pub presence: Presence,
}

/// All queue pairs of some devices, over time.
#[derive(Debug, Default)]
pub struct Board {
    sockets: Vec<Socket>,
    pairs: BTreeMap<Key, Pair>,
    readings: u64,
    observed: Option<Observed>,
}

impl Board {
    /// A board of these sockets, of which nothing is known yet.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let sockets = paths.into_iter().map(|path| Socket { path, presence: Presence::Unknown });
        Self { sockets: sockets.collect(), ..Self::default() }
    }

    /// The sockets, in the order in which they were given.
    pub fn sockets(&self) -> &[Socket] {
        &self.sockets
    }

    /// The queue pairs, by socket and number; those that are gone for up to [`LINGER`], and those of a socket that is away.
    pub fn pairs(&self) -> impl Iterator<Item = (Key, &Pair)> {
        self.pairs.iter().map(|(key, pair)| (*key, pair))
    }

    /// One of them.
    pub fn pair(&self, key: Key) -> Option<&Pair> {
        self.pairs.get(&key)
    }

    /// Takes in what `socket` answered at `now`, or why it did not.
    ///
    /// `now` is the watcher's time, and does not go back. Of a socket that is away all is kept, so that it goes on where it was should it only have
    /// been slow; where it comes back with other queue pairs, those before are gone.
    pub fn take(&mut self, socket: usize, now: Span, reading: Result<Vec<Row>, String>) {
        let Some(place) = self.sockets.get_mut(socket) else { return };
        let all_of_it = Key { socket, qpn: Qpn::new(0) }..Key { socket: socket + 1, qpn: Qpn::new(0) };
        let rows = match reading {
            Ok(rows) => rows,
            Err(why) => {
                let since = match place.presence {
                    Presence::Away { since, .. } => since,
                    _ => now,
                };
                place.presence = Presence::Away { since, why };
                self.pairs.range_mut(all_of_it).for_each(|(_, pair)| pair.is_there = false);
                return;
            }
        };
        place.presence = Presence::There;
        self.readings += 1;
        let points_max = (POINTS / self.pairs.len().max(rows.len()).max(1)).clamp(POINTS_MIN, POINTS_MAX);
        for row in rows {
            let key = Key { socket, qpn: row.qpn };
            let pair = match self.pairs.get_mut(&key) {
                Some(pair) => {
                    pair.take(now, row, points_max);
                    pair
                }
                None => {
                    let allowed = row.allowed;
                    let pair = self.pairs.entry(key).or_insert_with(|| Pair::new(row));
                    pair.series.push(now, None, allowed, points_max);
                    pair
                }
            };
            (pair.is_there, pair.reading, pair.missed_at) = (true, self.readings, None);
        }
        let mut gone = Vec::new();
        for (key, pair) in self.pairs.range_mut(all_of_it).filter(|(_, pair)| pair.reading != self.readings) {
            pair.is_there = false;
            if now.saturating_sub(*pair.missed_at.get_or_insert(now)) >= LINGER {
                gone.push(*key);
            }
        }
        for key in gone {
            self.pairs.remove(&key);
        }
    }

    /// What all queue pairs that are there count together in a second, and how many these are.
    pub fn totals(&self) -> (Rates, usize) {
        let mut sum = (Rates::default(), 0);
        for pair in self.pairs.values().filter(|pair| pair.is_there) {
            sum.0 += pair.rates.unwrap_or_default();
            sum.1 += 1;
        }
        sum
    }

    /// Observes the registers of one queue pair from now on, and of none before; what is known of it is kept where it is observed already.
    pub fn observe(&mut self, key: Option<Key>) {
        if self.observed.as_ref().map(|observed| observed.key) != key {
            self.observed = key.map(Observed::new);
        }
    }

    /// The queue pair whose registers are observed.
    pub fn observed(&self) -> Option<&Observed> {
        self.observed.as_ref()
    }

    /// Takes in the registers of `key` at `now`, or why there are none. It may be observed no longer; then they are dropped.
    pub fn take_registers(&mut self, key: Key, now: Span, registers: Result<Vec<(String, String)>, String>) {
        if let Some(observed) = self.observed.as_mut().filter(|observed| observed.key == key) {
            observed.take(now, registers, POINTS_MAX);
        }
    }
}

/// How often a device is asked, so that this takes no more than a tenth of the time, of a core there or of one here: with very
/// many queue pairs less often than was wanted.
#[derive(Clone, Debug)]
pub struct Pace {
    every: Duration,
    /// How long the last answers took. The quickest counts: the others may have waited for a processor.
    took: VecDeque<Duration>,
}

impl Pace {
    /// Asks every so often, or less.
    pub const fn new(every: Duration) -> Self {
        Self { every, took: VecDeque::new() }
    }

    /// An answer took so long.
    pub fn answered(&mut self, took: Duration) {
        if self.took.len() == 4 {
            self.took.pop_front();
        }
        self.took.push_back(took);
    }

    /// From the beginning of one reading to that of the next.
    pub fn every(&self) -> Duration {
        self.took.iter().min().map_or(self.every, |took| self.every.max(*took * 10))
    }
}

#[cfg(test)]
mod tests;
