//! The keys of a configuration and what they are set to.

use roci_units::BitsPerSec;
use std::collections::{BTreeMap, BTreeSet};

/// What is wrong with a configuration, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct ConfigError {
    /// The number of the line that is to blame, from 1, if one is.
    pub line: Option<usize>,
    /// What is wrong with it, and what to do.
    pub message: String,
}

impl ConfigError {
    pub(super) fn said(message: String) -> Self {
        Self { line: None, message }
    }

    pub(super) fn at(line: usize, message: String) -> Self {
        Self { line: Some(line), message }
    }
}

/// Keys that say what is written, how fast, and how it looks; nothing that happens in a run depends on them.
const OF_OUTPUT: [&str; 16] = [
    "TRACE_FILE",
    "TRACE_OUTPUT_FILE",
    "FCT_OUTPUT_FILE",
    "PFC_OUTPUT_FILE",
    "QLEN_MON_FILE",
    "QLEN_MON_START",
    "QLEN_MON_END",
    "ENABLE_TRACE",
    // Of what is not chosen, and of what is always so.
    "PINT_LOG_BASE",
    "PINT_PROB",
    "INT_MULTI",
    "USE_DYNAMIC_PFC_THRESHOLD",
    "L2_CHUNK_SIZE",
    "DATA_RATE",
    "LINK_DELAY",
    "PAUSE_TIME",
];

/// Keys of laws, which are read where theirs is chosen.
const OF_LAWS: [&str; 10] = [
    "ALPHA_RESUME_INTERVAL",
    "RATE_DECREASE_INTERVAL",
    "RP_TIMER",
    "FAST_RECOVERY_TIMES",
    "CLAMP_TARGET_RATE",
    "U_TARGET",
    "MI_THRESH",
    "MULTI_RATE",
    "FAST_REACT",
    "SAMPLE_FEEDBACK",
];

/// What stands behind each key, and on which line; the last line of a key holds.
pub(super) struct Config {
    lines: BTreeMap<String, (usize, Vec<String>)>,
    read: BTreeSet<String>,
}

impl Config {
    pub(super) fn new(text: &str) -> Self {
        let mut lines = BTreeMap::new();
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace().map(str::to_owned);
            if let Some(key) = words.next() {
                lines.insert(key, (index + 1, words.collect()));
            }
        }
        Self { lines, read: BTreeSet::new() }
    }

    fn words(&mut self, key: &str) -> Option<(usize, Vec<String>)> {
        self.read.insert(key.to_owned());
        self.lines.get(key).cloned()
    }

    /// Whether `key` is there.
    pub(super) fn has(&self, key: &str) -> bool {
        self.lines.contains_key(key)
    }

    /// The one word behind `key`.
    pub(super) fn text(&mut self, key: &str) -> Result<Option<(usize, String)>, ConfigError> {
        match self.words(key) {
            None => Ok(None),
            Some((line, words)) => match <[String; 1]>::try_from(words) {
                Ok([word]) => Ok(Some((line, word))),
                Err(words) => Err(ConfigError::at(
                    line,
                    format!("{key} has one value, and not {:?}; correct it", words.join(" ")),
                )),
            },
        }
    }

    /// A number from 0 on.
    pub(super) fn number(&mut self, key: &str) -> Result<Option<(usize, f64)>, ConfigError> {
        let Some((line, word)) = self.text(key)? else { return Ok(None) };
        Ok(Some((line, number(line, key, &word)?)))
    }

    /// A whole number.
    pub(super) fn whole(&mut self, key: &str) -> Result<Option<(usize, u64)>, ConfigError> {
        let Some((line, word)) = self.text(key)? else { return Ok(None) };
        let refused =
            |_| ConfigError::at(line, format!("{key}: {word:?} is no whole number from 0 on; correct it"));
        Ok(Some((line, word.parse().map_err(refused)?)))
    }

    pub(super) fn flag(&mut self, key: &str) -> Result<Option<bool>, ConfigError> {
        Ok(self.number(key)?.map(|(_, value)| value != 0.0))
    }

    pub(super) fn rate(&mut self, key: &str) -> Result<Option<BitsPerSec>, ConfigError> {
        let Some((line, word)) = self.text(key)? else { return Ok(None) };
        // A bare number is one of bit/s, as ns-3 reads it.
        let rate = word.parse().map(BitsPerSec).or_else(|_| word.parse());
        Ok(Some(rate.map_err(|error| ConfigError::at(line, format!("{key} {word}: {error}")))?))
    }

    /// All numbers behind `key`; none where it is not there.
    pub(super) fn numbers(&mut self, key: &str) -> Result<Vec<f64>, ConfigError> {
        let Some((line, words)) = self.words(key) else { return Ok(Vec::new()) };
        words.iter().map(|word| number(line, key, word)).collect()
    }

    /// Values by rate in bit/s: their count, then each rate and its value.
    pub(super) fn map(&mut self, key: &str) -> Result<BTreeMap<u64, f64>, ConfigError> {
        let Some((line, words)) = self.words(key) else { return Ok(BTreeMap::new()) };
        let (count, rest) =
            words.split_first().map_or(("", &words[..]), |(count, rest)| (count.as_str(), rest));
        let (pairs, over) = rest.as_chunks::<2>();
        if count.parse() != Ok(pairs.len()) || !over.is_empty() {
            let message = format!(
                "{key} counts {count:?} rates, and {} values follow; it should be twice as many",
                rest.len()
            );
            return Err(ConfigError::at(line, message));
        }
        let pair = |[rate, value]: &[String; 2]| {
            let rate = rate.parse().map_err(|_| {
                ConfigError::at(line, format!("{key}: {rate:?} is no rate in bit/s; write 25000000000"))
            })?;
            Ok((rate, number(line, key, value)?))
        };
        pairs.iter().map(pair).collect()
    }

    /// The keys that nobody has asked for, and that may change what happens; with their lines.
    pub(super) fn unread(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_unread =
            |key: &str| !self.read.contains(key) && !OF_OUTPUT.contains(&key) && !OF_LAWS.contains(&key);
        self.lines.iter().filter(move |(key, _)| is_unread(key)).map(|(key, (line, _))| (*line, key.as_str()))
    }
}

fn number(line: usize, key: &str, word: &str) -> Result<f64, ConfigError> {
    let number = word.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0);
    number.ok_or_else(|| ConfigError::at(line, format!("{key}: {word:?} is no number from 0 on; correct it")))
}
