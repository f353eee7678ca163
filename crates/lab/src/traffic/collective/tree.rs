//! The two binary trees of a tree all-reduce: sums go up to the root, and their total comes down.
//!
//! Nodes are numbered in order (Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
//! 2009, as NCCL builds them in `src/graph/trees.cc`): below the root, node 0, which has one child, a node whose lowest bit set is
//! `b` stands between those of its children, who differ from it by half of `b`. Odd nodes are leaves. The second tree has other ranks
//! for its leaves: its nodes count ranks from the last one where their number is even, and from the second one where it is odd.

/// One of the two.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    ranks: u32,
    second: bool,
}

impl Tree {
    /// The first tree of so many ranks, two at least, or the second one.
    pub const fn new(ranks: u32, second: bool) -> Self {
        Self { ranks, second }
    }

    /// The rank at `node`.
    pub const fn rank(self, node: u32) -> u32 {
        match (self.second, self.ranks % 2) {
            (false, _) => node,
            (true, 0) => self.ranks - 1 - node,
            (true, _) => (node + 1) % self.ranks,
        }
    }

    /// The node that `rank` stands at.
    pub const fn node(self, rank: u32) -> u32 {
        match (self.second, self.ranks % 2) {
            (false, _) => rank,
            (true, 0) => self.ranks - 1 - rank,
            (true, _) => (rank + self.ranks - 1) % self.ranks,
        }
    }

    /// The parent of a node that is not the root.
    pub const fn parent(self, node: u32) -> u32 {
        let bit = 1 << node.trailing_zeros();
        let above = (node ^ bit) | bit << 1;
        // Where the tree ends before that, it is the one below.
        if above < self.ranks { above } else { node ^ bit }
    }

    /// Which child of its parent a node is that is not the root: 0 or 1.
    pub const fn place(self, node: u32) -> u32 {
        (node > self.parent(node)) as u32
    }

    /// Child 0 of `node`, which stands before it, or child 1, which stands behind it.
    pub fn child(self, node: u32, place: u32) -> Option<u32> {
        let bit = if node == 0 { self.ranks.next_power_of_two() } else { 1 << node.trailing_zeros() };
        if place == 0 {
            return if node == 0 { None } else { node.checked_sub(bit / 2).filter(|_| bit > 1) };
        }
        let steps = std::iter::successors(Some(bit / 2), |step| Some(step / 2));
        steps.take_while(|step| *step > 0).map(|step| node + step).find(|child| *child < self.ranks)
    }

    /// The children that `node` has.
    pub fn children(self, node: u32) -> impl Iterator<Item = u32> {
        (0..2).filter_map(move |place| self.child(node, place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trees_of_fourteen_and_of_seven_are_nccl_s() {
        // `0 - 8 - (4, 12)`, then 2, 6, 10 and 13, and the odd ones are leaves.
        let tree = Tree::new(14, false);
        let children = |tree: Tree, node| tree.children(node).collect::<Vec<_>>();
        assert_eq!(
            [0, 8, 4, 12, 2, 10].map(|node| children(tree, node)),
            [vec![8], vec![4, 12], vec![2, 6], vec![10, 13], vec![1, 3], vec![9, 11]]
        );
        assert!((1..14).step_by(2).all(|node| children(tree, node).is_empty()));
        assert_eq!(
            [Tree::new(14, true), Tree::new(7, true)].map(|tree| (tree.rank(0), tree.rank(1))),
            [(13, 12), (1, 2)]
        );
    }

    #[test]
    fn each_rank_but_one_has_a_parent_whose_child_it_is_and_children_in_one_tree_at_most() {
        for ranks in 2..70 {
            for second in [false, true] {
                let tree = Tree::new(ranks, second);
                for node in 0..ranks {
                    assert_eq!(tree.node(tree.rank(node)), node);
                    for place in 0..2 {
                        let child = tree.child(node, place);
                        assert!(child.is_none_or(|it| (tree.parent(it), tree.place(it)) == (node, place)));
                    }
                    let up = std::iter::successors(Some(node), |it| (*it > 0).then(|| tree.parent(*it)));
                    let levels = ranks.next_power_of_two().trailing_zeros() as usize;
                    assert!(up.count() <= levels + 1, "{ranks}");
                    if node > 0 {
                        assert_eq!(tree.child(tree.parent(node), tree.place(node)), Some(node));
                    }
                }
            }
            let inner = |rank: &u32| {
                // The root and its one child apart, each has two.
                let has = |second| {
                    let tree = Tree::new(ranks, second);
                    tree.children(tree.node(*rank)).count() == 2
                };
                has(false) && has(true)
            };
            assert_eq!((0..ranks).filter(inner).count(), 0, "{ranks}");
        }
    }
}
