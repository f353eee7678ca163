//! Reading an architecture's TOML.
//!
//! `name` and `about` say what it is, `base` names a preset to begin with; every other key is one of
//! [`KEYS`]. A value stands alone, or in a table that says where it comes from:
//! `{ value = "1.1us", source = "SRNIC §6.2" }`, or `calibrated_to`, or `choice`, in place of `source`.

use super::keys::{KEYS, key};
use super::presets;
use super::spec::{Architecture, Source};
use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Why an architecture was refused: where, what, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchitectureError {
    /// The file, as it was named.
    pub file: String,
    /// The line, counted from one.
    pub line: usize,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub remedy: String,
}

impl fmt::Display for ArchitectureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}\n  remedy: {}", self.file, self.line, self.message, self.remedy)
    }
}

impl std::error::Error for ArchitectureError {}

/// Reads the architecture that `text`, the content of `file`, describes.
///
/// # Errors
/// At the first thing that is wrong.
pub fn read(file: &str, text: &str) -> Result<Architecture, ArchitectureError> {
    Reader { file, text }.read()
}

impl Architecture {
    /// Sets the key at `path` to `text`, as a scenario or a user gives it.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn set(&mut self, path: &str, text: &str) -> Result<(), (String, String)> {
        let Some(key) = key(path) else {
            return Err((format!("a NIC has no key `{path}`"), near(path, &[])));
        };
        if !key.set(self, text) {
            return Err((format!("`{path} = {text}` does not fit"), format!("it takes {}", key.takes)));
        }
        self.sources.insert(key.path, Source::Given);
        Ok(())
    }

    /// What is wrong with the whole, if anything: values that do not go together, or that are none for a NIC.
    pub fn conflict(&self) -> Option<Conflict> {
        let of = |path, why, remedy| Some(Conflict { path, why, remedy });
        let clock = "set `clock`, such as \"250MHz\"";
        let cycles =
            KEYS.iter().find(|key| key.show(self).ends_with("cycle") || key.show(self).ends_with("cycles"));
        match cycles {
            Some(key) if self.clock.is_none() => {
                return of(key.path, "is given in cycles, but there is no `clock`", clock);
            }
            _ => {}
        }
        if self.cores.pairs > 0 && self.core_clock().is_none() {
            return of("cores.pairs", "are counted, but there is no `clock`", clock);
        }
        for (path, value) in [
            ("send.fetch", self.send.fetch),
            ("send.serve", self.send.serve),
            ("send.turns", self.send.turns),
            ("recovery.cores", self.recovery.cores),
        ] {
            if value == 0 {
                return of(path, "must be at least 1", "set it to 1 or more");
            }
        }
        if self.pcie.attached && self.pcie.payload == 0 {
            let why = "must be at least 1: a transaction carries something";
            return of("pcie.payload", why, "set it to what servers are set to, such as 256");
        }
        if self.send.buffer.0 == 0 {
            let why = "must be at least one octet: with none nothing would ever be sent";
            return of(
                "send.buffer",
                why,
                "set it to what comes while payload is fetched, such as \"64KiB\"",
            );
        }
        if self.send.inline.0 > INLINE_MAX {
            return of(
                "send.inline",
                "is more payload than a send request holds",
                "set it to \"1KiB\" or less",
            );
        }
        if self.cores.queue == super::spec::Entries::Count(0) {
            let why = "must be at least 1: a core that may hear of no packet would let none through";
            return of("cores.queue", why, "set it to 1 or more, or to \"all\" for no limit");
        }
        let stores = [
            ("context.entries", &self.context),
            ("wqe.entries", &self.wqe),
            ("receive_wqe.entries", &self.receive_wqe),
            ("mtt.entries", &self.mtt.store),
        ];
        for (path, store) in stores {
            if store.entries != super::spec::Entries::All && !self.pcie.attached {
                let why = "is less than all, but without `pcie.attached` there is nowhere else";
                return of(path, why, "set it to \"all\", or `pcie.attached` to true");
            }
        }
        if self.mtt.store.entries != super::spec::Entries::All && self.mtt.page.0 == 0 {
            let why = "is less than all, but `mtt.page` is not given";
            return of("mtt.entries", why, "set `mtt.page`, such as \"4KiB\", or this to \"all\"");
        }
        None
    }
}

/// Why the values of an architecture make no NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The key at fault.
    pub path: &'static str,
    /// What is wrong with it.
    pub why: &'static str,
    /// What would be right.
    pub remedy: &'static str,
}

/// The member of `valid` nearest to `word`, if any is near enough to be what was meant.
pub fn nearest<'a>(word: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let likeness = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        // Of three letters, two of them swapped, Jaro and Winkler see one that fits.
        let slip = lower.chars().count() > 2 && strsim::osa_distance(&lower, &candidate) <= 1;
        strsim::jaro_winkler(&lower, &candidate) + if slip { 1.0 } else { 0.0 }
    };
    valid
        .into_iter()
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

/// The most payload in a send request: a request of a commodity NIC has 16 blocks of 64 octets at most.
const INLINE_MAX: u64 = 1024;

/// What a file says of the whole, which is no key of an architecture.
const OF_THE_WHOLE: [&str; 3] = ["name", "about", "base"];

/// What is said of a key that does not exist, where there are the [`KEYS`] and `others`.
fn near(path: &str, others: &[&'static str]) -> String {
    let keys: Vec<_> = others.iter().copied().chain(KEYS.iter().map(|key| key.path)).collect();
    match nearest(path, keys.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("the keys are {}", keys.join(", ")),
    }
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

type Item<'a> = (&'a Spanned<std::borrow::Cow<'a, str>>, &'a Spanned<DeValue<'a>>);

impl Reader<'_> {
    fn read(&self) -> Result<Architecture, ArchitectureError> {
        let table = DeTable::parse(self.text).map_err(|error| {
            self.error(
                error.span().unwrap_or(0..0),
                error.message().to_owned(),
                "write it as TOML".to_owned(),
            )
        })?;
        let table = table.get_ref();
        let mut architecture = self.begin(table)?;
        // What differs from its base is another NIC, with or without a name of its own.
        self.file.clone_into(&mut architecture.name);
        for item in table.iter() {
            match item.0.get_ref().as_ref() {
                "base" => {}
                "name" => architecture.name = self.string(item)?,
                "about" => architecture.about = self.string(item)?,
                _ => self.entry(&mut architecture, "", item)?,
            }
        }
        if let Some(Conflict { path, why, remedy }) = architecture.conflict() {
            return Err(self.error(0..0, format!("`{path}` {why}"), remedy.to_owned()));
        }
        Ok(architecture)
    }

    /// What the file begins with: the preset that it names, or a NIC that takes no time.
    fn begin(&self, table: &DeTable<'_>) -> Result<Architecture, ArchitectureError> {
        let Some(item) = table.iter().find(|(key, _)| key.get_ref() == "base") else {
            return Ok(Architecture::default());
        };
        let name = self.string(item)?;
        presets::find(&name).ok_or_else(|| {
            let known = presets::names().collect::<Vec<_>>().join(", ");
            self.error(
                item.1.span(),
                format!("there is no preset `{name}`"),
                format!("those that exist are {known}"),
            )
        })
    }

    fn entry(
        &self,
        architecture: &mut Architecture,
        prefix: &str,
        item: Item<'_>,
    ) -> Result<(), ArchitectureError> {
        let (name, value) = item;
        let path = if prefix.is_empty() {
            name.get_ref().to_string()
        } else {
            format!("{prefix}.{}", name.get_ref())
        };
        match (key(&path), value.get_ref()) {
            (Some(known), DeValue::Table(table)) => {
                let (text, source) = self.sourced(&path, value, table)?;
                self.set(architecture, &path, &text)?;
                architecture.sources.insert(known.path, source);
                Ok(())
            }
            (Some(_), _) => {
                let text = self.scalar(&path, value)?;
                self.set(architecture, &path, &(text, value.span()))
            }
            (None, DeValue::Table(table)) if KEYS.iter().any(|key| inside(key.path, &path)) => {
                table.iter().try_for_each(|item| self.entry(architecture, &path, item))
            }
            (None, _) => {
                Err(self.error(name.span(), format!("unknown key `{path}`"), near(&path, &OF_THE_WHOLE)))
            }
        }
    }

    fn set(
        &self,
        architecture: &mut Architecture,
        path: &str,
        (text, span): &(String, Range<usize>),
    ) -> Result<(), ArchitectureError> {
        architecture.set(path, text).map_err(|(message, remedy)| self.error(span.clone(), message, remedy))
    }

    /// A value with its source.
    fn sourced(
        &self,
        path: &str,
        whole: &Spanned<DeValue<'_>>,
        table: &DeTable<'_>,
    ) -> Result<((String, Range<usize>), Source), ArchitectureError> {
        let (mut text, mut source) = (None, Source::Given);
        for item in table.iter() {
            match item.0.get_ref().as_ref() {
                "value" => text = Some((self.scalar(path, item.1)?, item.1.span())),
                "source" | "calibrated_to" | "choice" if source != Source::Given => {
                    let message = format!("the table of `{path}` says twice where the value comes from");
                    let remedy = "leave one of source, calibrated_to and choice".to_owned();
                    return Err(self.error(item.0.span(), message, remedy));
                }
                "source" => source = Source::Said(self.string(item)?),
                "calibrated_to" => source = Source::Calibrated(self.string(item)?),
                "choice" => source = Source::Chosen(self.string(item)?),
                other => {
                    let message = format!("unknown key `{other}` in the table of `{path}`");
                    let remedy = "there are value, source, calibrated_to and choice".to_owned();
                    return Err(self.error(item.0.span(), message, remedy));
                }
            }
        }
        let remedy = "write { value = …, source = \"…\" }".to_owned();
        let text = text.ok_or_else(|| {
            self.error(whole.span(), format!("the table of `{path}` has no `value`"), remedy)
        })?;
        Ok((text, source))
    }

    fn scalar(&self, path: &str, value: &Spanned<DeValue<'_>>) -> Result<String, ArchitectureError> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().replace('_', "")),
            DeValue::Boolean(flag) => Ok(flag.to_string()),
            other => {
                let takes = key(path).map_or("another value", |key| key.takes);
                let message = format!("`{path}` is of type {}", other.type_str());
                Err(self.error(value.span(), message, format!("it takes {takes}")))
            }
        }
    }

    fn string(&self, (name, value): Item<'_>) -> Result<String, ArchitectureError> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            other => {
                let message = format!("`{}` is of type {}", name.get_ref(), other.type_str());
                Err(self.error(value.span(), message, "it takes a string".to_owned()))
            }
        }
    }

    fn error(&self, span: Range<usize>, message: String, remedy: String) -> ArchitectureError {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        ArchitectureError { file: self.file.to_owned(), line, message, remedy }
    }
}

/// Whether `path` lies within the table `table`.
fn inside(path: &str, table: &str) -> bool {
    path.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::spec::Entries;
    use roci_hart::CycleModel;
    use roci_units::Span;

    fn refused(text: &str) -> String {
        read("my.toml", text).expect_err("it is wrong").to_string()
    }

    #[test]
    fn the_nearest_word_is_offered_only_when_it_is_near() {
        let of = |word| nearest(word, ["alpha", "buffer", "pfc", "op"]);
        assert_eq!(of("bufer"), Some("buffer"));
        assert_eq!(of("zzz"), None);
        assert_eq!(["pcf", "fpc", "PCF"].map(of), [Some("pfc"); 3], "two letters swapped");
        assert_eq!(of("of"), None, "one of two letters is not near");
    }

    #[test]
    fn a_file_begins_with_a_preset_and_changes_what_it_names() {
        let text = "name = \"mine\"\nbase = \"cx5\"\n[context]\nentries = 1_024\n[pcie]\nread = { value = \"2us\", source = \"measured\" }\n";
        let mine = read("my.toml", text).unwrap_or_else(|error| panic!("{error}"));
        let base = presets::find("cx5").expect("it exists");
        assert_eq!((mine.context.entries, mine.pcie.read), (Entries::Count(1_024), Span::from_micros(2)));
        assert_eq!((mine.context.size, mine.units), (base.context.size, base.units));
        assert_eq!(mine.sources["pcie.read"], Source::Said("measured".to_owned()));
        assert_eq!(mine.sources["context.entries"], Source::Given);
    }

    #[test]
    fn costs_of_instructions_are_keys_of_their_own() {
        let text =
            "base = \"swcc\"\n[cores]\ncosts = { load = 3, divide = { value = 8, choice = \"radix 16\" } }\n";
        let mine = read("my.toml", text).unwrap_or_else(|error| panic!("{error}"));
        let base = presets::find("swcc").expect("it exists");
        assert_eq!(mine.cores.costs, CycleModel { load: 3, divide: 8, ..base.cores.costs });
        assert_eq!(mine.sources["cores.costs.divide"], Source::Chosen("radix 16".to_owned()));
        // Nothing is free: a loop of such instructions would outlast every bound.
        let free = refused("[cores.costs]\nalu = 0");
        assert!(free.starts_with("my.toml:2: `cores.costs.alu = 0` does not fit"), "{free}");
        assert!(refused("[cores.costs]\ntaken = 2").contains("did you mean `cores.costs"), "a name");
        for preset in presets::all() {
            assert_eq!(
                preset.cores.costs,
                CycleModel::default(),
                "{} counts as riscv-mini does",
                preset.name
            );
        }
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_line_and_what_would_be_right() {
        let unknown = refused("clock = \"1GHz\"\n[pcie]\nattached = true\nraed = \"1us\"\n");
        assert_eq!(unknown, "my.toml:4: unknown key `pcie.raed`\n  remedy: did you mean `pcie.read`?");
        assert!(refused("nmae = \"mine\"").ends_with("unknown key `nmae`\n  remedy: did you mean `name`?"));
        assert!(
            refused("zzz = 1").contains("remedy: the keys are name, about, base, clock, "),
            "{}",
            refused("zzz = 1")
        );
        assert!(refused("[send]\nfetch = -1").starts_with("my.toml:2: `send.fetch = -1` does not fit"));
        assert!(refused("[pcie]\nread = { value = 1.5 }").contains("is of type float"));
        assert!(refused("[pcie]\nread = { source = \"x\" }").contains("has no `value`"));
        assert!(refused("[pcie]\nread = { value = \"1us\", why = 1 }").contains("unknown key `why`"));
        assert!(refused("\nbase = \"cx7\"").starts_with("my.toml:2: there is no preset `cx7`"));
        assert!(refused("nothing").contains("my.toml:1:"));
        assert!(refused("[send]\nlatency = \"2 cycles\"").contains("there is no `clock`"));
        assert!(refused("[send]\nserve = 0").contains("at least 1"));
        assert!(refused("base = \"cx5\"\n[pcie]\npayload = 0").contains("`pcie.payload` must be at least 1"));
        let twice = refused("[pcie]\nread = { value = \"1us\", source = \"x\", choice = \"y\" }");
        assert!(twice.contains("says twice where"), "{twice}");
        let nameless = read("my.toml", "base = \"cx5\"\n[context]\nentries = 9").expect("it is right");
        assert_eq!(nameless.name, "my.toml");
        assert!(refused("[send]\nbuffer = \"0B\"").contains("`send.buffer` must be at least one octet"));
        assert!(refused("[send]\ninline = \"4KiB\"").contains("`send.inline` is more payload than"));
        let none = refused("base = \"swcc\"\n[cores]\nqueue = 0");
        assert!(none.ends_with("remedy: set it to 1 or more, or to \"all\" for no limit"), "{none}");
        assert!(refused("[context]\nentries = 3").contains("nowhere else"));
    }
}
