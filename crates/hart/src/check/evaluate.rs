//! Carries a program out on what is known of its values, from event to event.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::{Exit, Graph, Node, Way};
use super::interval::Interval;
use super::order::Element;
use super::state::{Place, State};
use super::{Answered, Kind, Policy, Reason, Written};
use crate::csr::{Csr, OnRead, OnWrite};
use crate::instruction::{Instruction, Op, Register, Shape};
use crate::memory::Region;
use crate::program::Program;

/// The node where the program is wrong, and why.
pub(super) type Wrong = (usize, Reason);

pub(super) struct Evaluation<'a> {
    pub(super) program: &'a Program,
    pub(super) policy: &'a Policy,
    pub(super) graph: &'a Graph<'a>,
    /// What is known where control has yet to be followed from.
    pending: Vec<Option<State>>,
    /// Elements of the order that such nodes are in, but for the present one.
    due: BTreeSet<usize>,
    /// The element of the order that each node is in.
    elements: Vec<usize>,
    /// The element that is being carried out.
    element: usize,
    /// What is known at each polling node that was reached.
    pub(super) reached: BTreeMap<usize, State>,
    /// What CSRs hold when an event begins, where its kind says.
    given: Vec<(u16, u32)>,
    /// The most cycles from a poll to the event's answer, and where that is.
    pub(super) answer_cycles: u64,
    pub(super) answer: usize,
    /// What is written to the CSRs that are watched.
    pub(super) values: BTreeMap<u16, Option<BTreeSet<(u32, u32)>>>,
    /// The same by the registers and the addresses of the writes.
    pub(super) written: BTreeMap<(u16, u32), Written>,
    /// Writes of the present kind of event to CSRs that are watched, by the registers and their own addresses.
    pub(super) kind_written: BTreeSet<(u16, u32)>,
    /// Answers by their addresses.
    pub(super) answers: BTreeMap<u32, Answered>,
    /// Stores by their addresses that may miss stack and data: the first and the last address that any way gives.
    pub(super) stray: BTreeMap<u32, (u32, u32)>,
    /// Loads alike, that may miss the memory.
    pub(super) stray_loads: BTreeMap<u32, (u32, u32)>,
    /// Stores of events that may be in data: the first octet, and the one after the last.
    pub(super) data_stores: BTreeMap<u32, (u32, u32)>,
    /// Whether what is followed comes before the first event.
    pub(super) at_start: bool,
    /// Instructions that may still be looked at.
    work: u64,
    /// Heads of the loops that are being gone through.
    loops: Vec<usize>,
    /// The node that is being carried out.
    at: usize,
    /// The lowest `sp` of all.
    pub(super) lowest: u32,
    pub(super) visited: Vec<bool>,
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(
        program: &'a Program,
        policy: &'a Policy,
        graph: &'a Graph<'a>,
        order: &[Element],
    ) -> Self {
        let count = graph.nodes.len();
        let mut elements = vec![0; count];
        for (at, element) in order.iter().enumerate() {
            element.each_node(&mut |node| elements[node] = at);
        }
        Self {
            program,
            policy,
            graph,
            pending: vec![None; count],
            due: BTreeSet::new(),
            elements,
            element: 0,
            reached: BTreeMap::new(),
            given: Vec::new(),
            answer_cycles: 0,
            answer: 0,
            values: policy.watched.iter().map(|&csr| (csr, Some(BTreeSet::new()))).collect(),
            written: BTreeMap::new(),
            kind_written: BTreeSet::new(),
            answers: BTreeMap::new(),
            stray: BTreeMap::new(),
            stray_loads: BTreeMap::new(),
            data_stores: BTreeMap::new(),
            at_start: false,
            work: policy.work_max,
            loops: Vec::new(),
            at: 0,
            lowest: program.machine.memory.stack_top(),
            visited: vec![false; count],
        }
    }

    /// From now on only events of `kind` are followed.
    pub(super) fn begin(&mut self, kind: &Kind) {
        self.given = kind.iter().map(|(&csr, &value)| (csr, value)).collect();
        self.work = self.policy.work_max;
        self.answer_cycles = 0;
        self.answers.clear();
        self.kind_written.clear();
    }

    /// Follows the program from `root` to the next polling nodes, which collect in `reached`. Of the order only what control
    /// comes to is gone through: a program with many polls would else take the square of its length.
    pub(super) fn from(&mut self, root: usize, state: State, order: &[Element]) -> Result<(), Wrong> {
        self.pending[root] = Some(state);
        self.due.insert(self.elements[root]);
        while let Some(at) = self.due.pop_first() {
            self.element = at;
            self.carry_on(&order[at])?;
        }
        Ok(())
    }

    fn carry_on(&mut self, element: &Element) -> Result<(), Wrong> {
        match element {
            Element::Node(node) => self.visit(*node),
            Element::Loop { head, body } => self.go_round(*head, body),
        }
    }

    /// Goes through a loop turn by turn, until no way leads back to its head.
    fn go_round(&mut self, head: usize, body: &[Element]) -> Result<(), Wrong> {
        self.loops.push(head);
        let mut before: Option<State> = None;
        loop {
            let now = self.pending[head].clone();
            // A turn that begins as the one before it did will be followed by another such.
            if let (Some(before), Some(now)) = (&before, &now)
                && now.within(before)
                && before.within(now)
            {
                return Err((head, Reason::EndlessLoop));
            }
            self.visit(head)?;
            for element in body {
                self.carry_on(element)?;
            }
            before = now;
            if self.pending[head].is_none() {
                break;
            }
        }
        self.loops.pop();
        Ok(())
    }

    fn visit(&mut self, node: usize) -> Result<(), Wrong> {
        let Some(state) = self.pending[node].take() else { return Ok(()) };
        self.visited[node] = true;
        self.at = node;
        self.spend(node, &state)?;
        self.carry_out(&self.graph.nodes[node], state).map_err(|reason| (node, reason))
    }

    /// Gives up when an event takes too long, or finding out does.
    fn spend(&mut self, node: usize, state: &State) -> Result<(), Wrong> {
        self.work = self.work.saturating_sub(1);
        let cycles = self.policy.cycles_max;
        if state.cycles <= cycles && self.work > 0 {
            return Ok(());
        }
        Err(match self.loops.last() {
            Some(&head) if state.cycles > cycles => (head, Reason::LongLoop { cycles }),
            Some(&head) => (head, Reason::NotFollowed),
            None if state.cycles > cycles => (node, Reason::TooLong { cycles }),
            None => (node, Reason::NotFollowed),
        })
    }

    fn carry_out(&mut self, node: &Node, mut state: State) -> Result<(), Reason> {
        let Node { address, instruction, ref exit, .. } = *node;
        if let Exit::Never(reason) = exit {
            return Err(reason.clone());
        }
        if matches!(instruction.op.shape(), Shape::Csr | Shape::CsrImmediate) {
            self.admit(node)?;
        }
        if instruction.op == Op::Jalr {
            let base = state.read(instruction.rs1);
            let expected = match *exit {
                Exit::Jump { address, .. } => address,
                _ => 0,
            };
            let found = base.value().map(|base| base.wrapping_add(instruction.imm.cast_unsigned()) & !1);
            if found != Some(expected) {
                if !self.graph.is_return(node) {
                    return Err(Reason::ComputedJump);
                }
                let blur = state.blur.map(|at| self.program.locate(at).to_string());
                return Err(Reason::UnprovedReturn { blur });
            }
        }
        let cost = u64::from(self.program.machine.cost(&instruction));
        match exit {
            Exit::Next(way) => {
                state.spend(cost);
                self.note_written(address, &instruction, &state);
                self.note_reach(address, &instruction, &state);
                if self.policy.divisors.contains(&address) {
                    state.suppose_not_zero(instruction.rs2);
                }
                state.execute(self.program, address, &instruction)?;
                self.access(&instruction, &mut state)?;
                if instruction.destination() == Some(Register::SP) {
                    // Whatever is then reached by way of another register, the stack is as deep as that.
                    state.check_stack(self.program)?;
                    self.lowest = self.lowest.min(state.read(Register::SP).low);
                }
                self.send(way, state)
            }
            Exit::Jump { to, .. } => {
                state.spend(cost);
                if !instruction.rd.is_zero() {
                    state.check_stack(self.program)?;
                }
                state.write(instruction.rd, Interval::one(address.wrapping_add(4)));
                self.send(to, state)
            }
            Exit::Branch { taken, next } => {
                let (rs1, rs2) = (instruction.rs1, instruction.rs2);
                for (way, is_taken) in [(next, false), (taken, true)] {
                    let Some(mut state) = state.branch(instruction.op, rs1, rs2, is_taken) else { continue };
                    let taken_cost = u64::from(self.program.machine.cycles.branch_taken);
                    state.spend(if is_taken { taken_cost } else { cost });
                    self.send(way, state)?;
                }
                Ok(())
            }
            Exit::Never(reason) => Err(reason.clone()),
        }
    }

    /// What is known of a CSR that is read, that it is known no more when it is written, and that an answer is one.
    fn access(&mut self, instruction: &Instruction, state: &mut State) -> Result<(), Reason> {
        let csr = instruction.csr();
        let touches = instruction.reads_csr() || instruction.writes_csr();
        let again = instruction.writes_csr() && self.policy.answers.contains(&csr);
        if touches && !again && self.policy.answers_once && state.answered.is_some() {
            return Err(Reason::AfterAnswer { csr });
        }
        let given = self.given.iter().position(|&(given, _)| given == csr);
        if instruction.reads_csr() {
            match given {
                Some(index) if !state.overwritten(index) => {
                    state.write(instruction.rd, Interval::one(self.given[index].1));
                }
                _ if self.waits(csr) => state.write(instruction.rd, Interval::new(1, u32::MAX)),
                _ => {}
            }
        }
        if let Some(index) = given.filter(|_| instruction.writes_csr()) {
            state.overwrite(index);
        }
        if again {
            if self.policy.answers_once && state.answered.is_some() {
                return Err(Reason::AnsweredAgain);
            }
            if state.cycles > self.answer_cycles {
                (self.answer_cycles, self.answer) = (state.cycles, self.at);
            }
            (state.answered, state.unanswered) = (Some(0), false);
        }
        Ok(())
    }

    /// Notes what is answered, and what is written to a CSR that is watched.
    fn note_written(&mut self, address: u32, instruction: &Instruction, state: &State) {
        /// More are as good as any.
        const MANY: usize = 256;
        if !instruction.writes_csr() {
            return;
        }
        let value = match instruction.op {
            Op::Csrrw => Some(state.read(instruction.rs1)),
            Op::Csrrwi => Some(Interval::one(instruction.rs1.number().into())),
            _ => None,
        };
        let (csr, Interval { low, high }) = (instruction.csr(), value.unwrap_or(Interval::ANY));
        if self.policy.answers.contains(&csr) {
            let given = self.given.iter().enumerate().filter(|(index, _)| !state.overwritten(*index));
            let untouched: BTreeSet<u16> = given.map(|(_, (csr, _))| *csr).collect();
            let known = self.answers.entry(address).or_insert_with(|| Answered {
                low,
                high,
                untouched: untouched.clone(),
            });
            (known.low, known.high) = (known.low.min(low), known.high.max(high));
            known.untouched.retain(|csr| untouched.contains(csr));
        }
        let Some(values) = self.values.get_mut(&csr) else { return };
        self.kind_written.insert((csr, address));
        let at_start = self.at_start;
        let written = self.written.entry((csr, address)).or_insert(Written { low, high, at_start });
        *written = Written {
            low: written.low.min(low),
            high: written.high.max(high),
            at_start: written.at_start && at_start,
        };
        *values = match (values.take(), value) {
            (Some(mut known), Some(value)) if known.len() < MANY => {
                known.insert((value.low, value.high));
                Some(known)
            }
            _ => None,
        };
    }

    /// Notes where a load or a store goes: what is not proved to lie in the memory, and what of data events write.
    fn note_reach(&mut self, address: u32, instruction: &Instruction, state: &State) {
        let Some(Place { low, high, end, region }) = state.place(self.program, instruction) else { return };
        let stores = instruction.op.shape() == Shape::Store;
        let note = |all: &mut BTreeMap<u32, (u32, u32)>, low: u32, high: u32| {
            let known = all.entry(address).or_insert((low, high));
            *known = (known.0.min(low), known.1.max(high));
        };
        match (region, stores) {
            (Some(Region::Stack), true) => self.lowest = self.lowest.min(low),
            (Some(Region::Data), true) if self.at_start => {}
            (Some(Region::Data), true) => note(&mut self.data_stores, low, end),
            (_, true) => note(&mut self.stray, low, high),
            (None, false) => note(&mut self.stray_loads, low, high),
            (Some(_), false) => {}
        }
    }

    /// Whether reading the register gives no zero.
    fn waits(&self, csr: u16) -> bool {
        matches!(self.program.machine.csrs.at(csr), Csr::Word { read: OnRead::WaitWhileZero, .. })
    }

    /// A program may use the CSRs that the machine has and the policy allows.
    fn admit(&self, node: &Node) -> Result<(), Reason> {
        let csr = node.instruction.csr();
        let (reads, writes) = (node.instruction.reads_csr(), node.instruction.writes_csr());
        let there = self.program.machine.csrs.at(csr);
        let (readable, writable) = match there {
            Csr::Absent => (false, false),
            Csr::Word { read, write, .. } => (read != OnRead::Refuse, write != OnWrite::Refuse),
            Csr::Device => (true, true),
        };
        if there == Csr::Absent {
            Err(Reason::NoCsr { csr })
        } else if reads && !(readable && self.policy.readable.contains(&csr)) {
            Err(Reason::CsrRead { csr })
        } else if writes && !(writable && self.policy.writable.contains(&csr)) {
            Err(Reason::CsrWrite { csr })
        } else {
            Ok(())
        }
    }

    fn send(&mut self, way: &Way, state: State) -> Result<(), Reason> {
        let node = match way {
            Way::Node(node) => *node,
            Way::Bad(reason) => return Err(reason.clone()),
        };
        if self.graph.nodes[node].polls {
            if self.policy.answers_once && state.unanswered {
                return Err(Reason::Unanswered);
            }
            match self.reached.entry(node) {
                std::collections::btree_map::Entry::Vacant(entry) => drop(entry.insert(state)),
                std::collections::btree_map::Entry::Occupied(mut entry) => entry.get_mut().join(&state),
            }
        } else {
            match &mut self.pending[node] {
                Some(there) => there.join(&state),
                none => {
                    *none = Some(state);
                    let element = self.elements[node];
                    if element != self.element {
                        self.due.insert(element);
                    }
                }
            }
        }
        Ok(())
    }
}
