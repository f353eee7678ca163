//! What a report page consists of: tiles, and sections of plots and tables. The page's script draws whatever it is
//! given, so a report of one run and a comparison of many differ only in what is put in here.

use crate::figures::statistics::Estimate;
use serde::Serialize;

/// A whole page.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) tiles: Vec<Tile>,
    pub(crate) sections: Vec<Section>,
    /// What plots over time have marks of, in its order; they are numbered from 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) marks: Vec<Mark>,
}

/// Something that happened in the course of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Mark {
    pub(crate) name: String,
    /// When, in seconds.
    pub(crate) from: f64,
    /// When it was over; none where it took no time.
    pub(crate) until: Option<f64>,
}

/// A figure worth a large font.
#[derive(Debug, Serialize)]
pub(crate) struct Tile {
    pub(crate) label: &'static str,
    pub(crate) value: Cell,
    pub(crate) unit: Unit,
    pub(crate) note: String,
}

/// A heading with what stands below it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) note: String,
    pub(crate) plots: Vec<Plot>,
    /// What stands above the words that each row of the table begins with, before its own columns.
    pub(crate) names: Vec<String>,
    pub(crate) table: Option<Table>,
    /// Text as it is, folded away.
    pub(crate) listing: String,
}

/// Lines over one pair of axes.
#[derive(Debug, Serialize)]
pub(crate) struct Plot {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// Values hold until the next point, instead of running straight to it.
    pub(crate) step: bool,
    pub(crate) lines: Vec<Line>,
}

/// What an axis counts.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Axis {
    pub(crate) label: &'static str,
    pub(crate) unit: Unit,
    pub(crate) log: bool,
    /// The least range: where it begins and ends at the latest.
    pub(crate) from: Option<f64>,
    pub(crate) to: Option<f64>,
}

impl Axis {
    pub(crate) const fn new(label: &'static str, unit: Unit) -> Self {
        Self { label, unit, log: false, from: None, to: None }
    }

    /// At least from zero to `to`.
    pub(crate) const fn up_to(self, to: f64) -> Self {
        Self { from: Some(0.0), to: Some(to), ..self }
    }

    pub(crate) const fn above_zero(self) -> Self {
        Self { from: Some(0.0), ..self }
    }

    /// Logarithmic where `values`, ascending, span more than a factor of ten.
    pub(crate) fn log_if_wide(self, values: &[f64]) -> Self {
        let wide = match (values.first(), values.last()) {
            (Some(&least), Some(&most)) => least > 0.0 && most > 10.0 * least,
            _ => false,
        };
        Self { log: wide, ..self }
    }
}

/// A line, by name.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// Which colour; lines of one flow share theirs.
    pub(crate) colour: usize,
    pub(crate) dashed: bool,
    /// Points by themselves, with no line through them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) dots: bool,
    pub(crate) x: Vec<f64>,
    pub(crate) y: Vec<f64>,
    /// What lies around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) band: Option<Band>,
}

/// The least and the greatest of several runs, at each point of a line that is their median.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Band {
    pub(crate) low: Vec<f64>,
    pub(crate) high: Vec<f64>,
}

/// What a number counts: the script writes it with a fitting prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    /// Words as they are.
    Text,
    /// Things.
    Count,
    /// A number with some digits after the point.
    Number,
    /// Octets.
    Bytes,
    /// Bits per second.
    Rate,
    /// Seconds.
    Time,
    /// Parts of one, shown in percent.
    Share,
    /// Things per second.
    Speed,
    /// A factor.
    Factor,
}

/// A table with a heading for each column; the script sorts it by any of them.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    pub(crate) columns: Vec<(&'static str, Unit)>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// What stands in a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Cell {
    /// Words.
    Text(String),
    /// A number in its column's unit.
    Number(f64),
    /// Words that lead to another page.
    Link {
        /// Where to, beside this page.
        href: String,
        /// The words.
        text: String,
    },
    /// A mean of several runs in its column's unit, and half the width of its 95 % confidence interval.
    Estimate {
        /// The mean.
        mean: f64,
        /// Half the width.
        half_width: f64,
    },
    /// Nothing to say.
    None,
}

impl Cell {
    /// The number that it is.
    pub(crate) const fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }
}

impl From<Estimate> for Cell {
    fn from(Estimate { mean, half_width, .. }: Estimate) -> Self {
        Self::Estimate { mean, half_width }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::None, Self::Number)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self::Number(number as f64)
    }
}

impl From<usize> for Cell {
    fn from(number: usize) -> Self {
        Self::from(number as u64)
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}
