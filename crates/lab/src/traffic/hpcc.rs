//! The flow files of the HPCC simulator.
//!
//! The first line counts the flows; each other line is one: `src dst pg dport bytes start_s`. Nodes are given by
//! number, which the host's name has: node 7 is `h7`. The priority group is the priority; the port is not used. Empty
//! lines and what follows a `#` are skipped. What stands behind the flows that the first line counts is not read: in the
//! simulator's own files more flows and an explanation.

use super::fault::MESSAGE_MAX;
use super::spec::{Common, HpccFlow, HpccFlows};
use roci_fabric::packet::HostId;
use roci_fabric::queue::HORIZON_PS;
use roci_units::{Bytes, Instant, Span};
use std::collections::BTreeMap;

/// Why a text is not a flow file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowFileError {
    /// The first line is not a number.
    #[error("line {line}: {text:?} is not the number of flows; begin the file with that")]
    Count {
        /// Its number, from 1.
        line: usize,
        /// What it says.
        text: String,
    },
    /// Fewer flows than the first line counts.
    #[error("the first line counts {counted} flows, but {found} follow; correct the count")]
    WrongCount {
        /// What the first line says.
        counted: usize,
        /// How many there are.
        found: usize,
    },
    /// A line has another form.
    #[error(
        "line {line}: {text:?} is not a flow; write \"src dst pg dport bytes start_s\", such as \"0 1 3 100 5000 2.0\""
    )]
    Form {
        /// Its number, from 1.
        line: usize,
        /// What it says.
        text: String,
    },
    /// A node that is no host of the topology.
    #[error(
        "line {line}: node {node} is not a host: the topology has no host \"h{node}\"; give the number of one that it has"
    )]
    UnknownHost {
        /// Its number, from 1.
        line: usize,
        /// The node.
        node: u32,
    },
    /// Source and destination are one host.
    #[error("line {line}: a flow from node {node} to itself; give it another destination")]
    ToItself {
        /// Its number, from 1.
        line: usize,
        /// The node.
        node: u32,
    },
    /// A priority group that Ethernet does not have.
    #[error("line {line}: priority group {group}; use one from 0 to 7")]
    Priority {
        /// Its number, from 1.
        line: usize,
        /// The group.
        group: u32,
    },
    /// A flow that would start after the longest run.
    #[error("line {line}: a start at {start}; a run lasts less than 4503s, so let it start earlier")]
    TooLate {
        /// Its number, from 1.
        line: usize,
        /// Its start.
        start: Span,
    },
    /// A flow of nothing.
    #[error("line {line}: a flow of 0 bytes; give it at least 1, or leave it out and correct the count")]
    Empty {
        /// Its number, from 1.
        line: usize,
    },
    /// A flow is longer than a message may be.
    #[error("line {line}: a flow of {size}; use several of at most 2GiB")]
    TooLong {
        /// Its number, from 1.
        line: usize,
        /// Its size.
        size: Bytes,
    },
}

impl HpccFlows {
    /// Reads a flow file for a topology with these host names; flows are put in the order of their starts.
    ///
    /// # Errors
    /// When a line has another form or makes no sense, with its number, or the count is wrong.
    pub fn read(text: &str, hosts: &[String], common: Common) -> Result<Self, FlowFileError> {
        let numbers = host_numbers(hosts);
        let mut lines = text.lines().enumerate().filter_map(|(index, line)| {
            let content = line.split('#').next().unwrap_or_default().trim();
            (!content.is_empty()).then_some((index + 1, content))
        });
        let (line, first) = lines.next().unwrap_or((1, ""));
        let counted: usize =
            first.parse().map_err(|_| FlowFileError::Count { line, text: first.to_owned() })?;
        let mut flows = Vec::new();
        for (line, content) in lines.by_ref().take(counted) {
            flows.push(flow(line, content, &numbers)?);
        }
        if flows.len() != counted {
            return Err(FlowFileError::WrongCount { counted, found: flows.len() });
        }
        let unread = lines.any(|(line, content)| flow(line, content, &numbers).is_ok());
        let note = unread
            .then(|| format!("the flow file counts {counted} flows; there are more, which are not read"));
        flows.sort_by_key(|flow: &HpccFlow| flow.start); // stable: equal starts keep the file's order
        Ok(Self { flows, common, note })
    }
}

/// The hosts by the number in their names.
fn host_numbers(hosts: &[String]) -> BTreeMap<u32, HostId> {
    let number = |name: &String| name.strip_prefix('h')?.parse().ok();
    let numbered = (0u16..).zip(hosts).filter_map(|(index, name)| Some((number(name)?, HostId(index))));
    numbered.collect()
}

fn flow(line: usize, content: &str, hosts: &BTreeMap<u32, HostId>) -> Result<HpccFlow, FlowFileError> {
    let form = || FlowFileError::Form { line, text: content.to_owned() };
    let mut fields = content.split_whitespace();
    let mut field = || fields.next().ok_or_else(form);
    let number = |text: &str| text.parse::<u32>().map_err(|_| form());
    let (src, dst, group, port) =
        (number(field()?)?, number(field()?)?, number(field()?)?, number(field()?)?);
    let size: u64 = field()?.parse().map_err(|_| form())?;
    let start: Span = format!("{}s", field()?).parse().map_err(|_| form())?;
    if start.as_ps() >= HORIZON_PS {
        return Err(FlowFileError::TooLate { line, start });
    }
    if fields.next().is_some() || port > u32::from(u16::MAX) {
        return Err(form());
    }
    let find = |node: u32| hosts.get(&node).copied().ok_or(FlowFileError::UnknownHost { line, node });
    let (from, to) = (find(src)?, find(dst)?);
    if from == to {
        return Err(FlowFileError::ToItself { line, node: src });
    }
    let priority = u8::try_from(group).ok().filter(|&p| p < 8);
    let priority = priority.ok_or(FlowFileError::Priority { line, group })?;
    let size = Bytes(size);
    if size == Bytes(0) {
        return Err(FlowFileError::Empty { line });
    }
    if size > MESSAGE_MAX {
        return Err(FlowFileError::TooLong { line, size });
    }
    Ok(HpccFlow { start: Instant::ZERO + start, size, src: from, dst: to, priority })
}
