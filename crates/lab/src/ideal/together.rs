//! What equal paths carry together: a maximum flow, by shortest augmenting paths (Edmonds and Karp, Journal of the ACM 1972).

use roci_units::BitsPerSec;
use std::collections::{BTreeMap, VecDeque};

/// Links between numbered nodes, each in one direction; parallel ones add up.
#[derive(Clone, Debug, Default)]
pub struct Links {
    /// What each node can still send to each other one, in bits per second.
    left: BTreeMap<u32, BTreeMap<u32, u64>>,
}

impl Links {
    /// Adds a link that carries `rate` from node `a` to node `b`.
    pub fn add(&mut self, a: u32, b: u32, rate: BitsPerSec) {
        let left = self.left.entry(a).or_default().entry(b).or_default();
        *left = left.saturating_add(rate.0);
        self.left.entry(b).or_default().entry(a).or_default();
    }

    /// The most that they carry from node `a` to node `b`.
    pub fn together(mut self, a: u32, b: u32) -> BitsPerSec {
        let mut sum = 0u64;
        while let Some(path) = self.open_path(a, b) {
            let steps = || path.windows(2).map(|step| (step[0], step[1]));
            let least = steps().map(|(a, b)| self.left[&a][&b]).min().unwrap_or(0);
            for (a, b) in steps().collect::<Vec<_>>() {
                self.change(a, b, |left| left - least);
                self.change(b, a, |left| left.saturating_add(least));
            }
            sum = sum.saturating_add(least);
        }
        BitsPerSec(sum)
    }

    fn change(&mut self, a: u32, b: u32, change: impl Fn(u64) -> u64) {
        let left = self.left.entry(a).or_default().entry(b).or_default();
        *left = change(*left);
    }

    /// The nodes of a shortest path from `a` to `b` that can carry more.
    fn open_path(&self, a: u32, b: u32) -> Option<Vec<u32>> {
        let mut before = BTreeMap::from([(a, a)]);
        let mut open = VecDeque::from([a]);
        while let Some(node) = open.pop_front() {
            for (&next, _) in self.left.get(&node)?.iter().filter(|(_, left)| **left > 0) {
                if before.contains_key(&next) {
                    continue;
                }
                before.insert(next, node);
                open.push_back(next);
            }
            if before.contains_key(&b) {
                let mut path = vec![b];
                while path.last() != Some(&a) {
                    path.push(before[path.last()?]);
                }
                path.reverse();
                return Some(path);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn together(links: &[(u32, u32, u64)]) -> u64 {
        let mut all = Links::default();
        links.iter().for_each(|&(a, b, rate)| all.add(a, b, BitsPerSec(rate)));
        all.together(0, 9).0
    }

    #[test]
    fn parallel_links_and_paths_add_up_and_the_slowest_of_a_row_counts() {
        assert_eq!(together(&[(0, 9, 5), (0, 9, 1)]), 6);
        assert_eq!(together(&[(0, 1, 40), (1, 9, 100), (0, 2, 100), (2, 9, 10)]), 50);
        assert_eq!(together(&[(0, 1, 40), (1, 2, 7), (2, 9, 100)]), 7);
        assert_eq!(together(&[(0, 1, 40)]), 0);
        assert_eq!(together(&[]), 0);
    }

    #[test]
    fn what_two_paths_share_counts_once_and_what_was_sent_wrongly_is_sent_back() {
        assert_eq!(together(&[(0, 1, 4), (0, 2, 4), (1, 3, 4), (2, 3, 4), (3, 9, 5)]), 5);
        // 0-1-4-9 is tried first, and takes the only way of what comes by 2.
        let crossed = [(0, 1, 1), (0, 2, 1), (1, 4, 1), (1, 5, 1), (2, 4, 1), (4, 9, 1), (5, 9, 1)];
        assert_eq!(together(&crossed), 2);
    }
}
