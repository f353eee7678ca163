//! The schedule, as text.

use super::joint::{Joint, Part};
use super::plans::{Going, Plan, Plans};
use super::steps::{Cpu, Does, Step, Steps};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// So many octets a schedule's file has at most.
const TEXT_MAX: usize = 1 << 30;

/// Writes what all ranks do behind `head`; `None` where it is longer than a file may be.
pub(super) fn write(head: &str, traces: &[Steps], joint: &Joint, plans: &mut Plans) -> Option<String> {
    let mut text = head.to_owned();
    let _ = writeln!(text, "num_ranks {}", traces.len());
    for (rank, trace) in traces.iter().enumerate() {
        let _ = writeln!(text, "\nrank {rank} {{");
        for (place, step) in (0..).zip(&trace.steps) {
            write_step(&mut text, trace, step, joint, joint.parts[rank].get(&place), plans);
            if text.len() > TEXT_MAX {
                return None;
            }
        }
        text.push_str("}\n");
    }
    (text.len() <= TEXT_MAX).then_some(text)
}

/// Of a collective, `b` behind the number of its node is where it begins, and the number alone where it is done.
fn write_step(
    text: &mut String,
    trace: &Steps,
    step: &Step,
    joint: &Joint,
    part: Option<&Part>,
    plans: &mut Plans,
) {
    let id = step.id;
    let (messages, marks) = (Cpu::Messages as u8, Cpu::Marks as u8);
    let name = Name(&step.name);
    let mut first = format!("n{id}");
    match (&step.does, part) {
        (Does::Calc { nanos, cpu }, _) => _ = writeln!(text, "n{id}: calc {nanos} cpu {}{name}", *cpu as u8),
        (Does::Send { to, tag, size }, _) => {
            let _ = writeln!(text, "n{id}: send {size}b to {to} tag {tag} cpu {messages}{name}");
        }
        (Does::Receive { from, tag, size }, _) => {
            let _ = writeln!(text, "n{id}: recv {size}b from {from} tag {tag} cpu {messages}{name}");
        }
        (&Does::Collective { operation, size, .. }, Some(part)) => {
            let group = &joint.groups[part.group];
            // A rank by itself has no plan, as it has nobody to send to.
            let plan = plans.get(operation, group.standing, size);
            if plan.is_some() {
                first.push('b');
            }
            let _ = writeln!(text, "{first}: calc 0 cpu {marks}{name}");
            if let Some(plan) = plan {
                write_messages(text, id, plan, part, &group.members, group.tag);
            }
            if let Some(before) = part.before {
                let _ = writeln!(text, "{first} requires n{}", trace.steps[before as usize].id);
            }
        }
        (Does::Nothing | Does::Collective { .. }, _) => {
            let _ = writeln!(text, "n{id}: calc 0 cpu {marks}{name}");
        }
    }
    for &needed in &step.needs {
        let _ = writeln!(text, "{first} requires n{}", trace.steps[needed as usize].id);
    }
}

/// A node's name as a comment, or as much of it as helps.
struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        f.write_str(" // ")?;
        self.0.chars().take(60).try_for_each(|it| f.write_char(if it.is_control() { ' ' } else { it }))
    }
}

/// What a rank sends and receives, and that it is done when all has come and all has been sent off, as NCCL has it: data are copied to buffers
/// of its own first.
fn write_messages(text: &mut String, id: u64, plan: &Plan, part: &Part, members: &[u32], first_tag: u32) {
    let cpu = Cpu::Messages as u8;
    let (parts, chunks) = (plan.parts(), plan.chunks());
    let tag = |step: u32, number: u32| first_tag + step * parts + number;
    // Of each channel who stands at the rank's place, and the numbers of its parts.
    let channels =
        || (0..plan.channels()).map(|it| (it, plan.place_of(it, part.rank), it * chunks..(it + 1) * chunks));
    for (channel, place, numbers) in channels() {
        let member = |place: u32| members[plan.rank_at(channel, place) as usize];
        let mut awaits = BTreeMap::<u32, Vec<u32>>::new();
        for (sent, comes) in plan.awaits(place) {
            awaits.entry(sent).or_default().push(comes);
        }
        for Going { step, to } in plan.goes(place) {
            let waits = awaits.remove(&step).unwrap_or_default();
            for number in numbers.clone() {
                let (size, tag, to) = (plan.octets(place, step, number), tag(step, number), member(to));
                let _ = writeln!(text, "n{id}s{step}_{number}: send {size}b to {to} tag {tag} cpu {cpu}");
                if waits.is_empty() {
                    let _ = writeln!(text, "n{id}s{step}_{number} requires n{id}b");
                }
                for other in &waits {
                    let _ = writeln!(text, "n{id}s{step}_{number} requires n{id}r{other}_{number}");
                }
            }
        }
        for coming in plan.comes(place) {
            let (step, from) = (coming.step, member(coming.from));
            for number in numbers.clone() {
                let (size, tag) = (plan.octets(coming.from, step, number), tag(step, number));
                let _ = writeln!(text, "n{id}r{step}_{number}: recv {size}b from {from} tag {tag} cpu {cpu}");
                let _ = writeln!(text, "n{id}r{step}_{number} requires n{id}b");
            }
        }
    }
    let _ = writeln!(text, "n{id}: calc 0 cpu {}", Cpu::Marks as u8);
    for (_, place, numbers) in channels() {
        for coming in plan.comes(place) {
            for number in numbers.clone() {
                let _ = writeln!(text, "n{id} requires n{id}r{}_{number}", coming.step);
            }
        }
        for going in plan.goes(place) {
            for number in numbers.clone() {
                let _ = writeln!(text, "n{id} irequires n{id}s{}_{number}", going.step);
            }
        }
    }
}
