//! The order in which nodes are visited: forwards, and loops within loops.
//!
//! A weak topological order (Bourdoncle, "Efficient chaotic iteration strategies with widenings", 1993): what is not
//! in a loop is ordered so that each edge goes forwards; each loop has a head, and without the edges back to that, its
//! body is ordered likewise.

use super::graph::Graph;

/// Loops nested deeper than this are not looked at.
const DEPTH_MAX: usize = 32;

pub(super) enum Element {
    Node(usize),
    Loop { head: usize, body: Vec<Element> },
}

impl Element {
    /// Calls `what` for each node in it.
    pub(super) fn each_node(&self, what: &mut impl FnMut(usize)) {
        match self {
            Self::Node(node) => what(*node),
            Self::Loop { head, body } => {
                what(*head);
                body.iter().for_each(|element| element.each_node(what));
            }
        }
    }
}

/// Orders all nodes; no edge into a polling node counts. Fails with a loop's head when loops nest too deep.
pub(super) fn order(graph: &Graph<'_>) -> Result<Vec<Element>, usize> {
    let all: Vec<usize> = (0..graph.nodes.len()).collect();
    let mut visit = Visit { graph, member: vec![0; all.len()], cut: vec![false; all.len()], rounds: 0 };
    for (node, cut) in visit.cut.iter_mut().enumerate() {
        *cut = graph.nodes[node].polls;
    }
    visit.decompose(&all, 0)
}

struct Visit<'a> {
    graph: &'a Graph<'a>,
    /// The round of decomposition that a node takes part in.
    member: Vec<u32>,
    /// Edges into these nodes do not count.
    cut: Vec<bool>,
    rounds: u32,
}

const UNSEEN: usize = usize::MAX;

impl Visit<'_> {
    /// Orders `nodes`, of which no other edges than those between them count.
    fn decompose(&mut self, nodes: &[usize], depth: usize) -> Result<Vec<Element>, usize> {
        self.rounds += 1;
        let round = self.rounds;
        for &node in nodes {
            self.member[node] = round;
        }
        let mut elements = Vec::new();
        for component in self.components(nodes, round).into_iter().rev() {
            let head = component[0];
            let turns = self.follow(head, round).any(|next| next == head);
            if component.len() == 1 && !turns {
                elements.push(Element::Node(head));
                continue;
            }
            if depth == DEPTH_MAX {
                return Err(head);
            }
            self.cut[head] = true;
            let rest: Vec<usize> = component[1..].to_vec();
            let body = self.decompose(&rest, depth + 1)?;
            elements.push(Element::Loop { head, body });
        }
        Ok(elements)
    }

    fn follow(&self, node: usize, round: u32) -> impl Iterator<Item = usize> {
        self.graph.nodes[node].ways().filter(move |&next| self.member[next] == round && !self.cut[next])
    }

    /// The strongly connected components (Tarjan's algorithm, with a stack of its own), the last in order first; each
    /// starts with the node by which it was reached.
    fn components(&self, nodes: &[usize], round: u32) -> Vec<Vec<usize>> {
        let local: std::collections::BTreeMap<usize, usize> = nodes.iter().copied().zip(0..).collect();
        let (mut seen, mut lowest) = (vec![UNSEEN; nodes.len()], vec![UNSEEN; nodes.len()]);
        let mut on_stack = vec![false; nodes.len()];
        let (mut stack, mut components, mut count) = (Vec::new(), Vec::new(), 0);
        for root in 0..nodes.len() {
            if seen[root] != UNSEEN {
                continue;
            }
            let mut path: Vec<(usize, Vec<usize>)> = Vec::new();
            let mut arrive = Some(root);
            loop {
                if let Some(node) = arrive.take() {
                    (seen[node], lowest[node], on_stack[node]) = (count, count, true);
                    count += 1;
                    stack.push(node);
                    path.push((node, self.follow(nodes[node], round).map(|next| local[&next]).collect()));
                }
                let Some((node, open)) = path.last_mut() else { break };
                let node = *node;
                if let Some(next) = open.pop() {
                    if seen[next] == UNSEEN {
                        arrive = Some(next);
                    } else if on_stack[next] {
                        lowest[node] = lowest[node].min(seen[next]);
                    }
                    continue;
                }
                path.pop();
                if let Some((parent, _)) = path.last() {
                    lowest[*parent] = lowest[*parent].min(lowest[node]);
                }
                if lowest[node] == seen[node] {
                    let start = stack.iter().rposition(|&other| other == node).unwrap_or(0);
                    let component: Vec<usize> = stack.drain(start..).collect();
                    for &member in &component {
                        on_stack[member] = false;
                    }
                    components.push(component.into_iter().map(|member| nodes[member]).collect());
                }
            }
        }
        components
    }
}
