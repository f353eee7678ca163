//! A scenario's text as a tree of values that know where they were written, with overrides applied.

use super::overrides;
use super::source::{Origin, ScenarioError, Source, listed};
use super::syntax;
use super::transport::Control;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value, and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) origin: Origin,
}

/// What a value is. Numbers keep the text in which they were written: a decimal is read as an exact fraction.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Text(String),
    Integer(String),
    Decimal(String),
    Flag(bool),
    Array(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key of a table with its value, in the order of the text.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_origin: Origin,
    pub(crate) value: Node,
}

impl Node {
    /// What it is, for a message.
    pub(crate) fn what(&self) -> &'static str {
        match self.kind {
            Kind::Text(_) => "a string",
            Kind::Integer(_) => "a whole number",
            Kind::Decimal(_) => "a decimal number",
            Kind::Flag(_) => "true or false",
            Kind::Array(_) => "a list",
            Kind::Table(_) => "a table",
        }
    }

    /// A scalar as text: a string without its quotes, a number as it was written.
    pub(crate) fn scalar(&self) -> Option<String> {
        match &self.kind {
            Kind::Text(text) | Kind::Integer(text) | Kind::Decimal(text) => Some(text.clone()),
            Kind::Flag(flag) => Some(flag.to_string()),
            Kind::Array(_) | Kind::Table(_) => None,
        }
    }

    /// The name that a table has among others.
    fn name(&self) -> Option<&str> {
        let Kind::Table(entries) = &self.kind else { return None };
        entries.iter().find(|entry| entry.key == "name").and_then(|entry| match &entry.value.kind {
            Kind::Text(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Whether it is a table with `key`.
    fn has(&self, key: &str) -> bool {
        matches!(&self.kind, Kind::Table(entries) if entries.iter().any(|entry| entry.key == key))
    }

    /// As it would be written: for messages.
    pub(crate) fn shown(&self) -> String {
        match &self.kind {
            Kind::Text(text) => format!("\"{text}\""),
            Kind::Array(items) => {
                format!("[{}]", items.iter().map(Self::shown).collect::<Vec<_>>().join(", "))
            }
            Kind::Table(_) => "{ … }".to_owned(),
            Kind::Integer(text) | Kind::Decimal(text) => text.clone(),
            Kind::Flag(flag) => flag.to_string(),
        }
    }
}

/// The tree of `source`'s text with its overrides applied, in their order.
pub(crate) fn parse(source: &Source, text: &str) -> Result<Node, ScenarioError> {
    let table = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        // The parser only notices on a later line, which may be all right.
        if let Some((at, bracket)) = syntax::never_closed(text, span.start) {
            let origin = Origin::Text { start: at, end: at + 1 };
            let message = format!("this is not TOML: `{bracket}` is never closed");
            return source.error(origin, message, syntax::closing(bracket));
        }
        let origin = Origin::Text { start: span.start, end: span.end };
        source.error(
            origin,
            format!("this is not TOML: {}", error.message().replace('\n', ", ")),
            syntax::remedy(text, &span, error.message()),
        )
    })?;
    let mut root = from_table(source, &table, &Place::Text)?;
    for (index, (path, value)) in source.overrides().iter().enumerate() {
        apply(source, &mut root, index, path, value)?;
    }
    Ok(root)
}

/// Whether `value` is but the name of the law that the table `control` is about: such an override keeps its settings.
fn names_the_law_of(control: &Node, value: &Node) -> bool {
    let (Kind::Table(entries), Kind::Text(name)) = (&control.kind, &value.kind) else { return false };
    match entries.iter().find(|entry| entry.key == "law") {
        Some(law) => matches!(&law.value.kind, Kind::Text(law) if law == name),
        // A table that was made on the way to here is empty: nothing was written.
        None => !entries.is_empty() && *name == *Control::default().law,
    }
}

/// Whether spans of what is read point into the file or belong to an override.
enum Place {
    Text,
    Override(usize),
}

impl Place {
    fn origin<T>(&self, item: &Spanned<T>) -> Origin {
        match self {
            Self::Text => Origin::Text { start: item.span().start, end: item.span().end },
            Self::Override(index) => Origin::Override(*index),
        }
    }
}

fn from_table(source: &Source, table: &Spanned<DeTable<'_>>, place: &Place) -> Result<Node, ScenarioError> {
    Ok(Node { kind: Kind::Table(entries(source, table.get_ref(), place)?), origin: place.origin(table) })
}

fn entries(source: &Source, table: &DeTable<'_>, place: &Place) -> Result<Vec<Entry>, ScenarioError> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        entries.push(Entry {
            key: key.get_ref().to_string(),
            key_origin: place.origin(key),
            value: from_value(source, value, place)?,
        });
    }
    // The parser sorts by name; a message and an iteration follow the text.
    entries.sort_by_key(|entry| match entry.key_origin {
        Origin::Text { start, .. } => start,
        Origin::Override(_) | Origin::Default => 0,
    });
    Ok(entries)
}

fn from_value(source: &Source, value: &Spanned<DeValue<'_>>, place: &Place) -> Result<Node, ScenarioError> {
    let origin = place.origin(value);
    let kind = match value.get_ref() {
        DeValue::String(text) => Kind::Text(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Kind::Integer(number.as_str().to_owned()),
        DeValue::Integer(number) => match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Kind::Integer(number.to_string()),
            Err(_) => return Err(source.error(origin, "this number is out of range", "write a smaller one")),
        },
        DeValue::Float(number) => Kind::Decimal(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Kind::Flag(*flag),
        DeValue::Datetime(_) => {
            return Err(source.error(
                origin,
                "a scenario has no use for a date",
                "write a time since the start of the run, such as \"1ms\"",
            ));
        }
        DeValue::Array(items) => {
            Kind::Array(items.iter().map(|item| from_value(source, item, place)).collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => Kind::Table(entries(source, table, place)?),
    };
    Ok(Node { kind, origin })
}

/// What an override's value reads as: TOML, else a string, unless it was to be a table or a list.
fn override_value(source: &Source, index: usize, value: &str) -> Result<Node, ScenarioError> {
    let origin = Origin::Override(index);
    let error = match DeValue::parse(value) {
        Ok(parsed) => return from_value(source, &parsed, &Place::Override(index)),
        Err(error) => error,
    };
    let span = error.span().unwrap_or(0..0);
    if error.message().contains("duplicate key") {
        let key = value.get(span).unwrap_or_default().trim_matches(['"', '\'']);
        return Err(source.error(
            origin,
            format!("key `{key}` stands twice in `{value}`"),
            "keep one of the two",
        ));
    }
    if value.starts_with('{') {
        let message = format!("`{value}` is not TOML: {}", error.message().replace('\n', ", "));
        return Err(source.error(origin, message, syntax::remedy(value, &span, error.message())));
    }
    Ok(Node { kind: Kind::Text(value.to_owned()), origin })
}

/// Writes `value` at `path`. Tables on the way are made; lists must be long enough.
fn apply(
    source: &Source,
    root: &mut Node,
    index: usize,
    path: &str,
    value: &str,
) -> Result<(), ScenarioError> {
    let origin = Origin::Override(index);
    let value = override_value(source, index, value)?;
    let parts = overrides::keys_of(path);
    if parts.iter().any(|part| part.is_empty()) {
        return Err(source.error(
            origin,
            "this path has an empty part",
            "write a path of keys such as switch.buffer",
        ));
    }
    let mut node = root;
    for (depth, part) in parts.iter().enumerate() {
        let last = depth + 1 == parts.len();
        let so_far = parts[..depth].join(".");
        // A switch such as `pfc = true` becomes a table when one of its keys is set, and a law named by a string
        // keeps its name.
        match &node.kind {
            Kind::Flag(_) => node.kind = Kind::Table(Vec::new()),
            Kind::Text(law) if so_far.ends_with("control") => {
                let named = Node { kind: Kind::Text(law.clone()), origin: node.origin };
                let entry = Entry { key: "law".to_owned(), key_origin: node.origin, value: named };
                node.kind = Kind::Table(vec![entry]);
            }
            _ => {}
        }
        let what = node.what();
        node = match &mut node.kind {
            Kind::Table(entries) => {
                // Another law has other keys: those of the law before it go.
                let same = |entry: &Entry| entry.key == "law" && entry.value.scalar() == value.scalar();
                if last && *part == "law" && so_far.ends_with("control") && !entries.iter().any(same) {
                    entries.retain(|entry| matches!(entry.value.origin, Origin::Override(_)));
                }
                let at = match entries.iter().position(|entry| entry.key == *part) {
                    Some(at) => at,
                    None => {
                        let value = Node { kind: Kind::Table(Vec::new()), origin };
                        entries.push(Entry { key: (*part).to_owned(), key_origin: origin, value });
                        entries.len() - 1
                    }
                };
                if last {
                    entries[at].key_origin = origin;
                }
                &mut entries[at].value
            }
            Kind::Array(items) => {
                let named = |item: &Node| item.name().is_some_and(|name| name == *part);
                let at = part.parse::<usize>().ok().or_else(|| items.iter().position(named));
                let remedy = places(items, &so_far, &parts[depth..]);
                match at.and_then(|at| items.get_mut(at)) {
                    Some(item) => item,
                    None => {
                        let message =
                            format!("`{part}` is no index into the list `{so_far}`, nor a name there");
                        return Err(source.error(origin, message, remedy));
                    }
                }
            }
            _ => {
                return Err(source.error(
                    origin,
                    format!("`{so_far}` is {what} and has no key `{part}`"),
                    format!("set {} itself", listed([so_far.as_str()])),
                ));
            }
        };
        if last {
            if *part != "control" || !names_the_law_of(node, &value) {
                *node = value;
            }
            return Ok(());
        }
    }
    Ok(())
}

/// The indices and names of the entries of a list; of one entry, what to write where its index was left out before `rest`.
fn places(items: &[Node], list: &str, rest: &[&str]) -> String {
    /// So many names are told.
    const MOST: usize = 8;
    let names: Vec<&str> = items.iter().filter_map(Node::name).collect();
    let names = match names.len() {
        0 => String::new(),
        1..=MOST => format!(", and the names {}", listed(names)),
        _ => format!(", and names such as {}", listed(names.into_iter().take(MOST))),
    };
    match items.len() {
        0 => format!("`{list}` is empty"),
        // What else stands there may be the name of another entry.
        1 if rest.iter().all(|part| part.parse::<usize>().is_err())
            && (rest.len() == 1 || items[0].has(rest[0])) =>
        {
            // A part with dots of its own needs its quotes again.
            let quoted =
                |part: &&str| if part.contains('.') { format!("\"{part}\"") } else { (*part).to_owned() };
            let rest: Vec<String> = rest.iter().map(quoted).collect();
            format!("`{list}` has one entry, with the index 0: write `{list}.0.{}`", rest.join("."))
        }
        1 => format!("`{list}` has one entry, with the index 0{names}"),
        count => format!("`{list}` has the indices 0 to {}{names}", count - 1),
    }
}
