//! The schedule, as text.

use super::joint::Joint;
use super::steps::{Cpu, Does, Step, Steps};
use crate::traffic::collective::Operation;
use crate::traffic::goal::write_ranks;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// So many octets a schedule's file has at most.
const TEXT_MAX: usize = 1 << 30;

/// Writes what all ranks do behind `head`; `None` where it is longer than a file may be.
pub(super) fn write(head: &str, traces: &[Steps], joint: &Joint) -> Option<String> {
    let mut text = head.to_owned();
    let _ = writeln!(text, "num_ranks {}", traces.len());
    for (number, group) in joint.groups.iter().enumerate() {
        let _ = write!(text, "group {number}:");
        let _ = write_ranks(&mut text, &group.members);
        let name = group.name.replace(char::is_control, " ");
        let _ = writeln!(text, "{}{name}", if name.is_empty() { "" } else { " // " });
    }
    for (rank, trace) in traces.iter().enumerate() {
        let _ = writeln!(text, "\nrank {rank} {{");
        // How many collectives of each group have been written.
        let mut written = BTreeMap::new();
        for place in (0..).take(trace.steps.len()) {
            let Some(&group) = joint.of[rank].get(&place) else {
                write_step(&mut text, trace, place, None);
                continue;
            };
            // Those of a group stand in the order in which they can be done, which is not that of their numbers always.
            let order = &joint.order[rank][&group];
            let count: &mut usize = written.entry(group).or_default();
            let before = count.checked_sub(1).map(|before| order[before]);
            let part = Part { group, members: joint.groups[group].members.len(), before };
            write_step(&mut text, trace, order[*count], Some(part));
            *count += 1;
        }
        text.push_str("}\n");
        if text.len() > TEXT_MAX {
            return None;
        }
    }
    Some(text)
}

/// What a rank's part in a collective is.
struct Part {
    group: usize,
    members: usize,
    /// The place of the step that is the group's collective before this one.
    before: Option<u32>,
}

fn write_step(text: &mut String, trace: &Steps, place: u32, part: Option<Part>) {
    let step = &trace.steps[place as usize];
    let label = Label(step);
    let (messages, marks) = (Cpu::Messages as u8, Cpu::Marks as u8);
    let _ = match (&step.does, &part) {
        (Does::Calc { nanos, cpu }, _) => writeln!(text, "{label}: calc {nanos} cpu {}", *cpu as u8),
        (Does::Send { to, tag, size }, _) => {
            writeln!(text, "{label}: send {size}b to {to} tag {tag} cpu {messages}")
        }
        (Does::Receive { from, tag, size }, _) => {
            writeln!(text, "{label}: recv {size}b from {from} tag {tag} cpu {messages}")
        }
        (Does::Collective { operation, size, .. }, Some(part)) => {
            let (name, size) = (operation.name(), whole(*operation, part.members, *size));
            writeln!(text, "{label}: {name} {size}b group {} cpu {messages}", part.group)
        }
        (Does::Nothing | Does::Collective { .. }, _) => writeln!(text, "{label}: calc 0 cpu {marks}"),
    };
    for needed in step.needs.iter().copied().chain(part.and_then(|part| part.before)) {
        let _ = writeln!(text, "{label} requires {}", Label(&trace.steps[needed as usize]));
    }
}

/// Nodes of an all-gather have what goes in, as those of ASTRA-sim, and so are those of a gather taken; algorithms count what comes out.
fn whole(operation: Operation, ranks: usize, size: u64) -> u64 {
    let gathers = matches!(operation, Operation::AllGather | Operation::Gather);
    let times = if gathers { ranks as u64 } else { 1 };
    size.saturating_mul(times)
}

/// A node's name, as far as tools for such schedules take it in a label, or as much of it as helps, and its number.
struct Label<'a>(&'a Step);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Step { id, name, .. } = self.0;
        // They begin with a letter.
        let name = name.trim_start_matches(|it: char| !it.is_ascii_alphabetic());
        for it in name.chars().take(60) {
            f.write_char(if it.is_ascii_alphanumeric() { it } else { '_' })?;
        }
        if !name.is_empty() {
            f.write_char('_')?;
        }
        write!(f, "n{id}")
    }
}
