//! Which nodes of the ranks are one collective: the first of a process group at each rank, the second, and so on.

use super::ChakraError;
use super::groups::Groups;
use super::plans::{Plan, Plans, Standing};
use super::steps::{Does, Step, Steps};
use crate::traffic::collective::Operation;
use std::collections::BTreeMap;

/// A process group.
#[derive(Debug)]
pub(super) struct Group {
    /// The ranks, in the order in which its algorithms count them.
    pub(super) members: Vec<u32>,
    /// How these stand on servers.
    pub(super) standing: Standing,
    /// The first of its tags.
    pub(super) tag: u32,
}

/// What a rank does in a collective.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// The group, by its place.
    pub(super) group: usize,
    /// Its number within the group.
    pub(super) rank: u32,
    /// The place of the rank's step that is the group's collective before this one.
    pub(super) before: Option<u32>,
}

/// All collectives.
#[derive(Debug, Default)]
pub(super) struct Joint {
    pub(super) groups: Vec<Group>,
    /// Of each rank, by the place of the step.
    pub(super) parts: Vec<BTreeMap<u32, Part>>,
}

impl Joint {
    /// Finds them, and makes a plan for each kind. `listed` are the groups that hold for all ranks; those of a trace go before. So many ranks
    /// in a row share a server.
    pub(super) fn new(
        traces: &[Steps],
        listed: &Groups,
        per_server: u32,
        plans: &mut Plans,
    ) -> Result<Self, ChakraError> {
        let mut joint = Self::default();
        let mut places = BTreeMap::new();
        // Of each group the collectives of its members, by their numbers within.
        let mut sequences: Vec<Vec<Vec<(u32, &Step)>>> = Vec::new();
        for (rank, trace) in (0..).zip(traces) {
            let mut parts = BTreeMap::new();
            // By name the group and the rank's number within.
            let mut found: BTreeMap<&str, (usize, u32)> = BTreeMap::new();
            for &place in &trace.order {
                let step = &trace.steps[place as usize];
                let Does::Collective { group: name, .. } = &step.does else { continue };
                let (group, within) = match found.get(&**name) {
                    Some(found) => *found,
                    None => {
                        let members = members(name, rank, traces.len(), &trace.groups, listed)
                            .map_err(|what| ChakraError::node(rank, step, what))?;
                        let within = members.iter().position(|member| *member == rank).ok_or_else(|| {
                            let what = format!("process group `{name}` is without this rank; list it there");
                            ChakraError::node(rank, step, what)
                        })?;
                        // `0` is PyTorch's name of the group of all.
                        let alike = if &**name == "0" { "" } else { name };
                        let group =
                            *places.entry((alike.to_owned(), members)).or_insert_with_key(|(_, members)| {
                                sequences.push(vec![Vec::new(); members.len()]);
                                let standing = Standing::of(members, per_server);
                                joint.groups.push(Group { members: members.clone(), standing, tag: 0 });
                                joint.groups.len() - 1
                            });
                        let it = (group, u32::try_from(within).unwrap_or(u32::MAX));
                        found.insert(name, it);
                        it
                    }
                };
                let sequence = &mut sequences[group][within as usize];
                let before = sequence.last().map(|(place, _)| *place);
                sequence.push((place, step));
                parts.insert(place, Part { group, rank: within, before });
            }
            joint.parts.push(parts);
        }
        let mut tag = first_tag(traces);
        for (group, sequences) in joint.groups.iter_mut().zip(&sequences) {
            are_alike(&group.members, sequences)?;
            let tags = plan(group, &sequences[0], plans)?;
            group.tag = u32::try_from(tag).ok().filter(|_| tag + tags <= 1 << 32).ok_or(ChakraError::Tags)?;
            tag += tags;
        }
        Ok(joint)
    }
}

/// The ranks of the group `name`, for `rank`.
fn members(name: &str, rank: u32, ranks: usize, own: &Groups, listed: &Groups) -> Result<Vec<u32>, String> {
    let all = || (0..).take(ranks).collect();
    let members = match own.get(name).or_else(|| listed.get(name)) {
        // Whatever lists say, as in ASTRA-sim.
        _ if name.is_empty() || name == "0" => all(),
        // A list without ranks is one of all.
        Some(members) if members.is_empty() => all(),
        Some(members) => members.clone(),
        None => {
            return Err(format!(
                "there is no process group `{name}`, neither in the trace of rank {rank} nor in --groups; list its ranks there"
            ));
        }
    };
    let mut sorted = members.clone();
    sorted.sort_unstable();
    if let Some(beyond) = sorted.last().filter(|last| **last as usize >= ranks) {
        return Err(format!(
            "process group `{name}` has rank {beyond}, and there are traces of {ranks} ranks; add that one's"
        ));
    }
    if let Some(two) = sorted.windows(2).find(|two| two[0] == two[1]) {
        return Err(format!("process group `{name}` has rank {} twice; list it once", two[0]));
    }
    Ok(members)
}

/// Tags of collectives come behind those that the traces give to messages.
fn first_tag(traces: &[Steps]) -> u64 {
    let tags = traces.iter().flat_map(|trace| &trace.steps).filter_map(|step| match step.does {
        Does::Send { tag, .. } | Does::Receive { tag, .. } => Some(u64::from(tag) + 1),
        Does::Nothing | Does::Calc { .. } | Does::Collective { .. } => None,
    });
    tags.max().unwrap_or(0)
}

/// Whether all members of a group do the same one after the other.
fn are_alike(members: &[u32], sequences: &[Vec<(u32, &Step)>]) -> Result<(), ChakraError> {
    let first = &sequences[0];
    for (&member, other) in members.iter().zip(sequences).skip(1) {
        for (number, (one, other)) in first.iter().zip(other).enumerate() {
            if said(&one.1.does) != said(&other.1.does) {
                let told = |rank: u32, step: &Step| {
                    format!(
                        "rank {rank}: node {}, `{}`, {}",
                        step.id,
                        step.name.escape_debug(),
                        said(&step.does)
                    )
                };
                let group = match &one.1.does {
                    Does::Collective { group, .. } if !group.is_empty() => format!("process group `{group}`"),
                    _ => "all ranks".to_owned(),
                };
                return Err(ChakraError::Unlike {
                    number: number + 1,
                    group,
                    one: told(members[0], one.1),
                    other: told(member, other.1),
                });
            }
        }
        let (more, fewer, surplus) = match first.len().cmp(&other.len()) {
            std::cmp::Ordering::Equal => continue,
            std::cmp::Ordering::Greater => (members[0], member, first[other.len()].1),
            std::cmp::Ordering::Less => (member, members[0], other[first.len()].1),
        };
        let what = format!(
            "{}, has no counterpart at rank {fewer}, which has fewer collectives of that process group; add it there",
            said(&surplus.does)
        );
        return Err(ChakraError::node(more, surplus, what));
    }
    Ok(())
}

fn said(does: &Does) -> String {
    match does {
        Does::Collective { operation, size, .. } => format!("{} of {size} octets", operation.name()),
        _ => String::new(),
    }
}

/// Plans what a group does; how many tags it takes.
fn plan(group: &Group, sequence: &[(u32, &Step)], plans: &mut Plans) -> Result<u64, ChakraError> {
    let standing = group.standing;
    let mut tags = 0;
    for (_, step) in sequence {
        let Does::Collective { operation, size, .. } = step.does else { continue };
        if standing.ranks > 1 {
            plans
                .add(operation, standing, size)
                .map_err(|what| ChakraError::node(group.members[0], step, what))?;
            tags = tags.max(plans.get(operation, standing, size).map_or(0, Plan::tags));
        }
    }
    Ok(tags)
}

/// The operations that occur.
pub(super) fn operations(traces: &[Steps]) -> Vec<Operation> {
    let occurs = |operation: &Operation| {
        let steps = traces.iter().flat_map(|trace| &trace.steps);
        steps
            .map(|step| &step.does)
            .any(|does| matches!(does, Does::Collective { operation: it, .. } if it == operation))
    };
    Operation::ALL.into_iter().filter(occurs).collect()
}
