//! Whether a schedule can come to its end, as far as can be told before it runs: ranks may still wait for one another in a circle.

use super::{Does, GoalError, MESSAGE_MAX, Rank, Schedule};
use std::collections::BTreeMap;

/// The first thing that is wrong.
pub(super) fn check(schedule: &Schedule) -> Result<(), GoalError> {
    let ranks = u32::try_from(schedule.ranks.len()).unwrap_or(u32::MAX);
    for (rank, of_rank) in (0..).zip(&schedule.ranks) {
        for (operation, it) in (0..).zip(of_rank.operations()) {
            let (peer, size) = match it.does {
                Does::Send { to, size, .. } => (Some(to), size),
                Does::Recv { from, size, .. } => (from, size),
                Does::Calc(_) => continue,
            };
            if let Some(peer) = peer.filter(|peer| *peer >= ranks) {
                return Err(GoalError::NoRank { rank, operation, does: it.does.to_string(), peer, ranks });
            }
            if size > MESSAGE_MAX {
                return Err(GoalError::TooLong { rank, operation, does: it.does.to_string() });
            }
        }
        if let Some(operation) = never_begins(of_rank) {
            let does = of_rank.operations()[operation as usize].does.to_string();
            return Err(GoalError::Cycle { rank, operation, does });
        }
    }
    all_are_sent(schedule)
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
                Does::Recv { .. } | Does::Calc(_) => {}
            }
        }
    }
    let missing = |((to, from, tag), [sent, received]): ((u32, u32, u32), [u64; 2])| {
        (received > sent).then_some(GoalError::NeverSent { to, from, tag, received, sent })
    };
    counts.into_iter().find_map(missing).map_or(Ok(()), Err)
}
