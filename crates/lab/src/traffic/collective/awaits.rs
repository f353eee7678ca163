//! What each message of a collective waits for, for those who write a schedule down before any message has come.

use super::Schedule;

impl Schedule {
    /// What `rank` sends not at once: of each pair the message of the first step waits for the one that comes in the second, of each
    /// chunk alike. It is what [`Schedule::follows`] tells as messages come.
    pub fn awaits(&self, rank: u32, comes: &[u32]) -> Vec<(u32, u32)> {
        let told = |comes: &mut dyn Iterator<Item = u32>| {
            let mut received = vec![0; self.kept() as usize];
            comes.flat_map(|step| self.follows(rank, &mut received, step)).collect::<Vec<_>>()
        };
        let keeps = self.kept() > 0;
        let all = if keeps { told(&mut comes.iter().copied()) } else { Vec::new() };
        let mut pairs = Vec::new();
        for &missing in comes {
            let mut waits = if keeps {
                // Those that go when all but this one have come do not wait for it.
                let free = told(&mut comes.iter().copied().filter(|step| *step != missing));
                all.iter().copied().filter(|step| !free.contains(step)).collect()
            } else {
                told(&mut std::iter::once(missing))
            };
            waits.retain(|step| self.message(rank, *step).is_some());
            pairs.extend(waits.into_iter().map(|step| (step, missing)));
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Algorithm, Operation};
    use super::*;
    use std::collections::BTreeSet;

    fn comes(schedule: &Schedule, rank: u32) -> Vec<u32> {
        let from = |step| (0..schedule.ranks()).filter_map(move |other| schedule.message(other, step));
        (0..schedule.steps()).filter(|step| from(*step).any(|message| message.to == rank)).collect()
    }

    #[test]
    fn messages_that_wait_as_written_down_go_when_those_go_that_are_told_as_messages_come() {
        for operation in Operation::ALL {
            for &algorithm in operation.algorithms() {
                for ranks in [2, 3, 5, 8, 16] {
                    if algorithm == Algorithm::HalvingDoubling && !u32::is_power_of_two(ranks) {
                        continue;
                    }
                    // Rails are of servers with two ranks each.
                    let per_server = if algorithm == Algorithm::Pxn { 2 } else { 1 };
                    if ranks % per_server > 0 {
                        continue;
                    }
                    let schedule = Schedule::new(operation, algorithm, ranks, per_server);
                    for rank in 0..ranks {
                        let comes = comes(&schedule, rank);
                        assert_eq!(comes.len(), schedule.receives(rank) as usize);
                        let pairs = schedule.awaits(rank, &comes);
                        let sends: BTreeSet<u32> = (0..schedule.steps())
                            .filter(|step| schedule.message(rank, *step).is_some())
                            .collect();
                        let at_once: BTreeSet<u32> =
                            schedule.at_once(rank).filter(|step| sends.contains(step)).collect();
                        let waiting: BTreeSet<u32> = pairs.iter().map(|pair| pair.0).collect();
                        assert_eq!(&at_once | &waiting, sends, "{schedule:?} {rank}");
                        assert!(at_once.is_disjoint(&waiting), "{schedule:?} {rank}");
                        // In order, and where order may differ the other way round too.
                        let mut orders = vec![comes.clone()];
                        if schedule.kept() > 0 {
                            orders.push(comes.iter().rev().copied().collect());
                        }
                        for order in orders {
                            let (mut received, mut come) =
                                (vec![0; schedule.kept() as usize], BTreeSet::new());
                            for step in order {
                                let before: BTreeSet<u32> = free(&pairs, &come);
                                come.insert(step);
                                let told: BTreeSet<u32> = schedule
                                    .follows(rank, &mut received, step)
                                    .filter(|step| sends.contains(step))
                                    .collect();
                                assert_eq!(
                                    told,
                                    &free(&pairs, &come) - &before,
                                    "{schedule:?} {rank} {step}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }

    /// The messages that wait for nothing any more.
    fn free(pairs: &[(u32, u32)], come: &BTreeSet<u32>) -> BTreeSet<u32> {
        let waits: BTreeSet<u32> =
            pairs.iter().filter(|pair| !come.contains(&pair.1)).map(|pair| pair.0).collect();
        pairs.iter().map(|pair| pair.0).filter(|step| !waits.contains(step)).collect()
    }
}
