//! Where a value of a scenario was written, and errors that point there.

pub use roci_nic::arch::file::nearest;
use std::fmt;
use std::sync::Arc;

/// Where a value was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: it is a default.
    #[default]
    Default,
    /// In the scenario's text, from this octet up to that one.
    Text {
        /// The first octet.
        start: usize,
        /// The octet behind the last one.
        end: usize,
    },
    /// In the override of this index.
    Override(usize),
}

/// A value, and where it was written. Two of them are equal when the values are.
#[derive(Clone, Debug, Default)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub origin: Origin,
}

impl<T> std::ops::Deref for Located<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: PartialEq> PartialEq for Located<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Located<T> {}

/// The text that a scenario came from, kept so that a later error can still point into it.
#[derive(Clone, Debug, Default)]
pub struct Source(Arc<SourceText>);

#[derive(Debug, Default)]
struct SourceText {
    file: String,
    text: String,
    /// Path and value of each override.
    overrides: Vec<(String, String)>,
    /// Name and text of each file that is part of this program.
    files: &'static [(&'static str, &'static str)],
}

/// Why a scenario was refused: where, what, and what to do about it.
///
/// It prints as `file:line:column: what`, the line itself with the place marked, and the remedy. An error in an
/// override names the override instead.
#[derive(Clone, PartialEq, Eq)]
pub struct ScenarioError {
    /// The scenario's file, as it was named.
    pub file: String,
    /// Where it happened.
    pub place: Place,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub remedy: String,
}

/// The place of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A place in the file; lines and columns are counted from one, columns in characters.
    Line {
        /// The line.
        line: usize,
        /// The first column.
        column: usize,
        /// How many characters are meant, at least one.
        width: usize,
        /// The text of the line.
        text: String,
    },
    /// An override, as it was given: `path=value`.
    Override(String),
    /// The file as a whole.
    File,
}

impl Source {
    /// A scenario's text, the name of its file, and what overrides it.
    pub fn new(file: &str, text: &str, overrides: &[(String, String)]) -> Self {
        Self(Arc::new(SourceText {
            file: file.to_owned(),
            text: text.to_owned(),
            overrides: overrides.to_vec(),
            files: &[],
        }))
    }

    /// The same, with files by name that are taken from here and not from the disk.
    #[must_use]
    pub fn with_files(self, files: &'static [(&'static str, &'static str)]) -> Self {
        let SourceText { file, text, overrides, .. } = &*self.0;
        let (file, text, overrides) = (file.clone(), text.clone(), overrides.clone());
        Self(Arc::new(SourceText { file, text, overrides, files }))
    }

    /// The same text with other overrides in place of its own: of a file that may have changed meanwhile.
    #[must_use]
    pub fn with_overrides(&self, overrides: &[(String, String)]) -> Self {
        let SourceText { file, text, files, .. } = &*self.0;
        let (file, text, overrides) = (file.clone(), text.clone(), overrides.to_vec());
        Self(Arc::new(SourceText { file, text, overrides, files }))
    }

    /// The scenario's text.
    pub(super) fn text(&self) -> &str {
        &self.0.text
    }

    /// The text of the file `name`, where it came with the scenario.
    pub(super) fn beside(&self, name: &str) -> Option<&'static str> {
        self.0.files.iter().find(|(other, _)| *other == name).map(|(_, text)| *text)
    }

    /// The name of the file.
    pub fn file(&self) -> &str {
        &self.0.file
    }

    /// The overrides.
    pub fn overrides(&self) -> &[(String, String)] {
        &self.0.overrides
    }

    /// The text of the file, and behind it each override as a comment: what a report shows.
    pub fn as_run(&self) -> String {
        let mut text = self.0.text.clone();
        if !self.0.overrides.is_empty() {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str("\n# overridden:\n");
            for (path, value) in &self.0.overrides {
                text.push_str(&format!("# {path} = {value}\n"));
            }
        }
        text
    }

    /// An error at `origin`.
    pub fn error(
        &self,
        origin: Origin,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> ScenarioError {
        let (file, place) = (self.0.file.clone(), self.place(origin));
        ScenarioError { file, place, message: message.into(), remedy: remedy.into() }
    }

    /// The place that `origin` is.
    pub(super) fn place(&self, origin: Origin) -> Place {
        match origin {
            Origin::Default => Place::File,
            Origin::Text { start, end } => self.line(start, end),
            Origin::Override(index) => match self.0.overrides.get(index) {
                Some((path, value)) => Place::Override(format!("{path}={value}")),
                None => Place::File,
            },
        }
    }

    fn line(&self, start: usize, end: usize) -> Place {
        let text = &self.0.text;
        let start = floor_boundary(text, start);
        let end = floor_boundary(text, end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        Place::Line {
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            width: text[start..end.min(line_end)].chars().count().max(1),
            text: text[line_start..line_end].trim_end_matches('\r').to_owned(),
        }
    }
}

impl Place {
    /// It in a few words, for a note.
    pub(super) fn short(&self) -> String {
        match self {
            Self::Line { line, .. } => format!("line {line}"),
            Self::Override(given) => format!("--set {given}"),
            Self::File => "the scenario".to_owned(),
        }
    }
}

/// The last character boundary at or before `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Line { line, column, width, text } => {
                writeln!(f, "{}:{line}:{column}: {}", self.file, self.message)?;
                let number = line.to_string();
                let margin = " ".repeat(number.len());
                // Tabs are kept in the line under the text, so that the mark stands right whatever a tab's width.
                let indent: String =
                    text.chars().take(column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
                writeln!(f, "  {number} | {text}")?;
                writeln!(f, "  {margin} | {indent}{}", "^".repeat(*width))?;
            }
            Place::Override(given) => writeln!(f, "{}: --set {given}: {}", self.file, self.message)?,
            Place::File => writeln!(f, "{}: {}", self.file, self.message)?,
        }
        write!(f, "  remedy: {}", self.remedy)
    }
}

impl fmt::Debug for ScenarioError {
    /// As it prints: a failed test shows what the user would see.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ScenarioError {}

/// `a, b and c`, each between backquotes.
pub(crate) fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match words.as_slice() {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_line_and_column_and_marks_the_place() {
        let source = Source::new("a.toml", "x = 1\n\ty = \"µs\" # z\n", &[]);
        let start = 6 + 5;
        let error = source.error(Origin::Text { start, end: start + 5 }, "no", "yes");
        assert_eq!(
            error.to_string(),
            "a.toml:2:6: no\n  2 | \ty = \"µs\" # z\n    | \t    ^^^^\n  remedy: yes"
        );
    }

    #[test]
    fn a_place_inside_a_character_or_behind_the_end_is_no_trap() {
        let source = Source::new("a.toml", "µ", &[]);
        for start in 0..4 {
            for end in 0..4 {
                let error = source.error(Origin::Text { start, end }, "no", "yes");
                assert!(error.to_string().starts_with("a.toml:1:"));
            }
        }
    }
}
