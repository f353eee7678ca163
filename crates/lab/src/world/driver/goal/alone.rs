//! The collectives of a critical path once more, each with nothing in its way but itself.

use super::joint::number_of;
use super::ranks::Ranks;
use super::replay::{Shared, Trip, play};
use crate::results::goal::{CriticalPath, LinkKind, PathLink};
use crate::run::Go;
use roci_units::Instant;
use std::collections::BTreeMap;

/// Notes how long each collective of `path` would have taken over the links of the NICs, with its ranks beginning when they did: from where it is
/// on the path until that rank is done which the path goes on with, and no longer than it took. `trip` knows the way of so many octets by a
/// queue pair of the schedule; `tell` may end it before all are known.
pub(super) fn note_collectives(
    ranks: &Ranks,
    path: &mut CriticalPath,
    trip: &mut dyn FnMut(u32, u64) -> Trip,
    tell: &mut dyn FnMut() -> Go,
) -> Go {
    // One may be there twice: where what began late waited for a rank that was done with it.
    let mut links: BTreeMap<u32, Vec<&mut PathLink>> = BTreeMap::new();
    for link in path.links.iter_mut().filter(|link| link.kind == LinkKind::Collective) {
        links.entry(number_of(link.does).expect("it is one")).or_default().push(link);
    }
    let mut begins: BTreeMap<u32, Vec<(u32, Instant)>> = BTreeMap::new();
    for (rank, of) in (0..).zip(&ranks.spec.schedule.ranks) {
        for (operation, it) in (0..).zip(of.operations()) {
            if let Some(number) = number_of(it.does).filter(|number| links.contains_key(number)) {
                begins.entry(number).or_default().push((rank, ranks.carried_out_at(rank, operation)));
            }
        }
    }
    for (number, links) in links {
        let Some((spec, begins)) = ranks.spec.only(number).zip(begins.remove(&number)) else { continue };
        let mut again = Ranks::new(&spec, &ranks.hosts());
        if play(&mut again, begins, Shared::Links, trip, &mut |_| tell()) == Go::Stop || tell() == Go::Stop {
            return Go::Stop;
        }
        for link in links {
            let took = link.to.since(link.from);
            // Messages share a link one behind the other here, and packet by packet in the run: a rank may have been done sooner there, by a
            // tenth at most where chunks of trees meet. A test holds it to that.
            link.ideal = again.end(link.to_rank).map_or(took, |end| end.since(link.from).min(took));
        }
    }
    Go::On
}
