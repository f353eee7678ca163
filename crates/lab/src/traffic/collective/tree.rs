//! The two binary trees of a tree all-reduce: sums go up to the root, and their total comes down.
//!
//! Nodes are numbered in order (Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
//! 2009, as NCCL builds them in `src/graph/trees.cc`): below the root, node 0, which has one child, a node whose lowest bit set is
//! `b` stands between those of its children, who differ from it by half of `b`. Odd nodes are leaves. The second tree has other ranks
//! for its leaves: its nodes count ranks from the last one where their number is even, and from the second one where it is odd.
//!
//! Where servers have several ranks, the trees are among the first ranks of servers, their heads, and the others of a server hang in a chain
//! below its head. All that leaves a server does so by the head, whose NIC alone it takes.

/// The most children of a node: two in its tree, and the next one of its server's chain.
pub(super) const CHILDREN: u32 = 3;
/// The place of the child in the chain among them.
const IN_CHAIN: u32 = 2;

/// One of the two.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    servers: u32,
    per_server: u32,
    second: bool,
}

impl Tree {
    /// The first tree of so many ranks, two at least, or the second one; so many in a row are on a server each.
    pub const fn new(ranks: u32, per_server: u32, second: bool) -> Self {
        Self { servers: ranks / per_server, per_server, second }
    }

    /// The rank at `node`.
    pub const fn rank(self, node: u32) -> u32 {
        let (server, local) = self.split(node);
        let server = match (self.second, self.servers % 2) {
            (false, _) => server,
            (true, 0) => self.servers - 1 - server,
            (true, _) => (server + 1) % self.servers,
        };
        server * self.per_server + local
    }

    /// The node that `rank` stands at.
    pub const fn node(self, rank: u32) -> u32 {
        let (server, local) = self.split(rank);
        let server = match (self.second, self.servers % 2) {
            (false, _) => server,
            (true, 0) => self.servers - 1 - server,
            (true, _) => (server + self.servers - 1) % self.servers,
        };
        server * self.per_server + local
    }

    /// The server of a node or of a rank, and its place there.
    const fn split(self, node: u32) -> (u32, u32) {
        (node / self.per_server, node % self.per_server)
    }

    /// The parent of a node that is not the root.
    pub const fn parent(self, node: u32) -> u32 {
        let (server, local) = self.split(node);
        if local > 0 {
            return node - 1;
        }
        let bit = 1 << server.trailing_zeros();
        let above = (server ^ bit) | bit << 1;
        // Where the tree ends before that, it is the one below.
        self.per_server * if above < self.servers { above } else { server ^ bit }
    }

    /// Which child of its parent a node is that is not the root: 0 or 1, or 2 in the chain.
    pub const fn place(self, node: u32) -> u32 {
        let (_, local) = self.split(node);
        if local > 0 { IN_CHAIN } else { (node > self.parent(node)) as u32 }
    }

    /// Child 0 of `node`, which stands before it, child 1, which stands behind it, or child 2, which is next in its chain.
    pub fn child(self, node: u32, place: u32) -> Option<u32> {
        let (server, local) = self.split(node);
        if place == IN_CHAIN {
            return (local + 1 < self.per_server).then_some(node + 1);
        }
        if local > 0 {
            return None;
        }
        self.below(server, place).map(|server| server * self.per_server)
    }

    /// The same of servers, whose heads they are.
    fn below(self, server: u32, place: u32) -> Option<u32> {
        let bit = if server == 0 { self.servers.next_power_of_two() } else { 1 << server.trailing_zeros() };
        if place == 0 {
            return if server == 0 { None } else { server.checked_sub(bit / 2).filter(|_| bit > 1) };
        }
        let steps = std::iter::successors(Some(bit / 2), |step| Some(step / 2));
        steps.take_while(|step| *step > 0).map(|step| server + step).find(|child| *child < self.servers)
    }

    /// The children that `node` has.
    pub fn children(self, node: u32) -> impl Iterator<Item = u32> {
        (0..CHILDREN).filter_map(move |place| self.child(node, place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trees_of_fourteen_and_of_seven_are_nccl_s() {
        // `0 - 8 - (4, 12)`, then 2, 6, 10 and 13, and the odd ones are leaves.
        let tree = Tree::new(14, 1, false);
        let children = |tree: Tree, node| tree.children(node).collect::<Vec<_>>();
        assert_eq!(
            [0, 8, 4, 12, 2, 10].map(|node| children(tree, node)),
            [vec![8], vec![4, 12], vec![2, 6], vec![10, 13], vec![1, 3], vec![9, 11]]
        );
        assert!((1..14).step_by(2).all(|node| children(tree, node).is_empty()));
        assert_eq!(
            [Tree::new(14, 1, true), Tree::new(7, 1, true)].map(|tree| (tree.rank(0), tree.rank(1))),
            [(13, 12), (1, 2)]
        );
    }

    #[test]
    fn each_rank_but_one_has_a_parent_whose_child_it_is_and_each_server_children_in_one_tree_at_most() {
        for (servers, per_server) in
            (1..70).flat_map(|servers| [1, 2, 8].map(|per_server| (servers, per_server)))
        {
            let ranks = servers * per_server;
            for second in [false, true] {
                let tree = Tree::new(ranks, per_server, second);
                for node in 0..ranks {
                    assert_eq!(tree.node(tree.rank(node)), node);
                    for place in 0..CHILDREN {
                        let child = tree.child(node, place);
                        assert!(child.is_none_or(|it| (tree.parent(it), tree.place(it)) == (node, place)));
                    }
                    let up = std::iter::successors(Some(node), |it| (*it > 0).then(|| tree.parent(*it)));
                    let levels = servers.next_power_of_two().trailing_zeros() + per_server;
                    assert!(up.count() <= levels as usize, "{servers} {per_server}");
                    if node > 0 {
                        assert_eq!(tree.child(tree.parent(node), tree.place(node)), Some(node));
                    }
                }
            }
            let inner = |rank: &u32| {
                // The root and its one child apart, each has two.
                let has = |second| {
                    let tree = Tree::new(ranks, per_server, second);
                    let node = tree.node(*rank);
                    [0, 1].iter().all(|place| tree.child(node, *place).is_some())
                };
                has(false) && has(true)
            };
            assert_eq!((0..ranks).filter(inner).count(), 0, "{servers} {per_server}");
        }
    }

    #[test]
    fn a_server_is_left_by_its_head_alone_and_its_others_hang_in_a_chain() {
        let tree = Tree::new(24, 8, true);
        // Three servers: the second tree counts them from the second one.
        assert_eq!([0, 8, 16].map(|node| tree.rank(node)), [8, 16, 0]);
        assert_eq!(tree.children(0).collect::<Vec<_>>(), [16, 1]);
        assert_eq!(tree.children(16).collect::<Vec<_>>(), [8, 17]);
        assert_eq!([1, 7, 15].map(|node| tree.children(node).collect::<Vec<_>>()), [vec![2], vec![], vec![]]);
    }
}
