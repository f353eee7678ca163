//! How long the two trees of an all-reduce take.

use super::{Class, Collective, Crossing, Crossings, Model, Packets, Time, part, times};
use roci_fabric::packet::HostId;
use std::collections::{BTreeMap, BTreeSet};

/// The ways of both trees.
#[derive(Clone, Debug)]
pub(super) struct Trees {
    each: [Vec<Hop>; 2],
    classes: Vec<Class>,
    /// How many ways of which classes the NICs have, of what they send and of what they receive; of those that are alike one.
    loads: BTreeSet<Vec<(u32, u64)>>,
    crossings: Vec<Crossing>,
}

/// The way between a node and its parent. Parents stand before their children; the root has none.
#[derive(Clone, Copy, Debug)]
struct Hop {
    /// The place of the parent among all nodes, of which the root is 0 and that of this way is one more than its own.
    parent: u32,
    class: u32,
    /// How many children of that parent have ways as this one, in the server or out of it.
    siblings: u32,
}

/// What a message takes along the ways of a class.
struct Cost {
    message: Time,
    /// What it takes of a link.
    link: Time,
}

impl Trees {
    /// Those of the ranks of `model`, in servers as `it` has them; `None` where nothing joins two that talk.
    pub(super) fn find(model: &mut Model<'_>, it: &Collective) -> Option<Self> {
        let mut classes = BTreeMap::new();
        let mut loads = BTreeMap::<(bool, HostId), BTreeMap<u32, u64>>::new();
        let mut crossings = Crossings::default();
        let mut each = [Vec::new(), Vec::new()];
        for (second, hops) in [false, true].into_iter().zip(&mut each) {
            let tree = it.schedule().tree(second);
            let mut nodes = vec![0];
            let mut place = 0;
            while let Some(&node) = nodes.get(place) {
                let mut found = Vec::new();
                for child in tree.children(node) {
                    let [up, down] =
                        [[child, node], [node, child]].map(|ends| ends.map(|node| tree.rank(node)));
                    let ((sum, class), (total, _)) = (model.way(up)?, model.way(down)?);
                    let next = u32::try_from(classes.len()).unwrap_or(u32::MAX);
                    let class_place = *classes.entry(class).or_insert(next);
                    for line in [sum, total] {
                        crossings.add(line);
                        for (receives, nic) in [false, true].into_iter().zip(line.nics) {
                            let load = loads.entry((receives, nic)).or_default();
                            *load.entry(class_place).or_default() += 1;
                        }
                    }
                    nodes.push(child);
                    found.push((class.within, class_place));
                }
                for &(within, class) in &found {
                    let siblings = found.iter().filter(|it| it.0 == within).count();
                    let [parent, siblings] =
                        [place, siblings].map(|it| u32::try_from(it).unwrap_or(u32::MAX));
                    hops.push(Hop { parent, class, siblings });
                }
                place += 1;
            }
        }
        let mut in_order: Vec<_> = classes.into_iter().collect();
        in_order.sort_by_key(|(_, place)| *place);
        let classes = in_order.into_iter().map(|(class, _)| class).collect();
        let loads = loads.into_values().map(|load| load.into_iter().collect()).collect();
        Some(Self { each, classes, loads, crossings: crossings.all() })
    }

    /// How long `it` takes, where so many channels take the NICs of ways of a class in step.
    pub(super) fn time(&self, packets: Packets, it: &Collective, together: impl Fn(Class) -> u64) -> Time {
        let octets = part(it, 2);
        let costs: Vec<_> =
            self.classes.iter().map(|class| cost(packets, *class, octets, &together)).collect();
        let first = self.each.iter().map(|hops| alone(hops, &self.classes, &costs)).max().unwrap_or(0);
        let busy = |(class, ways): &(u32, u64)| {
            let class = self.classes[*class as usize];
            times(together(class) * ways, packets.busy(class.links.rate, octets))
        };
        let nics = self.loads.iter().map(|load| load.iter().map(busy).sum::<Time>());
        // Other channels have other heads, whose NICs are at other switches on rails.
        let by_one = u64::from(it.channels.div_ceil(it.per_server.max(1)));
        let shared = |(up, ways): &Crossing| packets.shared(*up, octets, ways * by_one);
        let most = nics.chain(self.crossings.iter().map(shared)).max().unwrap_or(0);
        let behind = self.classes.iter().map(|class| {
            let others = if class.within { 0 } else { together(*class) - 1 };
            times(others, packets.last(class.links.rate, octets))
        });
        let first = first + behind.max().unwrap_or(0);
        (first + times(u64::from(it.chunks) - 1, most)).max(times(it.chunks.into(), most))
    }
}

fn cost(packets: Packets, class: Class, octets: u64, together: impl Fn(Class) -> u64) -> Cost {
    // In a server each channel has its chain begin at another rank, so that they are in step at none.
    let among = if class.within { 1 } else { together(class) };
    Cost {
        message: packets.message(class.links, octets, among),
        link: packets.link(class.links.rate, octets),
    }
}

/// How long the first chunk takes up a tree and down again.
fn alone(hops: &[Hop], classes: &[Class], costs: &[Cost]) -> Time {
    // When each node has the sums of all its children, and when the first one came that another one may meet.
    let mut sums = vec![0; hops.len() + 1];
    let mut first: Vec<Option<Time>> = vec![None; hops.len() + 1];
    for (node, hop) in hops.iter().enumerate().rev() {
        let node = node + 1;
        let cost = &costs[hop.class as usize];
        let parent = hop.parent as usize;
        let comes = sums[node] + cost.message;
        let ends = if classes[hop.class as usize].within {
            comes
        } else {
            match first[parent].replace(comes) {
                // The later one waits for the link, if they overlap.
                Some(other) => comes.max(other).max(comes.min(other) + cost.link),
                None => comes,
            }
        };
        sums[parent] = sums[parent].max(ends);
    }
    let mut totals = vec![sums[0]; hops.len() + 1];
    for (node, hop) in (1..).zip(hops) {
        let cost = &costs[hop.class as usize];
        totals[node] =
            totals[hop.parent as usize] + cost.message + times((hop.siblings - 1).into(), cost.link);
    }
    totals.into_iter().max().unwrap_or(0)
}
