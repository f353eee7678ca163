//! The registers of the one queue pair that is looked at closely.

use super::Key;
use roci_units::{BitsPerSec, Bytes, Ratio, Span};
use std::collections::{BTreeMap, VecDeque};

/// What a number is a number of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A rate.
    BitsPerSecond,
    /// A time.
    Seconds,
    /// Octets.
    Octets,
    /// A count, a fraction, or yes (1) and no (0).
    One,
}

/// The value of a register as a number; `None` where it is a word.
pub fn quantity(text: &str) -> Option<(f64, Unit)> {
    let one = |number| Some((number, Unit::One));
    match text {
        "true" => return one(1.0),
        "false" => return one(0.0),
        _ => {}
    }
    if !text.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
        return None;
    }
    if let Ok(number) = text.parse::<f64>() {
        return one(number);
    }
    if let Ok(rate) = text.parse::<BitsPerSec>() {
        return Some((rate.0 as f64, Unit::BitsPerSecond));
    }
    if let Ok(span) = text.parse::<Span>() {
        return Some((span.as_secs_f64(), Unit::Seconds));
    }
    if let Ok(octets) = text.parse::<Bytes>() {
        return Some((octets.0 as f64, Unit::Octets));
    }
    text.parse::<Ratio>().ok().and_then(|ratio| one(ratio.as_f64()))
}

/// The names and values in the answer to `get QP`. A value may have spaces.
pub fn registers(answer: &str) -> Vec<(String, String)> {
    let one = |line: &str| {
        let mut words = line.splitn(4, ' ').skip(2);
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    };
    answer.lines().filter_map(one).collect()
}

/// The registers of a queue pair, and what they were since it is observed.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The queue pair.
    pub key: Key,
    /// Its registers as they were read last, in the order in which it has them.
    pub registers: Vec<(String, String)>,
    /// Why they could not be read, if the last time they could not.
    pub error: Option<String>,
    series: BTreeMap<String, VecDeque<(Span, f64)>>,
}

impl Observed {
    pub(super) const fn new(key: Key) -> Self {
        Self { key, registers: Vec::new(), error: None, series: BTreeMap::new() }
    }

    pub(super) fn take(
        &mut self,
        now: Span,
        registers: Result<Vec<(String, String)>, String>,
        points_max: usize,
    ) {
        match registers {
            Ok(registers) => (self.registers, self.error) = (registers, None),
            Err(why) => {
                self.error = Some(why);
                return;
            }
        }
        for (name, value) in &self.registers {
            let Some((number, _)) = quantity(value) else { continue };
            let series = self.series.entry(name.clone()).or_default();
            if series.len() >= points_max {
                series.pop_front();
            }
            series.push_back((now, number));
        }
    }

    /// The unit of a register's value; `None` where it is a word, or there is no such register.
    pub fn unit(&self, name: &str) -> Option<Unit> {
        let (_, value) = self.registers.iter().find(|(register, _)| register == name)?;
        quantity(value).map(|(_, unit)| unit)
    }

    /// What a register was at each reading, the oldest first.
    pub fn series(&self, name: &str) -> impl DoubleEndedIterator<Item = (Span, f64)> {
        self.series.get(name).into_iter().flatten().copied()
    }
}
