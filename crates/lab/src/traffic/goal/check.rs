//! Whether a schedule can come to its end, as far as can be told before it runs: ranks may still wait for one another in a circle.

use super::{Does, GoalError, MESSAGE_MAX, Rank, Schedule};
use std::collections::{BTreeMap, BTreeSet};

/// The first thing that is wrong.
pub(super) fn check(schedule: &Schedule) -> Result<(), GoalError> {
    let ranks = u32::try_from(schedule.ranks.len()).unwrap_or(u32::MAX);
    for (rank, of_rank) in (0..).zip(&schedule.ranks) {
        for (operation, it) in (0..).zip(of_rank.operations()) {
            let (peer, size) = match it.does {
                Does::Send { to, size, .. } => (Some(to), size),
                Does::Recv { from, size, .. } => (from, size),
                Does::Calc(_) | Does::Collective { .. } => continue,
            };
            if let Some(peer) = peer.filter(|peer| *peer >= ranks) {
                let does = schedule.words(rank, operation);
                return Err(GoalError::NoRank { rank, operation, does, peer, ranks });
            }
            if size > MESSAGE_MAX {
                return Err(GoalError::TooLong { rank, operation, does: schedule.words(rank, operation) });
            }
        }
        if let Some(operation) = never_begins(of_rank) {
            return Err(GoalError::Cycle { rank, operation, does: schedule.words(rank, operation) });
        }
    }
    if let Some(circle) = circle(schedule) {
        return Err(circle);
    }
    all_are_sent(schedule)
}

/// Collectives that wait for one another, where messages come at once: each is done when all of its ranks have begun it, but for those with a
/// root, of which some ranks may be done before others begin.
fn circle(schedule: &Schedule) -> Option<GoalError> {
    if schedule.joint.is_empty() {
        return None;
    }
    let mut needs: Vec<Vec<u32>> = Vec::with_capacity(schedule.ranks.len());
    // Operations that may begin, and of each collective those that have.
    let mut open = Vec::new();
    let mut begun: Vec<Vec<(u32, u32)>> = vec![Vec::new(); schedule.joint.len()];
    for (rank, it) in (0u32..).zip(&schedule.ranks) {
        let of_rank: Vec<u32> = it.operations().iter().map(|operation| operation.needs).collect();
        open.extend((0u32..).zip(&of_rank).filter(|(_, needs)| **needs == 0).map(|(it, _)| (rank, it)));
        needs.push(of_rank);
    }
    let members = |number: u32| &schedule.groups[schedule.joint[number as usize].group as usize].ranks;
    let mut done = Vec::new();
    while let Some((rank, operation)) = open.pop() {
        let does = schedule.ranks[rank as usize].operations()[operation as usize].does;
        match does {
            Does::Collective { operation: kind, number, .. } if !kind.has_root() => {
                let begun = &mut begun[number as usize];
                begun.push((rank, operation));
                if begun.len() == members(number).len() {
                    done.append(begun);
                }
            }
            _ => done.push((rank, operation)),
        }
        // What waits for its beginning alone waits for the end of no collective.
        let at_begin = matches!(does, Does::Collective { .. });
        let mut release = |rank: u32, operation: u32, wanted: &dyn Fn(bool) -> bool| {
            for edge in schedule.ranks[rank as usize].edges(operation).filter(|edge| wanted(edge.at_begin)) {
                let needs = &mut needs[rank as usize][edge.to as usize];
                *needs -= 1;
                if *needs == 0 {
                    open.push((rank, edge.to));
                }
            }
        };
        if at_begin {
            release(rank, operation, &|at_begin| at_begin);
        }
        for (rank, operation) in done.drain(..) {
            let does = schedule.ranks[rank as usize].operations()[operation as usize].does;
            let is_joint = matches!(does, Does::Collective { .. });
            release(rank, operation, &|at_begin| !is_joint || !at_begin);
        }
    }
    // Of each rank one that it has begun and others have not.
    let waits: BTreeMap<u32, (u32, u32)> = (0u32..)
        .zip(&begun)
        .flat_map(|(number, of)| of.iter().map(move |&(rank, operation)| (rank, (operation, number))))
        .collect();
    let (&rank, &(operation, number)) = waits.first_key_value()?;
    let has_begun: BTreeSet<u32> = begun[number as usize].iter().map(|(of, _)| *of).collect();
    let other = members(number).iter().copied().find(|member| !has_begun.contains(member))?;
    let of_other = schedule.words(other, waits.get(&other)?.0);
    Some(GoalError::Circle { rank, operation, does: schedule.words(rank, operation), other, of_other })
}

/// The first operation that would not begin if all messages came at once.
fn never_begins(rank: &Rank) -> Option<u32> {
    let mut needs: Vec<u32> = rank.operations().iter().map(|operation| operation.needs).collect();
    let mut open: Vec<u32> = (0..).zip(&needs).filter(|(_, needs)| **needs == 0).map(|(it, _)| it).collect();
    while let Some(done) = open.pop() {
        for edge in rank.edges(done) {
            let needs = &mut needs[edge.to as usize];
            *needs -= 1;
            if *needs == 0 {
                open.push(edge.to);
            }
        }
    }
    (0..).zip(needs).find(|(_, needs)| *needs > 0).map(|(it, _)| it)
}

/// Whether all messages are sent that are waited for by name.
fn all_are_sent(schedule: &Schedule) -> Result<(), GoalError> {
    let mut counts = BTreeMap::<(u32, u32, u32), [u64; 2]>::new();
    for (rank, of_rank) in (0..).zip(&schedule.ranks) {
        for operation in of_rank.operations() {
            match operation.does {
                Does::Send { to, tag, .. } => counts.entry((to, rank, tag)).or_default()[0] += 1,
                Does::Recv { from: Some(from), tag: Some(tag), .. } => {
                    counts.entry((rank, from, tag)).or_default()[1] += 1;
                }
                Does::Recv { .. } | Does::Calc(_) | Does::Collective { .. } => {}
            }
        }
    }
    let missing = |((to, from, tag), [sent, received]): ((u32, u32, u32), [u64; 2])| {
        (received > sent).then_some(GoalError::NeverSent { to, from, tag, received, sent })
    };
    counts.into_iter().find_map(missing).map_or(Ok(()), Err)
}
