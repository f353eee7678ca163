//! How long all-to-alls take whose ranks have different amounts for one another.

use super::super::amounts::Matrix;
use super::super::network::{Packets, Uplinks};
use super::super::{Algorithm, Collective};
use super::{Model, Time, times};
use roci_fabric::graph::NodeId;
use roci_fabric::packet::HostId;
use std::collections::BTreeMap;

impl Model<'_> {
    /// Each message by its way, what the busiest NICs send and receive, and the same of what joins switches. Over rails what goes within servers comes
    /// before all else.
    pub(super) fn uneven(&mut self, it: &Collective, matrix: &Matrix) -> Option<Time> {
        let (schedule, over_rails) = (it.schedule(), it.algorithm == Algorithm::Pxn);
        let copies = u64::from(it.channels) * u64::from(it.chunks);
        let packets = self.network.packets;
        // Of each NIC and switch, by whether it sends, and the longest message within servers and among them; behind these the last octet's way.
        let mut busy = BTreeMap::<(HostId, bool), Time>::new();
        let mut away = BTreeMap::<(NodeId, bool), Away>::new();
        let (mut within, mut beyond, mut behind) = (0, 0, 0);
        for (.., message) in it.uneven_steps(0) {
            let (from, to) = schedule.ends(message.edge);
            let octets = it.cut_sizes(matrix, 0, &message).1;
            let (line, _) = self.way([from, to])?;
            let is_within = from / self.per_server == to / self.per_server;
            let longest = if is_within { &mut within } else { &mut beyond };
            *longest = packets.message(line.links, octets, 1).max(*longest);
            behind = behind.max(packets.behind(line.links, octets));
            for (nic, sends) in line.nics.into_iter().zip([true, false]) {
                *busy.entry((nic, sends)).or_default() +=
                    times(copies, packets.busy(line.links.rate, octets));
            }
            // The links to the switch of the last NIC are those from it, the other way.
            let Some(up) = line.up else { continue };
            let down = self.way([to, from])?.0.up;
            for (up, sends) in [(Some(up), true), (down, false)] {
                let Some(up) = up else { continue };
                away.entry((up.switch, sends)).or_default().add(up, packets, octets);
            }
        }
        let most = busy.into_values().max().unwrap_or(0);
        let most = away.into_values().map(|away| away.busiest(it)).max().unwrap_or(0).max(most) + behind;
        Some(if over_rails { within + most.max(beyond) } else { within.max(beyond).max(most) })
    }
}

/// The messages of one chunk of a channel that cross the links between a switch and others.
#[derive(Default)]
struct Away {
    /// Of the ways with most paths.
    up: Option<Uplinks>,
    /// How long one link would have to do with all of them.
    all: Time,
    /// The sum of the squares of the same of each.
    squares: Time,
}

impl Away {
    fn add(&mut self, up: Uplinks, packets: Packets, octets: u64) {
        if self.up.is_none_or(|most| most.paths < up.paths) {
            self.up = Some(up);
        }
        let busy = packets.link(up.rate, octets);
        self.all += busy;
        self.squares = self.squares.saturating_add(busy.saturating_mul(busy));
    }

    /// How long the busiest of these links has to do: what a hash brings together of messages of many lengths spreads as that of fewer which are as long as
    /// the mean, weighted by length.
    fn busiest(&self, it: &Collective) -> Time {
        let Some(up) = self.up else { return 0 };
        let all = times(it.channels.into(), self.all);
        let alike = (all.saturating_mul(self.all) / self.squares.max(1)).max(1);
        let flows = u64::try_from(alike).unwrap_or(u64::MAX);
        times(it.chunks.into(), all / Time::from(flows) * up.busiest(flows) / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Operation;
    use super::super::tests::{of, time};
    use super::*;
    use roci_fabric::topology::{LeafSpine, Topology};
    use roci_units::{BitsPerSec, Span};
    use std::sync::Arc;

    /// Four leaves of eight hosts and so many spines; an octet is a nanosecond.
    fn fabric(spines: u32) -> Topology {
        let (rate, delay) = (BitsPerSec::from_gbps(8), Span::from_micros(1));
        LeafSpine { leaves: 4, spines, hosts_per_leaf: 8, rate, fabric_rate: None, delay }.build().unwrap()
    }

    #[test]
    fn equal_amounts_in_a_matrix_take_what_they_take_without() {
        let all = of(Operation::AllToAll, Algorithm::Direct, 32, 320_000);
        let matrix = Matrix::new(&vec![vec![10_000; 32]; 32]).unwrap();
        let uneven = all.with_matrix(Arc::new(matrix));
        for spines in [1, 2, 4, 8] {
            for (channels, chunks) in [(1, 1), (4, 2)] {
                let [one, other] = [&all, &uneven].map(|it| {
                    let it = Collective { channels, chunks, ..it.clone() };
                    time(&fabric(spines), &it, 1)
                });
                assert!(one.abs_diff(other) * 1000 <= one, "{spines} {channels}: {one} {other}");
            }
        }
        // Eight of a leaf send 24 others 10 us each by one link.
        assert_eq!(time(&fabric(1), &uneven, 1), 8 * 24 * 10_000 + 4000 + 3 * 1000);
    }

    #[test]
    fn ranks_of_one_leaf_that_all_have_something_for_take_the_links_that_lead_there() {
        let to_one = |leaf: usize| -> Vec<Vec<u64>> {
            let amounts = |to: usize| if to / 8 == leaf { 10_000 } else { 1000 };
            vec![(0..32).map(amounts).collect(); 32]
        };
        let all = of(Operation::AllToAll, Algorithm::Direct, 32, 1);
        for leaf in 0..4 {
            let uneven = all.with_matrix(Arc::new(Matrix::new(&to_one(leaf)).unwrap()));
            assert_eq!(time(&fabric(1), &uneven, 1), 24 * 8 * 10_000 + 4000 + 3 * 1000, "{leaf}");
        }
    }
}
