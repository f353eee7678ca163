//! Which nodes of the ranks are one collective: the first of a process group at each rank, the second, and so on.

use super::ChakraError;
use super::groups::Groups;
use super::steps::{Does, Step, Steps};
use crate::traffic::collective::Operation;
use std::collections::BTreeMap;

/// A process group.
#[derive(Debug)]
pub(super) struct Group {
    /// What the traces call it; empty for that of all ranks.
    pub(super) name: String,
    /// The ranks, in the order in which algorithms count them.
    pub(super) members: Vec<u32>,
}

/// All groups that do collectives.
#[derive(Debug, Default)]
pub(super) struct Joint {
    pub(super) groups: Vec<Group>,
    /// Of each rank, by the place of the step, its group.
    pub(super) of: Vec<BTreeMap<u32, usize>>,
    /// Of each rank and group the places of the steps, in an order in which they can be done.
    pub(super) order: Vec<BTreeMap<usize, Vec<u32>>>,
}

impl Joint {
    /// Finds them. `listed` are the groups that hold for all ranks; those of a trace go before.
    pub(super) fn new(traces: &[Steps], listed: &Groups) -> Result<Self, ChakraError> {
        let mut joint = Self::default();
        // By name and ranks in order.
        let mut places: BTreeMap<(String, Vec<u32>), usize> = BTreeMap::new();
        for (rank, trace) in (0..).zip(traces) {
            let mut of = BTreeMap::new();
            let mut order = BTreeMap::<usize, Vec<u32>>::new();
            let mut found: BTreeMap<&str, usize> = BTreeMap::new();
            for &place in &trace.order {
                let step = &trace.steps[place as usize];
                let Does::Collective { group: name, .. } = &step.does else { continue };
                let group = match found.get(&**name) {
                    Some(group) => *group,
                    None => {
                        let group = members(name, rank, traces.len(), &trace.groups, listed)
                            .and_then(|members| joint.add(name, rank, members, &mut places))
                            .map_err(|what| ChakraError::node(rank, step, what))?;
                        found.insert(name, group);
                        group
                    }
                };
                of.insert(place, group);
                order.entry(group).or_default().push(place);
            }
            joint.of.push(of);
            joint.order.push(order);
        }
        Ok(joint)
    }

    /// The place of the group `name` with these ranks, in which `rank` takes part.
    fn add(
        &mut self,
        name: &str,
        rank: u32,
        members: Vec<u32>,
        places: &mut BTreeMap<(String, Vec<u32>), usize>,
    ) -> Result<usize, String> {
        if !members.contains(&rank) {
            return Err(format!("process group `{name}` is without this rank; list it there"));
        }
        // `0` is PyTorch's name of the group of all.
        let name = if name == "0" { "" } else { name };
        let mut sorted = members.clone();
        sorted.sort_unstable();
        let place = *places.entry((name.to_owned(), sorted)).or_insert(self.groups.len());
        match self.groups.get(place) {
            None => self.groups.push(Group { name: name.to_owned(), members }),
            Some(known) if known.members != members => {
                return Err(format!(
                    "its process group `{name}` has its ranks in another order here ({}) than in a trace before ({}); list them in one order, in \
                     which algorithms count them",
                    listing(&members),
                    listing(&known.members)
                ));
            }
            Some(_) => {}
        }
        Ok(place)
    }
}

/// The first ranks of a list.
fn listing(ranks: &[u32]) -> String {
    let first: Vec<String> = ranks.iter().take(8).map(u32::to_string).collect();
    let more = if ranks.len() > 8 { ", ..." } else { "" };
    format!("{}{more}", first.join(", "))
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

/// The operations that occur.
pub(super) fn operations(traces: &[Steps]) -> Vec<Operation> {
    let occurs = |operation: &Operation| {
        let steps = traces.iter().flat_map(|trace| &trace.steps);
        steps
            .map(|step: &Step| &step.does)
            .any(|does| matches!(does, Does::Collective { operation: it, .. } if it == operation))
    };
    Operation::ALL.into_iter().filter(occurs).collect()
}
