//! `[measure]` and `[[at]]`: what is recorded, and what is written during the run.

use super::keys;
use super::program::Loaded;
use super::read::Table;
use super::source::{Located, ScenarioError, nearest};
use super::topology::Names;
use super::traffic::{Reading, is_numbered, unknown_flow};
use super::tree::Kind;
use roci_units::{Instant, Span};

/// What is recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// The interval of the time series; `None`: there is none.
    pub sample: Option<Span>,
    /// The hosts and switches whose packets are captured.
    pub pcap: Vec<Located<String>>,
}

impl Default for Measure {
    fn default() -> Self {
        Self { sample: Some(Span::from_micros(100)), pcap: Vec::new() }
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
        let sample = match table.span("sample")? {
            None => default.sample,
            Some(span) => (!span.is_zero()).then_some(span),
        };
        Ok(Self { sample, pcap })
    }
}

/// A register of a law that is written during the run.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisterWrite {
    /// When.
    pub time: Instant,
    /// The name of the flow whose register it is; `None`: all flows, those that start later included.
    pub flow: Option<Located<String>>,
    /// The register, without `transport.control.`.
    pub register: Located<String>,
    /// Its new value, without quotes.
    pub text: Located<String>,
    /// The program that takes the place of those that run, where the register is `elf`.
    pub program: Loaded,
}

const PREFIX: &str = "transport.control.";

impl RegisterWrite {
    /// Reads `[[at]]`, in the order of time and, for one time, of the text.
    pub(super) fn read_all(top: Table<'_>, traffic: &Reading<'_>) -> Result<Vec<Self>, ScenarioError> {
        let mut writes = Vec::new();
        for table in top.tables("at", &keys::AT)? {
            let time = table.require("time", table.instant("time")?)?;
            let flow = table.text("flow")?;
            if let Some(flow) = &flow
                && !traffic.flow_names.contains(&flow.value)
                && !is_numbered(&flow.value, traffic.traffic.len())
            {
                return Err(unknown_flow(table, flow, &traffic.flow_names));
            }
            let set = table.require("set", table.get("set"))?;
            let Kind::Table(entries) = &set.kind else {
                return Err(table.refuse(
                    "set",
                    format!("`set` is {}, not a table", set.what()),
                    "write { \"transport.control.g\" = \"1/128\" }",
                ));
            };
            for entry in entries {
                let Some(register) = entry.key.strip_prefix(PREFIX) else {
                    let near =
                        nearest(&entry.key, [PREFIX]).map_or(String::new(), |_| " (with quotes)".to_owned());
                    return Err(table.source.error(
                        entry.key_origin,
                        format!("`{}` cannot be written during a run", entry.key),
                        format!("name a register of the law, such as \"transport.control.g\"{near}"),
                    ));
                };
                let Some(text) = entry.value.scalar() else {
                    return Err(table.source.error(
                        entry.value.origin,
                        format!("`{}` is {}", entry.key, entry.value.what()),
                        "a register takes one value",
                    ));
                };
                writes.push(Self {
                    time,
                    flow: flow.clone(),
                    register: Located { value: register.to_owned(), origin: entry.key_origin },
                    text: Located { value: text, origin: entry.value.origin },
                    program: Loaded::default(),
                });
            }
        }
        writes.sort_by_key(|write| write.time);
        Ok(writes)
    }
}
