//! `[measure]`: what is recorded.

use super::read::Table;
use super::source::{Located, ScenarioError};
use super::topology::Names;
use roci_units::Span;

/// What is recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// The interval of the time series; `None`: there is none.
    pub sample: Option<Span>,
    /// The hosts and switches whose packets are captured.
    pub pcap: Vec<Located<String>>,
    /// Whether the time series holds the words of programs' contexts at receivers, besides those at senders.
    pub receivers: bool,
    /// Whether the time series is written as text too.
    pub series_csv: bool,
    /// Whether what happened when is written for a viewer of traces.
    pub timeline: bool,
    /// Whether ports count by priority; `None`: where several are known to be in use.
    pub priorities: Option<bool>,
}

impl Default for Measure {
    fn default() -> Self {
        Self {
            sample: Some(Span::from_micros(100)),
            pcap: Vec::new(),
            receivers: false,
            series_csv: false,
            timeline: false,
            priorities: None,
        }
    }
}

impl Measure {
    /// Reads `[measure]`.
    pub(super) fn read(table: Option<Table<'_>>, names: &Names<'_>) -> Result<Self, ScenarioError> {
        let default = Self::default();
        let Some(table) = table else { return Ok(default) };
        let pcap = table.texts("pcap")?.unwrap_or_default();
        for name in &pcap {
            names.node(table.source, name)?;
        }
        let pcap = names.with_nics(pcap);
        let sample = match table.span("sample")? {
            None => default.sample,
            Some(span) => (!span.is_zero()).then_some(span),
        };
        let receivers = table.flag("receivers")?.unwrap_or(default.receivers);
        let series_csv = table.flag("series_csv")?.unwrap_or(default.series_csv);
        let timeline = table.flag("timeline")?.unwrap_or(default.timeline);
        let priorities = table.flag("priorities")?;
        Ok(Self { sample, pcap, receivers, series_csv, timeline, priorities })
    }
}
