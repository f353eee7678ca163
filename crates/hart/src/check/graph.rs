//! The ways through a program, with each call followed into its own copy of the function.

use std::collections::{BTreeMap, BTreeSet};

use super::Reason;
use crate::instruction::{Instruction, Op, Register, Shape};
use crate::program::Program;

/// At most this many instructions, copies counted.
const NODES_MAX: usize = 1 << 17;

/// Where a way leads.
#[derive(Clone, Debug)]
pub(super) enum Way {
    Node(usize),
    /// Nowhere that a program may go.
    Bad(Reason),
}

/// How control leaves an instruction.
#[derive(Clone, Debug)]
pub(super) enum Exit {
    Next(Way),
    Branch {
        taken: Way,
        next: Way,
    },
    /// JAL, or JALR that must find this address.
    Jump {
        to: Way,
        address: u32,
    },
    /// It must not be reached.
    Never(Reason),
}

/// One instruction in one context.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) address: u32,
    /// The call that it is carried out in.
    context: usize,
    pub(super) instruction: Instruction,
    pub(super) exit: Exit,
    /// Whether an event ends and the next begins here.
    pub(super) polls: bool,
}

impl Node {
    /// The nodes that may follow.
    pub(super) fn ways(&self) -> impl Iterator<Item = usize> {
        let (first, second) = match &self.exit {
            Exit::Next(way) | Exit::Jump { to: way, .. } => (Some(way), None),
            Exit::Branch { taken, next } => (Some(taken), Some(next)),
            Exit::Never(_) => (None, None),
        };
        first.into_iter().chain(second).filter_map(|way| match way {
            Way::Node(node) => Some(*node),
            Way::Bad(_) => None,
        })
    }
}

/// A call that has not returned yet.
#[derive(Clone, Copy)]
struct Call {
    /// The call that it was made in.
    within: usize,
    function: u32,
    back: u32,
    /// The register that holds the way back.
    link: Register,
}

pub(super) struct Graph<'a> {
    program: &'a Program,
    /// Functions that must not return.
    endless: &'a BTreeSet<u32>,
    pub(super) nodes: Vec<Node>,
    /// By context and address.
    index: BTreeMap<(usize, u32), usize>,
    /// Contexts; the first is that of no call.
    calls: Vec<Call>,
    contexts: BTreeMap<(usize, u32, u32), usize>,
}

impl<'a> Graph<'a> {
    /// Follows the program from `starts`. `polls` says which instructions end an event.
    pub(super) fn new(
        program: &'a Program,
        starts: &[u32],
        endless: &'a BTreeSet<u32>,
        polls: impl Fn(&Instruction) -> bool,
    ) -> Result<(Self, Vec<usize>), (u32, Reason)> {
        let outermost = Call { within: 0, function: u32::MAX, back: u32::MAX, link: Register::ZERO };
        let mut graph = Self {
            program,
            endless,
            nodes: Vec::new(),
            index: BTreeMap::new(),
            calls: vec![outermost],
            contexts: BTreeMap::new(),
        };
        let mut open = Vec::new();
        let mut roots = Vec::new();
        for &start in starts {
            match graph.way(0, start, &mut open) {
                Way::Node(node) => roots.push(node),
                Way::Bad(reason) => return Err((start, reason)),
            }
        }
        while let Some((context, node)) = open.pop() {
            let Node { address, instruction, .. } = graph.nodes[node];
            graph.nodes[node].polls = polls(&instruction);
            graph.nodes[node].exit = graph.exit(context, address, &instruction, &mut open);
            if graph.nodes.len() > NODES_MAX {
                return Err((address, Reason::TooLarge));
            }
        }
        Ok((graph, roots))
    }

    /// The node at `address`, made on the first visit.
    fn way(&mut self, context: usize, address: u32, open: &mut Vec<(usize, usize)>) -> Way {
        if !address.is_multiple_of(4) {
            return Way::Bad(Reason::MisalignedJump { target: address });
        }
        let Some(instruction) = self.program.instruction(address) else {
            return Way::Bad(Reason::NoCode { target: address });
        };
        let next = self.nodes.len();
        let node = *self.index.entry((context, address)).or_insert(next);
        if node == next {
            let exit = Exit::Never(Reason::TooLarge);
            self.nodes.push(Node { address, context, instruction, exit, polls: false });
            open.push((context, node));
        }
        Way::Node(node)
    }

    fn exit(
        &mut self,
        context: usize,
        address: u32,
        instruction: &Instruction,
        open: &mut Vec<(usize, usize)>,
    ) -> Exit {
        let behind = address.wrapping_add(4);
        let target = address.wrapping_add(instruction.imm.cast_unsigned());
        match instruction.op.shape() {
            Shape::Branch => {
                Exit::Branch { taken: self.way(context, target, open), next: self.way(context, behind, open) }
            }
            Shape::Jump if instruction.rd.is_zero() => {
                Exit::Jump { to: self.way(context, target, open), address: target }
            }
            Shape::Jump => {
                let call = Call { within: context, function: target, back: behind, link: instruction.rd };
                Exit::Jump { to: self.call(call, open), address: target }
            }
            Shape::JumpRegister => match (self.constant(address, instruction), instruction.rd.is_zero()) {
                (Some(target), true) => Exit::Jump { to: self.way(context, target, open), address: target },
                (Some(target), false) => {
                    let call = Call { within: context, function: target, back: behind, link: instruction.rd };
                    Exit::Jump { to: self.call(call, open), address: target }
                }
                // A return, by the convention for links.
                (None, true) if matches!(instruction.rs1.number(), 1 | 5) => {
                    let Call { function, link, within, back } = self.calls[context];
                    // Compilers also jump to computed addresses by way of `t0`, where no call has left its way back.
                    let returns = instruction.rs1 == Register::RA || instruction.rs1 == link;
                    let ends = self.endless.contains(&function);
                    match context {
                        0 if returns => Exit::Never(Reason::ReturnToNowhere),
                        _ if ends && returns => Exit::Never(Reason::Ends { function: self.named(function) }),
                        0 => Exit::Never(Reason::ComputedJump),
                        _ if ends => Exit::Never(Reason::ComputedJump),
                        _ => Exit::Jump { to: self.way(within, back, open), address: back },
                    }
                }
                _ => Exit::Never(Reason::ComputedJump),
            },
            Shape::Illegal => Exit::Never(Reason::Illegal { word: instruction.imm.cast_unsigned() }),
            Shape::Bare if instruction.op == Op::Ecall => Exit::Never(Reason::EnvironmentCall),
            Shape::Bare if instruction.op == Op::Ebreak => Exit::Never(Reason::Breakpoint),
            _ => Exit::Next(self.way(context, behind, open)),
        }
    }

    /// Enters a function, unless it is one that has not returned.
    fn call(&mut self, call: Call, open: &mut Vec<(usize, usize)>) -> Way {
        let Call { within, function, back, .. } = call;
        let mut outer = within;
        while outer != 0 {
            if self.calls[outer].function == function {
                return Way::Bad(Reason::Recursion { function: self.named(function) });
            }
            outer = self.calls[outer].within;
        }
        let next = self.calls.len();
        let inner = *self.contexts.entry((within, function, back)).or_insert(next);
        if inner == next {
            self.calls.push(call);
        }
        self.way(inner, function, open)
    }

    /// The addresses of the calls that a node is carried out in, the innermost first.
    pub(super) fn calls(&self, node: usize) -> Vec<u32> {
        let mut calls = Vec::new();
        let mut context = self.nodes[node].context;
        while context != 0 {
            let Call { within, back, .. } = self.calls[context];
            calls.push(back.wrapping_sub(4));
            context = within;
        }
        calls
    }

    /// Whether a call has left its way back in the register through which this node jumps.
    pub(super) fn is_return(&self, node: &Node) -> bool {
        let register = node.instruction.rs1;
        register == Register::RA || register == self.calls[node.context].link
    }

    /// The function at this address, to name it to a human.
    fn named(&self, function: u32) -> String {
        match self.program.locate(function).function {
            Some((name, 0)) => format!("{name}()"),
            _ => format!("the function at {function:#010x}"),
        }
    }

    /// Where a jump goes whose register was set just before it, as in far calls.
    fn constant(&self, address: u32, instruction: &Instruction) -> Option<u32> {
        let offset = instruction.imm.cast_unsigned();
        if instruction.rs1 == Register::ZERO {
            return Some(offset & !1);
        }
        let before = address.wrapping_sub(4);
        let upper = self.program.instruction(before).filter(|upper| upper.rd == instruction.rs1)?;
        let base = match upper.op {
            Op::Auipc => before.wrapping_add(upper.imm.cast_unsigned()),
            Op::Lui => upper.imm.cast_unsigned(),
            _ => return None,
        };
        Some(base.wrapping_add(offset) & !1)
    }
}
