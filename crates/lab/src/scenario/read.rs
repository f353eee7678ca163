//! Reading one table: known keys only, each with its kind, unit and range.

use super::devices;
use super::keys::{Key, SECTIONS, Section};
use super::source::{Located, Origin, ScenarioError, Source, listed, nearest};
use super::tree::{Entry, Kind, Node};
use roci_fabric::queue::HORIZON_PS;
use roci_fabric::topology::RATE_MAX;
use roci_units::{BitsPerSec, Bytes, Instant, ParseError, Ratio, Span};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A table that is being read. Every key that it has is one of its section's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'a> {
    pub(crate) source: &'a Source,
    pub(crate) section: &'static Section,
    pub(crate) origin: Origin,
    entries: &'a [Entry],
}

impl<'a> Table<'a> {
    /// Opens `node` as a table of `section`; a key that the section does not have is refused.
    pub(crate) fn open(
        source: &'a Source,
        section: &'static Section,
        node: &'a Node,
    ) -> Result<Self, ScenarioError> {
        let table = Self::open_some(source, section, node)?;
        for entry in table.entries {
            table.known(entry)?;
        }
        Ok(table)
    }

    /// The same, but other keys are let through: those of a law, or those that depend on `kind`.
    pub(crate) fn open_some(
        source: &'a Source,
        section: &'static Section,
        node: &'a Node,
    ) -> Result<Self, ScenarioError> {
        match &node.kind {
            Kind::Table(entries) => Ok(Self { source, section, origin: node.origin, entries }),
            _ => Err(source.error(
                node.origin,
                format!("{} is {}, but it must be a table", title(section), node.what()),
                format!("its keys are {}", listed(section.names())),
            )),
        }
    }

    fn known(&self, entry: &Entry) -> Result<(), ScenarioError> {
        if self.section.key(&entry.key).is_some() {
            return Ok(());
        }
        let names = self.section.names();
        let message = format!("unknown key `{}` in {}", entry.key, title(self.section));
        let near = nearest(&entry.key, names.iter().copied());
        // A key that is right elsewhere is a key in the wrong place.
        let elsewhere: Vec<String> = SECTIONS
            .iter()
            .filter(|section| section.key(&entry.key).is_some())
            .map(|section| title(section))
            .collect();
        let theirs = devices::in_section(&entry.key, self.section).filter(|_| elsewhere.is_empty());
        let ours = || match (near, elsewhere.as_slice()) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, [one] | [one, _]) => format!("it is a key of {one}; here there are {}", listed(names)),
            (None, _) => format!("the keys here are {}", listed(names)),
        };
        Err(self.source.error(entry.key_origin, message, theirs.unwrap_or_else(ours)))
    }

    /// The value of `key`, if it was written.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Node> {
        debug_assert!(self.section.key(key).is_some(), "{key} is not listed for {}", self.section.path);
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// All entries.
    pub(crate) fn entries(&self) -> &'a [Entry] {
        self.entries
    }

    /// Where `key` was written, or else the table.
    pub(crate) fn origin_of(&self, key: &str) -> Origin {
        self.entries.iter().find(|entry| entry.key == key).map_or(self.origin, |entry| entry.key_origin)
    }

    /// An error at the value of `key`.
    pub(crate) fn refuse(
        &self,
        key: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> ScenarioError {
        let origin = self.get(key).map_or(self.origin, |node| node.origin);
        self.source.error(origin, message, remedy)
    }

    /// What is said of a value that does not fit `key`.
    fn misfit(&self, key: &str, node: &Node, why: &str) -> ScenarioError {
        let message = format!("{} {why}", quoted(key, node));
        self.source.error(node.origin, message, format!("it takes {}", self.takes(key)))
    }

    fn takes(&self, key: &str) -> String {
        plain(self.section.key(key).map_or("another value", |key: &Key| key.takes))
    }

    /// The error of a key that is required and missing.
    pub(crate) fn missing(&self, key: &str) -> ScenarioError {
        let takes = self.takes(key);
        let remedy = match (self.section.path, takes.as_str()) {
            ("", "a table") => format!("add a [{key}] table"),
            ("", "a list of tables") => format!("add a [[{key}]] table"),
            _ => format!("add `{key} = …`; it takes {takes}"),
        };
        self.source.error(self.origin, format!("{} has no `{key}`", title(self.section)), remedy)
    }

    /// A value that must be there.
    pub(crate) fn require<T>(&self, key: &str, value: Option<T>) -> Result<T, ScenarioError> {
        value.ok_or_else(|| self.missing(key))
    }

    /// A string, which must not be empty.
    pub(crate) fn text(&self, key: &str) -> Result<Option<Located<String>>, ScenarioError> {
        let Some(node) = self.get(key) else { return Ok(None) };
        match &node.kind {
            Kind::Text(text) if text.is_empty() => Err(self.misfit(key, node, "is empty")),
            Kind::Text(text) => Ok(Some(Located { value: text.clone(), origin: node.origin })),
            Kind::Integer(text) | Kind::Decimal(text) => {
                let error = self.misfit(key, node, &format!("is {}, not a string", node.what()));
                let overrides = self.source.overrides();
                let set = match node.origin {
                    Origin::Override(index) => overrides.get(index).filter(|(_, value)| value.trim() == text),
                    _ => None,
                };
                // A shell takes the outer quotes away.
                let example = set.map(|(path, _)| format!(", with --set as '{path}=\"{text}\"'"));
                let example = example.unwrap_or_default();
                let remedy = format!("{}; a string is written in quotes, \"{text}\"{example}", error.remedy);
                Err(ScenarioError { remedy, ..error })
            }
            _ => Err(self.misfit(key, node, &format!("is {}, not a string", node.what()))),
        }
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(
        &self,
        key: &str,
        words: &[(&'static str, T)],
    ) -> Result<Option<T>, ScenarioError> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        match words.iter().find(|(name, _)| *name == text.value) {
            Some((_, value)) => Ok(Some(*value)),
            None => Err(self.unknown_word(key, &text, words.iter().map(|(name, _)| *name))),
        }
    }

    /// The error of a word that is none of `valid`.
    pub(crate) fn unknown_word<'b>(
        &self,
        key: &str,
        text: &Located<String>,
        valid: impl Iterator<Item = &'b str> + Clone,
    ) -> ScenarioError {
        let exist = format!("those that exist are {}", listed(valid.clone()));
        let remedy = match nearest(&text.value, valid) {
            Some(near) => format!("did you mean `{near}`? {exist}"),
            None => exist,
        };
        self.source.error(text.origin, format!("there is no {key} `{}`", text.value), remedy)
    }

    /// True or false.
    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, ScenarioError> {
        let Some(node) = self.get(key) else { return Ok(None) };
        match node.kind {
            Kind::Flag(flag) => Ok(Some(flag)),
            _ => Err(self.misfit(key, node, &format!("is {}, not true or false", node.what()))),
        }
    }

    /// A whole number in `range`.
    pub(crate) fn number(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, ScenarioError> {
        let Some(node) = self.get(key) else { return Ok(None) };
        self.number_of(key, node, range).map(Some)
    }

    /// A whole number in a range of 32 bits.
    pub(crate) fn count(&self, key: &str, range: RangeInclusive<u32>) -> Result<Option<u32>, ScenarioError> {
        let range = u64::from(*range.start())..=u64::from(*range.end());
        let number = self.number(key, range)?;
        Ok(number.map(|number| u32::try_from(number).unwrap_or(u32::MAX)))
    }

    /// A priority.
    pub(crate) fn priority(&self, key: &str) -> Result<Option<u8>, ScenarioError> {
        let number = self.number(key, 0..=7)?;
        Ok(number.map(|number| u8::try_from(number).unwrap_or(7)))
    }

    /// A whole number in `range`, at `node`.
    pub(crate) fn number_of(
        &self,
        key: &str,
        node: &Node,
        range: RangeInclusive<u64>,
    ) -> Result<u64, ScenarioError> {
        let Kind::Integer(text) = &node.kind else {
            return Err(self.misfit(key, node, &format!("is {}, not a whole number", node.what())));
        };
        match text.trim_start_matches('+').parse::<u64>() {
            Ok(number) if range.contains(&number) => Ok(number),
            _ if text.starts_with('-') => Err(self.misfit(key, node, "is negative")),
            _ => Err(self.misfit(key, node, "is out of range")),
        }
    }

    /// A quantity as people write it. Numbers without quotes are read as if they had them.
    pub(crate) fn quantity<T: FromStr<Err = ParseError>>(
        &self,
        key: &str,
    ) -> Result<Option<T>, ScenarioError> {
        let Some(node) = self.get(key) else { return Ok(None) };
        self.quantity_of(key, node).map(Some)
    }

    /// A quantity at `node`.
    pub(crate) fn quantity_of<T: FromStr<Err = ParseError>>(
        &self,
        key: &str,
        node: &Node,
    ) -> Result<T, ScenarioError> {
        let text = match &node.kind {
            Kind::Text(text) | Kind::Integer(text) | Kind::Decimal(text) => text,
            _ => return Err(self.misfit(key, node, &format!("is {}", node.what()))),
        };
        text.parse().map_err(|error| match error {
            ParseError::Negative => self.misfit(key, node, "is negative"),
            ParseError::NotANumber { .. } => self.misfit(key, node, "is not a number with a unit"),
            ParseError::Range => self.misfit(key, node, "is out of range, or finer than its unit can hold"),
            ParseError::Unit { expected } => {
                self.misfit(key, node, &format!("has a wrong unit or none (units are {expected})"))
            }
            ParseError::Ambiguous { reason } => {
                self.misfit(key, node, &format!("has an unclear unit ({reason})"))
            }
        })
    }

    /// A length of time, less than the longest run.
    pub(crate) fn span(&self, key: &str) -> Result<Option<Span>, ScenarioError> {
        match (self.quantity::<Span>(key)?, self.get(key)) {
            (Some(span), Some(node)) if span.as_ps() >= HORIZON_PS => Err(self.source.error(
                node.origin,
                format!("{} is longer than a run can last, 75 minutes", quoted(key, node)),
                format!("give at most 4503s; it takes {}", self.takes(key)),
            )),
            (span, _) => Ok(span),
        }
    }

    /// A length of time above zero.
    pub(crate) fn period(&self, key: &str) -> Result<Option<Span>, ScenarioError> {
        match (self.span(key)?, self.get(key)) {
            (Some(span), Some(node)) if span.is_zero() => Err(self.misfit(key, node, "is no time at all")),
            (span, _) => Ok(span),
        }
    }

    /// A point in time.
    pub(crate) fn instant(&self, key: &str) -> Result<Option<Instant>, ScenarioError> {
        Ok(self.span(key)?.map(|span| Instant::ZERO + span))
    }

    /// A size in `range`.
    pub(crate) fn bytes(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<Bytes>, ScenarioError> {
        match (self.quantity::<Bytes>(key)?, self.get(key)) {
            (Some(bytes), Some(node)) if !range.contains(&bytes.0) => {
                Err(self.misfit(key, node, "is out of range"))
            }
            (bytes, _) => Ok(bytes),
        }
    }

    /// A rate above zero.
    pub(crate) fn rate(&self, key: &str) -> Result<Option<BitsPerSec>, ScenarioError> {
        match (self.quantity::<BitsPerSec>(key)?, self.get(key)) {
            (Some(rate), Some(node)) if rate.0 == 0 => Err(self.misfit(key, node, "is zero")),
            (Some(rate), Some(node)) if rate > RATE_MAX => Err(self.misfit(key, node, "is out of range")),
            (rate, _) => Ok(rate),
        }
    }

    /// A ratio.
    pub(crate) fn ratio(&self, key: &str) -> Result<Option<Ratio>, ScenarioError> {
        self.quantity(key)
    }

    /// A share: a ratio of at most one.
    pub(crate) fn share(&self, key: &str) -> Result<Option<Ratio>, ScenarioError> {
        match (self.ratio(key)?, self.get(key)) {
            (Some(ratio), Some(node)) if !ratio.is_proper() => Err(self.misfit(key, node, "is more than 1")),
            (ratio, _) => Ok(ratio),
        }
    }

    /// A share above zero.
    pub(crate) fn load(&self, key: &str) -> Result<Option<Ratio>, ScenarioError> {
        match (self.share(key)?, self.get(key)) {
            (Some(ratio), Some(node)) if ratio == Ratio::ZERO => Err(self.misfit(key, node, "is zero")),
            (ratio, _) => Ok(ratio),
        }
    }

    /// A factor between 1/1024 and 1024.
    pub(crate) fn factor(&self, key: &str) -> Result<Option<Ratio>, ScenarioError> {
        let fits = |ratio: Ratio| {
            let (upper, lower) = (u64::from(ratio.numerator()), u64::from(ratio.denominator()));
            upper * 1024 >= lower && upper <= lower * 1024
        };
        match (self.ratio(key)?, self.get(key)) {
            (Some(ratio), Some(node)) if !fits(ratio) => Err(self.misfit(key, node, "is out of range")),
            (ratio, _) => Ok(ratio),
        }
    }

    /// The items of a list.
    pub(crate) fn list(&self, key: &str) -> Result<Option<&'a [Node]>, ScenarioError> {
        let Some(node) = self.get(key) else { return Ok(None) };
        match &node.kind {
            Kind::Array(items) => Ok(Some(items)),
            Kind::Table(_) => Err(self.misfit(key, node, "is a table, not a list")),
            _ => {
                let error = self.misfit(key, node, &format!("is {}, not a list", node.what()));
                let remedy = format!("{}: write `{key} = [{}]`", error.remedy, node.shown());
                Err(ScenarioError { remedy, ..error })
            }
        }
    }

    /// A list of strings, none of them empty.
    pub(crate) fn texts(&self, key: &str) -> Result<Option<Vec<Located<String>>>, ScenarioError> {
        // What is neither is no text that lacks its brackets.
        if let Some(node) = self.get(key)
            && !matches!(node.kind, Kind::Text(_) | Kind::Array(_))
        {
            return Err(self.misfit(key, node, &format!("is {}, not a list", node.what())));
        }
        let Some(items) = self.list(key)? else { return Ok(None) };
        let texts = items.iter().map(|item| match &item.kind {
            Kind::Text(text) if !text.is_empty() => Ok(Located { value: text.clone(), origin: item.origin }),
            Kind::Text(_) => Err(self.misfit(key, item, "is empty")),
            _ => Err(self.misfit(key, item, &format!("is {}, not a string", item.what()))),
        });
        texts.collect::<Result<Vec<_>, _>>().map(Some)
    }

    /// The table under `key`, opened as one of `section`.
    pub(crate) fn table(
        &self,
        key: &str,
        section: &'static Section,
    ) -> Result<Option<Table<'a>>, ScenarioError> {
        self.get(key).map(|node| Table::open(self.source, section, node)).transpose()
    }

    /// The tables under `key`, opened as ones of `section`.
    pub(crate) fn tables(
        &self,
        key: &str,
        section: &'static Section,
    ) -> Result<Vec<Table<'a>>, ScenarioError> {
        let items = self.list(key)?.unwrap_or(&[]);
        items.iter().map(|node| Table::open(self.source, section, node)).collect()
    }

    /// A switch that is `false`, `true`, or a table with details: `None`, an empty reading, or the table.
    pub(crate) fn switch(
        &self,
        key: &str,
        section: &'static Section,
    ) -> Result<Option<Detail<'a>>, ScenarioError> {
        let Some(node) = self.get(key) else { return Ok(None) };
        match &node.kind {
            Kind::Flag(true) => Ok(Some(Detail::On)),
            Kind::Flag(false) => Ok(Some(Detail::Off)),
            Kind::Table(_) => Ok(Some(Detail::Table(Table::open(self.source, section, node)?))),
            _ => Err(self.misfit(key, node, &format!("is {}", node.what()))),
        }
    }
}

/// What a key that is a switch with details says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Detail<'a> {
    /// Off.
    Off,
    /// On, as by default.
    On,
    /// On, with these details.
    Table(Table<'a>),
}

/// A section as people call it.
pub(crate) fn title(section: &Section) -> String {
    match section.path.split_once('.') {
        None if section.path.is_empty() => "the scenario".to_owned(),
        None => format!("[{}]", section.path),
        Some((table @ ("topology" | "traffic"), kind)) => match kind.split_once('.') {
            None => format!("[{table}] of kind \"{kind}\""),
            Some((_, list)) => format!("an entry of `{list}`"),
        },
        Some((_, "on")) => format!("[[{}]]", section.path),
        Some(_) => format!("[{}]", section.path),
    }
}

/// `key = value`, as written.
fn quoted(key: &str, node: &Node) -> String {
    format!("`{key} = {}`", node.shown())
}

/// Markdown without its backquotes, for a terminal.
fn plain(text: &str) -> String {
    text.replace('`', "")
}
